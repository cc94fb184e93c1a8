"""Belief propagation over all trees of a network at once, level by level.

A network with cycles consists of a core, in which every node lies on a cycle or on a path between cycles, and of trees
attached to it. Messages are collected from the trees into the roots, the core is inferred elsewhere, and its marginals
are distributed back to the trees. In the arrays of this module classes are the first axis, so that every step is
vectorised over nodes.
"""

from typing import NamedTuple

import numpy as np

from linkmix.basics.arrays import Floats, Ints

LOWEST = -1e300  # replaces a maximum of minus infinity, which cannot be subtracted from itself


class _Level(NamedTuple):
    """A slice of nodes at the same depth, siblings next to each other."""

    nodes: slice
    parents: Ints  # (n_families,): position of each parent
    starts: Ints  # (n_families,): where its children begin in the slice


class Forest:
    """The trees of a network, attached to roots.

    Nodes are numbered by position: isolated roots, then the nodes of cores, then the others by depth.

    Attributes
    ----------
    order : ndarray of shape (n_nodes,)
        The node at each position.
    n_alone, n_roots : int
        Number of roots without an edge to another root, and number of all roots.
    parents, parent_pairs : ndarray of shape (n_nodes - n_roots,)
        For each node that is not a root, the position of its parent and the number of the pair that joins them.
    """

    def __init__(self, nodes: Ints, pairs: Ints, pair_numbers: Ints, n_all: int) -> None:
        parent, parent_pair, rounds = _peel(pairs, pair_numbers, n_all)
        depth = np.zeros(n_all, dtype=np.int64)
        for leaves in reversed(rounds):
            depth[leaves] = depth[parent[leaves]] + 1
        roots = nodes[parent[nodes] < 0]
        in_core = np.zeros(n_all, dtype=bool)
        is_tree_pair = np.isin(pair_numbers, parent_pair[parent >= 0])
        in_core[pairs[~is_tree_pair]] = True
        self.n_roots = len(roots)
        self.n_alone = int(np.count_nonzero(~in_core[roots]))

        position = np.full(n_all, -1, dtype=np.int64)
        order = [np.concatenate([roots[~in_core[roots]], roots[in_core[roots]]])]
        position[order[0]] = np.arange(len(roots))
        below = nodes[depth[nodes] > 0]
        below = below[np.argsort(depth[below], kind="stable")]
        ends = np.cumsum(np.bincount(depth[below])[1:]) if len(below) else np.empty(0, dtype=np.int64)
        self._levels: list[_Level] = []
        for start, end in zip([0, *ends[:-1]], ends, strict=False):
            level = below[start:end]
            level = level[np.argsort(position[parent[level]], kind="stable")]
            position[level] = np.arange(self.n_roots + start, self.n_roots + end)
            parents, starts = np.unique(position[parent[level]], return_index=True)
            self._levels.append(_Level(slice(self.n_roots + start, self.n_roots + end), parents, starts))
            order.append(level)
        self.order = np.concatenate(order)
        self.position = position
        self.parents = position[parent[self.order[self.n_roots :]]]
        self.parent_pairs = parent_pair[self.order[self.n_roots :]]

    def collect(self, beliefs: Floats, same: Floats, different: Floats) -> tuple[Floats, list[Floats]]:
        """Send messages from the leaves to the roots.

        Parameters
        ----------
        beliefs : ndarray of shape (n_classes, n_nodes)
            Log-potentials of the nodes. Replaced by the beliefs from the subtree of each node, with largest entry 0.
        same, different : ndarray of shape (n_nodes - n_roots,)
            Log-potentials of the edge from each node to its parent.

        Returns
        -------
        scales : ndarray of shape (n_nodes,)
            What was subtracted from each node.
        conditionals : list of ndarray of shape (n_classes, n_classes, n)
            For each level, the probability of the second class at the node given the first at its parent.
        """
        n_classes = len(beliefs)
        diagonal = np.arange(n_classes)
        scales = np.empty(beliefs.shape[1])
        conditionals = []
        for level in reversed(self._levels):
            joint = self._joint(level, beliefs, scales, same, different, diagonal)
            top = np.maximum(joint.max(axis=1), LOWEST)  # (M, n): over the classes of the node
            joint -= top[:, None]
            np.exp(joint, out=joint)
            total = joint.sum(axis=1)
            message = np.log(total) + top
            joint /= np.maximum(total, 1.0)[:, None]  # at least 1, or 0 for a label that the parent cannot have
            conditionals.append(joint)
            beliefs[:, level.parents] += np.add.reduceat(message, level.starts, axis=1)
        _rescale(beliefs[:, : self.n_roots], scales[: self.n_roots])
        return scales, conditionals[::-1]

    def distribute(self, marginals: Floats, conditionals: list[Floats]) -> Floats:
        """Complete the marginals (n_classes, n_nodes), given those of the roots.

        Returns the probability that a node and its parent have the same label, shape (n_nodes - n_roots,).
        """
        same = np.empty(len(self.parents))
        for level, conditional in zip(self._levels, conditionals, strict=True):
            below = slice(level.nodes.start - self.n_roots, level.nodes.stop - self.n_roots)
            conditional *= marginals[:, None, self.parents[below]]
            conditional.sum(axis=0, out=marginals[:, level.nodes])
            np.einsum("mmn->n", conditional, out=same[below])
        return same

    def collect_best(self, beliefs: Floats, same: Floats, different: Floats) -> tuple[Floats, list[Ints]]:
        """As ``collect``, with the maximum over labels instead of the sum.

        Returns the scales, and for each level the best label (n_classes, n) given that of the parent.
        """
        scales = np.empty(beliefs.shape[1])
        choices = []
        for level in reversed(self._levels):
            here = beliefs[:, level.nodes]
            _rescale(here, scales[level.nodes])
            below = slice(level.nodes.start - self.n_roots, level.nodes.stop - self.n_roots)
            best, choice = _best(here, same[below], different[below])
            choices.append(choice)
            beliefs[:, level.parents] += np.add.reduceat(best, level.starts, axis=1)
        _rescale(beliefs[:, : self.n_roots], scales[: self.n_roots])
        return scales, choices[::-1]

    def trace_back(self, labels: Ints, choices: list[Ints]) -> None:
        """Complete the best labels (n_nodes,), given those of the roots."""
        for level, choice in zip(self._levels, choices, strict=True):
            below = slice(level.nodes.start - self.n_roots, level.nodes.stop - self.n_roots)
            labels[level.nodes] = choice[labels[self.parents[below]], np.arange(choice.shape[1])]

    def _joint(
        self, level: _Level, beliefs: Floats, scales: Floats, same: Floats, different: Floats, diagonal: Ints
    ) -> Floats:
        """Log-potential of the label of the parent (first axis) and of each node of a level with its subtree."""
        here = beliefs[:, level.nodes]
        _rescale(here, scales[level.nodes])
        below = slice(level.nodes.start - self.n_roots, level.nodes.stop - self.n_roots)
        joint = np.empty((len(here), *here.shape))  # (M, M, n)
        joint[:] = here + different[below]
        joint[diagonal, diagonal] = here + same[below]
        return joint


