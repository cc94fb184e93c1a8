"""Links that may be wrong: a confidence for each, or annotators whose reliability is learned."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs

from linkmix import LinkMixture, Links, engine, links_satisfied, purity
from linkmix.basics.errors import LinkConflict
from linkmix.couplings import Graph, Pairwise
from relation_oracles import (
    Statement,
    Wish,
    assert_never_falls,
    assert_step,
    engine_input,
    enumerate_graph,
    enumerate_pairs,
    fit_arguments,
    in_order_of_links,
    links_of,
    random_scene,
    settings_of,
)

seeds = st.integers(0, 2**32 - 1)
both_couplings = pytest.mark.parametrize("coupling", ["pairwise", "graph"])
enumerations = {"pairwise": enumerate_pairs, "graph": enumerate_graph}
PRIOR_RIGHT, PRIOR_WRONG = 9.0, 1.0


def blobs(n=200, seed=0, spread=1.0):
    return make_blobs(n, centers=[[0, 0], [8, 0], [0, 8]], cluster_std=spread, random_state=seed)


def flipped(links, share, seed):
    """Must-links and cannot-links, a share of them turned into their opposite, and which of each those are."""
    rng = np.random.default_rng(seed)
    pairs = np.concatenate([links.must, links.cannot])
    says_same = np.arange(len(pairs)) < links.n_must
    wrong = np.zeros(len(pairs), dtype=bool)
    wrong[rng.choice(len(pairs), size=round(share * len(pairs)), replace=False)] = True
    says_same = says_same != wrong
    return pairs[says_same], pairs[~says_same], wrong[says_same], wrong[~says_same]


def noisy_problem(seed, n_classes, n_links):
    """Overlapping classes, and links of which three in ten are wrong; with the generator."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=50)
    X = 3 * rng.normal(size=(n_classes, 2))[y] + 1.5 * rng.normal(size=(50, 2))
    must, cannot, _, _ = flipped(Links.from_labels(y, n_links, random_state=seed), 0.3, seed)
    return rng, X, must, cannot


# Confidence.


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("n_certain", [0, 4])
@pytest.mark.parametrize("seed", range(3))
def test_pairs_by_enumeration(n_classes, n_certain, seed):
    """Each pair is q times a must-link plus 1 - q times a cannot-link; statements about one pair multiply."""
    rng = np.random.default_rng([seed, n_classes, n_certain])
    scene = random_scene(rng, Wish(n_classes, 1 + seed, 11, 5, n_certain, n_uncertain=11))
    pairs = [s.pair for s in scene.statements]
    assert len(set(pairs)) < len(pairs)
    assert_step(scene, Pairwise(), enumerate_pairs(scene))


@given(seeds, st.integers(2, 4), st.integers(0, 8), st.integers(1, 10), st.sampled_from([0.5, 1.0, 3.0]))
@settings(max_examples=50)
def test_posteriors_of_pairs_by_enumeration(seed, n_classes, n_certain, n_uncertain, link_weight):
    rng = np.random.default_rng(seed)
    scene = random_scene(rng, Wish(n_classes, 1, 7, 6, n_certain, n_uncertain), link_weight=link_weight)
    found = enumerate_pairs(scene)
    model, data, parameters = engine_input(scene, Pairwise())
    expectation = engine.expect(model, data, parameters)
    assert expectation.log_likelihood == pytest.approx(found.log_likelihood, abs=1e-10)
    np.testing.assert_allclose(expectation.links.label_weights, found.label_weights[scene.linked], rtol=0, atol=1e-10)
    np.testing.assert_allclose(expectation.links.class_counts, found.link_counts, rtol=0, atol=1e-10)


@pytest.mark.parametrize("linked_points", ["apart", "both"])
@both_couplings
def test_the_estimator_by_enumeration(coupling, linked_points):
    rng = np.random.default_rng(3)
    scene = random_scene(rng, Wish(3, 2, 10, 6, 0, n_uncertain=8), linked_points=linked_points, link_weight=2.0)
    model = LinkMixture(**settings_of(scene), coupling=coupling, max_iter=0).fit(**fit_arguments(scene))
    expected = enumerations[coupling](scene).log_likelihood
    assert model.log_likelihood_ == pytest.approx(expected, abs=1e-10)
    assert model.log_likelihood(scene.X, links_of(scene)) == pytest.approx(expected, abs=1e-10)
    assert model.annotator_reliability_ == {}


