"""A table in a Parquet or Feather file, read once or again in batches of rows."""

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from linkmix.basics.arrays import Floats
from linkmix.basics.errors import BadFile
from linkmix.columns import MISSING
from linkmix.data import scratch
from linkmix.data.parquet import is_numeric
from linkmix.data.rows import portion_rows
from linkmix.tables import text
from linkmix.tables.text_source import Columns, ReadAgain, gaps_among, without_gaps

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet

MOST_MEMORY = 2**44
"""Bytes that nobody asks for but a damaged file."""
_PANDAS_INDEX = "__index_level_"


class Typed(ABC):
    """A file whose columns have types.

    Attributes
    ----------
    path : Path
    names : list of str
        Names of all columns, all different.
    remarks : tuple of str
        What was assumed about the file.
    id_column : str or None
        Column whose texts must all differ.
    size, done : int
        Rows of the file, and how many of them have been read.
    n_bytes, is_large : int and bool
        About how much memory all of it would take, and whether it is read in parts.
    odd : set of str
        Columns that Arrow cannot write as text.
    """

    unit = " rows"
    kind: str

    def __init__(self, path: Path, missing: Collection[str] = ()) -> None:
        self.path = path
        try:
            schema, self.size = self._look()
            names = schema.names
        except _damage() as error:
            _raise_memory_error(error)
            raise BadFile(path, f"is not a complete {self.kind} file ({_reason(error)}): write it again") from None
        kept = [name for name in names if not name.startswith(_PANDAS_INDEX)]
        self.names, self.remarks = text.own_names(path, kept)
        self._all, _ = text.own_names(path, names)
        self._renamed = self._all != names
        self.id_column: str | None = None
        self.done = 0
        self.n_bytes = 8 * self.size * len(self.names)
        self.is_large = self.n_bytes > scratch.IN_MEMORY
        self.odd: set[str] = set()  # columns that Arrow cannot write as text
        self._types = dict(zip(self._all, schema.types, strict=True))
        self._chosen: list[str] = []
        self._settled: dict[str, bool] = {}  # whether columns without values hold numbers in other files
        self.missing, self._gaps = MISSING | frozenset(missing), gaps_among(missing)

    @abstractmethod
    def _look(self) -> "tuple[pa.Schema, int]":
        """Columns and number of rows."""

    @abstractmethod
    def _read(self, n_rows: int, names: list[str] | None) -> "Iterable[pa.RecordBatch]":
        """Batches of at most so many rows, with some columns or all of them."""

    def choose(self, wanted: Sequence[str], as_text: Sequence[str], as_numbers: Sequence[str]) -> None:
        """Choose columns; the file says what they hold."""
        self._chosen = [name for name in self.names if name in {*wanted, *as_text}]

    def is_number(self, name: str) -> bool:
        """Whether a column holds numbers or truth values."""
        return is_numeric(self._types[name]) and not self.is_blank(name)

    def is_short(self, name: str) -> bool:
        """Whether the values of a column can be shown: lists, such as embeddings, cannot."""
        import pyarrow as pa

        kind = self._types[name]
        return not (pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))

    def is_blank(self, name: str) -> bool:
        """Whether a column has no type, since it has no value in any row."""
        import pyarrow as pa

        return bool(pa.types.is_null(self._types[name]))

    def settle(self, name: str, is_number: bool) -> bool:
        """Read a column without values as other files tell; whether that can be: the file says what the others are."""
        if self.is_blank(name):
            self._settled[name] = is_number
        return self.is_blank(name) or self.is_number(name) == is_number

    def batches(self) -> Iterator[tuple[int, Columns]]:
        """Number of rows and all chosen columns, batch by batch."""
        import pyarrow as pa

        self.done = 0
        if not self._chosen:
            yield self.size, {}
        no_rows = pa.schema([(name, self._types[name]) for name in self._chosen]).empty_table()
        for batch in chain(self._tables(self._chosen), () if self.size else [no_rows]):
            self.done += batch.num_rows
            yield batch.num_rows, {name: batch.column(name) for name in self._chosen}

    def as_numbers(self, name: str, column: "pa.ChunkedArray") -> Floats:
        """Values of a column, NaN where there is none."""
        import pyarrow as pa

        values = np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
        return without_gaps(values, self._gaps)

    def values(self, name: str, column: "pa.ChunkedArray") -> "Floats | pa.ChunkedArray":
        """Values of a column, of any type."""
        import pyarrow as pa

        kind = self._types[name]
        if self.is_blank(name):
            return self.as_numbers(name, column) if self._settled.get(name) else column.cast(pa.string())
        if self.is_number(name) and not pa.types.is_boolean(kind):
            return self.as_numbers(name, column)
        return column.cast(pa.string()) if pa.types.is_large_string(kind) else column

    def as_texts(self, name: str, column: "pa.ChunkedArray") -> "pa.ChunkedArray":
        """Values of a column as text; nothing is an empty text."""
        import pyarrow as pa

        if name in self.odd:
            values = ["" if value is None else str(value) for value in column.to_pylist()]
            return pa.chunked_array([pa.array(values, pa.string())])
        try:
            return column.cast(pa.string()).fill_null("")
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            self.odd.add(name)
            raise ReadAgain from None  # so that all values are written the same way

    def n_filled(self, column: "pa.ChunkedArray") -> int:
        """Number of values."""
        return len(column) - int(column.null_count)

    def place(self, row: int) -> tuple[Path, None]:
        """The file, which has no lines."""
        return self.path, None

    def refuse(self, found: Sequence[BadFile]) -> NoReturn:
        """Raise an error with all mistakes that were found."""
        raise BadFile.gathered(found)

    def _tables(self, names: list[str]) -> "Iterable[pa.Table]":
        """The whole file at once, or a large one in parts."""
        import pyarrow as pa

        n_rows = portion_rows(len(names)) if self.is_large else max(self.size, 1)
        n_read = 0
        try:
            for batch in self._read(n_rows, None if self._renamed else names):
                batch.validate(full=True)  # lengths of texts in a damaged file may point anywhere
                n_read += batch.num_rows
                table = pa.Table.from_batches([batch])
                yield table.rename_columns(self._all).select(names) if self._renamed else table
            if n_read != self.size:
                raise pa.ArrowInvalid(f"{n_read:,} rows of {self.size:,}")
        except _damage() as error:
            _raise_memory_error(error)
            raise BadFile(self.path, f"is damaged ({_reason(error)}): write it again") from None


