"""Text files with a separator: which one, which columns, and where a record stands."""

import csv
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from linkmix.basics.errors import BadFile

SEPARATORS = {".tsv": "\t", ".tab": "\t"}
"""Separators by the ending of the file; a comma for all others."""
MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"})
"""What stands for a missing value."""
SPECIAL = r'^$|[",\t\r\n]'
"""What needs quotes in a CSV or TSV file, besides spaces at an end."""
_FOREIGN = {
    b"\xff\xfe": "is UTF-16: save it as UTF-8",
    b"\xfe\xff": "is UTF-16: save it as UTF-8",
    b"\x1f\x8b": "is compressed with gzip: unpack it first",
    b"PK\x03\x04": "is a zip archive or a spreadsheet: save the sheet as CSV",
}
_SAMPLE = 2**16

csv.field_size_limit(2**27)  # a record of many columns is not one long field; a field of 128 MB is a lost quote


def check_text(path: Path) -> None:
    """Refuse an empty file and one whose beginning is not text in UTF-8."""
    with path.open("rb") as file:
        beginning = file.read(_SAMPLE)
    if not beginning.removeprefix(b"\xef\xbb\xbf").strip():
        raise BadFile(path, "is empty: give a file with a line of column names and a line for each row")
    for magic, problem in _FOREIGN.items():
        if beginning.startswith(magic):
            raise BadFile(path, problem)
    if (place := beginning.find(b"\0")) >= 0:
        line = beginning.count(b"\n", 0, place) + 1
        raise BadFile(path, "holds a zero byte, so it is not a text file: save it as CSV in UTF-8", line)


def records(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Records of a file with the number of the line that each begins on; empty lines are skipped."""
    line = 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=separator, strict=True)
            for record in reader:
                if record:
                    yield line, record
                line = reader.line_num + 1
    except UnicodeDecodeError:
        refuse_bytes(path)
    except csv.Error as error:
        what = str(error)
        if "unexpected end" in what:
            what = "a quote is opened and never closed"
        raise BadFile(path, f"{what}: correct the quotes", line) from None


def refuse_bytes(path: Path) -> None:
    """Name the line of the first byte that is not UTF-8."""
    with path.open("rb") as file:
        for line, content in enumerate(file, 1):
            try:
                content.decode("utf-8")
            except UnicodeDecodeError as error:
                raise BadFile(
                    path,
                    f"byte 0x{content[error.start]:02x} is not UTF-8: save the file as UTF-8, "
                    "for example with iconv -f latin1 -t utf-8",
                    line,
                ) from None


def find_separator(path: Path) -> str:
    """The separator that the ending of the file calls for, unless the first line has only another one.

    A space is a separator only between numbers, since names of columns may have spaces.
    """
    with path.open("rb") as file:
        first = file.readline(_SAMPLE).decode("utf-8-sig", errors="replace")
    expected = SEPARATORS.get(path.suffix.lower(), ",")
    others = [separator for separator in (",", "\t", ";") if separator in first]
    values = first.split()
    if not others and len(values) > 1 and all(as_number(value) is not None for value in values):
        if first.rstrip("\r\n") != " ".join(values):
            remedy = "separate them by one, or by commas, for example with awk '{$1=$1} 1'"
            raise BadFile(path, f"values are not separated by single spaces: {remedy}", 1)
        return " "
    return others[0] if others and expected not in first else expected


def check_names(path: Path, names: Iterable[str], line: int | None = None) -> None:
    """Refuse columns without a name of their own."""
    place_of: dict[str, int] = {}
    for place, name in enumerate(names, 1):
        if not name.strip():
            raise BadFile(path, f"column {place} has no name: name it, or remove the column", line)
        if place_of.setdefault(name, place) != place:
            raise BadFile(path, f"columns {place_of[name]} and {place} are both called {name!r}: rename one", line)


def line_of(path: Path, separator: str, row: int, has_header: bool = True) -> int | None:
    """Line on which a row begins; rows are counted from 0 after the header, if there is one."""
    for number, (line, _) in enumerate(records(path, separator), -1 if has_header else 0):
        if number == row:
            return line
    return None


def as_number(value: str) -> float | None:
    """The number that a text stands for, NaN for a missing one, None if it is not a number."""
    if value.strip() in MISSING:
        return float("nan")
    try:
        return None if "_" in value else float(value)
    except ValueError:
        return None


def quoted(value: str) -> str:
    """A value as a field of a CSV or TSV file, in quotes if it needs them."""
    if value != value.strip() or re.search(SPECIAL, value):
        return '"' + value.replace('"', '""') + '"'
    return value


def listed(names: Iterable[str], at_most: int = 8) -> str:
    """Names in quotes, the first few of them."""
    names = list(names)
    more = f" and {len(names) - at_most} more" if len(names) > at_most else ""
    return ", ".join(map(repr, names[:at_most])) + more


def shortened(value: str, at_most: int = 40) -> str:
    """A value in quotes, cut if it is long."""
    return repr(value if len(value) <= at_most else value[: at_most - 3] + "...")


def as_file(path: str | os.PathLike[str]) -> Path:
    """The path of a file that can be opened; an error otherwise, also for a folder."""
    file = Path(path)
    if file.is_dir():
        raise BadFile(file, "is a folder: give a file")
    with file.open("rb"):
        return file
