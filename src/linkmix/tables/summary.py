"""What is in each column, added up block by block."""

from dataclasses import dataclass

import numpy as np

from linkmix.basics.arrays import Floats, Ints
from linkmix.data.blocks import Blocks


@dataclass(frozen=True)
class Summary:
    """What is in each column, apart from values that are not known.

    Attributes
    ----------
    n_values : ndarray of shape (n_features,)
        Number of values.
    low, high, mean, spread : ndarray of shape (n_features,)
        Smallest and largest value, mean and standard deviation; the latter is 0 where all values are the same.
    """

    n_values: Ints
    low: Floats
    high: Floats
    mean: Floats
    spread: Floats


def summarise(X: Floats) -> Summary:
    """Describe the columns of an array, which may be a memory map: no copy of it is made.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        NaN stands for a value that is not known; each column has some that are.

    Returns
    -------
    Summary

    Examples
    --------
    >>> found = summarise(np.array([[1.0, 0.1], [3.0, 0.1], [np.nan, 0.1]]))
    >>> found.n_values.tolist(), found.mean.tolist(), found.spread.tolist()
    ([2, 3], [2.0, 0.1], [1.0, 0.0])
    """
    d = X.shape[1]
    n_values, total, squares = np.zeros(d, dtype=np.int64), np.zeros(d), np.zeros(d)
    low, high = np.full(d, np.inf), np.full(d, -np.inf)
    for block in map(np.asarray, Blocks.from_array(X)):
        n_values += np.count_nonzero(~np.isnan(block), axis=0)
        total += np.nansum(block, axis=0)
        low, high = np.fmin(low, np.fmin.reduce(block, axis=0)), np.fmax(high, np.fmax.reduce(block, axis=0))
    same = low == high
    mean = np.where(same, low, total / n_values)
    with np.errstate(over="ignore"):  # the fit refuses such numbers
        for block in map(np.asarray, Blocks.from_array(X)):
            squares += np.nansum((block - mean) ** 2, axis=0)
    return Summary(n_values, low, high, mean, np.where(same, 0.0, np.sqrt(squares / n_values)))
