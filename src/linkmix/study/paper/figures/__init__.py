"""The figures of the paper's experiments, and of the one that asks which method needs the fewest links.

Curves are drawn from a table with one row per run, as returned by `linkmix.compare`.
"""

from linkmix.study.paper.figures.curves import clusters_per_class, coil20, fewest_links, purity_against_links
from linkmix.study.paper.figures.panels import digits_scatter, toy_panels, two_moons_panels
from linkmix.study.paper.figures.runs import fewest_links_summary, is_blind, score
from linkmix.study.paper.figures.styles import CLUSTERS_PER_CLASS, STYLES, data_name

__all__ = [
    "CLUSTERS_PER_CLASS",
    "STYLES",
    "clusters_per_class",
    "coil20",
    "data_name",
    "digits_scatter",
    "fewest_links",
    "fewest_links_summary",
    "is_blind",
    "purity_against_links",
    "score",
    "toy_panels",
    "two_moons_panels",
]
