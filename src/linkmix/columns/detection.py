"""Decides by its values what a column is taken for."""

from dataclasses import dataclass

import numpy as np

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.columns.dates import CLOCK, DIGITS, DateReading, days_of_digits, read_dates
from linkmix.columns.kinds import OTHER, TRUTH, Category, Kind, Number, Ordered, not_numbers
from linkmix.columns.moments import Date, TimeOfDay, not_dates, parts_that_help, spans_more_than_half_a_day
from linkmix.columns.numerals import MOSTLY, Convention, Reading, are_codes, read_numerals
from linkmix.columns.problems import SHOWN, Unfit, shortened
from linkmix.columns.values import Clock, Flags, Foreign, Moments, Numbers, Texts, Values, Vectors, written
from linkmix.columns.wide import (
    Picture,
    Vector,
    any_is_there,
    are_pictures,
    as_rows,
    learn_words,
    pixels,
    reduction,
    vectors_in,
)

FEWEST_ROWS, RARE = 5, 0.01
"""Levels with fewer rows than these, or than this share of them, are put together."""
SMALL = 100
"""In tables with fewer rows than this, levels with two rows may stay if there are no larger ones."""
MOST_LEVELS = 100
"""More levels than this are never a category."""
SCATTERED, COVERED = 0.5, 0.1
"""Texts are free text if frequent ones have less than the first share of rows, and no category below the second."""
FEW_LEVELS, ENOUGH_ROWS = 12, 50
"""At most so many different values, in at least so many rows, are levels, even if most of them are numbers; unless the
others are rare."""
WORDS = 3.0
"""Free text has this many words on average."""
FEWEST_RUNNING = 10
"""With fewer rows than this, numbers may follow each other by chance."""
_MOST_SPELLINGS = 64  # of false and true by upper and lower case
NO_VALUES, CONSTANT, RUNNING, ASKED = "no values", "the same value in every row", "numbers the rows", "as you asked"
"""Why columns are left out."""


@dataclass(frozen=True, eq=False)
class Found:
    """What a column is taken for: a kind, or the reason to leave it out; and what was assumed."""

    kind: Kind | None
    reason: str = ""
    remarks: tuple[str, ...] = ()


def left_out(reason: str) -> Found:
    """A column that is not used."""
    return Found(None, reason)


def detect(values: Values, folder: str = "") -> Found:
    """What a column is taken for, by its values.

    Parameters
    ----------
    values : Values
        The values of the column.
    folder : str
        Folder in which relative paths of pictures begin.

    Returns
    -------
    Found

    Raises
    ------
    Unfit
        If most values are numbers or dates and some are not, or if some pictures cannot be read.
    """
    match values:
        case Numbers():
            return of_numbers(values.numbers, Number(unit=values.unit))
        case Flags():
            return constant(values.numbers) or Found(Category(("False", "True"), is_bool=True))
        case Moments():
            return of_moments(values)
        case Clock():
            return of_clock(values)
        case Vectors():
            return of_vectors(values)
        case Foreign():
            return left_out(values.what)
    return _of_texts(values, folder)


def of_numbers(numbers: Floats, kind: Number, remarks: tuple[str, ...] = ()) -> Found:
    """What a column of numbers is taken for: a number, a category of two, or a date such as 20240131."""
    kind(Numbers(numbers), "")  # refuses infinite ones
    found = constant(numbers)
    if found is not None:
        return found
    if _are_running(numbers):
        return left_out(RUNNING)
    known = numbers[~np.isnan(numbers)]
    low, high = float(known.min()), float(known.max())
    n_ends = [np.count_nonzero(known == end) for end in (low, high)]
    if sum(n_ends) == len(known) and min(n_ends) > 1:
        return Found(Category((written(low), written(high)), convention=kind.convention), remarks=remarks)
    days = days_of_digits(numbers) if kind == Number() else None
    if days is not None:
        example = written(low)
        return of_moments(Moments(days, days), DIGITS, (f"read as dates: {example} is {_iso(np.nanmin(days))}",))
    return Found(kind, remarks=remarks)


def of_moments(moments: Moments, format: str = "", remarks: tuple[str, ...] = ()) -> Found:
    """What a column of dates is taken for: a date with the parts that help."""
    return constant(moments.instants) or Found(Date(format, parts_that_help(moments)), remarks=remarks)


def of_clock(clock: Clock) -> Found:
    """What a column of times of day is taken for."""
    return constant(clock.hours) or Found(TimeOfDay(spans_more_than_half_a_day(clock)))


def of_vectors(values: Values) -> Found:
    """What a column of vectors is taken for."""
    rows = as_rows(values)
    if np.isnan(rows).all():
        return left_out(NO_VALUES)
    found = reduction(rows)
    return left_out(CONSTANT) if found is None else Found(Vector(rows.shape[1], found))


def of_pictures(values: Texts, folder: str) -> Found:
    """What a column of pictures is taken for."""
    found = reduction(pixels(values, folder))
    return left_out("the same picture in every row") if found is None else Found(Picture(found))


