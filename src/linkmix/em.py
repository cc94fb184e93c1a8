"""The EM engine: densities times a coupling, and nothing else.

Free points and linked points part at the door. Free points are read in blocks, and each block yields sums that add up;
linked points are few and stay together, since the coupling needs all of them at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkmix.arrays import Array, Floats, log_sum_exp
from linkmix.couplings.base import BoundCoupling, LinkExpectation
from linkmix.densities.base import Density, Statistics

ROUNDING = 1e-9
"""A fall of J by less than this share of it is rounding."""
BLOCK_NUMBERS = 2**18
"""Numbers in one block of free points: two megabytes, so that a block stays in cache."""
SMALLEST_CLUSTER_WEIGHT = 1e-300


@dataclass(frozen=True)
class Parameters:
    """Class weights (M,), cluster weights (M, K), and the parameters of the M * K components of the density."""

    class_weights: Floats
    cluster_weights: Floats
    components: Any


@dataclass(frozen=True)
class Model:
    """What is fitted: a density, a coupling that knows its links, and how much a link counts against a free point."""

    density: Density[Any, Any]
    coupling: BoundCoupling
    link_weight: float = 1.0


@dataclass(frozen=True)
class Data:
    """Rows that count on their own, and rows that are in links, in the order the coupling knows them by."""

    free: Array
    linked: Array


@dataclass(frozen=True)
class Expectation:
    """What an E-step knows of all points: J, and the sums that the M-step needs."""

    log_likelihood: float
    statistics: Statistics
    cluster_counts: Floats  # (M, K)
    free_class_counts: Floats  # (M,)
    links: LinkExpectation


@dataclass(frozen=True)
class Fit:
    """The end of a fit. The trace holds J of the start and after each M-step."""

    parameters: Parameters
    trace: Floats
    converged: bool

    @property
    def log_likelihood(self) -> float:
        """J of the parameters."""
        return float(self.trace[-1])


def cluster_log_joint(density: Density[Any, Any], parameters: Parameters, X: Array) -> Floats:
    """Log of cluster weight times density, ``log pi_mk + log p(x | m, k)``, shape (n, M, K)."""
    log_density = density.log_density(parameters.components, X)
    return log_density.reshape(len(X), *parameters.cluster_weights.shape) + np.log(parameters.cluster_weights)


def class_log_joint(density: Density[Any, Any], parameters: Parameters, X: Array) -> Floats:
    """Log of class weight times density, ``log a_m + log p(x | m)``, shape (n, M)."""
    blocks = _blocks(X, parameters.cluster_weights.size)
    return np.concatenate([log_sum_exp(cluster_log_joint(density, parameters, block)) for block in blocks]) + np.log(
        parameters.class_weights
    )


def expect(model: Model, data: Data, parameters: Parameters) -> Expectation:
    """E-step over all points."""
    log_class_weights = np.log(parameters.class_weights)
    n_classes = len(log_class_weights)

    def sums(X: Array, within: Floats, log_class: Floats, labels: Floats) -> tuple[Statistics, Floats]:
        """Statistics and cluster counts of rows with given label weights (n, M)."""
        weights = np.exp(within - log_class[:, :, None]) * labels[:, :, None]  # (n, M, K)
        flat = weights.reshape(len(X), parameters.cluster_weights.size)
        return model.density.statistics(parameters.components, X, flat), weights.sum(axis=0)

    within = cluster_log_joint(model.density, parameters, data.linked)
    log_class = log_sum_exp(within)  # (n_linked, M)
    links = model.coupling.expect(log_class, parameters.class_weights)
    statistics, cluster_counts = sums(
        data.linked, within, log_class, model.link_weight * links.label_weights
    )

    log_likelihood = model.link_weight * links.log_likelihood
    free_class_counts = np.zeros(n_classes)
    for X in _blocks(data.free, parameters.cluster_weights.size):
        within = cluster_log_joint(model.density, parameters, X)
        log_class = log_sum_exp(within)
        log_joint = log_class + log_class_weights  # (n, M)
        log_row = log_sum_exp(log_joint)
        labels = np.exp(log_joint - log_row[:, None])
        block_statistics, block_counts = sums(X, within, log_class, labels)
        log_likelihood += float(log_row.sum())
        statistics = statistics + block_statistics
        cluster_counts = cluster_counts + block_counts
        free_class_counts += labels.sum(axis=0)
    return Expectation(log_likelihood, statistics, cluster_counts, free_class_counts, links)


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
    )


def fit(model: Model, data: Data, start: Parameters, *, tol: float, max_iter: int) -> Fit:
    """Repeat both steps until J gains less than ``tol`` of itself, or ``max_iter`` times.

    With ``tol=0`` exactly ``max_iter`` M-steps are made. The last thing done is always an E-step.
    """
    parameters, expectation = start, expect(model, data, start)
    trace = [expectation.log_likelihood]
    converged = False
    for _ in range(max_iter):
        candidate = maximise(model, expectation, parameters)
        after = expect(model, data, candidate)
        if after.log_likelihood < trace[-1] - ROUNDING * abs(trace[-1]):
            candidate = maximise(model, expectation, parameters, cautiously=True)
            after = expect(model, data, candidate)
        parameters, expectation = candidate, after
        trace.append(after.log_likelihood)
        if tol > 0 and abs(trace[-1] - trace[-2]) <= tol * abs(trace[-1]):
            converged = True
            break
    return Fit(parameters, np.array(trace), converged)


def _blocks(X: Array, n_components: int) -> Iterator[Array]:
    """Slices of rows, small enough that what is computed for one of them stays in cache."""
    size = max(1, BLOCK_NUMBERS // (X.shape[1] + n_components))
    for first in range(0, len(X), size):
        yield X[first : first + size]
