"""A table that a recipe has turned into numbers already."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from linkmix.basics.arrays import Floats
from linkmix.columns.recipe import Recipe, learn


@dataclass(frozen=True, eq=False)
class Coded:
    """The result of a recipe, with the recipe, so that an estimator need not learn or apply it once more.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        ``recipe(table)``; for a large table a memory-mapped array.
    recipe : Recipe
        What the columns of `X` are.

    Examples
    --------
    >>> coded = code({"size": [1.5, 2.0, 9.0, 8.5], "hue": ["red", "red", "blue", "blue"]}, {})
    >>> coded.X.tolist(), coded.levels
    ([[1.5, 1.0], [2.0, 1.0], [9.0, 0.0], [8.5, 0.0]], (2,))
    """

    X: Floats
    recipe: Recipe

    def __len__(self) -> int:
        return len(self.X)

    @property
    def levels(self) -> tuple[int, ...]:
        """Number of levels of each column of codes, which are the last columns."""
        return tuple(n for n in self.recipe.levels if n)


def code(table: Any, kinds: Mapping[str, str]) -> Coded:
    """Learn a recipe from a table and apply it; a warning names columns that it leaves out.

    Parameters
    ----------
    table : DataFrame of pandas or polars, Table of pyarrow, or mapping of columns
        The table.
    kinds : mapping of str to str
        What some of its columns are.

    Returns
    -------
    Coded
    """
    recipe = learn(table, kinds)
    lost = {name: why for name, why in recipe.left_out.items() if name not in kinds}
    if lost:
        said = ", ".join(f"{name!r} ({why})" for name, why in lost.items())
        warnings.warn(
            f"columns that are not used: {said}; drop them from the table, or say what they are with kinds=",
            UserWarning,
            stacklevel=2,
        )
    return Coded(recipe(table), recipe)
