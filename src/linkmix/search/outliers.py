"""Points that are lonelier than their neighbours, which a fit with noise leaves out of its start.

A start that has to place all points gives far ones to clusters of their own, or to wide ones, and EM rarely comes back
from there.
"""

import numpy as np

from linkmix.basics.arrays import Array, Floats
from linkmix.rivals.e2cp import Neighbours
from linkmix.search.settings import SETTINGS, SearchSettings

CLOSEST = 1e-10
"""Lower bound of the mean distance to neighbours, for copies of one point."""


def local_outlier_factor(neighbours: Neighbours) -> Floats:
    """How much sparser it is around each point than around its neighbours: about 1 inside a cluster.

    Parameters
    ----------
    neighbours : Neighbours
        The nearest neighbours of each point.

    Returns
    -------
    ndarray of shape (n_samples,)
        The factor of Breunig et al., SIGMOD 2000, with all the given neighbours.

    Examples
    --------
    >>> from linkmix.rivals.e2cp import nearest
    >>> local_outlier_factor(nearest(np.array([[0.0], [1.0], [2.0], [3.0], [13.0]]), 2)).round(2).tolist()
    [1.0, 1.0, 1.0, 1.0, 7.0]
    """
    distances, others = neighbours
    reach = np.maximum(distances[:, -1][others], distances).mean(axis=1)  # of each point, from its neighbours
    reach = np.maximum(reach, CLOSEST)
    return np.asarray(reach * (1 / reach)[others].mean(axis=1))


def outlying(neighbours: Neighbours, settings: SearchSettings = SETTINGS) -> Array:
    """Which points the start of a fit with noise leaves out: the loneliest, but not too many of them.

    A point is lonely if it is sparser around it than around its neighbours, or much sparser than around most points:
    among many points without a class, none is lonelier than the others.

    Parameters
    ----------
    neighbours : Neighbours
        The nearest neighbours of each point.
    settings : SearchSettings
        How lonely, and how many.

    Returns
    -------
    ndarray of bool, shape (n_samples,)
    """
    distance = neighbours.distances.mean(axis=1)
    usual = max(float(np.median(distance)), CLOSEST)
    lonely = np.maximum(local_outlier_factor(neighbours) / settings.lonely, distance / usual / settings.far)
    return np.asarray(lonely > max(1.0, float(np.quantile(lonely, 1 - settings.most_lonely))))