def constant(numbers: Floats) -> Found | None:
    """The reason to leave out numbers that do not differ, or nothing."""
    known = numbers[~np.isnan(numbers)]
    if not len(known):
        return left_out(NO_VALUES)
    if known.min() == known.max():
        return left_out(CONSTANT if len(known) == len(numbers) else f"{CONSTANT} that has one")
    return None


def _of_texts(values: Texts, folder: str) -> Found:
    counts = values.counts
    found = constant(np.where(values.codes < 0, np.nan, values.codes))
    if found is not None:
        return found
    if values.declared:
        return Found(ordered(values, values.texts)) if values.ordered else category(values)
    texts = values.texts
    reading = read_numerals(texts, counts)
    if reading is not None and reading.share == 1:
        numbers = np.asarray(values.spread(reading.numbers))
        return of_numbers(numbers, Number(reading.convention), assumed(values, reading))
    truth = truth_values(values)
    if truth is not None:
        return Found(truth)
    dates = read_dates(texts, counts)
    if dates is not None and dates.share == 1:
        return of_dates(values, dates)
    if are_pictures(texts):
        is_there = any_is_there(texts, folder)
        return of_pictures(values, folder) if is_there else left_out("pictures, none of which is there")
    if vectors_in(texts) is not None:
        return of_vectors(values)
    if reading is not None and max(reading.share, sum(reading.units.values()) / counts.sum()) > MOSTLY:
        are_words = np.isnan(reading.numbers)
        rare = counts[are_words].sum() < RARE * counts.sum()
        if rare or len(texts) > FEW_LEVELS or counts.sum() < ENOUGH_ROWS:
            raise _refused(values, reading)
        others = [text for text, is_word in zip(values.texts, are_words.tolist(), strict=True) if is_word]
        found = category(values)
        said = f"has numbers and also {', '.join(map(repr, others[:SHOWN]))}, so it is read as a category"
        return Found(found.kind, found.reason, (said, *found.remarks))
    if dates is not None and dates.share > MOSTLY:
        raise not_dates(values, np.flatnonzero(np.isnan(dates.days[:, 0])), dates.format)
    if is_free_text(values):
        return of_words(values)
    remark = ("digits with leading zeros are read as codes and not as numbers",) if are_codes(texts) else ()
    found = category(values)
    return Found(found.kind, found.reason, remark + found.remarks)


def of_dates(values: Texts, reading: DateReading) -> Found:
    """What a column of texts that are dates is taken for."""
    days = values.spread(reading.days)
    if reading.format == CLOCK:
        return of_clock(Clock(days[:, 0]))
    remarks = []
    if reading.format != "year-month-day":
        example = f"{values.texts[0]!r} is {_iso(float(reading.days[0, 1]))}"
        doubt = ", and day and month could be exchanged in every row" if reading.is_ambiguous else ""
        remarks.append(f"read as {reading.format}: {example}{doubt}")
    return of_moments(Moments(days[:, 0], days[:, 1]), reading.format, tuple(remarks))


def of_words(values: Texts) -> Found:
    """What a column of free text is taken for."""
    found = learn_words(values)
    return left_out("text, no word of which tells rows apart") if found is None else Found(found)


def is_free_text(values: Texts) -> bool:
    """Whether texts are sentences rather than levels of a category: mostly rare ones of several words."""
    counts = values.counts
    n_words = np.array([len(text.split()) for text in values.texts])
    covered = counts[_frequent(counts)].sum() / counts.sum()
    return bool(covered < SCATTERED and len(values) >= FEWEST_RUNNING and n_words @ counts >= WORDS * counts.sum())


def category(values: Texts, convention: Convention | None = None, *, asked: bool = False) -> Found:
    """A category in which rare levels are put together; levels that are numbers are in their order.

    Parameters
    ----------
    values : Texts
        The levels of the rows.
    convention : Convention or None
        How numbers are written, if the levels are numbers.
    asked : bool
        Whether the user asks for a category, also of levels that are all rare.

    Returns
    -------
    Found

    Examples
    --------
    >>> levels = Texts(("red", "blue", "green"), np.repeat([0, 1, 2], [10, 12, 1]))
    >>> found = category(levels)
    >>> found.kind.level_names, found.remarks
    (('blue', 'red', '(other)'), ("1 rare level is read as '(other)', in 1 row: 'green'",))
    """
    counts = values.counts
    n_rows, n_levels = int(counts.sum()), int(np.count_nonzero(counts))
    frequent = _frequent(counts)
    if counts[frequent].sum() < COVERED * n_rows:
        if not asked:
            if n_levels > 0.9 * n_rows:
                return left_out("text, nearly all values differ")
            return left_out(f"text, {n_levels} different values, hardly any of them frequent")
        frequent = counts > 0
    if np.count_nonzero(frequent) > MOST_LEVELS:
        raise Unfit(f"{n_levels} levels are too many for a category", "put levels together, or leave the column out")
    places = np.flatnonzero(frequent).tolist()
    texts = sorted((values.texts[place] for place in places), key=str if convention is None else float)
    rare = np.flatnonzero(~frequent & (counts > 0))
    kind = Category(tuple(texts), has_other=bool(len(rare)), convention=convention)
    if not len(rare):
        return Found(kind)
    if OTHER in texts:
        raise Unfit(f"a level is called {OTHER!r}, which is the name of rare levels put together", "rename it")
    return Found(kind, remarks=(_put_together([values.texts[place] for place in rare], int(counts[rare].sum())),))


