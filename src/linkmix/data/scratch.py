"""Rows that are collected until all are there: in memory, or in a scratch file if they are many.

The file has no name, so that it disappears with the process, however that ends. ``TMPDIR`` names its folder.
"""

import mmap
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from linkmix.basics.arrays import Array

if TYPE_CHECKING:
    import pyarrow as pa

IN_MEMORY = 2**28
"""Bytes that are held in memory; more go to a file."""


def piled(blocks: Iterable[Array]) -> Array:
    """Put blocks of rows on top of each other.

    Parameters
    ----------
    blocks : iterable of ndarray of shape (any number, ...)
        At least one block, which may be empty; all of one type.

    Returns
    -------
    ndarray of shape (n_rows, ...)
        A read-only `numpy.memmap` of a file without a name, if there are too many numbers for the memory.

    Examples
    --------
    >>> piled(np.full((2, 2), value) for value in (1.0, 2.0)).tolist()
    [[1.0, 1.0], [1.0, 1.0], [2.0, 2.0], [2.0, 2.0]]
    """
    waiting: list[Array] = []
    n_bytes = n_rows = 0
    file: IO[bytes] | None = None
    with ExitStack() as stack:
        for block in blocks:
            if len(waiting) == 1 and not len(waiting[0]):
                waiting.clear()
            waiting.append(np.ascontiguousarray(block))
            n_rows += len(block)
            n_bytes += block.nbytes
            if n_bytes > IN_MEMORY:
                with _room(n_bytes):
                    if file is None:
                        file = tempfile.TemporaryFile()  # noqa: SIM115
                        stack.callback(_close, file)
                    for part in waiting:
                        file.write(part.data)
                waiting.clear()
        if file is None:
            return waiting[0] if len(waiting) == 1 else np.concatenate(waiting)
        with _room(n_bytes):
            file.flush()  # writing through the map instead would kill the process on a full disk
        return np.memmap(file, dtype=block.dtype, mode="r", shape=(n_rows, *block.shape[1:]))  # which holds the file


class Texts:
    """A column of texts that grows; beyond a certain size it is in a file."""

    def __init__(self) -> None:
        self._waiting: list[pa.ChunkedArray] = []
        self._n_bytes = 0
        self._file: IO[bytes] | None = None
        self._writer: Any = None

    def add(self, column: "pa.ChunkedArray") -> None:
        """Append texts."""
        import pyarrow as pa

        self._waiting.append(column)
        self._n_bytes += column.nbytes
        if self._n_bytes > IN_MEMORY:
            with _room(self._n_bytes):
                if self._file is None:
                    self._file = tempfile.TemporaryFile()  # noqa: SIM115
                    weakref.finalize(self, _close, self._file)
                    self._writer = pa.ipc.new_stream(self._file, pa.schema([("text", pa.string())]))
                for part in self._waiting:
                    self._writer.write_table(pa.table({"text": part}))
            self._waiting.clear()

    def column(self) -> "pa.ChunkedArray":
        """All texts. Nothing can be added afterwards."""
        import pyarrow as pa

        if self._file is None:
            return pa.chunked_array([chunk for part in self._waiting for chunk in part.chunks], pa.string())
        with _room(self._n_bytes):
            self._writer.close()
            self._file.flush()
        mapped = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        return pa.ipc.open_stream(pa.BufferReader(pa.py_buffer(mapped))).read_all().column(0)


def _close(file: IO[bytes]) -> None:
    """Close a file; errors of writing were reported before."""
    with suppress(OSError):
        file.close()


@contextmanager
def _room(n_bytes: int) -> Iterator[None]:
    """Say which disk is full."""
    try:
        yield
    except OSError as error:
        raise ValueError(
            f"{tempfile.gettempdir()}: {error.strerror or error}: a large table needs space for a scratch file there, "
            f"so far {n_bytes / 1e6:,.0f} MB: free some, or set TMPDIR to another folder"
        ) from None
