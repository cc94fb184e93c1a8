"""Which columns classes were made from, and which were not, in words."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from linkmix.columns import describe
from linkmix.plots.pages import count

if TYPE_CHECKING:
    from linkmix.tables import Points

MOST_NAMES = 15
"""Names that are listed before the rest is counted."""


def columns_in_words(points: "Points") -> list[str]:
    """Say which columns were used, and which were left out and why.

    Parameters
    ----------
    points : Points
        The points of a fit.

    Returns
    -------
    list of str
        One or two sentences.

    Examples
    --------
    >>> import numpy as np
    >>> from linkmix.tables import Points
    >>> points = Points(np.array(["0", "1"]), ("age",), np.array([[20.0], [30.0]]), unused={"id": "ids"})
    >>> columns_in_words(points)
    ['Used 1 column: age.', 'Left out: id (ids).']
    """
    used = list(points.used)
    if points.recipe is not None:
        used = [f"{name} ({kind})" for name, kind in describe(points.recipe)]
    said = [f"Used {count(len(used), 'column')}: {shortened(used)}." if used else "Used no column."]
    if points.unused:
        said.append(f"Left out: {shortened([f'{name} ({why})' for name, why in points.unused.items()])}.")
    return said


def shortened(names: Sequence[str]) -> str:
    """Names separated by commas, the first few of many.

    Examples
    --------
    >>> shortened([f"c{i}" for i in range(400)])[-27:]
    'c12, c13, c14, and 385 more'
    """
    more = [f"and {len(names) - MOST_NAMES:,} more"] if len(names) > MOST_NAMES else []
    return ", ".join([*names[:MOST_NAMES], *more])
