from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkmix import LinkMixture, Links, engine
from linkmix.basics.errors import DegenerateCluster
from linkmix.couplings import Pairwise
from linkmix.densities import FORMS, Gaussian
from linkmix.engine import steps
from oracles import (
    COVARIANCE_TYPES,
    Problem,
    brute_force,
    class_weight_residual,
    class_weights_by_search,
    moments,
    random_links,
    random_problem,
)

every_form = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
every_size = pytest.mark.parametrize(
    ("n_classes", "clusters_per_class"), [(m, k) for m in (1, 2, 3, 4) for k in (1, 2, 3)]
)
every_way = pytest.mark.parametrize(
    ("linked_points", "link_weight"), [("apart", 1.0), ("both", 1.0), ("apart", 2.5), ("both", 0.3)]
)


class RecordingGaussian(Gaussian):
    """Remembers the responsibilities of all rows."""

    def statistics(self, parameters, X, weights):
        self.seen = [*getattr(self, "seen", []), weights]
        return super().statistics(parameters, X, weights)


def bind(problem: Problem, reg_covar: float = 0.0) -> tuple[engine.Model, engine.Data, engine.Parameters]:
    """What the engine needs for a problem."""
    density = RecordingGaussian(FORMS[problem.covariance_type], reg_covar)
    links = Links(must=problem.must, cannot=problem.cannot).restrict(problem.linked)
    coupling = Pairwise().bind(links, len(problem.linked), problem.shape[0])
    return (
        engine.Model(density, coupling, problem.link_weight),
        engine.Data(problem.X[problem.free], problem.X[problem.linked]),
        engine.Parameters(
            problem.class_weights,
            problem.cluster_weights,
            density.given(problem.init, problem.shape, problem.X.shape[1]),
        ),
    )


def assert_never_falls(trace):
    for before, after in pairwise(trace):
        assert after >= before - 1e-9 * abs(before), trace


# Against enumeration.


@every_size
@every_form
@every_way
def test_e_step_by_enumeration(n_classes, clusters_per_class, covariance_type, linked_points, link_weight):
    rng = np.random.default_rng([n_classes, clusters_per_class, int(10 * link_weight)])
    problem = random_problem(
        rng, n_classes, clusters_per_class, covariance_type, linked_points=linked_points, link_weight=link_weight
    )
    answer = brute_force(problem)
    model, data, parameters = bind(problem)
    expectation = engine.expect(model, data, parameters)

    assert expectation.log_likelihood == pytest.approx(answer.log_likelihood, abs=1e-10)
    found = np.concatenate(model.density.seen)  # linked rows, then free ones
    expected = np.concatenate([answer.link_weights[problem.linked], answer.free_weights[problem.free]])
    np.testing.assert_allclose(found, expected.reshape(found.shape), rtol=0, atol=1e-10)
    np.testing.assert_allclose(expectation.cluster_counts, answer.weights.sum(axis=0), rtol=0, atol=1e-10)
    np.testing.assert_allclose(expectation.free_class_counts, answer.free_counts, rtol=0, atol=1e-10)
    n_labels = len(problem.free) + link_weight * (len(problem.must) + 2 * len(problem.cannot))
    assert expectation.free_class_counts.sum() + link_weight * expectation.links.class_counts.sum() == pytest.approx(
        n_labels, abs=1e-10
    )


