"""Starts for EM: by k-means++, from the links, or given by the user."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import combinations, permutations
from typing import Any

import numpy as np
from numpy.random import RandomState
from scipy.optimize import linear_sum_assignment

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.densities import Gaussian
from linkmix.densities.base import Density, given_array
from linkmix.engine.values import Parameters
from linkmix.links import Links

SHARED_OWN = 0.9
"""Initial weight of a class on its own clusters, in a shared pool."""
DISTANCE_ROWS = 2**14
"""Rows whose distances to a seed are computed at once."""
LLOYD_STEPS = 10
FEW_CLASSES = 6
"""Largest number of classes of which all numberings are tried."""
TINY = 1e-9
"""Added to what relations say about labels: labels from the points alone may be impossible by a relation."""


@dataclass(frozen=True)
class Shape:
    """How many classes, how many clusters each, and whether all classes mix one pool of clusters.

    Clusters per class are one number for all classes, or one for each. Different numbers are a pool as well: each class
    mixes all clusters, with a weight of zero for those of others.
    """

    n_classes: int
    clusters_per_class: int | tuple[int, ...] = 1
    shared_clusters: bool = False

    @property
    def per_class(self) -> Ints:
        """Number of clusters of each class, or seeded by it, shape (n_classes,)."""
        return np.broadcast_to(np.asarray(self.clusters_per_class, dtype=np.int64), self.n_classes)

    @property
    def owners(self) -> Ints:
        """The class of each cluster, or that seeded it."""
        return np.repeat(np.arange(self.n_classes), self.per_class)

    @property
    def n_components(self) -> int:
        """Number of clusters of all classes together."""
        return int(self.per_class.sum())

    @property
    def uneven(self) -> bool:
        """Whether numbers of clusters are given for each class."""
        return isinstance(self.clusters_per_class, tuple)

    @property
    def pooled(self) -> bool:
        """Whether each class mixes all clusters."""
        return self.shared_clusters or self.uneven

    @property
    def layout(self) -> tuple[int, ...]:
        """Shape of arrays with an entry for each cluster."""
        return (self.n_components,) if self.uneven else (self.n_classes, self.n_components // self.n_classes)

    @property
    def cluster_weights(self) -> tuple[int, int]:
        """Shape of the cluster weights."""
        return self.n_classes, self.n_components if self.pooled else self.layout[1]


def nearest_seed(X: Array, n_groups: int, random: RandomState, sample_weight: Floats | None = None) -> Ints:
    """Assign each row to the nearest of ``n_groups`` k-means++ seeds, without Lloyd steps.

    The draw does not depend on the order of the rows, and a row of weight 2 counts as two equal rows.
    """
    return seeded(X, n_groups, random, sample_weight)[0]


def seeded(X: Array, n_groups: int, random: RandomState, sample_weight: Floats | None = None) -> tuple[Ints, Ints]:
    """Groups as in `nearest_seed`, and the row numbers of the seeds: fewer than groups if rows are equal."""
    distinct, weights = _distinct_rows(X, sample_weight)
    # The method as published, with the draws of scikit-learn's kmeans_plusplus, whose default is greedy. Its checks
    # would take longer than the seeds of a small class.
    row = distinct[random.choice(len(distinct), p=weights / weights.sum())]
    groups = np.zeros(len(X), dtype=np.int64)
    closest = _squared_distances(X, row)
    seeds = [row]
    for group in range(1, min(n_groups, len(distinct))):
        chances = weights * closest[distinct]
        drawn = np.searchsorted(np.cumsum(chances), random.uniform(size=1)[0] * chances.sum())
        seeds.append(distinct[min(drawn, len(distinct) - 1)])
        distances = _squared_distances(X, seeds[-1])
        groups[distances < closest] = group
        np.minimum(closest, distances, out=closest)
    return groups, np.array(seeds, dtype=np.int64)


def _squared_distances(X: Array, row: int) -> Floats:
    """Squared distance of all rows to one of them."""
    out = np.empty(len(X))
    seed = X[row].astype(np.float64)
    for first in range(0, len(X), DISTANCE_ROWS):
        differences = X[first : first + DISTANCE_ROWS] - seed
        np.einsum("ij,ij->i", differences, differences, out=out[first : first + DISTANCE_ROWS])
    return out


def _distinct_rows(X: Array, sample_weight: Floats | None) -> tuple[Ints, Floats]:
    """Row numbers of the distinct rows, ordered by value, and how often each counts."""
    order = np.argsort(X[:, 0], kind="stable")
    first = X[order, 0]
    equal = first[1:] == first[:-1]
    tied = np.flatnonzero(np.append(equal, False) | np.append(False, equal))  # the other columns settle their order
    among = order[tied]
    among = order[tied] = among[np.lexsort(X[among].T[::-1])]
    new = np.ones(len(X), dtype=bool)
    if len(tied):
        rows = X[among]
        new[tied[1:]] = np.any(rows[1:] != rows[:-1], axis=1)
    group = np.cumsum(new) - 1
    weights = np.bincount(group, weights=None if sample_weight is None else sample_weight[order]).astype(np.float64)
    return order[new][weights > 0], weights[weights > 0]


def from_classes(
    density: Density[Any, Any],
    X: Array,
    classes: Ints,
    shape: Shape,
    random: RandomState,
    sample_weight: Floats | None = None,
    places: Floats | None = None,
    seeds: Ints | None = None,
) -> Parameters:
    """Start from equal weights and the moments of each class, split into clusters by k-means++ seeds.

    A cluster without rows starts at a random row of its class. ``places`` are the same rows, where distances between
    rows of `X` mean nothing because some columns hold codes. With ``seeds``, the rows that the classes were drawn
    around, means are seeds, as in the paper: these, or those of the clusters if a class has several.
    """
    filled = without_gaps(X) if places is None else places
    per_class, owners = shape.per_class, shape.owners
    counts = np.ones(len(X)) if sample_weight is None else sample_weight
    first = np.cumsum(per_class) - per_class  # cluster of each class
    groups = first[classes]
    cluster_seeds = {}
    if seeds is not None:
        cluster_seeds = {int(first[m]): row for m, row in enumerate(seeds.tolist()) if per_class[m] == 1}
    for m in np.flatnonzero(per_class > 1).tolist():
        rows = np.flatnonzero((classes == m) & (counts > 0))
        if len(rows):
            clusters, drawn = seeded(filled[rows], int(per_class[m]), random, counts[rows])
            groups[rows] += clusters
            cluster_seeds |= {int(first[m]) + k: row for k, row in enumerate(rows[drawn].tolist())}
    weights = np.zeros((len(X), shape.n_components))
    weights[np.arange(len(X)), groups] = counts
    for empty in np.flatnonzero(weights.sum(axis=0) == 0):
        candidates = np.flatnonzero((classes == owners[empty]) & (counts > 0))
        if not len(candidates):
            candidates = np.flatnonzero(counts > 0)
        distinct, _ = _distinct_rows(filled[candidates], None)
        weights[candidates[random.choice(distinct)], empty] = 1.0
    components = density.start(X, weights)
    if seeds is not None:
        means = components.means.copy()
        means[list(cluster_seeds)] = filled[list(cluster_seeds.values())]
        components = replace(components, means=means)
    return Parameters(
        np.full(shape.n_classes, 1 / shape.n_classes),
        first_cluster_weights(shape),
        components,
        shared_clusters=shape.pooled,
    )


def at_seeds(
    density: Density[Any, Any], X: Array, shape: Shape, random: RandomState, sample_weight: Floats | None = None
) -> Parameters:
    """The paper's start: Gaussian means are k-means++ seeds, and the rows nearest to each give its covariance."""
    classes, seeds = seeded(without_gaps(X), shape.n_classes, random, sample_weight)
    return from_classes(density, X, classes, shape, random, sample_weight, seeds=seeds)


