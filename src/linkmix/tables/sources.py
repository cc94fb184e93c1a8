"""Tables in files: text, and Parquet."""

import os

from linkmix.tables.parquet_source import Parquet
from linkmix.tables.text import as_file
from linkmix.tables.text_source import Columns, ReadAgain, Text

__all__ = ["Columns", "Parquet", "ReadAgain", "Text", "open_file"]


def open_file(path: str | os.PathLike[str]) -> "Text | Parquet":
    """A table by the first bytes of the file, or its ending."""
    file = as_file(path)
    with file.open("rb") as opened:
        is_parquet = opened.read(4) == b"PAR1"
    return Parquet(file) if is_parquet or file.suffix.lower() in (".parquet", ".pq") else Text(file)
