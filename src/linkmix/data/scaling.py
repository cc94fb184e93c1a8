"""Scales columns to unit variance, in memory or block by block; optionally with long tails compressed.

Amounts, sizes and concentrations often have a few values far from all others, which stretch a Gaussian and hide what is
close together. Such a column is compressed ("calmed") by asinh, which is linear around the median and logarithmic far
from it. But a narrow class inside a wide one is best seen without this, so the search looks at the points in both ways.
"""

from dataclasses import dataclass

import numpy as np

from linkmix.basics.arrays import Array, Floats
from linkmix.data.blocks import Table, take
from linkmix.data.summary import summarise

MOST_ROWS = 10_000
"""Skewness is measured on at most this many rows, evenly spaced."""
PLAIN, CALM = "plain", "calm"
"""Names of the two ways: as it is, and with long tails compressed."""


@dataclass(frozen=True, eq=False)
class Scaling:
    """How columns are scaled: where `width` is not 0 by asinh((x - middle) / width) first, then (x - center) / scale.

    Attributes
    ----------
    center, scale : ndarray of shape (n_features,)
        A scale of 0 marks a column left out.
    middle, width : ndarray of shape (n_features,)
        A width of 0 marks a column that is not compressed.

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

    @classmethod
    def plain(cls, center: Floats, scale: Floats) -> "Scaling":
        """Scaling without compressed tails."""
        return cls(center, scale, np.zeros_like(center), np.zeros_like(center))

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

    def of(self, points: Array | Table) -> Floats | Table:
        """Points in memory, or a table, scaled."""
        return points.through(self) if isinstance(points, Table) else self(points)

    def log_slope(self, X: Array) -> Floats:
        """Log-determinant of the Jacobian at each row; only known values count."""
        used, calm = self.scale > 0, self.width > 0
        slope = -(~np.isnan(X[:, used]) @ np.log(self.scale[used]))
        if calm.any():
            far = (X[:, calm] - self.middle[calm]) / self.width[calm]
            slope -= np.nansum(np.log(self.width[calm]) + 0.5 * np.log1p(far**2), axis=1)
        return np.asarray(slope)


def scalings(points: Floats | Table, skewed: float, enough: float) -> dict[str, Scaling]:
    """The ways in which the search looks at points: plain, and with long tails compressed if enough columns have one.

    Parameters
    ----------
    points : ndarray or Table
        Checked points.
    skewed : float
        A column has a long tail if the absolute value of its skewness is above this.
    enough : float
        Long tails are compressed if at least this share of the columns has one.

    Returns
    -------
    dict of str to Scaling
    """
    found = summarise(points)
    plain = Scaling.plain(found.mean, np.ones_like(found.spread) if found.constant.all() else found.spread)
    some = np.unique(np.linspace(0, len(points) - 1, min(len(points), MOST_ROWS)).astype(np.int64))
    calm = _calmed(take(points, some), plain, skewed)
    n_long, n_used = np.count_nonzero(calm.width), np.count_nonzero(plain.scale)
    return {PLAIN: plain, CALM: calm} if n_long >= max(1, enough * n_used) else {PLAIN: plain}


def _calmed(some: Floats, plain: Scaling, skewed: float) -> Scaling:
    """The same with long tails compressed, judged by some rows."""
    far = np.where(plain.scale > 0, some - plain.center, 0.0) / np.where(plain.scale > 0, plain.scale, 1.0)
    center, scale, middle, width = (array.copy() for array in (plain.center, plain.scale, plain.middle, plain.width))
    for j in np.flatnonzero(np.abs(np.nanmean(far**3, axis=0)) > skewed):
        values = some[:, j][~np.isnan(some[:, j])]
        median = np.median(values)
        deviation = 1.4826 * np.median(np.abs(values - median))  # equals the standard deviation of a normal column
        if deviation == 0:  # most rows share one value, such as empty pixels: no tail
            continue
        middle[j], width[j] = median, deviation
        calmed = np.arcsinh((values - middle[j]) / width[j])
        center[j], scale[j] = calmed.mean(), calmed.std()
    return Scaling(center, scale, middle, width)
