"""The number of classes, from one hierarchy of the points and a short fit for each number.

Ward's hierarchy gives a first guess for every number at once. From each guess, EM makes a few steps with one Gaussian
cluster per class and the links coupled as one network. A score in nats compares the numbers: the log-probability of the
links, as labels from the points alone explain them, plus the log-likelihood of the points. The latter is discounted,
since no model of the points is right, and it pays for its parameters and for the number of classes. With few links the
points decide, with many the links do. Only then is the whole search run, once, for the number that was chosen.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.random import RandomState

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.basics.errors import InfeasibleLinks
from linkmix.engine.fitting import few_threads
from linkmix.links import Links
from linkmix.search.contest import Candidate, Contest, Progress, all_of
from linkmix.search.settings import SETTINGS, SearchSettings

CHOICE = np.dtype(
    [
        ("n_classes", np.int64),
        ("links_broken", np.float64),
        ("log_probability_of_links", np.float64),
        ("structure", np.float64),
        ("log_likelihood", np.float64),
        ("bic", np.float64),
        ("score", np.float64),
    ]
)
START, SHAPE = "Ward", "1"
"""Name of the guess, and the shape that is fitted from it: one Gaussian cluster per class."""
ALL_UP_TO, GROWTH = 10, 1.2
"""Numbers of classes are tried one by one up to the first, then each is so many times the last."""
LARGEST_HIERARCHY = 2000
"""With more points, a hierarchy of so many of them is made; the others join the nearest one."""
MOST_STEPS = 20_000
"""Steps after which the search for a larger clique ends."""


def compare_numbers(ground: Contest, progress: Progress = lambda results, total: results) -> Array:
    """The candidate for each number of classes that was tried.

    Parameters
    ----------
    ground : Contest
        The points and links, with the largest number of classes that is tried.
    progress : callable
        Wraps the iterable of numbers, given how many they are, for example to show a progress bar.

    Returns
    -------
    structured ndarray
        One row for each number, the smallest first; `number_of_classes` is the one with the highest score.

    Raises
    ------
    InfeasibleLinks
        If the links need more classes than the largest number.
    """
    with few_threads(*ground.shape):
        return _compare(ground, progress)


def largest_number(fewest: int, n_points: int, settings: SearchSettings = SETTINGS) -> int:
    """Largest number of classes that is tried.

    Examples
    --------
    >>> largest_number(2, 1000), largest_number(2, 90), largest_number(2, 20), largest_number(2, 4)
    (50, 30, 10, 4)
    """
    enough = max(n_points // settings.points_per_cluster, ALL_UP_TO)  # a handful of points may have a class each
    return max(2, fewest, min(settings.most_classes, enough, n_points))


def number_of_classes(table: Array) -> int:
    """The number with the highest score; of several, the smallest.

    Examples
    --------
    >>> table = np.zeros(3, dtype=CHOICE)
    >>> table["n_classes"], table["score"] = [2, 3, 4], [-9.0, -5.0, -6.0]
    >>> number_of_classes(table)
    3
    """
    return int(table["n_classes"][table["score"].argmax()])


def _compare(ground: Contest, progress: Progress) -> Array:
    settings = ground.budget.settings
    guess = {
        view: hierarchy(spaces["columns"].points, ground.seed, _weights(ground, view))
        for view, spaces in ground.spaces.items()
    }
    found: dict[int, tuple[Any, ...]] = {}
    reason: InfeasibleLinks | None = None

    def tried(n_classes: int) -> tuple[Any, ...] | None:
        nonlocal reason
        try:
            row = _row(ground.with_classes(n_classes), guess)
        except InfeasibleLinks as error:  # more classes may meet the links
            reason = error
            return None
        if row is not None:
            found[n_classes] = row
        return row

    fewest = fewest_classes(ground.links, ground.known)
    grid = [*numbers(fewest, ground.n_classes)]
    best, in_vain = -np.inf, 0
    for n_classes in progress(grid, len(grid)):
        row = tried(n_classes)
        if row is None:
            continue
        best = max(best, row[-1])
        in_vain = in_vain + 1 if row[-1] < best - settings.behind else 0
        if in_vain == settings.in_vain:
            break
    if not found:
        n = ground.shape[0]
        raise reason or ValueError(f"n_samples={n} is too few to choose a number of classes: give n_classes")
    failed: set[int] = set()
    while near := [m for m in between(sorted(found), max(found, key=lambda m: (found[m][-1], -m))) if m not in failed]:
        failed.update(m for m in near if tried(m) is None)
    return np.array([found[n_classes] for n_classes in sorted(found)], dtype=CHOICE)


def _weights(ground: Contest, view: str) -> Floats | None:
    """How often each point counts in the hierarchy; with noise, outlying points do not."""
    if ground.outlying is None:
        return ground.weights
    return np.where(ground.outlying[view], 0.0, 1.0 if ground.weights is None else ground.weights)


def _row(contest: Contest, guess: dict[str, Callable[[int], Ints]]) -> tuple[Any, ...] | None:
    """The best candidate for a number of classes as a row of the table; None if clusters degenerate."""
    M = contest.n_classes
    tasks = [partial(contest.begin, view, START, of(M), SHAPE) for view, of in guess.items()]
    begun = [one for one in all_of(tasks, contest.n_jobs) if one is not None]
    if not begun:
        return None
    judge = contest.believing(begun)
    rows = [_judged(contest, one if judge is contest else judge.judged(one)) for one in begun]
    return max(rows, key=lambda row: float(row[-1]))


def _judged(contest: Contest, candidate: Candidate) -> tuple[Any, ...]:
    settings, evidence, M = contest.budget.settings, candidate.evidence, contest.n_classes
    explained = evidence.log_probability
    if contest.known is not None:
        explained += log_probability_of_labels(contest.probabilities(candidate), contest.known, settings.least)
    bic = contest.bic(candidate)
    n_points = contest.shape[0]
    n_parameters = (bic + 2 * candidate.log_likelihood) / np.log(n_points)
    log_likelihood = candidate.log_likelihood
    if contest.weights is not None:  # points count once on average, whatever the unit of the weights
        n_points = int(np.count_nonzero(contest.weights))
        log_likelihood *= n_points / float(contest.weights.sum())
    score = explained + worth_of_points(log_likelihood, n_parameters, M, n_points, settings)
    return M, evidence.broken, explained, evidence.structure, candidate.log_likelihood, bic, score


def worth_of_points(
    log_likelihood: float, n_parameters: float, n_classes: int, n_points: int, settings: SearchSettings = SETTINGS
) -> float:
    """What the points say for a number of classes, in nats of the links.

    The more points, the less each counts: n of them count as much as their square root.

    Examples
    --------
    >>> round(worth_of_points(-900.0, 29, 3, 400) - worth_of_points(-1000.0, 19, 2, 400), 2)
    0.3
    """
    worth = settings.worth_of_points / np.sqrt(n_points)
    paid = settings.cost_of_parameter * n_parameters
    return float(worth * (log_likelihood - paid) - settings.cost_of_classes * np.log(n_classes))


def log_probability_of_labels(probabilities: Floats, known: Ints, least: float) -> float:
    """Log-probability of known labels, -1 where not known, each no less than a broken link counts for.

    Examples
    --------
    >>> P = np.array([[0.5, 0.5], [1.0, 0.0], [1.0, 0.0]])
    >>> round(float(np.exp(log_probability_of_labels(P, np.array([0, 1, -1]), 0.1))), 3)
    0.05
    """
    told = np.flatnonzero(known >= 0)
    return float(np.log(np.maximum(probabilities[told, known[told]], least)).sum())


def numbers(fewest: int, most: int) -> Iterator[int]:
    """Numbers of classes to try first: all small ones, then wider apart.

    Examples
    --------
    >>> [*numbers(2, 50)]
    [2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 17, 20, 24, 29, 35, 42, 50]
    >>> [*numbers(14, 15)], [*numbers(3, 3)]
    ([14, 15], [3])
    """
    number = fewest
    while number < most:
        yield number
        number = number + 1 if number < ALL_UP_TO else round(GROWTH * number)
    yield most


def between(tried: list[int], best: int) -> Iterator[int]:
    """Numbers halfway between the best one and its neighbours, if there are any.

    Examples
    --------
    >>> [*between([10, 12, 14, 17, 20], 14)], [*between([10, 12, 13, 14, 15, 17], 14)]
    ([13, 15], [])
    """
    place = tried.index(best)
    for other in tried[max(place - 1, 0) : place] + tried[place + 1 : place + 2]:
        middle = (best + other) // 2
        if middle not in (best, other):
            yield middle


def hierarchy(points: Floats, seed: int, weights: Floats | None = None) -> Callable[[int], Ints]:
    """Labels by Ward's method for any number of classes. Rows without weight join the nearest of the others.

    Examples
    --------
    >>> labels = hierarchy(np.array([[0.0], [1.0], [5.0], [6.0], [20.0]]), 0)
    >>> labels(2).tolist(), len(set(labels(3).tolist()))
    ([0, 0, 0, 0, 1], 3)
    """
    from scipy.cluster.hierarchy import fcluster, linkage  # 0.1 s, so not before it is needed

    rows = np.arange(len(points)) if weights is None else np.flatnonzero(weights > 0)
    if len(rows) > LARGEST_HIERARCHY:
        rows = np.sort(RandomState(seed).choice(rows, LARGEST_HIERARCHY, replace=False))
    nearest = np.arange(len(points))
    if len(rows) < len(points):
        from sklearn.metrics import pairwise_distances_argmin  # 0.1 s, so not before it is needed

        nearest = pairwise_distances_argmin(points, points[rows])
    if len(rows) == 1:
        return lambda n_classes: np.zeros(len(points), dtype=np.int64)
    tree = linkage(points[rows], "ward")
    return lambda n_classes: np.asarray(fcluster(tree, n_classes, "maxclust"), dtype=np.int64)[nearest] - 1


def fewest_classes(links: Links, known: Ints | None = None) -> int:
    """Number of classes that there are at least, by certain links, rules and known labels; never less than two.

    It is the number of groups of the largest clique that was found: groups of must-linked points, each of which
    cannot-links to each other. More may be needed; that shows when the links are bound to a number of classes.

    Parameters
    ----------
    links : Links
        Links, free of contradictions.
    known : ndarray of shape (n_samples,), optional
        Known labels, -1 where not known.

    Examples
    --------
    >>> fewest_classes(Links(cannot=[(0, 1), (1, 2), (0, 3)], must=[(2, 3)]))
    3
    """
    told = 0 if known is None else int(known.max()) + 1
    told = max([told, *(relation.fewest_classes() for relation in links.relations)])
    certain = links.certain()
    if not certain.n_cannot:
        return max(2, told)
    rows = certain.points
    certain = certain.restrict(rows)
    group = certain.chunklets(len(rows))
    return max(2, told, largest_clique(group[certain.cannot].tolist()))


def largest_clique(edges: Iterable[tuple[int, int]], most_steps: int = MOST_STEPS) -> int:
    """Size of the largest set of nodes that are all joined to each other, or of a large one if the search is long.

    Nodes are taken off by their degree, the smallest first. A clique lies among the neighbours that are still there
    when its first node goes.

    Examples
    --------
    >>> largest_clique([(0, 1), (1, 2), (0, 2), (2, 3)])
    3
    """
    neighbours: dict[int, set[int]] = {}
    for a, b in edges:
        neighbours.setdefault(a, set()).add(b)
        neighbours.setdefault(b, set()).add(a)
    order = _by_degree(neighbours)
    clique: set[int] = set()
    for node in reversed(order):  # the densest part first
        if clique <= neighbours[node]:
            clique.add(node)
    best, steps = len(clique), 0
    place = {node: i for i, node in enumerate(order)}
    for node in reversed(order):
        stack = [(1, {other for other in neighbours[node] if place[other] > place[node]})]
        while stack and steps < most_steps:
            size, candidates = stack[-1]
            if size + len(candidates) <= best:
                stack.pop()
                continue
            other = candidates.pop()
            steps += 1
            best = max(best, size + 1)
            stack.append((size + 1, candidates & neighbours[other]))
    return best


def _by_degree(neighbours: dict[int, set[int]]) -> list[int]:
    """Nodes in an order in which each has the fewest neighbours among itself and those that come later."""
    degree = {node: len(others) for node, others in neighbours.items()}
    buckets: dict[int, set[int]] = {}
    for node, d in degree.items():
        buckets.setdefault(d, set()).add(node)
    order: list[int] = []
    d = 0
    while len(order) < len(neighbours):
        while not buckets.get(d):
            d += 1
        node = buckets[d].pop()
        order.append(node)
        degree[node] = -1
        for other in neighbours[node]:
            if degree[other] >= 0:
                buckets[degree[other]].discard(other)
                degree[other] -= 1
                buckets.setdefault(degree[other], set()).add(other)
        d = max(d - 1, 0)
    return order
