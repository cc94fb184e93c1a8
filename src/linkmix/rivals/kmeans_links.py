"""What the k-means methods with links share: seeds, weighted links, centres, and the assignment of classes."""

import warnings
from abc import abstractmethod
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from linkmix import native
from linkmix.basics.arrays import Floats, Ints
from linkmix.basics.checks import Constraints, at_least
from linkmix.links import Links
from linkmix.rivals.base import Rival

SMALLEST_GAIN = 1e-10
"""A smaller relative decrease of the objective counts as none."""


class CentreRival(Rival):
    """A clusterer with one centre per class, which assigns new points to the nearest centre."""

    init: ArrayLike | None
    max_iter: int
    cluster_centers_: Floats

    def predict(self, X: ArrayLike) -> Ints:
        """Class of the nearest centre; links are not used.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points, which need not be those of the fit.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class numbers.
        """
        check_is_fitted(self)
        points: Floats = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(self._distances(points).argmin(axis=1))

    def _distances(self, points: Floats) -> Floats:
        """Distance of points to each centre, in any monotone form: shape (n, M)."""
        return squared_distances(points, self.cluster_centers_)

    def _given_centres(self, n_features: int) -> Floats | None:
        """Return `init`, validated; None if it is not given."""
        if self.init is None:
            return None
        try:
            centres: Floats = check_array(self.init, dtype=np.float64, copy=True, input_name="init")
        except (TypeError, ValueError) as error:
            raise ValueError(f"init must be a table of centres with one row per class: {error}") from None
        if centres.shape != (self.n_classes, n_features):
            raise ValueError(
                f"init has shape {centres.shape}: give one centre per class, shape {(self.n_classes, n_features)}"
            )
        return centres

    def _warn_unless(self, converged: bool) -> None:
        if not converged:
            warnings.warn(
                f"points still changed their class after max_iter={self.max_iter} steps: raise max_iter",
                ConvergenceWarning,
                stacklevel=4,  # the line that calls fit
            )


class WeightedLinks(NamedTuple):
    """Links as adjacency lists: the edges of row i are ``begin[i]`` to ``begin[i + 1]``; each link is in two lists."""

    begin: Ints  # (n + 1,)
    other: Ints  # (2 n_links,): the row at the other end
    link: Ints  # (2 n_links,): number of the link, to look up its penalty
    pairs: Ints  # (n_links, 2)
    is_must: np.typing.NDArray[np.bool_]  # (n_links,)
    weights: Floats  # (n_links,): penalty for breaking the link, apart from distances

    @property
    def linked(self) -> Ints:
        """Rows with a link."""
        return np.flatnonzero(np.diff(self.begin))

    def broken(self, labels: Ints) -> np.typing.NDArray[np.bool_]:
        """Return a mask of the links that the labels break."""
        same = labels[self.pairs[:, 0]] == labels[self.pairs[:, 1]]
        return np.asarray(same != self.is_must)