def ordered(values: Texts, levels: tuple[str, ...], convention: Convention | None = None) -> Ordered:
    """Levels in an order, ranked by the rows that have them.

    Examples
    --------
    >>> sizes = Texts(("M", "S", "L"), np.array([0, 0, 1, 2]))
    >>> ordered(sizes, ("S", "M", "L")).ranks.tolist()
    [0.125, 0.5, 0.875]
    """
    counts = dict(zip(values.texts, values.counts.tolist(), strict=True))
    unknown = [place for place, text in enumerate(values.texts) if text not in levels and counts[text]]
    if unknown:
        raise Unfit(
            f"{len(unknown)} of its values are not among the levels {' < '.join(levels)}",
            "correct them, name them as missing, or name all levels",
            values.first_rows(unknown)[:SHOWN],
        )
    rows = np.array([counts.get(level, 0) for level in levels])
    return Ordered(levels, (np.cumsum(rows) - 0.5 * rows) / max(rows.sum(), 1), convention)


def truth_values(values: Texts) -> Category | None:
    """False and true, if all texts are words for them in one language; by their most frequent spelling.

    Examples
    --------
    >>> truth_values(Texts(("Yes", "no"), np.array([0, 1, 1]))).texts
    ('no', 'Yes')
    """
    counts = values.counts
    if len(values.texts) > _MOST_SPELLINGS:
        return None
    lower = [text.lower() for text in values.texts]
    for pair in TRUTH:
        if set(lower) <= set(pair):
            names = []
            for word in pair:
                places = [place for place, text in enumerate(lower) if text == word]
                names.append(values.texts[max(places, key=lambda place: int(counts[place]))] if places else word)
            return Category(tuple(names), is_bool=True)
    return None


def assumed(values: Texts, reading: Reading) -> tuple[str, ...]:
    """What was assumed about how numbers are written."""
    how, remarks = reading.convention, []
    if how.words or reading.is_ambiguous:
        mark = how.thousands or how.decimal
        place = next((place for place, text in enumerate(values.texts) if mark in text), 0)
        other = "stand between thousands" if mark == how.decimal else "be decimal marks"
        doubt = f", and they could also {other} in every row" if reading.is_ambiguous else ""
        example = f"{values.texts[place]!r} is {written(float(reading.numbers[place]))}"
        remarks.append(f"read with {how.words or 'decimal points'}: {example}{doubt}")
    if how.unit:
        remarks.append(f"read as numbers in {how.unit}")
    return tuple(remarks)


def _refused(values: Texts, reading: Reading) -> Unfit:
    """Why a column that mostly holds numbers cannot be read as numbers."""
    wrong = np.flatnonzero(np.isnan(reading.numbers)).tolist()
    if not reading.units:
        return not_numbers(values, wrong, reading.convention)
    units = ", ".join(f"{unit or 'none'} ({n})" for unit, n in reading.units.items())
    remedy = "convert them to one unit, or read the column as a category"
    return Unfit(f"numbers have different units, {units}", remedy, values.first_rows(wrong)[:SHOWN])


def _frequent(counts: Ints) -> Array:
    """Which levels stay as they are."""
    if np.count_nonzero(counts) <= 2:
        return counts > 0
    n_rows = int(counts.sum())
    large = counts >= max(FEWEST_ROWS, RARE * n_rows)
    if not large.any() and n_rows < SMALL and np.count_nonzero(counts) <= n_rows / 2:
        return counts >= 2
    return np.asarray(large)


def _put_together(texts: list[str], n_rows: int) -> str:
    are = "1 rare level is" if len(texts) == 1 else f"{len(texts)} rare levels are"
    shown = ", ".join(map(shortened, texts[:SHOWN]))
    more = f" and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
    return f"{are} read as {OTHER!r}, in {n_rows} row{'s' if n_rows != 1 else ''}: {shown}{more}"


def _are_running(numbers: Floats) -> bool:
    """Whether numbers are consecutive whole numbers in any order, each once."""
    n, low = len(numbers), float(numbers.min())  # NaN if any is missing
    if n < FEWEST_RUNNING or not low.is_integer() or numbers.max() - low != n - 1:
        return False
    return bool((np.sort(numbers) == low + np.arange(n)).all())


def _iso(day: float) -> str:
    return str(np.datetime64(int(np.floor(day)), "D"))
