"""Figures of what was chosen: the number of classes, and the shape of a mixture."""

import numpy as np
from matplotlib.figure import Figure

from linkmix.basics.arrays import Array
from linkmix.basics.palette import COLOURS, INK, MARKERS, UNSURE
from linkmix.plots.figures import DASHED


def choice_of_classes(table: Array, chosen: int) -> Figure:
    """Draw how well each number of classes fits the links and the points.

    Parameters
    ----------
    table : structured ndarray
        ``choice_`` of an `AutoLinkMixture` with ``n_classes="auto"``.
    chosen : int
        The chosen number, ``n_classes_``.

    Returns
    -------
    matplotlib Figure
        Misfit of the links above; below, how far the score by which the number is chosen is behind the best.
    """
    figure = Figure(figsize=(6.0, 5.0), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    numbers = table["n_classes"]
    for ax, values, name in (
        (upper, -table["log_probability_of_links"], "misfit of the links\n(- log-probability)"),
        (lower, table["score"].max() - table["score"], "score below the best\n(nats)"),
    ):
        ax.plot(numbers, values, color=COLOURS[0], marker="o")
        ax.axvline(chosen, color=INK, linestyle=DASHED, linewidth=1.0)
        ax.set_ylabel(name)
        ax.grid(axis="y", color=UNSURE)
    for number, misfit, broken in zip(numbers, -table["log_probability_of_links"], table["links_broken"], strict=True):
        upper.annotate(f"{broken:g}", (number, misfit), textcoords="offset points", xytext=(4, 5))
    upper.margins(y=0.2)
    upper.set_title(f"{chosen} classes were chosen (at each point: links broken)")
    lower.set_xlabel("number of classes")
    lower.set_xticks(numbers)
    return figure


def choice_of_shape(table: Array) -> Figure:
    """Draw how well each shape explains points and links that it has not seen.

    Parameters
    ----------
    table : structured ndarray
        ``table`` of a `linkmix.search.choice.Choice`.

    Returns
    -------
    matplotlib Figure
        Hidden links that agree, and log-likelihood of hidden points, each with its standard error; the chosen shape
        has a ring. Without hidden links there is only one panel.
    """
    several = len(np.unique(table["n_classes"])) > 1
    places = [str(n) for n in table["n_classes"]] if several else table["clusters_per_class"].tolist()
    ticks = list(dict.fromkeys(places))
    lines = [
        f"{row['clusters_per_class']} clusters, {row['covariance_type']}" if several else str(row["covariance_type"])
        for row in table
    ]
    names = list(dict.fromkeys(lines))
    shown = [("links_agree", "share of hidden links that agree")] if not np.isnan(table["links_agree"]).all() else []
    shown.append(("log_likelihood", "log-likelihood of a hidden point"))
    figure = Figure(figsize=(1.0 + 4.2 * len(shown), 4.4), layout="constrained")
    for ax, (column, title) in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
        for number, name in enumerate(names):
            rows = [i for i, line in enumerate(lines) if line == name]
            offset = 0.5 * ((number + 0.5) / len(names) - 0.5)  # side by side, so that bars do not hide each other
            ax.errorbar(
                [ticks.index(places[i]) + offset for i in rows],
                table[column][rows],
                yerr=table[f"{column}_error"][rows],
                color=COLOURS[number % len(COLOURS)],
                marker=MARKERS[(number + number // len(COLOURS)) % len(MARKERS)],
                linestyle=DASHED if number % 2 else "-",
                linewidth=1.2,
                capsize=2.5,
                label=name,
            )
            for i in rows:
                if table["chosen"][i]:
                    where = (ticks.index(places[i]) + offset, table[column][i])
                    ax.plot(*where, "o", markersize=15, markerfacecolor="none", color=INK, label="_chosen")
        ax.set_xticks(range(len(ticks)), ticks)
        ax.set_xlabel("number of classes" if several else "clusters per class")
        ax.set_title(title, fontsize=10)
        ax.grid(axis="y", color=UNSURE)
        ax.spines[["top", "right"]].set_visible(False)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        title="Means of the folds and their standard errors; a ring: chosen",
        loc="outside lower center",
        ncols=4,
        frameon=False,
        fontsize=9,
        title_fontsize=9,
    )
    return figure
