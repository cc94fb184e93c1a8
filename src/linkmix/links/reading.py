"""What users give, read into arrays: pairs, confidences, annotators, groups, subsets of rows and labels.

Every error is a ValueError with the fact, the position and value, and the remedy.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.links.pairs import first_true

LARGEST_ROW = np.iinfo(np.int64).max


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
    if hasattr(given, "columns") and pairs.shape[1:] != (2,):
        raise ValueError(
            f"{name} is a {type(given).__name__} with the columns {', '.join(map(repr, given.columns))}: use "
            "Links.from_table(table), which reads the kind of each link, or give two columns of row numbers"
        )
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"{name} has shape {pairs.shape}: give pairs of row numbers, such as [(0, 1), (2, 5)]")
    if pairs.dtype.kind not in "iu":
        raise ValueError(f"{name} holds {pairs.dtype}, {name}[0] is {tuple(pairs[0].tolist())}: {_way_to_rows(pairs)}")
    outside = (pairs < 0) | (pairs > LARGEST_ROW)
    if (position := first_true(outside.any(axis=1))) is not None:
        raise ValueError(
            f"{name}[{position}] is {tuple(pairs[position].tolist())}: give row numbers from 0 to {LARGEST_ROW}"
        )
    if (position := first_true(pairs[:, 0] == pairs[:, 1])) is not None:
        raise ValueError(f"{name}[{position}] links row {pairs[position, 0]} to itself: remove it")
    return pairs.astype(np.int64)


def read_sets(name: str, given: ArrayLike) -> Ints:
    """Read sets of at least two row numbers each, all of one size, into a new array."""
    try:
        sets = np.asarray(given)
    except ValueError:
        raise ValueError(f"{name} holds sets of different sizes: make a relation for each size") from None
    if sets.ndim != 2 or sets.shape[1] < 2:
        raise ValueError(f"{name} has shape {sets.shape}: give sets of row numbers, such as [(0, 1, 2), (3, 4, 5)]")
    if len(sets) and sets.dtype.kind not in "iu":
        raise ValueError(f"{name} holds {sets.dtype}, {name}[0] is {tuple(sets[0].tolist())}: {_way_to_rows(sets)}")
    if (position := first_true(((sets < 0) | (sets > LARGEST_ROW)).any(axis=1))) is not None:
        raise ValueError(
            f"{name}[{position}] is {tuple(sets[position].tolist())}: give row numbers from 0 to {LARGEST_ROW}"
        )
    ordered = np.sort(sets, axis=1)
    if (position := first_true((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))) is not None:
        raise ValueError(f"{name}[{position}] is {tuple(sets[position].tolist())}, with a row twice: give each once")
    return sets.astype(np.int64)


def read_subset(rows: ArrayLike, check_rows: Callable[[int], None]) -> Ints:
    """Read the numbers of different rows, or a mask over all rows, whose number is then checked."""
    kept = np.asarray(rows)
    if kept.ndim != 1:
        raise ValueError(f"rows has shape {kept.shape}: give a list of row numbers, or a mask with one entry per row")
    if kept.dtype.kind == "b":
        check_rows(len(kept))
        return np.flatnonzero(kept)
    if len(kept) and kept.dtype.kind not in "iu":
        example = kept[:1].tolist()[0]
        raise ValueError(f"rows holds {kept.dtype}, such as {example!r}: give integers, or a mask of booleans")
    if (position := first_true((kept < 0) | (kept > LARGEST_ROW))) is not None:
        raise ValueError(f"rows[{position}] is {kept[position]}: give row numbers from 0 to {LARGEST_ROW}")
    ordered = np.sort(kept)
    if (position := first_true(ordered[1:] == ordered[:-1])) is not None:
        raise ValueError(f"rows holds row {ordered[position]} more than once: give each row once")
    return kept.astype(np.int64)


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
    if (i := first_true(~is_confidence(confidence).ravel())) is not None:
        where = f"{name}[{i}]" if values.ndim else name
        raise ValueError(f"{where} is {confidence.ravel()[i]}: give a number above 0 and at most 1, or remove the link")
    return np.array(np.broadcast_to(confidence, n)) if n else None


def is_confidence(value: Any) -> Any:
    """Tell of a number, or of each number in an array, whether it can be a confidence; NaN cannot."""
    return (value > 0) & (value <= 1)


def read_annotators(name: str, given: Iterable[Hashable] | None, n: int) -> Array | None:
    """Read one annotator per link, or one for all, into a new array."""
    if given is None:
        return None
    values = [given] * n if isinstance(given, str) else as_list(name, given)
    if len(values) != n:
        raise ValueError(f"{name} has {len(values)} entries for {n} links: give one per link, or a single name")
    check_hashable(values, lambda i: f"{name}[{i}]")
    known = [None if is_missing(value) else value for value in values]
    return None if all(value is None for value in known) else np.fromiter(known, dtype=object, count=n)


def read_chosen(name: str, given: ArrayLike | None, n: int) -> Array | None:
    """Read whether each link was chosen, or all of them, into a new array."""
    if given is None:
        return None
    values = np.asarray(given)
    if values.shape not in ((), (n,)):
        raise ValueError(f"{name} has shape {values.shape} for {n} links: give True or False per link, or a single one")
    if values.size and values.dtype.kind != "b":
        example = values.ravel()[:1].tolist()[0]
        raise ValueError(f"{name} holds {values.dtype}, such as {example!r}: give True or False")
    return np.array(np.broadcast_to(values, n)) if values.any() and n else None


def check_hashable(values: Iterable[Any], where: Callable[[int], str]) -> None:
    """Raise a ValueError at the first value that is not hashable."""
    for i, value in enumerate(values):
        try:
            hash(value)
        except TypeError:
            raise ValueError(f"{where(i)} is {value!r}: give something hashable, such as a text or number") from None


def _way_to_rows(given: Array) -> str:
    """What to do about row numbers of another type: texts are ids."""
    if any(isinstance(value, str) for value in given.ravel().tolist()):
        return (
            "give row numbers, or links by ids to Links.from_table, such as {'a': ['x'], 'b': ['y'], 'kind': ['must']}"
        )
    return "give row numbers of an integer type, for example with astype(int)"


def is_missing(value: Any) -> bool:
    """Tell whether a value is missing: None, NaN, or the NA of pandas."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA has no truth value
        return True


def as_list(name: str, column: Any) -> list[Any]:
    """Entries of a list, array or column as Python objects."""
    if isinstance(column, (str, bytes, Mapping)) or not isinstance(column, Iterable):
        raise ValueError(f"{name} is {column!r}: give a sequence with one entry per row")
    if getattr(column, "ndim", 1) != 1:
        raise ValueError(f"{name} has shape {np.asarray(column).shape}: give a sequence with one entry per row")
    for method in ("tolist", "to_list", "to_pylist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def read_labels(y: Iterable[Hashable], name: str = "y", unknown: float | None = -1) -> tuple[Ints, Ints]:
    """Rows with a known label, and their labels numbered by first appearance.

    Besides what is missing, one number may stand for unknown.
    """
    labels = as_list(name, y)
    code_of: dict[Hashable, int] = {}
    codes = []
    try:
        for label in labels:
            code = code_of.get(label)
            if code is None:
                is_unknown = is_missing(label) or (isinstance(label, Real) and label == unknown)
                code = -1 if is_unknown else code_of.setdefault(label, len(code_of))
            codes.append(code)
    except TypeError:
        check_hashable(labels, lambda i: f"{name}[{i}]")
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
