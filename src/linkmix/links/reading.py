"""What users give, read into arrays: pairs, confidences, annotators, tables, ids and labels.

Every error is a ValueError with the fact, the position and value, and the remedy.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.links.pairs import first_true

LARGEST_ROW = np.iinfo(np.int64).max

_NEEDED_COLUMNS = ("a", "b", "kind")
_COLUMNS = (*_NEEDED_COLUMNS, "confidence", "annotator")
_IS_MUST = {
    **dict.fromkeys(("must", "must-link", "same", "1", 1), True),
    **dict.fromkeys(("cannot", "cannot-link", "different", "-1", -1), False),
}


def read_pairs(name: str, given: ArrayLike) -> Ints:
    """Read pairs of row numbers into a new array."""
    try:
        pairs = np.asarray(given)
    except ValueError:  # numpy's message on ragged lists does not say where
        sizes = [np.size(pair) for pair in given]  # type: ignore[union-attr]
        i, size = next((i, size) for i, size in enumerate(sizes) if size != 2)
        raise ValueError(f"{name}[{i}] has {size} entries: give pairs of row numbers") from None
    if pairs.shape in ((0,), (0, 2)):  # of any type: an empty list is an array of floats
        return np.empty((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"{name} has shape {pairs.shape}: give pairs of row numbers, such as [(0, 1), (2, 5)]")
    if pairs.dtype.kind not in "iu":
        raise ValueError(
            f"{name} holds {pairs.dtype}, {name}[0] is {tuple(pairs[0].tolist())}: "
            "give row numbers of an integer type, for example with astype(int)"
        )
    outside = (pairs < 0) | (pairs > LARGEST_ROW)
    if (position := first_true(outside.any(axis=1))) is not None:
        raise ValueError(
            f"{name}[{position}] is {tuple(pairs[position].tolist())}: give row numbers from 0 to {LARGEST_ROW}"
        )
    if (position := first_true(pairs[:, 0] == pairs[:, 1])) is not None:
        raise ValueError(f"{name}[{position}] links row {pairs[position, 0]} to itself: remove it")
    return pairs.astype(np.int64)


def read_group(name: str, given: ArrayLike) -> Ints:
    """Read the row numbers of a group into a new array."""
    rows = np.asarray(given)
    if rows.ndim != 1 or rows.size == 0 or rows.dtype.kind not in "iu" or rows.min() < 0:
        raise ValueError(f"{name} is {given!r}: give a list of row numbers from 0, such as [0, 4, 7]")
    values, counts = np.unique(rows, return_counts=True)
    if counts.max() > 1:
        raise ValueError(f"{name} holds row {values[counts > 1][0]} more than once: give each row once")
    return rows.astype(np.int64)


def read_confidence(name: str, given: ArrayLike | None, n: int) -> Floats | None:
    """Read one confidence per link, or one for all, into a new array."""
    if given is None:
        return None
    values = np.asarray(given)
    if values.shape not in ((), (n,)):
        raise ValueError(f"{name} has shape {values.shape} for {n} links: give one number per link, or a single one")
    if values.size and values.dtype.kind not in "iuf":
        example = values.ravel()[:1].tolist()[0]
        raise ValueError(f"{name} holds {values.dtype}, such as {example!r}: give numbers above 0 and at most 1")
    confidence = values.astype(np.float64)
    _check_confidence(confidence.ravel(), lambda i: f"{name}[{i}]" if values.ndim else name)
    return np.array(np.broadcast_to(confidence, n)) if n else None


def _check_confidence(values: Floats, where: Callable[[int], str]) -> None:
    if (i := first_true(~((values > 0) & (values <= 1)))) is not None:
        raise ValueError(f"{where(i)} is {values[i]}: give a number above 0 and at most 1, or remove the link")


def read_annotators(name: str, given: Iterable[Hashable] | None, n: int) -> Array | None:
    """Read one annotator per link, or one for all, into a new array."""
    if given is None:
        return None
    values = [given] * n if isinstance(given, str) else _listed(name, given)
    if len(values) != n:
        raise ValueError(f"{name} has {len(values)} entries for {n} links: give one per link, or a single name")
    check_hashable(values, lambda i: f"{name}[{i}]")
    known = [None if is_missing(value) else value for value in values]
    return None if all(value is None for value in known) else np.fromiter(known, dtype=object, count=n)


def check_hashable(values: Iterable[Any], where: Callable[[int], str]) -> None:
    """Raise a ValueError at the first value that is not hashable."""
    for i, value in enumerate(values):
        try:
            hash(value)
        except TypeError:
            raise ValueError(f"{where(i)} is {value!r}: give something hashable, such as a text or number") from None


def is_missing(value: Any) -> bool:
    """Tell whether a value stands for nothing: None, NaN, or the NA of pandas."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA has no truth value
        return True


