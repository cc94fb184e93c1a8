"""A random sample of rows that includes all rows that matter, for work that cannot read every row."""

import numpy as np
from numpy.random import RandomState
from sklearn.utils.random import sample_without_replacement

from linkmix.basics.arrays import Floats, Ints


def sample_around(
    n_rows: int, needed: Ints, at_most: int, random: RandomState, sample_weight: Floats | None = None
) -> Ints:
    """All rows, or the needed ones and a random choice of the others.

    Memory grows with the sample, not with the number of rows, unless these have weights.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    needed : ndarray of int
        Rows that the sample must hold, such as the linked ones.
    at_most : int
        Size of the sample. At least half as many other rows are drawn, even if the needed ones leave no room for them.
    random : RandomState
        Source of randomness.
    sample_weight : ndarray of shape (n_rows,), optional
        How often each row counts. Rows that count for nothing are not drawn.

    Returns
    -------
    ndarray of int
        Row numbers in ascending order.

    Examples
    --------
    >>> sample_around(4, np.array([2]), 10, RandomState(0)).tolist()
    [0, 1, 2, 3]
    >>> rows = sample_around(1000, np.array([7, 998]), 10, RandomState(0))
    >>> {7, 998} <= set(rows.tolist()), 8 <= len(rows) <= 10
    (True, True)
    """
    if n_rows <= at_most:
        return np.arange(n_rows)
    n_others = max(at_most - len(needed), at_most // 2)
    if sample_weight is None:
        return np.union1d(needed, sample_without_replacement(n_rows, min(n_rows, n_others), random_state=random))
    counted = np.flatnonzero(sample_weight > 0)
    drawn = sample_without_replacement(len(counted), min(len(counted), n_others), random_state=random)
    return np.union1d(needed, counted[drawn])
