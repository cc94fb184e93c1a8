"""Points from CSV, TSV and Parquet files, also from many of them as one table."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from linkmix.basics.arrays import Array, Floats
from linkmix.basics.errors import BadFile
from linkmix.data.blocks import Blocks
from linkmix.data.scratch import Texts, piled
from linkmix.data.summary import Summary, summarise
from linkmix.tables.ids import IdColumn, RowNumbers, TextIds
from linkmix.tables.parts import Parts, open_source
from linkmix.tables.sources import Columns, Parquet, ReadAgain, Text, open_file
from linkmix.tables.text import listed

Source = Parquet | Text | Parts
"""Tables that points are read from."""
IDS, LEFT_OUT, NO_VALUES, NOT_CHOSEN, TO_BE_TEXT = "ids", "as you asked", "no values", "not chosen", "read as text"
"""Why columns are not used, besides what they hold."""


@dataclass(frozen=True)
class Points:
    """Points with their ids.

    Attributes
    ----------
    ids : sequence of str
        The id of each row, as text; the row numbers from 0 where the file has no ids. An array of row numbers picks
        some of them.
    columns : tuple of str
        Names of the columns of `X`.
    X : ndarray of float64, shape (n_samples, n_features)
        The points; NaN stands for a missing value. For a large table a `numpy.memmap` of a scratch file.
    texts : mapping of str to ndarray of object
        The columns that are not numeric, as text, each of shape (n_samples,).
    id_column : str or None
        Name of the column with the ids.
    unused : mapping of str to str
        The columns that are not in `X`, in the order of the file, each with the reason in a few words: "ids",
        "text", "text, such as '70 kg'" if most of it looks like numbers, "no values", "not chosen", "as you asked".
    files : tuple of Path
        The files in the order in which they were read, if there are several.
    remarks : tuple of str
        What was assumed about the files, such as that they have no header.
    described : Summary or None
        Summary of `X`, if reading has found it.
    """

    ids: IdColumn | Array
    columns: tuple[str, ...]
    X: Floats
    texts: Mapping[str, Array] = field(default_factory=dict)
    id_column: str | None = None
    unused: Mapping[str, str] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    remarks: tuple[str, ...] = ()
    described: Summary | None = field(default=None, repr=False)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Columns without any value, which are in neither `X` nor `texts`."""
        return tuple(name for name, why in self.unused.items() if why == NO_VALUES)

    @cached_property
    def summary(self) -> Summary:
        """Extent, mean and spread of each column of `X`."""
        return self.described or summarise(self.X)


def read_points(
    path: str | os.PathLike[str],
    id: str | None = None,
    columns: Sequence[str] | None = None,
    *,
    leave_out: Sequence[str] = (),
    texts: bool = True,
    text_columns: Sequence[str] = (),
    progress: bool = False,
) -> Points:
    r"""Read points from a CSV, TSV or Parquet file, or from many files as one table.

    A table of more than 256 MB is read in parts. Its numbers and its ids go to scratch files in the folder that
    ``TMPDIR`` names, which disappear with the points.

    Parameters
    ----------
    path : path
        The file; or a folder, or a pattern such as ``parts/*.parquet``, whose files have the same columns and are read
        in the order of their names. A file is read as Parquet if it begins like Parquet, otherwise as text in UTF-8
        with column names in its first line. The separator is a tab if the name ends in ``.tsv`` and otherwise a comma;
        if the first line has none, a comma, tab or semicolon that it has. A first line of numbers, also separated by
        spaces, is the first row of a file without names, whose columns are called column1, column2 and so on; unless
        the numbers go up in equal steps, or `columns` are among them.
    id : str, optional
        Column with the ids, which are kept as text: 007 stays 007. By default the column called ``id``, if there is
        one; otherwise rows are numbered from 0.
    columns : sequence of str, optional
        Columns to use as features, in this order. By default all columns of numbers other than the ids; in Parquet also
        those of truth values.
    leave_out : sequence of str
        Columns not to use as features, whatever they hold.
    texts : bool, default=True
        Whether to keep the other columns as text.
    text_columns : sequence of str
        Columns to read as text whatever they hold, even if `texts` is False.
    progress : bool, default=False
        Whether to show a progress bar, if the package tqdm is installed and reading takes longer than a second.

    Returns
    -------
    Points

    Raises
    ------
    BadFile
        With file, line, column, value and remedy.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "points.csv"
    >>> _ = file.write_text("id,height,weight,name\n007,1.80,75,anna\n008,1.65,,bob\n")
    >>> points = read_points(file)
    >>> points.ids.tolist(), points.columns, points.X.tolist()
    (['007', '008'], ('height', 'weight'), [[1.8, 75.0], [1.65, nan]])
    >>> points.texts["name"].tolist()
    ['anna', 'bob']
    >>> points.unused
    {'id': 'ids', 'name': 'text'}
    """
    wanted = [*(columns or ()), *leave_out, *text_columns, *([] if id is None else [id])]
    return _read(open_source(Path(path), wanted), id, columns, tuple(leave_out), texts, tuple(text_columns), progress)


