"""Clustering with must-links and cannot-links as part of a mixture's likelihood."""

from linkmix.comparison import compare
from linkmix.links import Links, Relation
from linkmix.metrics import links_satisfied, purity
from linkmix.mixture import LinkMixture

__version__ = "0.1.0"

__all__ = ["LinkMixture", "Links", "Relation", "__version__", "compare", "links_satisfied", "purity"]
