import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture

from linkmix.basics.errors import DegenerateCluster
from linkmix.densities import FORMS, Full, Gaussian, StudentT
from oracles import COVARIANCE_TYPES, covariance_matrix, moments, random_problem

every_form = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)


def gaussian(problem, reg_covar=0.0):
    """Density and parameters of a problem."""
    density = Gaussian(FORMS[problem.covariance_type], reg_covar)
    return density, density.given(problem.init, problem.shape, problem.X.shape[1])


@pytest.fixture
def problem(covariance_type):
    return random_problem(np.random.default_rng(5), 2, 2, covariance_type, n_points=8)


def flat_weights(problem, seed=0):
    return np.random.default_rng(seed).random((len(problem.X), int(np.prod(problem.shape))))


@every_form
def test_log_density_is_that_of_scipy(problem):
    density, parameters = gaussian(problem)
    M, K = problem.shape
    d = problem.X.shape[1]
    expected = [
        multivariate_normal(
            problem.means[m, k], covariance_matrix(problem.covariances, problem.covariance_type, m, k, d)
        ).logpdf(problem.X)
        for m in range(M)
        for k in range(K)
    ]
    found = density.log_density(parameters, problem.X)
    np.testing.assert_allclose(found, np.transpose(expected), rtol=1e-12, atol=1e-12)


@every_form
def test_maximum_is_that_of_plain_loops(problem):
    density, parameters = gaussian(problem)
    weights = flat_weights(problem)
    found = density.maximize(density.statistics(parameters, problem.X, weights), parameters)
    _, means, covariances = moments(problem.X, weights.reshape(-1, *problem.shape), problem.covariance_type)
    arrays = density.attributes(found, problem.shape)
    np.testing.assert_allclose(arrays["means"], means, rtol=0, atol=1e-12)
    np.testing.assert_allclose(arrays["covariances"], covariances, rtol=0, atol=1e-12)


@every_form
def test_reg_covar_is_added_to_the_diagonal(problem):
    weights = flat_weights(problem)
    found = {}
    for reg_covar in (0.0, 0.25):
        density, parameters = gaussian(problem, reg_covar)
        fitted = density.maximize(density.statistics(parameters, problem.X, weights), parameters)
        matrices = [density.form.matrix(density.form.of(fitted.covariances, c), problem.X.shape[1]) for c in range(4)]
        found[reg_covar] = np.array(matrices)
    expected = np.broadcast_to(0.25 * np.eye(problem.X.shape[1]), found[0.25].shape)
    np.testing.assert_allclose(found[0.25] - found[0.0], expected, atol=1e-12)


@every_form
def test_statistics_of_two_halves_add_up(problem):
    density, parameters = gaussian(problem)
    weights = flat_weights(problem)
    halves = [density.statistics(parameters, problem.X[rows], weights[rows]) for rows in (slice(3), slice(3, None))]
    both, whole = halves[0] + halves[1], density.statistics(parameters, problem.X, weights)
    for name in ("weight", "first", "second"):
        np.testing.assert_allclose(getattr(both, name), getattr(whole, name), rtol=1e-13, atol=1e-13)


@every_form
def test_no_rows_give_empty_statistics(problem):
    density, parameters = gaussian(problem)
    whole = density.statistics(parameters, problem.X, flat_weights(problem))
    nothing = density.statistics(parameters, problem.X[:0], flat_weights(problem)[:0])
    for name in ("weight", "first", "second"):
        assert getattr(nothing, name).shape == getattr(whole, name).shape
        assert not getattr(nothing, name).any()


@every_form
def test_number_of_parameters_is_that_of_scikit_learn(covariance_type):
    X = np.random.default_rng(0).normal(size=(30, 4))
    reference = GaussianMixture(3, covariance_type=covariance_type, random_state=0).fit(X)
    found = Gaussian(FORMS[covariance_type]).n_parameters(3, 4)
    assert found + 2 == reference._n_parameters()  # theirs counts the weights of the components too


@every_form
def test_samples_have_the_moments_of_their_component(problem):
    density, parameters = gaussian(problem)
    n, d = 40_000, problem.X.shape[1]
    X = density.sample(parameters, 3, n, np.random.RandomState(0))
    covariance = covariance_matrix(problem.covariances, problem.covariance_type, 1, 1, d)
    assert X.shape == (n, d)
    spread = np.sqrt(np.diag(covariance))
    np.testing.assert_array_less(np.abs(X.mean(axis=0) - problem.means[1, 1]), 5 * spread / np.sqrt(n))
    limit = 5 * np.sqrt((covariance**2 + np.outer(spread, spread) ** 2) / n)
    np.testing.assert_array_less(np.abs(np.atleast_2d(np.cov(X.T)) - covariance), limit)