def _best(beliefs: Floats, same: Floats, different: Floats) -> tuple[Floats, Ints]:
    """Largest log-potential (M, n) of nodes for each label of the parent, and the first label that has it."""
    columns = np.arange(beliefs.shape[1])
    labels = np.arange(len(beliefs))[:, None]
    rest = beliefs.copy()
    first = rest.argmax(axis=0)
    rest[first, columns] = -np.inf
    other = np.where(labels == first, rest.argmax(axis=0), first)  # (M, n): the best label but that of the parent
    equal, unequal = beliefs + same, np.where(labels == first, rest.max(axis=0), beliefs[first, columns]) + different
    takes_equal = (equal > unequal) | ((equal == unequal) & (labels < other))
    return np.maximum(equal, unequal), np.where(takes_equal, labels, other)


def _rescale(beliefs: Floats, scales: Floats) -> None:
    np.maximum(beliefs.max(axis=0), LOWEST, out=scales)
    beliefs -= scales


def _peel(pairs: Ints, pair_numbers: Ints, n_all: int) -> tuple[Ints, Ints, list[Ints]]:
    """Remove the leaves of a graph repeatedly, until only the cores and a root in the middle of each tree remain.

    Returns the parent of each node, -1 if it remains, the pair that joins them, and the leaves of each round.
    """
    degree = np.bincount(pairs.ravel(), minlength=n_all)
    # The sum over the remaining neighbours is the neighbour itself when only one remains.
    neighbour = np.zeros(n_all, dtype=np.int64)
    joint = np.zeros(n_all, dtype=np.int64)
    for here, there in ((0, 1), (1, 0)):
        np.add.at(neighbour, pairs[:, here], pairs[:, there])
        np.add.at(joint, pairs[:, here], pair_numbers)
    parent = np.full(n_all, -1, dtype=np.int64)
    parent_pair = np.full(n_all, -1, dtype=np.int64)
    rounds = []
    leaves = np.flatnonzero(degree == 1)
    while len(leaves):
        # Of two leaves with only each other left, the smaller one becomes the root.
        leaves = leaves[(degree[neighbour[leaves]] > 1) | (leaves > neighbour[leaves])]
        parent[leaves], parent_pair[leaves] = neighbour[leaves], joint[leaves]
        rounds.append(leaves)
        touched = parent[leaves]
        np.subtract.at(degree, touched, 1)
        np.subtract.at(neighbour, touched, leaves)
        np.subtract.at(joint, touched, parent_pair[leaves])
        degree[leaves] = 0
        leaves = np.unique(touched[degree[touched] == 1])
    return parent, parent_pair, rounds
