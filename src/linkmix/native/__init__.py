"""The native core: compiled, multi-threaded passes over the rows of Gaussian and Student-t mixtures.

It is built when linkmix is installed, if there is a C compiler. Without it, or with ``LINKMIX_NATIVE=0`` in the
environment, NumPy computes the same results. ``LINKMIX_NATIVE=avx2`` selects one of the instruction sets of `levels`.

Work beyond about a millisecond is shared among threads: ``OMP_NUM_THREADS`` of them, by default one for each processor
available to this process. Rows are divided into chunks whose size depends only on the shape of the problem, and the
sums of the chunks are added in order, so that no digit of a result depends on the number of threads.
"""

import os
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from threading import Thread
from types import ModuleType
from typing import NamedTuple

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
SIGNAL_SECONDS = 0.06
"""Time after which the loop looks for signals such as Ctrl-C."""

FORMS: dict[str, tuple[int, bool]] = {
    "full": (0, False),
    "tied": (0, True),
    "diag": (1, False),
    "spherical": (2, False),
}
"""For each form of covariance: its number in the core, and whether all components share one whitener."""

PREDICTIONS = {"log_joint": 0, "probabilities": 1, "classes": 2, "log_density": 3}
"""The numbers of what `predict` tells, in the core."""
SINGLE_ERROR = 1e-4
"""Largest error of a log-density that is computed in single precision, approximately."""


@dataclass(frozen=True, eq=False)
class Components:
    """Elliptical components as the core represents them, and how they are estimated.

    Attributes
    ----------
    form : str
        Name of the form of covariance.
    means, covariances, whiteners : ndarray
        In the shapes of the form.
    reg_covar : float
        Added to variances.
    degrees_of_freedom : ndarray of shape (C,) or None
        Of Student-t components; None for Gaussian ones.
    learns_degrees : bool
        Whether the degrees of freedom are estimated.
    prior : float
        Number of pseudo-observations of the pooled covariance.
    pooled : ndarray or None
        In the shape of one covariance; None without a prior.
    """

    form: str
    means: Floats
    covariances: Floats
    whiteners: Floats
    reg_covar: float
    degrees_of_freedom: Floats | None = None
    learns_degrees: bool = False
    prior: float = 0.0
    pooled: Floats | None = None


@dataclass(frozen=True, eq=False)
class Elliptical:
    """Gaussian components, or Student-t components with their degrees of freedom, to be evaluated.

    ``variances`` (C, d), or (1, d) if all components share them, are the diagonals of full covariances.
    """

    form: str
    means: Floats
    whiteners: Floats
    variances: Floats | None = None
    degrees: Floats | None = None

    @property
    def lowest_in_floats(self) -> float | None:
        """How far below the largest density a row may be to be computed in single precision; None if none may be.

        The terms of a whitened coordinate are up to ``loss`` times as large as its standard deviation, so that squared
        distances have a relative error of about ``loss`` times the precision. In a Student-t density, that is the
        absolute error of a logarithm.
        """
        loss = 1.0
        if self.variances is not None:
            loss = float(np.sqrt(np.einsum("...ji,...j->...i", self.whiteners**2, self.variances).max()))
        most = SINGLE_ERROR / (4 * float(np.finfo(np.float32).epsneg) * loss)
        n_features = self.means.shape[1]
        if self.degrees is not None:
            return -np.inf if float(self.degrees.max()) + n_features < most else None
        return -most if 2 * n_features < most else None


@dataclass(frozen=True, eq=False)
class Columns:
    """Which columns of rows are read (None for all), and which of these are replaced by asinh((x - middle) / width)."""

    used: Ints | None
    compressed: Ints
    middles: Floats
    widths: Floats


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
class NetworkTable:
    """A network of chunklets whose points are drawn independently; links are observations of their labels.

    Attributes
    ----------
    plan : ndarray of int
        The network as the core reads it.
    chunklets : ndarray of shape (n_linked,)
        Chunklet of each linked row, a node of the network.
    exponents : ndarray of shape (n_nodes,)
        Weight of the points of each chunklet.
    log_same, log_different : ndarray of shape (n_edges,)
        Log-potentials of equal and of different labels.
    constant : float
        Added to the log-likelihood.
    """

    plan: Ints
    chunklets: Ints
    exponents: Floats
    log_same: Floats
    log_different: Floats
    constant: float = 0.0


