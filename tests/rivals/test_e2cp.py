"""E2CP: the effect of links on a neighbour graph, compared with the fixed point and plain linear algebra."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris, load_wine, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from linkmix import Links
from linkmix.rivals import e2cp
from linkmix.rivals.base import links_matrix
from linkmix.rivals.e2cp import E2CP

GRAPHS = ["dense", "sparse"]


def some_graph(seed=0, n=40, n_links=15):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    links = Links.from_labels(rng.integers(3, size=n), n_links, random_state=seed)
    weights = e2cp.neighbour_graph(e2cp.nearest(X, 5))
    return X, links, weights, links_matrix(links, n)


def fixed_point(similarity, signs, alpha):
    """The published updates, along columns and then along rows, until they converge."""
    vertical = np.zeros_like(signs)
    for _ in range(5000):
        vertical = alpha * similarity @ vertical + (1 - alpha) * signs
    both = np.zeros_like(signs)
    for _ in range(5000):
        both = alpha * both @ similarity + (1 - alpha) * vertical
    return both


@pytest.mark.parametrize("alpha", [0.0, 1e-9, 0.3, 0.8, 0.99])
def test_propagation_is_the_fixed_point_of_the_updates(alpha):
    _, _, weights, signs = some_graph()
    similarity = e2cp.normalised(weights)
    expected = fixed_point(similarity.toarray(), signs.toarray(), alpha)
    found = e2cp.propagated(similarity, signs, alpha)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    a, b = weights.nonzero()
    on_edges = e2cp.propagated_on_edges(similarity, signs, alpha, a, b)
    np.testing.assert_allclose(on_edges, expected[a, b], rtol=0, atol=1e-10)


@given(st.integers(0, 10_000), st.floats(0, 0.95))
def test_propagation_is_the_closed_form(seed, alpha):
    _, _, weights, signs = some_graph(seed, n=20, n_links=6)
    similarity = e2cp.normalised(weights)
    inverse = (1 - alpha) * np.linalg.inv(np.eye(20) - alpha * similarity.toarray())
    expected = inverse @ signs.toarray() @ inverse
    np.testing.assert_allclose(e2cp.propagated(similarity, signs, alpha), expected, rtol=0, atol=1e-10)


def test_blocks_of_linked_points_add_up(monkeypatch):
    _, _, weights, signs = some_graph()
    similarity = e2cp.normalised(weights)
    a, b = weights.nonzero()
    whole = e2cp.propagated_on_edges(similarity, signs, 0.8, a, b)
    monkeypatch.setattr(e2cp, "BLOCK", 4)
    np.testing.assert_allclose(e2cp.propagated_on_edges(similarity, signs, 0.8, a, b), whole, rtol=0, atol=1e-14)


def test_many_linked_points_need_no_eigenvectors_of_the_links(monkeypatch):
    _, _, weights, signs = some_graph()
    similarity = e2cp.normalised(weights)
    whole = e2cp.propagated(similarity, signs, 0.8)
    monkeypatch.setattr(e2cp, "LARGEST_LINKED", 0)
    np.testing.assert_allclose(e2cp.propagated(similarity, signs, 0.8), whole, rtol=0, atol=1e-12)
    a, b = weights.nonzero()
    np.testing.assert_allclose(e2cp.propagated_on_edges(similarity, signs, 0.8, a, b), whole[a, b], atol=1e-12)


@pytest.mark.parametrize("n_features", [1, 4, 9])
@pytest.mark.parametrize("decimals", [12, 1])
def test_few_points_have_the_neighbours_of_scikit_learn(n_features, decimals):
    """To the last digit, and in the same order where several are equally near."""
    X = np.random.default_rng(0).normal(size=(150, n_features)).round(decimals)
    found = e2cp.nearest(X, 10)
    algorithm = "brute" if n_features >= e2cp.BRUTE_COLUMNS else "kd_tree"
    distances, others = NearestNeighbors(n_neighbors=10, algorithm=algorithm).fit(X).kneighbors()
    if decimals == 12 or algorithm == "kd_tree":
        np.testing.assert_array_equal(found.others, others)
    if algorithm == "kd_tree":
        np.testing.assert_array_equal(found.distances, distances)
    np.testing.assert_allclose(found.distances, distances, atol=1e-7)


@pytest.mark.parametrize("n_features", [2, 8])
def test_nearest_neighbours_are_the_nearest_and_copies_are_at_zero(n_features):
    """With many columns all pairs are compared, by products of matrices that lose digits far from the origin."""
    X = np.random.default_rng(0).normal(size=(60, n_features)) + 1e3
    X[1] = X[0]
    found = e2cp.nearest(X, 5)
    distances = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
    np.fill_diagonal(distances, np.inf)
    np.testing.assert_allclose(found.distances, np.sort(distances, axis=1)[:, :5], rtol=1e-9)
    assert found.distances[0, 0] == 0
    assert found.others[0, 0] == 1


def test_neighbour_graph_by_brute_force():
    X, _, weights, _ = some_graph()
    distances = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
    scale = np.sort(distances, axis=1)[:, 5]
    is_near = (distances <= scale[:, None]) & ~np.eye(len(X), dtype=bool)
    one_way = np.where(is_near, np.exp(-(distances**2) / np.outer(scale, scale)), 0.0)
    np.testing.assert_allclose(weights.toarray(), (one_way + one_way.T) / 2, rtol=0, atol=1e-9)


def test_adjusted_weights_by_hand():
    weights, spread = np.array([0.4, 0.4, 0.0, 0.4, 0.4]), np.array([0.5, -0.5, 0.1, 3.0, -3.0])
    np.testing.assert_allclose(e2cp.adjusted(weights, spread), [0.7, 0.2, 0.1, 1.0, 0.0], rtol=1e-15)


def test_links_with_confidence_spread_in_proportion():
    links = Links(must=[(0, 1)], cannot=[(1, 2)], must_confidence=0.5)
    np.testing.assert_array_equal(links_matrix(links, 3).toarray(), [[0, 0.5, 0], [0.5, 0, -1], [0, -1, 0]])
    two_people = Links(must=[(0, 1), (1, 0)], must_annotators=["eva", "ida"])
    assert links_matrix(two_people, 2).toarray().max() == 1.0


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("rescale", [True, False])
def test_similarities_stay_symmetric_and_between_zero_and_one(graph, rescale):
    X, links, _, _ = some_graph()
    model = E2CP(3, graph=graph, rescale=rescale, random_state=0).fit(X, links=links)
    weights = model.affinity_matrix_ if graph == "dense" else model.affinity_matrix_.toarray()
    assert weights.min() >= 0
    assert weights.max() <= 1
    np.testing.assert_allclose(weights, weights.T, rtol=0, atol=1e-12)
    if graph == "sparse":
        assert (weights[links.must[:, 0], links.must[:, 1]] > 0).all()


@pytest.mark.parametrize("graph", GRAPHS)
def test_without_links_the_graph_is_left_alone(graph):
    X, _, _, _ = some_graph()
    found = E2CP(3, graph=graph, n_neighbors=4, random_state=0).fit(X).affinity_matrix_
    expected = e2cp.neighbour_graph(e2cp.nearest(X, 4)).toarray()
    np.testing.assert_array_equal(found if graph == "dense" else found.toarray(), expected)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("load", [load_iris, load_wine], ids=["iris", "wine"])
def test_links_help_on_real_data(graph, load):
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    without = adjusted_rand_score(y, E2CP(3, graph=graph, random_state=0).fit_predict(X))
    with_links = [
        adjusted_rand_score(y, E2CP(3, graph=graph, random_state=0).fit_predict(X, links=links))
        for links in (Links.from_labels(y, 150, random_state=seed) for seed in range(5))
    ]
    assert np.mean(with_links) > without + 0.02


def test_lanczos_finds_the_same_classes(monkeypatch):
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    links = Links.from_labels(y, 50, random_state=0)
    for graph in GRAPHS:
        exact = E2CP(3, graph=graph, random_state=0).fit(X, links=links).labels_
        with monkeypatch.context() as patch:
            patch.setattr(e2cp, "LARGEST_EXACT", 0)
            found = E2CP(3, graph=graph, random_state=0).fit(X, links=links).labels_
        assert adjusted_rand_score(exact, found) == 1.0


@pytest.mark.parametrize("graph", GRAPHS)
def test_copies_of_points_and_outliers(graph):
    rng = np.random.default_rng(0)
    groups = np.concatenate([rng.normal(size=(15, 2)), rng.normal(size=(15, 2)) + 8])
    X = np.concatenate([np.repeat(groups, 12, axis=0), [[1e6, 0.0]]])
    model = E2CP(2, graph=graph, random_state=0).fit(X, links=Links(must=[(0, 1)], cannot=[(0, 359)]))
    assert np.isfinite(model.affinity_matrix_.sum())
    assert np.bincount(model.labels_).size <= 2


def test_the_smallest_data():
    assert E2CP(1).fit([[3.0]]).labels_.tolist() == [0]
    assert E2CP(2, random_state=0).fit([[0.0], [1.0]], links=Links(cannot=[(0, 1)])).labels_.tolist() in (
        [0, 1],
        [1, 0],
    )


@pytest.mark.parametrize("graph", GRAPHS)
def test_check_estimator(graph):
    check_estimator(E2CP(graph=graph), on_skip=None, on_fail="raise")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"graph": "full"},
            r"'graph' parameter of E2CP must be a str among {.*'sparse'.*}\. Got 'full'",
        ),
        (
            {"n_neighbors": 0},
            r"'n_neighbors' parameter of E2CP must be an int in the range \[1, inf\) or None\. Got 0",
        ),
        ({"alpha": 1.0}, r"'alpha' parameter of E2CP must be a float in the range \[0\.0, 1\.0\)\. Got 1\.0"),
        ({"alpha": -0.1}, r"'alpha' parameter of E2CP must be a float in the range \[0\.0, 1\.0\)\. Got -0\.1"),
        ({"rescale": "max"}, r"'rescale' parameter of E2CP must be an instance of 'bool' .*Got 'max'"),
        ({"n_classes": 0}, r"'n_classes' parameter of E2CP must be an int in the range \[1, inf\)\. Got 0"),
    ],
)
def test_bad_settings(settings, words):
    with pytest.raises(ValueError, match=words):
        E2CP(**settings).fit(np.eye(5))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("graph", ["dense", "sparse"])
def test_parts_that_no_edge_joins_are_all_found(graph, seed):
    """Cannot-links between them join nothing: Lanczos would miss eigenvectors of those taken for one part."""
    X, y = make_blobs(1000, centers=5, cluster_std=0.3, random_state=0)
    links = Links.from_labels(y, 30, random_state=seed)
    assert len(links.cannot) > 15
    labels = E2CP(5, graph=graph, random_state=seed).fit(X, links=links).labels_
    assert adjusted_rand_score(y, labels) > 0.99


@pytest.mark.parametrize("graph", ["dense", "sparse"])
def test_a_link_that_is_less_sure_does_less(graph):
    X, _ = load_iris(return_X_y=True)

    def similarity(confidence):
        links = Links(must=[(0, 149)], must_confidence=confidence)
        return E2CP(3, graph=graph, random_state=0).fit(X, links=links).affinity_matrix_[0, 149]

    assert similarity(1.0) == pytest.approx(1.0)
    assert similarity(1.0) > similarity(0.5) > similarity(0.1)
