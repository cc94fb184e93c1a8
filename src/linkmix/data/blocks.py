"""Rows that are not one array in memory: a memory-mapped array, a file, or blocks made on the fly.

A user hands over a `Source`. An estimator lets it in through its `Door`, which checks every block once, and gets a
`Table`: numbered rows that can be picked, labelled and added up, but are never held in memory all at once.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.utils import check_array

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.data import parquet
from linkmix.data.rows import Addable, FreeRows, Rows, added, joined, portion_rows, without
from linkmix.data.scratch import piled
from linkmix.data.summary import Summary, summarise

LARGEST = 1e150
"""Larger numbers overflow when squared."""
NAMED_AT_ONCE = 2**20
"""Rows whose class numbers are replaced by names at once."""

T = TypeVar("T")


@dataclass(frozen=True)
class Survey:
    """What was found in a block: its number of rows, its header, and a summary of its columns."""

    n_rows: int
    head: Any
    columns: Summary


@dataclass(frozen=True)
class Door:
    """The checks that a block must pass: its dtype, whether values may be missing, and a check of the values.

    ``through`` is applied to every block after that, for example to scale it.
    """

    kinds: list[type]
    missing: bool
    check: Callable[[Array], None]
    through: Callable[[Array], Array] | None = None

    def numbers(self, block: Any) -> Array:
        """A block as an array of numbers; only the dtype is checked."""
        X: Array = check_array(block, dtype=self.kinds, ensure_all_finite=False, ensure_min_samples=0)
        return X if self.through is None else self.through(X)

    def survey(self, block: Any) -> Survey:
        """Check every number of a block."""
        finite = "allow-nan" if self.missing else True
        X = check_array(block, dtype=self.kinds, ensure_all_finite=finite, ensure_min_samples=0, input_name="X")
        columns = summarise(X)
        check_size(columns.low, columns.high)
        self.check(X)
        head = deepcopy(block[:0]) if hasattr(block, "columns") else np.empty_like(X[:0])  # a view would hold the block
        return Survey(len(X), head, columns)


def check_size(low: Array, high: Array) -> None:
    """Refuse numbers that overflow when squared, by the extent of each column, NaN for one without values."""
    largest = float(np.fmax.reduce([*np.ravel(high), *-np.ravel(low)], initial=0.0))
    if largest > LARGEST:
        raise ValueError(f"X holds {largest:g}, too large to be squared: scale X")


class Table(ABC):
    """Checked rows outside memory, in consecutive blocks.

    Attributes
    ----------
    door : Door
    surveys : list of Survey
        What was found in each block.
    """

    def __init__(self, door: Door, surveys: list[Survey]) -> None:
        if not sum(survey.n_rows for survey in surveys):
            raise ValueError("X has no rows in any block: give at least one")
        for number, survey in enumerate(surveys):
            if survey.head.shape[1] != surveys[0].head.shape[1]:
                raise ValueError(
                    f"block {number} of X has {survey.head.shape[1]} columns and block 0 has "
                    f"{surveys[0].head.shape[1]}: give all blocks the same columns"
                )
        self.door = door
        self.surveys = surveys
        self.n_features: int = surveys[0].head.shape[1]
        self._taken: list[tuple[Ints, Array]] = []  # rows that were read before, and are not read again

    @property
    def head(self) -> Any:
        """A block without rows, which has the names of the columns."""
        return self.surveys[0].head

    @cached_property
    def summary(self) -> Summary:
        """Summary of each column as it was read, found by the checks, so that no further pass is needed."""
        found = added(survey.columns for survey in self.surveys)
        assert found is not None
        return found

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return sum(survey.n_rows for survey in self.surveys), self.n_features

    @cached_property
    def firsts(self) -> Ints:
        """Number of the first row of each block, and of the row after the last one."""
        return np.cumsum([0, *(survey.n_rows for survey in self.surveys)])

    def __len__(self) -> int:
        return self.shape[0]

    def through(self, function: Callable[[Array], Array]) -> Self:
        """The same rows, each block of numbers passed through a function as it is read."""
        other = copy(self)
        other.door = replace(self.door, through=function)
        other.n_features = function(np.empty((0, self.n_features))).shape[1]
        vars(other).pop("shape", None)
        return other

    def cut(self, number: int, at: Sequence[Array]) -> list[Array]:
        """The part of sorted row numbers, and of arrays along them, in a block, with rows counted from its start."""
        if not at:
            return []
        first, stop = self.firsts[number : number + 2]
        inside = slice(*np.searchsorted(at[0], (first, stop)))
        return [at[0][inside] - first, *(array[inside] for array in at[1:])]

    @abstractmethod
    def map(self, function: Callable[..., T], *at: Array) -> Iterable[T]:
        """``function(block)`` for each block in order.

        With sorted row numbers and arrays along them, the function also gets the part that belongs to the block, with
        rows counted from the start of the block.
        """

    @abstractmethod
    def free(self, linked: Ints, weights: Floats | None, known: Ints | None) -> FreeRows:
        """All rows except the linked ones, to be summed over."""

    def gathered(self) -> "Table | Array":
        """An array if all rows fit into what is read at once anyway, otherwise the table itself."""
        return self

    def take(self, rows: Ints) -> Array:
        """Some rows, by their sorted numbers, as an array in memory; those that were taken before are still there."""
        if not len(rows):
            return np.empty((0, self.shape[1]))
        through = self.door.through or np.asarray
        for before, X in self._taken:
            places = np.searchsorted(before[:-1], rows)
            if np.array_equal(before[places], rows):
                return through(X[places])
        as_read = copy(self)
        as_read.door = replace(self.door, through=None)
        X = np.concatenate(list(as_read.map(_pick, rows)))
        self._taken.append((rows, X))
        return through(X)

    def label(self, function: Callable[[Array], Ints], rows: Ints, values: Ints) -> Any:
        """Labels of all rows by a function of a block, except for some ``rows``, which get the given values.

        If these are too many for the memory, they are mapped from a scratch file.
        """
        return piled(self.map(partial(label_rows, function), rows, values))

    def named(self, labels: Any, names: Array) -> Any:
        """Names for the class numbers of all rows, kept where `label` keeps those."""
        return piled(names[labels[first : first + NAMED_AT_ONCE]] for first in range(0, len(labels), NAMED_AT_ONCE))


def _pick(block: Array, rows: Ints) -> Array:
    return np.asarray(block[rows])


def label_rows(function: Callable[[Array], Ints], block: Array, rows: Ints, values: Ints) -> Ints:
    """Labels of a block by a function, except for some rows, which get the given values."""
    labels = function(block)
    labels[rows] = values
    return labels


def labelled(points: Array | Table, function: Callable[[Array], Ints], rows: Ints, values: Ints) -> Ints:
    """Labels of all rows of an array or a table by a function, except for some rows, which get the given values."""
    if isinstance(points, Table):
        return points.label(function, rows, values)  # type: ignore[no-any-return]
    return label_rows(function, points, rows, values)


def named(points: Array | Table | None, labels: Ints, names: Array) -> Array:
    """Names for the class numbers of all rows of an array or a table."""
    return points.named(labels, names) if isinstance(points, Table) else names[labels]


def take(points: Array | Table, rows: Ints) -> Array:
    """Some rows of an array or a table, by their sorted numbers; without a copy if these are all rows of an array."""
    if isinstance(points, Table):
        return points.take(rows)
    return points if len(rows) == len(points) else points[rows]


class Source(ABC):
    """Rows outside memory, as a user passes them to an estimator in place of X."""

    @abstractmethod
    def enter(self, door: Door) -> Table:
        """Check all blocks once."""


class Blocks(Source):
    """Rows that are read block by block, once for each step of EM, and never held in memory all at once.

    Pass it to `fit`, `predict`, `predict_proba` or `score_samples` in place of X. Links, ``y`` and ``sample_weight``
    count rows through all blocks. A memory-mapped array needs no `Blocks`: it is read in this way automatically.

    Parameters
    ----------
    source : iterable or callable
        Blocks of rows, arrays or data frames of shape (any number, n_features): an object that can be iterated
        repeatedly, such as a list, or a function without arguments that makes a new iterator each time.

    Examples
    --------
    >>> import numpy as np
    >>> from linkmix import LinkMixture
    >>> from linkmix.data.blocks import Blocks
    >>> def blocks():  # of 100,000 rows in all
    ...     for seed in range(10):
    ...         random = np.random.default_rng(seed)
    ...         yield random.normal(size=(10_000, 2)) + 6 * random.integers(2, size=(10_000, 1))
    >>> model = LinkMixture(2, random_state=0).fit(Blocks(blocks))
    >>> np.sort(model.means_[:, 0, 0]).round(1)
    array([0., 6.])
    >>> model.predict(Blocks(blocks)).shape
    (100000,)
    """

    def __init__(self, source: Iterable[Any] | Callable[[], Iterable[Any]]) -> None:
        if not callable(source) and not isinstance(source, Iterable):
            raise ValueError(f"source has type {type(source).__name__}: pass an iterable of blocks, or a function")
        if isinstance(source, Iterator):
            raise ValueError(
                f"Blocks got a {type(source).__name__}, which can be read only once, but EM reads it in each step: "
                "pass the function that makes it, as in Blocks(lambda: read(path))"
            )
        self._source = source
        self._array: Any = None
        self._head: Any = None  # names of the columns, where the blocks have none

    @classmethod
    def from_parquet(cls, path: "str | PathLike[str]", columns: Sequence[str] | None = None) -> "Blocks":
        """Rows of a Parquet file, or of all files ``*.parquet`` in a folder, in the order of their names.

        Needs the package pyarrow: ``pip install "linkmix[parquet]"``. Numbers stay in single precision if all columns
        have it.

        Parameters
        ----------
        path : path-like
            File or folder.
        columns : sequence of str, optional
            Names of the columns to read, which must hold numbers; all of them by default. A null is a missing value.

        Returns
        -------
        Blocks
            Memory is bounded by a row group of the file, or about 100 megabytes if that is more.
        """
        files = parquet.files_in(Path(path))
        schema = parquet.schema_of(files, columns)
        blocks = cls(lambda: parquet.read(files, schema))
        blocks._head = schema.empty_table()
        return blocks

    @classmethod
    def from_array(cls, X: Any) -> "Blocks":
        """Slices of anything that has a shape and can be sliced, such as a memory-mapped array or an HDF5 dataset.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Only slices ``X[first:stop]`` are read.

        Returns
        -------
        Blocks
            Slices of 4 million numbers.
        """
        if len(X.shape) != 2:
            raise ValueError(f"X has shape {X.shape}, expected (n_samples, n_features): reshape it")
        size = portion_rows(X.shape[1])
        blocks = cls(lambda: (X[first : first + size] for first in range(0, X.shape[0], size)))
        blocks._array = X
        return blocks

    def __iter__(self) -> Iterator[Any]:
        return iter(self._source() if callable(self._source) else self._source)

    def enter(self, door: Door) -> Table:
        """Check all blocks once."""
        return _Stream(door, list(self._surveys(door)), self)

    def _surveys(self, door: Door) -> Iterator[Survey]:
        for number, block in enumerate(self):
            try:
                yield door.survey(block)
            except ValueError as error:
                if self._array is not None:  # a user who passed an array does not know about blocks
                    raise
                raise ValueError(f"block {number} of X, counted from 0: {error}") from error


class _Stream(Table):
    """Rows that are read again on each pass."""

    def __init__(self, door: Door, surveys: list[Survey], blocks: Blocks) -> None:
        super().__init__(door, surveys)
        self.blocks = blocks

    @property
    def head(self) -> Any:
        """A block without rows, which has the names of the columns."""
        return super().head if self.blocks._head is None else self.blocks._head

    def gathered(self) -> Table | Array:
        """An array if all rows fit into one portion, otherwise the table itself."""
        n, d = self.shape
        return np.concatenate(list(self.map(np.asarray))) if n <= portion_rows(d) else self

    def map(self, function: Callable[..., T], *at: Array) -> Iterator[T]:
        """One block after another."""
        number = -1
        for number, block in enumerate(self.blocks):
            if number >= len(self.surveys) or len(block) != self.surveys[number].n_rows:
                break
            yield function(self.door.numbers(block), *self.cut(number, at))
        else:
            if number + 1 == len(self.surveys):
                return
        raise ValueError(
            f"the blocks of X differ from those of the first pass ({len(self.surveys)} blocks with {len(self)} rows in "
            "all): make sure that every pass yields the same blocks"
        )

    def free(self, linked: Ints, weights: Floats | None, known: Ints | None) -> FreeRows:
        """All rows except the linked ones."""
        return _FreeStream(self, linked, weights, known)


@dataclass(frozen=True)
class _FreeStream(FreeRows):
    """Free rows of a stream, with their weights and labels."""

    table: _Stream
    linked: Ints
    weights: Floats | None
    known: Ints | None

    def total(self, function: Callable[[Rows], Addable]) -> Addable | None:
        """Sum over the same portions as if all rows were in memory, so that every digit is the same."""
        portions = self._portions() if self.table.blocks._array is None else self._slices()
        return added(map(function, portions))

    def _slices(self) -> Iterator[Rows]:
        """Portions of an array: views, except where a linked row is left out."""
        X, (n, d) = self.table.blocks._array, self.table.shape
        n_before = self.linked - np.arange(len(self.linked))  # free rows before each linked one
        starts = np.arange(0, n - len(self.linked), portion_rows(d))
        starts = starts + np.searchsorted(n_before, starts, side="right")
        for first, stop in pairwise([*starts.tolist(), n]):
            inside = self.linked[slice(*np.searchsorted(self.linked, (first, stop)))]
            yield without(self._rows(self.table.door.numbers(X[first:stop]), first, stop), inside - first)

    def _portions(self) -> Iterator[Rows]:
        """Portions cut from blocks of any length."""
        size = portion_rows(self.table.shape[1])
        waiting: list[Rows] = []
        n_waiting = 0
        for rows in self._blocks():
            while n_waiting + len(rows) >= size:
                cut = size - n_waiting
                yield joined([*waiting, rows[:cut]])
                waiting, n_waiting, rows = [], 0, rows[cut:]
            if len(rows):
                waiting.append(rows)
                n_waiting += len(rows)
        if waiting:
            yield joined(waiting)

    def _blocks(self) -> Iterator[Rows]:
        for number, X in enumerate(self.table.map(np.asarray)):
            (linked,) = self.table.cut(number, [self.linked])
            yield without(self._rows(X, *self.table.firsts[number : number + 2].tolist()), linked)

    def _rows(self, X: Array, first: int, stop: int) -> Rows:
        weights, known = self.weights, self.known
        return Rows(X, None if weights is None else weights[first:stop], None if known is None else known[first:stop])
