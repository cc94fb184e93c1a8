"""MPCKMeans: k-means with a penalty for broken links that also learns a metric, for each class or for all."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Literal

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import StrOptions

from linkmix.basics.arrays import Floats, Ints
from linkmix.basics.checks import Constraints
from linkmix.links import Links
from linkmix.rivals.kmeans_links import PenaltyRival, WeightedLinks, linked_seeds, squared_distances

SMALLEST_SPREAD = {"cluster": 1e-3, "shared": 1e-6}
"""Lower bound of the variance within classes, relative to the total variance. Without one, a class of a few points that
lie close together would have an infinite weight."""
HALVINGS = 30
MOST_REMEMBERED = 100


class MPCKMeans(PenaltyRival):
    """k-means with learned metrics and a penalty for broken links.

    Minimises the sum over points of ``||x - mu||_A^2 - log det A``, where A is the metric of the point's class, plus
    `weight` times ``||x_i - x_j||_A^2`` for each broken must-link (the mean over the metrics of both classes) and
    `weight` times ``D_A^2 - ||x_i - x_j||_A^2`` for each broken cannot-link, where D_A is the largest distance between
    two points. As published, links that follow from certain ones count as well; their number grows with the square of
    the size of the chunklets. A link of confidence c counts c times. Finding the largest distance takes up to O(n^2)
    time if the points lie on a sphere.

    As published, points are assigned one after the other, given the classes of the others. In addition each step also
    assigns all points from scratch and keeps the cheaper of the two, since points that their links hold together
    cannot leave a class one by one.

    Parameters
    ----------
    n_classes : int, default=2
        Number of classes.
    weight : float, default=1.0
        Weight of a broken link. It multiplies squared distances in the learned metric, so 1 suits any scale.
    metric : {"cluster", "shared"}, default="cluster"
        A metric for each class, as published, or one for all classes.
    form : {"diagonal", "full"}, default="diagonal"
        Whether a metric is a weight for each column, as in the published experiments, or a full matrix.
    max_iter : int, default=300
        Maximum number of steps.
    init : array-like of shape (n_classes, n_features), optional
        Initial centres. By default the means of chunklets, chosen by size times distance from those before; if there
        are too few, a point that is cannot-linked to all of these, then k-means++ draws.
    random_state : int, RandomState or None, default=None
        Source of randomness for the initial centres and the order in which linked points are assigned.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Class of each point.
    cluster_centers_ : ndarray of shape (n_classes, n_features)
        Mean of each class.
    metric_ : ndarray of shape (n_classes, n_features), or (n_features,) if it is shared
        Diagonal of A: weight of each column in squared distances. With ``form="full"`` the matrices, with one more
        axis of length n_features.
    objective_ : float
        Objective at the end.
    objective_trace_ : ndarray of shape (n_iter_,)
        Objective after each step; it never increases.
    n_iter_ : int
        Number of steps.
    converged_ : bool
        Whether the last step changed nothing.

    References
    ----------
    Bilenko, Basu, Mooney (2004): Integrating constraints and metric learning in semi-supervised clustering. ICML.

    Examples
    --------
    >>> from linkmix import Links
    >>> from linkmix.rivals.mpc_kmeans import MPCKMeans
    >>> X = [[0.0, 5.0], [0.1, -5.0], [0.2, 4.0], [1.0, -4.0], [1.1, 5.0], [1.2, -5.0]]
    >>> model = MPCKMeans(random_state=0).fit(X, links=Links(must=[(0, 1), (3, 4)], cannot=[(0, 4)]))
    >>> bool(model.labels_[0] == model.labels_[2] != model.labels_[4] == model.labels_[5])
    True
    >>> (model.metric_[:, 0] > model.metric_[:, 1]).tolist()
    [True, True]
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **PenaltyRival._parameter_constraints,
        "metric": [StrOptions({"cluster", "shared"})],
        "form": [StrOptions({"diagonal", "full"})],
    }
    _farthest: Mapping[bytes, Floats] = MappingProxyType({})

    def __init__(
        self,
        n_classes: int = 2,
        *,
        weight: float = 1.0,
        metric: Literal["cluster", "shared"] = "cluster",
        form: Literal["diagonal", "full"] = "diagonal",
        max_iter: int = 300,
        init: ArrayLike | None = None,
        random_state: int | RandomState | None = None,
    ) -> None:
        super().__init__(n_classes, weight=weight, max_iter=max_iter, init=init, random_state=random_state)
        self.metric = metric
        self.form = form

    def _cluster(self, X: Floats, links: Links, random: RandomState) -> Ints:
        self._farthest = {}
        try:
            return super()._cluster(X, links, random)
        finally:
            del self._farthest  # the metrics of a fit are of no use to the next

    def _first_metric(self, n_features: int) -> Floats:
        one = np.ones(n_features) if self.form == "diagonal" else np.eye(n_features)
        return np.stack([one] * (self.n_classes if self.metric == "cluster" else 1))

    def _seeds(self, X: Floats, links: Links, random: RandomState) -> Floats:
        return linked_seeds(X, links, self.n_classes, random, farthest=True)

    def _costs(self, X: Floats, centres: Floats, metric: Floats) -> Floats:
        if len(metric) == 1:
            return _distances(X, centres, metric[0]) - _log_det(metric[0])
        return np.column_stack(
            [_distances(X, centres[m : m + 1], A) - _log_det(A) for m, A in enumerate(metric)]  # (n, 1) each
        )

    def _penalties(self, X: Floats, links: WeightedLinks, metric: Floats) -> Floats:
        differences = X[links.pairs[:, 0]] - X[links.pairs[:, 1]]
        # Rounding must not make the penalty of a cannot-link negative.
        paid = [
            np.where(links.is_must, spread, np.maximum(_inner(A, self._largest(X, A)) - spread, 0.0))
            for A in metric
            for spread in [_squares(differences, A)]
        ]
        return links.weights * paid[0] if len(metric) == 1 else links.weights[:, None] * np.column_stack(paid)

    def _learned(self, X: Floats, labels: Ints, centres: Floats, links: WeightedLinks, metric: Floats) -> Floats:
        """Move each metric to the minimum for the current farthest points, or part of the way if that is too far."""
        broken = links.broken(labels)
        differences = (X[links.pairs[:, 0]] - X[links.pairs[:, 1]])[broken]
        ends, is_must, weights = labels[links.pairs[broken]], links.is_must[broken], links.weights[broken]
        learned = metric.copy()
        for m, A in enumerate(metric):
            rows = np.ones(len(X), dtype=bool) if len(metric) == 1 else labels == m
            if not rows.any():
                continue
            # How often a broken link counts: half at either end, unless both classes share the metric.
            counts = weights if len(metric) == 1 else weights * (ends == m).mean(axis=1)
            signs = np.where(is_must, counts, -counts)
            spread = self._sum_of_squares(X[rows] - centres[labels[rows]]) + self._sum_of_squares(differences, signs)
            learned[m] = self._lower(X, A, spread, int(rows.sum()), float(counts[~is_must].sum()))
        return learned

    def _lower(self, X: Floats, A: Floats, spread: Floats, n: int, n_far: float) -> Floats:
        """A metric with a lower ``<A, spread> - n log det A + n_far D_A^2``, which is A's part of the objective."""

        def part(A: Floats) -> float:
            far = n_far * _inner(A, self._largest(X, A)) if n_far else 0.0
            return _inner(A, spread) - n * _log_det(A) + far

        wanted = self._inverse(X, spread + n_far * self._largest(X, A) if n_far else spread, n, A)
        # Other points may be the farthest under the new metric, so the full step may be too long.
        before = part(A)
        for halving in range(HALVINGS):
            tried = A + (wanted - A) / 2**halving
            if part(tried) <= before:
                return np.asarray(tried)
        return A

    def _inverse(self, X: Floats, spread: Floats, n: int, A: Floats) -> Floats:
        """The metric n / spread, kept finite where the spread is too small."""
        smallest = n * SMALLEST_SPREAD[self.metric] * X.var(axis=0)
        if self.form == "diagonal":
            learns = np.ptp(X, axis=0) > 0  # a constant column would get an infinite weight
            return np.where(learns, n / np.maximum(spread, np.where(learns, smallest, 1.0)), A)
        values, vectors = np.linalg.eigh(spread)
        least = smallest.mean() if smallest.any() else 1.0
        return np.asarray((vectors * (n / np.maximum(values, least))) @ vectors.T)

    def _sum_of_squares(self, differences: Floats, weights: Floats | None = None) -> Floats:
        """Sum of the squares of the rows, or of their outer products if metrics are full."""
        weighted = differences if weights is None else differences * weights[:, None]
        if self.form == "full":
            return np.asarray(weighted.T @ differences)
        return np.asarray((weighted * differences).sum(axis=0))

    def _largest(self, X: Floats, A: Floats) -> Floats:
        """Squares of the difference of the two farthest points; several parts of a step ask for the same."""
        key = A.tobytes()
        if key not in self._farthest:
            a, b = farthest_pair(_scaled(X, A))
            kept = self._farthest if len(self._farthest) < MOST_REMEMBERED else {}
            self._farthest = {**kept, key: self._sum_of_squares(X[[a]] - X[[b]])}
        return self._farthest[key]

    def _keep(self, metric: Floats) -> None:
        self.metric_ = metric[0] if self.metric == "shared" else metric

    def _distances(self, points: Floats) -> Floats:
        metric = self.metric_[None] if self.metric == "shared" else self.metric_
        return self._costs(points, self.cluster_centers_, metric)


