"""The EM engine: densities times a coupling, and nothing else.

Free points and linked points part at the door. Free points are read in blocks, and each block yields sums that add up;
linked points are few and stay together, since the coupling needs all of them at once. Where the free points are, in
memory, in a file or on a cluster, decides who adds these sums and nothing else.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from linkmix import native
from linkmix.arrays import Array, Floats, Ints, has_gaps, log_sum_exp, shares
from linkmix.couplings.base import BoundCoupling, LinkExpectation
from linkmix.densities.base import Density, Statistics

ROUNDING = 1e-9
"""A fall of the objective by less than this share of it is rounding."""
BLOCK_NUMBERS = 2**16
"""Numbers in one block of free points: half a megabyte, so that all that is made of them stays in cache."""
PORTION_NUMBERS = 2**22
"""Numbers in one portion of free points, the most that is read at once: 32 megabytes.

The sums of portions are added in their order, also of points in memory: no digit depends on where points come from.
"""
SMALLEST_CLUSTER_WEIGHT = 1e-300


@dataclass(frozen=True)
class Parameters:
    """All that EM estimates.

    Attributes
    ----------
    class_weights : ndarray of shape (M,)
    cluster_weights : ndarray of shape (M, K), or (M, M * K)
        Each class has K components of its own, or each class mixes the whole pool of components.
    components : object
        Parameters of the M * K components of the density.
    reliability : ndarray of shape (n_annotators,)
        How often the links of each annotator are right, where the coupling learns that.
    shared_clusters : bool
        Whether all classes mix one pool of components.
    """

    class_weights: Floats
    cluster_weights: Floats
    components: Any
    reliability: Floats = field(default_factory=lambda: np.empty(0))
    shared_clusters: bool = False


@dataclass(frozen=True)
class Model:
    """What is fitted: a density, a coupling that knows its links, and how much a link counts against a free point."""

    density: Density[Any, Any]
    coupling: BoundCoupling
    link_weight: float = 1.0


@dataclass(frozen=True)
class Rows:
    """Rows in memory, each of which counts on its own: how often, and their class numbers, -1 where not known."""

    X: Array
    weights: Floats | None = None
    known: Ints | None = None

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, rows: slice | Array) -> "Rows":
        weights, known = self.weights, self.known
        return Rows(self.X[rows], None if weights is None else weights[rows], None if known is None else known[rows])

    @cached_property
    def complete(self) -> bool:
        """Whether no value is missing."""
        return self.X.dtype.kind == "f" and not has_gaps(self.X)

    def portions(self) -> "Iterator[Rows]":
        """Slices that are added up one after the other."""
        size = portion_rows(self.X.shape[1])
        return (self[first : first + size] for first in range(0, len(self), size))


def portion_rows(n_features: int) -> int:
    """Rows in one portion."""
    return max(1, PORTION_NUMBERS // max(1, n_features))


@dataclass(frozen=True)
class FreeSums(Statistics):
    """What an E-step knows of free rows. The sums of two sets of rows add up to those of both."""

    log_likelihood: float
    statistics: Statistics
    cluster_counts: Floats  # the shape of the cluster weights
    class_counts: Floats  # (M,)


class FreeRows(Protocol):
    """Free rows that are somewhere else: read from a file in each step, or on the workers of a cluster."""

    def sums(self, density: Density[Any, Any], parameters: Parameters) -> FreeSums | None:
        """Sums over all rows, as `free_sums` finds them; None if there are no rows."""


@dataclass(frozen=True)
class Data:
    """Rows that count on their own, and rows that are in links, in the order the coupling knows them by.

    Weights say how often a row counts; known labels are class numbers, -1 where the label is not known. A linked row
    of weight w counts as w copies that share its label. Free rows that are not an array here bring both themselves.
    """

    free: Array | FreeRows
    linked: Array
    free_weights: Floats | None = None
    linked_weights: Floats | None = None
    free_known: Ints | None = None
    linked_known: Ints | None = None

    @cached_property
    def portions(self) -> list[Rows]:
        """The free rows in memory, portion by portion."""
        assert isinstance(self.free, np.ndarray)
        return list(Rows(self.free, self.free_weights, self.free_known).portions())

    def free_sums(self, density: Density[Any, Any], parameters: Parameters) -> FreeSums | None:
        """Sums over all free rows; None if there are none."""
        if not isinstance(self.free, np.ndarray):
            return self.free.sums(density, parameters)
        return added(free_sums(density, parameters, rows) for rows in self.portions)


@dataclass(frozen=True)
class Expectation:
    """What an E-step knows of all points: J, and the sums that the M-step needs."""

    log_likelihood: float
    statistics: Statistics
    cluster_counts: Floats  # the shape of the cluster weights
    free_class_counts: Floats  # (M,)
    links: LinkExpectation


@dataclass(frozen=True)
class Fit:
    """The end of a fit.

    Attributes
    ----------
    parameters : Parameters
    log_likelihood : float
        J of the parameters.
    trace : ndarray
        What EM climbs, J plus the logarithm of the priors if there are any: of the start and after each M-step.
    converged : bool
    """

    parameters: Parameters
    log_likelihood: float
    trace: Floats
    converged: bool


def cluster_log_joint(density: Density[Any, Any], parameters: Parameters, X: Array) -> Floats:
    """Log of cluster weight times density, ``log pi_mk + log p(x | m, k)``, shape (n, M, K), or (n, M, M * K)."""
    log_density = density.log_density(parameters.components, X)
    log_weights = np.log(parameters.cluster_weights)
    if parameters.shared_clusters:
        return log_density[:, None, :] + log_weights
    return log_density.reshape(len(X), *log_weights.shape) + log_weights


def class_log_joint(density: Density[Any, Any], parameters: Parameters, X: Array) -> Floats:
    """Log of class weight times density, ``log a_m + log p(x | m)``, shape (n, M)."""
    log_joint = np.empty((len(X), len(parameters.class_weights)))
    first = 0
    for some in _blocks(Rows(X), parameters.cluster_weights):
        log_joint[first : first + len(some)] = log_sum_exp(cluster_log_joint(density, parameters, some.X))
        first += len(some)
    log_joint += np.log(parameters.class_weights)
    return log_joint


def most_probable_classes(density: Density[Any, Any], parameters: Parameters, X: Array) -> Ints:
    """Class of each row, from the row alone; of all that is computed on the way, only a block at a time is kept."""
    log_weights = np.log(parameters.class_weights)
    components = density.to_native(parameters.components)
    if components is not None and not parameters.shared_clusters and native.serves(X) and not has_gaps(X):
        return native.classes(
            *(components.form, X, components.means, components.whiteners),
            *((log_weights[:, None] + np.log(parameters.cluster_weights)).ravel(), len(log_weights)),
        )
    classes = np.empty(len(X), dtype=np.int64)
    first = 0
    for some in _blocks(Rows(X), parameters.cluster_weights):
        log_joint = log_sum_exp(cluster_log_joint(density, parameters, some.X)) + log_weights
        log_joint.argmax(axis=1, out=classes[first : first + len(some)])
        first += len(some)
    return classes


def label_log_density(class_log_density: Floats, data: Data) -> Floats:
    """What the coupling sees of the linked rows: their log-density in each class, weights and known labels applied."""
    if data.linked_weights is not None:
        class_log_density = class_log_density * data.linked_weights[:, None]
    return _known(class_log_density, data.linked_known)


def expect(model: Model, data: Data, parameters: Parameters) -> Expectation:
    """E-step over all points."""
    within = cluster_log_joint(model.density, parameters, data.linked)
    log_class = log_sum_exp(within)  # (n_linked, M)
    links = model.coupling.expect(label_log_density(log_class, data), parameters.class_weights, parameters.reliability)
    labels = model.link_weight * links.label_weights
    if data.linked_weights is not None:
        labels = labels * data.linked_weights[:, None]
    statistics, cluster_counts = _sums(model.density, parameters, data.linked, within, labels)

    log_likelihood = model.link_weight * links.log_likelihood
    free = data.free_sums(model.density, parameters)
    if free is None:
        no_counts = np.zeros(len(parameters.class_weights))
        return Expectation(log_likelihood, statistics, cluster_counts, no_counts, links)
    return Expectation(
        log_likelihood + free.log_likelihood,
        statistics + free.statistics,
        cluster_counts + free.cluster_counts,
        free.class_counts,
        links,
    )


def added(sums: Iterable[FreeSums]) -> FreeSums | None:
    """Sums of sets of rows, one after the other; None if there are none."""
    total = None
    for some in sums:
        total = some if total is None else total + some
    return total


def free_sums(density: Density[Any, Any], parameters: Parameters, rows: Rows) -> FreeSums:
    """E-step of rows that count on their own."""
    if rows.known is None:
        return _plain_sums(density, parameters, rows)
    log_class_weights = np.log(parameters.class_weights)
    total = None
    for some in _blocks(rows, parameters.cluster_weights):
        within = cluster_log_joint(density, parameters, some.X)
        log_joint = _known(log_sum_exp(within) + log_class_weights, some.known)  # (n, M)
        log_row = log_sum_exp(log_joint)
        labels = shares(log_joint)
        if some.weights is not None:
            log_row = log_row * some.weights
            labels *= some.weights[:, None]
        sums = _sums(density, parameters, some.X, within, labels)
        block = FreeSums(float(log_row.sum()), *sums, labels.sum(axis=0))
        total = block if total is None else total + block
    assert total is not None
    return total


def maximise(model: Model, expectation: Expectation, parameters: Parameters, *, cautiously: bool = False) -> Parameters:
    """M-step. The cautious one never lowers J, also where a density adds something to its maximum."""
    step = model.density.maximize_cautiously if cautiously else model.density.maximize
    counts = expectation.cluster_counts
    per_class = counts.sum(axis=1, keepdims=True)
    shares = counts / np.where(per_class > 0, per_class, 1.0)
    cluster_weights = np.where(per_class > 0, np.maximum(shares, SMALLEST_CLUSTER_WEIGHT), parameters.cluster_weights)
    # Free points and links enter the objective of the class weights as free + weight * links: divide by the weight.
    free_counts = expectation.free_class_counts / model.link_weight
    return Parameters(
        model.coupling.class_weights(free_counts, expectation.links, parameters.class_weights),
        cluster_weights,
        step(expectation.statistics, parameters.components),
        model.coupling.reliability(expectation.links, parameters.reliability),
        parameters.shared_clusters,
    )


def log_prior(model: Model, parameters: Parameters) -> float:
    """Logarithm of the priors of the parameters; zero unless the density or the coupling has one."""
    return model.density.log_prior(parameters.components) + model.link_weight * model.coupling.log_prior(
        parameters.reliability
    )


def fit(model: Model, data: Data, start: Parameters, *, tol: float, max_iter: int) -> Fit:
    """Repeat both steps until the objective gains less than ``tol`` of itself, or ``max_iter`` times.

    With ``tol=0`` exactly ``max_iter`` M-steps are made. The last thing done is always an E-step.
    """
    native_steps = _native_steps(model, data, start)
    parameters, converged, log_likelihood = start, False, np.nan
    trace: list[float] = []
    while not (converged or len(trace) > max_iter):
        n_steps = max_iter - max(0, len(trace) - 1)
        if native_steps is not None:
            parameters, gained, converged, stuck = native_steps(parameters, tol, n_steps)
            trace += gained[1:] if trace else gained
            log_likelihood = trace[-1]
            if not stuck:
                break
            n_steps = 1  # a step that asks for care; then the core may go on
        some = _careful_steps(model, data, parameters, tol=tol, max_iter=n_steps)
        parameters, converged, log_likelihood = some.parameters, some.converged, some.log_likelihood
        trace += some.trace[1:].tolist() if trace else some.trace.tolist()
    return Fit(parameters, log_likelihood, np.array(trace), converged)


def _careful_steps(model: Model, data: Data, start: Parameters, *, tol: float, max_iter: int) -> Fit:
    """Steps of which none lowers the objective."""
    parameters, expectation = start, expect(model, data, start)
    trace = [expectation.log_likelihood + log_prior(model, start)]
    converged = False
    for _ in range(max_iter):
        candidate = maximise(model, expectation, parameters)
        after = expect(model, data, candidate)
        objective = after.log_likelihood + log_prior(model, candidate)
        if objective < trace[-1] - ROUNDING * abs(trace[-1]):
            candidate = maximise(model, expectation, parameters, cautiously=True)
            after = expect(model, data, candidate)
            objective = after.log_likelihood + log_prior(model, candidate)
            if objective < trace[-1] - ROUNDING * abs(trace[-1]):  # beyond what can be computed: stay
                candidate, after, objective = parameters, expectation, trace[-1]
        parameters, expectation = candidate, after
        trace.append(objective)
        if tol > 0 and abs(trace[-1] - trace[-2]) <= tol * abs(trace[-1]):
            converged = True
            break
    return Fit(parameters, expectation.log_likelihood, np.array(trace), converged)


NativeSteps = Callable[[Parameters, float, int], tuple[Parameters, list[float], bool, bool]]


def _native_steps(model: Model, data: Data, start: Parameters) -> NativeSteps | None:
    """Both steps of EM made by the native core, if model and data are of a kind that it knows, and small.

    A call with parameters, tolerance and number of steps gives parameters, J before and after each step, whether the
    tolerance was met, and whether the core got stuck: then the next step is to be made with care.
    """
    free = data.free
    plain = data.free_known is None and data.linked_weights is None and data.linked_known is None
    if not plain or start.shared_clusters or not native.active() or not isinstance(free, np.ndarray):
        return None
    components, pairs = model.density.to_native(start.components), model.coupling.to_native()
    if components is None or pairs is None or not native.loops(components, pairs, free, data.linked):
        return None
    if has_gaps(free) or has_gaps(data.linked):
        return None

    def steps(parameters: Parameters, tol: float, max_iter: int) -> tuple[Parameters, list[float], bool, bool]:
        components = model.density.to_native(parameters.components)
        assert components is not None
        done = native.run(
            *(components, pairs, free, data.free_weights, data.linked),
            *(parameters.class_weights, parameters.cluster_weights),
            link_weight=float(model.link_weight),
            tol=float(tol),
            max_iter=max_iter,
        )
        after = replace(
            parameters,
            class_weights=done.class_weights,
            cluster_weights=done.cluster_weights,
            components=model.density.from_native(done.components),
        )
        return after, done.trace, done.converged, done.stuck

    return steps


def _plain_sums(density: Density[Any, Any], parameters: Parameters, rows: Rows) -> FreeSums:
    """Sums over free rows whose labels are not known: a mixture of components.

    In one pass of the native core, if the density has such a pass; else block by block, with one exponential for each
    row and component.
    """
    log_joint = np.log(parameters.class_weights)[:, None] + np.log(parameters.cluster_weights)  # (M, K) or (M, M * K)
    log_weights = log_sum_exp(log_joint, axis=0) if parameters.shared_clusters else log_joint.ravel()
    found = None
    if native.active() and rows.complete:
        found = density.mixture_sums(parameters.components, rows.X, log_weights, rows.weights)
    log_likelihood, statistics, weight = found or _mixture_sums(density, parameters, rows, log_weights)
    # What a component in a shared pool has is shared by the classes, for all rows alike.
    shared = parameters.shared_clusters
    counts = weight * shares(log_joint, axis=0) if shared else weight.reshape(log_joint.shape)
    return FreeSums(log_likelihood, statistics, counts, counts.sum(axis=1))


def _mixture_sums(
    density: Density[Any, Any], parameters: Parameters, rows: Rows, log_weights: Floats
) -> tuple[float, Statistics, Floats]:
    """Log-likelihood, statistics and weight (C,) of rows, block by block."""
    log_likelihood, weight = 0.0, np.zeros(len(log_weights))
    statistics = None
    for some in _blocks(rows, parameters.cluster_weights):
        joint = density.log_density(parameters.components, some.X)  # (n, C)
        joint += log_weights
        top = joint.max(axis=1)
        top = np.where(np.isfinite(top), top, 0.0)
        joint -= top[:, None]
        np.exp(joint, out=joint)
        total = joint.sum(axis=1)
        with np.errstate(divide="ignore"):
            log_rows = np.log(total) + top
        scale = 1 / np.where(total > 0, total, 1.0)
        if some.weights is not None:
            log_rows *= some.weights
            scale *= some.weights
        joint *= scale[:, None]
        block_statistics = density.statistics(parameters.components, some.X, joint)
        statistics = block_statistics if statistics is None else statistics + block_statistics
        log_likelihood += float(log_rows.sum())
        weight += joint.sum(axis=0)
    assert statistics is not None
    return log_likelihood, statistics, weight


def _sums(
    density: Density[Any, Any], parameters: Parameters, X: Array, within: Floats, labels: Floats
) -> tuple[Statistics, Floats]:
    """Statistics and cluster counts of rows whose label weights (n, M) are known."""
    weights = shares(within) * labels[:, :, None]  # (n, M, K)
    if parameters.shared_clusters:
        per_component = weights.sum(axis=1)
    else:
        per_component = weights.reshape(len(X), parameters.cluster_weights.size)
    return density.statistics(parameters.components, X, per_component), weights.sum(axis=0)


def _known(log_joint: Floats, known: Ints | None) -> Floats:
    """Leave only the known class where a label is known."""
    if known is None:
        return log_joint
    classes = np.arange(log_joint.shape[1])
    return np.where((known[:, None] < 0) | (known[:, None] == classes), log_joint, -np.inf)


def _blocks(rows: Rows, cluster_weights: Floats) -> Iterator[Rows]:
    """Slices of rows, small enough that what is computed for one of them stays in cache."""
    size = max(1, BLOCK_NUMBERS // (rows.X.shape[1] + cluster_weights.size))
    return (rows[first : first + size] for first in range(0, len(rows), size))


def renumber(density: Density[Any, Any], parameters: Parameters, place: Ints) -> Parameters:
    """The same mixture with other class numbers: class m becomes class ``place[m]``."""
    order = np.argsort(place)
    components = parameters.components
    if not parameters.shared_clusters:
        per_class = parameters.cluster_weights.shape[1]
        components = density.take(components, (order[:, None] * per_class + np.arange(per_class)).ravel())
    return replace(
        parameters,
        class_weights=parameters.class_weights[order],
        cluster_weights=parameters.cluster_weights[order],
        components=components,
    )
