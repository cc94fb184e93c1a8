"""SQUAREM: coordinates of the densities, steps that never lower the objective, and fewer passes over the rows."""

from itertools import product

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from density_checks import assert_same
from linkmix import LinkMixture, Links, engine
from linkmix.couplings import Graph, MeanField, Pairwise, Projection
from linkmix.data.blocks import Blocks, Door
from linkmix.densities import FORMS, Bernoulli, Categorical, Density, Gaussian, Poisson, Product, StudentT
from linkmix.engine import acceleration, careful, starts
from linkmix.engine.fitting import Knowledge, bind, part
from linkmix.mixture.trials import fit_trials
from linkmix.rivals import GMPR

X, Y = load_iris(return_X_y=True)
LINKS = Links.from_labels(Y, 20, random_state=0)
COUNTS = np.round(2 * X)
CODES = np.minimum(COUNTS, 5)
BINARY = np.asarray(np.median(X, axis=0) < X, dtype=np.float64)
DENSITIES = {
    **{f"gaussian {name}": (Gaussian(form), X) for name, form in FORMS.items()},
    **{f"student {name}": (StudentT(form, degrees_of_freedom=None), X) for name, form in FORMS.items()},
    "shrunk": (Gaussian(shrinkage=6.0), X),
    "bernoulli": (Bernoulli(), BINARY),
    "poisson": (Poisson(), COUNTS),
    "categorical": (Categorical(), CODES),
    "product": (
        Product({"a": (Gaussian(), [0, 2]), "b": (Poisson(), [1]), "c": (Bernoulli(), [3])}),
        np.column_stack([X[:, 0], COUNTS[:, 1], X[:, 2], BINARY[:, 3]]),
    ),
}
every_density = pytest.mark.parametrize(("density", "points"), DENSITIES.values(), ids=DENSITIES)


def components_of(density, points, seed):
    weights = np.random.default_rng(seed).dirichlet(np.full(3, 0.2), size=len(points))
    return density.start(points, weights)


def problem(density=None, points=X, coupling=None, links=LINKS, clusters_per_class=1, shared=False, seed=0):
    density, coupling = density or Gaussian(), coupling or Pairwise()
    given, random = Knowledge(points, links), np.random.RandomState(seed)
    shape = starts.Shape(3, clusters_per_class, shared)
    classes = starts.kmeans_plusplus_classes(points, links, shape, random)
    start = starts.from_classes(density, points, classes, shape, random)
    return engine.Model(density, bind(coupling, links, 3)), part(given), start


def slow_problem(seed=0, n=1500):
    """Classes that overlap so much that plain EM creeps."""
    random = np.random.RandomState(seed)
    y = random.randint(3, size=n)
    points = random.standard_normal((n, 2)) + 1.3 * np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]])[y]
    return problem(points=points, links=Links.from_labels(y, 20, random_state=0), seed=seed)


def passes_of(monkeypatch):
    """Count the E-steps."""
    count = []

    def expect(*arguments):
        count.append(1)
        return engine.expect(*arguments)

    monkeypatch.setattr(careful, "expect", expect)
    return count


def assert_never_falls(trace):
    assert np.all(np.diff(trace) >= -1e-9 * np.abs(trace[:-1]))


