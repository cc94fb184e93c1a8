"""Projects points to the two directions in which classes differ most, to draw classes on a map."""

import numpy as np
from scipy.linalg import eigh

from linkmix.basics.arrays import Floats, Ints
from linkmix.data.blocks import Blocks
from linkmix.data.plane import MOST_ROWS
from linkmix.data.summary import Summary

LEAST_SHRINKAGE = 0.05


def discriminant_plane(X: Floats, labels: Ints, summary: Summary) -> Floats | None:
    """Project points to the first two discriminant directions of their classes.

    The covariance within classes is shrunk towards a multiple of the identity, the more the fewer rows there are for
    each column; otherwise chance would draw classes of many columns far apart.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        All points. A missing value (NaN) is replaced by the mean of its column.
    labels : ndarray of int
        Their classes; points with a negative label belong to none and are projected only.
    summary : Summary
        ``summarise(X)``.

    Returns
    -------
    ndarray of shape (n_samples, 2) or None
        Coordinates. Two classes differ in one direction; the other axis is then the direction of most variance besides
        it. None if there are fewer than two classes or columns.

    Examples
    --------
    >>> from linkmix.data.summary import summarise
    >>> random = np.random.default_rng(0)
    >>> X, labels = random.normal(size=(60, 5)) * [9, 1, 1, 1, 1], np.arange(60) % 2
    >>> X[:, 3] += 8 * labels
    >>> places = discriminant_plane(X, labels, summarise(X))
    >>> across = places[:, 0]
    >>> bool(across[labels == 0].max() < across[labels == 1].min())
    True
    """
    n, d = X.shape
    step = -(-n // MOST_ROWS)
    some, given = np.asarray(X[::step]), labels[::step]
    classes = np.unique(given[given >= 0])
    if len(classes) < 2 or d < 2:
        return None

    def scaled(block: Floats) -> Floats:
        return np.nan_to_num(summary.standardise(block))

    Z = scaled(some)[given >= 0]
    place = np.searchsorted(classes, given[given >= 0])
    sizes = np.bincount(place)
    means = np.stack([Z[place == m].mean(axis=0) for m in range(len(classes))])  # (M, d)
    rest = Z - means[place]
    within = rest.T @ rest / len(Z)
    shrinkage = max(LEAST_SHRINKAGE, d / (d + len(Z)))
    level = max(float(np.trace(within)) / d, np.finfo(float).tiny)
    within = (1 - shrinkage) * within + shrinkage * level * np.eye(d)
    apart = (means - Z.mean(axis=0)) * np.sqrt(sizes / len(Z))[:, None]
    _, directions = eigh(apart.T @ apart, within, subset_by_index=(d - 2, d - 1))
    directions = directions[:, ::-1]
    if len(classes) == 2:
        first = directions[:, 0] / np.linalg.norm(directions[:, 0])
        left = rest - np.outer(rest @ first, first)
        _, second = eigh(left.T @ left, subset_by_index=(d - 1, d - 1))
        directions = np.column_stack([directions[:, 0], second[:, 0] / np.sqrt(level)])
    directions = directions * np.sign(directions[np.abs(directions).argmax(axis=0), [0, 1]])  # the same map each time
    return np.concatenate([scaled(np.asarray(block)) @ directions for block in Blocks.from_array(X)])
