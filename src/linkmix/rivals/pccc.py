"""PCCC: k-means whose assignments are solved as an integer program (Baumann and Hochbaum, 2022)."""

import warnings
from numbers import Real
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array
from sklearn.exceptions import ConvergenceWarning

from linkmix.basics.arrays import Floats, Ints
from linkmix.basics.checks import Constraints, at_least
from linkmix.basics.errors import InfeasibleLinks
from linkmix.links import Links
from linkmix.rivals.kmeans_links import CentreRival, class_means, plusplus_seeds, squared_distances

OPTIMAL = 0
"""What SciPy's milp reports if the solution is proven."""


class PCCC(CentreRival):
    """k-means in which every step assigns all points at once, as cheaply as the links allow.

    Certain links always hold. An uncertain one may be broken for a price: its confidence times the mean squared
    distance between points and centres. As published, must-linked points are merged into one weighted point first, and
    steps go on as long as the objective falls. The integer program of a step has a variable for each class and each
    merged point with links; the other points go to their nearest centres. HiGHS solves it, to optimality unless
    `time_limit` is reached. Unlike the greedy assignment of COP-KMeans, this never gets stuck.

    Parameters
    ----------
    n_classes : int, default=2
        Number of classes.
    max_iter : int, default=100
        Maximum number of steps.
    time_limit : float, default=60.0
        Seconds for the assignment of one step. If they run out, the best assignment so far is used, with a warning;
        labels then depend on the speed of the machine.
    init : array-like of shape (n_classes, n_features), optional
        Initial centres. By default k-means++ draws.
    random_state : int, RandomState or None, default=None
        Source of randomness for the initial centres.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Class of each point; no certain link is broken.
    cluster_centers_ : ndarray of shape (n_classes, n_features)
        Mean of each class.
    objective_ : float
        Sum of squared distances of the merged points to their centres, plus the price of broken links.
    objective_trace_ : ndarray of shape (n_iter_,)
        Objective after each step; the last step need not improve it.
    n_iter_ : int
        Number of steps.
    converged_ : bool
        Whether the last step did not lower the objective.

    References
    ----------
    Baumann, Hochbaum (2022): PCCC: the pairwise-confidence-constraints-clustering algorithm. arXiv:2212.14437.

    Examples
    --------
    >>> from linkmix import Links
    >>> from linkmix.rivals import PCCC
    >>> X = [[0.0], [1.0], [2.0], [8.0], [9.0]]
    >>> links = Links(must=[(2, 3)], cannot=[(0, 1)])
    >>> PCCC(init=[[0.0], [9.0]]).fit(X, links=links).labels_
    array([0, 1, 1, 1, 1])
    >>> PCCC(init=[[0.0], [9.0]]).fit(X, links=Links(must=[(2, 3)], must_confidence=0.6)).labels_
    array([0, 0, 0, 1, 1])
    """

    uses_confidence: ClassVar[bool] = True
    _parameter_constraints: ClassVar[Constraints] = {
        **CentreRival._parameter_constraints,
        "time_limit": [at_least(0, Real)],
    }

    labels_: Ints

    def __init__(
        self,
        n_classes: int = 2,
        *,
        max_iter: int = 100,
        time_limit: float = 60.0,
        init: ArrayLike | None = None,
        random_state: int | RandomState | None = None,
    ) -> None:
        self.n_classes = n_classes
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.init = init
        self.random_state = random_state

    def _cluster(self, X: Floats, links: Links, random: RandomState) -> Ints:
        merged = Merged.of(X, links)
        given = self._given_centres(X.shape[1])
        centres = plusplus_seeds(merged.points, self.n_classes, random) if given is None else given
        best: tuple[float, Ints, Floats] | None = None
        trace: list[float] = []
        converged = False
        while not converged and len(trace) < self.max_iter:
            distances = squared_distances(merged.points, centres)
            labels, price, optimal = merged.assign(distances, self.time_limit, links)
            if not optimal:
                warnings.warn(
                    f"an assignment was not solved within time_limit={self.time_limit:g} seconds, so that labels "
                    "depend on the speed of this machine: raise it, or drop links",
                    ConvergenceWarning,
                    stacklevel=3,  # the line that calls fit
                )
            centres = merged.centres(labels, centres, distances)
            spread = squared_distances(merged.points, centres)[np.arange(len(labels)), labels]
            trace.append(float(merged.sizes @ spread) + price)
            converged = best is not None and trace[-1] >= best[0]
            if best is None or not converged:
                best = (trace[-1], labels, centres)
        assert best is not None  # max_iter is at least one
        self.objective_, labels, _ = best
        found = labels[merged.number]
        self.cluster_centers_ = class_means(X, found, best[2])
        self.objective_trace_ = np.array(trace)
        self.n_iter_ = len(trace)
        self.converged_ = converged
        self._warn_unless(converged)
        return np.asarray(found)


