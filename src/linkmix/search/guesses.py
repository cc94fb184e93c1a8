"""First guesses: labels of all points by quick methods, each of them a start for EM.

No method is best on all data, and none has to be good on its own: a guess only has to lead EM near a mixture that meets
the links. To add one, write a function and add it to `LABELINGS`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.random import RandomState

from linkmix.basics.arrays import Floats, Ints
from linkmix.data.sample import sample_around
from linkmix.links import Links
from linkmix.rivals import E2CP, MPCKMeans, PCKMeans
from linkmix.rivals.e2cp import NEIGHBOURS
from linkmix.rivals.k_means import k_means
from linkmix.search.spaces import Space, one_scale

WITHOUT = ", no links"
"""Ends the name of a guess that does not use the links."""
Guess = Callable[[Space, Links, int, RandomState], Ints]
"""Labels points without gaps, given links, a number of classes and a source of randomness."""
MOST_LINKS = 250
"""With more links, each guess uses so many of them, drawn at random; EM uses all."""
MOST_DENSE = 1000
"""With more points, E2CP with similarities of all pairs labels so many of them, the linked ones always among them; the
others take the label of the nearest."""
MOST_STEPS = 20
"""Steps of the k-means methods with links; EM goes on from there."""
N_INIT = 4
"""Runs of k-means in a guess."""
ACCURACY = 1e-10
"""Accuracy of E2CP as a guess. With many classes the leading eigenvalues are nearly equal: on COIL-20 (50 and 200
links, draws 10 to 13) 1e-3 gives .712 and .744, 1e-10 .781 and .774, in a fifth more time."""


@dataclass(frozen=True)
class Labeling:
    """A quick method, the distances it uses, and how many points it can handle.

    Attributes
    ----------
    guess : callable
        The method.
    distances : {"columns", "whole", "links"}
        "columns": each column scaled separately. "whole": one scale for all columns, which keeps distances where
        columns share a unit, such as pixels or principal components. "links": scaled so that must-linked points are
        close.
    at_most : float
        The method is left out with more points than this.
    uses_links : bool
        Whether the labels depend on the links.
    """

    guess: Guess
    distances: str
    at_most: float = np.inf
    uses_links: bool = True


def kmeans(space: Space, links: Links, n_classes: int, random: RandomState) -> Ints:
    """Group points by k-means, ignoring links."""
    return k_means(space.points, n_classes, N_INIT, random)


def ward(space: Space, links: Links, n_classes: int, random: RandomState) -> Ints:
    """Group points by Ward's method, ignoring links."""
    from sklearn.cluster import AgglomerativeClustering  # 0.2 s, so not before it is needed

    return np.asarray(AgglomerativeClustering(n_classes).fit(space.points).labels_, dtype=np.int64)


def pck_means(space: Space, links: Links, n_classes: int, random: RandomState) -> Ints:
    """Group points by k-means with a penalty for broken links."""
    method = PCKMeans(n_classes, weight="original", max_iter=MOST_STEPS, random_state=random)
    return method.fit(space.points, links=links).labels_


def mpck_means(space: Space, links: Links, n_classes: int, random: RandomState) -> Ints:
    """Group points by k-means with a penalty for broken links and learned column weights."""
    method = MPCKMeans(n_classes, metric="shared", max_iter=MOST_STEPS, random_state=random)
    return method.fit(space.points, links=links).labels_


def spread_links(space: Space, links: Links, n_classes: int, random: RandomState, *, graph: str = "dense") -> Ints:
    """Group points by spectral clustering, after propagating the links to all pairs of points, or to neighbours."""
    n = len(space.points)
    if n == 1:
        return np.zeros(1, dtype=np.int64)
    method = E2CP(n_classes, graph=graph, tol=ACCURACY)
    if graph == "sparse" or n <= MOST_DENSE:
        return method.labels_on(space.graph(NEIGHBOURS[graph]), links, random, N_INIT)
    from sklearn.metrics import pairwise_distances_argmin  # 0.1 s, so not before it is needed

    rows = sample_around(n, links.points, MOST_DENSE, random)
    some = Space(space.points[rows])
    labels = method.labels_on(some.graph(NEIGHBOURS[graph]), links.restrict(rows), random, N_INIT)
    return np.asarray(labels[pairwise_distances_argmin(space.points, some.points)])


spread_links_sparsely = partial(spread_links, graph="sparse")
LABELINGS: Mapping[str, Labeling] = {
    "k-means": Labeling(kmeans, "columns", uses_links=False),
    "k-means, one scale": Labeling(kmeans, "whole", uses_links=False),
    "PCK-means": Labeling(pck_means, "columns"),
    "PCK-means, one scale": Labeling(pck_means, "whole"),
    "PCK-means, scaled by links": Labeling(pck_means, "links"),
    "MPCK-means": Labeling(mpck_means, "columns"),
    "MPCK-means, one scale": Labeling(mpck_means, "whole"),
    "E2CP": Labeling(spread_links, "columns"),
    "E2CP, one scale": Labeling(spread_links, "whole"),
    "E2CP, sparse": Labeling(spread_links_sparsely, "columns"),
    "E2CP, sparse, one scale": Labeling(spread_links_sparsely, "whole"),
    "Ward": Labeling(ward, "columns", 5000, uses_links=False),
    "Ward, one scale": Labeling(ward, "whole", 5000, uses_links=False),
}
"""All first guesses by name."""
FirstGuess = tuple[str, Callable[[], Ints]]
"""Name of a guess, and how it is made."""


