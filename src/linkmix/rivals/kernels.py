"""The similarity of the kernel methods, exp(-d^2 / (2 sigma^2)): built once, in blocks, or by landmarks."""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.random import RandomState
from scipy.linalg import eigh

from linkmix.basics.arrays import Array, Floats, Ints

Precision = Literal["float64", "float32"]

BLOCK_ENTRIES = 1 << 20  # entries of one block of similarities: 8 MB, so that exp works in the cache

# No similarity is smaller, so that an outlier whose similarities underflow still has a degree to divide by.
SMALLEST = 1e-30


def mean_squared_distance(X: Floats) -> float:
    """Mean of the squared distances of two different points, in O(n d) time.

    The sum over all pairs of |x_i - x_j|^2 is 2 n times the sum of |x_i - mean|^2, so no pair is looked at.

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
    """Points such that the similarity is exp(-d^2), centred so that rounding is that of the spread.

    Points that are all equal are left where they are, so that their similarities are one.
    """
    variance = mean_squared_distance(X)
    scaled = (X - X.mean(axis=0)) / (np.sqrt(2.0 * variance) if variance > 0 else 1.0)
    return np.ascontiguousarray(scaled, dtype=precision)


def similarities(left: Array, right: Array, out: Array | None = None) -> Array:
    """exp(-d^2) between two sets of scaled points, in place of `out` if it is given."""
    if out is None:
        out = np.empty((len(left), len(right)), dtype=left.dtype)
    np.matmul(left, right.T, out=out)
    out *= 2.0
    out -= np.einsum("nd,nd->n", left, left)[:, None]
    out -= np.einsum("nd,nd->n", right, right)
    np.minimum(out, 0.0, out=out)  # rounding must not make a point more similar than to itself
    np.exp(out, out=out)
    return np.maximum(out, SMALLEST, out=out)


def rbf_similarity(X: Floats, *, diagonal: float = 1.0, precision: Precision = "float64") -> Array:
    """Similarity exp(-d^2 / (2 sigma^2)) of all pairs, sigma^2 the mean squared distance of two different points.

    Memory: the matrix itself, 8 n^2 bytes (200 MB at n = 5000) or 4 n^2 in single precision, and blocks of 8 MB.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The points.
    diagonal : float, default=1.0
        What stands on the diagonal: one for SSKK, zero for spectral clustering.
    precision : {"float64", "float32"}, default="float64"
        Of the result. Single precision is off by about 1e-6.

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
        # Below the diagonal only; the other half is copied, which is cheaper than exp.
        block = np.empty((rows.stop - rows.start, rows.stop), dtype=points.dtype)
        similarities(points[rows], points[: rows.stop], out=block)
        result[rows, : rows.stop] = block
        result[: rows.start, rows] = block[:, : rows.start].T
    np.fill_diagonal(result, diagonal)
    return result


class LandmarkMap(NamedTuple):
    """Nystrom features: the similarity is close to ``features @ features.T``."""

    features: Array  # (n, rank)
    landmarks: Ints  # rows of X, (n_landmarks,)


def landmark_map(X: Floats, n_landmarks: int, random: RandomState, *, precision: Precision = "float64") -> LandmarkMap:
    """Nystrom approximation of the similarity from its columns at points drawn at random.

    Memory: 8 n m bytes for m landmarks, twice that for a moment (100 MB at n = 20000 and m = 300); never n x n.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The points.
    n_landmarks : int
        Number of landmarks; at most n_samples are used.
    random : RandomState
        Draws the landmarks, without replacement.
    precision : {"float64", "float32"}, default="float64"
        Of the features.

    Returns
    -------
    LandmarkMap
        Directions of the landmarks' own similarity below 1e-10 of the largest are left out (1e-5 in single precision).

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


def row_blocks(n_rows: int, n_columns: int) -> list[slice]:
    """Slices of rows with about BLOCK_ENTRIES entries each."""
    step = max(1, BLOCK_ENTRIES // max(1, n_columns))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def check_precision(value: Any) -> None:
    """Refuse what is neither double nor single precision."""
    if value not in ("float64", "float32"):
        raise ValueError(f"precision={value!r} is not known: choose 'float64' or 'float32'")
