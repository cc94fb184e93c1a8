"""ConstrainedLinkage: agglomerative clustering that joins no cannot-linked points (Davidson and Ravi, 2005)."""

import warnings
from typing import ClassVar, Literal

import numpy as np
from numpy.random import RandomState
from scipy.spatial.distance import pdist, squareform
from sklearn.utils._param_validation import StrOptions

from linkmix.basics.arrays import Floats, Ints
from linkmix.basics.checks import Constraints
from linkmix.links import Links
from linkmix.rivals.base import Rival

LINKAGES = ("ward", "average", "complete", "single")
Linkage = Literal["ward", "average", "complete", "single"]


class ConstrainedLinkage(Rival):
    """Agglomerative clustering that starts from chunklets and never joins two that a cannot-link keeps apart.

    The two nearest groups that may be joined are joined, until `n_classes` are left. It may happen that no two groups
    may be joined while there are still more (the published method stops there); then those are joined that break the
    fewest links, with a warning. Takes O(n^2) memory and time, and has no ``predict``.

    Parameters
    ----------
    n_classes : int, default=2
        Number of classes.
    linkage : {"ward", "average", "complete", "single"}, default="ward"
        Distance of two groups: the increase of the sum of squares, or the mean, largest or smallest distance of their
        points.
    random_state : int, RandomState or None, default=None
        Not used; every rival has it.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Class of each point.
    n_broken_ : int
        Number of cannot-links that are broken.

    References
    ----------
    Davidson, Ravi (2005): Agglomerative hierarchical clustering with constraints: theoretical and empirical results.
    PKDD.

    Examples
    --------
    >>> from linkmix import Links
    >>> from linkmix.rivals import ConstrainedLinkage
    >>> X = [[0.0], [1.0], [2.0], [8.0], [9.0]]
    >>> ConstrainedLinkage(3).fit(X, links=Links(cannot=[(0, 1)])).labels_
    array([0, 1, 1, 2, 2])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **Rival._parameter_constraints,
        "linkage": [StrOptions({*LINKAGES})],
    }

    def __init__(
        self, n_classes: int = 2, *, linkage: Linkage = "ward", random_state: int | RandomState | None = None
    ) -> None:
        self.n_classes = n_classes
        self.linkage = linkage
        self.random_state = random_state

    def _cluster(self, X: Floats, links: Links, random: RandomState) -> Ints:
        chunklet = links.chunklets(len(X))
        _, group = np.unique(chunklet, return_inverse=True)
        n_groups = int(group.max()) + 1
        if n_groups < self.n_classes:
            raise ValueError(
                f"must-links leave {n_groups} groups of points, fewer than n_classes={self.n_classes}: drop links, or "
                "ask for fewer classes"
            )
        n_links = np.zeros((n_groups, n_groups))  # cannot-links between groups
        np.add.at(n_links, tuple(group[links.cannot].T), 1.0)
        n_links += n_links.T
        sizes = np.bincount(group).astype(np.float64)
        labels = agglomerate(group_distances(X, group, self.linkage), sizes, n_links, self.n_classes, self.linkage)
        found = labels[group]
        ends = found[links.cannot]
        self.n_broken_ = int((ends[:, 0] == ends[:, 1]).sum())
        if self.n_broken_:
            warnings.warn(
                f"no groups that may be joined were left before there were n_classes={self.n_classes}: "
                f"{self.n_broken_} cannot-links are broken",
                UserWarning,
                stacklevel=3,  # the line that calls fit
            )
        return np.asarray(found)


def group_distances(X: Floats, group: Ints, linkage: Linkage) -> Floats:
    """Distances of groups of rows, squared for Ward's method, with infinity on the diagonal."""
    distances = squareform(pdist(X, "sqeuclidean" if linkage == "ward" else "euclidean"))
    n_groups = int(group.max()) + 1
    if n_groups < len(X):
        members = np.zeros((n_groups, len(X)))
        members[group, np.arange(len(X))] = 1.0
        sizes = members.sum(axis=1)
        if linkage == "ward":  # twice the increase of the sum of squares, so that two rows have their squared distance
            means = (members @ X) / sizes[:, None]
            apart = squareform(pdist(means, "sqeuclidean")) if n_groups > 1 else np.zeros((1, 1))
            distances = 2 * np.multiply.outer(sizes, sizes) / np.add.outer(sizes, sizes) * apart
        elif linkage == "average":
            distances = members @ distances @ members.T / np.multiply.outer(sizes, sizes)
        else:
            order = np.argsort(group, kind="stable")
            begin = np.concatenate([[0], np.cumsum(sizes[:-1])]).astype(np.int64)
            extreme = np.maximum if linkage == "complete" else np.minimum
            rows = extreme.reduceat(distances[np.ix_(order, order)], begin, axis=0)
            distances = extreme.reduceat(rows, begin, axis=1)
    np.fill_diagonal(distances, np.inf)
    return np.asarray(distances)


