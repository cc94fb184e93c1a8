"""What a user hands to a `Questioner`: points of every kind, checked and scaled, and class numbers."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from linkmix.basics.arrays import Floats, Ints
from linkmix.basics.checks import refuse_sparse
from linkmix.columns import Coded, Recipe, code, mostly_truth_values, needs_recipe
from linkmix.data.scaling import Scaling, scalings
from linkmix.data.summary import summarise
from linkmix.engine.starts import without_gaps
from linkmix.mixture.door import PointsLike
from linkmix.search.settings import SETTINGS
from linkmix.search.spaces import indicators


class Prepared(NamedTuple):
    """Points as a questioner sees them."""

    X: Floats  # in their own units, numbers without gaps, codes in the last columns
    Z: Floats  # columns of unit variance by which distances are measured, categories as indicators
    levels: tuple[int, ...]  # of each column of codes
    views: Mapping[str, Scaling]  # the ways in which mixtures look at the points
    recipe: Recipe | None


def prepare(X: PointsLike, kinds: Mapping[str, str]) -> Prepared:
    """Check points, code a table of several kinds, and scale the columns.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features), or a table
        The points.
    kinds : mapping of str to str
        What some columns of a table are.

    Returns
    -------
    Prepared
    """
    refuse_sparse(X)
    coded = X if isinstance(X, Coded) else None
    if coded is None and (kinds or needs_recipe(X) or mostly_truth_values(X)):
        coded = code(X, kinds)
    array = X if coded is None else coded.X
    points: Floats = check_array(array, dtype=np.float64, ensure_all_finite="allow-nan", ensure_min_samples=2)
    levels = () if coded is None else coded.levels
    n_numbers = points.shape[1] - len(levels)
    numbers = without_gaps(points[:, :n_numbers])
    points = np.concatenate([numbers, points[:, n_numbers:]], axis=1)
    Z = points.copy()
    Z[:, :n_numbers] = summarise(numbers).standardise(numbers)
    views = scalings(points, SETTINGS, len(levels))
    recipe = None if coded is None else coded.recipe
    return Prepared(points, indicators(Z, levels) if levels else Z, levels, views, recipe)


def checked_labels(labels: ArrayLike, n_rows: int, n_classes: int | None, least: int = 0) -> Ints:
    """Class numbers of all rows, from ``least`` on and below ``n_classes``."""
    given = np.asarray(labels)
    if given.shape != (n_rows,) or given.dtype.kind not in "iu":
        raise ValueError(
            f"labels has shape {given.shape} and dtype {given.dtype} for {n_rows} points: give one class number each"
        )
    if given.min() < least or given.max() >= (n_rows if n_classes is None else n_classes):
        highest = f"{least} on" if n_classes is None else f"{least} to {n_classes - 1}"
        raise ValueError(f"labels range from {given.min()} to {given.max()}: use class numbers from {highest}")
    return given.astype(np.int64)
