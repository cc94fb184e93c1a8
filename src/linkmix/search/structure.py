"""Measures how well labels follow the gaps between points, whatever the shape of the classes.

Neighbours are joined by edges, and labels are good if few edges lead from one class to another. The measure is
modularity: the share of edges inside classes, minus the share expected by chance.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkmix.basics.arrays import Floats, Ints
from linkmix.rivals.e2cp import neighbour_graph
from linkmix.search.guesses import distinct
from linkmix.search.settings import SETTINGS, SearchSettings


def graphs(views: Sequence[Floats], X: Floats, settings: SearchSettings = SETTINGS) -> list[Any]:
    """Graphs of nearest neighbours: one for each way in which columns are scaled, and one for the raw columns.

    Raw columns are added only if the variance is not dominated by a few of them. A graph that repeats an earlier one is
    left out.

    Parameters
    ----------
    views : sequence of ndarray of shape (n_samples, n_features)
        Points without gaps, columns scaled.
    X : ndarray of shape (n_samples, n_features)
        The same points, not scaled; no column is constant.
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
    >>> len(graphs([Z], Z * [1.0, 2.0, 1.0, 2.0])), len(graphs([Z], Z * [1.0, 1.0, 1.0, 1000.0]))
    (2, 1)
    """
    if len(X) < 2:
        return []
    variance = (X.std(axis=0) / (X.std(axis=0).max() or 1.0)) ** 2
    n_alike = variance.sum() ** 2 / max((variance**2).sum(), np.finfo(np.float64).tiny)
    as_they_are = [X] if n_alike >= max(settings.even * len(variance), settings.alike) else []
    n_neighbors = min(settings.neighbours, len(X) - 1)
    return [neighbour_graph(view, n_neighbors) for view in distinct([*views, *as_they_are])]


def modularity(graph: Any, labels: Ints, n_classes: int) -> float:
    """Share of the edge weight inside classes, minus the share expected by chance.

    Parameters
    ----------
    graph : sparse array of shape (n_samples, n_samples)
        Weights of the edges, symmetric.
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
    member = np.eye(n_classes)[labels]  # (n, M)
    degree = np.asarray(graph.sum(axis=1)).ravel()
    total = float(degree.sum())
    inside = float((member * (graph @ member)).sum()) / total
    return inside - float(((degree @ member / total) ** 2).sum())


def structure(of: Sequence[Any], labels: Ints, n_classes: int) -> float:
    """Mean modularity over several graphs; 0 if there are none."""
    return float(np.mean([modularity(graph, labels, n_classes) for graph in of])) if of else 0.0
