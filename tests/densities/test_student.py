import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import gammaln
from scipy.stats import gamma, multivariate_t
from sklearn.metrics import adjusted_rand_score

from density_checks import check_climbs, check_protocol, linked_model, start_of
from linkmix import engine
from linkmix.densities import FORMS, Gaussian, StudentT
from linkmix.densities.student import LEAST_DEGREES, MOST_DEGREES, StudentParameters
from oracles import COVARIANCE_TYPES, covariance_matrix, random_spread

every_form = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)


def parameters_of(covariance_type, d=2, degrees=(3.0, 7.5), seed=0, reg_covar=0.0):
    """Density that learns, its parameters laid out as (2, 1), and their scales as matrices."""
    rng = np.random.default_rng(seed)
    full = np.array([[random_spread(rng, d)] for _ in degrees])
    scales = {
        "full": full,
        "tied": full[0, 0],
        "diag": np.diagonal(full, axis1=2, axis2=3),
        "spherical": full[:, :, 0, 0],
    }[covariance_type]
    mapping = {
        "means": rng.normal(size=(2, 1, d)),
        "scales": scales,
        "degrees_of_freedom": np.array(degrees)[:, None],
    }
    density = StudentT(FORMS[covariance_type], reg_covar, degrees_of_freedom=None)
    matrices = [covariance_matrix(scales, covariance_type, c, 0, d) for c in range(2)]
    return density, density.given(mapping, (2, 1), d), np.array(matrices)


def heavy_data(seed=0, n=40, d=2):
    rng = np.random.default_rng(seed)
    return np.concatenate(
        [rng.standard_t(3, size=(n, d)), 4 + rng.standard_t(3, size=(n, d)) @ rng.normal(size=(d, d))]
    )


@every_form
@pytest.mark.parametrize("d", [1, 3])
def test_log_density_is_that_of_scipy(covariance_type, d):
    density, parameters, matrices = parameters_of(covariance_type, d)
    X = 3 * np.random.default_rng(1).normal(size=(20, d))
    X[0] *= 1e4
    found = density.log_density(parameters, X)
    for c, nu in enumerate(parameters.degrees_of_freedom):
        expected = multivariate_t(parameters.means[c], matrices[c], df=nu).logpdf(X)
        np.testing.assert_allclose(found[:, c], expected, rtol=1e-12, atol=1e-12)


def log_joint(x, u, mean, matrix, nu):
    """Log-density of a row and of its hidden u: Gaussian with covariance ``matrix / u`` times Gamma."""
    d = len(x)
    difference = x - mean
    distance = difference @ np.linalg.solve(matrix, difference)
    gaussian = -0.5 * (d * np.log(2 * np.pi / u) + np.linalg.slogdet(matrix)[1] + u * distance)
    return gaussian + nu / 2 * np.log(nu / 2) - gammaln(nu / 2) + (nu / 2 - 1) * np.log(u) - nu / 2 * u


def posterior_of_u(x, mean, matrix, nu):
    """E[u] and E[log u] given the row, by quadrature over the joint density."""
    shape = (nu + len(x)) / 2
    difference = x - mean
    high = gamma(shape, scale=2 / (nu + difference @ np.linalg.solve(matrix, difference))).isf(1e-18)
    precision = {"epsabs": 0.0, "epsrel": 1e-12, "limit": 500}

    def integral(function):
        # u = v^2 removes the singularity at 0.
        return quad(
            lambda v: function(v * v) * np.exp(log_joint(x, v * v, mean, matrix, nu)) * 2 * v, 0, high**0.5, **precision
        )[0]

    total = integral(lambda u: 1.0)
    return integral(lambda u: u) / total, integral(np.log) / total