def first_cluster_weights(shape: Shape) -> Floats:
    """Equal shares within each class; in a shared pool, mostly on the clusters that the class seeded."""
    if not shape.pooled:
        return np.full(shape.cluster_weights, 1 / shape.cluster_weights[1])
    own = np.eye(shape.n_classes)[:, shape.owners] / shape.per_class[:, None]  # (M, C)
    if not shape.shared_clusters:
        return np.asarray(own)
    return np.asarray(SHARED_OWN * own + (1 - SHARED_OWN) / shape.n_components)


def kmeans_plusplus_classes(
    X: Array, links: Links, shape: Shape, random: RandomState, sample_weight: Floats | None = None
) -> Ints:
    """Each row gets the class of its nearest k-means++ seed. Links are not used."""
    return nearest_seed(without_gaps(X), shape.n_classes, random, sample_weight)


def link_classes(
    X: Array, links: Links, shape: Shape, random: RandomState, sample_weight: Floats | None = None
) -> Ints:
    """Seeds from linked groups, then a few steps of k-means in which groups move as one and cannot-links hold.

    Seeds are drawn among chunklets and cannot-linked points. Those known to differ from most of the seeds drawn so far
    come first; among them large and distant ones are more likely. Columns are scaled to unit variance.
    """
    filled = without_gaps(X)
    counts = np.ones(len(X)) if sample_weight is None else np.maximum(sample_weight, np.finfo(np.float64).tiny)
    mean = np.average(filled, axis=0, weights=counts)
    spread = np.sqrt(np.average((filled - mean) ** 2, axis=0, weights=counts))
    Z = (filled - mean) / np.where(spread > 0, spread, 1.0)
    chunklet = links.chunklets(len(Z))
    size: Floats = np.bincount(chunklet, weights=counts).astype(np.float64)
    centre = np.stack([np.bincount(chunklet, weights=counts * column) for column in Z.T], axis=1) / size[:, None]
    apart = np.unique(np.sort(chunklet[links.cannot], axis=1), axis=0)  # chunklets that cannot be together
    linked = np.unique(chunklet[links.points])
    neighbours: dict[int, set[int]] = {int(j): set() for j in linked}
    for a, b in apart.tolist():
        neighbours[a].add(b)
        neighbours[b].add(a)

    seeds = _seeds(centre, size, linked, neighbours, shape.n_classes, random)
    means = centre[seeds]
    labels = np.full(len(centre), -1)
    for _ in range(LLOYD_STEPS):
        before = labels
        labels = _assign(centre, size, means, linked, neighbours)
        if np.array_equal(labels, before):
            break
        for m in range(shape.n_classes):
            members = labels == m
            if members.any():
                means[m] = size[members] @ centre[members] / size[members].sum()
    return np.asarray(labels[chunklet])


