import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning

from linkmix import LinkMixture, Links, links_satisfied
from linkmix.couplings import Graph, MeanField, Pairwise, Projection, Uncoupled
from oracles import (
    Problem,
    brute_force,
    class_weight_residual,
    class_weights_by_search,
    random_links,
    random_problem,
)

seeds = st.integers(0, 2**32 - 1)


def class_log_density(problem: Problem) -> np.ndarray:
    """Log-density of the linked points under each class of a problem with full covariances, shape (n_linked, M)."""
    points = problem.X[problem.linked]
    M, K = problem.shape
    density = np.zeros((len(points), M))
    for m in range(M):
        for k in range(K):
            component = multivariate_normal(problem.means[m, k], problem.covariances[m, k])
            density[:, m] += problem.cluster_weights[m, k] * component.pdf(points)
    return np.log(density)


def bind(problem: Problem):
    number = {point: position for position, point in enumerate(problem.linked)}
    links = Links(
        must=[(number[a], number[b]) for a, b in problem.must],
        cannot=[(number[a], number[b]) for a, b in problem.cannot],
    )
    return Pairwise().bind(links, len(problem.linked), problem.shape[0])


@pytest.mark.parametrize(
    ("n_classes", "kind"), [(1, "must"), *((m, kind) for m in (2, 3, 4) for kind in ("both", "must", "cannot"))]
)
@pytest.mark.parametrize("seed", range(3))
def test_posteriors_by_enumeration(n_classes, kind, seed):
    rng = np.random.default_rng([seed, n_classes])
    problem = random_problem(rng, n_classes, 1 + seed, "full", kind=kind, n_points=8, n_links=12)
    assert problem.must or problem.cannot
    answer = brute_force(problem)
    free_likelihood = brute_force(Problem(problem.X[problem.free], [], [], *problem.init.values())).log_likelihood
    expectation = bind(problem).expect(class_log_density(problem), problem.class_weights)
    labels = answer.link_weights.sum(axis=2)[problem.linked]
    np.testing.assert_allclose(expectation.label_weights, labels, rtol=0, atol=1e-10)
    np.testing.assert_allclose(expectation.class_counts, answer.must_counts + answer.cannot_counts, rtol=0, atol=1e-10)
    assert expectation.log_likelihood == pytest.approx(answer.log_likelihood - free_likelihood, abs=1e-10)


