"""k-means in NumPy: the labels of scikit-learn, and its random numbers."""

import warnings

import numpy as np
import pytest
from numpy.random import RandomState
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

from linkmix.rivals.k_means import FEW_POINTS, k_means


def some_points(kind, seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(6, 200)), int(rng.integers(1, 9))
    match kind:
        case "groups":
            return rng.normal(size=(n, d)) + 4 * rng.integers(3, size=(n, 1))
        case "rounded":
            return rng.normal(size=(n, d)).round(1)
        case "copies":
            return rng.integers(3, size=(n, d)).astype(float)
        case "ends of axes":  # as in the embedding of a graph of several parts
            return np.eye(d)[rng.integers(d, size=n)] * rng.choice([-1, 1], size=(n, 1))
        case "many":
            return rng.normal(size=(FEW_POINTS + 1, d))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["groups", "rounded", "copies", "ends of axes", "many"])
@pytest.mark.parametrize("n_classes", [1, 2, 3, 6])
def test_labels_are_those_of_scikit_learn(kind, n_classes):
    for seed in range(2 if kind == "many" else 8):
        X = some_points(kind, seed)
        ours, theirs = RandomState(seed), RandomState(seed)
        expected = KMeans(n_classes, n_init=4, random_state=theirs).fit(X).labels_
        np.testing.assert_array_equal(k_means(X, n_classes, 4, ours), expected)
        assert ours.uniform() == theirs.uniform()


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_labels_of_real_data_are_those_of_scikit_learn(load):
    X = load().data
    for points in (X, (X - X.mean(axis=0)) / X.std(axis=0)):
        expected = KMeans(3, n_init=10, random_state=0).fit(points).labels_
        np.testing.assert_array_equal(k_means(points, 3, 10, RandomState(0)), expected)


def test_fewer_different_points_than_classes_is_a_warning():
    X = np.repeat([[0.0], [1.0]], 5, axis=0)
    with pytest.warns(ConvergenceWarning, match="found 2 of 3 classes"):
        labels = k_means(X, 3, 2, RandomState(0))
    assert len(np.unique(labels)) == 2


def test_the_points_are_left_alone():
    X = np.arange(12.0).reshape(6, 2)
    before = X.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        k_means(X, 2, 2, RandomState(0))
    np.testing.assert_array_equal(X, before)
