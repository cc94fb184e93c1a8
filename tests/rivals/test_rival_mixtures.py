"""GMM, GM-PR, GMM-EC, EM-PC, PPC and soft chunklets: one engine, different couplings, each with its guarantee."""

import itertools
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.datasets import load_wine
from sklearn.mixture import GaussianMixture
from sklearn.utils.estimator_checks import parametrize_with_checks

from linkmix import LinkMixture, Links, links_satisfied
from linkmix.couplings import Graph, MeanField, Projection
from linkmix.couplings.projection import project
from linkmix.rivals import EMPC, GMM, GMMEC, GMPR, PPC, SoftChunkletMixture
from linkmix.study.registry import METHODS

MIXTURES = [GMM, GMPR, GMMEC, EMPC, PPC, SoftChunkletMixture]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # some checks fit noise
@parametrize_with_checks([kind() for kind in MIXTURES])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def log_posterior(rng, n, n_classes, scale):
    values = scale * rng.normal(size=(n, n_classes))
    return (
        values
        - np.log(np.exp(values - values.max(axis=1, keepdims=True)).sum(axis=1))[:, None]
        - values.max(axis=1, keepdims=True)
    )


def some_pairs(rng, n, n_pairs):
    pairs = np.array(list(itertools.combinations(range(n), 2)))
    return pairs[rng.choice(len(pairs), min(n_pairs, len(pairs)), replace=False)]


