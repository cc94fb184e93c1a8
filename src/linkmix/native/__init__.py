"""The native core: compiled, multi-threaded passes over the rows of Gaussian mixtures.

It is built when linkmix is installed, if there is a C compiler. Without it, or with ``LINKMIX_NATIVE=0`` in the
environment, NumPy computes the same results. ``LINKMIX_NATIVE=avx2`` selects one of the instruction sets of `levels`.

Work beyond about a millisecond is shared among threads: ``OMP_NUM_THREADS`` of them, by default one for each processor
available to this process. Rows are divided into chunks whose size depends only on the shape of the problem, and the
sums of the chunks are added in order, so that no digit of a result depends on the number of threads.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from threading import Thread
from types import ModuleType

import numpy as np

from linkmix.basics.arrays import Array, Floats, Ints

CHUNK_WORK = 2**24
"""Work in one chunk of rows, in operations: about a millisecond."""
CHUNK_ROWS = 3840
"""Smallest number of rows in a chunk, so that clearing and adding its sums pays."""
SUMS_NUMBERS = 2**14
"""Numbers in the sums of all chunks waiting to be added."""

LOOP_COLUMNS = 64
"""With more columns than this, steps are made one by one: LAPACK is faster for matrices of that size."""
PAIR_WORK = 2**9
"""Operations for one pair, approximately."""

FORMS: dict[str, tuple[int, bool]] = {
    "full": (0, False),
    "tied": (0, True),
    "diag": (1, False),
    "spherical": (2, False),
}
"""For each form of covariance: its number in the core, and whether all components share one whitener."""


@dataclass(frozen=True, eq=False)
class Components:
    """Gaussian components as the core represents them; ``reg_covar`` is added to variances."""

    form: str
    means: Floats
    covariances: Floats
    whiteners: Floats
    reg_covar: float


@dataclass(frozen=True, eq=False)
class PairTable:
    """Pairs (n_pairs, 2) of linked rows, and the likelihood of the statements about them if labels agree or differ.

    The constant is added to the log-likelihood.
    """

    pairs: Ints
    if_same: Floats
    if_apart: Floats
    constant: float = 0.0


@dataclass(frozen=True, eq=False)
class Steps:
    """The result of some steps of EM.

    ``trace`` has the log-likelihood before and after each step. ``stuck`` means that the core stopped before a step
    that it must not make, because J would fall or a covariance is singular.
    """

    components: Components
    class_weights: Floats
    cluster_weights: Floats
    trace: list[float]
    converged: bool
    stuck: bool


NO_PAIRS = PairTable(np.empty((0, 2), dtype=np.int64), np.empty(0), np.empty(0))


def _load() -> ModuleType | None:
    wanted = os.environ.get("LINKMIX_NATIVE", "1")
    if wanted == "0":
        return None
    try:
        core = import_module("linkmix.native._core")
    except ImportError:
        return None
    if wanted != "1":
        core.use(wanted)
    return core


def _processors() -> int:
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_core = _load()
_threads = _processors()


def active() -> bool:
    """Whether the native core is used."""
    return _core is not None


def levels() -> list[str]:
    """Instruction sets that the core can use on this processor, the most basic first; none if it is not active."""
    return [] if _core is None else list(_core.levels())


def description() -> str:
    """What computes, in a few words."""
    if _core is None:
        return "NumPy (the native core is not built, or LINKMIX_NATIVE=0)"
    best = _core.use("base")
    _core.use(best)
    return f"native core, {best}, {_threads} thread{'s' if _threads > 1 else ''}"


@contextmanager
def using(level: str | None = None, *, threads: int | None = None) -> Iterator[None]:
    """Use another instruction set, "off" for NumPy, or another number of threads, within a ``with`` block."""
    global _core, _threads
    core_before, threads_before, level_before = _core, _threads, None
    try:
        if level == "off":
            _core = None
        elif level is not None and _core is not None:
            level_before = _core.use(level)
        _threads = threads or _threads
        yield
    finally:
        _core, _threads = core_before, threads_before
        if _core is not None and level_before is not None:
            _core.use(level_before)


def serves(X: Array) -> bool:
    """Whether the core can read these rows."""
    return _core is not None and X.dtype.char in "df" and X.dtype.isnative and X.flags.aligned and X.shape[1] > 0


def _row_work(form: str, n_components: int, n_features: int) -> int:
    """Operations for one row, approximately."""
    return n_components * (n_features * (n_features + 4 if form in ("full", "tied") else 4) + 30)


def chunk_rows(form: str, n_components: int, n_features: int) -> int:
    """Rows in one chunk."""
    return max(CHUNK_ROWS, CHUNK_WORK // _row_work(form, n_components, n_features))


def mixture_sums(
    form: str, X: Array, means: Floats, whiteners: Floats, log_weights: Floats, row_weights: Floats | None
) -> tuple[float, Floats, Floats, Floats]:
    """Log-likelihood of rows under a mixture, and the sums of its responsibilities: weight, first and second moments.

    Parameters
    ----------
    form : str
        Name of the form of covariance.
    X : ndarray of shape (n, d)
        Rows without missing values.
    means : ndarray of shape (C, d)
        The pivots of the moments.
    whiteners : ndarray
        In the shape of the form.
    log_weights : ndarray of shape (C,)
        Logarithm of the weight of each component.
    row_weights : ndarray of shape (n,) or None
        How often each row counts; None if all count once.
    """
    assert _core is not None
    kernel = _core.sums
    number, shared = FORMS[form]
    means, whiteners, log_weights = map(_contiguous, (means, whiteners, log_weights))
    weights = None if row_weights is None else _contiguous(row_weights)

    def sums(first: int, stop: int, out: Floats) -> None:
        kernel(number, shared, X, means, whiteners, log_weights, weights, first, stop, out)

    total = _added(sums, form, X, len(means), extra=1)
    return float(total[0]), *_split(total[1:], form, *means.shape)


def moments(form: str, X: Array, means: Floats, shares: Floats) -> tuple[Floats, Floats, Floats]:
    """Weight, first and second moments about the means, of rows that belong to components with shares (n, C)."""
    assert _core is not None
    kernel = _core.moments
    number, _ = FORMS[form]
    means, shares = _contiguous(means), _contiguous(shares)

    def sums(first: int, stop: int, out: Floats) -> None:
        kernel(number, X, means, shares, first, stop, out)

    return _split(_added(sums, form, X, len(means), extra=0), form, *means.shape)


def log_density(form: str, X: Array, means: Floats, whiteners: Floats) -> Floats:
    """Log-density of each row without missing values under each component, shape (n, C)."""
    assert _core is not None
    kernel = _core.log_density
    number, shared = FORMS[form]
    means, whiteners = _contiguous(means), _contiguous(whiteners)
    out = np.empty((len(X), len(means)))
    size = chunk_rows(form, *means.shape)
    _share(
        [
            partial(kernel, number, shared, X, means, whiteners, first, min(first + size, len(X)), out)
            for first in range(0, len(X), size)
        ]
    )
    return out


def classes(form: str, X: Array, means: Floats, whiteners: Floats, log_weights: Floats, n_classes: int) -> Ints:
    """Most probable class of each row without missing values; the components of a class are consecutive."""
    assert _core is not None
    kernel = _core.classes
    number, shared = FORMS[form]
    means, whiteners, log_weights = map(_contiguous, (means, whiteners, log_weights))
    out = np.empty(len(X), dtype=np.int64)
    arguments = number, shared, X, means, whiteners, log_weights, n_classes
    size = chunk_rows(form, *means.shape)
    _share([partial(kernel, *arguments, first, min(first + size, len(X)), out) for first in range(0, len(X), size)])
    return out


def expect_pairs(
    log_density: Floats, class_weights: Floats, table: PairTable
) -> tuple[float, Floats, Floats, Floats, float, Floats]:
    """E-step of pairs of points whose labels agree or differ.

    Parameters
    ----------
    log_density : ndarray of shape (n, M)
        Log-density of each point in each class.
    class_weights : ndarray of shape (M,)
    table : PairTable
        The statements about the points.

    Returns
    -------
    log_likelihood : float
    labels : ndarray of shape (n, M)
        Sums of label responsibilities of the points.
    must_counts : ndarray of shape (M,)
        Expected labels of pairs that agree, one per pair.
    class_counts : ndarray of shape (M,)
        The same plus both labels of pairs that differ.
    n_apart : float
        Expected number of pairs that differ.
    same : ndarray of shape (n_pairs,)
        Probability that each pair agrees.
    """
    assert _core is not None
    labels = np.empty(log_density.shape)
    counts = np.empty((2, len(class_weights)))
    same = np.empty(len(table.pairs))
    log_likelihood, n_apart = _core.pairs(
        *(_contiguous(log_density), _contiguous(class_weights), table.pairs, table.if_same, table.if_apart),
        *(labels, counts, same),
    )
    return log_likelihood + table.constant, labels, counts[0], counts[1], n_apart, same


def loops(components: Components, pairs: PairTable, free: Array, linked: Array) -> bool:
    """Whether the core makes many steps of EM at once, which it does if one takes less than about a millisecond."""
    return (
        serves(free)
        and serves(linked)
        and _step_work(components, pairs, len(free) + len(linked)) <= CHUNK_WORK
        and components.means.shape[1] <= LOOP_COLUMNS
    )


def _step_work(components: Components, pairs: PairTable, n_rows: int) -> int:
    """Operations of one step of EM, approximately."""
    return n_rows * _row_work(components.form, *components.means.shape) + len(pairs.pairs) * PAIR_WORK


def run(
    components: Components,
    pairs: PairTable,
    free: Array,
    free_weights: Floats | None,
    linked: Array,
    class_weights: Floats,
    cluster_weights: Floats,
    *,
    link_weight: float,
    tol: float,
    max_iter: int,
) -> Steps:
    """Repeat both steps of EM until J gains less than ``tol`` of itself, or ``max_iter`` times.

    Each class has its own clusters: ``cluster_weights`` is (M, K). The rows have no missing values.
    """
    assert _core is not None
    number, shared = FORMS[components.form]
    arrays = [
        np.array(array, dtype=np.float64, order="C")
        for array in (components.means, components.covariances, components.whiteners, class_weights, cluster_weights)
    ]
    weights = None if free_weights is None else _contiguous(free_weights)
    # Signals such as Ctrl-C are handled between calls, so no call may take long.
    most = 2**6 * CHUNK_WORK // (1 + _step_work(components, pairs, len(free) + len(linked)))
    trace: list[float] = []
    status = 0
    while True:
        left = max_iter - max(0, len(trace) - 1)
        some = np.empty(min(left, most) + 1)
        steps, status = _core.run(
            *(number, shared, free, weights, linked, pairs.pairs, pairs.if_same, pairs.if_apart, pairs.constant),
            *(link_weight, components.reg_covar, tol, *arrays, len(class_weights), some),
        )
        trace += some[1 if trace else 0 : steps + 1].tolist()
        if status or left <= most:
            break
    means, covariances, whiteners, class_weights, cluster_weights = arrays
    after = Components(components.form, means, covariances, whiteners, components.reg_covar)
    return Steps(after, class_weights, cluster_weights, trace, status == 1, status == 2)


def _contiguous(array: Array) -> Floats:
    return np.ascontiguousarray(array, dtype=np.float64)


def _second_shape(form: str, n_components: int, n_features: int) -> tuple[int, ...]:
    if form in ("full", "tied"):
        return n_components, n_features, n_features
    return (n_components, n_features) if form == "diag" else (n_components,)


def _split(sums: Floats, form: str, n_components: int, n_features: int) -> tuple[Floats, Floats, Floats]:
    weight, first, second = np.split(sums, [n_components, n_components * (1 + n_features)])
    return (
        weight,
        first.reshape(n_components, n_features),
        second.reshape(_second_shape(form, n_components, n_features)),
    )


def _added(kernel: Callable[[int, int, Floats], None], form: str, X: Array, n_components: int, extra: int) -> Floats:
    """Sums over chunks of rows, added in order, whichever thread computed them."""
    n, d = X.shape
    size = extra + n_components * (1 + d) + int(np.prod(_second_shape(form, n_components, d)))
    rows = chunk_rows(form, n_components, d)
    if n <= rows:
        total = np.zeros(size)
        kernel(0, n, total)
        return total
    total = np.zeros(size)
    at_once = max(2 * _threads, SUMS_NUMBERS // size)
    parts = np.empty((min(at_once, -(-n // rows)), size))
    for start in range(0, n, at_once * rows):
        firsts = range(start, min(start + at_once * rows, n), rows)
        _share([partial(kernel, first, min(first + rows, n), part) for first, part in zip(firsts, parts, strict=False)])
        for _, part in zip(firsts, parts, strict=False):
            total += part
    return total


def _share(tasks: list[Callable[[], None]]) -> None:
    """Run all tasks, in several threads if possible."""
    waiting = deque(tasks)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            while True:
                try:
                    task = waiting.popleft()
                except IndexError:
                    return
                task()
        except BaseException as failure:
            waiting.clear()
            failures.append(failure)

    helpers = [Thread(target=work, daemon=True) for _ in range(min(_threads, len(tasks)) - 1)]
    try:
        for helper in helpers:
            helper.start()
        work()
        for helper in helpers:
            helper.join()
    finally:  # after Ctrl-C the other threads find nothing to do
        waiting.clear()
    if failures:
        raise failures[0]
