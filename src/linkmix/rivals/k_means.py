"""k-means: for few points in NumPy, since scikit-learn's ``KMeans`` takes 0.2 s to import, otherwise by the latter.

Both give the same labels: random numbers are drawn and sums are added in the same order.
"""

import warnings
from typing import NamedTuple

import numpy as np
from numpy.random import RandomState
from sklearn.exceptions import ConvergenceWarning

from linkmix.basics.arrays import Floats, Ints

FEW_POINTS = 1000
"""Up to so many points, NumPy is as quick as scikit-learn."""
MOST_STEPS = 300
TOLERANCE = 1e-4
"""Squared shift of all centres, in mean variances of a column, below which a run ends."""


class Run(NamedTuple):
    """What one run comes to."""

    labels: Ints
    inertia: float


def k_means(X: Floats, n_classes: int, n_init: int, random: RandomState) -> Ints:
    """Labels of the best of several runs, each from a k-means++ start.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Points.
    n_classes : int
        Number of classes, at most that of the points.
    n_init : int
        Number of runs.
    random : RandomState
        Source of randomness.

    Returns
    -------
    ndarray of shape (n_samples,)

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [9.0], [10.0], [11.0]])
    >>> labels = k_means(X, 2, 4, RandomState(0))
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3] == labels[4])
    True
    """
    if len(X) > FEW_POINTS:
        from sklearn.cluster import KMeans

        return np.asarray(KMeans(n_classes, n_init=n_init, random_state=random).fit(X).labels_, dtype=np.int64)
    points = np.ascontiguousarray(X - X.mean(axis=0))
    lengths = squared_lengths(points)
    enough = TOLERANCE * float(np.mean(np.var(points, axis=0)))
    best: Run | None = None
    for _ in range(n_init):
        run = single_run(points, _seeds(points, lengths, n_classes, random), enough)
        if best is None or (run.inertia < best.inertia and not _same(run.labels, best.labels)):
            best = run
    assert best is not None  # n_init is at least one
    n_found = len(np.unique(best.labels))
    if n_found < n_classes:
        warnings.warn(
            f"k-means found {n_found} of {n_classes} classes: there may be copies of points",
            ConvergenceWarning,
            stacklevel=2,
        )
    return best.labels


def single_run(X: Floats, centres: Floats, enough: float) -> Run:
    """k-means from centres until no label changes, or the centres hardly move."""
    labels: Ints | None = None
    for _ in range(MOST_STEPS):
        before, labels = labels, _nearest(X, centres)
        old, centres = centres, _moved(X, labels, centres)
        if before is not None and np.array_equal(labels, before):
            break
        if float((np.sqrt(squared_lengths(centres - old)) ** 2).sum()) <= enough:
            labels = _nearest(X, centres)
            break
    else:
        labels = _nearest(X, centres)
    return Run(labels, float(np.cumsum(squared_lengths(X - centres[labels]))[-1]))


def squared_lengths(X: Floats) -> Floats:
    """Squared length of each row."""
    return np.asarray(np.einsum("ij,ij->i", X, X))


def _nearest(X: Floats, centres: Floats) -> Ints:
    """The nearest centre of each row; the squared length of the row makes no difference."""
    return np.asarray((squared_lengths(centres) - 2 * (X @ centres.T)).argmin(axis=1), dtype=np.int64)


def _moved(X: Floats, labels: Ints, centres: Floats) -> Floats:
    """The mean of each class; the centre of an empty one goes to the point that is farthest from its own centre."""
    sizes = np.bincount(labels, minlength=len(centres)).astype(np.float64)
    sums = np.stack([np.bincount(labels, column, len(centres)) for column in X.T], axis=1)
    empty = np.flatnonzero(sizes == 0)
    if len(empty):
        far = ((X - centres[labels]) ** 2).sum(axis=1)
        farthest = np.argpartition(far, -len(empty))[: -len(empty) - 1 : -1]
        if far.max() > 0:  # otherwise there are fewer different points than classes
            for m, row in zip(empty, farthest, strict=True):
                sums[labels[row]] -= X[row]
                sums[m] = X[row]
                sizes[labels[row]] -= 1
                sizes[m] = 1
    means = sums * (1 / np.maximum(sizes, 1))[:, None]
    return np.asarray(np.where(sizes[:, None] > 0, means, means[sizes.argmax()]))


def _seeds(X: Floats, lengths: Floats, n_classes: int, random: RandomState) -> Floats:
    """Rows by k-means++: each is the best of a few that are drawn by their squared distance to those before."""
    n = len(X)
    n_drawn = 2 + int(np.log(n_classes))
    seeds = [int(random.choice(n, p=np.ones(n) / n))]
    distance = _squared_distances(X, lengths, seeds)[0]
    for _ in range(1, n_classes):
        drawn = np.searchsorted(np.cumsum(distance), random.uniform(size=n_drawn) * (distance @ np.ones(n)))
        drawn = np.minimum(drawn, n - 1)
        distances = np.minimum(distance, _squared_distances(X, lengths, drawn))
        best = int((distances @ np.ones(n)).argmin())
        distance = distances[best]
        seeds.append(int(drawn[best]))
    return np.asarray(X[seeds])


def _squared_distances(X: Floats, lengths: Floats, rows: Ints | list[int]) -> Floats:
    """Squared distances of some rows to all, shape (n_rows, n)."""
    return np.maximum(-2 * (X[rows] @ X.T) + lengths[rows, None] + lengths, 0.0)


def _same(labels: Ints, others: Ints) -> bool:
    """Whether each class of the first labels lies within one class of the others."""
    first = np.zeros(labels.max() + 1, dtype=np.int64)
    first[labels[::-1]] = others[::-1]
    return bool((first[labels] == others).all())
