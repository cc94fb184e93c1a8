"""The native core against NumPy, which is the oracle: the same numbers from all instruction sets and any threads."""

import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkmix import LinkMixture, Links, engine, native
from linkmix.basics.errors import InfeasibleLinks
from linkmix.couplings import Graph, Pairwise
from linkmix.couplings.class_weights import solve_class_weights
from linkmix.couplings.observed import LinkGraph, unwarned
from linkmix.data.rows import Rows
from linkmix.densities import FORMS, Gaussian, StudentT
from linkmix.densities.gaussian import GaussianParameters
from linkmix.densities.student import StudentParameters
from linkmix.engine import loop, starts
from linkmix.engine.fitting import Knowledge, bind, part

needs_core = pytest.mark.skipif(not native.active(), reason="the native core is not built, or LINKMIX_NATIVE=0")
every_form = pytest.mark.parametrize("form", list(FORMS))
every_level = pytest.mark.parametrize("level", native.levels())

# Each side of every branch of the kernels: 4 | 5 columns, 16 | 17, whole and broken tiles, blocks of 240 rows.
SHAPES = [
    *[(1, 1, 1), (7, 2, 3), (240, 3, 2), (241, 4, 5), (300, 5, 3), (500, 7, 4), (479, 10, 10)],
    *[(250, 16, 3), (300, 17, 3), (200, 31, 2), (130, 40, 4)],
]
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


def random_components(rng, form, n_components, n_features, spread=2.0):
    """Gaussian components whose covariances are far from round."""
    means = spread * rng.normal(size=(n_components, n_features))
    roots = rng.normal(size=(n_components, n_features, n_features))
    matrices = np.eye(n_features) + roots @ roots.swapaxes(1, 2) / n_features
    covariances = {
        "full": matrices,
        "tied": matrices[0],
        "diag": np.diagonal(matrices, axis1=1, axis2=2),
        "spherical": matrices[:, 0, 0],
    }[form]
    density = Gaussian(FORMS[form])
    return density, GaussianParameters(means, covariances, FORMS[form].whiten(covariances))


def random_mixture(seed, form, shape, scale=1.0, *, student=False):
    n, d, n_components = shape
    rng = np.random.default_rng(seed)
    density, components = random_components(rng, form, n_components, d)
    if student:
        density = StudentT(FORMS[form], degrees_of_freedom=None)
        degrees = rng.uniform(0.6, 30, size=n_components)
        components = StudentParameters(components.means, components.covariances, components.whiteners, degrees)
    X = components.means[rng.integers(n_components, size=n)] + scale * rng.normal(size=(n, d))
    return density, components, X, np.log(rng.dirichlet(np.ones(n_components)))


def by_numpy(density, components, X, log_weights, row_weights=None):
    """Log-likelihood and statistics, one step after the other."""
    with native.using("off"):
        data = engine.Data(X, X[:0], row_weights)
        n_components = len(log_weights)
        coupling = Pairwise().bind(Links(), 0, n_components)
        parameters = engine.Parameters(np.exp(log_weights), np.ones((n_components, 1)), components)
        expectation = engine.expect(engine.Model(density, coupling), data, parameters)
    return expectation.log_likelihood, expectation.statistics


def assert_same_sums(found, expected, rtol=1e-11):
    for name, other in vars(expected).items():
        one = getattr(found, name)
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol * np.abs(other).max(initial=1e-300))


@needs_core
@every_level
@every_form
@every_shape
@pytest.mark.parametrize(("weighted", "student"), [(False, False), (True, False), (False, True), (True, True)])
def test_one_pass_is_what_numpy_finds_step_by_step(level, form, shape, weighted, student):
    density, components, X, log_weights = random_mixture(0, form, shape, student=student)
    row_weights = np.random.default_rng(1).uniform(0, 3, size=len(X)) if weighted else None
    expected, sums = by_numpy(density, components, X, log_weights, row_weights)
    with native.using(level):
        found, statistics, weight = density.mixture_sums(components, X, log_weights, row_weights)
    assert found == pytest.approx(expected, rel=1e-12)
    assert_same_sums(statistics, sums)
    np.testing.assert_array_equal(weight, statistics.weight)


