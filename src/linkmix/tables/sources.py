"""Tables in files: text, sheets, Parquet and Feather."""

import os
from collections.abc import Collection

from linkmix.tables.arrow_source import Feather, Parquet, Typed
from linkmix.tables.files import TextFile, kind_of
from linkmix.tables.sheets import read_sheet
from linkmix.tables.text import as_file
from linkmix.tables.text_source import Columns, ReadAgain, Text

__all__ = ["Columns", "ReadAgain", "Text", "Typed", "open_file"]


def open_file(
    path: str | os.PathLike[str], wanted: Collection[str] = (), missing: Collection[str] = (), sheet: str | None = None
) -> "Text | Typed":
    """A table by the first bytes of the file, or its ending.

    Parameters
    ----------
    path : path
        The file.
    wanted : collection of str
        Names that the columns should have, if its first line can be read in two ways.
    missing : collection of str
        What stands for a missing value, besides the usual texts.
    sheet : str, optional
        Sheet of a spreadsheet; by default the first one.

    Returns
    -------
    Text or Typed
    """
    file = as_file(path)
    kind = kind_of(file)
    if kind in ("parquet", "feather"):
        return (Parquet if kind == "parquet" else Feather)(file, missing)
    source = Text(read_sheet(file, sheet) if kind == "sheet" else TextFile(file), missing)
    source.header = source.header.meet(wanted)
    return source
