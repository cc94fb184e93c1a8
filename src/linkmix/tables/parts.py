"""Many files as one table: those of a folder or a pattern, in the order of their names."""

import glob
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from linkmix.basics.arrays import Floats
from linkmix.basics.errors import BadFile
from linkmix.data import scratch
from linkmix.tables.files import FEATHER_ENDINGS, PARQUET_ENDINGS, SHEET_ENDINGS, TEXT_ENDINGS, ending_of
from linkmix.tables.sources import Columns, Text, Typed, open_file
from linkmix.tables.text import listed

if TYPE_CHECKING:
    import pyarrow as pa

ENDINGS = (*PARQUET_ENDINGS, *TEXT_ENDINGS, *FEATHER_ENDINGS, *SHEET_ENDINGS)
"""Endings of the files of a folder that are parts of a table."""


def open_source(
    path: Path, wanted: Collection[str] = (), missing: Collection[str] = (), sheet: str | None = None
) -> "Text | Typed | Parts":
    """A table in a file, or in all files of a folder or a pattern such as ``parts/*.parquet``; see `open_file`."""
    sources = [open_file(file, wanted, missing, sheet) for file in files_of(path)]
    return sources[0] if len(sources) == 1 else Parts(path, sources)


def files_of(path: Path) -> list[Path]:
    """Files of a table, in the order of their names; those of a folder include its folders.

    Raises
    ------
    BadFile
        If a folder holds no table, or files of several kinds, or no file matches a pattern.
    """
    if path.is_dir():
        inside = (file for file in path.rglob("*") if ending_of(file) in ENDINGS and file.is_file())
        files = sorted(file for file in inside if not _is_hidden(file.relative_to(path)))
        endings = sorted({ending_of(file) for file in files})
        if not files:
            raise BadFile(
                path, f"is a folder without files {', '.join(f'*{ending}' for ending in ENDINGS)}: name a file"
            )
        if len(endings) > 1:
            raise BadFile(
                path,
                f"is a folder with files of several kinds ({', '.join(endings)}): choose some by a pattern in quotes, "
                f"such as '{path}/*{endings[0]}'",
            )
        return files
    if glob.has_magic(str(path)) and not path.exists():
        files = sorted(Path(name) for name in glob.glob(str(path), recursive=True) if Path(name).is_file())
        if not files:
            raise BadFile(path, "no file matches this pattern: correct it, or name a file")
        return files
    return [path]


def stamps_of(path: Path) -> tuple[tuple[str, int, int], ...]:
    """Name, size and time of the last change of each file of a table: other stamps tell that it was changed."""
    found = [(file, file.stat()) for file in files_of(path)]
    return tuple((str(file), one.st_size, one.st_mtime_ns) for file, one in found)


def _is_hidden(file: Path) -> bool:
    return any(part.startswith((".", "_")) for part in file.parts)


class Parts:
    """Several files with the same columns, which are read one after another.

    Attributes
    ----------
    path : Path
        The folder or pattern.
    files : list of Path
    names : list of str
        Names of all columns, in the order of the first file.
    size, done : int
        Bytes or rows of all files, and how many of them have been read.
    """

    def __init__(self, path: Path, sources: "Sequence[Text | Typed]") -> None:
        first = sources[0]
        texts = [source for source in sources if isinstance(source, Text)]
        if any(source.header.is_data for source in texts):  # what looks like names may be numbers of a row elsewhere
            for text in texts:
                text.header = text.header.as_data() if text.header.may_be_data else text.header
        expected = dict.fromkeys(first.names)
        for source in sources[1:]:
            if type(source) is not type(first):
                raise BadFile(source.path, f"is not the same kind of file as {first.path}: give files of one kind")
            found = dict.fromkeys(source.names)
            missing = [name for name in expected if name not in found]
            added = [name for name in found if name not in expected]
            if missing or added:
                lacks = f"has no column {listed(missing)}, which {first.path} has" if missing else ""
                more = f"has column {listed(added)}, which {first.path} does not have" if added else ""
                said = " and ".join(filter(None, (lacks, more)))
                raise BadFile(source.path, f"{said}: give all files the same columns")
        self.path, self.names, self.unit = path, first.names, first.unit
        self.remarks = tuple(f"{remark}; so it is with all {len(sources)} files" for remark in first.remarks)
        self.files = [source.path for source in sources]
        self.size, self.done = sum(source.size for source in sources), 0
        self._sources = sources
        self._n_rows = [0] * len(sources)
        odd: set[str] = set()
        for source in sources:
            source.is_large = source.is_large or sum(one.n_bytes for one in sources) > scratch.IN_MEMORY
            if isinstance(source, Typed):
                source.odd = odd  # so that ids and texts of all files are written the same way
        self._now = first  # the file that is being read
        self.id_column: str | None = None
        self.missing = first.missing

    def choose(self, wanted: Sequence[str], as_text: Sequence[str], as_numbers: Sequence[str]) -> None:
        """Choose columns in all files."""
        for source in self._sources:
            source.id_column = self.id_column
            source.choose(wanted, as_text, as_numbers)

    @property
    def is_large(self) -> bool:
        """Whether it is read in parts."""
        return self._sources[0].is_large

    def is_number(self, name: str) -> bool:
        """Whether a column holds numbers: in all files, as far as these have any value at their beginning."""
        told = [source for source in self._sources if not source.is_blank(name)] or [self._now]
        kinds = [source.is_number(name) for source in told]
        settled = [source.settle(name, all(kinds)) for source in self._sources]
        if not all(settled):
            numbers, others = told[kinds.index(True)], told[kinds.index(False)]
            problem = f"holds no numbers, as it does in {numbers.path}: give all files columns of the same types"
            raise BadFile(others.path, problem, column=name)
        return all(kinds)

    def is_short(self, name: str) -> bool:
        """Whether the values of a column can be shown."""
        return self._now.is_short(name)

    def batches(self) -> Iterator[tuple[int, Columns]]:
        """Number of rows and all chosen columns, batch by batch, file by file."""
        self.done = before = 0
        for place, source in enumerate(self._sources):
            self._n_rows[place] = 0
            self._now = source
            for n_rows, columns in source.batches():
                self._n_rows[place] += n_rows
                self.done = before + source.done
                yield n_rows, columns
            before += source.size

    def as_numbers(self, name: str, column: "pa.ChunkedArray") -> Floats:
        """Values of a column, NaN where there is none."""
        return self._now.as_numbers(name, column)

    def values(self, name: str, column: "pa.ChunkedArray") -> "Floats | pa.ChunkedArray":
        """Values of a column, of any type."""
        return self._now.values(name, column)

    def as_texts(self, name: str, column: "pa.ChunkedArray") -> "pa.ChunkedArray":
        """Values of a column as text."""
        return self._now.as_texts(name, column)

    def n_filled(self, column: "pa.ChunkedArray") -> int:
        """Number of values that are not empty."""
        return self._now.n_filled(column)

    def place(self, row: int) -> tuple[Path, int | None]:
        """File and line that a row begins on."""
        firsts = [0, *accumulate(self._n_rows)]
        part = bisect_right(firsts, row) - 1
        return self._sources[part].place(row - firsts[part])

    def refuse(self, found: Sequence[BadFile]) -> NoReturn:
        """Raise an error with all mistakes of the file that has the first one."""
        next(source for source in self._sources if source.path == found[0].path).refuse(
            [mistake for mistake in found if mistake.path == found[0].path]
        )
