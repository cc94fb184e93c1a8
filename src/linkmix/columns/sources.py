"""The columns of a table as plain values, wherever the table comes from.

Tables of pandas, polars and pyarrow are recognised by the modules that are loaded already: a package that the table
does not come from is never imported.
"""

import sys
from collections.abc import Collection, Mapping
from typing import Any, TypeGuard

import numpy as np
from scipy.sparse import issparse

from linkmix.basics.arrays import Floats
from linkmix.columns.objects import (
    categories,
    coded,
    days_since_1970,
    equal_vectors,
    from_array,
    from_objects,
    moments,
)
from linkmix.columns.values import Flags, Moments, Numbers, Texts, Values

MISSING = frozenset(
    {
        *("", "NA", "N/A", "n/a", "NaN", "nan", "-NaN", "-nan", "null", "NULL", "None", "<NA>", "#NA", "#N/A", "NaT"),
        *("#N/A N/A", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
    }
)
"""Texts that stand for a missing value: those of pandas, and NaT."""
FEWEST_TRUTHS = 3
"""With fewer columns of 0 and 1, a table of numbers stays one."""


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
    return _is_mapping(X) or _home(X, _TABLES) != ""


def _is_mapping(X: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(X, Mapping) and not issparse(X)  # a dok_matrix of SciPy 1.14 is a dict


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
    if _is_mapping(X):
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


def mostly_truth_values(X: object) -> bool:
    """Whether at least half of the columns of a table, and three, hold nothing but 0 and 1, or false and true.

    Such columns are categories and not numbers: in many classes they do not vary at all.

    Parameters
    ----------
    X : object
        Anything; what is not a table has no such columns.

    Returns
    -------
    bool

    Examples
    --------
    >>> import pandas as pd
    >>> animals = pd.DataFrame({"fins": [0, 1], "milk": [True, False], "tail": [1, 1], "legs": [4, 0]})
    >>> mostly_truth_values(animals), mostly_truth_values(animals.to_numpy())
    (True, False)
    """
    if not is_table(X):
        return False
    names, columns = _columns_of(X)
    if len(set(names)) < len(names):  # a recipe would have to refuse it
        return False
    return sum(_is_truth(read_column(column)) for column in columns) >= max(FEWEST_TRUTHS, len(columns) / 2)


def _is_truth(values: Values) -> bool:
    if isinstance(values, Flags):
        return True
    if not isinstance(values, Numbers):
        return False
    return all(
        bool(((some == 0) | (some == 1) | np.isnan(some)).all())
        for some in (values.numbers[:1000], values.numbers)  # most columns are told by their beginning
    )


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
    names, columns = _columns_of(table)
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise ValueError(f"the table has more than one column called {twice!r}: rename one")
    return dict(zip(names, columns, strict=True))


def _columns_of(table: Any) -> tuple[list[str], list[Any]]:
    """Names and columns, also of a table that has a name twice."""
    match "mapping" if _is_mapping(table) else _home(table, _TABLES):
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
    return [str(name) for name in names], columns


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
            found = from_array(column) if isinstance(column, np.ndarray) else from_objects(list(column))
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
        return categories(column.array.categories.tolist(), column.array.codes, bool(kind.ordered))
    if isinstance(kind, pd.ArrowDtype):
        import pyarrow as pa

        return _from_arrow(pa.chunked_array(pa.array(column.array)))
    if isinstance(kind, pd.PeriodDtype):
        column = column.dt.to_timestamp()
    if isinstance(kind, pd.DatetimeTZDtype):
        return Moments(
            days_since_1970(column.dt.tz_convert(None).to_numpy()),
            days_since_1970(column.dt.tz_localize(None).to_numpy()),
        )
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biufcMm":
        return from_array(column.to_numpy())
    if isinstance(kind, pd.BooleanDtype):
        return Flags(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if pd.api.types.is_numeric_dtype(kind):
        return Numbers(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return from_objects(column.tolist())


def _from_polars(column: Any) -> Values:
    import polars as pl

    kind = column.dtype
    if kind == pl.Boolean:
        return Flags(np.asarray(column.cast(pl.Float64).to_numpy(), dtype=np.float64))
    if kind.is_numeric():
        return Numbers(np.asarray(column.cast(pl.Float64).to_numpy(), dtype=np.float64))
    if kind == pl.Date:
        return moments(column.to_numpy())
    if kind == pl.Datetime:
        wall = column.dt.replace_time_zone(None)
        if kind.time_zone is None:
            return moments(wall.to_numpy())
        return Moments(
            days_since_1970(column.dt.convert_time_zone("UTC").dt.replace_time_zone(None).to_numpy()),
            days_since_1970(wall.to_numpy()),
        )
    if kind == pl.Duration:
        return from_array(column.to_numpy())
    if kind in (pl.List, pl.Array) and kind.inner.is_numeric():
        filled = column.drop_nulls()
        lengths = (filled if kind == pl.List else filled.arr.to_list()).list.len().to_numpy()
        flat = filled.explode().cast(pl.Float64).to_numpy() if len(filled) else np.empty(0)
        return equal_vectors(column.is_not_null().to_numpy(), lengths, flat)
    if kind == pl.Categorical or kind == pl.Enum:
        names, codes = coded(column.cast(pl.String).to_list())
        if kind == pl.Enum:
            order = {name: place for place, name in enumerate(kind.categories.to_list())}
            codes = np.array([*(order[name] for name in names), -1], dtype=np.int64)[codes]
            names = list(order)
        return Texts(tuple(names), codes, declared=True)
    return from_objects(column.to_list())


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
        return categories(column.dictionary.to_pylist(), codes, bool(kind.ordered))
    if pa.types.is_boolean(kind):
        return Flags(_arrow_numbers(column))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return Numbers(_arrow_numbers(column))
    if pa.types.is_timestamp(kind):
        plain = moments(column.cast(pa.timestamp(kind.unit)).to_numpy(**_copied(column)))
        if kind.tz is None:
            return plain
        return Moments(plain.instants, days_since_1970(pc.local_timestamp(column).to_numpy(**_copied(column))))
    if pa.types.is_date(kind):
        return moments(column.cast(pa.timestamp("s")).to_numpy(**_copied(column)))
    if pa.types.is_duration(kind):
        return from_array(column.to_numpy(**_copied(column)))
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if any(is_list(kind) for is_list in lists) and is_numeric(kind.value_type):
        filled = column.drop_null()
        lengths = pc.list_value_length(filled).to_numpy(**_copied(column))
        return equal_vectors(
            pc.is_valid(column).to_numpy(**_copied(column)), lengths, _arrow_numbers(pc.list_flatten(filled))
        )
    return from_objects(column.to_pylist())


def _arrow_numbers(column: Any) -> Floats:
    import pyarrow as pa

    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(**_copied(column)), dtype=np.float64)


def _copied(column: Any) -> dict[str, bool]:
    """How to ask Arrow for an array that may be a copy; chunks never are anything else."""
    return {} if hasattr(column, "chunks") else {"zero_copy_only": False}


def _cleaned(found: Texts, missing: Collection[str]) -> Texts:
    """Texts without spaces at their ends, each once, and without those that stand for a missing value."""
    missing = frozenset(missing)
    place_of: dict[str, int] = {}
    new = np.full(len(found.texts) + 1, -1)
    for place, text in enumerate(found.texts):
        stripped = text.strip()
        if stripped not in missing:
            new[place] = place_of.setdefault(stripped, len(place_of))
    return Texts(tuple(place_of), new[found.codes], found.declared, found.ordered)