# EM-PC


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 30),
    n_classes=st.integers(2, 5),
    scale=st.sampled_from([0.5, 3, 8]),
)
def test_projected_labels_meet_every_constraint(seed, n, n_classes, scale):
    rng = np.random.default_rng(seed)
    pairs = some_pairs(rng, n, n)
    log_p = log_posterior(rng, n, n_classes, scale)
    labels, divergence, multipliers = project(log_p, pairs)
    assert (labels[pairs[:, 0]] + labels[pairs[:, 1]]).max() <= 1 + 1e-8
    np.testing.assert_allclose(labels.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert multipliers.min() >= 0
    kl = np.sum(labels * (np.log(np.maximum(labels, 1e-300)) - log_p))
    np.testing.assert_allclose(divergence, kl, rtol=1e-9, atol=1e-9)
    # Complementary slackness: what pulls is met exactly.
    loose = 1 - labels[pairs[:, 0]] - labels[pairs[:, 1]]
    assert np.abs(multipliers * loose).max() <= 1e-6


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds")  # SciPy 1.14
def test_projection_is_the_closest_feasible_point():
    rng = np.random.default_rng(0)
    pairs, log_p = np.array([(0, 1), (1, 2), (0, 2)]), log_posterior(rng, 3, 3, 2.0)
    labels, divergence, _ = project(log_p, pairs)

    def kl(q):
        return np.sum(q * (np.log(np.maximum(q, 1e-300)) - log_p.ravel()))

    constraints = [{"type": "eq", "fun": lambda q: q.reshape(3, 3).sum(axis=1) - 1}]
    constraints += [
        {"type": "ineq", "fun": lambda q, a=a, b=b: 1 - q.reshape(3, 3)[a] - q.reshape(3, 3)[b]} for a, b in pairs
    ]
    found = minimize(kl, np.full(9, 1 / 3), bounds=[(1e-12, 1)] * 9, constraints=constraints, method="SLSQP")
    np.testing.assert_allclose(divergence, found.fun, rtol=1e-6)
    np.testing.assert_allclose(labels.ravel(), found.x, atol=1e-4)


def test_a_pair_that_shares_no_point_has_a_closed_form():
    log_p = np.log([[0.7, 0.2, 0.1], [0.9, 0.05, 0.05]])
    labels, _, _ = project(log_p, np.array([(0, 1)]))

    def logit(p):
        return np.log(p / (1 - p))

    first = 1 / (1 + np.exp(-(logit(0.7) - logit(0.9)) / 2))
    np.testing.assert_allclose(labels[:, 0], [first, 1 - first], rtol=1e-10)
    np.testing.assert_allclose(labels[0, 1:], (1 - first) * np.array([2, 1]) / 3, rtol=1e-10)


@pytest.mark.skipif("LINKMIX_DATA" not in os.environ, reason="LINKMIX_DATA names no folder with reference values")
def test_projection_reference():
    data = np.load(Path(os.environ["LINKMIX_DATA"]) / "reference" / "empc_projection.npz", allow_pickle=False)
    for slack, suffix in ((0.0, ""), (0.1, "_slack01")):
        labels, divergence, multipliers = project(np.log(data["P"]), data["CL"], slack)
        np.testing.assert_allclose(labels, data["q" + suffix], rtol=0, atol=1e-8)
        np.testing.assert_allclose(divergence, data["kl" + suffix], rtol=0, atol=1e-8)
        np.testing.assert_allclose(multipliers, data["lam" + suffix], rtol=0, atol=1e-6)


# The start


@pytest.mark.parametrize("clusters_per_class", [1, 3])
@pytest.mark.parametrize("kind", MIXTURES)
def test_the_first_means_are_kmeans_plusplus_seeds(kind, clusters_per_class, wine):
    """Without a step of EM, each mean is a row, and its covariance that of the rows nearest to it in its class."""
    X, _ = wine
    model = kind(2, clusters_per_class=clusters_per_class, max_iter=0, reg_covar=0.0, random_state=3).fit(X[:, :2])
    seeds = model.means_.reshape(-1, 2)
    assert all((X[:, :2] == seed).all(axis=1).any() for seed in seeds)
    assert len(np.unique(seeds, axis=0)) == 2 * clusters_per_class
    if clusters_per_class == 1:
        nearest = ((X[:, None, :2] - seeds) ** 2).sum(axis=2).argmin(axis=1)
        for m in range(2):
            np.testing.assert_allclose(model.covariances_[m, 0], np.cov(X[nearest == m, :2].T, bias=True))
    assert not np.allclose(LinkMixture(2, max_iter=0, random_state=3).fit(X[:, :2]).means_[:, 0], seeds[:2])


# PPC


def test_the_weight_of_ppc_is_that_of_its_coupling(wine):
    X, y = wine
    links = Links.from_labels(y, 40, random_state=0)
    for weight in (1.0, 10.0):
        model = PPC(3, random_state=0).set_params(weight=weight).fit(X, links=links)
        same = LinkMixture(3, coupling=MeanField(weight), init=start_of(model, X), tol=1e-6, max_iter=300)
        np.testing.assert_allclose(model.log_likelihood_, same.fit(X, links=links).log_likelihood_, rtol=1e-9)
    with pytest.raises(ValueError, match="weight=-1 is not a finite number of at least 0"):
        PPC(weight=-1).fit(X)


def start_of(model, X):
    """The start of a fitted mixture, as an argument of `LinkMixture`."""
    first = type(model)(**{**model.get_params(), "max_iter": 0}).fit(X)
    return {name: getattr(first, f"{name}_") for name in ("class_weights", "cluster_weights", "means", "covariances")}


def test_mean_field_ends_at_a_fixed_point():
    rng = np.random.default_rng(1)
    links = Links(must=[(0, 1), (1, 2)], cannot=[(2, 3), (3, 0)])
    log_density, weights = 2 * rng.normal(size=(4, 3)), np.array([0.5, 0.3, 0.2])
    labels = MeanField(weight=1.5).bind(links, 4, 3).expect(log_density, weights).label_weights
    pull = np.zeros((4, 3))
    for sign, pairs in ((1.5, links.must), (-1.5, links.cannot)):
        for a, b in pairs:
            pull[a] += sign * labels[b]
            pull[b] += sign * labels[a]
    expected = weights * np.exp(log_density + pull)
    np.testing.assert_allclose(labels, expected / expected.sum(axis=1, keepdims=True), atol=1e-10)


def test_mean_field_bound_lies_below_the_sum_over_all_labels():
    rng = np.random.default_rng(2)
    links = Links(must=[(0, 1)], cannot=[(1, 2)])
    log_density, weights = rng.normal(size=(3, 2)), np.array([0.6, 0.4])
    bound = MeanField(weight=0.8).bind(links, 3, 2).expect(log_density, weights).log_likelihood
    total = 0.0
    for z in itertools.product(range(2), repeat=3):
        log_p = sum(np.log(weights[m]) + log_density[i, m] for i, m in enumerate(z))
        total += np.exp(log_p + 0.8 * (z[0] == z[1]) - 0.8 * (z[1] == z[2]))
    assert np.log(total) - 1 < bound <= np.log(total) + 1e-12


# All of them


@pytest.mark.parametrize("kind", MIXTURES)
def test_the_objective_never_falls(kind, wine):
    X, y = wine
    for seed in range(5):
        method = next(method for method in METHODS.values() if method.make is kind)
        links = method.usable(Links.from_labels(y, 60, random_state=seed))
        trace = kind(3, covariance_type="diag", random_state=seed).fit(X, links=links).log_likelihood_trace_
        assert np.all(np.diff(trace) >= -1e-9 * np.abs(trace[1:]))


def test_gmm_is_scikit_learns(wine):
    X, _ = wine
    ours = GMM(3, covariance_type="diag", n_init=5, random_state=0, tol=1e-10, max_iter=1000).fit(X)
    theirs = GaussianMixture(
        3,
        covariance_type="diag",
        weights_init=ours.class_weights_,
        means_init=ours.means_[:, 0],
        precisions_init=1 / ours.covariances_[:, 0],
        tol=1e-10,
        max_iter=1000,
    ).fit(X)
    np.testing.assert_allclose(ours.log_likelihood_, theirs.score(X) * len(X), rtol=1e-8)


def test_gmm_ec_is_the_network_of_links(wine):
    X, y = wine
    links = Links.from_labels(y, 40, random_state=0)
    settings = {"covariance_type": "diag", "random_state": 3, "tol": 1e-6}
    rival = GMMEC(3, **settings).fit(X, links=links)
    ours = LinkMixture(3, coupling="graph", init=start_of(rival, X), **settings).fit(X, links=links)
    np.testing.assert_array_equal(rival.log_likelihood_trace_, ours.log_likelihood_trace_)
    np.testing.assert_array_equal(rival.labels_, ours.labels_)


def test_the_original_gmm_ec_is_gm_pr_on_disjoint_links(wine):
    X, _ = wine
    links = Links(must=[(0, 1), (2, 60)], cannot=[(5, 100), (7, 140), (61, 150)])
    settings = {"covariance_type": "diag", "random_state": 3, "tol": 1e-6}
    one = GMPR(3, **settings).fit(X, links=links)
    original = LinkMixture(3, coupling=Graph(sampling="chunklets"), init=start_of(one, X), **settings)
    other = original.fit(X, links=links)
    np.testing.assert_allclose(one.log_likelihood_trace_, other.log_likelihood_trace_, rtol=1e-10)
    np.testing.assert_allclose(one.means_, other.means_, rtol=0, atol=1e-8)


def test_links_that_a_method_can_not_use_are_refused(wine):
    X, y = wine
    links = Links.from_labels(y, 20, random_state=0)
    with pytest.raises(ValueError, match=r"EMPC cannot use must-links, but got \d+ of them: drop them"):
        EMPC(3).fit(X, links=links)
    with pytest.raises(ValueError, match="GMM cannot use must-links"):
        GMM(3).fit(X, links=links)
    with pytest.raises(ValueError, match=r"EMPC takes every link as certain, but a cannot-link has confidence 0\.8"):
        EMPC(3).fit(X, links=Links(cannot=[(0, 100)], cannot_confidence=0.8))


def test_couplings_take_their_settings(wine):
    X, y = wine
    links = Links.from_labels(y, 40, kind="cannot", random_state=0)
    strict = LinkMixture(3, coupling=Projection(), random_state=0).fit(X, links=links)
    loose = LinkMixture(3, coupling=Projection(slack=5.0), random_state=0).fit(X, links=links)
    assert strict.log_likelihood_ != loose.log_likelihood_
    heavy = LinkMixture(3, coupling=MeanField(weight=50.0), random_state=0).fit(X, links=links)
    assert links_satisfied(heavy.labels_, links) >= links_satisfied(heavy.predict(X), links)
