"""The two synthetic data sets of the paper, with the starts and the links of its figures.

The paper prints neither its points nor its starts nor its links. Those below were selected from thousands of candidates
for the toy and hundreds for the moons: they show what the paper shows, and still do so if the points move a little.
They show what four links can do, not what they do on average. Of 100 random starts of the toy with random links, 72 end
at left and right without links; four links turn 8 of these, and with 200 points none of 79. On the moons, 120 pairs of
a random start and a draw of four links have a median of 29 errors without links, 22 with one cluster per class, 7 with
two.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.datasets import make_moons
from sklearn.metrics import pairwise_distances_argmin

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.links import Links
from linkmix.mixture import LinkMixture
from linkmix.rivals import GMM, GMPR

TOY_START = (0, 38)
"""Rows of the toy that are the initial means: a point of the upper left group and one of the lower right group."""
TOY_LINKS = Links(must=[(7, 17), (21, 31)], cannot=[(3, 20), (18, 36)])
"""Must-links from left to right and cannot-links from above to below, one on each side."""
MOONS_START = (96, 57)
"""Rows of the moons that are the initial means of the classes, drawn by k-means++."""
MOONS_CLUSTERS = ((96, 74), (68, 25))
"""Rows that are the initial means of two clusters per class, drawn by k-means++ among the points nearest to each."""
MOONS_LINKS = Links(must=[(14, 46), (29, 79)], cannot=[(55, 91), (76, 86)])
"""The first two must-links and the first two cannot-links of a random draw."""

MOONS_OF_THE_PAPER = (3, 2, 0)
"""Wrong points in the paper's figure: GMM, and GM-PR with one and with two clusters per class."""
COUNTED_START, COUNTED_CLUSTERS = (8, 5), ((7, 0), (6, 12))
COUNTED_LINKS = Links(must=[(11, 13), (1, 6)], cannot=[(12, 15), (2, 7)])
"""The same for sixteen points on which the paper's counts come out; `python -m benchmarks.two_moons` found them."""


def toy() -> tuple[Floats, Ints]:
    """Four groups of ten points at the corners of a rectangle; the classes are above and below the x-axis.

    The rectangle is wider than it is high, so a mixture of two Gaussians prefers left and right to the classes.

    Returns
    -------
    X : ndarray of shape (40, 2)
        Points: upper left, upper right, lower left, lower right.
    y : ndarray of shape (40,)
        Class 0 above, class 1 below.

    Examples
    --------
    >>> X, y = toy()
    >>> bool(np.all((X[:, 1] < 0) == y))
    True
    """
    return _corners(10)


def toy_large() -> tuple[Floats, Ints]:
    """Return the toy with a hundred points at each corner.

    Returns
    -------
    X : ndarray of shape (400, 2)
        Points.
    y : ndarray of shape (400,)
        Class 0 above, class 1 below.

    Examples
    --------
    >>> toy_large()[0].shape
    (400, 2)
    """
    return _corners(100)


def _corners(n_each: int) -> tuple[Floats, Ints]:
    centres = np.array([(-1.95, 1.5), (1.95, 1.5), (-1.95, -1.5), (1.95, -1.5)])
    noise = np.random.RandomState(2).standard_normal((4 * n_each, 2))
    return np.repeat(centres, n_each, axis=0) + 0.6 * noise, np.repeat([0, 1], 2 * n_each)


def two_moons() -> tuple[Floats, Ints]:
    """Two interleaved half circles of 50 points each, with a little noise.

    Returns
    -------
    X : ndarray of shape (100, 2)
        Points.
    y : ndarray of shape (100,)
        Class 0 is the upper moon, class 1 the lower one.

    Examples
    --------
    >>> X, y = two_moons()
    >>> X.shape, np.bincount(y).tolist()
    ((100, 2), [50, 50])
    """
    X, y = make_moons(100, noise=0.06, random_state=0)
    return X, y


