"""COP-KMeans: k-means that never breaks a link."""

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike

from linkmix.basics.arrays import Floats, Ints
from linkmix.basics.checks import Constraints, at_least
from linkmix.basics.errors import InfeasibleLinks
from linkmix.links import Links
from linkmix.rivals.kmeans_links import CentreRival, class_means, plusplus_seeds, squared_distances


class COPKMeans(CentreRival):
    """k-means with links as hard constraints.

    In each step every point goes to the nearest centre at which it breaks no link with the points placed before it;
    links that follow from the given ones count too. A placed point is not moved again in that step, so the method may
    reach a point for which no class is left even though some labelling satisfies all links. Such a run is given up; if
    all `n_init` runs are, there is an error.

    Parameters
    ----------
    n_classes : int, default=2
        Number of classes.
    max_iter : int, default=300
        Maximum number of steps of each run.
    n_init : int, default=1
        Number of runs. Of those that satisfied the links, the one with the smallest sum of squared distances is kept.
        The first run visits the points in the order of the rows, the others in a random order.
    init : array-like of shape (n_classes, n_features), optional
        Initial centres of every run. By default each run draws its own by k-means++.
    random_state : int, RandomState or None, default=None
        Source of randomness.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Class of each point; no link is broken.
    cluster_centers_ : ndarray of shape (n_classes, n_features)
        Mean of each class.
    inertia_ : float
        Sum of squared distances to the centres.
    n_iter_ : int
        Number of steps of the best run.
    converged_ : bool
        Whether its last step changed no label.

    References
    ----------
    Wagstaff, Cardie, Rogers, Schroedl (2001): Constrained k-means clustering with background knowledge. ICML.

    Examples
    --------
    >>> from linkmix import Links
    >>> from linkmix.rivals.cop_kmeans import COPKMeans
    >>> X = [[0.0], [1.0], [2.0], [8.0], [9.0]]
    >>> model = COPKMeans(init=[[0.0], [9.0]]).fit(X, links=Links(must=[(2, 3)], cannot=[(0, 1)]))
    >>> model.labels_
    array([0, 1, 0, 0, 1])
    >>> COPKMeans(init=[[0.0], [9.0]]).fit(X, links=Links(cannot=[(0, 1), (1, 2), (2, 0)]))
    Traceback (most recent call last):
    linkmix.basics.errors.InfeasibleLinks: row 2 cannot go to any of the 2 classes: rows 2 and 0 ...
    """

    _parameter_constraints: ClassVar[Constraints] = {**CentreRival._parameter_constraints, "n_init": [at_least(1)]}

    labels_: Ints

    def __init__(
        self,
        n_classes: int = 2,
        *,
        max_iter: int = 300,
        n_init: int = 1,
        init: ArrayLike | None = None,
        random_state: int | RandomState | None = None,
    ) -> None:
        self.n_classes = n_classes
        self.max_iter = max_iter
        self.n_init = n_init
        self.init = init
        self.random_state = random_state

    def _cluster(self, X: Floats, links: Links, random: RandomState) -> Ints:
        given = self._given_centres(X.shape[1])
        apart = Apart.of(links, len(X))
        best: _Run | None = None
        stuck: Stuck | None = None
        for attempt in range(self.n_init):
            order = random.permutation(apart.linked) if attempt else apart.linked
            centres = plusplus_seeds(X, self.n_classes, random) if given is None else given
            try:
                run = self._run(X, centres, apart, order)
            except Stuck as error:
                stuck = stuck or error
                continue
            if best is None or run.inertia < best.inertia:
                best = run
        if best is None:
            assert stuck is not None  # n_init is at least one
            raise self._explained(stuck, links, apart)
        self.cluster_centers_ = best.centres
        self.inertia_ = best.inertia
        self.n_iter_ = best.n_iter
        self.converged_ = best.converged
        self._warn_unless(best.converged)
        return best.labels

    def _run(self, X: Floats, centres: Floats, apart: "Apart", order: Ints) -> "_Run":
        labels: Ints = np.full(len(X), -1)
        n_iter, converged = 0, False
        while not converged and n_iter < self.max_iter:
            before = labels
            labels = place(squared_distances(X, centres), apart, order)
            centres = class_means(X, labels, centres)
            n_iter += 1
            converged = np.array_equal(labels, before)
        inertia = squared_distances(X, centres)[np.arange(len(X)), labels].sum()
        return _Run(labels, centres, float(inertia), n_iter, converged)

    def _explained(self, stuck: "Stuck", links: Links, apart: "Apart") -> InfeasibleLinks:
        """Return an error that names the links that rule out each class for the row."""
        own = apart.chunklet[stuck.row]
        ends = apart.chunklet[links.cannot]  # (n_cannot, 2)
        named, words = [], []
        for m in range(self.n_classes):
            taken = [j for j in apart.neighbours[own] if stuck.classes.get(j) == m]
            concerned = np.isin(ends, [own]).any(axis=1) & np.isin(ends, taken).any(axis=1)
            pair = links.cannot[np.flatnonzero(concerned)[0]]
            pair = pair if apart.chunklet[pair[0]] == own else pair[::-1]
            named.append(pair)
            words.append(f"rows {pair[0]} and {pair[1]} cannot link (class {m})")
        # Cannot-links between chunklets make sense only together with the must-links that form the chunklets.
        concerned = np.isin(apart.chunklet[links.must[:, 0]], apart.chunklet[np.array(named)])
        through = f", through {concerned.sum()} must-links" if concerned.any() else ""
        shown = ", ".join(words[:_SHOWN]) + (f" and {len(words) - _SHOWN} more" if len(words) > _SHOWN else "")
        runs = "run" if self.n_init == 1 else "runs"
        return InfeasibleLinks(
            f"row {stuck.row} cannot go to any of the {self.n_classes} classes: {shown}{through}; "
            f"{self.n_init} {runs} ended at such a row: raise n_init to try more orders of the points, drop links, or "
            "raise n_classes",
            Links(links.must[concerned], named),
        )


