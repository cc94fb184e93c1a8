"""Which columns classes were made from, and which were not, in words."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkmix.basics.arrays import Floats
from linkmix.columns import describe
from linkmix.columns.moments import Date
from linkmix.plots.pages import count

if TYPE_CHECKING:
    from linkmix.tables import Points

MOST_NAMES = 15
"""Names that are listed before the rest is counted."""
MOST_DECIDING = 5
"""Columns that are said to decide before the rest is summed up."""
UNRELATED = "independent of all other columns and of the links"


def columns_in_words(points: "Points", model: Any = None) -> list[str]:
    """Say which columns were used, and which were left out and why.

    Parameters
    ----------
    points : Points
        The points of a fit.
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
    >>> points = Points(np.array(["0", "1"]), ("age",), np.array([[20.0], [30.0]]), unused={"id": "ids"})
    >>> columns_in_words(points)
    ['Used 1 column: age.', 'Left out: id (ids).']
    """
    kinds = None if points.recipe is None else dict(describe(points.recipe))
    noise = unrelated(points, model)
    used = [name if kinds is None else f"{name} ({kinds[name]})" for name in points.used if name not in noise]
    reasons = {**dict.fromkeys(noise, UNRELATED), **points.unused}
    said = [f"Used {count(len(used), 'column')}: {shortened(used)}." if used else "Used no column."]
    if reasons:
        said.append(f"Left out: {shortened([f'{name} ({why})' for name, why in reasons.items()])}.")
    return said


def unrelated(points: "Points", model: Any) -> list[str]:
    """The columns that the model has left out, because they have nothing to do with any other."""
    scale = getattr(model, "scale_", None)
    if scale is None or len(scale) != points.X.shape[1]:
        return []
    kept = {owner for owner, size in zip(points.owners, scale.tolist(), strict=True) if size > 0}
    return [name for name in points.used if name not in kept]


def n_used(points: "Points", model: Any) -> int:
    """Number of columns that the model uses."""
    return len(points.used) - len(unrelated(points, model))


def dates_of(points: "Points") -> set[str]:
    """The columns that hold dates, as days since 1970."""
    columns = () if points.recipe is None else points.recipe.columns
    return {column.name for column in columns if isinstance(column.kind, Date)}


def day(days: float) -> str:
    """A number of days since 1970 as a date.

    Examples
    --------
    >>> day(18806.4)
    '2021-06-28'
    """
    return "" if np.isnan(days) else str(np.datetime64(int(np.floor(days)), "D"))


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
