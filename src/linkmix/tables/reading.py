"""One passage through a table: plain numbers as they are, columns of other kinds by a recipe."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from linkmix.basics.arrays import Floats
from linkmix.basics.errors import BadFile
from linkmix.data.scratch import Texts, piled
from linkmix.data.summary import Summary, summarise
from linkmix.tables.mistakes import infinite, no_number
from linkmix.tables.parts import Parts
from linkmix.tables.sources import Columns, ReadAgain, Text, Typed
from linkmix.tables.text import shortened

if TYPE_CHECKING:
    import pyarrow as pa

    from linkmix.columns import BadColumns, Problem, Recipe

Source = Text | Typed | Parts
"""Tables that points are read from."""
NO_VALUES, CONSTANT = "no values", "the same value in every row"
"""Why columns are not used."""
LEARNED = 100_000
"""Rows of a large table that the kinds of its columns are learned from."""


@dataclass(frozen=True)
class Features:
    """Columns that points are made of.

    Attributes
    ----------
    candidates : list of str
        Columns that may be used, in their order.
    chosen : tuple of str
        Those among them that the user named.
    kinds : mapping of str to str
        What the user takes columns for.
    recipe : Recipe or None
        A recipe that was learned before.
    folder : str
        Folder in which relative paths of pictures begin.
    """

    candidates: list[str]
    chosen: tuple[str, ...]
    kinds: Mapping[str, str]
    recipe: "Recipe | None"
    folder: str


@dataclass
class Reading:
    """What one passage finds.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns of `X`.
    recipe : Recipe or None
        None if these are plain numbers.
    left_out : dict of str to str
        Candidates that are not used, with the reason.
    remarks : tuple of str
        What was assumed about columns.
    n_rows : int
    X : ndarray of shape (n_rows, n_features)
    texts : dict of str to pyarrow.ChunkedArray
        The columns that are kept as text.
    n_filled : dict of str to int
        Number of values of the columns that are read as text alone.
    infinite : dict of str to tuple of int and float
        Row and value of the first number of a column that is not finite.
    described : Summary
        Summary of `X`.
    seen : dict of str to set
        Some values of columns that seemed to have no or one value.
    """

    columns: tuple[str, ...]
    recipe: "Recipe | None"
    described: Summary
    left_out: dict[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    n_rows: int = 0
    X: Floats = field(default_factory=lambda: np.empty((0, 0)))
    texts: "dict[str, pa.ChunkedArray]" = field(default_factory=dict)
    n_filled: dict[str, int] = field(default_factory=dict)
    infinite: dict[str, tuple[int, float]] = field(default_factory=dict)
    seen: dict[str, set[Any]] = field(default_factory=dict)


def read_once(source: Source, features: Features, as_text: list[str], texts: bool, progress: bool) -> Reading:
    """Read a table, again if the beginning of a column suggested another kind than the rest.

    Parameters
    ----------
    source : Source
        The table.
    features : Features
        Columns that points are made of.
    as_text : list of str
        Columns to read as text.
    texts : bool
        Whether to keep the features that are not plain numbers also as text.
    progress : bool
        Whether to show a progress bar.

    Returns
    -------
    Reading
    """
    by_recipe = [] if features.recipe is None else _as_texts(features.recipe)
    source.choose(features.candidates, [*as_text, *by_recipe], ())
    more: list[dict[str, Any]] = []  # rows that showed that the first ones do not tell what the columns are
    while True:
        try:
            return _passage(source, features, as_text, texts, progress, more)
        except ReadAgain:
            continue


def _as_texts(recipe: "Recipe") -> list[str]:
    """Columns whose values are compared as texts: where 01 is not 1."""
    from linkmix.columns.kinds import Number

    return [column.name for column in recipe.columns if not isinstance(column.kind, Number)]


def _passage(
    source: Source, features: Features, as_text: list[str], texts: bool, progress: bool, more: list[dict[str, Any]]
) -> Reading:
    numbers = {name: source.is_number(name) for name in features.candidates}
    is_known = features.recipe is None or is_plain(features.recipe)
    all_plain = all(numbers.values()) and set(features.kinds.values()) <= {"number"} and is_known
    kept = [name for name, is_number in numbers.items() if texts and not is_number and source.is_short(name)]
    piles = {name: Texts() for name in [*as_text, *kept]}
    names = tuple(features.candidates) if all_plain else ()
    found = Reading(names, features.recipe, summarise(np.empty((0, len(names)))), n_filled=dict.fromkeys(as_text, 0))
    batches = _with_bar(source, source.batches()) if progress else source.batches()
    batches = _texts_kept(source, batches, piles, found)
    found.X = piled(_plain(source, batches, found) if all_plain else _mixed(source, batches, features, found, more))
    found.texts = {name: pile.column() for name, pile in piles.items()}
    if found.recipe is not None:
        if features.recipe is None:
            found.left_out, found.remarks = dict(found.recipe.left_out), found.recipe.remarks
        if is_plain(found.recipe):
            found.recipe = None
    return found


def is_plain(recipe: "Recipe") -> bool:
    """Whether all columns of a recipe are numbers that need no conversion."""
    from linkmix.columns.kinds import Number

    return all(column.kind == Number() for column in recipe.columns)


def plain_recipe(columns: Sequence[str]) -> "Recipe":
    """A recipe for columns of numbers."""
    from linkmix.columns import Column, Recipe
    from linkmix.columns.kinds import Number

    return Recipe(tuple(Column(name, Number()) for name in columns))


def _texts_kept(
    source: Source, batches: Iterable[tuple[int, Columns]], piles: dict[str, Texts], found: Reading
) -> Iterator[tuple[int, Columns]]:
    """Batches, after what is kept as text has been taken from them."""
    for n_rows, columns in batches:
        for name, pile in piles.items():
            pile.add(source.as_texts(name, columns[name]))
            if name in found.n_filled:
                found.n_filled[name] += source.n_filled(columns[name])
        yield n_rows, columns


def _plain(source: Source, batches: Iterable[tuple[int, Columns]], found: Reading) -> Iterator[Floats]:
    """Rows of plain numbers."""
    for n_rows, columns in batches:
        block = np.empty((n_rows, len(found.columns)))
        for place, name in enumerate(found.columns):
            block[:, place] = source.as_numbers(name, columns.pop(name))
        _look(block, found)
        yield block


def _mixed(
    source: Source,
    batches: Iterable[tuple[int, Columns]],
    features: Features,
    found: Reading,
    more: list[dict[str, Any]],
) -> Iterator[Floats]:
    """Rows of numbers and codes. The recipe is learned from all rows, or from the first ones of a large table."""
    waiting: list[tuple[int, dict[str, Any]]] = []
    n_waiting = 0
    for n_rows, columns in batches:
        waiting.append((n_rows, {name: source.values(name, columns[name]) for name in features.candidates}))
        n_waiting += n_rows
        if found.recipe is None and (not source.is_large or n_waiting < LEARNED):
            continue
        yield from _coded(source, waiting, features, found, more)
        waiting.clear()
    if n_waiting:
        yield from _coded(source, waiting, features, found, more)
    else:
        yield np.empty((0, 0))


def _coded(
    source: Source,
    waiting: list[tuple[int, dict[str, Any]]],
    features: Features,
    found: Reading,
    more: list[dict[str, Any]],
) -> Iterator[Floats]:
    from linkmix.columns import BadColumns

    if found.recipe is None:
        found.recipe = _learned(source, [values for _, values in waiting] + more, features)
    if not found.columns:
        found.columns = found.recipe.names
        found.described = summarise(np.empty((0, len(found.columns))))
    for n_rows, values in waiting:
        if source.is_large and features.recipe is None:
            _check_left_out(source, found.recipe, values, found.seen, more)
        try:
            block = found.recipe(values, features.folder)
        except BadColumns as error:
            _refuse(source, error, found.n_rows)
        _look(block, found, n_rows)
        yield block


def _learned(source: Source, parts: list[dict[str, Any]], features: Features) -> "Recipe":
    from linkmix.columns import BadColumns

    table = {name: _joined(source, name, [part[name] for part in parts]) for name in features.candidates}
    asked = dict(features.kinds)
    for name in features.chosen:  # numbers that the user names are used even if they number the rows
        if source.is_number(name):
            asked.setdefault(name, "number")
    try:
        return _without_pictures(table, asked, source, features)
    except BadColumns as error:
        _refuse(source, error, 0)
    except ValueError as error:
        remedy = "say what these are with --as"
        raise BadFile(source.path, str(error).replace("name their kinds", remedy)) from None


def _without_pictures(table: dict[str, Any], asked: dict[str, str], source: Source, features: Features) -> "Recipe":
    """Learn a recipe; a column of pictures that cannot all be read is left out, unless the user asks for it."""
    from linkmix.columns import BadColumns, learn

    try:
        return learn(table, asked, missing=source.missing, folder=features.folder)
    except BadColumns as error:
        lost = {one.column: one.fact for one in error.problems if "pictures" in one.fact and one.column not in asked}
        if not lost:
            raise
    found = learn(table, asked | dict.fromkeys(lost, "ignore"), missing=source.missing, folder=features.folder)
    return replace(found, left_out={**found.left_out, **lost})


def _joined(source: Source, name: str, parts: list[Any]) -> Any:
    """The parts of a column as one."""
    import pyarrow as pa

    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    types = sorted({str(part.type) for part in parts})
    if len(types) > 1:
        problem = f"holds {' and '.join(types)} in different files: give all files columns of the same types"
        raise BadFile(source.path, problem, column=name)
    return pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)


def _check_left_out(
    source: Source, recipe: "Recipe", values: dict[str, Any], seen: dict[str, set[Any]], more: list[dict[str, Any]]
) -> None:
    """Learn again, with these rows, if a column that seemed to have no or one value has another one here."""
    for name, reason in recipe.left_out.items():
        if reason.startswith((NO_VALUES, CONSTANT)):
            different = seen.setdefault(name, set())
            different |= _different(values[name], source.missing)
            if len(different) > (0 if reason == NO_VALUES else 1):
                more.append(values)
                raise ReadAgain


def _different(values: Any, missing: Collection[str]) -> set[Any]:
    """Some of the different values of a column: at least two, if it has two."""
    if isinstance(values, np.ndarray):
        return set() if np.isnan(values).all() else {float(np.nanmin(values)), float(np.nanmax(values))}
    found = (str(value).strip() for value in values.unique().to_pylist() if value is not None)
    return set(islice((value for value in found if value not in missing), 2))


def _refuse(source: Source, error: "BadColumns", first: int) -> NoReturn:
    """Name the lines of what is wrong, of which the recipe knows the rows from the first one of its table."""
    mistakes = []
    for problem in error.problems:
        for value, row in problem.examples:
            file, line = source.place(first + row)
            mistakes.append(BadFile(file, _said(value, problem), line, problem.column))
        if not problem.examples:
            mistakes.append(BadFile(source.path, f"{problem.fact}: {problem.remedy}", column=problem.column))
    source.refuse(mistakes or [BadFile(source.path, str(error))])


def _said(value: str, problem: "Problem") -> str:
    """What is wrong with one value, in the same words wherever it was found."""
    if value in ("inf", "-inf"):
        return infinite(float(value))
    if "not a number" in problem.fact or "not numbers" in problem.fact:
        return no_number(value)
    return f"{shortened(value)}: {problem.fact}: {problem.remedy}"


def _look(block: Floats, found: Reading, n_rows: int | None = None) -> None:
    """Describe rows, and remember infinite ones."""
    found.n_rows += len(block) if n_rows is None else n_rows
    if not block.shape[1]:
        return
    seen = summarise(block)
    for place in np.flatnonzero(np.isinf(seen.low) | np.isinf(seen.high)).tolist():
        row = int(np.argmax(np.isinf(block[:, place])))
        found.infinite.setdefault(found.columns[place], (found.n_rows - len(block) + row, float(block[row, place])))
    found.described = found.described + seen


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
