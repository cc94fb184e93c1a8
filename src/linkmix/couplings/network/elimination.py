"""The order in which the nodes of a graph are summed out, and the clique tree that follows from it."""

from heapq import heapify, heappop, heappush
from math import inf
from typing import NamedTuple

from linkmix.basics.arrays import Ints

Neighbours = dict[int, set[int]]

TABLES = 16  # entries of tables that take the time of one entry of a message of loopy belief propagation, roughly
_MOST_AXES = 30  # NumPy 1 allows 32 axes, and one is needed besides those of the nodes


class Clique(NamedTuple):
    """Nodes that share a table.

    The ``residual`` nodes are summed out here, the ``separator`` is shared with the parent, which is -1 for a root.
    """

    residual: tuple[int, ...]
    separator: tuple[int, ...]
    parent: int


def largest_clique(n_classes: int, max_table: int) -> int:
    """Number of nodes whose table has at most ``max_table`` entries."""
    n_nodes = 0
    while n_classes ** (n_nodes + 1) <= max_table and n_nodes < _MOST_AXES:
        n_nodes += 1
    return n_nodes


def most_entries(n_pairs: int, n_classes: int, max_table: int) -> int:
    """Largest number of entries that all tables of a core may have together.

    Tables of ``max_table`` entries are always allowed; more only if they take no longer than messages along all edges.
    """
    return max(max_table, TABLES * 2 * n_pairs * n_classes)


def exact_cliques(pairs: Ints, n_classes: int, max_table: int) -> list[Clique] | None:
    """Clique tree of a connected graph, or None if its tables are too large."""
    neighbours: Neighbours = {}
    for a, b in pairs.tolist():
        neighbours.setdefault(a, set()).add(b)
        neighbours.setdefault(b, set()).add(a)
    most = most_entries(len(pairs), n_classes, max_table)
    # Cliques within others are dropped later. Together they have fewer entries than the others.
    order = eliminate(neighbours, largest_clique(n_classes, max_table), n_classes, 2 * most)
    if order is None:
        return None
    cliques = clique_tree(order)
    total = sum(n_classes ** (len(clique.residual) + len(clique.separator)) for clique in cliques)
    return cliques if total <= most else None


def eliminate(
    neighbours: Neighbours, largest: int, n_classes: int = 1, max_entries: float = inf
) -> list[tuple[int, set[int]]] | None:
    """Remove the nodes one by one, always one that adds the fewest edges between its neighbours (min-fill).

    Parameters
    ----------
    neighbours : dict of sets
        The graph, which is consumed.
    largest : int
        Largest number of nodes in a table.
    n_classes : int
        Number of labels.
    max_entries : float
        Largest number of entries of the tables of all nodes.

    Returns
    -------
    list of (node, neighbours when it was removed), or None if a table gets too large, or all of them together.
    """
    cost = {node: _fill(neighbours, node, largest) for node in neighbours}
    queue = [(*key, node) for node, key in cost.items()]
    heapify(queue)
    order = []
    while queue:
        *key, node = heappop(queue)
        if cost.get(node) != tuple(key):
            continue  # out of date
        around = neighbours.pop(node)
        max_entries -= n_classes ** (len(around) + 1)
        if len(around) >= largest or max_entries < 0:
            return None
        del cost[node]
        order.append((node, around))
        changed = set(around)
        for a in around:
            neighbours[a].discard(node)
            new = around - neighbours[a] - {a}
            for b in new:  # a new edge changes the cost of every node adjacent to both its ends
                changed |= neighbours[a] & neighbours[b]
            neighbours[a] |= new
        for other in changed:
            new_key = _fill(neighbours, other, largest)
            if cost[other] != new_key:
                cost[other] = new_key
                heappush(queue, (*new_key, other))
    return order


def _fill(neighbours: Neighbours, node: int, largest: int) -> tuple[float, int]:
    """Number of edges missing between the neighbours, and number of neighbours; infinity if these are too many."""
    around = neighbours[node]
    if len(around) >= largest:
        return inf, len(around)
    missing = sum(len(around) - 1 - len(around & neighbours[a]) for a in around)
    return missing // 2, len(around)


def clique_tree(order: list[tuple[int, set[int]]]) -> list[Clique]:
    """Join the cliques of an elimination into trees, parents first, dropping cliques contained in others.

    A separator is ordered as in the parent's clique, where residual nodes come before the separator.
    """
    position = {node: place for place, (node, _) in enumerate(order)}
    residuals: list[list[int]] = []
    separators: list[set[int]] = []
    home: dict[int, int] = {}
    children: dict[int, list[int]] = {node: [] for node in position}
    for node, around in order:
        # A child whose separator is this whole clique contains it already.
        holder = next((home[c] for c in children[node] if len(separators[home[c]]) == len(around) + 1), None)
        if holder is None:
            holder = len(residuals)
            residuals.append([])
            separators.append(set())
        residuals[holder].append(node)
        separators[holder] = around
        home[node] = holder
        if around:
            children[min(around, key=position.__getitem__)].append(node)

    cliques: list[Clique] = []
    number: dict[int, int] = {}
    # The last node of a clique is removed before the last node of its parent.
    for clique in sorted(range(len(residuals)), key=lambda c: -position[residuals[c][-1]]):
        number[clique] = len(cliques)
        residual, separator = tuple(residuals[clique]), separators[clique]
        if not separator:
            cliques.append(Clique(residual, (), -1))
            continue
        parent = number[home[min(separator, key=position.__getitem__)]]
        nodes_above = (*cliques[parent].residual, *cliques[parent].separator)
        cliques.append(Clique(residual, tuple(node for node in nodes_above if node in separator), parent))
    return cliques
