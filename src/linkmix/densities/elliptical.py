"""What the Gaussian and the Student-t density share: a form of covariance, a ridge and a prior."""

from abc import abstractmethod
from numbers import Real
from typing import TypeVar

import numpy as np

from linkmix import native
from linkmix.basics.arrays import Floats
from linkmix.basics.checks import check_number
from linkmix.densities.base import Density, ParametersT, Statistics
from linkmix.densities.covariance import FORMS, CovarianceForm, Diagonal, Full, Spherical, Tied
from linkmix.densities.shrinkage import Shrinkage

NO_SUPPORT = float(10 * np.finfo(np.float64).eps)
"""A component with less weight than this keeps its parameters: its mean would be a ratio of rounding errors."""
WIDER = 3.0
"""The covariance of a background is so many times that of all rows.

Chosen by ``benchmarks.noise_points`` on draw 0, as in `linkmix.search.settings`: mean F1 of noise with 20 % uniform and
20 % shuffled rows .56 and .52; with a factor of 1 .43 and .41, with 6 .51 and .42.
"""
NATIVE_FORMS = {Full, Tied, Diagonal, Spherical}
"""The forms that the native core supports."""


class MomentSums(Statistics):
    """Sums with the weight (C,) of each component, and its first moment (C, d) about the current mean."""

    weight: Floats
    first: Floats


Moments = TypeVar("Moments", bound=MomentSums)


class Elliptical(Density[ParametersT, Moments]):
    """Components with a mean and a covariance, or scale, of a given form.

    A subclass is a frozen dataclass with these fields, in an order of its own.

    Attributes
    ----------
    form : CovarianceForm
        Full, tied, diagonal or spherical; None stands for full.
    reg_covar : float
        Added to the diagonal of every covariance.
    shrinkage : float
        Number of pseudo-observations of the prior.
    """

    form: CovarianceForm
    reg_covar: float
    shrinkage: float

    allows_missing = True

    def __post_init__(self) -> None:
        if self.form is None:
            object.__setattr__(self, "form", FORMS["full"])
        if not isinstance(self.form, CovarianceForm):
            raise ValueError(
                f"form={self.form!r} is not a form of covariance: choose Full(), Tied(), Diagonal() or Spherical()"
            )
        check_number("reg_covar", self.reg_covar, Real, 0)
        check_number("shrinkage", self.shrinkage, Real, 0)

    @property
    def _prior(self) -> Shrinkage:
        return Shrinkage(self.form, self.shrinkage)

    def _evaluated(
        self, means: Floats, covariances: Floats, whiteners: Floats, degrees: Floats | None = None
    ) -> native.Elliptical | None:
        """Components as the native core evaluates them; None if it does not know the form."""
        if type(self.form) not in NATIVE_FORMS:
            return None
        correlated = isinstance(self.form, (Full, Tied))
        variances = np.diagonal(covariances, axis1=-2, axis2=-1) if correlated else None
        return native.Elliptical(self.form.name, means, whiteners, variances, degrees)

    @abstractmethod
    def _scatter(self, sums: Moments) -> Floats:
        """Covariances about the new means, before anything is added to them."""

    def _target(self, sums: Moments, pooled: Floats | None) -> Floats:
        """Covariances that maximise the expected log-density plus the log-prior."""
        weight = np.where(sums.weight > NO_SUPPORT, sums.weight, 0.0)
        return self._prior.shrink(self._scatter(sums), weight, pooled)

    def _regularised(self, sums: Moments, pooled: Floats | None, previous: Floats) -> Floats:
        """The target with ``reg_covar`` added; the previous covariance where nothing supports a new one."""
        supported = (self.form.support(sums.weight) > NO_SUPPORT) | (self._prior.weight > 0)
        candidate = self.form.regularise(self._target(sums, pooled), self.reg_covar)
        return self.form.select(supported, candidate, previous)

    def _better(self, sums: Moments, pooled: Floats | None, new: Floats, old: Floats) -> Floats:
        """Whether each new whitener is at least as good as the old one, for these sums and the prior."""
        return self.form.better(new, old, self._target(sums, pooled), sums.first.shape[1])


def moved_means(means: Floats, first: Floats, weight: Floats) -> Floats:
    """Means shifted by the first moments about them; a component without weight stays where it is."""
    supported = (weight > NO_SUPPORT)[:, None]
    shift = first / np.where(supported, weight[:, None], 1.0)
    return np.where(supported, means + shift, means)