class PenaltyRival(CentreRival):
    """k-means with a penalty for broken links: what PCKMeans and MPCKMeans share.

    The objective never increases: each row moves only if that lowers its cost given the others, and the centres, and
    the metric if there is one, change only if that lowers the objective.
    """

    uses_confidence: ClassVar[bool] = True
    _parameter_constraints: ClassVar[Constraints] = {**Rival._parameter_constraints, "weight": [at_least(0, Real)]}

    labels_: Ints

    def __init__(
        self,
        n_classes: int = 2,
        *,
        weight: Any = 1.0,
        max_iter: int = 300,
        init: ArrayLike | None = None,
        random_state: int | RandomState | None = None,
    ) -> None:
        self.n_classes = n_classes
        self.weight = weight
        self.max_iter = max_iter
        self.init = init
        self.random_state = random_state

    def _cluster(self, X: Floats, links: Links, random: RandomState) -> Ints:
        graph = weighted_links(links, len(X), self._link_weight(X))
        given = self._given_centres(X.shape[1])
        centres = self._seeds(X, links, random) if given is None else given
        metric = self._first_metric(X.shape[1])
        labels: Ints | None = None
        trace: list[float] = []
        converged = False
        while not converged and len(trace) < self.max_iter:
            before = labels
            labels = self._chosen(X, before, centres, graph, metric, random)
            centres = class_means(X, labels, centres)
            metric = self._learned(X, labels, centres, graph, metric)
            trace.append(self._objective(X, labels, centres, graph, metric))
            converged = (
                before is not None
                and np.array_equal(labels, before)
                and trace[-2] - trace[-1] <= SMALLEST_GAIN * abs(trace[-2])
            )
        assert labels is not None  # max_iter is at least one
        self.cluster_centers_ = centres
        self.objective_trace_ = np.array(trace)
        self.objective_ = trace[-1]
        self.n_iter_ = len(trace)
        self.converged_ = converged
        self._keep(metric)
        self._warn_unless(converged)
        return labels

    def _chosen(
        self,
        X: Floats,
        labels: Ints | None,
        centres: Floats,
        links: WeightedLinks,
        metric: Floats,
        random: RandomState,
    ) -> Ints:
        """Classes after a sweep from the current labels, or from scratch if that is cheaper.

        Rows that their links hold together cannot leave a class one by one, but may do so when all are placed anew.
        """
        costs, penalties = self._costs(X, centres, metric), self._penalties(X, links, metric)
        order = random.permutation(links.linked)
        anew = choose_classes(costs, links, penalties, None, order)
        if labels is None:
            return anew
        onward = choose_classes(costs, links, penalties, labels, order)
        return anew if _total(costs, links, penalties, anew) < _total(costs, links, penalties, onward) else onward

    def _link_weight(self, X: Floats) -> float:
        """Weight of a broken link."""
        return float(self.weight)

    def _first_metric(self, n_features: int) -> Floats:
        """Metric before any learning."""
        return np.ones(n_features)

    @abstractmethod
    def _seeds(self, X: Floats, links: Links, random: RandomState) -> Floats:
        """Initial centres."""

    @abstractmethod
    def _costs(self, X: Floats, centres: Floats, metric: Floats) -> Floats:
        """Cost of each class for each row, without links: shape (n, M)."""

    @abstractmethod
    def _penalties(self, X: Floats, links: WeightedLinks, metric: Floats) -> Floats:
        """Penalty for breaking each link: shape (n_links,), or (n_links, M) as in `choose_classes`."""

    def _learned(self, X: Floats, labels: Ints, centres: Floats, links: WeightedLinks, metric: Floats) -> Floats:
        """Metric after one learning step."""
        return metric

    def _keep(self, metric: Floats) -> None:
        """Set the fitted attributes that depend on the metric."""

    def _objective(self, X: Floats, labels: Ints, centres: Floats, links: WeightedLinks, metric: Floats) -> float:
        """Objective of the labels."""
        return _total(self._costs(X, centres, metric), links, self._penalties(X, links, metric), labels)


def _total(costs: Floats, links: WeightedLinks, penalties: Floats, labels: Ints) -> float:
    """Cost of the rows in their classes plus the penalties of the links that they break."""
    broken = links.broken(labels)
    paid = penalties[broken]
    if paid.ndim == 2:
        paid = paid[np.arange(len(paid))[:, None], labels[links.pairs[broken]]].mean(axis=1)
    return float(costs[np.arange(len(labels)), labels].sum() + paid.sum())


