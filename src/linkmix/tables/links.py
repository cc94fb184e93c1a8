"""Links in files: tables of every format, the text format of COP-KMeans, and JSON lines."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linkmix.basics.errors import BadFile
from linkmix.basics.files import aside
from linkmix.columns import MISSING
from linkmix.links import Links
from linkmix.links.table import COLUMNS, NEEDED, name_columns, parse_chosen, parse_confidence, parse_kind
from linkmix.tables import text
from linkmix.tables.cells import guarded
from linkmix.tables.files import TextFile, ending_of, kind_of
from linkmix.tables.ids import Ids, RowNumbers, rows_of
from linkmix.tables.sheets import read_sheet
from linkmix.tables.sources import ReadAgain, open_file
from linkmix.tables.text import as_file, quoted, shortened

DIGITS = 18
"""Digits of a row number that any table could have."""


@dataclass(frozen=True)
class LinkLine:
    """A link as it stands on a line of a file.

    Attributes
    ----------
    line : int
        Line of the file, from 1; of a Parquet or Feather file the number of the row, from 1.
    a, b : str or int
        Ids; an int is a row number from 0, which is what the format of COP-KMeans has.
    is_must : bool
        Whether it is a must-link.
    confidence : float or None
        None if it is certain.
    annotator : str or None
    chosen : bool
        Whether the pair was chosen, and is not a random one.
    """

    line: int
    a: str | int
    b: str | int
    is_must: bool
    confidence: float | None = None
    annotator: str | None = None
    chosen: bool = False


def read_links(path: str | os.PathLike[str], ids: Ids) -> Links:
    r"""Read links from a file.

    Parameters
    ----------
    path : path
        A CSV, TSV, Parquet, Feather or Excel file with the columns ``a``, ``b``, ``kind`` and optionally
        ``confidence``, ``annotator`` and ``chosen`` (yes or no), of which the first three may also have other names, as
        for `Links.from_table`; JSON lines with the names given here; or the format of COP-KMeans: two row numbers from
        0 and 1 or -1, without a header.
    ids : sequence of str
        Ids of the points, in their order.

    Returns
    -------
    Links

    Raises
    ------
    BadFile
        With file, line, column, value and remedy.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "links.csv"
    >>> _ = file.write_text("a,b,kind,confidence\n007,008,must,\n007,1e5,cannot,0.9\n")
    >>> links = read_links(file, ["007", "008", "1e5"])
    >>> links, links.cannot.tolist(), links.cannot_confidence
    (Links(1 must, 1 cannot), [[0, 2]], array([0.9]))
    """
    return to_links(path, read_link_lines(path), ids)


def read_link_lines(path: str | os.PathLike[str]) -> list[LinkLine]:
    """Read links from a file as they stand there, whether or not their ids are known.

    Parameters
    ----------
    path : path
        As for `read_links`.

    Returns
    -------
    list of LinkLine
    """
    file = as_file(path)
    kind = kind_of(file)
    if kind in ("parquet", "feather"):
        return _gathered(_from_table(file, *_typed_rows(file)))
    given = read_sheet(file) if kind == "sheet" else TextFile(file)
    text.check_text(given)
    with given.open() as opened:
        first = opened.readline().decode("utf-8-sig", errors="replace")
    if ending_of(file) in (".jsonl", ".ndjson") or first.lstrip().startswith("{"):
        return _gathered(_from_json(given))
    if _is_cop(first):
        return _gathered(_from_cop(given))
    rows = text.records(given, text.find_separator(given))
    line, names = next(rows)
    return _gathered(_from_table(file, [name.strip() for name in names], rows, line))


def _gathered(found: Iterable[LinkLine | BadFile]) -> list[LinkLine]:
    """Links, or one error with all mistakes."""
    lines, mistakes = [], []
    for one in found:
        if isinstance(one, BadFile):
            mistakes.append(one)
        else:
            lines.append(one)
    if mistakes:
        raise BadFile.gathered(mistakes)
    return lines


def to_links(path: str | os.PathLike[str], lines: Sequence[LinkLine], ids: Ids) -> Links:
    """Links between the rows that have these ids.

    Parameters
    ----------
    path : path
        The file that the lines come from, for errors.
    lines : sequence of LinkLine
        Links by ids.
    ids : sequence of str
        Ids of the points, in their order.

    Returns
    -------
    Links

    Raises
    ------
    BadFile
        For lines with an id that no point has, or the same id twice.
    """
    found = [rows for _, rows in find_rows(path, lines, ids)]
    mistakes = [rows for rows in found if isinstance(rows, BadFile)]
    if mistakes:
        raise BadFile.gathered(mistakes)
    return between_rows(lines, [rows for rows in found if not isinstance(rows, BadFile)])


def find_rows(
    path: str | os.PathLike[str], lines: Sequence[LinkLine], ids: Ids
) -> Iterator[tuple[LinkLine, tuple[int, int] | BadFile]]:
    """Each line of a file with the rows that it links, or with what is wrong with it: once for each wrong id."""
    row_of = rows_of(ids, {end for line in lines for end in (line.a, line.b) if isinstance(end, str)})
    for line in lines:
        rows = []
        for column, end in (("a", line.a), ("b", line.b)):
            row = row_of.get(end) if isinstance(end, str) else end if end < len(ids) else None
            if row is None:
                yield line, BadFile(path, _unknown(end, ids), line.line, column)
            else:
                rows.append(row)
        if len(rows) == 2 and rows[0] == rows[1]:
            yield line, BadFile(path, f"{line.a!r} is linked to itself: remove the line", line.line)
        elif len(rows) == 2:
            yield line, (rows[0], rows[1])


def between_rows(lines: Sequence[LinkLine], pairs: Sequence[tuple[int, int]]) -> Links:
    """Links from lines and the rows that they are about."""
    return Links.from_checked(
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
        np.array([line.is_must for line in lines], dtype=bool),
        [line.confidence for line in lines],
        [line.annotator for line in lines],
        [line.chosen for line in lines],
    )


def write_links(path: str | os.PathLike[str], links: Links, ids: Ids, *, raw: bool = False) -> None:
    """Write links to a file that `read_links` reads back as the same links.

    Parameters
    ----------
    path : path
        The file: JSON lines if its name ends in ``.jsonl``, tabs for ``.tsv``, commas for all others.
    links : Links
        The links, without relations of other kinds. Annotators are texts.
    ids : sequence of str
        Ids of the points, in their order.
    raw : bool, default=False
        Whether to write ids as they are, also those that a spreadsheet would run; see `linkmix.tables.cells`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from linkmix import Links
    >>> file = Path(tempfile.mkdtemp()) / "links.csv"
    >>> write_links(file, Links(must=[(0, 2)], cannot=[(1, 0)]), ids=["anna", "bob", "007"])
    >>> print(file.read_text())
    a,b,kind
    anna,007,must
    bob,anna,cannot
    <BLANKLINE>
    """
    target = Path(path)
    table = links.to_table(ids)
    for name in table.get("annotator", ()):
        if name is not None and (not isinstance(name, str) or not name):
            raise ValueError(f"annotator {name!r} is not a text with letters in it: name annotators by text")
    rows = [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]
    if target.suffix.lower() in (".jsonl", ".ndjson"):
        lines = [json.dumps({k: v for k, v in row.items() if v is not None}, ensure_ascii=False) for row in rows]
    else:
        separator = text.SEPARATORS.get(target.suffix.lower(), ",")
        lines = [separator.join(table)]
        lines += [separator.join(_as_text(value, raw) for value in row.values()) for row in rows]
    with aside(target) as place:
        place.write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="")


def _typed_rows(path: Path) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """Names of the columns of a Parquet or Feather file, and its rows as texts."""
    source = open_file(path)
    source.choose((), source.names, ())
    columns: list[list[str]] = [[] for _ in source.names]
    while True:
        try:
            for _, batch in source.batches():
                for column, name in zip(columns, source.names, strict=True):
                    column.extend(source.as_texts(name, batch[name]).to_pylist())
        except ReadAgain:
            columns = [[] for _ in source.names]
            continue
        return source.names, ((row, list(record)) for row, record in enumerate(zip(*columns, strict=True), 1))


def _from_table(
    path: Path, names: list[str], rows: Iterable[tuple[int, list[str]]], first: int | None = None
) -> Iterator[LinkLine | BadFile]:
    for name in COLUMNS:
        if names.count(name) > 1:
            places = [place for place, other in enumerate(names, 1) if other == name]
            problem = f"columns {places[0]} and {places[1]} are both called {name!r}: rename one"
            raise BadFile(path, problem, first)
    try:
        usual = name_columns([name for name in names if name])
    except ValueError as error:
        raise BadFile(path, str(error), first) from None
    called = {name: own for own, name in usual.items()}
    try:
        for line, record in rows:
            if len(record) != len(names):
                yield BadFile(path, f"{len(record)} values for {len(names)} columns: correct the line", line)
                continue
            fields = {usual[name]: value for name, value in zip(names, record, strict=True) if name in usual}
            yield _link_line(path, line, fields, called)
    except BadFile as error:  # an open quote, or a byte that is not UTF-8: the rest cannot be read
        yield error


def _from_cop(file: TextFile) -> Iterator[LinkLine | BadFile]:
    path = file.path
    for line, content in _lines(file):
        parts = content.split()
        if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts[:2]):
            yield BadFile(path, f"{shortened(content)} is not two row numbers and 1 or -1: correct the line", line)
        elif parts[2] not in ("1", "-1"):
            yield BadFile(
                path, f"{shortened(parts[2])} is neither 1 (must-link) nor -1 (cannot-link): use one of them", line
            )
        else:
            a, b = (int(part) if len(part) <= DIGITS else 10**DIGITS for part in parts[:2])  # more than any table has
            yield LinkLine(line, a, b, parse_kind(parts[2]))


def _from_json(file: TextFile) -> Iterator[LinkLine | BadFile]:
    return (_json_line(file.path, line, content) for line, content in _lines(file))


def _json_line(path: Path, line: int, content: str) -> LinkLine | BadFile:
    try:
        fields = json.loads(content)
    except json.JSONDecodeError as error:
        return BadFile(path, f"is not JSON ({error.msg}, character {error.colno}): correct it", line)
    except (ValueError, RecursionError):
        return BadFile(path, f"holds a number of thousands of digits, or is nested too deep: write {_EXAMPLE}", line)
    if not isinstance(fields, dict):
        return BadFile(path, f"{shortened(content)} is not an object: write one such as {_EXAMPLE}", line)
    for name in NEEDED:
        if name not in fields:
            return BadFile(path, f"has no {name!r}: write an object such as {_EXAMPLE}", line)
    for name in ("a", "b", "annotator"):
        if not isinstance(fields.get(name), str) and (name in NEEDED or fields.get(name) is not None):
            return BadFile(path, f"{fields[name]!r} is not a text: put it in quotes", line, name)
    return _link_line(path, line, fields, {name: name for name in COLUMNS})


_EXAMPLE = '{"a": "7", "b": "9", "kind": "must"}'


def _link_line(path: Path, line: int, fields: dict[str, Any], called: Mapping[str, str]) -> LinkLine | BadFile:
    """Read a link from its fields by their usual names, and name those by what they are called in the file."""
    for end in ("a", "b"):
        if fields[end] == "":
            return BadFile(path, "the id is empty: write both ids of a link, or remove the line", line, called[end])
    column = "kind"
    try:
        is_must = parse_kind(fields[column])
        column = "confidence"
        confidence = parse_confidence(_as_number(fields.get(column)))
        column = "chosen"
        chosen = parse_chosen(None if fields.get(column) == "" else fields.get(column))
    except ValueError as error:
        return BadFile(path, str(error), line, called[column])
    return LinkLine(line, fields["a"], fields["b"], is_must, confidence, fields.get("annotator") or None, chosen)


def _as_text(value: Any, raw: bool) -> str:
    """A value of a table of links as it is written to a file."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else quoted(str(value) if raw else guarded(str(value)))