_SHOWN = 3


class _Run(NamedTuple):
    labels: Ints
    centres: Floats
    inertia: float
    n_iter: int
    converged: bool


class Stuck(Exception):
    """No class is left for a row."""

    def __init__(self, row: int, classes: dict[int, int]) -> None:
        super().__init__(row)
        self.row = row
        self.classes = classes  # of the chunklets placed so far


class Apart(NamedTuple):
    """Which chunklets cannot share a class: the closure of the links, without listing all pairs of rows."""

    chunklet: Ints  # (n,)
    neighbours: dict[int, list[int]]  # of each chunklet with links
    linked: Ints  # rows with links

    @classmethod
    def of(cls, links: Links, n_rows: int) -> "Apart":
        """Find the chunklets that the links keep apart."""
        chunklet = links.chunklets(n_rows)
        linked = np.flatnonzero(np.isin(chunklet, chunklet[links.points]))
        neighbours: dict[int, list[int]] = {j: [] for j in chunklet[linked].tolist()}
        for a, b in np.unique(np.sort(chunklet[links.cannot], axis=1), axis=0).tolist():
            neighbours[a].append(b)
            neighbours[b].append(a)
        return cls(chunklet, neighbours, linked)


def place(distances: Floats, apart: Apart, order: Ints) -> Ints:
    """Nearest class of each row that breaks no link with the rows placed before it; unlinked rows are unconstrained."""
    labels: Ints = distances.argmin(axis=1)
    nearest_first = distances[order].argsort(axis=1, kind="stable").tolist()
    classes: dict[int, int] = {}
    for i, preference in zip(order.tolist(), nearest_first, strict=True):
        own = int(apart.chunklet[i])
        if own not in classes:
            taken = {classes[j] for j in apart.neighbours[own] if j in classes}
            free = next((m for m in preference if m not in taken), None)
            if free is None:
                raise Stuck(i, classes)
            classes[own] = free
        labels[i] = classes[own]
    return labels