@every_size
@every_form
@every_way
def test_m_step_by_plain_loops(n_classes, clusters_per_class, covariance_type, linked_points, link_weight):
    rng = np.random.default_rng([n_classes, clusters_per_class, int(10 * link_weight)])
    problem = random_problem(
        rng, n_classes, clusters_per_class, covariance_type, linked_points=linked_points, link_weight=link_weight
    )
    answer = brute_force(problem)
    # With so few points a full covariance of almost no points may be singular: reg_covar, taken off again below.
    model, data, parameters = bind(problem, reg_covar=1.0)
    found = engine.maximise(model, engine.expect(model, data, parameters), parameters)
    arrays = model.density.attributes(found.components, problem.shape)
    cluster_weights, means, covariances = moments(problem.X, answer.weights, covariance_type)
    added = np.eye(problem.X.shape[1]) if covariance_type in ("full", "tied") else 1.0
    np.testing.assert_allclose(found.cluster_weights, cluster_weights, rtol=0, atol=1e-10)
    np.testing.assert_allclose(arrays["means"], means, rtol=0, atol=1e-10)
    np.testing.assert_allclose(arrays["covariances"] - added, covariances, rtol=0, atol=1e-10)

    counts, n_cannot = answer.class_counts, link_weight * len(problem.cannot)
    if n_classes == 1:
        assert found.class_weights.tolist() == [1.0]
    elif n_classes == 2 and not answer.free_counts.sum() + answer.must_counts.sum():
        np.testing.assert_array_equal(found.class_weights, problem.class_weights)
    else:
        np.testing.assert_allclose(class_weight_residual(found.class_weights, counts, n_cannot), 0, atol=1e-10)
        searched = class_weights_by_search(counts, n_cannot)
        np.testing.assert_allclose(found.class_weights, searched, rtol=0, atol=1e-6)


@pytest.mark.parametrize("seed", range(10))
@every_form
def test_estimator_by_enumeration(seed, covariance_type):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, int(rng.integers(2, 5)), int(rng.integers(1, 4)), covariance_type, n_points=8)
    problem = replace(
        problem, linked_points=str(rng.choice(["apart", "both"])), link_weight=rng.choice([0.5, 1.0, 3.0])
    )
    if problem.X.shape[0] < np.prod(problem.shape):
        problem = replace(problem, X=np.concatenate([problem.X, 1.5 * rng.normal(size=(4, problem.X.shape[1]))]))
    links = Links(must=problem.must, cannot=problem.cannot)
    model = LinkMixture(**problem.settings, max_iter=0).fit(problem.X, links=links)
    answer = brute_force(problem)
    alone = brute_force(replace(problem, must=[], cannot=[]))
    assert model.log_likelihood_ == pytest.approx(answer.log_likelihood, abs=1e-10)
    np.testing.assert_allclose(model.predict_proba(problem.X), alone.free_weights.sum(axis=2), rtol=0, atol=1e-10)
    np.testing.assert_array_equal(model.predict(problem.X), alone.free_weights.sum(axis=2).argmax(axis=1))


@pytest.mark.parametrize("seed", range(20))
def test_labels_are_the_most_probable_ones_of_both_points_together(seed):
    """By enumeration, for links that share no point. The most probable labels one by one could break a link."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, int(rng.integers(2, 5)), int(rng.integers(1, 3)), "full", n_points=10, n_links=0)
    problem = replace(problem, must=[(0, 1), (2, 3)], cannot=[(4, 5), (6, 7)])
    model = LinkMixture(**problem.settings, max_iter=0).fit(
        problem.X, must_link=problem.must, cannot_link=problem.cannot
    )
    density = brute_force(replace(problem, must=[], cannot=[])).free_weights.sum(axis=2) / problem.class_weights
    expected = density.argmax(axis=1)
    M = len(problem.class_weights)
    for a, b in problem.must:
        expected[a] = expected[b] = (problem.class_weights * density[a] * density[b]).argmax()
    for a, b in problem.cannot:
        joint = np.outer(problem.class_weights * density[a], problem.class_weights * density[b])
        expected[a], expected[b] = np.unravel_index(np.where(np.eye(M, dtype=bool), -1, joint).argmax(), (M, M))
    for n in (8, 9):
        expected[n] = (problem.class_weights * density[n]).argmax()
    np.testing.assert_array_equal(model.labels_, expected)


# J never falls.


@st.composite
def problems(draw, scales=(1.0,), kinds=("cloud", "clumps", "heavy", "rounded")):
    """Data, links, a start from random rows, and everything else that the likelihood depends on."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    M, K, d = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 4))
    n = draw(st.integers(max(6, M * K), 40))
    match draw(st.sampled_from(kinds)):
        case "cloud":
            X = rng.normal(size=(n, d))
        case "clumps":
            X = rng.normal(size=(n, d)) + 4 * rng.integers(3, size=(n, 1))
        case "heavy":
            X = rng.standard_t(2, size=(n, d))
        case "rounded":
            X = np.round(rng.normal(size=(n, d)), 1)
        case "duplicates":
            X = rng.normal(size=(3, d))[rng.integers(3, size=n)]
        case "constant column":
            X = np.column_stack([rng.normal(size=n), np.full((n, d), 3.0)])
        case "repeated column":
            X = np.repeat(rng.normal(size=(n, 1)), d + 1, axis=1)
        case "identical":
            X = np.full((n, d), 2.0)
        case "fewer points than columns":
            X = rng.normal(size=(n, n + 2))
    kind = draw(st.sampled_from(["both", "must", "cannot"])) if M > 1 else "must"
    must, cannot = random_links(rng, n, draw(st.sampled_from([0, 2, 10, 60])), kind, M)
    return {
        "X": X * draw(st.sampled_from(scales)),
        "links": Links(must=must, cannot=cannot),
        "n_classes": M,
        "clusters_per_class": K,
        "covariance_type": draw(st.sampled_from(COVARIANCE_TYPES)),
        "linked_points": draw(st.sampled_from(["apart", "both"])),
        "link_weight": draw(st.sampled_from([1.0, 0.05, 7.0])),
        "random_state": int(rng.integers(1000)),
    }


