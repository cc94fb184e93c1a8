"""First guesses: labels of all points by quick methods, each of them a start for EM.

No method is best on all data, and none has to be good on its own: a guess only has to lead EM near a mixture that meets
the links. To add one, write a function and add it to `LABELINGS`.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import RandomState
from sklearn.cluster import AgglomerativeClustering, KMeans

from linkmix.basics.arrays import Floats, Ints
from linkmix.links import Links
from linkmix.rivals import E2CP, MPCKMeans, PCKMeans

WITHOUT = ", no links"
"""Ends the name of a guess that does not use the links."""
Guess = Callable[[Floats, Links, int, RandomState], Ints]
"""Labels points without gaps, given links, a number of classes and a source of randomness."""


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
    """

    guess: Guess
    distances: str
    at_most: float = np.inf


def kmeans(Z: Floats, links: Links, n_classes: int, random: RandomState) -> Ints:
    """Group points by k-means, ignoring links."""
    return np.asarray(KMeans(n_classes, n_init=4, random_state=random).fit(Z).labels_, dtype=np.int64)


def ward(Z: Floats, links: Links, n_classes: int, random: RandomState) -> Ints:
    """Group points by Ward's method, ignoring links."""
    return np.asarray(AgglomerativeClustering(n_classes).fit(Z).labels_, dtype=np.int64)


def pck_means(Z: Floats, links: Links, n_classes: int, random: RandomState) -> Ints:
    """Group points by k-means with a penalty for broken links."""
    return PCKMeans(n_classes, random_state=random).fit(Z, links=links).labels_


def mpck_means(Z: Floats, links: Links, n_classes: int, random: RandomState) -> Ints:
    """Group points by k-means with a penalty for broken links and learned column weights."""
    return MPCKMeans(n_classes, random_state=random).fit(Z, links=links).labels_


def spread_links(Z: Floats, links: Links, n_classes: int, random: RandomState) -> Ints:
    """Group points by spectral clustering, after propagating the links to all pairs of points."""
    return E2CP(n_classes, random_state=random).fit(Z, links=links).labels_


def spread_links_sparsely(Z: Floats, links: Links, n_classes: int, random: RandomState) -> Ints:
    """Group points by spectral clustering, after propagating the links to pairs of neighbours."""
    return E2CP(n_classes, graph="sparse", random_state=random).fit(Z, links=links).labels_


LABELINGS: Mapping[str, Labeling] = {
    "k-means": Labeling(kmeans, "columns"),
    "k-means, one scale": Labeling(kmeans, "whole"),
    "PCK-means": Labeling(pck_means, "columns"),
    "PCK-means, one scale": Labeling(pck_means, "whole"),
    "PCK-means, scaled by links": Labeling(pck_means, "links"),
    "MPCK-means": Labeling(mpck_means, "columns"),
    "MPCK-means, one scale": Labeling(mpck_means, "whole"),
    "E2CP": Labeling(spread_links, "columns", 2000),
    "E2CP, one scale": Labeling(spread_links, "whole", 2000),
    "E2CP, sparse": Labeling(spread_links_sparsely, "columns"),
    "E2CP, sparse, one scale": Labeling(spread_links_sparsely, "whole"),
    "Ward": Labeling(ward, "columns", 5000),
    "Ward, one scale": Labeling(ward, "whole", 5000),
}
"""All first guesses by name."""


def first_guesses(
    Z: Floats, X: Floats, links: Links, n_classes: int, names: tuple[str, ...], random: RandomState
) -> Iterator[tuple[str, Ints]]:
    """Labels by each method that can handle this number of points.

    Most methods trust every link. If links may be wrong, each method also makes a guess without links.

    Parameters
    ----------
    Z : ndarray of shape (n_samples, n_features)
        Points without gaps, columns scaled.
    X : ndarray of shape (n_samples, n_features)
        The same points, not scaled.
    links : Links
        Links between them.
    n_classes : int
        Number of classes.
    names : tuple of str
        Names from `LABELINGS`.
    random : RandomState
        Source of randomness.

    Yields
    ------
    name : str
    labels : ndarray of shape (n_samples,)
    """
    views: dict[str, Floats] = dict(zip(("columns", "whole"), distinct([Z, X]), strict=False))
    unsure = any(c is not None and np.any(c < 1) for c in (links.must_confidence, links.cannot_confidence))
    for name in names:
        labeling = LABELINGS[name]
        if labeling.distances == "links":
            views.setdefault("links", by_links(Z, links))
        if len(Z) > labeling.at_most or labeling.distances not in views:
            continue
        for said in (links, Links()) if unsure else (links,):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a guess may stop early
                labels = labeling.guess(views[labeling.distances], said, n_classes, random)
            yield (name if said is links else f"{name}{WITHOUT}"), labels


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


def one_scale(Z: Floats) -> Floats:
    """Centred points, with columns of unit variance on average."""
    centred = Z - Z.mean(axis=0)
    size = np.sqrt(np.mean(centred**2))
    return np.asarray(centred / size if size > 0 else centred)


def distinct(views: Sequence[Floats]) -> list[Floats]:
    """Views of the same points, each on one scale, without those that repeat an earlier one.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 1.0]])
    >>> len(distinct([Z, 3 * Z + 1, Z**2]))
    2
    """
    kept: list[Floats] = []
    for view in map(one_scale, views):
        if not any(np.allclose(view, other, rtol=0, atol=1e-2) for other in kept):
            kept.append(view)
    return kept


def in_order(labels: Ints) -> Ints:
    """The same groups, numbered in the order in which they appear."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[inverse], dtype=np.int64)
