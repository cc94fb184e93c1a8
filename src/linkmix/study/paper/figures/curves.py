"""Curves of the purity of methods against the number of links."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from linkmix.basics.arrays import Ints
from linkmix.plots import INK, Dashes
from linkmix.study.paper.figures.axes import common, grid, spans_of
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

_BAND = 0.13  # opacity of a band


def purity_against_links(
    table: "pd.DataFrame",
    data_names: Sequence[str],
    kind: str,
    methods: Sequence[str],
    floors: Mapping[str, float],
    *,
    equal: bool = False,
) -> Figure:
    """Draw the purity of methods against the number of links, a panel for each data set.

    Methods that use no links are level lines. Runs of the other methods without links are not shown. Methods that come
    first have wider lines, so that one below another can still be seen. Where much of an axis would be empty, it is
    broken.

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
    equal : bool, default=False
        Whether all panels have the same limits.

    Returns
    -------
    matplotlib Figure
        Means as lines, standard deviations as bands.
    """
    what = {"must": "must-links", "cannot": "cannot-links", "even": "links, half of them must-links"}.get(kind, "links")
    if not data_names:
        raise ValueError("there are 0 data sets to draw: name at least one that is in the table")
    there = {method for name in data_names for method in runs_with(table, name, kind)["method"]}
    for method in methods:
        if method not in STYLES:
            raise ValueError(f"method {method!r} has no style: choose from {', '.join(STYLES)}")
        if method not in there:
            raise ValueError(f"the table has no run of {method!r} on {', '.join(data_names)}: leave it out")
    spans = [spans_of(_heights(table, name, kind, methods, floors)) for name in data_names]
    if equal:
        spans = [common(spans)] * len(spans)
    figure, panels = grid(spans)
    for panel, letter, name in zip(panels, letters(), data_names, strict=False):
        for ax in panel.axes:
            _draw_curves(ax, table, name, kind, methods)
        part = runs_with(table, name, kind)
        failed = _failures(part[part["method"].isin(methods)])
        panel.finish("\n".join([f"({letter}) {data_name(name)}", *failed]), f"number of {what}", "purity")
        if name in floors:
            _draw_level(panel.at(floors[name]), floors[name], "floor", DOTTED)
    more = [(level_mark(DOTTED), "share of largest class")] if floors else []
    _draw_key(figure, [panel.upper for panel in panels], table, data_names, kind, methods, more=more)
    return figure


def _heights(
    table: "pd.DataFrame", name: str, kind: str, methods: Sequence[str], floors: Mapping[str, float]
) -> list[tuple[float, float]]:
    """What has to be in sight: from where to where each curve with its band goes, and the floor."""
    part = runs_with(table, name, kind)
    groups = part[part["method"].isin(methods)].groupby(["method", "n_links"])["score"]
    found: dict[str, list[float]] = {}
    for (method, _), some in groups:
        if some.notna().any():
            mean, spread = float(some.mean()), _spread(some)
            found.setdefault(str(method), []).extend((mean - spread, mean + spread))
    level = [(floors[name], floors[name])] if name in floors else []
    return [(min(ends), max(ends)) for ends in found.values()] + level


def coil20(
    table: "pd.DataFrame",
    *,
    kind: str = "cannot",
    methods: Sequence[str] = ("paper-3", "sskk", "csc"),
    floors: Mapping[str, float] | None = None,
) -> Figure:
    """Draw COIL-20: by default GM-PR with three clusters per class, SSKK and CSC, a panel for each dimension.

    Parameters
    ----------
    table : DataFrame
        Runs on ``coil20-10``, ``coil20-15`` and ``coil20-20``, or some of these.
    kind : {"cannot", "both"}
        Kind of links; the caption of the paper says cannot-links.
    methods : sequence of str
        Methods to draw.
    floors : mapping of data set to float, optional
        Share of the largest class.

    Returns
    -------
    matplotlib Figure
        All panels have the same axes.
    """
    names = [f"coil20-{d}" for d in (10, 15, 20) if np.any(table["data"] == f"coil20-{d}")]
    return purity_against_links(table, names, kind, methods, floors or {}, equal=True)


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
        Both panels have the same axes.
    """
    names = [name for name in ("mnist-123", "mnist-4567") if np.any(table["data"] == name)]
    figure = purity_against_links(table, names, "both", CLUSTERS_PER_CLASS, floors or {}, equal=True)
    figure.legends[0].get_texts()[0].set_text("GM-PR, K = 1")  # in the other figures it is just GM-PR
    return figure


