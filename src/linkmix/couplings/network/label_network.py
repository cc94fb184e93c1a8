"""The network of labels: which part is inferred by which method, and how the answers are put together."""

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from linkmix import native
from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.couplings.network.elimination import TABLES, Clique, exact_cliques, largest_clique
from linkmix.couplings.network.forest import Forest
from linkmix.couplings.network.junction_tree import JunctionTree
from linkmix.couplings.network.loopy import LoopyPropagation
from linkmix.couplings.network.plan import flatten
from linkmix.couplings.network.search import most_probable_labels
from linkmix.couplings.network.structure import Structure
from linkmix.couplings.network.two_colouring import TwoColouring
from linkmix.links.feasibility.colouring import UndecidedError


class ApproximateInference(UserWarning):
    """A part of the network is too entangled for exact inference."""


@dataclass(frozen=True, eq=False)
class LabelPosterior:
    """The posterior of the labels of a network.

    Attributes
    ----------
    log_partition : float
        Logarithm of the sum over all labellings of the product of all potentials.
    component_log_partition : ndarray of shape (n_components,)
        The same for each connected component; their sum is the total.
    marginals : ndarray of shape (n_nodes, n_classes)
        Probability of each label at each node.
    edge_same : ndarray of shape (n_edges,)
        Probability that both ends of an edge have the same label.
    converged : bool
        Whether loopy belief propagation met its tolerance; True if inference is exact.
    """

    log_partition: float
    component_log_partition: Floats
    marginals: Floats
    edge_same: Floats
    converged: bool = True


