"""The input table with the labels beside it, every value as it stood in the file."""

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from linkmix.basics.arrays import Floats, Ints
from linkmix.basics.errors import BadFile
from linkmix.basics.files import aside
from linkmix.tables import text
from linkmix.tables.cells import guarded
from linkmix.tables.ids import BLOCK
from linkmix.tables.labels import label_columns, label_names
from linkmix.tables.parts import files_of, stamps_of
from linkmix.tables.sources import ReadAgain, Text, Typed, open_file
from linkmix.tables.text import own_names

_REMEDY = "give the table that the labels are of"


def write_joined(
    path: str | os.PathLike[str],
    points: str | os.PathLike[str],
    labels: Ints,
    probabilities: Floats | None = None,
    *,
    noise: Floats | None = None,
    names: Sequence[str] = (),
    wanted: Sequence[str] = (),
    sheet: str | None = None,
    raw: bool = False,
    stamps: Sequence[tuple[str, int, int]] = (),
) -> None:
    r"""Write a table as CSV with labels, the confidence in them and the probability of each class as its last columns.

    Parameters
    ----------
    path : path
        The file; one of this name is replaced.
    points : path
        The table that the labels are of, as for `read_points`. Its values are copied as they stand there.
    labels : ndarray of shape (n_samples,)
        Class numbers.
    probabilities : ndarray of shape (n_samples, n_classes), optional
        Probability of each class.
    noise : ndarray of shape (n_samples,), optional
        Probability that a point belongs to no class.
    names : sequence of str
        Name of each class, if they have names.
    wanted : sequence of str
        Names that the columns should have, if the first line of a file can be read in two ways.
    sheet : str, optional
        Sheet of a spreadsheet; by default the first one.
    raw : bool, default=False
        Whether to write texts as they are, also those that a spreadsheet would run; see `linkmix.tables.cells`.
    stamps : sequence, optional
        The `Points.stamps` of the table that the labels were found for.

    Raises
    ------
    BadFile
        If the table was changed since it was read, or has another number of rows than there are labels.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "points.csv").write_text('id,spend\n007,"10,216.49"\n008,12.00\n')
    >>> write_joined(folder / "joined.csv", folder / "points.csv", np.array([1, 0]))
    >>> print((folder / "joined.csv").read_text())
    id,spend,label
    007,"10,216.49",1
    008,12.00,0
    <BLANKLINE>
    """
    if stamps and tuple(stamps) != stamps_of(Path(points)):
        raise BadFile(points, "was changed after it was read, so the labels may be of other rows: run it again")
    sources = [open_file(file, wanted, sheet=sheet) for file in files_of(Path(points))]
    given = sources[0].names
    rows = (record for source in sources for record in _records(source, given, raw))
    names = names if raw else [guarded(name) for name in names]
    with aside(Path(path)) as place, place.open("w", encoding="utf-8", newline="") as file:
        header = own_names(Path(points), [*given, *label_names(probabilities, noise, names)])[0]
        file.write(text.as_line(header if raw else map(guarded, header)))
        for first in range(0, len(labels), BLOCK):
            found = [column.tolist() for column in label_columns(labels, probabilities, noise, names, first)]
            some = list(islice(rows, len(found[0])))
            if len(some) < len(found[0]):
                raise BadFile(points, f"has {first + len(some)} rows, and there are {len(labels)} labels: {_REMEDY}")
            both = zip(some, zip(*found, strict=True), strict=True)
            file.writelines(text.as_line([*record, *own]) for record, own in both)
        if next(rows, None) is not None:
            raise BadFile(points, f"has more rows than there are labels, {len(labels)}: {_REMEDY}")


def _records(source: Text | Typed, names: list[str], raw: bool) -> Iterator[list[str]]:
    """All rows of a file as texts, in the order of the columns of the first file."""
    is_text = isinstance(source, Text) and source.file.sheet is None
    for record in _as_written(source, names):
        # An apostrophe of a text file stays as it is: it is read in the same way again.
        yield record if raw else [cell if is_text and cell[:1] == "'" else guarded(cell) for cell in record]


def _as_written(source: Text | Typed, names: list[str]) -> Iterator[list[str]]:
    places = [source.names.index(name) for name in names]
    in_order = places == list(range(len(names)))
    if isinstance(source, Text):
        records = text.records(source.file, source.separator, as_written=True)
        for _, record in islice(records, 0 if source.header.is_data else 1, None):
            yield record if in_order else [record[place] for place in places]
        return
    source.choose((), names, ())
    for _, batch in source.batches():
        columns = []
        for name in names:
            try:
                column = source.as_texts(name, batch[name])
            except ReadAgain:  # Arrow cannot write it as text, which is known from now on
                column = source.as_texts(name, batch[name])
            columns.append(column.to_pylist())
        yield from map(list, zip(*columns, strict=True))