class Merged(NamedTuple):
    """Points that certain must-links merge, and the links that remain between them."""

    number: Ints  # (n,): the merged point of each row
    points: Floats  # (n_merged, d): means
    sizes: Floats  # (n_merged,)
    apart: Ints  # (n_apart, 2): certain cannot-links
    soft: Ints  # (n_soft, 2): uncertain links
    prices: Floats  # (n_soft,): positive for a must-link, negative for a cannot-link

    @classmethod
    def of(cls, X: Floats, links: Links) -> "Merged":
        """Merge chunklets, and add up what uncertain links say about the same two of them."""
        sure = {
            kind: np.ones(len(pairs)) if confidence is None else confidence
            for kind, pairs, confidence in (
                ("must", links.must, links.must_confidence),
                ("cannot", links.cannot, links.cannot_confidence),
            )
        }
        number = Links(must=links.must[sure["must"] == 1]).chunklets(len(X))
        _, number = np.unique(number, return_inverse=True)
        sizes = np.bincount(number).astype(np.float64)
        middle = X.mean(axis=0)
        sums = np.stack([np.bincount(number, column) for column in (X - middle).T], axis=1)
        apart = np.unique(np.sort(number[links.cannot[sure["cannot"] == 1]], axis=1), axis=0).reshape(-1, 2)
        unsure = [sure[kind] < 1 for kind in ("must", "cannot")]
        pairs = np.sort(number[np.concatenate([links.must[unsure[0]], links.cannot[unsure[1]]])], axis=1).reshape(-1, 2)
        values = np.concatenate([sure["must"][unsure[0]], -sure["cannot"][unsure[1]]])
        soft, place = np.unique(pairs, axis=0, return_inverse=True)
        prices = np.bincount(place.ravel(), values, minlength=len(soft))
        kept = (soft[:, 0] != soft[:, 1]) & (prices != 0)
        return cls(number, middle + sums / sizes[:, None], sizes, apart, soft[kept], prices[kept])

    def assign(self, distances: Floats, time_limit: float, links: Links) -> tuple[Ints, float, bool]:
        """Cheapest classes of the merged points, the price of the links that they break, and whether this is proven."""
        labels = np.asarray(distances.argmin(axis=1), dtype=np.int64)
        linked = np.unique(np.concatenate([self.apart.ravel(), self.soft.ravel()]))
        optimal = True
        scale = float(distances.mean())
        if len(linked):
            costs = self.sizes[linked, None] * distances[linked]
            places = np.zeros(len(labels), dtype=np.int64)
            places[linked] = np.arange(len(linked))
            solved = cheapest_classes(costs, places[self.apart], places[self.soft], scale * self.prices, time_limit)
            if solved is None:
                raise InfeasibleLinks(
                    f"no assignment to {distances.shape[1]} classes that meets all certain links was found in "
                    f"{time_limit:g} seconds: drop links, raise n_classes or time_limit",
                    links,
                )
            labels[linked], optimal = solved
        same = labels[self.soft[:, 0]] == labels[self.soft[:, 1]]
        broken = np.where(self.prices > 0, ~same, same)
        return labels, scale * float(np.abs(self.prices[broken]).sum()), optimal

    def centres(self, labels: Ints, centres: Floats, distances: Floats) -> Floats:
        """Weighted mean of each class; the centre of an empty one goes to the point farthest from its own centre."""
        mass = np.bincount(labels, self.sizes, minlength=len(centres))
        sums = np.stack([np.bincount(labels, self.sizes * x, minlength=len(centres)) for x in self.points.T], axis=1)
        means = np.where(mass[:, None] > 0, sums / np.maximum(mass, 1.0)[:, None], centres)
        farthest = np.argsort(-self.sizes * distances[np.arange(len(labels)), labels], kind="stable")
        empty = np.flatnonzero(mass == 0)
        means[empty] = self.points[farthest[: len(empty)]]
        return np.asarray(means)


