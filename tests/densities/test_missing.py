from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.stats import multivariate_normal

from density_checks import check_climbs, check_protocol
from linkmix.densities import FORMS, BadColumn, Gaussian, missing
from oracles import COVARIANCE_TYPES, covariance_matrix, random_spread

every_form = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)


def parameters_of(covariance_type, d, n_components=2, seed=0):
    """Density and parameters of components laid out as (n_components, 1), and their covariances as matrices."""
    rng = np.random.default_rng(seed)
    full = np.array([[random_spread(rng, d)] for _ in range(n_components)])
    covariances = {
        "full": full,
        "tied": full[0, 0],
        "diag": np.diagonal(full, axis1=2, axis2=3),
        "spherical": full[:, :, 0, 0],
    }[covariance_type]
    means = rng.normal(size=(n_components, 1, d))
    density = Gaussian(FORMS[covariance_type], 0.0)
    parameters = density.given({"means": means, "covariances": covariances}, (n_components, 1), d)
    matrices = [covariance_matrix(covariances, covariance_type, c, 0, d) for c in range(n_components)]
    return density, parameters, np.array(matrices)


def every_pattern(d, seed=0):
    """One row for each pattern of missing columns, the complete and the empty one included."""
    X = np.random.default_rng(seed).normal(size=(2**d, d))
    for row, absent in enumerate(p for size in range(d + 1) for p in combinations(range(d), size)):
        X[row, list(absent)] = np.nan
    return X


def with_holes(X, share, seed=0):
    X = X.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


def grid(values, mean, covariance):
    """The row with every filling of a fine grid over its missing columns, and the volume of a cell.

    Sums over it are integrals by the trapezoidal rule, exact to rounding for a Gaussian that is wider than a cell.
    """
    absent = np.flatnonzero(np.isnan(values))
    spread = np.sqrt(np.diag(covariance))
    axes = [np.linspace(mean[j] - 10 * spread[j], mean[j] + 10 * spread[j], 81) for j in absent]
    fillings = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(absent)) if len(absent) else []
    rows = np.repeat(values[None], max(1, len(fillings)), axis=0)
    if len(absent):
        rows[:, absent] = fillings
    return rows, np.prod([axis[1] - axis[0] for axis in axes])


@every_form
@pytest.mark.parametrize("d", [1, 2, 3])
def test_log_density_is_the_integral_over_what_is_missing(covariance_type, d):
    density, parameters, matrices = parameters_of(covariance_type, d)
    X = every_pattern(d)
    found = density.log_density(parameters, X)
    for row, values in enumerate(X):
        for c, covariance in enumerate(matrices):
            rows, volume = grid(values, parameters.means[c], covariance)
            integral = multivariate_normal(parameters.means[c], covariance).pdf(rows).sum() * volume
            assert abs(found[row, c] - np.log(integral)) < 1e-10


@every_form
def test_log_density_is_the_integral_by_adaptive_quadrature(covariance_type):
    """The same by a generic quadrature rule, for one missing column and for two."""
    density, parameters, matrices = parameters_of(covariance_type, 3)
    X = np.array([[0.3, np.nan, -1.0], [np.nan, 0.8, np.nan]])
    found = density.log_density(parameters, X)
    for c, covariance in enumerate(matrices):
        pdf, mean = multivariate_normal(parameters.means[c], covariance).pdf, parameters.means[c]
        low, high = mean - 12 * np.sqrt(np.diag(covariance)), mean + 12 * np.sqrt(np.diag(covariance))
        precision = {"epsabs": 1e-13, "epsrel": 1e-13}
        one, _ = quad(lambda v, pdf=pdf: pdf([0.3, v, -1.0]), low[1], high[1], **precision)
        two, _ = dblquad(
            lambda v, u, pdf=pdf: pdf([u, 0.8, v]), low[0], high[0], low[2], high[2], epsabs=1e-12, epsrel=1e-12
        )
        np.testing.assert_allclose(found[:, c], np.log([one, two]), rtol=0, atol=1e-10)


@every_form
def test_a_row_with_nothing_observed_says_nothing(covariance_type):
    density, parameters, _ = parameters_of(covariance_type, 3)
    X = np.full((2, 3), np.nan)
    np.testing.assert_array_equal(density.log_density(parameters, X), 0.0)
    sums = density.statistics(parameters, X, np.ones((2, 2)))
    np.testing.assert_array_equal(sums.first, 0.0)  # its expectation is the mean
    found = density.maximize(sums, parameters)
    np.testing.assert_allclose(found.means, parameters.means, rtol=1e-14)
    np.testing.assert_allclose(found.covariances, parameters.covariances, rtol=1e-13)


