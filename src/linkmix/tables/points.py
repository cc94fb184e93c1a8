"""Points from text, spreadsheets, Parquet and Feather files, also from many of them as one table."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from linkmix.basics.arrays import Array, Floats
from linkmix.basics.errors import MISTAKES_TOLD, BadFile
from linkmix.data.blocks import Blocks
from linkmix.data.scratch import piled
from linkmix.data.summary import Summary, summarise
from linkmix.tables.ids import IdColumn, RowNumbers, TextIds
from linkmix.tables.mistakes import EMPTY_ID, NO_ROWS, infinite, repeated_id
from linkmix.tables.parts import Parts, open_source, stamps_of
from linkmix.tables.reading import CONSTANT, NO_VALUES, Features, Source, is_plain, read_once
from linkmix.tables.sources import ReadAgain, open_file
from linkmix.tables.suspicions import is_running
from linkmix.tables.text import listed

if TYPE_CHECKING:
    from linkmix.columns import Coded, Recipe

IDS, LEFT_OUT, NOT_CHOSEN, TO_BE_TEXT, RUNNING = "ids", "as you asked", "not chosen", "read as text", "numbers the rows"
NO_NUMBER = "a category, and the method knows only numbers"
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
        The columns that are not numeric, as they stand in the file, each of shape (n_samples,).
    id_column : str or None
        Name of the column with the ids.
    unused : mapping of str to str
        The columns that are not in `X`, in the order of the file, each with the reason in a few words: "ids",
        "text, nearly all values differ", "numbers the rows", "no values", "not chosen", "as you asked".
    files : tuple of Path
        The files in the order in which they were read, if there are several.
    remarks : tuple of str
        What was assumed about the files and their columns, such as that there is no header.
    described : Summary or None
        Summary of `X`, if reading has found it.
    recipe : Recipe or None
        How `X` comes from the columns of the file: numbers first, then codes of categories. None if `X` holds these
        columns as they are, since all are plain numbers.
    stamps : tuple
        Name, size and time of the last change of each file, by which `write_joined` knows that nothing was changed.
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
    recipe: "Recipe | None" = field(default=None, repr=False)
    stamps: tuple[tuple[str, int, int], ...] = field(default=(), repr=False)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Columns without any value, which are in neither `X` nor `texts`."""
        return tuple(name for name, why in self.unused.items() if why == NO_VALUES)

    @property
    def coded(self) -> "Floats | Coded":
        """Points as estimators take them: `X`, with the recipe if there is one."""
        from linkmix.columns import Coded

        return self.X if self.recipe is None else Coded(self.X, self.recipe)

    @property
    def used(self) -> tuple[str, ...]:
        """Columns of the file that `X` was made from."""
        return self.columns if self.recipe is None else tuple(column.name for column in self.recipe.columns)

    @property
    def owners(self) -> tuple[str, ...]:
        """For each column of `X` the column of the file that it comes from."""
        return self.columns if self.recipe is None else self.recipe.owners

    @property
    def levels(self) -> tuple[int, ...]:
        """For each column of `X` the number of its levels, 0 for a number."""
        return (0,) * len(self.columns) if self.recipe is None else self.recipe.levels

    def level_names(self, place: int) -> tuple[str, ...]:
        """Texts of the levels of a column of `X`; nothing for a column of numbers."""
        n_levels = self.levels[place]
        if self.recipe is None or not n_levels:
            return ()
        return self.recipe.level_names.get(self.columns[place], tuple(map(str, range(n_levels))))

    def written(self, row: int, place: int) -> str:
        """A value of `X` as text: a number, the name of a level, or nothing if it is missing."""
        value, names = float(self.X[row, place]), self.level_names(place)
        if value != value:
            return ""
        return names[int(value)] if names else f"{value:.6g}"

    @cached_property
    def without_codes(self) -> tuple[Floats, tuple[str, ...]]:
        """Points for what knows only numbers, and names of the columns: each level is a column of zeros and ones.

        Of two levels only the last one is a column. Those of a large table are in a scratch file.
        """
        numbers = [place for place, n_levels in enumerate(self.levels) if not n_levels]
        if len(numbers) == len(self.columns):
            return self.X, self.columns
        wanted: list[tuple[int, int, str]] = []
        for place, n_levels in enumerate(self.levels):
            texts = self.level_names(place)
            codes = range(1, 2) if n_levels == 2 else range(n_levels)
            wanted += [(place, code, f"{self.columns[place]} = {texts[code]}") for code in codes]

        def widened(block: Floats) -> Floats:
            parts = [block[:, numbers]]
            for place, code, _ in wanted:
                codes = block[:, [place]]
                parts.append(np.where(np.isnan(codes), np.nan, codes == code))
            return np.concatenate(parts, axis=1)

        names = (*(self.columns[place] for place in numbers), *(name for _, _, name in wanted))
        return piled(widened(np.asarray(block)) for block in Blocks.from_array(self.X)), names

    def numbers_alone(self) -> "Points":
        """The same points without the columns that hold codes of categories.

        Raises
        ------
        ValueError
            If none is left.
        """
        if self.recipe is None or not any(self.levels):
            return self
        coded = {owner for owner, n_levels in zip(self.owners, self.levels, strict=True) if n_levels}
        kept = [place for place, owner in enumerate(self.owners) if owner not in coded]
        if not kept:
            raise ValueError(f"all columns that can be used are categories ({listed(coded)}): give numbers as well")
        columns = tuple(column for column in self.recipe.columns if column.name not in coded)
        recipe = replace(self.recipe, columns=columns)
        X, described, names = _picked(self.X, self.summary, self.columns, kept)
        unused = dict(self.unused) | dict.fromkeys(sorted(coded), NO_NUMBER)
        recipe_left = None if is_plain(recipe) else recipe
        return replace(self, columns=names, X=X, described=described, unused=unused, recipe=recipe_left)

    @property
    def n_missing(self) -> int:
        """Number of missing values in `X`."""
        return self.X.size - int(self.summary.n_values.sum())

    @cached_property
    def summary(self) -> Summary:
        """Extent, mean and spread of each column of `X`; those of codes mean nothing."""
        return self.described or summarise(self.X)


