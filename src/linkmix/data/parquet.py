"""Numbers of Parquet files, straight from Arrow to NumPy: pandas in between would take as long as the reading."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from linkmix.basics.arrays import Array
from linkmix.data.rows import portion_rows

if TYPE_CHECKING:
    import pyarrow as pa

PARTS = 8
"""Number of batches of a file in one portion of rows."""
CACHED = 2**12
"""Rows that are turned from columns into rows together, so that they stay in cache."""


def files_in(path: Path) -> list[Path]:
    """A file, or all files ``*.parquet`` in a folder, in the order of their names."""
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise ValueError(f"{path} holds no file *.parquet: name another folder, or a file")
    return files


def schema_of(files: Sequence[Path], columns: Sequence[str] | None) -> "pa.Schema":
    """The columns to read and their one type, float32 if all of them have it in all files, otherwise float64.

    Raises
    ------
    ValueError
        If a file lacks a column, or has one that does not hold numbers.
    """
    import pyarrow as pa
    from pyarrow import parquet

    schemas = [parquet.read_schema(file) for file in files]
    names = list(schemas[0].names if columns is None else columns)
    if not names:
        raise ValueError("columns names no column: name at least one")
    single = True
    for file, schema in zip(files, schemas, strict=True):
        for name in names:
            if name not in schema.names:
                known = ", ".join(map(repr, schema.names))
                raise ValueError(f"{file} has no column {name!r}: choose from {known}")
            kind = schema.field(name).type
            if not is_numeric(kind):
                raise ValueError(f"{file}, column {name!r} holds {kind}, and no numbers: leave it out of columns")
            single &= kind in (pa.float16(), pa.float32())
    return pa.schema([(name, pa.float32() if single else pa.float64()) for name in names])


def is_numeric(kind: "pa.DataType") -> bool:
    """Whether a column of this type holds numbers or truth values."""
    import pyarrow as pa

    types = (pa.types.is_floating, pa.types.is_integer, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_null)
    return any(is_kind(kind) for is_kind in types)


def read(files: Sequence[Path], schema: "pa.Schema") -> Iterator[Array]:
    """Rows of all files, batch by batch; NaN stands for a null."""
    from pyarrow import parquet

    size = max(1, portion_rows(len(schema)) // PARTS)
    for file in files:
        with parquet.ParquetFile(file, pre_buffer=False) as opened:  # otherwise the whole file stays in memory
            for batch in opened.iter_batches(size, columns=schema.names):
                yield _rows(batch, schema)


def _rows(batch: "pa.RecordBatch", schema: "pa.Schema") -> Array:
    import pyarrow as pa

    columns = [_numbers(batch.column(name), schema.field(0).type) for name in schema.names]
    rows = np.empty((len(batch), len(columns)), np.float32 if schema.field(0).type == pa.float32() else np.float64)
    for first in range(0, len(rows), CACHED):
        for place, column in enumerate(columns):
            rows[first : first + CACHED, place] = column[first : first + CACHED]
    return rows


def _numbers(column: "pa.Array", kind: "pa.DataType") -> Array:
    if column.type != kind:
        column = column.cast(kind, safe=False)
    return np.from_dlpack(column.fill_null(float("nan")) if column.null_count else column)
