"""Which method needs the fewest links: means over all data sets, and where AutoLinkMixture is behind the best rival."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from linkmix.plots import INK
from linkmix.study.paper.figures.runs import is_blind
from linkmix.study.paper.figures.styles import STYLES

if TYPE_CHECKING:
    import pandas as pd

OURS = ("auto", "auto-5", "linkmix")
"""Our methods; all others are rivals."""
BEHIND = 0.02
"""A method counts as behind if the difference is larger."""
SCORES = {
    "ARI of predict": ("ari_predict", "ari"),
    "ARI of labels_": ("ari", "ari"),
    "purity of predict": ("purity_predict", "purity"),
    "purity of labels_": ("purity", "purity"),
}
"""The scores: a column of the table of runs, and the one to use for methods without ``predict``."""


def mean_scores(table: "pd.DataFrame", score: str = "ARI of predict") -> "pd.DataFrame":
    """Mean score over data sets and trials for each method and number of links, and the mean seconds of a fit.

    Parameters
    ----------
    table : DataFrame
        Runs of the experiment ``fewest-links``.
    score : str
        A name in `SCORES`.

    Returns
    -------
    DataFrame
        Columns ``method``, the numbers of links, and ``seconds``; the best method first. A method that uses no links
        has the same mean for all numbers of links.
    """
    by_data = scored(table, score).groupby(["method", "data", "n_links"])["score"].mean()
    wide = by_data.groupby(["method", "n_links"]).mean().unstack("n_links")
    wide["seconds"] = table.groupby("method")["seconds"].mean()
    return wide.sort_values(wide.columns[-2], ascending=False).reset_index()


def against_rivals(table: "pd.DataFrame", ours: str = "auto", score: str = "ARI of predict") -> "pd.DataFrame":
    """Compare one of our methods with the best rival, on each data set at each number of links.

    Parameters
    ----------
    table : DataFrame
        Runs of the experiment ``fewest-links``.
    ours : str
        Name of the method.
    score : str
        A name in `SCORES`.

    Returns
    -------
    DataFrame
        Columns ``data``, ``n_links``, ``ours``, ``best``, ``rival`` and ``behind``.
    """
    import pandas as pd

    means = scored(table, score).groupby(["data", "n_links", "method"])["score"].mean().unstack("method")
    rivals = means.drop(columns=[name for name in OURS if name in means])
    best, rival = rivals.max(axis=1), rivals.idxmax(axis=1)
    found = pd.DataFrame({"ours": means[ours], "best": best, "rival": rival, "behind": means[ours] - best < -BEHIND})
    return found.reset_index()


def mean_curves(table: "pd.DataFrame") -> Figure:
    """Draw the mean ARI of ``predict`` over all data sets against the number of links.

    Parameters
    ----------
    table : DataFrame
        Runs of the experiment ``fewest-links``.

    Returns
    -------
    Figure
    """
    means = mean_scores(table).set_index("method").drop(columns="seconds")
    numbers = means.columns.to_numpy(dtype=np.float64)
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    ends: list[float] = []
    for method in means.index:
        style, heights = STYLES[method], means.loc[method].to_numpy(dtype=np.float64)
        ours = method in ("auto", "auto-5")
        width = 2.6 if ours else 1.2
        axes.plot(
            numbers,
            heights,
            color=style.colour,
            linestyle=style.dashes,
            marker=style.marker,
            linewidth=width,
            markersize=5,
        )
        # Names at the ends of the curves, far enough apart to be readable.
        place = min([heights[-1], *(end - 0.022 for end in ends)])
        ends.append(place)
        axes.annotate(
            style.name,
            (numbers[-1] * 1.02, heights[-1]),
            (numbers[-1] * 1.16, place),
            color=style.colour,
            va="center",
            fontsize=8,
            arrowprops={"arrowstyle": "-", "color": style.colour, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0},
        )
    axes.set_xscale("log")
    axes.set_xticks(numbers, [f"{number:g}" for number in numbers])
    axes.minorticks_off()
    axes.set_xlim(numbers[0] * 0.9, numbers[-1] * 2.1)
    axes.set_xlabel("links between random pairs of points")
    axes.set_ylabel("adjusted Rand index of predict, mean of the data sets")
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK)
    return figure


def scored(table: "pd.DataFrame", score: str) -> "pd.DataFrame":
    """Runs with a column ``score``; runs of methods that use no links are repeated for each number of links.

    Parameters
    ----------
    table : DataFrame
        Runs of the experiment ``fewest-links``.
    score : str
        A name in `SCORES`.

    Returns
    -------
    DataFrame
    """
    import pandas as pd

    column, other = SCORES[score]
    runs = table.drop_duplicates(["data", "method", "n_links", "seed"])
    runs = runs.assign(score=runs[column].astype(float).fillna(runs[other].astype(float)))
    blind = runs["method"].map(is_blind).astype(bool)
    numbers = sorted(set(runs.loc[~blind, "n_links"]))
    repeated = [runs[blind].assign(n_links=number) for number in numbers]
    return pd.concat([runs[~blind], *repeated], ignore_index=True)
