"""The figures of the paper's experiments, and of the one that asks who needs the fewest links.

Curves are drawn from a table with one row for each run, as `linkmix.compare` gives it. A method has the same colour,
marker and dashes in all figures: no two agree in both colour and marker, so that they differ in grey print too.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.links import Links
from linkmix.mixture import LinkMixture
from linkmix.plots import DASHED, INK, SOLID, Dashes, draw_legend, draw_links, draw_mixture, draw_points
from linkmix.study.paper import synthetic
from linkmix.study.registry import METHODS

if TYPE_CHECKING:
    import pandas as pd

RUN = ["data", "kind", "method", "n_links", "seed"]
"""Columns that name a run."""
CLUSTERS_PER_CLASS = ("paper", "paper-2", "paper-3", "paper-4")
SHARE_OF_CEILING = 0.9
DATA_NAMES = {
    "haberman": "Haberman",
    "thyroid": "Thyroid",
    "iris": "Iris",
    "wine": "Wine",
    "breast-cancer": "Breast cancer",
    "segment": "Segment",
    "pendigits": "Pendigits",
    "digits": "Digits 8 x 8",
    "balance": "Balance",
    "mnist-123": "MNIST 1, 2, 3",
    "mnist-4567": "MNIST 4, 5, 6, 7",
    "coil20-10": "COIL-20, d = 10",
    "coil20-15": "COIL-20, d = 15",
    "coil20-20": "COIL-20, d = 20",
}
_DOTTED: Dashes = (0, (1.2, 1.8))
_DASH_DOT: Dashes = (0, (6, 1.8, 1.2, 1.8))
_LONG: Dashes = (0, (8, 2.5))
_BAND = 0.16


@dataclass(frozen=True)
class Style:
    """How a method looks in every figure.

    Attributes
    ----------
    name : str
        What readers know it by.
    colour, marker : str
        As matplotlib knows them; no marker for a method that uses no links and is a level line.
    dashes : str or tuple
        Dashes of its line.
    """

    name: str
    colour: str
    marker: str
    dashes: Dashes


STYLES: dict[str, Style] = {
    "auto": Style("AutoLinkMixture", "#D55E00", "o", SOLID),
    "auto-5": Style("AutoLinkMixture, 5", "#D55E00", "h", DASHED),
    "linkmix": Style("LinkMixture, graph", "#B8860B", "o", _LONG),
    "paper": Style("GM-PR", "#0072B2", "s", SOLID),
    "gmm": Style("GMM", "#777777", "", DASHED),
    "gmm-ec": Style("GMM-EC", "#009E73", "^", _LONG),
    "em-pc": Style("EM-PC", "#CC79A7", "D", DASHED),
    "ppc": Style("PPC", "#E69F00", "v", _DASH_DOT),
    "spectral": Style("SC", "#8C564B", "", _DASH_DOT),
    "sskk": Style("SSKK", "#E69F00", "P", DASHED),
    "csc": Style("CSC", "#56B4E9", "X", _DASH_DOT),
    "cop-kmeans": Style("COP-KMeans", "#117733", "<", DASHED),
    "pck-means": Style("PCKMeans", "#882255", ">", _DASH_DOT),
    "mpck-means": Style("MPCKMeans", "#AA4499", "p", _LONG),
    "e2cp": Style("E2CP", "#332288", "*", _LONG),
    "e2cp-sparse": Style("E2CP, sparse", "#332288", "d", DASHED),
    "paper-2": Style("GM-PR, K = 2", "#D55E00", "^", _LONG),
    "paper-3": Style("GM-PR, K = 3", "#009E73", "D", DASHED),
    "paper-4": Style("GM-PR, K = 4", "#111111", "v", _DASH_DOT),
}
"""Style of each method of `linkmix.study.registry.METHODS`, and of GM-PR with several clusters per class."""


def score(table: "pd.DataFrame") -> "pd.Series[float]":
    """The purity that figures show: of ``predict``, as in the paper, or of ``labels_`` where there is no ``predict``.

    Parameters
    ----------
    table : DataFrame
        Runs, with columns ``purity`` and ``purity_predict``.

    Returns
    -------
    Series
        One value for each run; missing if it failed.

    Examples
    --------
    >>> import pandas as pd
    >>> score(pd.DataFrame({"purity": [0.8, 0.9, None], "purity_predict": [0.7, None, None]})).tolist()
    [0.7, 0.9, nan]
    """
    chosen: pd.Series[float] = table["purity_predict"].astype(float).fillna(table["purity"].astype(float))
    return chosen.rename("score")


def toy_panels() -> Figure:
    """Draw the toy: its start, the mixture without links, and GM-PR with both kinds of links or one of them.

    Returns
    -------
    matplotlib Figure
        Five panels and a legend.
    """
    X, y = synthetic.toy()
    fits, links = synthetic.toy_fits(X), synthetic.TOY_LINKS
    figure, panels, legend = _five_panels((10.4, 6.0))
    panels[0].set_title("(a) truth and start")
    draw_points(panels[0], X, y[:, None] == np.arange(2))
    _draw_start(panels[0], X[list(synthetic.TOY_START)], "x")
    shown = (
        ("GMM", fits["none"], None),
        ("GM-PR, 2 + 2 links", fits["both"], links),
        ("GM-PR, 2 must-links", fits["must"], Links(must=links.must)),
        ("GM-PR, 2 cannot-links", fits["cannot"], Links(cannot=links.cannot)),
    )
    for ax, letter, (name, model, used) in zip(panels[1:], "bcde", shown, strict=True):
        _draw_result(ax, f"({letter}) {name}", model, X, y, used)
    for ax in panels:
        ax.axhline(0, color=INK, linewidth=0.8, linestyle=_DOTTED, zorder=0)
    draw_legend(
        figure,
        ["above", "below"],
        more=[
            (_start_mark("x"), "first means"),
            (Line2D([], [], color=INK, linewidth=0.8, linestyle=_DOTTED), "true boundary"),
        ],
        ax=legend,
    )
    return figure


def two_moons_panels() -> Figure:
    """Draw two moons: both starts, the mixture without links, and GM-PR with one and two clusters per class.

    Returns
    -------
    matplotlib Figure
        Five panels and a legend.
    """
    X, y = synthetic.two_moons()
    fits = synthetic.two_moons_fits(X)
    figure, panels, legend = _five_panels((10.4, 5.0))
    for ax, title in zip(panels, ("(a) truth, start for K = 1", "(b) start for K = 2"), strict=False):
        ax.set_title(title)
        draw_points(ax, X, y[:, None] == np.arange(2))
    _draw_start(panels[0], X[list(synthetic.MOONS_START)], "x")
    for rows, marker in zip(synthetic.MOONS_CLUSTERS, "s^", strict=True):
        _draw_start(panels[1], X[list(rows)], marker)
    shown = (
        ("GMM", fits["none"], None),
        ("GM-PR, K = 1", fits["one"], synthetic.MOONS_LINKS),
        ("GM-PR, K = 2", fits["two"], synthetic.MOONS_LINKS),
    )
    for ax, letter, (name, model, links) in zip(panels[2:], "cde", shown, strict=True):
        _draw_result(ax, f"({letter}) {name}", model, X, y, links)
    draw_legend(
        figure,
        ["upper moon", "lower moon"],
        more=[
            (_start_mark("x"), "first means of the classes"),
            (_start_mark("^"), "first means, clusters of one class"),
            (_start_mark("s"), "first means, clusters of the other"),
        ],
        ax=legend,
    )
    return figure


def digits_scatter(sets: Mapping[str, tuple[Floats, Array]]) -> Figure:
    """Draw digits in two dimensions, coloured by class.

    Parameters
    ----------
    sets : mapping of name to (X, y)
        Points in two dimensions and their digits.

    Returns
    -------
    matplotlib Figure
        A panel for each set.
    """
    figure = Figure(figsize=(5.2 * len(sets), 4.6), layout="constrained")
    panels = figure.subplots(1, len(sets), squeeze=False)[0]
    for ax, letter, (name, (X, y)) in zip(panels, _letters(), sets.items(), strict=False):
        if X.shape[1] != 2:
            raise ValueError(f"data {name!r} has {X.shape[1]} columns: give its first two principal components")
        classes = np.unique(y)
        draw_points(ax, X, y[:, None] == classes, size=7)
        for points in ax.collections:
            points.set_rasterized(True)  # thousands of markers would make a huge SVG
            points.set_alpha(0.7)
        for digit in classes:
            ax.annotate(
                str(digit),
                np.median(X[y == digit], axis=0),
                ha="center",
                va="center",
                fontsize=20,
                fontweight="bold",
                color=INK,
                path_effects=[withStroke(linewidth=4, foreground="white")],
            )
        ax.set_title(f"({letter}) {data_name(name)}: {len(X)} images")
        ax.set_xlabel("first principal component")
        ax.set_ylabel("second principal component")
        ax.set_aspect("equal", adjustable="datalim")
    return figure


def purity_against_links(
    table: "pd.DataFrame",
    data_names: Sequence[str],
    kind: str,
    methods: Sequence[str],
    floors: Mapping[str, float],
) -> Figure:
    """Draw the purity of methods against the number of links, a panel for each data set.

    Methods that use no links are level lines. Runs of the others without links are not shown.

    Parameters
    ----------
    table : DataFrame
        Runs, as of `linkmix.compare`.
    data_names : sequence of str
        Data sets to draw.
    kind : {"both", "must", "cannot", "even"}
        Kind of links.
    methods : sequence of str
        Methods to draw; a method without runs on a data set is left out of its panel.
    floors : mapping of data set to float
        Share of the largest class, below which purity can not fall.

    Returns
    -------
    matplotlib Figure
        Means as lines, standard deviations as bands.
    """
    what = {"must": "must-links", "cannot": "cannot-links", "even": "links, half of them must-links"}.get(kind, "links")
    figure, panels = _grid(len(data_names), columns=2 if len(data_names) in (2, 4) else 3)
    there = {method for name in data_names for method in _runs(table, name, kind)["method"]}
    for method in methods:
        if method not in STYLES:
            raise ValueError(f"method {method!r} has no style: choose from {', '.join(STYLES)}")
        if method not in there:
            raise ValueError(f"the table has no run of {method!r} on {', '.join(data_names)}: leave it out")
    for ax, letter, name in zip(panels, _letters(), data_names, strict=False):
        _draw_curves(ax, f"({letter})", table, name, kind, methods)
        ax.set_xlabel(f"number of {what}")
        if name in floors:
            _draw_level(ax, floors[name], "floor", _DOTTED)
    more = [(_level_mark(_DOTTED), "share of largest class")] if floors else []
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
    figure.legends[0].get_texts()[0].set_text("GM-PR, K = 1")  # elsewhere it is GM-PR without more ado
    return figure


def fewest_links(
    table: "pd.DataFrame", ceilings: Mapping[str, float], *, ours: str = "auto", kind: str = "both"
) -> Figure:
    """Draw one method against all others, a small panel for each data set.

    Parameters
    ----------
    table : DataFrame
        Runs, as of `linkmix.compare`.
    ceilings : mapping of data set to float
        Purity that a supervised model reaches; its data sets are drawn.
    ours : str, default="auto"
        The method to emphasise: a thick line with its band. All others are thin and have none.
    kind : {"both", "must", "cannot", "even"}
        Kind of links.

    Returns
    -------
    matplotlib Figure
    """
    names, methods = list(ceilings), [name for name in STYLES if np.any(table["method"] == name)]
    figure, panels = _grid(len(names), columns=2 if len(names) in (2, 4) else 3)
    for ax, letter, name in zip(panels, _letters(), names, strict=False):
        _draw_curves(ax, f"({letter})", table, name, kind, methods, ours=ours)
        ax.set_xlabel("number of links")
        _draw_level(ax, ceilings[name], "ceiling", _DASH_DOT)
        _draw_level(ax, SHARE_OF_CEILING * ceilings[name], f"{SHARE_OF_CEILING:.0%}", _DOTTED)
    more = [
        (_level_mark(_DASH_DOT), "supervised ceiling"),
        (_level_mark(_DOTTED), f"{SHARE_OF_CEILING:.0%} of the ceiling"),
    ]
    _draw_key(figure, panels, table, names, kind, methods, ours=ours, more=more)
    return figure


def fewest_links_summary(table: "pd.DataFrame", ceilings: Mapping[str, float], *, kind: str = "both") -> "pd.DataFrame":
    """Say for each data set and method how high its curve is, and how many links it needs.

    Parameters
    ----------
    table : DataFrame
        Runs, as of `linkmix.compare`.
    ceilings : mapping of data set to float
        Purity that a supervised model reaches; its data sets are summed up.
    kind : {"both", "must", "cannot", "even"}
        Kind of links.

    Returns
    -------
    DataFrame
        ``data``, ``method``; ``area``, the mean height of the curve of mean purity over the logarithm of the number of
        links, missing if no run with some number of links was finished; ``links_needed``, the number of links with
        which the curve first reaches 90 % of the ceiling, read off between two points on the logarithmic axis, the
        smallest number of links of the table if the curve starts above, and infinite if it stays below. A method that
        uses no links has its mean as area and needs 0 links or infinitely many.

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
        part = _runs(table, name, kind)
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


