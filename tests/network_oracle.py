"""A network of labels by enumeration of all labellings, and random networks to compare with."""

from dataclasses import dataclass
from itertools import product

import numpy as np
from hypothesis import strategies as st


@dataclass(frozen=True)
class Network:
    """Potentials of a network, in logarithms."""

    nodes: np.ndarray  # (n, M)
    edges: np.ndarray  # (n_edges, 2)
    same: np.ndarray  # (n_edges,)
    different: np.ndarray  # (n_edges,)

    @property
    def size(self) -> tuple[int, int]:
        return self.nodes.shape

    @property
    def potentials(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.nodes, self.same, self.different

    @property
    def hard(self) -> np.ndarray:
        return np.isneginf(self.same)

    def with_edges(self, kept: list[int]) -> "Network":
        return Network(self.nodes, self.edges[kept], self.same[kept], self.different[kept])

    def without_data(self) -> "Network":
        return Network(np.where(np.isneginf(self.nodes), -np.inf, 0.0), self.edges, self.same, self.different)


@dataclass(frozen=True)
class Answer:
    log_partition: float
    marginals: np.ndarray  # (n, M)
    edge_same: np.ndarray  # (n_edges,)
    best: float
    best_labels: np.ndarray  # (n,): the first one in lexicographic order


def scores(network: Network, labels: np.ndarray) -> np.ndarray:
    """Log-potential of each of many labellings (n_labellings, n)."""
    total = network.nodes[np.arange(network.size[0]), labels].sum(axis=1)
    for (a, b), same, different in zip(network.edges, network.same, network.different, strict=True):
        total = total + np.where(labels[:, a] == labels[:, b], same, different)
    return total


def enumerate_labels(network: Network) -> Answer | None:
    """Sum over all labellings; None if none of them is possible."""
    n, n_classes = network.size
    labels = np.array(list(product(range(n_classes), repeat=n))).reshape(-1, n)
    total = scores(network, labels)
    best = total.max()
    if np.isneginf(best):
        return None
    weight = np.exp(total - best)
    probability = weight / weight.sum()
    marginals = np.array([[probability[labels[:, j] == m].sum() for m in range(n_classes)] for j in range(n)])
    edge_same = np.array([probability[labels[:, a] == labels[:, b]].sum() for a, b in network.edges])
    return Answer(best + np.log(weight.sum()), marginals, edge_same, best, labels[total.argmax()])


def random_network(
    seed: int,
    *,
    n_nodes: int = 6,
    n_classes: int = 3,
    n_edges: int = 8,
    hard: float = 0.5,
    together: float = 0.0,
    forbidden: float = 0.0,
    scale: float = 1.0,
    tree: bool = False,
    loops: bool = False,
) -> Network:
    """Draw a network; ``hard``, ``together`` and ``forbidden`` are shares of edges and of labels of nodes."""
    random = np.random.default_rng(seed)
    if tree:
        edges = np.array([(random.integers(j), j) for j in range(1, n_nodes)], dtype=np.int64).reshape(-1, 2)
        edges = random.permutation(n_nodes)[random.permuted(edges, axis=1)]
    else:
        edges = random.integers(n_nodes, size=(n_edges, 2))
        edges = edges if loops else edges[edges[:, 0] != edges[:, 1]]
    n_edges = len(edges)
    nodes = scale * random.normal(size=(n_nodes, n_classes))
    nodes[random.random(nodes.shape) < forbidden] = -np.inf
    same, different = 2 * random.normal(size=(2, n_edges))
    kind = random.random(n_edges)
    same[kind < hard] = -np.inf
    different[kind < hard] = 0.0
    different[kind > 1 - together] = -np.inf
    return Network(nodes, edges, same, different)


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Small networks of every kind: trees and cycles, parallel edges and loops, hard and soft, labels forbidden."""
    n_classes = draw(st.integers(1, 4))
    return random_network(
        draw(st.integers(0, 2**32 - 1)),
        n_nodes=draw(st.integers(1, 8 if n_classes < 4 else 7)),
        n_classes=n_classes,
        n_edges=draw(st.integers(0, 14)),
        hard=draw(st.sampled_from([0.0, 0.5, 1.0])),
        together=draw(st.sampled_from([0.0, 0.1])),
        forbidden=draw(st.sampled_from([0.0, 0.15])),
        scale=draw(st.sampled_from([1.0, 30.0, 1e4])),
        tree=draw(st.booleans()),
        loops=draw(st.booleans()),
    )
