import numpy as np
import pytest
from scipy.optimize import minimize

from density_checks import check_climbs, check_protocol, expected_objective
from linkmix.densities import FORMS, Gaussian, StudentT
from oracles import COVARIANCE_TYPES

every_form = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
own_covariances = pytest.mark.parametrize("covariance_type", ["full", "diag", "spherical"])


def two_groups(seed=0, n=30, d=2):
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(size=(n, d)), 2 + rng.normal(size=(n, d)) @ rng.normal(size=(d, d))])
    return X, np.repeat(np.eye(2), n, axis=0)


def groups_pooled(X, weights, covariance_type):
    """Pooled covariance of hard groups by NumPy alone."""
    groups = [X[column > 0] for column in weights.T]
    pooled = sum(len(group) * np.cov(group.T, bias=True) for group in groups) / len(X)
    return {"full": pooled, "diag": np.diag(pooled), "spherical": np.trace(pooled) / X.shape[1]}[covariance_type]


@own_covariances
def test_the_start_keeps_the_pooled_covariance(covariance_type):
    X, weights = two_groups()
    density = Gaussian(FORMS[covariance_type], 0.0, shrinkage=6.0)
    start = density.start(X, weights)
    pooled = groups_pooled(X, weights, covariance_type)
    np.testing.assert_allclose(start.pooled, pooled, rtol=1e-12)
    plain = Gaussian(FORMS[covariance_type], 0.0).start(X, weights)
    np.testing.assert_allclose(start.covariances, (30 * plain.covariances + 6 * pooled) / 36, rtol=1e-12)
    np.testing.assert_allclose(density.attributes(start, (2, 1))["pooled_covariance"], pooled, rtol=1e-12)


@own_covariances
def test_the_step_is_the_formula(covariance_type):
    X, weights = two_groups()
    soft = np.random.default_rng(1).random((60, 2))
    plain, shrunk = (Gaussian(FORMS[covariance_type], 0.25, nu) for nu in (0.0, 3.0))
    start = shrunk.start(X, weights)
    expected = plain.maximize(plain.statistics(start, X, soft), start)
    found = shrunk.maximize(shrunk.statistics(start, X, soft), start)
    N = soft.sum(axis=0).reshape(-1, *(1,) * (found.covariances.ndim - 1))
    eye = np.zeros(1) if covariance_type != "full" else 0.25 * np.eye(2)
    ridge = 0.25 if covariance_type != "full" else eye
    scatter = expected.covariances - ridge
    np.testing.assert_allclose(found.covariances, (N * scatter + 3 * start.pooled) / (N + 3) + ridge, rtol=1e-9)
    np.testing.assert_array_equal(found.means, expected.means)


@own_covariances
def test_the_step_is_the_optimum_of_a_general_solver(covariance_type):
    """Expected log-density plus log-prior, over means and Cholesky factors, by BFGS."""
    X, weights = two_groups(n=12)
    soft = np.random.default_rng(2).random((24, 2))
    density = Gaussian(FORMS[covariance_type], 0.0, shrinkage=4.0)
    start = density.start(X, weights)
    found = density.maximize(density.statistics(start, X, soft), start)

    def arrays(theta):
        means, rest = theta[:4].reshape(2, 1, 2), theta[4:]
        if covariance_type == "full":
            lower = np.zeros((2, 1, 2, 2))
            lower[..., 0, 0], lower[..., 1, 1] = np.exp(rest[0:2, None]), np.exp(rest[2:4, None])
            lower[..., 1, 0] = rest[4:6, None]
            covariances = lower @ np.swapaxes(lower, -1, -2)
        else:
            covariances = np.exp(rest).reshape(FORMS[covariance_type].shape((2, 1), 2))
        return {"means": means, "covariances": covariances, "pooled_covariance": start.pooled}

    def loss(theta):
        return -expected_objective(density, density.given(arrays(theta), (2, 1), 2), X, soft)

    size = {"full": 10, "diag": 8, "spherical": 6}[covariance_type]
    best = minimize(loss, np.zeros(size), method="BFGS", options={"gtol": 1e-7})
    assert expected_objective(density, found, X, soft) >= -best.fun - 1e-10 * abs(best.fun)
    optimum = arrays(best.x)
    np.testing.assert_allclose(found.means, optimum["means"][:, 0], atol=1e-5)
    np.testing.assert_allclose(found.covariances, optimum["covariances"][:, 0], atol=1e-5)


