import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit, softmax

from density_checks import check_climbs, check_protocol, expected_objective
from linkmix.densities import BadColumn, Bernoulli, Categorical, Poisson

rng = np.random.default_rng(0)
YES_OR_NO = np.concatenate([rng.random((30, 4)) < 0.2, rng.random((30, 4)) < [0.7, 0.2, 0.9, 0.5]]).astype(float)
COUNTS = np.concatenate([rng.poisson(2.0, (30, 3)), rng.poisson([9.0, 2.0, 0.3], (30, 3))]).astype(float)
CODES = np.concatenate(
    [np.column_stack([rng.choice(n, size=30, p=rng.dirichlet(np.ones(n))) for n in (2, 4, 3)]) for _ in range(2)]
).astype(float)
CODES[0] = [1, 3, 2]

CASES = {
    "bernoulli": (Bernoulli(), YES_OR_NO),
    "bernoulli, much": (Bernoulli(smoothing=20.0), YES_OR_NO),
    "poisson": (Poisson(), COUNTS),
    "poisson, little": (Poisson(smoothing=1e-3), COUNTS),
    "categorical": (Categorical(), CODES),
    "categorical, levels": (Categorical(smoothing=0.2, n_levels=[3, 4, 5]), CODES),
}
every_case = pytest.mark.parametrize(("density", "X"), CASES.values(), ids=CASES.keys())


def with_holes(X):
    holes = X.copy()
    holes[np.random.default_rng(1).random(X.shape) < 0.3] = np.nan
    holes[7] = np.nan
    return holes


def distribution(density, parameters, component, column):
    """The distribution of one column in scipy."""
    values = parameters.values[component, column]
    if isinstance(density, Bernoulli):
        return stats.bernoulli(values)
    if isinstance(density, Poisson):
        return stats.poisson(values)
    return stats.rv_discrete(values=(np.arange(len(values)), values))


@every_case
def test_log_density_is_that_of_scipy(density, X):
    parameters = density.start(X, np.random.default_rng(0).random((len(X), 3)))
    found = density.log_density(parameters, X)
    for c in range(3):
        expected = sum(distribution(density, parameters, c, j).logpmf(X[:, j]) for j in range(X.shape[1]))
        np.testing.assert_allclose(found[:, c], expected, rtol=1e-12, atol=1e-12)


@every_case
def test_missing_values_are_summed_out(density, X):
    """The probability of a row is the sum over all values that a hole could have."""
    parameters = density.start(X, np.random.default_rng(0).random((len(X), 2)))
    row = X[:1].copy()
    for column in range(X.shape[1]):
        if isinstance(density, Categorical):
            n_values = np.count_nonzero(parameters.pooled[column])
        else:
            n_values = 2 if isinstance(density, Bernoulli) else 100
        filled = np.repeat(row, n_values, axis=0)
        filled[:, column] = np.arange(n_values)
        hole = row.copy()
        hole[0, column] = np.nan
        expected = np.exp(density.log_density(parameters, filled)).sum(axis=0)
        np.testing.assert_allclose(density.log_density(parameters, hole)[0], np.log(expected), rtol=0, atol=1e-10)
    np.testing.assert_array_equal(density.log_density(parameters, np.full_like(row, np.nan)), 0.0)


@every_case
def test_protocol(density, X):
    assert density.allows_missing
    check_protocol(density, X)
    check_protocol(density, with_holes(X))


@every_case
@pytest.mark.parametrize("clusters_per_class", [1, 2])
@pytest.mark.parametrize("holes", [False, True])
def test_the_objective_never_falls(density, X, clusters_per_class, holes):
    check_climbs(density, with_holes(X) if holes else X, clusters_per_class)


