"""Nodes and edges of a network: components, parallel edges merged to pairs, and edges that contradict each other."""

import numpy as np

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.couplings.network.forest import LOWEST
from linkmix.links.feasibility.colouring import UndecidedError, find_labels
from linkmix.links.feasibility.conflicts import InfeasibleNetwork, UndecidedNetwork, infeasible
from linkmix.links.pairs import component_ids, distinct_pairs

_IMPOSSIBLE = LOWEST / 2


class Structure:
    """A graph whose nodes have one of ``n_classes`` labels each.

    Parameters
    ----------
    n_nodes, n_classes : int
        Number of nodes, and of labels.
    edges : array-like of int, shape (n_edges, 2)
        The nodes that each edge joins.
    hard : array-like of bool, shape (n_edges,), optional
        Edges known to be hard cannot-links; by default none.

    Attributes
    ----------
    components, edge_components, pair_components : ndarray
        Connected component of each node, edge and pair, numbered by first appearance.
    n_components : int
        Number of connected components.
    proper, loops : ndarray
        Edges between two nodes, and edges from a node to itself.
    pairs : ndarray of shape (n_pairs, 2)
        The proper edges; parallel edges between the same two nodes are one pair.
    pair_of_edge : ndarray
        The pair of each proper edge.
    """

    def __init__(self, n_nodes: int, n_classes: int, edges: Array, hard: Array | None = None) -> None:
        self.n_nodes, self.n_classes = n_nodes, n_classes
        self.edges = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
        self.hard = np.zeros(len(self.edges), dtype=bool) if hard is None else np.asarray(hard, dtype=bool)
        if len(self.hard) != len(self.edges):
            raise ValueError(f"hard has {len(self.hard)} entries for {len(self.edges)} edges: give one for each edge")
        self.components = component_ids(self.edges, n_nodes)
        self.n_components = int(self.components.max(initial=-1)) + 1
        self.edge_components = self.components[self.edges[:, 0]]
        is_loop = self.edges[:, 0] == self.edges[:, 1]
        self.proper, self.loops = np.flatnonzero(~is_loop), np.flatnonzero(is_loop)
        self.pairs, self.pair_of_edge = distinct_pairs(np.sort(self.edges[self.proper], axis=1))
        self.pair_components = self.components[self.pairs[:, 0]]

    def hard_pairs(self) -> Array:
        """Whether each pair contains a hard edge."""
        is_hard = np.zeros(len(self.pairs), dtype=bool)
        is_hard[self.pair_of_edge[self.hard[self.proper]]] = True
        return is_hard

    def check_potentials(self, log_same: Floats) -> None:
        """Raise a ValueError unless equal labels of hard edges are impossible."""
        if not np.isneginf(log_same[self.hard]).all():
            raise ValueError("an edge that was given as hard has a finite log_same: give minus infinity")

    def pair_potentials(self, log_same: Floats, log_different: Floats) -> tuple[Floats, Floats]:
        """Log-potentials of the pairs from those of the edges."""
        n = len(self.pairs)
        same, different = (
            np.bincount(self.pair_of_edge, values[self.proper], minlength=n).astype(np.float64)  # int if empty
            for values in (log_same, log_different)
        )
        return same, different

    def of_edges(self, pair_same: Floats) -> Floats:
        """Probability of equal labels for each edge from that for each pair; one for loops."""
        edge_same = np.ones(len(self.edges))
        edge_same[self.proper] = pair_same[self.pair_of_edge]
        return edge_same

    def check_hard_edges(self, component: int) -> None:
        """Raise InfeasibleNetwork if the hard edges of a component are found to contradict each other."""
        nodes, edges = np.flatnonzero(self.components == component), np.flatnonzero(self.hard)
        pairs = np.searchsorted(nodes, self.edges[edges[self.edge_components[edges] == component]])
        try:
            labels = find_labels(np.ones((len(nodes), self.n_classes), dtype=bool), pairs, tempering_sweeps=0)
        except UndecidedError:
            return
        if labels is None:
            raise self.infeasible(component)

    def check_possible(
        self, log_partition: Floats, node_log_potential: Floats, log_same: Floats, log_different: Floats
    ) -> None:
        """Raise InfeasibleNetwork if the log-partition of a component shows that no labelling is possible."""
        impossible = ~(log_partition > _IMPOSSIBLE)  # also if it is not a number
        if impossible.any():
            raise self.infeasible(int(impossible.argmax()), node_log_potential, log_same, log_different)

    def infeasible(
        self,
        component: int,
        node_log_potential: Floats | None = None,
        log_same: Floats | None = None,
        log_different: Floats | None = None,
    ) -> InfeasibleNetwork:
        """The error for a component; without potentials, from the edges known to be hard."""
        allowed = np.ones((self.n_nodes, self.n_classes), dtype=bool)
        is_apart, is_together = self.hard, np.zeros_like(self.hard)
        if node_log_potential is not None and log_same is not None and log_different is not None:
            allowed = ~np.isneginf(node_log_potential)
            is_apart, is_together = np.isneginf(log_same), np.isneginf(log_different)
        nodes, members = (np.flatnonzero(of == component) for of in (self.components, self.edge_components))
        return infeasible(nodes, members, self.edges, allowed, is_apart, is_together)

    def undecided(self, component: int, nodes: Ints, log_same: Floats) -> UndecidedNetwork:
        """The error for a component in whose core neither labels nor a contradiction were found."""
        hard = np.flatnonzero((self.edge_components == component) & np.isneginf(log_same))
        return UndecidedNetwork(
            f"no labels were found that meet all {len(hard)} hard links of a component of {len(nodes)} nodes, "
            "though there may be some: give fewer links, or ask for more classes",
            [(int(a), int(b)) for a, b in self.edges[hard]],
            hard.tolist(),
        )