def read_numbers(path: str | os.PathLike[str], columns: Sequence[str]) -> Floats:
    """Read some columns of numbers from one file, without ids.

    Parameters
    ----------
    path : path
        The file.
    columns : sequence of str
        The columns, in this order.

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
    """
    source, names = open_file(path, columns), list(columns)
    source.choose(names, (), names)
    while True:
        try:
            reading = _Reading(source, names, [], False, False)
        except ReadAgain:
            continue
        for name in names:
            if name not in reading.numbers and reading.n_filled[name]:
                source.refuse_text(name)
        return reading.X


def column_names(path: str | os.PathLike[str], wanted: Sequence[str] = ()) -> list[str]:
    """Names of all columns of a file that `read_points` can read.

    Parameters
    ----------
    path : path
        The file, folder or pattern.
    wanted : sequence of str
        Names that the columns should have, if the first line of a file can be read in two ways.

    Returns
    -------
    list of str
    """
    return open_source(Path(path), wanted).names


def _read(
    source: Source,
    id: str | None,
    columns: Sequence[str] | None,
    leave_out: tuple[str, ...],
    texts: bool,
    text_columns: tuple[str, ...],
    progress: bool,
) -> Points:
    path, names = source.path, source.names
    id_column = id if id is not None else next((name for name in names if name == "id"), None)
    if columns is not None and not columns:
        raise BadFile(path, f"no columns are chosen: choose some of {listed(names)}")
    for name in [*([] if id_column is None else [id_column]), *(columns or ()), *leave_out, *text_columns]:
        if name not in names:
            why = f" ({source.remarks[0]})" if source.remarks else ""
            raise BadFile(path, f"there is no column {name!r}{why}: choose from {listed(names)}")
    for place, name in enumerate(columns or ()):
        if name in columns[:place] or name == id_column or name in text_columns:  # type: ignore[index]
            other = "another use" if name in text_columns else "the ids" if name == id_column else "a feature twice"
            raise BadFile(path, f"column {name!r} is chosen as a feature and also as {other}: choose it once")
    for name in leave_out:
        if name == id_column or name in (columns or ()) or name in text_columns:
            other = "the ids" if name == id_column else "a feature" if name in (columns or ()) else "another use"
            raise BadFile(path, f"column {name!r} is left out and also chosen as {other}: decide for one")
    others = [name for name in names if name not in {id_column, *text_columns}]
    kept = [name for name in others if name not in leave_out]
    candidates = kept if columns is None else list(columns)  # for features
    kept_texts = [*text_columns, *(name for name in others if texts and name not in candidates)]
    as_text = [*kept_texts, *([] if id_column is None else [id_column])]
    source.choose(candidates, as_text, columns or ())
    reading = None
    while reading is None:
        try:
            reading = _Reading(source, candidates, as_text, texts, progress)
        except ReadAgain:
            continue

    if not reading.n_rows:
        raise BadFile(path, "has column names but no rows: give a row for each point")
    found_texts: dict[str, Array] = {}
    unused = {name: LEFT_OUT if name in leave_out else NOT_CHOSEN for name in others if name not in candidates}
    unused |= dict.fromkeys(text_columns, TO_BE_TEXT)
    if id_column is not None:
        unused[id_column] = IDS
    for name in [name for name in names if name in {*candidates, *kept_texts}]:
        is_empty = not reading.n_filled[name]
        if columns is not None and name in columns:
            if is_empty:
                raise BadFile(path, "has no value in any row: choose other columns", column=name)
            if name not in reading.numbers:
                source.refuse_text(name)
        elif is_empty and name not in text_columns:
            unused[name] = NO_VALUES
            continue
        if name in candidates and name not in reading.numbers:
            unused[name] = source.kind_of(name)
        if name in reading.texts:
            found_texts[name] = np.array(reading.texts[name].column().to_pylist(), dtype=object)
    features = [name for name in reading.numbers if reading.n_filled[name]]
    if not features:
        besides = [] if id_column is None else [f"the ids in {id_column!r}"]
        besides += [f"{listed(leave_out)}, which you leave out"] if leave_out else []
        hint = f" besides {' and '.join(besides)}" if besides else ""
        raise BadFile(path, f"no column holds numbers{hint} (columns: {listed(names)}): give numbers to cluster by")
    for name in features:
        if name in reading.infinite:
            row, value = reading.infinite[name]
            file, line = source.place(row)
            raise BadFile(file, f"{value} is not a finite number: correct it, or leave it empty", line, name)
    X, described = reading.X, reading.described
    if len(features) < len(reading.numbers):
        kept = [reading.numbers.index(name) for name in features]
        X = piled(block[:, kept] for block in Blocks.from_array(X))
        described = Summary(*(array[kept] for array in astuple(described)))
    ids = RowNumbers(reading.n_rows) if id_column is None else _ids(source, reading.texts[id_column], id_column)
    files = tuple(source.files) if isinstance(source, Parts) else ()
    unused = {name: unused[name] for name in names if name in unused}
    return Points(ids, tuple(features), X, found_texts, id_column, unused, files, source.remarks, described)


