"""Tables in files: text, and Parquet."""

import os
from collections.abc import Collection

from linkmix.tables.parquet_source import Parquet
from linkmix.tables.text import as_file
from linkmix.tables.text_source import Columns, ReadAgain, Text

__all__ = ["Columns", "Parquet", "ReadAgain", "Text", "open_file"]


def open_file(path: str | os.PathLike[str], wanted: Collection[str] = ()) -> "Text | Parquet":
    """A table by the first bytes of the file, or its ending.

    Parameters
    ----------
    path : path
        The file.
    wanted : collection of str
        Names that the columns should have, if its first line can be read in two ways.

    Returns
    -------
    Text or Parquet
    """
    file = as_file(path)
    with file.open("rb") as opened:
        is_parquet = opened.read(4) == b"PAR1"
    if is_parquet or file.suffix.lower() in (".parquet", ".pq"):
        return Parquet(file)
    source = Text(file)
    source.header = source.header.meet(wanted).check()
    return source
