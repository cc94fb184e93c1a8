"""The graph coupling against enumeration of all labellings, and labels that satisfy the links."""

from contextlib import suppress
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs

from linkmix import LinkMixture, Links, engine, links_satisfied
from linkmix.basics.errors import DegenerateCluster, InfeasibleLinks
from linkmix.couplings import Graph, Pairwise
from linkmix.couplings.graph import SAMPLING
from linkmix.couplings.network import ApproximateInference
from linkmix.couplings.observed import LinkGraph
from relation_oracles import (
    Scene,
    Statement,
    Wish,
    assert_never_falls,
    assert_step,
    best_class_weights,
    class_weight_objective,
    class_weight_slope,
    engine_input,
    enumerate_graph,
    enumerate_pairs,
    fit_arguments,
    links_of,
    most_probable,
    random_scene,
    settings_of,
)

seeds = st.integers(0, 2**32 - 1)
every_sampling = pytest.mark.parametrize("sampling", SAMPLING)
wide = pytest.mark.filterwarnings("ignore::linkmix.couplings.network.ApproximateInference")


# Against enumeration.


@every_sampling
@pytest.mark.parametrize("kind", ["both", "must", "cannot"])
@pytest.mark.parametrize(("n_classes", "clusters_per_class"), [(2, 1), (2, 3), (3, 1), (3, 2), (4, 1)])
def test_steps_by_enumeration(n_classes, clusters_per_class, kind, sampling):
    """Overlapping links among up to eight points, some in cycles, plus free points."""
    for seed in range(3):
        rng = np.random.default_rng([seed, n_classes, clusters_per_class])
        n_linked = int(rng.integers(4, 9 if n_classes < 4 else 8))
        wish = Wish(n_classes, clusters_per_class, n_linked + 4, n_linked, int(rng.integers(3, 13)), kind=kind)
        scene = random_scene(rng, wish)
        assert scene.statements
        assert_step(scene, Graph(sampling=sampling), enumerate_graph(scene, sampling))


@every_sampling
@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("n_certain", [0, 3, 6])
def test_uncertain_links_are_observations(n_classes, n_certain, sampling):
    """A statement of confidence q is made with probability q if it is right, else 1 - q; it does not enter Z."""
    for seed in range(3):
        rng = np.random.default_rng([seed, n_classes, n_certain])
        scene = random_scene(rng, Wish(n_classes, 1 + seed, 10, 7, n_certain, n_uncertain=6))
        assert_step(scene, Graph(sampling=sampling), enumerate_graph(scene, sampling))


@given(seeds, st.integers(2, 4), st.integers(0, 10), st.integers(0, 6), st.sampled_from(SAMPLING))
@settings(max_examples=60)
def test_posteriors_by_enumeration(seed, n_classes, n_certain, n_uncertain, sampling):
    """A pair may have several statements; a certain one decides."""
    rng = np.random.default_rng(seed)
    n_linked = int(rng.integers(3, 7))
    n_pairs = n_linked * (n_linked - 1) // 2
    wish = Wish(n_classes, 1, n_linked + 1, n_linked, min(n_certain, n_pairs), min(n_uncertain, n_pairs))
    scene = random_scene(rng, wish, link_weight=float(rng.choice([0.5, 1.0, 3.0])))
    found = enumerate_graph(scene, sampling)
    model, data, parameters = engine_input(scene, Graph(sampling=sampling))
    expectation = engine.expect(model, data, parameters)
    assert expectation.log_likelihood == pytest.approx(found.log_likelihood, abs=1e-10)
    np.testing.assert_allclose(expectation.links.label_weights, found.label_weights[scene.linked], rtol=0, atol=1e-10)
    np.testing.assert_allclose(expectation.links.class_counts, found.link_counts, rtol=0, atol=1e-10)


