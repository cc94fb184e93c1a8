"""Categories: columns of codes, independent given the component, with the prior described in `discrete`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.random import RandomState
from scipy.sparse import csr_array
from scipy.special import xlogy

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.basics.checks import check_number
from linkmix.densities.base import BadColumn, Density, Statistics, given_array
from linkmix.densities.discrete import DiscreteParameters, Smoothed, is_whole, refuse

MOST_LEVELS = 10_000
"""A larger value is taken for a mistake rather than a code, unless ``n_levels`` allows it."""
MOST_REMEMBERED = 2**15
"""The indicators of so many codes are kept, since each step of EM asks for the same rows several times."""


@dataclass(frozen=True, eq=False)
class LevelSums(Statistics):
    """Weight of the rows with each level, for each component and column."""

    counts: Floats  # (C, d, L)


@dataclass(frozen=True)
class Categorical(Smoothed, Density[DiscreteParameters, LevelSums]):
    """Columns of codes 0, 1, 2, ... that name a level, such as those of scikit-learn's ``OrdinalEncoder``.

    Parameters
    ----------
    smoothing : float
        Number of pseudo-observations for each component and column, spread over the levels as in the column overall
        (shares q). This is the Dirichlet prior with parameters ``1 + smoothing * q``.
    n_levels : int, sequence of int or None
        Number of levels, one for all columns or one for each. None takes the levels found in the rows of the start.
        Larger codes are refused.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0, 2], [0, 2], [1, 0], [1, np.nan]])
    >>> density = Categorical()
    >>> parameters = density.start(X, np.repeat(np.eye(2), 2, axis=0))
    >>> parameters.values.shape  # components, columns, levels
    (2, 2, 3)
    >>> parameters.values[0].round(2).tolist()
    [[0.83, 0.17, 0.0], [0.11, 0.04, 0.85]]
    """

    allows_missing = True
    kind = "category"

    n_levels: int | Sequence[int] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_levels is None:
            return
        levels = np.asarray(self.n_levels, dtype=object)
        for number in levels.ravel():
            check_number("n_levels", number, Integral, 1)
        # Plain numbers, so that equal settings compare equal whatever type they came in.
        plain = tuple(map(int, levels.ravel())) if levels.ndim else int(levels.item())
        object.__setattr__(self, "n_levels", plain)

    def log_density(self, parameters: DiscreteParameters, X: Array) -> Floats:
        """Log-probability of the observed levels of each row under each component, shape (n, C)."""
        C, d, n_codes = parameters.values.shape
        table = np.zeros((d, n_codes + 1, C))  # the last code stands for a missing value and has probability one
        known = parameters.pooled > 0
        table[:, :-1][known] = np.log(np.moveaxis(parameters.values, 0, -1)[known])
        return np.asarray(self._indicators(parameters, X).rows @ table.reshape(-1, C))

    def statistics(self, parameters: DiscreteParameters, X: Array, weights: Floats) -> LevelSums:
        """Weight of the rows with each level."""
        d, n_codes = parameters.pooled.shape
        counts = self._indicators(parameters, X).levels @ weights  # (d * (L + 1), C)
        return LevelSums(np.moveaxis(counts.reshape(d, n_codes + 1, -1)[:, :-1], -1, 0))

    def to_vector(self, parameters: DiscreteParameters, about: DiscreteParameters) -> Floats:
        """Logarithms of the probabilities, each in units of its standard deviation."""
        known = about.values > 0
        logs = np.log(np.divide(parameters.values, about.values, out=np.ones_like(about.values), where=known))
        return (logs * np.sqrt(about.values)).reshape(len(logs), -1)

    def from_vector(self, vector: Floats, about: DiscreteParameters) -> DiscreteParameters:
        """Probabilities, which sum to one for each component and column."""
        root = np.sqrt(about.values)
        logs = np.divide(vector.reshape(root.shape), root, out=np.zeros_like(root), where=root > 0)
        values = about.values * np.exp(logs)
        return self._shares(values, about.pooled)

    def maximize(self, statistics: LevelSums, parameters: DiscreteParameters) -> DiscreteParameters:
        """Shares of the levels among rows and pseudo-observations together."""
        return self._shares(statistics.counts + self.smoothing * parameters.pooled, parameters.pooled)

    def maximize_cautiously(self, statistics: LevelSums, parameters: DiscreteParameters) -> DiscreteParameters:
        """The same, since `maximize` is exact."""
        return self.maximize(statistics, parameters)

    def log_prior(self, parameters: DiscreteParameters) -> float:
        """Logarithm of the Dirichlet prior, up to a constant."""
        return self.smoothing * float(xlogy(parameters.pooled, parameters.values).sum())

    def start(self, X: Array, weights: Floats) -> DiscreteParameters:
        """Shares of the levels in each group, smoothed."""
        n_levels = self._levels(X.shape[1])
        if n_levels is None:
            n_levels = np.where(np.isnan(X), 0, X).max(axis=0).astype(np.int64) + 1
        known = (np.arange(n_levels.max()) < n_levels[:, None]).astype(np.float64)  # (d, L)
        sums = self.statistics(DiscreteParameters(np.empty(0), known), X, weights)
        pooled = (sums.counts.sum(axis=0) + 0.5) * known
        pooled /= pooled.sum(axis=1, keepdims=True)
        return self.maximize(sums, DiscreteParameters(np.empty(0), pooled))

    def given(self, mapping: Mapping[str, Any], shape: tuple[int, ...], n_features: int) -> DiscreteParameters:
        """Probabilities given by the user; a column with fewer levels than others has zeros after its last level."""
        levels = np.shape(mapping.get("probabilities", ()))[-1:]
        values = given_array(mapping, "probabilities", (*shape, n_features, *levels)).reshape(-1, n_features, *levels)
        pooled = values.mean(axis=0)
        if "pooled_probabilities" in mapping:
            pooled = given_array(mapping, "pooled_probabilities", pooled.shape)
        for name, array in (("probabilities", values), ("pooled_probabilities", pooled)):
            if np.any(array < 0) or np.any((array > 0) != (values[0] > 0)):
                raise ValueError(
                    f"init[{name!r}] is 0 or less for a level that is possible elsewhere: use a small number instead"
                )
            if not np.allclose(array.sum(axis=-1), 1.0, rtol=0, atol=1e-6):
                raise ValueError(f"init[{name!r}] must sum to one along its last axis: divide by the sum")
        return DiscreteParameters(values, pooled)

    def attributes(self, parameters: DiscreteParameters, shape: tuple[int, ...]) -> dict[str, Array]:
        """Probabilities with the components laid out as ``shape``, and the probabilities of all rows together."""
        values = parameters.values.reshape(*shape, *parameters.values.shape[1:])
        return {"probabilities": values, "pooled_probabilities": parameters.pooled}

    def check(self, X: Array) -> None:
        """Refuse values that are not codes of levels."""
        refuse(
            X,
            ~is_whole(X),
            "where Categorical needs a code 0, 1, 2, ...: encode the levels, as OrdinalEncoder does, and use NaN for "
            "values that are not known",
        )
        n_levels = self._levels(X.shape[1])
        if n_levels is None:
            remedy = f"a code for more than {MOST_LEVELS} levels: recode them as 0, 1, 2, ..., or pass n_levels"
            refuse(X, X >= MOST_LEVELS, remedy)
        else:
            refuse(X, n_levels <= X, "which n_levels rules out: raise n_levels, or recode it")

    def sample(self, parameters: DiscreteParameters, component: int, n_samples: int, random: RandomState) -> Array:
        """Draw rows from one component."""
        columns = [random.choice(len(p), size=n_samples, p=p / p.sum()) for p in parameters.values[component]]
        return np.column_stack(columns).astype(np.float64)

    def n_parameters(self, n_components: int, n_features: int) -> int:
        """One less than the number of levels, for each component and column; needs ``n_levels``."""
        n_levels = self._levels(n_features)
        if n_levels is None:
            raise ValueError(
                "the number of parameters depends on the levels of the data: pass n_levels, or ask free_parameters"
            )
        return n_components * int((n_levels - 1).sum())

    def free_parameters(self, parameters: DiscreteParameters, n_components: int, n_features: int) -> int:
        """One less than the number of levels, for each component and column."""
        return n_components * int((parameters.pooled > 0).sum() - n_features)

    @staticmethod
    def _shares(counts: Floats, pooled: Floats) -> DiscreteParameters:
        """Counts (C, d, L) as probabilities; no level that exists is impossible."""
        values = counts / counts.sum(axis=2, keepdims=True)
        smallest = np.where(pooled > 0, np.finfo(np.float64).tiny, 0.0)
        return DiscreteParameters(np.maximum(values, smallest), pooled)

    def _levels(self, n_features: int) -> Ints | None:
        if self.n_levels is None:
            return None
        if np.ndim(self.n_levels) and np.shape(self.n_levels) != (n_features,):
            raise ValueError(
                f"n_levels has {np.size(self.n_levels)} numbers for {n_features} columns: give one for each, or one "
                "for all"
            )
        return np.broadcast_to(np.asarray(self.n_levels, dtype=np.int64), (n_features,))

    def _indicators(self, parameters: DiscreteParameters, X: Array) -> "_Indicators":
        n_codes, n_levels = parameters.pooled.shape[1], np.count_nonzero(parameters.pooled, axis=1)
        if X.size > MOST_REMEMBERED:
            return _indicators_of(X, n_codes, n_levels)
        return _remembered(X.tobytes(), X.shape, X.dtype, n_codes, tuple(n_levels.tolist()))


class _Indicators(NamedTuple):
    """Sparse (n, d * (L + 1)) matrix with a one for the code of each column, and its transpose by rows.

    Code L is a missing value. Looking up log-probabilities and summing rows are each one product with these.
    """

    rows: csr_array
    levels: csr_array


def _indicators_of(X: Array, n_codes: int, n_levels: Ints) -> _Indicators:
    n, d = X.shape
    unseen = n_levels <= X  # False for NaN
    if unseen.any():
        row, column = np.argwhere(unseen)[0]
        raise BadColumn(
            int(column),
            f"holds the code {X[row, column]:g}, but the start has seen only 0 to "
            f"{n_levels[column] - 1}: pass n_levels to Categorical, or use NaN for a level that is not known",
        )
    codes = np.where(np.isnan(X), n_codes, X).astype(np.int64) + (n_codes + 1) * np.arange(d)
    rows = csr_array((np.ones(n * d), codes.ravel(), np.arange(0, n * d + 1, d)), shape=(n, d * (n_codes + 1)))
    return _Indicators(rows, rows.T.tocsr())


@lru_cache(maxsize=32)
def _remembered(
    packed: bytes, shape: tuple[int, int], kind: np.dtype[Any], n_codes: int, n_levels: tuple[int, ...]
) -> _Indicators:
    return _indicators_of(np.frombuffer(packed, dtype=kind).reshape(shape), n_codes, np.array(n_levels))
