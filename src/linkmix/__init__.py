"""Clustering with must-links and cannot-links as part of a mixture's likelihood."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from linkmix.auto import AutoLinkMixture
    from linkmix.blocks import Blocks
    from linkmix.comparison import compare
    from linkmix.links import Links, Relation
    from linkmix.metrics import links_satisfied, purity
    from linkmix.mixture import LinkMixture
    from linkmix.trials import fit_trials
    from linkmix.versions import show_versions

__version__ = "0.1.0"

__all__ = [
    "AutoLinkMixture",
    "Blocks",
    "LinkMixture",
    "Links",
    "Relation",
    "__version__",
    "compare",
    "fit_trials",
    "links_satisfied",
    "purity",
    "show_versions",
]

# Names are imported when they are first used: scikit-learn alone takes a second, which nobody should wait for --help.
_ROOMS = {
    "AutoLinkMixture": "linkmix.auto",
    "Blocks": "linkmix.blocks",
    "LinkMixture": "linkmix.mixture",
    "Links": "linkmix.links",
    "Relation": "linkmix.links",
    "compare": "linkmix.comparison",
    "fit_trials": "linkmix.trials",
    "links_satisfied": "linkmix.metrics",
    "purity": "linkmix.metrics",
    "show_versions": "linkmix.versions",
}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module 'linkmix' has no attribute {name!r}")
    return getattr(import_module(_ROOMS[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