def test_links_that_no_labelling_meets_by_enumeration():
    """Three points, pairwise apart, and two classes: each link is a separate item, independent of the others."""
    problem = random_problem(np.random.default_rng(0), 2, 1, "full", n_points=5, n_links=0)
    problem = replace(problem, cannot=[(0, 1), (1, 2), (2, 0)], must=[(0, 3)])
    answer = brute_force(problem)
    expectation = bind(problem).expect(class_log_density(problem), problem.class_weights)
    np.testing.assert_allclose(expectation.label_weights, answer.link_weights.sum(axis=2)[:4], rtol=0, atol=1e-10)
    np.testing.assert_allclose(expectation.class_counts, answer.must_counts + answer.cannot_counts, rtol=0, atol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_class_weights_by_a_general_solver(n_classes):
    problem = random_problem(np.random.default_rng(n_classes), n_classes, 2, "full", n_points=8, n_links=9)
    answer = brute_force(problem)
    coupling = bind(problem)
    expectation = coupling.expect(class_log_density(problem), problem.class_weights)
    free_counts = answer.free_counts + 0.5
    weights = coupling.class_weights(free_counts, expectation, problem.class_weights)
    counts, n_cannot = answer.class_counts + 0.5, len(problem.cannot)
    assert n_cannot
    np.testing.assert_allclose(class_weight_residual(weights, counts, n_cannot), 0, atol=1e-10)
    np.testing.assert_allclose(weights, class_weights_by_search(counts, n_cannot), rtol=0, atol=1e-6)


def random_posteriors(seed, n_classes, scale, shift=0.0):
    rng = np.random.default_rng(seed)
    must, cannot = random_links(rng, 7, 10)
    links = Links(must=must, cannot=cannot)
    points = links.points
    coupling = Pairwise().bind(links.restrict(points), len(points), n_classes)
    log_density = scale * rng.normal(size=(len(points), n_classes)) + shift
    weights = rng.dirichlet(np.ones(n_classes)) + 1e-12
    return links, log_density, coupling.expect(log_density, weights / weights.sum())


@given(seeds, st.integers(2, 5), st.sampled_from([0.0, 1.0, 30.0, 1e4]), st.sampled_from([0.0, -1e7, -1e12]))
def test_counts_add_up(seed, n_classes, scale, shift):
    """Also far away from everything, where even the last digit of a log-density is large."""
    links, _, expectation = random_posteriors(seed, n_classes, scale, shift)
    n_ends = np.bincount(np.searchsorted(links.points, np.concatenate([links.must, links.cannot]).ravel()))
    np.testing.assert_allclose(expectation.label_weights.sum(axis=1), n_ends, rtol=1e-10)
    assert expectation.class_counts.sum() == pytest.approx(links.n_must + 2 * links.n_cannot, rel=1e-10)
    assert np.isfinite(expectation.log_likelihood)


@given(seeds, st.integers(2, 5), st.sampled_from([0.0, 1.0, 30.0, 1e4]))
def test_both_ends_of_a_cannot_link_share_at_most_one_of_each_class(seed, n_classes, scale):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(n_classes)) + 1e-12
    coupling = Pairwise().bind(Links(cannot=[(0, 1)]), 2, n_classes)
    labels = coupling.expect(scale * rng.normal(size=(2, n_classes)), weights / weights.sum()).label_weights
    np.testing.assert_allclose(labels.sum(axis=1), 1.0, rtol=1e-10)
    assert np.all(labels.sum(axis=0) <= 1 + 1e-10)
    if n_classes == 2:
        np.testing.assert_allclose(labels.sum(axis=0), 1.0, rtol=1e-10)


@given(seeds, st.integers(2, 5), st.sampled_from([1.0, 30.0, 1e4]))
def test_the_order_of_links_and_of_their_ends_does_not_matter(seed, n_classes, scale):
    links, log_density, expectation = random_posteriors(seed, n_classes, scale)
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(n_classes)) + 1e-3
    weights /= weights.sum()
    points = links.points
    turned = Links(must=links.must[::-1, ::-1], cannot=links.cannot[::-1, ::-1]).restrict(points)
    one = Pairwise().bind(links.restrict(points), len(points), n_classes).expect(log_density, weights)
    other = Pairwise().bind(turned, len(points), n_classes).expect(log_density, weights)
    assert other.log_likelihood == pytest.approx(one.log_likelihood, rel=1e-12)
    np.testing.assert_allclose(other.label_weights, one.label_weights, atol=1e-10)
    assert expectation.label_weights.shape == one.label_weights.shape


def test_posteriors_far_in_the_tails():
    """If the first end is certain of its class, the second must choose between very improbable classes."""
    log_density = np.array([[0.0, -800.0, -900.0], [0.0, -800.0, -805.0]])
    labels = Pairwise().bind(Links(cannot=[(0, 1)]), 2, 3).expect(log_density, np.full(3, 1 / 3)).label_weights
    # Of the pairs of different labels, (0, 1) and (1, 0) weigh exp(-800), (0, 2) exp(-805), the others almost nothing.
    total = 2 + np.exp(-5)
    np.testing.assert_allclose(labels[0], [(1 + np.exp(-5)) / total, 1 / total, np.exp(-100) / total], rtol=1e-10)
    np.testing.assert_allclose(labels[1], [1 / total, 1 / total, np.exp(-5) / total], rtol=1e-10)


def test_two_classes_and_cannot_links_only_keep_their_weights():
    coupling = Pairwise().bind(Links(cannot=[(0, 1), (1, 2)]), 3, 2)
    previous = np.array([0.7, 0.3])
    expectation = coupling.expect(np.random.default_rng(0).normal(size=(3, 2)), previous)
    assert coupling.class_weights(np.zeros(2), expectation, previous).tolist() == [0.7, 0.3]


