"""Explains why a model puts two points in the same class or not: the contribution of each column."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import get_tags

from linkmix.basics.arrays import Floats

LEAST = 1e-300
"""Smallest probability, so that log-odds are finite."""


@dataclass(frozen=True)
class Pair:
    """What a model predicts for two points.

    Attributes
    ----------
    probabilities : ndarray of shape (2, n_classes)
        Probability of each class for both points, each from the point alone.
    together : float
        Probability that both are in the same class.
    drives : ndarray of shape (n_features,) or None
        Contribution of each column: by how much the log-odds of being in the same class would fall if the value of this
        column were missing for both points. None for a model that does not allow missing values.
    """

    probabilities: Floats
    together: float
    drives: Floats | None


def explain(model: Any, pair: ArrayLike) -> Pair:
    """Predict whether two points are in the same class, and show which columns drive the prediction.

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
    The first column separates the two groups, the second one is irrelevant.

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


def _log_odds(p: Floats) -> Floats:
    """Log-odds of the same class for pairs (..., 2, n_classes), accurate even if one class is almost certain."""
    joint = p[..., 0, :, None] * p[..., 1, None, :]
    same = np.trace(joint, axis1=-2, axis2=-1)
    apart = (joint * ~np.eye(p.shape[-1], dtype=bool)).sum(axis=(-2, -1))
    return np.asarray(np.log(np.maximum(same, LEAST)) - np.log(np.maximum(apart, LEAST)))
