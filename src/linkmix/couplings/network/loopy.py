"""Loopy belief propagation: approximate marginals where exact tables would not fit."""

from dataclasses import dataclass
from itertools import count, pairwise

import numpy as np

from linkmix.basics.arrays import Array, Floats, Ints
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
    """Loopy belief propagation in log space, node by node.

    It is exact on a tree, and usually close on a graph with cycles, the more so for long cycles and weak links.

    A node sends all its messages at once, from the newest messages to it, and is visited again only if one of these
    has changed: labels that are certain settle in the first rounds and cost nothing afterwards. The run ends when no
    node has to be visited again. Nodes are visited by colours of a proper colouring of
    the graph. Those of one colour do not hear each other, so that they can be updated together.

    Parameters
    ----------
    pairs : ndarray of shape (n_pairs, 2)
        The edges.
    damping : float
        Share of the old message in the new one. It grows if the messages do not converge.
    tol : float
        A message, whose largest entry is 1, has changed if an entry differs by more than this.
    max_iter : int
        Largest number of rounds.

    Attributes
    ----------
    order : ndarray
        The nodes that have edges, in the order in which they are visited.
    blocks : ndarray of shape (n_colours + 1,)
        Where the nodes of each colour begin.
    starts : ndarray of shape (len(order) + 1,)
        Where the messages to each of them begin.
    pair : ndarray of shape (2 n_pairs,)
        The edge of each message.
    source : ndarray of shape (2 n_pairs,)
        Where the sender of each message is in ``order``.
    back : ndarray of shape (2 n_pairs,)
        The message in the other direction.
    """

    def __init__(self, pairs: Ints, *, damping: float = 0.0, tol: float = 1e-8, max_iter: int = 200) -> None:
        self.damping, self.tol, self.max_iter = damping, tol, max_iter
        n = self._n_pairs = len(pairs)
        self.order, colours = _by_colour(pairs)
        place = np.zeros(int(pairs.max(initial=-1)) + 1, dtype=np.int64)
        place[self.order] = np.arange(len(self.order))
        ends = place[pairs]
        source, target = np.concatenate([ends[:, 0], ends[:, 1]]), np.concatenate([ends[:, 1], ends[:, 0]])
        by_target = np.argsort(target, kind="stable")
        self.source, self._target = source[by_target], target[by_target]
        self.pair = by_target % max(n, 1)
        rank = np.empty(2 * n, dtype=np.int64)
        rank[by_target] = np.arange(2 * n)
        self.back = rank[(by_target + n) % max(2 * n, 1)]
        self.starts = np.searchsorted(self._target, np.arange(len(self.order) + 1))
        self.blocks = np.searchsorted(colours, np.arange(colours.max(initial=-1) + 2))

    def infer(self, log_potential: Floats, same: Floats, different: Floats) -> LoopyResult:
        """Marginals from log-potentials of nodes (n_nodes, n_classes) and edges (n_pairs,)."""
        own = np.ascontiguousarray(log_potential[self.order].T)  # (M, n)
        messages = np.zeros((len(own), 2 * self._n_pairs))
        damping, earlier = self.damping, np.inf
        waiting = np.ones(len(self.order), dtype=bool)
        for iteration in range(1, self.max_iter + 1):
            changes = [
                self._send(first, stop, own, same, different, messages, waiting, damping)
                for first, stop in pairwise(self.blocks.tolist())
            ]
            if not waiting.any():
                break
            if iteration % _PATIENCE == 0:
                change = max(changes)
                if change > earlier / 2:
                    damping = min((1 + damping) / 2, _MOST_DAMPING)
                earlier = change
        return self._result(log_potential, own, same, different, messages, not waiting.any())

    def _send(
        self,
        first: int,
        stop: int,
        own: Floats,
        same: Floats,
        different: Floats,
        messages: Floats,
        waiting: Array,
        damping: float,
    ) -> float:
        """Send the messages of those nodes of a colour that wait for it. Returns the largest change of a message."""
        if not waiting[first:stop].any():
            return 0.0
        slots = slice(self.starts[first], self.starts[stop])
        sends = waiting[self._target[slots]]
        waiting[first:stop] = False
        beliefs = own[:, first:stop] + np.add.reduceat(
            messages[:, slots], self.starts[first:stop] - slots.start, axis=1
        )
        cavity = _without(beliefs[:, self._target[slots] - first], messages[:, slots])
        pair, back = self.pair[slots], self.back[slots]
        new = np.logaddexp(same[pair] + cavity, _log_sum_others(cavity) + different[pair])
        new -= _tops(new)
        old = messages[:, back]
        moved = new != old  # also False if both are minus infinity
        changes = np.abs(np.exp(new) - np.exp(old)).max(axis=0)[sends]  # before damping
        new[moved] = (1 - damping) * new[moved] + damping * old[moved]
        messages[:, back[sends]] = new[:, sends]
        has_changed = changes > self.tol
        waiting[self.source[slots][sends][has_changed]] = True
        if damping > 0:  # the rest of the way
            waiting[self._target[slots][sends][has_changed]] = True
        return float(changes.max())

    def _result(
        self,
        log_potential: Floats,
        own: Floats,
        same: Floats,
        different: Floats,
        messages: Floats,
        converged: bool,
    ) -> LoopyResult:
        beliefs = log_potential.T.copy()
        here = own + np.add.reduceat(messages, self.starts[:-1], axis=1) if self._n_pairs else own
        beliefs[:, self.order] = here
        node_log_partition = _log_sum(beliefs)
        marginals = np.exp(beliefs - np.maximum(node_log_partition, LOWEST))
        # Of both messages of an edge, the first is to its first node.
        slot = np.flatnonzero(self.back > np.arange(2 * self._n_pairs))
        back, pair = self.back[slot], self.pair[slot]
        told_first, told_second = messages[:, slot], messages[:, back]
        first = _without(here[:, self._target[slot]], told_first)
        second = _without(here[:, self._target[back]], told_second)
        equal = _log_sum(first + second) + same[pair]
        unequal = _log_sum(first + _log_sum_others(second)) + different[pair]
        joint = np.logaddexp(equal, unequal)
        edge_same, edge_log_partition = np.empty(self._n_pairs), np.empty(self._n_pairs)
        # Each message is counted at its node and subtracted here, so its scale does not matter.
        edge_log_partition[pair] = joint - _log_sum(first + told_first) - _log_sum(second + told_second)
        edge_same[pair] = np.exp(equal - np.maximum(joint, LOWEST))
        return LoopyResult(marginals.T, edge_same, node_log_partition, edge_log_partition, converged)