def read_points(
    path: str | os.PathLike[str],
    id: str | None = None,
    columns: Sequence[str] | None = None,
    *,
    leave_out: Sequence[str] = (),
    kinds: Mapping[str, str] | None = None,
    recipe: "Recipe | None" = None,
    texts: bool = True,
    text_columns: Sequence[str] = (),
    missing: Sequence[str] = (),
    sheet: str | None = None,
    progress: bool = False,
) -> Points:
    r"""Read points from a CSV, TSV, Parquet, Feather or Excel file, or from many files as one table.

    A table of more than 256 MB is read in parts. Its numbers and its ids go to scratch files in the folder that
    ``TMPDIR`` names, which disappear with the points. What its columns are is then learned from the first 100,000 rows.

    Parameters
    ----------
    path : path
        The file; or a folder, or a pattern such as ``parts/*.parquet``, whose files have the same columns and are read
        in the order of their names. A file is read as Parquet or Feather if it begins like one, as a spreadsheet if its
        name ends in ``.xlsx`` (which needs openpyxl), and otherwise as text in UTF-8, also compressed with gzip, with
        column names in its first line. The separator is a tab if the name ends in ``.tsv`` and otherwise a comma;
        if the first line has none, a comma, tab or semicolon that it has. A first line of numbers, also separated by
        spaces, is the first row of a file without names, whose columns are called column1, column2 and so on; unless
        the numbers go up in equal steps, or `columns` are among them. So is one with words that is like the lines below
        it. Columns of the same name are numbered: size, size_2.
    id : str, optional
        Column with the ids, which are kept as text: 007 stays 007. By default the column called ``id``, if there is
        one; otherwise rows are numbered from 0.
    columns : sequence of str, optional
        Columns to use as features, in this order. By default all columns other than the ids that can be used.
    leave_out : sequence of str
        Columns not to use as features, whatever they hold.
    kinds : mapping of str to str, optional
        What columns are taken for, one of `linkmix.columns.KINDS`; by default their values decide.
    recipe : Recipe, optional
        How the columns become numbers, as learned from another table; then `columns`, `leave_out` and `kinds` have no
        meaning.
    texts : bool, default=True
        Whether to keep the columns that are not plain numbers as text.
    text_columns : sequence of str
        Columns to read as text whatever they hold, even if `texts` is False.
    missing : sequence of str
        What stands for a missing value, besides nothing, NA, N/A, NaN, null and None: "?", or a number such as -999.
    sheet : str, optional
        Sheet of a spreadsheet; by default the first one.
    progress : bool, default=False
        Whether to show a progress bar, if the package tqdm is installed and reading takes longer than a second.

    Returns
    -------
    Points

    Raises
    ------
    BadFile
        With file, line, column, value and remedy; for all mistakes that were found.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "points.csv"
    >>> _ = file.write_text("id,height,weight,name,sex\n007,1.80,75,anna,f\n008,1.65,,bob,m\n009,1.7,70,eva,f\n")
    >>> points = read_points(file)
    >>> points.ids.tolist(), points.columns, points.X.tolist()
    (['007', '008', '009'], ('height', 'weight', 'sex'), [[1.8, 75.0, 0.0], [1.65, nan, 1.0], [1.7, 70.0, 0.0]])
    >>> points.texts["name"].tolist(), points.recipe.level_names
    (['anna', 'bob', 'eva'], {'sex': ('f', 'm')})
    >>> points.unused
    {'id': 'ids', 'name': 'text, nearly all values differ'}
    """
    asked = {name: kind for name, kind in (kinds or {}).items() if kind != "ignore"}
    leave_out = [*leave_out, *(name for name in kinds or () if name not in asked)]
    if recipe is not None:
        columns, leave_out, asked = [column.name for column in recipe.columns], (), {}
    wanted = [*(columns or ()), *leave_out, *asked, *text_columns, *([] if id is None else [id])]
    source = open_source(Path(path), wanted, [value.strip() for value in missing], sheet)
    if columns is not None and not columns:
        raise BadFile(path, f"no columns are chosen: choose some of {listed(source.names)}")
    stamps = stamps_of(Path(path))
    points = _read(source, id, columns, tuple(leave_out), asked, recipe, texts, tuple(text_columns), progress)
    return replace(points, stamps=stamps)