@needs_core
@every_level
@every_form
@every_shape
def test_log_densities_and_weighted_moments_are_those_of_numpy(level, form, shape):
    density, components, X, _ = random_mixture(0, form, shape)
    weights = np.random.default_rng(1).uniform(size=(len(X), len(components.means))) ** 9
    with native.using("off"):
        log_density, sums = density.log_density(components, X), density.statistics(components, X, weights)
    with native.using(level):
        np.testing.assert_allclose(density.log_density(components, X), log_density, rtol=1e-12, atol=1e-11)
        assert_same_sums(density.statistics(components, X, weights), sums)


@needs_core
@every_level
@every_form
@pytest.mark.parametrize("per_class", [1, 3])
def test_the_most_probable_classes_are_those_of_numpy(level, form, per_class):
    density, components, X, _ = random_mixture(0, form, (700, 3, 4 * per_class))
    rng = np.random.default_rng(1)
    weights = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(per_class), size=4)
    parameters = engine.Parameters(*weights, components)
    with native.using("off"):
        expected = engine.class_log_joint(density, parameters, X).argmax(axis=1)
    with native.using(level, threads=2):
        np.testing.assert_array_equal(engine.most_probable_classes(density, parameters, X), expected)
        far = np.full((1, 3), 1e200)
        with np.errstate(over="ignore"):
            assert engine.most_probable_classes(density, parameters, far).tolist() == [0]


@needs_core
@every_level
@every_form
@pytest.mark.parametrize("shape", [(300, 3, 2), (300, 9, 3), (300, 20, 3)], ids=str)
def test_rows_may_be_laid_out_in_any_way_and_be_single_precision(level, form, shape):
    density, components, X, log_weights = random_mixture(0, form, shape)
    X = X.astype(np.float32)
    expected = by_numpy(density, components, X.astype(np.float64), log_weights)
    twice = np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)
    read_only = X.copy()
    read_only.flags.writeable = False
    for rows in (X, np.asfortranarray(X), twice[::2, ::2], X[::-1][::-1], read_only, X.astype(np.float64)):
        with native.using(level):
            found, statistics, _ = density.mixture_sums(components, rows, log_weights, None)
        assert found == pytest.approx(expected[0], rel=1e-12)
        assert_same_sums(statistics, expected[1])


@needs_core
@every_form
@pytest.mark.parametrize(
    ("shape", "student"),
    [((400000, 2, 4), False), ((60000, 10, 8), False), ((60000, 10, 8), True), ((40000, 40, 5), False)],
    ids=str,
)
def test_no_digit_depends_on_the_number_of_threads(form, shape, student):
    density, components, X, log_weights = random_mixture(0, form, shape, student=student)
    assert len(X) > 1.5 * native.chunk_rows(form, shape[2], shape[1]), "nothing to share"
    results = []
    for threads in (1, 2, 3):
        with native.using(threads=threads):
            log_likelihood, sums, _ = density.mixture_sums(components, X, log_weights, None)
            moments = density.statistics(components, X, np.exp(0.1 * X[:, :1]) * np.ones(shape[2]))
            log_density = density.log_density(components, X[:5000])
        results.append([np.float64(log_likelihood), *vars(sums).values(), *vars(moments).values(), log_density])
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)
    expected, sums = by_numpy(density, components, X, log_weights)
    assert float(results[0][0]) == pytest.approx(expected, rel=1e-12)


@needs_core
@every_level
def test_the_exponential_is_right_to_the_last_digits(level):
    """The log-densities of two spherical components at the same place differ only by their weights."""
    gaps = np.concatenate([-np.geomspace(1e-9, 740, 4000), -np.linspace(700, 712, 500)])
    offset = -0.5 * np.log(2 * np.pi)
    gaps = (offset + gaps) - offset  # as accurately as the core can represent them
    density = Gaussian(FORMS["spherical"])
    components = GaussianParameters(np.zeros((2, 1)), np.ones(2), np.ones(2))
    X = np.zeros((1, 1))
    with native.using(level):
        found = [density.mixture_sums(components, X, np.array([0.0, gap]), None)[2][1] for gap in gaps]
    with np.errstate(under="ignore"):
        exact = np.exp(gaps.astype(np.longdouble))
    expected = np.where(gaps < -708, 0.0, (exact / (1 + exact)).astype(np.float64))
    np.testing.assert_allclose(found, expected, rtol=1.5e-15, atol=0)