@own_covariances
def test_log_prior_is_the_formula(covariance_type):
    X, weights = two_groups()
    density = Gaussian(FORMS[covariance_type], 1e-3, shrinkage=2.5)
    parameters = density.start(X, weights)
    as_matrix = density.form.matrix
    pooled = as_matrix(parameters.pooled, 2)
    expected = 0.0
    for covariance in parameters.covariances:
        matrix = as_matrix(covariance, 2)
        expected -= 2.5 / 2 * (np.linalg.slogdet(matrix)[1] + np.trace(np.linalg.solve(matrix, pooled)))
    np.testing.assert_allclose(density.log_prior(parameters), expected, rtol=1e-12)


@every_form
@pytest.mark.parametrize("clusters_per_class", [1, 2])
@pytest.mark.parametrize("shrinkage", [1e-6, 4.0, 1e4])
@pytest.mark.parametrize("reg_covar", [0.0, 1e-6, 0.5])
def test_the_objective_never_falls(covariance_type, clusters_per_class, shrinkage, reg_covar):
    X, _ = two_groups(seed=4, d=3)
    check_climbs(Gaussian(FORMS[covariance_type], reg_covar, shrinkage), X, clusters_per_class)


@every_form
@pytest.mark.parametrize("reg_covar", [1e-6, 0.1, 10.0])
def test_a_cautious_step_never_lowers_the_expected_objective(covariance_type, reg_covar):
    rng = np.random.default_rng(0)
    falls = 0
    for seed in range(10):
        X, weights = two_groups(seed, n=8)
        soft = rng.random((16, 2))
        exact, density = (Gaussian(FORMS[covariance_type], reg, shrinkage=3.0) for reg in (0.0, reg_covar))
        anywhere = exact.start(X, weights)
        maximum = exact.maximize(exact.statistics(anywhere, X, soft), anywhere)
        for parameters in (anywhere, maximum):
            sums = density.statistics(parameters, X, soft)
            before, usual, cautious = (
                expected_objective(density, step, X, soft)
                for step in (
                    parameters,
                    density.maximize(sums, parameters),
                    density.maximize_cautiously(sums, parameters),
                )
            )
            assert cautious >= before - 1e-10 * abs(before)
            falls += usual < before - 1e-3 * abs(before)
    assert falls or reg_covar < 0.1, "no case in which caution was needed"


@every_form
def test_no_shrinkage_is_the_plain_gaussian(covariance_type):
    X, weights = two_groups()
    soft = np.random.default_rng(1).random((60, 2))
    plain = Gaussian(FORMS[covariance_type])
    for nu in (0.0, 1e-12):
        density = Gaussian(FORMS[covariance_type], shrinkage=nu)
        start = density.start(X, weights)
        found = density.maximize(density.statistics(start, X, soft), start)
        expected = plain.maximize(plain.statistics(plain.start(X, weights), X, soft), plain.start(X, weights))
        np.testing.assert_allclose(found.covariances, expected.covariances, rtol=1e-12)
        np.testing.assert_allclose(density.log_prior(found), 0.0, atol=1e-10)


@own_covariances
def test_without_end_all_covariances_are_the_pooled_one(covariance_type):
    X, weights = two_groups()
    soft = np.random.default_rng(1).random((60, 2))
    density = Gaussian(FORMS[covariance_type], 0.0, shrinkage=1e12)
    start = density.start(X, weights)
    found = density.maximize(density.statistics(start, X, soft), start)
    for covariance in found.covariances:
        np.testing.assert_allclose(covariance, start.pooled, rtol=1e-9)


def test_a_tied_covariance_is_left_as_it_is():
    X, weights = two_groups()
    plain, shrunk = Gaussian(FORMS["tied"]), Gaussian(FORMS["tied"], shrinkage=50.0)
    start = shrunk.start(X, weights)
    assert start.pooled is None
    assert shrunk.log_prior(start) == 0.0
    assert shrunk.attributes(start, (2, 1)).keys() == {"means", "covariances"}
    np.testing.assert_array_equal(start.covariances, plain.start(X, weights).covariances)
    sums = plain.statistics(start, X, weights)
    np.testing.assert_array_equal(shrunk.maximize(sums, start).covariances, plain.maximize(sums, start).covariances)


@own_covariances
def test_a_component_without_weight_takes_the_pooled_covariance(covariance_type):
    X, weights = two_groups()
    density = Gaussian(FORMS[covariance_type], 0.0, shrinkage=2.0)
    start = density.start(X, weights)
    soft = weights * [1.0, 0.0]
    found = density.maximize(density.statistics(start, X, soft), start)
    np.testing.assert_allclose(found.covariances[1], start.pooled, rtol=1e-12)
    np.testing.assert_array_equal(found.means[1], start.means[1])


