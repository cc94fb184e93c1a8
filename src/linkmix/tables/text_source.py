"""A table in a text file, read once or again in batches of rows."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from linkmix.basics.arrays import Floats
from linkmix.basics.errors import BadFile
from linkmix.data import scratch
from linkmix.tables import text
from linkmix.tables.header import read_header
from linkmix.tables.text import MISSING, shortened

if TYPE_CHECKING:
    import pyarrow as pa

MOSTLY = 0.5
"""A column with a larger share of numbers than this is numeric, and its other values are mistakes."""
_LIKE_A_NUMBER = r"^\s*[-+]?[$€£¥]?\s*(\d|\.\d|(?i:inf))"

Columns = dict[str, "pa.ChunkedArray"]


class ReadAgain(Exception):
    """A column is not what the beginning of the file suggested: read the file again."""


class Text:
    """A text file whose columns are read as numbers where they can be.

    Attributes
    ----------
    path : Path
    header : Header
        What the first line was taken for. It can be changed until the first reading.
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
        self.header = read_header(path, self.separator)
        self.size, self.done = path.stat().st_size, 0
        self.n_bytes, self.is_large = self.size, self.size > scratch.IN_MEMORY
        self._kinds: dict[str, pa.DataType] = {}
        self._blank: set[str] = set()  # columns without a value in the first block of the file
        self._examples: dict[str, str] = {}  # from columns of texts that look like numbers, such as 70 kg
        self._odd: set[str] = set()  # columns of numbers that Arrow does not know, such as +5

    @property
    def names(self) -> list[str]:
        """Names of all columns."""
        return self.header.names

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was assumed about the file."""
        return () if self.header.remark is None else (self.header.remark,)

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

    def kind_of(self, name: str) -> str:
        """What a column holds that is not read as numbers, in a word."""
        return f"text, such as {shortened(self._examples[name])}" if name in self._examples else "text"

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
        self._examples = {name: doubt.example for name, doubt in doubts.items() if doubt.holds_numbers}

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
        return self.path, text.line_of(self.path, self.separator, row, not self.header.is_data)

    def refuse_text(self, name: str) -> NoReturn:
        """Name the first value of a column that is not a number."""
        row, value = next((row, value) for row, value in self._values(name) if text.as_number(value) is None)
        self._refuse_value(name, value, row)

    def _refuse_value(self, name: str, value: str, row: int) -> NoReturn:
        remedy = "correct it, leave it empty, or choose other columns"
        if text.as_number(value.replace(",", ".")) is not None:
            remedy = "write it with a decimal point and without thousands separators"
        _, line = self.place(row)
        raise BadFile(self.path, f"{shortened(value)} is not a number: {remedy}", line, name)

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

        n_skipped = 0 if self.header.is_data else 1
        return {
            "read_options": csv.ReadOptions(column_names=self.names, skip_rows_after_names=n_skipped),
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
        self.example = ""

    def look(self, column: "pa.ChunkedArray") -> None:
        """Count texts."""
        import pyarrow as pa
        import pyarrow.compute as pc

        alike = pc.match_substring_regex(column, _LIKE_A_NUMBER)
        missing = pc.is_in(pc.utf8_trim_whitespace(column), value_set=pa.array(sorted(MISSING)))
        n_alike = pc.sum(alike).as_py() or 0
        if n_alike and not self.n_alike:
            self.example = column[pc.index(alike, True).as_py()].as_py()
        self.n_alike += n_alike
        self.n_filled += len(column) - (pc.sum(missing).as_py() or 0)

    @property
    def holds_numbers(self) -> bool:
        """Whether it is worth checking each value; for most text columns it is not."""
        return self.n_alike > MOSTLY * self.n_filled


def _holds(path: Path, what: bytes) -> bool:
    with path.open("rb") as file:
        return any(what in block for block in iter(lambda: file.read(2**22), b""))