def agglomerate(distances: Floats, sizes: Floats, n_links: Floats, n_classes: int, linkage: Linkage) -> Ints:
    """Join groups until there are as many as classes; classes are numbered by their first group.

    Parameters
    ----------
    distances : array of shape (n, n)
        Distances of groups, infinite on the diagonal. It is overwritten.
    sizes : array of shape (n,)
        Number of points in each group. It is overwritten.
    n_links : array of shape (n, n)
        Number of cannot-links between groups. It is overwritten.
    n_classes : int
        Number of classes.
    linkage : str
        One of `LINKAGES`.
    """
    n = len(sizes)
    parent = np.arange(n)
    alive = np.ones(n, dtype=bool)
    free = np.where(n_links > 0, np.inf, distances)  # distances of groups that may be joined
    nearest = free.argmin(axis=1)
    best = free[np.arange(n), nearest]
    for _ in range(n - n_classes):
        a = int(best.argmin())
        if np.isfinite(best[a]):
            b = int(nearest[a])
        else:  # every pair is kept apart: break the fewest links, and among these the nearest
            broken = np.where(np.isfinite(distances), n_links, np.inf)
            choices = np.where(broken == broken.min(), distances, np.inf)
            a, b = map(int, np.unravel_index(choices.argmin(), choices.shape))
        a, b = min(a, b), max(a, b)
        joined = _joined(distances, sizes, a, b, linkage)
        sizes[a] += sizes[b]
        links = n_links[a] + n_links[b]
        n_links[a] = n_links[:, a] = links
        alive[b] = False
        joined[~alive] = np.inf
        joined[a] = np.inf
        distances[a] = distances[:, a] = joined
        distances[b] = distances[:, b] = np.inf
        allowed = np.where(links > 0, np.inf, joined)
        free[a] = free[:, a] = allowed
        free[b] = free[:, b] = np.inf
        parent[parent == b] = a
        # Rows whose nearest group was one of the two look again; for the others only the joined one is new.
        again = np.flatnonzero(alive & ((nearest == a) | (nearest == b)))
        closer = alive & (allowed < best)
        nearest[closer], best[closer] = a, allowed[closer]
        again = np.union1d(again, [a])
        nearest[again] = free[again].argmin(axis=1)
        best[again] = free[again, nearest[again]]
        best[b] = np.inf
    return np.asarray(np.unique(parent, return_inverse=True)[1], dtype=np.int64)


def _joined(distances: Floats, sizes: Floats, a: int, b: int, linkage: Linkage) -> Floats:
    """Distances of all groups to groups a and b together, from those to either (Lance and Williams)."""
    if linkage == "single":
        return np.asarray(np.minimum(distances[a], distances[b]))
    with np.errstate(invalid="ignore"):  # infinite distances of groups that are gone
        if linkage == "complete":
            return np.where(np.isfinite(distances[a]), np.maximum(distances[a], distances[b]), np.inf)
        own, other = sizes[a], sizes[b]
        if linkage == "average":
            return np.asarray((own * distances[a] + other * distances[b]) / (own + other))
        total = own + other + sizes
        joined = (own + sizes) * distances[a] + (other + sizes) * distances[b] - sizes * distances[a, b]
        return np.asarray(joined / total)