class _Reading:
    """What one reading of a file finds.

    Attributes
    ----------
    n_rows : int
    numbers : list of str
        Those of the candidates that hold numbers.
    X : ndarray of shape (n_rows, len(numbers))
    texts : dict of str to Texts
        The columns that are kept as text.
    n_filled : dict of str to int
        Number of values in each column.
    infinite : dict of str to tuple of int and float
        Row and value of the first number of a column that is not finite.
    described : Summary
        Summary of `X`.
    """

    def __init__(self, source: Source, candidates: list[str], as_text: list[str], texts: bool, progress: bool) -> None:
        self.n_rows = 0
        self.numbers = [name for name in candidates if source.is_number(name)]
        kept = [*as_text, *(name for name in candidates if texts and name not in self.numbers)]
        self.texts = {name: Texts() for name in kept}
        self.n_filled = dict.fromkeys([*candidates, *as_text], 0)
        self.infinite: dict[str, tuple[int, float]] = {}
        batches = source.batches()
        self.described = summarise(np.empty((0, len(self.numbers))))
        self.X = piled(self._blocks(source, _with_bar(source, batches) if progress else batches))

    def _blocks(self, source: Source, batches: Iterable[tuple[int, Columns]]) -> Iterator[Floats]:
        for n_rows, columns in batches:
            block = np.empty((n_rows, len(self.numbers)))
            for place, name in enumerate(self.numbers):
                block[:, place] = source.as_numbers(name, columns.pop(name))
            self._look(block)
            for name, column in columns.items():
                self.n_filled[name] += source.n_filled(column)
                if name in self.texts:
                    self.texts[name].add(source.as_texts(name, column))
            self.n_rows += n_rows
            yield block

    def _look(self, block: Floats) -> None:
        found = summarise(block)
        for name, n_filled in zip(self.numbers, found.n_values.tolist(), strict=True):
            self.n_filled[name] += n_filled
        for place in np.flatnonzero(np.isinf(found.low) | np.isinf(found.high)).tolist():
            row = int(np.argmax(np.isinf(block[:, place])))
            self.infinite.setdefault(self.numbers[place], (self.n_rows + row, float(block[row, place])))
        self.described = self.described + found


def _with_bar(source: Source, batches: Iterable[tuple[int, Columns]]) -> Iterator[tuple[int, Columns]]:
    try:
        from tqdm import tqdm
    except ImportError:
        yield from batches
        return
    with tqdm(total=source.size, desc="reading", unit=source.unit, unit_scale=True, delay=1) as bar:
        for batch in batches:
            yield batch
            bar.update(source.done - bar.n)


def _ids(source: Source, texts: Texts, id_column: str) -> IdColumn:
    ids = TextIds(texts.column())
    row_of: dict[str, int] = {}
    for row in ids.suspects().tolist():
        value = ids[row]
        if value == "":
            file, line = source.place(row)
            raise BadFile(file, "the id is empty: give every row an id", line, id_column)
        if row_of.setdefault(value, row) != row:
            file, line = source.place(row)
            other, other_line = source.place(row_of[value])
            where = f"row {row_of[value]}" if other_line is None else f"line {other_line}"
            if other != file:
                where = f"{other}" if other_line is None else f"{where} of {other}"
            raise BadFile(file, f"id {value!r} is also on {where}: give every row an id of its own", line, id_column)
    return ids
