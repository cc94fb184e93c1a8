"""Where EM starts."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.random import RandomState
from sklearn.cluster import kmeans_plusplus
from sklearn.metrics import pairwise_distances_argmin

from linkmix.arrays import Array, Ints
from linkmix.densities.base import Density, given_array
from linkmix.em import Parameters


def nearest_seed(X: Array, n_groups: int, random: RandomState) -> Ints:
    """Group of each row: k-means++ seeds, each row to its nearest seed, no further step."""
    # One trial per seed: the paper cites the method as published, scikit-learn's default is greedy.
    seeds, _ = kmeans_plusplus(X, n_groups, random_state=random, n_local_trials=1)
    return np.asarray(pairwise_distances_argmin(X, seeds), dtype=np.int64)


def from_groups(
    density: Density[Any, Any], X: Array, groups: Ints, n_classes: int, clusters_per_class: int, random: RandomState
) -> Parameters:
    """Equal weights, and the moments of each group of rows.

    ``groups`` numbers the clusters of all classes in turn. A group that got no row starts at a random row of its class.
    """
    n_components = n_classes * clusters_per_class
    weights = np.zeros((len(X), n_components))
    weights[np.arange(len(X)), groups] = 1.0
    for empty in np.flatnonzero(weights.sum(axis=0) == 0):
        candidates = np.flatnonzero(groups // clusters_per_class == empty // clusters_per_class)
        weights[random.choice(candidates if len(candidates) else len(X)), empty] = 1.0
    return Parameters(
        np.full(n_classes, 1 / n_classes),
        np.full((n_classes, clusters_per_class), 1 / clusters_per_class),
        density.start(X, weights),
    )


def kmeans_plusplus_start(
    density: Density[Any, Any], X: Array, n_classes: int, clusters_per_class: int, random: RandomState
) -> Parameters:
    """The paper's start: k-means++ seeds for the classes, then the same again inside the points of each class."""
    classes = nearest_seed(X, n_classes, random)
    groups = classes * clusters_per_class
    if clusters_per_class > 1:
        for m in range(n_classes):
            rows = np.flatnonzero(classes == m)
            if len(rows) > clusters_per_class:
                groups[rows] += nearest_seed(X[rows], clusters_per_class, random)
            else:  # too few points to seed from: one each
                groups[rows] += np.arange(len(rows))
    return from_groups(density, X, groups, n_classes, clusters_per_class, random)


def given_start(
    density: Density[Any, Any], mapping: Mapping[str, Any], n_classes: int, clusters_per_class: int, n_features: int
) -> Parameters:
    """Parameters of the user, checked."""
    shape = (n_classes, clusters_per_class)
    class_weights = given_array(mapping, "class_weights", (n_classes,))
    cluster_weights = given_array(mapping, "cluster_weights", shape)
    for name, weights in (("class_weights", class_weights), ("cluster_weights", cluster_weights)):
        if np.any(weights <= 0):
            raise ValueError(f"init[{name!r}] must be positive, got {weights.min():g}: use a small number instead")
        if not np.allclose(weights.sum(axis=-1), 1.0, rtol=0, atol=1e-6):
            raise ValueError(
                f"init[{name!r}] must sum to one along its last axis, got {weights.sum(axis=-1)}: divide by the sum"
            )
    components = density.given(mapping, shape, n_features)
    unknown = set(mapping) - {"class_weights", "cluster_weights", *density.attributes(components, shape)}
    if unknown:
        raise ValueError(f"init has unknown entries {sorted(unknown)}: remove them")
    return Parameters(class_weights, cluster_weights, components)