class LabelNetwork:
    """A pairwise Markov network over nodes with one of ``n_classes`` labels each.

    The structure is prepared once; then potentials go in and probabilities come out. The probability of a labelling is
    proportional to the product of the potentials of its nodes and edges, where an edge has one potential for equal
    labels and one for different labels. Several edges may join the same two nodes.

    The method for each connected component is chosen at construction:

    * two classes and only hard edges: two labellings, by two-colouring;
    * trees, including those attached to a core with cycles: belief propagation over all of them at once;
    * a core with cycles: a junction tree from a min-fill order, if its largest table has at most ``max_table`` entries,
      and all of its tables together no more than that, or no more than take the time of belief propagation;
    * a larger core: loopy belief propagation with the Bethe approximation of the log-partition, and a warning.

    Parameters
    ----------
    n_nodes, n_classes : int
        Number of nodes, and of labels.
    edges : array-like of int, shape (n_edges, 2)
        The nodes that each edge joins. An edge from a node to itself has equal labels.
    hard : array-like of bool, shape (n_edges,), optional
        Edges that are hard cannot-links in every call: their ``log_same`` is minus infinity. By default no edge is
        known to be hard.
    max_table : int
        Entries of the largest table of exact inference.
    loopy_tol : float
        Loopy belief propagation stops when no message changes by more than this.

    Attributes
    ----------
    components : ndarray of shape (n_nodes,)
        Connected component of each node, numbered by first appearance.
    n_components : int
        Number of connected components.
    is_exact : bool
        Whether no core needs loopy belief propagation.

    Raises
    ------
    InfeasibleNetwork
        If hard edges contradict each other: an odd cycle with two classes, or a contradiction found in a core too wide
        for exact inference. Other contradictions are raised by the first call.

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
        loopy_tol: float = 1e-8,
    ) -> None:
        self._structure = structure = Structure(n_nodes, n_classes, edges, hard)
        self.n_nodes, self.n_classes = n_nodes, n_classes
        self.components, self.n_components = structure.components, structure.n_components
        self._two_colouring = self._prepare_two_colouring()
        rest = np.setdiff1d(np.arange(n_nodes), self._two_colouring.nodes, assume_unique=True)
        pair_rest = np.flatnonzero(~np.isin(structure.pair_components, self._two_colouring.components))
        self._forest = Forest(rest, structure.pairs[pair_rest], pair_rest, n_nodes)
        core_pairs = np.setdiff1d(pair_rest, self._forest.parent_pairs, assume_unique=True)
        self._forest_components = self.components[self._forest.order]
        self._prepare_cores(core_pairs, max_table, loopy_tol)

    @cached_property
    def plan(self) -> Ints:
        """The network as the native core reads it."""
        return flatten(
            self._structure,
            self._two_colouring,
            self._coloured_edges,
            self._forest,
            self._trees,
            self._exact_pairs,
            self._loopy,
            self._wide_positions,
            self._wide_pairs,
        )

    def infer(self, node_log_potential: Floats, log_same: Floats, log_different: Floats) -> LabelPosterior:
        """Marginals and partition function.

        Parameters
        ----------
        node_log_potential : ndarray of shape (n_nodes, n_classes)
            Log-potential of each label at each node; minus infinity for a label that a node cannot have.
        log_same, log_different : ndarray of shape (n_edges,)
            Log-potential of equal labels and of different labels. A hard cannot-link has ``log_same`` minus infinity
            and ``log_different`` 0.

        Returns
        -------
        LabelPosterior

        Raises
        ------
        InfeasibleNetwork
            If no labelling has a positive probability.
        """
        self._structure.check_potentials(log_same)
        if native.active():
            found = native.infer_network(self.plan, node_log_potential, log_same, log_different, self.n_components)
            if not np.isnan(found[0]):
                return LabelPosterior(*found)
        same, different = self._structure.pair_potentials(log_same, log_different)
        forest, colouring, n_roots = self._forest, self._two_colouring, self._forest.n_roots
        log_partition = self._constants(log_same, log_different)
        marginals = np.empty((self.n_nodes, self.n_classes))
        pair_same = np.zeros(len(same))
        converged = True
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
                    loopy = self._loopy.infer(core[nodes], same[numbers], different[numbers])
                    core_marginals[nodes], pair_same[numbers] = loopy.marginals, loopy.edge_same
                    np.add.at(log_partition, self._forest_components[nodes], loopy.node_log_partition)
                    np.add.at(log_partition, self._structure.pair_components[numbers], loopy.edge_log_partition)
                    converged = loopy.converged
                here[:, forest.n_alone : n_roots] = core_marginals[forest.n_alone :].T
            pair_same[up] = forest.distribute(here, conditionals)
            marginals[forest.order] = here.T

        self._structure.check_possible(log_partition, node_log_potential, log_same, log_different)
        edge_same = self._structure.of_edges(pair_same)
        return LabelPosterior(float(log_partition.sum()), log_partition, marginals, edge_same, converged)

    def most_probable(self, node_log_potential: Floats, log_same: Floats, log_different: Floats) -> Ints:
        """Labels of the most probable labelling.

        Exact wherever ``infer`` is; ties go to the smallest labels. In a core too wide for exact inference, a search
        and, if the core is small, an integer program look for good labels; what they find satisfies all hard edges.
        Their work is limited, so that the labels do not depend on the speed of the machine.

        Parameters
        ----------
        node_log_potential, log_same, log_different : ndarray
            As for ``infer``.

        Returns
        -------
        ndarray of shape (n_nodes,)

        Raises
        ------
        InfeasibleNetwork
            If no labelling has a positive probability. Its subclass UndecidedNetwork if, in a core too wide for exact
            inference, neither a labelling was found nor a proof that there is none.
        """
        self._structure.check_potentials(log_same)
        same, different = self._structure.pair_potentials(log_same, log_different)
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
        self._structure.check_possible(best, node_log_potential, log_same, log_different)
        wide_components = self._structure.pair_components[self._wide_pairs]
        for component in np.unique(wide_components).tolist():
            numbers = self._wide_pairs[wide_components == component]
            nodes, pairs = np.unique(forest.position[self._structure.pairs[numbers]], return_inverse=True)
            try:
                found = most_probable_labels(core[nodes], pairs.reshape(-1, 2), same[numbers], different[numbers])
            except UndecidedError:
                raise self._structure.undecided(component, nodes, log_same) from None
            if found is None:
                raise self._structure.infeasible(component, node_log_potential, log_same, log_different)
            here[nodes] = found
        forest.trace_back(here, choices)
        labels[forest.order] = here
        return labels

    def _constants(self, log_same: Floats, log_different: Floats) -> Floats:
        """The part of each component's log-partition that does not depend on the labels."""
        structure = self._structure
        total = np.zeros(self.n_components)
        np.add.at(total, structure.edge_components[structure.loops], log_same[structure.loops])
        np.add.at(total, structure.edge_components[self._coloured_edges], log_different[self._coloured_edges])
        return total

    def _prepare_two_colouring(self) -> TwoColouring:
        structure = self._structure
        is_coloured = np.zeros(self.n_components, dtype=bool)
        if self.n_classes == 2:
            is_coloured[structure.pair_components] = True
            is_coloured[structure.pair_components[~structure.hard_pairs()]] = False
        nodes = np.flatnonzero(is_coloured[self.components])
        pair_is_coloured = is_coloured[structure.pair_components]
        colouring = TwoColouring(nodes, self.components[nodes], structure.pairs[pair_is_coloured])
        self._coloured_edges = structure.proper[pair_is_coloured[structure.pair_of_edge]]
        if len(colouring.odd_components):
            raise structure.infeasible(int(colouring.odd_components[0]))
        return colouring

    def _prepare_cores(self, core_pairs: Ints, max_table: int, loopy_tol: float) -> None:
        position, pairs = self._forest.position, self._structure.pairs
        trees: list[tuple[int, list[Clique]]] = []
        wide: list[int] = []
        component_of = self._structure.pair_components[core_pairs]
        for component in np.unique(component_of).tolist():
            core = position[pairs[core_pairs[component_of == component]]]
            cliques = exact_cliques(core, self.n_classes, max_table)
            if cliques is None:
                wide.append(component)
            else:
                trees.append((component, cliques))
        is_wide = np.isin(component_of, wide)
        self.is_exact = not wide
        self._exact_pairs, self._wide_pairs = core_pairs[~is_wide], core_pairs[is_wide]
        self._trees = trees
        self._junction_tree = JunctionTree(self.n_classes, trees, position[pairs[self._exact_pairs]])
        self._wide_positions, ends = np.unique(position[pairs[self._wide_pairs]], return_inverse=True)
        self._loopy = LoopyPropagation(ends.reshape(-1, 2), tol=loopy_tol)
        for component in wide:  # loopy belief propagation would not notice a contradiction
            self._structure.check_hard_edges(component)
        if wide:
            warnings.warn(self._describe_wide(wide, max_table), ApproximateInference, stacklevel=3)

    def _describe_wide(self, wide: list[int], max_table: int) -> str:
        core_sizes = np.bincount(self._forest_components[self._wide_positions], minlength=self.n_components)
        component = int(core_sizes.argmax())
        n_nodes = int(np.count_nonzero(self.components == component))
        n_edges = int(np.count_nonzero(self._structure.edge_components == component))
        width = largest_clique(self.n_classes, max_table)
        more = f" (and {len(wide) - 1} smaller ones)" if len(wide) > 1 else ""
        return (
            f"a component of {n_nodes} nodes and {n_edges} links{more} is too entangled for exact inference: a core of "
            f"{core_sizes[component]} nodes has a width of {width} or more, that is tables of {self.n_classes}^"
            f"{width + 1} = {self.n_classes ** (width + 1)} entries, or tables that together have more entries than "
            f"max_table={max_table} and than {TABLES} for each number in the messages of belief propagation. "
            "Its labels can only be approximated, by loopy belief propagation. Give fewer links, or a larger "
            'max_table, or use coupling="pairwise"'
        )