def _listed(name: str, column: Any) -> list[Any]:
    """Entries of a list, array or column as Python objects."""
    if isinstance(column, (str, bytes, Mapping)) or not isinstance(column, Iterable):
        raise ValueError(f"{name} is {column!r}: give a sequence with one entry per row")
    if getattr(column, "ndim", 1) != 1:
        raise ValueError(f"{name} has shape {np.asarray(column).shape}: give a sequence with one entry per row")
    for method in ("tolist", "to_list"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def read_columns(table: Any) -> dict[str, list[Any]]:
    """Read the columns that describe links, all of one length, from a frame, a dict of columns or rows as dicts."""
    if isinstance(table, Mapping) or hasattr(table, "columns"):
        present = list(table) if isinstance(table, Mapping) else list(table.columns)
        columns = {name: _listed(f"table column {name!r}", table[name]) for name in _COLUMNS if name in present}
    else:
        rows = _listed("table", table)
        for i, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise ValueError(f"table row {i} is {row!r}: give a mapping with 'a', 'b' and 'kind'")
        present = list(dict.fromkeys(name for row in rows for name in row)) if rows else list(_NEEDED_COLUMNS)
        columns = {name: [row.get(name) for row in rows] for name in _COLUMNS if name in present}
    for name in _NEEDED_COLUMNS:
        if name not in columns:
            raise ValueError(f"table has the columns {present}, but no {name!r}: name its columns 'a', 'b' and 'kind'")
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the columns of table differ in length, {lengths}: give one entry per link in each")
    return columns


def read_ids(ids: Iterable[Hashable]) -> dict[Hashable, int]:
    """Row of each id, in the order of the rows."""
    values = _listed("ids", ids)
    check_hashable(values, lambda i: f"ids[{i}]")
    row_of: dict[Hashable, int] = {}
    for row, value in enumerate(values):
        if is_missing(value):
            raise ValueError(f"ids[{row}] is {value}: give every row an id")
        if row_of.setdefault(value, row) != row:
            raise ValueError(f"ids[{row_of[value]}] and ids[{row}] are both {value!r}: give every row an id of its own")
    return row_of


def read_rows(column: list[Any], name: str, row_of: dict[Hashable, int] | None) -> list[int]:
    """Rows that a column of a table names, by their ids if there are any."""
    rows = []
    for i, value in enumerate(column):
        if row_of is None:
            if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= int(value) <= LARGEST_ROW:
                raise ValueError(
                    f"table row {i}: {name} is {value!r}, not a row number: "
                    f"give integers from 0 to {LARGEST_ROW}, or the ids of the rows as ids"
                )
            rows.append(int(value))
        else:
            try:
                rows.append(row_of[value])
            except (KeyError, TypeError):  # a TypeError if it is not hashable
                example = f"such as {next(iter(row_of))!r}" if row_of else "there are none"
                raise ValueError(
                    f"table row {i}: {name} is {value!r}, which is not among the ids ({example}): "
                    "correct it, or read ids and table with the same type"
                ) from None
    return rows


def read_kinds(column: list[Any]) -> list[bool]:
    """Tell for each row of a table whether it is a must-link."""
    kinds = []
    for i, given in enumerate(column):
        kind = given.strip().lower() if isinstance(given, str) else given
        # Only these types, because True is equal to 1, and some other types can not be compared.
        is_must = _IS_MUST.get(kind) if isinstance(kind, (str, Real)) and not isinstance(kind, bool) else None
        if is_must is None:
            raise ValueError(f"table row {i}: kind is {given!r}: use 'must' or 'cannot'")
        kinds.append(is_must)
    return kinds


def read_table_confidence(column: list[Any], rows: Ints) -> Floats | None:
    """Read the confidences in some rows of a table: 1 where there is none, None if there is none at all."""
    values = []
    for i in rows.tolist():
        value = None if is_missing(column[i]) else column[i]
        if value is not None and (isinstance(value, bool) or not isinstance(value, Real)):
            raise ValueError(f"table row {i}: confidence is {value!r}: give a number, or nothing for a certain link")
        values.append(value)
    if all(value is None for value in values):
        return None
    confidence = np.array([1.0 if value is None else float(value) for value in values])
    _check_confidence(confidence, lambda i: f"table row {rows[i]}: confidence")
    return confidence


def read_labels(y: Iterable[Hashable]) -> tuple[Ints, Ints]:
    """Rows with a known label, and their labels numbered by first appearance."""
    labels = _listed("y", y)
    code_of: dict[Hashable, int] = {}
    codes = []
    try:
        for label in labels:
            code = code_of.get(label)
            if code is None:
                is_unknown = is_missing(label) or (isinstance(label, Real) and label == -1)
                code = -1 if is_unknown else code_of.setdefault(label, len(code_of))
            codes.append(code)
    except TypeError:
        check_hashable(labels, lambda i: f"y[{i}]")
        raise
    encoded = np.array(codes, dtype=np.int64)
    rows = np.flatnonzero(encoded >= 0)
    return rows, encoded[rows]


def read_random_state(
    random_state: int | np.random.RandomState | np.random.Generator | None,
) -> np.random.RandomState:
    """Turn what scikit-learn accepts, or a Generator, into a source of random numbers."""
    if isinstance(random_state, np.random.Generator):
        return np.random.RandomState(random_state.bit_generator)  # one stream, so the generator moves on as well
    from sklearn.utils import check_random_state  # late: links are seldom drawn, and this takes a second

    return check_random_state(random_state)  # type: ignore[no-any-return]
