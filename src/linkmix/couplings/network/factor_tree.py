"""Exact inference where tables join more than two nodes, or join two in any other way than a link does.

A family is a number of scopes of one size, each of them the nodes that a table joins. Its tables, as (n_scopes,
n_classes, ...) or as one for all scopes (1, n_classes, ...), come with every call.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from linkmix.basics.arrays import Floats, Ints
from linkmix.couplings.network.elimination import Clique
from linkmix.couplings.network.junction_tree import CliqueRows, FactorTables, JunctionTree

NO_PAIRS: Ints = np.empty((0, 2), dtype=np.int64)


class _Placed(NamedTuple):
    """Scopes of a family that lie in the cliques of a batch, on the same axes of different cliques."""

    family: int
    scopes: Ints  # (n,)
    cliques: Ints  # (n,), rows of the batch
    inward: tuple[int, ...]  # transposes a table of scopes to the order of the axes of the clique
    outward: tuple[int, ...]  # the inverse
    shape: tuple[int, ...]  # in which it is added to the tables of the cliques, the first axis apart
    summed: tuple[int, ...]  # axes of the tables of the cliques that are not in the scopes


class FactorTrees(JunctionTree):
    """Clique trees in which the scopes of several families lie.

    Parameters
    ----------
    n_classes : int
        Number of labels.
    trees : sequence of (component, list of Clique)
        The clique tree of each component; each scope lies within a clique.
    families : sequence of ndarray of shape (n_scopes, k)
        The nodes of each scope, all different.
    """

    def __init__(self, n_classes: int, trees: Sequence[tuple[int, list[Clique]]], families: Sequence[Ints]) -> None:
        super().__init__(n_classes, trees, NO_PAIRS)
        self._families = families
        home: dict[int, tuple[int, int]] = {}  # batch and row of the clique where a node is summed out
        for number, batch in enumerate(self._batches):
            for row, residual in enumerate(batch.nodes[:, : batch.n_residual].tolist()):
                home.update(dict.fromkeys(residual, (number, row)))
        groups: list[dict[tuple[int, tuple[int, ...], int], list[tuple[int, int]]]] = [{} for _ in self._batches]
        for family, scopes in enumerate(families):
            taken: dict[tuple[int, int, tuple[int, ...]], int] = {}
            for scope, nodes in enumerate(scopes.tolist()):
                # Parents come before their children, and the first node summed out is in a clique with all others.
                number, row = max(home[node] for node in nodes)
                here = self._batches[number].nodes[row].tolist()
                axes = tuple(here.index(node) for node in nodes)
                rank = taken[number, row, axes] = taken.get((number, row, axes), -1) + 1
                groups[number].setdefault((family, axes, rank), []).append((scope, row))
        self._placed: list[list[_Placed]] = []
        for group in groups:
            members = [(family, axes, np.array(found)) for (family, axes, _), found in group.items()]
            k = self._batches[len(self._placed)].nodes.shape[1]
            self._placed.append([_placed(family, at, axes, n_classes, k) for family, axes, at in members])

    def infer_factors(
        self, log_potential: Floats, factors: FactorTables, marginals: Floats, log_partition: Floats
    ) -> list[Floats]:
        """Joint distribution of the labels of each scope of each family, as (n_scopes, n_classes, ...).

        Parameters
        ----------
        log_potential : ndarray of shape (n_nodes, n_classes)
            Log-potentials of the nodes.
        factors : sequence of ndarray
            Log-potentials of the scopes of each family.
        marginals : ndarray of shape (n_nodes, n_classes)
            Filled in for the nodes of all trees.
        log_partition : ndarray of shape (n_components,)
            The log-partition of each tree is added to its component.
        """
        tables = self._joint_tables(log_potential, factors, marginals, log_partition)
        found = [np.empty((len(scopes), *(self._n_classes,) * scopes.shape[1])) for scopes in self._families]
        for table, placed in zip(tables, self._placed, strict=True):
            for part in placed:
                found[part.family][part.scopes] = table[part.cliques].sum(axis=part.summed).transpose(part.outward)
        return found

    def best_labels(self, log_potential: Floats, factors: FactorTables, labels: Ints, log_partition: Floats) -> None:
        """Fill in the most probable ``labels`` (n_nodes,), and add their log-potential to ``log_partition``."""
        self._best_labels(log_potential, factors, labels, log_partition)

    def _table(
        self, number: int, log_potential: Floats, factors: FactorTables, messages: list[tuple[CliqueRows, Floats]]
    ) -> Floats:
        batch = self._batches[number]
        n, k = batch.nodes.shape
        table = np.zeros((n, *(self._n_classes,) * k))
        for axis in range(batch.n_residual):
            shape = (n, *(1,) * axis, self._n_classes, *(1,) * (k - axis - 1))
            table += log_potential[batch.nodes[:, axis]].reshape(shape)
        for part in self._placed[number]:
            given = factors[part.family]
            one = given if len(given) == 1 else given[part.scopes]
            table[part.cliques] += one.transpose(part.inward).reshape(len(one), *part.shape)
        for rows, message in messages:
            table[rows] += message
        return table.reshape(n, self._n_classes**batch.n_residual, -1)


def _placed(family: int, at: Ints, axes: tuple[int, ...], n_classes: int, k: int) -> _Placed:
    """Scopes and cliques (n, 2) that belong together, where the nodes of a scope are on these of ``k`` axes."""
    order = np.argsort(axes)
    return _Placed(
        family,
        *(at[:, 0], at[:, 1]),
        inward=(0, *(1 + order).tolist()),
        outward=(0, *(1 + np.argsort(order)).tolist()),
        shape=tuple(n_classes if axis in axes else 1 for axis in range(k)),
        summed=tuple(1 + axis for axis in range(k) if axis not in axes),
    )
