"""One pool of clusters that every class mixes in its own way."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from linkmix import LinkMixture, Links, links_satisfied, purity
from linkmix.couplings import Graph, Pairwise
from relation_oracles import (
    SAMPLING_OF_LABELS,
    Wish,
    assert_never_falls,
    assert_step,
    enumerate_graph,
    enumerate_pairs,
    fit_arguments,
    links_of,
    most_probable,
    random_scene,
    settings_of,
)

seeds = st.integers(0, 2**32 - 1)
COUPLINGS = {"pairwise": (Pairwise(), enumerate_pairs), "graph": (Graph(), enumerate_graph)}
both_couplings = pytest.mark.parametrize("coupling", ["pairwise", "graph"])


def overlapping(n=120, seed=0):
    """Three clumps; the class is the left or the right one, and in the middle one either of them."""
    rng = np.random.default_rng(seed)
    clump = rng.integers(3, size=n)
    y = np.where(clump == 1, rng.integers(2, size=n), clump // 2)
    return np.array([[-6.0, 0.0], [0.0, 0.0], [6.0, 0.0]])[clump] + rng.normal(size=(n, 2)), y


@both_couplings
@pytest.mark.parametrize(("n_classes", "clusters_per_class"), [(1, 2), (2, 1), (2, 2), (3, 1), (3, 2)])
@pytest.mark.parametrize("n_uncertain", [0, 4])
def test_steps_by_enumeration(coupling, n_classes, clusters_per_class, n_uncertain):
    """Class m has the density sum_p pi_mp p(x | p) over all clusters of the pool."""
    for seed in range(2):
        rng = np.random.default_rng([seed, n_classes, clusters_per_class])
        wish = Wish(n_classes, clusters_per_class, 12, 6, 6, n_uncertain if n_classes > 1 else 0, shared=True)
        scene = random_scene(rng, wish)
        made, enumerate_all = COUPLINGS[coupling]
        assert_step(scene, made, enumerate_all(scene))


@both_couplings
def test_the_estimator_by_enumeration(coupling):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        scene = random_scene(rng, Wish(3, 2, 12, 6, 6, n_uncertain=2, shared=True))
        known = np.where(rng.random(12) < 0.3, scene.hidden, -1)
        scene = replace(scene, known=known, sample_weight=rng.uniform(0.5, 2, size=12))
        model = LinkMixture(**settings_of(scene), coupling=coupling, max_iter=0).fit(**fit_arguments(scene))
        expected = COUPLINGS[coupling][1](scene).log_likelihood
        assert model.log_likelihood_ == pytest.approx(expected, abs=1e-10)
        np.testing.assert_array_equal(model.labels_, most_probable(scene, SAMPLING_OF_LABELS[coupling]))
        alone = replace(scene, known=None)
        joint = alone.class_weights * alone.classes
        np.testing.assert_allclose(model.predict_proba(scene.X), joint / joint.sum(axis=1, keepdims=True), atol=1e-10)
        np.testing.assert_allclose(model.score_samples(scene.X), np.log(joint.sum(axis=1)), atol=1e-10)
        assert model.score(scene.X) == pytest.approx(np.log(joint.sum(axis=1)).mean(), abs=1e-10)


def test_without_links_j_is_that_of_the_pooled_mixture():
    rng = np.random.default_rng(0)
    scene = random_scene(rng, Wish(2, 2, 20, 2, 0, shared=True))
    model = LinkMixture(**settings_of(scene), max_iter=0).fit(scene.X)
    pooled = scene.class_weights @ scene.cluster_weights  # (M * K,)
    d = scene.X.shape[1]
    density = sum(
        weight * multivariate_normal(mean, covariance).pdf(scene.X)
        for weight, mean, covariance in zip(
            pooled, scene.means.reshape(-1, d), scene.covariances.reshape(-1, d, d), strict=True
        )
    )
    assert model.log_likelihood_ == pytest.approx(np.log(density).sum(), abs=1e-10)


@both_couplings
@given(seeds, st.integers(2, 4), st.integers(1, 2), st.booleans())
@settings(max_examples=20)
def test_j_never_falls(coupling, seed, n_classes, clusters_per_class, learn):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=60)
    X = 2.5 * rng.normal(size=(n_classes, 2))[y] + 1.5 * rng.normal(size=(60, 2))
    model = LinkMixture(
        n_classes,
        clusters_per_class=clusters_per_class,
        shared_clusters=True,
        coupling=coupling,
        reliability="learn" if learn else "auto",
        reg_covar=1e-2,
        tol=0,
        max_iter=15,
        random_state=seed % 1000,
    ).fit(X, links=Links.from_labels(y, 15, random_state=seed))
    assert_never_falls(model.log_likelihood_trace_)
    np.testing.assert_allclose(model.cluster_weights_.sum(axis=1), 1, rtol=0, atol=1e-12)


@both_couplings
@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("init", ["kmeans++", "links"])
def test_shapes(coupling, covariance_type, init):
    X, y = overlapping()
    links = Links.from_labels(y, 30, random_state=0)
    model = LinkMixture(
        2,
        clusters_per_class=2,
        shared_clusters=True,
        covariance_type=covariance_type,
        coupling=coupling,
        init=init,
        random_state=0,
    ).fit(X, links=links)
    assert model.cluster_weights_.shape == (2, 4)
    np.testing.assert_allclose(model.cluster_weights_.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert np.all(model.cluster_weights_ >= 0)
    assert model.means_.shape == (2, 2, 2)
    shapes = {"full": (2, 2, 2, 2), "tied": (2, 2), "diag": (2, 2, 2), "spherical": (2, 2)}
    assert model.covariances_.shape == shapes[covariance_type]
    assert links_satisfied(model.labels_, links) == 1.0
    assert model.log_likelihood(X, links) == pytest.approx(model.log_likelihood_, rel=1e-10)
    assert model.predict(X).shape == (len(X),)
    n_component_parameters = {"full": 4 * 5, "tied": 4 * 2 + 3, "diag": 4 * 4, "spherical": 4 * 3}[covariance_type]
    n_parameters = 1 + 2 * 3 + n_component_parameters
    assert model.bic(X, links) == pytest.approx(-2 * model.log_likelihood_ + n_parameters * np.log(len(X)), rel=1e-10)
    assert model.aic(X, links) == pytest.approx(-2 * model.log_likelihood_ + 2 * n_parameters, rel=1e-10)


def test_samples_follow_the_mixture():
    model = LinkMixture(
        2,
        shared_clusters=True,
        init={
            "class_weights": [0.7, 0.3],
            "cluster_weights": [[0.9, 0.1], [0.2, 0.8]],
            "means": [[[0.0]], [[100.0]]],
            "covariances": np.ones((2, 1, 1, 1)),
        },
        max_iter=0,
        random_state=0,
    ).fit(np.arange(10.0)[:, None])
    X, y = model.sample(20_000)
    assert X.shape == (20_000, 1)
    cluster = (X[:, 0] > 50).astype(int)
    expected = np.array([[0.63, 0.07], [0.06, 0.24]])
    found = np.array([[np.mean((y == m) & (cluster == p)) for p in range(2)] for m in range(2)])
    np.testing.assert_allclose(found, expected, atol=5 * np.sqrt(0.25 / 20_000))


def test_a_class_that_keeps_to_its_own_clusters_is_the_ordinary_model():
    rng = np.random.default_rng(1)
    scene = random_scene(rng, Wish(2, 2, 12, 6, 6))
    own = LinkMixture(**settings_of(scene), max_iter=0).fit(**fit_arguments(scene))
    weights = np.full((2, 4), 1e-300)
    weights[0, :2], weights[1, 2:] = scene.cluster_weights
    pooled = replace(scene, shared=True, cluster_weights=weights)
    shared = LinkMixture(**settings_of(pooled), max_iter=0).fit(**fit_arguments(pooled))
    assert shared.log_likelihood_ == pytest.approx(own.log_likelihood_, abs=1e-10)
    assert shared.log_likelihood(scene.X, links_of(scene)) == pytest.approx(own.log_likelihood_, abs=1e-10)


@both_couplings
def test_classes_that_overlap_share_their_clusters(coupling):
    """Half of each class lies in the middle clump: the pool finds three clumps, and both classes use the middle one."""
    X, y = overlapping(400)
    links = Links.from_labels(y, 150, random_state=0)
    model = LinkMixture(
        2, clusters_per_class=2, shared_clusters=True, coupling=coupling, init="links", n_init=5, random_state=0
    ).fit(X, links=links)
    outer = np.abs(X[:, 0]) > 3
    assert purity(y[outer], model.predict(X)[outer]) > 0.97
    middle = np.abs(model.means_.reshape(-1, 2)[:, 0]) < 3
    assert np.all(model.cluster_weights_[:, middle].sum(axis=1) > 0.2)


def test_a_start_for_own_clusters_is_refused():
    scene = random_scene(np.random.default_rng(0), Wish(2, 2, 12, 6, 2))
    with pytest.raises(ValueError, match=r"init\['cluster_weights'\] has shape \(2, 2\), expected \(2, 4\)"):
        LinkMixture(**settings_of(replace(scene, shared=True)), max_iter=0).fit(scene.X)


def test_known_labels_pull_shared_clusters_to_their_class():
    X, y = overlapping(200)
    known = np.where(np.arange(200) % 4 == 0, 1 - y, -1)  # the other way round, so that luck does not help
    model = LinkMixture(2, clusters_per_class=2, shared_clusters=True, n_init=5, random_state=0).fit(X, known)
    outer = np.abs(X[:, 0]) > 3
    assert np.mean(model.predict(X)[outer] == 1 - y[outer]) > 0.97
