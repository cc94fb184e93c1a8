"""Charts as SVG. Their colours come from the style of the page, so that they follow a dark screen."""

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import ArrayLike

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.basics.palette import COLOURS, marker_of
from linkmix.plots.pages import Markup, visible

# Outlines of the markers of the palette, around their centre.
MARKERS = {
    "o": "m-{r} 0a{r} {r} 0 1 0 {r2} 0a{r} {r} 0 1 0-{r2} 0z",
    "s": "m-{s}-{s}h{s2}v{s2}h-{s2}z",
    "^": "m0-{t}l{t} {t2}h-{t2}z",
    "D": "m0-{t}l{t} {t}l-{t} {t}l-{t}-{t}z",
    "v": "m0 {t}l{t}-{t2}h-{t2}z",
    "P": "m-{t}-{q}h{u}v-{u}h{q2}v{u}h{u}v{q2}h-{u}v{u}h-{q2}v-{u}h-{u}z",
}
SURENESS = (0.6, 0.8, 0.95)
"""Less certain points are paler, in steps at these probabilities."""
MANY = 100
"""With more linked points than this, lines and rings are lighter."""
N_LAYERS = 5
"""Points are drawn in this many layers, so that no class hides the others."""


def colour(number: int) -> str:
    """Name, in the style of the page, of the colour of a class; -1 stands for no class."""
    return f"c{number % len(COLOURS)}" if number >= 0 else "nowhere"


def marker(number: int, radius: float) -> str:
    """Path of the marker of a class, relative to its centre; points of no class, -1, are small."""
    if number < 0:
        number, radius = 0, 0.6 * radius
    r, s, t, q = radius, 0.9 * radius, 1.2 * radius, 0.4 * radius
    lengths = {"r": r, "r2": 2 * r, "s": s, "s2": 2 * s, "t": t, "t2": 2 * t, "q": q, "q2": 2 * q, "u": t - q}
    return MARKERS[marker_of(number)].format(**{name: f"{value:.3g}" for name, value in lengths.items()})


def icon(number: int) -> Markup:
    """The marker of a class in its colour, for use in text."""
    return Markup(
        f'<svg class="icon {colour(number)}" viewBox="-8 -8 16 16" aria-hidden="true">'
        f'<path d="M0 0{marker(number, 5.5)}"/></svg>'
    )


