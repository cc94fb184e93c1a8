"""Points from CSV, TSV and Parquet files, read column by column."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linkmix.arrays import Array, Floats
from linkmix.errors import BadFile
from linkmix.tables import text
from linkmix.tables.text import MISSING, as_file, listed

if TYPE_CHECKING:
    import pyarrow as pa

MOSTLY = 0.5
"""A column in which a larger share of the values are numbers is a column of numbers, and the others are mistakes."""
_LIKE_A_NUMBER = r"^\s*[-+]?(\d|\.\d|(?i:inf))"
_PANDAS_INDEX = "__index_level_"


@dataclass(frozen=True)
class Points:
    """Points with their ids.

    Attributes
    ----------
    ids : ndarray of object, shape (n_samples,)
        The id of each row, as text; the row numbers from 0 where the file has no ids.
    columns : tuple of str
        Names of the columns of `X`.
    X : ndarray of float64, shape (n_samples, n_features)
        The points; NaN stands for a value that is not known.
    texts : mapping of str to ndarray of object
        The columns that hold no numbers, as text, each of shape (n_samples,).
    id_column : str or None
        Name of the column with the ids.
    left_out : tuple of str
        Columns without any value, which are in neither `X` nor `texts`.
    """

    ids: Array
    columns: tuple[str, ...]
    X: Floats
    texts: Mapping[str, Array] = field(default_factory=dict)
    id_column: str | None = None
    left_out: tuple[str, ...] = ()


def read_points(
    path: str | os.PathLike[str],
    id: str | None = None,
    columns: Sequence[str] | None = None,
    *,
    texts: bool = True,
    text_columns: Sequence[str] = (),
) -> Points:
    r"""Read points from a CSV, TSV or Parquet file.

    Parameters
    ----------
    path : path
        The file. What begins like Parquet is read as such, all else as text in UTF-8 with column names in its first
        line. A tab separates values in a file that ends in ``.tsv``, else a comma, unless the first line has none and
        has tabs or semicolons.
    id : str, optional
        Column with the ids, which are kept as text: 007 stays 007. By default the column called ``id``, if there is
        one, and else rows are numbered from 0.
    columns : sequence of str, optional
        Columns to use as features, in this order. By default all columns of numbers other than the ids; in Parquet also
        those of truth values.
    texts : bool, default=True
        Whether to keep the other columns as text.
    text_columns : sequence of str
        Columns that are to be read as text, whatever they hold, and whether or not `texts` are kept.

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
    """
    return _read(_open(path), id, columns, texts, tuple(text_columns))


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """Names of all columns of a file that `read_points` can read.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    list of str
    """
    return _open(path).names


def _open(path: str | os.PathLike[str]) -> "_Parquet | _Text":
    file = as_file(path)
    with file.open("rb") as opened:
        is_parquet = opened.read(4) == b"PAR1"
    return _Parquet(file) if is_parquet or file.suffix.lower() in (".parquet", ".pq") else _Text(file)


def _read(
    source: "_Parquet | _Text",
    id: str | None,
    columns: Sequence[str] | None,
    texts: bool,
    text_columns: tuple[str, ...],
) -> Points:
    path, names = source.path, source.names
    id_column = id if id is not None else next((name for name in names if name == "id"), None)
    if columns is not None and not columns:
        raise BadFile(path, f"no columns are chosen: choose some of {listed(names)}")
    for name in [*([] if id_column is None else [id_column]), *(columns or ()), *text_columns]:
        if name not in names:
            raise BadFile(path, f"there is no column {name!r}: choose from {listed(names)}")
    for place, name in enumerate(columns or ()):
        if name in columns[:place] or name == id_column or name in text_columns:  # type: ignore[index]
            other = "another use" if name in text_columns else "the ids" if name == id_column else "a feature twice"
            raise BadFile(path, f"column {name!r} is chosen as a feature and also as {other}: choose it once")
    others = [name for name in names if name not in {id_column, *text_columns}]
    candidates = others if columns is None else list(columns)  # for features
    kept_texts = [*text_columns, *(name for name in others if texts and name not in candidates)]
    source.load(candidates, [*kept_texts, *([] if id_column is None else [id_column])], columns or ())

    found_texts: dict[str, Array] = {}
    features: list[str] = []
    left_out: list[str] = []
    for name in [name for name in names if name in {*candidates, *kept_texts}]:
        kind = source.kind(name)
        if columns is not None and name in columns:
            if kind == "empty":
                raise BadFile(path, "has no value in any row: choose other columns", column=name)
            if kind == "text":
                source.refuse_text(name)
        elif name in text_columns or (kind != "empty" and name in kept_texts):
            found_texts[name] = source.texts(name)
        elif kind == "empty":
            left_out.append(name)
        elif kind == "number":
            features.append(name)
        elif texts:
            found_texts[name] = source.texts(name)
    features = features if columns is None else list(columns)
    if not source.n_rows:
        raise BadFile(path, "has column names but no rows: give a row for each point")
    if not features:
        hint = "" if id_column is None else f" besides the ids in {id_column!r}"
        raise BadFile(path, f"no column holds numbers{hint} (columns: {listed(names)}): give numbers to cluster by")
    X = np.empty((source.n_rows, len(features)))
    for place, name in enumerate(features):
        values = source.numbers(name)  # and forget the column: the file is in memory once
        if (infinite := np.isinf(values)).any():
            row = int(np.argmax(infinite))
            raise BadFile(
                path, f"{values[row]} is not a finite number: correct it, or leave it empty", source.line(row), name
            )
        X[:, place] = values
    ids = _ids(source, id_column)
    return Points(ids, tuple(features), X, found_texts, id_column, tuple(left_out))


def _ids(source: "_Parquet | _Text", id_column: str | None) -> Array:
    if id_column is None:
        return np.array([str(row) for row in range(source.n_rows)], dtype=object)
    ids = source.texts(id_column)
    different = set(ids)
    if len(different) < len(ids) or "" in different:
        row_of: dict[str, int] = {}
        for row, value in enumerate(ids):
            if value == "":
                raise BadFile(source.path, "the id is empty: give every row an id", source.line(row), id_column)
            if row_of.setdefault(value, row) != row:
                first, line = source.line(row_of[value]), source.line(row)
                where = f"row {row_of[value]}" if first is None else f"line {first}"
                raise BadFile(
                    source.path, f"id {value!r} is also on {where}: give every row an id of its own", line, id_column
                )
    return ids


class _Text:
    """A text file whose columns are read as numbers where they can be."""

    def __init__(self, path: Path) -> None:
        text.check_text(path)
        self.path = path
        self.separator = text.find_separator(path)
        self.names = text.read_header(path, self.separator)
        self.n_rows = 0
        self._table: dict[str, pa.ChunkedArray] = {}

    def load(self, wanted: Sequence[str], as_text: Sequence[str], as_numbers: Sequence[str]) -> None:
        """Read the wanted columns as what the first of their values look like, and some as text."""
        import pyarrow as pa

        kinds: dict[str, pa.DataType] = {name: pa.string() for name in as_text}
        kinds |= {name: pa.float64() for name in as_numbers}
        unsure = [name for name in wanted if name not in kinds]
        if unsure:
            kinds |= self._guess(unsure)
        chosen = [name for name in self.names if name in kinds]
        table = None
        while table is None:
            try:
                table = self._parse(chosen, kinds)
            except pa.ArrowInvalid as error:
                name = self._no_number(str(error), chosen, kinds)
                kinds[name] = pa.string()
        self.n_rows = table.num_rows
        for name in chosen:
            column = table.column(name)
            if pa.types.is_string(column.type) and name not in as_text:
                column = self._numbers_after_all(name, column)
            self._table[name] = column

    def kind(self, name: str) -> str:
        """Whether a column holds numbers, text or nothing."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self._table[name]
        if pa.types.is_floating(column.type):
            return "empty" if len(column) and column.null_count == len(column) else "number"
        return "empty" if not pc.any(pc.not_equal(pc.utf8_trim_whitespace(column), "")).as_py() else "text"

    def numbers(self, name: str) -> Floats:
        """Values of a column, NaN where there is none. The column is gone then."""
        return np.asarray(self._table.pop(name).to_numpy(), dtype=np.float64)

    def texts(self, name: str) -> Array:
        """Values of a column as they stand in the file."""
        return _as_objects(self._table[name])

    def line(self, row: int) -> int | None:
        """Line of the file that a row begins on."""
        return text.line_of(self.path, self.separator, row)

    def refuse_text(self, name: str) -> None:
        """Name the first value of a column that is no number."""
        column = self._table[name]
        row = next(row for row, value in enumerate(column.to_pylist()) if _as_number(value) is None)
        self._refuse_value(name, column[row].as_py(), row)

    def _refuse_value(self, name: str, value: str, row: int) -> None:
        remedy = "correct it, leave it empty, or choose other columns"
        if _as_number(value.replace(",", ".")) is not None:
            remedy = "write it with a point and without separators of thousands"
        raise BadFile(self.path, f"{_short(value)} is not a number: {remedy}", self.line(row), name)

    def _guess(self, names: list[str]) -> "dict[str, pa.DataType]":
        """Number or text, by the first block of the file."""
        import pyarrow as pa
        from pyarrow import csv

        try:
            with csv.open_csv(self.path, **self._options(names, None)) as reader:
                schema = reader.schema
        except pa.ArrowInvalid:
            self._refuse_shape()
            raise
        numeric = (pa.types.is_floating, pa.types.is_integer, pa.types.is_null)
        return {
            name: pa.float64() if any(is_kind(schema.field(name).type) for is_kind in numeric) else pa.string()
            for name in names
        }

    def _parse(self, names: list[str], kinds: "Mapping[str, pa.DataType]") -> "pa.Table":
        from pyarrow import csv

        if not names:  # neither ids nor features: only rows are counted
            names, kinds = self.names[:1], {}
        return csv.read_csv(self.path, **self._options(names, kinds))

    def _options(self, names: list[str], kinds: "Mapping[str, pa.DataType] | None") -> dict[str, Any]:
        from pyarrow import csv

        # Quotes may hold line breaks, which keeps Arrow from reading blocks side by side.
        has_quotes = _holds(self.path, b'"')
        return {
            "read_options": csv.ReadOptions(column_names=self.names, skip_rows=0, skip_rows_after_names=1),
            "parse_options": csv.ParseOptions(delimiter=self.separator, newlines_in_values=has_quotes),
            "convert_options": csv.ConvertOptions(
                include_columns=names,
                column_types=kinds,
                null_values=sorted(MISSING),
                strings_can_be_null=False,
                quoted_strings_can_be_null=True,
            ),
        }

    def _no_number(self, message: str, names: list[str], kinds: "Mapping[str, pa.DataType]") -> str:
        """The column that made Arrow give up; an error, if it gave up for another reason."""
        import pyarrow as pa

        self._refuse_shape()
        for name in names:  # Arrow names a column by its number among all, or by nothing
            if pa.types.is_floating(kinds[name]):
                try:
                    self._parse([name], {name: kinds[name]})
                except pa.ArrowInvalid:
                    return name
        raise BadFile(self.path, f"{message}: correct the file")

    def _refuse_shape(self) -> None:
        """Refuse a file that is not UTF-8, has a quote that never ends, or rows of different lengths."""
        n_columns = len(self.names)
        for line, record in text.records(self.path, self.separator):
            if len(record) != n_columns:
                what = "values are" if len(record) != 1 else "value is"
                raise BadFile(
                    self.path,
                    f"{len(record)} {what} on a line of a file with {n_columns} columns: "
                    "add what is missing, remove what is too much, or put quotes around a value with a separator in it",
                    line,
                )

    def _numbers_after_all(self, name: str, column: "pa.ChunkedArray") -> "pa.ChunkedArray":
        """Numbers that Arrow does not know, such as +5; text, if less than half of the values are numbers."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not len(column):
            return column
        shape = pc.match_substring_regex(column, _LIKE_A_NUMBER)
        empty = pc.is_in(pc.utf8_trim_whitespace(column), value_set=pa.array(sorted(MISSING)))
        n_filled = len(column) - pc.sum(empty).as_py()
        if pc.sum(shape).as_py() <= MOSTLY * n_filled:  # most columns of text end here, without a look at each value
            return column
        values = column.to_pylist()
        filled = [row for row, value in enumerate(values) if value.strip() not in MISSING]
        wrong = [row for row in filled if _as_number(values[row]) is None]
        if not wrong and filled:
            return pa.chunked_array([pa.array([_as_number(value) for value in values], pa.float64(), from_pandas=True)])
        if len(filled) - len(wrong) > MOSTLY * len(filled):
            self._refuse_value(name, values[wrong[0]], wrong[0])
        return column


class _Parquet:
    """A Parquet file."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        self.path = path
        try:
            self._file = parquet.ParquetFile(path, memory_map=True)
        except (pa.ArrowInvalid, OSError) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise BadFile(path, f"is no whole Parquet file ({reason}): write it again") from None
        schema = self._file.schema_arrow
        self.names = [name for name in schema.names if not name.startswith(_PANDAS_INDEX)]
        text.check_names(path, self.names)
        self.n_rows = int(self._file.metadata.num_rows)
        self._types = {name: schema.field(name).type for name in self.names}
        self._table: dict[str, pa.ChunkedArray] = {}

    def load(self, wanted: Sequence[str], as_text: Sequence[str], as_numbers: Sequence[str]) -> None:
        """Read columns."""
        import pyarrow as pa

        chosen = [name for name in self.names if name in {*wanted, *as_text}]
        try:
            table = self._file.read(columns=chosen)
        except (pa.ArrowInvalid, OSError) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise BadFile(self.path, f"is damaged ({reason}): write it again") from None
        self._table = {name: table.column(name) for name in chosen}

    def kind(self, name: str) -> str:
        """Whether a column holds numbers, text or nothing."""
        import pyarrow as pa

        kind, column = self._types[name], self._table[name]
        if len(column) and column.null_count == len(column):
            return "empty"
        numeric = (pa.types.is_floating, pa.types.is_integer, pa.types.is_boolean, pa.types.is_decimal)
        return "number" if any(is_kind(kind) for is_kind in numeric) else "text"

    def numbers(self, name: str) -> Floats:
        """Values of a column, NaN where there is none. The column is gone then."""
        import pyarrow as pa

        return np.asarray(self._table.pop(name).cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)

    def texts(self, name: str) -> Array:
        """Values of a column as text; nothing is an empty text."""
        import pyarrow as pa

        column = self._table[name]
        try:
            return _as_objects(column.cast(pa.string()).fill_null(""))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return np.array(["" if value is None else str(value) for value in column.to_pylist()], dtype=object)

    def line(self, row: int) -> None:
        """Parquet has no lines."""
        return

    def refuse_text(self, name: str) -> None:
        """Name the type of a column that holds no numbers."""
        example = next(value for value in self._table[name].to_pylist() if value is not None)
        raise BadFile(
            self.path,
            f"holds {self._types[name]}, such as {_short(str(example))}, and no numbers: choose other columns, "
            "or write numbers",
            column=name,
        )


def _as_objects(column: "pa.ChunkedArray") -> Array:
    return np.array(column.to_pylist(), dtype=object) if len(column) else np.empty(0, dtype=object)


def _as_number(value: str) -> float | None:
    """The number that a text stands for, NaN for a missing one, None if it is no number."""
    if value.strip() in MISSING:
        return float("nan")
    try:
        return None if "_" in value else float(value)
    except ValueError:
        return None


def _short(value: str, at_most: int = 40) -> str:
    return repr(value if len(value) <= at_most else value[: at_most - 3] + "...")


def _holds(path: Path, what: bytes) -> bool:
    with path.open("rb") as file:
        return any(what in block for block in iter(lambda: file.read(2**22), b""))