@every_form
def test_attributes_are_what_was_given(problem):
    density, parameters = gaussian(problem)
    arrays = density.attributes(parameters, problem.shape)
    assert arrays.keys() == {"means", "covariances"}
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, problem.init[name])


@every_form
def test_a_component_without_weight_stays_where_it_is(problem):
    density, parameters = gaussian(problem)
    weights = flat_weights(problem)
    weights[:, 2] = 0.0
    arrays = density.attributes(
        density.maximize(density.statistics(parameters, problem.X, weights), parameters), problem.shape
    )
    np.testing.assert_array_equal(arrays["means"][1, 0], problem.means[1, 0])
    if problem.covariance_type != "tied":
        np.testing.assert_array_equal(arrays["covariances"][1, 0], problem.covariances[1, 0])
    assert np.all(np.isfinite(arrays["covariances"]))


@every_form
def test_a_group_too_small_for_its_own_covariance_starts_with_the_pooled_one(covariance_type):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(20, 3)), 5 + rng.normal(size=(20, 3)), [[9.0, 9.0, 9.0]]])
    weights = np.zeros((41, 3))
    weights[:20, 0] = weights[20:40, 1] = weights[40:, 2] = 1.0
    density = Gaussian(FORMS[covariance_type], 0.0)
    found = density.start(X, weights)
    np.testing.assert_allclose(found.means, [X[:20].mean(axis=0), X[20:40].mean(axis=0), X[40]], rtol=1e-12)
    of_groups = np.array([np.cov(X[:20].T, bias=True), np.cov(X[20:40].T, bias=True), np.zeros((3, 3))])
    pooled = (20 * of_groups[0] + 20 * of_groups[1]) / 41
    expected = {
        "full": np.array([of_groups[0], of_groups[1], pooled]),
        "tied": pooled,
        "diag": np.array([np.diag(of_groups[0]), np.diag(of_groups[1]), np.diag(pooled)]),
        "spherical": np.array([np.trace(matrix) / 3 for matrix in (of_groups[0], of_groups[1], pooled)]),
    }[covariance_type]
    np.testing.assert_allclose(found.covariances, expected, rtol=1e-10, atol=1e-12)


@every_form
@pytest.mark.parametrize("reg_covar", [1e-6, 0.1, 10.0])
def test_a_cautious_step_never_lowers_the_expected_log_density(covariance_type, reg_covar):
    """From anywhere, and from the exact maximum, where the usual step with reg_covar does lower it."""
    rng = np.random.default_rng(0)
    usual_falls = 0
    for _ in range(10):
        problem = random_problem(rng, 2, 2, covariance_type, n_points=8)
        exact, anywhere = gaussian(problem)
        density = Gaussian(exact.form, reg_covar)
        weights = flat_weights(problem, int(rng.integers(1000)))
        maximum = exact.maximize(exact.statistics(anywhere, problem.X, weights), anywhere)
        for parameters in (anywhere, maximum):
            sums = density.statistics(parameters, problem.X, weights)
            before, usual, cautious = (
                float((weights * density.log_density(step, problem.X)).sum())
                for step in (
                    parameters,
                    density.maximize(sums, parameters),
                    density.maximize_cautiously(sums, parameters),
                )
            )
            assert cautious >= before - 1e-10 * abs(before)
            usual_falls += usual < before - 1e-3 * abs(before)
    assert usual_falls or reg_covar < 0.1, "no case in which caution was needed"


@every_form
def test_a_cautious_step_is_the_usual_one_where_nothing_is_added(problem):
    density, parameters = gaussian(problem)
    sums = density.statistics(parameters, problem.X, flat_weights(problem))
    usual, cautious = density.maximize(sums, parameters), density.maximize_cautiously(sums, parameters)
    np.testing.assert_array_equal(cautious.means, usual.means)
    np.testing.assert_array_equal(cautious.covariances, usual.covariances)
    np.testing.assert_array_equal(cautious.whiteners, usual.whiteners)