@every_form
@pytest.mark.parametrize("d", [1, 2, 3])
def test_sums_are_integrals_over_what_is_missing(covariance_type, d):
    """Expected moments of one row at a time, against sums over the grid weighted by the density."""
    density, parameters, matrices = parameters_of(covariance_type, d)
    for values in every_pattern(d):
        sums = density.statistics(parameters, values[None], np.full((1, 2), 0.7))
        np.testing.assert_allclose(sums.weight, 0.7)
        for c, covariance in enumerate(matrices):
            rows, _ = grid(values, parameters.means[c], covariance)
            share = multivariate_normal(parameters.means[c], covariance).pdf(rows)
            share = 0.7 * np.atleast_1d(share) / share.sum()
            differences = rows - parameters.means[c]
            second = (differences * share[:, None]).T @ differences
            expected = {"diag": np.diag(second), "spherical": np.trace(second) / d}.get(covariance_type, second)
            np.testing.assert_allclose(sums.first[c], share @ differences, rtol=0, atol=1e-10)
            np.testing.assert_allclose(sums.second[c], expected, rtol=0, atol=1e-10)


@every_form
def test_a_fit_reaches_the_maximum_of_the_observed_likelihood(covariance_type):
    """With one component, no change of a mean or covariance raises the likelihood of the observed values."""
    rng = np.random.default_rng(3)
    X = with_holes(rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3)) + 2.0, 0.3)
    density = Gaussian(FORMS[covariance_type], 0.0)
    weights = np.ones((60, 1))
    parameters = density.start(X, weights)
    for _ in range(500):
        parameters = density.maximize(density.statistics(parameters, X, weights), parameters)
    arrays = density.attributes(parameters, (1, 1))
    best = density.log_density(parameters, X).sum()
    for name in arrays:
        for _ in range(20):
            noise = 1e-3 * rng.normal(size=arrays[name].shape)
            if noise.ndim > 1 and name == "covariances" and covariance_type in ("full", "tied"):
                noise = noise + np.swapaxes(noise, -1, -2)
            other = density.given({**arrays, name: arrays[name] + noise}, (1, 1), 3)
            assert density.log_density(other, X).sum() < best


@every_form
@pytest.mark.parametrize("clusters_per_class", [1, 2])
@pytest.mark.parametrize("settings", [{"reg_covar": 0.0}, {"reg_covar": 0.3}, {"shrinkage": 5.0, "reg_covar": 0.01}])
def test_the_objective_never_falls(covariance_type, clusters_per_class, settings):
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(size=(40, 3)), 3 + rng.normal(size=(40, 3)) @ rng.normal(size=(3, 3))])
    X = with_holes(X, 0.25)
    X[5] = np.nan
    check_climbs(Gaussian(FORMS[covariance_type], **settings), X, clusters_per_class)


@every_form
def test_protocol(covariance_type):
    X = with_holes(np.random.default_rng(0).normal(size=(50, 3)), 0.3)
    check_protocol(Gaussian(FORMS[covariance_type]), X)
    check_protocol(Gaussian(FORMS[covariance_type], shrinkage=3.0), X)


