"""Figures of points, soft labels, links and the clusters of a mixture, drawn with matplotlib.

They follow the paper: the saturation of a point shows its soft label, must-links are solid and cannot-links dashed.
"""

from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Ellipse, Patch, Polygon
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike
from PIL import Image

from linkmix.basics.arrays import Floats, Ints
from linkmix.basics.files import aside
from linkmix.basics.palette import COLOURS, EDGE, INK, MARKERS, UNSURE, colour_of, marker_of
from linkmix.data.scaling import Scaling
from linkmix.densities import Gaussian, StudentT
from linkmix.engine import Mixture
from linkmix.links import Links
from linkmix.mixture import LinkMixture
from linkmix.search import AutoLinkMixture

Dashes = Literal["-"] | tuple[float, Sequence[float]]
SOLID: Dashes = "-"
DASHED: Dashes = (0, (4, 2.5))
SIGMAS = (1, 2)
"""Ellipses are drawn at these numbers of standard deviations."""
_ON_THE_EDGE = 200
"""Corners of an ellipse that compressed tails bend."""
_HALO = [withStroke(linewidth=3.0, foreground="white", alpha=0.7)]


def soft_colours(probabilities: ArrayLike, colours: Sequence[str] = COLOURS) -> Floats:
    """Colour of each point: that of its most probable class, paler the less certain it is.

    Parameters
    ----------
    probabilities : array-like of shape (n_samples, n_classes)
        Probability of each class for each point.
    colours : sequence of str
        Colour of each class; they repeat if there are more classes.

    Returns
    -------
    ndarray of shape (n_samples, 3)
        Red, green and blue from 0 to 1.

    Examples
    --------
    >>> soft_colours([[1.0, 0.0], [0.5, 0.5]], ["#ff0000", "#0000ff"]).round(2).tolist()
    [[1.0, 0.0, 0.0], [0.89, 0.89, 0.89]]
    """
    p = np.asarray(probabilities, dtype=np.float64)
    n_classes = p.shape[1]
    pure = np.array([to_rgb(colours[m % len(colours)]) for m in range(n_classes)])[p.argmax(axis=1)]
    even = 1 / n_classes
    sureness = ((p.max(axis=1) - even) / (1 - even) if n_classes > 1 else np.ones(len(p)))[:, None]
    return np.asarray(sureness * pure + (1 - sureness) * np.array(to_rgb(UNSURE)))


def draw_points(
    X: ArrayLike,
    probabilities: ArrayLike,
    *,
    ax: Axes | None = None,
    columns: Sequence[str] | None = None,
    axes: tuple[int, int] = (0, 1),
    numbers: Sequence[int] | None = None,
    size: float = 16,
) -> Axes:
    """Draw points with the colour and marker of their most probable class, paler the less certain they are.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The points.
    probabilities : array-like of shape (n_samples, n_classes)
        Probability of each class for each point.
    ax : matplotlib Axes, optional
        Where to draw; by default the current axes of pyplot.
    columns : sequence of str, optional
        Names of all columns, with their units, for the labels of the axes.
    axes : tuple of two ints, default=(0, 1)
        Which two columns to draw.
    numbers : sequence of int, optional
        Number of the colour and marker of each class; class m has number m if not given.
    size : float, default=16
        Area of a marker in square points.

    Returns
    -------
    matplotlib Axes
    """
    ax = _axes(ax)
    points, p = np.asarray(X, dtype=np.float64), np.asarray(probabilities, dtype=np.float64)
    used = _numbers(numbers, p.shape[1])
    rgb = soft_colours(p, [colour_of(n) for n in used])
    for m, number in enumerate(used):
        rows = p.argmax(axis=1) == m
        ax.scatter(
            points[rows, axes[0]],
            points[rows, axes[1]],
            c=rgb[rows],
            marker=marker_of(number),
            s=size,
            linewidths=0.3,
            edgecolors=EDGE,
        )
    if columns is not None:
        ax.set_xlabel(columns[axes[0]])
        ax.set_ylabel(columns[axes[1]])
    return ax


