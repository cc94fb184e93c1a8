"""The network of labels: which part of it is inferred by which means, and the assembly of the answers."""

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.couplings.network.elimination import TABLES, Clique, exact_cliques, largest_clique
from linkmix.couplings.network.forest import LOWEST, Forest
from linkmix.couplings.network.junction_tree import JunctionTree
from linkmix.couplings.network.loopy import LoopyPropagation
from linkmix.couplings.network.search import most_probable_labels
from linkmix.couplings.network.two_colouring import TwoColouring
from linkmix.links.feasibility.colouring import UndecidedError, find_labels
from linkmix.links.feasibility.conflicts import InfeasibleNetwork, UndecidedNetwork, infeasible
from linkmix.links.pairs import component_ids

_IMPOSSIBLE = LOWEST / 2


class ApproximateInference(UserWarning):
    """A part of the network is too entangled for exact inference."""


@dataclass(frozen=True)
class LabelPosterior:
    """What a network says of its labels.

    Attributes
    ----------
    log_partition : float
        Logarithm of the sum over all labellings of the product of all potentials.
    component_log_partition : ndarray of shape (n_components,)
        The same for each connected component; they add up to the total.
    marginals : ndarray of shape (n_nodes, n_classes)
        Probability of each label at each node.
    edge_same : ndarray of shape (n_edges,)
        Probability that both ends of an edge have the same label.
    converged : bool
        Whether loopy belief propagation met its tolerance; True if all is exact.
    messages : ndarray or None
        Where loopy belief propagation ended; a start for the next call.
    """

    log_partition: float
    component_log_partition: Floats
    marginals: Floats
    edge_same: Floats
    converged: bool = True
    messages: Floats | None = None


