"""Files that are written whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def aside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a name beside ``path`` to write to; what is there at the end becomes ``path``.

    If anything goes wrong before the end, an interrupt included, nothing is left and an earlier file stays as it was.

    Parameters
    ----------
    path : path
        What to write; a file of this name is replaced.

    Yields
    ------
    Path
        Where to write it.

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
    place = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        yield place
        with place.open("rb+") as file:
            os.fsync(file.fileno())
        place.replace(target)
    finally:
        place.unlink(missing_ok=True)
