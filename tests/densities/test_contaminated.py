"""The density with noise against enumeration of classes and noise, and EM that never falls."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from density_checks import assert_same, check_climbs, check_protocol
from linkmix import Links, engine
from linkmix.couplings import Graph, MeanField, Pairwise, Projection, Uncoupled
from linkmix.densities import FORMS, Categorical, Contaminated, Gaussian, Poisson, Product, StudentT
from linkmix.densities.contaminated import PRIOR_CLEAN, PRIOR_NOISE, ContaminatedParameters, counting
from linkmix.engine.fitting import Knowledge, bind, part
from linkmix.native import using
from oracles import random_links

rng = np.random.default_rng(0)
GROUPS = np.repeat([0, 1, 2], [40, 40, 10])
NUMBERS = np.column_stack([3.0 * (GROUPS == 1), GROUPS == 1]) + rng.normal(size=(90, 2)) * np.where(
    GROUPS == 2, 6.0, 0.7
).reshape(-1, 1)
TABLE = np.column_stack([NUMBERS, (GROUPS + (rng.random(90) < 0.2)) % 3, rng.poisson(2 + 4 * (GROUPS == 1))])
HOLES = np.where(rng.random(TABLE.shape) < 0.15, np.nan, TABLE)
MIXED = Product({"size": (Gaussian(shrinkage=4.0), [0, 1]), "kind": (Categorical(), [2]), "visits": (Poisson(), [3])})
DENSITIES = {
    "full": (Gaussian(), NUMBERS),
    "shrunk": (Gaussian(shrinkage=4.0), NUMBERS),
    "diagonal": (Gaussian(FORMS["diag"]), NUMBERS),
    "tied": (Gaussian(FORMS["tied"]), NUMBERS),
    "student": (StudentT(), NUMBERS),
    "gaps": (Gaussian(), HOLES[:, :2]),
    "mixed": (MIXED, TABLE),
    "mixed with gaps": (MIXED, HOLES),
}
every_density = pytest.mark.parametrize(("density", "X"), DENSITIES.values(), ids=DENSITIES)


@every_density
def test_keeps_the_protocol(density, X):
    check_protocol(Contaminated(density), X)


@every_density
@pytest.mark.parametrize("seed", range(3))
def test_objective_never_falls(density, X, seed):
    check_climbs(Contaminated(density), X, clusters_per_class=1 + seed % 2, seed=seed)


@pytest.mark.parametrize("seed", range(8))
def test_objective_never_falls_in_a_network_of_links(seed):
    random = np.random.default_rng(seed)
    must, cannot = random_links(random, len(NUMBERS), 25)
    given = Knowledge(NUMBERS, Links(must=must, cannot=cannot), random.integers(1, 4, len(NUMBERS)).astype(float))
    density = Contaminated(Gaussian(shrinkage=4.0), n_known=seed)
    model = engine.Model(density, bind(Graph(), given.links, 3, given.sample_weight))
    weights = random.dirichlet(np.ones(3), size=len(NUMBERS)) * given.sample_weight[:, None]
    start = engine.Parameters(np.full(3, 1 / 3), np.ones((3, 1)), density.start(NUMBERS, weights))
    fit = engine.fit(model, part(given), start, tol=0.0, max_iter=60)
    assert np.all(np.diff(fit.trace) >= -1e-9 * np.abs(fit.trace[:-1]))
    assert fit.trace[-1] > fit.trace[0] + 1.0


# Against enumeration of the class of each point, and whether it is noise.


def small_problem(seed):
    """Seven points, some linked, and random parameters of three classes and a background."""
    random = np.random.default_rng(seed)
    X = 2 * random.normal(size=(7, 2))
    must, cannot = [(0, 1), (1, 2)][: 1 + seed % 2], [(2, 3), (3, 4)]
    means, covariances = random.normal(size=(3, 2)), np.array([np.diag(random.uniform(0.3, 1.0, 2)) for _ in range(3)])
    inner = Gaussian()
    components = ContaminatedParameters(
        inner.given({"means": means[:, None], "covariances": covariances[:, None]}, (3, 1), 2),
        float(random.uniform(0.05, 0.4)),
        inner.given({"means": np.zeros((1, 2)), "covariances": 9 * np.eye(2)[None]}, (1,), 2),
    )
    clean = np.array([multivariate_normal(m, c).pdf(X) for m, c in zip(means, covariances, strict=True)]).T
    background = multivariate_normal(np.zeros(2), 9 * np.eye(2)).pdf(X)
    a = random.dirichlet(np.full(3, 3.0))
    return X, Links(must=must, cannot=cannot), components, a, clean, background


def enumerated(links, a, clean, background, share, sampling):
    """J, clean weight (n, M) and noise weight (n,) by all labellings and all sets of linked points that are noise."""
    n, M = clean.shape
    linked = links.points.tolist()
    log_likelihood, weights, noise = 0.0, np.zeros((n, M)), np.zeros(n)

    def meets(labels):
        of = dict(zip(linked, labels, strict=True))
        return all(of[i] == of[j] for i, j in links.must) and all(of[i] != of[j] for i, j in links.cannot)

    prior = {
        labels: float(np.prod(a[list(labels)])) for labels in product(range(M), repeat=len(linked)) if meets(labels)
    }
    terms = {}
    for labels, flags in product(prior, product((False, True), repeat=len(linked))):
        terms[labels, flags] = prior[labels] / (sum(prior.values()) if sampling == "points" else 1.0)
        for row, m, is_noise in zip(linked, labels, flags, strict=True):
            terms[labels, flags] *= share * background[row] if is_noise else (1 - share) * clean[row, m]
    total = sum(terms.values())
    log_likelihood += np.log(total)
    for (labels, flags), term in terms.items():
        for row, m, is_noise in zip(linked, labels, flags, strict=True):
            if is_noise:
                noise[row] += term / total
            else:
                weights[row, m] += term / total
    for row in sorted(set(range(n)) - set(linked)):
        of_class, of_noise = a * (1 - share) * clean[row], share * background[row]
        total = of_class.sum() + of_noise
        log_likelihood += np.log(total)
        weights[row], noise[row] = of_class / total, of_noise / total
    return log_likelihood, weights, noise


@pytest.mark.parametrize("sampling", ["observed", "points"])
@pytest.mark.parametrize("core", [None, "off"])
@pytest.mark.parametrize("seed", range(4))
def test_a_step_is_that_of_enumeration(seed, core, sampling):
    X, links, components, a, clean, background = small_problem(seed)
    J, weights, noise = enumerated(links, a, clean, background, components.share, sampling)
    model = engine.Model(Contaminated(Gaussian(), n_known=seed), bind(Graph(sampling=sampling), links, 3))
    parameters = engine.Parameters(a, np.ones((3, 1)), components)
    with using(core):
        found = engine.expect(model, part(Knowledge(X, links)), parameters)
    np.testing.assert_allclose(found.log_likelihood, J, rtol=1e-10)
    np.testing.assert_allclose(found.statistics.noise, noise.sum(), rtol=1e-9)
    np.testing.assert_allclose(found.statistics.clean.weight, weights.sum(axis=0), rtol=1e-9)
    np.testing.assert_allclose(found.statistics.weight, len(X), rtol=1e-12)
    after = engine.maximise(model, found, parameters).components
    np.testing.assert_allclose(after.clean.means, weights.T @ X / weights.sum(axis=0)[:, None], rtol=1e-8, atol=1e-9)
    assert after.background is components.background
    # Rows that are known to be noise are rows of the background, which say nothing but how much noise there is.
    share = (noise.sum() + seed + PRIOR_NOISE) / (len(X) + seed + PRIOR_NOISE + PRIOR_CLEAN)
    assert after.share == pytest.approx(share)


def test_every_coupling_sees_the_noise_as_part_of_the_density():
    X, links, components, a, *_ = small_problem(1)
    density = Contaminated(Gaussian())
    for coupling in (Pairwise(), Graph(), MeanField(), Projection()):
        model = engine.Model(density, bind(coupling, links, 3))
        found = engine.expect(model, part(Knowledge(X, links)), engine.Parameters(a, np.ones((3, 1)), components))
        sums = found.statistics
        np.testing.assert_allclose(sums.clean.weight.sum() + sums.noise, sums.weight, rtol=1e-12)
        assert 0 < sums.noise < sums.weight


# The steps by themselves.


@every_density
def test_one_pass_is_the_same_as_two(density, X):
    density = Contaminated(density)
    random = np.random.default_rng(3)
    parameters = density.start(X, random.random((len(X), 3)))
    log_weights, counts = np.log([0.2, 0.5, 0.3]), random.integers(0, 3, len(X)).astype(float)
    log_likelihood, sums, weight = density.mixture_sums(parameters, X, log_weights, counts)
    joint = density.log_density(parameters, X) + log_weights
    log_rows = logsumexp(joint, axis=1)
    shares = np.exp(joint - log_rows[:, None]) * counts[:, None]
    assert log_likelihood == pytest.approx(float(log_rows @ counts), rel=1e-12)
    np.testing.assert_allclose(weight, shares.sum(axis=0), rtol=1e-9)
    assert_same(sums, density.statistics(parameters, X, shares), rtol=1e-8, atol=1e-8)


def test_rows_are_summed_in_blocks(monkeypatch):
    density = Contaminated(Gaussian())
    parameters = density.start(NUMBERS, np.random.default_rng(0).random((len(NUMBERS), 2)))
    whole = density.mixture_sums(parameters, NUMBERS, np.log([0.5, 0.5]), None)
    monkeypatch.setattr("linkmix.densities.contaminated.BLOCK_NUMBERS", 28)
    some = density.mixture_sums(parameters, NUMBERS, np.log([0.5, 0.5]), None)
    np.testing.assert_allclose(some[0], whole[0], rtol=1e-12)
    assert_same(some[1], whole[1], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(some[2], whole[2], rtol=1e-12)


@pytest.mark.parametrize("of_noise", [0.0, 3.0, 30.0, 89.0])
def test_share_is_the_highest_point_of_its_objective(of_noise):
    density = Contaminated(Gaussian(), n_known=2)
    parameters = density.start(NUMBERS, np.ones((len(NUMBERS), 1)))
    sums = replace(density.statistics(parameters, NUMBERS, np.ones((len(NUMBERS), 1))), noise=of_noise)

    def objective(share):
        of_share = of_noise * np.log(share) + (len(NUMBERS) - of_noise) * np.log1p(-share)
        return -of_share - density.log_prior(replace(parameters, share=share))

    best = minimize_scalar(objective, bounds=(1e-6, 0.5), method="bounded", options={"xatol": 1e-10}).x
    assert density.maximize(sums, parameters).share == pytest.approx(best, abs=1e-6)
    assert density.maximize_cautiously(sums, parameters).share == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.05, 0.2])
@pytest.mark.parametrize("n_features", [2, 6, 20])
def test_share_of_uniform_noise_is_recovered(share, n_features):
    random = np.random.default_rng(n_features)
    n_noise = int(1000 * share)
    centres = 6 * random.normal(size=(2, n_features))
    X = centres[random.integers(2, size=1000 - n_noise)] + random.normal(size=(1000 - n_noise, n_features))
    X = np.concatenate([X, random.uniform(X.min(axis=0) - 1, X.max(axis=0) + 1, (n_noise, n_features))])
    density = Contaminated(Gaussian())
    nearest = ((X[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    start = engine.Parameters(np.full(2, 0.5), np.ones((2, 1)), density.start(X, np.eye(2)[nearest]))
    model = engine.Model(density, bind(Uncoupled(), Links(), 2))
    fit = engine.fit(model, engine.Data(X, X[:0]), start, tol=1e-8, max_iter=500)
    assert fit.parameters.components.share == pytest.approx(share, abs=0.04)  # the background is no box


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3])
def test_share_of_samples_is_recovered(share):
    density = Contaminated(Gaussian())
    true = replace(density.start(NUMBERS, np.eye(2)[(GROUPS == 1) * 1]), share=share)
    random = np.random.RandomState(0)
    X = np.concatenate([density.sample(true, component, 4000, random) for component in range(2)])
    model = engine.Model(density, bind(Uncoupled(), Links(), 2))
    start = engine.Parameters(np.full(2, 0.5), np.ones((2, 1)), replace(true, share=0.2))
    fit = engine.fit(model, engine.Data(X, X[:0]), start, tol=1e-9, max_iter=2000)
    assert fit.parameters.components.share == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize("n_features", [2, 20])
def test_a_point_far_outside_is_noise(n_features):
    random = np.random.default_rng(1)
    X = random.normal(size=(200, n_features)) + 5 * random.integers(2, size=(200, 1))
    density = Contaminated(Gaussian())
    parameters = engine.Parameters(np.full(2, 0.5), np.ones((2, 1)), density.start(X, np.eye(2)[(X[:, 0] > 2.5) * 1]))
    mixture = engine.mixture_of(density, parameters)
    far = np.array([[100.0] * n_features, [1e6] * n_features, [-1e6, *[0.0] * (n_features - 1)]])
    np.testing.assert_allclose(mixture.noise(far), 1.0, atol=1e-6)
    assert mixture.noise(X).mean() < 0.05


def test_noise_of_a_mixture_is_the_share_of_the_background():
    X, _, components, a, clean, background = small_problem(0)
    density, parameters = Contaminated(Gaussian()), engine.Parameters(a, np.ones((3, 1)), components)
    mixture, e = engine.mixture_of(density, parameters), components.share
    total = (1 - e) * clean @ a + e * background
    np.testing.assert_allclose(mixture.noise(X), e * background / total, rtol=1e-10)
    np.testing.assert_allclose(mixture.log_density(X), np.log(total), rtol=1e-10)
    np.testing.assert_allclose(engine.Mixture(density, parameters).log_density(X), np.log(total), rtol=1e-10)
    np.testing.assert_allclose(mixture.probabilities(X), a * clean / (clean @ a)[:, None], rtol=1e-9)
    expected = np.where(e * background > total / 2, -1, (a * clean).argmax(axis=1))
    np.testing.assert_array_equal(mixture.classes(X), expected)
    assert {-1} < set(expected.tolist())


def test_samples_contain_the_noise():
    density = Contaminated(Gaussian())
    parameters = density.start(NUMBERS, np.eye(2)[(GROUPS == 1) * 1])
    drawn = density.sample(replace(parameters, share=0.4), 1, 5000, np.random.RandomState(0))
    clean = density.density.sample(parameters.clean, 1, 5000, np.random.RandomState(0))
    noise = density.density.sample(parameters.background, 0, 5000, np.random.RandomState(0))
    expected = 0.6 * clean.mean(axis=0) + 0.4 * noise.mean(axis=0)
    np.testing.assert_allclose(drawn.mean(axis=0), expected, atol=0.3)
    assert drawn.std(axis=0).min() > 1.5 * clean.std(axis=0).max()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Contaminated("gaussian"), "density='gaussian' cannot be contaminated: pass an object"),
        (lambda: Contaminated(Contaminated(Gaussian())), "cannot be contaminated"),
        (lambda: Contaminated(Gaussian(), n_known=-1), "n_known"),
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_bad_starts_are_refused():
    density = Contaminated(Gaussian())
    good = density.attributes(density.start(NUMBERS, np.ones((len(NUMBERS), 1))), (1, 1))
    with pytest.raises(ValueError, match=r"init\['noise_share'\] is 0.7: give a share above 0 and at most 0.5"):
        density.given({**good, "noise_share": 0.7}, (1, 1), 2)
    with pytest.raises(ValueError, match="the background, whose entries of init begin with 'background_'"):
        density.given({name: array for name, array in good.items() if name != "background_means"}, (1, 1), 2)


def test_known_noise_is_counted():
    noise = np.array([True, False, True])
    assert counting(Contaminated(Gaussian()), noise) == Contaminated(Gaussian(), n_known=2)
    assert counting(Contaminated(Gaussian(), n_known=1), None) == Contaminated(Gaussian(), n_known=1)
    assert counting(Gaussian(), noise) == Gaussian()