@needs_core
@every_level
@every_form
@pytest.mark.parametrize(("far", "student"), [(1e149, False), (1e149, True), (1e160, True)])
def test_rows_too_far_away_for_a_density_are_treated_as_by_numpy(level, form, far, student):
    density, components, X, log_weights = random_mixture(0, form, (300, 3, 2), student=student)
    X[5] = far
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        expected = by_numpy(density, components, 1.0 * X, log_weights)[1]
        with native.using(level):
            found = density.mixture_sums(components, X, log_weights, None)[1]
    np.testing.assert_allclose(found.weight, expected.weight, rtol=1e-12)


@pytest.mark.parametrize("level", ["off", *native.levels()])
@pytest.mark.parametrize("n_features", [2, 10, 20])
def test_small_clusters_far_apart_and_far_from_the_origin_keep_their_digits(level, n_features):
    """Distances 1e7 times the cluster size and an offset of 1e6, against long double."""
    rng = np.random.default_rng(0)
    centres = 1e6 + 1e7 * rng.normal(size=(3, n_features))
    group = np.arange(300) % 3
    X = centres[group] + rng.normal(size=(300, n_features))
    means = np.array([X[group == g].mean(axis=0) for g in range(3)]) + 0.01
    covariances = np.broadcast_to(np.eye(n_features), (3, n_features, n_features)).copy()
    density = Gaussian(reg_covar=0.0)
    components = GaussianParameters(means, covariances, covariances.copy())
    parameters = engine.Parameters(np.full(3, 1 / 3), np.ones((3, 1)), components)
    with native.using(level):
        sums = engine.free_sums(density, parameters, Rows(X))
        after = density.maximize(sums.statistics, components)
    wide = X.astype(np.longdouble)
    exact = -300 * (n_features / 2 * np.log(2 * np.longdouble(np.pi)) + np.log(np.longdouble(3)))
    for g in range(3):
        rows = wide[group == g]
        centred = rows - rows.mean(axis=0)
        np.testing.assert_allclose(
            after.covariances[g], (centred.T @ centred / len(rows)).astype(np.float64), rtol=1e-7, atol=1e-9
        )
        exact -= ((rows - means[g].astype(np.longdouble)) ** 2).sum() / 2
    assert sums.log_likelihood == pytest.approx(float(exact), rel=1e-13)


# --- pairs ------------------------------------------------------------------------------------------------------


@needs_core
@every_level
@given(
    seed=st.integers(0, 10**6),
    n_classes=st.sampled_from([1, 2, 3, 4, 5, 8, 9]),
    scale=st.sampled_from([0.0, 1.0, 30.0, 300.0, 1e4]),
    certain=st.booleans(),
)
def test_pairs_are_those_of_the_log_domain(level, seed, n_classes, scale, certain):
    rng = np.random.default_rng(seed)
    pairs = np.array([(i, j) for i in range(8) for j in range(i)])
    pairs = pairs[rng.random(len(pairs)) < 0.6]
    must = rng.random(len(pairs)) < (1.0 if n_classes == 1 else 0.5)
    confidence = rng.uniform(0.5, 1, size=len(pairs))
    links = Links(
        pairs[must],
        pairs[~must],
        must_confidence=None if certain else confidence[must],
        cannot_confidence=None if certain else confidence[~must],
    )
    coupling = Pairwise().bind(links, 8, n_classes)
    log_density = scale * rng.normal(size=(8, n_classes))
    weights = rng.dirichlet(np.ones(n_classes)) + 1e-12
    weights /= weights.sum()
    with native.using("off"):
        expected = coupling.expect(log_density, weights)
    with native.using(level):
        found = coupling.expect(log_density, weights)
    for name, value in vars(expected).items():
        size = np.abs(value).max(initial=1.0)
        np.testing.assert_allclose(vars(found)[name], value, rtol=1e-10, atol=1e-12 * size, err_msg=name)


