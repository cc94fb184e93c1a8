"""Which columns classes were made from, and which were not, in words."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from linkmix.plots.pages import count

if TYPE_CHECKING:
    from linkmix.tables import Points

MOST_NAMES = 15
"""Names that are listed before the rest is counted."""
CONSTANT = "the same value in every row"


def columns_in_words(points: "Points") -> list[str]:
    """Say which columns were used, and which were left out and why.

    Parameters
    ----------
    points : Points
        The points of a fit. A column with the same value in every row tells no rows apart, so it counts as left out.

    Returns
    -------
    list of str
        One or two sentences.

    Examples
    --------
    >>> import numpy as np
    >>> from linkmix.tables import Points
    >>> X = np.array([[20.0, 7.0], [30.0, 7.0]])
    >>> columns_in_words(Points(np.array(["0", "1"]), ("age", "batch"), X, unused={"name": "text"}))
    ['Used 1 column: age.', 'Left out: batch (the same value in every row), name (text).']
    """
    same = (points.summary.low == points.summary.high).tolist()
    used = [name for name, is_same in zip(points.columns, same, strict=True) if not is_same]
    reasons = {name: CONSTANT for name, is_same in zip(points.columns, same, strict=True) if is_same}
    reasons.update(points.unused)
    said = [f"Used {count(len(used), 'column')}: {shortened(used)}." if used else "Used no column."]
    if reasons:
        said.append(f"Left out: {shortened([f'{name} ({why})' for name, why in reasons.items()])}.")
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
