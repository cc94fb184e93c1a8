"""A limit on memory (``ulimit -v``), and what libraries take at first use, asked for where its lack can be said."""

from functools import cache

BUFFERS = 2**27
"""Bytes that BLAS takes at its first calls, and more."""


def limit() -> int | None:
    """Bytes of address space that this process may have; None if there is no limit."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows has no such limits
        return None
    found = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if found == resource.RLIM_INFINITY else found


@cache
def reserve() -> None:
    """Let BLAS take its buffers now, if memory is limited; a MemoryError if there is no room for them.

    OpenBLAS takes them at its first call and tries for ever where it gets none. NumPy and SciPy have one each.
    """
    if limit() is None:
        return
    import numpy as np
    from scipy.linalg.blas import dsymv

    np.empty(BUFFERS, dtype=np.uint8)
    square = np.eye(400)  # small products need no buffer
    square @ square
    dsymv(1.0, square, square[0])
