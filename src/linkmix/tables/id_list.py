"""Files that list points by their ids: a column named id, or one id on each line."""

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from linkmix.basics.arrays import Ints
from linkmix.basics.errors import BadFile
from linkmix.basics.files import aside
from linkmix.tables.cells import guarded
from linkmix.tables.files import TextFile
from linkmix.tables.ids import Ids, rows_of
from linkmix.tables.text import as_file, check_text, quoted, records


def write_ids(path: str | os.PathLike[str], ids: Iterable[str], *, raw: bool = False) -> None:
    """Write ids as a CSV file with one column, id; raw ones may be run by a spreadsheet, see `linkmix.tables.cells`."""
    with aside(Path(path)) as place, place.open("w", encoding="utf-8", newline="") as file:
        file.writelines(f"{quoted(one if raw else guarded(one))}\n" for one in ("id", *ids))


def read_ids(path: str | os.PathLike[str], ids: Ids) -> Ints:
    """Rows of the points that a file lists.

    Parameters
    ----------
    path : path
        CSV file: the column named id, or the first one if the first line does not name it.
    ids : sequence of str
        Ids of the points, in their order.

    Returns
    -------
    ndarray of int
        Row numbers, in ascending order.

    Raises
    ------
    BadFile
        If an id is not among the points.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "noise.csv"
    >>> write_ids(file, ["c", "a"])
    >>> read_ids(file, ["a", "b", "c"]).tolist()
    [0, 2]
    """
    file = TextFile(as_file(path))
    check_text(file)
    found, column = [], 0
    for place, (line, record) in enumerate(records(file, ",")):
        if place == 0 and "id" in record:
            column = record.index("id")
        elif any(record):
            found.append((line, record[column] if len(record) > column else ""))
    row_of = rows_of(ids, {value for _, value in found})
    unknown = "is not among the ids of the points: correct it"
    mistakes = [BadFile(path, f"{value!r} {unknown}", line) for line, value in found if value not in row_of]
    if mistakes:
        raise BadFile.gathered(mistakes)
    return np.array(sorted({row_of[value] for _, value in found}), dtype=np.int64)
