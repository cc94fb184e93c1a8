"""Classes with different numbers of clusters, against enumeration and against the even case."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

from linkmix import LinkMixture, Links, fit_trials, native, purity
from linkmix.couplings import Graph, Pairwise
from linkmix.engine.starts import Shape
from oracles import random_spread
from relation_oracles import (
    Wish,
    assert_never_falls,
    assert_step,
    enumerate_graph,
    enumerate_pairs,
    fit_arguments,
    random_scene,
    settings_of,
)

X, y = load_iris(return_X_y=True)
LINKS = Links.from_labels(y, 40, random_state=0)


def uneven_scene(seed, per_class, **more):
    """A random scene whose classes have these numbers of clusters: a pool in which each class has its own."""
    rng = np.random.default_rng(seed)
    scene = random_scene(rng, Wish(n_classes=len(per_class), n_certain=4, n_uncertain=2), **more)
    d, C = scene.X.shape[1], sum(per_class)
    weights, first = np.zeros((len(per_class), C)), 0
    for m, k in enumerate(per_class):
        weights[m, first : first + k] = rng.dirichlet(np.full(k, 3.0))
        first += k
    return replace(
        scene,
        cluster_weights=weights,
        means=1.5 * rng.normal(size=(1, C, d)),
        covariances=np.array([[random_spread(rng, d) for _ in range(C)]]),
        shared=True,
    )


def start_of(scene, per_class):
    """Settings of a LinkMixture that starts from a scene."""
    init = {
        "class_weights": scene.class_weights,
        "cluster_weights": scene.cluster_weights,
        "means": scene.means[0],
        "covariances": scene.covariances[0],
    }
    return {**settings_of(scene), "clusters_per_class": list(per_class), "shared_clusters": False, "init": init}


@pytest.mark.parametrize("per_class", [(1, 2, 1), (3, 1), (1, 2, 3)], ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_a_step_is_that_of_all_labellings(per_class, seed):
    scene = uneven_scene(seed, per_class)
    assert_step(scene, Graph(), enumerate_graph(scene))
    assert_step(scene, Pairwise(), enumerate_pairs(scene))


@pytest.mark.parametrize("core", [True, False], ids=["core", "numpy"])
@pytest.mark.parametrize("coupling", ["pairwise", "graph"])
def test_a_fit_has_the_likelihood_of_all_labellings(coupling, core, monkeypatch):
    if not core:
        monkeypatch.setattr(native, "_core", None)
    for seed in range(3):
        scene = uneven_scene(seed, (1, 3, 2), linked_points="both" if seed == 1 else "apart")
        settings = {**start_of(scene, (1, 3, 2)), "reg_covar": 0.3, "max_iter": 20}
        model = LinkMixture(coupling=coupling, **settings).fit(**fit_arguments(scene))
        assert_never_falls(model.log_likelihood_trace_)
        after = replace(
            scene,
            class_weights=model.class_weights_,
            cluster_weights=model.cluster_weights_,
            means=model.means_[None],
            covariances=model.covariances_[None],
        )
        found = enumerate_graph(after) if coupling == "graph" else enumerate_pairs(after)
        assert model.log_likelihood_ == pytest.approx(found.log_likelihood, abs=1e-9)
        owners = Shape(3, (1, 3, 2)).owners
        np.testing.assert_array_equal(model.cluster_weights_ > 0, np.arange(3)[:, None] == owners)
        joint = after.class_weights * after.classes
        np.testing.assert_allclose(
            model.predict_proba(scene.X), joint / joint.sum(axis=1, keepdims=True), rtol=0, atol=1e-10
        )
        far = 50 * scene.X
        np.testing.assert_array_equal(model.predict(far), model.predict_log_joint(far).argmax(axis=1))


def test_equal_numbers_are_one_number():
    one, each = (LinkMixture(3, clusters_per_class=k, random_state=0).fit(X, links=LINKS) for k in (2, [2, 2, 2]))
    assert one.log_likelihood_ == each.log_likelihood_
    np.testing.assert_array_equal(one.means_, each.means_)


@pytest.mark.parametrize("density", ["gaussian", "student"])
@pytest.mark.parametrize("acceleration", ["none", "squarem"])
def test_fits_of_every_kind(density, acceleration, tmp_path):
    settings = {"density": density, "acceleration": acceleration, "covariance_type": "diag", "random_state": 0}
    model = LinkMixture(3, clusters_per_class=(1, 2, 1), coupling="graph", n_init=3, tol=1e-7, **settings)
    model = clone(model).fit(X, links=LINKS)
    assert_never_falls(model.log_likelihood_trace_)
    assert model.means_.shape == (4, 4)
    assert purity(y, model.predict(X)) > 0.9
    assert np.all(model.cluster_weights_.sum(axis=1) == pytest.approx(1))
    # Four means and variances of four clusters, two free class weights and one free cluster weight.
    assert model.aic(X, LINKS) == pytest.approx(-2 * model.log_likelihood_ + 2 * (4 * 8 + 3))
    points, classes = model.sample(500)
    assert np.mean(model.predict(points) == classes) > 0.9
    model.save(tmp_path / "model.linkmix")
    again = LinkMixture.load(tmp_path / "model.linkmix")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.clusters_per_class == (1, 2, 1)
    warm = model.set_params(warm_start=True).fit(X, links=LINKS)
    np.testing.assert_array_equal(warm.cluster_weights_ > 0, np.arange(3)[:, None] == [0, 1, 1, 2])


def test_without_links_it_is_a_mixture_of_all_clusters():
    free = LinkMixture(2, clusters_per_class=[1, 2], max_iter=30, tol=0, random_state=0).fit(X)
    weights = (free.class_weights_[:, None] * free.cluster_weights_).sum(axis=0)
    init = {
        "class_weights": weights,
        "cluster_weights": np.ones((3, 1)),
        "means": free.means_[:, None],
        "covariances": free.covariances_[:, None],
    }
    plain = LinkMixture(3, init=init, max_iter=0, tol=0).fit(X)
    assert free.log_likelihood_ == pytest.approx(plain.log_likelihood_, rel=1e-12)


def test_a_shared_pool_may_be_uneven():
    model = LinkMixture(3, clusters_per_class=[1, 2, 1], shared_clusters=True, random_state=0).fit(X, links=LINKS)
    assert model.cluster_weights_.shape == (3, 4)
    assert np.all(model.cluster_weights_ > 0)


def test_trials():
    scene = uneven_scene(0, (1, 2))
    init = {name: np.stack([array] * 2) for name, array in start_of(scene, (1, 2))["init"].items()}
    model = LinkMixture(2, clusters_per_class=[1, 2], max_iter=5, tol=0, reg_covar=0.1)
    trials = fit_trials(model, scene.X, init)
    one = clone(model).set_params(init=start_of(scene, (1, 2))["init"]).fit(scene.X)
    np.testing.assert_allclose(trials.log_likelihood, one.log_likelihood_, rtol=1e-12)
    np.testing.assert_allclose(trials.attributes["means"][1], one.means_)


@pytest.mark.parametrize("numbers", [[1, 2], [1, 2, 0], [1, 2, 1.5], [1, True, 2], [], [1, 2, "3"]], ids=str)
def test_bad_numbers(numbers):
    with pytest.raises(ValueError, match="give one whole number from 1 for each class, or a single one for all"):
        LinkMixture(3, clusters_per_class=numbers).fit(X)


def test_bad_starts():
    scene = uneven_scene(0, (1, 2))
    settings = start_of(scene, (1, 2))
    foreign = {**settings["init"], "cluster_weights": np.full((2, 3), 1 / 3)}
    with pytest.raises(ValueError, match=r"share of a cluster of another: with clusters_per_class=\[1, 2\] give 0"):
        LinkMixture(**{**settings, "init": foreign}).fit(scene.X)
    empty = {**settings["init"], "cluster_weights": [[1.0, 0, 0], [0, 1.0, 0]]}
    with pytest.raises(ValueError, match="must be positive, got 0"):
        LinkMixture(**{**settings, "init": empty}).fit(scene.X)
