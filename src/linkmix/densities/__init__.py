"""How the points of a class look."""

from linkmix.densities.base import Density, Statistics
from linkmix.densities.covariance import FORMS, CovarianceForm, Diagonal, Full, Spherical, Tied
from linkmix.densities.gaussian import Gaussian

__all__ = ["FORMS", "CovarianceForm", "Density", "Diagonal", "Full", "Gaussian", "Spherical", "Statistics", "Tied"]
