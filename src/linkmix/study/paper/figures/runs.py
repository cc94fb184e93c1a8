"""What the figures show of a table of runs: which runs, their score, and how many links a method needs."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from linkmix.basics.arrays import Floats
from linkmix.study.registry import METHODS

if TYPE_CHECKING:
    import pandas as pd

RUN = ["data", "kind", "method", "n_links", "seed"]
"""Columns that identify a run."""
SHARE_OF_CEILING = 0.9


def score(table: "pd.DataFrame") -> "pd.Series[float]":
    """The purity shown in the figures: of ``predict``, as in the paper, or of ``labels_`` if there is no ``predict``.

    Parameters
    ----------
    table : DataFrame
        Runs, with columns ``purity`` and ``purity_predict``.

    Returns
    -------
    Series
        One value per run; missing if the run failed.

    Examples
    --------
    >>> import pandas as pd
    >>> score(pd.DataFrame({"purity": [0.8, 0.9, None], "purity_predict": [0.7, None, None]})).tolist()
    [0.7, 0.9, nan]
    """
    chosen: pd.Series[float] = table["purity_predict"].astype(float).fillna(table["purity"].astype(float))
    return chosen.rename("score")


def is_blind(method: str) -> bool:
    """Whether a method of the registry uses no links."""
    known = METHODS.get(method)
    return known is not None and not known.uses_links


def runs_with(table: "pd.DataFrame", name: str, kind: str) -> "pd.DataFrame":
    """Runs on a data set with their scores: those with links of the kind, and those of methods that use no links."""
    part = table[table["data"] == name]
    blind = part["method"].map(is_blind).astype(bool)
    part = part[(blind & (part["n_links"] == 0)) | (~blind & (part["kind"] == kind) & (part["n_links"] > 0))]
    if part.empty:
        raise ValueError(f"the table has no runs on {name!r} with links of kind {kind!r}: run them first")
    # Experiments may share runs, and a method that uses no links has the same run for every kind.
    part = part.assign(kind=kind).drop_duplicates(RUN)
    return part.assign(score=score(part))


def fewest_links_summary(table: "pd.DataFrame", ceilings: Mapping[str, float], *, kind: str = "both") -> "pd.DataFrame":
    """Mean height of the curve of each method on each data set, and the number of links that it needs.

    Parameters
    ----------
    table : DataFrame
        Runs, as returned by `linkmix.compare`.
    ceilings : mapping of data set to float
        Purity of a supervised model, for each data set to summarise.
    kind : {"both", "must", "cannot", "even"}
        Kind of links.

    Returns
    -------
    DataFrame
        ``data`` and ``method``; ``area``, the mean height of the curve of mean purity over the logarithm of the number
        of links, missing if all runs with some number of links failed; ``links_needed``, the number of links at which
        the curve first reaches 90 % of the ceiling, interpolated on the logarithmic axis: the smallest number of links
        in the table if the curve starts above, infinite if it stays below. For a method that uses no links the area is
        its mean, and it needs 0 or infinitely many links.

    Examples
    --------
    >>> import pandas as pd
    >>> runs = pd.DataFrame({"data": "iris", "kind": "both", "method": "paper", "n_links": [4, 16, 64], "seed": 0})
    >>> runs = runs.assign(purity=[0.6, 0.8, 1.0], purity_predict=None)
    >>> fewest_links_summary(runs, {"iris": 1.0})
       data method  area  links_needed
    0  iris  paper   0.8          32.0
    """
    import pandas as pd

    rows = []
    for name, ceiling in ceilings.items():
        target = SHARE_OF_CEILING * ceiling
        part = runs_with(table, name, kind)
        numbers = sorted(set(part["n_links"]) - {0})
        for method in dict.fromkeys(part["method"]):
            runs = part[part["method"] == method]
            if is_blind(method):
                area = float(runs["score"].mean())
                needed = 0.0 if area >= target else math.inf
            else:
                curve = runs.groupby("n_links")["score"].mean().reindex(numbers)
                x, height = np.log2(curve.index.to_numpy(dtype=np.float64)), curve.to_numpy(dtype=np.float64)
                area = float(np.trapezoid(height, x) / (x[-1] - x[0])) if len(x) > 1 else float(height[0])
                needed = _first_reached(x, height, target)
            rows.append({"data": name, "method": method, "area": area, "links_needed": needed})
    return pd.DataFrame(rows, columns=["data", "method", "area", "links_needed"])


def _first_reached(x: Floats, height: Floats, target: float) -> float:
    """Number of links, 2 to the power of x, at which the interpolated curve first reaches the target."""
    done = ~np.isnan(height)
    x, height = x[done], height[done]
    above = np.flatnonzero(height >= target)
    if not len(above):
        return math.inf
    i = above[0]
    if i == 0:
        return float(2 ** x[0])
    share = (target - height[i - 1]) / (height[i] - height[i - 1])
    return float(2 ** (x[i - 1] + share * (x[i] - x[i - 1])))