@every_form
def test_sums_are_integrals_over_the_hidden_scale(covariance_type):
    density, parameters, matrices = parameters_of(covariance_type)
    X = 2 * np.random.default_rng(1).normal(size=(6, 2))
    weights = np.random.default_rng(2).random((6, 2))
    sums = density.statistics(parameters, X, weights)
    for c, nu in enumerate(parameters.degrees_of_freedom):
        mean = parameters.means[c]
        u, log_u = np.array([posterior_of_u(x, mean, matrices[c], nu) for x in X]).T
        scaled = weights[:, c] * u
        differences = X - mean
        second = (differences * scaled[:, None]).T @ differences
        np.testing.assert_allclose(sums.weight[c], weights[:, c].sum(), rtol=1e-13)
        np.testing.assert_allclose(sums.scaled_weight[c], scaled.sum(), rtol=1e-9)
        np.testing.assert_allclose(sums.first[c], scaled @ differences, rtol=1e-9, atol=1e-10)
        expected = {"diag": np.diag(second), "spherical": np.trace(second) / 2}.get(covariance_type, second)
        np.testing.assert_allclose(sums.second[c], expected, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(sums.log_gap[c], weights[:, c] @ (log_u - u), rtol=1e-9)


@every_form
def test_the_step_is_the_optimum_of_a_general_solver(covariance_type):
    """Expected joint log-density of rows and hidden scales, over all parameters, by BFGS."""
    density, old, matrices = parameters_of(covariance_type)
    rng = np.random.default_rng(4)
    X = np.concatenate([rng.normal(size=(12, 2)), 20 * rng.normal(size=(3, 2))])
    weights = rng.random((15, 2))
    found = density.maximize(density.statistics(old, X, weights), old)
    hidden = [
        np.array([posterior_of_u(x, old.means[c], matrices[c], nu) for x in X])
        for c, nu in enumerate(old.degrees_of_freedom)
    ]  # for each component (n, 2): E[u], E[log u]

    def unpack(theta):
        means, nu, rest = theta[:4].reshape(2, 2), np.exp(theta[4:6]), theta[6:]
        if covariance_type in ("full", "tied"):
            lower = np.zeros((len(rest) // 3, 2, 2))
            lower[:, 0, 0], lower[:, 1, 1] = np.exp(rest[0::3]), np.exp(rest[1::3])
            lower[:, 1, 0] = rest[2::3]
            scales = lower @ lower.transpose(0, 2, 1)
            return means, nu, scales if covariance_type == "full" else scales[0]
        return means, nu, np.exp(rest).reshape(FORMS[covariance_type].shape((2,), 2))

    def loss(theta):
        means, nu, scales = unpack(theta)
        total = 0.0
        for c in range(2):
            matrix = density.form.matrix(density.form.of(scales, c), 2)
            u, log_u = hidden[c].T
            differences = X - means[c]
            distance = np.einsum("ij,ij->i", differences @ np.linalg.inv(matrix), differences)
            joint = -0.5 * (np.linalg.slogdet(matrix)[1] + u * distance)
            joint += nu[c] / 2 * np.log(nu[c] / 2) - gammaln(nu[c] / 2) + (nu[c] / 2 - 1) * log_u - nu[c] / 2 * u
            total += weights[:, c] @ joint
        return -total

    size = {"full": 12, "tied": 9, "diag": 10, "spherical": 8}[covariance_type]
    best = minimize(loss, np.zeros(size), method="BFGS", options={"gtol": 1e-7})
    means, nu, scales = unpack(best.x)
    np.testing.assert_allclose(found.means, means, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.scales, scales, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.degrees_of_freedom, nu, rtol=1e-4)


@every_form
@pytest.mark.parametrize("clusters_per_class", [1, 2])
@pytest.mark.parametrize("degrees", [1.0, 4.0, None])
@pytest.mark.parametrize("reg_covar", [0.0, 1e-6, 0.5])
def test_the_likelihood_never_falls(covariance_type, clusters_per_class, degrees, reg_covar):
    density = StudentT(FORMS[covariance_type], reg_covar, degrees)
    fit = check_climbs(density, heavy_data(), clusters_per_class)
    if degrees is not None:
        np.testing.assert_array_equal(fit.parameters.components.degrees_of_freedom, degrees)


@every_form
@pytest.mark.parametrize("reg_covar", [0.1, 10.0])
def test_a_cautious_step_never_lowers_the_likelihood(covariance_type, reg_covar):
    """Even if the usual step, with such a large reg_covar, does."""
    X = heavy_data(n=10)
    weights = np.ones((20, 1))
    exact = StudentT(FORMS[covariance_type], 0.0, None)
    parameters = exact.start(X, weights)
    for _ in range(100):
        parameters = exact.maximize(exact.statistics(parameters, X, weights), parameters)
    density = StudentT(FORMS[covariance_type], reg_covar, None)
    before = density.log_density(parameters, X).sum()
    sums = density.statistics(parameters, X, weights)
    assert density.log_density(density.maximize(sums, parameters), X).sum() < before
    assert density.log_density(density.maximize_cautiously(sums, parameters), X).sum() >= before - 1e-10 * abs(before)


@every_form
@pytest.mark.parametrize("degrees", [4.0, None])
def test_protocol(covariance_type, degrees):
    check_protocol(StudentT(FORMS[covariance_type], degrees_of_freedom=degrees), heavy_data(d=3))


@pytest.mark.parametrize("nu", [1.5, 4.0, 12.0])
def test_degrees_of_freedom_are_found(nu):
    rng = np.random.RandomState(0)
    truth = StudentParameters(np.zeros((1, 2)), np.eye(2)[None], np.eye(2)[None], np.array([nu]))
    density = StudentT(degrees_of_freedom=None)
    X = density.sample(truth, 0, 20_000, rng)
    weights = np.ones((len(X), 1))
    parameters = density.start(X, weights)
    for _ in range(400):
        parameters = density.maximize(density.statistics(parameters, X, weights), parameters)
    assert abs(parameters.degrees_of_freedom[0] - nu) < 0.1 * nu
    np.testing.assert_allclose(parameters.scales[0], np.eye(2), atol=0.05)


def test_degrees_of_freedom_stay_within_their_limits():
    """Points on a circle have shorter tails than any Gaussian: no degrees of freedom would be enough."""
    angle = np.linspace(0, 2 * np.pi, 50, endpoint=False)
    X, weights = np.column_stack([np.cos(angle), np.sin(angle)]), np.ones((50, 1))
    density = StudentT(degrees_of_freedom=None)
    parameters = density.start(X, weights)
    for _ in range(500):
        parameters = density.maximize(density.statistics(parameters, X, weights), parameters)
    assert parameters.degrees_of_freedom[0] == MOST_DEGREES
    # Points at all orders of magnitude have longer tails than any t-distribution.
    X = np.concatenate([10 ** np.linspace(-9, 9, 50), -(10 ** np.linspace(-9, 9, 50))])[:, None]
    density = StudentT(reg_covar=0.0, degrees_of_freedom=None)
    parameters = density.start(X, np.ones((100, 1)))
    for _ in range(500):
        parameters = density.maximize(density.statistics(parameters, X, np.ones((100, 1))), parameters)
    assert parameters.degrees_of_freedom[0] == LEAST_DEGREES


def test_samples_have_the_moments_of_their_component():
    density, parameters, matrices = parameters_of("full", degrees=(9.0, 12.0))
    X = density.sample(parameters, 1, 200_000, np.random.RandomState(0))
    np.testing.assert_allclose(X.mean(axis=0), parameters.means[1], atol=0.02)
    np.testing.assert_allclose(np.cov(X.T), matrices[1] * 12 / 10, rtol=0.05, atol=0.02)


@every_form
def test_a_component_without_weight_stays_where_it_is(covariance_type):
    density, parameters, _ = parameters_of(covariance_type)
    X = heavy_data()
    weights = np.random.default_rng(0).random((len(X), 2)) * [1.0, 0.0]
    found = density.maximize(density.statistics(parameters, X, weights), parameters)
    np.testing.assert_array_equal(found.means[1], parameters.means[1])
    np.testing.assert_array_equal(found.degrees_of_freedom[1], parameters.degrees_of_freedom[1])
    if covariance_type != "tied":
        np.testing.assert_array_equal(found.scales[1], parameters.scales[1])
    assert np.all(np.isfinite(found.scales))


def test_outliers_move_the_gaussian_and_not_this_density():
    rng = np.random.default_rng(0)
    centres = np.array([[-3.0, 0.0], [3.0, 0.0]])
    X = np.concatenate([centres[0] + rng.normal(size=(100, 2)), centres[1] + rng.normal(size=(100, 2))])
    X = np.concatenate([X, [[0.0, 60.0]] + 5 * rng.normal(size=(10, 2))])
    labels = np.repeat([0, 1], 100)
    error, agreement = {}, {}
    for density in (Gaussian(), StudentT(degrees_of_freedom=None)):
        model, data, _ = linked_model(density, X, n_links=0)
        start = np.repeat([[0.8, 0.2], [0.2, 0.8], [0.5, 0.5]], [100, 100, 10], axis=0)
        first = engine.Parameters(np.full(2, 0.5), np.ones((2, 1)), density.start(X, start))
        fit = engine.fit(model, data, first, tol=0.0, max_iter=200)
        found = engine.class_log_joint(density, fit.parameters, X)[:200].argmax(axis=1)
        error[type(density)] = np.abs(fit.parameters.components.means - centres).max()
        agreement[type(density)] = adjusted_rand_score(labels, found)
    assert agreement[StudentT] > 0.95 > 0.5 > agreement[Gaussian]
    assert error[StudentT] < 0.5 < 2 < error[Gaussian]


def test_many_degrees_of_freedom_are_the_gaussian():
    X = heavy_data()
    model, data, _ = linked_model(Gaussian(), X)
    fits = []
    for density in (Gaussian(), StudentT(degrees_of_freedom=1e9)):
        model, data, _ = linked_model(density, X)
        fits.append(engine.fit(model, data, start_of(density, X, 1), tol=0.0, max_iter=10))
    np.testing.assert_allclose(fits[1].trace, fits[0].trace, rtol=1e-5)


@pytest.mark.parametrize("degrees", [0, -1.0, np.inf, np.nan, "few"])
def test_bad_degrees_of_freedom_are_refused(degrees):
    with pytest.raises(ValueError, match=r"degrees_of_freedom=.*: choose"):
        StudentT(degrees_of_freedom=degrees)


def test_bad_starts_are_refused():
    density = StudentT(degrees_of_freedom=None)
    mapping = {"means": np.zeros((1, 1, 2)), "scales": np.eye(2)[None, None]}
    assert density.given(mapping, (1, 1), 2).degrees_of_freedom == [10.0]
    with pytest.raises(ValueError, match=r"init\['degrees_of_freedom'\] holds 0.1: choose numbers from 0.5 to 200"):
        density.given({**mapping, "degrees_of_freedom": [[0.1]]}, (1, 1), 2)
    with pytest.raises(ValueError, match=r"init\['scales'\] must be positive definite, but"):
        density.given({**mapping, "scales": np.ones((1, 1, 2, 2))}, (1, 1), 2)


def with_holes(X, share=0.3):
    holes = X.copy()
    holes[np.random.default_rng(1).random(X.shape) < share] = np.nan
    holes[7] = np.nan
    return holes


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_the_density_of_observed_columns_is_the_marginal(covariance_type):
    """Columns of a t-distributed row are t-distributed with the same degrees of freedom."""
    X = np.random.default_rng(0).normal(size=(40, 4)) @ np.random.default_rng(1).normal(size=(4, 4))
    holes = with_holes(X)
    density = StudentT(FORMS[covariance_type], degrees_of_freedom=3.0)
    parameters = density.start(X, np.repeat(np.eye(2), 20, axis=0))
    found = density.log_density(parameters, holes)
    for row, values in enumerate(holes):
        seen = np.flatnonzero(~np.isnan(values))
        for c, mean in enumerate(parameters.means):
            scale = density.form.matrix(density.form.of(parameters.scales, c), 4)
            marginal = multivariate_t(mean[seen], scale[np.ix_(seen, seen)], df=3.0) if len(seen) else None
            expected = marginal.logpdf(values[seen]) if len(seen) else 0.0
            assert found[row, c] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("degrees", [4.0, None])
def test_fits_climb_with_missing_values(covariance_type, degrees):
    X = np.random.default_rng(0).standard_t(3, size=(90, 3)) + 3 * np.repeat([0, 1], 45)[:, None]
    density = StudentT(FORMS[covariance_type], 0.0, degrees, shrinkage=2.0)
    check_climbs(density, with_holes(X), 2)
    check_protocol(density, with_holes(X))


def test_a_fit_with_missing_values_is_near_that_of_all_values():
    X = np.random.default_rng(0).standard_t(4, size=(4000, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]]) + 5
    density, weights = StudentT(reg_covar=0.0), np.ones((4000, 1))
    fits = []
    for rows in (X, np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)):
        parameters = density.start(rows, weights)
        for _ in range(60):
            parameters = density.maximize(density.statistics(parameters, rows, weights), parameters)
        fits.append(parameters)
    np.testing.assert_allclose(fits[1].means, fits[0].means, atol=0.05)
    np.testing.assert_allclose(fits[1].scales, fits[0].scales, atol=0.07)


def test_number_of_parameters():
    assert StudentT().n_parameters(3, 2) == Gaussian().n_parameters(3, 2)
    assert StudentT(degrees_of_freedom=None).n_parameters(3, 2) == Gaussian().n_parameters(3, 2) + 3


def test_representation():
    assert repr(StudentT()) == "StudentT(form=Full(), reg_covar=1e-06, degrees_of_freedom=4.0, shrinkage=0.0)"
