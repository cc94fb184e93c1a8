"""MMC: k-means in a metric that keeps must-links short and cannot-links long (Xing and others, 2002)."""

import warnings
from numbers import Real
from typing import ClassVar, Literal

import numpy as np
from numpy.random import RandomState
from scipy.linalg import eigh
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import StrOptions

from linkmix.basics.arrays import Floats
from linkmix.basics.checks import Constraints, at_least
from linkmix.links import Links
from linkmix.rivals.learned_metric import MetricRival, differences, random_pairs, variances

MOST_PAIRS = 2000
"""Number of pairs that stand for cannot-links if there are none."""


class MMC(MetricRival):
    """k-means in the metric under which must-linked points are close and cannot-linked points are far apart.

    The metric A minimises the sum of d_A^2 over must-links minus the logarithm of the sum of d_A over cannot-links, a
    convex problem. As published, pairs of points stand for cannot-links if there are none; here at most 2000, drawn at
    random.

    Parameters
    ----------
    n_classes : int, default=2
        Number of classes.
    form : {"full", "diagonal"}, default="full"
        Whether A is a full matrix or a weight for each column.
    n_random : float, default=1.0
        So many pairs of points, drawn without regard to the links, count among the must-links, by their expected
        squared differences in each column. Without them, 0, as published, a direction in which no must-linked points
        differ would have an infinite weight.
    max_iter : int, default=1000
        Maximum number of steps of the optimiser.
    n_init : int, default=10
        Number of runs of k-means.
    random_state : int, RandomState or None, default=None
        Source of randomness for the starts of k-means, and for pairs that stand for cannot-links.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Class of each point.
    metric_ : ndarray of shape (n_features, n_features)
        The matrix A of squared distances (x - y)' A (x - y).
    objective_ : float
        The minimum, with columns divided by their standard deviations.
    n_iter_ : int
        Number of steps of the optimiser.
    cluster_centers_ : ndarray of shape (n_classes, n_features)
        Mean of each class.

    References
    ----------
    Xing, Ng, Jordan, Russell (2002): Distance metric learning, with application to clustering with side-information.
    NIPS 15.

    Examples
    --------
    >>> from linkmix import Links
    >>> from linkmix.rivals import MMC
    >>> X = [[0.0, 5.0], [0.1, -5.0], [0.2, 4.0], [1.0, -4.0], [1.1, 5.0], [1.2, -5.0]]
    >>> model = MMC(random_state=0).fit(X, links=Links(must=[(0, 1), (3, 4)], cannot=[(0, 4), (2, 5)]))
    >>> bool(model.labels_[0] == model.labels_[1] == model.labels_[2] != model.labels_[3] == model.labels_[5])
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **MetricRival._parameter_constraints,
        "form": [StrOptions({"full", "diagonal"})],
        "n_random": [at_least(0, Real)],
    }

    def __init__(
        self,
        n_classes: int = 2,
        *,
        form: Literal["full", "diagonal"] = "full",
        n_random: float = 1.0,
        max_iter: int = 1000,
        n_init: int = 10,
        random_state: int | RandomState | None = None,
    ) -> None:
        self.n_classes = n_classes
        self.form = form
        self.n_random = n_random
        self.max_iter = max_iter
        self.n_init = n_init
        self.random_state = random_state

    def _learned(self, X: Floats, links: Links, random: RandomState) -> Floats:
        if len(X) < 2:
            self.objective_, self.n_iter_ = 0.0, 1
            return np.eye(X.shape[1])
        scale = np.sqrt(variances(X))  # columns of like size are easier on the optimiser, and change no minimum
        Z = X / scale
        near = differences(Z, links.must)
        far = differences(Z, links.cannot if links.n_cannot else random_pairs(len(X), MOST_PAIRS, random))
        far = far[(far != 0).any(axis=1)]
        if not len(far):  # all points are equal
            self.objective_, self.n_iter_ = 0.0, 1
            return np.diag(scale**-2.0)
        spread = near.T @ near + 2 * self.n_random * np.eye(X.shape[1])
        metric, self.objective_, n_iter = lowest(spread, far, self.form == "diagonal", self.max_iter)
        self.n_iter_ = max(n_iter, 1)
        return np.asarray(metric / np.multiply.outer(scale, scale))


def lowest(spread: Floats, far: Floats, diagonal: bool, max_iter: int) -> tuple[Floats, float, int]:
    """The metric A that minimises <A, spread> - log sum_i sqrt(far_i' A far_i), the minimum, and the number of steps.

    Parameters
    ----------
    spread : array of shape (d, d)
        Sum of the outer products of the differences of must-linked points.
    far : array of shape (n_pairs, d)
        Differences of cannot-linked points, none of them zero.
    diagonal : bool
        Whether A is diagonal.
    max_iter : int
        Maximum number of steps.
    """
    d = len(spread)
    values, vectors = eigh(spread)
    if values[0] <= 1e-12 * values[-1]:
        raise ValueError(
            f"must-linked points differ in {int((values > 1e-12 * values[-1]).sum())} of {d} directions, so the metric "
            "has no limit in the others: give more must-links, fewer columns, or n_random=1"
        )

    def of_diagonal(flat: Floats) -> tuple[float, Floats]:
        lengths = np.sqrt(far**2 @ flat)
        total = lengths.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            pull = np.where(lengths[:, None] > 0, far**2 / (2 * lengths[:, None]), 0.0).sum(axis=0)
        return float(np.diag(spread) @ flat - np.log(total)), np.diag(spread) - pull / total

    def of_root(flat: Floats) -> tuple[float, Floats]:
        root = flat.reshape(d, d)
        mapped = far @ root
        lengths = np.sqrt((mapped**2).sum(axis=1))
        total = lengths.sum()
        value = float((spread @ root * root).sum() - np.log(total))
        gradient = 2 * spread @ root - far.T @ (mapped / np.maximum(lengths, 1e-300)[:, None]) / total
        return value, gradient.ravel()

    if diagonal:
        start = 0.5 / np.diag(spread) / d
        bounds = [(0.0, None)] * d
        found = minimize(of_diagonal, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": max_iter})
        metric = np.diag(found.x)
    else:  # A = R R' is semi-definite for any R
        start = (vectors / np.sqrt(2 * d * values)) @ vectors.T
        found = minimize(
            of_root, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": max_iter, "ftol": 1e-13}
        )
        root = found.x.reshape(d, d)
        metric = root @ root.T
    if found.nit >= max_iter:
        warnings.warn(
            f"the metric was still improving after max_iter={max_iter} steps: raise max_iter",
            ConvergenceWarning,
            stacklevel=5,  # the line that calls fit
        )
    return metric, float(found.fun), int(found.nit)