@every_sampling
def test_a_certain_and_an_uncertain_statement_on_one_pair(sampling):
    """A certain must-link decides; a contradicting statement is unlikely, but still part of J."""
    rng = np.random.default_rng(0)
    scene = random_scene(rng, Wish(3, 1, 6, 4, 0))
    for statements in (
        (Statement(0, 1, True), Statement(0, 1, False, 0.9)),
        (Statement(0, 1, False), Statement(0, 1, True, 0.9)),
        (Statement(0, 1, True), Statement(1, 2, True), Statement(0, 2, False, 0.8), Statement(0, 2, True, 0.7)),
    ):
        one = replace(scene, statements=statements)
        assert_step(one, Graph(sampling=sampling), enumerate_graph(one, sampling))


@every_sampling
def test_the_estimator_by_enumeration(sampling):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        scene = random_scene(rng, Wish(3, 2, 12, 6, 6, n_uncertain=3))
        for linked_points, link_weight in (("apart", 1.0), ("both", 2.5)):
            one = replace(scene, linked_points=linked_points, link_weight=link_weight)
            model = LinkMixture(**settings_of(one), coupling=Graph(sampling=sampling), max_iter=0)
            model.fit(**fit_arguments(one))
            expected = enumerate_graph(one, sampling).log_likelihood
            assert model.log_likelihood_ == pytest.approx(expected, abs=1e-10)
            assert model.log_likelihood(one.X, links_of(one)) == pytest.approx(expected, abs=1e-10)


def test_sampling_must_be_known():
    known = r"sampling='pairs' is not known: choose one of 'observed', 'chunklets', 'points'"
    with pytest.raises(ValueError, match=known):
        LinkMixture(2, coupling=Graph(sampling="pairs")).fit(np.eye(4), links=Links(must=[(0, 1)]))


# The M-step of the class weights.


@every_sampling
@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("seed", range(3))
def test_class_weights_against_a_general_solver(n_classes, sampling, seed):
    """Also if a class is almost empty, and if free points have no weight."""
    rng = np.random.default_rng([seed, n_classes])
    scene = random_scene(rng, Wish(n_classes, 1, 8, 7, 9))
    found = enumerate_graph(scene, sampling)
    for free_counts in (np.zeros(n_classes), np.full(n_classes, 0.3), 50 * rng.dirichlet(np.full(n_classes, 0.2))):
        model, data, parameters = engine_input(scene, Graph(sampling=sampling))
        expectation = engine.expect(model, data, parameters).links
        weights = model.coupling.class_weights(free_counts, expectation, scene.class_weights)
        asked = replace(found, free_counts=free_counts)
        best = class_weight_objective(scene, asked, best_class_weights(scene, asked))
        assert class_weight_objective(scene, asked, weights) <= best + 1e-9 * max(1.0, abs(best))
        np.testing.assert_allclose(class_weight_slope(scene, asked, weights), 0, atol=1e-6)
        assert np.all(weights > 0)
        assert weights.sum() == pytest.approx(1, abs=1e-12)


def test_two_classes_and_nothing_but_disjoint_cannot_links_keep_their_weights():
    """If links are a condition, these say nothing about the weights."""
    coupling = Graph(sampling="chunklets").bind(Links(cannot=[(0, 1), (2, 3)]), 4, 2)
    previous = np.array([0.7, 0.3])
    expectation = coupling.expect(np.random.default_rng(0).normal(size=(4, 2)), previous)
    assert coupling.class_weights(np.zeros(2), expectation, previous).tolist() == [0.7, 0.3]


# J never falls.


def blobs(seed, n_classes, n=60, spread=2.0):
    rng = np.random.default_rng(seed)
    centres = 3.0 * rng.normal(size=(n_classes, 2))
    y = rng.integers(n_classes, size=n)
    return centres[y] + spread * rng.normal(size=(n, 2)), y


@wide
@given(
    seeds,
    st.integers(2, 4),
    st.integers(1, 2),
    st.integers(1, 40),
    st.sampled_from(SAMPLING),
    st.booleans(),
)
@settings(max_examples=25)
def test_j_never_falls(seed, n_classes, clusters_per_class, n_links, sampling, uncertain):
    X, y = blobs(seed, n_classes)
    links = Links.from_labels(y, n_links, random_state=seed)
    if uncertain:
        links = Links(links.must, links.cannot, must_confidence=0.8, cannot_confidence=0.7)
    graph = LinkGraph(links.restrict(links.points), len(links.points), n_classes)
    model = LinkMixture(
        n_classes,
        clusters_per_class=clusters_per_class,
        coupling=Graph(sampling=sampling),
        reg_covar=1e-2,
        tol=0,
        max_iter=15,
        random_state=seed % 1000,
    ).fit(X, links=links)
    if graph.network.is_exact:
        assert_never_falls(model.log_likelihood_trace_)
    assert np.isfinite(model.log_likelihood_trace_).all()


