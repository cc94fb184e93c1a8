"""Which columns classes were made from, and which were not, in words."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkmix.basics.arrays import Floats
from linkmix.plots.pages import count

if TYPE_CHECKING:
    from linkmix.tables import Points

MOST_NAMES = 15
"""Names that are listed before the rest is counted."""
MOST_DECIDING = 5
"""Columns that are said to decide before the rest is summed up."""
CONSTANT = "the same value in every row"
UNRELATED = "independent of all other columns and of the links"


def columns_in_words(points: "Points", model: Any = None) -> list[str]:
    """Say which columns were used, and which were left out and why.

    Parameters
    ----------
    points : Points
        The points of a fit. A column with the same value in every row tells no rows apart, so it counts as left out.
    model : estimator, optional
        The model, which may have left out more columns.

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
    same = points.summary.low == points.summary.high
    scale = getattr(model, "scale_", None)
    left_out = same if scale is None or len(scale) != len(same) else same | (scale == 0)
    used = [name for name, is_out in zip(points.columns, left_out, strict=True) if not is_out]
    reasons = {points.columns[j]: CONSTANT if same[j] else UNRELATED for j in np.flatnonzero(left_out).tolist()}
    reasons.update(points.unused)
    said = [f"Used {count(len(used), 'column')}: {shortened(used)}." if used else "Used no column."]
    if reasons:
        said.append(f"Left out: {shortened([f'{name} ({why})' for name, why in reasons.items()])}.")
    return said


def deciding_in_words(names: Sequence[str], weights: Floats) -> str:
    """Say which columns decide, the first few of many.

    Examples
    --------
    >>> deciding_in_words(["age", "size", "noise"], np.array([0.2, 0.8, 0.0]))
    'Decides: size 80 %, age 20 %.'
    """
    order = [j for j in np.argsort(-weights, kind="stable").tolist() if weights[j] >= 0.005]
    first = order[: MOST_DECIDING if len(order) > MOST_DECIDING + 1 else None]
    said = [f"{names[j]} {100 * weights[j]:.0f} %" for j in first]
    rest = 100 * (1 - float(weights[first].sum()))
    more = [f"{count(len(order) - len(first), 'other')} {rest:.0f} %"] if len(order) > len(first) else []
    return f"Decides: {', '.join([*said, *more])}."


def shortened(names: Sequence[str]) -> str:
    """Names separated by commas, the first few of many.

    Examples
    --------
    >>> shortened([f"c{i}" for i in range(400)])[-27:]
    'c12, c13, c14, and 385 more'
    """
    more = [f"and {len(names) - MOST_NAMES:,} more"] if len(names) > MOST_NAMES else []
    return ", ".join([*names[:MOST_NAMES], *more])
