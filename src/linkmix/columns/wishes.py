"""What the user asks a column to be taken for."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from linkmix.columns.detection import ASKED, CONSTANT, NO_VALUES, Found, category, left_out, ordered, truth_values
from linkmix.columns.kinds import Category, Number, as_numbers, as_texts, what_it_is
from linkmix.columns.numerals import Convention, read_numerals
from linkmix.columns.problems import Unfit
from linkmix.columns.values import Flags, Numbers, Texts, Values, written

KINDS = ("number", "count", "category", "bool", "ordered", "ignore")
"""Kinds that a column can be asked to be of."""


@dataclass(frozen=True)
class Wish:
    """A kind, and what is said about it: the levels of an ordered category."""

    kind: str
    details: tuple[str, ...] = ()


def read_wishes(kinds: Mapping[str, str | Sequence[str]], columns: Collection[str]) -> dict[str, Wish]:
    """What is asked of each column, checked."""
    unknown = [name for name in kinds if name not in columns]
    if unknown:
        raise ValueError(
            f"kinds names {', '.join(map(repr, unknown))}, and the table has no such column: "
            f"choose from {', '.join(map(repr, columns))}"
        )
    return {name: _wish(name, kind) for name, kind in kinds.items()}


def _wish(name: str, kind: str | Sequence[str]) -> Wish:
    if not isinstance(kind, str):
        return Wish("ordered", _levels(name, [str(level) for level in kind]))
    what, _, rest = kind.partition(":")
    if what == "ordered" and rest:
        return Wish("ordered", _levels(name, rest.split("|" if "|" in rest else "<")))
    if what not in KINDS or rest:
        raise ValueError(f"kinds[{name!r}] is {kind!r}: choose one of {', '.join(KINDS)}")
    return Wish(what)


def _levels(name: str, levels: Sequence[str]) -> tuple[str, ...]:
    stripped = tuple(level.strip() for level in levels)
    if len(set(stripped)) < len(stripped) or len(stripped) < 2 or "" in stripped:
        raise ValueError(
            f"kinds[{name!r}] has the levels {stripped}: name two or more different ones from low to high, "
            "such as 'ordered:low<mid<high'; with < in their names, such as 'ordered:<10|10-20|>20'"
        )
    return stripped


def as_asked(values: Values, wish: Wish, folder: str) -> Found:
    """What a column becomes if it is taken for what the user asks."""
    match wish.kind:
        case "ignore":
            return left_out(ASKED)
        case "number" | "count":
            return _number(values, wish.kind == "count")
        case "category":
            return _category(values)
        case "bool":
            return _bool(values)
        case "ordered":
            return _ordered(values, wish.details)
    raise NotImplementedError(wish.kind)


def _number(values: Values, is_count: bool) -> Found:
    convention = Convention()
    if isinstance(values, Texts):
        reading = read_numerals(values.texts, values.counts)
        convention = convention if reading is None else reading.convention
    unit = values.unit if isinstance(values, Numbers) else ""
    kind = Number(convention, is_count, unit)
    numbers = kind(values, "")
    return _without_values(numbers.ravel()) or Found(kind)


def _category(values: Values) -> Found:
    if isinstance(values, Flags):
        return Found(Category(("False", "True"), is_bool=True))
    texts = as_texts(values)
    counts = texts.counts
    return _without_values(texts.spread(np.arange(float(len(counts))))) or category(
        texts, asked=True, of_numbers=isinstance(values, Numbers)
    )


def _bool(values: Values) -> Found:
    if isinstance(values, Flags):
        return Found(Category(("False", "True"), is_bool=True))
    texts = as_texts(values)
    found = _without_values(texts.spread(np.arange(float(len(texts.texts)))))
    if found is not None:
        return found
    truth = truth_values(texts)
    if truth is None and len(texts.texts) == 2:
        numeric = isinstance(values, Numbers) or read_numerals(texts.texts, texts.counts) is not None
        order = sorted(texts.texts, key=float) if numeric else sorted(texts.texts)
        truth = Category((order[0], order[1]), is_bool=True, of_numbers=numeric)
    if truth is None:
        shown = ", ".join(map(repr, texts.texts[:5]))
        raise Unfit(f"{len(texts.texts)} different values are not true or false ({shown})", "read it as a category")
    return Found(truth)


def _ordered(values: Values, levels: tuple[str, ...]) -> Found:
    if levels:
        return Found(ordered(values, levels, of_numbers=isinstance(values, Numbers)))
    if isinstance(values, Texts):
        if values.declared:
            return Found(ordered(values, values.texts))
        reading = read_numerals(values.texts, values.counts)
        if reading is None or reading.share < 1:
            raise Unfit("the order of its levels is not known", "name them, such as 'ordered:low<mid<high'")
        order = np.argsort(reading.numbers, kind="stable").tolist()
        return Found(ordered(values, tuple(values.texts[place] for place in order)))
    numbers = as_numbers(values, Convention())
    different = np.unique(numbers[~np.isnan(numbers)])
    if not isinstance(values, Numbers | Flags):
        raise Unfit(f"holds {what_it_is(values)}, which have no levels", "read it by its own kind")
    return Found(ordered(Numbers(numbers), tuple(written(float(number)) for number in different), of_numbers=True))


def _without_values(numbers: np.ndarray) -> Found | None:
    known = numbers[~np.isnan(numbers)]
    if not len(known):
        return left_out(NO_VALUES)
    return left_out(CONSTANT) if known.min() == known.max() else None
