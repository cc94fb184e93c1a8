"""Finds columns that have nothing to do with any other column, with groups of their own, or with links.

Classes that differ in several columns make these columns depend on each other. A column that is independent of all
others can tell classes apart only alone; then it is divided in two, or must-linked rows are closer in it than others.
Any other such column is noise, and blurs distances.
"""

import warnings

import numpy as np
from scipy.cluster.vq import kmeans2
from scipy.stats import chi2, norm, rankdata

from linkmix.basics.arrays import Array, Floats, Ints

MOST_ROWS = 2000
"""Rows on which dependence is measured, evenly spaced: more would find dependence too weak to matter."""

ENOUGH_UNCORRELATED = 2000
"""With fewer rows, a column is no noise if it is correlated with others less than by chance, as a principal component
is: components depend on each other in other ways alone, and to see that takes more rows. Of the variance between
classes that 20 components hold, those that would be taken for noise hold up to 72 % on 200 rows of MNIST, 5 % on 500
and .5 % on 1000; in the table of ``benchmarks.front_door wide`` nearly all on 1000 rows, 2 % on 2000 and 3000."""

LESS_THAN_BY_CHANCE = 1e-4
"""Probability that an independent column is correlated with others so little. Not varied: components of the rows
themselves are not correlated at all."""

MOST_GROUPS = 32
"""Groups of rows between which a column may differ; at least ten rows are in each on average. On 1000 rows of segment,
only 32 groups show how the position of a pixel in its line depends on its colours (p < 1e-7; 8 groups .1 to 1e-5)."""


def unrelated(X: Floats, chance: float, lumps: float, codes: Floats | None = None) -> Array:
    """Which columns are independent of all others, not divided in two, and vary enough to tell.

    Two columns depend on each other if their ranks are correlated, or the distances of the ranks from the middle one,
    or the ranks of one with these distances of the other: so a column may also fall and then rise with another one. A
    column may also depend on several others together: its ranks differ between groups of rows that are alike in these.
    If no two columns depend on each other for certain, nothing can be told, and no column is unrelated. On few
    rows, nothing can be told of a column that is correlated with others less than by chance, as a principal component.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        At least two points. A missing value counts as the middle rank. A constant column is no noise.
    chance : float
        Probability that a column which is independent of all others is taken for a dependent one.
    lumps : float
        Share of its variance from which on a column is divided in two by the best threshold. A normal column has .64,
        a uniform one .75, two values 1.
    codes : ndarray of shape (n_samples, n_categories), optional
        Codes of categories, on which columns may depend as well: by their ranks, or the distances of these from the
        middle one, in one of the levels and in the others.

    Returns
    -------
    ndarray of bool, shape (n_features,)

    Examples
    --------
    The second column follows the first one, the third is noise, and the fourth is noise in two lumps.

    >>> random = np.random.default_rng(0)
    >>> x, noise, more, two = random.normal(size=(4, 200))
    >>> unrelated(np.stack([x, x**2 + noise, more, two + 6 * (two > 0)], axis=1), 0.01, 0.8).tolist()
    [False, False, True, False]
    """
    n, d = X.shape
    rows = np.unique(np.linspace(0, n - 1, min(n, MOST_ROWS)).astype(np.int64))
    some = X[rows]
    ranks = _ranks(some)
    folded = np.where(np.isnan(some), np.nan, np.abs(ranks))
    both = np.concatenate([_of_unit_length(ranks), _of_unit_length(folded)], axis=1)
    related = np.abs(both.T @ both).reshape(2, d, 2, d).max(axis=(0, 2))
    np.fill_diagonal(related, 0.0)
    strongest = related.max(axis=1, initial=0.0)
    tests = 4 * max(d - 1, 1)
    if codes is not None and codes.shape[1]:
        levels = _of_unit_length(_indicators(codes[rows]))
        with_levels = np.abs(both.T @ levels).reshape(2, d, -1).max(axis=(0, 2))
        strongest, tests = np.maximum(strongest, with_levels), tests + 2 * levels.shape[1]
    strongest = strongest * np.sqrt(len(some) - 1)
    if strongest.max() < norm.isf(chance / (tests * d)):  # no two columns depend on each other for certain
        return np.zeros(d, dtype=bool)
    alone: Array = (strongest < norm.isf(chance / (2 * tests))) & ranks.any(axis=0)
    if len(some) < ENOUGH_UNCORRELATED and alone.any():
        alone &= ~_uncorrelated(some)
    for j in np.flatnonzero(alone):
        alone[j] = not _mostly_one_value(some[:, j]) and divided(some[:, j]) < lumps
    if alone.any():
        groups = _groups(both[:, :d][:, ~alone])
        alone[alone] = ~_differ(both.reshape(len(some), 2, d)[:, :, alone], groups, chance)
    return alone


