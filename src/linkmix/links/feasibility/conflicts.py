"""Which hard links cannot be met together: odd cycles, cliques, and what is left when others are dropped."""

from collections import deque
from collections.abc import Sequence

import numpy as np

from linkmix.basics.arrays import Array, Ints
from linkmix.basics.errors import InfeasibleLinks
from linkmix.links.feasibility.colouring import UndecidedError, find_labels, neighbour_lists

_LINKS_SHOWN = 10
_CYCLE_STARTS = 200
_CLIQUE_STEPS = 50_000
_TRIALS = 300
_TRIAL_STEPS = 2000


class InfeasibleNetwork(InfeasibleLinks):
    """No labelling of a network has a positive probability.

    Attributes
    ----------
    links : list of (int, int)
        The nodes of edges that cannot be met together.
    edges : list of int
        The positions of these edges in the network.
    """

    def __init__(self, message: str, links: Sequence[tuple[int, int]] = (), edges: Sequence[int] = ()) -> None:
        super().__init__(message, list(links))
        self.edges = list(edges)


class UndecidedNetwork(InfeasibleNetwork):
    """No labelling was found that meets all hard edges, though there may be one. ``links`` are all hard edges."""


def infeasible(
    nodes: Ints, members: Ints, edges: Ints, allowed: Array, is_apart: Array, is_together: Array
) -> InfeasibleNetwork:
    """Build the error that names the links in conflict.

    Parameters
    ----------
    nodes, members : ndarray
        The nodes of the component in question, and the positions of its edges.
    edges : ndarray of shape (n_edges, 2)
        All edges of the network.
    allowed : ndarray of bool, shape (n_nodes, n_classes)
        Which labels a node may have.
    is_apart, is_together : ndarray of bool, shape (n_edges,)
        Edges that forbid equal labels, and edges that forbid different ones.
    """
    hopeless = nodes[~allowed[nodes].any(axis=1)]
    if len(hopeless):
        return InfeasibleNetwork(f"node {hopeless[0]} has no label with a positive potential, whatever the links are")
    members = members[is_apart[members] | is_together[members]]
    is_loop = edges[members, 0] == edges[members, 1]
    conflict = members[is_apart[members] & (is_loop | is_together[members])][:1]
    if len(conflict) == 0:
        ends, pairs = np.unique(edges[members], return_inverse=True)
        conflict = members[find_conflict(allowed[ends], pairs.reshape(-1, 2), is_together[members])]
    links = [(int(a), int(b)) for a, b in edges[conflict]]
    constrained = not allowed[edges[conflict]].all()
    return InfeasibleNetwork(_describe(allowed.shape[1], links, constrained), links, conflict.tolist())


def _describe(n_classes: int, links: Sequence[tuple[int, int]], constrained: bool) -> str:
    """Say which links cannot be met and how to fix it."""
    if len(links) == 1 and links[0][0] == links[0][1]:
        return f"node {links[0][0]} cannot have a label other than its own: drop this link"
    classes = f"{n_classes} classes" if n_classes > 1 else "one class"
    shown = ", ".join(f"{a}-{b}" for a, b in links[:_LINKS_SHOWN])
    if len(links) > _LINKS_SHOWN:
        shown += f" and {len(links) - _LINKS_SHOWN} more"
    what = f"these {len(links)} links together" if len(links) > 1 else "this link"
    given = ", given the labels that these nodes can have" if constrained else ""
    remedy = "drop one of them" if len(links) > 1 else "drop it"
    return f"no labelling with {classes} meets {what}{given}: nodes {shown}; {remedy}, or ask for more classes"


def find_conflict(allowed: Array, pairs: Ints, is_together: Array) -> list[int]:
    """Find a small set of hard links that cannot be met together.

    Parameters
    ----------
    allowed : ndarray of bool, shape (n, n_classes)
        Which labels a node may have.
    pairs : ndarray of shape (n_pairs, 2)
        The hard links, which cannot all be met.
    is_together : ndarray of bool, shape (n_pairs,)
        Which of them ask for the same label.

    Returns
    -------
    list of int
        Numbers of the links. Without any one of them the others can be met, unless that took too long to find out.
    """
    n, n_classes = allowed.shape
    if not is_together.any() and allowed.all():
        conflict = odd_cycle(n, pairs) if n_classes == 2 else _clique(n, pairs, n_classes + 1)
        if conflict:
            return conflict
    return _reduce(allowed, pairs, is_together)


def odd_cycle(n_nodes: int, pairs: Ints) -> list[int]:
    """Numbers of the links on a short cycle of odd length, in order; none if there is no such cycle."""
    number = {tuple(sorted(pair)): position for position, pair in enumerate(pairs.tolist())}
    neighbours = [around.tolist() for around in neighbour_lists(n_nodes, pairs)]
    shortest: list[int] = []
    for start in np.unique(pairs)[:_CYCLE_STARTS].tolist():
        parent, depth = {start: start}, {start: 0}
        queue = deque([start])
        closing = None
        while queue and closing is None:
            node = queue.popleft()
            for other in neighbours[node]:
                if other not in depth:
                    parent[other], depth[other] = node, depth[node] + 1
                    queue.append(other)
                elif depth[other] == depth[node]:
                    closing = node, other
                    break
        if closing is None:
            continue
        left, right = [closing[0]], [closing[1]]
        while left[-1] != right[-1]:
            left.append(parent[left[-1]])
            right.append(parent[right[-1]])
        cycle = [*left[::-1], *right[:-1]]
        if not shortest or len(cycle) < len(shortest):
            shortest = cycle
    if not shortest:
        return []
    ends = zip(shortest, [*shortest[1:], shortest[0]], strict=True)
    return [number[a, b] if a < b else number[b, a] for a, b in ends]


def _clique(n_nodes: int, pairs: Ints, size: int) -> list[int]:
    """Numbers of the links of a clique; none if there is none, or none is found in time."""
    number = {tuple(sorted(pair)): position for position, pair in enumerate(pairs.tolist())}
    neighbours = [set(around.tolist()) for around in neighbour_lists(n_nodes, pairs)]
    steps = _CLIQUE_STEPS

    def grow(clique: list[int], candidates: set[int]) -> list[int]:
        nonlocal steps
        steps -= 1
        if len(clique) == size:
            return clique
        for node in sorted(candidates):
            if len(clique) + len(candidates) < size or steps < 0:
                return []
            candidates = candidates - {node}
            if found := grow([*clique, node], candidates & neighbours[node]):
                return found
        return []

    clique = grow([], set(np.unique(pairs).tolist()))
    return [number[a, b] for place, a in enumerate(clique) for b in clique[place + 1 :]]


def _reduce(allowed: Array, pairs: Ints, is_together: Array) -> list[int]:
    """Drop links, many at once and then one by one, as long as the rest cannot be met."""
    kept = np.arange(len(pairs))
    size = len(kept)
    trials = 0
    while size >= 1:
        place = 0
        while place < len(kept) and trials < _TRIALS:
            trials += 1
            others = np.delete(kept, slice(place, place + size))
            if _is_refuted(allowed, pairs[others], is_together[others]):
                kept = others
            else:
                place += size
        size //= 2
    return kept.tolist()


def _is_refuted(allowed: Array, pairs: Ints, is_together: Array) -> bool:
    try:
        return (
            find_labels(allowed, pairs[~is_together], pairs[is_together], backtracking_steps=2000, tempering_sweeps=0)
            is None
        )
    except UndecidedError:
        return False