def draw_links(X: ArrayLike, links: Links, *, ax: Axes | None = None, axes: tuple[int, int] = (0, 1)) -> Axes:
    """Draw must-links as solid lines, cannot-links as dashed ones, and a ring around each linked point.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The points.
    links : Links
        Links between them.
    ax : matplotlib Axes, optional
        Where to draw; by default the current axes of pyplot.
    axes : tuple of two ints, default=(0, 1)
        Which two columns to draw.

    Returns
    -------
    matplotlib Axes
    """
    ax = _axes(ax)
    points = np.asarray(X, dtype=np.float64)[:, list(axes)]
    for pairs, dashes in ((links.must, SOLID), (links.cannot, DASHED)):
        for a, b in pairs:
            ax.plot(*points[[a, b]].T, color=INK, linewidth=1.1, linestyle=dashes, alpha=0.9, zorder=4)
    linked = points[links.points]
    ax.scatter(linked[:, 0], linked[:, 1], s=40, facecolors="none", edgecolors=INK, linewidths=1.1, zorder=5)
    return ax


def draw_clusters(
    model: LinkMixture | AutoLinkMixture,
    *,
    ax: Axes | None = None,
    axes: tuple[int, int] = (0, 1),
    numbers: Sequence[int] | None = None,
) -> Axes:
    """Draw each cluster as ellipses of one and two standard deviations in the colour of its class.

    Where all classes share their clusters, each has the colour of the class that it has most points of. A Student-t
    cluster is drawn by its scale, without its tails.

    Parameters
    ----------
    model : LinkMixture or AutoLinkMixture
        A fitted mixture of Gaussian or Student-t clusters; of a search, the winner. In columns whose tails it
        compresses, the ellipses are bent.
    ax : matplotlib Axes, optional
        Where to draw; by default the current axes of pyplot.
    axes : tuple of two ints, default=(0, 1)
        Which two columns to draw.
    numbers : sequence of int, optional
        Number of the colour of each class; class m has number m if not given.
    """
    mixture = model.mixture()
    if not _has_ellipses(mixture):
        raise ValueError(
            f"the density of the model is {mixture.density!r}, which has no ellipses: use a Gaussian or Student-t "
            "density, or draw_points"
        )
    ax = _axes(ax)
    used = _numbers(numbers, mixture.n_classes)
    for owner, mean, covariance in _clusters(mixture, axes):
        for sigmas in SIGMAS:
            outline = _outline(mean, covariance, sigmas, mixture.view, axes)
            outline.set(
                fill=False,
                edgecolor=colour_of(used[owner]),
                linewidth=1.8 if sigmas == SIGMAS[0] else 1.2,
                path_effects=_HALO,
                zorder=3,
            )
            ax.add_patch(outline)
    return ax


def draw_mixture(
    model: LinkMixture | AutoLinkMixture,
    X: ArrayLike,
    *,
    ax: Axes | None = None,
    links: Links | None = None,
    columns: Sequence[str] | None = None,
    axes: tuple[int, int] = (0, 1),
    numbers: Sequence[int] | None = None,
) -> Axes:
    """Draw points by their soft labels, the clusters of the mixture, and links; points of no class are grey.

    Parameters
    ----------
    model : LinkMixture or AutoLinkMixture
        A fitted mixture.
    X : array-like of shape (n_samples, n_features), or table
        The points. Categories of a table are drawn by their codes.
    ax : matplotlib Axes, optional
        Where to draw; by default the current axes of pyplot.
    links : Links, optional
        Links between them.
    columns : sequence of str, optional
        Names of all columns, with their units; those seen by ``fit`` if not given.
    axes : tuple of two ints, default=(0, 1)
        Which two columns to draw. The ellipses show the marginal distribution of these two.
    numbers : sequence of int, optional
        Number of the colour and marker of each class, so that two figures can agree; class m has number m if not
        given.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from linkmix import AutoLinkMixture, plots
    >>> X = load_iris().data
    >>> model = AutoLinkMixture(3, budget="small", random_state=0).fit(X)
    >>> ax = plots.draw_mixture(model, X, ax=Figure().subplots(), axes=(2, 3), columns=load_iris().feature_names)
    >>> ax.get_xlabel()
    'petal length (cm)'
    """
    ax = _axes(ax)
    recipe = getattr(model, "recipe_", None)
    if columns is None:
        columns = getattr(model, "feature_names_in_", None) if recipe is None else recipe.names
    probabilities = model.predict_proba(X)
    if hasattr(model, "noise_share_"):  # a point of no class could be of any, and is as pale
        noise = model.predict_noise(X)[:, None]
        probabilities = (1 - noise) * probabilities + noise / probabilities.shape[1]
    X = X if recipe is None else model.seen(X)
    draw_points(X, probabilities, ax=ax, columns=columns, axes=axes, numbers=numbers)
    if _has_ellipses(model.mixture()):
        draw_clusters(model, ax=ax, axes=axes, numbers=numbers)
    if links is not None:
        draw_links(X, links, ax=ax, axes=axes)
    return ax


