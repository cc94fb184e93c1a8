"""Pairs of rows as graphs and as numbers: components, chains, and draws from more pairs than can be listed."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from linkmix.basics.arrays import Ints


def first_true(mask: ArrayLike) -> int | None:
    """Position of the first True, None if there is none."""
    return int(np.argmax(mask)) if np.any(mask) else None


def component_ids(edges: Ints, n_nodes: int) -> Ints:
    """Component of each node, numbered by first appearance."""
    graph = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n_nodes, n_nodes))
    _, ids = connected_components(graph, directed=False)
    _, first = np.unique(ids, return_index=True)
    number = np.empty(len(first), dtype=np.int64)
    number[np.argsort(first)] = np.arange(len(first))  # scipy promises no order
    return number[ids]


def distinct_pairs(pairs: Ints) -> tuple[Ints, Ints]:
    """Each pair once, sorted, and which of these each pair is: as `numpy.unique` by rows, but faster."""
    base = int(pairs.max(initial=0)) + 1
    numbers, which = np.unique(pairs[:, 0] * base + pairs[:, 1], return_inverse=True)
    return np.stack(np.divmod(numbers, base), axis=1), which


def shortest_chain(neighbours: dict[int, list[int]], start: int, end: int) -> tuple[int, ...]:
    """Rows of a shortest chain between two different rows of one component, both ends included.

    Searches from both ends, next at the one with fewer neighbours to look at, so that a short chain in a large
    component or past a hub is found quickly.
    """
    came_from: tuple[dict[int, int], dict[int, int]] = ({start: start}, {end: end})
    levels = [[start], [end]]
    costs = [len(neighbours[start]), len(neighbours[end])]
    while True:
        side = 0 if costs[0] <= costs[1] else 1
        next_level, next_cost = [], 0
        for row in levels[side]:
            for neighbour in neighbours[row]:
                if neighbour not in came_from[side]:
                    came_from[side][neighbour] = row
                    next_level.append(neighbour)
                    next_cost += len(neighbours[neighbour])
                # Whole levels had nothing in common so far, so the first meeting lies on a shortest chain.
                if neighbour in came_from[1 - side]:
                    to_start, to_end = (_trail(rows, neighbour) for rows in came_from)
                    return (*reversed(to_start), *to_end[1:])
        levels[side], costs[side] = next_level, next_cost


def _trail(came_from: dict[int, int], row: int) -> list[int]:
    trail = [row]
    while came_from[row] != row:
        row = came_from[row]
        trail.append(row)
    return trail


class Partners(NamedTuple):
    """A numbered set of pairs: position p is paired with ``counts[p]`` positions, ``lowest[p]`` the first of them."""

    lowest: Ints  # (n,)
    counts: Ints  # (n,)


def pairs_within(groups: Ints) -> Partners:
    """Pairs within the groups of a sorted array: each position with the earlier ones of its group."""
    lowest = np.searchsorted(groups, groups).astype(np.int64)
    return Partners(lowest, np.arange(len(groups)) - lowest)


def pairs_at(numbers: Ints, partners: Partners) -> Ints:
    """Pairs of positions with these numbers, shape (n, 2)."""
    ends = np.cumsum(partners.counts)
    position = np.searchsorted(ends, numbers, side="right")
    begins = ends - partners.counts
    return np.column_stack([partners.lowest[position] + numbers - begins[position], position])


def pairs_across(sizes: Ints) -> tuple[Ints, Ints, Ints]:
    """All pairs across the two groups of each row of ``sizes``, of shape (n, 2), row by row.

    Returns for each pair its row of ``sizes``, and the place of each end within its group.
    """
    counts = sizes.prod(axis=1)
    which = np.repeat(np.arange(len(sizes)), counts)
    number = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
    return which, number // sizes[which, 1], number % sizes[which, 1]


def draw_distinct(population: int, n: int, random: np.random.RandomState) -> Ints:
    """Draw ``n`` different integers below ``population``, in random order, in time and memory of order ``n``."""
    if 2 * n > population:
        return random.permutation(population)[:n].astype(np.int64)
    drawn = np.empty(0, dtype=np.int64)
    while len(drawn) < n:
        drawn = np.append(drawn, random.randint(population, size=n - len(drawn), dtype=np.int64))
        _, first = np.unique(drawn, return_index=True)
        drawn = drawn[np.sort(first)]  # as if each repetition had been drawn again
    return drawn
