"""Fitted models as models of rows of numbers and codes, whatever they were fitted to."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from linkmix.basics.arrays import Array, Floats
from linkmix.columns import Coded, Recipe
from linkmix.data.blocks import Blocks
from linkmix.tables import piled
from linkmix.tables.reading import plain_recipe


class Saved:
    """A model and its notes, as a model of rows of numbers and codes.

    Parameters
    ----------
    estimator : estimator
        As `linkmix fit` or `save` wrote it.
    notes : mapping
        What was written beside it: ``columns``, ``id``, ``missing``, ``recipe``, and ``center`` and ``spread`` if
        columns were standardised.
    """

    def __init__(self, estimator: Any, notes: Mapping[str, Any]) -> None:
        self.estimator, self.notes = estimator, notes
        self.recipe = notes.get("recipe") or getattr(estimator, "recipe_", None) or plain_recipe(notes["columns"])
        self.is_coded = getattr(estimator, "recipe_", None) is not None
        self.n_classes = int(getattr(estimator, "n_classes_", estimator.n_classes))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the classes; nothing if they are numbers."""
        classes: Array = getattr(self.estimator, "classes_", np.arange(0))  # other methods have none
        return tuple(map(str, classes)) if classes.dtype.kind == "U" else ()

    def predict_proba(self, X: Floats) -> Floats:
        """Probability of each class for some rows."""
        return self.estimator.predict_proba(self._as_fitted(X))  # type: ignore[no-any-return]

    def _as_fitted(self, X: Floats) -> Floats | Coded:
        """Rows scaled as those of the fit, and with their recipe if the estimator has one."""
        rows = (X - self.notes["center"]) / self.notes["spread"] if "center" in self.notes else X
        return as_given(rows, self.recipe if self.is_coded else None)

    def probabilities(self, X: Floats) -> Floats:
        """Probability of each class for each point, block by block."""
        return piled(self.predict_proba(np.asarray(block)) for block in Blocks.from_array(X))

    def noise(self, X: Floats) -> Floats | None:
        """Probability that each point belongs to no class, block by block; None if the model knows no such points."""
        if not hasattr(self.estimator, "noise_share_"):
            return None
        blocks = map(np.asarray, Blocks.from_array(X))
        return piled(self.estimator.predict_noise(self._as_fitted(block)) for block in blocks)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags

        return get_tags(self.estimator)


def as_given(X: Floats, recipe: Recipe | None) -> Floats | Coded:
    """Points as estimators take them: with the recipe, if they hold codes of categories."""
    return X if recipe is None else Coded(X, recipe)
