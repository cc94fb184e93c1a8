"""Projects points to two dimensions, whatever the number of columns, to draw them on a map."""

from collections.abc import Sequence

import numpy as np
from numpy.random import RandomState
from scipy.linalg import eigh

from linkmix.basics.arrays import Floats, Ints
from linkmix.data.blocks import Blocks
from linkmix.data.summary import Summary

MOST_ROWS = 10_000
"""The axes are fitted to at most this many rows, evenly spaced."""
MOST_DIRECTIONS = 200
"""With more columns, the directions that tell classes apart are looked for among this many principal components."""
LEAST_SHRINKAGE = 0.05
"""The covariance within classes is shrunk at least so far towards a multiple of the identity."""


def plane(
    X: Floats, columns: Sequence[str], summary: Summary, rows: Ints | None = None, labels: Ints | None = None
) -> tuple[Floats, list[str]]:
    """Project points to two dimensions.

    One or two columns are used as axes directly; with one, the points are spread at random over the height. With more,
    the axes are the first two principal components of the standardised columns, or with labels the two directions in
    which the classes differ most, in units of the standard deviation within classes.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        All points. A missing value (NaN) is replaced by the mean of its column.
    columns : sequence of str
        Names of the columns.
    summary : Summary
        ``summarise(X)``.
    rows : ndarray of int, optional
        Which points to project; all of them if not given.
    labels : ndarray of int, shape (n_samples,), optional
        Classes that the projection is to tell apart; -1 for no class.

    Returns
    -------
    ndarray of shape (n_rows, 2)
        Coordinates.
    list of two str
        Names of the axes; for principal components with the share of the variance that they explain.

    Examples
    --------
    >>> from linkmix.data.summary import summarise
    >>> X = np.array([[0.0, 0.0, 5.0], [1.0, 2.0, 5.0], [2.0, 4.0, 5.0]])
    >>> places, axes = plane(X, ["a", "b", "constant"], summarise(X))
    >>> places.round(2).tolist()
    [[-1.73, 0.0], [0.0, 0.0], [1.73, 0.0]]
    >>> axes
    ['first principal component (100 %)', 'second (0 %)']
    """
    n, d = X.shape
    if d <= 2:
        points = np.asarray(X if rows is None else X[rows])
        places = np.where(np.isnan(points), summary.mean, points)
        if d == 2:
            return places, list(columns)
        return np.column_stack([places, RandomState(0).uniform(-1, 1, len(places))]), [columns[0], "(spread at random)"]

    def scaled(block: Floats) -> Floats:
        return np.nan_to_num(summary.standardise(block))

    some = slice(None, None, -(-n // MOST_ROWS))
    Z, classes = scaled(np.asarray(X[some])), None if labels is None else labels[some]
    if classes is not None and len(np.unique(classes[classes >= 0])) > 1:
        directions = _discriminant(Z[classes >= 0], classes[classes >= 0])
        axes = ["direction in which the classes differ most", "second such direction"]
    else:
        directions, shares = _principal(Z)
        axes = [f"first principal component ({100 * shares[0]:.0f} %)", f"second ({100 * shares[1]:.0f} %)"]
    blocks = map(np.asarray, Blocks.from_array(X)) if rows is None else [np.asarray(X[rows])]
    return np.concatenate([scaled(block) @ directions for block in blocks]), axes


def _discriminant(Z: Floats, labels: Ints) -> Floats:
    """The two directions in which classes differ most for the spread within them, (d, 2).

    Of two classes, the second direction is that of most variance beside the first. The covariance within classes is
    shrunk the more the fewer rows there are for each column: otherwise chance would draw classes far apart.
    """
    n, d = Z.shape
    among = _principal(Z, min(MOST_DIRECTIONS, n))[0] if d > MOST_DIRECTIONS else np.eye(d)
    Y = Z @ among
    size = Y.shape[1]
    numbers, classes = np.unique(labels, return_inverse=True)
    shares = np.bincount(classes) / n
    means = np.stack([Y[classes == m].mean(axis=0) for m in range(len(numbers))])
    rest = Y - means[classes]
    within = rest.T @ rest / n
    shrinkage, level = max(LEAST_SHRINKAGE, d / (d + n)), max(float(np.trace(within)) / size, np.finfo(float).tiny)
    within = (1 - shrinkage) * within + shrinkage * level * np.eye(size)
    shifts = (means - shares @ means) * np.sqrt(shares)[:, None]
    _, vectors = eigh(shifts.T @ shifts, within, subset_by_index=(size - 2, size - 1))
    found = vectors[:, ::-1]  # uncorrelated within classes, and of unit variance
    if len(numbers) == 2:  # the second direction is arbitrary so far
        first = found[:, [0]]
        second = _principal(rest - rest @ first @ (within @ first).T)[0][:, [0]]
        second = second - first * (first.T @ within @ second)
        found = np.column_stack([first, second / np.sqrt(second.T @ within @ second)])
    found = among @ found
    return np.asarray(found * np.sign(found[np.abs(found).argmax(axis=0), [0, 1]]))


def _principal(Z: Floats, k: int = 2) -> tuple[Floats, Floats]:
    """The first principal directions of rows, (d, k), and their shares of the variance, (k,)."""
    Z = Z - Z.mean(axis=0)
    n, d = Z.shape
    is_wide = k <= n < d  # the smaller Gram matrix has the same non-zero eigenvalues
    products = Z @ Z.T if is_wide else Z.T @ Z
    values, vectors = eigh(products, subset_by_index=(len(products) - k, len(products) - 1))
    values, vectors = values[::-1], vectors[:, ::-1]
    total = float(np.trace(products))
    if is_wide:
        exists = values > 1e-12 * total
        vectors = np.where(exists, Z.T @ vectors / np.sqrt(np.where(exists, values, 1.0)), 0.0)
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(k)])  # so that the same points give the same map
    return vectors * signs, np.maximum(values, 0.0) / max(total, np.finfo(float).tiny)