def cheapest_classes(
    costs: Floats, apart: Ints, soft: Ints, prices: Floats, time_limit: float
) -> tuple[Ints, bool] | None:
    """Solve the integer program of a step.

    Parameters
    ----------
    costs : array of shape (n, M)
        Cost of each class for each point.
    apart : array of shape (n_apart, 2)
        Pairs that cannot share a class.
    soft : array of shape (n_soft, 2)
        Pairs that should share a class, or should not.
    prices : array of shape (n_soft,)
        Price of a pair that should share a class and does not; minus the price of one that should not and does.
    time_limit : float
        Seconds.

    Returns
    -------
    (labels, optimal) or None
        Classes, and whether they are proven to be the cheapest; None if none were found.

    Examples
    --------
    >>> costs = np.array([[0.0, 5.0], [1.0, 3.0], [4.0, 0.0]])
    >>> no_pairs = np.empty((0, 2), dtype=np.int64)
    >>> labels, optimal = cheapest_classes(costs, np.array([(0, 1)]), no_pairs, np.empty(0), 60.0)
    >>> labels.tolist(), optimal
    ([0, 1, 1], True)
    """
    n, n_classes = costs.shape
    n_soft = len(soft)
    n_points = n * n_classes  # the variable of point i in class m is i * M + m; then one for each soft pair, if broken
    classes = np.arange(n_classes)
    rows: list[Ints] = []
    columns: list[Ints] = []
    values: list[Floats] = []
    highest: list[Floats] = []
    n_rows = 0

    def add(variables: Ints, factors: list[float], most: float) -> None:
        """Add rows whose sum of variables times factors is at most a number; ``variables`` is (n_rows, n_terms)."""
        nonlocal n_rows
        count = len(variables)
        rows.append(np.repeat(n_rows + np.arange(count), variables.shape[1]))
        columns.append(variables.ravel())
        values.append(np.tile(factors, count))
        highest.append(np.full(count, most))
        n_rows += count

    def both(pairs: Ints) -> Ints:
        """Variables of both ends of each pair in each class, shape (n_pairs * M, 2)."""
        return np.asarray((pairs[:, None, :] * n_classes + classes[None, :, None]).reshape(-1, 2))

    add(both(apart), [1.0, 1.0], 1.0)
    broken = np.repeat(n_points + np.arange(n_soft), n_classes)[:, None]
    must = np.repeat(prices > 0, n_classes)
    ends = both(soft)
    add(np.hstack([ends, broken])[~must], [1.0, 1.0, -1.0], 1.0)
    add(np.hstack([ends, broken])[must], [1.0, -1.0, -1.0], 0.0)
    lowest = np.full(n_rows + n, -np.inf)
    lowest[n_rows:] = 1.0  # one class for each point
    add(np.arange(n_points).reshape(n, n_classes), [1.0] * n_classes, 1.0)
    matrix = coo_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(n_rows, n_points + n_soft)
    ).tocsc()
    # The milp of SciPy 1.14 takes no other integers.
    matrix.indptr, matrix.indices = matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32)
    found = milp(
        np.concatenate([costs.ravel(), np.abs(prices)]),
        integrality=np.arange(n_points + n_soft) < n_points,
        bounds=Bounds(0.0, 1.0),
        constraints=LinearConstraint(matrix, lowest, np.concatenate(highest)),
        options={"time_limit": time_limit},
    )
    if found.x is None:
        return None
    return found.x[:n_points].reshape(n, n_classes).argmax(axis=1).astype(np.int64), found.status == OPTIMAL
