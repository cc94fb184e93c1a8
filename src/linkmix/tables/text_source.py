"""A table in a text file, read once or again in batches of rows."""

import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from linkmix.basics.arrays import Floats
from linkmix.basics.errors import BadFile
from linkmix.columns import MISSING
from linkmix.data import scratch
from linkmix.tables import text
from linkmix.tables.cells import unguarded_column
from linkmix.tables.files import Tally, TextFile
from linkmix.tables.header import read_header
from linkmix.tables.mistakes import NO_ROWS, find_mistakes, no_number

if TYPE_CHECKING:
    import pyarrow as pa

Columns = dict[str, "pa.ChunkedArray"]


LONGEST_LINE = 2**30
"""Bytes of the longest line that is read."""


READER_MEMORY = 2**27
"""Bytes for the threads of Arrow's reader, which may wait for ever, or end the process, where they get no memory."""


class ReadAgain(Exception):
    """A column is not what the beginning of the file suggested: read the file again."""


class Text:
    """A text file whose columns are read as numbers where they can be.

    Attributes
    ----------
    path : Path
    header : Header
        What the first line was taken for. It can be changed until the first reading.
    id_column : str or None
        Column whose texts must all differ. It can be changed until the first reading.
    size, done : int
        Bytes of the file, and how many of them have been read.
    n_bytes, is_large : int and bool
        About how much memory all of it would take, and whether it is read in parts.
    """

    unit = "B"

    def __init__(self, file: TextFile, missing: Collection[str] = ()) -> None:
        text.check_text(file)
        self.file, self.path = file, file.path
        self.separator = text.find_separator(file)
        self.header = read_header(file, self.separator)
        self.id_column: str | None = None
        self.size, self.done = file.size, 0
        self.n_bytes = file.n_bytes(scratch.IN_MEMORY)
        self.is_large = self.n_bytes > scratch.IN_MEMORY
        self.missing = MISSING | frozenset(missing)
        self._gaps = gaps_among(missing)
        self._kinds: dict[str, pa.DataType] = {}
        self._block = 2**20  # bytes that Arrow parses at once, at least a line
        self._wanted: tuple[str, ...] = ()
        self._blank: set[str] = set()  # columns without a value in the first block of the file

    @property
    def names(self) -> list[str]:
        """Names of all columns."""
        return self.header.names

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was assumed about the file."""
        return self.header.remarks

    def choose(self, wanted: Sequence[str], as_text: Sequence[str], as_numbers: Sequence[str]) -> None:
        """Choose columns: the wanted ones by what their first values look like, the others as text or numbers."""
        import pyarrow as pa

        self._kinds = {name: pa.string() for name in as_text} | {name: pa.float64() for name in as_numbers}
        self._as_text, self._as_numbers = frozenset(as_text), frozenset(as_numbers)
        self._wanted = tuple(wanted)
        unsure = [name for name in wanted if name not in self._kinds]
        if unsure:
            self._kinds |= self._guess(unsure)

    def is_number(self, name: str) -> bool:
        """Whether a column is read as numbers."""
        import pyarrow as pa

        return bool(pa.types.is_floating(self._kinds[name]))

    def is_short(self, name: str) -> bool:
        """Whether the values of a column can be shown."""
        return True

    def is_blank(self, name: str) -> bool:
        """Whether the beginning of the file does not tell what a column holds."""
        return name in self._blank

    def settle(self, name: str, is_number: bool) -> bool:
        """Read a column as numbers or as text, as other files tell; whether that can be."""
        import pyarrow as pa

        if not is_number:
            self._kinds[name] = pa.string()
        elif name in self._blank:
            self._kinds[name] = pa.float64()
        return True

    def batches(self) -> Iterator[tuple[int, Columns]]:
        """Number of rows and all chosen columns, batch by batch.

        Raises
        ------
        ReadAgain
            If a column must be read in another way, which the next call does.
        """
        import pyarrow as pa

        chosen = [name for name in self.names if name in self._kinds]
        n_read = 0
        try:
            for table in self._tables(chosen, self._kinds):
                n_read += table.num_rows
                n_rows, columns = table.num_rows, {name: self._unguarded(table.column(name)) for name in chosen}
                del table  # so that the memory of a column is freed once the reader is done with it
                yield n_rows, columns
        except pa.ArrowInvalid as error:
            if self._has_long_line(error):
                raise ReadAgain from None
            self._kinds[self._no_number(str(error), chosen)] = pa.string()
            raise ReadAgain from None
        self._check_rows(n_read)

    def _unguarded(self, column: "pa.ChunkedArray") -> "pa.ChunkedArray":
        """Texts without the apostrophes that keep spreadsheets from running them."""
        import pyarrow as pa

        is_as_it_is = self.file.sheet is not None or not pa.types.is_string(column.type)
        return column if is_as_it_is or not self._counted.has_guards else unguarded_column(column)

    def as_numbers(self, name: str, column: "pa.ChunkedArray") -> Floats:
        """Values of a column, NaN where there is none."""
        if self.is_number(name):
            return without_gaps(np.asarray(column.to_numpy(), dtype=np.float64), self._gaps)
        found = [text.as_number(value, self.missing) for value in column.to_pylist()]  # such as +5
        if None in found:
            self.refuse([BadFile(self.path, no_number(column[found.index(None)].as_py()), column=name)])
        return without_gaps(np.array(found, dtype=np.float64), self._gaps)

    def values(self, name: str, column: "pa.ChunkedArray") -> "Floats | pa.ChunkedArray":
        """Values of a column, numbers or texts."""
        return self.as_numbers(name, column) if self.is_number(name) else column

    def as_texts(self, name: str, column: "pa.ChunkedArray") -> "pa.ChunkedArray":
        """Values of a column as they stand in the file."""
        return column

    def n_filled(self, column: "pa.ChunkedArray") -> int:
        """Number of texts that are not empty."""
        import pyarrow as pa
        import pyarrow.compute as pc

        empty = pa.array(sorted({"", *(self.missing - MISSING)}))
        return len(column) - (pc.sum(pc.is_in(pc.utf8_trim_whitespace(column), value_set=empty)).as_py() or 0)

    def place(self, row: int) -> tuple[Path, int | None]:
        """File and line that a row begins on."""
        return self.path, text.line_of(self.file, self.separator, row, not self.header.is_data)

    def refuse(self, found: Sequence[BadFile]) -> NoReturn:
        """Raise an error with all mistakes of the file; with those that were found, if a closer look finds none."""
        candidates = [name for name in self._wanted if name not in self._as_text]
        mistakes, n_more = find_mistakes(
            self.file,
            self.separator,
            self.header,
            candidates,
            chosen=self._as_numbers,
            id_column=None if self.is_large else self.id_column,
            missing=self.missing,
        )
        raise BadFile.gathered(mistakes or found, n_more) from None

    def _guess(self, names: list[str]) -> "dict[str, pa.DataType]":
        """Number or text, by the first block of the file."""
        import pyarrow as pa
        from pyarrow import csv

        np.empty(READER_MEMORY, dtype=np.uint8)  # a MemoryError here ends well
        try:
            with self.file.open() as file, csv.open_csv(_as_arrow(file), **self._options(names, None)) as reader:
                schema = reader.schema
        except pa.ArrowInvalid as error:
            if self._has_long_line(error):
                return self._guess(names)
            if self._n_records() == (not self.header.is_data):
                raise BadFile(self.path, NO_ROWS) from None
            raise BadFile(self.path, f"{error}: correct the file") from None
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
            if self.file.sheet is None and not self.file.is_packed:
                with pa.OSFile(str(self.path)) as raw:  # by its path, Arrow would unpack whatever is called .gz
                    yield csv.read_csv(raw, **self._options(names, kinds))
                return
            with self.file.open() as file:
                yield csv.read_csv(_as_arrow(file), **self._options(names, kinds))
            return
        with self.file.open() as file:
            self._counted = Tally(file)
            with csv.open_csv(_as_arrow(self._counted), **self._options(names, kinds)) as reader:
                yield reader.schema.empty_table()
                for batch in reader:
                    self.done = self._counted.place
                    yield pa.Table.from_batches([batch])

    @cached_property
    def _counted(self) -> Tally:
        """Lines and quotes of a file in memory; those of a large one are counted while it is read."""
        tally = Tally(io.BytesIO())
        for block in self.file.blocks():
            tally.count(block)
        return tally

    @property
    def _has_quotes(self) -> bool:
        """Whether values may hold line breaks, which keeps Arrow from reading blocks side by side."""
        return self.is_large or self._counted.has_quotes

    def _check_rows(self, n_rows: int) -> None:
        """Refuse a file in which a quote hides rows: Arrow takes one that is never closed for the rest of the file."""
        n_records = n_rows + (not self.header.is_data)
        if self._counted.has_quotes and self._counted.n_lines != n_records and (n := self._n_records()) != n_records:
            problem = (
                f'{n:,} lines are read as {n_records:,} because of quotes inside values: double them, as in "5"" disk"'
            )
            raise BadFile(self.path, problem)

    def _options(self, names: list[str], kinds: "Mapping[str, pa.DataType] | None") -> dict[str, Any]:
        from pyarrow import csv

        n_skipped = 0 if self.header.is_data else 1
        return {
            "read_options": csv.ReadOptions(
                column_names=self.names, skip_rows_after_names=n_skipped, block_size=self._block
            ),
            "parse_options": csv.ParseOptions(delimiter=self.separator, newlines_in_values=self._has_quotes),
            "convert_options": csv.ConvertOptions(
                include_columns=names,
                column_types=kinds,
                null_values=sorted(self.missing),
                strings_can_be_null=False,
                quoted_strings_can_be_null=True,
            ),
        }

    def _has_long_line(self, error: "pa.ArrowInvalid") -> bool:
        """Whether a line is longer than what Arrow parses at once, which is more from now on."""
        if "straddling" not in str(error) or self._block > self.n_bytes:
            return False
        if self._block >= LONGEST_LINE:
            raise BadFile(self.path, f"a line is longer than {LONGEST_LINE:,} bytes: is a quote or line break missing?")
        self._block = min(8 * self._block, LONGEST_LINE)
        return True

    def _no_number(self, message: str, names: list[str]) -> str:
        """The column that made Arrow fail; an error if it failed for another reason."""
        import pyarrow as pa

        if self._n_records() == (not self.header.is_data):
            raise BadFile(self.path, NO_ROWS)
        for name in names:  # Arrow names a column by its number among all, or by nothing
            if pa.types.is_floating(self._kinds[name]):
                try:
                    for _ in self._tables([name], {name: self._kinds[name]}):
                        pass
                except pa.ArrowInvalid:
                    return name
        raise BadFile(self.path, f"{message}: correct the file")

    def _n_records(self) -> int:
        """Number of records; an error if it is not UTF-8, has an unclosed quote, or rows of different lengths."""
        n_columns, n = len(self.names), 0
        try:
            for _, record in text.records(self.file, self.separator):
                if len(record) != n_columns:
                    self.refuse([])
                n += 1
        except BadFile as error:
            self.refuse([error])
        return n


def gaps_among(missing: Collection[str]) -> Floats:
    """Numbers that stand for a missing value, such as -999."""
    numbers = [text.as_number(value) for value in missing]
    return np.array([number for number in numbers if number is not None and number == number], dtype=np.float64)


def without_gaps(values: Floats, gaps: Floats) -> Floats:
    """Values with NaN in place of the numbers that stand for a missing one."""
    return np.where(np.isin(values, gaps), np.nan, values) if len(gaps) else values


def _as_arrow(file: Any) -> "pa.PythonFile":
    import pyarrow as pa

    return pa.PythonFile(file, mode="r")
