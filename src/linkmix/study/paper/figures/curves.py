"""Curves of the purity of methods against the number of links."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from linkmix.basics.arrays import Ints
from linkmix.plots import INK, Dashes
from linkmix.study.paper.figures.runs import SHARE_OF_CEILING, is_blind, runs_with
from linkmix.study.paper.figures.styles import (
    CLUSTERS_PER_CLASS,
    DASH_DOT,
    DOTTED,
    STYLES,
    data_name,
    letters,
    level_mark,
)

if TYPE_CHECKING:
    import pandas as pd

_BAND = 0.16  # opacity of a band


def purity_against_links(
    table: "pd.DataFrame",
    data_names: Sequence[str],
    kind: str,
    methods: Sequence[str],
    floors: Mapping[str, float],
) -> Figure:
    """Draw the purity of methods against the number of links, a panel for each data set.

    Methods that use no links are level lines. Runs of the other methods without links are not shown.

    Parameters
    ----------
    table : DataFrame
        Runs, as returned by `linkmix.compare`.
    data_names : sequence of str
        Data sets to draw.
    kind : {"both", "must", "cannot", "even"}
        Kind of links.
    methods : sequence of str
        Methods to draw; a method without runs on a data set is left out of its panel.
    floors : mapping of data set to float
        Share of the largest class, below which purity cannot fall.

    Returns
    -------
    matplotlib Figure
        Means as lines, standard deviations as bands.
    """
    what = {"must": "must-links", "cannot": "cannot-links", "even": "links, half of them must-links"}.get(kind, "links")
    figure, panels = _grid(len(data_names))
    there = {method for name in data_names for method in runs_with(table, name, kind)["method"]}
    for method in methods:
        if method not in STYLES:
            raise ValueError(f"method {method!r} has no style: choose from {', '.join(STYLES)}")
        if method not in there:
            raise ValueError(f"the table has no run of {method!r} on {', '.join(data_names)}: leave it out")
    for ax, letter, name in zip(panels, letters(), data_names, strict=False):
        _draw_curves(ax, f"({letter})", table, name, kind, methods)
        ax.set_xlabel(f"number of {what}")
        if name in floors:
            _draw_level(ax, floors[name], "floor", DOTTED)
    more = [(level_mark(DOTTED), "share of largest class")] if floors else []
    _draw_key(figure, panels, table, data_names, kind, methods, more=more)
    return figure


def coil20(table: "pd.DataFrame", *, floors: Mapping[str, float] | None = None) -> Figure:
    """Draw COIL-20: GM-PR with three clusters per class, SSKK and CSC, a panel for each dimension.

    Parameters
    ----------
    table : DataFrame
        Runs on ``coil20-10``, ``coil20-15`` and ``coil20-20``, or some of these.
    floors : mapping of data set to float, optional
        Share of the largest class.

    Returns
    -------
    matplotlib Figure
    """
    names = [f"coil20-{d}" for d in (10, 15, 20) if np.any(table["data"] == f"coil20-{d}")]
    return purity_against_links(table, names, "both", ("paper-3", "sskk", "csc"), floors or {})


def clusters_per_class(table: "pd.DataFrame", *, floors: Mapping[str, float] | None = None) -> Figure:
    """Draw GM-PR with one to four clusters per class on both sets of digits.

    Parameters
    ----------
    table : DataFrame
        Runs of ``paper``, ``paper-2``, ``paper-3`` and ``paper-4`` on ``mnist-123`` and ``mnist-4567``, or one of them.
    floors : mapping of data set to float, optional
        Share of the largest class.

    Returns
    -------
    matplotlib Figure
    """
    names = [name for name in ("mnist-123", "mnist-4567") if np.any(table["data"] == name)]
    figure = purity_against_links(table, names, "both", CLUSTERS_PER_CLASS, floors or {})
    figure.legends[0].get_texts()[0].set_text("GM-PR, K = 1")  # in the other figures it is just GM-PR
    return figure


def fewest_links(
    table: "pd.DataFrame", ceilings: Mapping[str, float], *, ours: str = "auto", kind: str = "both"
) -> Figure:
    """Draw one method against all others, a small panel for each data set.

    Parameters
    ----------
    table : DataFrame
        Runs, as returned by `linkmix.compare`.
    ceilings : mapping of data set to float
        Purity of a supervised model, for each data set to draw.
    ours : str, default="auto"
        The method to emphasise with a thick line and a band. All others are thin lines without a band.
    kind : {"both", "must", "cannot", "even"}
        Kind of links.

    Returns
    -------
    matplotlib Figure
    """
    names, methods = list(ceilings), [name for name in STYLES if np.any(table["method"] == name)]
    figure, panels = _grid(len(names))
    for ax, letter, name in zip(panels, letters(), names, strict=False):
        _draw_curves(ax, f"({letter})", table, name, kind, methods, ours=ours)
        ax.set_xlabel("number of links")
        _draw_level(ax, ceilings[name], "ceiling", DASH_DOT)
        _draw_level(ax, SHARE_OF_CEILING * ceilings[name], f"{SHARE_OF_CEILING:.0%}", DOTTED)
    more = [
        (level_mark(DASH_DOT), "supervised ceiling"),
        (level_mark(DOTTED), f"{SHARE_OF_CEILING:.0%} of the ceiling"),
    ]
    _draw_key(figure, panels, table, names, kind, methods, ours=ours, more=more)
    return figure


def _draw_curves(
    ax: Axes,
    letter: str,
    table: "pd.DataFrame",
    name: str,
    kind: str,
    methods: Sequence[str],
    *,
    ours: str | None = None,
) -> None:
    """Draw the means of all methods on one data set. If `ours` is given, only that method is thick and has a band."""
    part = runs_with(table, name, kind)
    part = part[part["method"].isin(methods)]
    numbers = np.unique(part["n_links"].to_numpy(dtype=np.int64))
    numbers = numbers[numbers > 0]
    ax.set_xscale("log", base=2)
    for method in methods:
        runs, style = part[part["method"] == method], STYLES[method]
        if not runs["score"].notna().any():
            continue
        thick = method == ours
        look: dict[str, Any] = {
            "color": style.colour,
            "linestyle": style.dashes,
            "linewidth": 2.6 if thick else (1.0 if ours else 1.6),
            "zorder": 4 if thick else 3,
        }
        if is_blind(method):
            mean, spread = float(runs["score"].mean()), _spread(runs["score"])
            ax.axhline(mean, label=style.name, **look)
            if ours is None:
                ax.axhspan(mean - spread, mean + spread, color=style.colour, alpha=_BAND, linewidth=0, zorder=1)
            continue
        groups = runs.groupby("n_links")["score"]
        means, spreads = groups.mean(), groups.apply(_spread)
        x = means.index.to_numpy(dtype=np.float64)
        size = 6.5 if thick else (4.0 if ours else 5.5)
        ax.plot(
            x,
            means,
            label=style.name,
            marker=style.marker,
            markersize=size,
            markeredgecolor="white",
            markeredgewidth=0.0 if ours and not thick else 0.4,
            **look,
        )
        if ours is None or thick:
            ax.fill_between(x, means - spreads, means + spreads, color=style.colour, alpha=_BAND, linewidth=0, zorder=1)
    _set_ticks(ax, numbers)
    ax.set_title("\n".join([f"{letter} {data_name(name)}", *_failures(part)]), fontsize=10)
    ax.set_ylabel("purity")
    ax.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    ax.grid(axis="y", color="#DDDDDD", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    low, high = ax.get_ylim()
    ax.set_ylim(max(low, 0.0), min(high, 1.01))


def _spread(scores: "pd.Series[float]") -> float:
    """Standard deviation; 0 for a single run."""
    return float(scores.std()) if scores.notna().sum() > 1 else 0.0


def _failures(runs: "pd.DataFrame") -> list[str]:
    """One line with the number of failed runs, if there are any."""
    failed = runs[runs["error"].notna()]
    if failed.empty:
        return []
    by_method = failed["method"].value_counts(sort=False)
    names = ", ".join(f"{STYLES[str(method)].name} {number}" for method, number in by_method.items())
    return [f"{len(failed)} of {len(runs)} runs failed ({names})"]


def _set_ticks(ax: Axes, numbers: Ints) -> None:
    if not len(numbers):
        ax.xaxis.set_major_locator(NullLocator())
        return
    ax.xaxis.set_major_locator(FixedLocator(numbers.tolist()))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:.0f}"))
    ax.xaxis.set_minor_locator(NullLocator())
    gaps = np.diff(np.log2(numbers))
    if len(gaps) and gaps.min() / gaps.sum() < 0.09:  # labels would overlap
        ax.tick_params(axis="x", labelrotation=60)


def _draw_level(ax: Axes, height: float, name: str, dashes: Dashes) -> None:
    """Draw a level line, with its name and height to the right of the panel; extend the limits to include it."""
    low, high = ax.get_ylim()
    margin = 0.04 * (max(high, height) - min(low, height))
    ax.set_ylim(min(low, height - margin), max(high, min(height + margin, 1.01)))
    ax.axhline(height, color=INK, linewidth=1.0, linestyle=dashes, zorder=2, label=f"_{name}")
    ax.annotate(
        f"{name} {height:.3f}",
        xy=(1, height),
        xycoords=("axes fraction", "data"),
        xytext=(3, 0),
        textcoords="offset points",
        va="center",
        fontsize=7.5,
        color=INK,
    )


def _draw_key(
    figure: Figure,
    panels: Sequence[Axes],
    table: "pd.DataFrame",
    data_names: Sequence[str],
    kind: str,
    methods: Sequence[str],
    *,
    ours: str | None = None,
    more: Sequence[tuple[Line2D, str]] = (),
) -> None:
    """Draw one legend below all panels: the methods drawn, the meaning of lines and bands, and the level lines."""
    drawn: dict[str, Any] = {}
    for ax in panels:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            drawn.setdefault(label, handle)
    labels = [STYLES[method].name for method in methods if STYLES[method].name in drawn]
    handles = [drawn[label] for label in labels]
    seeds = sorted({int(runs_with(table, name, kind)["seed"].nunique()) for name in data_names})
    runs = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    handles += [handle for handle, _ in more]
    labels += [label for _, label in more]
    bands = "bands: standard deviations" if ours is None else f"band of {STYLES[ours].name}: standard deviation"
    width = 0.75 + 0.075 * max(map(len, labels))  # upper bound for a column, in inches
    figure.legend(
        handles,
        labels,
        title=f"Lines: means of {runs} runs; {bands}",
        loc="outside lower center",
        ncols=max(1, min(len(handles), int(figure.get_figwidth() / width))),
        frameon=False,
        handlelength=3.2,
        fontsize=9,
        title_fontsize=9,
    )


def _grid(n_panels: int) -> tuple[Figure, list[Axes]]:
    if n_panels == 0:
        raise ValueError("there are 0 data sets to draw: name at least one that is in the table")
    columns = min(2 if n_panels == 4 else 3, n_panels)
    rows = math.ceil(n_panels / columns)
    figure = Figure(figsize=(max(3.7 * columns, 5.5) + 0.5, 2.9 * rows + 0.9), layout="constrained")
    cells = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax in cells[n_panels:]:
        ax.set_axis_off()
    return figure, list(cells[:n_panels])
