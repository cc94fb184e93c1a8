"""Columns of Python objects and of NumPy's arrays as plain values."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.columns.problems import Unfit
from linkmix.columns.values import DAY, Clock, Flags, Foreign, Moments, Numbers, Texts, Values, Vectors, written


def from_array(column: Array) -> Values:
    """Values of an array of NumPy."""
    if column.ndim == 2 and column.dtype.kind in "biuf":
        return Vectors(column.astype(np.float64))
    if column.ndim != 1:
        return Foreign(f"an array of shape {column.shape}", len(column))
    match column.dtype.kind:
        case "b":
            return Flags(column.astype(np.float64))
        case "i" | "u" | "f":
            return Numbers(column.astype(np.float64))
        case "M":
            return moments(column)
        case "m":
            return Numbers(_since(column, np.timedelta64(0, "D")), "days")
        case "c":
            return Foreign("complex numbers", len(column))
        case "S" | "V":
            return Foreign("bytes", len(column))
    return from_objects(column.tolist())


def from_objects(column: list[Any]) -> Values:
    """Values of Python objects, which may be of several classes."""
    kinds = set(map(type, column)) - {type(None)}
    if not kinds <= {str}:
        column = [None if _is_nothing(value) else value for value in column]
        kinds = set(map(type, column)) - {type(None)}
    if not kinds:
        return Texts((), np.full(len(column), -1))
    if all(issubclass(kind, bool | np.bool_) for kind in kinds):
        return Flags(_numbers(column))
    if all(issubclass(kind, Real | Decimal | np.bool_) for kind in kinds):
        return Numbers(_numbers(column))
    if all(issubclass(kind, date | np.datetime64) for kind in kinds):
        found = np.array([(np.nan, np.nan) if value is None else _instant(value) for value in column])
        return Moments(found[:, 0], found[:, 1])
    if all(issubclass(kind, time) for kind in kinds):
        return Clock(np.array([np.nan if value is None else _hours(value) for value in column]))
    if all(issubclass(kind, timedelta | np.timedelta64) for kind in kinds):
        return from_array(np.array([None if value is None else np.timedelta64(value) for value in column], "m8[us]"))
    if any(issubclass(kind, list | tuple | np.ndarray) for kind in kinds):
        return _vectors(column)
    if any(issubclass(kind, bytes | bytearray | Mapping | set | complex) for kind in kinds):
        what = sorted(kind.__name__ for kind in kinds)
        return Foreign(f"values of class {' and '.join(what)}", len(column))
    if kinds <= {str}:
        names, codes = coded(column)
    else:
        names, codes = coded([None if value is None else _written(value) for value in column])
    return Texts(tuple(names), codes)


_NOTHING = {"NoneType", "NAType", "NaTType"}


def _is_nothing(value: Any) -> bool:
    """Whether a value is None, NaN, or the NA or NaT of pandas or NumPy."""
    if value is None or type(value).__name__ in _NOTHING:
        return True
    if isinstance(value, float | np.floating | Decimal | np.datetime64 | np.timedelta64):
        return bool(value != value)
    return False


def _numbers(column: list[Any]) -> Floats:
    return np.array([np.nan if value is None else float(value) for value in column], dtype=np.float64)


def _written(value: Any) -> str:
    return written(float(value)) if isinstance(value, Real) and not isinstance(value, bool) else str(value)


def coded(column: list[str | None]) -> tuple[list[str], Ints]:
    """Different texts in the order of their first rows, and the place of each row's text."""
    place_of: dict[str | None, int] = {}
    codes = np.fromiter((place_of.setdefault(value, len(place_of)) for value in column), np.int64, len(column))
    if None not in place_of:
        return list(place_of), codes  # type: ignore[arg-type]
    nothing = place_of.pop(None)
    return list(place_of), np.where(codes == nothing, -1, codes - (codes > nothing))  # type: ignore[arg-type]


def categories(names: list[Any], codes: Array, ordered: bool) -> Values:
    """Values of a category that the table declares, from its levels and the level of each row."""
    texts = Texts(tuple(map(_written, names)), codes.astype(np.int64), declared=True, ordered=ordered)
    if names and all(isinstance(name, bool) for name in names):
        return Flags(texts.spread(np.array(names, dtype=np.float64)))
    return texts


def moments(column: Array) -> Moments:
    """Dates and times without a zone."""
    days = days_since_1970(column)
    return Moments(days, days)


def days_since_1970(column: Array) -> Floats:
    """Dates of NumPy as days, NaN where there is none."""
    return _since(column, np.datetime64("1970-01-01"))


def _since(column: Array, origin: Any) -> Floats:
    """Days since an origin, NaN where there is nothing."""
    exact = column.astype("M8[us]" if column.dtype.kind == "M" else "m8[us]")
    found = (exact - origin).astype(np.float64) / (DAY * 1e6)
    found[np.isnat(column)] = np.nan
    return np.asarray(found)


def _instant(value: Any) -> tuple[float, float]:
    if isinstance(value, np.datetime64):
        found = float(days_since_1970(np.array([value]))[0])
        return found, found
    if not isinstance(value, datetime):
        day = float((value - date(1970, 1, 1)).days)
        return day, day
    wall = (value.replace(tzinfo=None) - datetime(1970, 1, 1)) / timedelta(days=1)
    if value.tzinfo is None:
        return wall, wall
    return (value - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(days=1), wall


def _hours(value: time) -> float:
    return value.hour + value.minute / 60 + (value.second + value.microsecond / 1e6) / 3600


def _vectors(column: list[Any]) -> Values:
    """Rows of numbers from lists."""
    rows: list[Floats] = []
    wrong = []
    for row, value in enumerate(column):
        try:
            found = None if value is None else np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            wrong.append(row)
            continue
        if found is not None and found.ndim != 1:
            wrong.append(row)
        elif found is not None:
            rows.append(found)
    if wrong and not rows:
        return Foreign("lists that are not of numbers", len(column))
    if wrong:
        raise Unfit(f"row {wrong[0]} is not a list of numbers", "correct it, or leave the column out")
    filled = np.array([value is not None for value in column])
    return equal_vectors(filled, np.array([len(found) for found in rows]), np.concatenate(rows))


def equal_vectors(filled: Array, lengths: Array, flat: Floats) -> Values:
    """Rows of numbers (n, d) from the lengths and the numbers of those that are filled; refused if lengths differ."""
    if not len(lengths):
        return Texts((), np.full(len(filled), -1))
    values, counts = np.unique(lengths, return_counts=True)
    width = int(values[np.argmax(counts)])
    rows = np.flatnonzero(filled)
    if len(values) > 1:
        wrong = np.flatnonzero(lengths != width)
        said = ", ".join(f"row {rows[place]} has {lengths[place]}" for place in wrong[:3])
        raise Unfit(
            f"vectors differ in length: most have {width} numbers, {said}",
            "give vectors of one length, or leave the column out",
        )
    found = np.full((len(filled), width), np.nan)
    found[rows] = flat.reshape(len(rows), width)
    return Vectors(found)
