"""Labels that meet all cannot-links: graph colouring in which each node has its own set of possible colours."""

from heapq import heapify, heappop, heappush

import numpy as np

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.links.feasibility.tempering import temper
from linkmix.links.pairs import component_ids, distinct_pairs

BACKTRACKING_STEPS = 20_000  # about a second for 500 nodes
TEMPERING_SWEEPS = 1_500  # about four seconds for 500 nodes


class UndecidedError(RuntimeError):
    """The search ended without labels and without a proof that there are none."""


def find_labels(
    allowed: Array,
    apart: Ints,
    together: Ints | None = None,
    *,
    score: Floats | None = None,
    backtracking_steps: int = BACKTRACKING_STEPS,
    tempering_sweeps: int = TEMPERING_SWEEPS,
) -> Ints | None:
    """Labels that meet all hard links.

    Nodes with more labels than neighbours are set aside, because they always find one. The others are labelled by
    backtracking, always at the node with the fewest labels left (DSATUR); if that takes too long, by parallel
    tempering.

    Parameters
    ----------
    allowed : ndarray of bool, shape (n, n_classes)
        Which labels a node may have.
    apart, together : ndarray of shape (n_pairs, 2)
        Nodes that cannot have the same label, and nodes that must have it.
    score : ndarray of shape (n, n_classes), optional
        Labels with a high score are tried first. Finite where the label is allowed.
    backtracking_steps, tempering_sweeps : int
        Limits of the two searches: labels tried beyond one for each node, and draws of all labels. Only backtracking
        can prove that there are no labels.

    Returns
    -------
    ndarray of shape (n,), or None if there are no such labels.

    Raises
    ------
    UndecidedError
        If the search reached its limits.
    """
    if together is not None and len(together):
        group = component_ids(together, len(allowed))
        if (group[apart[:, 0]] == group[apart[:, 1]]).any():
            return None
        n_groups = int(group.max()) + 1
        forbidden = np.zeros((n_groups, allowed.shape[1]), dtype=np.int64)
        np.add.at(forbidden, group, ~allowed)
        if score is not None:
            total = np.zeros(forbidden.shape)
            np.add.at(total, group, score)
            score = total
        labels = find_labels(
            forbidden == 0,
            group[apart],
            score=score,
            backtracking_steps=backtracking_steps,
            tempering_sweeps=tempering_sweeps,
        )
        return None if labels is None else labels[group]

    if not allowed.any(axis=1).all():
        return None
    neighbours = neighbour_lists(len(allowed), apart)
    aside = _set_aside(allowed, neighbours)
    labels = np.full(len(allowed), -1, dtype=np.int64)
    core = np.setdiff1d(np.arange(len(allowed)), aside)
    if score is None:
        score = np.zeros(allowed.shape)
    if len(core):
        number = np.full(len(allowed), -1, dtype=np.int64)
        number[core] = np.arange(len(core))
        inner = [number[neighbours[node]] for node in core]
        inner = [numbers[numbers >= 0] for numbers in inner]
        try:
            found = _backtrack(allowed[core], [numbers.tolist() for numbers in inner], score[core], backtracking_steps)
        except UndecidedError:
            found = temper(allowed[core], inner, score[core], tempering_sweeps)
            if found is None:
                raise
        if found is None:
            return None
        labels[core] = found
    given, by_score = labels.tolist(), np.argsort(-np.where(allowed, score, -np.inf), axis=1, kind="stable").tolist()
    for node in reversed(aside):  # its best label that no neighbour has: one of those allowed is left
        taken = {given[other] for other in neighbours[node].tolist()}
        given[node] = next(label for label in by_score[node] if label not in taken)
    return np.array(given, dtype=np.int64)


def neighbour_lists(n_nodes: int, pairs: Ints) -> list[Ints]:
    """Neighbours of each node, each once."""
    first, second = distinct_pairs(np.concatenate([pairs, pairs[:, ::-1]]))[0].T
    return np.split(second, np.searchsorted(first, np.arange(1, n_nodes)))


def _set_aside(allowed: Array, neighbours: list[Ints]) -> list[int]:
    """Nodes that can wait, in the order in which they leave: each has more labels than neighbours that stay."""
    spare = (allowed.sum(axis=1) - np.array([len(around) for around in neighbours], dtype=np.int64)).tolist()
    leaving = [node for node, more in enumerate(spare) if more > 0]
    for node in leaving:  # grows
        for other in neighbours[node].tolist():
            spare[other] += 1
            if spare[other] == 1:  # from now on; it leaves once
                leaving.append(other)
    return leaving


def _backtrack(allowed: Array, neighbours: list[list[int]], score: Floats, limit: int) -> Ints | None:
    n, n_classes = allowed.shape
    left = [set(np.flatnonzero(row).tolist()) for row in allowed]
    by_score = np.argsort(-score, axis=1, kind="stable")
    # Labels that are allowed at the same nodes are interchangeable: of those not used yet, one is enough to try.
    alike: list[int] = np.unique(allowed, axis=1, return_inverse=True)[1].ravel().tolist()
    used = [0] * n_classes
    labels = [-1] * n
    # Few labels first, then many neighbours, then small numbers. Entries that are out of date are skipped.
    queue = [(len(left[node]), -len(neighbours[node]), node) for node in range(n)]
    heapify(queue)

    def candidates(node: int) -> list[int]:
        tried: set[int] = set()
        found = []
        for label in by_score[node].tolist():
            if label in left[node] and (used[label] or alike[label] not in tried):
                found.append(label)
                if not used[label]:
                    tried.add(alike[label])
        return found[::-1]

    def choose() -> tuple[int, list[int], list[int] | None]:
        while True:
            n_left, _, node = heappop(queue)
            if labels[node] < 0 and n_left == len(left[node]):
                return node, candidates(node), None

    def wait(nodes: list[int]) -> None:
        for node in nodes:
            heappush(queue, (len(left[node]), -len(neighbours[node]), node))

    path = [choose()]
    for _ in range(n + limit):
        node, values, touched = path.pop()
        if touched is not None:  # take the last label back
            label = labels[node]
            for other in touched:
                left[other].add(label)
            wait(touched)
            used[label] -= 1
            labels[node] = -1
        if not values:
            wait([node])
            if not path:
                return None
            continue
        label = values.pop()
        touched = [other for other in neighbours[node] if labels[other] < 0 and label in left[other]]
        for other in touched:
            left[other].discard(label)
        wait(touched)
        used[label] += 1
        labels[node] = label
        path.append((node, values, touched))
        if len(path) == n:
            return np.array(labels, dtype=np.int64)
        if all(left[other] for other in touched):
            path.append(choose())
    raise UndecidedError
