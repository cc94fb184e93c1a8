"""The Gaussian density, with any form of covariance.

Sums are taken about the current means (the pivot), so that a small cluster far from the origin keeps its covariance:
``sum w (x - p)(x - p)'`` suffers no cancellation when ``p`` is close to the mean.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.random import RandomState

from linkmix import native
from linkmix.basics.arrays import Array, Floats, Ints, has_gaps
from linkmix.basics.errors import DegenerateCluster
from linkmix.densities import missing
from linkmix.densities.base import given_array
from linkmix.densities.covariance import FORMS, CovarianceForm, Full, Tied
from linkmix.densities.elliptical import NATIVE_FORMS, NO_SUPPORT, WIDER, Elliptical, MomentSums, moved_means
from linkmix.densities.missing import LOG_2_PI


@dataclass(frozen=True, eq=False)
class GaussianParameters:
    """Means (C, d), covariances in the shape of their form, and the whiteners that make the log-density cheap.

    ``pooled`` is the covariance that the others are shrunk towards, if there is such a prior.
    """

    means: Floats
    covariances: Floats
    whiteners: Floats
    pooled: Floats | None = None


@dataclass(frozen=True, eq=False)
class GaussianSums(MomentSums):
    """Weight (C,), first moment (C, d) and second moment (C, ...), both about the current means."""

    weight: Floats
    first: Floats
    second: Floats


@dataclass(frozen=True)
class Gaussian(Elliptical[GaussianParameters, GaussianSums]):
    """Gaussian components. NaN stands for an unknown value and is integrated out.

    Parameters
    ----------
    form : CovarianceForm
        Full, tied, diagonal or spherical covariance.
    reg_covar : float
        Added to the diagonal of every covariance.
    shrinkage : float
        Number of pseudo-observations that pull each covariance towards the pooled covariance of the start; the number
        of columns plus two is a good choice for small clusters. A tied covariance is the pooled one and does not
        change.

    Examples
    --------
    Two groups of three points; the second group has a missing value.

    >>> import numpy as np
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [5.0, 5.0], [5.0, np.nan], [7.0, 7.0]])
    >>> groups = np.repeat(np.eye(2), 3, axis=0)
    >>> density = Gaussian(shrinkage=4.0)
    >>> parameters = density.start(X, groups)
    >>> density.log_density(parameters, X).argmax(axis=1).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    form: CovarianceForm = FORMS["full"]
    reg_covar: float = 1e-6
    shrinkage: float = 0.0

    def log_density(self, parameters: GaussianParameters, X: Array) -> Floats:
        """Log-density of each row under each component, shape (n, C)."""
        if has_gaps(X):
            return missing.log_density(self.form, parameters.means, parameters.whiteners, X)
        if self._native(X):
            return native.log_density(self.form.name, X, parameters.means, parameters.whiteners)
        n, d = X.shape
        out = np.empty((n, len(parameters.means)), order="F")  # column by column: long contiguous runs are fast
        X = np.asfortranarray(X)
        for c, mean in enumerate(parameters.means):
            out[:, c] = self.form.squared_distance(X - mean, self.form.of(parameters.whiteners, c))
        out += d * LOG_2_PI
        out *= -0.5
        out += self.form.half_log_precision(parameters.whiteners, d)
        return out

    def statistics(self, parameters: GaussianParameters, X: Array, weights: Floats) -> GaussianSums:
        """Weight, first and second moment about the current means; expected moments if values are missing."""
        if has_gaps(X):
            moments = missing.moments(self.form, parameters.means, parameters.whiteners, X, weights)
            return GaussianSums(weights.sum(axis=0), *moments)
        if self._native(X):
            return GaussianSums(*native.moments(self.form.name, X, parameters.means, weights))
        first = np.empty_like(parameters.means)
        seconds = []
        X = np.asfortranarray(X)
        for c, mean in enumerate(parameters.means):
            differences = X - mean
            first[c] = weights[:, c] @ differences
            seconds.append(self.form.moment(differences, weights[:, c]))
        return GaussianSums(weights.sum(axis=0), first, np.stack(seconds))

    def mixture_sums(
        self, parameters: GaussianParameters, X: Array, log_weights: Floats, row_weights: Floats | None
    ) -> tuple[float, GaussianSums, Floats] | None:
        """Log-likelihood, statistics and weight in one pass, by the native core."""
        components = self.to_native(parameters)
        if components is None or not native.serves(X):
            return None
        sums = native.mixture_sums(components, X, log_weights, row_weights)
        return sums.log_likelihood, GaussianSums(sums.weight, sums.first, sums.second), sums.weight

    def elliptical(self, parameters: GaussianParameters) -> native.Elliptical | None:
        """Components unchanged; None for a subclass, which may define its own log-density."""
        if type(self) is not Gaussian:
            return None
        return self._evaluated(parameters.means, parameters.covariances, parameters.whiteners)

    def to_native(self, parameters: GaussianParameters) -> native.Components | None:
        """Components and prior unchanged; None for a subclass, which may define its own log-density or statistics."""
        if type(self) is not Gaussian or type(self.form) not in NATIVE_FORMS:
            return None
        return native.Components(
            *(self.form.name, parameters.means, parameters.covariances, parameters.whiteners, float(self.reg_covar)),
            prior=self._prior.weight,
            pooled=self._prior.checked(parameters.pooled),
        )

    def from_native(self, components: native.Components) -> GaussianParameters:
        """Parameters unchanged."""
        return GaussianParameters(components.means, components.covariances, components.whiteners, components.pooled)

    def to_vector(self, parameters: GaussianParameters, about: GaussianParameters) -> Floats | None:
        """Means and covariances, in units of the covariances ``about``."""
        return self.form.to_vector(parameters.means, parameters.covariances, about.means, about.whiteners)

    def from_vector(self, vector: Floats, about: GaussianParameters) -> GaussianParameters:
        """Means and covariances."""
        return self._with(*self.form.from_vector(vector, about.means, about.covariances), about.pooled)

    def maximize(self, statistics: GaussianSums, parameters: GaussianParameters) -> GaussianParameters:
        """Weighted means and covariances, ``reg_covar`` added to the diagonal (paper, eq. mu and cov)."""
        return self._with(
            moved_means(parameters.means, statistics.first, statistics.weight),
            self._regularised(statistics, parameters.pooled, parameters.covariances),
            parameters.pooled,
        )

    def maximize_cautiously(self, statistics: GaussianSums, parameters: GaussianParameters) -> GaussianParameters:
        """Means as in `maximize`; a covariance only if the regularised one is better than the one it replaces.

        The mean is the exact maximum under any covariance, so no part of this step lowers the expected log-density
        plus the log-prior.
        """
        candidate = self.maximize(statistics, parameters)
        better = self._better(statistics, parameters.pooled, candidate.whiteners, parameters.whiteners)
        return GaussianParameters(
            candidate.means,
            self.form.select(better, candidate.covariances, parameters.covariances),
            self.form.select(better, candidate.whiteners, parameters.whiteners),
            parameters.pooled,
        )

    def log_prior(self, parameters: GaussianParameters) -> float:
        """Logarithm of the prior of the covariances, up to a constant; 0 without shrinkage."""
        covariances, whiteners = parameters.covariances, parameters.whiteners
        return self._prior.log_prior(covariances, whiteners, parameters.pooled, parameters.means.shape[1])

    def take(self, parameters: GaussianParameters, order: Ints) -> GaussianParameters:
        """Parameters with the components in another order."""
        return GaussianParameters(
            parameters.means[order],
            self.form.take(parameters.covariances, order),
            self.form.take(parameters.whiteners, order),
            parameters.pooled,
        )

    def start(self, X: Array, weights: Floats) -> GaussianParameters:
        """Moments of each group of rows. A group too small for a covariance of its own gets the pooled one.

        A missing value counts with the mean of its group and the variance pooled over all groups.
        """
        if has_gaps(X):
            means, variances = missing.observed_moments(X, weights)
            moments = missing.independent_moments(self.form, means, np.broadcast_to(variances, means.shape), X, weights)
            sums = GaussianSums(weights.sum(axis=0), *moments)
        else:
            centre = np.broadcast_to(X.mean(axis=0, dtype=np.float64), (weights.shape[1], X.shape[1]))
            sums = self.statistics(GaussianParameters(centre, np.empty(0), np.empty(0)), X, weights)
            means = centre + sums.first / np.maximum(sums.weight, np.finfo(np.float64).tiny)[:, None]
            sums = self.statistics(GaussianParameters(means, np.empty(0), np.empty(0)), X, weights)
        scatter = self._scatter(sums)
        own = self.form.support(sums.weight) > X.shape[1]  # with fewer points the covariance is singular
        pool = self.form.pool(scatter, sums.weight)
        covariances = self.form.select(own, scatter, pool)
        pooled = self.form.of(pool, 0).copy() if self._prior.weight else None
        covariances = self._prior.shrink(covariances, sums.weight, pooled)
        means = moved_means(means, sums.first, sums.weight)
        return self._with(means, self.form.regularise(covariances, self.reg_covar), pooled)

    def wide(self, X: Array, weights: Floats) -> GaussianParameters:
        """Mean and widened covariance of all rows."""
        all_rows = self.start(X, weights[:, None])
        return self._with(all_rows.means, WIDER * all_rows.covariances, all_rows.pooled)

    def given(self, mapping: Mapping[str, Any], shape: tuple[int, ...], n_features: int) -> GaussianParameters:
        """Means and covariances given by the user, and ``pooled_covariance``, by default the mean covariance."""
        n_components = prod(shape)
        means = given_array(mapping, "means", (*shape, n_features)).reshape(n_components, n_features)
        covariances = given_array(mapping, "covariances", self.form.shape(shape, n_features))
        covariances = covariances.reshape(self.form.shape((n_components,), n_features))
        if isinstance(self.form, (Full, Tied)) and not _symmetric(covariances):
            raise ValueError("init['covariances'] must be symmetric: use (C + C.T) / 2")
        pooled = self._prior.given(mapping, covariances, "covariance", n_features)
        try:
            return self._with(means, covariances, pooled)
        except DegenerateCluster as error:
            raise ValueError(f"init['covariances'] must be positive definite, but {error}") from None

    def attributes(self, parameters: GaussianParameters, shape: tuple[int, ...]) -> dict[str, Array]:
        """Means and covariances with the components laid out as ``shape``; with shrinkage also its target."""
        d = parameters.means.shape[1]
        arrays: dict[str, Array] = {
            "means": parameters.means.reshape(*shape, d),
            "covariances": parameters.covariances.reshape(self.form.shape(shape, d)),
        }
        if self._prior.weight:
            arrays["pooled_covariance"] = self._prior.target(parameters.pooled)
        return arrays

    def sample(self, parameters: GaussianParameters, component: int, n_samples: int, random: RandomState) -> Array:
        """Draw rows from one component."""
        d = parameters.means.shape[1]
        covariance = self.form.matrix(self.form.of(parameters.covariances, component), d)
        noise = random.standard_normal((n_samples, d))
        return np.asarray(parameters.means[component] + noise @ np.linalg.cholesky(covariance).T)

    def n_parameters(self, n_components: int, n_features: int) -> int:
        """Free parameters of means and covariances."""
        return n_components * n_features + self.form.n_parameters(n_components, n_features)

    def _native(self, X: Array) -> bool:
        """Whether the native core can compute this: it supports four forms and no missing values."""
        return type(self.form) in NATIVE_FORMS and native.serves(X)

    def _with(self, means: Floats, covariances: Floats, pooled: Floats | None = None) -> GaussianParameters:
        return GaussianParameters(means, covariances, self.form.whiten(covariances), pooled)

    def _scatter(self, sums: GaussianSums) -> Floats:
        return self.form.covariance(sums.second, sums.first, np.maximum(sums.weight, NO_SUPPORT))


def _symmetric(matrices: Floats) -> bool:
    """Whether matrices (..., d, d) equal their transposes up to rounding."""
    size = np.abs(matrices)
    return bool(np.all(np.abs(matrices - matrices.swapaxes(-1, -2)) <= 1e-8 + 1e-5 * size))