def read_id_column(path: str | os.PathLike[str], id: str | None = None, *, sheet: str | None = None) -> Points:
    """Read the ids alone: points without columns.

    Parameters
    ----------
    path, id, sheet
        As for `read_points`.

    Returns
    -------
    Points
    """
    source = open_source(Path(path), [] if id is None else [id], sheet=sheet)
    return _read(source, id, [], (), {}, None, False, (), False)


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
    _check_choice(source, None, columns, (), {}, ())
    source.choose(names, (), names)
    while True:
        try:
            blocks = [[source.as_numbers(name, batch[name]) for name in names] for _, batch in source.batches()]
        except ReadAgain:
            continue
        return np.concatenate([np.column_stack(block) for block in blocks])


def column_names(path: str | os.PathLike[str], wanted: Sequence[str] = (), sheet: str | None = None) -> list[str]:
    """Names of all columns of a file that `read_points` can read.

    Parameters
    ----------
    path : path
        The file, folder or pattern.
    wanted : sequence of str
        Names that the columns should have, if the first line of a file can be read in two ways.
    sheet : str, optional
        Sheet of a spreadsheet; by default the first one.

    Returns
    -------
    list of str
    """
    return open_source(Path(path), wanted, sheet=sheet).names


def _read(
    source: Source,
    id: str | None,
    columns: Sequence[str] | None,
    leave_out: tuple[str, ...],
    kinds: dict[str, str],
    recipe: "Recipe | None",
    texts: bool,
    text_columns: tuple[str, ...],
    progress: bool,
) -> Points:
    path, names = source.path, source.names
    id_column = id if id is not None else next((name for name in names if name == "id" and name not in kinds), None)
    _check_choice(source, id_column, columns, leave_out, kinds, text_columns)
    others = [name for name in names if name not in {id_column, *text_columns}]
    candidates = [name for name in others if name not in leave_out] if columns is None else list(columns)
    kept_texts = [*text_columns, *(name for name in others if texts and name not in candidates)]
    source.id_column = id_column
    as_text = [*kept_texts, *([] if id_column is None else [id_column])]
    features = Features(candidates, tuple(columns or ()), kinds, recipe, str(path if path.is_dir() else path.parent))
    found = read_once(source, features, as_text, texts, progress)

    if not found.n_rows:
        raise BadFile(path, NO_ROWS)
    reasons = {name: LEFT_OUT if name in leave_out else NOT_CHOSEN for name in others if name not in candidates}
    reasons |= dict.fromkeys(text_columns, TO_BE_TEXT)
    reasons |= {name: NO_VALUES for name in kept_texts if name not in text_columns and not found.n_filled[name]}
    if id_column is not None:
        reasons[id_column] = IDS
    reasons |= found.left_out
    X, described, used = found.X, found.described, found.columns
    if found.recipe is None and recipe is None:
        reasons |= _useless(found.X, described, used, kinds, columns or ())
        X, described, used = _picked(X, described, used, [i for i, name in enumerate(used) if name not in reasons])
    empty = [name for name in columns or () if reasons.get(name) == NO_VALUES]
    if empty:
        problem = "has no value in any row: choose other columns"
        raise BadFile.gathered([BadFile(path, problem, column=name) for name in empty])
    if not used and columns != []:
        _refuse_all(path, names, id_column, leave_out, reasons)
    endless = sorted((*found.infinite[name], name) for name in used if name in found.infinite)
    if endless:
        places = [(source.place(row), value, name) for row, value, name in endless[:MISTAKES_TOLD]]
        source.refuse([BadFile(file, infinite(value), line, name) for (file, line), value, name in places])
    ids = RowNumbers(found.n_rows) if id_column is None else _ids(source, TextIds(found.texts[id_column]), id_column)
    hidden = {name for name, why in reasons.items() if why == NO_VALUES}
    hidden |= set() if id_column is None else {id_column}
    shown = [name for name in names if name in found.texts and name not in hidden - {*text_columns}]
    return Points(
        ids,
        tuple(used),
        X,
        {name: np.array(found.texts[name].to_pylist(), dtype=object) for name in shown},
        id_column,
        {name: reasons[name] for name in names if name in reasons},
        tuple(source.files) if isinstance(source, Parts) else (),
        (*source.remarks, *found.remarks),
        described,
        found.recipe,
    )


