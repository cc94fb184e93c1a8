"""Writes files atomically: completely or not at all."""

import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def aside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside ``path`` to write to; at the end, the file written there replaces ``path``.

    If anything goes wrong before the end, an interrupt included, the temporary file is removed and an earlier file
    stays as it was. One that a killed process has left is removed as well.

    Parameters
    ----------
    path : path
        The file to write.

    Yields
    ------
    Path
        Where to write it. The suffix is that of ``path``; the name is different in each thread and process.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> with aside(folder / "notes.txt") as place:
    ...     _ = place.write_text("all of it")
    >>> [file.name for file in folder.iterdir()]
    ['notes.txt']
    """
    target = Path(path)
    sweep(target)
    place = target.with_name(f".{target.stem}.{os.getpid()}-{threading.get_ident()}{target.suffix}")
    try:
        yield place
        with place.open("rb+") as file:
            os.fsync(file.fileno())
        place.replace(target)
    except OSError as error:
        if error.filename is not None and os.fspath(error.filename) == str(place):
            error.filename = str(target)  # which is the file that the reader knows
        raise
    finally:
        place.unlink(missing_ok=True)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Wait until nobody else is in such a block for the same folder, in this process or another.

    Windows has no lock on folders: there, this does nothing.

    Parameters
    ----------
    folder : Path
        An existing folder.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl

    opened = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)  # which unlocks it


def sweep(target: Path) -> None:
    """Remove temporary files of a file that processes have left which are no longer there."""
    stem, suffix = re.escape(target.stem), re.escape(target.suffix)
    ours = re.compile(rf"\.+{stem}(\.(?P<process>\d+)-\d+)+{suffix}")
    for name in os.listdir(target.parent) if target.parent.is_dir() else ():
        found = ours.fullmatch(name)
        if found is not None and not may_run(found["process"]):
            target.with_name(name).unlink(missing_ok=True)


def may_run(process: str) -> bool:
    """Whether there is a process of this number; if that cannot be told, there may be one.

    Examples
    --------
    >>> may_run(str(os.getpid())), may_run("2147483646")
    (True, False)
    """
    if sys.platform == "win32" or not process.isdigit():
        return True
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
