"""The Gaussian density, with any form of covariance.

Sums are taken about the current means (the pivot), so that a small cluster far from the origin keeps its covariance:
``sum w (x - p)(x - p)'`` loses nothing to cancellation when ``p`` is close to the mean.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import RandomState

from linkmix.arrays import Array, Floats
from linkmix.densities.base import Density, Statistics, given_array
from linkmix.densities.covariance import CovarianceForm, Full
from linkmix.errors import DegenerateCluster

LOG_2_PI = float(np.log(2 * np.pi))
NO_SUPPORT = float(10 * np.finfo(np.float64).eps)
"""A component with less weight than this keeps its parameters: its mean would be a ratio of rounding errors."""


@dataclass(frozen=True)
class GaussianParameters:
    """Means (C, d), covariances in the shape of their form, and the whiteners that make the log-density cheap."""

    means: Floats
    covariances: Floats
    whiteners: Floats


@dataclass(frozen=True)
class GaussianSums(Statistics):
    """Weight (C,), first moment (C, d) and second moment (C, ...), both about the current means."""

    weight: Floats
    first: Floats
    second: Floats


class Gaussian(Density[GaussianParameters, GaussianSums]):
    """Gaussian components.

    Parameters
    ----------
    form : CovarianceForm
        Full, tied, diagonal or spherical covariance.
    reg_covar : float
        Added to the diagonal of every covariance.
    """

    def __init__(self, form: CovarianceForm | None = None, reg_covar: float = 1e-6) -> None:
        self.form = Full() if form is None else form
        self.reg_covar = reg_covar

    def __repr__(self) -> str:
        return f"Gaussian({self.form!r}, reg_covar={self.reg_covar!r})"

    def log_density(self, parameters: GaussianParameters, X: Array) -> Floats:
        """Log-density of each row under each component, shape (n, C)."""
        n, d = X.shape
        out = np.empty((n, len(parameters.means)))
        for c, mean in enumerate(parameters.means):
            out[:, c] = self.form.squared_distance(X - mean, self.form.of(parameters.whiteners, c))
        out += d * LOG_2_PI
        out *= -0.5
        out += self.form.half_log_precision(parameters.whiteners, d)
        return out

    def statistics(self, parameters: GaussianParameters, X: Array, weights: Floats) -> GaussianSums:
        """Weight, first and second moment about the current means."""
        first = np.empty_like(parameters.means)
        seconds = []
        for c, mean in enumerate(parameters.means):
            differences = X - mean
            first[c] = weights[:, c] @ differences
            seconds.append(self.form.moment(differences, weights[:, c]))
        return GaussianSums(weights.sum(axis=0), first, np.stack(seconds))

    def maximize(self, statistics: GaussianSums, parameters: GaussianParameters) -> GaussianParameters:
        """Weighted means and covariances, ``reg_covar`` added to the diagonal (paper, eq. mu and cov)."""
        supported = self.form.support(statistics.weight) > NO_SUPPORT
        candidate = self.form.regularise(self._scatter(statistics), self.reg_covar)
        return self._with(
            self._means(statistics, parameters.means),
            self.form.select(supported, candidate, parameters.covariances),
        )

    def maximize_cautiously(self, statistics: GaussianSums, parameters: GaussianParameters) -> GaussianParameters:
        """Means as in `maximize`; a covariance only where the regularised one is better than the one it replaces.

        The mean is the exact maximum under any covariance, so no part of this step lowers the expected log-density.
        """
        candidate = self.maximize(statistics, parameters)
        scatter = self._scatter(statistics)
        d = statistics.first.shape[1]

        def expected(whiteners: Floats) -> Floats:
            return self.form.half_log_precision(whiteners, d) - 0.5 * self.form.trace(whiteners, scatter, d)

        better = expected(candidate.whiteners) >= expected(parameters.whiteners)
        return GaussianParameters(
            candidate.means,
            self.form.select(better, candidate.covariances, parameters.covariances),
            self.form.select(better, candidate.whiteners, parameters.whiteners),
        )

    def start(self, X: Array, weights: Floats) -> GaussianParameters:
        """Moments of each group of rows. A group too small for a covariance of its own borrows the pooled one."""
        centre = X.mean(axis=0)
        total = np.maximum(weights.sum(axis=0), np.finfo(np.float64).tiny)
        means = centre + weights.T @ (X - centre) / total[:, None]
        sums = self.statistics(GaussianParameters(means, np.empty(0), np.empty(0)), X, weights)
        scatter = self._scatter(sums)
        members = self.form.support(np.count_nonzero(weights, axis=0).astype(np.float64))
        own = members > X.shape[1]
        covariances = self.form.select(own, scatter, self.form.pool(scatter, sums.weight))
        return self._with(self._means(sums, means), self.form.regularise(covariances, self.reg_covar))

    def given(self, mapping: Mapping[str, Any], shape: tuple[int, ...], n_features: int) -> GaussianParameters:
        """Means and covariances of a user."""
        n_components = int(np.prod(shape))
        means = given_array(mapping, "means", (*shape, n_features)).reshape(n_components, n_features)
        covariances = given_array(mapping, "covariances", self.form.shape(shape, n_features))
        try:
            return self._with(means, covariances.reshape(self.form.shape((n_components,), n_features)))
        except DegenerateCluster as error:
            raise ValueError(f"init['covariances'] must be positive definite, but {error}") from None

    def attributes(self, parameters: GaussianParameters, shape: tuple[int, ...]) -> dict[str, Array]:
        """Means and covariances with the components laid out as ``shape``."""
        d = parameters.means.shape[1]
        return {
            "means": parameters.means.reshape(*shape, d),
            "covariances": parameters.covariances.reshape(self.form.shape(shape, d)),
        }

    def sample(self, parameters: GaussianParameters, component: int, n_samples: int, random: RandomState) -> Array:
        """Draw rows from one component."""
        d = parameters.means.shape[1]
        covariance = self.form.matrix(self.form.of(parameters.covariances, component), d)
        noise = random.standard_normal((n_samples, d))
        return np.asarray(parameters.means[component] + noise @ np.linalg.cholesky(covariance).T)

    def n_parameters(self, n_components: int, n_features: int) -> int:
        """Free parameters of means and covariances."""
        return n_components * n_features + self.form.n_parameters(n_components, n_features)

    def _with(self, means: Floats, covariances: Floats) -> GaussianParameters:
        return GaussianParameters(means, covariances, self.form.whiten(covariances))

    def _means(self, sums: GaussianSums, pivots: Floats) -> Floats:
        supported = (sums.weight > NO_SUPPORT)[:, None]
        shift = sums.first / np.where(supported, sums.weight[:, None], 1.0)
        return np.where(supported, pivots + shift, pivots)

    def _scatter(self, sums: GaussianSums) -> Floats:
        """Covariances about the new means, before anything is added to them."""
        return self.form.covariance(sums.second, sums.first, np.maximum(sums.weight, NO_SUPPORT))
