"""ITML: the metric nearest to a prior one that keeps must-links short and cannot-links long (Davis et al., 2007)."""

from numbers import Real
from typing import ClassVar, Literal

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_array

from linkmix.basics.arrays import Floats
from linkmix.basics.checks import Constraints, at_least
from linkmix.links import Links
from linkmix.rivals.learned_metric import MetricRival, differences, random_pairs, variances

MOST_PAIRS = 20_000
"""Pairs by which it is decided what is near and far."""
NEAR, FAR = 5, 95
"""Percentiles of the distances of random pairs: must-linked points should be nearer, cannot-linked ones farther."""
TOLERANCE = 1e-3


class ITML(MetricRival):
    """k-means in the metric nearest to a prior one under which the links are near or far.

    Must-linked points should be nearer than 95 % of random pairs are, and cannot-linked ones farther than 95 %. Of the
    metrics that do so, up to slack, it finds the one with the smallest LogDet divergence from the prior, by projections
    onto one link after the other.

    Parameters
    ----------
    n_classes : int, default=2
        Number of classes.
    prior : {"variance", "identity"}, default="variance"
        The metric without links: columns divided by their standard deviations, or as they are (the published default).
    bounds : pair of float, optional
        Squared distances below which must-linked points and above which cannot-linked points should be. By default the
        5th and 95th percentile of those of random pairs under the prior.
    gamma : float, default=1.0
        How much the links weigh against the prior.
    max_iter : int, default=100
        Maximum number of passes over the links. Passes also end once the multipliers change by less than a thousandth
        of their length, which with thousands of links takes longer than the metric takes to settle.
    n_init : int, default=10
        Number of runs of k-means.
    random_state : int, RandomState or None, default=None
        Source of randomness for the starts of k-means and for the random pairs.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Class of each point.
    metric_ : ndarray of shape (n_features, n_features)
        The matrix A of squared distances (x - y)' A (x - y).
    bounds_ : tuple of float
        The bounds that were used.
    n_iter_ : int
        Number of passes.
    cluster_centers_ : ndarray of shape (n_classes, n_features)
        Mean of each class.

    References
    ----------
    Davis, Kulis, Jain, Sra, Dhillon (2007): Information-theoretic metric learning. ICML.

    Examples
    --------
    >>> from linkmix import Links
    >>> from linkmix.rivals import ITML
    >>> X = [[0.0, 5.0], [0.1, -5.0], [0.2, 4.0], [1.0, -4.0], [1.1, 5.0], [1.2, -5.0]]
    >>> model = ITML(random_state=0).fit(X, links=Links(must=[(0, 1), (3, 4)], cannot=[(0, 4), (2, 5)]))
    >>> bool(model.labels_[0] == model.labels_[1] == model.labels_[2] != model.labels_[3] == model.labels_[5])
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **MetricRival._parameter_constraints,
        "prior": [StrOptions({"variance", "identity"})],
        "bounds": ["array-like", None],
        "gamma": [at_least(0, Real)],
    }

    def __init__(
        self,
        n_classes: int = 2,
        *,
        prior: Literal["variance", "identity"] = "variance",
        bounds: ArrayLike | None = None,
        gamma: float = 1.0,
        max_iter: int = 100,
        n_init: int = 10,
        random_state: int | RandomState | None = None,
    ) -> None:
        self.n_classes = n_classes
        self.prior = prior
        self.bounds = bounds
        self.gamma = gamma
        self.max_iter = max_iter
        self.n_init = n_init
        self.random_state = random_state

    def _learned(self, X: Floats, links: Links, random: RandomState) -> Floats:
        weights = 1 / variances(X) if self.prior == "variance" else np.ones(X.shape[1])
        self.bounds_ = self._bounds(X * np.sqrt(weights), random)
        pairs = np.concatenate([links.must, links.cannot])
        is_must = np.arange(len(pairs)) < links.n_must
        moved = differences(X, pairs)
        kept = (moved != 0).any(axis=1)  # no metric changes the distance of two equal points
        metric, self.n_iter_ = project(
            np.diag(weights), moved[kept], is_must[kept], self.bounds_, self.gamma, self.max_iter
        )
        return metric

    def _bounds(self, scaled: Floats, random: RandomState) -> tuple[float, float]:
        if self.bounds is not None:
            given = check_array(self.bounds, dtype=np.float64, ensure_2d=False, input_name="bounds")
            if given.shape != (2,) or not 0 < given[0] <= given[1]:
                raise ValueError(f"bounds={self.bounds!r} must be two positive numbers, the smaller one first")
            return float(given[0]), float(given[1])
        if len(scaled) < 2:
            return 1.0, 1.0
        squares = (differences(scaled, random_pairs(len(scaled), MOST_PAIRS, random)) ** 2).sum(axis=1)
        near, far = np.percentile(squares, (NEAR, FAR))
        smallest = np.finfo(np.float64).tiny
        positive = squares[squares > 0]
        least = float(positive.min()) if len(positive) else 1.0  # where many points are equal
        return max(float(near), least, smallest), max(float(far), least, smallest)


def project(
    metric: Floats,
    moved: Floats,
    is_must: np.typing.NDArray[np.bool_],
    bounds: tuple[float, float],
    gamma: float,
    max_iter: int,
) -> tuple[Floats, int]:
    """Bregman projections of a metric onto each link in turn, until the multipliers settle.

    Parameters
    ----------
    metric : array of shape (d, d)
        The prior.
    moved : array of shape (n_links, d)
        Differences of linked points, none of them zero.
    is_must : array of shape (n_links,)
        Whether the link is a must-link.
    bounds : pair of float
        Upper bound of the squared distance of must-links, lower bound of that of cannot-links.
    gamma : float
        Weight of the slack.
    max_iter : int
        Maximum number of passes.

    Returns
    -------
    metric : array of shape (d, d)
    n_iter : int
        Number of passes.
    """
    metric = metric.copy()
    sign = np.where(is_must, 1.0, -1.0)
    wanted = np.where(is_must, bounds[0], bounds[1])
    multipliers = np.zeros(len(moved))
    share = gamma / (gamma + 1)
    n_iter = 0
    for n_iter in range(1, max_iter + 1):  # noqa: B007 - the number is returned
        before = multipliers.copy()
        for i, difference in enumerate(moved):
            image = metric @ difference
            length = float(difference @ image)
            step = min(multipliers[i], sign[i] * share * (1 / length - 1 / wanted[i]))
            multipliers[i] -= step
            wanted[i] = 1 / (1 / wanted[i] + sign[i] * step / gamma) if gamma else wanted[i]
            metric += sign[i] * step / (1 - sign[i] * step * length) * np.multiply.outer(image, image)
        total = np.linalg.norm(before) + np.linalg.norm(multipliers)
        if total == 0 or np.abs(multipliers - before).sum() / total < TOLERANCE:
            break
    return (metric + metric.T) / 2, n_iter