LinkTable = PairTable | NetworkTable
"""What links say, as the core represents it."""


@dataclass(frozen=True, eq=False)
class Steps:
    """The result of some steps of EM.

    ``trace`` has the objective, J plus the log-prior, before and after each step. ``stuck`` means that the core stopped
    before a step that it must not make, because the objective would fall or a covariance is singular. The trace is
    empty if it could not even compute the first objective.
    """

    components: Components
    class_weights: Floats
    cluster_weights: Floats
    log_likelihood: float
    trace: list[float]
    converged: bool
    stuck: bool


ALL_COLUMNS = Columns(None, np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))
NO_PAIRS = PairTable(np.empty((0, 2), dtype=np.int64), np.empty(0), np.empty(0))


def _load() -> ModuleType | None:
    wanted = os.environ.get("LINKMIX_NATIVE", "1")
    if wanted == "0":
        return None
    try:
        core = import_module("linkmix.native._core")
    except ImportError as error:
        global _missing
        _missing = str(error)
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


_missing = ""
_core = _load()
_threads = _processors()


def active() -> bool:
    """Whether the native core is used."""
    return _core is not None


def warn_if_missing() -> None:
    """Say once that fits are slow, if the core should be there and is not."""
    global _missing
    if _missing and _core is None:
        reason, _missing = _missing, ""
        warnings.warn(
            f"linkmix computes with NumPy, more slowly, because its compiled core is missing ({reason}): "
            "install a wheel (pip install --only-binary linkmix linkmix), or a C compiler (gcc or clang) and linkmix "
            "again; LINKMIX_NATIVE=0 in the environment says that it is meant so",
            stacklevel=3,
        )


def levels() -> list[str]:
    """Instruction sets that the core can use on this processor, the most basic first; none if it is not active."""
    return [] if _core is None else list(_core.levels())


def description() -> str:
    """What computes, in a few words."""
    if _core is None:
        return "NumPy (the native core is missing, or LINKMIX_NATIVE=0)"
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


@dataclass(frozen=True, eq=False)
class MixtureSums:
    """Sums over the rows of a mixture.

    Attributes
    ----------
    log_likelihood : float
    weight : ndarray of shape (C,)
        Sums of the responsibilities.
    scaled_weight : ndarray of shape (C,)
        The same, each row counted with its expected precision; for Gaussian components the weight.
    log_gap : ndarray of shape (C,)
        What degrees of freedom are estimated from; 0 unless they are learned.
    first, second : ndarray
        Moments about the means, weighted as in ``scaled_weight``.
    """

    log_likelihood: float
    weight: Floats
    scaled_weight: Floats
    log_gap: Floats
    first: Floats
    second: Floats


def mixture_sums(components: Components, X: Array, log_weights: Floats, row_weights: Floats | None) -> MixtureSums:
    """Log-likelihood of rows under a mixture, and the sums of its responsibilities.

    Parameters
    ----------
    components : Components
        The means are the pivots of the moments.
    X : ndarray of shape (n, d)
        Rows without missing values.
    log_weights : ndarray of shape (C,)
        Logarithm of the weight of each component.
    row_weights : ndarray of shape (n,) or None
        How often each row counts; None if all count once.
    """
    assert _core is not None
    kernel = _core.sums
    form = components.form
    number, shared = FORMS[form]
    means, whiteners, log_weights = map(_contiguous, (components.means, components.whiteners, log_weights))
    student = components.degrees_of_freedom is not None
    degrees, weights = (
        None if array is None else _contiguous(array) for array in (components.degrees_of_freedom, row_weights)
    )
    given = number, shared, X, means, whiteners, degrees, components.learns_degrees, log_weights, weights

    def sums(first: int, stop: int, out: Floats) -> None:
        kernel(*given, first, stop, out)

    n_components = len(means)
    tail = 2 * n_components if student else 0
    total = _added(sums, form, X, n_components, extra=1 + tail)
    scaled_weight, first, second = _split(total[1 : len(total) - tail], form, *means.shape)
    weight, log_gap = scaled_weight, np.zeros(n_components)
    if student:
        weight, log_gap = np.split(total[-tail:], 2)
    return MixtureSums(float(total[0]), weight, scaled_weight, log_gap, first, second)


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


