"""A second fit goes on from the first one, and classes keep their numbers."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_blobs

from linkmix import LinkMixture, Links, engine, links_satisfied
from linkmix.couplings import Graph, Pairwise
from linkmix.densities import FORMS, Gaussian, StudentT
from linkmix.engine.starts import match_labels
from relation_oracles import Wish, engine_input, random_scene

seeds = st.integers(0, 2**32 - 1)
both_couplings = pytest.mark.parametrize("coupling", ["pairwise", "graph"])


def blobs(n=150, seed=0, distance=7.0):
    centres = distance * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    return make_blobs(n, centers=centres, random_state=seed)


# Matching.


@given(seeds, st.integers(1, 5), st.integers(1, 30), st.booleans())
@settings(max_examples=80)
def test_matching_against_every_permutation(seed, n_classes, n, with_unknown):
    rng = np.random.default_rng(seed)
    labels, reference = rng.integers(n_classes, size=(2, n))
    if with_unknown:
        reference = np.where(rng.random(n) < 0.3, -1, reference)
    place = match_labels(labels, reference, n_classes)
    assert sorted(place) == list(range(n_classes))
    agreement = np.sum(place[labels] == reference)
    best = max(np.sum(np.array(order)[labels] == reference) for order in permutations(range(n_classes)))
    assert agreement == best


def test_matching_with_a_reference_of_more_classes():
    """Numbers beyond the classes that there are can not be kept; the others are."""
    labels = np.array([0, 0, 1, 1, 1, 0])
    reference = np.array([4, 4, 0, 0, 0, 1])
    assert match_labels(labels, reference, 2).tolist() == [1, 0]
    assert sorted(match_labels(labels, np.full(6, -1), 3)) == [0, 1, 2]


# Renumbering.


@pytest.mark.parametrize("coupling", [Pairwise(), Graph(), Graph(sampling="points")])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_renumbering_changes_nothing_but_numbers(coupling, shared, seed):
    rng = np.random.default_rng(seed)
    scene = random_scene(rng, Wish(3, 2, 12, 6, 6, n_uncertain=3, shared=shared))
    model, data, parameters = engine_input(scene, coupling)
    place = rng.permutation(3)
    renumbered = engine.renumber(model.density, parameters, place)
    before, after = engine.expect(model, data, parameters), engine.expect(model, data, renumbered)
    assert after.log_likelihood == pytest.approx(before.log_likelihood, abs=1e-10)
    np.testing.assert_allclose(after.free_class_counts[place], before.free_class_counts, atol=1e-10)
    np.testing.assert_allclose(after.links.label_weights[:, place], before.links.label_weights, atol=1e-10)
    joint = engine.class_log_joint(model.density, parameters, scene.X)
    np.testing.assert_allclose(engine.class_log_joint(model.density, renumbered, scene.X)[:, place], joint, atol=1e-10)
    back = engine.renumber(model.density, renumbered, np.argsort(place))
    np.testing.assert_array_equal(back.class_weights, parameters.class_weights)
    np.testing.assert_array_equal(back.cluster_weights, parameters.cluster_weights)
    np.testing.assert_allclose(engine.class_log_joint(model.density, back, scene.X), joint, rtol=0, atol=0)


@pytest.mark.parametrize("make", [lambda form: Gaussian(form, 1e-6), lambda form: Gaussian(form, 1e-6, 4.0), StudentT])
@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_renumbering_of_every_form(make, covariance_type):
    X, y = blobs()
    density = make(FORMS[covariance_type])
    model = LinkMixture(4, clusters_per_class=2, density=density, max_iter=3, tol=0, random_state=0).fit(X)
    parameters = model._parameters
    place = np.array([2, 0, 3, 1])
    renumbered = engine.renumber(density, parameters, place)
    np.testing.assert_allclose(
        engine.class_log_joint(density, renumbered, X)[:, place],
        engine.class_log_joint(density, parameters, X),
        atol=1e-10,
    )
    links = Links.from_labels(y, 10, random_state=0).restrict(np.arange(len(X)))
    points = links.points
    engine_model = engine.Model(density, Pairwise().bind(links.restrict(points), len(points), 4))
    data = engine.Data(np.delete(X, points, axis=0), X[points])
    step, other = (
        engine.maximise(engine_model, engine.expect(engine_model, data, start), start)
        for start in (parameters, renumbered)
    )
    np.testing.assert_allclose(
        engine.class_log_joint(density, other, X)[:, place], engine.class_log_joint(density, step, X), atol=1e-6
    )


@pytest.mark.parametrize("density", ["bernoulli", "categorical", "poisson"])
def test_renumbering_of_discrete_densities(density):
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(60, 4)).astype(float)
    model = LinkMixture(3, density=density, max_iter=3, tol=0, random_state=0).fit(X)
    place = np.array([1, 2, 0])
    fitted = model._fitted_density
    renumbered = engine.renumber(fitted, model._parameters, place)
    np.testing.assert_allclose(
        engine.class_log_joint(fitted, renumbered, X)[:, place],
        engine.class_log_joint(fitted, model._parameters, X),
        atol=1e-10,
    )


# Refits.


@both_couplings
@pytest.mark.parametrize("shared_clusters", [False, True])
def test_a_refit_goes_on_where_the_first_one_stopped(coupling, shared_clusters):
    X, y = blobs(distance=3.0)
    links = Links.from_labels(y, 30, random_state=0)
    settings = {"n_classes": 4, "coupling": coupling, "shared_clusters": shared_clusters, "tol": 0, "random_state": 0}
    whole = LinkMixture(**settings, max_iter=10).fit(X, links=links)
    parts = LinkMixture(**settings, max_iter=5, warm_start=True).fit(X, links=links)
    first = parts.log_likelihood_trace_
    parts.fit(X, links=links)
    # The second part may begin with other numbers, which changes the order of sums.
    np.testing.assert_allclose(
        np.concatenate([first, parts.log_likelihood_trace_[1:]]), whole.log_likelihood_trace_, rtol=1e-8
    )


@both_couplings
@pytest.mark.parametrize("n_init", [1, 4])
@pytest.mark.parametrize("init", ["kmeans++", "links"])
def test_classes_keep_their_numbers_when_links_are_added(coupling, n_init, init):
    X, y = blobs()
    model = LinkMixture(4, coupling=coupling, init=init, n_init=n_init, warm_start=True, random_state=0)
    links = Links.from_labels(y, 40, random_state=0)
    model.fit(X, links=links)
    if np.unique(model.labels_).size < 4:
        model.set_params(n_init=10).fit(X, links=links)
        model.set_params(n_init=n_init)
    before = model.labels_
    for seed in range(1, 4):
        links = links.union(Links.from_labels(y, 20, random_state=seed)).distinct()
        model.fit(X, links=links)
        assert np.mean(model.labels_ == before) > 0.9
        assert links_satisfied(model.labels_, links) == 1.0


def test_without_a_warm_start_every_fit_begins_anew():
    X, y = blobs(distance=3.0)
    links = Links.from_labels(y, 30, random_state=0)
    one = LinkMixture(4, random_state=0).fit(X, links=links)
    trace = one.log_likelihood_trace_.copy()
    one.fit(X, links=links)
    np.testing.assert_array_equal(one.log_likelihood_trace_, trace)


@pytest.mark.parametrize("order", [(1, 0, 2, 3), (3, 2, 1, 0), (2, 3, 1, 0)])
def test_classes_keep_their_numbers_when_the_start_has_others(order):
    X, y = blobs()
    model = LinkMixture(4, n_init=10, warm_start=True, random_state=0).fit(
        X, links=Links.from_labels(y, 40, random_state=0)
    )
    before = model.labels_
    rows = list(order)
    turned = {
        name: getattr(model, f"{name}_")[rows] for name in ("class_weights", "cluster_weights", "means", "covariances")
    }
    fresh = LinkMixture(4, init=turned).fit(X)
    assert np.mean(fresh.labels_ == before) < 0.9
    model.set_params(init=turned).fit(X)
    assert np.mean(model.labels_ == before) > 0.98
    assert np.mean(model.predict(X) == before) > 0.98
    np.testing.assert_allclose(np.sort(model.class_weights_), np.sort(fresh.class_weights_), atol=1e-8)


def test_more_points_keep_the_numbers_of_the_old_ones():
    X, y = blobs(300)
    model = LinkMixture(4, n_init=10, warm_start=True, random_state=0).fit(X[:150])
    before = model.predict(X)
    model.fit(X, links=Links.from_labels(y, 30, random_state=0))
    assert np.mean(model.predict(X) == before) > 0.98


def test_known_labels_decide_the_numbers_of_a_refit():
    """What was class 0 by chance is renumbered when the user names it."""
    X, _ = blobs()
    model = LinkMixture(4, n_init=10, warm_start=True, random_state=0).fit(X)
    found = model.labels_
    wanted = np.array([1, 2, 3, 0])[found]  # no class keeps its number
    known = np.full(len(X), -1)
    for m in range(4):
        known[np.flatnonzero(wanted == m)[:4]] = m
    model.set_params(n_init=1).fit(X, known)
    assert np.mean(model.labels_ == wanted) > 0.98


@pytest.mark.parametrize(
    "change",
    [
        {"n_classes": 3},
        {"clusters_per_class": 2},
        {"covariance_type": "diag"},
        {"covariance_type": "tied"},
        {"density": "student"},
        {"shrinkage": 5.0},
        {"shared_clusters": True},
        {"coupling": "graph"},
    ],
    ids=lambda change: "-".join(map(str, next(iter(change.items())))),
)
def test_a_refit_with_another_shape_begins_anew(change):
    X, y = blobs()
    links = Links.from_labels(y, 30, random_state=0)
    model = LinkMixture(4, n_init=2, warm_start=True, random_state=0).fit(X, links=links)
    model.set_params(**change).fit(X, links=links)
    anew = clone(model).set_params(warm_start=False).fit(X, links=links)
    names = {name for name in vars(anew) if name.endswith("_")}
    assert {name for name in vars(model) if name.endswith("_")} == names  # nothing is left of the other kind
    for name in names & {"class_weights_", "cluster_weights_", "means_", "covariances_", "scales_"}:
        assert getattr(model, name).shape == getattr(anew, name).shape
    assert np.isfinite(model.log_likelihood_)
    assert model.predict(X).max() < model.n_classes


def test_own_clusters_are_not_taken_for_shared_ones():
    """Two classes of two clusters and two classes that share two have cluster weights of one shape."""
    X, _ = blobs()
    model = LinkMixture(2, clusters_per_class=2, warm_start=True, random_state=0).fit(X)
    model.set_params(clusters_per_class=1, shared_clusters=True).fit(X)
    assert model.means_.shape == (2, 1, 2)
    assert model.cluster_weights_.shape == (2, 2)


def test_a_refit_with_other_columns_begins_anew():
    X, _ = blobs()
    model = LinkMixture(4, warm_start=True, random_state=0).fit(X)
    model.fit(np.column_stack([X, X[:, 0] ** 2]))
    assert model.means_.shape == (4, 1, 3)


def test_a_failed_refit_leaves_the_first_one():
    X, _ = blobs()
    model = LinkMixture(4, warm_start=True, random_state=0).fit(X)
    before = model.predict(X)
    with pytest.raises(ValueError, match="links row"):
        model.fit(X, links=Links(must=[(0, 1000)]))
    np.testing.assert_array_equal(model.predict(X), before)


def test_learned_reliability_survives_renumbering():
    X, y = blobs()
    links = Links.from_labels(y, 40, random_state=0)
    named = Links(links.must, links.cannot, must_annotators="ann", cannot_annotators="bob")
    model = LinkMixture(4, n_init=5, warm_start=True, random_state=0).fit(X, links=named)
    first = model.annotator_reliability_
    model.fit(X, links=named)
    assert model.annotator_reliability_ == pytest.approx(first, abs=1e-3)
    assert model.log_likelihood(X, named) == pytest.approx(model.log_likelihood_, rel=1e-10)
    scene = random_scene(np.random.default_rng(0), Wish(3, 1, 8, 6, 0, n_uncertain=4, annotators=("ann",)))
    made = Pairwise(learn_reliability=True)
    engine_model, _, parameters = engine_input(scene, made)
    renumbered = engine.renumber(engine_model.density, parameters, np.array([2, 0, 1]))
    np.testing.assert_array_equal(renumbered.reliability, parameters.reliability)
