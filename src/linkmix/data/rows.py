"""Rows in memory, and the portions over which sums are taken."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from linkmix.basics.arrays import Array, Floats, Ints, has_gaps

PORTION_NUMBERS = 2**22
"""Numbers in one portion of rows, the most that is read at once: 32 megabytes.

Sums over portions are added in order, also for points in memory, so no digit depends on where points come from.
"""

Addable = TypeVar("Addable", bound=Any)
"""Anything that can be added."""


@dataclass(frozen=True)
class Rows:
    """Rows in memory, how often each counts, and their known class numbers, -1 where not known."""

    X: Array
    weights: Floats | None = None
    known: Ints | None = None

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, rows: slice | Array) -> "Rows":
        weights, known = self.weights, self.known
        return Rows(self.X[rows], None if weights is None else weights[rows], None if known is None else known[rows])

    @cached_property
    def complete(self) -> bool:
        """Whether no value is missing."""
        return self.X.dtype.kind == "f" and not has_gaps(self.X)

    def portions(self) -> "Iterator[Rows]":
        """Slices that are summed over one after another."""
        size = portion_rows(self.X.shape[1])
        return (self[first : first + size] for first in range(0, len(self), size))


def portion_rows(n_features: int) -> int:
    """Rows in one portion."""
    return max(1, PORTION_NUMBERS // max(1, n_features))


class FreeRows(ABC):
    """Rows outside memory, to be summed over: read from a file in each step, or on the workers of a cluster."""

    @abstractmethod
    def total(self, function: Callable[[Rows], Addable]) -> Addable | None:
        """Sum of ``function(portion)`` over all portions of the rows; None if there are no rows."""


def added(sums: Iterable[Addable]) -> Addable | None:
    """Add sums in order; None if there are none."""
    total = None
    for some in sums:
        total = some if total is None else total + some
    return total


def by_blocks(function: Callable[[Array], Array], X: Array, size: int, out: Array) -> Array:
    """Fill ``out`` with the result of a function of rows, some rows at a time."""
    for first in range(0, len(X), size):
        out[first : first + size] = function(X[first : first + size])
    return out


def without(rows: Rows, left_out: Ints) -> Rows:
    """All rows except some, given by their sorted numbers."""
    if not len(left_out):
        return rows
    weights, known = rows.weights, rows.known
    return Rows(
        _between(rows.X, left_out),
        None if weights is None else _between(weights, left_out),
        None if known is None else _between(known, left_out),
    )


def _between(array: Array, left_out: Ints) -> Array:
    """What is left, joined from slices: much faster than picking row by row if few rows are left out."""
    edges = zip([0, *(left_out + 1).tolist()], [*left_out.tolist(), len(array)], strict=True)
    return np.concatenate([array[first:stop] for first, stop in edges])


def joined(parts: list[Rows]) -> Rows:
    """Concatenate rows."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    return Rows(
        np.concatenate([part.X for part in parts]),
        None if first.weights is None else np.concatenate([_given(part.weights) for part in parts]),
        None if first.known is None else np.concatenate([_given(part.known) for part in parts]),
    )


def _given(array: Array | None) -> Array:
    assert array is not None
    return array
