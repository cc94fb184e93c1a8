"""A table in a Parquet file, read once or again in batches of rows."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from linkmix.basics.arrays import Floats
from linkmix.basics.errors import BadFile
from linkmix.data import scratch
from linkmix.data.parquet import is_numeric
from linkmix.data.rows import portion_rows
from linkmix.tables import text
from linkmix.tables.text import shortened
from linkmix.tables.text_source import Columns, ReadAgain

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet

_PANDAS_INDEX = "__index_level_"


class Parquet:
    """A Parquet file.

    Attributes
    ----------
    path : Path
    names : list of str
        Names of all columns.
    size, done : int
        Rows of the file, and how many of them have been read.
    n_bytes, is_large : int and bool
        About how much memory all of it would take, and whether it is read in parts.
    odd : set of str
        Columns that Arrow cannot write as text.
    """

    unit = " rows"
    remarks: tuple[str, ...] = ()

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        self.path = path
        try:
            with self._open() as file:
                schema, self.size = file.schema_arrow, int(file.metadata.num_rows)
        except (pa.ArrowInvalid, OSError) as error:
            raise BadFile(path, f"is not a complete Parquet file ({_reason(error)}): write it again") from None
        self.names = [name for name in schema.names if not name.startswith(_PANDAS_INDEX)]
        text.check_names(path, self.names)
        self.done = 0
        self.n_bytes = 8 * self.size * len(self.names)
        self.is_large = self.n_bytes > scratch.IN_MEMORY
        self.odd: set[str] = set()  # columns that Arrow cannot write as text
        self._types = {name: schema.field(name).type for name in self.names}
        self._chosen: list[str] = []

    def choose(self, wanted: Sequence[str], as_text: Sequence[str], as_numbers: Sequence[str]) -> None:
        """Choose columns; the file says what they hold."""
        self._chosen = [name for name in self.names if name in {*wanted, *as_text}]

    def is_number(self, name: str) -> bool:
        """Whether a column holds numbers or truth values."""
        return is_numeric(self._types[name]) and not self.is_blank(name)

    def kind_of(self, name: str) -> str:
        """What a column holds that is not read as numbers, in a word."""
        import pyarrow as pa

        kind = self._types[name]
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        return "text" if pa.types.is_string(kind) or pa.types.is_large_string(kind) else str(kind)

    def is_blank(self, name: str) -> bool:
        """Whether a column has no type, since it has no value in any row."""
        import pyarrow as pa

        return bool(pa.types.is_null(self._types[name]))

    def settle(self, name: str, is_number: bool) -> None:
        """Nothing to do: a column without values can be read as numbers and as text."""

    def batches(self) -> Iterator[tuple[int, Columns]]:
        """Number of rows and all chosen columns, batch by batch."""
        self.done = 0
        if not self._chosen:
            yield self.size, {}
        for batch in self._tables(self._chosen):
            self.done += batch.num_rows
            yield batch.num_rows, {name: batch.column(name) for name in self._chosen}

    def as_numbers(self, name: str, column: "pa.ChunkedArray") -> Floats:
        """Values of a column, NaN where there is none."""
        import pyarrow as pa

        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)

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
        """The file; Parquet has no lines."""
        return self.path, None

    def refuse_text(self, name: str) -> NoReturn:
        """Name the type of a column that holds no numbers."""
        values = (value for table in self._tables([name]) for value in table.column(name).to_pylist())
        example = next(value for value in values if value is not None)
        raise BadFile(
            self.path,
            f"holds {self._types[name]}, such as {shortened(str(example))}, and no numbers: choose other columns, "
            "or write numbers",
            column=name,
        )

    def _tables(self, names: list[str]) -> "Iterable[pa.Table]":
        """The whole file at once, or a large one in parts."""
        import pyarrow as pa

        n_rows = portion_rows(len(names)) if self.is_large else max(self.size, 1)
        try:
            with self._open() as file:
                for batch in file.iter_batches(n_rows, columns=names):
                    yield pa.Table.from_batches([batch])
        except (pa.ArrowInvalid, OSError) as error:
            raise BadFile(self.path, f"is damaged ({_reason(error)}): write it again") from None

    def _open(self) -> "parquet.ParquetFile":
        from pyarrow import parquet

        # With pre_buffer all of it would stay in memory; a mapped file that becomes shorter would kill the process.
        return parquet.ParquetFile(self.path, pre_buffer=False)


def _reason(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".")