class Parquet(Typed):
    """A Parquet file."""

    kind = "Parquet"

    def _look(self) -> "tuple[pa.Schema, int]":
        with self._open() as file:
            return file.schema_arrow, int(file.metadata.num_rows)

    def _read(self, n_rows: int, names: list[str] | None) -> "Iterable[pa.RecordBatch]":
        with self._open() as file:
            yield from file.iter_batches(n_rows, columns=names)

    def _open(self) -> "parquet.ParquetFile":
        from pyarrow import parquet

        # With pre_buffer all of it would stay in memory; a mapped file that becomes shorter would kill the process.
        return parquet.ParquetFile(self.path, pre_buffer=False)


class Feather(Typed):
    """A Feather file, version 2, which is a file of Arrow's own format."""

    kind = "Feather"

    def _look(self) -> "tuple[pa.Schema, int]":
        import pyarrow as pa

        with self.path.open("rb") as raw:
            beginning = raw.read(4)
        if beginning == b"FEA1":
            raise BadFile(self.path, "is a Feather file of version 1: write it again as version 2, or as Parquet")
        with pa.OSFile(str(self.path)) as raw, pa.ipc.open_file(raw) as file:
            n_rows = sum(file.get_batch(place).num_rows for place in range(file.num_record_batches))
            return file.schema, n_rows

    def _read(self, n_rows: int, names: list[str] | None) -> "Iterable[pa.RecordBatch]":
        import pyarrow as pa

        with pa.OSFile(str(self.path)) as raw, pa.ipc.open_file(raw) as file:
            if n_rows >= self.size:  # all of it as one batch, as of the other formats
                table = file.read_all().combine_chunks()
                yield from (table if names is None else table.select(names)).to_batches()
                return
            for place in range(file.num_record_batches):
                batch = file.get_batch(place)
                batch = batch if names is None else batch.select(names)
                yield from (batch.slice(first, n_rows) for first in range(0, batch.num_rows, n_rows))


def _damage() -> tuple[type[Exception], ...]:
    """Errors that a damaged file may lead to; one of them is memory for more than any file holds."""
    import pyarrow as pa

    return (pa.ArrowException, OSError, UnicodeDecodeError)


def _raise_memory_error(error: Exception) -> None:
    """Raise an error again that says that there is too little memory, unless no machine has as much as is asked for."""
    asked_for = max(map(int, re.findall(r"\d+", str(error))), default=0)
    if isinstance(error, MemoryError) and asked_for < MOST_MEMORY:
        raise error


def _reason(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".")