def parts(problem, reg_covar):
    """Model, data and start for a drawn problem."""
    X, links = problem["X"], problem["links"]
    density = Gaussian(FORMS[problem["covariance_type"]], reg_covar)
    points = links.points
    coupling = Pairwise().bind(links.restrict(points), len(points), problem["n_classes"])
    free = X if problem["linked_points"] == "both" else np.delete(X, points, axis=0)
    rng = np.random.default_rng(problem["random_state"])
    M, K = problem["n_classes"], problem["clusters_per_class"]
    start = engine.Parameters(
        rng.dirichlet(np.full(M, 5.0)),
        rng.dirichlet(np.full(K, 5.0), size=M),
        Gaussian(density.form, 1e-3).start(X, rng.dirichlet(np.full(M * K, 0.3), size=len(X))),
    )
    return engine.Model(density, coupling, problem["link_weight"]), engine.Data(free, X[points]), start


@settings(max_examples=150)
@given(problems())
def test_j_never_falls(problem):
    X, links = problem.pop("X"), problem.pop("links")
    model = LinkMixture(**problem, tol=0, max_iter=15).fit(X, links=links)
    assert model.log_likelihood_trace_.shape == (16,)
    assert np.all(np.isfinite(model.log_likelihood_trace_))
    assert_never_falls(model.log_likelihood_trace_)
    assert np.all(np.isfinite(model.means_))
    assert np.all(np.isfinite(model.covariances_))
    assert model.class_weights_.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(model.cluster_weights_.sum(axis=1), 1, atol=1e-12)


@settings(max_examples=150)
@given(problems())
def test_the_plain_m_step_never_lowers_j_when_nothing_is_added(problem):
    """Without reg_covar the M-step is exact. No caution here, which could hide a wrong step."""
    model, data, parameters = parts(problem, reg_covar=0.0)
    before = engine.expect(model, data, parameters)
    for _ in range(10):
        try:
            parameters = engine.maximise(model, before, parameters)
        except DegenerateCluster:
            return  # a cluster collapsed onto too few points
        if np.max(model.density.form.half_log_precision(parameters.components.whiteners, 1)) > 10:
            return  # about to collapse: J is near infinity
        after = engine.expect(model, data, parameters)
        assert_never_falls([before.log_likelihood, after.log_likelihood])
        before = after


NEAR_SINGULAR = ("duplicates", "constant column", "repeated column", "identical", "fewer points than columns", "cloud")


