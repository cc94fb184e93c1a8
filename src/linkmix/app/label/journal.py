"""A journal: a file of JSON lines that only grows, and that a crash can not harm."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from linkmix.basics.errors import BadFile

Entry = dict[str, Any]
"""One line of the journal."""


class Journal:
    """Entries in a file, each of them on the disk before `append` comes back.

    A crash can leave half a line at the end. Nobody was told that it was written, so it is cut off when the journal is
    opened again. One process at a time has a journal open; the lock ends with the process, however that ends.

    Parameters
    ----------
    path : path
        The file; it is made if it is not there.

    Attributes
    ----------
    entries : list of dict
        All entries, in their order.

    Raises
    ------
    BadFile
        If another process has it open, or a line before the last is no entry.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "answers.journal"
    >>> journal = Journal(file)
    >>> journal.append({"said": "same"})
    >>> journal.close()
    >>> with file.open("a") as opened:
    ...     _ = opened.write('{"said": "diff')  # the power fails
    >>> journal = Journal(file)
    >>> journal.entries
    [{'said': 'same'}]
    >>> journal.close()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._file = open(self.path, "a+b", buffering=0)  # noqa: SIM115  (open as long as the journal)
        try:
            _lock(self._file.fileno(), self.path)
            self.entries, size = _read(self.path)
            if size < self._file.seek(0, os.SEEK_END):
                self._file.truncate(size)
                os.fsync(self._file.fileno())
            _sync_folder(self.path.parent)
        except BaseException:
            self._file.close()
            raise

    def append(self, entry: Entry) -> None:
        """Write an entry, and come back when it is on the disk.

        Parameters
        ----------
        entry : dict
            What JSON can hold.

        Raises
        ------
        OSError
            If the disk is full or gone; the journal is as it was before.
        """
        line = json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        before = self._file.seek(0, os.SEEK_END)
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except BaseException:
            self._file.truncate(before)
            raise
        self.entries.append(json.loads(line))

    def close(self) -> None:
        """Close the file and release its lock."""
        self._file.close()


def _read(path: Path) -> tuple[list[Entry], int]:
    """Entries of a file, and how many of its bytes they take."""
    content = path.read_bytes()
    entries: list[Entry] = []
    size = 0
    for number, line in enumerate(content.splitlines(keepends=True), 1):
        end = size + len(line)
        try:
            entry = json.loads(line)
        except ValueError:
            entry = None
        if not isinstance(entry, dict) or not line.endswith(b"\n"):
            if end == len(content):
                break
            raise BadFile(path, "is no entry of a journal: restore the line from a copy, or remove it", number)
        entries.append(entry)
        size = end
    return entries, size


def _sync_folder(folder: Path) -> None:
    """Make sure that a new name in a folder is on the disk."""
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
        raise BadFile(
            path, "another linkmix label has this journal open: use the page of that one, or stop it first"
        ) from None