class LabelNetwork:
    """A pairwise Markov network over nodes with one of ``n_classes`` labels each.

    The structure is prepared once; potentials go in and probabilities come out. The probability of a labelling is
    proportional to the product of the potentials of its nodes and edges, where an edge has one potential for equal
    labels and one for different labels. Several edges may join the same two nodes.

    What a connected component needs is settled at construction:

    * two classes and hard edges only: two labellings, by two-colouring;
    * trees, also those that hang from a core with cycles: belief propagation over all of them at once;
    * a core with cycles: a junction tree from a min-fill order, if its largest table has at most ``max_table`` entries
      and all of its tables together at most 16 times as many;
    * beyond that, loopy belief propagation with the Bethe approximation of the log-partition, and a warning.

    Parameters
    ----------
    n_nodes, n_classes : int
        Number of nodes, and of labels.
    edges : array-like of int, shape (n_edges, 2)
        The nodes that each edge joins. An edge from a node to itself has equal labels.
    hard : array-like of bool, shape (n_edges,), optional
        Edges that are hard cannot-links in every call: their ``log_same`` is minus infinity. By default none is known
        to be.
    max_table : int
        Entries of the largest table of exact inference.
    fallback : {"loopy", "error"}
        What to do with a core that needs a larger one.
    loopy_tol : float
        Largest change of a message at which loopy belief propagation stops.

    Attributes
    ----------
    components : ndarray of shape (n_nodes,)
        Connected component of each node, numbered by first appearance.
    n_components : int
        How many there are.
    is_exact : bool
        Whether no core needs loopy belief propagation.

    Raises
    ------
    InfeasibleNetwork
        If hard edges can not be met: an odd cycle with two classes, or a core too wide for exact inference whose hard
        edges are found to contradict each other. Other contradictions are raised by the first call.

    Examples
    --------
    >>> import numpy as np
    >>> from linkmix.couplings.network import LabelNetwork
    >>> network = LabelNetwork(3, 3, [(0, 1), (1, 2)])
    >>> log_potential = np.log([[0.8, 0.1, 0.1], [0.6, 0.2, 0.2], [0.4, 0.3, 0.3]])
    >>> apart = np.array([-np.inf, -np.inf]), np.zeros(2)
    >>> posterior = network.infer(log_potential, *apart)
    >>> posterior.marginals.round(3)
    array([[0.691, 0.154, 0.154],
           [0.222, 0.389, 0.389],
           [0.444, 0.278, 0.278]])
    >>> network.most_probable(log_potential, *apart)
    array([0, 1, 0])
    """

    def __init__(
        self,
        n_nodes: int,
        n_classes: int,
        edges: Array,
        *,
        hard: Array | None = None,
        max_table: int = 2**20,
        fallback: Literal["loopy", "error"] = "loopy",
        loopy_tol: float = 1e-8,
    ) -> None:
        if fallback not in ("loopy", "error"):
            raise ValueError(f"fallback={fallback!r} is not known: choose 'loopy' or 'error'")
        self.n_nodes, self.n_classes = n_nodes, n_classes
        self.edges = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
        self._hard = np.zeros(len(self.edges), dtype=bool) if hard is None else np.asarray(hard, dtype=bool)
        if len(self._hard) != len(self.edges):
            raise ValueError(f"hard has {len(self._hard)} entries for {len(self.edges)} edges: give one for each edge")
        self.components = component_ids(self.edges, n_nodes)
        self.n_components = int(self.components.max(initial=-1)) + 1
        self._edge_component = self.components[self.edges[:, 0]]

        # Edges between the same two nodes are one pair.
        is_loop = self.edges[:, 0] == self.edges[:, 1]
        self._proper, self._loops = np.flatnonzero(~is_loop), np.flatnonzero(is_loop)
        self._pairs, pair_of_edge = np.unique(
            np.sort(self.edges[self._proper], axis=1), axis=0, return_inverse=True
        )  # (n_pairs, 2)
        self._pair_of_edge = pair_of_edge.ravel()
        self._pair_component = self.components[self._pairs[:, 0]]
        pair_is_hard = np.zeros(len(self._pairs), dtype=bool)
        pair_is_hard[self._pair_of_edge[self._hard[self._proper]]] = True

        self._two_colouring = self._prepare_two_colouring(pair_is_hard)
        rest = np.setdiff1d(np.arange(n_nodes), self._two_colouring.nodes, assume_unique=True)
        pair_rest = np.flatnonzero(~np.isin(self._pair_component, self._two_colouring.components))
        self._forest = Forest(rest, self._pairs[pair_rest], pair_rest, n_nodes)
        core_pairs = np.setdiff1d(pair_rest, self._forest.parent_pairs, assume_unique=True)
        self._forest_components = self.components[self._forest.order]
        self._prepare_cores(core_pairs, max_table, fallback, loopy_tol)

    def infer(
        self,
        node_log_potential: Floats,
        log_same: Floats,
        log_different: Floats,
        *,
        start: LabelPosterior | None = None,
    ) -> LabelPosterior:
        """Marginals and partition function.

        Parameters
        ----------
        node_log_potential : ndarray of shape (n_nodes, n_classes)
            Log-potential of each label at each node; minus infinity for a label that a node can not have.
        log_same, log_different : ndarray of shape (n_edges,)
            Log-potential of equal labels and of different labels. A hard cannot-link has ``log_same`` minus infinity
            and ``log_different`` 0.
        start : LabelPosterior, optional
            An earlier answer of this network for similar potentials, from which loopy belief propagation goes on.

        Returns
        -------
        LabelPosterior

        Raises
        ------
        InfeasibleNetwork
            If no labelling has a positive probability.
        """
        same, different = self._pair_potentials(log_same, log_different)
        forest, colouring, n_roots = self._forest, self._two_colouring, self._forest.n_roots
        log_partition = self._constants(log_same, log_different)
        marginals = np.empty((self.n_nodes, self.n_classes))
        pair_same = np.zeros(len(self._pairs))
        converged, messages = True, None
        with np.errstate(divide="ignore", invalid="ignore"):
            if len(colouring.nodes):
                parts, marginals[colouring.nodes] = colouring.infer(node_log_potential)
                log_partition[colouring.components] += parts

            beliefs = np.ascontiguousarray(node_log_potential[forest.order].T)  # (M, n)
            up = forest.parent_pairs
            scales, conditionals = forest.collect(beliefs, same[up], different[up])
            here = np.empty_like(beliefs)
            alone = np.exp(beliefs[:, : forest.n_alone])
            total = alone.sum(axis=0)
            scales[: forest.n_alone] += np.log(total)
            here[:, : forest.n_alone] = alone / np.maximum(total, 1.0)  # the largest term is 1
            np.add.at(log_partition, self._forest_components, scales)

            if len(self._exact_pairs) or len(self._wide_pairs):
                core = np.ascontiguousarray(beliefs[:, :n_roots].T)  # (n_roots, M)
                core_marginals = np.empty_like(core)
                if len(self._exact_pairs):
                    numbers = self._exact_pairs
                    pair_same[numbers] = self._junction_tree.infer(
                        core, same[numbers], different[numbers], core_marginals, log_partition
                    )
                if len(self._wide_pairs):
                    numbers, nodes = self._wide_pairs, self._wide_positions
                    loopy = self._loopy.infer(
                        core[nodes], same[numbers], different[numbers], None if start is None else start.messages
                    )
                    core_marginals[nodes], pair_same[numbers] = loopy.marginals, loopy.edge_same
                    np.add.at(log_partition, self._forest_components[nodes], loopy.node_log_partition)
                    np.add.at(log_partition, self._pair_component[numbers], loopy.edge_log_partition)
                    converged, messages = loopy.converged, loopy.messages
                here[:, forest.n_alone : n_roots] = core_marginals[forest.n_alone :].T
            pair_same[up] = forest.distribute(here, conditionals)
            marginals[forest.order] = here.T

        self._check_possible(log_partition, node_log_potential, log_same, log_different)
        edge_same = np.ones(len(self.edges))
        edge_same[self._proper] = pair_same[self._pair_of_edge]
        return LabelPosterior(float(log_partition.sum()), log_partition, marginals, edge_same, converged, messages)

    def most_probable(
        self, node_log_potential: Floats, log_same: Floats, log_different: Floats, *, time_limit: float = 10.0
    ) -> Ints:
        """Labels of the most probable labelling.

        Exact wherever ``infer`` is, the smallest labels among equals. In a core too wide for exact inference a search
        and an integer program look for it; what they find meets all hard edges.

        Parameters
        ----------
        node_log_potential, log_same, log_different : ndarray
            As for ``infer``.
        time_limit : float
            Seconds for the integer program, for each such core.

        Returns
        -------
        ndarray of shape (n_nodes,)

        Raises
        ------
        InfeasibleNetwork
            If no labelling has a positive probability. A subclass, UndecidedNetwork, if none was found in a core that
            is too wide for exact inference, and no proof that there is none.
        """
        same, different = self._pair_potentials(log_same, log_different)
        forest, colouring, n_roots = self._forest, self._two_colouring, self._forest.n_roots
        best = self._constants(log_same, log_different)
        labels = np.empty(self.n_nodes, dtype=np.int64)
        if len(colouring.nodes):
            parts, labels[colouring.nodes] = colouring.most_probable(node_log_potential)
            best[colouring.components] += parts

        beliefs = np.ascontiguousarray(node_log_potential[forest.order].T)  # (M, n)
        up = forest.parent_pairs
        scales, choices = forest.collect_best(beliefs, same[up], different[up])
        np.add.at(best, self._forest_components, scales)
        here = np.empty(beliefs.shape[1], dtype=np.int64)
        here[: forest.n_alone] = beliefs[:, : forest.n_alone].argmax(axis=0)
        core = np.ascontiguousarray(beliefs[:, :n_roots].T)  # (n_roots, M)
        if len(self._exact_pairs):
            numbers = self._exact_pairs
            self._junction_tree.most_probable(core, same[numbers], different[numbers], here, best)
        self._check_possible(best, node_log_potential, log_same, log_different)
        for component in np.unique(self._pair_component[self._wide_pairs]).tolist():
            numbers = self._wide_pairs[self._pair_component[self._wide_pairs] == component]
            nodes, pairs = np.unique(forest.position[self._pairs[numbers]], return_inverse=True)
            try:
                found = most_probable_labels(
                    core[nodes], pairs.reshape(-1, 2), same[numbers], different[numbers], time_limit=time_limit
                )
            except UndecidedError:
                hard = np.flatnonzero((self._edge_component == component) & np.isneginf(log_same))
                raise UndecidedNetwork(
                    f"no labels were found that meet all {len(hard)} hard links of a component of {len(nodes)} nodes, "
                    "though there may be some: give fewer links, or ask for more classes",
                    [(int(a), int(b)) for a, b in self.edges[hard]],
                    hard.tolist(),
                ) from None
            if found is None:
                raise self._infeasible(component, node_log_potential, log_same, log_different)
            here[nodes] = found
        forest.trace_back(here, choices)
        labels[forest.order] = here
        return labels

    def _pair_potentials(self, log_same: Floats, log_different: Floats) -> tuple[Floats, Floats]:
        if not np.isneginf(log_same[self._hard]).all():
            raise ValueError("an edge that was given as hard has a finite log_same: give minus infinity")
        n = len(self._pairs)
        same, different = (
            np.bincount(self._pair_of_edge, values[self._proper], minlength=n).astype(np.float64)  # of nothing: int
            for values in (log_same, log_different)
        )
        return same, different

    def _constants(self, log_same: Floats, log_different: Floats) -> Floats:
        """What does not depend on the labels, for each component."""
        total = np.zeros(self.n_components)
        np.add.at(total, self._edge_component[self._loops], log_same[self._loops])
        np.add.at(total, self._edge_component[self._coloured_edges], log_different[self._coloured_edges])
        return total

    def _prepare_two_colouring(self, pair_is_hard: Array) -> TwoColouring:
        is_coloured = np.zeros(self.n_components, dtype=bool)
        if self.n_classes == 2:
            is_coloured[self._pair_component] = True
            is_coloured[self._pair_component[~pair_is_hard]] = False
        nodes = np.flatnonzero(is_coloured[self.components])
        pairs = self._pairs[is_coloured[self._pair_component]]
        colouring = TwoColouring(nodes, self.components[nodes], pairs)
        self._coloured_edges = self._proper[is_coloured[self._pair_component[self._pair_of_edge]]]
        if len(colouring.odd_components):
            raise self._infeasible(int(colouring.odd_components[0]))
        return colouring

    def _prepare_cores(self, core_pairs: Ints, max_table: int, fallback: str, loopy_tol: float) -> None:
        position = self._forest.position
        trees: list[tuple[int, list[Clique]]] = []
        wide: list[int] = []
        component_of = self._pair_component[core_pairs]
        for component in np.unique(component_of).tolist():
            pairs = position[self._pairs[core_pairs[component_of == component]]]
            cliques = exact_cliques(pairs, self.n_classes, max_table)
            if cliques is None:
                wide.append(component)
            else:
                trees.append((component, cliques))
        is_wide = np.isin(component_of, wide)
        self.is_exact = not wide
        self._exact_pairs, self._wide_pairs = core_pairs[~is_wide], core_pairs[is_wide]
        self._junction_tree = JunctionTree(self.n_classes, trees, position[self._pairs[self._exact_pairs]])
        self._wide_positions, ends = np.unique(position[self._pairs[self._wide_pairs]], return_inverse=True)
        self._loopy = LoopyPropagation(ends.reshape(-1, 2), tol=loopy_tol)
        if not wide:
            return
        message = self._describe_wide(wide, max_table)
        if fallback == "error":
            raise ValueError(message)
        for component in wide:  # loopy belief propagation would not notice
            self._check_hard_edges(component)
        warnings.warn(message, ApproximateInference, stacklevel=3)

    def _describe_wide(self, wide: list[int], max_table: int) -> str:
        core_sizes = np.bincount(self._forest_components[self._wide_positions], minlength=self.n_components)
        component = int(core_sizes.argmax())
        n_nodes = int(np.count_nonzero(self.components == component))
        n_edges = int(np.count_nonzero(self._edge_component == component))
        width = largest_clique(self.n_classes, max_table)
        more = f" (and {len(wide) - 1} smaller ones)" if len(wide) > 1 else ""
        return (
            f"a component of {n_nodes} nodes and {n_edges} links{more} is too entangled for exact inference: a core of "
            f"{core_sizes[component]} nodes has a width of {width} or more, that is tables of {self.n_classes}^"
            f"{width + 1} = {self.n_classes ** (width + 1)} entries or more than {TABLES} of max_table={max_table}. "
            "Its labels can only be approximated, by loopy belief propagation. Give fewer links, or a larger "
            'max_table, or use coupling="pairwise"'
        )

    def _check_hard_edges(self, component: int) -> None:
        nodes, edges = np.flatnonzero(self.components == component), np.flatnonzero(self._hard)
        pairs = np.searchsorted(nodes, self.edges[edges[self._edge_component[edges] == component]])
        try:
            labels = find_labels(np.ones((len(nodes), self.n_classes), dtype=bool), pairs, tempering_sweeps=0)
        except UndecidedError:
            return
        if labels is None:
            raise self._infeasible(component)

    def _check_possible(
        self, log_partition: Floats, node_log_potential: Floats, log_same: Floats, log_different: Floats
    ) -> None:
        impossible = ~(log_partition > _IMPOSSIBLE)  # also if it is not a number
        if impossible.any():
            raise self._infeasible(int(impossible.argmax()), node_log_potential, log_same, log_different)

    def _infeasible(
        self,
        component: int,
        node_log_potential: Floats | None = None,
        log_same: Floats | None = None,
        log_different: Floats | None = None,
    ) -> InfeasibleNetwork:
        """Build the error for a component; without potentials, from the edges that are known to be hard."""
        allowed = np.ones((self.n_nodes, self.n_classes), dtype=bool)
        is_apart, is_together = self._hard, np.zeros_like(self._hard)
        if node_log_potential is not None and log_same is not None and log_different is not None:
            allowed = ~np.isneginf(node_log_potential)
            is_apart, is_together = np.isneginf(log_same), np.isneginf(log_different)
        nodes, members = (np.flatnonzero(of == component) for of in (self.components, self._edge_component))
        return infeasible(nodes, members, self.edges, allowed, is_apart, is_together)
