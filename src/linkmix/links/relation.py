"""Relations beyond "same" and "different": any joint distribution of two labels."""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.links.reading import read_pairs

ROUNDING = 1e-12
"""How far from one the sum of a table may be that was divided by its sum."""


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Relation:
    """Pairs of rows whose two labels have a given joint distribution.

    Parameters
    ----------
    pairs : array-like of int, shape (n, 2)
        Pairs of row numbers.
    table : array-like of shape (n_classes, n_classes)
        How probable each combination of labels is, up to a factor: rows are the label of the first point of a pair,
        columns that of the second.

    Attributes
    ----------
    pairs : array of int64, shape (n, 2)
    table : array of float64, shape (n_classes, n_classes)
        Sums to one.

    Examples
    --------
    Same class more often than not:

    >>> from linkmix import Relation
    >>> Relation(pairs=[(0, 5)], table=[[2, 1], [1, 2]]).table
    array([[0.33333333, 0.16666667],
           [0.16666667, 0.33333333]])
    """

    pairs: Ints
    table: Floats

    def __init__(self, pairs: ArrayLike, table: ArrayLike) -> None:
        checked = read_pairs("pairs", pairs)
        weights = np.array(table, dtype=np.float64)
        if weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
            raise ValueError(f"table has shape {weights.shape}: give one row and one column for each class")
        if not np.all(np.isfinite(weights)) or weights.min() < 0:
            worst = weights[~(np.isfinite(weights) & (weights >= 0))][0]
            raise ValueError(f"table holds {worst}: give finite numbers of at least 0")
        if weights.sum() == 0:
            raise ValueError("table is 0 everywhere: give at least one combination of labels a chance")
        if abs(weights.sum() - 1.0) > ROUNDING:  # a table that sums to one stays as it is, so that a copy is equal
            weights /= weights.sum()
        for name, value in (("pairs", checked), ("table", weights)):
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[type["Relation"], tuple[Array, Array]]:
        """Pickle and copy by building the relation again, read-only arrays included."""
        return Relation, (self.pairs, self.table)

    def key(self) -> Hashable:
        """What equal relations have in common."""
        return self.pairs.tobytes(), self.table.tobytes()

    def __eq__(self, other: object) -> bool:
        """Tell whether both have the same pairs and the same table."""
        return self.key() == other.key() if isinstance(other, Relation) else NotImplemented

    def __hash__(self) -> int:
        """Hash of pairs and table."""
        return hash(self.key())

    def __repr__(self) -> str:
        """Say how many pairs and classes there are."""
        return f"Relation({len(self.pairs)} pairs, {len(self.table)} classes)"