def weighted_links(links: Links, n_rows: int, weight: float) -> WeightedLinks:
    """The closure of the certain links, and the uncertain links as given, weighted by their confidence.

    The published methods use the closure of the links. Nothing certain follows from uncertain links.
    """
    pairs, is_must, weights = [], [], []
    certain: dict[str, Ints] = {}
    for kind, stated, confidence in (
        ("must", links.must, links.must_confidence),
        ("cannot", links.cannot, links.cannot_confidence),
    ):
        known = np.ones(len(stated)) if confidence is None else confidence
        certain[kind] = stated[known == 1]
        pairs.append(stated[known < 1])
        is_must.append(np.full(len(pairs[-1]), kind == "must"))
        weights.append(weight * known[known < 1])
    closed = Links(**certain).closure()
    pairs += [closed.must, closed.cannot]
    is_must += [np.ones(closed.n_must, dtype=bool), np.zeros(closed.n_cannot, dtype=bool)]
    weights.append(np.full(closed.n_must + closed.n_cannot, weight))

    ends = np.concatenate(pairs)  # (n_links, 2)
    both_ways = np.concatenate([ends, ends[:, ::-1]])
    order = np.argsort(both_ways[:, 0], kind="stable")
    begin = np.searchsorted(both_ways[order, 0], np.arange(n_rows + 1)).astype(np.int64)
    return WeightedLinks(
        begin, both_ways[order, 1], order % len(ends), ends, np.concatenate(is_must), np.concatenate(weights)
    )


def squared_distances(X: Floats, centres: Floats, feature_weights: Floats | None = None) -> Floats:
    """Squared distances of points to centres, shape (n, M), from differences to avoid cancellation."""
    weights = np.ones(X.shape[1]) if feature_weights is None else feature_weights
    distances = np.empty((len(X), len(centres)))
    for m, centre in enumerate(centres):
        distances[:, m] = (X - centre) ** 2 @ weights
    return distances


def class_means(X: Floats, labels: Ints, centres: Floats) -> Floats:
    """Mean of the points of each class; an empty class keeps its centre."""
    sizes = np.bincount(labels, minlength=len(centres))
    members = (labels == np.arange(len(centres))[:, None]).astype(np.float64)  # (M, n)
    # Centre the points first: sums far from the origin lose digits.
    middle = X.mean(axis=0)
    means = middle + (members @ (X - middle)) / np.maximum(sizes, 1)[:, None]
    return np.asarray(np.where(sizes[:, None] > 0, means, centres))


def choose_classes(costs: Floats, links: WeightedLinks, penalties: Floats, labels: Ints | None, order: Ints) -> Ints:
    """One sweep of iterated conditional modes: each row takes the cheapest class given the classes of the others.

    Parameters
    ----------
    costs : array of shape (n, M)
        Cost of each class for each row, without links.
    links : WeightedLinks
        The links.
    penalties : array of shape (n_links,) or (n_links, M)
        Penalty for breaking each link. If it depends on the class, the mean over the classes of the two rows.
    labels : array of shape (n,), or None
        Current classes. If None, rows are placed one after the other, and a link counts once its first row is placed.
    order : array of int
        The linked rows in the order of the sweep. The order of the other rows does not matter.
    """
    n, n_classes = costs.shape
    cheapest: Ints = costs.argmin(axis=1)
    nowhere = n_classes
    if labels is None:
        found: Ints = cheapest
        found[links.linked] = nowhere
    else:
        rows = np.arange(n)
        # Move only if the cost falls: otherwise ties could cycle forever.
        found = np.where(costs[rows, cheapest] < costs[rows, labels], cheapest, labels)
        found[links.linked] = labels[links.linked]
    if penalties.ndim == 2:
        return _sweep_by_class(costs, links, penalties, order, found)
    # A broken must-link costs the same in all classes but one, which is equivalent to a reward in that one.
    rewards = np.where(links.is_must, penalties, -penalties)[links.link]  # (2 n_links,)
    if native.active():
        native.sweep(costs, links.begin, links.other, rewards, order, found)
        return found
    # Most rows have few links: plain numbers are quicker than arrays. Only linked rows are looked up.
    others, begin, gains = links.other.tolist(), links.begin.tolist(), rewards.tolist()
    now = dict(zip(order.tolist(), found[order].tolist(), strict=True))
    for i, total in zip(order.tolist(), costs[order].tolist(), strict=True):
        total.append(0.0)  # of links to rows that are nowhere yet
        for edge in range(begin[i], begin[i + 1]):
            total[now[others[edge]]] -= gains[edge]
        total.pop()
        best = min(total)
        if now[i] == nowhere or best < total[now[i]]:
            now[i] = total.index(best)
    found[order] = [now[i] for i in order.tolist()]
    return found


