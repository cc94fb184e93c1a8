"""Couplings: how the labels of linked points depend on each other."""

from linkmix.couplings.base import BoundCoupling, Coupling, LinkExpectation
from linkmix.couplings.class_weights import solve_class_weights
from linkmix.couplings.graph import Graph
from linkmix.couplings.mean_field import MeanField
from linkmix.couplings.none import Uncoupled
from linkmix.couplings.pairwise import Pairwise
from linkmix.couplings.projection import Projection
from linkmix.couplings.soft_chunklets import SoftChunklets

__all__ = [
    "BoundCoupling",
    "Coupling",
    "Graph",
    "LinkExpectation",
    "MeanField",
    "Pairwise",
    "Projection",
    "SoftChunklets",
    "Uncoupled",
    "solve_class_weights",
]
