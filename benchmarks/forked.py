"""Commands of linkmix in processes that are forked from one that has imported everything: many runs take minutes.

Each is a run of the real command line with its own standard output and error, in a folder of its own choice, perhaps
with limits on memory, on the size of files or on permissions.
"""

import ctypes
import multiprocessing
import os
import resource
import signal
import struct
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["benchmarks.forked_imports"])
os.environ["OMP_NUM_THREADS"] = "1"  # the OpenMP of scikit-learn hangs in processes that are forked
MB = 2**20


@dataclass(frozen=True)
class Limits:
    """What a command may use.

    Attributes
    ----------
    memory : int or None
        Bytes of address space beyond those that a process without any work has.
    file_size : int or None
        Bytes of a file, beyond which the disk is full.
    ordinary : bool
        Whether permissions of files count, also for root.
    """

    memory: int | None = None
    file_size: int | None = None
    ordinary: bool = False

    def hold(self) -> None:
        """Set the limits of this process."""
        if self.ordinary and os.geteuid() == 0:
            _heed_permissions()
        if self.file_size is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.file_size, self.file_size))
        if self.memory is not None:
            now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (now + self.memory, now + self.memory))


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Attributes
    ----------
    code : int
        Its exit code; below 0 the number of the signal that ended it.
    said : str
        Its standard output and error.
    seconds : float
        How long it took.
    """

    code: int
    said: str
    seconds: float

    @property
    def is_clear(self) -> bool:
        """Whether it ended well, or with a message for people."""
        words = ("Traceback", "Exception ignored", "core dumped", "Segmentation")
        return self.code in (0, 1, 2) and not any(word in self.said for word in words)


def run(
    arguments: Sequence[str], folder: Path, *, limits: Limits | None = None, kill_after: float | None = None,
    longest: float = 60.0,
) -> Ended:  # fmt: skip
    """Run a command to its end, or kill it after some seconds.

    Parameters
    ----------
    arguments : sequence of str
        What follows ``linkmix``.
    folder : Path
        The folder that it works in.
    limits : Limits, optional
        What it may use.
    kill_after : float, optional
        Seconds after which it is killed.
    longest : float
        Seconds after which it hangs, which is an error.

    Returns
    -------
    Ended
    """
    said = folder / ".said"
    process = PROCESSES.Process(target=_work, args=([*map(str, arguments)], str(folder), str(said), limits or Limits()))
    began = time.monotonic()
    process.start()
    process.join(longest if kill_after is None else kill_after)
    hangs = process.is_alive() and kill_after is None
    if process.is_alive():
        process.kill()
    process.join()
    seconds = time.monotonic() - began
    text = said.read_text(encoding="utf-8", errors="replace") if said.exists() else ""
    said.unlink(missing_ok=True)
    if hangs:
        raise RuntimeError(f"linkmix {' '.join(map(str, arguments))} did not end in {longest} s: {text}")
    return Ended(int(process.exitcode or 0), text, seconds)


def _heed_permissions() -> None:
    """Give up what lets root pass over permissions (capset(2), on Linux alone)."""
    header = struct.pack("=Ii", 0x20080522, 0)
    data = ctypes.create_string_buffer(24)
    system = ctypes.CDLL(None, use_errno=True)
    if system.capget(header, data):
        raise OSError(ctypes.get_errno(), "capget")
    values = list(struct.unpack("=6I", data.raw))
    values[0] &= ~(1 << 1 | 1 << 2)  # effective: CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH
    if system.capset(header, struct.pack("=6I", *values)):
        raise OSError(ctypes.get_errno(), "capset")


def _work(arguments: list[str], folder: str, said: str, limits: Limits) -> None:
    from linkmix.app.cli import main

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    os.chdir(folder)
    opened = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.dup2(opened, 1)
    os.dup2(opened, 2)
    sys.argv = ["linkmix", *arguments]
    streams: list[Any] = [sys.stdout, sys.stderr]
    try:
        limits.hold()
        main(arguments)
    finally:
        for stream in streams:
            stream.flush()
