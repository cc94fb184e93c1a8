"""Refits in a background thread, so that answering never waits for one."""

import threading
from collections.abc import Callable
from typing import Generic, Self, TypeVar

S = TypeVar("S")
R = TypeVar("R")


class Background(Generic[S, R]):
    """Runs fits in a background thread, one at a time, each on a snapshot of its input.

    Parameters
    ----------
    snapshot : callable
        Returns everything that a fit needs. Called with the lock held.
    fit : callable
        Computes a result from a snapshot. This is the slow part; called without the lock.
    adopt : callable
        Stores a result. Called with the lock held.
    lock : threading.Condition, optional
        Hold it to change what `snapshot` reads or to read what `adopt` changes. A new one by default.
    changed : callable, optional
        Called with the lock held, whenever a fit has started or ended.

    Attributes
    ----------
    lock : threading.Condition
    running : bool
        Whether a fit is running.
    error : Exception or None
        The error of the last fit if it failed, in which case nothing was adopted.

    Examples
    --------
    >>> with Background(lambda: 2, lambda number: number**2, print) as refits:
    ...     refits.want()
    ...     refits.wait()
    4
    True
    """

    def __init__(
        self,
        snapshot: Callable[[], S],
        fit: Callable[[S], R],
        adopt: Callable[[R], None],
        *,
        lock: threading.Condition | None = None,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.lock = threading.Condition() if lock is None else lock
        self.running = False
        self.error: Exception | None = None
        self._snapshot, self._fit, self._adopt, self._changed = snapshot, fit, adopt, changed
        self._wanted = self._stopped = False
        threading.Thread(target=self._work, daemon=True).start()

    def __enter__(self) -> Self:
        """Enter the context."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop the thread."""
        self.stop()

    @property
    def busy(self) -> bool:
        """Whether a fit is running or requested."""
        return self.running or self._wanted

    def want(self) -> None:
        """Request a fit. If one is running, exactly one more follows, however many requests are made meanwhile."""
        with self.lock:
            self._wanted = True
            self.lock.notify_all()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until no fit is running or requested; return False if that takes longer than ``timeout`` seconds."""
        with self.lock:
            return self.lock.wait_for(lambda: not self.busy, timeout)

    def stop(self) -> None:
        """Start no more fits. A running one is neither waited for nor adopted."""
        with self.lock:
            self._stopped = True
            self.lock.notify_all()

    def _work(self) -> None:
        while True:
            with self.lock:
                self.lock.wait_for(lambda: self._wanted or self._stopped)
                if self._stopped:
                    return
                self._wanted, self.running = False, True
                snapshot = self._snapshot()
                self._changed()
            error = None
            try:
                found = self._fit(snapshot)
                with self.lock:
                    if not self._stopped:
                        self._adopt(found)
            except Exception as failure:  # the last result is kept, and answering goes on
                error = failure
            with self.lock:
                self.running, self.error = False, error
                self._changed()
                self.lock.notify_all()
