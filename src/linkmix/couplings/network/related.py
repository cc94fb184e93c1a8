"""A network whose nodes are joined by links, and some of them by tables of any number of nodes."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from linkmix.basics.arrays import Floats, Ints
from linkmix.couplings.network.elimination import Clique, exact_cliques, largest_clique
from linkmix.couplings.network.factor_loopy import FactorPropagation
from linkmix.couplings.network.factor_search import better_labels
from linkmix.couplings.network.factor_tree import FactorTrees
from linkmix.couplings.network.forest import LOWEST
from linkmix.couplings.network.junction_tree import FactorTables
from linkmix.couplings.network.label_network import ApproximateInference, LabelNetwork
from linkmix.links.feasibility.conflicts import InfeasibleNetwork
from linkmix.links.pairs import component_ids


class InfeasibleTables(ValueError):
    """No labels have a positive probability.

    Attributes
    ----------
    families : tuple of int
        Families with a scope in the component without labels.
    """

    def __init__(self, families: tuple[int, ...]) -> None:
        super().__init__(f"no labels meet the tables of the families {families} and the links")
        self.families = families


@dataclass(frozen=True, eq=False)
class RelatedPosterior:
    """The posterior of the labels of a network with tables.

    Attributes
    ----------
    log_partition : float
    marginals : ndarray of shape (n_nodes, n_classes)
    edge_same : ndarray of shape (n_edges,)
    joint : list of ndarray of shape (n_scopes, n_classes, ...)
        Joint distribution of the labels of each scope of each family.
    converged : bool
        Whether loopy belief propagation met its tolerance; True if inference is exact.
    """

    log_partition: float
    marginals: Floats
    edge_same: Floats
    joint: list[Floats]
    converged: bool = True


class RelatedNetwork:
    """A network of labels, joined by edges and by the scopes of several families.

    Components without a scope are a `LabelNetwork`. The others are inferred by clique trees if their tables have at
    most ``max_table`` entries, otherwise by loopy belief propagation, with a warning.

    Parameters
    ----------
    n_nodes, n_classes : int
        Number of nodes, and of labels.
    edges : ndarray of shape (n_edges, 2)
        The two different nodes that each edge joins.
    hard : ndarray of bool, shape (n_edges,)
        Edges that are hard cannot-links in every call.
    families : sequence of ndarray of shape (n_scopes, k)
        The nodes of each scope, all different.
    max_table : int
        Entries of the largest table of exact inference.
    loopy_tol : float
        Loopy belief propagation stops when no message changes by more than this.

    Attributes
    ----------
    is_exact : bool
        Whether no component needs loopy belief propagation.

    Examples
    --------
    Three nodes of two labels, not all of them alike:

    >>> import numpy as np
    >>> network = RelatedNetwork(3, 2, np.empty((0, 2), dtype=int), np.empty(0, dtype=bool), [np.array([[0, 1, 2]])])
    >>> table = np.zeros((1, 2, 2, 2))
    >>> table[0, 0, 0, 0] = table[0, 1, 1, 1] = -np.inf
    >>> nodes = np.log([[0.8, 0.2], [0.8, 0.2], [0.6, 0.4]])
    >>> round(float(np.exp(network.infer(nodes, np.empty(0), np.empty(0), [table]).log_partition)), 6)
    0.6
    >>> network.most_probable(nodes, np.empty(0), np.empty(0), [table])
    array([0, 0, 1])
    """

    def __init__(
        self,
        n_nodes: int,
        n_classes: int,
        edges: Ints,
        hard: np.ndarray[tuple[int], np.dtype[np.bool_]],
        families: Sequence[Ints],
        *,
        max_table: int = 2**20,
        loopy_tol: float = 1e-8,
    ) -> None:
        self.n_nodes, self.n_classes = n_nodes, n_classes
        chains = [np.stack([scopes[:, :-1], scopes[:, 1:]], axis=-1).reshape(-1, 2) for scopes in families]
        self._component = component_ids(np.concatenate([edges, *chains]), n_nodes)
        touched = np.zeros(int(self._component.max(initial=-1)) + 1, dtype=bool)
        for scopes in families:
            touched[self._component[scopes[:, 0]]] = True
        self._nodes = np.flatnonzero(touched[self._component])
        self._others = np.flatnonzero(~touched[self._component])
        number = np.empty(n_nodes, dtype=np.int64)
        number[self._nodes], number[self._others] = np.arange(len(self._nodes)), np.arange(len(self._others))
        is_inside = touched[self._component[edges[:, 0]]]
        self._inside, self._outside = np.flatnonzero(is_inside), np.flatnonzero(~is_inside)
        self._families = [number[edges[self._inside]], *(number[scopes] for scopes in families)]
        self._prepare_tables(max_table, loopy_tol)
        with self._numbering():
            self._links = LabelNetwork(
                len(self._others),
                n_classes,
                number[edges[self._outside]],
                hard=hard[self._outside],
                max_table=max_table,
                loopy_tol=loopy_tol,
            )
        self.is_exact = self._links.is_exact and not self._wide.any()

    @contextmanager
    def _numbering(self) -> Iterator[None]:
        """In errors about the part without scopes, number edges and nodes as in the whole network."""
        try:
            yield
        except InfeasibleNetwork as error:
            error.edges = self._outside[error.edges].tolist()
            error.links = [tuple(self._others[list(pair)].tolist()) for pair in error.links]
            raise

    def infer(
        self, node_log_potential: Floats, log_same: Floats, log_different: Floats, factors: FactorTables
    ) -> RelatedPosterior:
        """Marginals and partition function.

        Parameters
        ----------
        node_log_potential : ndarray of shape (n_nodes, n_classes)
            Log-potential of each label at each node.
        log_same, log_different : ndarray of shape (n_edges,)
            Log-potential of equal labels and of different labels.
        factors : sequence of ndarray of shape (n_scopes or 1, n_classes, ...)
            Log-potentials of the labels of each scope of each family.

        Raises
        ------
        InfeasibleTables
            If no labels of a component with scopes have a positive probability.
        InfeasibleNetwork
            If those of another component have none.
        """
        with self._numbering():
            plain = self._links.infer(
                node_log_potential[self._others], log_same[self._outside], log_different[self._outside]
            )
        marginals = np.empty((self.n_nodes, self.n_classes))
        marginals[self._others] = plain.marginals
        potential = node_log_potential[self._nodes]
        tables = [self._edge_tables(log_same, log_different), *factors]
        here = np.empty_like(potential)
        joint = [np.empty((len(scopes), *(self.n_classes,) * scopes.shape[1])) for scopes in self._families]
        log_partition = np.zeros(len(self._wide))
        converged = plain.converged
        with np.errstate(divide="ignore", invalid="ignore"):
            exact = self._trees.infer_factors(potential, _take(tables, self._exact_scopes), here, log_partition)
            self._check(log_partition)
            for family, scopes in enumerate(self._exact_scopes):
                joint[family][scopes] = exact[family]
            if self._wide.any():
                loopy = self._loopy.infer(potential[self._wide_nodes], _take(tables, self._wide_scopes))
                here[self._wide_nodes] = loopy.marginals
                for family, scopes in enumerate(self._wide_scopes):
                    joint[family][scopes] = loopy.joint[family]
                total = loopy.node_log_partition.sum() + sum(part.sum() for part in loopy.scope_log_partition)
                if not np.isfinite(total):
                    raise InfeasibleTables(self._families_of(self._wide))
                log_partition[self._wide.argmax()] += total
                converged = converged and loopy.converged
        marginals[self._nodes] = here
        edge_same = np.empty(len(log_same))
        edge_same[self._outside] = plain.edge_same
        edge_same[self._inside] = np.trace(joint[0], axis1=1, axis2=2)
        total = float(plain.log_partition + log_partition.sum())
        return RelatedPosterior(total, marginals, edge_same, joint[1:], converged)

    def most_probable(
        self, node_log_potential: Floats, log_same: Floats, log_different: Floats, factors: FactorTables
    ) -> Ints:
        """Labels of the most probable labelling, found by a search where tables would be too large.

        Parameters and errors are those of `infer`.
        """
        labels = np.empty(self.n_nodes, dtype=np.int64)
        with self._numbering():
            labels[self._others] = self._links.most_probable(
                node_log_potential[self._others], log_same[self._outside], log_different[self._outside]
            )
        potential = node_log_potential[self._nodes]
        tables = [self._edge_tables(log_same, log_different), *factors]
        here = np.empty(len(self._nodes), dtype=np.int64)
        best = np.zeros(len(self._wide))
        self._trees.best_labels(potential, _take(tables, self._exact_scopes), here, best)
        self._check(best)
        if self._wide.any():
            nodes, some = self._wide_nodes, _take(tables, self._wide_scopes)
            with np.errstate(divide="ignore", invalid="ignore"):
                guide = self._loopy.infer(potential[nodes], some).marginals
            found = better_labels(guide, potential[nodes], self._wide_families, some)
            if found is None:
                raise InfeasibleTables(self._families_of(self._wide))
            here[nodes] = found
        labels[self._nodes] = here
        return labels

    def _edge_tables(self, log_same: Floats, log_different: Floats) -> Floats:
        tables = np.empty((len(self._inside), self.n_classes, self.n_classes))
        tables[:] = log_different[self._inside, None, None]
        diagonal = np.arange(self.n_classes)
        tables[:, diagonal, diagonal] = log_same[self._inside, None]
        return tables

    def _check(self, log_partition: Floats) -> None:
        impossible = ~(log_partition > LOWEST / 2)
        if impossible.any():
            raise InfeasibleTables(self._families_of(np.arange(len(impossible)) == impossible.argmax()))

    def _families_of(self, components: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> tuple[int, ...]:
        own = self._own_component
        return tuple(family for family, scopes in enumerate(self._families[1:]) if components[own[scopes[:, 0]]].any())

    def _prepare_tables(self, max_table: int, loopy_tol: float) -> None:
        _, own = np.unique(self._component[self._nodes], return_inverse=True)
        self._own_component = own
        pairs = np.concatenate(
            [scopes[:, pair] for scopes in self._families for pair in combinations(range(scopes.shape[1]), 2)]
            or [np.empty((0, 2), dtype=np.int64)]
        )
        pairs = np.unique(np.sort(pairs, axis=1), axis=0)
        n_components = int(own.max(initial=-1)) + 1
        self._wide = np.zeros(n_components, dtype=bool)
        trees: list[tuple[int, list[Clique]]] = []
        order = np.argsort(own[pairs[:, 0]], kind="stable")
        starts = np.searchsorted(own[pairs[order, 0]], np.arange(n_components + 1))
        for component in range(n_components):
            mine = pairs[order[starts[component] : starts[component + 1]]]
            cliques = exact_cliques(mine, self.n_classes, max_table)
            if cliques is None:
                self._wide[component] = True
            else:
                trees.append((component, cliques))
        is_wide = [self._wide[own[scopes[:, 0]]] for scopes in self._families]
        self._exact_scopes = [np.flatnonzero(~wide) for wide in is_wide]
        self._wide_scopes = [np.flatnonzero(wide) for wide in is_wide]
        self._trees = FactorTrees(
            self.n_classes,
            trees,
            [scopes[some] for scopes, some in zip(self._families, self._exact_scopes, strict=True)],
        )
        self._wide_nodes = np.flatnonzero(self._wide[own])
        self._wide_families = [
            np.searchsorted(self._wide_nodes, scopes[some])
            for scopes, some in zip(self._families, self._wide_scopes, strict=True)
        ]
        self._loopy = FactorPropagation(len(self._wide_nodes), self.n_classes, self._wide_families, loopy_tol)
        if self._wide.any():
            width = largest_clique(self.n_classes, max_table)
            warnings.warn(
                f"a component of {np.bincount(own[self._wide_nodes]).max()} nodes with relations is too entangled for "
                f"exact inference: it needs tables of more than {width} nodes, that is {self.n_classes}^{width + 1} = "
                f"{self.n_classes ** (width + 1)} entries, or more tables than max_table={max_table} allows. Its "
                "labels can only be approximated, by loopy belief propagation. Give fewer relations or links, or use "
                'coupling="pairwise"',
                ApproximateInference,
                stacklevel=4,
            )


def _take(tables: FactorTables, scopes: Sequence[Ints]) -> list[Floats]:
    """Tables of some scopes; one that all scopes of a family share stays as it is."""
    return [table if len(table) == 1 else table[some] for table, some in zip(tables, scopes, strict=True)]