@every_sampling
@given(seeds, st.integers(2, 4), st.integers(1, 25), st.booleans())
@settings(max_examples=15)
def test_bare_em_never_lowers_j(sampling, seed, n_classes, n_links, weighted):
    """Without `reg_covar`, and without the engine's precaution that undoes a step."""
    rng = np.random.default_rng(seed)
    scene = random_scene(rng, Wish(n_classes, 1, 60, 14, n_links, n_uncertain=4))
    d = scene.X.shape[1]
    scene = replace(scene, covariances=np.tile(5 * np.eye(d), (n_classes, 1, 1, 1)))  # too wide to degenerate soon
    if weighted:
        scene = replace(scene, sample_weight=rng.uniform(0.5, 2, size=60))
    model, data, parameters = engine_input(scene, Graph(sampling=sampling))
    trace = []
    with suppress(DegenerateCluster):  # a class of one point, where J has no bound
        for _ in range(10):
            expectation = engine.expect(model, data, parameters)
            trace.append(expectation.log_likelihood)
            parameters = engine.maximise(model, expectation, parameters)
    assert len(trace) >= 4
    assert_never_falls(np.array(trace))


# Pairwise and graph agree if links share no point, and the network is a condition on chunklets.

CHUNKLETS = Graph(sampling="chunklets")


def disjoint_links(rng, y, n_links):
    rows = rng.permutation(len(y))[: 2 * n_links].reshape(-1, 2)
    same = y[rows[:, 0]] == y[rows[:, 1]]
    return Links(must=rows[same], cannot=rows[~same])


@pytest.mark.parametrize(("n_classes", "clusters_per_class"), [(2, 1), (2, 2), (3, 1), (4, 2)])
def test_pairwise_is_graph_on_disjoint_links_at_every_iteration(n_classes, clusters_per_class):
    """One step of each from the parameters along the pairwise fit, so that rounding errors cannot accumulate."""
    rng = np.random.default_rng(n_classes)
    X, y = blobs(n_classes, n_classes, n=80)
    links = disjoint_links(rng, y, 20)
    shape = {"n_classes": n_classes, "clusters_per_class": clusters_per_class, "reg_covar": 1e-3, "tol": 0}
    init = "kmeans++"
    for _ in range(20):
        one, other = (
            LinkMixture(**shape, coupling=coupling, init=init, max_iter=1, random_state=0).fit(X, links=links)
            for coupling in ("pairwise", CHUNKLETS)
        )
        np.testing.assert_allclose(other.log_likelihood_trace_, one.log_likelihood_trace_, rtol=1e-12, atol=1e-10)
        init = {}
        for name in ("class_weights", "cluster_weights", "means", "covariances"):
            init[name] = getattr(one, f"{name}_")
            np.testing.assert_allclose(getattr(other, f"{name}_"), init[name], rtol=0, atol=1e-10)
        np.testing.assert_array_equal(one.labels_, other.labels_)


def test_pairwise_is_graph_on_disjoint_links_all_the_way():
    rng = np.random.default_rng(1)
    X, y = make_blobs(150, centers=[[0, 0], [6, 0], [0, 6]], random_state=1)
    links = disjoint_links(rng, y, 30)
    for max_iter in range(1, 21):
        one, other = (
            LinkMixture(3, coupling=coupling, tol=0, max_iter=max_iter, random_state=3).fit(X, links=links)
            for coupling in ("pairwise", CHUNKLETS)
        )
        np.testing.assert_allclose(other.log_likelihood_trace_, one.log_likelihood_trace_, rtol=1e-12, atol=1e-10)
        for name in ("class_weights_", "cluster_weights_", "means_", "covariances_"):
            np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=0, atol=1e-10)


