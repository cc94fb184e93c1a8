"""Cells that a spreadsheet would run as a formula: written behind an apostrophe, and read without it."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_FIRST = frozenset("'=+-@\t\r")
_SIGNS = r"[=+\-@\t\r]"
_BEFORE = re.compile(f"'*{_SIGNS}")
_BEHIND = re.compile(f"'+{_SIGNS}")
_NUMBER = re.compile(r"[+-]([0-9][0-9,]*(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_IN_BYTES = re.compile(b"'[=+\\-@\t\r]")


def guarded(value: str) -> str:
    """A text as a cell that no spreadsheet runs; `unguarded` gives it back, whatever it is.

    A text that begins with an equals sign, a plus, a minus, an at sign, a tab or a carriage return, and is no number,
    gets an apostrophe; so does one that begins with apostrophes and such a sign, so that the two can be told apart.

    Examples
    --------
    >>> [guarded(value) for value in ("=1+1", "-5", "-x", "'-x", "it's", "@home")]
    ["'=1+1", '-5', "'-x", "''-x", "it's", "'@home"]
    """
    if value[:1] not in _FIRST or not _BEFORE.match(value) or _NUMBER.fullmatch(value):
        return value
    return f"'{value}"


def unguarded(cell: str) -> str:
    """The text that a cell of a CSV or TSV file stands for.

    Examples
    --------
    >>> [unguarded(cell) for cell in ("'=1+1", "=1+1", "-5", "''-x", "'tis")]
    ['=1+1', '=1+1', '-5', "'-x", "'tis"]
    """
    return cell[1:] if _BEHIND.match(cell) else cell


def may_be_guarded(block: bytes) -> bool:
    """Whether any cell of some bytes may be behind an apostrophe."""
    return b"'" in block and _IN_BYTES.search(block) is not None


def guarded_column(column: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """Every text of a column as a cell that no spreadsheet runs."""
    import pyarrow as pa
    import pyarrow.compute as pc

    runs = pc.match_substring_regex(column, f"^'*{_SIGNS}")
    if not pc.any(runs).as_py():
        return column
    numbers = pc.match_substring_regex(column, f"^{_NUMBER.pattern}$")
    marks = pc.if_else(pc.and_not(runs, numbers), pa.scalar("'"), pa.scalar(""))
    return pc.binary_join_element_wise(marks, column, "")


def unguarded_column(column: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """The texts that the cells of a column stand for."""
    import pyarrow.compute as pc

    return pc.replace_substring_regex(column, f"^'('*{_SIGNS})", r"\1")