def test_two_classes_do_not_cancel_when_cannot_links_are_many():
    """The counts of one free point survive those of a hundred thousand cannot-links."""
    n_cannot = 100_000
    pairs = np.arange(2 * n_cannot).reshape(-1, 2)
    coupling = Pairwise().bind(Links(cannot=pairs), 2 * n_cannot, 2)
    previous = np.array([0.5, 0.5])
    expectation = coupling.expect(np.random.default_rng(0).normal(size=(2 * n_cannot, 2)), previous)
    weights = coupling.class_weights(np.array([1 - 1e-9, 1e-9]), expectation, previous)
    np.testing.assert_allclose(weights, [1 - 1e-9, 1e-9], rtol=1e-12)


def test_no_links_make_a_pairwise_coupling_that_says_nothing():
    expectation = Pairwise().bind(Links(), 0, 3).expect(np.empty((0, 3)), np.full(3, 1 / 3))
    assert expectation.log_likelihood == 0
    assert expectation.class_counts.tolist() == [0, 0, 0]
    assert expectation.label_weights.shape == (0, 3)


def test_uncoupled_points_say_nothing():
    coupling = Uncoupled().bind(Links(), 0, 3)
    expectation = coupling.expect(np.empty((0, 3)), np.full(3, 1 / 3))
    assert expectation.log_likelihood == 0
    assert expectation.class_counts.tolist() == [0, 0, 0]
    np.testing.assert_allclose(
        coupling.class_weights(np.array([1.0, 2.0, 5.0]), expectation, np.full(3, 1 / 3)), [0.125, 0.25, 0.625]
    )


def test_uncoupled_points_refuse_links():
    with pytest.raises(ValueError, match=r"'none' makes no use of links, but got Links\(1 must, 0 cannot\): pass no"):
        Uncoupled().bind(Links(must=[(0, 1)]), 2, 3)


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (Pairwise, {"learn_reliability": "yes"}, "learn_reliability='yes' is neither True nor False"),
        (Graph, {"learn_reliability": 1}, "learn_reliability=1 is neither True nor False"),
        (Graph, {"sampling": "rows"}, "sampling='rows' is not known: choose one of 'observed', 'chunklets', 'points'"),
        (Graph, {"quick": None}, "quick=None is neither True nor False"),
        (MeanField, {"weight": -1.0}, r"weight=-1\.0 is not a finite number of at least 0"),
        (MeanField, {"weight": np.inf}, "weight=inf is not a finite number"),
        (Projection, {"slack": -0.1}, r"slack=-0\.1 is not a finite number of at least 0"),
        (Projection, {"slack": None}, "slack=None is not a finite number"),
    ],
)
def test_settings_that_make_no_sense_are_refused(kind, settings, message):
    with pytest.raises(ValueError, match=message):
        kind(**settings)


@pytest.mark.parametrize("coupling", [MeanField(), Projection(), Projection(slack=0.1)], ids=repr)
@pytest.mark.parametrize("with_known", [False, True])
def test_certain_links_hold_in_the_labels_of_approximate_couplings(coupling, with_known):
    for seed in range(12):
        random = np.random.default_rng(seed)
        y = random.integers(0, 3, 40)
        X = random.normal(size=(40, 2)) + y[:, None]
        links = Links.from_labels(y, 30, random_state=seed)
        if isinstance(coupling, Projection):
            links = Links(cannot=links.cannot)
        known = np.where(random.random(40) < 0.3, y, -1) if with_known else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LinkMixture(3, coupling=coupling, random_state=seed).fit(X, known, links=links)
        assert links_satisfied(model.labels_, links) == 1.0
        assert np.isfinite(model.log_likelihood_trace_).all()
        assert np.diff(model.log_likelihood_trace_).min(initial=0.0) >= -1e-9 * abs(model.log_likelihood_)


def test_a_known_label_rules_out_its_class_for_its_partners():
    X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    known = np.array([0, -1, -1, 1, -1, -1])
    model = LinkMixture(2, coupling=Projection(), init="links", random_state=0)
    model.fit(X, known, links=Links(cannot=[(0, 1), (1, 2)]))  # the second one through the first
    assert model.labels_[:3].tolist() == [0, 1, 0]
