"""Writes files atomically: completely or not at all."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def aside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside ``path`` to write to; at the end, the file written there replaces ``path``.

    If anything goes wrong before the end, an interrupt included, the temporary file is removed and an earlier file
    stays as it was.

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
    place = target.with_name(f".{target.stem}.{os.getpid()}-{threading.get_ident()}{target.suffix}")
    try:
        yield place
        with place.open("rb+") as file:
            os.fsync(file.fileno())
        place.replace(target)
    finally:
        place.unlink(missing_ok=True)