@both_couplings
def test_a_confidence_of_one_is_a_certain_link(coupling):
    X, y = blobs(60)
    links = Links.from_labels(y, 25, random_state=0)
    sure = Links(links.must, links.cannot, must_confidence=1.0, cannot_confidence=np.ones(links.n_cannot))
    one, other = (
        LinkMixture(3, coupling=coupling, tol=0, max_iter=8, random_state=0).fit(X, links=given)
        for given in (links, sure)
    )
    np.testing.assert_array_equal(one.log_likelihood_trace_, other.log_likelihood_trace_)
    for name in ("class_weights_", "means_", "covariances_", "labels_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(one.links_to_review_, other.links_to_review_)


@both_couplings
@pytest.mark.parametrize("seed", range(4))
def test_a_link_that_is_almost_certain_is_almost_a_certain_one(coupling, seed):
    """There is no jump at a confidence of one: J, the labels and the next class weights are continuous up to it."""
    rng = np.random.default_rng(seed)
    scene = random_scene(rng, Wish(3, 1, 8, 6, 6))
    assert {s.same for s in scene.statements} == {True, False}
    certain = enumerations[coupling](scene)
    made = {"pairwise": Pairwise(), "graph": Graph()}[coupling]

    def step(asked):
        model, data, parameters = engine_input(asked, made, reg_covar=1.0)
        expectation = engine.expect(model, data, parameters)
        return expectation, engine.maximise(model, expectation, parameters)

    _, after = step(scene)
    for epsilon in (1e-6, 1e-9, 1e-12):
        close = 1e5 * epsilon + 1e-10
        nearly = replace(scene, statements=tuple(replace(s, confidence=1 - epsilon) for s in scene.statements))
        expectation, after_nearly = step(nearly)
        assert expectation.log_likelihood == pytest.approx(certain.log_likelihood, abs=close)
        labels = certain.label_weights[scene.linked]
        np.testing.assert_allclose(expectation.links.label_weights, labels, rtol=0, atol=close)
        np.testing.assert_allclose(after_nearly.class_weights, after.class_weights, rtol=0, atol=close)


@pytest.mark.parametrize("density", ["gaussian", "student"])
def test_a_fit_to_links_that_are_almost_certain(density):
    """Many links in one network, all the way."""
    X, y = blobs(80, spread=3.0)
    links = Links.from_labels(y, 60, random_state=0)
    q = 1 - 1e-9
    nearly = Links(links.must, links.cannot, must_confidence=q, cannot_confidence=q)
    one, other = (
        LinkMixture(3, coupling="graph", density=density, tol=0, max_iter=20, random_state=0).fit(X, links=given)
        for given in (links, nearly)
    )
    np.testing.assert_allclose(one.log_likelihood_trace_, other.log_likelihood_trace_, rtol=0, atol=1e-3)
    np.testing.assert_allclose(one.class_weights_, other.class_weights_, rtol=0, atol=1e-5)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=0, atol=1e-4)
    np.testing.assert_array_equal(one.labels_, other.labels_)


@both_couplings
def test_half_a_confidence_says_little(coupling):
    """With q = 1/2 a network learns nothing; in the pairwise model a pair is an even mixture of both kinds."""
    rng = np.random.default_rng(2)
    scene = random_scene(rng, Wish(3, 1, 8, 6, 0))
    scene = replace(scene, statements=(Statement(0, 1, True, 0.5), Statement(2, 3, False, 0.5)))
    found = enumerations[coupling](scene)
    assert_step(scene, Pairwise() if coupling == "pairwise" else Graph(), found)
    if coupling == "graph":
        alone = replace(scene, statements=())
        assert found.log_likelihood == pytest.approx(enumerate_graph(alone).log_likelihood + 2 * np.log(0.5), abs=1e-10)