SINGULAR = {
    "full": (np.ones((1, 2, 2)), "the covariance of cluster 0 .* is singular .* raise reg_covar"),
    "tied": (np.ones((2, 2)), "the covariance of all components .* is singular .* raise reg_covar"),
    "diag": (np.array([[1.0, 0.0]]), "cluster 0 .* has a variance of 0: raise reg_covar"),
    "spherical": (np.array([0.0]), "cluster 0 .* has a variance of 0: raise reg_covar"),
}


@every_form
def test_a_singular_covariance_is_an_error_with_a_remedy(covariance_type):
    covariance, message = SINGULAR[covariance_type]
    with pytest.raises(DegenerateCluster, match=message):
        FORMS[covariance_type].whiten(covariance)


@every_form
def test_a_constant_column_without_reg_covar_is_an_error_with_a_remedy(covariance_type):
    X = np.column_stack([np.arange(10.0), np.zeros(10)])
    density = Gaussian(FORMS[covariance_type], 0.0)
    if covariance_type == "spherical":
        X = np.zeros((10, 2))
    with pytest.raises(DegenerateCluster, match="raise reg_covar"):
        density.start(X, np.ones((10, 1)))


@every_form
def test_flat_data_of_any_size_have_a_covariance_when_reg_covar_is_positive(covariance_type):
    """Rounding makes the covariance of repeated columns indefinite by more than reg_covar when the data are large."""
    rng = np.random.default_rng(0)
    for scale in (1e-8, 1.0, 1e8, 1e12):
        column = scale * rng.normal(size=50)
        X = np.column_stack([column, 2 * column, -column, column / 3, np.full(50, scale)])
        found = Gaussian(FORMS[covariance_type], 1e-6).start(X, np.ones((50, 1)))
        assert np.all(np.isfinite(found.whiteners)), scale


@every_form
def test_sums_about_the_mean_keep_a_small_cluster_far_from_the_origin(covariance_type):
    """Two clusters a millionth as wide as their distance, a million away from the origin."""
    rng = np.random.default_rng(0)
    centres = 1e6 + np.array([[0.0, 0.0, 0.0], [1.0, -1.0, 0.5]])
    X = np.concatenate(
        [
            centre + 1e-6 * rng.normal(size=(200, 3)) @ random_root
            for centre, random_root in zip(centres, rng.normal(size=(2, 3, 3)), strict=True)
        ]
    )
    weights = np.repeat(np.eye(2), 200, axis=0) * rng.random((400, 1))
    density = Gaussian(FORMS[covariance_type], 0.0)
    first = density.start(X, weights)
    found = density.maximize(density.statistics(first, X, weights), first)

    exact = two_passes(X.astype(np.longdouble), weights.astype(np.longdouble), covariance_type)
    np.testing.assert_allclose(first.covariances, exact, rtol=1e-9)
    np.testing.assert_allclose(found.covariances, exact, rtol=1e-9)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        np.testing.assert_allclose(about_the_origin(X, weights, covariance_type), exact, rtol=1e-9)


def in_form(matrices, weights, covariance_type):
    total = weights.sum(axis=0)
    return {
        "full": matrices,
        "tied": np.tensordot(total, matrices, axes=1) / total.sum(),
        "diag": np.diagonal(matrices, axis1=1, axis2=2),
        "spherical": np.trace(matrices, axis1=1, axis2=2) / matrices.shape[1],
    }[covariance_type]


def two_passes(X, weights, covariance_type):
    """Weighted covariances about the means, in the precision of the arguments."""
    matrices = []
    for column in weights.T:
        differences = X - (column @ X) / column.sum()
        matrices.append((differences * column[:, None]).T @ differences / column.sum())
    return in_form(np.array(matrices), weights, covariance_type)


def about_the_origin(X, weights, covariance_type):
    """The textbook's shortcut, mean of squares minus square of the mean."""
    matrices = []
    for column in weights.T:
        mean = (column @ X) / column.sum()
        matrices.append((X * column[:, None]).T @ X / column.sum() - np.outer(mean, mean))
    return in_form(np.array(matrices), weights, covariance_type)


def test_the_default_is_full_covariance():
    assert isinstance(Gaussian().form, Full)
    assert Gaussian(None) == Gaussian()
    assert repr(Gaussian()) == "Gaussian(form=Full(), reg_covar=1e-06, shrinkage=0.0)"


@pytest.mark.parametrize("family", [Gaussian, StudentT])
def test_what_is_no_form_of_covariance_is_refused(family):
    with pytest.raises(ValueError, match=r"form='full' is not a form of covariance: choose Full\(\), Tied\(\), "):
        family("full")
