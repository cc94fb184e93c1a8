"""Points that a start leaves out, against scikit-learn."""

import numpy as np
import pytest
from sklearn.neighbors import LocalOutlierFactor

from linkmix.rivals.e2cp import nearest
from linkmix.search.outliers import local_outlier_factor, outlying
from linkmix.search.settings import SearchSettings


@pytest.mark.parametrize("n_features", [1, 3, 10])
def test_the_factor_is_that_of_scikit_learn(n_features):
    X = np.random.default_rng(n_features).normal(size=(200, n_features)) ** 3
    expected = -LocalOutlierFactor(15).fit(X).negative_outlier_factor_
    np.testing.assert_allclose(local_outlier_factor(nearest(X, 15)), expected, rtol=1e-6)


def test_copies_of_one_point_are_not_lonely():
    X = np.concatenate([np.zeros((30, 2)), [[5.0, 5.0]]])
    found = outlying(nearest(X, 5))
    assert found.tolist() == [False] * 30 + [True]


def test_not_too_many_points_are_left_out():
    random = np.random.default_rng(0)
    X = np.concatenate([0.01 * random.normal(size=(50, 2)), 5 * random.normal(size=(50, 2))])
    assert outlying(nearest(X, 10), SearchSettings(lonely=1.0)).sum() <= 40
    assert outlying(nearest(X, 10), SearchSettings(lonely=1.0, most_lonely=0.1)).sum() <= 10
    assert not outlying(nearest(X, 10), SearchSettings(lonely=1e6, far=1e6)).any()


def test_many_points_far_apart_are_lonely():
    random = np.random.default_rng(0)
    X = np.concatenate([random.normal(size=(160, 18)), random.uniform(-20, 20, (40, 18))])
    neighbours = nearest(X, 20)
    assert outlying(neighbours).tolist() == [False] * 160 + [True] * 40