def _check_choice(
    source: Source,
    id_column: str | None,
    columns: Sequence[str] | None,
    leave_out: tuple[str, ...],
    kinds: Mapping[str, str],
    text_columns: tuple[str, ...],
) -> None:
    """Refuse columns that are not there, and those with two uses: all of them at once."""
    path, names = source.path, source.names
    mistakes = []
    asked_for = [*([] if id_column is None else [id_column]), *(columns or ()), *leave_out, *kinds, *text_columns]
    for name in dict.fromkeys(asked_for):
        if name not in names:
            why = f" ({source.remarks[0]})" if source.remarks else ""
            mistakes.append(BadFile(path, f"there is no column {name!r}{why}: choose from {listed(names)}"))
    for place, name in enumerate(columns or ()):
        if name in columns[:place] or name == id_column or name in text_columns:  # type: ignore[index]
            other = "another use" if name in text_columns else "the ids" if name == id_column else "a feature twice"
            mistakes.append(
                BadFile(path, f"column {name!r} is chosen as a feature and also as {other}: choose it once")
            )
    for name in dict.fromkeys(leave_out):
        if name == id_column or name in (columns or ()) or name in text_columns or name in kinds:
            other = "the ids" if name == id_column else "another use" if name in text_columns else "a feature"
            mistakes.append(BadFile(path, f"column {name!r} is left out and also chosen as {other}: decide for one"))
    for name, kind in kinds.items():
        if name == id_column or name in text_columns or (columns is not None and name not in columns):
            other = "has another use" if name in text_columns else "is not chosen"
            other = "holds the ids" if name == id_column else other
            mistakes.append(BadFile(path, f"column {name!r} is read as {kind!r}, but it {other}: decide for one"))
    if mistakes:
        raise BadFile.gathered(mistakes)