# --- the loop ---------------------------------------------------------------------------------------------------


def linked_problem(seed, form, n_classes, per_class, n=200, d=3):
    density, components, X, _ = random_mixture(seed, form, (n, d, n_classes * per_class), scale=1.5)
    rng = np.random.default_rng(seed)
    classes = np.array([rng.integers(n_classes) for _ in range(n)])
    links = Links.from_labels(classes, 40, random_state=seed)
    points = links.points
    coupling = Pairwise().bind(links.restrict(points), len(points), n_classes)
    data = engine.Data(np.delete(X, points, axis=0), X[points])
    weights = rng.dirichlet(np.ones(n_classes))
    start = engine.Parameters(weights, rng.dirichlet(np.ones(per_class), size=n_classes), components)
    return engine.Model(density, coupling, link_weight=0.7), data, start


@needs_core
@every_level
@every_form
@pytest.mark.parametrize(("n_classes", "per_class"), [(1, 2), (2, 1), (2, 3), (3, 1), (4, 2), (9, 1)])
@pytest.mark.parametrize("linked", [True, False])
def test_a_fit_in_the_core_is_the_fit_of_numpy_at_every_step(level, form, n_classes, per_class, linked, monkeypatch):
    model, data, start = linked_problem(3, form, n_classes, per_class)
    if not linked:
        model = replace(model, coupling=Pairwise().bind(Links(), 0, n_classes))
        data = engine.Data(np.concatenate([data.free, data.linked]), data.linked[:0])
    with native.using("off"):
        expected = engine.fit(model, data, start, tol=0, max_iter=12)
    monkeypatch.setattr(loop, "_careful_steps", None)  # the core makes all steps by itself
    with native.using(level):
        found = engine.fit(model, data, start, tol=0, max_iter=12)
    np.testing.assert_allclose(found.trace, expected.trace, rtol=1e-10)
    assert found.log_likelihood == found.trace[-1]
    for name in ("class_weights", "cluster_weights"):
        np.testing.assert_allclose(getattr(found.parameters, name), getattr(expected.parameters, name), rtol=1e-8)
    for name in ("means", "covariances", "whiteners"):
        one, other = (getattr(fit.parameters.components, name) for fit in (found, expected))
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-8)
    assert engine.expect(model, data, found.parameters).log_likelihood == pytest.approx(found.log_likelihood, rel=1e-12)


VARIANTS = {
    "student": {"degrees_of_freedom": 4.0},
    "learned": {"degrees_of_freedom": None},
    "shrunk": {"shrinkage": 5.0},
    "shrunk student": {"degrees_of_freedom": 3.0, "shrinkage": 5.0},
    "pool": {"pool": True},
    "all": {"degrees_of_freedom": None, "shrinkage": 5.0, "pool": True},
    "weights": {"weighted": True},
    "known labels": {"known": True},
    "weights and known labels": {
        **{"weighted": True, "known": True},
        **{"degrees_of_freedom": 4.0, "pool": True, "shrinkage": 5.0},
    },
}


def variant_problem(form, n_classes, per_class, n=200, d=3, *, pool=False, weighted=False, known=False, **settings):
    """A problem as `linked_problem`, with more that the loop supports."""
    model, data, start = linked_problem(5, form, n_classes, per_class, n, d)
    rng = np.random.default_rng(5)
    C = n_classes * per_class
    density = (StudentT if "degrees_of_freedom" in settings else Gaussian)(FORMS[form], **settings)
    X = np.concatenate([data.free, data.linked])
    X[rng.integers(len(X), size=5)] += 20 * rng.normal(size=(5, d))
    data = engine.Data(X[: len(data.free)], X[len(data.free) :])
    components = density.start(X, rng.dirichlet(np.full(C, 0.1), size=len(X)))
    if pool:
        weights = rng.dirichlet(np.full(C, 0.3), size=n_classes)
        start = replace(start, cluster_weights=np.maximum(weights, 1e-300), shared_clusters=True)
    if weighted:
        weights = [rng.uniform(0.2, 3, size=len(rows)) for rows in (data.free, data.linked)]
        data = replace(data, free_weights=weights[0], linked_weights=weights[1])
    if known:
        labels = np.full(len(data.linked), -1)
        labels[:3] = 0
        free_labels = np.where(rng.random(len(data.free)) < 0.3, rng.integers(n_classes, size=len(data.free)), -1)
        data = replace(data, linked_known=labels, free_known=free_labels)
    return replace(model, density=density), data, replace(start, components=components)