@settings(max_examples=150)
@given(
    problems(scales=(1e-9, 1e-4, 1.0, 1e4), kinds=NEAR_SINGULAR),
    st.sampled_from([1e-6, 0.1, 10.0]),
)
def test_j_never_falls_where_reg_covar_binds(problem, reg_covar):
    X, links = problem.pop("X"), problem.pop("links")
    model = LinkMixture(**problem, tol=0, max_iter=12, reg_covar=reg_covar).fit(X, links=links)
    assert model.log_likelihood_trace_.shape == (13,)
    assert np.all(np.isfinite(model.log_likelihood_trace_))
    assert_never_falls(model.log_likelihood_trace_)


def narrow_start(covariance_type, variance):
    """Two duplicated points in each of two columns, and a start whose covariances are far below reg_covar."""
    X = np.array([[0.0, 0.0], [1.0, 0.5]])[np.arange(20) % 2] + np.linspace(0, 0.2, 20)[:, None]
    covariances = {
        "full": np.broadcast_to(variance * np.eye(2), (2, 1, 2, 2)),
        "tied": variance * np.eye(2),
        "diag": np.full((2, 1, 2), variance),
        "spherical": np.full((2, 1), variance),
    }[covariance_type]
    return Problem(
        X=X,
        must=[(0, 2), (2, 4)],
        cannot=[(0, 1), (4, 7)],
        class_weights=np.array([0.5, 0.5]),
        cluster_weights=np.ones((2, 1)),
        means=np.array([[[0.0, 0.1]], [[1.0, 0.7]]]),
        covariances=covariances,
        covariance_type=covariance_type,
    )


@every_form
@pytest.mark.parametrize("reg_covar", [0.1, 10.0])
def test_a_plain_step_would_fall_where_reg_covar_binds(covariance_type, reg_covar):
    model, data, start = bind(narrow_start(covariance_type, 0.01), reg_covar)
    before = engine.expect(model, data, start)
    plain = engine.expect(model, data, engine.maximise(model, before, start))
    assert plain.log_likelihood < before.log_likelihood - 1
    fit = engine.fit(model, data, start, tol=0, max_iter=20)
    assert len(fit.trace) == 21
    assert_never_falls(fit.trace)
    assert fit.log_likelihood > before.log_likelihood + 0.1, "it did not fall, but it made no progress either"


@every_form
def test_reg_covar_that_does_not_bind_needs_no_caution(covariance_type, monkeypatch):
    monkeypatch.setattr(Gaussian, "maximize_cautiously", None)
    model, data, start = bind(narrow_start(covariance_type, 0.5), reg_covar=1e-6)
    assert_never_falls(engine.fit(model, data, start, tol=0, max_iter=5).trace)


# Sums, blocks and the loop.


@pytest.fixture
def medium():
    rng = np.random.default_rng(1)
    problem = random_problem(rng, 3, 2, "full", n_points=60, n_links=12)
    assert problem.must
    assert problem.cannot
    return problem


@every_form
def test_the_block_size_does_not_matter(covariance_type, monkeypatch):
    problem = random_problem(np.random.default_rng(1), 3, 2, covariance_type, n_points=60, n_links=12)
    model, data, start = bind(problem, reg_covar=1e-6)
    whole = engine.fit(model, data, start, tol=0, max_iter=5)
    n_calls = len(model.density.seen)
    monkeypatch.setattr(steps, "BLOCK_NUMBERS", 7 * (problem.X.shape[1] + 6))
    blocks = engine.fit(model, data, start, tol=0, max_iter=5)
    assert len(model.density.seen) - n_calls > n_calls, "the data were not cut into blocks"
    np.testing.assert_allclose(blocks.trace, whole.trace, rtol=1e-10)
    for one, other in zip(
        model.density.attributes(blocks.parameters.components, problem.shape).values(),
        model.density.attributes(whole.parameters.components, problem.shape).values(),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    joint = engine.class_log_joint(model.density, start, problem.X)
    monkeypatch.undo()
    np.testing.assert_allclose(joint, engine.class_log_joint(model.density, start, problem.X), rtol=1e-12)


def test_blocks_keep_the_weights_and_labels_of_their_rows(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    weights, y = rng.integers(1, 4, size=50), rng.integers(-1, 2, size=50)
    links = Links.from_labels(y, 10, random_state=0)

    def fit():
        return LinkMixture(2, random_state=0, max_iter=5, tol=0, linked_points="both").fit(
            X, y, links=links, sample_weight=weights
        )

    whole = fit()
    monkeypatch.setattr(steps, "BLOCK_NUMBERS", 20)
    np.testing.assert_allclose(fit().log_likelihood_trace_, whole.log_likelihood_trace_, rtol=1e-10)


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e6])
def test_responsibilities_sum_to_one_where_log_densities_are_huge(scale):
    """Of 1e12 and more, where the last digit of a logarithm is not small any more, and clusters in one place."""
    rng = np.random.default_rng(0)
    problem = random_problem(rng, 3, 2, "spherical", n_points=30, n_links=8)
    problem = replace(problem, X=scale * problem.X, means=0 * problem.means, covariances=np.full((3, 2), 1e-2))
    model, data, parameters = bind(problem)
    engine.expect(model, data, parameters)
    n_items = np.bincount(np.ravel(problem.must + problem.cannot), minlength=30)[problem.linked]
    totals = np.concatenate(model.density.seen).sum(axis=1)
    np.testing.assert_allclose(totals, [*n_items, *np.ones(len(problem.free))], rtol=1e-10)


