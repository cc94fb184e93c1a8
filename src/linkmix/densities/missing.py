"""Gaussian rows with missing values: NaN is integrated out.

The log-density of a row is that of its observed columns, and its sums are expected sums: the conditional mean replaces
the missing values, and their conditional covariance is added to the second moment.

All of this is one least-squares problem. Let W be the whitener of the component and x a row minus the mean, with zeros
in the missing columns m. The conditional mean of the missing values is the filling f that minimises ``|x W|``, and the
minimum is the distance of the observed columns. With ``QR`` the decomposition of the transposed rows m of W:

    f = -(x W) Q R'^-1,  distance = |x W - (x W) Q Q'|,  conditional covariance = R^-1 R'^-1,

and the missing columns subtract ``log |det R|`` from the log-density. Q and R depend on the row only through its
pattern of missing columns. Nothing cancels, even if columns almost repeat each other.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.densities.base import BadColumn
from linkmix.densities.covariance import CovarianceForm

LOG_2_PI = float(np.log(2 * np.pi))
STACK_NUMBERS = 2**17
"""Numbers in one stack of matrices, so that it stays in cache; further patterns go to the next stack."""
MANY_ROWS = 8
"""With more rows per pattern than this, one product per pattern beats a copy of its matrix for each row."""


def log_density(form: CovarianceForm, means: Floats, whiteners: Floats, X: Array) -> Floats:
    """Log-density of the observed columns of each row under each component, shape (n, C)."""
    distance, half_log_precision, n_observed = observed_distances(form, means, whiteners, X)
    out: Floats = half_log_precision - 0.5 * (distance + LOG_2_PI * n_observed[:, None])
    out[n_observed == 0] = 0.0
    return out


def observed_distances(form: CovarianceForm, means: Floats, whiteners: Floats, X: Array) -> tuple[Floats, Floats, Ints]:
    """Squared distance and half the log-precision of the observed columns, both (n, C), and their number (n,)."""
    (n, d), observed = X.shape, ~np.isnan(X)
    distance, half_log_precision = np.empty((2, n, len(means)))
    if form.independent:
        variances = _variances(form, whiteners, means)
        for c, mean in enumerate(means):
            differences = np.where(observed, X - mean, 0.0)
            distance[:, c] = differences**2 @ (1 / variances[c])
            half_log_precision[:, c] = -0.5 * (observed @ np.log(variances[c]))
    else:
        half_log_precision[:] = form.half_log_precision(whiteners, d)
        matrices = _matrices(form, whiteners, len(means))
        white = np.where(observed, X - means[:, None], 0.0) @ matrices  # (C, n, d)
        distance[:] = np.einsum("cij,cij->ic", white, white)
        for some in _patterns(observed, len(means)):
            distance[some.rows], log_missing = some.distances(white[:, some.rows], matrices)
            half_log_precision[some.rows] -= log_missing
    return distance, half_log_precision, observed.sum(axis=1)


def moments(
    form: CovarianceForm,
    means: Floats,
    whiteners: Floats,
    X: Array,
    weights: Floats,
    spread_weights: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Expected first (C, d) and second (C, ...) moments about the means.

    The conditional covariances of missing values may have different weights, ``spread_weights``.
    """
    spread_weights = weights if spread_weights is None else spread_weights
    if form.independent:
        variances = _variances(form, whiteners, means)
        return independent_moments(form, means, variances, X, weights, spread_weights)
    observed, matrices = ~np.isnan(X), _matrices(form, whiteners, len(means))
    differences = np.where(observed, X - means[:, None], 0.0)  # (C, n, d)
    white = differences @ matrices
    spread = np.zeros((len(means), X.shape[1], X.shape[1]))
    for some in _patterns(observed, len(means)):
        columns, filling, conditional = some.regress(white[:, some.rows], matrices, spread_weights[some.rows].T)
        differences[:, some.rows[:, None], columns] = filling
        spread += conditional
    first = np.matmul(weights.T[:, None], differences)[:, 0]
    seconds = [form.moment(differences[c], weights[:, c]) + form.from_matrix(spread[c]) for c in range(len(means))]
    return first, np.stack(seconds)