@needs_core
@every_level
@every_form
@pytest.mark.parametrize("variant", list(VARIANTS))
@pytest.mark.parametrize(("n_classes", "per_class"), [(2, 1), (3, 2)])
def test_the_core_fits_all_variants_as_numpy_does(level, form, variant, n_classes, per_class, monkeypatch):
    model, data, start = variant_problem(form, n_classes, per_class, **VARIANTS[variant])
    with native.using("off"):
        expected = engine.fit(model, data, start, tol=0, max_iter=25)
    monkeypatch.setattr(loop, "_careful_steps", None)  # the core makes all steps by itself
    with native.using(level):
        found = engine.fit(model, data, start, tol=0, max_iter=25)
    assert_same_fit(found, expected)
    assert np.ptp(expected.trace) > 1, "nothing was learned"


def assert_same_fit(found, expected):
    np.testing.assert_allclose(found.trace, expected.trace, rtol=1e-10)
    assert found.log_likelihood == pytest.approx(expected.log_likelihood, rel=1e-10)
    for name in ("class_weights", "cluster_weights"):
        one, other = (getattr(fit.parameters, name) for fit in (found, expected))
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)
    for name, other in vars(expected.parameters.components).items():
        one = getattr(found.parameters.components, name)
        assert (one is None) == (other is None), name
        if other is not None:
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7, err_msg=name)


