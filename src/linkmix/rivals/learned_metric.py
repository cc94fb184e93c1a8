"""k-means in a metric that was learned from the links: what RCA, MMC and ITML share."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.random import RandomState
from scipy.linalg import eigh

from linkmix.basics.arrays import Floats, Ints
from linkmix.basics.checks import Constraints, at_least
from linkmix.links import Links
from linkmix.rivals.k_means import k_means
from linkmix.rivals.kmeans_links import CentreRival, class_means, squared_distances


class MetricRival(CentreRival):
    """k-means on points that a linear map has transformed; only the map knows the links.

    Attributes
    ----------
    metric_ : ndarray of shape (n_features, n_features)
        The matrix A of squared distances (x - y)' A (x - y).
    """

    _parameter_constraints: ClassVar[Constraints] = {**CentreRival._parameter_constraints, "n_init": [at_least(1)]}

    n_init: int
    labels_: Ints
    metric_: Floats

    def _cluster(self, X: Floats, links: Links, random: RandomState) -> Ints:
        self.metric_ = self._learned(X, links, random)
        labels = k_means(self._mapped(X), self.n_classes, self.n_init, random)
        self.cluster_centers_ = class_means(X, labels, np.zeros((self.n_classes, X.shape[1])))
        return labels

    @abstractmethod
    def _learned(self, X: Floats, links: Links, random: RandomState) -> Floats:
        """Metric of shape (n_features, n_features)."""

    def _mapped(self, X: Floats) -> Floats:
        """Points whose Euclidean distances are those of X under the metric."""
        values, vectors = eigh(self.metric_)
        return np.asarray(X @ (vectors * np.sqrt(np.maximum(values, 0.0))))

    def _distances(self, points: Floats) -> Floats:
        mapped = self._mapped(np.concatenate([points, self.cluster_centers_]))
        return squared_distances(mapped[: len(points)], mapped[len(points) :])


def differences(X: Floats, pairs: Ints) -> Floats:
    """The difference of the two rows of each pair."""
    return np.asarray(X[pairs[:, 0]] - X[pairs[:, 1]])


def variances(X: Floats) -> Floats:
    """Variance of each column; one for a constant column, which tells nothing apart."""
    variance = X.var(axis=0)
    return np.where(np.ptp(X, axis=0) > 0, variance, 1.0)


def random_pairs(n_rows: int, most: int, random: RandomState) -> Ints:
    """Pairs of different rows: all of them, or as many as allowed, drawn at random."""
    if n_rows * (n_rows - 1) // 2 <= most:
        return np.column_stack(np.triu_indices(n_rows, 1)).astype(np.int64)
    first = random.randint(n_rows, size=most)
    return np.column_stack([first, (first + 1 + random.randint(n_rows - 1, size=most)) % n_rows])