def _useless(
    X: Floats, described: Summary, names: Sequence[str], kinds: Mapping[str, str], chosen: Sequence[str]
) -> dict[str, str]:
    """Columns of plain numbers that tell no rows apart, or number them, with the reason to leave them out."""
    reasons = {}
    for place, name in enumerate(names):
        if not described.n_values[place]:
            reasons[name] = NO_VALUES
        elif described.low[place] == described.high[place] and len(X) > 1:
            full = described.n_values[place] == len(X)
            reasons[name] = CONSTANT if full else f"{CONSTANT} that has one"
        elif name not in chosen and name not in kinds and is_running(X, described, place):
            reasons[name] = RUNNING
    return reasons


def _picked(
    X: Floats, described: Summary, names: Sequence[str], kept: list[int]
) -> tuple[Floats, Summary, tuple[str, ...]]:
    """Some of the columns."""
    if len(kept) == len(names):
        return X, described, tuple(names)
    X = piled(np.asarray(block)[:, kept] for block in Blocks.from_array(X))
    return X, Summary(*(array[kept] for array in astuple(described))), tuple(names[place] for place in kept)


def _refuse_all(
    path: Path, names: list[str], id_column: str | None, leave_out: tuple[str, ...], reasons: Mapping[str, str]
) -> None:
    besides = [] if id_column is None else [f"the ids in {id_column!r}"]
    besides += [f"{listed(leave_out)}, which you leave out"] if leave_out else []
    hint = f" besides {' and '.join(besides)}" if besides else ""
    told = [name for name in names if reasons.get(name) not in (None, IDS, LEFT_OUT, NOT_CHOSEN)]
    why = ", ".join(f"{name!r} ({reasons[name]})" for name in told[:8]) or f"columns: {listed(names)}"
    why += f" and {len(told) - 8:,} more" if len(told) > 8 else ""
    raise BadFile(path, f"no column can be used{hint} ({why}): give other columns, or say what these are with --as")


def _ids(source: Source, ids: TextIds, id_column: str) -> IdColumn:
    """Ids, all different."""
    row_of: dict[str, int] = {}
    mistakes: list[BadFile] = []
    for row in ids.suspects().tolist():
        value = ids[row]
        if value and row_of.setdefault(value, row) == row:
            continue
        file, line = source.place(row)
        if not value:
            mistakes.append(BadFile(file, EMPTY_ID, line, id_column))
        else:
            other, other_line = source.place(row_of[value])
            where = f"row {row_of[value]}" if other_line is None else f"line {other_line}"
            if other != file:
                where = f"{other}" if other_line is None else f"{where} of {other}"
            mistakes.append(BadFile(file, repeated_id(value, where), line, id_column))
        if len(mistakes) == MISTAKES_TOLD:
            break
    if mistakes:
        source.refuse(mistakes)
    return ids
