"""Relations as a coupling sees them: their tables, how probable each is satisfied, and where they lie in a network."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from linkmix.basics.arrays import Floats, Ints
from linkmix.links import AnyRelation
from linkmix.links.label_tables import Parts

PRIOR_SATISFIED, PRIOR_NOT = 1.0, 1.0
"""Pseudo-counts of sets that satisfy a relation and of others, so that neither becomes impossible."""


@dataclass(frozen=True, eq=False)
class BoundRelations:
    """Relations for a number of classes.

    Attributes
    ----------
    sets : tuple of ndarray of shape (n, k)
        Points of the sets of each relation.
    parts : tuple of Parts
        The table of each.
    learned : ndarray
        Numbers of the relations whose probability is learned.
    """

    sets: tuple[Ints, ...]
    parts: tuple[Parts, ...]
    learned: Ints

    @classmethod
    def of(cls, relations: Sequence[AnyRelation], n_classes: int, *, joint: bool) -> "BoundRelations":
        """Tables as ``joint`` distributions of labels, or as probabilities that the relations are observed."""
        parts = []
        for i, relation in enumerate(relations):
            try:
                parts.append(relation.parts(n_classes, joint=joint))
            except ValueError as error:
                raise ValueError(f"relations[{i}]: {error}") from None
        # A rule that always holds with this many classes says nothing about its probability.
        learned = [i for i, relation in enumerate(relations) if relation.learn and parts[i].is_open]
        return cls(tuple(one.sets for one in relations), tuple(parts), np.array(learned, dtype=np.int64))

    def first(self) -> Floats:
        """First guess of the probabilities that are learned."""
        return np.array([self.parts[i].probability for i in self.learned])

    def probabilities(self, learned: Floats) -> Floats:
        """Probability that each relation is satisfied, given those that are learned; none, for the first guesses."""
        every = np.array([parts.probability for parts in self.parts])
        if len(learned):
            every[self.learned] = learned
        return every

    def learn(self, expected: Floats) -> Floats:
        """M-step: share of the sets that satisfy each relation, with the pseudo-counts of the prior."""
        sizes = np.array([len(self.sets[i]) for i in self.learned])
        return np.asarray((expected[self.learned] + PRIOR_SATISFIED) / (sizes + PRIOR_SATISFIED + PRIOR_NOT))

    def log_prior(self, learned: Floats) -> float:
        """Logarithm of the prior of the probabilities, up to a constant."""
        return float((PRIOR_SATISFIED * np.log(learned) + PRIOR_NOT * np.log1p(-learned)).sum())


NO_RELATIONS = BoundRelations((), (), np.empty(0, dtype=np.int64))


class Placed(NamedTuple):
    """Sets of one relation whose points are spread over nodes in the same way."""

    relation: int
    parts: Parts  # for the labels of the nodes
    nodes: Ints  # (n, number of different nodes of a set)


class PlacedRelations:
    """Relations in a network whose nodes are groups of points that share a label.

    Parameters
    ----------
    relations : BoundRelations
        Relations between points.
    node : ndarray of shape (n_points,)
        The node of each point.

    Attributes
    ----------
    families : list of ndarray of shape (n, k)
        The nodes of sets with tables of their own.
    edges : ndarray of shape (n_edges, 2)
        The nodes of sets of which only matters whether two nodes agree.
    """

    def __init__(self, relations: BoundRelations, node: Ints) -> None:
        self.relations = relations
        constants, unary, plain, tables = ([], [], [], [])  # type: ignore[var-annotated]
        for number, (sets, parts) in enumerate(zip(relations.sets, relations.parts, strict=True)):
            for group, nodes in _by_groups(node[sets]):
                placed = Placed(number, parts.of_groups(group), nodes)
                alike = placed.parts.knows_only_agreement
                kinds = {1: constants if alike else unary, 2: plain if alike else tables}
                kinds.get(nodes.shape[1], tables).append(placed)
        self._constants: list[Placed] = constants
        self._unary: list[Placed] = unary
        self._plain: list[Placed] = plain
        self._tables: list[Placed] = tables
        self.families = [placed.nodes for placed in self._tables]
        self.edges = np.concatenate([np.empty((0, 2), dtype=np.int64), *(placed.nodes for placed in self._plain)])

    def relation_of(self, family: int) -> int:
        """Number of the relation of a family."""
        return self._tables[family].relation

    def relations_of_edges(self, edges: Ints) -> list[int]:
        """Numbers of the relations of edges; negative ones are not edges of relations."""
        owner = np.repeat([one.relation for one in self._plain], [len(one.nodes) for one in self._plain])
        return sorted(set(owner[edges[edges >= 0]].tolist()))

    @property
    def is_plain(self) -> bool:
        """Whether all that matters is which pairs of nodes agree."""
        return not self._unary and not self._tables

    def edge_potentials(self, probabilities: Floats) -> tuple[Floats, Floats]:
        """Log-potentials of the edges for equal and for different labels."""
        same, different = [np.empty(0)], [np.empty(0)]
        for placed in self._plain:
            table = placed.parts.log_table(probabilities[placed.relation])
            same.append(np.full(len(placed.nodes), table[0, 0]))
            different.append(np.full(len(placed.nodes), table[0, 1] if len(table) > 1 else -np.inf))
        return np.concatenate(same), np.concatenate(different)

    def constant(self, probabilities: Floats) -> float:
        """Log-potential of sets within one node, where it does not depend on the label."""
        logs = (
            len(placed.nodes) * placed.parts.log_table(probabilities[placed.relation])[0] for placed in self._constants
        )
        return float(sum(logs))

    def with_unary(self, node_log_potential: Floats, probabilities: Floats) -> Floats:
        """Log-potentials of the nodes, those of sets within one node included."""
        if not self._unary:
            return node_log_potential
        total = node_log_potential.copy()
        for placed in self._unary:
            np.add.at(total, placed.nodes[:, 0], placed.parts.log_table(probabilities[placed.relation]))
        return total

    def factor_tables(self, probabilities: Floats) -> list[Floats]:
        """Log-potentials of the families, one table for all sets of each, as (1, n_classes, ...)."""
        return [placed.parts.log_table(probabilities[placed.relation])[None] for placed in self._tables]

    def expected(self, marginals: Floats, edge_same: Floats, joint: Sequence[Floats]) -> Floats:
        """Expected number of sets that satisfy each relation.

        From the distribution of labels of nodes (n_nodes, n_classes), the probability of equal labels of `edges`, and
        the joint distributions of the `families`.
        """
        total = np.zeros(len(self.relations.parts))
        for placed in self._constants:
            total[placed.relation] += len(placed.nodes) * float(placed.parts.satisfied[0])
        for placed in self._unary:
            total[placed.relation] += (marginals[placed.nodes[:, 0]] @ placed.parts.satisfied).sum()
        first = 0
        for placed in self._plain:
            same = edge_same[first : first + len(placed.nodes)]
            first += len(placed.nodes)
            yes, no = placed.parts.satisfied[0, 0], placed.parts.satisfied[0, -1]
            total[placed.relation] += (same * yes + (1 - same) * no).sum()
        for placed, labels in zip(self._tables, joint, strict=True):
            total[placed.relation] += labels[:, placed.parts.satisfied].sum()
        return total


def _by_groups(nodes: Ints) -> list[tuple[tuple[int, ...], Ints]]:
    """Sets of nodes (n, k) by which of their entries are equal: the group of each entry, and the different nodes."""
    k = nodes.shape[1]
    if not len(nodes):
        return []
    first = (nodes[:, :, None] == nodes[:, None, :]).argmax(axis=2)  # (n, k): where each entry occurs first
    patterns, which = np.unique(first, axis=0, return_inverse=True)
    found = []
    for number, pattern in enumerate(patterns.tolist()):
        different = [place for place in range(k) if pattern[place] == place]
        group = tuple(different.index(place) for place in pattern)
        found.append((group, nodes[which.ravel() == number][:, different]))
    return found
