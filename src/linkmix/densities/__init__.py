"""Densities: how the points of a cluster are distributed."""

from linkmix.densities.base import BadColumn, Density, Statistics, given_array
from linkmix.densities.categorical import Categorical
from linkmix.densities.contaminated import Contaminated
from linkmix.densities.covariance import FORMS, CovarianceForm, Diagonal, Full, Spherical, Tied
from linkmix.densities.discrete import Bernoulli, Poisson
from linkmix.densities.gaussian import Gaussian
from linkmix.densities.product import Product
from linkmix.densities.student import StudentT

__all__ = [
    "FORMS",
    "BadColumn",
    "Bernoulli",
    "Categorical",
    "Contaminated",
    "CovarianceForm",
    "Density",
    "Diagonal",
    "Full",
    "Gaussian",
    "Poisson",
    "Product",
    "Spherical",
    "Statistics",
    "StudentT",
    "Tied",
    "given_array",
]