def _seeds(
    centre: Floats, size: Floats, linked: Ints, neighbours: dict[int, set[int]], n_seeds: int, random: RandomState
) -> list[int]:
    """Numbers of the chunklets to start from."""
    seeds: list[int] = []
    distance = np.full(len(centre), np.inf)
    for _ in range(n_seeds):
        pool = np.array([j for j in linked if j not in seeds], dtype=np.int64)
        if len(pool):
            differs = np.array([len(neighbours[int(j)].intersection(seeds)) for j in pool])
            pool = pool[differs == differs.max()]
        else:
            pool = np.setdiff1d(np.arange(len(centre)), seeds)
        if not len(pool):  # more classes than groups of rows
            pool = np.arange(len(centre))
        chance = size[pool] * (np.minimum(distance[pool], np.finfo(np.float64).max) if seeds else 1.0)
        chance = chance / chance.max() if chance.max() > 0 else np.ones(len(pool))
        seeds.append(int(random.choice(pool, p=chance / chance.sum())))
        distance = np.minimum(distance, ((centre - centre[seeds[-1]]) ** 2).sum(axis=1))
    return seeds


def _assign(centre: Floats, size: Floats, means: Floats, linked: Ints, neighbours: dict[int, set[int]]) -> Ints:
    """Nearest mean for each chunklet, as far as the cannot-links allow.

    Chunklets with the fewest classes left choose first, and among them those with the clearest preference. With two
    classes, every link that can be met is met.
    """
    costs = ((centre[:, None, :] - means[None, :, :]) ** 2).sum(axis=2)  # (n_chunklets, M)
    labels: Ints = costs.argmin(axis=1)
    if len(means) == 1:
        return labels
    two = np.partition(costs[linked], 1, axis=1)[:, :2]
    clear = dict(zip(linked.tolist(), (size[linked] * (two[:, 1] - two[:, 0])).tolist(), strict=True))
    taken: dict[int, set[int]] = {j: set() for j in clear}
    queue = [(0, -clearness, j) for j, clearness in clear.items()]
    heapify(queue)
    chosen: set[int] = set()
    while queue:
        n_taken, _, j = heappop(queue)
        if j in chosen or -n_taken != len(taken[j]):
            continue  # an entry that a later one has replaced
        chosen.add(j)
        choices = np.argsort(costs[j], kind="stable").tolist()
        labels[j] = next((m for m in choices if m not in taken[j]), choices[0])
        for k in neighbours[j] - chosen:
            if labels[j] not in taken[k]:
                taken[k].add(int(labels[j]))
                heappush(queue, (-len(taken[k]), -clear[k], k))
    return labels


