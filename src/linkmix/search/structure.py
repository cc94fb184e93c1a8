"""Measures how well labels follow the gaps between points, whatever the shape of the classes.

Neighbours are joined by edges, and labels are good if few edges lead from one class to another. The measure is
modularity: the share of edges inside classes, minus the share expected by chance.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkmix.basics.arrays import Floats, Ints
from linkmix.data.scaling import vary_alike
from linkmix.search.settings import SETTINGS, SearchSettings
from linkmix.search.spaces import Space, distinct


def graphs(views: Sequence[Space], raw: Space, X: Floats, settings: SearchSettings = SETTINGS) -> list[Any]:
    """Graphs of nearest neighbours: one for each way in which columns are scaled, and one for the raw columns.

    Raw columns are added only if the variance is not dominated by a few of them. A graph that repeats an earlier one is
    left out.

    Parameters
    ----------
    views : sequence of Space
        The points, columns scaled.
    raw : Space
        The points, columns not scaled.
    X : ndarray of shape (n_samples, n_features)
        The same points in their own units; no column is constant.
    settings : SearchSettings
        Number of neighbours, and when raw columns count.

    Returns
    -------
    list of sparse arrays of shape (n_samples, n_samples)
        Empty if there is only one point.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.random.default_rng(0).normal(size=(30, 4))
    >>> def n_graphs(X):
    ...     return len(graphs([Space(Z)], Space(X / X.std()), X))
    >>> n_graphs(Z * [1.0, 2.0, 1.0, 2.0]), n_graphs(Z * [1.0, 1.0, 1.0, 1000.0])
    (2, 1)
    """
    if len(X) < 2:
        return []
    as_they_are = [raw] if vary_alike(X.std(axis=0), settings) else []
    return [space.graph(settings.neighbours) for space in distinct([*views, *as_they_are])]


def modularity(graph: Any, labels: Ints, n_classes: int) -> float:
    """Share of the edge weight inside classes, minus the share expected by chance.

    Parameters
    ----------
    graph : sparse array of shape (n_samples, n_samples)
        Weights of the edges, symmetric, in rows.
    labels : ndarray of shape (n_samples,)
        Classes.
    n_classes : int
        More than the largest label.

    Returns
    -------
    float
        From -0.5 to 1.

    Examples
    --------
    Two pairs of points, each with an edge inside.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> pairs = csr_array(np.kron(np.eye(2), [[0.0, 1.0], [1.0, 0.0]]))
    >>> modularity(pairs, np.array([0, 0, 1, 1]), 2), modularity(pairs, np.array([0, 1, 0, 1]), 2)
    (0.5, -0.5)
    """
    from_class = np.repeat(labels, np.diff(graph.indptr))  # of each edge
    to_class = labels[graph.indices]
    total = float(graph.data.sum())
    inside = float(graph.data @ (from_class == to_class)) / total
    return inside - float(((np.bincount(to_class, graph.data, n_classes) / total) ** 2).sum())


def structure(of: Sequence[Any], labels: Ints, n_classes: int) -> float:
    """Mean modularity over several graphs; 0 if there are none."""
    return float(np.mean([modularity(graph, labels, n_classes) for graph in of])) if of else 0.0
