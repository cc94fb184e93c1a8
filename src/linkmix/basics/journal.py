"""A journal: an append-only file of JSON lines that survives a crash and notices damage.

A line of a journal that one process writes begins with its number, its length in bytes and a checksum:

    {"n":3,"len":84,"crc":"5c0e7a21","is":{"entry":"answer","ids":["p1","p7"],"said":"same"}}

The checksum is the CRC-32 of the line with eight zeros in its place. So a line that was changed, lost, doubled or moved
is noticed, and half a line that a crash leaves at the end is told from a damaged one by its length. Journals of earlier
versions have lines without this; the first line that is added to them holds a checksum of all before it.
"""

import json
import os
import re
import sys
import zlib
from pathlib import Path
from typing import Any, Self

from linkmix.basics.errors import BadFile

Entry = dict[str, Any]
"""One line of a journal."""
_HEAD = re.compile(rb'\{"n":(\d+),"len":(\d+),"crc":"([0-9a-f]{8})","is":')
_FIELDS = {"n", "len", "crc", "is"}
_AFTER_LENGTH = b',"crc":"'
_NO_CHECKSUM = b"0" * 8
_DAMAGED = "was changed or damaged: restore it from a copy of the file, or move the file away to start again"
_FOREIGN = "is not a journal of linkmix: name another file, or move this one away; it was not changed"


class Journal:
    """Entries in a file. Each one is on disk before `append` returns.

    A crash can leave half a line at the end. Its writer never reported it as saved, so it is not an entry; it is moved
    to a file beside the journal, see `torn`. Any other line that is not as it was written is an error that names it,
    and the file stays as it is.

    Parameters
    ----------
    path : path
        The file; created if it does not exist.
    shared : bool, default=False
        Whether several processes may append at the same time. By default the file is locked until it is closed or the
        process ends. A shared journal is not locked, its lines have no numbers and checksums, and nothing is ever cut
        off, since another process may still be writing; lines that are not entries are skipped.

    Attributes
    ----------
    entries : list of dict
        All entries, in order.
    lines : list of int
        Line of the file that each entry stands on, from 1.
    torn : Path or None
        File that half a line at the end was moved to when the journal was opened; None if there was none.

    Raises
    ------
    BadFile
        If another process has locked the file, or a line is not as it was written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "answers.journal"
    >>> with Journal(file) as journal:
    ...     journal.append({"said": "same"})
    >>> with file.open("a") as opened:
    ...     _ = opened.write('{"n":3,"len":57,"crc":"0a52')  # the power fails
    >>> with Journal(file) as journal:
    ...     print(journal.entries, journal.torn.name)
    [{'said': 'same'}] answers.journal.torn
    """

    def __init__(self, path: str | os.PathLike[str], *, shared: bool = False) -> None:
        self.path = Path(path)
        self.torn: Path | None = None
        self._shared = shared
        self._file = open(self.path, "a+b", buffering=0)  # noqa: SIM115  (open as long as the journal)
        try:
            if not shared:
                _lock(self._file.fileno(), self.path)
            content = self.path.read_bytes()
            self.lines: list[int] = []
            if shared:
                self.entries = _read_shared(content)
            else:
                self.entries, self.lines, self._n, whole = _read(self.path, content)
                self._before = content[:whole] if not self._n else b""  # lines without checksums, if it has only such
                self._cut(content, whole)
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
        text = _compact(entry)
        size = self._file.seek(0, os.SEEK_END)
        if self._shared:
            line, n = text + b"\n", 0
            if self._ends_within_a_line(size):  # a process, perhaps another one, died while writing
                line = b"\n" + line
        else:
            line, n = b"", self._n
            if self._ends_within_a_line(size):  # an editor took the end of the last line away
                line = b"\n"
            if not n:
                before = self._before + line
                first = {"journal": 2, "bytes": len(before), "sum": f"{zlib.crc32(before):08x}"}
                line, n = line + _sealed(1, _compact(first)), 1
            n += 1
            line += _sealed(n, text)
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except BaseException:
            if not self._shared:
                self._file.truncate(size)
            raise
        self._n = n
        self.entries.append(json.loads(text))

    def _cut(self, content: bytes, whole: int) -> None:
        """Move half a line at the end to a file beside the journal, then cut it off."""
        if whole == len(content):
            return
        self.torn = self.path.with_name(self.path.name + ".torn")
        with open(self.torn, "ab") as kept:
            kept.write(content[whole:] + b"\n")
            kept.flush()
            os.fsync(kept.fileno())
        self._file.truncate(whole)
        os.fsync(self._file.fileno())

    def _ends_within_a_line(self, size: int) -> bool:
        if not size:
            return False
        self._file.seek(size - 1)
        return self._file.read(1) != b"\n"

    def close(self) -> None:
        """Close the file and release its lock."""
        self._file.close()


