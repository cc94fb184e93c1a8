"""Both steps of EM: the E-step sums up responsibilities, the M-step finds the parameters that fit them best.

`fit` separates linked from unlinked rows. Unlinked rows are read in blocks, and each block yields sums that add up;
linked rows are few and stay together, since the coupling needs all of them at once.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from linkmix import native
from linkmix.basics.arrays import Array, Floats, Ints, log_sum_exp, shares
from linkmix.data.rows import Rows
from linkmix.densities.base import Density, Statistics
from linkmix.engine.values import Data, Expectation, FreeSums, Model, Parameters

BLOCK_NUMBERS = 2**16
"""Numbers in one block of unlinked rows: half a megabyte, so that everything computed from them stays in cache."""
SMALLEST_CLUSTER_WEIGHT = 1e-300


def cluster_log_joint(density: Density[Any, Any], parameters: Parameters, X: Array) -> Floats:
    """Log of cluster weight times density, ``log pi_mk + log p(x | m, k)``, shape (n, M, K), or (n, M, C)."""
    log_density = density.log_density(parameters.components, X)
    log_weights = parameters.log_cluster_weights()
    if parameters.shared_clusters:
        return log_density[:, None, :] + log_weights
    return log_density.reshape(len(X), *log_weights.shape) + log_weights


def label_log_density(class_log_density: Floats, data: Data) -> Floats:
    """What the coupling sees: the log-density of linked rows in each class, with weights and known labels applied."""
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
    free = data.total(partial(free_sums, model.density, parameters))
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


def free_sums(density: Density[Any, Any], parameters: Parameters, rows: Rows) -> FreeSums:
    """E-step of free rows."""
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
    """M-step. The cautious one never lowers J, even if a density regularises its maximum, as with reg_covar."""
    step = model.density.maximize_cautiously if cautiously else model.density.maximize
    counts = expectation.cluster_counts
    per_class = counts.sum(axis=1, keepdims=True)
    shares = counts / np.where(per_class > 0, per_class, 1.0)
    cluster_weights = np.where(per_class > 0, np.maximum(shares, SMALLEST_CLUSTER_WEIGHT), parameters.cluster_weights)
    if parameters.shared_clusters:  # a component that a class cannot have stays impossible
        cluster_weights = np.where(parameters.cluster_weights > 0, cluster_weights, 0.0)
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


def _plain_sums(density: Density[Any, Any], parameters: Parameters, rows: Rows) -> FreeSums:
    """Sums over free rows with unknown labels: a plain mixture of components.

    In one pass of the native core where the density supports it, otherwise block by block.
    """
    log_joint = np.log(parameters.class_weights)[:, None] + parameters.log_cluster_weights()  # (M, K) or (M, C)
    log_weights = log_sum_exp(log_joint, axis=0) if parameters.shared_clusters else log_joint.ravel()
    found = None
    if native.active() and rows.complete:
        found = density.mixture_sums(parameters.components, rows.X, log_weights, rows.weights)
    log_likelihood, statistics, weight = found or _mixture_sums(density, parameters, rows, log_weights)
    # In a shared pool, the classes share each component in the same proportion for all rows.
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
    """Rule out all other classes where a label is known."""
    if known is None:
        return log_joint
    classes = np.arange(log_joint.shape[1])
    return np.where((known[:, None] < 0) | (known[:, None] == classes), log_joint, -np.inf)


def block_rows(n_features: int, cluster_weights: Floats) -> int:
    """Number of rows small enough that everything computed from them stays in cache."""
    return max(1, BLOCK_NUMBERS // (n_features + cluster_weights.size))


def _blocks(rows: Rows, cluster_weights: Floats) -> Iterator[Rows]:
    size = block_rows(rows.X.shape[1], cluster_weights)
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