NETWORKS = {
    "pairs": [(i, i + 1) for i in range(0, 60, 2)],
    "trees": [(i, (i - 1) // 2) for i in range(1, 60)],
    "cycles": [(i, i // 5 * 5 + (i + 1) % 5) for i in range(60)],
    "dense": [(i, j) for i in range(24) for j in range(i) if (7 * i + 3 * j) % 5 == 0],
}


@needs_core
@every_level
@pytest.mark.parametrize("network", list(NETWORKS))
@pytest.mark.parametrize("certain", [True, False])
@pytest.mark.parametrize("variant", ["shrunk", "all", "weights and known labels"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_networks_of_links_are_fitted_as_by_numpy(level, network, certain, variant, n_classes, monkeypatch):
    """Also with links that contradict each other, where they are uncertain."""
    model, data, start = variant_problem("full", n_classes, 2, **VARIANTS[variant])
    rng = np.random.default_rng(0)
    pairs = np.array(NETWORKS[network])
    if certain:  # labels that meet the links
        labels = rng.integers(n_classes, size=60)
        labels[:3] = 0  # as in the known ones
        must = labels[pairs[:, 0]] == labels[pairs[:, 1]]
        links = Links(pairs[must], pairs[~must])
    else:
        must = rng.random(len(pairs)) < 0.5
        confidence = rng.uniform(0.5, 0.99, size=len(pairs))
        links = Links(pairs[must], pairs[~must], must_confidence=confidence[must], cannot_confidence=confidence[~must])
    X = np.concatenate([data.linked, data.free])
    weights = None if data.free_weights is None else np.concatenate([data.linked_weights, data.free_weights])
    known = None if data.linked_known is None else np.where(np.arange(len(X)) < 3, 0, -1)
    knowledge = Knowledge(X, links, weights, None)
    data = part(knowledge)
    if known is not None:
        free_known = np.where(np.arange(len(data.free)) % 3, -1, rng.integers(n_classes, size=len(data.free)))
        data = replace(data, linked_known=known[links.points], free_known=free_known)
    with unwarned():
        model = replace(model, coupling=bind(Graph(quick=True), links, n_classes, weights))
    with native.using("off"):
        expected = engine.fit(model, data, start, tol=0, max_iter=12)
    monkeypatch.setattr(loop, "_careful_steps", None)
    with native.using(level):
        found = engine.fit(model, data, start, tol=0, max_iter=12)
    assert_same_fit(found, expected)


@needs_core
def test_a_network_that_no_labels_meet_is_explained_by_python():
    """The core finds no labels, and hands the step back."""
    model, data, start = linked_problem(0, "full", 2, 1)
    links = Links(cannot=[(0, 1), (1, 2), (2, 3), (0, 3)])
    coupling = Graph().bind(links, 4, 2)
    known = np.array([0, 0, -1, -1])
    data = engine.Data(data.free, data.linked[:4], linked_known=known)
    with pytest.raises(InfeasibleLinks):
        engine.fit(replace(model, coupling=coupling), data, start, tol=0, max_iter=3)


@needs_core
@pytest.mark.parametrize("n_classes", [3, 5, 9])
def test_class_weights_solve_the_same_equations(n_classes):
    """Cannot-links alone, which leave most to Newton's method."""
    rng = np.random.default_rng(n_classes)
    X = 3.0 * rng.normal(size=(60, 2))
    links = Links(cannot=[(i, i + 1) for i in range(0, 60, 2)])
    coupling = Pairwise().bind(links, 60, n_classes)
    density, components = random_components(rng, "diag", n_classes, 2)
    start = engine.Parameters(rng.dirichlet(np.ones(n_classes)), np.ones((n_classes, 1)), components)
    data = engine.Data(X[:0], X)
    model = engine.Model(density, coupling)
    fit = engine.fit(model, data, start, tol=0, max_iter=1)
    expectation = engine.expect(model, data, start).links
    expected = solve_class_weights(expectation.class_counts, expectation.n_apart, start.class_weights)
    np.testing.assert_allclose(fit.parameters.class_weights, expected, rtol=1e-8, atol=1e-11)


@needs_core
def test_the_tolerance_ends_a_fit_at_the_same_step():
    model, data, start = linked_problem(1, "full", 3, 1)
    with native.using("off"):
        expected = engine.fit(model, data, start, tol=1e-4, max_iter=200)
    found = engine.fit(model, data, start, tol=1e-4, max_iter=200)
    assert expected.converged
    assert found.converged
    assert len(found.trace) == len(expected.trace)


@needs_core
@every_form
def test_where_the_core_is_stuck_python_makes_the_step(form):
    """A large reg_covar makes J fall at the maximum; Python makes the cautious step, and the trace never falls."""
    model, data, start = linked_problem(2, form, 2, 1)
    model = replace(model, density=Gaussian(FORMS[form], reg_covar=0.5))
    with native.using("off"):
        expected = engine.fit(model, data, start, tol=0, max_iter=60)
    found = engine.fit(model, data, start, tol=0, max_iter=60)
    assert len(found.trace) == 61
    assert np.all(np.diff(found.trace) >= -1e-9 * np.abs(found.trace[1:]))
    np.testing.assert_allclose(found.trace, expected.trace, rtol=1e-9)


@needs_core
def test_signals_are_noticed_within_a_fit(monkeypatch):
    """Looking for them changes nothing; an exception ends the fit."""
    model, data, start = linked_problem(4, "full", 2, 2)
    expected = engine.fit(model, data, start, tol=0, max_iter=30)
    monkeypatch.setattr(native, "SIGNAL_SECONDS", 0.0)
    found = engine.fit(model, data, start, tol=0, max_iter=30)
    np.testing.assert_array_equal(found.trace, expected.trace)
    np.testing.assert_array_equal(found.parameters.components.means, expected.parameters.components.means)

    def interrupt(*_):
        raise KeyboardInterrupt

    def fit_until_the_alarm():
        signal.setitimer(signal.ITIMER_REAL, 0.05)  # which may come before the fit begins, on a busy machine
        engine.fit(model, data, start, tol=0, max_iter=10**7)

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            fit_until_the_alarm()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@needs_core
@pytest.mark.parametrize("n_links", [60, 150])
def test_steps_start_from_the_messages_of_the_last_step(n_links):
    """One call for all steps, whose loopy messages start warm, and one call for each, whose messages do not."""
    rng = np.random.default_rng(n_links)
    y = rng.integers(4, size=100)
    X = rng.normal(size=(100, 3)) + 2 * rng.normal(size=(4, 3))[y]
    links = Links.from_labels(y, n_links, random_state=0)
    with unwarned():
        bound = bind(Graph(), links, 4)
        bound.graph = LinkGraph(links.restrict(links.points), len(links.points), 4, max_table=1)
    assert not bound.graph.network.is_exact
    model, data = engine.Model(Gaussian(reg_covar=0.1), bound), part(Knowledge(X, links))
    start = starts.from_classes(model.density, X, rng.integers(4, size=100), starts.Shape(4), np.random.RandomState(0))
    found = engine.fit(model, data, start, tol=0, max_iter=12)
    trace, now = [found.trace[0]], start
    for _ in range(12):
        some = engine.fit(model, data, now, tol=0, max_iter=1)
        trace.append(some.trace[-1])
        now = some.parameters
    assert np.all(np.diff(found.trace) >= -1e-6)
    np.testing.assert_allclose(found.trace, trace, rtol=1e-7)
    np.testing.assert_allclose(found.parameters.components.means, now.components.means, atol=1e-4)
    with native.using("off"):
        expected = engine.fit(model, data, start, tol=0, max_iter=12)
    np.testing.assert_allclose(found.trace, expected.trace, rtol=1e-7)


# --- estimators -------------------------------------------------------------------------------------------------


@needs_core
@pytest.mark.parametrize("settings", [{}, {"clusters_per_class": 2}, {"shared_clusters": True}, {"shrinkage": 3.0}])
@pytest.mark.parametrize("with_links", [True, False])
def test_estimators_do_not_tell_who_computed(settings, with_links):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(60, 3)), rng.normal(size=(60, 3)) + 3])
    y = np.repeat([0, 1], 60)
    links = Links.from_labels(y, 20, random_state=0) if with_links else None
    models = []
    for level in ("off", None):
        with native.using(level):
            models.append(LinkMixture(2, random_state=0, max_iter=15, tol=0, **settings).fit(X, links=links))
    np.testing.assert_allclose(models[1].log_likelihood_trace_, models[0].log_likelihood_trace_, rtol=1e-10)
    np.testing.assert_array_equal(models[1].labels_, models[0].labels_)
    np.testing.assert_allclose(models[1].predict_proba(X), models[0].predict_proba(X), atol=1e-8)


@pytest.mark.parametrize("covariance_type", list(FORMS))
@pytest.mark.parametrize("with_links", [True, False])
def test_single_precision_is_read_as_it_is(covariance_type, with_links, monkeypatch):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(80, 3)), rng.normal(size=(80, 3)) + 3]).astype(np.float32)
    links = Links.from_labels(np.repeat([0, 1], 80), 12, random_state=0) if with_links else None
    seen = []
    fit = engine.fit

    def recorded(model, data, start, **settings):
        seen.append(data.free.dtype)
        return fit(model, data, start, **settings)

    monkeypatch.setattr(loop, "fit", recorded)
    first = LinkMixture(2, covariance_type=covariance_type, max_iter=0, random_state=0).fit(X)
    names = ("class_weights", "cluster_weights", "means", "covariances")
    init = {name: getattr(first, f"{name}_") for name in names}
    single, double = (
        LinkMixture(2, covariance_type=covariance_type, init=init, max_iter=10, tol=0).fit(rows, links=links)
        for rows in (X, X.astype(np.float64))
    )
    assert seen[1:] == [np.float32, np.float64]
    np.testing.assert_allclose(single.log_likelihood_trace_, double.log_likelihood_trace_, rtol=1e-11)
    for name in (*names, "labels"):
        one, other = getattr(single, f"{name}_"), getattr(double, f"{name}_")
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(single.predict_proba(X), double.predict_proba(X), atol=1e-10)


