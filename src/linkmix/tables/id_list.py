"""Files that list points by their ids: a column named id, or one id on each line."""

import csv
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from linkmix.basics.arrays import Ints
from linkmix.basics.errors import BadFile
from linkmix.basics.files import aside
from linkmix.tables.ids import Ids


def write_ids(path: str | os.PathLike[str], ids: Iterable[str]) -> None:
    """Write ids as a CSV file with one column, id."""
    with aside(Path(path)) as place, place.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([["id"], *([one] for one in ids)])


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
    row_of = {str(value): row for row, value in enumerate(ids)}
    rows, column = set(), 0
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        for number, line in enumerate(csv.reader(file), start=1):
            if number == 1 and "id" in line:
                column = line.index("id")
                continue
            value = line[column] if len(line) > column else ""
            if not value and not any(line):
                continue
            if value not in row_of:
                raise BadFile(
                    path, f"line {number} names {value!r}, which is not among the ids of the points: correct it"
                )
            rows.add(row_of[value])
    return np.array(sorted(rows), dtype=np.int64)