@every_case
@pytest.mark.parametrize("holes", [False, True])
def test_the_step_is_the_optimum_of_a_general_solver(density, X, holes):
    X = (with_holes(X) if holes else X)[::4, :2]
    if isinstance(density, Categorical) and density.n_levels is not None:
        density = Categorical(density.smoothing, density.n_levels[:2])
    weights = np.random.default_rng(0).random((len(X), 2))
    start = density.start(X, weights[:, ::-1])
    found = density.maximize(density.statistics(start, X, weights), start)
    shape = found.values.shape

    def values(theta):
        theta = theta.reshape(shape)
        if isinstance(density, Bernoulli):
            return expit(theta)
        if isinstance(density, Poisson):
            return np.exp(theta)
        return softmax(np.where(start.pooled > 0, theta, -np.inf), axis=2)

    def loss(theta):
        return -expected_objective(density, type(start)(values(theta), start.pooled), X, weights)

    best = minimize(loss, np.zeros(found.values.size), method="BFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose(found.values, values(best.x), atol=1e-5)
    assert expected_objective(density, found, X, weights) >= -best.fun - 1e-10 * abs(best.fun)
    cautious = density.maximize_cautiously(density.statistics(start, X, weights), start)
    np.testing.assert_array_equal(cautious.values, found.values)


@pytest.mark.parametrize(
    ("density", "prior"),
    [
        (Bernoulli(2.0), lambda p, q: stats.beta(1 + 2 * q, 1 + 2 * (1 - q)).logpdf(p)),
        (Poisson(2.0), lambda p, q: stats.gamma(1 + 2 * q, scale=1 / 2).logpdf(p)),
    ],
)
def test_the_prior_is_a_beta_and_a_gamma(density, prior):
    """Up to a constant: differences between two places are those of scipy."""
    X = YES_OR_NO
    one, other = (density.start(X, np.random.default_rng(seed).random((len(X), 3)) ** 4) for seed in (0, 1))
    other = type(one)(other.values, one.pooled)
    expected = (prior(one.values, one.pooled) - prior(other.values, one.pooled)).sum()
    np.testing.assert_allclose(density.log_prior(one) - density.log_prior(other), expected, rtol=1e-9)


def test_the_prior_is_a_dirichlet():
    density = Categorical(2.0)
    one, other = (density.start(CODES, np.random.default_rng(seed).random((60, 3)) ** 4) for seed in (0, 1))
    other = type(one)(other.values, one.pooled)
    n_levels = np.count_nonzero(one.pooled, axis=1)
    expected = 0.0
    for c in range(3):
        for j, n in enumerate(n_levels):
            prior = stats.dirichlet(1 + 2 * one.pooled[j, :n])
            expected += prior.logpdf(one.values[c, j, :n]) - prior.logpdf(other.values[c, j, :n])
    np.testing.assert_allclose(density.log_prior(one) - density.log_prior(other), expected, rtol=1e-9)


@every_case
def test_samples_have_the_mean_of_their_component(density, X):
    parameters = density.start(X, np.random.default_rng(0).random((len(X), 2)) ** 4)
    drawn = density.sample(parameters, 1, 40_000, np.random.RandomState(0))
    for column in range(X.shape[1]):
        law = distribution(density, parameters, 1, column)
        assert abs(drawn[:, column].mean() - law.mean()) < 5 * law.std() / 200


@every_case
def test_a_component_without_rows_looks_like_all_rows(density, X):
    weights = np.zeros((len(X), 2))
    weights[:, 0] = 1.0
    parameters = density.start(X, weights)
    np.testing.assert_allclose(parameters.values[1], parameters.pooled, rtol=1e-12)


@every_case
def test_nothing_is_ever_impossible(density, X):
    """A column that is all zeros in the start does not rule out another value later."""
    density = type(density)(1e-6, n_levels=4) if isinstance(density, Categorical) else type(density)(1e-6)
    parameters = density.start(np.zeros((1000, 2)), np.ones((1000, 1)))
    assert np.all(np.isfinite(density.log_density(parameters, np.ones((1, 2)))))
    ones = density.start(np.ones((1000, 2)), np.ones((1000, 1)))
    assert np.all(np.isfinite(density.log_density(ones, np.zeros((1, 2)))))


BAD_VALUES = [
    (Bernoulli(), 2.0, "column 1 holds 2 in row 1, where Bernoulli needs 0 or 1: recode it"),
    (Bernoulli(), 0.5, "column 1 holds 0.5 in row 1, where Bernoulli needs 0 or 1"),
    (Poisson(), 0.5, "column 1 holds 0.5 in row 1, where Poisson needs a whole number of at least 0: round it"),
    (Poisson(), -1.0, "column 1 holds -1 in row 1, where Poisson"),
    (Poisson(), np.inf, "column 1 holds inf in row 1, where Poisson"),
    (Categorical(), -1.0, "column 1 holds -1 in row 1, where Categorical needs a code .* OrdinalEncoder .* NaN"),
    (Categorical(), 1.5, "column 1 holds 1.5 in row 1, where Categorical"),
    (Categorical(), 1e9, r"column 1 holds 1e\+09 in row 1, a code for more than 10000 levels: recode"),
    (Categorical(n_levels=[5, 2]), 3.0, "column 1 holds 3 in row 1, which n_levels rules out: raise n_levels"),
]


@pytest.mark.parametrize(("density", "value", "message"), BAD_VALUES)
def test_bad_values_are_refused_with_column_and_remedy(density, value, message):
    density.check(np.array([[0.0, 1.0], [1.0, np.nan]]))
    with pytest.raises(BadColumn, match=message) as caught:
        density.check(np.array([[0.0, 1.0], [1.0, value]]))
    assert isinstance(caught.value, ValueError)
    assert caught.value.column == 1


def test_a_level_that_the_start_has_not_seen_is_refused():
    density = Categorical()
    parameters = density.start(CODES, np.ones((60, 1)))
    with pytest.raises(BadColumn, match="column 0 holds the code 2, but the start has seen only 0 to 1: pass n_levels"):
        density.log_density(parameters, np.array([[2.0, 3.0, 0.0]]))
    wide = Categorical(n_levels=5)
    parameters = wide.start(CODES, np.ones((60, 1)))
    assert np.all(np.isfinite(wide.log_density(parameters, np.array([[4.0, 4.0, 4.0]]))))


def test_number_of_parameters():
    assert Bernoulli().n_parameters(3, 4) == 12
    assert Poisson().n_parameters(3, 4) == 12
    assert Categorical(n_levels=[2, 4, 3]).n_parameters(2, 3) == 2 * (1 + 3 + 2)
    assert Categorical(n_levels=3).n_parameters(2, 3) == 12
    seen = Categorical().start(CODES, np.ones((60, 2)))
    assert Categorical().free_parameters(seen, 2, 3) == 2 * (1 + 3 + 2)
    with pytest.raises(ValueError, match="depends on the levels of the data: pass n_levels"):
        Categorical().n_parameters(2, 3)
    with pytest.raises(ValueError, match="n_levels has 2 numbers for 3 columns: give one for each, or one for all"):
        Categorical(n_levels=[2, 2]).check(CODES)


@pytest.mark.parametrize("family", [Bernoulli, Poisson, Categorical])
@pytest.mark.parametrize("smoothing", [0, -1.0, np.nan, "some"])
def test_bad_smoothing_is_refused(family, smoothing):
    with pytest.raises(ValueError, match=r"smoothing=.*: choose"):
        family(smoothing=smoothing)


@pytest.mark.parametrize("n_levels", [0, 2.5, [2, 0], "two"])
def test_bad_levels_are_refused(n_levels):
    with pytest.raises(ValueError, match=r"n_levels=.* is not a whole number of at least 1"):
        Categorical(n_levels=n_levels)


BAD_STARTS = [
    (Bernoulli(), {"probabilities": [[[0.5, 1.0]]]}, "holds 1, .*: choose numbers above 0 and below 1"),
    (Bernoulli(), {"rates": [[[0.5, 0.5]]]}, "init has no 'probabilities'"),
    (Poisson(), {"rates": [[[0.0, 1.0]]]}, "holds 0, .*: choose positive numbers"),
    (Poisson(), {"rates": [[[1.0, 1.0]]], "pooled_rates": [1.0]}, "'pooled_rates'. has shape"),
    (Categorical(), {}, "init has no 'probabilities'"),
    (Categorical(), {"probabilities": [[[[0.5, 0.5]]]]}, "'probabilities'. has shape"),
    (Categorical(), {"probabilities": [[[[0.5, 0.5], [0.5, 0.6]]]]}, "must sum to one along its last axis"),
    (
        Categorical(),
        {"probabilities": [[[[0.5, 0.5], [0.5, 0.5]]]], "pooled_probabilities": [[1.0, 0.0], [0.5, 0.5]]},
        "'pooled_probabilities'. is 0 or less for a level that is possible elsewhere",
    ),
]


@pytest.mark.parametrize(("density", "mapping", "message"), BAD_STARTS)
def test_bad_starts_are_refused(density, mapping, message):
    with pytest.raises(ValueError, match=message):
        density.given(mapping, (1, 1), 2)


def test_a_start_given_by_the_user_is_pooled_to_its_mean():
    found = Poisson().given({"rates": [[[1.0]], [[3.0]]]}, (2, 1), 1)
    np.testing.assert_array_equal(found.pooled, [2.0])
    found = Categorical().given({"probabilities": [[[[0.2, 0.8]]], [[[0.4, 0.6]]]]}, (2, 1), 1)
    np.testing.assert_allclose(found.pooled, [[0.3, 0.7]])


def test_levels_compare_equal_whatever_they_came_in():
    assert Categorical(n_levels=[2, 3]) == Categorical(n_levels=np.array([2, 3])) == Categorical(n_levels=(2, 3))
    assert Categorical(n_levels=np.int64(2)) == Categorical(n_levels=2) != Categorical(n_levels=[2])


def test_representations():
    assert repr(Bernoulli()) == "Bernoulli(smoothing=1.0)"
    assert repr(Categorical(0.5, n_levels=3)) == "Categorical(smoothing=0.5, n_levels=3)"


def test_indicators_that_are_kept_say_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.integers(3, size=(40, 4)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    weights = rng.dirichlet(np.ones(2), size=40)
    density = Categorical(n_levels=3)
    found = {}
    for most in (0, 160):
        monkeypatch.setattr("linkmix.densities.categorical.MOST_REMEMBERED", most)
        parameters = density.start(X, weights)
        for _ in range(2):  # the second time from what is kept
            sums = density.statistics(parameters, X, weights).counts
            found.setdefault("density", []).append(density.log_density(parameters, X))
            found.setdefault("sums", []).append(sums)
        other = X[::-1].copy()
        np.testing.assert_array_equal(density.log_density(parameters, other), found["density"][-1][::-1])
    for results in found.values():
        for one in results[1:]:
            np.testing.assert_allclose(one, results[0], rtol=1e-12)
    with pytest.raises(BadColumn, match="holds the code 3"):
        Categorical().log_density(parameters, np.full((40, 4), 3.0))
