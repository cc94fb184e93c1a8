"""Panels whose axis is broken where much of it would be empty."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

EMPTY = 0.3
"""An axis is broken if a gap takes more than this share of it."""
SMALLEST = 0.1
"""No axis spans less: what looks like a trend on a shorter one is noise."""
Span = tuple[float, float]
Spans = list[Span]
"""Limits of an axis, from below: one pair, or two if it is broken."""


@dataclass(frozen=True)
class Panel:
    """One panel: its upper part, and its lower part if the axis is broken."""

    upper: Axes
    lower: Axes | None = None

    @property
    def axes(self) -> list[Axes]:
        """Both parts."""
        return [self.upper] if self.lower is None else [self.upper, self.lower]

    def at(self, height: float) -> Axes:
        """The part in which a height is."""
        return self.lower if self.lower is not None and height < self.lower.get_ylim()[1] else self.upper

    def finish(self, title: str, below: str, beside: str) -> None:
        """Title, labels and grid."""
        self.upper.set_title(title, fontsize=10)
        self.upper.set_ylabel(beside)
        self.axes[-1].set_xlabel(below)
        for ax, ticks in zip(self.axes, (6, 1), strict=False):
            ax.yaxis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 5, 10]))
            ax.grid(axis="y", color="#DDDDDD", linewidth=0.6)
            ax.set_axisbelow(True)
            ax.spines[["top", "right"]].set_visible(False)
        if self.lower is not None:
            self.upper.spines["bottom"].set_visible(False)
            self.upper.tick_params(axis="x", which="both", bottom=False, labelbottom=False)
            marks: dict[str, Any] = {
                "marker": [(-1, -0.6), (1, 0.6)],
                "markersize": 7,
                "color": "k",
                "linestyle": "none",
            }
            for ax, y in ((self.upper, 0.0), (self.lower, 1.0)):
                ax.plot([0], [y], transform=ax.transAxes, clip_on=False, label="_broken", **marks)


def spans_of(heights: Sequence[Span]) -> Spans:
    """Limits that show some intervals, broken at the widest gap between them if that is wide.

    Examples
    --------
    >>> spans_of([(0.6, 0.7), (0.65, 0.8)])
    [(0.592, 0.808)]
    >>> spans_of([(0.3, 0.3), (0.8, 0.9)])
    [(0.275, 0.325), (0.796, 0.904)]
    """
    if not heights:
        return [(0.0, 1.0)]
    merged: Spans = []
    for low, high in sorted(heights):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    gaps = [(after[0] - before[1], number) for number, (before, after) in enumerate(pairwise(merged))]
    widest, number = max(gaps, default=(0.0, 0))
    whole = merged[-1][1] - merged[0][0]
    if widest > EMPTY * whole and widest > SMALLEST:
        lower, upper = merged[: number + 1], merged[number + 1 :]
        return [_padded(lower[0][0], lower[-1][1], SMALLEST / 2), _padded(upper[0][0], upper[-1][1], SMALLEST)]
    return [_padded(merged[0][0], merged[-1][1], SMALLEST)]


def common(spans: Sequence[Spans]) -> Spans:
    """Limits that hold all of some limits.

    Examples
    --------
    >>> common([[(0.2, 0.3), (0.7, 0.8)], [(0.25, 0.3), (0.6, 0.9)]]), common([[(0.2, 0.3), (0.7, 0.8)], [(0.1, 0.9)]])
    ([(0.2, 0.3), (0.6, 0.9)], [(0.1, 0.9)])
    """
    parts = list(zip(*spans, strict=True)) if len({len(one) for one in spans}) == 1 else []
    if not parts or (len(parts) == 2 and max(high for _, high in parts[0]) >= min(low for low, _ in parts[1])):
        parts = [tuple((one[0][0], one[-1][1]) for one in spans)]
    return [(min(low for low, _ in part), max(high for _, high in part)) for part in parts]


def _padded(low: float, high: float, least: float) -> Span:
    """A little more than from low to high, no less than the least, within 0 and 1."""
    middle, half = (low + high) / 2, max(0.54 * (high - low), least / 2)
    return round(max(middle - half, -0.02), 4), round(min(middle + half, 1.02), 4)


def grid(spans: Sequence[Spans | None]) -> tuple[Figure, list[Panel]]:
    """A figure with a panel for each of some limits; None leaves the limits to what is drawn."""
    n_panels = len(spans)
    columns = min(2 if n_panels == 4 else 3, n_panels)
    rows = math.ceil(n_panels / columns)
    size = (max(3.7 * columns, 5.5) + 0.5, 2.9 * rows + 0.9)
    figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(hspace=0.0))
    # Two rows of cells for each row of panels, so that the panels of a column are equally wide, broken or not.
    cells = figure.add_gridspec(2 * rows, columns, height_ratios=[4, 1] * rows)
    panels = []
    for number, limits in enumerate(spans):
        row, column = 2 * (number // columns), number % columns
        if limits is None or len(limits) == 1:
            panel = Panel(figure.add_subplot(cells[row : row + 2, column]))
        else:
            upper = figure.add_subplot(cells[row, column])
            panel = Panel(upper, figure.add_subplot(cells[row + 1, column], sharex=upper))
        for ax, (low, high) in zip(reversed(panel.axes), limits or (), strict=False):
            ax.set_ylim(low, high)
        panels.append(panel)
    return figure, panels
