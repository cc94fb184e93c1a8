"""Kernel methods on points in few columns: features in place of the matrix of similarities, and the same classes."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from linkmix import Links
from linkmix.rivals import CSC, SSKK, SpectralRBF, kernels


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(1000, centers=4, cluster_std=2.5, random_state=3)
    return X, y, Links.from_labels(y, 120, random_state=0)


def both_ways(monkeypatch, model, X, links):
    with_features = model.fit(X, links=links)
    first = {name: np.copy(value) for name, value in vars(with_features).items() if name.endswith("_")}
    monkeypatch.setattr(kernels, "FEWEST_POINTS", len(X) + 1)
    second = {name: value for name, value in vars(model.fit(X, links=links)).items() if name.endswith("_")}
    return first, second


def test_features_are_the_similarity(blobs):
    features = kernels.exact_features(blobs[0])
    assert features.shape[1] < 84
    np.testing.assert_allclose(features @ features.T, kernels.rbf_similarity(blobs[0]), rtol=0, atol=1e-12)


def test_points_in_many_columns_have_none():
    assert kernels.exact_features(np.random.default_rng(0).normal(size=(1000, 10))) is None
    assert kernels.exact_features(np.random.default_rng(0).normal(size=(999, 1))) is None


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("beta", ["csp_K", "eigenvalue"])
@pytest.mark.parametrize("linked", [True, False])
def test_csc(monkeypatch, blobs, n_classes, beta, linked):
    X, y, links = blobs
    links = Links.from_labels(y % n_classes, 120, random_state=0) if linked else Links()
    model = CSC(n_classes, beta=beta, random_state=0)
    first, second = both_ways(monkeypatch, model, X, links)
    np.testing.assert_array_equal(first["labels_"], second["labels_"])
    np.testing.assert_allclose(first["eigenvalues_"], second["eigenvalues_"], rtol=1e-8)
    np.testing.assert_allclose(first["costs_"], second["costs_"], rtol=1e-8)
    assert first["residual_"] < 1e-8


def test_csc_with_a_point_far_from_all_others(monkeypatch, blobs):
    X, _, links = blobs
    X = np.vstack([X[1:], [[1e3, 0.0]]])
    first, second = both_ways(monkeypatch, CSC(4, random_state=0), X, links)
    np.testing.assert_allclose(first["costs_"], second["costs_"], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("objective", ["ratio-association", "normalised-cut", "ratio-cut"])
def test_sskk(monkeypatch, blobs, objective):
    X, _, links = blobs
    first, second = both_ways(monkeypatch, SSKK(4, objective=objective, random_state=0), X, links)
    np.testing.assert_array_equal(first["labels_"], second["labels_"])
    np.testing.assert_allclose(first["objective_trace_"], second["objective_trace_"], rtol=1e-8)


def test_spectral(monkeypatch, blobs):
    first, second = both_ways(monkeypatch, SpectralRBF(4, random_state=0), blobs[0], Links())
    np.testing.assert_array_equal(first["labels_"], second["labels_"])
