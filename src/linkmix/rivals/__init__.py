"""The systems that the paper compares with or builds on, behind one interface."""

from linkmix.rivals.mixtures import EMPC, GMM, GMMEC, GMPR, PPC
from linkmix.rivals.registry import METHODS, Method

__all__ = ["EMPC", "GMM", "GMMEC", "GMPR", "METHODS", "PPC", "Method"]
