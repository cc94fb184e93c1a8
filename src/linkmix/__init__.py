"""Clustering with must-links and cannot-links as part of a mixture's likelihood."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from linkmix.auto import AutoLinkMixture
    from linkmix.comparison import compare
    from linkmix.links import Links, Relation
    from linkmix.metrics import links_satisfied, purity
    from linkmix.mixture import LinkMixture

__version__ = "0.1.0"

__all__ = [
    "AutoLinkMixture",
    "LinkMixture",
    "Links",
    "Relation",
    "__version__",
    "compare",
    "links_satisfied",
    "purity",
]

# Names are imported when they are first used: scikit-learn alone takes a second, which nobody should wait for --help.
_ROOMS = {
    "AutoLinkMixture": "linkmix.auto",
    "LinkMixture": "linkmix.mixture",
    "Links": "linkmix.links",
    "Relation": "linkmix.links",
    "compare": "linkmix.comparison",
    "links_satisfied": "linkmix.metrics",
    "purity": "linkmix.metrics",
}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module 'linkmix' has no attribute {name!r}")
    return getattr(import_module(_ROOMS[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
