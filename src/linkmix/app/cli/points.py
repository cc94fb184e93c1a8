"""Points that commands read: with links, without gaps, scaled."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkmix.app.cli.failures import BadInput
from linkmix.app.cli.terminal import say, watched

if TYPE_CHECKING:
    from linkmix.app.cli.options import Reading
    from linkmix.basics.arrays import Floats
    from linkmix.links import Links
    from linkmix.tables import Points


def read(points: Path, reading: "Reading", links: Path | None, **options: Any) -> "tuple[Points, Links]":
    """Read points and links."""
    from linkmix.links import Links
    from linkmix.tables import read_links, read_points

    say(f"Reading {points} ...")
    table = read_points(points, texts=False, progress=watched(), **reading.arguments, **options)
    return table, Links() if links is None else read_links(links, table.ids)


def only_numbers(table: "Points", method: str, notes: list[str]) -> "Points":
    """The points without categories, for a method that knows only numbers; what is lost is noted."""
    try:
        found = table.numbers_alone()
    except ValueError as error:
        raise BadInput(f"{method} knows only numbers, and {error}, or use --method auto") from None
    lost = [name for name in table.used if name not in found.used]
    if lost:
        named = ", ".join(lost)
        notes.append(f"{method} knows only numbers, so it does without {named}; --method auto uses all columns")
    return found


def refuse_gaps(points: Path, table: "Points", model: Any, name: str) -> None:
    """Refuse missing values if the model cannot handle them."""
    import numpy as np
    from sklearn.utils import get_tags

    from linkmix.app.cli.notes import missing_in_words
    from linkmix.basics.errors import BadFile
    from linkmix.data.blocks import Blocks

    if get_tags(model).input_tags.allow_nan:
        return
    if table.n_missing:
        row = 0
        for block in Blocks.from_array(table.X):
            if (gaps := np.isnan(block)).any():
                break
            row += len(block)
        below, column = np.argwhere(gaps)[0]
        first = table.ids[row + int(below)]
        which = "that" if table.n_missing == 1 else "the first one"
        raise BadFile(
            points,
            f"{missing_in_words(table.n_missing)}, {which} of id {first!r}, and {name} needs all values: fill in "
            "what is missing, choose other columns, or use --method auto",
            column=table.columns[column],
        )


def standardised(table: "Points") -> "Floats":
    """Points with columns of mean zero and unit variance; those of a large table in a scratch file."""
    from linkmix.data.blocks import Blocks
    from linkmix.tables import piled

    return piled(map(table.summary.standardise, Blocks.from_array(table.X)))
