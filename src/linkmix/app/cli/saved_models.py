"""Models that linkmix fit wrote, and the points that they are applied to."""

from pathlib import Path
from typing import TYPE_CHECKING

from linkmix.app.cli.terminal import watched

if TYPE_CHECKING:
    from linkmix.app.cli.options import Reading
    from linkmix.app.models import Saved
    from linkmix.tables import Points


def load(path: Path) -> "Saved":
    """A model with its notes; if a crash has interrupted the writing of its folder, that is completed first."""
    from linkmix.app import results
    from linkmix.app.models import Saved
    from linkmix.basics.errors import BadFile
    from linkmix.mixture import LinkMixture, model_file
    from linkmix.rivals.mixtures import EMPC, GMM, GMMEC, GMPR, PPC, SoftChunkletMixture
    from linkmix.search import AutoLinkMixture

    results.complete(path.parent)
    rivals = [GMPR, GMM, GMMEC, EMPC, PPC, SoftChunkletMixture]
    found = model_file.load(path, [AutoLinkMixture, LinkMixture, *rivals])
    notes = dict(found.notes)
    if "columns" not in notes:
        names = getattr(found.estimator, "feature_names_in_", None)
        if names is None:
            raise BadFile(
                path, "does not name the columns that it was fitted to: fit with linkmix fit, or to a data frame"
            )
        notes["columns"] = [str(name) for name in names]
    return Saved(found.estimator, notes)


def read_for(saved: "Saved", points: Path, reading: "Reading", *, texts: bool = False) -> "Points":
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
