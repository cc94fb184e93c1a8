"""Files as they come: plain or compressed text, sheets of a spreadsheet, and the formats of Arrow."""

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any, cast

from linkmix.basics.errors import BadFile
from linkmix.tables.cells import may_be_guarded

GZIP, ZIP = b"\x1f\x8b", b"PK\x03\x04"
PARQUET_ENDINGS = (".parquet", ".pq")
FEATHER_ENDINGS = (".feather", ".arrow")
SHEET_ENDINGS = (".xlsx", ".xlsm")
TEXT_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_BLOCK = 2**22


def ending_of(path: Path) -> str:
    """The ending of a file name in lower case; with .gz, also the one before.

    Examples
    --------
    >>> [ending_of(Path(name)) for name in ("a.CSV", "a.b.tsv.gz", "a.gz", "a")]
    ['.csv', '.tsv.gz', '.gz', '']
    """
    ending = path.suffix.lower()
    return path.with_suffix("").suffix.lower() + ending if ending == ".gz" else ending


def stem_of(path: Path) -> str:
    """The name of a file without its ending.

    Examples
    --------
    >>> stem_of(Path("points.csv.gz")), stem_of(Path("points.2.csv"))
    ('points', 'points.2')
    """
    return path.name[: len(path.name) - len(ending_of(path))] or path.name


def kind_of(path: Path) -> str:
    """What a file is by its first bytes, or else by its ending: parquet, feather, sheet or text."""
    with path.open("rb") as file:
        beginning = file.read(6)
    ending = ending_of(path)
    if beginning.startswith(b"PAR1") or ending in PARQUET_ENDINGS:
        return "parquet"
    if beginning.startswith((b"ARROW1", b"FEA1")) or ending in FEATHER_ENDINGS:
        return "feather"
    return "sheet" if ending in SHEET_ENDINGS else "text"


@dataclass(frozen=True)
class TextFile:
    """Text with a separator, wherever it is.

    Attributes
    ----------
    path : Path
        The file, for errors.
    sheet : bytes or None
        The text of a sheet; None for a text file, which is unpacked if it is compressed with gzip.
    """

    path: Path
    sheet: bytes | None = field(default=None, repr=False)

    @cached_property
    def is_packed(self) -> bool:
        """Whether the file is compressed."""
        if self.sheet is not None:
            return False
        with self.path.open("rb") as file:
            return file.read(2) == GZIP

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The bytes of the text, from the beginning.

        Raises
        ------
        BadFile
            If a compressed file is damaged, wherever in the block that is found.
        """
        opened: Any
        if self.sheet is not None:
            opened = io.BytesIO(self.sheet)
        else:
            opened = gzip.open(self.path, "rb") if self.is_packed else self.path.open("rb")  # noqa: SIM115
        with opened:
            try:
                yield cast(IO[bytes], opened)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                reason = str(error).rstrip(".")
                raise BadFile(self.path, f"is compressed with gzip and damaged ({reason}): write it again") from None

    def blocks(self) -> Iterator[bytes]:
        """All bytes, block by block."""
        with self.open() as file:
            yield from iter(lambda: file.read(_BLOCK), b"")

    @cached_property
    def size(self) -> int:
        """Bytes of the file as it is."""
        return self.path.stat().st_size if self.sheet is None else len(self.sheet)

    def n_bytes(self, at_most: int) -> int:
        """Bytes of the text, counted up to somewhat more than so many if it is compressed."""
        if not self.is_packed:
            return self.size
        n = 0
        for block in self.blocks():
            n += len(block)
            if n > at_most:
                break
        return n


class Tally:
    """A file that is read once from its beginning to its end, and what was counted on the way.

    Parameters
    ----------
    file : binary file

    Attributes
    ----------
    n_lines : int
        Number of lines; the last one may have no line break.
    has_quotes : bool
        Whether there was any quote.
    has_guards : bool
        Whether there may be a cell behind an apostrophe.
    """

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._n_breaks = 0
        self._last = b"\n"
        self.has_quotes = self.has_guards = False

    def read(self, n: int = -1) -> bytes:
        """The next bytes."""
        return self.count(self._file.read(n))

    def count(self, block: bytes) -> bytes:
        """Count some bytes, and give them back."""
        self._n_breaks += block.count(b"\n")
        self.has_quotes = self.has_quotes or b'"' in block
        self.has_guards = self.has_guards or may_be_guarded(self._last + block)
        self._last = block[-1:] or self._last
        return block

    @property
    def n_lines(self) -> int:
        """Number of lines so far."""
        return self._n_breaks + (self._last != b"\n")

    @property
    def place(self) -> int:
        """Bytes of the file that have been read; of a compressed one, compressed."""
        packed = getattr(self._file, "fileobj", None)
        return int((self._file if packed is None else packed).tell())

    def close(self) -> None:
        """Nothing to do: the file is closed where it was opened."""

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    def seekable(self) -> bool:
        """Whether one can go back; what was counted would be wrong then."""
        return False

    def writable(self) -> bool:
        """Whether it can be written."""
        return False