def draw_legend(
    figure: Figure,
    class_names: Sequence[str],
    *,
    links: bool = True,
    more: Sequence[tuple[Line2D, str]] = (),
    ax: Axes | None = None,
) -> None:
    """Explain colours, saturation, ellipses and lines, below all panels of a figure or in an empty panel.

    Parameters
    ----------
    figure : matplotlib Figure
        Where to draw.
    class_names : sequence of str
        Name of the class with each colour number.
    links : bool, default=True
        Whether to explain the lines of links.
    more : sequence of (Line2D, str)
        Further marks or lines, each with its meaning.
    ax : matplotlib Axes, optional
        An empty panel for the legend; its axes are hidden.
    """
    handles: list[Any] = [  # matplotlib also accepts tuples of artists, but its type hints do not say so
        _mark(marker_of(n), colour_of(n)) for n in range(len(class_names))
    ]
    labels = list(class_names)
    handles.append(tuple(_mark(MARKERS[0], to_hex(rgb)) for rgb in soft_colours([[1.0, 0.0], [0.8, 0.2], [0.5, 0.5]])))
    labels.append("sure to unsure")
    handles.append(tuple(_ring(COLOURS[0], size, width) for size, width in ((7, 1.8), (14, 1.2))))
    labels.append(" and ".join(map(str, SIGMAS)) + " standard deviations")
    if links:
        for label, dashes in (("must-link", SOLID), ("cannot-link", DASHED)):
            handles.append(Line2D([], [], color=INK, linestyle=dashes, linewidth=1.1))
            labels.append(label)
        handles.append(_ring(INK, 6.3, 1.1))
        labels.append("linked point")
    handles += [handle for handle, _ in more]
    labels += [label for _, label in more]
    if ax is not None:
        ax.set_axis_off()
    place = figure if ax is None else ax
    place.legend(
        handles,
        labels,
        loc="outside lower center" if ax is None else "center",
        ncols=len(handles) if ax is None else 1,
        frameon=False,
        handlelength=2.4,
        columnspacing=1.6,
        handletextpad=0.5,
        handler_map={handles[len(class_names)]: HandlerTuple(ndivide=None, pad=0.3)},  # side by side
    )


def save_picture(figure: Figure, path: Path, *, dpi: int = 120) -> None:
    """Save a figure as PNG. The file is complete or not written at all.

    Parameters
    ----------
    figure : matplotlib Figure
        What to save.
    path : Path
        File name; an existing file is replaced.
    dpi : int, default=120
        Pixels per inch.
    """
    _write_whole(path, _png(figure, dpi))


