"""RCA: relevant component analysis (Shental and others, 2002; Bar-Hillel and others, 2005), then k-means."""

from numbers import Real
from typing import ClassVar, Literal

import numpy as np
from numpy.random import RandomState
from scipy.linalg import eigh
from sklearn.utils._param_validation import Interval, StrOptions

from linkmix.basics.arrays import Floats, Ints
from linkmix.basics.checks import Constraints
from linkmix.links import Links
from linkmix.rivals.learned_metric import MetricRival, variances


class RCA(MetricRival):
    """k-means after the variation within chunklets is scaled away.

    Points that must-links hold together differ only in what does not matter. The metric is the inverse of their
    covariance about the means of their chunklets. Cannot-links are refused.

    Parameters
    ----------
    n_classes : int, default=2
        Number of classes.
    shrinkage : "auto" or float in [0, 1], default="auto"
        Share of the variances of the columns, without links, in the covariance that is inverted. "auto":
        d / (d + f), where f is the number of points in chunklets minus the number of chunklets, so that a few links
        change the metric a little. 0 is the published method, which needs chunklets that vary in all directions.
    n_init : int, default=10
        Number of runs of k-means.
    random_state : int, RandomState or None, default=None
        Source of randomness for the starts of k-means.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Class of each point.
    metric_ : ndarray of shape (n_features, n_features)
        The matrix A of squared distances (x - y)' A (x - y).
    cluster_centers_ : ndarray of shape (n_classes, n_features)
        Mean of each class.

    References
    ----------
    Bar-Hillel, Hertz, Shental, Weinshall (2005): Learning a Mahalanobis metric from equivalence constraints. JMLR 6.

    Examples
    --------
    >>> from linkmix import Links
    >>> from linkmix.rivals import RCA
    >>> X = [[0.0, 5.0], [0.1, -5.0], [0.2, 4.0], [1.0, -4.0], [1.1, 5.0], [1.2, -5.0]]
    >>> model = RCA(random_state=0).fit(X, links=Links(must=[(0, 1), (1, 2), (3, 4), (4, 5)]))
    >>> bool(model.labels_[0] == model.labels_[1] == model.labels_[2] != model.labels_[3] == model.labels_[5])
    True
    """

    uses_cannot: ClassVar[bool] = False
    _parameter_constraints: ClassVar[Constraints] = {
        **MetricRival._parameter_constraints,
        "shrinkage": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        n_classes: int = 2,
        *,
        shrinkage: Literal["auto"] | float = "auto",
        n_init: int = 10,
        random_state: int | RandomState | None = None,
    ) -> None:
        self.n_classes = n_classes
        self.shrinkage = shrinkage
        self.n_init = n_init
        self.random_state = random_state

    def _learned(self, X: Floats, links: Links, random: RandomState) -> Floats:
        within, freedom = chunklet_covariance(X, links.chunklets(len(X)))
        d = X.shape[1]
        share = d / (d + freedom) if isinstance(self.shrinkage, str) else float(self.shrinkage)
        values, vectors = eigh((1 - share) * within + share * np.diag(variances(X)))
        if values[0] <= 1e-12 * values[-1]:
            rank = int((values > 1e-12 * max(values[-1], np.finfo(np.float64).tiny)).sum())
            raise ValueError(
                f"must-linked points vary in {rank} of {d} directions, so there is no metric with shrinkage={share:g}: "
                "give more must-links, fewer columns, or shrinkage='auto'"
            )
        return np.asarray((vectors / values) @ vectors.T)


def chunklet_covariance(X: Floats, chunklet: Ints) -> tuple[Floats, int]:
    """Covariance of the points in chunklets about the mean of their chunklet, and the degrees of freedom behind it."""
    sizes = np.bincount(chunklet)
    inside = np.flatnonzero(sizes[chunklet] > 1)
    if not len(inside):
        return np.zeros((X.shape[1], X.shape[1])), 0
    _, number = np.unique(chunklet[inside], return_inverse=True)
    some = X[inside] - X[inside].mean(axis=0)
    counts = np.bincount(number)
    means = np.stack([np.bincount(number, column) for column in some.T], axis=1) / counts[:, None]
    centred = some - means[number]
    return np.asarray(centred.T @ centred / len(inside)), len(inside) - len(counts)
