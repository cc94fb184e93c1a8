"""The values of one column, wherever they come from."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from linkmix.basics.arrays import Array, Floats, Ints

DAY = 86_400.0
"""Seconds of a day."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers, NaN where there is none."""

    numbers: Floats  # (n,)
    unit: str = ""

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True, eq=False)
class Flags:
    """Truth values: 0, 1, or NaN where there is none."""

    numbers: Floats  # (n,)

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True, eq=False)
class Texts:
    """Different texts, and which of them each row has.

    Attributes
    ----------
    texts : tuple of str
        Without spaces at their ends, each once.
    codes : ndarray of int, shape (n,)
        The place of each row's text, -1 where there is none.
    declared : bool
        Whether the table says that these are levels of a category.
    ordered : bool
        Whether the table says that the order of the texts means something.
    """

    texts: tuple[str, ...]
    codes: Ints
    declared: bool = False
    ordered: bool = False

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def counts(self) -> Ints:
        """Number of rows with each text."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.texts))

    def first_rows(self, places: Iterable[int]) -> list[tuple[str, int]]:
        """Some of the texts with the first row that has each, in the order of these rows."""
        first = np.full(len(self.texts) + 1, len(self.codes))
        first[self.codes[::-1]] = np.arange(len(self.codes))[::-1]
        return sorted(((self.texts[place], int(first[place])) for place in places), key=lambda found: found[1])

    def spread(self, values: Array) -> Array:
        """Values of the texts (n_texts, ...) as values of the rows, NaN where there is no text."""
        padded = np.concatenate([values, np.full((1, *values.shape[1:]), np.nan)])
        return np.asarray(padded[self.codes])


@dataclass(frozen=True, eq=False)
class Moments:
    """Dates or times, in days since 1970: as instants (UTC where a zone is known), and by local clocks."""

    instants: Floats  # (n,)
    local: Floats  # (n,)

    def __len__(self) -> int:
        return len(self.instants)


@dataclass(frozen=True, eq=False)
class Clock:
    """Times of day, in hours."""

    hours: Floats  # (n,)

    def __len__(self) -> int:
        return len(self.hours)


@dataclass(frozen=True, eq=False)
class Vectors:
    """Rows of numbers, all NaN where there is none."""

    rows: Floats  # (n, d)

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class Foreign:
    """Values that cannot be used, such as bytes."""

    what: str
    n: int

    def __len__(self) -> int:
        return self.n


Values = Numbers | Flags | Texts | Moments | Clock | Vectors | Foreign


def what_it_is(values: Values) -> str:
    """What a column holds, in words."""
    if isinstance(values, Foreign):
        return values.what
    return {
        Numbers: "numbers",
        Flags: "truth values",
        Texts: "texts",
        Moments: "dates",
        Clock: "times of day",
        Vectors: "vectors",
    }[type(values)]


def written(number: float) -> str:
    """A number as text, a whole one without a point.

    Examples
    --------
    >>> written(3.0), written(0.25)
    ('3', '0.25')
    """
    return str(int(number)) if number.is_integer() and abs(number) < 1e16 else repr(number)