def save_figure(figure: Figure, path: Path, *, dpi: int = 150) -> tuple[Path, ...]:
    """Save a figure as PNG, SVG and PDF. All are drawn before any file is written.

    The same figure gives the same files, byte for byte, on machines with the same fonts.

    Parameters
    ----------
    figure : matplotlib Figure
        What to save.
    path : Path
        File name without a suffix; existing files are replaced.
    dpi : int, default=150
        Pixels per inch of the PNG, and of bitmaps inside the others.

    Returns
    -------
    tuple of Path
        The three files.
    """
    contents = {".png": _png(figure, dpi)}
    with rc_context({"svg.hashsalt": "linkmix", "pdf.fonttype": 42}):  # otherwise ids are random; fonts that print
        for ending, dates in ((".svg", {"Date": None}), (".pdf", {"CreationDate": None})):
            drawn = BytesIO()
            figure.savefig(drawn, format=ending[1:], dpi=dpi, metadata=dates)
            contents[ending] = drawn.getvalue()
    places = tuple(path.with_name(path.name + ending) for ending in contents)
    for place, content in zip(places, contents.values(), strict=True):
        _write_whole(place, content)
    return places


def _png(figure: Figure, dpi: int) -> bytes:
    drawn, content = BytesIO(), BytesIO()
    figure.savefig(drawn, format="png", dpi=dpi)
    # 256 colours are enough for such a figure, and make the file three times smaller.
    Image.open(drawn).convert("RGB").quantize(256).save(content, format="PNG", optimize=True)
    return content.getvalue()


def _write_whole(path: Path, content: bytes) -> None:
    with aside(path) as place:
        place.write_bytes(content)


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    from matplotlib import pyplot  # late: it looks for a screen

    return pyplot.gca()


def _has_ellipses(mixture: Mixture) -> bool:
    return isinstance(mixture.density, Gaussian | StudentT)


def _clusters(mixture: Mixture, axes: tuple[int, int]) -> Iterator[tuple[int, Floats, Floats]]:
    """Class, mean and covariance of each cluster in two columns; compressed tails stay compressed."""
    density: Any = mixture.density
    form, parameters, parts = density.form, mixture.parameters, mixture.parameters.components
    n, d = parts.means.shape
    covariances = parts.covariances if isinstance(mixture.density, Gaussian) else parts.scales
    weights = parameters.class_weights[:, None] * parameters.cluster_weights  # (M, K), or (M, M * K) if shared
    owners = np.arange(n) // weights.shape[1] if weights.size == n else weights.argmax(axis=0)
    for c in range(n):
        mean, matrix = parts.means[c], form.matrix(form.of(covariances, c), d)
        if mixture.view is None:
            yield int(owners[c]), mean[list(axes)], matrix[np.ix_(axes, axes)]
        else:
            yield int(owners[c]), *mixture.view.plane(mean, matrix, axes)


def _outline(mean: Floats, covariance: Floats, sigmas: float, view: Scaling | None, axes: tuple[int, int]) -> Patch:
    """The ellipse of a cluster, bent where tails were compressed."""
    variances, directions = np.linalg.eigh(covariance)
    height, width = 2 * sigmas * np.sqrt(np.maximum(variances, 0.0))
    if view is None or not view.width[list(axes)].any():
        angle = float(np.degrees(np.arctan2(directions[1, 1], directions[0, 1])))
        return Ellipse((float(mean[0]), float(mean[1])), float(width), float(height), angle=angle)
    around = np.linspace(0, 2 * np.pi, _ON_THE_EDGE, endpoint=False)
    edge = np.stack([height / 2 * np.cos(around), width / 2 * np.sin(around)], axis=1) @ directions.T
    return Polygon(view.stretched(mean + edge, axes), closed=True)


def _numbers(numbers: Sequence[int] | None, n_classes: int) -> Ints:
    return np.arange(n_classes) if numbers is None else np.asarray(numbers, dtype=np.int64)


def _mark(marker: str, colour: str) -> Line2D:
    return Line2D([], [], linestyle="none", marker=marker, color=colour, markeredgecolor=EDGE)


def _ring(colour: str, size: float, width: float) -> Line2D:
    return Line2D(
        [], [], linestyle="none", marker="o", fillstyle="none", color=colour, markersize=size, markeredgewidth=width
    )
