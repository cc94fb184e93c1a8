"""What long work tells: messages to the logger "linkmix", and a progress bar for a person who asked for it.

The logger has no handler of its own, so nothing is shown unless the user asks for it, as in
``logging.basicConfig(level=logging.INFO)``. INFO says what begins and what came of it, DEBUG tells of each fit.
"""

import logging
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
LOG = logging.getLogger("linkmix")
LOG.addHandler(logging.NullHandler())


def follow(
    items: Iterable[T], total: int, what: str, unit: str, *, verbose: bool = False, done: int = 0
) -> Iterator[T]:
    """The same items, with messages, and a progress bar if asked for and the package tqdm is installed.

    Parameters
    ----------
    items : iterable
        What is worked on; it may be lazy.
    total : int
        Number of all items, also of those that are done already.
    what, unit : str
        What is going on, and the name of one item.
    verbose : bool, default=False
        Whether to show a bar.
    done : int, default=0
        Number of items that are done already.

    Yields
    ------
    object
        The items.

    Examples
    --------
    >>> sum(follow([1, 2, 3], 3, "adding", "number"))
    6
    """
    begin = time.perf_counter()
    LOG.debug("%s: %d of %d %ss to do", what, total - done, total, unit)
    if verbose:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            pass
        else:
            items = tqdm(items, total=total, initial=done, desc=what, unit=unit, smoothing=0.02)
    try:
        for item in items:
            done += 1
            yield item
    finally:
        LOG.info("%s: %d of %d %ss in %.1f s", what, done, total, unit, time.perf_counter() - begin)
