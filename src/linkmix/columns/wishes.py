"""What the user asks a column to be taken for."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from linkmix.columns import detection
from linkmix.columns.dates import DIGITS, days_of_digits, read_dates
from linkmix.columns.detection import Found, constant, left_out
from linkmix.columns.kinds import Category, Number, as_texts
from linkmix.columns.moments import PARTS, Date, as_clock, as_moments, not_dates
from linkmix.columns.numerals import Convention, read_numerals
from linkmix.columns.problems import Unfit
from linkmix.columns.values import Clock, Flags, Moments, Numbers, Texts, Values, what_it_is
from linkmix.columns.wide import Sentences, as_plain_texts, embedded, reduction

KINDS = (
    *("number", "count", "category", "bool", "ordered", "ordered:LOW<...<HIGH", "date", "date+month+weekday+hour"),
    *("text", "sentences:MODEL", "vector", "picture", "ignore"),
)
"""What a column can be asked to be. In capitals: names of levels, and the name or path of a model of the package
sentence-transformers. Any of month, weekday and hour can be added to a date."""


@dataclass(frozen=True)
class Wish:
    """A kind, and what is said about it: levels of an ordered category, parts of a date, a model."""

    kind: str
    details: tuple[str, ...] = ()


def read_wishes(kinds: Mapping[str, str | Sequence[str]], columns: Collection[str]) -> dict[str, Wish]:
    """What is asked of each column, checked.

    Examples
    --------
    >>> read_wishes({"size": "ordered:S<M<L", "born": "date+month"}, ["size", "born", "town"])
    {'size': Wish(kind='ordered', details=('S', 'M', 'L')), 'born': Wish(kind='date', details=('month',))}
    """
    unknown = [str(name) for name in kinds if str(name) not in columns]
    if unknown:
        what = "no such column" if len(unknown) == 1 else "no such columns"
        raise ValueError(
            f"kinds names {', '.join(map(repr, unknown))}, and the table has {what}: "
            f"choose from {', '.join(map(repr, columns))}"
        )
    return {str(name): _wish(name, kind) for name, kind in kinds.items()}


def _wish(name: str, kind: str | Sequence[str]) -> Wish:
    if not isinstance(kind, str):
        return Wish("ordered", _levels(name, [str(level) for level in kind]))
    what, _, rest = kind.partition(":")
    what, *parts = what.split("+")
    if what == "ordered" and rest and not parts:
        return Wish(what, _levels(name, rest.split("|" if "|" in rest else "<")))
    if what == "sentences" and rest and not parts:
        return Wish(what, (rest,))
    if what == "date" and not rest and set(parts) <= set(PARTS):
        return Wish(what, tuple(part for part in PARTS if part in parts))
    if what not in KINDS or rest or parts:
        raise ValueError(f"kinds[{name!r}] is {kind!r}: choose one of {', '.join(KINDS)}")
    return Wish(what)


def _levels(name: str, levels: Sequence[str]) -> tuple[str, ...]:
    stripped = tuple(level.strip() for level in levels)
    if len(set(stripped)) < len(stripped) or len(stripped) < 2 or "" in stripped:
        raise ValueError(
            f"kinds[{name!r}] has the levels {stripped}: name two or more different ones from low to high, "
            "such as 'ordered:low<mid<high'; if names contain <, such as 'ordered:<10|10-20|>20'"
        )
    return stripped


def as_asked(values: Values, wish: Wish, folder: str) -> Found:
    """What a column becomes if it is taken for what the user asks.

    Parameters
    ----------
    values : Values
        The values of the column.
    wish : Wish
        What is asked.
    folder : str
        Folder in which relative paths of pictures begin.

    Returns
    -------
    Found

    Raises
    ------
    Unfit
        If the values cannot be that.
    """
    if isinstance(values, Texts):
        found = constant(np.where(values.codes < 0, np.nan, values.codes))
        if found is not None:
            return found
    match wish.kind:
        case "number" | "count":
            return _number(values, wish.kind == "count")
        case "category":
            return _category(values)
        case "bool":
            return _bool(values)
        case "ordered":
            return _ordered(values, wish.details)
        case "date":
            return _date(values, wish.details)
        case "text":
            return detection.of_words(as_plain_texts(values))
        case "sentences":
            return _sentences(as_plain_texts(values), wish.details[0])
        case "vector":
            return detection.of_vectors(values)
        case "picture":
            return detection.of_pictures(as_plain_texts(values), folder)
    return left_out(detection.ASKED)


def _number(values: Values, is_count: bool) -> Found:
    if isinstance(values, Moments) and not is_count:
        return constant(values.instants) or Found(Date())
    if isinstance(values, Clock) and not is_count:
        return detection.of_clock(values)
    kind = Number(is_count=is_count)
    remarks: tuple[str, ...] = ()
    if isinstance(values, Numbers):
        kind = replace(kind, unit=values.unit)
    if isinstance(values, Texts):
        reading = read_numerals(values.texts, values.counts, also_codes=True)
        if reading is not None:
            kind, remarks = replace(kind, convention=reading.convention), detection.assumed(values, reading)
    return constant(kind(values, "")[:, 0]) or Found(kind, remarks=remarks)


def _category(values: Values) -> Found:
    if isinstance(values, Flags):
        return detection.detect(values)
    texts = as_texts(values)
    found = constant(np.where(texts.codes < 0, np.nan, texts.codes))
    return found or detection.category(texts, Convention() if isinstance(values, Numbers) else None, asked=True)


def _bool(values: Values) -> Found:
    if isinstance(values, Flags):
        return detection.detect(values)
    texts = as_texts(values)
    found = constant(np.where(texts.codes < 0, np.nan, texts.codes))
    if found is not None:
        return found
    truth = detection.truth_values(texts)
    if truth is not None:
        return Found(truth)
    if len(texts.texts) != 2:
        shown = ", ".join(map(repr, texts.texts[:5]))
        fact = f"{len(texts.texts)} different values, such as {shown}, are not true and false"
        raise Unfit(fact, "correct them, name them as missing, or read the column as a category")
    two = detection.category(texts, Convention() if isinstance(values, Numbers) else None).kind
    return Found(replace(two, is_bool=True) if isinstance(two, Category) else two)


def _ordered(values: Values, levels: tuple[str, ...]) -> Found:
    if isinstance(values, Texts) and values.declared and not levels:
        levels = values.texts
    if levels:
        return Found(detection.ordered(as_texts(values), levels))
    if not isinstance(values, Texts | Numbers):
        raise Unfit(f"holds {what_it_is(values)}, which have no levels", "name another kind")
    convention = Convention()
    if isinstance(values, Texts):
        reading = read_numerals(values.texts, values.counts)
        if reading is None or reading.share < 1:
            raise Unfit("the order of its levels is not known", "name them, such as 'ordered:low<mid<high'")
        convention, values = reading.convention, Numbers(np.asarray(values.spread(reading.numbers)))
    found = as_texts(values)
    return constant(values.numbers) or Found(detection.ordered(found, found.texts, convention))


def _date(values: Values, parts: tuple[str, ...]) -> Found:
    match values:
        case Texts():
            reading = read_dates(values.texts, values.counts)
            if reading is None:
                raise Unfit("no value is a date", "write dates such as 2024-01-31", values.first_rows([0]))
            if reading.share < 1:
                raise not_dates(values, np.flatnonzero(np.isnan(reading.days[:, 0])), reading.format)
            found = detection.of_dates(values, reading)
        case Numbers() if days_of_digits(values.numbers) is not None:
            found = detection.of_moments(as_moments(values, DIGITS), DIGITS)
        case Clock():
            found = detection.of_clock(as_clock(values))
        case _:
            found = detection.of_moments(as_moments(values, ""))
    return replace(found, kind=replace(found.kind, parts=parts)) if parts and isinstance(found.kind, Date) else found


def _sentences(values: Texts, model: str) -> Found:
    found = reduction(embedded(values.texts, model))
    return left_out(detection.CONSTANT) if found is None else Found(Sentences(model, found))