@both_couplings
def test_uncertain_links_may_contradict_each_other(coupling):
    """Also about the same pair; only contradictions between certain links are refused."""
    X, y = blobs(60)
    must = [(0, 1), (1, 2), (0, 1)]
    cannot = [(0, 2), (0, 1), (1, 2), (5, 6)]
    with pytest.raises(LinkConflict):
        LinkMixture(3, coupling=coupling).fit(X, links=Links(must, cannot))
    doubted = Links(must, cannot, must_confidence=0.9, cannot_confidence=0.8)
    model = LinkMixture(3, coupling=coupling, random_state=0, n_init=5).fit(X, links=doubted)
    assert_never_falls(model.log_likelihood_trace_)
    assert purity(y, model.predict(X)) > 0.95


@both_couplings
def test_certain_links_are_never_traded_for_uncertain_ones(coupling):
    X, y = blobs(60)
    certain = Links.from_labels(y, 10, random_state=1)
    must, cannot, _, _ = flipped(Links.from_labels(y, 60, random_state=2), 0.5, seed=0)
    links = certain.union(Links(must, cannot, must_confidence=0.95, cannot_confidence=0.95))
    model = LinkMixture(3, coupling=coupling, random_state=0).fit(X, links=links)
    assert links_satisfied(model.labels_, certain) == 1.0


@both_couplings
@given(seeds, st.integers(2, 4), st.integers(1, 40))
@settings(max_examples=15)
def test_j_never_falls(coupling, seed, n_classes, n_links):
    rng, X, must, cannot = noisy_problem(seed, n_classes, n_links)
    links = Links(
        must,
        cannot,
        must_confidence=rng.uniform(0.5, 0.99, size=len(must)),
        cannot_confidence=rng.uniform(0.5, 0.99, size=len(cannot)),
    )
    model = LinkMixture(n_classes, coupling=coupling, reg_covar=1e-2, tol=0, max_iter=15, random_state=seed % 1000)
    model.fit(X, links=links)
    assert_never_falls(model.log_likelihood_trace_)


