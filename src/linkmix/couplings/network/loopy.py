"""Loopy belief propagation: approximate marginals where exact tables would not fit."""

from dataclasses import dataclass

import numpy as np

from linkmix.basics.arrays import Floats, Ints
from linkmix.couplings.network.forest import LOWEST

_PATIENCE = 20  # iterations within which the change of the messages must halve
_MOST_DAMPING = 0.9


@dataclass(frozen=True, eq=False)
class LoopyResult:
    """Approximate marginals of the nodes (n_nodes, n_classes) and edges (n_pairs,).

    ``edge_log_partition`` (n_pairs,) and ``node_log_partition`` (n_nodes,) add up to the Bethe approximation of the
    log-partition.
    """

    marginals: Floats
    edge_same: Floats
    node_log_partition: Floats
    edge_log_partition: Floats
    converged: bool


class LoopyPropagation:
    """Damped loopy belief propagation in log space.

    It is exact on a tree, and usually close on a graph with cycles, the more so for long cycles and weak links.

    Parameters
    ----------
    pairs : ndarray of shape (n_pairs, 2)
        The edges.
    damping : float
        Share of the old message in the new one. It grows if the messages do not converge.
    tol : float
        The run stops when no message, whose largest entry is 1, changes by more than this.
    max_iter : int
        Largest number of rounds in which all messages are sent.
    """

    def __init__(self, pairs: Ints, *, damping: float = 0.3, tol: float = 1e-8, max_iter: int = 200) -> None:
        self._damping, self._tol, self._max_iter = damping, tol, max_iter
        self._n_pairs = len(pairs)
        self._source = np.concatenate([pairs[:, 0], pairs[:, 1]])  # (2 n_pairs,): both directions of each pair
        target = np.concatenate([pairs[:, 1], pairs[:, 0]])
        self._by_target = np.argsort(target, kind="stable")
        self._targets, self._starts = np.unique(target[self._by_target], return_index=True)

    def infer(self, log_potential: Floats, same: Floats, different: Floats) -> LoopyResult:
        """Marginals from log-potentials of nodes (n_nodes, n_classes) and edges (n_pairs,)."""
        own = np.ascontiguousarray(log_potential.T)  # (M, n)
        same, different = np.tile(same, 2), np.tile(different, 2)
        messages = np.zeros((len(own), 2 * self._n_pairs))
        all_hard = np.isneginf(same).all()
        probabilities = np.exp(messages)
        damping, change, earlier = self._damping, np.inf, np.inf
        for iteration in range(1, self._max_iter + 1):
            cavity, _ = self._cavities(own, messages)
            new = _log_sum_others(cavity)
            new += different
            if not all_hard:
                np.logaddexp(same + cavity, new, out=new)
            new -= _tops(new)
            new *= 1 - damping
            messages = damping * messages
            messages += new
            old, probabilities = probabilities, np.exp(messages)
            old -= probabilities
            change = np.abs(old, out=old).max() / (1 - damping)
            if change <= self._tol:
                break
            if iteration % _PATIENCE == 0:
                if change > earlier / 2:
                    damping = min((1 + damping) / 2, _MOST_DAMPING)
                earlier = change
        converged = bool(change <= self._tol)
        return self._result(own, same, different, messages, converged)

    def _cavities(self, own: Floats, messages: Floats) -> tuple[Floats, Floats]:
        """Log-belief of the source of each message without the message from its target, and log-beliefs of the nodes.

        The largest log-belief of each source is zero, unless all are minus infinity.
        """
        n = self._n_pairs
        beliefs = own.copy()
        told = np.add.reduceat(messages.take(self._by_target, axis=1), self._starts, axis=1)
        if len(self._targets) == own.shape[1]:
            beliefs += told
        else:
            beliefs[:, self._targets] += told
        back = np.concatenate((messages[:, n:], messages[:, :n]), axis=1)
        cavity = beliefs.take(self._source, axis=1)
        cavity -= back
        if np.isneginf(back.min(initial=0.0)):
            # If the target forbids a label of its source, it does not matter what it is told about this label.
            cavity[np.isneginf(back)] = -np.inf
        cavity -= _tops(cavity)
        return cavity, beliefs

    def _result(self, own: Floats, same: Floats, different: Floats, messages: Floats, converged: bool) -> LoopyResult:
        n = self._n_pairs
        cavity, beliefs = self._cavities(own, messages)
        node_log_partition = _log_sum(beliefs)
        marginals = np.exp(beliefs - np.maximum(node_log_partition, LOWEST))
        first, second = cavity[:, :n], cavity[:, n:]
        equal = _log_sum(first + second) + same[:n]
        unequal = _log_sum(first + _log_sum_others(second)) + different[:n]
        joint = np.logaddexp(equal, unequal)
        # Each message is counted at its node and subtracted here, so its scale does not matter.
        told_second, told_first = messages[:, :n], messages[:, n:]
        edge_log_partition = joint - _log_sum(first + told_first) - _log_sum(second + told_second)
        edge_same = np.exp(equal - np.maximum(joint, LOWEST))
        return LoopyResult(marginals.T, edge_same, node_log_partition, edge_log_partition, converged)


def _tops(values: Floats) -> Floats:
    """Largest value over the classes (the first axis); a finite low number where all are minus infinity."""
    return np.asarray(np.maximum(np.maximum.reduce(values), LOWEST))


def _log_sum(values: Floats) -> Floats:
    """Log-sum-exp over the classes."""
    top = _tops(values)
    total: Floats = np.log(np.add.reduce(np.exp(values - top))) + top
    return total


def _log_sum_others(values: Floats) -> Floats:
    """Log-sum-exp over all classes but one, for each class: `arrays.leave_one_out` for many columns.

    The largest value of a column is zero, unless all are minus infinity. The total minus one term is accurate enough
    for every term but the largest, for which the others are summed.
    """
    terms = np.exp(values)
    others: Floats = np.add.reduce(terms) - terms
    np.log(np.maximum(others, 0.0, out=others), out=others)
    columns = np.arange(values.shape[1])
    largest = values.argmax(axis=0) * values.shape[1] + columns  # in a flat array
    rest = values.copy()
    rest.ravel()[largest] = -np.inf
    others.ravel()[largest] = _log_sum(rest)
    return others