def match_labels(labels: Ints, reference: Ints, n_classes: int) -> Ints:
    """New number of each of the ``n_classes`` classes so that labels agree with the reference as often as possible.

    Entries of -1 in the reference are ignored.
    """
    known = reference >= 0
    n = max(n_classes, int(reference.max(initial=-1)) + 1)
    table = np.zeros((n, n))
    np.add.at(table, (labels[known], reference[known]), 1)
    # A class must keep a number below n_classes, whatever the reference used.
    _, place = linear_sum_assignment(-table[:n_classes, :n_classes])
    return np.asarray(place)


def kept_numbers(labels: Ints, before: Ints, n_classes: int, known: Ints | None, links: Links) -> Ints | None:
    """New number of each class so that as many rows as possible keep the number that they had ``before``.

    Classes with known labels have their numbers already. None if relations know classes by number.

    Examples
    --------
    >>> kept_numbers(np.array([1, 1, 0, 2]), np.array([0, 0, 1, 1]), 3, None, Links())
    array([1, 0, 2])
    """
    if any(relation.names_classes() for relation in links.relations):
        return None
    if known is not None:
        told = np.repeat(np.unique(known[known >= 0]), len(labels) + 1)
        labels, before = np.concatenate([labels, told]), np.concatenate([before, told])
    return match_labels(labels, before, n_classes)


def number_classes(labels: Ints, links: Links, n_classes: int, fixed: Ints | None = None) -> Ints:
    """New number of each class so that labels satisfy the relations that know classes by number as well as possible.

    All numberings are tried if there are few classes, otherwise swaps of two numbers as long as one helps. Classes in
    ``fixed`` keep their numbers.

    Examples
    --------
    >>> from linkmix import Relation
    >>> lower = Relation([(0, 1), (2, 1)], [[0, 1], [0, 0]])  # the first is of class 0, the second of class 1
    >>> number_classes(np.array([1, 0, 1]), Links(relations=[lower]), 2)
    array([1, 0])
    """
    place = np.arange(n_classes)
    relations = [relation for relation in links.relations if relation.names_classes()]
    movable = place if fixed is None else np.setdiff1d(place, fixed)
    if not relations or len(movable) < 2:
        return place
    tables = [(np.log(one.parts(n_classes).table(one.parts(n_classes).probability) + TINY), one) for one in relations]
    cells = [(table, labels[one.sets].T) for table, one in tables]

    def worth(place: Ints) -> float:
        return float(sum(table[tuple(place[at])].sum() for table, at in cells))

    def moved(order: Iterable[int]) -> Ints:
        new = place.copy()
        new[movable] = place[movable[list(order)]]
        return new

    if len(movable) <= FEW_CLASSES:
        return max(map(moved, permutations(range(len(movable)))), key=worth)
    best = worth(place)
    while True:
        swaps = []
        for a, b in combinations(range(len(movable)), 2):
            order = np.arange(len(movable))
            order[[a, b]] = b, a
            swaps.append(moved(order.tolist()))
        trial = max(swaps, key=worth)
        if worth(trial) <= best + TINY:
            return place
        place, best = trial, worth(trial)


