"""How the labels of linked points depend on each other."""

from linkmix.couplings.base import BoundCoupling, Coupling, LinkExpectation
from linkmix.couplings.graph import Graph
from linkmix.couplings.none import Uncoupled
from linkmix.couplings.pairwise import Pairwise

__all__ = ["BoundCoupling", "Coupling", "Graph", "LinkExpectation", "Pairwise", "Uncoupled"]
