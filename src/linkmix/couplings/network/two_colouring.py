"""Two classes and only cannot-links: one label determines all others of its component."""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from linkmix.basics.arrays import Floats, Ints


class TwoColouring:
    """Components with exactly two labellings, one the opposite of the other.

    Parameters
    ----------
    nodes : ndarray of shape (n,)
        The nodes of these components, sorted.
    components : ndarray of shape (n,)
        Component of each node.
    pairs : ndarray of shape (n_pairs, 2)
        The cannot-links between them.

    Attributes
    ----------
    components : ndarray
        These components, each once.
    number : ndarray of shape (n,)
        Which of them each node belongs to.
    label : ndarray of shape (n,)
        Label of each node in the first of both labellings.
    odd_components : ndarray
        Components without a labelling, because a cycle of cannot-links has an odd length.
    """

    def __init__(self, nodes: Ints, components: Ints, pairs: Ints) -> None:
        self.nodes = nodes
        self.components, first, self.number = np.unique(components, return_index=True, return_inverse=True)
        # In a graph of (node, label) vertices, each label of a node is connected to the labels that it implies.
        n = len(nodes)
        a, b = np.searchsorted(nodes, pairs).T
        ends = np.concatenate([a, b]), np.concatenate([b + n, a + n])
        _, reached = connected_components(coo_array((np.ones(2 * len(a)), ends), shape=(2 * n, 2 * n)), directed=False)
        self.odd_components = np.unique(components[reached[:n] == reached[n:]])
        # The first node of each component has label 0 in the first labelling.
        self.label = np.where(reached[:n] == reached[first][self.number], 0, 1)

    def infer(self, log_potential: Floats) -> tuple[Floats, Floats]:
        """Log-partition of each component, and marginals (n, 2) of the nodes."""
        first, second, scale = self._scores(log_potential)
        log_partition = np.logaddexp(first, second)
        # If both are impossible, the caller learns it from the log-partition.
        safe = np.where(np.isneginf(log_partition), 0.0, log_partition)
        marginals = np.empty((len(self.nodes), 2))
        rows = np.arange(len(self.nodes))
        marginals[rows, self.label] = np.exp(first - safe)[self.number]
        marginals[rows, 1 - self.label] = np.exp(second - safe)[self.number]
        return log_partition + scale, marginals

    def most_probable(self, log_potential: Floats) -> tuple[Floats, Ints]:
        """Log-potential of the best labelling of each component, and the labels (n,) of the nodes."""
        first, second, scale = self._scores(log_potential)
        labels = np.where((first >= second)[self.number], self.label, 1 - self.label)
        return np.maximum(first, second) + scale, labels

    def _scores(self, log_potential: Floats) -> tuple[Floats, Floats, Floats]:
        here = log_potential[self.nodes]  # (n, 2)
        top = here.max(axis=1)
        top = np.where(np.isfinite(top), top, 0.0)
        here = here - top[:, None]
        rows = np.arange(len(here))
        n = len(self.components)
        first, second, scale = (
            np.bincount(self.number, values, minlength=n).astype(np.float64)
            for values in (here[rows, self.label], here[rows, 1 - self.label], top)
        )
        return first, second, scale
