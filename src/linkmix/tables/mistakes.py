"""All mistakes of a text file at once, so that they can be corrected at once."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from itertools import islice
from math import isinf, isnan

import numpy as np

from linkmix.basics.errors import MISTAKES_TOLD, BadFile
from linkmix.columns import MISSING
from linkmix.columns.numerals import MOSTLY, Convention, read_numerals
from linkmix.tables import text
from linkmix.tables.files import TextFile
from linkmix.tables.header import Header
from linkmix.tables.text import shortened

LOOKED_AT = 100_000
"""Rows that tell how the numbers of a column are written."""


@dataclass
class _Some:
    """The first of many mistakes, and their number."""

    n: int = 0
    first: list[BadFile] = field(default_factory=list)

    def add(self, mistake: BadFile) -> None:
        self.n += 1
        if len(self.first) < MISTAKES_TOLD:
            self.first.append(mistake)


def find_mistakes(
    file: TextFile,
    separator: str,
    header: Header,
    candidates: Collection[str],
    *,
    chosen: Collection[str] = (),
    id_column: str | None = None,
    missing: Collection[str] = MISSING,
) -> tuple[list[BadFile], int]:
    """Look through a whole file for lines of the wrong length, texts among numbers, and ids that are empty or repeated.

    Parameters
    ----------
    file, separator, header
        The file and how it is read.
    candidates : collection of str
        Columns of numbers, if most of their values are some.
    chosen : collection of str
        Those among them that must be numbers.
    id_column : str, optional
        Column whose texts must all differ.
    missing : collection of str
        What stands for a missing value.

    Returns
    -------
    list of BadFile
        The first ones, in the order of their lines.
    int
        How many more there are.
    """
    path, names = file.path, header.names
    numbers = _number_columns(file, separator, header, candidates, chosen, missing)
    places = [(names.index(name), name, _reader(how), how.unit) for name, how in numbers.items()]
    id_place = names.index(id_column) if id_column is not None else None
    found = _Some()
    line_of_id: dict[str, int] = {}
    try:
        for line, record in _rows(file, separator, header):
            if len(record) != len(names):
                found.add(BadFile(path, wrong_length(len(record), len(names)), line))
                continue
            for place, name, read, unit in places:
                value = record[place]
                if value.strip() in missing:
                    continue
                number = read(value.strip())
                if isnan(number):
                    found.add(BadFile(path, no_number(value, unit), line, name))
                elif isinf(number):
                    found.add(BadFile(path, infinite(number), line, name))
            if id_place is not None:
                value = record[id_place]
                if not value:
                    found.add(BadFile(path, EMPTY_ID, line, id_column))
                elif line_of_id.setdefault(value, line) != line:
                    found.add(BadFile(path, repeated_id(value, f"line {line_of_id[value]}"), line, id_column))
    except BadFile as error:  # an open quote, or a byte that is not UTF-8: the rest cannot be read
        found.add(error)
    return found.first, found.n - len(found.first)


def _rows(file: TextFile, separator: str, header: Header) -> Iterator[tuple[int, list[str]]]:
    return islice(text.records(file, separator), 0 if header.is_data else 1, None)


def _number_columns(
    file: TextFile,
    separator: str,
    header: Header,
    candidates: Collection[str],
    chosen: Collection[str],
    missing: Collection[str],
) -> dict[str, Convention]:
    """Columns whose values are mostly numbers, by their first rows, and how these are written."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in header.names if name in candidates}
    try:
        for _, record in islice(_rows(file, separator, header), LOOKED_AT):
            if len(record) == len(header.names):
                for name, value in zip(header.names, map(str.strip, record), strict=True):
                    if name in counts and value not in missing:
                        counts[name][value] += 1
    except BadFile:
        pass  # it is told when all rows are read
    found: dict[str, Convention] = {}
    for name, count in counts.items():
        how = read_numerals(list(count), np.array(list(count.values()))) if count else None
        if how is not None and how.share > MOSTLY:
            found[name] = how.convention
        elif name in chosen:
            found[name] = Convention()
    return found


def _reader(convention: Convention) -> Callable[[str], float]:
    """How a text is read as a number; NaN if it is none."""
    if convention != Convention():
        return lambda value: float(convention.read([value])[0])

    def read(value: str) -> float:
        plain = text.as_number(value, ())
        return float("nan") if plain is None else plain

    return read


NO_ROWS = "has column names but no rows: give a row for each point"
EMPTY_ID = "the id is empty: give every row an id"


def repeated_id(value: str, where: str) -> str:
    """What is wrong with an id that another row has."""
    return f"id {value!r} is also on {where}: give every row an id of its own"


def infinite(value: float) -> str:
    """What is wrong with an infinite number."""
    return f"{value} is not a finite number: correct it, or leave it empty"


def wrong_length(n_values: int, n_columns: int) -> str:
    """What is wrong with a line that is too short or too long."""
    what = "values are" if n_values != 1 else "value is"
    return (
        f"{n_values} {what} on a line of a file with {n_columns} columns: "
        "add what is missing, remove what is too much, or put a value with a separator in quotes"
    )


def no_number(value: str, unit: str = "") -> str:
    """What is wrong with a text among numbers, which may all have a unit."""
    remedy = "correct it, leave it empty, name it with --na if it stands for a missing value, or choose other columns"
    if unit:
        return f"{shortened(value)} is not a number in {unit}, as most of its column are: convert it, or {remedy}"
    return f"{shortened(value)} is not a number: {remedy}"
