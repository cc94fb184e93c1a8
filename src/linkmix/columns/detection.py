"""Decides what a column is taken for, by its values or as the user asks."""

from dataclasses import dataclass

import numpy as np

from linkmix.basics.arrays import Floats
from linkmix.columns.kinds import OTHER, Category, Kind, Number, Ordered, not_numbers, what_it_is
from linkmix.columns.numerals import MOSTLY, Reading, read_numerals
from linkmix.columns.problems import Unfit
from linkmix.columns.values import Flags, Foreign, Numbers, Texts, Values, written

FEWEST_ROWS = 5
RARE = 0.01
"""Levels with fewer rows than these, or than this share of them, are put together."""
FEWEST_RUNNING = 10
"""With fewer rows than this, numbers may follow each other by chance."""
COVERED = 0.1
"""Share of rows that frequent levels must have in a category."""
NO_VALUES, CONSTANT, RUNNING, ASKED = "no values", "the same value in every row", "numbers the rows", "as you asked"
DIFFERENT = "nearly all values differ"
"""Why columns are left out."""
_TRUTH = (
    *(("false", "true"), ("no", "yes"), ("n", "y"), ("f", "t"), ("off", "on"), ("nein", "ja"), ("non", "oui")),
    *(("no", "si"), ("no", "sí"), ("não", "sim"), ("nej", "ja"), ("nee", "ja"), ("falsch", "wahr"), ("faux", "vrai")),
)
"""Words for false and true."""


@dataclass(frozen=True, eq=False)
class Found:
    """What a column is taken for: a kind, or the reason to leave it out; and what was assumed."""

    kind: Kind | None
    reason: str = ""
    remarks: tuple[str, ...] = ()


def left_out(reason: str) -> Found:
    """A column that is not used."""
    return Found(None, reason)


def detect(values: Values) -> Found:
    """What a column is taken for, by its values.

    Parameters
    ----------
    values : Values
        The values of the column.

    Returns
    -------
    Found

    Raises
    ------
    Unfit
        If most values are numbers and some are not.
    """
    match values:
        case Numbers():
            return of_numbers(values.numbers, Number(unit=values.unit))
        case Flags():
            return _constant(values.numbers) or Found(Category(("False", "True"), is_bool=True))
        case Texts():
            return _of_texts(values)
        case Foreign():
            return left_out(values.what)
    return left_out(what_it_is(values))


def of_numbers(numbers: Floats, kind: Number, remarks: tuple[str, ...] = ()) -> Found:
    """What a column of numbers is taken for."""
    found = _constant(numbers)
    if found is not None:
        return found
    known = numbers[~np.isnan(numbers)]
    if _are_running(numbers):
        return left_out(RUNNING)
    low, high = known.min(), known.max()
    n_low, n_high = np.count_nonzero(known == low), np.count_nonzero(known == high)
    if n_low + n_high == len(known) and min(n_low, n_high) > 1 and not kind.convention.unit:
        return Found(Category((written(float(low)), written(float(high))), of_numbers=True))
    kind(Numbers(numbers), "")  # refuses infinite ones
    return Found(kind, remarks=remarks)


def _of_texts(values: Texts) -> Found:
    counts = values.counts
    n_rows = int(counts.sum())
    if not n_rows:
        return left_out(NO_VALUES)
    if values.ordered:
        return Found(ordered(values, values.texts))
    reading = None if values.declared else read_numerals(values.texts, counts)
    if reading is not None and reading.share == 1:
        return of_numbers(
            np.asarray(values.spread(reading.numbers)), Number(reading.convention), _assumed(values, reading)
        )
    truth = None if values.declared else truth_values(values)
    if np.count_nonzero(counts) == 1:
        return left_out(CONSTANT if n_rows == len(values) else f"{CONSTANT} that has one")
    if truth is not None:
        return Found(truth)
    if reading is not None and (reading.share > MOSTLY or sum(reading.units.values()) > MOSTLY * n_rows):
        raise refused(values, reading)
    return category(values)


