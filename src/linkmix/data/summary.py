"""Summary statistics of each column, computed block by block."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.data.blocks import Blocks, Table

T = TypeVar("T")


@dataclass(frozen=True)
class Summary:
    """Summary statistics of each column; missing values are ignored.

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

    @property
    def constant(self) -> Array:
        """Whether all known values of a column are the same."""
        return np.asarray(self.spread == 0)

    @property
    def scale(self) -> Floats:
        """What to divide a column by to give it unit variance; 1 for a constant one."""
        return np.where(self.constant, 1.0, self.spread)

    def standardise(self, X: Array) -> Floats:
        """Rows with columns of mean zero and unit variance."""
        return np.asarray((X - self.mean) / self.scale)


def summarise(X: Array | Table) -> Summary:
    """Describe the columns of an array or a table, block by block: no copy is made.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), or Table
        NaN marks a missing value. An array may be a memory map.

    Returns
    -------
    Summary

    Examples
    --------
    >>> found = summarise(np.array([[1.0, 0.1], [3.0, 0.1], [np.nan, 0.1]]))
    >>> found.n_values.tolist(), found.mean.tolist(), found.spread.tolist()
    ([2, 3], [2.0, 0.1], [1.0, 0.0])
    """

    def each(function: Callable[[Array], T]) -> Iterable[T]:
        return X.map(function) if isinstance(X, Table) else map(function, map(np.asarray, Blocks.from_array(X)))

    d = X.shape[1]
    n_values, total, squares = np.zeros(d, dtype=np.int64), np.zeros(d), np.zeros(d)
    low, high = np.full(d, np.inf), np.full(d, -np.inf)
    for count, part, smallest, largest in each(_extent):
        n_values += count
        total += part
        low, high = np.fmin(low, smallest), np.fmax(high, largest)
    same = low == high
    mean = np.where(same, low, total / np.maximum(n_values, 1))
    with np.errstate(over="ignore"):  # the fit refuses such numbers
        for part in each(lambda block: np.nansum((block - mean) ** 2, axis=0)):
            squares += part
    return Summary(n_values, low, high, mean, np.where(same, 0.0, np.sqrt(squares / np.maximum(n_values, 1))))


def _extent(block: Array) -> tuple[Ints, Floats, Floats, Floats]:
    """Number of values, sum, smallest and largest value of each column."""
    low, high = (np.asarray(f.reduce(block, axis=0, initial=np.nan)) for f in (np.fmin, np.fmax))
    return np.count_nonzero(~np.isnan(block), axis=0), np.nansum(block, axis=0), low, high