def differences_against_links(cells: Mapping[str, Any], data_names: Sequence[str], ours: str = "paper") -> Figure:
    """Draw by how much a method is ahead of others, with 95 % intervals, a panel for each data set.

    Parameters
    ----------
    cells : mapping of method to DataFrame
        For each of the others, the result of `linkmix.study.paper.evidence.differences`.
    data_names : sequence of str
        Data sets to draw.
    ours : str, default="paper"
        The method that is ahead if the difference is above zero.

    Returns
    -------
    matplotlib Figure
        All panels have the same axes.
    """
    ends = [
        (float(part[column].loc[name].min()), float(part[column].loc[name].max()))
        for part in cells.values()
        for name in data_names
        for column in ("low", "high", "mean")
    ]
    ends = [(low, high) for low, high in ends if np.isfinite([low, high]).all()]
    low, high = min([0.0, *(low for low, _ in ends)]), max([0.0, *(high for _, high in ends)])
    pad = 0.06 * (high - low) + 0.005
    figure, panels = grid([[(low - pad, high + pad)]] * len(data_names))
    for panel, letter, name in zip(panels, letters(), data_names, strict=False):
        ax = panel.upper
        ax.set_xscale("log", base=2)
        for place, (method, part) in enumerate(cells.items()):
            of, style = part.loc[name], STYLES[method]
            x = of.index.to_numpy(dtype=np.float64) * 2 ** (0.12 * (place - (len(cells) - 1) / 2))  # side by side
            error = np.where(np.isfinite(of["high"]), of["high"] - of["mean"], 0.0)
            ax.errorbar(
                x,
                of["mean"],
                yerr=error,
                color=style.colour,
                marker=style.marker,
                linestyle=style.dashes,
                linewidth=1.4,
                capsize=2.5,
                label=f"ahead of {style.name}",
            )
        ax.axhline(0, color=INK, linewidth=1.0, linestyle=DOTTED)
        _set_ticks(ax, of.index.to_numpy(dtype=np.int64))
        panel.finish(f"({letter}) {data_name(name)}", "number of links", f"purity of {STYLES[ours].name} minus other")
    figure.legend(
        *panels[0].upper.get_legend_handles_labels(),
        title=f"Mean differences of {STYLES[ours].name} over {int(part['trials'].min())} trials; bars: 95 % intervals",
        loc="outside lower center",
        ncols=len(cells),
        frameon=False,
        fontsize=9,
        title_fontsize=9,
    )
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
    if not names:
        raise ValueError("there are 0 data sets to draw: name at least one that is in the table")
    figure, rooms = grid([None] * len(names))
    panels = [room.upper for room in rooms]
    for room, letter, name in zip(rooms, letters(), names, strict=False):
        ax, part = room.upper, runs_with(table, name, kind)
        _draw_curves(ax, table, name, kind, methods, ours=ours)
        failed = _failures(part[part["method"].isin(methods)])
        room.finish("\n".join([f"({letter}) {data_name(name)}", *failed]), "number of links", "purity")
        low, high = ax.get_ylim()
        ax.set_ylim(max(low, 0.0), min(high, 1.01))
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
    places = {method: place for place, method in enumerate(method for method in methods if not is_blind(method))}
    for method in methods:
        place = places.get(method, 3)
        runs, style = part[part["method"] == method], STYLES[method]
        if not runs["score"].notna().any():
            continue
        thick = method == ours
        look: dict[str, Any] = {
            "color": style.colour,
            "linestyle": style.dashes,
            "linewidth": 2.6 if thick else (1.0 if ours else _width(place)),
            "zorder": 4 if thick else 3 + 0.01 * place,
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
        size = 6.5 if thick else (4.0 if ours else 3.8 + 1.4 * _width(place))
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


def _width(place: int) -> float:
    """Width of the line of a method: the first one is widest, so that it is seen below the others.

    Examples
    --------
    >>> [round(_width(place), 2) for place in range(4)]
    [3.2, 2.3, 1.73, 1.37]
    """
    return 0.75 + 2.45 * 0.633**place


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
    if not low < height < high:
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
    parts = [runs_with(table, name, kind) for name in data_names]
    counts = [part.loc[part["method"] == method, "seed"].nunique() for part in parts for method in methods]
    least, most = min(filter(None, counts), default=0), max(counts)  # a method may have no runs on some data
    runs = f"{least}" if least == most else f"{least} to {most}"
    handles += [handle for handle, _ in more]
    labels += [label for _, label in more]
    bands = "bands: standard deviations" if ours is None else f"band of {STYLES[ours].name}: standard deviation"
    width = 0.75 + 0.075 * max(map(len, labels))  # upper bound for a column, in inches
    figure.legend(
        handles,
        labels,
        title=f"Lines: means of {runs} run{'' if runs == '1' else 's'}; {bands}",
        loc="outside lower center",
        ncols=max(1, min(len(handles), int(figure.get_figwidth() / width))),
        frameon=False,
        handlelength=3.2,
        fontsize=9,
        title_fontsize=9,
    )