@given(seeds, st.integers(2, 4))
@settings(max_examples=30)
def test_pairwise_is_graph_on_disjoint_links_in_one_step(seed, n_classes):
    rng = np.random.default_rng(seed)
    links = disjoint_links(rng, rng.integers(n_classes, size=12), 5).restrict(np.arange(12))
    points = links.points
    links = links.restrict(points)
    log_density = 5 * rng.normal(size=(len(points), n_classes))
    weights = rng.dirichlet(np.full(n_classes, 2.0))
    free_counts = 3 * rng.dirichlet(np.full(n_classes, 2.0))
    found = []
    for coupling in (Pairwise(), CHUNKLETS):
        bound = coupling.bind(links, len(points), n_classes)
        expectation = bound.expect(log_density, weights)
        found.append((expectation, bound.class_weights(free_counts, expectation, weights)))
    (one, one_weights), (other, other_weights) = found
    assert other.log_likelihood == pytest.approx(one.log_likelihood, abs=1e-10)
    np.testing.assert_allclose(other.label_weights, one.label_weights, rtol=0, atol=1e-10)
    np.testing.assert_allclose(other.class_counts, one.class_counts, rtol=0, atol=1e-10)
    np.testing.assert_allclose(other_weights, one_weights, rtol=0, atol=1e-10)


@every_sampling
def test_links_that_share_points_part_the_couplings(sampling):
    rng = np.random.default_rng(5)
    scene = random_scene(rng, Wish(3, 1, 6, 4, 0))
    scene = replace(scene, statements=(Statement(0, 1, True), Statement(1, 2, True)))
    pairs, graph = enumerate_pairs(scene), enumerate_graph(scene, sampling)
    assert abs(pairs.log_likelihood - graph.log_likelihood) > 1e-3
    assert_step(scene, Pairwise(), pairs)
    assert_step(scene, Graph(sampling=sampling), graph)


# Reference values.


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


def start_of(reference):
    return {
        "class_weights": reference["alpha0"],
        "cluster_weights": np.ones((3, 1)),
        "means": reference["mu0"][:, None],
        "covariances": reference["Sigma0"][:, None],
    }


@pytest.mark.parametrize("reference", ["gmmec_mustlink_onestep"], indirect=True)
@pytest.mark.parametrize(("sampling", "name", "posterior"), [("chunklets", "A", "A"), ("points", "B", "BC")])
def test_one_step_with_chunklets(reference, sampling, name, posterior):
    X, links = reference["X"], Links(must=reference["ML"])
    settings = {"coupling": Graph(sampling=sampling), "init": start_of(reference), "reg_covar": 0, "tol": 0}
    model = LinkMixture(3, **settings, max_iter=1).fit(X, links=links)
    assert_close(model.log_likelihood_trace_[0], reference[f"ll_{name}"])
    assert_close(model.class_weights_, reference[f"alpha_{name}"])
    assert_close(model.means_[:, 0], reference[f"mu_{posterior}"])
    assert_close(model.covariances_[:, 0], reference[f"Sigma_{posterior}"])

    points = links.points
    bound = Graph(sampling=sampling).bind(links.restrict(points), len(points), 3)
    density = LinkMixture(3, **settings, max_iter=0).fit(X, links=links)
    log_joint = np.log(density.predict_proba(X[points])) + density.score_samples(X[points])[:, None]
    labels = bound.expect(log_joint - np.log(reference["alpha0"]), reference["alpha0"]).label_weights
    assert_close(labels, reference[f"P_{posterior}"][reference["chunk"][points]])