@every_density
def test_coordinates_lead_back_to_the_parameters(density, points):
    about = components_of(density, points, 0)
    weights = np.random.default_rng(1).dirichlet(np.ones(3), size=len(points))
    other = density.maximize(density.statistics(about, points, weights), about)
    vector = density.to_vector(other, about)
    assert vector.shape[0] == 3
    assert np.abs(vector).max() > 1e-3
    assert_same(density.from_vector(vector, about), other, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(density.to_vector(about, about), 0.0, atol=1e-9)


@every_density
def test_any_numbers_are_valid_coordinates(density, points):
    about = components_of(density, points, 0)
    vector = np.random.default_rng(0).normal(size=density.to_vector(about, about).shape)
    assert np.isfinite(density.log_density(density.from_vector(vector, about), points)).all()


@pytest.mark.parametrize("name", ["gaussian full", "gaussian diag", "gaussian spherical", "bernoulli", "poisson"])
def test_lengths_are_divergences(name):
    """KL(about, other) is half the squared length, for short steps; estimated from many rows of the density."""
    density, points = DENSITIES[name]
    about = components_of(density, points, 0)
    rows = density.sample(about, 0, 200_000, np.random.RandomState(0))
    before = density.log_density(about, rows)[:, 0]
    shape = density.to_vector(about, about).shape
    for seed in range(3):
        step = np.random.default_rng(seed).normal(size=shape)
        step *= 0.2 / np.linalg.norm(step[0])
        # The mean over both directions cancels the noise of first order.
        after = [density.log_density(density.from_vector(sign * step, about), rows)[:, 0] for sign in (-1, 1)]
        divergence = np.mean(before - np.mean(after, axis=0))
        np.testing.assert_allclose(divergence, 0.2**2 / 2, rtol=0.1)


@pytest.mark.parametrize("name", list(FORMS))
def test_units_do_not_change_coordinates(name):
    density = Gaussian(FORMS[name], reg_covar=0.0)
    factors = np.full(4, 1e3) if name == "spherical" else np.array([1e3, 1e-2, 1.0, 7.0])
    vectors = [density.to_vector(*(components_of(density, rows, seed) for seed in (1, 0))) for rows in (X, X * factors)]
    np.testing.assert_allclose(vectors[1], vectors[0], rtol=1e-7, atol=1e-9)


COUPLINGS = {"pairwise": Pairwise(), "graph": Graph(), "mean field": MeanField(), "projection": Projection()}


@pytest.mark.parametrize(
    ("density", "coupling"),
    [*product(DENSITIES, ["pairwise"]), *product(["gaussian full"], COUPLINGS)],
)
def test_it_ends_where_plain_em_ends_and_never_falls(density, coupling):
    links = Links(cannot=LINKS.cannot) if coupling == "projection" else LINKS
    density, points = DENSITIES[density]
    model, data, start = problem(density, points, COUPLINGS[coupling], links)
    plain = engine.fit(model, data, start, tol=1e-8, max_iter=3000)
    found = engine.fit(model, data, start, tol=1e-8, max_iter=3000, accelerate=True)
    assert found.converged
    assert_never_falls(found.trace)
    if np.abs(plain.trace[-1] - found.trace[-1]) > 1e-5 * data.weight:  # another maximum: it must be one
        again = engine.fit(model, data, found.parameters, tol=1e-8, max_iter=3000)
        assert again.trace[-1] - found.trace[-1] < 1e-4 * data.weight
    objective = engine.expect(model, data, found.parameters).log_likelihood + engine.log_prior(model, found.parameters)
    np.testing.assert_allclose(found.trace[-1], objective, rtol=1e-12)


@pytest.mark.parametrize(("clusters_per_class", "shared"), [(2, False), (1, True), (2, True)])
def test_several_clusters_and_shared_pools(clusters_per_class, shared):
    model, data, start = problem(clusters_per_class=clusters_per_class, shared=shared)
    found = engine.fit(model, data, start, tol=1e-6, max_iter=1000, accelerate=True)
    assert found.converged
    assert_never_falls(found.trace)
    np.testing.assert_allclose(found.parameters.class_weights.sum(), 1.0, rtol=1e-9)
    np.testing.assert_allclose(found.parameters.cluster_weights.sum(axis=1), 1.0, rtol=1e-9)
    plain = engine.fit(model, data, start, tol=1e-6, max_iter=1000)
    assert found.trace[-1] > plain.trace[-1] - 0.05 * data.weight


@pytest.mark.parametrize("seed", range(4))
def test_it_needs_fewer_passes_to_the_same_place(seed, monkeypatch):
    model, data, start = slow_problem(seed)
    plain = engine.fit(model, data, start, tol=1e-7, max_iter=3000)
    passes = passes_of(monkeypatch)
    found = engine.fit(model, data, start, tol=1e-7, max_iter=3000, accelerate=True)
    assert len(passes) == len(found.trace)
    assert found.converged
    assert len(plain.trace) > 1.5 * len(found.trace)
    assert found.trace[-1] > plain.trace[-1] - 1e-5 * data.weight


def test_a_plain_step_from_the_end_gains_no_more_than_the_tolerance():
    model, data, start = slow_problem()
    found = engine.fit(model, data, start, tol=1e-6, max_iter=3000, accelerate=True)
    before, after = engine.fit(model, data, found.parameters, tol=0, max_iter=1).trace
    assert found.converged
    assert after - before <= 1e-6 * data.weight


def test_without_a_tolerance_all_steps_are_plain():
    model, data, start = slow_problem()
    plain = engine.fit(model, data, start, tol=0, max_iter=17)
    found = engine.fit(model, data, start, tol=0, max_iter=17, accelerate=True)
    np.testing.assert_array_equal(found.trace, plain.trace)
    assert len(found.trace) == 18


@pytest.mark.parametrize("max_iter", range(12))
def test_passes_are_bounded(max_iter, monkeypatch):
    model, data, start = slow_problem()
    passes = passes_of(monkeypatch)
    found = engine.fit(model, data, start, tol=1e-12, max_iter=max_iter, accelerate=True)
    assert len(passes) == len(found.trace) == max_iter + 1
    assert not found.converged
    longer = engine.fit(model, data, start, tol=1e-12, max_iter=20, accelerate=True)
    np.testing.assert_array_equal(longer.trace[: max_iter + 1], found.trace)


def test_where_no_extrapolation_is_valid_em_is_plain(monkeypatch):
    model, data, start = slow_problem()
    monkeypatch.setattr(acceleration._Coordinates, "at", lambda *_: None)
    found = engine.fit(model, data, start, tol=1e-6, max_iter=1000, accelerate=True)
    plain = engine.fit(model, data, start, tol=1e-6, max_iter=1000)
    np.testing.assert_allclose(found.trace, plain.trace, rtol=1e-10)
    assert found.converged


def test_extrapolations_that_lower_the_objective_are_undone(monkeypatch):
    model, data, start = slow_problem()
    monkeypatch.setattr(acceleration._Coordinates, "at", lambda *_: start)
    found = engine.fit(model, data, start, tol=1e-6, max_iter=1000, accelerate=True)
    plain = engine.fit(model, data, start, tol=1e-6, max_iter=1000)
    kept = np.append(True, np.diff(found.trace) != 0)
    assert not kept.all()
    np.testing.assert_allclose(found.trace[kept], plain.trace, rtol=1e-10)


@pytest.mark.parametrize("factor", [1e3, 1e-3])
def test_units_do_not_change_the_path(factor):
    settings = {"clusters_per_class": 2, "acceleration": "squarem", "random_state": 0}
    one = LinkMixture(3, reg_covar=1e-6, **settings).fit(X, links=LINKS)
    other = LinkMixture(3, reg_covar=1e-6 * factor**2, **settings).fit(factor * X, links=LINKS)
    assert one.n_iter_ == other.n_iter_
    np.testing.assert_allclose(other.means_, factor * one.means_, rtol=1e-5)


def test_rows_in_blocks_give_the_same_digits():
    model, data, start = problem()
    expected = engine.fit(model, data, start, tol=1e-7, max_iter=300, accelerate=True)
    table = Blocks(lambda: iter([X[:40], X[40:]])).enter(Door([np.float64], False, lambda block: None))
    there = part(Knowledge(table, LINKS))
    assert not isinstance(there.free, np.ndarray)
    found = engine.fit(model, there, start, tol=1e-7, max_iter=300, accelerate=True)
    np.testing.assert_array_equal(found.trace, expected.trace)


def test_where_rows_are_does_not_decide():
    rows = np.tile(X, (20, 1)) + np.random.RandomState(0).normal(0, 0.1, (3000, 4))
    settings = {"init": "links", "random_state": 0, "max_iter": 5, "tol": 1e-9}
    for setting in ("auto", "squarem"):
        model = LinkMixture(3, acceleration=setting, **settings)
        with pytest.warns(ConvergenceWarning):
            here = model.fit(rows, links=LINKS).log_likelihood_trace_
        with pytest.warns(ConvergenceWarning):
            there = model.fit(Blocks(lambda: iter([rows[:700], rows[700:]])), links=LINKS).log_likelihood_trace_
        np.testing.assert_allclose(there, here, rtol=1e-10)


def test_learned_reliabilities_come_from_plain_steps():
    links = Links(LINKS.must, LINKS.cannot, must_annotators="ann", cannot_annotators="bob")
    settings = {"reliability": "learn", "random_state": 0, "tol": 1e-8, "max_iter": 2000}
    plain = LinkMixture(3, acceleration="none", **settings).fit(X, links=links)
    found = LinkMixture(3, acceleration="squarem", **settings).fit(X, links=links)
    assert_never_falls(found.log_likelihood_trace_)
    np.testing.assert_allclose(found.log_likelihood_, plain.log_likelihood_, rtol=1e-4)
    for name, share in plain.annotator_reliability_.items():
        np.testing.assert_allclose(found.annotator_reliability_[name], share, rtol=1e-2)


def test_the_size_of_a_problem_decides(monkeypatch):
    settings = {"clusters_per_class": 2, "random_state": 0}
    plain = LinkMixture(3, acceleration="none", **settings).fit(X, links=LINKS)
    fast = LinkMixture(3, acceleration="squarem", **settings).fit(X, links=LINKS)
    assert plain.n_iter_ > fast.n_iter_
    auto = LinkMixture(3, **settings)
    assert auto.fit(X, links=LINKS).n_iter_ == plain.n_iter_
    monkeypatch.setattr("linkmix.native.CHUNK_WORK", 150 * 6 * 4 * 8)
    assert auto.fit(X, links=LINKS).n_iter_ == plain.n_iter_
    monkeypatch.setattr("linkmix.native.CHUNK_WORK", 150 * 6 * 4 * 8 - 1)
    assert auto.fit(X, links=LINKS).n_iter_ == fast.n_iter_


def test_trials_follow_the_setting():
    model, data, start = slow_problem()
    init = {
        "class_weights": start.class_weights[None],
        "cluster_weights": start.cluster_weights[None],
        **{
            name: array[None]
            for name, array in model.density.attributes(start.components, start.cluster_weights.shape).items()
        },
    }
    found = [
        fit_trials(LinkMixture(3, acceleration=acceleration, tol=1e-7, max_iter=3000), data.free, init).n_iter[0]
        for acceleration in ("none", "squarem")
    ]
    assert found[0] > 1.5 * found[1]


def test_the_rival_is_plain_em():
    links = Links(must=LINKS.must[:4], cannot=LINKS.cannot[:4])
    settings = {"clusters_per_class": 2, "init": "links", "tol": 1e-6, "random_state": 0}
    rival = GMPR(3, **settings).fit(X, links=links)
    plain = LinkMixture(3, **settings, acceleration="none").fit(X, links=links)
    np.testing.assert_array_equal(rival.log_likelihood_trace_, plain.log_likelihood_trace_)
    assert "acceleration" not in rival.get_params()


def test_a_density_without_coordinates_is_not_accelerated():
    class Bare(Gaussian):
        to_vector = Density.to_vector

    plain, found = (engine.fit(*problem(Bare()), tol=1e-6, max_iter=300, accelerate=one) for one in (False, True))
    np.testing.assert_array_equal(found.trace, plain.trace)
