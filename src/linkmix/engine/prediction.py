"""What a mixture tells about single rows: log-densities, probabilities and classes, without links.

The native core computes them in one pass, rows of single precision in single precision. NumPy takes over, block by
block, where values are missing or the core does not know the density.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Optional

import numpy as np
from numpy.random import RandomState
from scipy.special import expit

from linkmix import native
from linkmix.basics.arrays import Array, Floats, Ints, log_sum_exp, shares
from linkmix.data.rows import by_blocks
from linkmix.data.scaling import Scaling
from linkmix.densities import Contaminated
from linkmix.densities.base import Density
from linkmix.engine.steps import block_rows, cluster_log_joint
from linkmix.engine.values import Parameters

NOISE = -1
"""Label of a row that belongs to no class."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """A density and its parameters.

    Attributes
    ----------
    density : Density
    parameters : Parameters
    view : Scaling or None
        How rows are scaled before they reach the density; densities are in the units of the rows.
    background : Mixture or None
        What rows that belong to no class come from, if there are such rows.
    noise_share : float
        Share of these rows.
    """

    density: Density[Any, Any]
    parameters: Parameters
    view: Scaling | None = None
    background: Optional["Mixture"] = None
    noise_share: float = 0.0

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.parameters.class_weights)

    def log_joint(self, X: Array) -> Floats:
        """Log of class weight times density, ``log a_m + log p(x | m)``, for rows of a class; shape (n, M)."""
        found = self._by_core("log_joint", X)
        return self._by_blocks(X, self._log_joint, np.empty((len(X), self.n_classes))) if found is None else found

    def probabilities(self, X: Array, temperature: float = 1.0) -> Floats:
        """Probability of each class, if a row has one, with log-densities divided by the temperature, shape (n, M)."""
        found = self._by_core("probabilities", X, temperature)
        if found is not None:
            return found
        return self._by_blocks(
            X, lambda some: shares(self._log_joint(some) / temperature), np.empty((len(X), self.n_classes))
        )

    def classes(self, X: Array) -> Ints:
        """Most probable class of each row, -1 for a row that more probably belongs to none."""
        found = self._by_core("classes", X)
        if found is None:
            classes = np.empty(len(X), dtype=np.int64)
            found = self._by_blocks(X, lambda some: self._log_joint(some).argmax(axis=1), classes)
        if self.background is not None:
            found[self.noise_log_odds(X) > 0] = NOISE
        return found

    def log_density(self, X: Array) -> Floats:
        """Log-density of each row."""
        found = self._class_log_density(X)
        if self.background is None:
            return found
        noise = np.log(self.noise_share) + self.background.log_density(X)
        return np.asarray(np.logaddexp(np.log1p(-self.noise_share) + found, noise))

    def noise(self, X: Array) -> Floats:
        """Probability that a row belongs to no class."""
        return np.zeros(len(X)) if self.background is None else expit(self.noise_log_odds(X))

    def noise_log_odds(self, X: Array) -> Floats:
        """Log of the odds that a row belongs to no class."""
        assert self.background is not None
        odds = self.background.log_density(X) - self._class_log_density(X)
        return np.asarray(odds + np.log(self.noise_share) - np.log1p(-self.noise_share))

    def _class_log_density(self, X: Array) -> Floats:
        """Log-density of each row among those that have a class."""
        found = self._by_core("log_density", X)
        if found is not None:
            return found
        return self._by_blocks(X, lambda some: log_sum_exp(self._log_joint(some)), np.empty(len(X)))

    def _by_core(self, what: str, X: Array, temperature: float = 1.0) -> Array | None:
        """The result of the native core; None if it cannot compute it."""
        if self.view is not None and self.view.components is not None:  # there is no covariance of the columns
            return None
        components = self.density.elliptical(self.parameters.components) if native.serves(X) else None
        if components is None:
            return None
        log_weights = np.log(self.parameters.class_weights)[:, None] + self.parameters.log_cluster_weights()
        n_classes, log_mixing = self.n_classes, None
        if what == "log_density":  # a plain mixture of all components
            n_classes = 1
            log_weights = log_sum_exp(log_weights, axis=0) if self.parameters.shared_clusters else log_weights.ravel()
        elif self.parameters.shared_clusters:
            log_mixing, log_weights = log_weights, log_weights.max(axis=0)
            log_mixing = log_mixing - log_weights
        else:
            log_weights = log_weights.ravel()
        columns = native.ALL_COLUMNS
        if self.view is not None:
            components, columns, log_slope = self.view.unscaled(components)
            log_weights = log_weights + log_slope
        return native.predict(
            what, X, components, log_weights, log_mixing, n_classes, temperature=temperature, columns=columns
        )

    def _log_joint(self, X: Array) -> Floats:
        if X.dtype == np.float32:
            X = X.astype(np.float64)
        Z = X if self.view is None else self.view(X)
        log_joint = log_sum_exp(cluster_log_joint(self.density, self.parameters, Z))
        log_joint = log_joint + np.log(self.parameters.class_weights)
        return log_joint if self.view is None else log_joint + self.view.log_slope(X)[:, None]

    def _by_blocks(self, X: Array, function: Callable[[Array], Array], out: Array) -> Array:
        return by_blocks(function, X, block_rows(X.shape[1], self.parameters.cluster_weights), out)


def mixture_of(density: Density[Any, Any], parameters: Parameters, view: Scaling | None = None) -> Mixture:
    """A mixture in which noise, if the density has it, is apart from the classes."""
    if not isinstance(density, Contaminated):
        return Mixture(density, parameters, view)
    own = parameters.components
    of_noise = Parameters(np.ones(1), np.ones((1, 1)), own.background)
    of_classes = replace(parameters, components=own.clean)
    background = Mixture(density.density, of_noise, view)
    return Mixture(density.density, of_classes, view, background, own.share)


def sample(
    density: Density[Any, Any], parameters: Parameters, n_samples: int, random: RandomState
) -> tuple[Array, Ints]:
    """Draw rows from a mixture, in the order of their classes.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    classes : ndarray of shape (n_samples,)
        Classes from 0.
    """
    weights = parameters.class_weights[:, None] * parameters.cluster_weights  # (M, K), or (M, C)
    counts = random.multinomial(n_samples, weights.ravel() / weights.sum())
    n_components = weights.shape[1] if parameters.shared_clusters else weights.size
    rows = [density.sample(parameters.components, c % n_components, count, random) for c, count in enumerate(counts)]
    return np.concatenate(rows), np.repeat(np.arange(len(counts)) // weights.shape[1], counts)


def class_log_joint(density: Density[Any, Any], parameters: Parameters, X: Array) -> Floats:
    """Log of class weight times density, ``log a_m + log p(x | m)``, shape (n, M)."""
    return Mixture(density, parameters).log_joint(X)


def most_probable_classes(density: Density[Any, Any], parameters: Parameters, X: Array) -> Ints:
    """Class of each row, from the row alone; intermediate results are kept for one block at a time."""
    return Mixture(density, parameters).classes(X)
