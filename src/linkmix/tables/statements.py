"""Links in files: CSV, TSV, the text format of COP-KMeans, and lines of JSON."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linkmix.basics.errors import BadFile
from linkmix.basics.files import aside
from linkmix.links import Links
from linkmix.links.reading import read_kinds
from linkmix.tables import text
from linkmix.tables.ids import Ids, rows_of
from linkmix.tables.text import as_file, listed, quoted

NEEDED = ("a", "b", "kind")
COLUMNS = (*NEEDED, "confidence", "annotator")


@dataclass(frozen=True)
class Statement:
    """One link as it stands in a file.

    Attributes
    ----------
    line : int
        Line of the file, from 1.
    a, b : str or int
        Ids; an int is a row number from 0, which is what the format of COP-KMeans has.
    is_must : bool
        Whether it is a must-link.
    confidence : float or None
        None if it is certain.
    annotator : str or None
    """

    line: int
    a: str | int
    b: str | int
    is_must: bool
    confidence: float | None = None
    annotator: str | None = None


def read_links(path: str | os.PathLike[str], ids: Ids) -> Links:
    r"""Read links from a file.

    Parameters
    ----------
    path : path
        A CSV or TSV file with the columns ``a``, ``b``, ``kind`` and optionally ``confidence`` and ``annotator``, lines
        of JSON with the same names, or the format of COP-KMeans: two row numbers from 0 and 1 or -1, without a header.
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
    return to_links(path, read_statements(path), ids)


def read_statements(path: str | os.PathLike[str]) -> list[Statement]:
    """Read links from a file as they stand there, whether or not their ids are known.

    Parameters
    ----------
    path : path
        As for `read_links`.

    Returns
    -------
    list of Statement
    """
    file = as_file(path)
    text.check_text(file)
    with file.open("rb") as opened:
        first = opened.readline().decode("utf-8-sig", errors="replace")
    if file.suffix.lower() in (".jsonl", ".ndjson") or first.lstrip().startswith("{"):
        return _read_json(file)
    if _is_cop(first):
        return _read_cop(file)
    return _read_delimited(file)


def to_links(path: str | os.PathLike[str], statements: Sequence[Statement], ids: Ids) -> Links:
    """Links between the rows that have these ids.

    Parameters
    ----------
    path : path
        The file that the statements come from, for errors.
    statements : sequence of Statement
        Links by ids.
    ids : sequence of str
        Ids of the points, in their order.

    Returns
    -------
    Links
    """
    row_of = rows_of(ids, ends_of(statements))
    table = []
    for statement in statements:
        a, b = (row_of_end(path, statement, end, row_of, ids) for end in ("a", "b"))
        if a == b:
            raise BadFile(path, f"{statement.a!r} is linked to itself: remove the line", statement.line)
        table.append(
            {
                "a": a,
                "b": b,
                "kind": "must" if statement.is_must else "cannot",
                "confidence": statement.confidence,
                "annotator": statement.annotator,
            }
        )
    return Links.from_table(table)


def ends_of(statements: Sequence[Statement]) -> set[str]:
    """All ids that links name.

    Parameters
    ----------
    statements : sequence of Statement
        Links by ids.

    Returns
    -------
    set of str
    """
    return {end for statement in statements for end in (statement.a, statement.b) if isinstance(end, str)}


def row_of_end(path: str | os.PathLike[str], statement: Statement, end: str, row_of: dict[str, int], ids: Ids) -> int:
    """Row of one end of a link.

    Parameters
    ----------
    path : path
        The file, for errors.
    statement : Statement
        The link.
    end : {"a", "b"}
        Which end of it.
    row_of : dict
        Rows of those ends of links that are ids.
    ids : sequence of str
        Ids of the points, in their order.

    Returns
    -------
    int
    """
    value: str | int = getattr(statement, end)
    if isinstance(value, int):
        if value >= len(ids):
            raise BadFile(
                path, f"row {value} is not there, the {len(ids)} rows count from 0: correct it", statement.line, end
            )
        return value
    row = row_of.get(value)
    if row is None:
        alike = _alike(value, ids)
        hint = f"is it {alike!r}?" if alike is not None else f"ids are such as {ids[0]!r}" if len(ids) else "none is"
        raise BadFile(
            path, f"{value!r} is not among the ids of the points ({hint}): correct or remove it", statement.line, end
        )
    return row