def predict(
    what: str,
    X: Array,
    components: Elliptical,
    log_weights: Floats,
    log_mixing: Floats | None,
    n_classes: int,
    *,
    temperature: float = 1.0,
    columns: Columns | None = None,
) -> Array | None:
    """What a mixture tells about each row; None if a value is missing.

    Rows of single precision are computed in single precision, except for rows that are so far from all components that
    their log-densities would lose too many digits: log-densities are right to about `SINGLE_ERROR`.

    Parameters
    ----------
    what : {"log_joint", "probabilities", "classes", "log_density"}
        Log-densities or probabilities of the classes (n, M), the most probable class (n,), or the log-density (n,).
    X : ndarray of shape (n, d)
        Rows.
    components : Elliptical
        The components, for the columns as they are read.
    log_weights : ndarray of shape (C,)
        Logarithm of the weight of each component.
    log_mixing : ndarray of shape (M, C) or None
        If classes share the components: what is added to ``log_weights`` for each class, at most 0. None if the
        components belong to the classes, those of a class one after the other.
    n_classes : int
        Number of classes.
    temperature : float
        What log-densities are divided by before they are turned into probabilities.
    columns : Columns or None
        Which columns are read, and how; None for all of them, as they are.
    """
    assert _core is not None
    kernel = _core.predict
    number, shared = FORMS[components.form]
    wide = what in ("log_joint", "probabilities")
    out = np.empty((len(X), n_classes) if wide else len(X), dtype=np.int64 if what == "classes" else np.float64)
    means, whiteners, log_weights = map(_contiguous, (components.means, components.whiteners, log_weights))
    columns = columns or ALL_COLUMNS
    operands = (
        *(PREDICTIONS[what], number, shared, X, columns.used, means, whiteners),
        *(None if array is None else _contiguous(array) for array in (components.degrees, log_weights, log_mixing)),
        *(n_classes, 1 / temperature, columns.compressed, columns.middles, columns.widths),
        components.lowest_in_floats if X.dtype.char == "f" else None,
    )
    size = chunk_rows(components.form, *means.shape)
    fine: list[bool] = []

    def some(first: int) -> None:
        fine.append(kernel(*operands, first, min(first + size, len(X)), out))

    _share([partial(some, first) for first in range(0, len(X), size)])
    return out if all(fine) else None


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


def infer_network(
    plan: Ints, node: Floats, log_same: Floats, log_different: Floats, n_components: int
) -> tuple[float, Floats, Floats, Floats, bool]:
    """Labels of a network of chunklets.

    Parameters
    ----------
    plan : ndarray of int
        The network, flattened.
    node : ndarray of shape (n_nodes, M)
        Log-potentials of the labels of each node.
    log_same, log_different : ndarray of shape (n_edges,)
        Log-potentials of equal and of different labels.
    n_components : int
        Number of connected components.

    Returns
    -------
    log_partition : float
        Not a number if no labelling is possible.
    component_log_partition : ndarray of shape (n_components,)
    marginals : ndarray of shape (n_nodes, M)
    edge_same : ndarray of shape (n_edges,)
        Probability that both ends have the same label.
    converged : bool
        Whether loopy messages met their tolerance.
    """
    assert _core is not None
    marginals, edge_same, partition = np.empty(node.shape), np.empty(len(log_same)), np.empty(n_components)
    log_partition, converged = _core.network(
        *(plan, node.shape[1], _contiguous(node), _contiguous(log_same), _contiguous(log_different)),
        *(marginals, edge_same, partition),
    )
    return log_partition, partition, marginals, edge_same, converged


def components(pairs: Ints, n_nodes: int) -> Ints:
    """Connected component of each node of a graph with these edges, numbered by first appearance."""
    assert _core is not None
    ids = np.empty(n_nodes, dtype=np.int64)
    _core.components(np.ascontiguousarray(pairs, dtype=np.int64), ids)
    return ids


