"""Why two points are together or apart: what their columns say, and what links force."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import get_tags

from linkmix.arrays import Floats, Ints
from linkmix.links import Links

LEAST = 1e-300
"""No probability counts for less than this, so that log-odds are finite."""


@dataclass(frozen=True)
class Pair:
    """What a model thinks of two points.

    Attributes
    ----------
    probabilities : ndarray of shape (2, n_classes)
        Probability of each class for both points, each from the point alone.
    together : float
        Probability that both are of one class.
    drives : ndarray of shape (n_features,) or None
        How much each column does for their being together: by how much the log-odds of one class would fall if the
        value of this column were not known of either point. None for a model that needs all values.
    """

    probabilities: Floats
    together: float
    drives: Floats | None


def explain(model: Any, pair: ArrayLike) -> Pair:
    """Say what a model thinks of two points, and which columns make it think so.

    Parameters
    ----------
    model : estimator
        Fitted, with ``predict_proba``.
    pair : array-like of shape (2, n_features)
        The two points.

    Returns
    -------
    Pair

    Examples
    --------
    The first column parts the two groups, the second one has nothing to do with them.

    >>> import numpy as np
    >>> from linkmix import LinkMixture
    >>> X = np.array([[0.0, 1], [0, 2], [0.5, 3], [0.4, 1], [5, 1], [5, 2], [5.5, 3], [5.4, 1]])
    >>> pair = explain(LinkMixture(2, covariance_type="diag", random_state=0).fit(X), X[[0, 4]])
    >>> pair.together < 0.01, bool(pair.drives[0] < -5), bool(abs(pair.drives[1]) < 1)
    (True, True, True)
    """
    points = np.asarray(pair, dtype=np.float64)
    probabilities = model.predict_proba(points)
    together = float((probabilities[0] * probabilities[1]).sum())
    drives = None
    if get_tags(model).input_tags.allow_nan:
        n_features = points.shape[1]
        without = np.repeat(points[None], n_features, axis=0)  # (d, 2, d)
        without[np.arange(n_features), :, np.arange(n_features)] = np.nan
        p = model.predict_proba(without.reshape(-1, n_features)).reshape(n_features, 2, -1)
        drives = _log_odds(probabilities) - _log_odds(p)
    return Pair(probabilities, together, drives)


def forcing_links(links: Links, a: int, b: int) -> tuple[bool, list[tuple[int, int, bool]]] | None:
    """Find the fewest certain links that put two rows together, or apart.

    Parameters
    ----------
    links : Links
        Links between rows.
    a, b : int
        Two rows.

    Returns
    -------
    tuple of bool and list, or None
        Whether they are together, and the links from `a` to `b`, each with its two rows and whether it is a must-link.
        None if no links force anything.

    Examples
    --------
    >>> forcing_links(Links(must=[(0, 1), (2, 3)], cannot=[(1, 2)]), 0, 3)
    (False, [(0, 1, True), (1, 2, False), (2, 3, True)])
    """
    neighbours: dict[int, list[tuple[int, bool]]] = {}
    for pairs, confidence, is_must in (
        (links.must, links.must_confidence, True),
        (links.cannot, links.cannot_confidence, False),
    ):
        certain: Sequence[Ints] | Ints = pairs if confidence is None else pairs[confidence == 1]
        for one, other in np.asarray(certain).tolist():
            neighbours.setdefault(one, []).append((other, is_must))
            neighbours.setdefault(other, []).append((one, is_must))
    # A way may use one cannot-link: two of them say nothing about their ends.
    start = (a, True)
    came_from: dict[tuple[int, bool], tuple[int, bool]] = {start: start}
    queue = deque([start])
    while queue:
        row, together = queue.popleft()
        for other, is_must in neighbours.get(row, ()):
            state = (other, together and is_must)
            if (together or is_must) and state not in came_from:
                came_from[state] = (row, together)
                queue.append(state)
    for together in (True, False):
        if (b, together) in came_from:
            way, state = [], (b, together)
            while state != start:
                before = came_from[state]
                way.append((before[0], state[0], before[1] == state[1]))
                state = before
            return together, way[::-1]
    return None


def _log_odds(p: Floats) -> Floats:
    """Log-odds of one class for pairs (..., 2, n_classes), exact also where one class is almost certain."""
    joint = p[..., 0, :, None] * p[..., 1, None, :]
    same = np.trace(joint, axis1=-2, axis2=-1)
    apart = (joint * ~np.eye(p.shape[-1], dtype=bool)).sum(axis=(-2, -1))
    return np.asarray(np.log(np.maximum(same, LEAST)) - np.log(np.maximum(apart, LEAST)))
