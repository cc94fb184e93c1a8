"""Yes or no, and counts: columns that are independent given the component. For categories see `categorical`.

All of them have the same prior: ``smoothing`` pseudo-observations that look like the column as a whole, for each
component and column. A component that has seen few rows stays close to what the column is like overall, and no
probability is ever 0. What a column is like overall is part of the parameters (``pooled``) and stays as it is during a
fit, so that EM climbs one and the same objective. It is estimated from the rows of the start by Jeffreys' rule, half an
observation for each possible value, so that it is never 0 either.

A value that is missing (NaN) adds nothing: columns are independent, so it is integrated out by leaving it out.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.random import RandomState
from scipy.special import gammaln

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.basics.checks import check_number
from linkmix.densities.base import BadColumn, Density, Statistics, given_array

SMALLEST = float(np.finfo(np.float64).eps)
"""A probability of a Bernoulli stays this far from 0 and 1."""


@dataclass(frozen=True)
class DiscreteParameters:
    """Means of the columns (C, d), or probabilities of their levels (C, d, L), and the same of all rows together."""

    values: Floats
    pooled: Floats  # (d,) or (d, L)


@dataclass(frozen=True)
class MeanSums(Statistics):
    """Weight and sum of the observed values, for each component and column."""

    weight: Floats  # (C, d)
    total: Floats  # (C, d)


class Smoothed:
    """What a density with pseudo-observations keeps."""

    def __init__(self, smoothing: float = 1.0) -> None:
        check_number("smoothing", smoothing, Real, 0)
        if smoothing == 0:
            raise ValueError(
                "smoothing=0 would let a probability become 0, which no later row can change: choose a small number "
                "such as 0.001"
            )
        self.smoothing = smoothing

    def __repr__(self) -> str:
        return f"{type(self).__name__}(smoothing={self.smoothing!r})"

    def take(self, parameters: DiscreteParameters, order: Ints) -> DiscreteParameters:
        """Parameters of the components in another order."""
        return DiscreteParameters(parameters.values[order], parameters.pooled)


class _Means(Smoothed, Density[DiscreteParameters, MeanSums]):
    """What Bernoulli and Poisson share: the mean of each column is its only parameter."""

    allows_missing = True
    name: str
    limits: str

    @abstractmethod
    def _pool(self, weight: Floats, total: Floats) -> Floats:
        """Means of the columns over all rows, from sums (d,)."""

    @abstractmethod
    def _inside(self, means: Floats) -> Floats:
        """Means moved to where the log-density is finite."""

    def statistics(self, parameters: DiscreteParameters, X: Array, weights: Floats) -> MeanSums:
        """Weight and sum of the observed values."""
        observed, filled = _fill(X)
        if observed is None:
            weight = np.repeat(weights.sum(axis=0)[:, None], X.shape[1], axis=1)
        else:
            weight = weights.T @ observed
        return MeanSums(weight, weights.T @ filled)

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
        """Means of a user, and those of all rows together, which are the mean of the others if not given."""
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
        """Means with the components laid out as ``shape``, and those of all rows together."""
        values = parameters.values.reshape(*shape, parameters.values.shape[1])
        return {self.name: values, f"pooled_{self.name}": parameters.pooled}

    def n_parameters(self, n_components: int, n_features: int) -> int:
        """One mean for each component and column."""
        return n_components * n_features


class Bernoulli(_Means):
    """Columns of 0 and 1.

    Parameters
    ----------
    smoothing : float
        Number of pseudo-observations for each component and column, which have a 1 as often as the column overall
        (share q). This is the Beta prior ``Beta(1 + smoothing * q, 1 + smoothing * (1 - q))``.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1, 0], [1, 1], [0, 1], [0, np.nan]])
    >>> density = Bernoulli(smoothing=1.0)
    >>> density.start(X, np.repeat(np.eye(2), 2, axis=0)).values.round(3).tolist()
    [[0.833, 0.542], [0.167, 0.812]]
    """

    name = "probabilities"
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
        """Refuse what is neither 0 nor 1."""
        refuse(X, (X != 0) & (X != 1), "where Bernoulli needs 0 or 1: recode it, or use Categorical or Poisson")

    def sample(self, parameters: DiscreteParameters, component: int, n_samples: int, random: RandomState) -> Array:
        """Draw rows from one component."""
        p = parameters.values[component]
        return np.asarray(random.uniform(size=(n_samples, len(p))) < p, dtype=np.float64)

    def _pool(self, weight: Floats, total: Floats) -> Floats:
        return (total + 0.5) / (weight + 1)

    def _inside(self, means: Floats) -> Floats:
        # The objective is concave, so the nearest point inside the limits is the maximum there.
        return np.clip(means, SMALLEST, 1 - SMALLEST)


class Poisson(_Means):
    """Columns of counts.

    Parameters
    ----------
    smoothing : float
        Number of pseudo-observations for each component and column, which have the mean count r of the column
        overall. This is the Gamma prior with shape ``1 + smoothing * r`` and rate ``smoothing``.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [2.0], [9.0], [11.0]])
    >>> density = Poisson(smoothing=0.1)
    >>> density.start(X, np.repeat(np.eye(2), 2, axis=0)).values.round(1).tolist()
    [[1.2], [9.8]]
    """

    name = "rates"
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
        """Refuse what is no count."""
        refuse(X, ~is_whole(X), "where Poisson needs a whole number of at least 0: round it, or use Gaussian")

    def sample(self, parameters: DiscreteParameters, component: int, n_samples: int, random: RandomState) -> Array:
        """Draw rows from one component."""
        rates = parameters.values[component]
        return np.asarray(random.poisson(rates, size=(n_samples, len(rates))), dtype=np.float64)

    def _pool(self, weight: Floats, total: Floats) -> Floats:
        return np.asarray((total + 0.5) / np.maximum(weight, 1.0))

    def _inside(self, means: Floats) -> Floats:
        return np.maximum(means, np.finfo(np.float64).tiny)


def _log_factorial(counts: Array) -> Floats:
    """``log(x!)``; small counts come from a table, which is ten times as fast."""
    top = counts.max(initial=0.0)
    if top < counts.size:
        return np.asarray(gammaln(np.arange(1.0, top + 2))[counts.astype(np.intp)])
    return np.asarray(gammaln(counts + 1))


def _fill(X: Array) -> tuple[Floats | None, Array]:
    """One where a value is observed and zero elsewhere, None if all are; and the values with zeros for missing ones."""
    missing = np.isnan(X)
    if not missing.any():
        return None, X
    return (~missing).astype(np.float64), np.where(missing, 0.0, X)


def is_whole(X: Array) -> Array:
    """Whether a value is a whole number of at least 0."""
    return np.asarray((X >= 0) & (np.floor(X) == X) & np.isfinite(X))


def refuse(X: Array, bad: Array, problem: str) -> None:
    """Error about the first value that is bad and not missing."""
    places = np.argwhere(bad & ~np.isnan(X))
    if len(places):
        row, column = places[0]
        raise BadColumn(int(column), f"holds {X[row, column]:g} in row {row}, {problem}")