@both_couplings
def test_one_class_takes_uncertain_must_links(coupling):
    """With one class no pair can be apart: a doubtful must-link must be right."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    links = Links(must=[(0, 1), (2, 3)], must_confidence=0.8)
    model = LinkMixture(1, coupling=coupling).fit(X, links=links)
    assert np.isfinite(model.log_likelihood_)
    assert model.labels_.tolist() == [0] * 20


@both_couplings
@pytest.mark.parametrize("seed", range(2))
def test_wrong_links_with_a_confidence_hurt_less_than_certain_ones(coupling, seed):
    """A fifth of sixty links is wrong; no two share a point, so that only the points contradict them."""
    X, y = make_blobs(200, centers=[[0, 0], [5, 0], [0, 5]], random_state=seed)
    rows = np.random.default_rng(seed).permutation(200)[:120].reshape(-1, 2)
    same = y[rows[:, 0]] == y[rows[:, 1]]
    must, cannot, _, _ = flipped(Links(rows[same], rows[~same]), 0.2, seed)
    scores, errors = [], []
    for confidence in (1.0, 0.8):
        links = Links(must, cannot, must_confidence=confidence, cannot_confidence=confidence)
        model = LinkMixture(3, coupling=coupling, n_init=5, random_state=0).fit(X, links=links)
        scores.append(purity(y, model.predict(X)))
        errors.append(np.abs(model.covariances_[:, 0] - np.eye(2)).max())  # wrong certain links stretch the classes
    assert scores[0] <= scores[1]
    assert scores[1] > 0.97
    assert errors[1] < errors[0] / 2


# Learned reliability.


@both_couplings
@pytest.mark.parametrize("seed", range(3))
def test_the_m_step_of_the_reliability_is_a_share_of_right_links(coupling, seed):
    """Right links plus nine, divided by all links plus ten; what is right comes from enumeration."""
    rng = np.random.default_rng(seed)
    scene = random_scene(rng, Wish(3, 1, 10, 6, 0, n_uncertain=9, annotators=("ann", "bob", "cid")))
    made = {"pairwise": Pairwise(learn_reliability=True), "graph": Graph(learn_reliability=True)}[coupling]
    model, data, parameters = engine_input(scene, made, reg_covar=1.0)
    annotators = list(model.coupling.annotators)
    # The first guess is the mean of the confidences given, and at most 0.9.
    for name, first in zip(annotators, parameters.reliability, strict=True):
        given_confidence = np.mean([s.confidence for s in scene.statements if s.annotator == name])
        assert first == pytest.approx(min(given_confidence, 0.9), abs=1e-12)

    reliability = dict(zip(annotators, rng.uniform(0.6, 0.95, size=len(annotators)), strict=True))
    parameters = replace(parameters, reliability=np.array([reliability[name] for name in annotators]))
    believed = replace(
        scene, statements=tuple(replace(s, confidence=float(reliability[s.annotator])) for s in scene.statements)
    )
    found = enumerations[coupling](believed)
    expectation = engine.expect(model, data, parameters)
    assert expectation.log_likelihood == pytest.approx(found.log_likelihood, abs=1e-10)
    np.testing.assert_allclose(expectation.links.label_weights, found.label_weights[scene.linked], rtol=0, atol=1e-10)
    after = engine.maximise(model, expectation, parameters)
    for name, value in zip(annotators, after.reliability, strict=True):
        mine = [right for right, s in zip(found.right, scene.statements, strict=True) if s.annotator == name]
        expected = (sum(mine) + PRIOR_RIGHT) / (len(mine) + PRIOR_RIGHT + PRIOR_WRONG)
        assert value == pytest.approx(expected, abs=1e-10)
    log_prior = sum(PRIOR_RIGHT * np.log(q) + PRIOR_WRONG * np.log(1 - q) for q in reliability.values())
    assert engine.log_prior(model, parameters) == pytest.approx(log_prior, abs=1e-10)


@both_couplings
def test_the_trace_holds_the_prior_and_log_likelihood_does_not(coupling):
    X, y = blobs(80)
    must, cannot, _, _ = flipped(Links.from_labels(y, 40, random_state=0), 0.2, seed=1)
    links = Links(must, cannot, must_annotators="ann", cannot_annotators="bob")
    model = LinkMixture(3, coupling=coupling, reliability="learn", random_state=0).fit(X, links=links)
    assert set(model.annotator_reliability_) == {"ann", "bob"}
    log_prior = sum(
        PRIOR_RIGHT * np.log(q) + PRIOR_WRONG * np.log(1 - q) for q in model.annotator_reliability_.values()
    )
    assert model.log_likelihood_trace_[-1] == pytest.approx(model.log_likelihood_ + log_prior, abs=1e-8)
    assert model.log_likelihood(X, links) == pytest.approx(model.log_likelihood_, abs=1e-8)


@both_couplings
@pytest.mark.parametrize("named", ["nobody", "must only", "some", "everybody"])
def test_log_likelihood_of_the_training_data_with_learned_reliability(coupling, named):
    X, y = blobs(80, spread=2.0)
    must, cannot, _, _ = flipped(Links.from_labels(y, 40, random_state=0), 0.25, seed=1)
    names = {
        "nobody": {},
        "must only": {"must_annotators": "ann"},
        "some": {"must_annotators": [None, "ann"] * (len(must) // 2) + [7] * (len(must) % 2)},
        "everybody": {
            "must_annotators": "ann",
            "cannot_annotators": ["ann", "bob"] * (len(cannot) // 2) + ["bob"] * (len(cannot) % 2),
        },
    }[named]
    links = Links(must, cannot, **names)
    model = LinkMixture(3, coupling=coupling, reliability="learn", random_state=0).fit(X, links=links)
    assert model.log_likelihood(X, links) == pytest.approx(model.log_likelihood_, rel=1e-10)
    expected = {
        "nobody": {None},
        "must only": {None, "ann"},
        "some": {None, "ann"} | ({7} if len(must) % 2 else set()),
        "everybody": {"ann", "bob"},
    }[named]
    assert set(model.annotator_reliability_) == expected
    assert all(0 < q < 1 for q in model.annotator_reliability_.values())
    # Links of a new annotator get the initial reliability.
    newcomer = Links(must[:3], must_annotators="eva")
    doubted = Links(must[:3], must_confidence=0.9)
    given_model = LinkMixture(
        3,
        coupling=coupling,
        init={
            name: getattr(model, f"{name}_") for name in ("class_weights", "cluster_weights", "means", "covariances")
        },
        max_iter=0,
    ).fit(X)
    assert model.log_likelihood(X, newcomer) == pytest.approx(given_model.log_likelihood(X, doubted), rel=1e-10)


@both_couplings
@given(seeds, st.integers(2, 4), st.integers(1, 40), st.sampled_from([0.5, 1.0, 3.0]))
@settings(max_examples=15)
def test_the_trace_never_falls_when_reliability_is_learned(coupling, seed, n_classes, n_links, link_weight):
    rng, X, must, cannot = noisy_problem(seed, n_classes, n_links)
    links = Links(
        must,
        cannot,
        must_annotators=rng.choice(["ann", "bob"], size=len(must)),
        cannot_annotators=rng.choice(["ann", "bob", "cid"], size=len(cannot)),
    )
    model = LinkMixture(
        n_classes,
        coupling=coupling,
        reliability="learn",
        link_weight=link_weight,
        reg_covar=1e-2,
        tol=0,
        max_iter=15,
        random_state=seed % 1000,
    ).fit(X, links=links)
    assert_never_falls(model.log_likelihood_trace_)


@both_couplings
@pytest.mark.parametrize("seed", range(3))
def test_a_good_and_a_bad_annotator_are_told_apart(coupling, seed):
    X, y = blobs(200, seed)
    good = Links.from_labels(y, 60, random_state=seed)
    must, cannot, must_wrong, cannot_wrong = flipped(Links.from_labels(y, 60, random_state=seed + 100), 0.4, seed)
    links = Links(good.must, good.cannot, must_annotators="good", cannot_annotators="good").union(
        Links(must, cannot, must_annotators="bad", cannot_annotators="bad")
    )
    model = LinkMixture(3, coupling=coupling, reliability="learn", init="links", n_init=5, random_state=0)
    model.fit(X, links=links)
    assert purity(y, model.predict(X)) > 0.98
    assert model.annotator_reliability_["good"] > 0.95
    share_right = 1 - (must_wrong.sum() + cannot_wrong.sum()) / 60
    expected = (60 * share_right + PRIOR_RIGHT) / (60 + PRIOR_RIGHT + PRIOR_WRONG)
    assert model.annotator_reliability_["bad"] == pytest.approx(expected, abs=0.03)
    good_ones = [name for name, _ in sorted(model.annotator_reliability_.items(), key=lambda item: -item[1])]
    assert good_ones == ["good", "bad"]


@both_couplings
def test_annotators_are_believed_until_their_links_contradict_each_other(coupling):
    X, y = blobs(80)
    links = Links.from_labels(y, 30, random_state=0)
    names = [("ann", "bob")[i % 2] for i in range(30)]
    named = Links(
        links.must, links.cannot, must_annotators=names[: links.n_must], cannot_annotators=names[links.n_must :]
    )
    settings = {"n_classes": 3, "coupling": coupling, "random_state": 0}
    plain = LinkMixture(**settings).fit(X, links=links)
    assert plain.annotator_reliability_ == {}
    for reliability in ("auto", "given"):
        believed = LinkMixture(**settings, reliability=reliability).fit(X, links=named)
        assert believed.annotator_reliability_ == {}
        np.testing.assert_array_equal(believed.log_likelihood_trace_, plain.log_likelihood_trace_)
        np.testing.assert_array_equal(believed.labels_, plain.labels_)
        np.testing.assert_array_equal(believed.links_to_review_, plain.links_to_review_)
    learned = LinkMixture(**settings, reliability="learn").fit(X, links=named)
    assert set(learned.annotator_reliability_) == {"ann", "bob"}
    assert set(LinkMixture(**settings, reliability="learn").fit(X, links=links).annotator_reliability_) == {None}
    with pytest.raises(ValueError, match=r"'reliability' parameter .* Got 'maybe' instead"):
        LinkMixture(reliability="maybe").fit(X)


@both_couplings
@pytest.mark.parametrize("how", ["one pair", "a closed triangle", "more groups apart than classes"])
def test_reliability_is_learned_once_two_people_contradict_each_other(coupling, how):
    X, y = blobs(80)
    ann = Links.from_labels(y, 20, random_state=0)
    ann = Links(ann.must, ann.cannot, must_annotators="ann", cannot_annotators="ann")
    by_class = [np.flatnonzero(y == label).tolist() for label in range(3)]
    a, b, c = by_class[0][:3]
    wrong = {
        "one pair": [Links(must=[(a, b)], must_annotators="ann"), Links(cannot=[(b, a)], cannot_annotators="bob")],
        "a closed triangle": [
            Links(must=[(a, b), (b, c)], must_annotators="ann"),
            Links(cannot=[(c, a)], cannot_annotators="bob"),
        ],
        "more groups apart than classes": [
            Links(cannot=[(a, by_class[1][0]), (a, by_class[2][0])], cannot_annotators="ann"),
            Links(cannot=[(by_class[1][0], by_class[2][0])], cannot_annotators="ann"),
            Links(cannot=[(b, row) for row in (a, by_class[1][0], by_class[2][0])], cannot_annotators="bob"),
        ],
    }[how]
    links = ann
    for one in wrong:
        links = links.union(one)
    if coupling == "pairwise" and how == "more groups apart than classes":
        # Pairs are independent in this model, so the fit meets no contradiction; the labels do, and say so.
        with pytest.warns(UserWarning, match="labels_ breaks some links"):
            model = LinkMixture(3, random_state=0).fit(X, links=links)
        assert model.annotator_reliability_ == {}
        return
    settings = {"n_classes": 3, "coupling": coupling, "init": "links", "random_state": 0}
    model = LinkMixture(**settings).fit(X, links=links)
    learned = LinkMixture(**settings, reliability="learn").fit(X, links=links)
    assert model.annotator_reliability_ == learned.annotator_reliability_
    np.testing.assert_array_equal(model.log_likelihood_trace_, learned.log_likelihood_trace_)
    assert model.annotator_reliability_["bob"] < model.annotator_reliability_["ann"]
    with pytest.raises(ValueError, match="link"):
        LinkMixture(**settings, reliability="given").fit(X, links=links)


@both_couplings
def test_learning_without_any_link(coupling):
    X, _ = blobs(60)
    model = LinkMixture(3, coupling=coupling, reliability="learn", random_state=0).fit(X)
    plain = LinkMixture(3, random_state=0).fit(X)
    np.testing.assert_allclose(model.log_likelihood_trace_, plain.log_likelihood_trace_, rtol=1e-12)
    assert model.annotator_reliability_ == {}
    assert len(model.links_to_review_) == 0


@pytest.mark.parametrize("coupling", [Pairwise(), Graph(), Graph(sampling="points")])
def test_a_coupling_object_and_links_that_name_annotators(coupling):
    """It either learns reliability or takes links as given; it never lowers their confidence silently."""
    X, y = blobs(80)
    links = Links.from_labels(y, 30, random_state=0)
    named = Links(links.must, links.cannot, must_annotators="ann", cannot_annotators="ann")
    model = LinkMixture(3, coupling=coupling, random_state=0).fit(X, links=named)
    given_links = LinkMixture(3, coupling=coupling, reliability="given", random_state=0).fit(X, links=named)
    if model.annotator_reliability_:
        assert set(model.annotator_reliability_) == {"ann"}
    else:
        np.testing.assert_array_equal(model.log_likelihood_trace_, given_links.log_likelihood_trace_)
    assert model.log_likelihood(X, named) == pytest.approx(model.log_likelihood_, rel=1e-10)


@pytest.mark.parametrize("coupling", [Pairwise(learn_reliability=True), Graph(learn_reliability=True)])
def test_a_coupling_object_that_learns(coupling):
    X, y = blobs(80)
    must, cannot, _, _ = flipped(Links.from_labels(y, 30, random_state=0), 0.2, seed=0)
    links = Links(must, cannot, must_annotators="ann", cannot_annotators="bob")
    model = LinkMixture(3, coupling=coupling, random_state=0).fit(X, links=links)
    name = type(coupling).__name__.lower()
    by_name = LinkMixture(3, coupling=name, reliability="learn", random_state=0).fit(X, links=links)
    assert model.annotator_reliability_ == by_name.annotator_reliability_
    np.testing.assert_array_equal(model.labels_, by_name.labels_)
    assert model.log_likelihood(X, links) == pytest.approx(model.log_likelihood_, rel=1e-10)
    # The annotators in another order.
    turned = Links(must, cannot[::-1], must_annotators="bob", cannot_annotators="ann")
    assert model.log_likelihood(X, turned) == pytest.approx(by_name.log_likelihood(X, turned), rel=1e-10)


# Which links to review.


@both_couplings
def test_links_to_review_by_enumeration(coupling):
    """The probability follows from both points of the pair and all statements about it, in the pairwise model."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        scene = random_scene(rng, Wish(3, 1, 10, 6, 3, n_uncertain=7))
        model = LinkMixture(**settings_of(scene), coupling=coupling, max_iter=0).fit(**fit_arguments(scene))
        doubted = replace(
            scene, statements=tuple(replace(s, confidence=min(s.confidence, 0.95)) for s in scene.statements)
        )
        wrong = in_order_of_links(scene, 1 - enumerate_pairs(doubted).right)
        table = model.links_to_review_
        assert table.dtype.names == ("a", "b", "kind", "probability_wrong")
        assert table.shape == (len(scene.statements),)
        links = links_of(scene)
        expected = {
            (a, b, kind): value
            for (a, b), kind, value in zip(
                np.concatenate([links.must, links.cannot]).tolist(),
                ["must"] * links.n_must + ["cannot"] * links.n_cannot,
                wrong,
                strict=True,
            )
        }
        for row in table:
            assert row["probability_wrong"] == pytest.approx(expected[row["a"], row["b"], row["kind"]], abs=1e-10)
        assert np.all(np.diff(table["probability_wrong"]) <= 0)


