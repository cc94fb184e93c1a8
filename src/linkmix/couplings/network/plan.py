"""A network as one array of integers, which is how the native core reads it (`native/network.h`)."""

from collections.abc import Sequence

import numpy as np

from linkmix.basics.arrays import Floats, Ints
from linkmix.couplings.network.elimination import Clique
from linkmix.couplings.network.forest import Forest
from linkmix.couplings.network.loopy import LoopyPropagation
from linkmix.couplings.network.structure import Structure
from linkmix.couplings.network.two_colouring import TwoColouring

VERSION = 1
_HEADER = 24
_NONE, _SAME, _DIFFERENT = 0, 1, 2  # which potential of an edge is a constant of its component


def flatten(
    structure: Structure,
    colouring: TwoColouring,
    coloured_edges: Ints,
    forest: Forest,
    trees: Sequence[tuple[int, list[Clique]]],
    exact_pairs: Ints,
    loopy: LoopyPropagation,
    wide_positions: Ints,
    wide_pairs: Ints,
) -> Ints:
    """The parts of a `LabelNetwork`, one after the other, after a header with their sizes."""
    adds = np.full(len(structure.edges), _NONE)
    adds[structure.loops], adds[coloured_edges] = _SAME, _DIFFERENT
    edge_pair = np.full(len(structure.edges), -1)
    edge_pair[structure.proper] = structure.pair_of_edge
    cliques = _Cliques(structure.n_classes, trees, forest.position[structure.pairs[exact_pairs]], exact_pairs)
    sections = [
        *(edge_pair, adds, structure.edges[:, 0], structure.components),
        *(colouring.nodes, colouring.number, colouring.label, colouring.components),
        *(forest.order, forest.parents, forest.parent_pairs),
        *(np.array(cliques.starts, dtype=np.int64), np.array(cliques.flat, dtype=np.int64)),
        *(wide_positions[loopy.order], loopy.blocks, loopy.starts, wide_pairs[loopy.pair], loopy.source, loopy.back),
    ]
    header = np.zeros(_HEADER, dtype=np.int64)
    header[:12] = (
        *(VERSION, structure.n_classes, structure.n_nodes, len(structure.edges), len(structure.pairs)),
        *(structure.n_components, len(colouring.nodes), len(colouring.components)),
        *(len(forest.order), forest.n_alone, forest.n_roots, len(cliques.starts)),
    )
    header[12:17] = (
        *(len(cliques.flat), cliques.n_table, cliques.n_message),
        *(cliques.largest_residual, cliques.largest_separator),
    )
    header[17:20] = len(wide_positions), len(wide_pairs), loopy.max_iter
    header[20:22] = _bits(np.array([loopy.tol, loopy.damping]))
    header[22] = len(loopy.blocks) - 1
    return np.concatenate([header, *sections]).astype(np.int64, copy=False)


def _bits(values: Floats) -> Ints:
    return values.view(np.int64)


class _Cliques:
    """The cliques of all cores, each as its sizes, its place in the tree, its nodes, and the edges in its table."""

    def __init__(
        self, n_classes: int, trees: Sequence[tuple[int, list[Clique]]], ends: Ints, pair_numbers: Ints
    ) -> None:
        self.starts: list[int] = []
        self.flat: list[int] = []
        self.n_table = self.n_message = self.largest_residual = self.largest_separator = 0
        pair_of = {
            (a, b): pair for (a, b), pair in zip(np.sort(ends, axis=1).tolist(), pair_numbers.tolist(), strict=True)
        }
        neighbours: dict[int, set[int]] = {}
        for a, b in pair_of:
            neighbours.setdefault(a, set()).add(b)
            neighbours.setdefault(b, set()).add(a)
        for component, cliques in trees:
            first = len(self.starts)
            first_child, next_sibling = [-1] * len(cliques), [-1] * len(cliques)
            for number, clique in enumerate(cliques):
                if clique.parent >= 0:
                    next_sibling[number], first_child[clique.parent] = first_child[clique.parent], number
            for number, clique in enumerate(cliques):
                nodes = (*clique.residual, *clique.separator)
                r, k = len(clique.residual), len(nodes)
                axes: list[int] = []
                if clique.parent >= 0:
                    above = cliques[clique.parent]
                    place = {node: axis for axis, node in enumerate((*above.residual, *above.separator))}
                    axes = [place[node] for node in clique.separator]
                factors = [
                    (a, b, pair_of[min(nodes[a], nodes[b]), max(nodes[a], nodes[b])])
                    for a in range(r)
                    for b in range(a + 1, k)
                    if nodes[b] in neighbours[nodes[a]]
                ]
                self.starts.append(len(self.flat))
                self.flat += [component, r, k]
                self.flat += [
                    -1 if link < 0 else first + link
                    for link in (clique.parent, first_child[number], next_sibling[number])
                ]
                self.flat += [self.n_table, self.n_message, len(factors), *nodes, *axes]
                self.flat += [value for factor in factors for value in factor]
                self.n_table += n_classes**k
                self.n_message += n_classes ** (k - r)
                self.largest_residual = max(self.largest_residual, n_classes**r)
                self.largest_separator = max(self.largest_separator, n_classes ** (k - r))
