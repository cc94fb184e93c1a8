"""The synthetic data of the paper, and the fits that its figures show."""

import numpy as np
import pytest

from linkmix.rivals import GMM
from linkmix.study.paper import synthetic


def test_left_and_right_are_likelier_than_the_classes_of_the_toy():
    X, y = synthetic.toy()
    assert np.array_equal(y, X[:, 1] < 0)
    sides = (X[:, 0] > 0).astype(int)
    centres = {name: np.array([X[of == m].mean(axis=0) for m in (0, 1)]) for name, of in (("y", y), ("sides", sides))}
    fits = {}
    for name, means in centres.items():
        start = synthetic.start_at(np.vstack([X, means]), (40, 41))
        fits[name] = GMM(2, init=start).fit(X)
    assert synthetic.count_errors(y, fits["y"].predict(X)) == 0
    assert synthetic.count_errors(sides, fits["sides"].predict(X)) == 0
    assert len(X) * (fits["sides"].score(X) - fits["y"].score(X)) > 10


@pytest.mark.parametrize("noise", [0.0, 1e-9, 0.01])
def test_each_set_of_links_turns_the_toy(noise):
    X, y = synthetic.toy()
    X = X + noise * np.random.RandomState(0).standard_normal(X.shape)
    fits = synthetic.toy_fits(X)
    errors = {name: synthetic.count_errors(y, model.predict(X)) for name, model in fits.items()}
    assert errors == {"none": 20, "both": 0, "must": 0, "cannot": 0}
    assert synthetic.count_errors((X[:, 0] > 0).astype(int), fits["none"].predict(X)) == 0


@pytest.mark.parametrize("noise", [0.0, 1e-9, 0.01])
def test_two_clusters_per_class_trace_the_moons(noise):
    X, y = synthetic.two_moons()
    X = X + noise * np.random.RandomState(0).standard_normal(X.shape)
    errors = {name: synthetic.count_errors(y, m.predict(X)) for name, m in synthetic.two_moons_fits(X).items()}
    assert errors["two"] == 0
    assert 10 <= errors["one"] < errors["none"]


@pytest.mark.parametrize(
    ("data", "links"), [(synthetic.toy, synthetic.TOY_LINKS), (synthetic.two_moons, synthetic.MOONS_LINKS)]
)
def test_links_agree_with_the_true_classes(data, links):
    _, y = data()
    assert links.must.shape == links.cannot.shape == (2, 2)
    assert np.all(y[links.must[:, 0]] == y[links.must[:, 1]])
    assert np.all(y[links.cannot[:, 0]] != y[links.cannot[:, 1]])


def test_clusters_start_among_the_points_nearest_to_the_start_of_their_class():
    X, _ = synthetic.two_moons()
    distances = np.linalg.norm(X[:, None] - X[list(synthetic.MOONS_START)], axis=2)
    for m, rows in enumerate(synthetic.MOONS_CLUSTERS):
        assert np.all(distances[list(rows)].argmin(axis=1) == m)


def test_a_start_has_the_moments_of_the_nearest_points():
    X = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [10.0, 0.0], [12.0, 0.0], [10.0, 4.0]])
    start = synthetic.start_at(X, (0, 3))
    np.testing.assert_array_equal(start["means"][:, 0], X[[0, 3]])
    np.testing.assert_array_equal(start["class_weights"], [0.5, 0.5])
    # Mean (2/3, 2/3): variances 8/9 and 8/9, covariance -4/9; in the other group y is twice as wide.
    np.testing.assert_allclose(start["covariances"][0, 0], np.array([[8, -4], [-4, 8]]) / 9)
    np.testing.assert_allclose(start["covariances"][1, 0], np.array([[8, -8], [-8, 32]]) / 9)