def entries_in(path: str | os.PathLike[str]) -> list[Entry]:
    """The entries of a journal that one process writes, perhaps at this moment; half a line at its end is left out.

    Parameters
    ----------
    path : path
        The file. It is not changed.

    Returns
    -------
    list of dict

    Raises
    ------
    BadFile
        If a line is not as it was written.
    """
    return _read(Path(path), Path(path).read_bytes())[0]


def _compact(entry: Entry) -> bytes:
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode()


def _sealed(n: int, text: bytes) -> bytes:
    """The line of an entry, with its number, its length and its checksum."""
    length = 0
    while True:  # the length counts its own digits
        line = b'{"n":%d,"len":%d,"crc":"%s","is":%s}' % (n, length, _NO_CHECKSUM, text)
        if len(line) == length:
            break
        length = len(line)
    return line.replace(_NO_CHECKSUM, b"%08x" % zlib.crc32(line), 1) + b"\n"


def _opened(line: bytes, n: int) -> Entry | None:
    """The entry of a line with a checksum; None if it is not as it was written, or not the ``n``-th."""
    head = _HEAD.match(line)
    if head is None or int(head[1]) != n or int(head[2]) != len(line):
        return None
    if zlib.crc32(line[: head.start(3)] + _NO_CHECKSUM + line[head.end(3) :]) != int(head[3], 16):
        return None
    return _parsed(line[head.end() : -1])


def _parsed(line: bytes) -> Entry | None:
    """The JSON object in a line; None if there is none."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _read(path: Path, content: bytes) -> tuple[list[Entry], list[int], int, int]:
    """Entries of a file, their lines, how many lines have a checksum, and the bytes before half a line at its end."""
    entries: list[Entry] = []
    numbers: list[int] = []
    n = end = 0
    *lines, last = content.split(b"\n")
    for number, line in enumerate(lines, 1):
        begin, end = end, end + len(line) + 1
        entry = _opened(line, n + 1)
        if entry is not None:
            n += 1
            if n > 1:
                entries.append(entry)
                numbers.append(number)
            elif (entry.get("bytes"), entry.get("sum")) != (begin, f"{zlib.crc32(content[:begin]):08x}"):
                raise BadFile(path, f"something above this line {_DAMAGED}", number)
            continue
        old = None if n else _parsed(line)
        if old is None and number == 1:
            raise BadFile(path, _FOREIGN)
        if old is None or len(old.keys() & _FIELDS) > 1:
            raise BadFile(path, f"this line {_DAMAGED}", number)
        entries.append(old)
        numbers.append(number)
    if not last:
        return entries, numbers, n, end
    entry = _opened(last, n + 1) if n else _parsed(last)
    if entry is not None and (n or len(entry.keys() & _FIELDS) < 2):  # whole, but for the end of the line
        return [*entries, entry], [*numbers, len(lines) + 1], n + 1 if n else 0, len(content)
    if not _is_torn(last, n + 1, after_old=bool(entries) and not n):
        raise BadFile(path, f"this line {_DAMAGED}" if lines else _FOREIGN, len(lines) + 1 if lines else None)
    return entries, numbers, n, end


def _is_torn(last: bytes, n: int, after_old: bool) -> bool:
    """Whether the last line, which has no end, is the beginning of the ``n``-th, which a crash has interrupted."""
    written = last.rstrip(b"\0")  # blocks of a file that were allocated but not written are zeros
    head = _HEAD.match(written)
    if head is not None:
        return len(written) < int(head[2])
    if after_old and not written.startswith(b'{"n":'):  # an earlier version wrote neither length nor checksum
        return written[:1] in (b"", b"{")
    start = b'{"n":%d,"len":' % n
    rest = written[len(start) :].lstrip(b"0123456789")
    return start.startswith(written[: len(start)]) and (
        _AFTER_LENGTH.startswith(rest[: len(_AFTER_LENGTH)])
        and len(rest) < len(_AFTER_LENGTH) + 15  # 8 digits, and the field after them
    )


def _read_shared(content: bytes) -> list[Entry]:
    """All lines that are entries."""
    parsed = (_parsed(line) for line in content.split(b"\n"))
    return [entry for entry in parsed if entry is not None]


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