def data_name(name: str) -> str:
    """What readers know a data set by.

    Parameters
    ----------
    name : str
        Name in the table; a number after ``@`` is that of the rows that were drawn from it.

    Returns
    -------
    str

    Examples
    --------
    >>> data_name("mnist-123@1000"), data_name("my own")
    ('MNIST 1, 2, 3 (1000 rows)', 'my own')
    """
    plain, _, rows = name.partition("@")
    return DATA_NAMES.get(plain, plain) + (f" ({rows} rows)" if rows else "")


def _first_reached(x: Floats, height: Floats, target: float) -> float:
    """Number of links, 2 to the power of x, at which a line through the points first reaches the target."""
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


def is_blind(method: str) -> bool:
    """Whether a method uses no links."""
    known = METHODS.get(method)
    return known is not None and not (known.uses_must or known.uses_cannot)


def _runs(table: "pd.DataFrame", name: str, kind: str) -> "pd.DataFrame":
    """Runs on a data set with their score: those with links of the kind, and those of methods that use none."""
    part = table[table["data"] == name]
    blind = part["method"].map(is_blind).astype(bool)
    part = part[(blind & (part["n_links"] == 0)) | (~blind & (part["kind"] == kind) & (part["n_links"] > 0))]
    if part.empty:
        raise ValueError(f"the table has no runs on {name!r} with links of kind {kind!r}: run them first")
    # Experiments share runs, and methods without links have the same run for each kind.
    part = part.assign(kind=kind).drop_duplicates(RUN)
    return part.assign(score=score(part))


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
    """Means of all methods on one data set. With `ours` that one is thick, and it alone has a band."""
    part = _runs(table, name, kind)
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
    """Standard deviation, and 0 of a single run."""
    return float(scores.std()) if scores.notna().sum() > 1 else 0.0