def start_at(
    X: Floats, class_rows: Sequence[int], cluster_rows: Sequence[Sequence[int]] | None = None
) -> dict[str, Any]:
    """The paper's start from given rows: they are the means, and the points nearest to each give its covariance.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Points.
    class_rows : sequence of int
        One row per class; each point belongs to the class of the nearest one.
    cluster_rows : sequence of sequences of int, optional
        For each class, the rows that are the means of its clusters; by default the row of the class.

    Returns
    -------
    dict
        The argument ``init`` of `LinkMixture`. All weights are equal.

    Examples
    --------
    >>> X, _ = toy()
    >>> start_at(X, TOY_START)["covariances"].shape
    (2, 1, 2, 2)
    """
    rows = np.array([[row] for row in class_rows] if cluster_rows is None else cluster_rows)
    n_classes, per_class = rows.shape
    classes = pairwise_distances_argmin(X, X[list(class_rows)])
    covariances = np.empty((n_classes, per_class, X.shape[1], X.shape[1]))
    for m in range(n_classes):
        points = X[classes == m]
        clusters = pairwise_distances_argmin(points, X[rows[m]])
        for k in range(per_class):
            covariances[m, k] = np.cov(points[clusters == k], rowvar=False, bias=True)
    return {
        "class_weights": np.full(n_classes, 1 / n_classes),
        "cluster_weights": np.full((n_classes, per_class), 1 / per_class),
        "means": X[rows],
        "covariances": covariances,
    }


def toy_fits(X: Floats) -> dict[str, LinkMixture]:
    """Fit the toy from the same start without links, with all four, with the must-links and with the cannot-links.

    Parameters
    ----------
    X : ndarray of shape (40, 2)
        The points of `toy`.

    Returns
    -------
    dict of str to fitted mixture
        ``none``, ``both``, ``must`` and ``cannot``.

    Examples
    --------
    >>> X, y = toy()
    >>> {name: count_errors(y, model.predict(X)) for name, model in toy_fits(X).items()}
    {'none': 20, 'both': 0, 'must': 0, 'cannot': 0}
    """
    start = start_at(X, TOY_START)
    return {
        "none": GMM(2, init=start).fit(X),
        "both": GMPR(2, init=start).fit(X, links=TOY_LINKS),
        "must": GMPR(2, init=start).fit(X, links=Links(must=TOY_LINKS.must)),
        "cannot": GMPR(2, init=start).fit(X, links=Links(cannot=TOY_LINKS.cannot)),
    }


def two_moons_fits(X: Floats) -> dict[str, LinkMixture]:
    """Fit the moons: without links, and with the four links and one or two clusters per class.

    Parameters
    ----------
    X : ndarray of shape (100, 2)
        The points of `two_moons`.

    Returns
    -------
    dict of str to fitted mixture
        ``none``, ``one`` and ``two``.

    Examples
    --------
    >>> X, y = two_moons()
    >>> {name: count_errors(y, model.predict(X)) for name, model in two_moons_fits(X).items()}
    {'none': 29, 'one': 15, 'two': 0}
    """
    return _moons_fits(X, MOONS_START, MOONS_CLUSTERS, MOONS_LINKS)


def counted_moons() -> tuple[Floats, Ints]:
    """Sixteen points on two moons on which the paper's counts of errors come out.

    Returns
    -------
    X : ndarray of shape (16, 2)
        Points.
    y : ndarray of shape (16,)
        Class 0 is the upper moon, class 1 the lower one.

    Examples
    --------
    >>> counted_moons()[0].shape
    (16, 2)
    """
    X, y = make_moons(16, noise=0.1, random_state=54)
    return X, y


def counted_moons_fits(X: Floats) -> dict[str, LinkMixture]:
    """Fit these sixteen points as `two_moons_fits` does.

    Examples
    --------
    >>> X, y = counted_moons()
    >>> {name: count_errors(y, model.predict(X)) for name, model in counted_moons_fits(X).items()}
    {'none': 3, 'one': 2, 'two': 0}
    """
    return _moons_fits(X, COUNTED_START, COUNTED_CLUSTERS, COUNTED_LINKS)


def _moons_fits(
    X: Floats, means: Sequence[int], clusters: Sequence[Sequence[int]], links: Links
) -> dict[str, LinkMixture]:
    start = start_at(X, means)
    return {
        "none": GMM(2, init=start).fit(X),
        "one": GMPR(2, init=start).fit(X, links=links),
        "two": GMPR(2, clusters_per_class=2, init=start_at(X, means, clusters)).fit(X, links=links),
    }


def count_errors(y: Array, labels: Array) -> int:
    """Number of misclassified points, for the better of the two ways to match the classes.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        True classes, 0 or 1.
    labels : ndarray of shape (n_samples,)
        Found classes, 0 or 1.

    Returns
    -------
    int
        At most half of the points.

    Examples
    --------
    >>> count_errors(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 1]))
    1
    """
    wrong = int(np.sum(y != labels))
    return min(wrong, len(y) - wrong)
