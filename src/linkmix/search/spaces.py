"""The points as quick methods see them: centred, on one scale, and with their nearest neighbours.

Several first guesses and the measure of structure need the neighbours of the same points, so these are found once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from linkmix.basics.arrays import Floats
from linkmix.engine.starts import without_gaps
from linkmix.rivals.e2cp import Neighbours, nearest, neighbour_graph
from linkmix.search.settings import SETTINGS


@dataclass(frozen=True, eq=False)
class Space:
    """Points without gaps.

    Attributes
    ----------
    points : ndarray of shape (n_samples, n_features)
        Centred, with columns of unit variance on average.
    n_neighbors : int
        Number of neighbours of each point that are found.

    Examples
    --------
    >>> space = Space(np.array([[0.0], [1.0], [3.0]]), 2)
    >>> space.graph(1).toarray().round(2).tolist()
    [[0.0, 0.37, 0.0], [0.37, 0.0, 0.07], [0.0, 0.07, 0.0]]
    """

    points: Floats
    n_neighbors: int = SETTINGS.neighbours

    @cached_property
    def nearest(self) -> Neighbours:
        """The nearest neighbours of each point."""
        return nearest(self.points, min(self.n_neighbors, len(self.points) - 1))

    def graph(self, n_neighbors: int) -> Any:
        """Weighted graph of so many neighbours, of those that were found."""
        distances, others = self.nearest
        return neighbour_graph(Neighbours(distances[:, :n_neighbors], others[:, :n_neighbors]))


def one_scale(Z: Floats) -> Floats:
    """Centred points, with columns of unit variance on average."""
    centred = Z - Z.mean(axis=0)
    size = np.sqrt(np.mean(centred**2))
    return np.asarray(centred / size if size > 0 else centred)


def indicators(X: Floats, levels: Sequence[int], *, even: bool = False) -> Floats:
    """Rows in which codes of categories are replaced by indicators of their levels, so that distances make sense.

    The scaling is that of factor analysis of mixed data (FAMD): an indicator z of a level with share p becomes
    (z - p) / sqrt(p), so that rare levels count more, and L levels together vary as much as L - 1 columns of numbers.
    Two levels are one column, (z - p) / sqrt(p (1 - p)). Gaps count as the mean.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Numbers, followed by a column of codes for each of `levels`. NaN is a missing value.
    levels : sequence of int
        Number of levels of each column of codes.
    even : bool
        Whether each category varies only as much as one column of numbers of unit variance.

    Returns
    -------
    ndarray of shape (n_samples, n_numbers + n_indicators)

    Examples
    --------
    >>> X = np.array([[0.0, 0, 0], [1.0, 1, 1], [np.nan, 1, 2], [3.0, np.nan, 2]])
    >>> indicators(X, [2, 3]).round(2).tolist()[0]
    [0.0, -1.41, 1.5, -0.5, -0.71]
    >>> indicators(X, [2, 3]).shape
    (4, 5)
    """
    numbers = X.shape[1] - len(levels)
    parts = [without_gaps(X[:, :numbers])] if numbers else []
    for codes, n_levels in zip(X[:, numbers:].T, levels, strict=True):
        known = ~np.isnan(codes)
        z = (codes[:, None] == np.arange(n_levels)).astype(np.float64)
        share = z.sum(axis=0) / max(int(known.sum()), 1)
        seen = np.flatnonzero(share > 0)
        if len(seen) < 2:
            continue
        one = seen[1:] if len(seen) == 2 else seen
        spread = np.sqrt(share[one] * (1 - share[one]) if len(seen) == 2 else share[one])
        columns = np.where(known[:, None], z[:, one] - share[one], 0.0) / spread
        parts.append(columns / np.sqrt(len(seen) - 1) if even else columns)
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(X), 1))


def distinct(spaces: Sequence[Space]) -> list[Space]:
    """Spaces of the same points, without those that repeat an earlier one.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 1.0]])
    >>> len(distinct([Space(one_scale(points)) for points in (Z, 3 * Z + 1, Z**2)]))
    2
    """
    kept: list[Space] = []
    for space in spaces:
        if not any(_alike(space.points, other.points) for other in kept):
            kept.append(space)
    return kept


def _alike(one: Floats, other: Floats) -> bool:
    return one is other or (one.shape == other.shape and np.allclose(one, other, rtol=0, atol=1e-2))