def first_guesses(
    spaces: Mapping[str, Space], links: Links, n_classes: int, names: tuple[str, ...], seed: int
) -> Iterator[FirstGuess]:
    """Guesses by each method that can handle this number of points.

    Most methods trust every link. If links may be wrong, each method that uses them also makes a guess without them.
    Each guess draws its own random numbers, so it does not matter in which order they are made. A guess may stop early,
    with a warning.

    Parameters
    ----------
    spaces : mapping of str to Space
        The points: "columns", columns scaled, and "whole", in their own units, if that makes a difference.
    links : Links
        Links between them.
    n_classes : int
        Number of classes.
    names : tuple of str
        Names from `LABELINGS`.
    seed : int
        Seed of each guess.

    Yields
    ------
    name : str
    guess : callable
        Without arguments; its result has shape (n_samples,).
    """
    links = links.without_relations()
    n_links = links.n_must + links.n_cannot
    if n_links > MOST_LINKS:
        used = np.zeros(n_links, dtype=bool)
        used[RandomState(seed).permutation(n_links)[:MOST_LINKS]] = True
        links = links.where(used[: links.n_must], used[links.n_must :])
    unsure = any(c is not None and np.any(c < 1) for c in (links.must_confidence, links.cannot_confidence))
    made = dict(spaces)
    for name in names:
        labeling = LABELINGS[name]
        if labeling.distances == "links" and "links" not in made:
            made["links"] = Space(by_links(made["columns"].points, links))
        space = made.get(labeling.distances)
        if space is None or len(space.points) > labeling.at_most:
            continue
        for said in (links, Links()) if unsure and labeling.uses_links else (links,):
            title = name if said is links else f"{name}{WITHOUT}"
            yield title, partial(labeling.guess, space, said, n_classes, RandomState(seed))


def beside_categories(names: tuple[str, ...], *, linked: bool) -> tuple[str, ...]:
    """Those of some guesses that pay on tables with categories; all of them if none does.

    Graphs of few neighbours and columns scaled by links are left out, and without links all graphs. On the nine tables
    of benchmarks.mixed_tables (draws 0 and 1, chosen from the same candidates without heavy tails) the mean adjusted
    Rand index with all guesses is .297 without links, and with 25 and 100 of them .413 and .571; with these it is
    .370, .418 and .572.

    Parameters
    ----------
    names : tuple of str
        Names from `LABELINGS`.
    linked : bool
        Whether there are links or known labels.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> beside_categories(("k-means", "E2CP", "E2CP, sparse"), linked=True)
    ('k-means', 'E2CP')
    >>> beside_categories(("k-means", "E2CP", "E2CP, sparse"), linked=False)
    ('k-means',)
    """
    graphs = ("E2CP, sparse",) if linked else ("E2CP",)
    paying = (name for name in names if LABELINGS[name].distances != "links" and not name.startswith(graphs))
    return tuple(paying) or names


def by_links(Z: Floats, links: Links) -> Floats:
    """Points whitened by the covariance within must-linked groups (RCA), shrunk towards that of all points.

    Parameters
    ----------
    Z : ndarray of shape (n_samples, n_features)
        Points.
    links : Links
        Links between them.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        Centred points, with columns of unit variance on average.

    Examples
    --------
    Must-links along the first column show that it matters little.

    >>> import numpy as np
    >>> Z = np.array([[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]])
    >>> by_links(Z, Links(must=[(0, 1), (2, 3)])).round(2).tolist()
    [[-0.82, -1.15], [0.82, -1.15], [-0.82, 1.15], [0.82, 1.15]]
    """
    n_features = Z.shape[1]
    group = links.chunklets(len(Z))
    size = np.bincount(group)
    centre = np.stack([np.bincount(group, weights=column) for column in Z.T], axis=1) / size[:, None]
    within = (Z - centre[group])[size[group] > 1]
    freedom = int((size - 1).sum())
    overall = np.atleast_2d(np.cov(Z, rowvar=False, bias=True))
    scatter = within.T @ within
    share = np.trace(scatter) / freedom / max(np.trace(overall), np.finfo(np.float64).tiny) if freedom else 1.0
    target = (scatter + (n_features + 2) * share * overall) / (freedom + n_features + 2)
    values, vectors = np.linalg.eigh(target)
    values = np.maximum(values, 1e-8 * max(float(values[-1]), np.finfo(np.float64).tiny))
    return one_scale(Z @ (vectors / np.sqrt(values)) @ vectors.T)


def in_order(labels: Ints) -> Ints:
    """The same groups, numbered in the order in which they appear."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[inverse], dtype=np.int64)
