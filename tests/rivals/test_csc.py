"""CSC: its vectors solve the generalised eigenproblem, exactly or from landmarks."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eig, eigh
from scipy.sparse import csr_array
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

from linkmix import Links, purity
from linkmix.rivals.base import links_matrix
from linkmix.rivals.constrained_cut import (
    LandmarkGraph,
    Problem,
    SimilarityGraph,
    choose_threshold,
    feasible_vectors,
    normalise,
)
from linkmix.rivals.csc import CSC
from linkmix.rivals.kernels import rbf_similarity


def dense_problem(X, links):
    """Similarity, degrees, Laplacian and normalised links as plain matrices."""
    similarity = rbf_similarity(X, diagonal=0.0)
    degrees = similarity.sum(axis=1)
    root = np.sqrt(np.multiply.outer(degrees, degrees))
    return similarity, degrees, np.eye(len(X)) - similarity / root, links_matrix(links, len(X)).toarray() / root


def draw(seed, n=60, n_classes=3, n_links=40):
    X, y = make_blobs(n, 3, centers=n_classes, cluster_std=2.0, random_state=seed)
    return X, y, Links.from_labels(y, n_links, random_state=seed)


# Reference values.


@pytest.mark.parametrize("variant", [1, 2])
def test_reference_embedding(variant):
    """The authors' program on iris: u = D^-1/2 v (1 - cost), to a sign; variant 1 does not normalise Q."""
    folder = os.environ.get("LINKMIX_DATA")
    if not folder:
        pytest.skip("set LINKMIX_DATA to the folder that holds reference/")
    X, y, pairs, expected = (
        np.loadtxt(Path(folder) / "reference" / f"csp_iris_{name}.csv", delimiter=",")
        for name in ("X", "label", "pairs_idx1", f"U_variant{variant}")
    )
    pairs = pairs.astype(int) - 1
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    links = Links(pairs[same], pairs[~same])
    graph = SimilarityGraph(rbf_similarity(X, diagonal=0.0))
    Q = links_matrix(links, len(X))
    Q = Q if variant == 1 else normalise(Q, graph.degrees)
    threshold = choose_threshold(Q, graph.degrees, 3, "eigenvalue")
    found = feasible_vectors(graph, Problem(Q, threshold), 2, np.random.RandomState(0))
    embedding = found.vectors * np.sqrt(graph.degrees.sum() / graph.degrees)[:, None] * (1 - found.costs)
    embedding *= np.sign(np.sum(embedding * expected, axis=0))
    np.testing.assert_allclose(
        embedding / np.abs(expected).max(axis=0), expected / np.abs(expected).max(axis=0), atol=5e-8
    )
    if variant == 2:
        model = CSC(3, beta="eigenvalue", random_state=0).fit(X, links=links)
        np.testing.assert_allclose(np.abs(model.embedding_), np.abs(embedding), atol=1e-12)


# The solver.


@pytest.mark.parametrize("lanczos", [False, True])
@pytest.mark.parametrize(("n_classes", "n_links"), [(2, 10), (3, 100), (5, 60)])
def test_eigenvalues_are_those_of_the_generalised_problem(n_classes, n_links, lanczos, monkeypatch):
    monkeypatch.setattr("linkmix.rivals.constrained_cut._DENSE_LIMIT", 10 if lanczos else 1000)
    X, _, links = draw(0, n=300, n_classes=n_classes, n_links=n_links)
    similarity, degrees, laplacian, Q = dense_problem(X, links)
    threshold = choose_threshold(csr_array(Q), degrees, n_classes, "eigenvalue")
    B = Q - threshold * np.eye(len(X))
    values, vectors = eig(laplacian, B)
    with np.errstate(divide="ignore", invalid="ignore"):
        good = np.isfinite(values) & (values.real > 1e-8) & (np.abs(values.imag) < 1e-8 * np.abs(values.real))
    values, vectors = values[good].real, vectors[:, good].real
    costs = np.einsum("nm,nm->m", vectors, laplacian @ vectors) / np.sum(vectors**2, axis=0)
    order = np.argsort(costs)
    found = feasible_vectors(
        SimilarityGraph(similarity), Problem(csr_array(Q), threshold), 299, np.random.RandomState(0)
    )
    assert len(found.costs) == len(values) >= n_classes - 1
    np.testing.assert_allclose(np.sort(found.eigenvalues), np.sort(values), rtol=1e-7)
    np.testing.assert_allclose(found.costs, costs[order], rtol=1e-7)
    assert found.residual < 1e-9