def ticks(low: float, high: float, n: int = 5) -> Floats:
    """Round numbers within a range.

    Examples
    --------
    >>> ticks(0.3, 4.1).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    span = high - low
    if not span > 0:
        return np.array([low])
    size = 10 ** np.floor(np.log10(span / n))
    step = next(size * factor for factor in (1, 2, 5, 10) if span / (size * factor) <= n)
    found = np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step
    return np.asarray(np.where(np.abs(found) < step / 1e6, 0.0, found))


def tick_texts(values: Floats) -> list[str]:
    """Numbers on an axis, with enough digits to tell them apart.

    Examples
    --------
    >>> tick_texts(np.array([2080.25, 2080.5])), tick_texts(np.array([0.0, 2000.0])), tick_texts(np.array([1e9, 2e9]))
    (['2,080.25', '2,080.50'], ['0', '2,000'], ['1e+09', '2e+09'])
    """
    if len(values) < 2:
        return [number(float(value)) for value in values]
    step = float(values[1] - values[0])
    if max(abs(values[0]), abs(values[-1])) >= 1e7 or step < 1e-5:
        return [f"{value:.6g}" for value in values]
    # Down to the last digit of the step: 0.25 has two.
    digits = next(n for n in range(8) if abs(step * 10**n - round(step * 10**n)) < 1e-6 * step * 10**n)
    return [f"{value:,.{digits}f}" for value in values]


class Chart:
    """A frame with two axes.

    Parameters
    ----------
    x, y : array-like
        Values that the axes have to cover.
    width, height : float
        Size of the chart.
    labels : tuple of two str
        Names of the axes.
    title : str
        Description for screen readers.
    y_ticks : bool
        Whether the vertical axis has numbers.
    margin : float
        Share of the range left free at each end.
    left : float
        Space for the numbers of the vertical axis.
    whole : bool
        Whether the horizontal axis has whole numbers only.
    """

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        *,
        width: float,
        height: float,
        labels: tuple[str, str],
        title: str,
        y_ticks: bool = True,
        margin: float = 0.03,
        left: float = 64,
        whole: bool = False,
    ) -> None:
        self.whole = whole
        self.width, self.height, self.title, self.labels, self.y_ticks = width, height, title, labels, y_ticks
        self.left, self.right, self.top, self.bottom = left if y_ticks else 24, 12, 10, 50
        self.x, self.y = self._range(x, margin), self._range(y, margin)
        self.parts: list[str] = []

    @staticmethod
    def _range(values: ArrayLike, margin: float) -> tuple[float, float]:
        low, high = float(np.min(values)), float(np.max(values))
        if low == high:
            low, high = low - 0.5 * max(1.0, abs(low)), high + 0.5 * max(1.0, abs(high))
        return low - margin * (high - low), high + margin * (high - low)

    def place(self, points: ArrayLike) -> Floats:
        """From coordinates of the data to those of the chart."""
        p = np.asarray(points, dtype=np.float64)
        across = self.left + (p[..., 0] - self.x[0]) / (self.x[1] - self.x[0]) * (self.width - self.left - self.right)
        up = (p[..., 1] - self.y[0]) / (self.y[1] - self.y[0])
        return np.stack([across, self.height - self.bottom - up * (self.height - self.top - self.bottom)], axis=-1)

    def add(self, part: str) -> None:
        """Add SVG in the coordinates of the chart."""
        self.parts.append(part)

    def svg(self) -> Markup:
        """The whole chart."""
        grid = []
        floor, wall = self.height - self.bottom, self.width - self.right
        across = ticks(*self.x)
        if self.whole:
            across = across[across == np.round(across)]
        for value, said in zip(across, tick_texts(across), strict=True):
            at = self.place((value, self.y[0]))[0]
            grid.append(f'<path class="grid" d="M{at:.1f} {self.top}V{floor:.1f}"/>')
            grid.append(f'<text x="{at:.1f}" y="{floor + 20:.1f}" text-anchor="middle">{said}</text>')
        up = ticks(*self.y) if self.y_ticks else np.empty(0)
        for value, said in zip(up, tick_texts(up), strict=True):
            at = self.place((self.x[0], value))[1]
            grid.append(f'<path class="grid" d="M{self.left} {at:.1f}H{wall}"/>')
            grid.append(f'<text x="{self.left - 8}" y="{at + 5:.1f}" text-anchor="end">{said}</text>')
        middle = self.top + (floor - self.top) / 2
        names = (
            f'<text class="axis" x="{(self.left + wall) / 2:.1f}" y="{self.height - 8}" text-anchor="middle">'
            f"{plain(cut(self.labels[0]))}</text>"
            f'<text class="axis" transform="translate(15 {middle:.1f}) rotate(-90)" text-anchor="middle">'
            f"{plain(cut(self.labels[1]))}</text>"
        )
        return Markup(
            f'<svg class="chart" viewBox="0 0 {self.width:g} {self.height:g}" role="img" '
            f'aria-label="{plain(self.title)}">{"".join(grid)}{"".join(self.parts)}{names}</svg>'
        )


def draw_points(chart: Chart, points: Floats, labels: Ints, confidence: Floats | None, radius: float) -> None:
    """Draw points with the marker and colour of their class, paler the less certain they are."""
    places = chart.place(points)
    sure = np.full(len(labels), len(SURENESS)) if confidence is None else np.searchsorted(SURENESS, confidence, "right")
    layer = np.random.RandomState(0).randint(N_LAYERS, size=len(labels)) if len(labels) > 50 else np.zeros(len(labels))
    for level in range(N_LAYERS):
        for m in np.unique(labels):
            shape = marker(int(m), radius)
            for step in range(len(SURENESS) + 1):
                rows = np.flatnonzero((layer == level) & (labels == m) & (sure == step))
                if len(rows):
                    path = "".join(f"M{x:.1f} {y:.1f}{shape}" for x, y in places[rows])
                    chart.add(f'<path class="points {colour(int(m))} s{step}" d="{path}"/>')


def draw_links(chart: Chart, points: Floats, table: Array, names: Sequence[str]) -> None:
    """Draw links between points, the broken ones on top, each with a tooltip."""
    many = " many" if 2 * len(table) > MANY else ""
    for holds in (True, False):
        for row in np.flatnonzero(table["holds"] == holds):
            (x1, y1), (x2, y2) = chart.place(points[[table["a"][row], table["b"][row]]])
            kind = "must" if table["is_must"][row] else "cannot"
            a, b = names[table["a"][row]], names[table["b"][row]]
            text = f"{a} and {b}: {kind}-link, {'satisfied' if holds else 'broken'}"
            chart.add(
                f'<path class="link {kind}{many if holds else " broken"}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}">'
                f"<title>{plain(text)}</title></path>"
            )


def draw_rings(chart: Chart, points: Floats, names: Sequence[str]) -> None:
    """Draw a ring around linked points, each with a tooltip."""
    radius = 7 if len(points) <= MANY else 5
    for (x, y), name in zip(chart.place(points), names, strict=True):
        chart.add(f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"><title>{plain(name)}</title></circle>')


def line_chart(values: Floats, labels: tuple[str, str], title: str) -> Markup:
    """A line over 0, 1, 2, ..."""
    steps = np.arange(len(values))
    chart = Chart(steps, values, width=460, height=270, labels=labels, title=title, left=92, whole=True)
    places = chart.place(np.column_stack([steps, values]))
    chart.add('<path class="line" d="M' + "L".join(f"{x:.1f} {y:.1f}" for x, y in places) + '"/>')
    if len(values) <= 40:
        for x, y in places:
            chart.add(f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3"/>')
    return chart.svg()


def histogram(counts: Ints, edges: Floats, labels: tuple[str, str], title: str) -> Markup:
    """Bars between edges."""
    top = max(int(counts.max()), 1)
    chart = Chart(edges, [0, top], width=460, height=270, labels=labels, title=title, margin=0.0, left=78)
    for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
        (x1, y1), (x2, y2) = chart.place([(low, count), (high, 0)])
        chart.add(
            f'<rect class="bar" x="{x1 + 1:.1f}" y="{y1:.1f}" width="{max(x2 - x1 - 2, 1):.1f}" '
            f'height="{max(y2 - y1, 0):.1f}"><title>{low:g} to {high:g}: {count:,} points</title></rect>'
        )
    return chart.svg()


def number(value: float) -> str:
    """A number with few digits and separated thousands.

    Examples
    --------
    >>> [number(value) for value in (1110.4, 0.25, 3.0, 12345.6, 1.5e-7, float("nan"))]
    ['1,110', '0.25', '3', '12,346', '1.5e-07', '-']
    """
    if not np.isfinite(value):
        return "-"
    size = abs(value)
    if value == round(value) and size < 1e7:
        return f"{value:,.0f}"
    if 1e-3 <= size < 1e5:
        text = f"{value:,.{max(0, 2 - int(np.floor(np.log10(size))))}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.3g}"


def share(value: float) -> str:
    """A share as a percentage.

    Examples
    --------
    >>> share(0.8125), share(float("nan"))
    ('81 %', '-')
    """
    return f"{100 * value:.0f} %" if np.isfinite(value) else "-"


def plain(value: str) -> str:
    """Text from the user, escaped and without invisible characters."""
    return escape(visible(value))


def cut(name: str, at_most: int = 48) -> str:
    """A name, shortened to fit its place."""
    return name if len(name) <= at_most else name[: at_most - 1] + "…"
