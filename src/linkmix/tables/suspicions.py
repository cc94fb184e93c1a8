"""Columns of numbers that are probably not meant to make classes."""

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linkmix.basics.arrays import Array, Floats
from linkmix.data.blocks import Blocks
from linkmix.data.summary import Summary

if TYPE_CHECKING:
    from linkmix.tables.points import Points

ANSWERS = frozenset({"class", "label", "target", "y"})
"""Names of columns that usually hold the true classes."""
FEWEST_ROWS = 10
"""With fewer rows than this, numbers may follow each other by chance."""
_MARKS = 2**26
"""Numbers that are looked for in one pass: 64 megabytes of marks."""
_GLANCE = 1000
"""Rows that are compared first."""


@dataclass(frozen=True)
class Suspicions:
    """Columns that are used and probably should not be.

    Attributes
    ----------
    running : tuple of str
        Columns that number the rows: consecutive whole numbers in any order, each once.
    answers : tuple of str
        Columns whose names say that they hold the true classes.
    repeated : tuple of (str, str)
        Columns with the same values as an earlier one, each with that one.
    """

    running: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    repeated: tuple[tuple[str, str], ...] = ()


def suspect(points: "Points") -> Suspicions:
    """Look for columns that are probably not meant to make classes.

    Parameters
    ----------
    points : Points
        Points; a large table is read part by part.

    Returns
    -------
    Suspicions

    Examples
    --------
    >>> from linkmix.tables import Points
    >>> rows = np.arange(12.0)
    >>> X = np.column_stack([rows + 100, rows % 5, rows % 3, rows % 5])
    >>> points = Points(rows.astype(str), ("customer", "age", "Class", "years"), X)
    >>> suspect(points)
    Suspicions(running=('customer',), answers=('Class',), repeated=(('years', 'age'),))
    """
    names = {name.lower() for name in points.used}
    answers = ANSWERS - {"y"} if "x" in names else ANSWERS  # x and y are coordinates
    return Suspicions(
        tuple(name for place, name in enumerate(points.columns) if is_running(points.X, points.summary, place)),
        tuple(name for name in points.used if name.lower() in answers),
        _repeated(points),
    )


def is_running(X: Floats, found: Summary, place: int) -> bool:
    """Whether a column has each of as many consecutive whole numbers as there are rows."""
    n, low = len(X), float(found.low[place])
    if n < FEWEST_ROWS or found.n_values[place] < n or found.high[place] - low != n - 1 or not low.is_integer():
        return False
    for first in range(0, n, _MARKS):
        seen = np.zeros(min(_MARKS, n - first), dtype=bool)
        for block in Blocks.from_array(X):
            numbers = np.asarray(block[:, place]) - low
            if not (numbers == np.round(numbers)).all():
                return False
            inside = (numbers >= first) & (numbers < first + len(seen))
            seen[(numbers[inside] - first).astype(np.int64)] = True
        if not seen.all():
            return False
    return True


def _repeated(points: "Points") -> tuple[tuple[str, str], ...]:
    """Columns with the values of an earlier one; those with the same value in every row are not compared."""
    found = points.summary
    alike: dict[object, list[int]] = defaultdict(list)
    for place in np.flatnonzero(found.low < found.high).tolist():
        alike[(found.n_values[place], found.low[place], found.high[place])].append(place)
    for X in (points.X[:_GLANCE], points.X):  # the first rows tell most columns apart
        places = sorted(place for group in alike.values() if len(group) > 1 for place in group)
        if not places:
            return ()
        alike = defaultdict(list)
        for place, code in zip(places, _codes(X, places).tolist(), strict=True):
            alike[code].append(place)
    copies = sorted((place, group[0]) for group in alike.values() for place in group[1:])
    return tuple((points.columns[place], points.columns[first]) for place, first in copies)


def _codes(X: Floats, places: list[int]) -> Array:
    """A hash of each of some columns: the bits of the numbers, each times a random odd factor for its row."""
    rng = np.random.default_rng(0)
    codes = np.zeros(len(places), dtype=np.uint64)
    for block in Blocks.from_array(X):
        numbers = np.asarray(block)[:, places] + 0.0  # -0.0 is 0.0
        numbers[np.isnan(numbers)] = np.nan  # of all bit patterns, one
        factors = rng.integers(2**63, size=len(numbers), dtype=np.uint64) * np.uint64(2) + np.uint64(1)
        bits = np.ascontiguousarray(numbers).view(np.uint64)
        # The low bits of most numbers are zero, and so are those of the products: fold the high ones down.
        mixed = (bits ^ (bits >> np.uint64(32))) * factors[:, None]
        codes += (mixed ^ (mixed >> np.uint64(29))).sum(axis=0, dtype=np.uint64)
    return codes
