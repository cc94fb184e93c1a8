"""Models that linkmix fit wrote, and the points that they are applied to."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkmix.app.cli.terminal import watched

if TYPE_CHECKING:
    from linkmix.basics.arrays import Floats
    from linkmix.tables import Points


def load(path: Path) -> tuple[Any, dict[str, Any]]:
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
    return found.estimator, notes


def read_for(notes: Mapping[str, Any], points: Path, id_column: str | None, *, texts: bool = False) -> "Points":
    """Read the columns that a model was fitted to, with its column of ids if the table has it."""
    from linkmix.app.cli.notes import tell
    from linkmix.tables import column_names, read_points

    if id_column is None and notes.get("id") in column_names(points, notes["columns"]):
        id_column = notes["id"]
    table = read_points(points, id=id_column, columns=notes["columns"], texts=texts, progress=watched())
    tell(table.remarks)
    return table


def scaled(X: "Floats", notes: Mapping[str, Any]) -> "Floats":
    """Points as the model was given them; those of a large table in a scratch file."""
    from linkmix.data.blocks import Blocks
    from linkmix.tables import piled

    if "center" not in notes:
        return X
    return piled((block - notes["center"]) / notes["spread"] for block in Blocks.from_array(X))


def noise_of(model: Any, X: "Floats", notes: Mapping[str, Any]) -> "Floats | None":
    """Probability that each point belongs to no class, block by block; None if the model knows no such points."""
    import numpy as np

    from linkmix.data.blocks import Blocks
    from linkmix.tables import piled

    if not hasattr(model, "noise_share_"):
        return None
    return piled(model.predict_noise(scaled(np.asarray(block), notes)) for block in Blocks.from_array(X))


def probabilities_of(model: Any, X: "Floats", notes: Mapping[str, Any]) -> "Floats":
    """Probability of each class for each point, block by block."""
    import numpy as np

    from linkmix.data.blocks import Blocks
    from linkmix.tables import piled

    return piled(model.predict_proba(scaled(np.asarray(block), notes)) for block in Blocks.from_array(X))
