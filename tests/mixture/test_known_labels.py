"""Labels that are known for some of the points, and links beside them."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs

from linkmix import LinkMixture, Links, links_satisfied
from linkmix.basics.errors import InfeasibleLinks, LinkConflict
from linkmix.couplings import Graph, Pairwise
from relation_oracles import (
    SAMPLING_OF_LABELS,
    Wish,
    assert_never_falls,
    assert_step,
    enumerate_graph,
    enumerate_pairs,
    fit_arguments,
    most_probable,
    random_scene,
    settings_of,
)

seeds = st.integers(0, 2**32 - 1)
both_couplings = pytest.mark.parametrize("coupling", ["pairwise", "graph"])
both_starts = pytest.mark.parametrize("init", ["kmeans++", "links"])
COUPLINGS = {
    "pairwise": (Pairwise(), enumerate_pairs),
    "graph": (Graph(), enumerate_graph),
}


def partly_known(rng, labels, share=0.4):
    known = np.where(rng.random(len(labels)) < share, labels, -1)
    known[rng.integers(len(labels))] = -1
    return known


def blobs(n=90, seed=0, distance=7):
    return make_blobs(n, centers=[[0, 0], [distance, 0], [0, distance]], random_state=seed)


# Against enumeration.


@both_couplings
@pytest.mark.parametrize(
    ("n_classes", "clusters_per_class", "n_uncertain"), [(2, 1, 0), (3, 2, 0), (3, 1, 4), (4, 1, 3)]
)
@pytest.mark.parametrize("seed", range(3))
def test_steps_by_enumeration(coupling, n_classes, clusters_per_class, n_uncertain, seed):
    """A known label is a factor of the likelihood: a_m p(x | m) of that class alone."""
    rng = np.random.default_rng([seed, n_classes])
    scene = random_scene(rng, Wish(n_classes, clusters_per_class, 12, 6, 6, n_uncertain))
    scene = replace(scene, known=partly_known(rng, scene.hidden))
    made, enumerate_all = COUPLINGS[coupling]
    found = enumerate_all(scene)
    assert_step(scene, made, found)
    for n in np.flatnonzero(scene.known >= 0):  # one label, whatever the densities
        expected = np.eye(n_classes)[scene.known[n]]
        total = found.responsibilities[n].sum(axis=1)
        np.testing.assert_allclose(total / total.sum(), expected, rtol=0, atol=1e-12)


@both_couplings
@pytest.mark.parametrize("linked_points", ["apart", "both"])
def test_the_estimator_by_enumeration(coupling, linked_points):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        scene = random_scene(rng, Wish(3, 1, 12, 6, 5, n_uncertain=3), linked_points=linked_points)
        scene = replace(scene, known=partly_known(rng, scene.hidden))
        model = LinkMixture(**settings_of(scene), coupling=coupling, max_iter=0).fit(**fit_arguments(scene))
        expected = COUPLINGS[coupling][1](scene).log_likelihood
        assert model.log_likelihood_ == pytest.approx(expected, abs=1e-10)
        np.testing.assert_array_equal(model.labels_, most_probable(scene, SAMPLING_OF_LABELS[coupling]))
        # The prediction is from the point alone: it has not been told.
        alone = replace(scene, known=None)
        np.testing.assert_array_equal(model.predict(scene.X), (alone.class_weights * alone.classes).argmax(axis=1))


@both_couplings
@given(seeds, st.integers(2, 4), st.integers(1, 2))
@settings(max_examples=20)
def test_j_never_falls(coupling, seed, n_classes, clusters_per_class):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=50)
    X = 2.5 * rng.normal(size=(n_classes, 2))[y] + 1.5 * rng.normal(size=(50, 2))
    model = LinkMixture(
        n_classes,
        clusters_per_class=clusters_per_class,
        coupling=coupling,
        reg_covar=1e-2,
        tol=0,
        max_iter=15,
        random_state=seed % 1000,
    ).fit(X, partly_known(rng, y), links=Links.from_labels(y, 12, random_state=seed))
    assert_never_falls(model.log_likelihood_trace_)


# Class numbers.


@both_starts
@both_couplings
@pytest.mark.parametrize("permutation", [(0, 1, 2), (2, 0, 1), (1, 0, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_classes_get_the_numbers_of_the_known_labels(init, coupling, permutation, seed):
    X, blob = blobs()
    y = np.array(permutation)[blob]
    rng = np.random.default_rng(seed)
    known = np.full(len(y), -1)
    for m in range(3):
        known[rng.choice(np.flatnonzero(y == m), size=2, replace=False)] = m
    links = Links.from_labels(y, 10, random_state=seed)
    model = LinkMixture(3, coupling=coupling, init=init, n_init=5, random_state=seed).fit(X, known, links=links)
    np.testing.assert_array_equal(model.labels_[known >= 0], known[known >= 0])
    assert np.mean(model.predict(X) == y) > 0.98
    assert links_satisfied(model.labels_, links) == 1.0


def test_labels_of_one_class_are_enough_to_name_it():
    X, y = blobs()
    known = np.full(len(y), -1)
    known[np.flatnonzero(y == 1)[:3]] = 2
    model = LinkMixture(3, n_init=5, random_state=0).fit(X, known)
    np.testing.assert_array_equal(model.predict(X[y == 1]), 2)


def test_known_labels_make_links_of_points_that_no_link_joins():
    """Known points at odds with the densities keep their labels, and teach them."""
    X, y = blobs()
    known = np.full(len(y), -1)
    stranger = np.flatnonzero(y == 0)[0]
    known[stranger], known[np.flatnonzero(y == 1)[:5]], known[np.flatnonzero(y == 0)[1:6]] = 1, 1, 0
    model = LinkMixture(3, n_init=5, random_state=0).fit(X, known)
    assert model.labels_[stranger] == 1
    assert model.predict(X)[stranger] == 0


# Links and labels together.


@both_couplings
def test_links_that_contradict_known_labels_are_refused(coupling):
    X, _ = blobs()
    known = np.full(len(X), -1)
    known[[3, 8, 20]] = 0, 0, 1
    model = LinkMixture(3, coupling=coupling)
    with pytest.raises(LinkConflict, match="the links contradict the known labels") as error:
        model.fit(X, known, links=Links(cannot=[(3, 8)]))
    assert "3 and 8" in str(error.value) or "8 and 3" in str(error.value)
    for links in (Links(must=[(3, 20)]), Links(must=[(3, 50), (50, 51), (51, 20)]), Links([(8, 60)], [(60, 3)])):
        with pytest.raises(LinkConflict, match="the links contradict the known labels"):
            model.fit(X, known, links=links)
    assert not hasattr(model, "means_")


@both_couplings
def test_uncertain_links_may_contradict_known_labels(coupling):
    X, y = blobs()
    known = np.full(len(X), -1)
    a, b = np.flatnonzero(y == 0)[:2]
    known[[a, b]] = 0
    links = Links(cannot=[(int(a), int(b))], cannot_confidence=0.9)
    model = LinkMixture(3, coupling=coupling, n_init=3, random_state=0).fit(X, known, links=links)
    assert model.labels_[a] == model.labels_[b] == 0
    # An uncertain must-link across known labels is wrong for sure; the fit goes on.
    known[np.flatnonzero(y == 1)[0]] = 1
    links = Links(must=[(int(a), int(np.flatnonzero(y == 1)[0]))], must_confidence=0.9)
    model = LinkMixture(3, coupling=coupling, n_init=3, random_state=0).fit(X, known, links=links)
    assert np.isfinite(model.log_likelihood_)


def test_known_labels_that_leave_no_label_for_a_point():
    """Each cannot-link is fine with the labels; together they leave nothing for row 30."""
    X, y = blobs()
    known = np.full(len(X), -1)
    rows = [int(np.flatnonzero(y == m)[0]) for m in range(3)]
    known[rows] = 0, 1, 2
    point = int(np.flatnonzero(y == 0)[5])
    links = Links(cannot=[(point, row) for row in rows])
    model = LinkMixture(3, coupling="graph", random_state=0)
    with pytest.raises(InfeasibleLinks) as error:
        model.fit(X, known, links=links)
    assert {tuple(sorted(pair)) for pair in error.value.links.cannot.tolist()} == {
        tuple(sorted((point, row))) for row in rows
    }
    assert not hasattr(model, "means_")
    with pytest.warns(UserWarning, match="labels_ breaks some links"):
        model = LinkMixture(3, random_state=0, n_init=3).fit(X, known, links=links)
    np.testing.assert_array_equal(model.labels_[rows], [0, 1, 2])


# What is not knowledge.


@pytest.mark.parametrize("y", [None, "truth", "text", "list"])
def test_labels_without_minus_one_are_left_alone(y):
    X, truth = blobs()
    y = {None: None, "truth": truth, "text": np.array(list("abc"))[truth], "list": (truth + 7).tolist()}[y]
    plain = LinkMixture(3, random_state=0).fit(X)
    model = LinkMixture(3, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_array_equal(model.log_likelihood_trace_, plain.log_likelihood_trace_)


def test_nothing_but_minus_one_is_no_knowledge():
    X, _ = blobs()
    plain = LinkMixture(3, random_state=0).fit(X)
    model = LinkMixture(3, random_state=0).fit(X, np.full(len(X), -1))
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_array_equal(model.log_likelihood_trace_, plain.log_likelihood_trace_)


@pytest.mark.parametrize("wrong", [3, 17, -2, 0.5])
def test_a_label_out_of_range_is_refused(wrong):
    X, _ = blobs()
    known = np.full(len(X), -1.0)
    known[5] = wrong
    model = LinkMixture(3)
    with pytest.raises(ValueError, match=r"y\[5\] is .*: known labels are class numbers from 0 to 2, and -1"):
        model.fit(X, known if wrong == 0.5 else known.astype(int))
    assert not hasattr(model, "means_")


def test_labels_that_are_not_numbers_are_refused():
    X, _ = blobs()
    known = np.full(len(X), -1.0)
    known[5] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"y\[5\] is missing"):
            LinkMixture(3).fit(X, known)


def test_partial_labels_of_another_length_are_refused():
    """A -1 says that y is meant as knowledge; half of it is not to be dropped in silence."""
    X, _ = blobs()
    with pytest.raises(ValueError, match="y"):
        LinkMixture(3).fit(X, np.full(len(X) - 1, -1))


def test_the_known_labels_are_not_changed():
    X, y = blobs()
    known = np.where(np.arange(len(y)) % 3 == 0, y, -1)
    before = known.copy()
    LinkMixture(3, random_state=0).fit(X, known, links=Links.from_labels(y, 10, random_state=0))
    np.testing.assert_array_equal(known, before)


def test_every_label_known_but_one_is_the_supervised_fit():
    X, y = blobs(distance=40)
    known = y.copy()
    known[11] = -1
    model = LinkMixture(3, reg_covar=0, random_state=0).fit(X, known)
    for m in range(3):
        rows = X[y == m]
        np.testing.assert_allclose(model.means_[m, 0], rows.mean(axis=0), atol=1e-10)
        np.testing.assert_allclose(model.covariances_[m, 0], np.cov(rows.T, bias=True), atol=1e-10)
    np.testing.assert_allclose(model.class_weights_, np.bincount(y) / len(y), atol=1e-10)


@both_couplings
def test_missing_values_with_known_labels_and_links(coupling):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        scene = random_scene(rng, Wish(3, 2, 12, 6, 6, n_uncertain=2))
        X = scene.X.copy()
        X[rng.random(X.shape) < 0.3] = np.nan
        X[0], X[:, 0] = np.nan, np.where(np.arange(12) == 11, 0.5, X[:, 0])  # no row or column is all there is
        X[11] = scene.X[11]
        scene = replace(scene, X=X, known=partly_known(rng, scene.hidden))
        made, enumerate_all = COUPLINGS[coupling]
        found = enumerate_all(scene)
        assert_step(scene, made, found)
        model = LinkMixture(**settings_of(scene), coupling=coupling, max_iter=0).fit(**fit_arguments(scene))
        assert model.log_likelihood_ == pytest.approx(found.log_likelihood, abs=1e-10)
        np.testing.assert_array_equal(model.labels_, most_probable(scene, SAMPLING_OF_LABELS[coupling]))


@both_starts
@both_couplings
def test_a_fit_with_missing_values_and_links(coupling, init):
    X, y = blobs(150)
    rng = np.random.default_rng(0)
    gaps = X.copy()
    gaps[np.arange(150) % 3 == 0, rng.integers(2, size=50)] = np.nan
    links = Links.from_labels(y, 40, random_state=0)
    model = LinkMixture(3, coupling=coupling, init=init, n_init=5, random_state=0).fit(gaps, links=links)
    assert_never_falls(model.log_likelihood_trace_)
    assert links_satisfied(model.labels_, links) == 1.0
    assert model.predict(gaps).shape == (150,)
    np.testing.assert_allclose(model.predict_proba(np.full((1, 2), np.nan))[0], model.class_weights_, atol=1e-10)
    whole = ~np.isnan(gaps).any(axis=1)
    found = model.predict(X[whole])
    agree = [np.bincount(found[y[whole] == m], minlength=3) for m in range(3)]
    assert np.sum(np.max(agree, axis=1)) > 0.97 * whole.sum()