INTERRUPTED = """
import signal, sys, threading
import numpy as np
from linkmix import LinkMixture

n, d, n_classes = map(int, sys.argv[1:])
model = LinkMixture(n_classes, tol=0, max_iter=10**8, random_state=0)
interrupt = lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
threading.Timer(1.5, interrupt).start()
try:
    model.fit(np.random.default_rng(0).normal(size=(n, d)))
except KeyboardInterrupt:
    sys.exit(hasattr(model, "means_"))
sys.exit("the fit came to an end")
"""


@needs_core
@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
@pytest.mark.parametrize("shape", [(300, 3, 2), (400000, 4, 8)], ids=str)
def test_ctrl_c_ends_a_fit(shape):
    """The fit would take hours; the timeout only guards against a signal that is not heard."""
    subprocess.run([sys.executable, "-c", INTERRUPTED, *map(str, shape)], check=True, timeout=120)


def test_the_environment_turns_the_core_off():
    script = "from linkmix import native; assert not native.active(); assert 'NumPy' in native.description()"
    environment = {**os.environ, "LINKMIX_NATIVE": "0"}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)


@needs_core
def test_the_environment_chooses_instructions_and_threads():
    script = "from linkmix import native; assert native.description() == 'native core, base, 3 threads'"
    environment = {**os.environ, "LINKMIX_NATIVE": "base", "OMP_NUM_THREADS": "3"}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)


