"""SpectralRBF: spectral clustering without links, exactly or from landmarks."""

import numpy as np
import pytest
from sklearn.cluster import SpectralClustering
from sklearn.datasets import load_iris, make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, pairwise_distances
from sklearn.utils.estimator_checks import check_estimator

from linkmix import Links, purity
from linkmix.rivals.csc import CSC
from linkmix.rivals.kernels import rbf_similarity
from linkmix.rivals.spectral import SpectralRBF, landmark_embedding


def test_it_is_scikit_learns_with_our_bandwidth():
    X, _ = load_iris(return_X_y=True)
    squared = pairwise_distances(X, metric="sqeuclidean")
    similarity = np.exp(-squared / (2 * squared.sum() / (150 * 149)))
    np.fill_diagonal(similarity, 0)
    expected = SpectralClustering(3, affinity="precomputed", random_state=0).fit_predict(similarity)
    assert adjusted_rand_score(SpectralRBF(3, random_state=0).fit(X).labels_, expected) == 1


def test_csc_without_links_is_close():
    """Two classes: k-means of two vectors here, the sign of one there; hence not the same at the border."""
    X, _ = make_moons(300, noise=0.05, random_state=0)
    ours = SpectralRBF(2, random_state=0).fit(X).labels_
    assert adjusted_rand_score(ours, CSC(2, random_state=0).fit(X).labels_) > 0.9


@pytest.mark.parametrize("kind", ["must", "cannot"])
def test_links_are_refused(kind):
    with pytest.raises(ValueError, match=f"SpectralRBF cannot use {kind}-links, but got 1 of them"):
        SpectralRBF().fit(np.arange(12.0).reshape(6, 2), links=Links(**{kind: [(0, 1)]}))


def test_an_outlier_and_equal_points():
    X = np.zeros((400, 1))
    X[0] = 1e6
    labels = SpectralRBF(2, random_state=0).fit(X).labels_
    assert labels.shape == (400,)
    assert SpectralRBF(2, random_state=0).fit(np.ones((10, 2))).labels_.shape == (10,)


@pytest.mark.parametrize(("n_classes", "labels"), [(1, [0, 0, 0]), (3, [0, 1, 2])])
def test_nothing_to_choose(n_classes, labels):
    np.testing.assert_array_equal(SpectralRBF(n_classes).fit(np.arange(3.0)[:, None]).labels_, labels)


def test_seeds_repeat():
    X, y = load_iris(return_X_y=True)
    first, second = (SpectralRBF(3, random_state=4).fit(X).labels_ for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert purity(y, first) > 0.8


def test_bad_parameters():
    with pytest.raises(ValueError, match=r"'n_classes' parameter of SpectralRBF must be an int .* Got 1\.5 instead"):
        SpectralRBF(1.5).fit(np.arange(12.0).reshape(6, 2))


def test_check_estimator():
    results = check_estimator(SpectralRBF(), on_skip=None, on_fail="raise")
    assert {result["check_name"] for result in results if result["status"] != "passed"} <= {"check_array_api_input"}


def test_landmarks_find_what_the_whole_similarity_finds():
    X, y = make_blobs(1500, 4, centers=3, cluster_std=1.5, random_state=0)
    exact = SpectralRBF(3, random_state=0).fit(X)
    landmarks = SpectralRBF(3, exact_limit=1000, random_state=0).fit(X)
    assert exact.residual_ == 0 < landmarks.residual_ < 0.02
    assert adjusted_rand_score(exact.labels_, landmarks.labels_) > 0.99
    assert adjusted_rand_score(y, landmarks.labels_) > 0.9


def test_eigenvectors_from_landmarks_are_those_of_the_similarity():
    X = np.random.default_rng(0).normal(size=(400, 2))
    embedding, residual = landmark_embedding(X, 3, np.random.RandomState(0))
    similarity = rbf_similarity(X)  # ones on the diagonal, as landmarks see it
    walk = similarity / similarity.sum(axis=1, keepdims=True)
    values = np.linalg.norm(walk @ embedding, axis=0) / np.linalg.norm(embedding, axis=0)
    np.testing.assert_allclose(walk @ embedding, embedding * values, atol=1e-5)
    expected = np.sort(np.linalg.eigvals(walk).real)[::-1][:3]
    np.testing.assert_allclose(values, expected, rtol=1e-5)
    assert residual < 1e-5


def test_inaccurate_landmarks_are_replaced_or_reported(monkeypatch):
    monkeypatch.setattr("linkmix.rivals.kernels.LARGEST_ERROR", 0.0)
    monkeypatch.setattr("linkmix.rivals.kernels.MOST_LANDMARKS", 30)
    monkeypatch.setattr("linkmix.rivals.kernels.FIRST_LANDMARKS", 15)
    X, _ = make_blobs(300, 3, centers=2, random_state=0)
    exact = SpectralRBF(2, random_state=0).fit(X).labels_
    fallen_back = SpectralRBF(2, exact_limit=100, random_state=0).fit(X).labels_  # without a warning
    assert adjusted_rand_score(fallen_back, exact) == 1
    monkeypatch.setattr("linkmix.rivals.kernels.LARGEST_EXACT", 200)
    with pytest.warns(ConvergenceWarning, match=r"30 landmarks leave a residual of .*: raise exact_limit to 300"):
        SpectralRBF(2, exact_limit=100, random_state=0).fit(X)
