"""Scores of a clustering: agreement with the true classes, and with the links."""

import numpy as np
from numpy.typing import ArrayLike

from linkmix.links import Links
from linkmix.links.checks import as_links


def purity(y_true: ArrayLike, labels: ArrayLike) -> float:
    """Share of points whose true label is the most frequent one in their cluster.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    labels : array-like of shape (n_samples,)
        Found labels.

    Returns
    -------
    float
        Between the share of the largest true class and 1. It cannot fall below that share, so compare it with that.

    Examples
    --------
    >>> purity(["a", "a", "b", "b"], [0, 0, 0, 1])
    0.75
    """
    truth, found = np.asarray(y_true), np.asarray(labels)
    if truth.ndim != 1 or truth.shape != found.shape:
        raise ValueError(
            f"y_true has shape {truth.shape} and labels {found.shape}: pass two lists of one label per point"
        )
    if truth.size == 0:
        raise ValueError("y_true is empty: purity needs at least one point")
    _, truth = np.unique(truth, return_inverse=True)
    _, found = np.unique(found, return_inverse=True)
    table = np.zeros((found.max() + 1, truth.max() + 1), dtype=np.int64)
    np.add.at(table, (found, truth), 1)
    return float(table.max(axis=1).sum() / truth.size)


def links_satisfied(labels: ArrayLike, links: Links) -> float:
    """Share of the links and relations that a labelling satisfies; 1.0 if there are none.

    A relation counts once for each of its sets of rows. One with a table is satisfied by labels that have at least an
    equal share in it; its table knows classes by number, so labels must be numbers.

    The label -1 stands for no class, as in clusterings with noise: two points of that label are not in one class, which
    a cannot-link allows. A must-link allows it as well: it holds its points together, in a class or out of all.
    Relations with a row of no class are not counted.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Found labels.
    links : Links
        Links and relations between those points.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> from linkmix import Links
    >>> links_satisfied([0, 0, 1, 1], Links(must=[(0, 1), (1, 2)], cannot=[(0, 3)]))
    0.6666666666666666
    >>> links_satisfied([-1, -1, -1, 0], Links(must=[(0, 1), (2, 3)], cannot=[(0, 2), (2, 3)]))
    0.75
    >>> from linkmix import SetRelation
    >>> links_satisfied([0, 0, 1, 1], Links(relations=[SetRelation.alike([(0, 1, 2), (0, 2, 3)], exactly=2)]))
    1.0
    """
    found = np.asarray(labels)
    if found.ndim != 1:
        raise ValueError(f"labels has shape {found.shape}: pass a list of one label per point")
    links = as_links(links)
    links.check_rows(len(found))
    together = found[links.must[:, 0]] == found[links.must[:, 1]]
    no_class = "-1" if found.dtype.kind == "U" else -1
    first, second = found[links.cannot[:, 0]], found[links.cannot[:, 1]]
    apart = (first != second) | (first == no_class)
    related = []
    for relation in links.relations:
        some = found[relation.sets]
        related.append(relation.satisfied(some[(some != no_class).all(axis=1)]))
    met = np.concatenate([together, apart, *related])
    return float(met.mean()) if met.size else 1.0
