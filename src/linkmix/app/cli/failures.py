"""Errors of the command line: one message each, and an exit code."""

import errno
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import click

from linkmix.basics.memory import limit, reserve

if TYPE_CHECKING:
    from linkmix.tables import Points

LEAST_MEMORY = 600 * 2**20
"""Bytes of address space below which no command gets through its imports, where libraries end with errors of their own
or wait for ever. A small fit needs about half as much again."""
SECONDS_TO_CLEAN_UP = 2.0
_EXTRAS = {"openpyxl": "app,xlsx"}
_APP = ("jinja2", "matplotlib", "PIL", "pandas", "plotly", "pyarrow", "starlette", "tqdm", "uvicorn")


class BadInput(click.ClickException):
    """Something that the user gave cannot be used. Exits with 2, as click does for a wrong option."""

    exit_code = 2


class NoMemory(BadInput):
    """There is too little memory."""

    def __init__(self, reason: str) -> None:
        remedy = "use fewer rows or columns"
        if limit() is not None:
            remedy = f"raise the limit of this process (ulimit -v), or {remedy}"
        super().__init__(f"there is not enough memory{reason and f' ({reason})'}: {remedy}")

    @classmethod
    def by(cls, error: BaseException) -> "NoMemory":
        """What an error says; NumPy explains at length why it cannot be imported, and gives the cause last."""
        return cls("".join(str(error).strip().splitlines()[-1:]))


def prepare_memory() -> None:
    """Refuse to start where memory is limited so much that imports would fail, and let Arrow take little of it."""
    allowed = limit()
    if allowed is None:
        return
    os.environ.setdefault("ARROW_IO_THREADS", "1")  # a thread that cannot be started ends the process
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    if allowed < LEAST_MEMORY:
        raise NoMemory(f"{allowed >> 20} MB are allowed, and {LEAST_MEMORY >> 20} MB are the least to start with")


def lacks_memory(error: BaseException) -> bool:
    """Whether an error, such as a library that cannot be loaded, comes from too little memory."""
    words = ("failed to map segment", "cannot allocate memory", "cannot apply additional memory protection")
    said = str(error).lower()
    return isinstance(error, MemoryError) or (isinstance(error, ImportError) and any(word in said for word in words))


@contextmanager
def bad_input() -> Iterator[None]:
    """Turn errors about the input into one message and exit code 2."""
    try:
        prepare_memory()
        reserve()
        with _interrupts():
            yield
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        remedy = {
            errno.ENOSPC: ": the disk is full: make room, or write elsewhere with --out",
            errno.EFBIG: ": the file is larger than this system allows: write elsewhere with --out",
            errno.EACCES: ": choose another place, or change its permissions",
            errno.ENOENT: ": check the name",
            errno.ENOTDIR: ": check the name",
            errno.EADDRINUSE: ": choose another --port, or 0 for any that is free",
        }.get(error.errno or 0, "")
        raise BadInput(f"{place}{error.strerror or error}{remedy}") from None
    except (MemoryError, ImportError) as error:
        if not lacks_memory(error):
            raise
        raise NoMemory.by(error) from None
    except ValueError as error:
        raise BadInput(str(error)) from None


@contextmanager
def _interrupts() -> Iterator[None]:
    """Clean up on Ctrl-C, and when another process asks this one to end, as kill does.

    An interrupt is lost if it comes while code runs that cannot raise it, such as a callback from C. So a timer repeats
    it until it gets here.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    has_timer = hasattr(signal, "setitimer")

    def interrupt(number: int, frame: object) -> NoReturn:
        if has_timer:
            signal.setitimer(signal.ITIMER_REAL, SECONDS_TO_CLEAN_UP)
        raise KeyboardInterrupt

    numbers = [signal.SIGINT, signal.SIGTERM, *([signal.SIGALRM] if has_timer else [])]
    before = [(number, signal.signal(number, interrupt)) for number in numbers]
    try:
        yield
    finally:
        if has_timer:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before:
            signal.signal(number, handler)


@contextmanager
def until_interrupted() -> Iterator[list[bool]]:
    """Leave the block at Ctrl-C and go on behind it; the list that it gives is then not empty."""
    happened: list[bool] = []
    try:
        yield happened
    except KeyboardInterrupt:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)  # it has got here
        happened.append(True)


@contextmanager
def named_by_ids(links_path: object, points: "Points") -> Iterator[None]:
    """Name links that cannot be used by the ids of their points, where the library names rows."""
    from linkmix.basics.errors import BadFile, InfeasibleLinks, LinkConflict

    try:
        yield
    except LinkConflict as error:
        lines = [conflict_by_ids(conflict.chain, points.ids) for conflict in error.conflicts]
        raise BadFile(str(links_path), "\n".join(lines) + "\nlinkmix check-links lists all contradictions") from None
    except InfeasibleLinks as error:
        if error.links is None:
            raise
        pairs = [f"{points.ids[a]!r} and {points.ids[b]!r}" for a, b in error.links.cannot[:5].tolist()]
        more = f", and {len(error.links.cannot) - 5} more" if len(error.links.cannot) > 5 else ""
        raise BadFile(
            str(links_path),
            f"so few classes cannot meet these cannot-links together with the must-links: {', '.join(pairs)}{more}: "
            "raise --classes or remove a link; linkmix check-links says how many classes are needed",
        ) from None


def conflict_by_ids(chain: tuple[int, ...], ids: object) -> str:
    """A contradiction between links, with the ids of the points."""
    names = [repr(str(ids[row])) for row in chain]  # type: ignore[index]
    through = f" through {', '.join(names[1:-1])}" if len(names) > 2 else ""
    return f"{names[0]} and {names[-1]} must link{through} and cannot link: remove one of these {len(names)} links"


@contextmanager
def extras_needed() -> Iterator[None]:
    """Name a missing package and the command that installs it; any other import error stays as it is."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in (*_APP, *_EXTRAS):
            raise
        extra = _EXTRAS.get(package, "app")
        what = "a spreadsheet" if package == "openpyxl" else "this command"
        raise click.ClickException(f'{what} needs {package}: pip install "linkmix[{extra}]"') from None