@every_form
def test_complete_rows_give_the_same_in_company_of_incomplete_ones(covariance_type):
    density, parameters, _ = parameters_of(covariance_type, 4)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 4))
    holes = with_holes(rng.normal(size=(10, 4)), 0.5)
    mixed = np.concatenate([X, holes])
    weights = rng.random((30, 2))
    np.testing.assert_allclose(
        density.log_density(parameters, mixed)[:20], density.log_density(parameters, X), rtol=1e-12
    )
    together = density.statistics(parameters, mixed, weights)
    apart = density.statistics(parameters, X, weights[:20]) + density.statistics(parameters, holes, weights[20:])
    np.testing.assert_allclose(together.first, apart.first, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(together.second, apart.second, rtol=1e-11, atol=1e-12)


def test_many_patterns_are_taken_in_turn(monkeypatch):
    """One stack of patterns or many: the same numbers."""
    density, parameters, _ = parameters_of("full", 5)
    X = with_holes(np.random.default_rng(0).normal(size=(200, 5)), 0.4)
    weights = np.random.default_rng(1).random((200, 2))
    log_density, sums = density.log_density(parameters, X), density.statistics(parameters, X, weights)
    monkeypatch.setattr(missing, "STACK_NUMBERS", 100)
    np.testing.assert_allclose(density.log_density(parameters, X), log_density, rtol=1e-13)
    again = density.statistics(parameters, X, weights)
    np.testing.assert_allclose(again.first, sums.first, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(again.second, sums.second, rtol=1e-11, atol=1e-11)


@every_form
def test_the_start_uses_what_was_observed(covariance_type):
    nan = np.nan
    X = np.array([[0.0, 1.0], [2.0, nan], [1.0, 3.0], [0.5, 1.5], [9.0, nan], [11.0, nan]])
    weights = np.repeat(np.eye(2), [4, 2], axis=0)
    found = Gaussian(FORMS[covariance_type], 0.0).start(X, weights)
    column = np.nanmean(X[:, 1])
    np.testing.assert_allclose(found.means, [[0.875, (1 + 3 + 1.5) / 3], [10.0, column]], rtol=1e-14)
    # A group without any value in a column gets the variance of the other groups there, not zero.
    within = np.nanvar(X[:4, 1])
    if covariance_type == "diag":
        np.testing.assert_allclose(found.covariances[0], [np.var(X[:4, 0]), within], rtol=1e-12)


def test_a_column_without_any_value_is_refused():
    X = np.column_stack([np.arange(6.0), np.full(6, np.nan)])
    with pytest.raises(BadColumn, match="column 1 holds no value, only NaN: drop it"):
        Gaussian().start(X, np.ones((6, 1)))


def eliminate(block, right):
    """Determinant of a matrix and its inverse times another one, in exact fractions."""
    rows = [[Fraction(v) for v in [*left, *more]] for left, more in zip(block.tolist(), right.tolist(), strict=True)]
    determinant = Fraction(1)
    for i in range(len(rows)):
        determinant *= rows[i][i]
        rows[i] = [v / rows[i][i] for v in rows[i]]
        for j in range(len(rows)):
            if j != i:
                rows[j] = [v - rows[j][i] * w for v, w in zip(rows[j], rows[i], strict=True)]
    return determinant, np.array([row[len(rows) :] for row in rows])


@pytest.mark.parametrize("covariance_type", ["full", "tied"])
@pytest.mark.parametrize("absent", [[0], [0, 1], [0, 1, 3], [3]])
def test_columns_that_almost_repeat_each_other_lose_nothing(covariance_type, absent):
    """Three columns with correlation 1 - 1e-8, against exact fractions. Conditions of 1e8 leave eight digits."""
    loading = np.array([[1.0, 1.0, 1.0, 0.3]])
    covariance = loading.T @ loading + np.diag([1e-8, 1e-8, 1e-8, 0.5])
    density = Gaussian(FORMS[covariance_type], 0.0)
    shape = (1, 1, 4, 4) if covariance_type == "full" else (4, 4)
    parameters = density.given({"means": np.zeros((1, 1, 4)), "covariances": covariance.reshape(shape)}, (1, 1), 4)
    x = density.sample(parameters, 0, 1, np.random.RandomState(1))
    x[0, absent] = np.nan
    seen = [j for j in range(4) if j not in absent]
    row = np.array([[Fraction(v) for v in x[0, seen].tolist()]])
    determinant, solved = eliminate(
        covariance[np.ix_(seen, seen)], np.column_stack([x[0, seen], covariance[np.ix_(seen, absent)]])
    )
    distance, regression = (row @ solved[:, 0])[0], solved[:, 1:]
    log_density = -0.5 * (len(seen) * np.log(2 * np.pi) + np.log(float(determinant)) + float(distance))
    filling = (row @ regression)[0]
    conditional = covariance[np.ix_(absent, absent)] - covariance[np.ix_(absent, seen)] @ regression
    second = (conditional + np.outer(filling, filling)).astype(float)

    np.testing.assert_allclose(density.log_density(parameters, x), [[log_density]], rtol=1e-8)
    sums = density.statistics(parameters, x, np.ones((1, 1)))
    np.testing.assert_allclose(sums.first[0, absent], filling.astype(float), rtol=1e-8)
    np.testing.assert_allclose(sums.second[0][np.ix_(absent, absent)], second, rtol=1e-8)


def test_filling_in_by_hand_is_worse():
    """Missingness depends on the other column: the mean of the remaining values is biased, that of the fit is not."""
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], size=4000)
    X[X[:, 0] > 0, 1] = np.nan
    density, weights = Gaussian(reg_covar=0.0), np.ones((4000, 1))
    parameters = density.start(X, weights)
    for _ in range(200):
        parameters = density.maximize(density.statistics(parameters, X, weights), parameters)
    assert abs(parameters.means[0, 1]) < 0.08
    assert abs(np.nanmean(X[:, 1])) > 0.6