def test_expectations_of_two_halves_add_up(medium):
    model, data, parameters = bind(medium)
    unlinked = engine.Model(model.density, Pairwise().bind(Links(), 0, 3), model.link_weight)
    nothing = medium.X[:0]
    whole = engine.expect(model, data, parameters)
    halves = [
        engine.expect(model, engine.Data(data.free[:20], data.linked), parameters),
        engine.expect(unlinked, engine.Data(data.free[20:], nothing), parameters),
    ]
    statistics = halves[0].statistics + halves[1].statistics
    for name in ("weight", "first", "second"):
        np.testing.assert_allclose(getattr(statistics, name), getattr(whole.statistics, name), rtol=1e-11, atol=1e-11)
    for name in ("log_likelihood", "cluster_counts", "free_class_counts"):
        np.testing.assert_allclose(sum(getattr(half, name) for half in halves), getattr(whole, name), rtol=1e-12)


def test_the_last_value_of_the_trace_is_j_of_the_parameters(medium):
    model, data, start = bind(medium, reg_covar=1e-6)
    fit = engine.fit(model, data, start, tol=0, max_iter=4)
    assert fit.log_likelihood == fit.trace[-1] == engine.expect(model, data, fit.parameters).log_likelihood
    assert fit.trace[0] == engine.expect(model, data, start).log_likelihood


@pytest.mark.parametrize("max_iter", [0, 1, 2, 7])
def test_without_a_tolerance_every_step_is_made(medium, max_iter):
    model, data, start = bind(medium, reg_covar=1e-6)
    fit = engine.fit(model, data, start, tol=0, max_iter=max_iter)
    assert len(fit.trace) == max_iter + 1
    assert not fit.converged
    longer = engine.fit(model, data, start, tol=0, max_iter=max_iter + 3)
    np.testing.assert_array_equal(longer.trace[: max_iter + 1], fit.trace)


def test_the_first_gain_within_the_tolerance_ends_the_fit(medium):
    model, data, start = bind(medium, reg_covar=1e-6)
    trace = engine.fit(model, data, start, tol=0, max_iter=60).trace
    gains_per_row = np.diff(trace) / (len(data.free) + len(data.linked))
    last = np.flatnonzero(gains_per_row <= 1e-3)[0]
    assert last > 2
    fit = engine.fit(model, data, start, tol=1e-3, max_iter=60)
    assert fit.converged
    np.testing.assert_array_equal(fit.trace, trace[: last + 2])


def test_nothing_is_changed_in_place(medium):
    model, data, start = bind(medium, reg_covar=1e-6)
    parts = [data.free, data.linked, start.class_weights, start.cluster_weights, *vars(start.components).values()]
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    copies = [array.copy() for array in arrays]
    assert len(arrays) > 5
    engine.fit(model, data, start, tol=0, max_iter=3)
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)
