"""Loopy belief propagation between nodes and tables of any number of nodes, where exact tables would not fit."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkmix.basics.arrays import Array, Floats, Ints, log_sum_exp, shares
from linkmix.couplings.network.junction_tree import FactorTables

_PATIENCE = 20  # rounds within which the change of the messages must halve
_MOST_DAMPING = 0.9
_MAX_ROUNDS = 200


@dataclass(frozen=True, eq=False)
class FactorBeliefs:
    """Approximate distributions of the labels of nodes and scopes.

    ``node_log_partition`` (n_nodes,) and the parts of ``scope_log_partition`` (n_scopes,) add up to the Bethe
    approximation of the log-partition.
    """

    marginals: Floats
    joint: list[Floats]
    node_log_partition: Floats
    scope_log_partition: list[Floats]
    converged: bool


class FactorPropagation:
    """Loopy belief propagation in log space: all tables send their messages at once, then all nodes.

    Parameters
    ----------
    n_nodes, n_classes : int
        Number of nodes, and of labels.
    families : sequence of ndarray of shape (n_scopes, k)
        The nodes of each scope, all different.
    tol : float
        The run ends when no entry of a message, whose largest entry is 1, changes by more than this.
    """

    def __init__(self, n_nodes: int, n_classes: int, families: Sequence[Ints], tol: float) -> None:
        self._n_nodes, self._n_classes, self._families, self._tol = n_nodes, n_classes, families, tol

    def infer(self, log_potential: Floats, factors: FactorTables) -> FactorBeliefs:
        """Beliefs from log-potentials of nodes (n_nodes, n_classes) and of the scopes of each family."""
        messages = [np.zeros((*scopes.shape, self._n_classes)) for scopes in self._families]  # from tables to nodes
        damping, earlier, change = 0.0, np.inf, np.inf
        for iteration in range(1, _MAX_ROUNDS + 1):
            change = 0.0
            for number, heard in enumerate(self._heard(log_potential, messages)):
                new = _answers(factors[number], heard)
                before = messages[number]
                change = max(change, float(np.abs(np.exp(new) - np.exp(before)).max(initial=0.0)))
                if damping:
                    both = np.isfinite(new) & np.isfinite(before)
                    new[both] += damping * (before[both] - new[both])
                messages[number] = new
            if change <= self._tol:
                break
            if iteration % _PATIENCE == 0:
                if change > earlier / 2:
                    damping = min((1 + damping) / 2, _MOST_DAMPING)
                earlier = change
        total, ruled_out = self._sum(log_potential, messages)
        beliefs = np.where(ruled_out > 0, -np.inf, total)
        log_node = log_sum_exp(beliefs)
        degree = np.zeros(self._n_nodes)
        joint, log_scope = [], []
        for scopes, given, heard in zip(self._families, factors, self._heard(log_potential, messages), strict=True):
            np.add.at(degree, scopes.ravel(), 1.0)
            table = _with_all(given, heard)
            flat = table.reshape(len(table), self._n_classes ** scopes.shape[1])
            log_scope.append(log_sum_exp(flat))
            joint.append(shares(flat).reshape(table.shape))
        return FactorBeliefs(shares(beliefs), joint, (1 - degree) * log_node, log_scope, change <= self._tol)

    def _sum(self, log_potential: Floats, messages: list[Floats]) -> tuple[Floats, Ints]:
        """Sum of all finite messages to each node, and how many of them rule each label out."""
        total = np.where(np.isneginf(log_potential), 0.0, log_potential)
        ruled_out = np.isneginf(log_potential).astype(np.int64)
        for scopes, sent in zip(self._families, messages, strict=True):
            none = np.isneginf(sent)
            np.add.at(total, scopes.ravel(), np.where(none, 0.0, sent).reshape(-1, self._n_classes))
            np.add.at(ruled_out, scopes.ravel(), none.reshape(-1, self._n_classes))
        return total, ruled_out

    def _heard(self, log_potential: Floats, messages: list[Floats]) -> list[Floats]:
        """Messages from nodes to tables: what a node hears from everything else, as (n_scopes, k, n_classes)."""
        total, ruled_out = self._sum(log_potential, messages)
        heard = []
        for scopes, sent in zip(self._families, messages, strict=True):
            none = np.isneginf(sent)
            others = total[scopes] - np.where(none, 0.0, sent)
            heard.append(np.where(ruled_out[scopes] - none > 0, -np.inf, others))
        return heard


def _on_axis(values: Floats, axis: int, k: int) -> Floats:
    """Values (n, n_classes) along one of ``k`` axes."""
    return values.reshape(len(values), *(1,) * axis, values.shape[1], *(1,) * (k - axis - 1))


def _with_all(table: Floats, heard: Floats, but: int = -1) -> Array:
    """Tables with the messages of all nodes, or of all but one, added."""
    k = heard.shape[1]
    total = np.broadcast_to(table, (len(heard), *table.shape[1:])).copy()
    for axis in range(k):
        if axis != but:
            total += _on_axis(heard[:, axis], axis, k)
    return total


def _answers(table: Floats, heard: Floats) -> Floats:
    """Messages from tables to nodes, with a largest entry of 0."""
    out = np.empty_like(heard)
    if not len(heard):
        return out
    k = heard.shape[1]
    for axis in range(k):
        total = np.moveaxis(_with_all(table, heard, but=axis), 1 + axis, 1)
        out[:, axis] = log_sum_exp(total.reshape(*total.shape[:2], table[0].size // heard.shape[2]))
    top = out.max(axis=2, keepdims=True)
    out -= np.where(np.isfinite(top), top, 0.0)
    return out
