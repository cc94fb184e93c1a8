"""Clustering with must-links and cannot-links as part of a mixture's likelihood."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from linkmix import couplings, densities, distributed, plots, queries, rivals, tables
    from linkmix.data import Blocks
    from linkmix.links import Links, Relation, SetRelation
    from linkmix.mixture import LinkMixture, calibrate, fit_trials
    from linkmix.native.versions import show_versions
    from linkmix.search import AutoLinkMixture
    from linkmix.search.choice import choose
    from linkmix.study.comparison import compare
    from linkmix.study.metrics import links_satisfied, purity

__version__ = "0.1.0"

__all__ = [
    "AutoLinkMixture",
    "Blocks",
    "LinkMixture",
    "Links",
    "Relation",
    "SetRelation",
    "__version__",
    "calibrate",
    "choose",
    "compare",
    "couplings",
    "densities",
    "distributed",
    "fit_trials",
    "links_satisfied",
    "plots",
    "purity",
    "queries",
    "rivals",
    "show_versions",
    "tables",
]

# Imported on first use: scikit-learn alone takes a second, which `linkmix --help` should not wait for.
_HOMES = {
    "AutoLinkMixture": "linkmix.search",
    "Blocks": "linkmix.data",
    "LinkMixture": "linkmix.mixture",
    "Links": "linkmix.links",
    "Relation": "linkmix.links",
    "SetRelation": "linkmix.links",
    "calibrate": "linkmix.mixture",
    "choose": "linkmix.search.choice",
    "compare": "linkmix.study.comparison",
    "fit_trials": "linkmix.mixture",
    "links_satisfied": "linkmix.study.metrics",
    "purity": "linkmix.study.metrics",
    "show_versions": "linkmix.native.versions",
}
_ROOMS = {"couplings", "densities", "distributed", "plots", "queries", "rivals", "tables"}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"linkmix.{name}")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'linkmix' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
