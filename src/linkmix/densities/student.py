"""The multivariate Student-t density: a Gaussian in which outliers count less.

A t-distributed row is Gaussian with covariance ``scale / u``, where u has a Gamma distribution with mean one. EM treats
u as missing: given the row its mean is ``(nu + d) / (nu + distance^2)``, which becomes the weight of the row. A point
ten times as far away as the others counts almost a hundred times less.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.random import RandomState
from scipy.optimize import brentq
from scipy.special import digamma, gammaln

from linkmix import native
from linkmix.basics.arrays import Array, Floats, Ints, has_gaps
from linkmix.basics.checks import check_number
from linkmix.basics.errors import DegenerateCluster
from linkmix.densities import missing
from linkmix.densities.base import given_array
from linkmix.densities.covariance import FORMS, CovarianceForm, per_covariance
from linkmix.densities.elliptical import NATIVE_FORMS, NO_SUPPORT, WIDER, Elliptical, MomentSums, moved_means
from linkmix.densities.gaussian import Gaussian, GaussianParameters
from linkmix.densities.missing import LOG_2_PI

LEAST_DEGREES, MOST_DEGREES = 0.5, 200.0
"""Limits of learned degrees of freedom: below, a mean is meaningless; above, the density is practically Gaussian."""
FIRST_DEGREES = 10.0
"""Degrees of freedom at the start, if they are learned."""


@dataclass(frozen=True, eq=False)
class StudentParameters:
    """Means (C, d), scales in the shape of their form, their whiteners, and degrees of freedom (C,).

    ``pooled`` is the scale that the others are shrunk towards, if there is such a prior.
    """

    means: Floats
    scales: Floats
    whiteners: Floats
    degrees_of_freedom: Floats
    pooled: Floats | None = None


@dataclass(frozen=True, eq=False)
class StudentSums(MomentSums):
    """Sums over rows with weight w and expected u: of w, wu, expected w (log u - u), and moments weighted by wu.

    ``log_gap`` is 0 where the degrees of freedom are fixed, since nothing else needs it.
    """

    weight: Floats  # (C,)
    scaled_weight: Floats  # (C,)
    log_gap: Floats  # (C,)
    first: Floats  # (C, d), about the current means
    second: Floats  # (C, ...), about the current means


@dataclass(frozen=True)
class StudentT(Elliptical[StudentParameters, StudentSums]):
    """Student-t components, for data with outliers. NaN stands for an unknown value and is integrated out.

    Parameters
    ----------
    form : CovarianceForm
        Form of the scale matrices: full, tied, diagonal or spherical.
    reg_covar : float
        Added to the diagonal of every scale matrix.
    degrees_of_freedom : float or None
        The smaller, the heavier the tails. None learns them for each component, between 0.5 and 200.
    shrinkage : float
        Number of pseudo-observations that pull each scale towards the pooled covariance of the start, as for the
        Gaussian.

    Notes
    -----
    ``scales`` are not covariances: with nu degrees of freedom, more than two, the covariance is
    ``scale * nu / (nu - 2)``.
    The distance over all columns decides how much a row counts, so under a diagonal scale columns are uncorrelated but
    not independent.

    Examples
    --------
    One point of eleven is far off. It moves the mean of a Gaussian by 9, and the mean of this density hardly at all.

    >>> import numpy as np
    >>> X = np.append(np.linspace(-1, 1, 10), 100.0)[:, None]
    >>> density, weights = StudentT(degrees_of_freedom=4.0), np.ones((11, 1))
    >>> parameters = density.start(X, weights)
    >>> for _ in range(100):
    ...     parameters = density.maximize(density.statistics(parameters, X, weights), parameters)
    >>> bool(abs(parameters.means[0, 0]) < 0.1)
    True
    """

    form: CovarianceForm = FORMS["full"]
    reg_covar: float = 1e-6
    degrees_of_freedom: float | None = 4.0
    shrinkage: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.degrees_of_freedom is not None:
            check_number("degrees_of_freedom", self.degrees_of_freedom, Real, 0)
            if self.degrees_of_freedom == 0:
                raise ValueError("degrees_of_freedom=0 is no distribution: choose a positive number such as 4")

    def log_density(self, parameters: StudentParameters, X: Array) -> Floats:
        """Log-density of each row under each component, shape (n, C)."""
        nu = parameters.degrees_of_freedom
        distance, half_log_precision, d = self._distances(parameters, X)
        height = gammaln((nu + d) / 2) - gammaln(nu / 2) - d / 2 * np.log(np.pi * nu) + half_log_precision
        return np.asarray(height - (nu + d) / 2 * np.log1p(distance / nu))

    def elliptical(self, parameters: StudentParameters) -> native.Elliptical | None:
        """Components unchanged; None for a subclass, which may define its own log-density."""
        if type(self) is not StudentT:
            return None
        degrees = parameters.degrees_of_freedom
        return self._evaluated(parameters.means, parameters.scales, parameters.whiteners, degrees)

    def statistics(self, parameters: StudentParameters, X: Array, weights: Floats) -> StudentSums:
        """Sums with each row weighted by its expected u, about the current means."""
        nu = parameters.degrees_of_freedom
        distance, _, d = self._distances(parameters, X)
        half = (nu + d) / 2
        expected = 2 * half / (nu + distance)  # (n, C)
        scaled = weights * expected
        log_gap = np.zeros(weights.shape[1])
        if self.degrees_of_freedom is None:
            # E[log u] = log E[u] + digamma(half) - log(half) for the Gamma posterior of u.
            log_gap = (weights * (np.log(expected) + digamma(half) - np.log(half) - expected)).sum(axis=0)
        if has_gaps(X):  # given u, a missing value has the covariance scale / u, and counts u times
            first, second = missing.moments(
                self.form, parameters.means, parameters.whiteners, X, scaled, spread_weights=weights
            )
            return StudentSums(weights.sum(axis=0), scaled.sum(axis=0), log_gap, first, second)
        moments = Gaussian(self.form).statistics(self._as_gaussian(parameters), X, scaled)
        return StudentSums(weights.sum(axis=0), moments.weight, log_gap, moments.first, moments.second)

    def mixture_sums(
        self, parameters: StudentParameters, X: Array, log_weights: Floats, row_weights: Floats | None
    ) -> tuple[float, StudentSums, Floats] | None:
        """Log-likelihood, statistics and weight in one pass, by the native core."""
        components = self.to_native(parameters)
        if components is None or not native.serves(X):
            return None
        sums = native.mixture_sums(components, X, log_weights, row_weights)
        moments = StudentSums(sums.weight, sums.scaled_weight, sums.log_gap, sums.first, sums.second)
        return sums.log_likelihood, moments, sums.weight

    def to_native(self, parameters: StudentParameters) -> native.Components | None:
        """Components and prior unchanged; None for a subclass, which may define its own log-density or statistics."""
        if type(self) is not StudentT or type(self.form) not in NATIVE_FORMS:
            return None
        return native.Components(
            *(self.form.name, parameters.means, parameters.scales, parameters.whiteners, float(self.reg_covar)),
            *(parameters.degrees_of_freedom, self.degrees_of_freedom is None),
            prior=self._prior.weight,
            pooled=self._prior.checked(parameters.pooled),
        )

    def from_native(self, components: native.Components) -> StudentParameters:
        """Parameters unchanged."""
        degrees = components.degrees_of_freedom
        assert degrees is not None
        return StudentParameters(
            components.means, components.covariances, components.whiteners, degrees, components.pooled
        )

    def to_vector(self, parameters: StudentParameters, about: StudentParameters) -> Floats | None:
        """Means and scales, in units of the scales ``about``, and degrees of freedom."""
        vector = self.form.to_vector(parameters.means, parameters.scales, about.means, about.whiteners)
        if vector is None:
            return None
        degrees = np.log(parameters.degrees_of_freedom / about.degrees_of_freedom)
        return np.concatenate([vector, degrees[:, None]], axis=1)

    def from_vector(self, vector: Floats, about: StudentParameters) -> StudentParameters:
        """Means and scales; learned degrees of freedom stay within their limits."""
        means, scales = self.form.from_vector(vector[:, :-1], about.means, about.scales)
        degrees = about.degrees_of_freedom
        if self.degrees_of_freedom is None:
            degrees = np.clip(degrees * np.exp(vector[:, -1]), LEAST_DEGREES, MOST_DEGREES)
        return StudentParameters(means, scales, self.form.whiten(scales), degrees, about.pooled)

    def maximize(self, statistics: StudentSums, parameters: StudentParameters) -> StudentParameters:
        """Means and scales of the weighted rows, ``reg_covar`` added; degrees of freedom if they are learned."""
        scales = self._regularised(statistics, parameters.pooled, parameters.scales)
        return StudentParameters(
            moved_means(parameters.means, statistics.first, statistics.scaled_weight),
            scales,
            self.form.whiten(scales),
            self._degrees(statistics, parameters),
            parameters.pooled,
        )

    def maximize_cautiously(self, statistics: StudentSums, parameters: StudentParameters) -> StudentParameters:
        """As `maximize`, but a scale only if the regularised one is better than the one it replaces.

        The mean is the exact maximum under any scale, and the degrees of freedom do not depend on either.
        """
        candidate = self.maximize(statistics, parameters)
        better = self._better(statistics, parameters.pooled, candidate.whiteners, parameters.whiteners)
        return StudentParameters(
            candidate.means,
            self.form.select(better, candidate.scales, parameters.scales),
            self.form.select(better, candidate.whiteners, parameters.whiteners),
            candidate.degrees_of_freedom,
            parameters.pooled,
        )

    def log_prior(self, parameters: StudentParameters) -> float:
        """Logarithm of the prior of the scales, up to a constant; 0 without shrinkage."""
        return self._prior.log_prior(
            parameters.scales, parameters.whiteners, parameters.pooled, parameters.means.shape[1]
        )

    def start(self, X: Array, weights: Floats) -> StudentParameters:
        """Moments of each group of rows, as for the Gaussian."""
        moments = Gaussian(self.form, self.reg_covar, self.shrinkage).start(X, weights)
        degrees = self._first_degrees(len(moments.means))
        return StudentParameters(moments.means, moments.covariances, moments.whiteners, degrees, moments.pooled)

    def wide(self, X: Array, weights: Floats) -> StudentParameters:
        """Mean and widened scale of all rows."""
        all_rows = self.start(X, weights[:, None])
        scales = WIDER * all_rows.scales
        return replace(all_rows, scales=scales, whiteners=self.form.whiten(scales))

    def given(self, mapping: Mapping[str, Any], shape: tuple[int, ...], n_features: int) -> StudentParameters:
        """Means and scales given by the user; if degrees of freedom are learned, optionally those too."""
        n_components = int(np.prod(shape))
        means = given_array(mapping, "means", (*shape, n_features)).reshape(n_components, n_features)
        scales = given_array(mapping, "scales", self.form.shape(shape, n_features))
        scales = scales.reshape(self.form.shape((n_components,), n_features))
        try:
            whiteners = self.form.whiten(scales)
        except DegenerateCluster as error:
            raise ValueError(f"init['scales'] must be positive definite, but {error}") from None
        degrees = self._first_degrees(n_components)
        if self.degrees_of_freedom is None and "degrees_of_freedom" in mapping:
            degrees = given_array(mapping, "degrees_of_freedom", shape).reshape(n_components)
            outside = (degrees < LEAST_DEGREES) | (degrees > MOST_DEGREES)
            if outside.any():
                raise ValueError(
                    f"init['degrees_of_freedom'] holds {degrees[outside][0]:g}: choose numbers from {LEAST_DEGREES:g} "
                    f"to {MOST_DEGREES:g}"
                )
        pooled = self._prior.given(mapping, scales, "scale", n_features)
        return StudentParameters(means, scales, whiteners, degrees, pooled)

    def attributes(self, parameters: StudentParameters, shape: tuple[int, ...]) -> dict[str, Array]:
        """Means, scales and learned degrees of freedom, with the components laid out as ``shape``."""
        d = parameters.means.shape[1]
        arrays: dict[str, Array] = {
            "means": parameters.means.reshape(*shape, d),
            "scales": parameters.scales.reshape(self.form.shape(shape, d)),
        }
        if self.degrees_of_freedom is None:
            arrays["degrees_of_freedom"] = parameters.degrees_of_freedom.reshape(shape)
        if self._prior.weight:
            arrays["pooled_scale"] = self._prior.target(parameters.pooled)
        return arrays

    def take(self, parameters: StudentParameters, order: Ints) -> StudentParameters:
        """Parameters with the components in another order."""
        return StudentParameters(
            parameters.means[order],
            self.form.take(parameters.scales, order),
            self.form.take(parameters.whiteners, order),
            parameters.degrees_of_freedom[order],
            parameters.pooled,
        )

    def sample(self, parameters: StudentParameters, component: int, n_samples: int, random: RandomState) -> Array:
        """Draw rows from one component."""
        d = parameters.means.shape[1]
        nu = parameters.degrees_of_freedom[component]
        root = np.linalg.cholesky(self.form.matrix(self.form.of(parameters.scales, component), d))
        noise = random.standard_normal((n_samples, d)) @ root.T
        u = random.chisquare(nu, n_samples) / nu
        return np.asarray(parameters.means[component] + noise / np.sqrt(u)[:, None])

    def n_parameters(self, n_components: int, n_features: int) -> int:
        """Free parameters of means and scales, and of degrees of freedom if they are learned."""
        degrees = n_components if self.degrees_of_freedom is None else 0
        return n_components * n_features + self.form.n_parameters(n_components, n_features) + degrees

    def _distances(self, parameters: StudentParameters, X: Array) -> tuple[Floats, Floats, Any]:
        """Squared distances in units of the scales (n, C), half the log-precision, and the number of columns.

        All of them refer to the observed columns; the last two may be the same for all rows.
        """
        if has_gaps(X):
            distance, half_log_precision, d = missing.observed_distances(
                self.form, parameters.means, parameters.whiteners, X
            )
            return distance, half_log_precision, d[:, None]
        n_features = X.shape[1]
        half_log_precision = self.form.half_log_precision(parameters.whiteners, n_features)
        # The exponent of a Gaussian density, without its normalisation.
        log_density = Gaussian(self.form).log_density(self._as_gaussian(parameters), X)
        distance = 2 * (half_log_precision - n_features / 2 * LOG_2_PI - log_density)
        return np.maximum(distance, 0.0), half_log_precision, n_features

    @staticmethod
    def _as_gaussian(parameters: StudentParameters) -> GaussianParameters:
        return GaussianParameters(parameters.means, parameters.scales, parameters.whiteners)

    def _scatter(self, sums: StudentSums) -> Floats:
        # Moments weighted by wu, divided by the sums of w.
        scaled_weight = np.maximum(sums.scaled_weight, NO_SUPPORT)
        covariance = self.form.covariance(sums.second, sums.first, scaled_weight)
        weight = np.maximum(self.form.support(sums.weight), NO_SUPPORT)
        return np.asarray(covariance * per_covariance(self.form.support(scaled_weight) / weight, covariance))

    def _first_degrees(self, n_components: int) -> Floats:
        return np.full(n_components, FIRST_DEGREES if self.degrees_of_freedom is None else self.degrees_of_freedom)

    def _degrees(self, sums: StudentSums, parameters: StudentParameters) -> Floats:
        """Degrees of freedom that maximise the expected log-density of u, each within its limits."""
        old = parameters.degrees_of_freedom
        if self.degrees_of_freedom is not None:
            return old
        supported = sums.weight > NO_SUPPORT
        gap = sums.log_gap / np.where(supported, sums.weight, 1.0)
        found = [_degrees_with_gap(value) if has else nu for value, has, nu in zip(gap, supported, old, strict=True)]
        return np.array(found, dtype=np.float64)


def _degrees_with_gap(gap: float) -> float:
    """Root of ``log(nu / 2) - digamma(nu / 2) + 1 + gap``, which decreases in nu, so that the maximum is unique."""

    def slope(nu: float) -> float:
        return float(np.log(nu / 2) - digamma(nu / 2) + 1 + gap)

    if slope(LEAST_DEGREES) <= 0:
        return LEAST_DEGREES
    if slope(MOST_DEGREES) >= 0:
        return MOST_DEGREES
    return float(brentq(slope, LEAST_DEGREES, MOST_DEGREES, xtol=1e-10))