def divided(values: Floats) -> float:
    """Share of the variance between the two sides of the best threshold that leaves a tenth of the values on each.

    Examples
    --------
    >>> divided(np.array([0.0, 0.0, 1.0, 1.0])), round(divided(np.linspace(0, 1, 1000)), 2)
    (1.0, 0.75)
    """
    ordered = np.sort(values[~np.isnan(values)])
    n = len(ordered)
    cut = np.arange(max(1, n // 10), n - max(1, n // 10) + 1)
    if not len(cut) or ordered[0] == ordered[-1]:
        return 0.0
    centred = ordered - ordered.mean()
    below = np.cumsum(centred)[cut - 1]
    return float((below**2 / cut + below**2 / (n - cut)).max() / (centred**2).sum())


def told_by_links(together: Floats, apart: Floats, chance: float) -> Array:
    """In which columns must-linked rows are closer than cannot-linked ones: one-sided rank-sum test of each column.

    Parameters
    ----------
    together, apart : ndarrays of shape (n_must, n_features), (n_cannot, n_features)
        Distances between linked rows in each column. A missing value counts as the middle rank.
    chance : float
        Probability of telling links apart by a column of noise.

    Returns
    -------
    ndarray of bool, shape (n_features,)
        False if links of one kind are missing.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> together, apart = np.abs(random.normal(size=(2, 15, 2)))
    >>> told_by_links(together, apart + [2.0, 0.0], 0.01).tolist()
    [True, False]
    """
    n_must, n = len(together), len(together) + len(apart)
    if n_must in (0, n):
        return np.zeros(together.shape[1], dtype=bool)
    ranks = _ranks(np.concatenate([together, apart]))
    spread = np.sqrt(n_must * (n - n_must) / (n * (n - 1)) * (ranks**2).sum(axis=0))  # ties make it smaller
    return np.asarray(-ranks[:n_must].sum(axis=0) > norm.isf(chance) * np.maximum(spread, 1e-9))


def _ranks(X: Floats) -> Floats:
    """Ranks of each column around the middle one; 0 for a missing value."""
    ranks = rankdata(X, axis=0, nan_policy="omit")
    middle = (1 + np.count_nonzero(~np.isnan(X), axis=0)) / 2
    return np.asarray(np.nan_to_num(ranks - middle))


def _groups(Z: Floats) -> Ints:
    """Groups of rows that are alike, by k-means."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a group may become empty
        n_groups = max(2, min(MOST_GROUPS, len(Z) // 10))
        return np.asarray(kmeans2(Z, n_groups, minit="++", seed=0)[1], dtype=np.int64)


def _differ(columns: Floats, groups: Ints, chance: float) -> Array:
    """Which columns differ between groups, by Kruskal's test of their ranks or of the distances from the middle one.

    The columns, of shape (n, 2, n_columns), have unit length.
    """
    n_groups, sizes = int(np.count_nonzero(np.bincount(groups))), np.maximum(np.bincount(groups), 1)
    sums = np.zeros((len(sizes), *columns.shape[1:]))
    np.add.at(sums, groups, columns)
    between = (sums**2 / sizes[:, None, None]).sum(axis=0)  # of 1
    enough = float(chi2.isf(chance / 2, float(max(n_groups - 1, 1))))
    return np.asarray(((len(columns) - 1) * between > enough).any(axis=0))


def _indicators(codes: Floats) -> Floats:
    """A column for each level of each category: 1 in this level, 0 in others, NaN where it is not known."""
    columns = [
        np.where(np.isnan(column), np.nan, column == level)
        for column in codes.T
        for level in np.unique(column[~np.isnan(column)])
    ]
    return np.stack(columns, axis=1) if columns else np.zeros((len(codes), 0))


def _uncorrelated(X: Floats) -> Array:
    """Which columns are correlated with others less than by chance, as principal components are with each other."""
    columns = _of_unit_length(X)
    n_others = int(np.count_nonzero(columns.any(axis=0))) - 1
    squares = (len(X) - 1) * (np.square(columns.T @ columns).sum(axis=1) - 1)  # about 1 for each independent column
    return np.asarray(squares < float(chi2.ppf(LESS_THAN_BY_CHANCE, float(max(n_others, 1)))))


def _mostly_one_value(values: Floats) -> bool:
    """Whether most values are the same, as in a count of something rare: ranks tell little about such a column."""
    known = values[~np.isnan(values)]
    return bool(2 * np.count_nonzero(known == np.median(known)) > len(known))


def _of_unit_length(columns: Floats) -> Floats:
    """Columns around their means, where missing values are, as vectors of length 1; zeros if they do not vary."""
    known = ~np.isnan(columns)
    centred = np.where(known, columns - np.nansum(columns, axis=0) / np.maximum(known.sum(axis=0), 1), 0.0)
    length = np.sqrt((centred**2).sum(axis=0))
    return np.asarray(centred / np.where(length > 1e-9 * len(columns), length, np.inf))
