"""The similarity of the kernel methods, exp(-d^2 / (2 sigma^2)): exact, computed in blocks, or from landmarks."""

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from numpy.random import RandomState
from scipy.linalg import eigh

from linkmix.basics.arrays import Array, Floats, Ints

Precision = Literal["float64", "float32"]

BLOCK_ENTRIES = 1 << 20  # entries of one block of similarities: 8 MB, so that exp works in the cache

# Lower bound of every similarity: an outlier whose similarities underflow still has a degree to divide by.
SMALLEST = 1e-30

FIRST_LANDMARKS, MOST_LANDMARKS = 300, 2400
LARGEST_ERROR = 0.02
"""Largest relative error that landmarks may leave."""
FEWEST_POINTS, FEWEST_POINTS_PER_FEATURE = 1000, 12
"""Features in place of all similarities pay from so many points on, and with so many points for each of them."""
ROUNDING = 1e-13
"""What features may leave of a similarity of one and still be exact."""
SMALLEST_SUM = 2.0
"""Sum of the similarities of a point, of which one is that with itself, below which that is not exact enough."""
POINTS_CHECKED = 500
"""Number of points at which the error is measured against the exact similarity."""
LARGEST_EXACT = 20_000
"""Number of points up to which the exact similarity (3.2 GB) replaces landmarks that are not accurate enough."""

T = TypeVar("T")


def mean_squared_distance(X: Floats) -> float:
    """Mean squared distance between two different points, in O(n d) time.

    The sum of |x_i - x_j|^2 over all pairs is 2 n times the sum of |x_i - mean|^2, so pairs need not be visited.

    Examples
    --------
    >>> import numpy as np
    >>> mean_squared_distance(np.array([[0.0], [1.0], [3.0]]))  # (1 + 9 + 4) / 3
    4.66666666
    """
    if len(X) < 2:
        return 0.0
    centred = X - X.mean(axis=0)
    return float(2.0 * np.einsum("nd,nd->", centred, centred) / (len(X) - 1))


def scale_points(X: Floats, precision: Precision = "float64") -> Array:
    """Scale points such that the similarity is exp(-d^2), and centre them to avoid cancellation far from the origin.

    If all points are equal they are only centred, so their similarities are one.
    """
    variance = mean_squared_distance(X)
    scaled = (X - X.mean(axis=0)) / (np.sqrt(2.0 * variance) if variance > 0 else 1.0)
    return np.ascontiguousarray(scaled, dtype=precision)


def similarities(left: Array, right: Array, out: Array | None = None) -> Array:
    """exp(-d^2) between two sets of scaled points, written into `out` if it is given."""
    if out is None:
        out = np.empty((len(left), len(right)), dtype=left.dtype)
    np.matmul(left, right.T, out=out)
    out *= 2.0
    out -= np.einsum("nd,nd->n", left, left)[:, None]
    out -= np.einsum("nd,nd->n", right, right)
    np.minimum(out, 0.0, out=out)  # rounding must not raise a similarity above one
    np.exp(out, out=out)
    return np.maximum(out, SMALLEST, out=out)


def rbf_similarity(X: Floats, *, diagonal: float = 1.0, precision: Precision = "float64") -> Array:
    """Similarity exp(-d^2 / (2 sigma^2)) of all pairs, with sigma^2 the mean squared distance of two different points.

    Memory: the matrix itself, 8 n^2 bytes (200 MB at n = 5000) or 4 n^2 in single precision, plus blocks of 8 MB.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The points.
    diagonal : float, default=1.0
        Value on the diagonal: one for SSKK, zero for spectral clustering.
    precision : {"float64", "float32"}, default="float64"
        Precision of the result. Single precision has an error of about 1e-6.

    Returns
    -------
    array of shape (n_samples, n_samples)

    Examples
    --------
    >>> import numpy as np
    >>> rbf_similarity(np.array([[0.0], [1.0], [3.0]])).round(3)
    array([[1.   , 0.898, 0.381],
           [0.898, 1.   , 0.651],
           [0.381, 0.651, 1.   ]])
    """
    points = scale_points(X, precision)
    n = len(points)
    result = np.empty((n, n), dtype=points.dtype)
    for rows in row_blocks(n, n):
        # Compute the lower triangle only and copy it to the upper one, which is cheaper than exp.
        block = np.empty((rows.stop - rows.start, rows.stop), dtype=points.dtype)
        similarities(points[rows], points[: rows.stop], out=block)
        result[rows, : rows.stop] = block
        result[: rows.start, rows] = block[:, : rows.start].T
    np.fill_diagonal(result, diagonal)
    return result


