"""Points that belong nowhere: every component is contaminated by a wide background that all of them share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.random import RandomState
from scipy.special import expit, logit

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.basics.checks import check_number
from linkmix.densities.base import Density, Statistics, given_array

PRIOR_NOISE, PRIOR_CLEAN = 1.0, 49.0
"""The prior of the share counts as so many rows of noise and of classes."""
FIRST_SHARE, FIRST_SHARES = 0.05, (0.02, 0.3)
"""The share at the start, and its limits if the start estimates it."""
LARGEST_SHARE = 0.5
"""More than this is no noise."""
BLOCK_NUMBERS = 2**16
"""Numbers in one block of rows: everything computed from them stays in cache."""
PREFIX = "background_"
"""Begins the names of the arrays of the background."""


def alike(one: Density[Any, Any], other: Density[Any, Any]) -> bool:
    """Whether two densities have the same parameters: known noise is no matter."""
    if isinstance(one, Contaminated) and isinstance(other, Contaminated):
        return one.density == other.density
    return one == other


def counting(density: Density[Any, Any], noise: Array | None) -> Density[Any, Any]:
    """The density for data in which some rows, a mask (n,), are known to be noise."""
    if noise is None or not isinstance(density, Contaminated):
        return density
    return replace(density, n_known=int(noise.sum()))


@dataclass(frozen=True, eq=False)
class ContaminatedParameters:
    """Parameters of the clean components, the share of the noise, and the background, a component that stays fixed."""

    clean: Any
    share: float
    background: Any


@dataclass(frozen=True, eq=False)
class ContaminatedSums(Statistics):
    """Sums of the clean components over the clean part of the rows, and the weight of either part."""

    clean: Any
    weight: float
    noise: float


@dataclass(frozen=True)
class Contaminated(Density[ContaminatedParameters, ContaminatedSums]):
    """Components that share a background: each has the density ``(1 - e) p_c(x) + e b(x)``.

    The background ``b`` is a component of the same family, fitted to all rows of the start and widened if it has a
    covariance. It stays fixed during EM. The share ``e`` is the same for all components and is learned, at most 1/2;
    its prior counts as one row of noise and 49 rows of classes. A row is noise if ``e b(x)`` is more than half of its
    density; the estimators give such rows the label -1.

    Parameters
    ----------
    density : Density
        The density of the components without noise.
    n_known : int
        Number of rows that are known to be noise. They count in the share.

    Examples
    --------
    The last point is far from both groups.

    >>> import numpy as np
    >>> from linkmix import LinkMixture
    >>> from linkmix.densities import Contaminated, Gaussian
    >>> random = np.random.default_rng(0)
    >>> X = np.concatenate([random.normal(size=(30, 2)), 9 + random.normal(size=(30, 2)), [[70.0, -70.0]]])
    >>> known = np.repeat([0, -1, 1, -1], [10, 20, 10, 21])
    >>> density = Contaminated(Gaussian(shrinkage=4.0))
    >>> model = LinkMixture(2, density=density, init="links", random_state=0).fit(X, known)
    >>> np.unique(model.labels_, return_counts=True)
    (array([-1,  0,  1]), array([ 1, 30, 30]))
    """

    density: Density[Any, Any]
    n_known: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.density, Density) or isinstance(self.density, Contaminated):
            raise ValueError(f"density={self.density!r} cannot be contaminated: pass an object such as Gaussian()")
        check_number("n_known", self.n_known, Integral, 0)

    @property
    def allows_missing(self) -> bool:
        """Whether the density without noise allows missing values."""
        return self.density.allows_missing

    @property
    def kind(self) -> str | None:
        """The kind of columns that the density without noise describes."""
        return self.density.kind

    def named(self, columns: Sequence[str]) -> "Contaminated":
        """The same density with column numbers in place of names."""
        return replace(self, density=self.density.named(columns))

    def log_density(self, parameters: ContaminatedParameters, X: Array) -> Floats:
        """Log-density of each row under each component, shape (n, C)."""
        clean = np.log1p(-parameters.share) + self.density.log_density(parameters.clean, X)
        return np.asarray(np.logaddexp(clean, np.log(parameters.share) + self.background(parameters, X)[:, None]))

    def background(self, parameters: ContaminatedParameters, X: Array) -> Floats:
        """Log-density of each row under the background, shape (n,)."""
        return self.density.log_density(parameters.background, X)[:, 0]

    def statistics(self, parameters: ContaminatedParameters, X: Array, weights: Floats) -> ContaminatedSums:
        """Sums over the clean part of each row, and the weight of both parts."""
        odds = self.density.log_density(parameters.clean, X) - self.background(parameters, X)[:, None]
        odds -= logit(parameters.share)
        clean = weights * expit(odds)
        weight = float(weights.sum())
        noise = float((weights * expit(-odds)).sum())
        return ContaminatedSums(self.density.statistics(parameters.clean, X, clean), weight, noise)

    def mixture_sums(
        self, parameters: ContaminatedParameters, X: Array, log_weights: Floats, row_weights: Floats | None
    ) -> tuple[float, ContaminatedSums, Floats] | None:
        """Log-likelihood, statistics and weight, with every log-density computed once.

        In a mixture the background is one more component, of weight e. What it takes of a row is divided among the
        components by their weights.
        """
        size = max(1, BLOCK_NUMBERS // (X.shape[1] + len(log_weights)))
        log_likelihood, total = 0.0, None
        clean_weight = np.zeros(len(log_weights))
        for first in range(0, len(X), size):
            counts = None if row_weights is None else row_weights[first : first + size]
            found, weight, sums = self._block_sums(parameters, X[first : first + size], log_weights, counts)
            log_likelihood += found
            clean_weight += weight
            total = sums if total is None else total + sums
        return None if total is None else (log_likelihood, total, clean_weight + total.noise * np.exp(log_weights))

    def _block_sums(
        self, parameters: ContaminatedParameters, X: Array, log_weights: Floats, row_weights: Floats | None
    ) -> tuple[float, Floats, ContaminatedSums]:
        """Log-likelihood of some rows, the clean weight (C,) of the components, and the statistics."""
        joint = self.density.log_density(parameters.clean, X)
        joint += log_weights + np.log1p(-parameters.share)
        noise = self.background(parameters, X) + np.log(parameters.share)
        top = np.maximum(joint.max(axis=1), noise)
        top = np.where(np.isfinite(top), top, 0.0)
        joint -= top[:, None]
        np.exp(joint, out=joint)
        noise = np.exp(noise - top)
        total = joint.sum(axis=1) + noise
        with np.errstate(divide="ignore"):
            log_rows = np.log(total) + top
        scale = 1 / np.where(total > 0, total, 1.0)
        if row_weights is not None:
            log_rows *= row_weights
            scale *= row_weights
        joint *= scale[:, None]
        weight, of_noise = joint.sum(axis=0), float(noise @ scale)
        sums = self.density.statistics(parameters.clean, X, joint)
        return float(log_rows.sum()), weight, ContaminatedSums(sums, float(weight.sum()) + of_noise, of_noise)

    def maximize(self, statistics: ContaminatedSums, parameters: ContaminatedParameters) -> ContaminatedParameters:
        """The maximum of the components, and the expected share of noise."""
        clean = self.density.maximize(statistics.clean, parameters.clean)
        return ContaminatedParameters(clean, self._share(statistics), parameters.background)

    def maximize_cautiously(
        self, statistics: ContaminatedSums, parameters: ContaminatedParameters
    ) -> ContaminatedParameters:
        """The cautious step of the components; the share is exact."""
        clean = self.density.maximize_cautiously(statistics.clean, parameters.clean)
        return ContaminatedParameters(clean, self._share(statistics), parameters.background)

    def log_prior(self, parameters: ContaminatedParameters) -> float:
        """Log-prior of the components, and that of the share, in which known noise counts; up to a constant."""
        of_share = (PRIOR_NOISE + self.n_known) * np.log(parameters.share) + PRIOR_CLEAN * np.log1p(-parameters.share)
        return self.density.log_prior(parameters.clean) + float(of_share)

    def start(self, X: Array, weights: Floats) -> ContaminatedParameters:
        """The start of the components, the background of all rows, and the share that the prior expects."""
        return ContaminatedParameters(
            self.density.start(X, weights), FIRST_SHARE, self.density.wide(X, weights.sum(axis=1))
        )

    def around(
        self, parameters: ContaminatedParameters, X: Array, weights: Floats, share: float
    ) -> ContaminatedParameters:
        """The same components with the background of other rows, counted with ``weights`` (n,), and another share."""
        share = float(np.clip(share, *FIRST_SHARES))
        return ContaminatedParameters(parameters.clean, share, self.density.wide(X, weights))

    def given(self, mapping: Mapping[str, Any], shape: tuple[int, ...], n_features: int) -> ContaminatedParameters:
        """Arrays of the components, ``noise_share``, and the arrays of the background with this prefix."""
        share = float(given_array(mapping, "noise_share", ()))
        if not 0 < share <= LARGEST_SHARE:
            raise ValueError(f"init['noise_share'] is {share:g}: give a share above 0 and at most {LARGEST_SHARE}")
        own = {key.removeprefix(PREFIX): mapping[key] for key in mapping if key.startswith(PREFIX)}
        rest = {key: mapping[key] for key in mapping if not key.startswith(PREFIX)}
        try:
            background = self.density.given(own, (1,), n_features)
        except ValueError as error:
            raise ValueError(f"the background, whose entries of init begin with {PREFIX!r}: {error}") from None
        return ContaminatedParameters(self.density.given(rest, shape, n_features), share, background)

    def attributes(self, parameters: ContaminatedParameters, shape: tuple[int, ...]) -> dict[str, Array]:
        """The arrays of the components, ``noise_share``, and the arrays of the background as one component."""
        background = self.density.attributes(parameters.background, (1,))
        return {
            **self.density.attributes(parameters.clean, shape),
            "noise_share": np.asarray(parameters.share),
            **{f"{PREFIX}{name}": array for name, array in background.items()},
        }

    def take(self, parameters: ContaminatedParameters, order: Ints) -> ContaminatedParameters:
        """Parameters with the components in another order."""
        return replace(parameters, clean=self.density.take(parameters.clean, order))

    def sample(self, parameters: ContaminatedParameters, component: int, n_samples: int, random: RandomState) -> Array:
        """Draw rows from one component; some of them are from the background."""
        is_noise = random.uniform(size=n_samples) < parameters.share
        n_noise = int(is_noise.sum())
        clean = self.density.sample(parameters.clean, component, n_samples - n_noise, random)
        out = np.empty((n_samples, clean.shape[1]))
        out[~is_noise] = clean
        out[is_noise] = self.density.sample(parameters.background, 0, n_noise, random)
        return out

    def n_parameters(self, n_components: int, n_features: int) -> int:
        """Free parameters of the components, and the share. The background is not fitted to classes."""
        return self.density.n_parameters(n_components, n_features) + 1

    def free_parameters(self, parameters: ContaminatedParameters, n_components: int, n_features: int) -> int:
        """Free parameters of the components in a fit, and the share."""
        return self.density.free_parameters(parameters.clean, n_components, n_features) + 1

    def check(self, X: Array) -> None:
        """Refuse rows that the density without noise refuses."""
        self.density.check(X)

    def _share(self, sums: ContaminatedSums) -> float:
        """Mode of the posterior of the share, as far as it may be: the objective is concave in it."""
        noise = sums.noise + PRIOR_NOISE + self.n_known
        return min(noise / (sums.weight + PRIOR_NOISE + PRIOR_CLEAN + self.n_known), LARGEST_SHARE)
