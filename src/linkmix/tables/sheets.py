"""Sheets of spreadsheets, as text with commas: the rest of the way is that of a CSV file."""

import datetime
import zipfile
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
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        book = load_workbook(path, read_only=True, data_only=True)
    except (InvalidFileException, zipfile.BadZipFile, KeyError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise BadFile(path, f"is not a spreadsheet in the format {ending_of(path)}: save it again, or as CSV") from None
    try:
        if name is not None and name not in book.sheetnames:
            raise BadFile(path, f"there is no sheet {name!r}: choose from {listed(book.sheetnames)}")
        rows = [[_text(value) for value in row] for row in book[name or book.sheetnames[0]].iter_rows(values_only=True)]
    finally:
        book.close()
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
