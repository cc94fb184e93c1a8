"""Pictures of points, soft labels, links and the clusters of a mixture; the colours and the frame of all pages.

`figures` needs matplotlib and `pages` needs Jinja2, so each is imported on first use; `palette` needs neither.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from linkmix.basics.palette import COLOURS, INK, MARKERS, UNSURE

if TYPE_CHECKING:
    from linkmix.plots.choices import choice_of_classes, choice_of_shape
    from linkmix.plots.figures import (
        DASHED,
        SIGMAS,
        SOLID,
        Dashes,
        draw_clusters,
        draw_legend,
        draw_links,
        draw_mixture,
        draw_points,
        save_figure,
        save_picture,
        soft_colours,
    )

__all__ = [
    "COLOURS",
    "DASHED",
    "INK",
    "MARKERS",
    "SIGMAS",
    "SOLID",
    "UNSURE",
    "Dashes",
    "choice_of_classes",
    "choice_of_shape",
    "draw_clusters",
    "draw_legend",
    "draw_links",
    "draw_mixture",
    "draw_points",
    "save_figure",
    "save_picture",
    "soft_colours",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        home = "choices" if name.startswith("choice_of") else "figures"
        return getattr(import_module(f"linkmix.plots.{home}"), name)
    raise AttributeError(f"module 'linkmix.plots' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
