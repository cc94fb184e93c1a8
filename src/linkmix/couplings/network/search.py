"""The most probable labels of a core that is too wide for tables, by a search and an integer program."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import block_array, csr_array

from linkmix import native
from linkmix.basics.arrays import Floats, Ints
from linkmix.couplings.network.loopy import LoopyPropagation
from linkmix.links.feasibility.colouring import TEMPERING_SWEEPS, UndecidedError, find_labels
from linkmix.links.pairs import component_ids

_SWAP_WORK = 2**23  # nodes and links looked at, in all swaps from one start: half a second
_SWAP_COST = 2**12  # what a swap takes besides, in the same unit
_KICKS = 10  # that may fail, one after the other
_KICKED = 0.05  # share of the chains whose labels are swapped by a kick
_PROGRAM_SIZE, _PROGRAM_SOFT = 2**12, 2**8  # entries of the integer program, and those for soft links
_PROGRAM_NODES = 20  # of its tree; all of this takes about a second
_LEAST_GAIN = 1e-9
_LAST_EFFORT = 15
_OPTIMAL, _INFEASIBLE = 0, 2  # status of scipy.optimize.milp


class _Problem(NamedTuple):
    """Maximise node scores plus ``gain`` for each soft pair with equal labels, keeping hard pairs apart."""

    score: Floats  # (n, M); minus infinity where a label is not allowed
    apart: Ints  # (n_apart, 2)
    soft: Ints  # (n_soft, 2)
    gain: Floats  # (n_soft,)

    def value(self, labels: Ints) -> float:
        """The objective; minus infinity if a hard link is broken."""
        if (labels[self.apart[:, 0]] == labels[self.apart[:, 1]]).any():
            return -np.inf
        equal = labels[self.soft[:, 0]] == labels[self.soft[:, 1]]
        return float(self.score[np.arange(len(labels)), labels].sum() + self.gain[equal].sum())


def most_probable_labels(log_potential: Floats, pairs: Ints, same: Floats, different: Floats) -> Ints | None:
    """Labels with the largest log-potential that could be found with limited work.

    An integer program solves small problems. In others, labels that satisfy all hard links are found and improved by
    swapping two labels along chains of links, again and again after some have been swapped at random. All limits
    count operations, not seconds, so that the labels are the same on any machine. Hard links are never broken.

    Parameters
    ----------
    log_potential : ndarray of shape (n, n_classes)
        Log-potentials of the nodes.
    pairs : ndarray of shape (n_pairs, 2)
        The edges.
    same, different : ndarray of shape (n_pairs,)
        Log-potentials of equal and of different labels; minus infinity for a hard link.

    Returns
    -------
    ndarray of shape (n,), or None if the hard links contradict each other.

    Raises
    ------
    UndecidedError
        If neither labels that satisfy all hard links were found, nor a proof that there are none.
    """
    is_together = np.isneginf(different)
    if np.isneginf(same[is_together]).any():
        return None
    group = component_ids(pairs[is_together], len(log_potential))
    pairs, same, different = group[pairs[~is_together]], same[~is_together], different[~is_together]
    inside = pairs[:, 0] == pairs[:, 1]
    if np.isneginf(same[inside]).any():
        return None
    score = np.zeros((int(group.max()) + 1, log_potential.shape[1]))
    np.add.at(score, group, log_potential)
    is_apart = np.isneginf(same)
    is_soft = ~inside & ~is_apart
    problem = _Problem(score, pairs[is_apart], pairs[is_soft], (same - different)[is_soft])
    if len(problem.apart) + len(problem.soft) == 0:
        # All nodes are together.
        return None if np.isneginf(score.max()) else np.asarray(score.argmax(axis=1)[group], dtype=np.int64)
    labels = _solve(problem)
    return None if labels is None else labels[group]


def _solve(problem: _Problem) -> Ints | None:
    found, verdict = _integer_program(problem)
    if verdict is not None:
        return found if verdict else None
    if found is not None:
        found = _better(problem, None, found)
    allowed = ~np.isneginf(problem.score)
    for score, sweeps in ((_guide(problem), TEMPERING_SWEEPS if found is None else 0), (problem.score, 0)):
        try:
            labels = find_labels(allowed, problem.apart, score=score, tempering_sweeps=sweeps)
        except UndecidedError:
            continue
        if labels is None:
            return None
        found = _better(problem, found, labels)
    if found is None:
        # The scores of the nodes may mislead the search, so try without them.
        labels = find_labels(allowed, problem.apart, tempering_sweeps=_LAST_EFFORT * TEMPERING_SWEEPS)
        found = None if labels is None else _better(problem, found, labels)
    return found


def _guide(problem: _Problem) -> Floats:
    """Logarithm of approximate marginals, which reflect the links better than the nodes alone."""
    pairs = np.concatenate([problem.apart, problem.soft])
    same = np.concatenate([np.full(len(problem.apart), -np.inf), problem.gain])
    loopy = LoopyPropagation(pairs, tol=1e-3, max_iter=200)
    with np.errstate(divide="ignore", invalid="ignore"):
        marginals = loopy.infer(problem.score, same, np.zeros(len(pairs))).marginals
    return np.log(np.maximum(np.nan_to_num(marginals), 1e-300))


def _better(problem: _Problem, found: Ints | None, labels: Ints) -> Ints:
    """The better one of both labellings, after the second one has been improved, kicked and improved again."""
    labels, left = _improve(problem, labels, _SWAP_WORK)
    random = np.random.default_rng(0)
    failed = 0
    while left > 0 and failed < _KICKS and problem.score.shape[1] > 1:
        failed += 1
        kicked = labels.copy()
        one, two = random.choice(problem.score.shape[1], size=2, replace=False).tolist()
        chain = _chains(problem, kicked, one, two)
        swapped = (chain >= 0) & (random.random(len(chain)) < _KICKED)[chain]
        kicked[swapped] = one + two - kicked[swapped]
        if problem.value(kicked) == -np.inf:  # a label that is not allowed
            continue
        kicked, left = _improve(problem, kicked, left)
        if problem.value(kicked) > problem.value(labels) + _LEAST_GAIN:
            labels, failed = kicked, 0
    return labels if found is None or problem.value(labels) > problem.value(found) else found


def _improve(problem: _Problem, labels: Ints, left: int) -> tuple[Ints, int]:
    """Swap two labels along chains of hard links (Kempe chains) as long as that raises the value.

    Returns the labels and what is left of the work that may be done.
    """
    labels = labels.copy()
    work = _SWAP_COST + len(labels) + len(problem.apart) + 2 * len(problem.soft)
    while left > 0:
        swaps = []
        for one, two in _promising(problem, labels):
            swaps.append(_swap(problem, labels, one, two))
            left -= work
            if left <= 0:
                break
        if not any(swaps):
            break
    return labels, left


def _promising(problem: _Problem, labels: Ints) -> list[tuple[int, int]]:
    """Pairs of labels for which some node or some soft link would be better off after a swap."""
    n_classes = problem.score.shape[1]
    wanted = np.zeros((n_classes, n_classes), dtype=bool)
    here = problem.score[np.arange(len(labels)), labels]
    nodes, others = np.nonzero(problem.score > here[:, None])
    wanted[labels[nodes], others] = True
    a, b = labels[problem.soft].T
    meets = (problem.gain > 0) & (a != b)
    wanted[a[meets], b[meets]] = True
    wanted[a[(problem.gain < 0) & (a == b)]] = True
    wanted |= wanted.T
    return [(int(one), int(two)) for one, two in np.argwhere(np.triu(wanted, 1))]


def _chains(problem: _Problem, labels: Ints, one: int, two: int) -> Ints:
    """Number of the chain of hard links between nodes of two labels that each node belongs to; -1 for other labels."""
    here = (labels == one) | (labels == two)
    nodes = np.flatnonzero(here)
    number = np.cumsum(here) - 1
    chain = np.full(len(labels), -1, dtype=np.int64)
    components = native.components if native.active() else component_ids
    chain[nodes] = components(number[problem.apart[here[problem.apart].all(axis=1)]], len(nodes))
    return chain


def _swap(problem: _Problem, labels: Ints, one: int, two: int) -> bool:
    """Swap two labels in place, on the chains where that is better. Returns whether there were any."""
    chain = _chains(problem, labels, one, two)
    nodes = np.flatnonzero(chain >= 0)
    opposite = one + two - labels[nodes]
    gain = np.bincount(chain[nodes], problem.score[nodes, opposite] - problem.score[nodes, labels[nodes]])
    # A soft link changes if exactly one of its ends does.
    between = np.flatnonzero(chain[problem.soft[:, 0]] != chain[problem.soft[:, 1]])
    a, b = problem.soft[between].T
    for end, other in ((a, b), (b, a)):
        moves = chain[end] >= 0
        meets = (one + two - labels[end] == labels[other]).astype(float) - (labels[end] == labels[other])
        np.add.at(gain, chain[end[moves]], meets[moves] * problem.gain[between[moves]])
    better = gain > _LEAST_GAIN
    if not better.any():
        return False
    # Chains that soft links join affect each other's gain: only those that gain more than all around them are swapped.
    joined = (chain[a] >= 0) & (chain[b] >= 0)
    first, second = chain[a[joined]], chain[b[joined]]
    ahead = (gain[first] > gain[second]) | ((gain[first] == gain[second]) & (first < second))
    better[np.where(ahead, second, first)] = False
    swapped = nodes[better[chain[nodes]]]
    labels[swapped] = one + two - labels[swapped]
    return True


def _integer_program(problem: _Problem) -> tuple[Ints | None, bool | None]:
    """Labels by branch and bound, and whether they are the best (True), do not exist (False) or neither is proved."""
    n, n_classes = problem.score.shape
    n_hard, n_soft = (n + 2 * len(problem.apart)) * n_classes, len(problem.soft) * n_classes
    if n_hard > _PROGRAM_SIZE or n_soft > _PROGRAM_SOFT:
        return None, None
    allowed = ~np.isneginf(problem.score)
    relative = np.where(allowed, problem.score - problem.score.max(axis=1, keepdims=True), 0.0)
    one_label = _label_sums(n, n_classes)
    # Variable x[j, m], flattened, is 1 if node j has label m.
    apart = np.unique(np.sort(problem.apart, axis=1), axis=0)
    not_both = _cells(apart[:, 0], n, n_classes) + _cells(apart[:, 1], n, n_classes)
    # A pair that is better apart pays through a variable that is at least x[a, m] + x[b, m] - 1 for every label m.
    is_parted = problem.gain < 0
    a, b = problem.soft[is_parted].T
    both = _cells(a, n, n_classes) + _cells(b, n, n_classes)
    pays = _label_sums(len(a), n_classes).T
    # A pair that is better together earns through a variable for each label, which is at most x[a, m] and x[b, m].
    c, d = problem.soft[~is_parted].T
    earns = _cells(np.arange(len(c)), len(c), n_classes)
    blocks = [
        [one_label, None, None],
        [not_both, None, None],
        [both, -pays, None],
        [-_cells(c, n, n_classes), None, earns],
        [-_cells(d, n, n_classes), None, earns],
    ]
    matrix = block_array([row for row in blocks if row[0].shape[0]], format="csc")
    n_rows = [row[0].shape[0] for row in blocks]
    cost = [-relative.ravel(), -problem.gain[is_parted], -np.repeat(problem.gain[~is_parted], n_classes)]
    cost = [part for part in cost if len(part)]
    n_variables = sum(map(len, cost))
    upper = np.ones(n_variables)
    upper[: n * n_classes] = allowed.ravel()
    result = milp(
        np.concatenate(cost),
        integrality=np.arange(n_variables) < n * n_classes,
        bounds=Bounds(0.0, upper),
        constraints=LinearConstraint(
            matrix,
            np.repeat([1.0, -np.inf, -np.inf, -np.inf, -np.inf], n_rows),
            np.repeat([1.0, 1.0, 1.0, 0.0, 0.0], n_rows),
        ),
        options={"node_limit": _PROGRAM_NODES, "mip_rel_gap": 0.0},
    )
    if result.x is None:
        return None, False if result.status == _INFEASIBLE else None
    labels = np.asarray(result.x[: n * n_classes].reshape(n, n_classes).argmax(axis=1), dtype=np.int64)
    if not problem.value(labels) > -np.inf:
        return None, None
    return labels, True if result.status == _OPTIMAL else None


def _cells(nodes: Ints, n: int, n_classes: int) -> csr_array:
    """Matrix whose rows select the variables of each label of each of the nodes."""
    columns = (nodes[:, None] * n_classes + np.arange(n_classes)).ravel()
    return csr_array((np.ones(len(columns)), (np.arange(len(columns)), columns)), shape=(len(columns), n * n_classes))


def _label_sums(n: int, n_classes: int) -> csr_array:
    """Matrix that sums the variables of each of ``n`` nodes."""
    cells = np.arange(n * n_classes)
    return csr_array((np.ones(len(cells)), (cells // n_classes, cells)), shape=(n, len(cells)))