def test_links_to_review_name_rows_of_x():
    X, _ = blobs(60)
    links = Links(must=[(50, 7)], cannot=[(41, 20)])
    table = LinkMixture(3, random_state=0).fit(X, links=links).links_to_review_
    assert sorted(zip(table["kind"], table["a"], table["b"], strict=True)) == [("cannot", 41, 20), ("must", 50, 7)]
    assert len(LinkMixture(3, random_state=0).fit(X).links_to_review_) == 0


@both_couplings
@pytest.mark.parametrize("how", ["given", "learn", "two annotators"])
@pytest.mark.parametrize("seed", range(2))
def test_flipped_links_come_first(coupling, how, seed):
    X, y = blobs(200, seed)
    must, cannot, must_wrong, cannot_wrong = flipped(Links.from_labels(y, 80, random_state=seed), 0.2, seed)
    links = Links(
        must,
        cannot,
        must_confidence=0.8 if how == "given" else None,
        cannot_confidence=0.8 if how == "given" else None,
        must_annotators=["ann", "bob"] * (len(must) // 2) + ["ann"] * (len(must) % 2)
        if how == "two annotators"
        else None,
        cannot_annotators="bob" if how == "two annotators" else None,
    )
    reliability = "auto" if how == "given" else "learn"
    model = LinkMixture(3, coupling=coupling, reliability=reliability, init="links", n_init=10, random_state=0)
    table = model.fit(X, links=links).links_to_review_
    wrong = {
        (a, b)
        for (a, b), bad in zip(
            np.concatenate([must, cannot]).tolist(), np.concatenate([must_wrong, cannot_wrong]), strict=True
        )
        if bad
    }
    top = set(zip(table["a"][: len(wrong)].tolist(), table["b"][: len(wrong)].tolist(), strict=True))
    assert len(top & wrong) >= 0.9 * len(wrong)
    assert purity(y, model.predict(X)) > 0.98


def test_certain_links_are_ranked_too():
    """One wrong certain link among many right ones, on blobs that are far apart."""
    X, y = blobs(200)
    right = Links.from_labels(y, 40, kind="cannot", random_state=0)
    a, b = np.flatnonzero(y == 0)[:2]
    links = Links(cannot=[*right.cannot.tolist(), (int(a), int(b))])
    model = LinkMixture(3, init="links", n_init=5, random_state=0).fit(X, links=links)
    first = model.links_to_review_[0]
    assert {int(first["a"]), int(first["b"])} == {int(a), int(b)}
    assert links_satisfied(model.labels_, links) == 1.0