@every_form
def test_protocol(covariance_type):
    check_protocol(Gaussian(FORMS[covariance_type], shrinkage=4.0), two_groups(d=3)[0])


def test_a_start_of_the_user_is_shrunk_to_the_mean_of_its_covariances():
    density = Gaussian(shrinkage=1.0)
    covariances = np.array([[np.eye(2)], [3 * np.eye(2)]])
    given = {"means": np.zeros((2, 1, 2)), "covariances": covariances}
    np.testing.assert_array_equal(density.given(given, (2, 1), 2).pooled, 2 * np.eye(2))
    own = density.given({**given, "pooled_covariance": 5 * np.eye(2)}, (2, 1), 2)
    np.testing.assert_array_equal(own.pooled, 5 * np.eye(2))
    with pytest.raises(ValueError, match=r"'pooled_covariance'. has shape"):
        density.given({**given, "pooled_covariance": np.eye(3)}, (2, 1), 2)
    flat = np.array([[1.0, 1.0], [1.0, 1.0]]) - 1e-16 * np.eye(2)  # a column that repeats another one, to rounding
    assert density.given({**given, "pooled_covariance": flat}, (2, 1), 2).pooled is not None
    with pytest.raises(ValueError, match="negative eigenvalue, -1: give a covariance"):
        density.given({**given, "pooled_covariance": np.diag([1.0, -1.0])}, (2, 1), 2)


@pytest.mark.parametrize("shrinkage", [-1.0, np.inf, np.nan, "much"])
def test_bad_shrinkage_is_refused(shrinkage):
    with pytest.raises(ValueError, match=r"shrinkage=.* is not a finite number of at least 0"):
        Gaussian(shrinkage=shrinkage)


def test_parameters_of_a_plain_gaussian_are_refused():
    X, weights = two_groups()
    plain = Gaussian().start(X, weights)
    with pytest.raises(ValueError, match=r"no pooled covariance, which shrinkage=2\.0 needs"):
        Gaussian(shrinkage=2.0).log_prior(plain)


def test_few_points_in_many_columns():
    """Groups of ten points in twenty columns: shrunk covariances tell new points apart, plain ones do not."""
    rng = np.random.default_rng(0)
    d, n = 20, 30
    X = np.concatenate([rng.normal(size=(n, d)), 0.6 + rng.normal(size=(n, d))])
    new = np.concatenate([rng.normal(size=(500, d)), 0.6 + rng.normal(size=(500, d))])
    weights = np.repeat(np.eye(2), n, axis=0)
    right = {}
    for nu in (0.0, d + 2.0):
        density = Gaussian(shrinkage=nu)
        labels = density.log_density(density.start(X, weights), new).argmax(axis=1)
        right[nu] = np.mean(labels == np.repeat([0, 1], 500))
    assert right[d + 2.0] > right[0.0] + 0.05


@every_form
@pytest.mark.parametrize("degrees_of_freedom", [4.0, None])
@pytest.mark.parametrize("reg_covar", [0.0, 0.5])
def test_the_objective_of_shrunk_student_components_never_falls(covariance_type, degrees_of_freedom, reg_covar):
    X, _ = two_groups(seed=4, d=3)
    density = StudentT(FORMS[covariance_type], reg_covar, degrees_of_freedom, shrinkage=4.0)
    check_climbs(density, X, 2)
    check_protocol(density, X)


@own_covariances
def test_student_scales_shrink_by_the_same_prior(covariance_type):
    """A step is an optimum: moving any scale towards or away from the pooled one makes the objective smaller."""
    X, weights = two_groups(n=15)
    soft = np.random.default_rng(2).random((30, 2))
    density = StudentT(FORMS[covariance_type], 0.0, shrinkage=5.0)
    start = density.start(X, weights)
    gaussian = Gaussian(FORMS[covariance_type], 0.0, shrinkage=5.0).start(X, weights)
    np.testing.assert_array_equal(start.scales, gaussian.covariances)
    step = start
    for _ in range(300):  # the weights u of the rows depend on the scales: go to the fixed point
        step = density.maximize(density.statistics(step, X, soft), step)

    def objective(scales):
        moved = density.given(
            {"means": step.means[:, None], "scales": scales[:, None], "pooled_scale": step.pooled}, (2, 1), 2
        )
        return (soft * density.log_density(moved, X)).sum() + density.log_prior(moved)

    best = objective(step.scales)
    for share in (-0.05, 0.05):
        assert objective((1 - share) * step.scales + share * step.pooled) < best
        assert objective((1 + share) * step.scales) < best