def sweep(costs: Floats, begin: Ints, other: Ints, rewards: Floats, order: Ints, labels: Ints) -> None:
    """One sweep over rows in which each takes the class where it costs least, given the classes of the others.

    Parameters
    ----------
    costs : ndarray of shape (n, M)
        Cost of each class for each row.
    begin, other, rewards : ndarray of shape (n + 1,), (n_edges,), (n_edges,)
        Edges ``begin[i]`` to ``begin[i + 1]`` of row i lead to the rows ``other``, and lower the cost of their class.
    order : ndarray of int
        The rows in the order of the sweep.
    labels : ndarray of shape (n,)
        Classes, which change in place; M stands for none.
    """
    assert _core is not None
    _core.sweep(costs.shape[1], _contiguous(costs), begin, other, _contiguous(rewards), order, labels)


class Group(NamedTuple):
    """Rows without missing values, how often each counts, and their class numbers, -1 where not known."""

    X: Array
    weights: Floats | None = None
    known: Ints | None = None

    def to_native(self) -> tuple[Array, Floats | None, Ints | None]:
        """The arrays as the core reads them."""
        weights, known = self.weights, self.known
        return (
            self.X,
            None if weights is None else _contiguous(weights),
            None if known is None else np.ascontiguousarray(known, dtype=np.int64),
        )


def loops(components: Components, n_free: int) -> bool:
    """Whether the core makes many steps of EM at once: it does if free rows are one chunk, which no threads share.

    Linked rows may be many: what their labels take beside their densities, and that is most of it, no threads share.
    """
    one_chunk = n_free <= chunk_rows(components.form, *components.means.shape)
    return one_chunk and components.means.shape[1] <= LOOP_COLUMNS


def run(
    components: Components,
    links: LinkTable,
    free: Group,
    told: Group,
    linked: Group,
    class_weights: Floats,
    cluster_weights: Floats,
    *,
    shared_clusters: bool,
    link_weight: float,
    least_gain: float,
    max_iter: int,
) -> Steps:
    """Repeat both steps of EM until the objective gains at most ``least_gain`` (0: never stop), or ``max_iter`` times.

    ``free`` are rows of unknown class, ``told`` of known class. ``cluster_weights`` is (M, K), or (M, C) with
    ``shared_clusters``.
    """
    assert _core is not None
    number, tied = FORMS[components.form]
    degrees, pooled = components.degrees_of_freedom, components.pooled
    arrays = [components.means, components.covariances, components.whiteners, class_weights, cluster_weights]
    if degrees is not None:
        arrays.append(degrees)
    state = np.concatenate([array.ravel() for array in arrays], dtype=np.float64)
    given = (
        *(number, tied, shared_clusters, degrees is not None, components.learns_degrees),
        *(*free.to_native()[:2], told.to_native(), linked.to_native()),
        tuple(vars(links).values()),
        *(link_weight, components.reg_covar, components.prior, None if pooled is None else _contiguous(pooled)),
        *(least_gain, SIGNAL_SECONDS, len(class_weights), len(components.means)),
    )
    objectives = np.empty(max_iter + 1)
    steps, status, log_likelihood = _core.run(*given, state, objectives)
    trace = [] if np.isnan(objectives[0]) else objectives[: steps + 1].tolist()
    ends = np.cumsum([array.size for array in arrays])[:-1]
    after = [part.reshape(array.shape) for part, array in zip(np.split(state, ends), arrays, strict=True)]
    means, covariances, whiteners, class_weights, cluster_weights, *rest = after
    found = replace(
        components,
        means=means,
        covariances=covariances,
        whiteners=whiteners,
        degrees_of_freedom=rest[0] if rest else None,
    )
    return Steps(found, class_weights, cluster_weights, log_likelihood, trace, status == 1, status == 2)


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
    """Run all tasks, in several threads if possible: as many as the system starts, or none but this one."""
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

    helpers: list[Thread] = []
    try:
        for _ in range(min(_threads, len(tasks)) - 1):
            helper = Thread(target=work, daemon=True)
            try:
                helper.start()
            except RuntimeError:  # the system has no more threads, or no memory for the stack of one
                break
            helpers.append(helper)
        work()
        for helper in helpers:
            helper.join()
    finally:  # after Ctrl-C the other threads find nothing to do
        waiting.clear()
    if failures:
        raise failures[0]
