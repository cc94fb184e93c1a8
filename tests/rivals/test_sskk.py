"""SSKK: the kernel, weighted kernel k-means and its guarantees, the start, and landmarks."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import check_estimator

from linkmix import Links, purity
from linkmix.rivals.kernels import landmark_map, mean_squared_distance, rbf_similarity
from linkmix.rivals.landmark_kernel import LandmarkKernel
from linkmix.rivals.sskk import OBJECTIVES, SSKK, kernel_kmeans, link_kernel, lowest_eigenvalue, seed_labels

FILES = {"norm-cut_sigmamin": "normalised-cut", "ratio-assoc_sigma0": "ratio-association"}


@pytest.fixture(params=FILES)
def reference(request):
    """A reference file and the objective it is for; they are not part of the repository."""
    folder = os.environ.get("LINKMIX_DATA")
    if not folder:
        pytest.skip("set LINKMIX_DATA to the folder that holds reference/")
    return np.load(Path(folder) / "reference" / f"sskk_{request.param}.npz"), FILES[request.param]


def links_of(file):
    """The links of a reference file, read off its W."""
    rows, columns = np.nonzero(np.triu(file["W"]))
    must = file["W"][rows, columns] > 0
    pairs = np.stack([rows, columns], axis=1)
    return Links(pairs[must], pairs[~must])


# The kernel.


def test_bandwidth_is_the_mean_over_pairs():
    X = np.random.RandomState(0).normal(size=(40, 3)) + 1e4
    assert mean_squared_distance(X) == pytest.approx(np.mean(pdist(X, "sqeuclidean")), rel=1e-12)


@pytest.mark.parametrize(("precision", "tolerance"), [("float64", 1e-14), ("float32", 2e-6)])
def test_similarity_over_several_blocks(precision, tolerance, monkeypatch):
    monkeypatch.setattr("linkmix.rivals.kernels.BLOCK_ENTRIES", 500)
    X = np.random.RandomState(0).normal(size=(70, 3)) + 1e3
    squared = squareform(pdist(X, "sqeuclidean"))
    expected = np.exp(-squared / (2 * squared[~np.eye(70, dtype=bool)].mean()))
    found = rbf_similarity(X, precision=precision)
    assert found.dtype == precision
    np.testing.assert_allclose(found, expected, atol=tolerance)
    np.testing.assert_array_equal(rbf_similarity(X, diagonal=0.0).diagonal(), 0)


def test_similarity_of_equal_points_and_of_an_outlier():
    np.testing.assert_array_equal(rbf_similarity(np.ones((4, 2))), 1)
    X = np.zeros((5000, 1))
    X[0] = 1e3
    assert rbf_similarity(X)[0, 1] > 0  # exp(-1250) alone would be zero


def test_landmarks_at_every_point_give_the_kernel():
    X = np.random.RandomState(0).normal(size=(30, 4))
    features, landmarks = landmark_map(X, 100, np.random.RandomState(0))
    assert len(landmarks) == 30
    np.testing.assert_allclose(features @ features.T, rbf_similarity(X), atol=1e-8)


def test_landmarks_in_single_precision():
    X = np.random.RandomState(0).normal(size=(500, 2))
    features, _ = landmark_map(X, 100, np.random.RandomState(0), precision="float32")
    assert features.dtype == np.float32
    np.testing.assert_allclose(features @ features.T, rbf_similarity(X), atol=3e-2)


# Reference values.


def test_reference_kernel(reference):
    file, objective = reference
    similarity = rbf_similarity(file["X"])
    np.testing.assert_allclose(similarity, file["S"], atol=1e-14)
    kernel, weights = link_kernel(similarity, links_of(file), float(file["w"]), objective)
    np.testing.assert_allclose(kernel + np.diag(file["sigma"] / weights), file["K"], atol=1e-12)
    np.testing.assert_allclose(weights, file["alpha"], rtol=1e-13)


def test_reference_run_with_the_shift_in_the_matrix(reference):
    file, _ = reference
    result = kernel_kmeans(file["K"], file["lab0"], file["alpha"])
    np.testing.assert_array_equal(result.labels, file["lab"])
    np.testing.assert_allclose(result.objective_trace, file["obj"], rtol=0, atol=1e-8)
    assert result.converged


def test_reference_run_with_the_shift_beside_the_matrix(reference):
    file, objective = reference
    kernel, weights = link_kernel(file["S"].copy(), links_of(file), float(file["w"]), objective)
    sigma = float(file["sigma"])
    result = kernel_kmeans(kernel, file["lab0"], weights, sigma=sigma)
    np.testing.assert_array_equal(result.labels, file["lab"])
    constant = sigma * (len(kernel) - file["lab"].max() - 1)
    np.testing.assert_allclose(result.objective_trace + constant, file["obj"], rtol=0, atol=1e-8)


def test_reference_weight_of_a_link(reference):
    file, objective = reference
    model = SSKK(2, objective=objective, link_weight="original", random_state=0).fit(file["X"], links=links_of(file))
    other = clone(model).set_params(link_weight=float(file["w"])).fit(file["X"], links=links_of(file))
    np.testing.assert_array_equal(model.objective_trace_, other.objective_trace_)


# Guarantees.


def brute_force(kernel, labels, weights):
    """The weighted distances to the centroids, from the formula."""
    total = 0.0
    for label in np.unique(labels):
        w = weights * (labels == label)
        distances = kernel.diagonal() - 2 * kernel @ w / w.sum() + w @ kernel @ w / w.sum() ** 2
        total += w @ distances
    return total


@given(st.integers(0, 10_000), st.integers(2, 5), st.booleans())
def test_the_objective_never_worsens_with_a_semi_definite_kernel(seed, n_classes, with_shift):
    random = np.random.RandomState(seed)
    n = random.randint(n_classes, 40)
    kernel = random.normal(size=(n, n))
    kernel = kernel + kernel.T if with_shift else kernel @ kernel.T
    weights = random.uniform(0.1, 3, size=n)
    sigma = -lowest_eigenvalue(kernel, weights) if with_shift else 0.0
    start = random.randint(n_classes, size=n)
    result = kernel_kmeans(kernel, start, weights, n_classes=n_classes, sigma=sigma)
    scale = np.abs(kernel.diagonal()) @ weights + sigma * n
    assert np.all(np.diff(result.objective_trace) <= 1e-11 * scale)
    assert result.converged
    assert result.shift == sigma  # it needs no other one
    assert set(result.labels) == set(range(n_classes))
    assert result.objective_trace[-1] == pytest.approx(brute_force(kernel, result.labels, weights), abs=1e-10 * scale)


@given(st.integers(0, 10_000), st.integers(2, 4))
def test_with_any_kernel_it_settles(seed, n_classes):
    random = np.random.RandomState(seed)
    kernel = random.normal(size=(30, 30))
    result = kernel_kmeans(kernel + kernel.T, np.arange(30) % n_classes, max_iter=300)
    assert result.converged


def test_circles_are_left_by_a_shift():
    """Two points that repel themselves: each is closer to the centroid of the other, and they swap for ever."""
    kernel = np.array([[-2.0, 1.0], [1.0, -2.0]])
    result = kernel_kmeans(kernel, np.array([0, 1]))
    assert result.converged
    assert result.shift == pytest.approx(3.0)


def test_lowest_eigenvalue_is_a_bound():
    random = np.random.RandomState(0)
    kernel = random.normal(size=(300, 300))
    kernel += kernel.T
    weights = random.uniform(0.5, 2, size=300)
    exact = np.linalg.eigvalsh(np.sqrt(weights)[:, None] * kernel * np.sqrt(weights))[0]
    assert exact - 1e-3 < lowest_eigenvalue(kernel, weights) <= exact


# The start.


def test_start_takes_far_components_and_keeps_must_links():
    X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [10.0], [2.0]])
    links = Links(must=[(0, 1), (1, 2), (3, 4)], cannot=[(4, 5)])
    labels = seed_labels(rbf_similarity(X), links, 1.0, 3, np.random.RandomState(0))
    np.testing.assert_array_equal(labels, [0, 0, 0, 2, 2, 1, 0])


def test_start_distances_are_those_of_the_closed_kernel():
    """With three classes and three components of links, every other point goes to the closest mean."""
    random = np.random.RandomState(1)
    X = random.normal(size=(25, 2))
    links = Links(must=[(0, 1), (1, 2), (3, 4), (5, 6)], cannot=[(0, 3), (4, 5)])
    similarity = rbf_similarity(X)
    labels = seed_labels(similarity, links, 0.7, 3, np.random.RandomState(0))
    kernel, weights = link_kernel(similarity.copy(), Links(cannot=links.closure().cannot), 0.7, "ratio-association")
    seeds = [np.arange(3), np.array([3, 4]), np.array([5, 6])]
    means = np.stack([np.where(np.isin(np.arange(25), rows), weights, 0) / weights[rows].sum() for rows in seeds])
    distances = np.diag(means @ kernel @ means.T) - 2 * kernel @ means.T  # (25, 3)
    names = [labels[rows[0]] for rows in seeds]
    assert sorted(names) == [0, 1, 2]
    np.testing.assert_array_equal(labels[7:], np.array(names)[distances[7:].argmin(axis=1)])


# The estimator.


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_iris(objective):
    X, y = load_iris(return_X_y=True)
    links = Links.from_labels(y, 100, random_state=0)
    model = SSKK(3, objective=objective, random_state=0).fit(X, links=links)
    assert model.converged_
    assert len(model.objective_trace_) == model.n_iter_
    assert purity(y, model.labels_) >= 0.7


def test_heavier_links_are_broken_less():
    X, y = load_iris(return_X_y=True)
    links = Links.from_labels(y, 100, random_state=0)

    def n_broken(weight):
        labels = SSKK(3, link_weight=weight, random_state=0).fit_predict(X, links=links)
        same = [labels[pairs[:, 0]] == labels[pairs[:, 1]] for pairs in (links.must, links.cannot)]
        return np.sum(~same[0]) + np.sum(same[1])

    assert n_broken(50.0) < n_broken(0.0)


def test_strong_links_decide_where_the_published_weight_leaves_them_unheard():
    """2000 links on 200 points say everything; at the published weight they count as two points."""
    X, y = make_blobs(200, 2, centers=4, cluster_std=2.0, random_state=0)
    links = Links.from_labels(y, 2000, random_state=0)
    scores = [
        adjusted_rand_score(y, SSKK(4, link_weight=weight, random_state=0).fit_predict(X, links=links))
        for weight in ("strong", "original", 5.0)
    ]
    assert scores[0] == scores[2] > 0.95  # n / (10 k) = 5
    assert scores[1] < 0.7


def test_single_precision_gives_the_same_labels():
    X, y = load_iris(return_X_y=True)
    links = Links.from_labels(y, 50, random_state=0)
    double, single = (SSKK(3, precision=p, random_state=0).fit(X, links=links) for p in ("float64", "float32"))
    np.testing.assert_array_equal(double.labels_, single.labels_)


def test_it_says_when_iterations_run_out():
    X, y = load_iris(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = SSKK(3, max_iter=1, random_state=0).fit(X, links=Links.from_labels(y, 30, random_state=0))
    assert not model.converged_


@pytest.mark.parametrize("settings", [{}, *({"objective": name, "n_classes": 3} for name in OBJECTIVES[1:])], ids=str)
def test_check_estimator(settings):
    results = check_estimator(SSKK(**settings), on_skip=None, on_fail="raise")
    assert {result["check_name"] for result in results if result["status"] != "passed"} <= {"check_array_api_input"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"objective": "min-cut"},
            r"'objective' .* must be a str among {.*'ratio-association'.*}\. Got 'min-cut'",
        ),
        ({"sigma": -1}, r"'sigma' parameter of SSKK must be a float in the range \[0\.0, inf\)\. Got -1"),
        (
            {"link_weight": np.nan},
            r"'link_weight' .* must be a str among {.*} or a float in the range \[0\.0, inf\)\. Got nan",
        ),
        ({"max_iter": 0}, r"'max_iter' parameter of SSKK must be an int in the range \[1, inf\)\. Got 0"),
        (
            {"precision": "float16"},
            r"'precision' parameter of SSKK must be a str among .*'float32'.*\. Got 'float16'",
        ),
        ({"n_classes": 0}, r"'n_classes' parameter of SSKK must be an int in the range \[1, inf\)\. Got 0"),
        ({"n_classes": 7}, "n_samples=6 is less than n_classes=7"),
    ],
)
def test_bad_parameters(settings, message):
    with pytest.raises(ValueError, match=message):
        SSKK(**settings).fit(np.arange(12.0).reshape(6, 2))


def test_uncertain_links_are_refused():
    with pytest.raises(ValueError, match="SSKK takes every link as certain"):
        SSKK().fit(np.arange(12.0).reshape(6, 2), links=Links(must=[(0, 1)], must_confidence=0.7))


# Landmarks


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_landmark_kernel_is_the_matrix_that_it_stands_for(objective):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    links = Links(must=[(0, 1), (5, 9)], cannot=[(2, 3), (9, 30)])
    features = landmark_map(X, 60, np.random.RandomState(0)).features  # all points: exact
    exact, exact_weights = link_kernel(rbf_similarity(X), links, 1.5, objective)
    kernel, weights = link_kernel(LandmarkKernel.of(features), links, 1.5, objective)
    np.testing.assert_allclose(weights, exact_weights, rtol=1e-6)
    np.testing.assert_allclose(kernel @ np.eye(60), exact, atol=1e-6)
    np.testing.assert_allclose(kernel.diagonal(), exact.diagonal(), atol=1e-6)
    np.testing.assert_allclose(kernel @ np.ones(60), exact @ np.ones(60), atol=1e-5)
    np.testing.assert_allclose(lowest_eigenvalue(kernel, weights), lowest_eigenvalue(exact, weights), atol=1e-5)


def test_landmarks_find_what_the_whole_similarity_finds():
    X, y = make_blobs(1500, 4, centers=3, cluster_std=1.5, random_state=0)
    links = Links.from_labels(y, 60, random_state=0)
    exact = SSKK(3, random_state=0).fit(X, links=links)
    landmarks = SSKK(3, exact_limit=1000, random_state=0).fit(X, links=links)
    assert adjusted_rand_score(exact.labels_, landmarks.labels_) > 0.97
    single = SSKK(3, exact_limit=1000, precision="float32", random_state=0).fit(X, links=links)
    assert adjusted_rand_score(exact.labels_, single.labels_) > 0.97


def test_inaccurate_landmarks_are_replaced_or_reported(monkeypatch):
    monkeypatch.setattr("linkmix.rivals.kernels.LARGEST_ERROR", 0.0)
    monkeypatch.setattr("linkmix.rivals.kernels.MOST_LANDMARKS", 30)
    monkeypatch.setattr("linkmix.rivals.kernels.FIRST_LANDMARKS", 15)
    X, _ = make_blobs(300, 3, centers=2, random_state=0)
    exact = SSKK(2, random_state=0).fit(X).labels_
    fallen_back = SSKK(2, exact_limit=100, random_state=0).fit(X).labels_  # without a warning
    assert adjusted_rand_score(fallen_back, exact) == 1
    monkeypatch.setattr("linkmix.rivals.kernels.LARGEST_EXACT", 200)
    with pytest.warns(ConvergenceWarning, match=r"30 landmarks leave an error of .*: raise exact_limit to 300"):
        SSKK(2, exact_limit=100, random_state=0).fit(X)
