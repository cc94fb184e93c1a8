"""Text files with a separator: which one, which columns, and where a record stands."""

import csv
import io
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from linkmix.basics.errors import BadFile
from linkmix.columns import MISSING
from linkmix.tables.cells import unguarded
from linkmix.tables.files import ZIP, TextFile, ending_of

SEPARATORS = {".tsv": "\t", ".tab": "\t", ".tsv.gz": "\t"}
"""Separators by the ending of the file; a comma for all others."""
SPECIAL = r'^$|[",\t\r\n]'
"""What needs quotes in a CSV or TSV file, besides spaces at an end."""
_FOREIGN = {
    b"\xff\xfe": "is UTF-16: save it as UTF-8",
    b"\xfe\xff": "is UTF-16: save it as UTF-8",
    ZIP: "is a zip archive or a spreadsheet: unpack it, save the sheet as CSV, or let its name end in .xlsx",
}
_SAMPLE = 2**16

csv.field_size_limit(2**27)  # a record of many columns is not one long field; a field of 128 MB is a lost quote


def check_text(file: TextFile) -> None:
    """Refuse an empty file and one whose beginning is not text in UTF-8."""
    path = file.path
    with file.open() as opened:
        beginning = opened.read(_SAMPLE)
    if not beginning.removeprefix(b"\xef\xbb\xbf").strip():
        raise BadFile(path, "is empty: give a file with a line of column names and a line for each row")
    for magic, problem in _FOREIGN.items():
        if beginning.startswith(magic):
            raise BadFile(path, problem)
    if (place := beginning.find(b"\0")) >= 0:
        line = beginning.count(b"\n", 0, place) + 1
        raise BadFile(path, "holds a zero byte, so it is not a text file: save it as CSV in UTF-8", line)


def records(file: TextFile, separator: str, *, as_written: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Records of a file with the number of the line that each begins on; empty lines are skipped.

    The lines of a sheet are its rows. Apostrophes that keep spreadsheets from running cells are taken away, unless the
    cells are wanted as they are written.
    """
    as_written = as_written or file.sheet is not None
    line = n_records = 1
    try:
        with file.open() as opened, io.TextIOWrapper(opened, encoding="utf-8-sig", newline="") as text:
            reader = csv.reader(text, delimiter=separator, strict=True)
            for record in reader:
                if record:
                    if not as_written:
                        record = [unguarded(cell) if cell[:1] == "'" else cell for cell in record]
                    yield n_records if file.sheet is not None else line, record
                line, n_records = reader.line_num + 1, n_records + 1
    except UnicodeDecodeError:
        refuse_bytes(file)
    except csv.Error as error:
        what = str(error)
        if "unexpected end" in what:
            what = "a quote is opened and never closed"
        raise BadFile(file.path, f"{what}: correct the quotes", line) from None


def refuse_bytes(file: TextFile) -> None:
    """Name the line of the first byte that is not UTF-8."""
    with file.open() as opened:
        for line, content in enumerate(opened, 1):
            try:
                content.decode("utf-8")
            except UnicodeDecodeError as error:
                raise BadFile(
                    file.path,
                    f"byte 0x{content[error.start]:02x} is not UTF-8: save the file as UTF-8, "
                    "for example with iconv -f latin1 -t utf-8",
                    line,
                ) from None


def find_separator(file: TextFile) -> str:
    """The separator that the ending of the file calls for, unless the first line has only another one.

    A space is a separator only between numbers, since names of columns may have spaces.
    """
    if file.sheet is not None:
        return ","
    with file.open() as opened:
        first = opened.readline(_SAMPLE).decode("utf-8-sig", errors="replace")
    expected = SEPARATORS.get(ending_of(file.path), ",")
    others = [separator for separator in (",", "\t", ";") if separator in first]
    values = first.split()
    if not others and len(values) > 1 and all(as_number(value) is not None for value in values):
        if first.rstrip("\r\n") != " ".join(values):
            remedy = "separate them by one, or by commas, for example with awk '{$1=$1} 1'"
            raise BadFile(file.path, f"values are not separated by single spaces: {remedy}", 1)
        return " "
    return others[0] if others and expected not in first else expected


def own_names(path: Path, names: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Give every column a name of its own: size and size are size and size_2, and a third one without a name column3.

    Parameters
    ----------
    path : Path
        The file, for the remarks.
    names : sequence of str
        Names as they stand there.

    Returns
    -------
    list of str
        Names, all different and not empty.
    tuple of str
        What was changed, for the user.

    Examples
    --------
    >>> own_names(Path("p.csv"), ["size", "", "size"])[0]
    ['size', 'column2', 'size_2']
    """
    found: list[str] = []
    taken, given, numbers = set[str](), set(names), dict[str, int]()
    alike: dict[str, list[str]] = {}
    for place, name in enumerate(names, 1):
        name = name if name.strip() else ""
        own = base = name or f"column{place}"
        while own in taken or (own != name and own in given):
            numbers[base] = numbers.get(base, 1) + 1
            own = f"{base}_{numbers[base]}"
        alike.setdefault(name, []).append(own)
        found.append(own)
        taken.add(own)
    remarks = []
    for name, owns in alike.items():
        if not name:
            many = "columns have" if len(owns) > 1 else "column has"
            are = "they are" if len(owns) > 1 else "it is"
            remarks.append(f"{len(owns)} {many} no name in {path.name}: {are} called {listed(owns)}")
        elif len(owns) > 1:
            remarks.append(f"{len(owns)} columns of {path.name} are called {name!r}: they are read as {listed(owns)}")
    return found, tuple(remarks)


def line_of(file: TextFile, separator: str, row: int, has_header: bool = True) -> int | None:
    """Line on which a row begins; rows are counted from 0 after the header, if there is one."""
    for number, (line, _) in enumerate(records(file, separator), -1 if has_header else 0):
        if number == row:
            return line
    return None


def as_number(value: str, missing: Collection[str] = MISSING) -> float | None:
    """The number that a text stands for, NaN for a missing one, None if it is not a number."""
    if value.strip() in missing:
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


def as_line(values: Iterable[object]) -> str:
    """Values as a line of a CSV file; csv.writer would leave a carriage return without quotes."""
    return ",".join(quoted(text) if text else "" for text in map(str, values)) + "\n"


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
