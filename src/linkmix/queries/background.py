"""Refits in a thread of their own, so that answering never waits for one."""

import threading
from collections.abc import Callable
from typing import Generic, Self, TypeVar

S = TypeVar("S")
R = TypeVar("R")


class Background(Generic[S, R]):
    """Fits to a snapshot, one at a time, while everything else goes on.

    Parameters
    ----------
    snapshot : callable
        Gives all that a fit needs. Called while the lock is held.
    fit : callable
        From a snapshot to a result. The slow part: called without the lock.
    adopt : callable
        Takes over a result. Called while the lock is held.
    lock : threading.Condition, optional
        Held by whoever changes what `snapshot` reads or reads what `adopt` changes; its own by default.
    changed : callable, optional
        Called while the lock is held, when a fit has begun or ended.

    Attributes
    ----------
    lock : threading.Condition
    running : bool
        Whether a fit is going on.
    error : Exception or None
        What the last fit failed with. Nothing was adopted then.

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
        """Use it for a while."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop it."""
        self.stop()

    @property
    def busy(self) -> bool:
        """Whether a fit is going on or wanted."""
        return self.running or self._wanted

    def want(self) -> None:
        """Ask for a fit. If one is going on, another one follows; more wishes make no more of them."""
        with self.lock:
            self._wanted = True
            self.lock.notify_all()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until no fit is going on or wanted; False if the time, in seconds, was over before."""
        with self.lock:
            return self.lock.wait_for(lambda: not self.busy, timeout)

    def stop(self) -> None:
        """Begin no fit any more. One that is going on is not waited for, and not adopted."""
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
            except Exception as failure:  # the last result stays, and answers go on
                error = failure
            with self.lock:
                self.running, self.error = False, error
                self._changed()
                self.lock.notify_all()
