"""How a command imports what takes long to import."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from linkmix.app.cli.failures import prepare_memory


@contextmanager
def imports_that_stay() -> Iterator[None]:
    """Keep the garbage collector away from modules that are imported in this block.

    They stay to the end. The collector would look through them again and again while they are imported and while the
    command works, and once more at its end: a fifth of the time of a small fit. Where scikit-learn, which makes most of
    these objects, has been imported before, such as in a notebook, the collector works as always.
    """
    prepare_memory()
    if "sklearn" in sys.modules or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
