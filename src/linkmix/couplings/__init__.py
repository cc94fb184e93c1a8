"""How the labels of linked points depend on each other."""

from linkmix.couplings.base import BoundCoupling, Coupling, LinkExpectation
from linkmix.couplings.none import Uncoupled
from linkmix.couplings.pairwise import Pairwise

__all__ = ["BoundCoupling", "Coupling", "LinkExpectation", "Pairwise", "Uncoupled"]
