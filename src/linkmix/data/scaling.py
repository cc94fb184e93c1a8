"""Columns brought to unit variance, of points in memory or read block by block; plain, or with long tails calmed.

Amounts, sizes and concentrations often have a few values far from all others, which stretch a Gaussian and hide what
is close together. Such a column is calmed by asinh, which is linear around the median and a logarithm far from it. But
a narrow class inside a wide one is best seen as it is: the search looks at the points in both ways.
"""

from dataclasses import dataclass

import numpy as np

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.data.blocks import Blocks, Table
from linkmix.data.summary import summarise

SKEWED = 1.0
"""Skewness from which on, to either side, a column has a long tail."""
ENOUGH = 0.15
"""Share of the columns with long tails from which on it is worth to calm them."""
MOST_ROWS = 10_000
"""Rows, evenly spaced, by which tails are judged."""
PLAIN, CALM = "plain", "calm"
"""Names of the two ways."""


@dataclass(frozen=True)
class Scaling:
    """How columns are scaled: where `width` is not 0 by asinh((x - middle) / width) first, then (x - center) / scale.

    Attributes
    ----------
    center, scale : ndarray of shape (n_features,)
        A scale of 0 marks a column left out.
    middle, width : ndarray of shape (n_features,)
        A width of 0 marks a column that is taken as it is.

    Examples
    --------
    >>> import numpy as np
    >>> one, zero = np.ones(1), np.zeros(1)
    >>> Scaling(zero, one, zero, one)(np.array([[0.0], [1e6]])).ravel().round(1).tolist()
    [0.0, 14.5]
    """

    center: Floats
    scale: Floats
    middle: Floats
    width: Floats

    def __call__(self, X: Array) -> Floats:
        """Rows of scaled columns."""
        used = self.scale > 0
        Z = np.array(X[:, used], dtype=np.float64)
        calm = self.width[used] > 0
        if calm.any():
            Z[:, calm] = np.arcsinh((Z[:, calm] - self.middle[used][calm]) / self.width[used][calm])
        Z -= self.center[used]
        Z /= self.scale[used]
        return Z

    def log_slope(self, X: Array) -> Floats:
        """Logarithm of the volume that a unit of volume around each row becomes; of the values that are known."""
        used, calm = self.scale > 0, self.width > 0
        slope = -(~np.isnan(X[:, used]) @ np.log(self.scale[used]))
        if calm.any():
            far = (X[:, calm] - self.middle[calm]) / self.width[calm]
            slope -= np.nansum(np.log(self.width[calm]) + 0.5 * np.log1p(far**2), axis=1)
        return np.asarray(slope)


class Rows:
    """Rows of an array, or of a table that is read block by block, and the ways to scale them.

    Parameters
    ----------
    points : ndarray or Table
        Checked points.
    blocks : Blocks, optional
        Where the table comes from.
    """

    def __init__(self, points: Floats | Table, blocks: Blocks | None) -> None:
        self.points, self.blocks = points, blocks
        some = np.unique(np.linspace(0, len(points) - 1, min(len(points), MOST_ROWS)).astype(np.int64))
        plain = _plain(points)
        calm = _calmed(self.take(some), plain)
        n_long, n_used = np.count_nonzero(calm.width), np.count_nonzero(plain.scale)
        self.scalings = {PLAIN: plain, CALM: calm} if n_long >= max(1, ENOUGH * n_used) else {PLAIN: plain}

    def __len__(self) -> int:
        return len(self.points)

    def take(self, rows: Ints) -> Floats:
        """Some rows as they are, by their sorted numbers."""
        if isinstance(self.points, Table):
            return np.asarray(self.points.take(rows))
        return self.points if len(rows) == len(self) else self.points[rows]

    def all(self, scaling: Scaling) -> Floats | Blocks:
        """All of them scaled, to be fitted to."""
        if not isinstance(self.points, Table):
            return scaling(self.points)
        return scaled_blocks(self.blocks, self.points, scaling)


def scaled_blocks(blocks: Blocks | None, table: Table, scaling: Scaling) -> Blocks:
    """Blocks whose columns are scaled as they are read."""
    assert blocks is not None
    return Blocks(lambda: (scaling(table.door.numbers(block)) for block in blocks))


def _plain(points: Floats | Table) -> Scaling:
    """Mean and standard deviation of each column; 0 for one that is constant, unless all of them are."""
    found = summarise(points)
    if not found.n_values.all():
        column = int(np.flatnonzero(found.n_values == 0)[0])
        raise ValueError(f"column {column} of X has no value in any row: drop it")
    scale = np.ones_like(found.spread) if found.constant.all() else found.spread
    return Scaling(found.mean, scale, np.zeros_like(scale), np.zeros_like(scale))


def _calmed(some: Floats, plain: Scaling) -> Scaling:
    """The same with long tails calmed, judged by some rows."""
    far = np.where(plain.scale > 0, some - plain.center, 0.0) / np.where(plain.scale > 0, plain.scale, 1.0)
    center, scale, middle, width = (array.copy() for array in (plain.center, plain.scale, plain.middle, plain.width))
    for j in np.flatnonzero(np.abs(np.nanmean(far**3, axis=0)) > SKEWED):
        values = some[:, j][~np.isnan(some[:, j])]
        median = np.median(values)
        deviation = 1.4826 * np.median(np.abs(values - median))  # for a normal one the standard deviation
        if deviation == 0:  # one value for most rows, as of empty pixels, and no tail
            continue
        middle[j], width[j] = median, deviation
        calmed = np.arcsinh((values - middle[j]) / width[j])
        center[j], scale[j] = calmed.mean(), calmed.std()
    return Scaling(center, scale, middle, width)