def _sweep_by_class(costs: Floats, links: WeightedLinks, penalties: Floats, order: Ints, found: Ints) -> Ints:
    """The sweep of `choose_classes` if penalties depend on the class; ``found`` is M for rows that are nowhere yet."""
    n_classes = costs.shape[1]
    for i in order.tolist():
        edges = slice(links.begin[i], links.begin[i + 1])
        there = found[links.other[edges]]
        placed = there < n_classes
        link, there = links.link[edges][placed], there[placed]
        must, own = links.is_must[link], penalties[link]  # (n_edges,), (n_edges, M)
        at_the_other = own[np.arange(len(link)), there]
        # A broken must-link costs half a penalty of either class; that of the other row's class is the same for all
        # classes but its own, in which nothing is paid.
        total = costs[i] + 0.5 * own[must].sum(axis=0) + 0.5 * at_the_other[must].sum()
        np.subtract.at(total, there[must], at_the_other[must])
        np.add.at(total, there[~must], at_the_other[~must])
        best = int(total.argmin())
        if found[i] == n_classes or total[best] < total[found[i]]:
            found[i] = best
    return found


def linked_seeds(X: Floats, links: Links, n_classes: int, random: RandomState, *, farthest: bool) -> Floats:
    """Initial centres: means of chunklets, then a point cannot-linked to all of these, then k-means++ draws.

    Parameters
    ----------
    X : array of shape (n, d)
        The points.
    links : Links
        The links; only certain ones count.
    n_classes : int
        Number of centres.
    random : RandomState
        Breaks ties, and draws for k-means++.
    farthest : bool
        If True, the next chunklet maximises its size times its distance from those before. If False, it is the largest
        one, and the farthest among equally large ones.
    """
    chunklet = links.chunklets(len(X))
    sizes = np.bincount(chunklet)
    groups = np.flatnonzero(sizes > 1)
    centres = np.array([X[chunklet == group].mean(axis=0) for group in groups]).reshape(-1, X.shape[1])
    chosen: list[int] = []
    distance = np.full(len(groups), np.inf)
    while len(chosen) < min(n_classes, len(groups)):
        size = sizes[groups].astype(np.float64)
        free = ~np.isin(np.arange(len(groups)), chosen)
        if chosen and farthest:
            score = np.where(free, size * distance, -1.0)
        else:
            largest = free & (size == size[free].max())
            score = np.where(largest, distance, -1.0)
        chosen.append(int(random.choice(np.flatnonzero(score == score.max()))))
        distance = np.minimum(distance, np.sqrt(((centres - centres[chosen[-1]]) ** 2).sum(axis=1)))
    seeds = centres[chosen]
    if 0 < len(chosen) < n_classes:
        apart = chunklet[links.cannot]  # (n_cannot, 2)
        apart = np.concatenate([apart, apart[:, ::-1]])
        known = np.unique(apart[np.isin(apart[:, 1], groups[chosen])], axis=0)
        candidates, counts = np.unique(known[:, 0], return_counts=True)
        different = candidates[counts == len(chosen)]
        if len(different):
            seeds = np.concatenate([seeds, X[chunklet == random.choice(different)].mean(axis=0, keepdims=True)])
    return plusplus_seeds(X, n_classes, random, seeds)


def plusplus_seeds(X: Floats, n_seeds: int, random: RandomState, seeds: Floats | None = None) -> Floats:
    """Add k-means++ seeds to `seeds` until there are ``n_seeds``."""
    found = [] if seeds is None else list(seeds)
    distance = np.full(len(X), np.inf)
    for seed in found:
        distance = np.minimum(distance, ((X - seed) ** 2).sum(axis=1))
    while len(found) < n_seeds:
        chance = distance / distance.max() if found and distance.max() > 0 else np.ones(len(X))
        found.append(X[random.choice(len(X), p=chance / chance.sum())])
        distance = np.minimum(distance, ((X - found[-1]) ** 2).sum(axis=1))
    return np.array(found)
