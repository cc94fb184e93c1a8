"""The columns of a table as plain values, wherever the table comes from.

Tables of pandas, polars and pyarrow are recognised by the modules that are loaded already: a package that the table
does not come from is never imported.
"""

import sys
from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.columns.problems import Unfit
from linkmix.columns.values import DAY, Clock, Flags, Foreign, Moments, Numbers, Texts, Values, Vectors, written

MISSING = frozenset(
    {
        *("", "NA", "N/A", "n/a", "NaN", "nan", "-NaN", "-nan", "null", "NULL", "None", "<NA>", "#NA", "#N/A", "NaT"),
        *("#N/A N/A", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
    }
)
"""Texts that stand for a missing value: those of pandas, and NaT."""


def is_table(X: object) -> bool:
    """Whether this is a table of named columns: of pandas, polars or pyarrow, or a mapping of columns.

    Parameters
    ----------
    X : object
        Anything.

    Returns
    -------
    bool

    Examples
    --------
    >>> is_table({"height": [1.8, 1.6]}), is_table([[1.8], [1.6]])
    (True, False)
    """
    return isinstance(X, Mapping) or _home(X, _TABLES) != ""


def needs_recipe(X: object) -> bool:
    """Whether a table has anything but plain columns of numbers and truth values.

    Parameters
    ----------
    X : object
        Anything; what is not a table needs no recipe.

    Returns
    -------
    bool

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"height": [1.8, 1.6], "smokes": [True, False], "town": ["Ulm", "Rom"]})
    >>> needs_recipe(table), needs_recipe(table[["height", "smokes"]])
    (True, False)
    """
    if isinstance(X, Mapping):
        return True
    match _home(X, _TABLES):
        case "pandas":
            kinds = X.dtypes.tolist()  # type: ignore[attr-defined]
            return not all(getattr(kind, "kind", "O") in "biuf" for kind in kinds)
        case "polars":
            return not all(kind.is_numeric() or str(kind) == "Boolean" for kind in X.dtypes)  # type: ignore[attr-defined]
        case "pyarrow":
            from linkmix.data.parquet import is_numeric

            return not all(is_numeric(kind) for kind in X.schema.types)  # type: ignore[attr-defined]
    return False


def columns_of(table: Any) -> dict[str, Any]:
    """The columns of a table by their names, as they are in it.

    Parameters
    ----------
    table : DataFrame of pandas or polars, Table of pyarrow, or mapping
        The table; columns of a mapping are lists, arrays or columns of these packages.

    Returns
    -------
    dict of str to object
    """
    match "mapping" if isinstance(table, Mapping) else _home(table, _TABLES):
        case "mapping":
            names, columns = list(table), list(table.values())
        case "pandas":
            names, columns = list(table.columns), [table.iloc[:, place] for place in range(table.shape[1])]
        case "polars":
            names, columns = list(table.columns), list(table.get_columns())
        case "pyarrow":
            names, columns = list(table.schema.names), [table.column(place) for place in range(table.num_columns)]
        case _:
            raise ValueError(f"the table is a {type(table).__name__}: give a table of pandas, polars or pyarrow")
    names = [str(name) for name in names]
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise ValueError(f"the table has more than one column called {twice!r}: rename one")
    return dict(zip(names, columns, strict=True))


def read_column(column: Any, missing: Collection[str] = MISSING) -> Values:
    """The values of a column.

    Parameters
    ----------
    column : column of pandas, polars or pyarrow, array, or sequence
        The column.
    missing : collection of str
        Texts that stand for a missing value.

    Returns
    -------
    Values

    Raises
    ------
    Unfit
        If rows of numbers differ in length.

    Examples
    --------
    >>> read_column([1, None, 2.5])
    Numbers(numbers=array([1. , nan, 2.5]), unit='')
    >>> read_column([" red", "NA", "red"]).codes.tolist()
    [0, -1, 0]
    """
    match _home(column, _COLUMNS):
        case "pandas":
            found = _from_pandas(column)
        case "polars":
            found = _from_polars(column)
        case "pyarrow":
            found = _from_arrow(column)
        case _:
            found = _from_array(column) if isinstance(column, np.ndarray) else _from_objects(list(column))
    return _cleaned(found, missing) if isinstance(found, Texts) else found


_TABLES = {"pandas": ("DataFrame",), "polars": ("DataFrame",), "pyarrow": ("Table", "RecordBatch")}
_COLUMNS = {"pandas": ("Series", "Index"), "polars": ("Series",), "pyarrow": ("ChunkedArray", "Array")}


def _home(value: object, classes: Mapping[str, tuple[str, ...]]) -> str:
    """The package that a table or column is of, or nothing."""
    for package, names in classes.items():
        module = sys.modules.get(package)
        if module is not None and isinstance(value, tuple(getattr(module, name) for name in names)):
            return package
    return ""


def _from_pandas(column: Any) -> Values:
    import pandas as pd

    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype):
        return _categories(column.array.categories.tolist(), column.array.codes, bool(kind.ordered))
    if isinstance(kind, pd.ArrowDtype):
        import pyarrow as pa

        return _from_arrow(pa.chunked_array(pa.array(column.array)))
    if isinstance(kind, pd.PeriodDtype):
        column = column.dt.to_timestamp()
    if isinstance(kind, pd.DatetimeTZDtype):
        return Moments(_days(column.dt.tz_convert(None).to_numpy()), _days(column.dt.tz_localize(None).to_numpy()))
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biufcMm":
        return _from_array(column.to_numpy())
    if isinstance(kind, pd.BooleanDtype):
        return Flags(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if pd.api.types.is_numeric_dtype(kind):
        return Numbers(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return _from_objects(column.tolist())


def _from_polars(column: Any) -> Values:
    import polars as pl

    kind = column.dtype
    if kind == pl.Boolean:
        return Flags(np.asarray(column.cast(pl.Float64).to_numpy(), dtype=np.float64))
    if kind.is_numeric():
        return Numbers(np.asarray(column.cast(pl.Float64).to_numpy(), dtype=np.float64))
    if kind == pl.Date:
        return _moments(column.to_numpy())
    if kind == pl.Datetime:
        wall = column.dt.replace_time_zone(None)
        if kind.time_zone is None:
            return _moments(wall.to_numpy())
        return Moments(
            _days(column.dt.convert_time_zone("UTC").dt.replace_time_zone(None).to_numpy()), _days(wall.to_numpy())
        )
    if kind == pl.Duration:
        return _from_array(column.to_numpy())
    if kind in (pl.List, pl.Array) and kind.inner.is_numeric():
        filled = column.drop_nulls()
        lengths = (filled.list if kind == pl.List else filled.arr).len().to_numpy()
        flat = filled.explode().cast(pl.Float64).to_numpy() if len(filled) else np.empty(0)
        return _equal_vectors(column.is_not_null().to_numpy(), lengths, flat)
    if kind == pl.Categorical or kind == pl.Enum:
        names, codes = _coded(column.cast(pl.String).to_list())
        if kind == pl.Enum:
            order = {name: place for place, name in enumerate(kind.categories.to_list())}
            codes = np.array([*(order[name] for name in names), -1], dtype=np.int64)[codes]
            names = list(order)
        return Texts(tuple(names), codes, declared=True)
    return _from_objects(column.to_list())


def _from_arrow(column: Any) -> Values:
    import pyarrow as pa
    import pyarrow.compute as pc

    from linkmix.data.parquet import is_numeric

    kind = column.type
    if pa.types.is_dictionary(kind):
        if isinstance(column, pa.ChunkedArray):
            column = column.unify_dictionaries().combine_chunks()
            column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
        codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return _categories(column.dictionary.to_pylist(), codes, bool(kind.ordered))
    if pa.types.is_boolean(kind):
        return Flags(_arrow_numbers(column))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return Numbers(_arrow_numbers(column))
    if pa.types.is_timestamp(kind):
        plain = _moments(column.cast(pa.timestamp(kind.unit)).to_numpy(**_copied(column)))
        if kind.tz is None:
            return plain
        return Moments(plain.instants, _days(pc.local_timestamp(column).to_numpy(**_copied(column))))
    if pa.types.is_date(kind):
        return _moments(column.cast(pa.timestamp("s")).to_numpy(**_copied(column)))
    if pa.types.is_duration(kind):
        return _from_array(column.to_numpy(**_copied(column)))
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if any(is_list(kind) for is_list in lists) and is_numeric(kind.value_type):
        filled = column.drop_null()
        lengths = pc.list_value_length(filled).to_numpy(**_copied(column))
        return _equal_vectors(
            pc.is_valid(column).to_numpy(**_copied(column)), lengths, _arrow_numbers(pc.list_flatten(filled))
        )
    return _from_objects(column.to_pylist())


def _arrow_numbers(column: Any) -> Floats:
    import pyarrow as pa

    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(**_copied(column)), dtype=np.float64)


def _copied(column: Any) -> dict[str, bool]:
    """How to ask Arrow for an array that may be a copy; chunks never are anything else."""
    return {} if hasattr(column, "chunks") else {"zero_copy_only": False}


def _from_array(column: Array) -> Values:
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
            return _moments(column)
        case "m":
            return Numbers(_since(column, np.timedelta64(0, "D")), "days")
        case "c":
            return Foreign("complex numbers", len(column))
        case "S" | "V":
            return Foreign("bytes", len(column))
    return _from_objects(column.tolist())


def _from_objects(column: list[Any]) -> Values:
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
        return _from_array(np.array([None if value is None else np.timedelta64(value) for value in column], "m8[us]"))
    if any(issubclass(kind, list | tuple | np.ndarray) for kind in kinds):
        return _vectors(column)
    if any(issubclass(kind, bytes | bytearray | Mapping | set | complex) for kind in kinds):
        what = sorted(kind.__name__ for kind in kinds)
        return Foreign(f"values of class {' and '.join(what)}", len(column))
    if kinds <= {str}:
        names, codes = _coded(column)
    else:
        names, codes = _coded([None if value is None else _written(value) for value in column])
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


def _coded(column: list[str | None]) -> tuple[list[str], Ints]:
    """Different texts in the order of their first rows, and the place of each row's text."""
    place_of: dict[str | None, int] = {}
    codes = np.fromiter((place_of.setdefault(value, len(place_of)) for value in column), np.int64, len(column))
    if None not in place_of:
        return list(place_of), codes  # type: ignore[arg-type]
    nothing = place_of.pop(None)
    return list(place_of), np.where(codes == nothing, -1, codes - (codes > nothing))  # type: ignore[arg-type]


def _categories(names: list[Any], codes: Array, ordered: bool) -> Values:
    texts = Texts(tuple(map(_written, names)), codes.astype(np.int64), declared=True, ordered=ordered)
    if names and all(isinstance(name, bool) for name in names):
        return Flags(texts.spread(np.array(names, dtype=np.float64)))
    return texts


def _cleaned(found: Texts, missing: Collection[str]) -> Texts:
    """Texts without spaces at their ends, each once, and without those that stand for a missing value."""
    place_of: dict[str, int] = {}
    new = np.full(len(found.texts) + 1, -1)
    for place, text in enumerate(found.texts):
        stripped = text.strip()
        if stripped not in missing:
            new[place] = place_of.setdefault(stripped, len(place_of))
    return Texts(tuple(place_of), new[found.codes], found.declared, found.ordered)


def _moments(column: Array) -> Moments:
    days = _days(column)
    return Moments(days, days)


def _days(column: Array) -> Floats:
    return _since(column, np.datetime64("1970-01-01"))


def _since(column: Array, origin: Any) -> Floats:
    """Days since an origin, NaN where there is nothing."""
    exact = column.astype("M8[us]" if column.dtype.kind == "M" else "m8[us]")
    found = (exact - origin).astype(np.float64) / (DAY * 1e6)
    found[np.isnat(column)] = np.nan
    return np.asarray(found)


def _instant(value: Any) -> tuple[float, float]:
    if isinstance(value, np.datetime64):
        found = float(_days(np.array([value]))[0])
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
    return _equal_vectors(filled, np.array([len(found) for found in rows]), np.concatenate(rows))


def _equal_vectors(filled: Array, lengths: Array, flat: Floats) -> Values:
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
