"""Columns brought to unit variance, of points in memory or read block by block."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from linkmix.arrays import Array, Floats, Ints
from linkmix.blocks import Blocks, Table, check_size

T = TypeVar("T")


@dataclass(frozen=True)
class Scaling:
    """What is subtracted from each column, and what it is divided by; a scale of 0 marks a column left out."""

    center: Floats
    scale: Floats

    @property
    def spread(self) -> Floats:
        """Standard deviations of the columns that are kept."""
        return self.scale[self.scale > 0]

    def __call__(self, X: Array) -> Floats:
        """Rows of scaled columns."""
        used = self.scale > 0
        return np.asarray((X[:, used] - self.center[used]) / self.spread)


class Rows:
    """Scaled rows of an array, or of a table that is read block by block.

    Parameters
    ----------
    points : ndarray or Table
        Checked points.
    blocks : Blocks, optional
        Where the table comes from.
    """

    def __init__(self, points: Floats | Table, blocks: Blocks | None) -> None:
        self.points, self.blocks = points, blocks
        self.scaling = _scaling(points)

    def __len__(self) -> int:
        return len(self.points)

    def take(self, rows: Ints) -> Floats:
        """Some rows, by their sorted numbers."""
        if len(rows) == len(self) and not isinstance(self.points, Table):
            return self.scaling(self.points)
        return self.scaling(self.points.take(rows) if isinstance(self.points, Table) else self.points[rows])

    def all(self) -> Floats | Blocks:
        """All of them, to be fitted to."""
        if not isinstance(self.points, Table):
            return self.scaling(self.points)
        return scaled_blocks(self.blocks, self.points, self.scaling)


def scaled_blocks(blocks: Blocks | None, table: Table, scaling: Scaling) -> Blocks:
    """Blocks whose columns are scaled as they are read."""
    assert blocks is not None
    return Blocks(lambda: (scaling(table.door.numbers(block)) for block in blocks))


def _scaling(points: Floats | Table) -> Scaling:
    """Mean and standard deviation of each column; 0 for one that is constant, unless all of them are."""

    def blocks(function: Callable[[Array], T]) -> list[T]:
        return list(points.map(function)) if isinstance(points, Table) else [function(points)]

    count, total, low, high = (np.stack(each) for each in zip(*blocks(_extent), strict=True))
    n_values = count.sum(axis=0)
    if not n_values.all():
        column = int(np.flatnonzero(n_values == 0)[0])
        raise ValueError(f"column {column} of X has no value in any row: drop it")
    center = total.sum(axis=0) / n_values
    smallest, largest = np.fmin.reduce(low, axis=0), np.fmax.reduce(high, axis=0)
    scale = np.sqrt(np.sum(blocks(lambda block: np.nansum((block - center) ** 2, axis=0)), axis=0) / n_values)
    constant = (largest == smallest) | (scale == 0)
    return Scaling(center, np.where(constant, 1.0 if constant.all() else 0.0, scale))


def _extent(block: Array) -> tuple[Floats, Floats, Floats, Floats]:
    """Number of values, sum, smallest and largest of each column."""
    check_size(block)
    low, high = (np.asarray(f.reduce(block, axis=0, initial=np.nan)) for f in (np.fmin, np.fmax))
    return (~np.isnan(block)).sum(axis=0).astype(np.float64), np.nansum(block, axis=0), low, high
