"""The paper's first two figures: two models of the same points, and the model as a graph."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

from linkmix.plots import INK, draw_mixture
from linkmix.rivals import GMM
from linkmix.study.paper import synthetic

_CANNOT = "#009E73"
"""Colour of the line between two labels that must differ; the paper has green too."""
_RADIUS = 0.34


def wrong_model() -> Figure:
    """Draw two Gaussian mixtures of the same points: the more likely one, and the one that an application wants.

    Returns
    -------
    matplotlib Figure
        Two panels: the best of 50 starts without links, and GM-PR with the four links of the toy. Their titles have the
        log-likelihood of the points.
    """
    X, _ = synthetic.toy()
    likely, wanted = GMM(2, n_init=50, random_state=0).fit(X), synthetic.toy_fits(X)["both"]
    figure = Figure(figsize=(9.0, 4.2), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    shown = (("(a) the likeliest model", likely), ("(b) the model that is wanted", wanted))
    for ax, (name, model) in zip(panels, shown, strict=True):
        draw_mixture(model, X, ax=ax)
        ax.set_title(f"{name}: log-likelihood {model.score(X) * len(X):.1f}", fontsize=11)
        ax.set_aspect("equal")
    return figure


def graphical_model() -> Figure:
    """Draw the model as a graph: free points, must-linked pairs with one label, cannot-linked pairs with two.

    Returns
    -------
    matplotlib Figure
        One panel without axes.
    """
    figure = Figure(figsize=(9.0, 4.5), layout="constrained")
    ax = figure.subplots()
    ax.set_axis_off()
    ax.set_aspect("equal")
    ax.set_xlim(-1.1, 12.3)
    ax.set_ylim(-1.45, 4.75)
    above, below = (5.25, 4.25), (5.25, -0.95)
    plates = (
        (-0.9, 3.6, -0.8, 1.75, "$\\mathcal{L}$: free points\n$n = 1, \\ldots, N$"),
        (3.3, 3.9, 3.42, 2.85, "$\\mathcal{S}$: must-links\n$(i, j) \\in \\mathcal{M}$"),
        (7.8, 4.3, 9.2, 1.65, "$\\mathcal{D}$: cannot-links\n$(a, b) \\in \\mathcal{C}$"),
    )
    for left, width, x_text, y_text, name in plates:
        box = FancyBboxPatch((left, 0.0), width, 3.3, "round,pad=0,rounding_size=0.12", fill=False, edgecolor=INK)
        ax.add_patch(box)
        ax.text(x_text, y_text, name, va="center", fontsize=9, color=INK)
    z = {"n": (1.9, 2.75), "ij": (5.25, 2.75), "a": (8.5, 2.75), "b": (11.4, 2.75)}
    x = {"n": (1.9, 0.6), "i": (4.1, 0.6), "j": (6.4, 0.6), "a": (8.5, 0.6), "b": (11.4, 0.6)}
    label = {"n": "$z_n$", "ij": r"$z_{\{ij\}}$", "a": "$z_a$", "b": "$z_b$"}
    for name, place in z.items():
        _arrow(ax, above, place)
        _node(ax, place, label[name], observed=False)
    for name, place in x.items():
        _arrow(ax, z["ij" if name in "ij" else name], place)
        _arrow(ax, below, place)
        _node(ax, place, f"${{\\bf x}}_{name}$", observed=True)
    _node(ax, above, r"$\alpha$", observed=False)
    _node(ax, below, r"$\mu, \Sigma$", observed=False)
    ends = [z["a"][0] + _RADIUS, z["b"][0] - _RADIUS]
    ax.plot(ends, [z["a"][1]] * 2, linestyle=(0, (4, 2)), color=_CANNOT, linewidth=2.2)
    ax.text(9.95, 2.62, r"$p(z_a, z_b)$, $z_a \neq z_b$", ha="center", va="top", fontsize=9, color=_CANNOT)
    return figure


def _node(ax: Axes, place: tuple[float, float], name: str, *, observed: bool) -> None:
    """A circle with a name; observed ones are grey."""
    face = "#D9DEE4" if observed else "white"
    ax.add_patch(Circle(place, _RADIUS, facecolor=face, edgecolor=INK, linewidth=1.3, zorder=3))
    ax.text(*place, name, ha="center", va="center", fontsize=11, color=INK, zorder=4)


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    ax.add_patch(
        FancyArrowPatch(
            start, end, arrowstyle="-|>", mutation_scale=11, shrinkA=19, shrinkB=19, color=INK, linewidth=1.1, zorder=2
        )
    )
