"""Explains why a model puts two points in the same class or not: the contribution of each column."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from math import factorial
from typing import Any

import numpy as np
from numpy.random import RandomState
from sklearn.utils import get_tags

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.mixture.door import LinkEstimator, PointsLike

LEAST = 1e-300
"""Smallest probability, so that log-odds are finite."""
MOST_COLUMNS = 6
"""With more columns than this, contributions are averaged over some of their orders only."""
N_STEPS = 2048
"""Number of columns added, over all orders, where these are drawn."""


@dataclass(frozen=True)
class Pair:
    """What a model predicts for two points.

    Attributes
    ----------
    probabilities : ndarray of shape (2, n_classes)
        Probability of each class for both points, each from the point alone.
    together : float
        Probability that both are in the same class.
    log_odds : float
        Log-odds of being in the same class: ``log(together / (1 - together))``.
    prior : float or None
        Log-odds of two points of which nothing is known. None for a model that does not allow missing values.
    drives : ndarray of shape (n_features,) or None
        Contribution of each column: its Shapley value, which is what it adds to the log-odds when the columns become
        known one after another, averaged over the orders of the columns. ``prior + drives.sum()`` is `log_odds`. None
        for a model that does not allow missing values.
    """

    probabilities: Floats
    together: float
    log_odds: float
    prior: float | None
    drives: Floats | None


def explain(model: Any, pair: PointsLike) -> Pair:
    """Predict whether two points are in the same class, and show which columns drive the prediction.

    Parameters
    ----------
    model : estimator
        Fitted, with ``predict_proba``. If that is calibrated, so is the explanation.
    pair : array-like of shape (2, n_features), or table
        The two points, as the model takes them. The contributions are of the columns in ``feature_names_in_``.

    Returns
    -------
    Pair

    Examples
    --------
    The first column separates the two groups, the second one is irrelevant.

    >>> import numpy as np
    >>> from linkmix import LinkMixture
    >>> X = np.array([[0.0, 1], [0, 2], [0.5, 3], [0.4, 1], [5, 1], [5, 2], [5.5, 3], [5.4, 1]])
    >>> pair = explain(LinkMixture(2, covariance_type="diag", random_state=0).fit(X), X[[0, 4]])
    >>> pair.together < 0.01, bool(pair.drives[0] < -5), bool(abs(pair.drives[1]) < 1)
    (True, True, True)
    >>> bool(np.isclose(pair.prior + pair.drives.sum(), np.log(pair.together / (1 - pair.together))))
    True
    """
    predict: Callable[[Floats], Floats] = model.predict_proba
    if isinstance(model, LinkEstimator):
        points, predict = model.seen(pair), model.row_probabilities()
    else:
        points = np.asarray(pair, dtype=np.float64)
    probabilities = predict(points)
    together = float((probabilities[0] * probabilities[1]).sum())
    log_odds = float(_log_odds(probabilities))
    if not get_tags(model).input_tags.allow_nan:
        return Pair(probabilities, together, log_odds, None, None)
    n_features = points.shape[1]
    orders = orders_of(n_features, N_STEPS, RandomState(0))
    known = known_after(orders)  # (n_orders, d + 1, d)
    sets, which = np.unique(known.reshape(-1, n_features), axis=0, return_inverse=True)
    shown = np.where(sets[:, None], points, np.nan)  # (n_sets, 2, d)
    p = predict(shown.reshape(-1, n_features)).reshape(len(sets), 2, -1)
    path = _log_odds(p)[which.reshape(known.shape[:2])]  # (n_orders, d + 1)
    drives = np.bincount(orders.ravel(), np.diff(path, axis=1).ravel(), n_features) / len(orders)
    recipe = getattr(model, "recipe_", None)
    if recipe is not None:  # a column of a table may have become several
        places = [[column.name for column in recipe.columns].index(owner) for owner in recipe.owners]
        drives = np.asarray(np.bincount(places, drives, len(recipe.columns)), dtype=np.float64)
    return Pair(probabilities, together, log_odds, float(path[0, 0]), drives)


def orders_of(n_features: int, n_steps: int, random: RandomState) -> Ints:
    """All orders of a few columns; of more, some that are drawn, each together with its reverse; shape (n_orders, d).

    Examples
    --------
    >>> orders_of(2, 10, RandomState(0)).tolist(), orders_of(20, 90, RandomState(0)).shape
    ([[0, 1], [1, 0]], (4, 20))
    """
    if n_features <= MOST_COLUMNS:
        every = permutations(range(n_features))
        return np.fromiter(every, dtype=(np.int64, n_features), count=factorial(n_features))
    drawn = np.array([random.permutation(n_features) for _ in range(max(1, n_steps // (2 * n_features)))])
    return np.concatenate([drawn, drawn[:, ::-1]])


def known_after(orders: Ints) -> Array:
    """Which columns are known after 0, 1, ..., d steps of each order; shape (n_orders, d + 1, d)."""
    place = np.argsort(orders, axis=1)  # of each column in the order
    return place[:, None, :] < np.arange(orders.shape[1] + 1)[None, :, None]


def _log_odds(p: Floats) -> Floats:
    """Log-odds of the same class for pairs (..., 2, n_classes), accurate even if one class is almost certain."""
    joint = p[..., 0, :, None] * p[..., 1, None, :]
    same = np.trace(joint, axis1=-2, axis2=-1)
    apart = (joint * ~np.eye(p.shape[-1], dtype=bool)).sum(axis=(-2, -1))
    return np.asarray(np.log(np.maximum(same, LEAST)) - np.log(np.maximum(apart, LEAST)))