def independent_moments(
    form: CovarianceForm,
    means: Floats,
    variances: Floats,
    X: Array,
    weights: Floats,
    spread_weights: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Expected moments when columns are independent: a missing value has the mean and variance of its column."""
    observed = ~np.isnan(X)
    first = np.empty_like(means)
    seconds = []
    missing_weights = (weights if spread_weights is None else spread_weights).T @ ~observed  # (C, d)
    for c, mean in enumerate(means):
        differences = np.where(observed, X - mean, 0.0)
        first[c] = weights[:, c] @ differences
        spread = form.from_matrix(np.diag(missing_weights[c] * variances[c]))
        seconds.append(form.moment(differences, weights[:, c]) + spread)
    return first, np.stack(seconds)


def observed_moments(X: Array, weights: Floats) -> tuple[Floats, Floats]:
    """Means of the observed values of each group (C, d), and the pooled variance of each column about them (d,).

    A group that has no value in a column gets the mean of the column.
    """
    observed = ~np.isnan(X)
    empty = np.flatnonzero(~observed.any(axis=0))
    if len(empty):
        raise BadColumn(int(empty[0]), "holds no value, only NaN: drop it")
    centre = np.nanmean(X, axis=0)
    counts = weights.T @ observed  # (C, d)
    means = centre + weights.T @ np.where(observed, X - centre, 0.0) / np.where(counts > 0, counts, 1.0)
    squares = np.zeros(X.shape[1])
    for c, mean in enumerate(means):
        squares += weights[:, c] @ np.where(observed, X - mean, 0.0) ** 2
    total = counts.sum(axis=0)
    return means, squares / np.where(total > 0, total, 1.0)


@dataclass(frozen=True, eq=False)
class _Patterns:
    """Rows that miss the same positive number of columns, sorted by which ones."""

    rows: Ints  # (n,)
    missing: Ints  # (P, k), the columns that each pattern misses
    bounds: Ints  # (P + 1,), rows bounds[p]:bounds[p + 1] have pattern p

    def distances(self, white: Floats, whiteners: Floats) -> tuple[Floats, Floats]:
        """Squared distance of the observed columns, and the log-determinant of the missing ones, both (n, C)."""
        q, r = self._decompose(whiteners)
        white = white - self._multiply(self._multiply(white, q), np.swapaxes(q, -1, -2))
        log_missing = np.log(np.abs(np.diagonal(r, axis1=-2, axis2=-1))).sum(axis=-1)  # (C, P)
        return np.einsum("cij,cij->ic", white, white), np.repeat(log_missing.T, np.diff(self.bounds), axis=0)

    def regress(self, white: Floats, whiteners: Floats, weights: Floats) -> tuple[Ints, Floats, Floats]:
        """Missing columns of each row (n, k), their conditional means (C, n, k), the sums of covariances (C, d, d)."""
        q, r = self._decompose(whiteners)
        inverse: Floats = np.asarray(np.linalg.inv(r), dtype=np.float64)
        columns = np.repeat(self.missing, np.diff(self.bounds), axis=0)
        filling = -self._multiply(self._multiply(white, q), np.swapaxes(inverse, -1, -2))
        pattern_weights = np.add.reduceat(weights, self.bounds[:-1], axis=1)  # (C, P)
        conditional = pattern_weights[:, :, None, None] * (inverse @ np.swapaxes(inverse, -1, -2))
        n_components, d, _ = whiteners.shape
        places = (
            self.missing[:, :, None] * d
            + self.missing[:, None, :]
            + d * d * np.arange(n_components)[:, None, None, None]
        )
        total = np.bincount(places.ravel(), conditional.ravel(), minlength=n_components * d * d).astype(np.float64)
        return columns, filling, total.reshape(n_components, d, d)

    def _decompose(self, whiteners: Floats) -> tuple[Floats, Floats]:
        if self.missing.shape[1] == 1:  # one column is its own direction
            column = whiteners[:, self.missing[:, 0], :, None]  # (C, P, d, 1)
            length = np.linalg.norm(column, axis=2, keepdims=True)
            return column / length, length
        q, r = np.linalg.qr(np.swapaxes(whiteners[:, self.missing], -1, -2))  # (C, P, d, k), (C, P, k, k)
        return q, r

    def _multiply(self, rows: Floats, matrices: Floats) -> Floats:
        """Each row (C, n, ...) times the matrix (C, P, ...) of its pattern."""
        if rows.shape[1] <= MANY_ROWS * matrices.shape[1]:
            of_rows = np.repeat(matrices, np.diff(self.bounds), axis=1)
            return np.asarray(np.matmul(rows[:, :, None, :], of_rows)[:, :, 0])
        ends = self.bounds.tolist()
        pieces = zip(np.swapaxes(matrices, 0, 1), ends[:-1], ends[1:], strict=True)
        return np.concatenate([rows[:, first:last] @ matrix for matrix, first, last in pieces], axis=1)


def _matrices(form: CovarianceForm, whiteners: Floats, n_components: int) -> Floats:
    """The whitener of each component, shape (C, d, d)."""
    return np.stack([form.of(whiteners, c) for c in range(n_components)])


def _patterns(observed: Array, n_components: int) -> tuple[_Patterns, ...]:
    """All incomplete rows, grouped by how many and which columns they miss, in stacks of limited size."""
    return _same_patterns(np.packbits(observed).tobytes(), observed.shape, n_components)


@lru_cache(maxsize=64)  # each step of EM asks for the same blocks of rows again
def _same_patterns(packed: bytes, shape: tuple[int, int], n_components: int) -> tuple[_Patterns, ...]:
    bits = np.unpackbits(np.frombuffer(packed, dtype=np.uint8), count=shape[0] * shape[1])
    return tuple(_found_patterns(bits.reshape(shape).astype(bool), n_components))


def _found_patterns(observed: Array, n_components: int) -> Iterator[_Patterns]:
    d = observed.shape[1]
    n_missing = d - observed.sum(axis=1)
    incomplete = np.flatnonzero(n_missing)
    packed = np.packbits(observed[incomplete], axis=1)
    order = np.lexsort((*packed.T, n_missing[incomplete]))
    rows, packed = incomplete[order], packed[order]
    firsts = np.flatnonzero(np.append(True, (packed[1:] != packed[:-1]).any(axis=1)))
    bounds = np.append(firsts, len(rows))  # of each pattern
    counts = n_missing[rows[firsts]]
    for count in np.unique(counts).tolist():
        alike = np.flatnonzero(counts == count)
        size = max(1, STACK_NUMBERS // (d * count * n_components))
        for stack in np.split(alike, range(size, len(alike), size)):
            low, high = bounds[stack[0]], bounds[stack[-1] + 1]
            missing = np.nonzero(~observed[rows[bounds[stack]]])[1].reshape(-1, count)
            yield _Patterns(rows[low:high], missing, np.append(bounds[stack], high) - low)


def _variances(form: CovarianceForm, whiteners: Floats, means: Floats) -> Floats:
    """Variances of the columns (C, d), for a form with independent columns."""
    C, d = means.shape
    return np.stack([np.diagonal(form.matrix(form.of(whiteners, c) ** -2, d)) for c in range(C)])