def category(values: Texts, *, asked: bool = False, of_numbers: bool = False) -> Found:
    """A category; rare levels are put together."""
    counts = values.counts
    n_rows, n_levels = int(counts.sum()), int(np.count_nonzero(counts))
    smallest = max(FEWEST_ROWS, RARE * n_rows)
    frequent = counts >= smallest
    if n_levels <= 2:
        frequent = counts > 0
    if frequent.sum() < 2 and not (frequent.any() and n_rows - counts[frequent].sum() >= smallest):
        frequent = counts >= 2  # a small table, or many small levels
    covered = counts[frequent].sum() / n_rows
    if covered < COVERED or not frequent.any():
        if not asked:
            return left_out(DIFFERENT)
        if n_levels > 100:
            raise Unfit(
                f"{n_levels} levels in {n_rows} rows are too many for a category",
                "put levels together, or leave it out",
            )
        frequent = counts > 0
    order = sorted(np.flatnonzero(frequent).tolist(), key=lambda place: _sort_key(values.texts[place], of_numbers))
    texts = tuple(values.texts[place] for place in order)
    rare = np.flatnonzero(~frequent & (counts > 0))
    if not len(rare):
        return Found(Category(texts, of_numbers=of_numbers))
    if OTHER in texts:
        raise Unfit(f"there is a level called {OTHER!r}, which is the name for rare levels", "rename it")
    shown = ", ".join(repr(values.texts[place]) for place in rare[:5].tolist())
    more = f" and {len(rare) - 5} more" if len(rare) > 5 else ""
    n_rare = int(counts[rare].sum())
    are = "1 rare level is" if len(rare) == 1 else f"{len(rare)} rare levels are"
    remark = f"{are} read as {OTHER!r}, in {n_rare} row{'s' * (n_rare != 1)}: {shown}{more}"
    return Found(Category(texts, has_other=True, of_numbers=of_numbers), remarks=(remark,))


def ordered(values: Values, levels: tuple[str, ...], *, of_numbers: bool = False) -> Ordered:
    """Levels in an order, ranked by how many rows have them."""
    codes = Category(levels, of_numbers=of_numbers)(values, "")[:, 0]
    counts = np.bincount(codes[~np.isnan(codes)].astype(np.int64), minlength=len(levels))
    ranks = (np.cumsum(counts) - 0.5 * counts) / max(counts.sum(), 1)
    kind = Ordered(levels, ranks, of_numbers)
    kind(values, "")  # refuses other levels
    return kind


def truth_values(values: Texts) -> Category | None:
    """False and true, if all texts are words for them in one language."""
    lower = [text.lower() for text in values.texts]
    counts = values.counts
    for pair in _TRUTH:
        if all(text in pair for text in lower):
            codes = [pair.index(text) for text in lower]
            names = list(pair)
            for code in (0, 1):
                places = [place for place, own in enumerate(codes) if own == code]
                if places:
                    names[code] = values.texts[max(places, key=lambda place: int(counts[place]))]
            spellings = zip(values.texts, codes, strict=True)
            others = tuple((text, code) for text, code in spellings if text != names[code])
            return Category((names[0], names[1]), is_bool=True, spellings=others)
    return None


def refused(values: Texts, reading: Reading) -> Unfit:
    """Why a column that mostly holds numbers cannot be read as numbers."""
    if len(reading.units) > 1:
        units = ", ".join(f"{unit or 'without a unit'} ({n})" for unit, n in reading.units.items())
        wrong = np.flatnonzero(np.isnan(reading.numbers)).tolist()
        if wrong:
            return Unfit(
                f"numbers are in different units: {units}",
                "convert them to one unit, or read the column as a category",
                values.first_rows(wrong)[:10],
            )
    return not_numbers(values, np.flatnonzero(np.isnan(reading.numbers)).tolist(), reading.convention)


def _assumed(values: Texts, reading: Reading) -> tuple[str, ...]:
    """What was assumed about how numbers are written."""
    how = reading.convention
    remarks = []
    if how.words:
        mark = how.thousands or how.decimal
        place = next((place for place, text in enumerate(values.texts) if mark in text), 0)
        example = f"{values.texts[place]!r} is {written(float(reading.numbers[place]))}"
        remarks.append(f"read with {how.words}: {example}")
    if how.unit:
        remarks.append(f"read as numbers in {how.unit}")
    return tuple(remarks)


def _constant(numbers: Floats) -> Found | None:
    """The reason to leave out numbers that do not differ."""
    known = numbers[~np.isnan(numbers)]
    if not len(known):
        return left_out(NO_VALUES)
    if known.min() == known.max():
        return left_out(CONSTANT if len(known) == len(numbers) else f"{CONSTANT} that has one")
    return None


def _are_running(numbers: Floats) -> bool:
    """Whether numbers are consecutive whole numbers in any order, each once."""
    n = len(numbers)
    low = numbers.min()  # NaN if any is missing
    if n < FEWEST_RUNNING or not float(low).is_integer() or numbers.max() - low != n - 1:
        return False
    return bool((np.sort(numbers) == low + np.arange(n)).all())


def _sort_key(text: str, of_numbers: bool) -> tuple[float, str]:
    return (float(text) if of_numbers else 0.0, text)