def _squares(differences: Floats, A: Floats) -> Floats:
    """Squared length of each row under the metric A: a diagonal (d,), or a matrix (d, d)."""
    return np.asarray(differences**2 @ A if A.ndim == 1 else ((differences @ A) * differences).sum(axis=1))


def _distances(X: Floats, centres: Floats, A: Floats) -> Floats:
    """Squared distances of points to centres under a metric, shape (n, M)."""
    if A.ndim == 1:
        return squared_distances(X, centres, A)
    return np.column_stack([_squares(X - centre, A) for centre in centres])


def _scaled(X: Floats, A: Floats) -> Floats:
    """Points whose squared Euclidean distances are those of X under the metric."""
    return np.asarray(X * np.sqrt(A) if A.ndim == 1 else X @ np.linalg.cholesky(A))


def _inner(A: Floats, B: Floats) -> float:
    return float((A * B).sum())


def _log_det(A: Floats) -> float:
    return float(np.log(A).sum() if A.ndim == 1 else np.linalg.slogdet(A)[1])


def farthest_pair(X: Floats) -> tuple[int, int]:
    """The two rows farthest from each other. Exact, but skips pairs too close to the mean to be the farthest."""
    centred = X - X.mean(axis=0)
    radius = np.sqrt(np.einsum("ij,ij->i", centred, centred))
    order = np.argsort(-radius, kind="stable")
    outer_first, radius = X[order], radius[order]
    a, b, largest = 0, 0, 0.0
    for i in range(len(X)):
        # |x - y| is at most the sum of their distances from the mean; the factor guards against rounding.
        diameter = np.sqrt(largest) * (1 - 1e-12)
        if 2 * radius[i] <= diameter:
            break  # both rows of the pair come before this one
        end = int(np.searchsorted(-radius, radius[i] - diameter, side="right"))
        if end > i + 1:
            differences = outer_first[i + 1 : end] - outer_first[i]
            distances = np.einsum("ij,ij->i", differences, differences)
            if distances.max() > largest:
                a, b, largest = i, i + 1 + int(distances.argmax()), float(distances.max())
    return int(order[a]), int(order[b])
