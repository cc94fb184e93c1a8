"""Sheets of spreadsheets, as text with commas: the rest of the way is that of a CSV file."""

import datetime
import errno
from contextlib import closing
from pathlib import Path
from typing import Any

from linkmix.basics.errors import BadFile
from linkmix.tables.files import TextFile, ending_of
from linkmix.tables.text import as_line, listed


def read_sheet(path: Path, name: str | None = None) -> TextFile:
    """A sheet of a spreadsheet, one record for each of its rows.

    Parameters
    ----------
    path : Path
        A file in the format of Excel 2007 and later.
    name : str, optional
        Name of the sheet; by default the first one.

    Returns
    -------
    TextFile
        Numbers have all their digits, dates are in the form of ISO 8601, and formulas are the values that were saved
        with them. Columns without any value at the right end are not part of it.

    Raises
    ------
    BadFile
        If it is no spreadsheet, or has no such sheet.
    ModuleNotFoundError
        If openpyxl is not installed.
    """
    from openpyxl import load_workbook

    try:
        with closing(load_workbook(path, read_only=True, data_only=True)) as book:
            sheets = book.sheetnames
            rows = []
            if name is None or name in sheets:
                sheet = book[name or sheets[0]]
                sheet.reset_dimensions()  # what a file says about its size may be wrong, and the rest would be lost
                rows = [[_text(value) for value in row] for row in sheet.iter_rows(values_only=True)]
    except Exception as error:  # a damaged archive, or XML that means nothing, may lead to any
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)):
            raise
        problem = f"is not a spreadsheet in the format {ending_of(path)}, or damaged: save it again, or as CSV"
        raise BadFile(path, problem) from None
    if name is not None and name not in sheets:
        raise BadFile(path, f"there is no sheet {name!r}: choose from {listed(sheets)}")
    n_columns = max((place for row in rows for place, value in enumerate(row, 1) if value), default=0)
    # A row without values keeps the numbers of the rows below it.
    lines = (as_line((row + [""] * n_columns)[:n_columns]) if any(row) else "\n" for row in rows)
    return TextFile(path, "".join(lines).encode())


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime.datetime):
        return value.date().isoformat() if value.time() == datetime.time() else value.isoformat(" ")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)
