"""Figures of points: the toy, the two moons and the digits."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.links import Links
from linkmix.mixture import LinkMixture
from linkmix.plots import INK, draw_legend, draw_links, draw_mixture, draw_points
from linkmix.study.paper import synthetic
from linkmix.study.paper.figures.styles import DOTTED, data_name, letters


def toy_panels() -> Figure:
    """Draw the toy: its start, the mixture without links, and GM-PR with both kinds of links or only one.

    Returns
    -------
    matplotlib Figure
        Five panels and a legend.
    """
    X, y = synthetic.toy()
    fits, links = synthetic.toy_fits(X), synthetic.TOY_LINKS
    figure, panels, legend = _five_panels((10.4, 6.0))
    panels[0].set_title("(a) truth and start")
    draw_points(X, y[:, None] == np.arange(2), ax=panels[0])
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
        ax.axhline(0, color=INK, linewidth=0.8, linestyle=DOTTED, zorder=0)
    draw_legend(
        figure,
        ["above", "below"],
        more=[
            (_start_mark("x"), "first means"),
            (Line2D([], [], color=INK, linewidth=0.8, linestyle=DOTTED), "true boundary"),
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
    start, clusters, links = synthetic.MOONS_START, synthetic.MOONS_CLUSTERS, synthetic.MOONS_LINKS
    return _moons_panels(X, y, synthetic.two_moons_fits(X), start, clusters, links)


def counted_moons_panels() -> Figure:
    """Draw sixteen points on two moons on which the paper's counts of errors come out.

    Returns
    -------
    matplotlib Figure
        Five panels and a legend.
    """
    X, y = synthetic.counted_moons()
    start, clusters, links = synthetic.COUNTED_START, synthetic.COUNTED_CLUSTERS, synthetic.COUNTED_LINKS
    return _moons_panels(X, y, synthetic.counted_moons_fits(X), start, clusters, links)


def _moons_panels(
    X: Floats,
    y: Ints,
    fits: Mapping[str, LinkMixture],
    start: Sequence[int],
    clusters: Sequence[Sequence[int]],
    links: Links,
) -> Figure:
    figure, panels, legend = _five_panels((10.4, 5.0))
    for ax, title in zip(panels, ("(a) truth, start for K = 1", "(b) start for K = 2"), strict=False):
        ax.set_title(title)
        draw_points(X, y[:, None] == np.arange(2), ax=ax)
    _draw_start(panels[0], X[list(start)], "x")
    for rows, marker in zip(clusters, "s^", strict=True):
        _draw_start(panels[1], X[list(rows)], marker)
    shown = (
        ("GMM", fits["none"], None),
        ("GM-PR, K = 1", fits["one"], links),
        ("GM-PR, K = 2", fits["two"], links),
    )
    for ax, letter, (name, model, used) in zip(panels[2:], "cde", shown, strict=True):
        _draw_result(ax, f"({letter}) {name}", model, X, y, used)
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
    for ax, letter, (name, (X, y)) in zip(panels, letters(), sets.items(), strict=False):
        if X.shape[1] != 2:
            raise ValueError(f"data {name!r} has {X.shape[1]} columns: give its first two principal components")
        classes = np.unique(y)
        draw_points(X, y[:, None] == classes, ax=ax, size=7)
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


def coil_objects(images: Floats, y: Ints) -> Figure:
    """Draw the objects of COIL-20, the first view of each.

    Parameters
    ----------
    images : ndarray of shape (n_images, 1024)
        Grey pixels of 32 x 32 images.
    y : ndarray of shape (n_images,)
        The objects.

    Returns
    -------
    matplotlib Figure
        A panel for each object.
    """
    objects = np.unique(y)
    columns = 5
    rows = -(-len(objects) // columns)
    figure = Figure(figsize=(1.15 * columns, 1.15 * rows + 0.25), layout="constrained")
    cells = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax in cells:
        ax.set_axis_off()
    for ax, number in zip(cells, objects, strict=False):
        ax.imshow(images[np.flatnonzero(y == number)[0]].reshape(32, 32), cmap="gray")
        ax.set_title(str(number + 1), fontsize=8, pad=2)
    return figure


def _five_panels(size: tuple[float, float]) -> tuple[Figure, list[Axes], Axes]:
    """Two panels and room for the legend above, three panels below, all with the same limits."""
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
    draw_mixture(model, X, ax=ax, numbers=numbers)
    for points in ax.collections:
        points.set_zorder(3.5)  # above the ellipses, whose halos would hide some of the few points
    if links is not None:
        draw_links(X, links, ax=ax)
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