@pytest.mark.parametrize("reference", ["gmpr_vs_gmmec_disjoint"], indirect=True)
@pytest.mark.parametrize(("sampling", "name"), [("chunklets", "gmmec1"), ("points", "gmmec2")])
def test_the_end_of_the_trace(reference, sampling, name):
    model = LinkMixture(
        3,
        coupling=Graph(sampling=sampling),
        init=start_of(reference),
        reg_covar=0,
        tol=0,
        max_iter=len(reference["gmmec1_ll"]) - 1 if name == "gmmec1" else 60,  # the file has no trace for the second
    ).fit(reference["X"], links=Links(must=reference["ML"], cannot=reference["CL"]))
    if name == "gmmec1":
        assert_close(model.log_likelihood_trace_, reference["gmmec1_ll"])
        assert_close(model.class_weights_, reference["gmmec1_alpha"])
    # The last class weights are as accurate as both solvers, which here is not quite 1e-8.
    np.testing.assert_allclose(model.class_weights_, reference[f"{name}_alpha"], rtol=0, atol=1e-7)
    assert_close(model.means_[:, 0], reference[f"{name}_mu"])
    assert_close(model.covariances_[:, 0], reference[f"{name}_Sigma"])


# Links that no labelling satisfies.


def rows_named(error):
    return {tuple(sorted(pair)) for pair in error.value.links.cannot.tolist()}


def infeasible(n_classes):
    """A clique of one point too many, not among the first rows, and feasible links around it."""
    rows = [3, 8, 11, 14, 17][: n_classes + 1]
    clique = list(combinations(rows, 2))
    return rows, Links(must=[(0, 1), (20, 21)], cannot=[*clique, (0, 20), (5, 3)])


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_a_clique_with_too_few_classes_is_refused_with_its_rows(n_classes):
    X, _ = blobs(0, n_classes)
    rows, links = infeasible(n_classes)
    model = LinkMixture(n_classes, coupling="graph", random_state=0)
    with pytest.raises(InfeasibleLinks, match=f"no labelling with {n_classes} classes meets these") as error:
        model.fit(X, links=links)
    assert rows_named(error) == set(combinations(rows, 2))
    for a, b in combinations(rows, 2):
        assert f"{a}-{b}" in str(error.value) or f"{b}-{a}" in str(error.value)
    assert not hasattr(model, "means_")
    assert isinstance(error.value, ValueError)


@pytest.mark.parametrize("length", [3, 5, 9])
def test_an_odd_cycle_with_two_classes_is_refused_with_its_rows(length):
    X, _ = blobs(0, 2)
    rows = np.random.default_rng(length).permutation(np.arange(10, 40))[:length]
    cycle = np.stack([rows, np.roll(rows, 1)], axis=1)
    links = Links(must=[(0, 1)], cannot=[*cycle.tolist(), (1, 2)])
    with pytest.raises(InfeasibleLinks) as error:
        LinkMixture(2, coupling="graph").fit(X, links=links)
    assert rows_named(error) == {tuple(sorted(pair)) for pair in cycle.tolist()}
    LinkMixture(3, coupling="graph", random_state=0, reg_covar=1e-2).fit(X, links=links)


def test_an_odd_cycle_through_a_chunklet_names_cannot_links_of_the_user():
    X, _ = blobs(0, 2)
    links = Links(must=[(30, 31), (31, 32)], cannot=[(30, 5), (5, 7), (7, 32)])
    with pytest.raises(InfeasibleLinks, match="together with the must-links") as error:
        LinkMixture(2, coupling="graph").fit(X, links=links)
    assert rows_named(error) == {(5, 30), (5, 7), (7, 32)}


@pytest.mark.parametrize("coupling", ["graph", "pairwise"])
def test_a_refused_fit_leaves_an_earlier_one_alone(coupling):
    X, y = blobs(0, 2)
    model = LinkMixture(2, coupling="graph", random_state=0).fit(X, links=Links.from_labels(y, 5, random_state=0))
    before = model.means_.copy(), model.labels_.copy(), model.log_likelihood_
    with pytest.raises(InfeasibleLinks):
        model.fit(X, links=infeasible(2)[1])
    np.testing.assert_array_equal(model.means_, before[0])
    np.testing.assert_array_equal(model.labels_, before[1])
    assert model.log_likelihood_ == before[2]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_pairwise_coupling_warns_of_links_that_no_labelling_meets(n_classes):
    X, _ = blobs(0, n_classes)
    rows, links = infeasible(n_classes)
    with pytest.warns(UserWarning, match=r"labels_ breaks some links: no labelling with") as caught:
        model = LinkMixture(n_classes, random_state=0, reg_covar=1e-2).fit(X, links=links)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert all(str(row) in message for row in rows)
    assert caught[0].filename == __file__
    assert 0 < links_satisfied(model.labels_, links) < 1
    assert model.labels_.shape == (len(X),)