@settings(max_examples=40)
@given(
    st.integers(0, 10_000),
    st.integers(2, 5),
    st.integers(1, 80),
    st.sampled_from(["eigenvalue", "csp", "csp_K", 0.3]),
)
def test_every_vector_is_feasible_and_solves_the_problem(seed, n_classes, n_links, rule):
    X, _, links = draw(seed, n_classes=n_classes, n_links=n_links)
    _, degrees, laplacian, Q = dense_problem(X, links)
    Q = links_matrix(links, len(X)).toarray() if rule == "csp_K" else Q
    model = CSC(n_classes, beta=rule, random_state=seed)
    try:
        model.fit(X, links=links)
    except ValueError:
        assert rule != "eigenvalue"  # which leaves K - 1 vectors always
        with pytest.raises(ValueError, match="choose a smaller beta"):
            model.fit(X, links=links)
        return
    V = model.vectors_
    np.testing.assert_allclose(np.sum(V**2, axis=0), degrees.sum(), rtol=1e-9)
    np.testing.assert_allclose(model.satisfaction_, np.einsum("nm,nm->m", V, Q @ V), rtol=1e-9)
    assert np.all(model.satisfaction_ > model.beta_)
    assert np.all(model.eigenvalues_ > 0)
    B = Q - model.beta_ / degrees.sum() * np.eye(len(X))
    residual = np.linalg.norm(B @ V - laplacian @ V / model.eigenvalues_, axis=0) / np.linalg.norm(V, axis=0)
    assert np.all(residual < 1e-9 * np.linalg.norm(Q, 2))
    np.testing.assert_allclose(model.costs_, np.einsum("nm,nm->m", V, laplacian @ V) / degrees.sum(), rtol=1e-7)
    assert np.all(np.diff(model.costs_) >= 0)
    if rule == "eigenvalue":
        assert V.shape[1] == n_classes - 1


def test_singular_values_leave_too_few_vectors():
    """A link that stands alone gives the eigenvalues +1 and -1: half of the singular values is no eigenvalue."""
    X, _, links = draw(0, n=200, n_classes=8, n_links=30)
    sizes = [
        CSC(8, beta=rule, random_state=0).fit(X, links=links).vectors_.shape[1] for rule in ("eigenvalue", "csp_K")
    ]
    assert sizes[0] == 7 > sizes[1] >= 1


def program(X, links, n_classes, rule):
    """What csp.m (two classes) and csp_K.m compute, by scipy's dense solver: the rows that k-means sees."""
    _, degrees, laplacian, normalised = dense_problem(X, links)
    Q = normalised if rule == "csp" else links_matrix(links, len(X)).toarray()
    singular = np.linalg.svd(Q, compute_uv=False)
    beta = singular[0] / 2 if rule == "csp" else (singular[n_classes - 1] + singular[n_classes]) / 2 - 1e-6
    values, vectors = eig(laplacian, Q - beta * np.eye(len(X)))
    vectors = vectors[:, np.isfinite(values) & (np.abs(values.imag) < 1e-9)].real
    vectors /= np.linalg.norm(vectors, axis=0)
    feasible = np.einsum("nm,nm->m", vectors, (Q - beta * np.eye(len(X))) @ vectors) >= 0
    mixed = (vectors > 1e-12).any(axis=0) & (vectors < -1e-12).any(axis=0)
    vectors = vectors[:, feasible & mixed]
    costs = np.einsum("nm,nm->m", vectors, laplacian @ vectors)
    order = np.argsort(costs)[: n_classes - 1]
    scale = 1.0 if rule == "csp" else 1 - costs[order]
    return vectors[:, order] * np.sqrt(degrees.sum() / degrees)[:, None] * scale


@pytest.mark.parametrize(("rule", "n_classes"), [("csp", 2), ("csp_K", 3), ("csp_K", 5)])
def test_the_rules_are_those_of_the_authors_programs(rule, n_classes):
    X, _, links = draw(3, n=90, n_classes=n_classes, n_links=200)
    expected = program(X, links, n_classes, rule)
    found = CSC(n_classes, beta=rule, random_state=0).fit(X, links=links).embedding_
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-7)


def test_must_links_that_one_class_meets():
    """Each row must-links all others: one class for all is feasible, and must not be chosen."""
    X = np.random.RandomState(0).normal(size=(12, 2))
    links = Links(must=[(i, j) for i in range(12) for j in range(i)])
    model = CSC(2, random_state=0).fit(X, links=links)
    assert model.costs_[0] > 0.01
    assert model.satisfaction_[0] > model.beta_


def test_few_links_for_many_classes():
    X, _, _ = draw(0, n=80, n_classes=6)
    model = CSC(6, random_state=0).fit(X, must_link=[(0, 1)])
    assert model.vectors_.shape == (80, 5)
    assert np.all(model.satisfaction_ > model.beta_)


def test_without_links_it_is_spectral_clustering():
    X, y, _ = draw(3, n_classes=3)
    _, degrees, laplacian, _ = dense_problem(X, Links())
    values, vectors = eigh(laplacian)
    model = CSC(3, random_state=0).fit(X)
    np.testing.assert_allclose(model.costs_, values[1:3], rtol=1e-10)
    expected = vectors[:, 1:3] * np.sqrt(degrees.sum() / degrees)[:, None] * (1 - values[1:3])
    np.testing.assert_allclose(np.abs(model.embedding_), np.abs(expected), atol=1e-8)
    assert purity(y, model.labels_) > 0.8


def test_far_points_do_not_break_the_factorisation():
    X = np.random.RandomState(0).normal(size=(600, 2))
    X[:3] += 1e4
    links = Links(must=[(0, 1), (5, 6)], cannot=[(0, 7), (8, 9)])
    for given_links in (links, Links()):
        model = CSC(2, random_state=0).fit(X, links=given_links)
        assert np.all(np.isfinite(model.embedding_))