def _failures(runs: "pd.DataFrame") -> list[str]:
    """A line that says how many runs failed, if any."""
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
    if len(gaps) and gaps.min() / gaps.sum() < 0.09:  # neighbours would touch
        ax.tick_params(axis="x", labelrotation=60)


def _draw_level(ax: Axes, height: float, name: str, dashes: Dashes) -> None:
    """A level line with its name and height outside of the panel, and within its limits."""
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
    """One legend below all panels: the methods that were drawn, what lines and bands are, and level lines."""
    drawn: dict[str, Any] = {}
    for ax in panels:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            drawn.setdefault(label, handle)
    labels = [STYLES[method].name for method in methods if STYLES[method].name in drawn]
    handles = [drawn[label] for label in labels]
    seeds = sorted({int(_runs(table, name, kind)["seed"].nunique()) for name in data_names})
    runs = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    handles += [handle for handle, _ in more]
    labels += [label for _, label in more]
    bands = "bands: standard deviations" if ours is None else f"band of {STYLES[ours].name}: standard deviation"
    width = 0.75 + 0.075 * max(map(len, labels))  # of a column at most, in inches
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


def _grid(n_panels: int, *, columns: int) -> tuple[Figure, list[Axes]]:
    if n_panels == 0:
        raise ValueError("there are 0 data sets to draw: name at least one that is in the table")
    columns = min(columns, n_panels)
    rows = math.ceil(n_panels / columns)
    figure = Figure(figsize=(max(3.7 * columns, 5.5) + 0.5, 2.9 * rows + 0.9), layout="constrained")
    cells = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax in cells[n_panels:]:
        ax.set_axis_off()
    return figure, list(cells[:n_panels])