@needs_core
def test_what_does_not_fit_together_is_refused_and_not_read_past_its_end():
    core = native._core
    X, means, whiteners = np.zeros((10, 2)), np.zeros((3, 2)), np.ones((3, 2, 2))
    out = np.empty(1 + 3 + 6 + 12)
    core.sums(0, False, X, means, whiteners, None, False, np.zeros(3), None, 0, 10, out)
    for wrong in (
        (0, False, X, means, whiteners, None, False, np.zeros(3), None, 0, 11, out),
        (0, False, X, means, whiteners, None, False, np.zeros(2), None, 0, 10, out),
        (0, False, X, means, whiteners[:2], None, False, np.zeros(3), None, 0, 10, out),
        (0, False, X, means, whiteners, None, False, np.zeros(3), np.ones(9), 0, 10, out),
        (0, False, X, means, whiteners, None, False, np.zeros(3), None, 0, 10, out[:-1]),
        (0, False, X.astype(int), means, whiteners, None, False, np.zeros(3), None, 0, 10, out),
        (0, False, X, means, whiteners, np.ones(2), False, np.zeros(3), None, 0, 10, np.empty(100)),
        (0, False, X, means, whiteners, np.ones(3), False, np.zeros(3), None, 0, 10, out),
        (0, False, X, means.ravel()[:5], whiteners, None, False, np.zeros(3), None, 0, 10, out),
    ):
        with pytest.raises(ValueError):  # noqa: PT011
            core.sums(*wrong)
    with pytest.raises(ValueError, match="names point 5"):
        core.pairs(
            *(np.zeros((5, 2)), np.full(2, 0.5), np.array([[0, 5]]), np.ones(1), np.zeros(1)),
            *(np.empty((5, 2)), np.empty((2, 2)), np.empty(1)),
        )
    with pytest.raises(ValueError, match="no instruction set"):
        core.use("abacus")


def test_a_missing_core_is_said_once_with_the_remedy():
    script = """
import sys, warnings
sys.modules["linkmix.native._core"] = None
from linkmix import AutoLinkMixture, LinkMixture
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    LinkMixture(2).fit([[0.0], [1.0], [5.0], [6.0]])
    LinkMixture(2).fit([[0.0], [1.0], [5.0], [6.0]])
    AutoLinkMixture(2).fit([[0.0], [1.0], [5.0], [6.0]])
print(*[f"{one.filename}: {one.message}" for one in said], sep="\\n")
"""
    environment = {name: value for name, value in os.environ.items() if name != "LINKMIX_NATIVE"}
    for more, n_said in ({}, 1), ({"LINKMIX_NATIVE": "0"}, 0):
        done = subprocess.run([sys.executable, "-c", script], env=environment | more, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.split("<string>: ")) - 1 == done.stdout.count("install a wheel") == n_said
