"""The most probable labels of a core that is too wide for tables, by a search and an integer program."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import block_array, csr_array

from linkmix.basics.arrays import Floats, Ints
from linkmix.couplings.network.loopy import LoopyPropagation
from linkmix.links.feasibility.colouring import TEMPERING_SWEEPS, UndecidedError, find_labels
from linkmix.links.pairs import component_ids

_SWEEPS = 100
_LEAST_GAIN = 1e-9
_LAST_EFFORT = 15
_INFEASIBLE = 2  # status of scipy.optimize.milp


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


def most_probable_labels(
    log_potential: Floats, pairs: Ints, same: Floats, different: Floats, *, time_limit: float = 10.0
) -> Ints | None:
    """Labels with the largest log-potential that could be found within the time limit.

    First, labels that satisfy all hard links are found and improved by swapping two labels along chains of links. Then
    an integer program looks for better ones, until it has proved that there are none or its time is up. Hard links are
    never broken.

    Parameters
    ----------
    log_potential : ndarray of shape (n, n_classes)
        Log-potentials of the nodes.
    pairs : ndarray of shape (n_pairs, 2)
        The edges.
    same, different : ndarray of shape (n_pairs,)
        Log-potentials of equal and of different labels; minus infinity for a hard link.
    time_limit : float
        Seconds for the integer program.

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
    labels = _solve(problem, time_limit)
    return None if labels is None else labels[group]


def _solve(problem: _Problem, time_limit: float) -> Ints | None:
    allowed = ~np.isneginf(problem.score)
    found: Ints | None = None
    for score, sweeps in ((_guide(problem), TEMPERING_SWEEPS), (problem.score, 0)):
        try:
            labels = find_labels(allowed, problem.apart, score=score, tempering_sweeps=sweeps)
        except UndecidedError:
            continue
        if labels is None:
            return None
        found = _better(problem, found, labels)
    labels, is_infeasible = _integer_program(problem, time_limit)
    if labels is not None:
        found = _better(problem, found, labels)
    if found is None and not is_infeasible:
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
    labels = _improve(problem, labels)
    return labels if found is None or problem.value(labels) > problem.value(found) else found


def _improve(problem: _Problem, labels: Ints) -> Ints:
    """Swap two labels along chains of hard links (Kempe chains) as long as that raises the value."""
    labels = labels.copy()
    n_classes = problem.score.shape[1]
    for _ in range(_SWEEPS):
        swaps = [_swap(problem, labels, one, two) for one in range(n_classes) for two in range(one + 1, n_classes)]
        if not any(swaps):
            break
    return labels


def _swap(problem: _Problem, labels: Ints, one: int, two: int) -> bool:
    """Swap two labels in place, on the chains where that is better. Returns whether there were any."""
    here = (labels == one) | (labels == two)
    chain = component_ids(problem.apart[here[problem.apart].all(axis=1)], len(labels))
    nodes = np.flatnonzero(here)
    opposite = one + two - labels[nodes]
    gain = np.bincount(
        chain[nodes], problem.score[nodes, opposite] - problem.score[nodes, labels[nodes]], minlength=len(labels)
    )
    # A soft link changes if exactly one of its ends does.
    a, b = problem.soft.T
    is_between = chain[a] != chain[b]
    for end, other in ((a[is_between], b[is_between]), (b[is_between], a[is_between])):
        meets = (one + two - labels[end] == labels[other]).astype(float) - (labels[end] == labels[other])
        np.add.at(gain, chain[end], np.where(here[end], meets, 0.0) * problem.gain[is_between])
    better = gain > _LEAST_GAIN
    if is_between.any() and better.any():  # chains affect each other's gain, so swap only the best one
        better = np.arange(len(gain)) == gain.argmax()
    swapped = here & better[chain]
    labels[swapped] = one + two - labels[swapped]
    return bool(better.any())


def _integer_program(problem: _Problem, time_limit: float) -> tuple[Ints | None, bool]:
    """Labels by branch and bound, None if none were found in time; and whether there are provably none."""
    n, n_classes = problem.score.shape
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
        options={"time_limit": time_limit, "mip_rel_gap": 0.0},
    )
    if result.x is None:
        return None, result.status == _INFEASIBLE
    labels = np.asarray(result.x[: n * n_classes].reshape(n, n_classes).argmax(axis=1), dtype=np.int64)
    return (labels if problem.value(labels) > -np.inf else None), False


def _cells(nodes: Ints, n: int, n_classes: int) -> csr_array:
    """Matrix whose rows select the variables of each label of each of the nodes."""
    columns = (nodes[:, None] * n_classes + np.arange(n_classes)).ravel()
    return csr_array((np.ones(len(columns)), (np.arange(len(columns)), columns)), shape=(len(columns), n * n_classes))


def _label_sums(n: int, n_classes: int) -> csr_array:
    """Matrix that sums the variables of each of ``n`` nodes."""
    cells = np.arange(n * n_classes)
    return csr_array((np.ones(len(cells)), (cells // n_classes, cells)), shape=(n, len(cells)))
