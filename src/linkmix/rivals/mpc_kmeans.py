"""MPCKMeans: k-means with a penalty for broken links that also learns a weight for each column."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.random import RandomState

from linkmix.basics.arrays import Floats, Ints
from linkmix.links import Links
from linkmix.rivals.kmeans_links import PenaltyRival, WeightedLinks, linked_seeds, squared_distances

SMALLEST_SPREAD = 1e-6
"""Lower bound of a column's variance within classes, relative to its total variance."""
HALVINGS = 30


class MPCKMeans(PenaltyRival):
    """k-means with a learned metric and a penalty for broken links.

    Minimises the sum over points of ``||x - mu||_A^2 - log det A``, plus `weight` times ``||x_i - x_j||_A^2`` for each
    broken must-link and `weight` times ``D_A^2 - ||x_i - x_j||_A^2`` for each broken cannot-link, where D_A is the
    largest distance between two points. The metric A is diagonal and shared by all classes. As published, links that
    follow from certain ones count as well; their number grows with the square of the size of the chunklets. A link of
    confidence c counts c times. Finding the largest distance takes up to O(n^2) time if the points lie on a sphere.

    As published, points are assigned one after the other, given the classes of the others. In addition each step also
    assigns all points from scratch and keeps the cheaper of the two, since points that their links hold together
    cannot leave a class one by one.

    Parameters
    ----------
    n_classes : int, default=2
        Number of classes.
    weight : float, default=1.0
        Weight of a broken link.
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
    metric_ : ndarray of shape (n_features,)
        Diagonal of A: weight of each column in squared distances.
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
    >>> bool(model.metric_[0] > model.metric_[1])
    True
    """

    _farthest: Mapping[tuple[int, bytes], Floats] = MappingProxyType({})

    def _cluster(self, X: Floats, links: Links, random: RandomState) -> Ints:
        self._farthest = {}
        try:
            return super()._cluster(X, links, random)
        finally:
            del self._farthest  # the metric of a fit is of no use to the next

    def _seeds(self, X: Floats, links: Links, random: RandomState) -> Floats:
        return linked_seeds(X, links, self.n_classes, random, farthest=True)

    def _costs(self, X: Floats, centres: Floats, metric: Floats) -> Floats:
        return np.asarray(squared_distances(X, centres, metric) - np.log(metric).sum())

    def _penalties(self, X: Floats, links: WeightedLinks, metric: Floats) -> Floats:
        spread = _pair_differences(X, links.pairs) @ metric  # (n_links,)
        if links.is_must.all():
            return np.asarray(links.weights * spread)
        largest = self._largest_difference(X, metric) @ metric
        # Rounding must not make the penalty of a cannot-link negative.
        return np.asarray(links.weights * np.where(links.is_must, spread, np.maximum(largest - spread, 0.0)))

    def _learned(self, X: Floats, labels: Ints, centres: Floats, links: WeightedLinks, metric: Floats) -> Floats:
        """Move the metric to the minimum for the current farthest points, or part of the way if the objective rises."""
        variance = X.var(axis=0)
        learns = np.ptp(X, axis=0) > 0  # a constant column would get an infinite weight
        broken = links.broken(labels)
        differences = _pair_differences(X, links.pairs[broken])
        signs = np.where(links.is_must[broken], 1.0, -1.0) * links.weights[broken]
        spread = ((X - centres[labels]) ** 2).sum(axis=0) + signs @ differences
        if np.any(signs < 0):
            spread = spread - signs[signs < 0].sum() * self._largest_difference(X, metric)
        smallest = len(X) * SMALLEST_SPREAD * variance
        wanted = np.where(learns, len(X) / np.maximum(spread, np.where(learns, smallest, 1.0)), metric)

        # Other points may be the farthest under the new metric, so the full step may be too long.
        before = self._objective(X, labels, centres, links, metric)
        for halving in range(HALVINGS):
            tried = metric + (wanted - metric) / 2**halving
            if self._objective(X, labels, centres, links, tried) <= before:
                return np.asarray(tried)
        return metric

    def _largest_difference(self, X: Floats, metric: Floats) -> Floats:
        """Squared differences, by column, of the two farthest points; several parts of a step ask for the same."""
        key = (id(X), metric.tobytes())
        if key not in self._farthest:
            a, b = farthest_pair(X * np.sqrt(metric))
            self._farthest = {key: (X[a] - X[b]) ** 2}  # the last metric will do
        return self._farthest[key]

    def _keep(self, metric: Floats) -> None:
        self.metric_ = metric

    def _feature_weights(self) -> Floats:
        return self.metric_


def _pair_differences(X: Floats, pairs: Ints) -> Floats:
    """Squared differences between the two rows of each pair, by column."""
    return np.asarray((X[pairs[:, 0]] - X[pairs[:, 1]]) ** 2)


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
