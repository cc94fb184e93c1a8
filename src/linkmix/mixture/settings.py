"""The settings of a LinkMixture: which values are allowed, and the objects that they stand for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.random import Generator
from sklearn.utils._param_validation import StrOptions

from linkmix.basics.checks import Constraints, Number, at_least
from linkmix.couplings import Coupling, Graph, Pairwise, Uncoupled
from linkmix.data.blocks import Door
from linkmix.densities import FORMS, Bernoulli, Categorical, CovarianceForm, Density, Gaussian, Poisson, StudentT
from linkmix.engine import pays
from linkmix.engine.fitting import STARTS
from linkmix.engine.starts import Shape
from linkmix.links import Links

DensityName = Literal["gaussian", "student", "bernoulli", "categorical", "poisson"]
CovarianceType = Literal["full", "tied", "diag", "spherical"]
CouplingName = Literal["pairwise", "graph", "none"]
Reliability = Literal["auto", "given", "learn"]
LinkedPoints = Literal["apart", "both"]
StartName = Literal["kmeans++", "links"]
Acceleration = Literal["auto", "squarem", "none"]

COUPLINGS: dict[CouplingName, Callable[[bool], Coupling]] = {
    "none": lambda learn_reliability: Uncoupled(),
    "pairwise": Pairwise,
    "graph": Graph,
}
DENSITIES: dict[DensityName, Callable[[CovarianceForm, float, float], Density[Any, Any]]] = {
    "gaussian": lambda form, reg_covar, shrinkage: Gaussian(form, reg_covar, shrinkage),
    "student": lambda form, reg_covar, shrinkage: StudentT(form, reg_covar, shrinkage=shrinkage),
    "bernoulli": lambda form, reg_covar, shrinkage: Bernoulli(),
    "categorical": lambda form, reg_covar, shrinkage: Categorical(),
    "poisson": lambda form, reg_covar, shrinkage: Poisson(),
}
CONSTRAINTS: Constraints = {
    "n_classes": [at_least(1)],
    "clusters_per_class": [at_least(1), list, tuple],
    "density": [StrOptions(set(DENSITIES)), Density],
    "covariance_type": [StrOptions(set(FORMS))],
    "shrinkage": [at_least(0, Real), StrOptions({"auto"})],
    "shared_clusters": ["boolean"],
    "coupling": [StrOptions(set(COUPLINGS)), Coupling],
    "reliability": [StrOptions(set(get_args(Reliability)))],
    "linked_points": [StrOptions(set(get_args(LinkedPoints)))],
    "link_weight": [Number(Real, 0, None, closed="neither")],
    "init": [StrOptions(set(STARTS)), Mapping],
    "n_init": [at_least(1)],
    "reg_covar": [at_least(0, Real)],
    "tol": [at_least(0, Real)],
    "max_iter": [at_least(0)],
    "acceleration": [StrOptions(set(get_args(Acceleration)))],
    "warm_start": ["boolean"],
    "links": [Links, None],
    "random_state": ["random_state", Generator],
}
"""What scikit-learn checks at the start of a fit."""


class Settings(Protocol):
    """The settings that decide what a mixture is made of."""

    n_classes: int
    clusters_per_class: int | Sequence[int]
    density: DensityName | Density[Any, Any]
    covariance_type: CovarianceType
    shrinkage: float | Literal["auto"]
    shared_clusters: bool
    coupling: CouplingName | Coupling
    reliability: Reliability
    reg_covar: float
    acceleration: Acceleration


def check_combinations(of: Settings) -> None:
    """Raise an error if a setting is invalid, or has no effect, in combination with others."""
    numbers = of.clusters_per_class
    if isinstance(numbers, Sequence) and (len(numbers) != of.n_classes or not all(map(_is_count, numbers))):
        raise ValueError(
            f"clusters_per_class={numbers!r} with n_classes={of.n_classes}: give one whole number from 1 for each "
            "class, or a single one for all"
        )
    if of.density not in ("gaussian", "student") and of.shrinkage != 0:
        raise ValueError(
            f"shrinkage={of.shrinkage!r} has no effect with density={of.density!r}: leave it at 0, or give it "
            "to the density itself, as in density=Gaussian(shrinkage=5.0)"
        )
    if isinstance(of.density, Density) and of.covariance_type != "full":
        raise ValueError(
            f"covariance_type={of.covariance_type!r} has no effect with density={of.density!r}: leave it at "
            "'full', and give the form to the density itself, as in density=Gaussian(Diagonal())"
        )
    if isinstance(of.coupling, Coupling) and of.reliability == "learn" and not of.coupling.learn_reliability:
        raise ValueError(
            f"reliability='learn' has no effect with coupling={of.coupling!r}: give it to the coupling itself, "
            "as in coupling=Pairwise(learn_reliability=True)"
        )


def shape_of(of: Settings) -> Shape:
    """Number of classes and clusters. Equal numbers for each class are one number for all."""
    numbers = of.clusters_per_class
    if isinstance(numbers, Sequence):
        each = tuple(int(number) for number in numbers)
        return Shape(of.n_classes, each[0] if len(set(each)) == 1 else each, of.shared_clusters)
    return Shape(of.n_classes, numbers, of.shared_clusters)


def _is_count(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


def accelerates(of: Settings, n_rows: int, n_features: int) -> bool:
    """Whether EM extrapolates its steps."""
    return of.acceleration == "squarem" or (
        of.acceleration == "auto" and pays(n_rows, n_features, shape_of(of).n_components)
    )


def density_of(of: Settings, n_features: int) -> Density[Any, Any]:
    """The density as an object."""
    if isinstance(of.density, Density):
        return of.density
    shrinkage = n_features + 2.0 if isinstance(of.shrinkage, str) else of.shrinkage
    return DENSITIES[of.density](FORMS[of.covariance_type], of.reg_covar, shrinkage)


def allows_missing(of: Settings) -> bool:
    """Whether points may have missing values."""
    return of.density.allows_missing if isinstance(of.density, Density) else True


def door_of(of: Settings, density: Density[Any, Any]) -> Door:
    """The checks that points must pass; single precision is kept if the density supports it."""
    single = type(density) in (Gaussian, StudentT)
    return Door([np.float64, np.float32] if single else [np.float64], allows_missing(of), density.check)


def names_annotators(links: Links) -> bool:
    """Whether links name their annotators."""
    return links.must_annotators is not None or links.cannot_annotators is not None


def learns_reliability(of: Settings, *, contradicted: bool) -> bool:
    """Whether the reliability of annotators is to be learned."""
    if isinstance(of.coupling, Coupling):
        return of.coupling.learn_reliability
    return of.reliability == "learn" or (of.reliability == "auto" and contradicted)


def coupling_of(of: Settings, learn_reliability: bool = False) -> Coupling:
    """The coupling as an object."""
    if not isinstance(of.coupling, Coupling):
        return COUPLINGS[of.coupling](learn_reliability)
    if of.coupling.learn_reliability and not learn_reliability:
        return replace(of.coupling, learn_reliability=False)  # type: ignore[type-var]
    return of.coupling