def exact_features(X: Floats) -> Floats | None:
    """Features F with F F' equal to the similarity up to rounding, or None if that takes too many.

    Points in few columns have similarities of low rank: 3860 digits in two columns have 104 features. Found by Cholesky
    factorisation with pivots, which needs only the columns of the pivots, so neither time nor memory grow with n^2.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The points.

    Returns
    -------
    array of shape (n_samples, rank), or None
        None below 1000 points too, for which the matrix itself is as quick, and with a point so far from the others
        that rounding would be larger than its similarities.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.RandomState(0).normal(size=(3000, 2))
    >>> features = exact_features(X)
    >>> bool(np.abs(features @ features.T - rbf_similarity(X)).max() < 1e-12)
    True
    """
    n = len(X)
    most = n // FEWEST_POINTS_PER_FEATURE
    if n < FEWEST_POINTS:
        return None
    points = scale_points(X)
    features = np.empty((most, n))
    missing = np.ones(n)  # of the diagonal
    for rank in range(most):
        pivot = int(missing.argmax())
        if missing[pivot] <= ROUNDING:
            found = np.ascontiguousarray(features[:rank].T)
            return found if (found @ found.sum(axis=0)).min() > SMALLEST_SUM else None
        column = similarities(points, points[pivot : pivot + 1])[:, 0]
        column -= features[:rank, pivot] @ features[:rank]
        features[rank] = column / np.sqrt(missing[pivot])
        missing -= features[rank] ** 2
        missing[pivot] = 0.0
    return None


class LandmarkMap(NamedTuple):
    """Nystrom features: the similarity is approximately ``features @ features.T``."""

    features: Array  # (n, rank)
    landmarks: Ints  # rows of X, (n_landmarks,)


def landmark_map(X: Floats, n_landmarks: int, random: RandomState, *, precision: Precision = "float64") -> LandmarkMap:
    """Nystrom approximation of the similarity from its columns at randomly drawn points.

    Memory: 8 n m bytes for m landmarks, briefly twice that (100 MB at n = 20000 and m = 300); never n x n.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The points.
    n_landmarks : int
        Number of landmarks, capped at n_samples.
    random : RandomState
        Draws the landmarks, without replacement.
    precision : {"float64", "float32"}, default="float64"
        Precision of the features.

    Returns
    -------
    LandmarkMap
        Eigenvalues of the landmarks' similarity below 1e-10 of the largest (1e-5 in single precision) are dropped.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.RandomState(0).normal(size=(50, 2))
    >>> features, _ = landmark_map(X, 40, np.random.RandomState(0))
    >>> bool(np.abs(features @ features.T - rbf_similarity(X)).max() < 1e-3)
    True
    """
    points = scale_points(X, precision)
    landmarks = np.sort(random.choice(len(points), size=min(n_landmarks, len(points)), replace=False)).astype(np.int64)
    columns = similarities(points, points[landmarks])  # (n, m)
    values, vectors = eigh(columns[landmarks].astype(np.float64))
    kept = values > values[-1] * (1e-10 if precision == "float64" else 1e-5)
    to_features = vectors[:, kept] / np.sqrt(values[kept])
    return LandmarkMap(columns @ to_features.astype(points.dtype), landmarks)


def enough_landmarks(attempt: Callable[[int], tuple[T, float]], first: int, most: int) -> tuple[T, float, int]:
    """Double the number of landmarks until the error is at most LARGEST_ERROR, or there are as many as allowed.

    Parameters
    ----------
    attempt : callable
        From a number of landmarks to a result and its error.
    first, most : int
        Number of landmarks to begin with, and the largest one.

    Returns
    -------
    result, error, n_landmarks
        The last attempt.

    Examples
    --------
    >>> enough_landmarks(lambda n: (f"with {n}", 5 / n), 30, 1000)
    ('with 480', 0.0104, 480)
    """
    n_landmarks = first
    while True:
        result, error = attempt(n_landmarks)
        if error <= LARGEST_ERROR or n_landmarks >= most:
            return result, error, n_landmarks
        n_landmarks = min(2 * n_landmarks, most)


def row_blocks(n_rows: int, n_columns: int) -> list[slice]:
    """Slices of rows with about BLOCK_ENTRIES entries each."""
    step = max(1, BLOCK_ENTRIES // max(1, n_columns))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]
