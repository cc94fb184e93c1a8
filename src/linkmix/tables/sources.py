"""Tables in files, read once or again in batches of rows: text, and Parquet."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from linkmix.basics.arrays import Floats
from linkmix.basics.errors import BadFile
from linkmix.data import scratch
from linkmix.data.parquet import is_numeric
from linkmix.data.rows import portion_rows
from linkmix.tables import text
from linkmix.tables.text import MISSING, as_file

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet

MOSTLY = 0.5
"""A column with a larger share of numbers than this is numeric, and its other values are mistakes."""
_LIKE_A_NUMBER = r"^\s*[-+]?(\d|\.\d|(?i:inf))"
_PANDAS_INDEX = "__index_level_"

Columns = dict[str, "pa.ChunkedArray"]


class ReadAgain(Exception):
    """A column is not what the beginning of the file suggested: read the file again."""


def open_file(path: str | os.PathLike[str]) -> "Text | Parquet":
    """A table by the first bytes of the file, or its ending."""
    file = as_file(path)
    with file.open("rb") as opened:
        is_parquet = opened.read(4) == b"PAR1"
    return Parquet(file) if is_parquet or file.suffix.lower() in (".parquet", ".pq") else Text(file)


class Text:
    """A text file whose columns are read as numbers where they can be.

    Attributes
    ----------
    path : Path
    names : list of str
        Names of all columns.
    size, done : int
        Bytes of the file, and how many of them have been read.
    n_bytes, is_large : int and bool
        About how much memory all of it would take, and whether it is read in parts.
    """

    unit = "B"

    def __init__(self, path: Path) -> None:
        text.check_text(path)
        self.path = path
        self.separator = text.find_separator(path)
        self.names = text.read_header(path, self.separator)
        self.size, self.done = path.stat().st_size, 0
        self.n_bytes, self.is_large = self.size, self.size > scratch.IN_MEMORY
        self._kinds: dict[str, pa.DataType] = {}
        self._blank: set[str] = set()  # columns without a value in the first block of the file
        self._odd: set[str] = set()  # columns of numbers that Arrow does not know, such as +5

    def choose(self, wanted: Sequence[str], as_text: Sequence[str], as_numbers: Sequence[str]) -> None:
        """Choose columns: the wanted ones by what their first values look like, the others as text or numbers."""
        import pyarrow as pa

        self._kinds = {name: pa.string() for name in as_text} | {name: pa.float64() for name in as_numbers}
        self._as_text = frozenset(as_text)
        unsure = [name for name in wanted if name not in self._kinds]
        if unsure:
            self._kinds |= self._guess(unsure)

    def is_number(self, name: str) -> bool:
        """Whether a column is read as numbers."""
        import pyarrow as pa

        return pa.types.is_floating(self._kinds[name]) or name in self._odd

    def is_blank(self, name: str) -> bool:
        """Whether the beginning of the file does not tell what a column holds."""
        return name in self._blank

    def settle(self, name: str, is_number: bool) -> None:
        """Read a column that may be either as numbers or as text, as other files tell."""
        import pyarrow as pa

        if name in self._blank:
            self._kinds[name] = pa.float64() if is_number else pa.string()

    def batches(self) -> Iterator[tuple[int, Columns]]:
        """Number of rows and all chosen columns, batch by batch.

        Raises
        ------
        ReadAgain
            If a column must be read in another way, which the next call does.
        """
        import pyarrow as pa

        chosen = [name for name in self.names if name in self._kinds]
        doubts = {name: _Doubt() for name in chosen if not (self.is_number(name) or name in self._as_text)}
        try:
            for table in self._tables(chosen, self._kinds):
                n_rows, columns = table.num_rows, {name: table.column(name) for name in chosen}
                del table  # so that the memory of a column is freed once the reader is done with it
                for name, doubt in doubts.items():
                    doubt.look(columns[name])
                yield n_rows, columns
        except pa.ArrowInvalid as error:
            self._kinds[self._no_number(str(error), chosen)] = pa.string()
            raise ReadAgain from None
        odd = {name for name, doubt in doubts.items() if doubt.holds_numbers and self._are_numbers(name)}
        if odd:
            self._odd |= odd
            raise ReadAgain

    def as_numbers(self, name: str, column: "pa.ChunkedArray") -> Floats:
        """Values of a column, NaN where there is none."""
        if name in self._odd:
            return np.array([text.as_number(value) for value in column.to_pylist()], dtype=np.float64)
        return np.asarray(column.to_numpy(), dtype=np.float64)

    def as_texts(self, name: str, column: "pa.ChunkedArray") -> "pa.ChunkedArray":
        """Values of a column as they stand in the file."""
        return column

    def n_filled(self, column: "pa.ChunkedArray") -> int:
        """Number of texts that are not empty."""
        import pyarrow.compute as pc

        return pc.sum(pc.not_equal(pc.utf8_trim_whitespace(column), "")).as_py() or 0

    def place(self, row: int) -> tuple[Path, int | None]:
        """File and line that a row begins on."""
        return self.path, text.line_of(self.path, self.separator, row)

    def refuse_text(self, name: str) -> NoReturn:
        """Name the first value of a column that is not a number."""
        row, value = next((row, value) for row, value in self._values(name) if text.as_number(value) is None)
        self._refuse_value(name, value, row)

    def _refuse_value(self, name: str, value: str, row: int) -> NoReturn:
        remedy = "correct it, leave it empty, or choose other columns"
        if text.as_number(value.replace(",", ".")) is not None:
            remedy = "write it with a decimal point and without thousands separators"
        _, line = self.place(row)
        raise BadFile(self.path, f"{_short(value)} is not a number: {remedy}", line, name)

    def _guess(self, names: list[str]) -> "dict[str, pa.DataType]":
        """Number or text, by the first block of the file."""
        import pyarrow as pa
        from pyarrow import csv

        try:
            with csv.open_csv(self.path, **self._options(names, None)) as reader:
                schema = reader.schema
        except pa.ArrowInvalid:
            self._refuse_shape()
            raise
        self._blank = {name for name in names if pa.types.is_null(schema.field(name).type)}
        numeric = (pa.types.is_floating, pa.types.is_integer, pa.types.is_null)
        return {
            name: pa.float64() if any(is_kind(schema.field(name).type) for is_kind in numeric) else pa.string()
            for name in names
        }

    def _tables(self, names: list[str], kinds: "Mapping[str, pa.DataType]") -> "Iterator[pa.Table]":
        """The whole file as one table, by several threads; or a large one in parts."""
        import pyarrow as pa
        from pyarrow import csv

        if not names:  # neither ids nor features: only rows are counted
            names, kinds = self.names[:1], {}
        self.done = 0
        if not self.is_large:
            self.done = self.size
            yield csv.read_csv(self.path, **self._options(names, kinds))
            return
        with pa.OSFile(str(self.path)) as file, csv.open_csv(file, **self._options(names, kinds)) as reader:
            yield reader.schema.empty_table()
            for batch in reader:
                self.done = file.tell()
                yield pa.Table.from_batches([batch])

    def _values(self, name: str) -> Iterator[tuple[int, str]]:
        """Row and value of a column, as it stands in the file."""
        import pyarrow as pa

        row = 0
        for table in self._tables([name], {name: pa.string()}):
            yield from enumerate(table.column(0).to_pylist(), row)
            row += table.num_rows

    @cached_property
    def _has_quotes(self) -> bool:
        """Whether values may hold line breaks, which keeps Arrow from reading blocks side by side."""
        return self.is_large or _holds(self.path, b'"')

    def _options(self, names: list[str], kinds: "Mapping[str, pa.DataType] | None") -> dict[str, Any]:
        from pyarrow import csv

        return {
            "read_options": csv.ReadOptions(column_names=self.names, skip_rows=0, skip_rows_after_names=1),
            "parse_options": csv.ParseOptions(delimiter=self.separator, newlines_in_values=self._has_quotes),
            "convert_options": csv.ConvertOptions(
                include_columns=names,
                column_types=kinds,
                null_values=sorted(MISSING),
                strings_can_be_null=False,
                quoted_strings_can_be_null=True,
            ),
        }

    def _no_number(self, message: str, names: list[str]) -> str:
        """The column that made Arrow fail; an error if it failed for another reason."""
        import pyarrow as pa

        self._refuse_shape()
        for name in names:  # Arrow names a column by its number among all, or by nothing
            if pa.types.is_floating(self._kinds[name]):
                try:
                    for _ in self._tables([name], {name: self._kinds[name]}):
                        pass
                except pa.ArrowInvalid:
                    return name
        raise BadFile(self.path, f"{message}: correct the file")

    def _refuse_shape(self) -> None:
        """Refuse a file that is not UTF-8, has an unclosed quote, or rows of different lengths."""
        n_columns = len(self.names)
        for line, record in text.records(self.path, self.separator):
            if len(record) != n_columns:
                what = "values are" if len(record) != 1 else "value is"
                raise BadFile(
                    self.path,
                    f"{len(record)} {what} on a line of a file with {n_columns} columns: "
                    "add what is missing, remove what is too much, or put a value with a separator in quotes",
                    line,
                )

    def _are_numbers(self, name: str) -> bool:
        """Whether all values of a column are numbers; an error, if most but not all are."""
        n_filled, n_wrong, first = 0, 0, None
        for row, value in self._values(name):
            if value.strip() not in MISSING:
                n_filled += 1
                if text.as_number(value) is None:
                    n_wrong, first = n_wrong + 1, first or (row, value)
        if first is not None and n_filled - n_wrong > MOSTLY * n_filled:
            self._refuse_value(name, first[1], first[0])
        return not n_wrong and n_filled > 0


class _Doubt:
    """How many texts of a column look like numbers."""

    def __init__(self) -> None:
        self.n_alike = self.n_filled = 0

    def look(self, column: "pa.ChunkedArray") -> None:
        """Count texts."""
        import pyarrow as pa
        import pyarrow.compute as pc

        alike = pc.match_substring_regex(column, _LIKE_A_NUMBER)
        missing = pc.is_in(pc.utf8_trim_whitespace(column), value_set=pa.array(sorted(MISSING)))
        self.n_alike += pc.sum(alike).as_py() or 0
        self.n_filled += len(column) - (pc.sum(missing).as_py() or 0)

    @property
    def holds_numbers(self) -> bool:
        """Whether it is worth checking each value; for most text columns it is not."""
        return self.n_alike > MOSTLY * self.n_filled


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
            f"holds {self._types[name]}, such as {_short(str(example))}, and no numbers: choose other columns, "
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


def _short(value: str, at_most: int = 40) -> str:
    return repr(value if len(value) <= at_most else value[: at_most - 3] + "...")


def _holds(path: Path, what: bytes) -> bool:
    with path.open("rb") as file:
        return any(what in block for block in iter(lambda: file.read(2**22), b""))
