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
from linkmix.columns.values import DAY, Clock, Flags, Moments, Numbers, Texts, Values, what_it_is, written

OTHER = "(other)"
"""Name of the level that holds rare and unseen ones."""

TRUTH = (
    *(("false", "true"), ("no", "yes"), ("n", "y"), ("f", "t"), ("off", "on"), ("nein", "ja"), ("non", "oui")),
    *(("no", "si"), ("no", "sí"), ("não", "sim"), ("nej", "ja"), ("nee", "ja"), ("falsch", "wahr"), ("faux", "vrai")),
)
"""Words for false and true."""


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
        _check(numbers, np.isinf(numbers), "not finite", "correct them, or leave them empty")
        if self.is_count:
            wrong = (numbers < 0) | (numbers != np.round(numbers)) & ~np.isnan(numbers)
            _check(numbers, wrong, "not counts", "give whole numbers from 0, or read the column as a number")
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
        Whether the levels are false and true; upper and lower case do not matter then.
    convention : Convention or None
        How numbers are written, if the levels are numbers.
    """

    texts: tuple[str, ...]
    has_other: bool = False
    is_bool: bool = False
    convention: Convention | None = None

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
        return "true or false" if self.is_bool else f"category, {len(self.level_names)} levels"

    def names(self, column: str) -> tuple[str, ...]:
        """The name of the column."""
        return (column,)

    def __call__(self, values: Values, folder: str) -> Floats:
        """Codes of levels."""
        codes = self._codes(values)
        if self.has_other:
            codes[np.isnan(codes) & is_known(values)] = len(self.texts)
        return codes[:, None]

    def _codes(self, values: Values) -> Floats:
        """Places of the levels (n,), NaN for what is none of them."""
        code_of = {text: float(code) for code, text in enumerate(self.texts)}
        if self.is_bool:
            own = {text.lower(): code for text, code in code_of.items()}
            words = {word: float(code) for pair in TRUTH for code, word in enumerate(pair)} | {"0": 0.0, "1": 1.0}
            code_of = words | own if self.texts == ("False", "True") else {"false": 0.0, "true": 1.0} | own
        is_other_kind = isinstance(values, Texts) == (self.convention is not None)
        if self.convention is not None and isinstance(values, Texts):
            numbers = self.convention.read(values.texts)
            is_other_kind = bool(np.isnan(numbers).all())
            values = values if is_other_kind else Numbers(np.asarray(values.spread(numbers)))
        found = as_texts(values)
        spelled = [text.lower() if self.is_bool else text for text in found.texts]
        codes = np.array([code_of.get(text, np.nan) for text in spelled])
        if is_other_kind and len(codes) and np.isnan(codes).all():
            raise Unfit(
                f"holds {what_it_is(values)}, none of which is one of the levels {_shown(self.texts)}",
                "give the values that the column had",
            )
        return np.asarray(found.spread(codes))


@dataclass(frozen=True, eq=False)
class Ordered:
    """One of several levels in an order, as the mean rank of the rows that have it, from 0 to 1.

    Attributes
    ----------
    texts : tuple of str
        The levels from low to high.
    ranks : ndarray of shape (n_levels,)
        Share of rows below a level, plus half of the share of its own.
    convention : Convention or None
        How numbers are written, if the levels are numbers. Numbers between two levels have ranks between theirs.
    """

    texts: tuple[str, ...]
    ranks: Floats
    convention: Convention | None = None

    levels = (0,)

    @property
    def words(self) -> str:
        """The kind, and the number of levels."""
        return f"ordered, {len(self.texts)} levels"

    def names(self, column: str) -> tuple[str, ...]:
        """The name of the column."""
        return (column,)

    def __call__(self, values: Values, folder: str) -> Floats:
        """Ranks; NaN for a text that is none of the levels."""
        if self.convention is not None:
            numbers = as_numbers(values, self.convention)
            known = np.interp(numbers, [float(text) for text in self.texts], self.ranks)
            return np.where(np.isnan(numbers), np.nan, known)[:, None]
        codes = Category(self.texts)(values, folder)[:, 0]
        return np.append(self.ranks, np.nan)[np.where(np.isnan(codes), -1, codes).astype(np.int64)][:, None]


def as_numbers(values: Values, convention: Convention) -> Floats:
    """Values as numbers (n,), texts by a convention."""
    match values:
        case Numbers() | Flags():
            return values.numbers
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
    are, them = ("is not a number", "it") if n_wrong == 1 else ("are not numbers", "them")
    in_unit = f" in {convention.unit}" if convention.unit else ""
    marks = f" with {convention.words}" if convention.words else ""
    return Unfit(
        f"{n_wrong} of {n_all} values {are}{in_unit}{marks}",
        f"correct {them}, name {them} as missing, or read the column as a category",
        values.first_rows(wrong)[:SHOWN],
    )


def as_texts(values: Values) -> Texts:
    """Values as texts."""
    match values:
        case Texts():
            return values
        case Numbers() | Flags():
            column = values.numbers
        case Moments():
            column = values.local
        case Clock():
            column = values.hours
        case _:
            raise Unfit(f"holds {what_it_is(values)}, and no levels", "give texts or numbers, or leave the column out")
    known = ~np.isnan(column)
    different, places = np.unique(column[known], return_inverse=True)
    codes = np.full(len(column), -1)
    codes[known] = places
    return Texts(tuple(_written(values, different)), codes)


def is_known(values: Values) -> np.ndarray:
    """Whether each row has a value, of values that can be texts."""
    match values:
        case Texts():
            return values.codes >= 0
        case Numbers() | Flags():
            return ~np.isnan(values.numbers)
    return as_texts(values).codes >= 0


def _written(values: Values, numbers: Floats) -> list[str]:
    if isinstance(values, Flags):
        return ["True" if number else "False" for number in numbers]
    if isinstance(values, Moments):
        seconds = (numbers * DAY).round().astype(np.int64).astype("M8[s]")
        return [str(second).removesuffix("T00:00:00") for second in seconds]
    return [written(float(number)) for number in numbers]


def _check(numbers: Floats, wrong: np.ndarray, what: str, remedy: str) -> None:
    """Name numbers that are wrong."""
    rows = np.flatnonzero(wrong)
    if len(rows):
        are = "1 value is" if len(rows) == 1 else f"{len(rows)} values are"
        raise Unfit(f"{are} {what}", remedy, [(written(float(numbers[row])), int(row)) for row in rows[:SHOWN]])


def _shown(texts: Sequence[str]) -> str:
    return ", ".join(map(repr, texts[:SHOWN])) + (f" and {len(texts) - SHOWN} more" if len(texts) > SHOWN else "")