def test_uncertain_links_that_contradict_each_other_are_fine():
    X, _ = blobs(0, 2)
    _, links = infeasible(2)
    doubted = Links(links.must, links.cannot, must_confidence=0.9, cannot_confidence=0.9)
    model = LinkMixture(2, coupling="graph", random_state=0).fit(X, links=doubted)
    assert np.isfinite(model.log_likelihood_)


# Labels that satisfy links.


@wide
@pytest.mark.parametrize("coupling", ["pairwise", "graph"])
@given(seeds, st.integers(2, 5), st.integers(10, 60), st.integers(1, 200), st.booleans())
@settings(max_examples=25)
def test_labels_honour_every_consistent_link(coupling, seed, n_classes, n, n_links, informative):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    X = (4 * rng.normal(size=(n_classes, 2))[y] if informative else 0) + rng.normal(size=(n, 2))
    links = Links.from_labels(y, min(n_links, n * (n - 1) // 2), random_state=seed)
    model = LinkMixture(n_classes, coupling=coupling, reg_covar=1e-1, tol=0, max_iter=2, random_state=seed % 1000)
    model.fit(X, links=links)
    assert links_satisfied(model.labels_, links) == 1.0
    alone = np.setdiff1d(np.arange(n), links.points)
    np.testing.assert_array_equal(model.labels_[alone], model.predict(X)[alone])


@wide
@pytest.mark.parametrize("coupling", ["pairwise", "graph"])
@pytest.mark.parametrize(("n_classes", "kind"), [(2, "cannot"), (3, "cannot"), (3, "both"), (4, "cannot"), (5, "both")])
def test_labels_honour_links_in_large_components(coupling, n_classes, kind):
    """Almost all points in one component with many cycles, as random links produce it."""
    rng = np.random.default_rng(n_classes)
    y = rng.integers(n_classes, size=300)
    links = Links.from_labels(y, 250, kind=kind, random_state=1)
    X = rng.normal(size=(300, 2))  # carries no information about the links
    model = LinkMixture(n_classes, coupling=coupling, tol=0, max_iter=1, random_state=0).fit(X, links=links)
    assert links_satisfied(model.labels_, links) == 1.0
    assert links_satisfied(model.predict(X), links) < 0.9


@pytest.mark.parametrize(
    ("coupling", "sampling"),
    [("pairwise", "chunklets"), *((Graph(sampling=sampling), sampling) for sampling in SAMPLING)],
)
@pytest.mark.parametrize("seed", range(8))
def test_labels_are_jointly_the_most_probable(coupling, sampling, seed):
    rng = np.random.default_rng(seed)
    n_classes = int(rng.integers(2, 5))
    scene = random_scene(rng, Wish(n_classes, 1, 12, 7, int(rng.integers(1, 12)), n_uncertain=int(rng.integers(0, 5))))
    model = LinkMixture(**settings_of(scene), coupling=coupling, max_iter=0).fit(**fit_arguments(scene))
    np.testing.assert_array_equal(model.labels_, most_probable(scene, sampling))
    alone = (scene.class_weights * scene.classes).argmax(axis=1)
    np.testing.assert_array_equal(model.predict(scene.X), alone)


@pytest.mark.parametrize("sampling", ["observed", "points"])
@pytest.mark.parametrize("seed", range(4))
def test_labels_are_those_of_the_model_that_was_fitted_with_points_drawn_apart(seed, sampling):
    """A chunklet of r points has the prior a^r, in J and in labels_."""
    rng = np.random.default_rng([seed, 7])
    scene = random_scene(rng, Wish(3, 1, 10, 8, 8, kind="must"))
    scene = replace(scene, class_weights=np.array([0.9, 0.07, 0.03]))
    model = LinkMixture(**settings_of(scene), coupling=Graph(sampling=sampling), max_iter=0)
    model.fit(**fit_arguments(scene))
    np.testing.assert_array_equal(model.labels_, most_probable(scene, sampling))


def test_labels_and_predictions_differ_where_links_speak():
    X = np.array([[0.0], [0.1], [5.0], [5.1], [0.05], [4.9]])
    scene = Scene(
        X=X,
        statements=(Statement(1, 3, True),),
        class_weights=np.array([0.5, 0.5]),
        cluster_weights=np.ones((2, 1)),
        means=np.array([[[0.0]], [[5.0]]]),
        covariances=np.ones((2, 1, 1, 1)),
        hidden=np.array([0, 0, 1, 1, 0, 1]),
    )
    model = LinkMixture(**settings_of(scene), max_iter=0).fit(**fit_arguments(scene))
    assert model.predict(X).tolist() == [0, 0, 1, 1, 0, 1]
    assert model.labels_[1] == model.labels_[3]
    np.testing.assert_array_equal(model.labels_, most_probable(scene, "chunklets"))


# The order of points and links does not matter.


@given(seeds, st.integers(2, 4))
@settings(max_examples=20)
def test_the_order_of_links_points_and_classes_does_not_matter(seed, n_classes):
    rng = np.random.default_rng(seed)
    scene = random_scene(rng, Wish(n_classes, 1, 9, 7, 8, n_uncertain=3))
    before = LinkMixture(**settings_of(scene), coupling="graph", max_iter=0).fit(**fit_arguments(scene))
    rows, classes = rng.permutation(9), rng.permutation(n_classes)
    place = np.argsort(rows)
    turned = [replace(s, a=int(place[s.b]), b=int(place[s.a])) for s in scene.statements]
    other = replace(
        scene,
        X=scene.X[rows],
        statements=tuple(turned[i] for i in rng.permutation(len(turned))),
        class_weights=scene.class_weights[classes],
        cluster_weights=scene.cluster_weights[classes],
        means=scene.means[classes],
        covariances=scene.covariances[classes],
    )
    after = LinkMixture(**settings_of(other), coupling="graph", max_iter=0).fit(**fit_arguments(other))
    assert after.log_likelihood_ == pytest.approx(before.log_likelihood_, abs=1e-10)
    np.testing.assert_array_equal(classes[after.labels_], before.labels_[rows])


@every_sampling
def test_far_tails_stay_finite(sampling):
    """If each point can only be in one class, and the links say otherwise."""
    log_density = np.array([[0.0, -900.0, -2000.0]] * 4)
    links = Links(cannot=[(0, 1), (1, 2), (2, 0), (2, 3)])
    bound = Graph(sampling=sampling).bind(links, 4, 3)
    expectation = bound.expect(log_density, np.array([0.5, 0.3, 0.2]))
    assert np.isfinite(expectation.log_likelihood)
    np.testing.assert_allclose(expectation.label_weights.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(expectation.label_weights[:3].sum(axis=0), 1, rtol=1e-12)


@every_sampling
def test_no_links_make_a_graph_that_says_nothing(sampling):
    bound = Graph(sampling=sampling).bind(Links(), 0, 3)
    expectation = bound.expect(np.empty((0, 3)), np.full(3, 1 / 3))
    assert expectation.log_likelihood == 0
    assert expectation.class_counts.tolist() == [0, 0, 0]
    assert expectation.label_weights.shape == (0, 3)
    np.testing.assert_allclose(
        bound.class_weights(np.array([1.0, 2, 5]), expectation, np.ones(3)), [0.125, 0.25, 0.625]
    )


def test_a_network_that_is_too_wide_is_named_and_its_links_still_hold():
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=40)
    X = 3 * rng.normal(size=(5, 2))[y] + rng.normal(size=(40, 2))
    links = Links.from_labels(y, 110, kind="cannot", random_state=0)
    with pytest.warns(ApproximateInference, match="too entangled for exact inference"):
        model = LinkMixture(5, coupling="graph", reg_covar=1e-2, max_iter=2, tol=0, random_state=0).fit(X, links=links)
    assert links_satisfied(model.labels_, links) == 1.0
