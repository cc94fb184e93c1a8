"""Paired differences of methods over trials with their intervals, and what follows from many of them.

Methods are compared trial by trial, on the same links and starts. Each difference has a 95 % interval (Student's t). A
method is ahead if the whole interval is above zero; it is at least as good if the whole interval is above minus a
margin. A difference that is merely not significant shows nothing: the cell is open.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import bdtrc, stdtrit

from linkmix.study.paper.figures.runs import score

if TYPE_CHECKING:
    import pandas as pd

Cells = Any
"""A table with a row for each data set and number of links; the pandas types cannot express what a row contains."""
Verdict = Literal["holds", "holds in part", "does not hold", "undecided", "not enough trials", "cannot be tested"]
PURITY_SETS = ("haberman", "thyroid", "mnist-123", "mnist-4567")
MARGIN = 0.01
"""A method that is behind by less than this, in mean purity, is at least as good: one point in a hundred."""
CONFIDENCE = 0.95
"""Of the intervals."""
ENOUGH_TRIALS = 30
"""With fewer, no verdict is given on what varies over trials."""


def differences(
    table: "pd.DataFrame", one: str, other: str, *, kind: str = "both", experiments: Iterable[str] = PURITY_SETS
) -> Cells:
    """Mean difference of two methods over trials, with its interval, for all data and numbers of links.

    Parameters
    ----------
    table : DataFrame
        Runs.
    one, other : str
        Names of the methods. A method that uses no links is compared at every number of links.
    kind : str
        Kind of links.
    experiments : iterable of str
        Names of the experiments to use.

    Returns
    -------
    DataFrame
        Index ``data`` and ``n_links``; columns ``mean``, ``low`` and ``high`` of its interval, infinite for a single
        trial, the number of ``trials``, and the means ``one`` and ``other``.

    Examples
    --------
    >>> import pandas as pd
    >>> runs = pd.DataFrame({"method": ["a", "a", "b", "b"], "n_links": [4, 4, 0, 0], "seed": [0, 1, 0, 1]})
    >>> runs = runs.assign(experiment="e", data="iris", kind="both", purity=[0.8, 0.9, 0.6, 0.68], purity_predict=None)
    >>> differences(runs, "a", "b", experiments=["e"]).round(3).values.tolist()
    [[0.21, 0.083, 0.337, 2.0, 0.85, 0.64]]
    """
    chosen: Any = table[table["experiment"].isin(list(experiments))]
    chosen = chosen.assign(score=score(chosen))
    with_links = chosen[(chosen["kind"] == kind) & (chosen["n_links"] > 0)]
    left = with_links[with_links["method"] == one].set_index(["data", "n_links", "seed"])["score"]
    right = with_links[with_links["method"] == other].set_index(["data", "n_links", "seed"])["score"]
    if right.empty:
        blind = chosen[(chosen["method"] == other) & (chosen["n_links"] == 0)].drop_duplicates(["data", "seed"])
        baseline = blind.set_index(["data", "seed"])["score"]
        keys = left.index.droplevel("n_links")
        right = left.copy()
        right[:] = baseline.reindex(keys).to_numpy()
    both = left.to_frame("one").join(right.to_frame("other"), how="inner").dropna()
    both["mean"] = both["one"] - both["other"]
    groups = both.groupby(level=["data", "n_links"], sort=False)
    result = groups[["mean", "one", "other"]].mean()
    result["trials"] = groups.size()
    half = half_width(groups["mean"].std(ddof=1), result["trials"])
    result["low"], result["high"] = result["mean"] - half, result["mean"] + half
    return result[["mean", "low", "high", "trials", "one", "other"]]


def half_width(deviation: Any, n: Any) -> Any:
    """Half the width of the interval of a mean of n trials; infinite for a single one.

    Examples
    --------
    >>> float(half_width(1.0, 100).round(3))
    0.198
    """
    n = np.asarray(n)
    several = np.maximum(n, 2)
    half = stdtrit(several - 1, (1 + CONFIDENCE) / 2) * np.asarray(deviation) / np.sqrt(several)
    return np.where(n > 1, half, np.inf)


@dataclass(frozen=True)
class Tally:
    """In how many cells a statement is shown, in how many its contrary, and how many are open."""

    shown: int
    against: int
    open: int
    n_trials: int

    @classmethod
    def of(cls, cells: Cells, ahead: bool) -> "Tally":
        """Count the cells in which the first method is ahead, or at least as good."""
        least = 0.0 if ahead else -MARGIN
        shown, against = int((cells["low"] > least).sum()), int((cells["high"] < least).sum())
        return cls(shown, against, len(cells) - shown - against, int(cells["trials"].min()))

    def __add__(self, other: "Tally") -> "Tally":
        """Both together."""
        return Tally(
            self.shown + other.shown,
            self.against + other.against,
            self.open + other.open,
            min(self.n_trials, other.n_trials),
        )

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.shown + self.against + self.open

    @property
    def verdict(self) -> Verdict:
        """What follows from the cells together."""
        if self.n_trials < ENOUGH_TRIALS:
            return "not enough trials"
        if self.shown == self.n_cells:
            return "holds"
        if 2 * self.shown > self.n_cells:
            return "holds in part"
        # A claim about every cell is refuted by more contrary cells than intervals give by chance where it is true.
        by_chance = bdtrc(self.against - 1, self.n_cells, (1 - CONFIDENCE) / 2) if self.against else 1.0
        return "does not hold" if not self.open or by_chance < 1 - CONFIDENCE else "undecided"

    def __str__(self) -> str:
        """The counts in words."""
        return f"{self.shown} of {self.n_cells}" + "".join(
            f", {n} {word}" for n, word in ((self.against, "not"), (self.open, "open")) if n
        )