def _five_panels(size: tuple[float, float]) -> tuple[Figure, list[Axes], Axes]:
    """Two panels and a place for the legend above, three panels below, all with the same limits."""
    figure = Figure(figsize=size, layout="constrained")
    cells = figure.subplots(2, 3, sharex=True, sharey=True)
    panels = [cells[0, 0], cells[0, 1], *cells[1]]
    for ax in panels:
        ax.set_aspect("equal")
    return figure, panels, cells[0, 2]


def _draw_result(ax: Axes, title: str, model: LinkMixture, X: Floats, y: Ints, links: Links | None) -> None:
    labels = model.predict(X)
    errors = synthetic.count_errors(y, labels)
    numbers = [0, 1] if np.sum(labels != y) == errors else [1, 0]
    draw_mixture(ax, model, X, numbers=numbers)
    for points in ax.collections:
        points.set_zorder(3.5)  # above the ellipses, whose halos would hide some of so few points
    if links is not None:
        draw_links(ax, X, links)
    ax.set_title(f"{title}: {errors} error{'' if errors == 1 else 's'}")


def _draw_start(ax: Axes, means: Floats, marker: str) -> None:
    mark = _start_mark(marker)
    mark.set_data(means[:, 0], means[:, 1])
    mark.set_zorder(6)
    ax.add_line(mark)


def _start_mark(marker: str) -> Line2D:
    halo = [withStroke(linewidth=5, foreground="white")]
    return Line2D(
        [],
        [],
        linestyle="none",
        marker=marker,
        markersize=9,
        markeredgewidth=2.4 if marker == "x" else 1.8,
        markerfacecolor="white",
        markeredgecolor=INK,
        path_effects=halo if marker == "x" else None,
    )


def _level_mark(dashes: Dashes) -> Line2D:
    return Line2D([], [], color=INK, linewidth=1.0, linestyle=dashes)


def _letters() -> Iterator[str]:
    return (chr(ord("a") + i) for i in count())
