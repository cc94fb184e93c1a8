"""Models that linkmix fit wrote, and the points that they are applied to."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkmix.app.cli.terminal import watched

if TYPE_CHECKING:
    from linkmix.app.cli.options import Reading
    from linkmix.basics.arrays import Floats
    from linkmix.columns import Coded
    from linkmix.tables import Points


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
        from linkmix.tables.reading import plain_recipe

        self.estimator, self.notes = estimator, notes
        self.recipe = notes.get("recipe") or getattr(estimator, "recipe_", None) or plain_recipe(notes["columns"])
        self.is_coded = getattr(estimator, "recipe_", None) is not None
        self.n_classes = int(getattr(estimator, "n_classes_", estimator.n_classes))

    def predict_proba(self, X: "Floats") -> "Floats":
        """Probability of each class for some rows."""
        return self.estimator.predict_proba(self._as_fitted(X))  # type: ignore[no-any-return]

    def _as_fitted(self, X: "Floats") -> "Floats | Coded":
        """Rows scaled as those of the fit, and with their recipe if the estimator has one."""
        from linkmix.app.cli.points import as_given

        rows = (X - self.notes["center"]) / self.notes["spread"] if "center" in self.notes else X
        return as_given(rows, self.recipe if self.is_coded else None)

    def probabilities(self, X: "Floats") -> "Floats":
        """Probability of each class for each point, block by block."""
        import numpy as np

        from linkmix.data.blocks import Blocks
        from linkmix.tables import piled

        return piled(self.predict_proba(np.asarray(block)) for block in Blocks.from_array(X))

    def noise(self, X: "Floats") -> "Floats | None":
        """Probability that each point belongs to no class, block by block; None if the model knows no such points."""
        import numpy as np

        from linkmix.data.blocks import Blocks
        from linkmix.tables import piled

        if not hasattr(self.estimator, "noise_share_"):
            return None
        blocks = map(np.asarray, Blocks.from_array(X))
        return piled(self.estimator.predict_noise(self._as_fitted(block)) for block in blocks)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags

        return get_tags(self.estimator)


def load(path: Path) -> Saved:
    """A model with its notes."""
    from linkmix.basics.errors import BadFile
    from linkmix.mixture import LinkMixture, model_file
    from linkmix.rivals.mixtures import EMPC, GMM, GMMEC, GMPR, PPC
    from linkmix.search import AutoLinkMixture

    found = model_file.load(path, [AutoLinkMixture, LinkMixture, GMPR, GMM, GMMEC, EMPC, PPC])
    notes = dict(found.notes)
    if "columns" not in notes:
        names = getattr(found.estimator, "feature_names_in_", None)
        if names is None:
            raise BadFile(
                path, "does not name the columns that it was fitted to: fit with linkmix fit, or to a data frame"
            )
        notes["columns"] = [str(name) for name in names]
    return Saved(found.estimator, notes)


def read_for(saved: Saved, points: Path, reading: "Reading", *, texts: bool = False) -> "Points":
    """Read the columns that a model was fitted to, with its column of ids if the table has it."""
    from linkmix.app.cli.notes import tell
    from linkmix.tables import column_names, read_points

    wanted = [column.name for column in saved.recipe.columns]
    id_column = reading.id_column
    if id_column is None and saved.notes.get("id") in column_names(points, wanted, reading.sheet):
        id_column = saved.notes["id"]
    table = read_points(
        points,
        id_column,
        recipe=saved.recipe,
        texts=texts,
        missing=[*saved.notes.get("missing", ()), *reading.missing],
        sheet=reading.sheet,
        progress=watched(),
    )
    tell(table.remarks)
    return table
