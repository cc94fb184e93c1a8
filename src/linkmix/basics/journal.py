"""A journal: an append-only file of JSON lines that survives a crash."""

import json
import os
import sys
from pathlib import Path
from typing import Any, Self

from linkmix.basics.errors import BadFile

Entry = dict[str, Any]
"""One line of a journal."""


class Journal:
    """Entries in a file. Each one is on disk before `append` returns.

    A crash can leave half a line at the end. Its writer never reported it as saved, so it is not an entry.

    Parameters
    ----------
    path : path
        The file; created if it does not exist.
    shared : bool, default=False
        Whether several processes may append at the same time. By default the file is locked until it is closed or the
        process ends, half a line at the end is cut off, and any other line that is not an entry is an error. A shared
        journal is not locked and nothing is ever cut off, since another process may still be writing; lines that are
        not entries are skipped.

    Attributes
    ----------
    entries : list of dict
        All entries, in order.

    Raises
    ------
    BadFile
        If another process has locked the file, or a line before the last is not an entry.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "answers.journal"
    >>> with Journal(file) as journal:
    ...     journal.append({"said": "same"})
    >>> with file.open("a") as opened:
    ...     _ = opened.write('{"said": "diff')  # the power fails
    >>> with Journal(file) as journal:
    ...     journal.entries
    [{'said': 'same'}]
    """

    def __init__(self, path: str | os.PathLike[str], *, shared: bool = False) -> None:
        self.path = Path(path)
        self._shared = shared
        self._file = open(self.path, "a+b", buffering=0)  # noqa: SIM115  (open as long as the journal)
        try:
            if not shared:
                _lock(self._file.fileno(), self.path)
            content = self.path.read_bytes()
            self.entries, whole = _read(self.path, content, shared)
            if whole < len(content) and not shared:
                self._file.truncate(whole)
                os.fsync(self._file.fileno())
            _sync_folder(self.path.parent)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        """Enter the context."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the journal."""
        self.close()

    def append(self, entry: Entry) -> None:
        """Write an entry, and return once it is on disk.

        Parameters
        ----------
        entry : dict
            Anything that JSON can represent.

        Raises
        ------
        OSError
            If the disk is full or gone. A journal that is not shared is then unchanged.
        """
        line = json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        before = self._file.seek(0, os.SEEK_END)
        try:
            rest = memoryview(b"\n" + line if self._shared and self._is_torn(before) else line)
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except BaseException:
            if not self._shared:
                self._file.truncate(before)
            raise
        self.entries.append(json.loads(line))

    def _is_torn(self, size: int) -> bool:
        """Whether the last line has no end: a process, perhaps another one, died while writing."""
        if not size:
            return False
        self._file.seek(size - 1)
        return self._file.read(1) != b"\n"

    def close(self) -> None:
        """Close the file and release its lock."""
        self._file.close()


def _read(path: Path, content: bytes, shared: bool) -> tuple[list[Entry], int]:
    """Entries of a file, and how many of its bytes come before a torn last line."""
    entries: list[Entry] = []
    end = 0
    for number, line in enumerate(content.splitlines(keepends=True), 1):
        begin, end = end, end + len(line)
        try:
            entry = json.loads(line)
        except ValueError:
            entry = None
        if isinstance(entry, dict) and (shared or line.endswith(b"\n")):
            entries.append(entry)
        elif end == len(content):
            return entries, begin
        elif not shared:
            raise BadFile(path, "is not an entry of a journal: restore the line from a copy, or remove it", number)
    return entries, end


def _sync_folder(folder: Path) -> None:
    """Make sure that a new file name in a folder is on disk."""
    if sys.platform == "win32":
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _lock(file: int, path: Path) -> None:
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(file, 0, os.SEEK_SET)
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise BadFile(path, "another linkmix has this journal open: use that one, or stop it first") from None
