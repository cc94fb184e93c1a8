"""Exact inference in networks with cycles: tables over cliques, collected into roots and distributed again.

Each clique is summed over its residual nodes and sends its parent the log of the sum for each labelling of the
separator. What remains is the conditional distribution of the residual nodes, so the backward pass is a product of
probabilities: no logarithms, no division by a message, no special treatment of zeros.

Cliques of the same shape at the same depth form one array, so that a thousand triangles need as many NumPy calls as
one. The axes of a table are the batch, the residual nodes, and the separator in the parent's order: nothing is
transposed.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from linkmix.basics.arrays import Floats, Ints
from linkmix.couplings.network.elimination import Clique
from linkmix.couplings.network.forest import LOWEST

CliqueRows = slice | Ints
FactorTables = Sequence[Floats]
"""Log-potentials of what joins nodes: for each kind of it, one table after the other."""


@dataclass(frozen=True, eq=False)
class _Factor:
    """An edge between two axes of a table, the first of them residual."""

    axes: tuple[int, int]
    pairs: Ints  # (n_batch,); one past the last pair where there is no edge
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _Batch:
    """Cliques with tables of the same shape and the same position in their parents."""

    components: Ints  # (n_batch,)
    nodes: Ints  # (n_batch, k)
    n_residual: int
    factors: tuple[tuple[_Factor, ...], ...]  # for each residual axis
    parent: int  # number of the parents' batch, -1 for roots
    parent_rows: CliqueRows
    parent_shape: tuple[int, ...]  # shape in which a message is added to the parents' tables
    summed_axes: tuple[int, ...]  # axes of the parents' tables that are not in the separator


class JunctionTree:
    """Clique trees of the cores of a network.

    Parameters
    ----------
    n_classes : int
        Number of labels.
    trees : sequence of (component, list of Clique)
        The clique tree of each core.
    pairs : ndarray of shape (n_pairs, 2)
        All edges between the nodes of the cores.
    """

    def __init__(self, n_classes: int, trees: Sequence[tuple[int, list[Clique]]], pairs: Ints) -> None:
        self._n_classes = n_classes
        self._n_pairs = len(pairs)
        self._batches = _batches(n_classes, trees, pairs)

    def infer(
        self, log_potential: Floats, same: Floats, different: Floats, marginals: Floats, log_partition: Floats
    ) -> Floats:
        """Marginals of the nodes and edges of all cores.

        Parameters
        ----------
        log_potential : ndarray of shape (n_nodes, n_classes)
            Log-potentials of the nodes.
        same, different : ndarray of shape (n_pairs,)
            Log-potentials of the edges.
        marginals : ndarray of shape (n_nodes, n_classes)
            Filled in for the nodes of the cores.
        log_partition : ndarray of shape (n_components,)
            The log-partition of each core is added to its component.

        Returns
        -------
        ndarray of shape (n_pairs,)
            Probability that both ends of an edge have the same label.
        """
        tables = self._joint_tables(log_potential, self._edge_tables(same, different), marginals, log_partition)
        edge_same = np.empty(self._n_pairs + 1)
        for batch, table in zip(self._batches, tables, strict=True):
            r, k = batch.n_residual, batch.nodes.shape[1]
            here = table.sum(axis=tuple(range(1 + r, 1 + k)))
            for factor in (factor for factors in batch.factors for factor in factors):
                a, b = factor.axes
                source = here if b < r else table
                diagonal = np.diagonal(source, axis1=a + 1, axis2=b + 1)
                edge_same[factor.pairs] = diagonal.sum(axis=tuple(range(1, diagonal.ndim)))
        return edge_same[:-1]

    def most_probable(
        self, log_potential: Floats, same: Floats, different: Floats, labels: Ints, log_partition: Floats
    ) -> None:
        """Fill in the most probable ``labels`` (n_nodes,), and add their log-potential to ``log_partition``."""
        self._best_labels(log_potential, self._edge_tables(same, different), labels, log_partition)

    def _joint_tables(
        self, log_potential: Floats, factors: FactorTables, marginals: Floats, log_partition: Floats
    ) -> list[Floats]:
        """Joint distribution of the labels of each clique, batch by batch, as (n_batch, n_classes, ...)."""
        pending: list[list[tuple[CliqueRows, Floats]]] = [[] for _ in self._batches]
        tables: list[Floats] = [log_potential] * len(self._batches)
        for number in range(len(self._batches) - 1, -1, -1):
            batch = self._batches[number]
            table = self._table(number, log_potential, factors, pending[number])
            top = np.maximum(table.max(axis=1), LOWEST)  # (n_batch, size of the separator)
            table -= top[:, None]
            np.exp(table, out=table)
            total = table.sum(axis=1)
            table /= np.maximum(total, 1.0)[:, None]  # at least 1, or 0 for impossible labels of the separator
            tables[number] = table
            self._send(batch, np.log(total) + top, pending, log_partition)

        for number, batch in enumerate(self._batches):
            table = tables[number]
            if batch.parent >= 0:
                above = tables[batch.parent][batch.parent_rows].sum(axis=batch.summed_axes)
                table *= above.reshape(len(above), 1, -1)
            r, k = batch.n_residual, batch.nodes.shape[1]
            here = table.sum(axis=2).reshape(-1, *(self._n_classes,) * r)
            for axis in range(r):
                others = tuple(1 + other for other in range(r) if other != axis)
                marginals[batch.nodes[:, axis]] = here.sum(axis=others) if others else here
            tables[number] = table.reshape(-1, *(self._n_classes,) * k)
        return tables

    def _best_labels(self, log_potential: Floats, factors: FactorTables, labels: Ints, log_partition: Floats) -> None:
        pending: list[list[tuple[CliqueRows, Floats]]] = [[] for _ in self._batches]
        choices: list[Ints] = []
        for number in range(len(self._batches) - 1, -1, -1):
            batch = self._batches[number]
            table = self._table(number, log_potential, factors, pending[number])
            choices.append(table.argmax(axis=1))  # the first of ties, so the smallest labels
            self._send(batch, table.max(axis=1), pending, log_partition)
        for batch, choice in zip(self._batches, reversed(choices), strict=True):
            r, k = batch.n_residual, batch.nodes.shape[1]
            cell = np.zeros(len(choice), dtype=np.int64)
            for axis in range(r, k):
                cell = cell * self._n_classes + labels[batch.nodes[:, axis]]
            best = choice[np.arange(len(choice)), cell]
            for axis in range(r - 1, -1, -1):
                best, labels[batch.nodes[:, axis]] = np.divmod(best, self._n_classes)

    def _edge_tables(self, same: Floats, different: Floats) -> FactorTables:
        tables = np.empty((self._n_pairs + 1, self._n_classes, self._n_classes))
        diagonal = np.arange(self._n_classes)
        tables[:-1] = different[:, None, None]
        tables[:-1, diagonal, diagonal] = same[:, None]
        tables[-1] = 0.0
        return [tables]

    def _table(
        self, number: int, log_potential: Floats, factors: FactorTables, messages: list[tuple[CliqueRows, Floats]]
    ) -> Floats:
        """Log-potentials of a batch, including the messages of its children, as (n_batch, residual, separator)."""
        batch, (edge_tables, *_) = self._batches[number], factors
        n, k = batch.nodes.shape
        table = np.zeros((n, *(self._n_classes,) * k))
        for axis in range(batch.n_residual):
            # Small tables first: factors over few axes are combined before they are broadcast to all of them.
            shape = (n, *(1,) * axis, self._n_classes, *(1,) * (k - axis - 1))
            part = log_potential[batch.nodes[:, axis]].reshape(shape)
            for factor in batch.factors[axis]:
                part = part + edge_tables[factor.pairs].reshape(factor.shape)
            table += part
        for rows, message in messages:
            table[rows] += message
        return table.reshape(n, self._n_classes**batch.n_residual, -1)

    def _send(
        self, batch: _Batch, message: Floats, pending: list[list[tuple[CliqueRows, Floats]]], log_partition: Floats
    ) -> None:
        scale = np.maximum(message.max(axis=1), LOWEST)
        np.add.at(log_partition, batch.components, scale)
        if batch.parent >= 0:
            message -= scale[:, None]
            pending[batch.parent].append((batch.parent_rows, message.reshape(batch.parent_shape)))


class _Member(NamedTuple):
    component: int
    clique: Clique
    parent_row: int


def _batches(n_classes: int, trees: Sequence[tuple[int, list[Clique]]], pairs: Ints) -> list[_Batch]:
    """Group cliques by depth, shape and position in their parents. A batch comes after that of its parents."""
    pair_number = {frozenset(pair): number for number, pair in enumerate(pairs.tolist())}
    levels: dict[int, list[tuple[int, int]]] = {}
    for tree, (_, cliques) in enumerate(trees):
        depth: list[int] = []
        for number, clique in enumerate(cliques):
            depth.append(depth[clique.parent] + 1 if clique.parent >= 0 else 0)
            levels.setdefault(depth[number], []).append((tree, number))

    groups: list[list[_Member]] = []
    group_of: dict[tuple[int, tuple[int, ...], int, int], int] = {}  # by parents, axes there, residual size, rank
    parents: list[tuple[int, tuple[int, ...]]] = []  # for each group: the parents' group, and the axes there
    place: dict[tuple[int, int], tuple[int, int]] = {}  # for each clique: group and row
    siblings: Counter[tuple[int, int, tuple[int, ...], int]] = Counter()
    for level in sorted(levels):
        for tree, number in levels[level]:
            component, cliques = trees[tree]
            clique, size = cliques[number], len(cliques[number].residual)
            above, row, rank = -1, -1, 0
            axes: tuple[int, ...] = ()
            if clique.parent >= 0:
                above, row = place[tree, clique.parent]
                nodes_above = (*cliques[clique.parent].residual, *cliques[clique.parent].separator)
                axes = tuple(nodes_above.index(node) for node in clique.separator)
                # Siblings of the same shape go to different groups, so that the parents' rows are distinct.
                rank = siblings[above, row, axes, size]
                siblings[above, row, axes, size] += 1
            group = group_of.setdefault((above, axes, size, rank), len(groups))
            if group == len(groups):
                groups.append([])
                parents.append((above, axes))
            place[tree, number] = group, len(groups[group])
            groups[group].append(_Member(component, clique, row))

    batches: list[_Batch] = []
    for members, (above, axes) in zip(groups, parents, strict=True):
        nodes = np.array([(*member.clique.residual, *member.clique.separator) for member in members])
        n = len(nodes)
        size = len(members[0].clique.residual)
        size_above = batches[above].nodes.shape[1] if above >= 0 else 0
        batches.append(
            _Batch(
                components=np.array([member.component for member in members]),
                nodes=nodes,
                n_residual=size,
                factors=tuple(_factors(n_classes, nodes, axis, pair_number) for axis in range(size)),
                parent=above,
                parent_rows=_as_slice([member.parent_row for member in members]),
                parent_shape=(n, *(n_classes if axis in axes else 1 for axis in range(size_above))),
                summed_axes=tuple(1 + axis for axis in range(size_above) if axis not in axes),
            )
        )
    return batches


def _factors(n_classes: int, nodes: Ints, axis: int, pair_number: dict[frozenset[int], int]) -> tuple[_Factor, ...]:
    """Edges between an axis and later ones, starting from the last, so that a table grows by its leading axes."""
    n, k = nodes.shape
    factors = []
    for other in range(k - 1, axis, -1):
        numbers = [pair_number.get(frozenset(ends), len(pair_number)) for ends in nodes[:, [axis, other]].tolist()]
        if min(numbers) < len(pair_number):
            shape = (n, *(n_classes if place in (axis, other) else 1 for place in range(k)))
            factors.append(_Factor((axis, other), np.array(numbers), shape))
    return tuple(factors)


def _as_slice(rows: list[int]) -> CliqueRows:
    """A slice if the rows are consecutive, because it copies nothing."""
    consecutive = rows == list(range(rows[0], rows[0] + len(rows)))
    return slice(rows[0], rows[0] + len(rows)) if consecutive else np.array(rows)