def _by_colour(pairs: Ints) -> tuple[Ints, Ints]:
    """The nodes that occur in pairs, sorted by a greedy colouring of the graph, and their colours."""
    neighbours: dict[int, list[int]] = {}
    for a, b in pairs.tolist():
        neighbours.setdefault(a, []).append(b)
        neighbours.setdefault(b, []).append(a)
    colour: dict[int, int] = {}
    for node in sorted(neighbours, key=lambda node: (-len(neighbours[node]), node)):
        taken = {colour.get(other) for other in neighbours[node]}
        colour[node] = next(c for c in count() if c not in taken)
    order = sorted(colour, key=lambda node: (colour[node], node))
    return np.array(order, dtype=np.int64), np.array([colour[node] for node in order], dtype=np.int64)


def _without(beliefs: Floats, messages: Floats) -> Floats:
    """Log-beliefs of the target of each message without this message.

    The largest is zero, unless all are minus infinity.
    """
    cavity = beliefs - messages
    if np.isneginf(messages.min(initial=0.0)):
        # If the target is forbidden a label, it need not tell the sender about it.
        cavity[np.isneginf(messages)] = -np.inf
    cavity -= _tops(cavity)
    return cavity


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
    largest = values.argmax(axis=0)[None]
    rest = values.copy()
    np.put_along_axis(rest, largest, -np.inf, axis=0)
    np.put_along_axis(others, largest, _log_sum(rest)[None], axis=0)
    return others
