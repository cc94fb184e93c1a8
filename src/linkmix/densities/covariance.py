"""The forms a covariance can take, one object each, with everything that depends on the form.

Arrays of ``C`` covariances have the shape (C, d, d), (d, d), (C, d) or (C,) for the full, tied, diagonal and spherical
form. A *whitener* ``W`` has the shape of its covariance and satisfies ``W W' = covariance^-1``.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg.lapack import dtrtri

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.basics.errors import DegenerateCluster


class CovarianceForm(ABC):
    """One form of covariance.

    Attributes
    ----------
    name : str
        Its name in scikit-learn.
    shared : bool
        Whether all components have the same covariance.
    independent : bool
        Whether the columns are independent within a component.
    """

    name: ClassVar[str]
    shared: ClassVar[bool] = False
    independent: ClassVar[bool] = False

    @abstractmethod
    def shape(self, components: tuple[int, ...], n_features: int) -> tuple[int, ...]:
        """Shape of the covariances of components laid out as ``components``."""

    @abstractmethod
    def n_parameters(self, n_components: int, n_features: int) -> int:
        """Number of free parameters."""

    @abstractmethod
    def of(self, array: Floats, component: int) -> Floats:
        """The covariance or whitener of one component."""

    @abstractmethod
    def matrix(self, covariance: Floats, n_features: int) -> Floats:
        """One covariance as a (d, d) matrix."""

    @abstractmethod
    def from_matrix(self, matrices: Floats) -> Floats:
        """Matrices (..., d, d) of second moments, reduced to the shape of `moment`."""

    @abstractmethod
    def whiten(self, covariances: Floats) -> Floats:
        """Whiteners of covariances; DegenerateCluster if one is not positive definite."""

    @abstractmethod
    def squared_distance(self, differences: Floats, whitener: Floats) -> Floats:
        """Squared Mahalanobis length of each row."""

    @abstractmethod
    def half_log_precision(self, whiteners: Floats, n_features: int) -> Floats:
        """Half the log-determinant of each precision."""

    @abstractmethod
    def trace(self, whiteners: Floats, covariances: Floats, n_features: int) -> Floats:
        """Trace of precision times covariance, for each covariance."""

    @abstractmethod
    def moment(self, differences: Floats, weights: Floats) -> Floats:
        """Weighted second moment of the rows, only as much of it as the form needs."""

    @abstractmethod
    def covariance(self, second: Floats, first: Floats, weight: Floats) -> Floats:
        """Covariances about the means, from second and first moments about a pivot. The weights are positive."""

    @abstractmethod
    def regularise(self, covariances: Floats, reg_covar: float) -> Floats:
        """Covariances with ``reg_covar`` added to each variance."""

    def to_vector(
        self, means: Floats, covariances: Floats, about_means: Floats, about_whiteners: Floats
    ) -> Floats | None:
        """Coordinates (C, p) of components relative to others, or None, as in `Density.to_vector`."""
        return None

    def from_vector(self, vector: Floats, about_means: Floats, about_covariances: Floats) -> tuple[Floats, Floats]:
        """Means and covariances with these coordinates."""
        raise NotImplementedError

    def support(self, weight: Floats) -> Floats:
        """Weight behind each covariance."""
        return weight

    def pool(self, covariances: Floats, weight: Floats) -> Floats:
        """Weighted mean of the covariances, repeated for each component."""
        share = weight / weight.sum()
        return np.broadcast_to(np.tensordot(share, covariances, axes=1), covariances.shape)

    def select(self, choose: Array, new: Floats, old: Floats) -> Floats:
        """``new`` where chosen, else ``old``; one choice per covariance."""
        return np.where(per_covariance(choose, new), new, old)

    def take(self, array: Floats, order: Ints) -> Floats:
        """Covariances or whiteners with the components in another order."""
        return np.asarray(array[order])

    def better(self, new: Floats, old: Floats, target: Floats, n_features: int) -> Array:
        """Whether the new whiteners have an expected log-density no lower than the old ones, for each covariance.

        The expectation is over rows with covariance ``target`` about the mean.
        """

        def expected(whiteners: Floats) -> Floats:
            return self.half_log_precision(whiteners, n_features) - 0.5 * self.trace(whiteners, target, n_features)

        return np.asarray(expected(new) >= expected(old))


def per_covariance(values: Array, covariances: Floats) -> Array:
    """One value per covariance, in a shape that multiplies or selects whole covariances."""
    return np.reshape(values, np.shape(values) + (1,) * (covariances.ndim - np.ndim(values)))


def _whiten_matrix(covariance: Floats, which: str) -> Floats:
    try:
        lower = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        smallest = float(np.linalg.eigvalsh(covariance)[0])
        raise DegenerateCluster(
            f"the covariance of {which} is singular (smallest eigenvalue {smallest:.3g}): raise reg_covar, "
            "ask for fewer clusters, or drop columns that are constant or repeat each other"
        ) from None
    return _inverse(lower).T


def _inverse(lower: Array) -> Floats:
    """Inverse of a regular lower triangle."""
    inverse: Floats = dtrtri(lower, lower=1)[0]
    return inverse


class _Matrix(CovarianceForm):
    """What full and tied covariance share."""

    def matrix(self, covariance: Floats, n_features: int) -> Floats:
        return covariance

    def from_matrix(self, matrices: Floats) -> Floats:
        return matrices

    def squared_distance(self, differences: Floats, whitener: Floats) -> Floats:
        white = whitener.T @ differences.T  # (d, n): sums along the first axis are sums of long rows
        return np.asarray(np.square(white, out=white).sum(axis=0))

    def half_log_precision(self, whiteners: Floats, n_features: int) -> Floats:
        return np.asarray(np.log(np.diagonal(whiteners, axis1=-2, axis2=-1)).sum(axis=-1))

    def trace(self, whiteners: Floats, covariances: Floats, n_features: int) -> Floats:
        return np.asarray(((covariances @ whiteners) * whiteners).sum(axis=(-2, -1)))

    def moment(self, differences: Floats, weights: Floats) -> Floats:
        return np.asarray((differences * weights[:, None]).T @ differences)

    # Coordinates: the whitened shift of the mean, then the Cholesky factor of the whitened covariance, with the
    # logarithm of its diagonal. A tied covariance is repeated for each component.

    def to_vector(self, means: Floats, covariances: Floats, about_means: Floats, about_whiteners: Floats) -> Floats:
        C, d = means.shape
        whiten = np.swapaxes(about_whiteners, -1, -2)  # (C, d, d) or (d, d), lower triangles
        shift = (whiten @ (means - about_means)[:, :, None])[:, :, 0]
        factor = np.broadcast_to(whiten @ np.linalg.cholesky(covariances), (C, d, d))
        diagonal = np.sqrt(2.0) * np.log(np.diagonal(factor, axis1=1, axis2=2))
        return np.concatenate([shift, diagonal, factor[:, *np.tril_indices(d, -1)]], axis=1)

    def from_vector(self, vector: Floats, about_means: Floats, about_covariances: Floats) -> tuple[Floats, Floats]:
        C, d = about_means.shape
        shift, diagonal, below = np.split(vector, [d, 2 * d], axis=1)
        factor = np.zeros((C, d, d))
        factor[:, *np.tril_indices(d, -1)] = below
        factor[:, range(d), range(d)] = np.exp(diagonal / np.sqrt(2.0))
        root = np.linalg.cholesky(about_covariances)
        lower = root @ (factor[0] if self.shared else factor)
        return about_means + (root @ shift[:, :, None])[:, :, 0], lower @ np.swapaxes(lower, -1, -2)

    def regularise(self, covariances: Floats, reg_covar: float) -> Floats:
        regular = np.asarray(covariances + reg_covar * np.eye(covariances.shape[-1]))
        try:
            np.linalg.cholesky(regular)
        except np.linalg.LinAlgError:
            if reg_covar > 0:  # rounding alone makes a large, flat covariance indefinite by about this much
                d = covariances.shape[-1]
                largest = np.diagonal(covariances, axis1=-2, axis2=-1).max(axis=-1)
                regular += (4 * d * np.finfo(np.float64).eps * largest)[..., None, None] * np.eye(d)
        return regular


@dataclass(frozen=True)
class Full(_Matrix):
    """Each component has its own covariance matrix."""

    name = "full"

    def shape(self, components: tuple[int, ...], n_features: int) -> tuple[int, ...]:
        return (*components, n_features, n_features)

    def n_parameters(self, n_components: int, n_features: int) -> int:
        return n_components * n_features * (n_features + 1) // 2

    def of(self, array: Floats, component: int) -> Floats:
        return np.asarray(array[component])

    def whiten(self, covariances: Floats) -> Floats:
        try:
            return np.stack([_inverse(lower).T for lower in np.linalg.cholesky(covariances)])
        except np.linalg.LinAlgError:  # one by one, to say which
            return np.stack(
                [
                    _whiten_matrix(matrix, f"cluster {c} (counted class by class)")
                    for c, matrix in enumerate(covariances)
                ]
            )

    def covariance(self, second: Floats, first: Floats, weight: Floats) -> Floats:
        shift = first / weight[:, None]
        return np.asarray(second / weight[:, None, None] - shift[:, :, None] * shift[:, None, :])


@dataclass(frozen=True)
class Tied(_Matrix):
    """All components share one covariance matrix."""

    name = "tied"
    shared = True

    def shape(self, components: tuple[int, ...], n_features: int) -> tuple[int, ...]:
        return (n_features, n_features)

    def n_parameters(self, n_components: int, n_features: int) -> int:
        return n_features * (n_features + 1) // 2

    def of(self, array: Floats, component: int) -> Floats:
        return array

    def whiten(self, covariances: Floats) -> Floats:
        return _whiten_matrix(covariances, "all components (tied)")

    def covariance(self, second: Floats, first: Floats, weight: Floats) -> Floats:
        scatter = second.sum(axis=0) - (first / weight[:, None]).T @ first
        return np.asarray(scatter / weight.sum())

    def support(self, weight: Floats) -> Floats:
        return np.asarray(weight.sum())

    def pool(self, covariances: Floats, weight: Floats) -> Floats:
        return covariances

    def take(self, array: Floats, order: Ints) -> Floats:
        return array


class _Variances(CovarianceForm):
    """What diagonal and spherical covariance share."""

    independent = True

    def of(self, array: Floats, component: int) -> Floats:
        return np.asarray(array[component])

    def whiten(self, covariances: Floats) -> Floats:
        variances = covariances.reshape(len(covariances), -1)
        if not np.all(variances > 0):
            component = int(np.argmin(variances.min(axis=1)))
            raise DegenerateCluster(
                f"cluster {component} (counted class by class) has a variance of {variances[component].min():.3g}: "
                "raise reg_covar, ask for fewer clusters, or drop constant columns"
            )
        return np.asarray(1 / np.sqrt(covariances))

    def squared_distance(self, differences: Floats, whitener: Floats) -> Floats:
        white = differences * whitener
        return np.asarray(np.square(white, out=white).sum(axis=1))

    # Coordinates: the whitened shift of the mean, then the logarithms of the variances.

    def to_vector(self, means: Floats, covariances: Floats, about_means: Floats, about_whiteners: Floats) -> Floats:
        C, d = means.shape
        whiteners = about_whiteners.reshape(C, -1)  # (C, d) or (C, 1)
        logs = np.log(covariances.reshape(C, -1) * whiteners**2)
        return np.concatenate([(means - about_means) * whiteners, logs * np.sqrt(d / logs.shape[1] / 2)], axis=1)

    def from_vector(self, vector: Floats, about_means: Floats, about_covariances: Floats) -> tuple[Floats, Floats]:
        C, d = about_means.shape
        variances = about_covariances.reshape(C, -1)
        logs = vector[:, d:] / np.sqrt(d / variances.shape[1] / 2)
        means = about_means + vector[:, :d] * np.sqrt(variances)
        return means, (variances * np.exp(logs)).reshape(about_covariances.shape)

    def regularise(self, covariances: Floats, reg_covar: float) -> Floats:
        return np.asarray(np.maximum(covariances, 0.0) + reg_covar)


@dataclass(frozen=True)
class Diagonal(_Variances):
    """Each component has its own variance in each column."""

    name = "diag"

    def shape(self, components: tuple[int, ...], n_features: int) -> tuple[int, ...]:
        return (*components, n_features)

    def n_parameters(self, n_components: int, n_features: int) -> int:
        return n_components * n_features

    def matrix(self, covariance: Floats, n_features: int) -> Floats:
        return np.diag(covariance)

    def from_matrix(self, matrices: Floats) -> Floats:
        return np.diagonal(matrices, axis1=-2, axis2=-1)

    def half_log_precision(self, whiteners: Floats, n_features: int) -> Floats:
        return np.asarray(np.log(whiteners).sum(axis=-1))

    def trace(self, whiteners: Floats, covariances: Floats, n_features: int) -> Floats:
        return np.asarray((whiteners**2 * covariances).sum(axis=-1))

    def moment(self, differences: Floats, weights: Floats) -> Floats:
        return np.asarray(weights @ differences**2)

    def covariance(self, second: Floats, first: Floats, weight: Floats) -> Floats:
        return np.asarray(second / weight[:, None] - (first / weight[:, None]) ** 2)


@dataclass(frozen=True)
class Spherical(_Variances):
    """Each component has one variance for all columns."""

    name = "spherical"

    def shape(self, components: tuple[int, ...], n_features: int) -> tuple[int, ...]:
        return components

    def n_parameters(self, n_components: int, n_features: int) -> int:
        return n_components

    def matrix(self, covariance: Floats, n_features: int) -> Floats:
        return np.asarray(covariance * np.eye(n_features))

    def from_matrix(self, matrices: Floats) -> Floats:
        return np.asarray(np.trace(matrices, axis1=-2, axis2=-1) / matrices.shape[-1])

    def half_log_precision(self, whiteners: Floats, n_features: int) -> Floats:
        return np.asarray(n_features * np.log(whiteners))

    def trace(self, whiteners: Floats, covariances: Floats, n_features: int) -> Floats:
        return np.asarray(n_features * whiteners**2 * covariances)

    def moment(self, differences: Floats, weights: Floats) -> Floats:
        return np.asarray((weights @ differences**2).mean())

    def covariance(self, second: Floats, first: Floats, weight: Floats) -> Floats:
        return np.asarray(second / weight - ((first / weight[:, None]) ** 2).mean(axis=1))


FORMS: dict[str, CovarianceForm] = {form.name: form for form in (Full(), Tied(), Diagonal(), Spherical())}
"""The forms by the names that scikit-learn uses for ``covariance_type``."""
