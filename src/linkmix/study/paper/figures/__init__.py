"""The figures of the paper's experiments, and of the one that asks which method needs the fewest links.

Curves are drawn from a table with one row per run, as returned by `linkmix.compare`.
"""

from linkmix.study.paper.figures.curves import (
    clusters_per_class,
    coil20,
    differences_against_links,
    fewest_links,
    purity_against_links,
)
from linkmix.study.paper.figures.models import graphical_model, wrong_model
from linkmix.study.paper.figures.panels import (
    coil_objects,
    counted_moons_panels,
    digits_scatter,
    toy_panels,
    two_moons_panels,
)
from linkmix.study.paper.figures.runs import fewest_links_summary, is_blind, score
from linkmix.study.paper.figures.styles import CLUSTERS_PER_CLASS, COVARIANCES, STYLES, data_name

__all__ = [
    "CLUSTERS_PER_CLASS",
    "COVARIANCES",
    "STYLES",
    "clusters_per_class",
    "coil20",
    "coil_objects",
    "counted_moons_panels",
    "data_name",
    "differences_against_links",
    "digits_scatter",
    "fewest_links",
    "fewest_links_summary",
    "graphical_model",
    "is_blind",
    "purity_against_links",
    "score",
    "toy_panels",
    "two_moons_panels",
    "wrong_model",
]
