"""A table that a recipe has turned into numbers already."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from linkmix.basics.arrays import Floats

if TYPE_CHECKING:
    from linkmix.columns.recipe import Recipe


@dataclass(frozen=True, eq=False)
class Coded:
    """The result of a recipe, with the recipe, so that an estimator need not learn or apply it once more.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        ``recipe(table)``; for a large table a memory-mapped array.
    recipe : Recipe
        What the columns of `X` are.
    """

    X: Floats
    recipe: "Recipe"

    def __len__(self) -> int:
        return len(self.X)
