"""Projects points to two dimensions, whatever the number of columns, to draw them on a map."""

from collections.abc import Sequence

import numpy as np
from numpy.random import RandomState
from scipy.linalg import eigh

from linkmix.basics.arrays import Floats, Ints
from linkmix.data.blocks import Blocks
from linkmix.data.summary import Summary

MOST_ROWS = 10_000
"""The principal components are fitted to at most this many rows, evenly spaced."""


def plane(X: Floats, columns: Sequence[str], summary: Summary, rows: Ints | None = None) -> tuple[Floats, list[str]]:
    """Project points to two dimensions.

    One or two columns are used as axes directly; with one, the points are spread at random over the height. With more,
    the axes are the first two principal components of the standardised columns.

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

    directions, shares = _principal(scaled(np.asarray(X[:: -(-n // MOST_ROWS)])))
    blocks = map(np.asarray, Blocks.from_array(X)) if rows is None else [np.asarray(X[rows])]
    axes = [f"first principal component ({100 * shares[0]:.0f} %)", f"second ({100 * shares[1]:.0f} %)"]
    return np.concatenate([scaled(block) @ directions for block in blocks]), axes


def _principal(Z: Floats) -> tuple[Floats, Floats]:
    """The first two principal directions of rows, (d, 2), and their shares of the variance, (2,)."""
    Z = Z - Z.mean(axis=0)
    n, d = Z.shape
    is_wide = 2 <= n < d  # the smaller Gram matrix has the same non-zero eigenvalues
    products = Z @ Z.T if is_wide else Z.T @ Z
    values, vectors = eigh(products, subset_by_index=(len(products) - 2, len(products) - 1))
    values, vectors = values[::-1], vectors[:, ::-1]
    total = float(np.trace(products))
    if is_wide:
        exists = values > 1e-12 * total
        vectors = np.where(exists, Z.T @ vectors / np.sqrt(np.where(exists, values, 1.0)), 0.0)
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), [0, 1]])  # so that the same points give the same map
    return vectors * signs, np.maximum(values, 0.0) / max(total, np.finfo(float).tiny)