def write_links(path: str | os.PathLike[str], links: Links, ids: Ids) -> None:
    """Write links to a file that `read_links` reads back as the same links.

    Parameters
    ----------
    path : path
        Where: ``.jsonl`` gets lines of JSON, ``.tsv`` tabs, all others commas.
    links : Links
        The links, without other relations. Annotators are texts.
    ids : sequence of str
        Ids of the points, in their order.

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
            raise ValueError(f"annotator {name!r} is no text with letters in it: files hold names, give str")
    rows = [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]
    if target.suffix.lower() in (".jsonl", ".ndjson"):
        lines = [json.dumps({k: v for k, v in row.items() if v is not None}, ensure_ascii=False) for row in rows]
    else:
        separator = text.SEPARATORS.get(target.suffix.lower(), ",")
        lines = [separator.join(table)]
        lines += [separator.join("" if v is None else quoted(str(v)) for v in row.values()) for row in rows]
    with aside(target) as place:
        place.write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="")


def _read_delimited(path: Path) -> list[Statement]:
    separator = text.find_separator(path)
    rows = text.records(path, separator)
    line, names = next(rows)
    names = [name.strip() for name in names]
    text.check_names(path, names, line)
    for name in NEEDED:
        if name not in names:
            raise BadFile(
                path,
                f"there is no column {name!r} (columns: {listed(names)}): name the columns a, b and kind, and if you "
                "have them confidence and annotator",
                line,
            )
    statements = []
    for line, record in rows:
        if len(record) != len(names):
            raise BadFile(path, f"{len(record)} values for {len(names)} columns: correct the line", line)
        fields = {name: value for name, value in zip(names, record, strict=True) if name in COLUMNS}
        statements.append(_statement(path, line, fields))
    return statements


def _read_cop(path: Path) -> list[Statement]:
    statements = []
    for line, content in _lines(path):
        parts = content.split()
        if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts[:2]):
            raise BadFile(path, f"{content!r} is not two row numbers and 1 or -1: correct the line", line)
        if parts[2] not in ("1", "-1"):
            raise BadFile(path, f"{parts[2]!r} is neither 1 (must-link) nor -1 (cannot-link): use one of them", line)
        statements.append(Statement(line, int(parts[0]), int(parts[1]), parts[2] == "1"))
    return statements


def _read_json(path: Path) -> list[Statement]:
    statements = []
    for line, content in _lines(path):
        try:
            fields = json.loads(content)
        except json.JSONDecodeError as error:
            raise BadFile(path, f"is no JSON ({error.msg}, character {error.colno}): correct it", line) from None
        if not isinstance(fields, dict):
            raise BadFile(path, f"{content!r} is no object: write one such as {_EXAMPLE}", line)
        for name in NEEDED:
            if name not in fields:
                raise BadFile(path, f"has no {name!r}: write an object such as {_EXAMPLE}", line)
        for name in ("a", "b"):
            if not isinstance(fields[name], str):
                raise BadFile(path, f"{fields[name]!r} is no text: put ids in quotes", line, name)
        statements.append(_statement(path, line, {name: fields.get(name) for name in COLUMNS}))
    return statements


_EXAMPLE = '{"a": "7", "b": "9", "kind": "must"}'


def _statement(path: Path, line: int, fields: dict[str, Any]) -> Statement:
    for end in ("a", "b"):
        if fields[end] == "":
            raise BadFile(path, "the id is empty: write both ids of a link, or remove the line", line, end)
    kind = fields["kind"]
    try:
        [is_must] = read_kinds([kind])
    except ValueError:
        raise BadFile(path, f"{kind!r} is no kind of link: use must or cannot", line, "kind") from None
    return Statement(
        line,
        fields["a"],
        fields["b"],
        is_must,
        _confidence(path, line, fields.get("confidence")),
        _annotator(path, line, fields.get("annotator")),
    )


def _confidence(path: Path, line: int, given: Any) -> float | None:
    if given is None or (isinstance(given, str) and given.strip() in text.MISSING):
        return None
    try:
        value = float("x" if isinstance(given, bool) else given)
    except (TypeError, ValueError):
        value = float("nan")
    if not 0 < value <= 1:
        raise BadFile(
            path, f"{given!r} is no number above 0 and at most 1: correct it, or leave it empty", line, "confidence"
        )
    return value


def _annotator(path: Path, line: int, given: Any) -> str | None:
    if given is not None and not isinstance(given, str):
        raise BadFile(path, f"{given!r} is no text: put the name in quotes", line, "annotator")
    return given or None


def _is_cop(first: str) -> bool:
    parts = first.split()
    return len(parts) == 3 and all(part.lstrip("-").isdigit() for part in parts)


def _lines(path: Path) -> list[tuple[int, str]]:
    content = path.read_bytes()
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError:
        text.refuse_bytes(path)
        raise
    return [(number, line.strip()) for number, line in enumerate(lines, 1) if line.strip()]


def _alike(value: str, ids: Ids) -> str | None:
    """An id that differs in spaces, case or leading zeros only."""
    plain = value.strip().casefold().lstrip("0")
    return next((other for other in ids if other.strip().casefold().lstrip("0") == plain), None)