def test_equal_points():
    assert CSC(2, random_state=0).fit(np.ones((8, 2)), must_link=[(0, 1)]).labels_.shape == (8,)


# Landmarks.


def test_landmarks_at_every_point_are_exact():
    X, _, links = draw(1, n=150, n_links=60)
    exact = CSC(3, random_state=0).fit(X, links=links)
    near = CSC(3, exact_limit=0, n_landmarks=150, random_state=0).fit(X, links=links)
    assert (exact.solver_, near.solver_) == ("exact", "landmarks")
    np.testing.assert_allclose(near.costs_, exact.costs_, rtol=1e-5)
    np.testing.assert_allclose(
        np.abs(near.embedding_), np.abs(exact.embedding_), atol=1e-4 * np.abs(exact.embedding_).max()
    )
    assert near.residual_ < 1e-4


@pytest.mark.parametrize("links_given", [False, True])
def test_few_landmarks_are_close(links_given):
    X, y, links = draw(2, n=1000, n_classes=2, n_links=4000)
    links = links if links_given else Links()
    exact = CSC(2, random_state=0).fit(X, links=links)
    near = CSC(2, exact_limit=500, n_landmarks=100, random_state=0).fit(X, links=links)
    assert near.solver_ == "landmarks"
    assert near.residual_ < 0.02
    assert np.mean(exact.labels_ == near.labels_) in (pytest.approx(0, abs=0.02), pytest.approx(1, abs=0.02))
    assert purity(y, near.labels_) > 0.9
    assert np.all(near.satisfaction_ > near.beta_)


def test_residual_of_landmarks_is_checked(monkeypatch):
    monkeypatch.setattr("linkmix.rivals.kernels.LARGEST_ERROR", 0.0)
    monkeypatch.setattr("linkmix.rivals.csc._MOST_LANDMARKS", 30)
    X, _, links = draw(1, n=150)
    assert CSC(3, exact_limit=100, n_landmarks=10, random_state=0).fit(X, links=links).solver_ == "exact"
    with pytest.warns(ConvergenceWarning, match="30 landmarks leave a residual of"):
        model = CSC(3, exact_limit=10, n_landmarks=10, random_state=0).fit(X, links=links)
    assert model.solver_ == "landmarks"


def test_landmark_graph_has_the_null_vector():
    graph = LandmarkGraph.of(draw(1, n=100)[0], 20, np.random.RandomState(0))
    np.testing.assert_allclose(graph.laplacian(np.sqrt(graph.degrees)[:, None]), 0, atol=1e-9)


# The estimator.


def test_many_links_are_met():
    X, y = load_iris(return_X_y=True)
    two = (y > 1).astype(int)
    model = CSC(2, random_state=0).fit(X, links=Links.from_labels(two, 1500, random_state=0))
    assert purity(two, model.labels_) > 0.95


@pytest.mark.parametrize("limit", [5000, 0])
def test_seeds_repeat(limit):
    X, _, links = draw(1, n=500)
    first, second = (CSC(3, exact_limit=limit, random_state=5).fit(X, links=links) for _ in range(2))
    np.testing.assert_array_equal(first.embedding_, second.embedding_)
    np.testing.assert_array_equal(first.labels_, second.labels_)


@pytest.mark.parametrize("parameters", [{}, {"n_classes": 3}, {"exact_limit": 20, "n_landmarks": 30}], ids=str)
def test_check_estimator(parameters):
    results = check_estimator(CSC(**parameters), on_skip=None, on_fail="raise")
    assert {result["check_name"] for result in results if result["status"] != "passed"} <= {"check_array_api_input"}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"beta": "median"},
            r"'beta' .* must be a str among {.*} or a float in the range \[0\.0, 1\.0\)\. Got 'median'",
        ),
        ({"beta": 1.0}, r"'beta' parameter of CSC .* Got 1\.0 instead"),
        ({"beta": None}, r"'beta' parameter of CSC .* Got None instead"),
        ({"exact_limit": -1}, r"'exact_limit' parameter of CSC must be an int in the range \[0, inf\)\. Got -1"),
        ({"n_landmarks": 0}, r"'n_landmarks' parameter of CSC must be an int in the range \[1, inf\)\. Got 0"),
        ({"n_classes": 7}, "n_samples=6 is less than n_classes=7"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        CSC(**parameters).fit(np.arange(12.0).reshape(6, 2))


@pytest.mark.parametrize("n_classes", [1, 2, 6])
def test_as_few_points_as_can_be(n_classes):
    X = np.arange(12.0).reshape(6, 2)[:n_classes]
    assert sorted(CSC(n_classes, random_state=0).fit(X).labels_) == list(range(n_classes))


def test_uncertain_links_are_refused():
    with pytest.raises(ValueError, match="CSC takes every link as certain"):
        CSC().fit(np.arange(12.0).reshape(6, 2), links=Links(must=[(0, 1)], must_confidence=0.7))
