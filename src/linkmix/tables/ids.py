"""Ids of points: a column of texts or row numbers, without a Python object for each."""

import operator
from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkmix.basics.arrays import Array, Ints
from linkmix.data import scratch

if TYPE_CHECKING:
    import pyarrow as pa

Ids = Sequence[str] | Array
"""Ids of points, in the order of their rows."""
BLOCK = 2**16
"""Rows that are looked at together."""
SORTED = 2**24
"""About how many ids are sorted at once to find repeated ones: 128 megabytes of codes."""


class IdColumn(Sequence[str]):
    """Ids of points, in the order of their rows.

    An int gives one id, a slice or an array of row numbers an array of them.
    """

    @abstractmethod
    def __len__(self) -> int:
        """Number of points."""

    @abstractmethod
    def cut(self, first: int, stop: int) -> "pa.ChunkedArray":
        """Ids of some rows as an Arrow column."""

    @abstractmethod
    def rows_of(self, values: Collection[str]) -> dict[str, int]:
        """Rows of those values that are ids."""

    @abstractmethod
    def _at(self, row: int) -> str:
        """The id of one row."""

    def __getitem__(self, rows: Any) -> Any:
        """Some of the ids."""
        if isinstance(rows, slice):
            rows = range(len(self))[rows]
        elif not np.ndim(rows):
            return self._at(range(len(self))[operator.index(rows)])
        some = np.empty(len(rows), dtype=object)
        some[:] = [self._at(range(len(self))[int(row)]) for row in rows]
        return some

    def __iter__(self) -> Iterator[str]:
        """One id after the other."""
        for first in range(0, len(self), BLOCK):
            yield from self.cut(first, first + BLOCK).to_pylist()

    def tolist(self) -> list[str]:
        """All ids."""
        return list(self)


class TextIds(IdColumn):
    """Ids that a file has.

    Parameters
    ----------
    column : pyarrow.ChunkedArray of string
    """

    def __init__(self, column: "pa.ChunkedArray") -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    def cut(self, first: int, stop: int) -> "pa.ChunkedArray":
        """Ids of some rows as an Arrow column."""
        return self._column.slice(first, stop - first)

    def rows_of(self, values: Collection[str]) -> dict[str, int]:
        """Rows of those values that are ids."""
        import pyarrow as pa
        import pyarrow.compute as pc

        wanted = pa.array([value for value in values if value.encode(errors="ignore").decode() == value], pa.string())
        row_of: dict[str, int] = {}
        for first in range(0, len(self), BLOCK):
            block = self.cut(first, first + BLOCK)
            for row in np.flatnonzero(pc.is_in(block, value_set=wanted).to_numpy()).tolist():
                row_of[block[row].as_py()] = first + row
        return row_of

    def suspects(self) -> Ints:
        """Rows that may share an id with another, and rows without one, in their order; usually none."""
        rows: list[Ints] = []
        codes = scratch.piled(self._codes(rows))
        n_parts = 1 + len(codes) // SORTED
        for part in range(n_parts):
            some = np.concatenate([block[block % n_parts == part] for _, block in _blocks(codes)])
            some.sort()
            repeated = some[1:][some[1:] == some[:-1]]
            for first, block in _blocks(codes) if len(repeated) else ():
                # By sorting: for codes that differ this much, NumPy 2.0 fails where it tries the other way.
                rows.append(first + np.flatnonzero(np.isin(block, repeated, kind="sort")))
        return np.unique(np.concatenate(rows))

    def _codes(self, empty: list[Ints]) -> Iterator[Array]:
        """A number for each id, chunk by chunk; the rows where it is empty are added to a list."""
        first = 0
        for chunk in self._column.chunks:
            lengths, codes = _codes(chunk)
            empty.append(first + np.flatnonzero(lengths == 0))
            first += len(chunk)
            yield codes

    def _at(self, row: int) -> str:
        return str(self._column[row].as_py())


class RowNumbers(IdColumn):
    """Row numbers from 0, for a file without ids.

    Parameters
    ----------
    n_rows : int

    Examples
    --------
    >>> ids = RowNumbers(1000)
    >>> ids[7], ids[[0, 999]].tolist(), ids.rows_of({"12", "012", "1000"})
    ('7', ['0', '999'], {'12': 12})
    """

    def __init__(self, n_rows: int) -> None:
        self._n_rows = n_rows

    def __len__(self) -> int:
        return self._n_rows

    def cut(self, first: int, stop: int) -> "pa.ChunkedArray":
        """Row numbers as an Arrow column."""
        import pyarrow as pa

        return pa.chunked_array([pa.array(np.arange(first, min(stop, len(self)))).cast(pa.string())])

    def rows_of(self, values: Collection[str]) -> dict[str, int]:
        """Rows of those values that are row numbers."""
        numbers = {value: int(value) for value in values if value.isdecimal() and len(value) <= len(str(len(self)))}
        return {value: row for value, row in numbers.items() if row < len(self) and str(row) == value}

    def _at(self, row: int) -> str:
        return str(row)


def rows_of(ids: Ids, values: Collection[str]) -> dict[str, int]:
    """Rows of those values that are ids.

    Parameters
    ----------
    ids : sequence of str
        Ids of the points, in their order.
    values : collection of str
        What to look for.

    Returns
    -------
    dict
    """
    if isinstance(ids, IdColumn):
        return ids.rows_of(values)
    return {value: row for row, value in enumerate(ids) if value in values}


def _blocks(codes: Array) -> Iterator[tuple[int, Array]]:
    """Slices, each with the number of its first row."""
    return ((first, np.asarray(codes[first : first + 2**20])) for first in range(0, len(codes), 2**20))


def _codes(chunk: "pa.StringArray") -> tuple[Ints, Array]:
    """Length of each text in bytes, and a hash of it: different texts share one very rarely."""
    _, ends, data = chunk.buffers()
    offsets = np.frombuffer(ends, dtype=np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
    content = np.frombuffer(data or b"", dtype=np.uint8)[offsets[0] : offsets[-1]]
    lengths, starts = np.diff(offsets), offsets[:-1] - offsets[0]
    places = np.arange(len(content)) - np.repeat(starts, lengths)
    # Sum of the bytes, each times a random odd factor for its place, modulo 2**64.
    factors = np.random.default_rng(0).integers(2**63, size=lengths.max(initial=1), dtype=np.uint64) * 2 + 1
    sums = np.zeros(len(content) + 1, dtype=np.uint64)
    np.cumsum(factors[places] * (content.astype(np.uint64) + 1), out=sums[1:])
    return lengths, sums[starts + lengths] - sums[starts]