def without_gaps(X: Array) -> Array:
    """Replace missing values by column means: good enough for the distances of a start."""
    missing = np.isnan(X)
    if not missing.any():
        return X
    return np.where(missing, np.nanmean(X, axis=0), X)


def given_weights(mapping: Mapping[str, Any], shape: Shape, n_starts: tuple[int, ...] = ()) -> tuple[Floats, Floats]:
    """Class weights and cluster weights given by the user, checked; several starts lie along the first axis."""
    class_weights = given_array(mapping, "class_weights", (*n_starts, shape.n_classes))
    cluster_weights = given_array(mapping, "cluster_weights", (*n_starts, *shape.cluster_weights))
    checked = cluster_weights
    if shape.uneven and not shape.shared_clusters:
        foreign = np.arange(shape.n_classes)[:, None] != shape.owners
        if cluster_weights[..., foreign].any():
            raise ValueError(
                "init['cluster_weights'] gives a class a share of a cluster of another: with clusters_per_class="
                f"{shape.per_class.tolist()} give 0 there, or choose shared_clusters=True"
            )
        checked = np.where(foreign, 1.0, cluster_weights)
    for name, weights, above in (
        ("class_weights", class_weights, class_weights),
        ("cluster_weights", cluster_weights, checked),
    ):
        if above.min() <= 0:
            raise ValueError(f"init[{name!r}] must be positive, got {above.min():g}: use a small number instead")
        if np.abs(weights.sum(axis=-1) - 1.0).max() > 1e-6:
            raise ValueError(
                f"init[{name!r}] must sum to one along its last axis, got {weights.sum(axis=-1)}: divide by the sum"
            )
    return class_weights, cluster_weights


def given_start(density: Density[Any, Any], mapping: Mapping[str, Any], shape: Shape, n_features: int) -> Parameters:
    """Parameters given by the user, checked."""
    class_weights, cluster_weights = given_weights(mapping, shape)
    layout = shape.layout
    components = density.given(mapping, layout, n_features)
    unknown = set(mapping) - {"class_weights", "cluster_weights", *density.attributes(components, layout)}
    if unknown:
        raise ValueError(f"init has unknown entries {sorted(unknown)}: remove them")
    return Parameters(class_weights, cluster_weights, components, shared_clusters=shape.pooled)


def given_starts(
    density: Density[Any, Any], mapping: Mapping[str, Any], shape: Shape, n_features: int, n_starts: int
) -> list[Parameters]:
    """Several starts given by the user, along the first axis of all arrays, checked."""
    for name, array in mapping.items():
        if np.ndim(array) == 0 or len(array) != n_starts:
            raise ValueError(f"init[{name!r}] does not hold {n_starts} starts: give one entry per start")
    known = {"class_weights", "cluster_weights", "means", "covariances"}
    apart = isinstance(density, Gaussian) and not density.form.shared and not density.shrinkage
    if not (apart and set(mapping) == known):  # one by one, where the components of all starts are not one array
        singles = [{name: array[i] for name, array in mapping.items()} for i in range(n_starts)]
        return [given_start(density, single, shape, n_features) for single in singles]
    class_weights, cluster_weights = given_weights(mapping, shape, (n_starts,))
    layout = (n_starts, *shape.layout)
    components = density.given(mapping, layout, n_features)
    numbers = np.arange(n_starts * shape.n_components).reshape(n_starts, -1)
    return [
        Parameters(class_weights[i], cluster_weights[i], density.take(components, own), shared_clusters=shape.pooled)
        for i, own in enumerate(numbers)
    ]
