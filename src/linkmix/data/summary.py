"""Summary statistics of each column, computed in one pass over blocks of rows."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.data.rows import added, portion_rows

SLICE_NUMBERS = 2**17
"""Numbers that are summarised together: a megabyte, which stays in cache."""
WIDE = 2**10
"""Numbers in a row that is long enough for reductions along columns to be fast."""


@dataclass(frozen=True)
class Summary:
    """Summary statistics of each column; missing values are ignored. Summaries of two sets of rows can be added.

    Attributes
    ----------
    n_values : ndarray of shape (n_features,)
        Number of values.
    low, high, mean : ndarray of shape (n_features,)
        Smallest and largest value, NaN if there is none, and mean.
    squares : ndarray of shape (n_features,)
        Sum of the squared differences from the mean.
    """

    n_values: Ints
    low: Floats
    high: Floats
    mean: Floats
    squares: Floats

    def __add__(self, other: "Summary") -> "Summary":
        n_values = self.n_values + other.n_values
        low, high = np.fmin(self.low, other.low), np.fmax(self.high, other.high)
        share = other.n_values / np.maximum(n_values, 1)
        with np.errstate(over="ignore", invalid="ignore"):  # the fit refuses such numbers
            apart = other.mean - self.mean
            mean = np.where(low == high, low, self.mean + apart * share)
            squares = self.squares + other.squares + apart**2 * self.n_values * share
        return Summary(n_values, low, high, mean, squares)

    @property
    def spread(self) -> Floats:
        """Standard deviations; 0 where all values are the same."""
        return np.where(self.low == self.high, 0.0, np.sqrt(self.squares / np.maximum(self.n_values, 1)))

    @property
    def constant(self) -> Array:
        """Whether all known values of a column are the same."""
        return np.asarray(self.spread == 0)

    @property
    def scale(self) -> Floats:
        """What to divide a column by to give it unit variance; 1 for a constant one."""
        spread = self.spread
        return np.where(spread == 0, 1.0, spread)

    def standardise(self, X: Array) -> Floats:
        """Rows with columns of mean zero and unit variance."""
        return np.asarray((X - self.mean) / self.scale)


def summarise(X: Array) -> Summary:
    """Describe the columns of an array in one pass, slice by slice: no copy is made.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        NaN marks a missing value. It may be a memory map.

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
    size = max(1, SLICE_NUMBERS // max(1, d))
    # Portions first, so that a file that is read portion by portion gives the same digits.
    found = added(added(map(_described, _slices(portion, size))) for portion in _slices(X, portion_rows(d)))
    return found or Summary(np.zeros(d, dtype=np.int64), *np.full((2, d), np.nan), *np.zeros((2, d)))


def extent(X: Array) -> tuple[Array, Array]:
    """Smallest and largest value of each column, NaN if it has none; `X` has at least one row."""
    return _reduced(np.fmin, X), _reduced(np.fmax, X)


def _slices(X: Array, size: int) -> Iterator[Array]:
    return (np.asarray(X[first : first + size]) for first in range(0, len(X), size))


def _described(some: Array) -> Summary:
    """Describe rows that stay in cache."""
    low, high = (edge.astype(np.float64) for edge in extent(some))
    n_values = np.full(some.shape[1], len(some), dtype=np.int64)
    with np.errstate(over="ignore", invalid="ignore"):  # the fit refuses such numbers
        total = _reduced(np.add, some)
        gaps = np.isnan(total).any()
        if gaps:
            known = ~np.isnan(some)
            n_values = np.count_nonzero(known, axis=0)
            total = np.add.reduce(some, axis=0, dtype=np.float64, where=known)
        mean = np.where(low == high, low, total / np.maximum(n_values, 1))
        apart = some - mean
        apart *= apart
        if gaps:
            apart[~known] = 0.0
        return Summary(n_values, low, high, mean, _reduced(np.add, apart))


def _reduced(function: np.ufunc, some: Array) -> Array:
    """Reduce columns; several short rows together as a long one, which is several times as fast."""
    n, d = some.shape
    together = WIDE // max(1, d)
    n_wide = 0 if together < 2 or not some.flags.c_contiguous else n // together
    kind = np.float64 if function is np.add else None
    if not n_wide:
        return np.asarray(function.reduce(some, axis=0, dtype=kind))
    wide = function.reduce(some[: n_wide * together].reshape(n_wide, together * d), axis=0, dtype=kind)
    rest = [wide.reshape(together, d), some[n_wide * together :]]
    return np.asarray(function.reduce(np.concatenate(rest), axis=0, dtype=kind))
