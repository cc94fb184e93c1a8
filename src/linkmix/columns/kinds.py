"""What a column of a table is taken for, and the columns of numbers or codes that it becomes.

A kind is a value of plain fields, so that a model file can hold it. Called with the values of a column, it gives an
array of one row for each of them; what it cannot read raises `Unfit`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from linkmix.basics.arrays import Floats
from linkmix.columns.numerals import Convention
from linkmix.columns.problems import SHOWN, Unfit
from linkmix.columns.values import Clock, Flags, Moments, Numbers, Texts, Values, Vectors, written

OTHER = "(other)"
"""Name of the level that holds rare and unseen ones."""


class Kind(Protocol):
    """What a column is taken for."""

    @property
    def levels(self) -> tuple[int, ...]:
        """For each column of the result the number of its levels, 0 for a number."""

    @property
    def words(self) -> str:
        """The kind in a few words."""

    def names(self, column: str) -> tuple[str, ...]:
        """Names of the columns of the result."""

    def __call__(self, values: Values, folder: str) -> Floats:
        """The columns of the result; NaN where there is no value. Paths of pictures begin in the folder."""


@dataclass(frozen=True)
class Number:
    """A number.

    Attributes
    ----------
    convention : Convention
        How it is written in texts.
    is_count : bool
        Whether it counts something.
    unit : str
        The unit of numbers that are no texts.
    """

    convention: Convention = field(default_factory=Convention)
    is_count: bool = False
    unit: str = ""

    levels = (0,)

    @property
    def words(self) -> str:
        """The kind, and its unit."""
        unit = self.unit or self.convention.unit
        return ("count" if self.is_count else "number") + (f", in {unit}" if unit else "")

    def names(self, column: str) -> tuple[str, ...]:
        """The name of the column."""
        return (column,)

    def __call__(self, values: Values, folder: str) -> Floats:
        """Numbers."""
        numbers = as_numbers(values, self.convention)
        if np.isinf(numbers).any():
            rows = np.flatnonzero(np.isinf(numbers))
            raise Unfit(
                f"{_n_values(len(rows))} not finite",
                "correct them, or leave them empty",
                [(str(numbers[row]), int(row)) for row in rows[:SHOWN]],
            )
        if self.is_count and ((numbers < 0) | (numbers != np.round(numbers)))[~np.isnan(numbers)].any():
            wrong = ~np.isnan(numbers) & ((numbers < 0) | (numbers != np.round(numbers)))
            rows = np.flatnonzero(wrong)
            raise Unfit(
                f"{_n_values(len(rows))} no counts",
                "give whole numbers from 0, or read the column as a number",
                [(written(float(numbers[row])), int(row)) for row in rows[:SHOWN]],
            )
        return numbers[:, None]


@dataclass(frozen=True)
class Category:
    """One of several levels, which have no order.

    Attributes
    ----------
    texts : tuple of str
        The texts of the levels, without the one that holds all others.
    has_other : bool
        Whether there is a last level for all other texts. Without it they are missing.
    is_bool : bool
        Whether the levels are false and true.
    of_numbers : bool
        Whether the levels are numbers.
    spellings : tuple of (str, int)
        Other texts for levels, such as "YES" for "yes".
    """

    texts: tuple[str, ...]
    has_other: bool = False
    is_bool: bool = False
    of_numbers: bool = False
    spellings: tuple[tuple[str, int], ...] = ()

    @property
    def level_names(self) -> tuple[str, ...]:
        """Texts of all levels."""
        return (*self.texts, OTHER) if self.has_other else self.texts

    @property
    def levels(self) -> tuple[int, ...]:
        """The number of levels."""
        return (len(self.level_names),)

    @property
    def words(self) -> str:
        """The kind, and the number of levels."""
        what = "true or false" if self.is_bool else "category"
        return what if self.is_bool else f"{what}, {len(self.level_names)} levels"

    def names(self, column: str) -> tuple[str, ...]:
        """The name of the column."""
        return (column,)

    def __call__(self, values: Values, folder: str) -> Floats:
        """Codes of levels."""
        found = as_texts(values)
        code_of = {text: float(code) for code, text in enumerate(self.texts)}
        code_of |= {text: float(code) for text, code in self.spellings}
        if self.is_bool and isinstance(values, Flags):
            code_of = {"False": 0.0, "True": 1.0}
        unseen = float(len(self.texts)) if self.has_other else np.nan
        written_as = self._number if self.of_numbers and isinstance(values, Texts) else _as_it_is
        codes = np.array([code_of.get(written_as(text), unseen) for text in found.texts])
        return np.asarray(found.spread(codes)[:, None])

    def _number(self, text: str) -> str:
        [number] = Convention().read([text])
        return text if np.isnan(number) else written(float(number))


@dataclass(frozen=True, eq=False)
class Ordered:
    """One of several levels in an order, as the mean rank of the rows that have it, from 0 to 1.

    Attributes
    ----------
    texts : tuple of str
        The levels from low to high.
    ranks : ndarray of shape (n_levels,)
        Share of rows below a level, plus half of the share of its own.
    of_numbers : bool
        Whether the levels are numbers.
    """

    texts: tuple[str, ...]
    ranks: Floats
    of_numbers: bool = False

    levels = (0,)

    @property
    def words(self) -> str:
        """The kind, and the number of levels."""
        return f"ordered, {len(self.texts)} levels"

    def names(self, column: str) -> tuple[str, ...]:
        """The name of the column."""
        return (column,)

    def __call__(self, values: Values, folder: str) -> Floats:
        """Ranks of levels; a level that is not known is an error, since its place in the order is not known."""
        found = as_texts(values)
        codes = Category(self.texts, of_numbers=self.of_numbers)(values, folder)[:, 0]
        unknown = np.flatnonzero(np.isnan(codes) & (found.codes >= 0))
        if len(unknown):
            raise Unfit(
                f"{_n_values(len(unknown))} not among the levels {' < '.join(self.texts)}",
                "correct them, or name all levels in their order",
                found.first_rows(np.unique(found.codes[unknown]).tolist())[:SHOWN],
            )
        ranks = np.append(self.ranks, np.nan)
        return ranks[np.where(np.isnan(codes), -1, codes).astype(np.int64)][:, None]


def as_numbers(values: Values, convention: Convention) -> Floats:
    """Values as numbers (n,), texts by a convention."""
    match values:
        case Numbers() | Flags():
            return values.numbers
        case Moments():
            return values.instants
        case Clock():
            return values.hours
        case Texts():
            found = convention.read(values.texts)
            wrong = np.flatnonzero(np.isnan(found))
            if len(wrong):
                raise not_numbers(values, wrong.tolist(), convention)
            return np.asarray(values.spread(found))
    raise Unfit(f"holds {what_it_is(values)}, and no numbers", "give numbers, or leave the column out")


def not_numbers(values: Texts, wrong: Sequence[int], convention: Convention) -> Unfit:
    """What to say of a column of numbers with texts that are none."""
    n_wrong, n_all = int(values.counts[list(wrong)].sum()), int(values.counts.sum())
    written_so = f" with {convention.words}" if convention.words else ""
    in_unit = f" in {convention.unit}" if convention.unit else ""
    are = "is not a number" if n_wrong == 1 else "are not numbers"
    return Unfit(
        f"{n_wrong} of {n_all} values {are}{in_unit}{written_so}",
        "correct them, name them as missing, or read the column as a category",
        values.first_rows(wrong)[:SHOWN],
    )


def as_texts(values: Values) -> Texts:
    """Values as texts."""
    match values:
        case Texts():
            return values
        case Numbers() | Flags() | Clock() | Moments():
            numbers = {Clock: "hours", Moments: "instants"}.get(type(values), "numbers")
            column = getattr(values, numbers)
            known = ~np.isnan(column)
            different, places = np.unique(column[known], return_inverse=True)
            codes = np.full(len(column), -1)
            codes[known] = places
            return Texts(tuple(_text_of(values, different)), codes)
    raise Unfit(f"holds {what_it_is(values)}, and no levels", "give texts or numbers, or leave the column out")


def what_it_is(values: Values) -> str:
    """What a column holds, in words."""
    match values:
        case Numbers():
            return "numbers"
        case Flags():
            return "truth values"
        case Texts():
            return "texts"
        case Moments():
            return "dates"
        case Clock():
            return "times of day"
        case Vectors():
            return "lists of numbers"
    return values.what


def _text_of(values: Values, numbers: Floats) -> list[str]:
    if isinstance(values, Flags):
        return ["True" if number else "False" for number in numbers]
    if isinstance(values, Moments):
        days = (numbers * 86_400e6).round().astype("M8[us]")
        return [str(day).removesuffix("T00:00:00.000000").removesuffix(".000000") for day in days]
    return [written(float(number)) for number in numbers]


def _as_it_is(text: str) -> str:
    return text


def _n_values(n: int) -> str:
    return "1 value is" if n == 1 else f"{n} values are"