def _as_number(given: Any) -> Any:
    """The number that a text stands for, None if it stands for a missing one; anything else as it is."""
    if not isinstance(given, str):
        return given
    number = text.as_number(given)
    return None if given.strip() in MISSING else given if number is None else number


def _is_cop(first: str) -> bool:
    parts = first.split()
    return len(parts) == 3 and all(part.lstrip("-").isdigit() for part in parts)


def _lines(file: TextFile) -> list[tuple[int, str]]:
    try:
        lines = b"".join(file.blocks()).decode("utf-8-sig").split("\n")
    except UnicodeDecodeError:
        text.refuse_bytes(file)
        raise
    return [(number, line.strip()) for number, line in enumerate(lines, 1) if line.strip()]


def _unknown(end: str | int, ids: Ids) -> str:
    """Say what is wrong with an id that no point has, and which one may be meant."""
    if isinstance(end, int) or (isinstance(ids, RowNumbers) and end.isdecimal()):
        return f"there is no row {end}, only {len(ids)} rows, counted from 0: correct it"
    if isinstance(ids, RowNumbers):
        hint = "row numbers, since no column is named 'id'"
        return f"{end!r} is not among the ids of the points ({hint}): name their column (--id, or id=), or correct it"
    plain = end.strip().casefold().lstrip("0")
    alike = next((other for other in ids if other.strip().casefold().lstrip("0") == plain), None)
    hint = f"is it {alike!r}?" if alike is not None else f"ids are such as {ids[0]!r}" if len(ids) else "there are none"
    return f"{end!r} is not among the ids of the points ({hint}): correct or remove it"
