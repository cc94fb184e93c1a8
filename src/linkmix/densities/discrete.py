"""Binary columns and counts, independent given the component. For categories see `categorical`.

All of them have the same prior: for each component and column, ``smoothing`` pseudo-observations distributed like the
column as a whole. A component with few rows stays close to the overall distribution of the column, and no probability
is ever 0. That overall distribution is part of the parameters (``pooled``) and does not change during a fit, so that EM
climbs a fixed objective. It is estimated from the rows of the start by Jeffreys' rule, half an observation for each
possible value, so that it is never 0 either.

A missing value (NaN) adds nothing: columns are independent, so leaving it out integrates it out.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.random import RandomState
from scipy.special import expit, gammaln, logit

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.basics.checks import check_number
from linkmix.densities.base import BadColumn, Density, Statistics, given_array

SMALLEST = float(np.finfo(np.float64).eps)
"""A Bernoulli probability stays at least this far from 0 and 1."""


@dataclass(frozen=True, eq=False)
class DiscreteParameters:
    """Means of the columns (C, d) or probabilities of their levels (C, d, L), and the same for all rows together."""

    values: Floats
    pooled: Floats  # (d,) or (d, L)


@dataclass(frozen=True, eq=False)
class MeanSums(Statistics):
    """Weight and sum of the observed values, for each component and column."""

    weight: Floats  # (C, d)
    total: Floats  # (C, d)


@dataclass(frozen=True)
class Smoothed:
    """The setting that all densities with pseudo-observations share."""

    smoothing: float = 1.0

    def __post_init__(self) -> None:
        check_number("smoothing", self.smoothing, Real, 0)
        if self.smoothing == 0:
            raise ValueError(
                "smoothing=0 would let a probability become 0, which no later row can change: choose a small number "
                "such as 0.001"
            )

    def take(self, parameters: DiscreteParameters, order: Ints) -> DiscreteParameters:
        """Parameters with the components in another order."""
        return DiscreteParameters(parameters.values[order], parameters.pooled)


class _Means(Smoothed, Density[DiscreteParameters, MeanSums]):
    """What Bernoulli and Poisson share: the mean of each column is its only parameter."""

    allows_missing = True
    name: ClassVar[str]
    limits: ClassVar[str]

    @abstractmethod
    def _pool(self, weight: Floats, total: Floats) -> Floats:
        """Means of the columns over all rows, from sums (d,)."""

    @abstractmethod
    def _natural(self, means: Floats) -> Floats:
        """Natural parameters of the exponential family."""

    @abstractmethod
    def _mean(self, natural: Floats) -> Floats:
        """The inverse of `_natural`."""

    @abstractmethod
    def _variance(self, means: Floats) -> Floats:
        """Variances of columns with these means."""

    @abstractmethod
    def _inside(self, means: Floats) -> Floats:
        """Means clipped to the range in which the log-density is finite."""

    def statistics(self, parameters: DiscreteParameters, X: Array, weights: Floats) -> MeanSums:
        """Weight and sum of the observed values."""
        observed, filled = _fill(X)
        if observed is None:
            weight = np.repeat(weights.sum(axis=0)[:, None], X.shape[1], axis=1)
        else:
            weight = weights.T @ observed
        return MeanSums(weight, weights.T @ filled)

    def to_vector(self, parameters: DiscreteParameters, about: DiscreteParameters) -> Floats:
        """Natural parameters of the columns, in units of their standard deviations."""
        return (self._natural(parameters.values) - self._natural(about.values)) * np.sqrt(self._variance(about.values))

    def from_vector(self, vector: Floats, about: DiscreteParameters) -> DiscreteParameters:
        """Means of the columns."""
        natural = self._natural(about.values) + vector / np.sqrt(self._variance(about.values))
        return DiscreteParameters(self._inside(self._mean(natural)), about.pooled)

    def maximize(self, statistics: MeanSums, parameters: DiscreteParameters) -> DiscreteParameters:
        """Means of the rows and the pseudo-observations together."""
        total = statistics.total + self.smoothing * parameters.pooled
        return DiscreteParameters(self._inside(total / (statistics.weight + self.smoothing)), parameters.pooled)

    def maximize_cautiously(self, statistics: MeanSums, parameters: DiscreteParameters) -> DiscreteParameters:
        """The same, since `maximize` is exact."""
        return self.maximize(statistics, parameters)

    def start(self, X: Array, weights: Floats) -> DiscreteParameters:
        """Means of each group, smoothed."""
        sums = self.statistics(DiscreteParameters(np.empty(0), np.empty(0)), X, weights)
        pooled = self._pool(sums.weight.sum(axis=0), sums.total.sum(axis=0))
        return self.maximize(sums, DiscreteParameters(np.empty(0), pooled))

    def given(self, mapping: Mapping[str, Any], shape: tuple[int, ...], n_features: int) -> DiscreteParameters:
        """Means given by the user, and those of all rows together, by default the mean of the others."""
        values = self._given(mapping, self.name, (*shape, n_features)).reshape(-1, n_features)
        name = f"pooled_{self.name}"
        pooled = self._given(mapping, name, (n_features,)) if name in mapping else values.mean(axis=0)
        return DiscreteParameters(values, pooled)

    def _given(self, mapping: Mapping[str, Any], name: str, shape: tuple[int, ...]) -> Floats:
        array = given_array(mapping, name, shape)
        outside = array != self._inside(array)
        if outside.any():
            raise ValueError(
                f"init[{name!r}] holds {array[outside][0]:g}, which rules some values out: choose {self.limits}"
            )
        return array

    def attributes(self, parameters: DiscreteParameters, shape: tuple[int, ...]) -> dict[str, Array]:
        """Means with the components laid out as ``shape``, and the means of all rows together."""
        values = parameters.values.reshape(*shape, parameters.values.shape[1])
        return {self.name: values, f"pooled_{self.name}": parameters.pooled}

    def n_parameters(self, n_components: int, n_features: int) -> int:
        """One mean for each component and column."""
        return n_components * n_features


@dataclass(frozen=True)
class Bernoulli(_Means):
    """Columns of 0 and 1.

    Parameters
    ----------
    smoothing : float
        Number of pseudo-observations for each component and column, with the same share q of ones as the column
        overall. This is the Beta prior ``Beta(1 + smoothing * q, 1 + smoothing * (1 - q))``.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1, 0], [1, 1], [0, 1], [0, np.nan]])
    >>> density = Bernoulli(smoothing=1.0)
    >>> density.start(X, np.repeat(np.eye(2), 2, axis=0)).values.round(3).tolist()
    [[0.833, 0.542], [0.167, 0.812]]
    """

    name = "probabilities"
    kind = "bool"
    limits = "numbers above 0 and below 1"

    def log_density(self, parameters: DiscreteParameters, X: Array) -> Floats:
        """Log-probability of the observed values of each row under each component, shape (n, C)."""
        observed, filled = _fill(X)
        log_no = np.log1p(-parameters.values)
        all_no = log_no.sum(axis=1) if observed is None else observed @ log_no.T
        return np.asarray(filled @ (np.log(parameters.values) - log_no).T + all_no)

    def log_prior(self, parameters: DiscreteParameters) -> float:
        """Logarithm of the Beta prior, up to a constant."""
        p, q = parameters.values, parameters.pooled
        return self.smoothing * float((q * np.log(p) + (1 - q) * np.log1p(-p)).sum())

    def check(self, X: Array) -> None:
        """Refuse values other than 0 and 1."""
        refuse(X, (X != 0) & (X != 1), "where Bernoulli needs 0 or 1: recode it, or use Categorical or Poisson")

    def sample(self, parameters: DiscreteParameters, component: int, n_samples: int, random: RandomState) -> Array:
        """Draw rows from one component."""
        p = parameters.values[component]
        return np.asarray(random.uniform(size=(n_samples, len(p))) < p, dtype=np.float64)

    def _pool(self, weight: Floats, total: Floats) -> Floats:
        return (total + 0.5) / (weight + 1)

    def _natural(self, means: Floats) -> Floats:
        return np.asarray(logit(means))

    def _mean(self, natural: Floats) -> Floats:
        return np.asarray(expit(natural))

    def _variance(self, means: Floats) -> Floats:
        return means * (1 - means)

    def _inside(self, means: Floats) -> Floats:
        # The objective is concave, so the nearest point inside the limits is the maximum there.
        return np.clip(means, SMALLEST, 1 - SMALLEST)


@dataclass(frozen=True)
class Poisson(_Means):
    """Columns of counts.

    Parameters
    ----------
    smoothing : float
        Number of pseudo-observations for each component and column, with the mean count r of the column overall.
        This is the Gamma prior with shape ``1 + smoothing * r`` and rate ``smoothing``.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [2.0], [9.0], [11.0]])
    >>> density = Poisson(smoothing=0.1)
    >>> density.start(X, np.repeat(np.eye(2), 2, axis=0)).values.round(1).tolist()
    [[1.2], [9.8]]
    """

    name = "rates"
    kind = "count"
    limits = "positive numbers"

    def log_density(self, parameters: DiscreteParameters, X: Array) -> Floats:
        """Log-probability of the observed values of each row under each component, shape (n, C)."""
        observed, filled = _fill(X)
        log_factorials = _log_factorial(filled).sum(axis=1)  # 0 where a value is missing
        rates = parameters.values
        expected = rates.sum(axis=1) if observed is None else observed @ rates.T
        return np.asarray(filled @ np.log(rates).T - expected - log_factorials[:, None])

    def log_prior(self, parameters: DiscreteParameters) -> float:
        """Logarithm of the Gamma prior, up to a constant."""
        rates = parameters.values
        return self.smoothing * float((parameters.pooled * np.log(rates) - rates).sum())

    def check(self, X: Array) -> None:
        """Refuse values that are not counts."""
        refuse(X, ~is_whole(X), "where Poisson needs a whole number of at least 0: round it, or use Gaussian")

    def sample(self, parameters: DiscreteParameters, component: int, n_samples: int, random: RandomState) -> Array:
        """Draw rows from one component."""
        rates = parameters.values[component]
        return np.asarray(random.poisson(rates, size=(n_samples, len(rates))), dtype=np.float64)

    def _pool(self, weight: Floats, total: Floats) -> Floats:
        return np.asarray((total + 0.5) / np.maximum(weight, 1.0))

    def _natural(self, means: Floats) -> Floats:
        return np.log(means)

    def _mean(self, natural: Floats) -> Floats:
        return np.exp(natural)

    def _variance(self, means: Floats) -> Floats:
        return means

    def _inside(self, means: Floats) -> Floats:
        return np.maximum(means, np.finfo(np.float64).tiny)


def _log_factorial(counts: Array) -> Floats:
    """``log(x!)``; small counts are looked up in a table, which is ten times as fast."""
    top = counts.max(initial=0.0)
    if top < counts.size:
        return np.asarray(gammaln(np.arange(1.0, top + 2))[counts.astype(np.intp)])
    return np.asarray(gammaln(counts + 1))


def _fill(X: Array) -> tuple[Floats | None, Array]:
    """Indicators of observed values, None if all are observed; and the values, with zeros for missing ones."""
    missing = np.isnan(X)
    if not missing.any():
        return None, X
    return (~missing).astype(np.float64), np.where(missing, 0.0, X)


def is_whole(X: Array) -> Array:
    """Whether a value is a whole number of at least 0."""
    return np.asarray((X >= 0) & (np.floor(X) == X) & np.isfinite(X))


def refuse(X: Array, bad: Array, problem: str) -> None:
    """Raise an error about the first value that is bad and not missing."""
    places = np.argwhere(bad & ~np.isnan(X))
    if len(places):
        row, column = places[0]
        raise BadColumn(int(column), f"holds {X[row, column]:g} in row {row}, {problem}")
