"""PCCC: each assignment is the cheapest of all, and certain links hold."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import check_estimator

from linkmix import Links, links_satisfied
from linkmix.basics.errors import InfeasibleLinks
from linkmix.rivals import PCCC, COPKMeans
from linkmix.rivals.pccc import Merged, cheapest_classes

N_ROWS = 6
pairs_of_rows = st.tuples(st.integers(0, N_ROWS - 1), st.integers(0, N_ROWS - 1)).filter(lambda p: p[0] < p[1])


def price(costs, apart, soft, prices, labels):
    if any(labels[a] == labels[b] for a, b in apart):
        return np.inf
    broken = [(labels[a] == labels[b]) != (p > 0) for (a, b), p in zip(soft, prices, strict=True)]
    return costs[np.arange(len(labels)), list(labels)].sum() + np.abs(prices)[np.array(broken, dtype=bool)].sum()


@settings(max_examples=60)
@given(
    arrays(np.float64, (N_ROWS, 3), elements=st.integers(0, 30).map(float)),
    st.lists(pairs_of_rows, max_size=6, unique=True),
    st.dictionaries(pairs_of_rows, st.sampled_from([-7.0, -2.0, 3.0, 11.0]), max_size=6),
)
def test_the_assignment_by_brute_force(costs, apart, soft):
    pairs, prices = np.array(list(soft)).reshape(-1, 2).astype(int), np.array(list(soft.values()))
    expected = min(price(costs, apart, pairs, prices, labels) for labels in itertools.product(range(3), repeat=N_ROWS))
    found = cheapest_classes(costs, np.array(apart).reshape(-1, 2).astype(int), pairs, prices, 60.0)
    if np.isinf(expected):
        assert found is None
        return
    labels, optimal = found
    assert optimal
    assert price(costs, apart, pairs, prices, labels) == pytest.approx(expected)


@settings(max_examples=40)
@given(
    arrays(np.float64, (N_ROWS, 2), elements=st.integers(-20, 20).map(float)),
    st.lists(pairs_of_rows, max_size=4),
    st.lists(pairs_of_rows, max_size=4),
    st.booleans(),
)
def test_a_whole_fit(X, must, cannot, certain):
    links = Links(must, cannot, cannot_confidence=None if certain else 0.7)
    assume(not links.conflicts())
    try:
        model = PCCC(3, random_state=0).fit(X, links=links)
    except InfeasibleLinks:
        assert certain  # four points that are all apart
        return
    trace = model.objective_trace_
    assert (np.diff(trace[:-1]) < 0).all()
    assert model.objective_ == trace.min()
    assert links_satisfied(model.labels_, Links(must, cannot if certain else [])) == 1
    assert model.converged_


def test_without_links_it_is_k_means():
    X, _ = load_iris(return_X_y=True)
    model = PCCC(3, init=X[[0, 50, 100]]).fit(X)
    reference = KMeans(3, init=X[[0, 50, 100]], n_init=1, tol=0, algorithm="lloyd").fit(X)
    np.testing.assert_array_equal(model.labels_, reference.labels_)
    assert model.objective_ == pytest.approx(reference.inertia_, rel=1e-9)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_it_finds_a_way_where_cop_kmeans_is_stuck():
    X = np.array([[0.0], [1.0], [2.0], [10.0]])
    links = Links(cannot=[(0, 2), (1, 3), (2, 3)])
    centres = [[0.4], [9.0]]
    with pytest.raises(InfeasibleLinks):
        COPKMeans(init=centres).fit(X, links=links)
    assert adjusted_rand_score([0, 1, 1, 0], PCCC(init=centres).fit(X, links=links).labels_) == 1


def test_many_links_give_the_classes():
    X, y = make_blobs(200, 2, centers=4, cluster_std=4.0, random_state=0)
    links = Links.from_labels(y, 1500, random_state=0)
    assert adjusted_rand_score(y, PCCC(4, random_state=0).fit(X, links=links).labels_) > 0.98


def test_points_are_merged_and_what_is_said_of_them_adds_up():
    X = np.arange(6.0)[:, None]
    links = Links(
        must=[(0, 1), (1, 2), (3, 4)],
        cannot=[(0, 5), (2, 5), (1, 4)],
        must_confidence=[1.0, 1.0, 0.9],
        cannot_confidence=[0.6, 0.6, 1.0],
    )
    merged = Merged.of(X, links)
    assert merged.number.tolist() == [0, 0, 0, 1, 2, 3]
    np.testing.assert_allclose(merged.points[:, 0], [1, 3, 4, 5])
    assert merged.apart.tolist() == [[0, 2]]
    assert merged.soft.tolist() == [[0, 3], [1, 2]]
    np.testing.assert_allclose(merged.prices, [-1.2, 0.9])


def test_it_says_when_the_time_runs_out(monkeypatch):
    X, y = load_iris(return_X_y=True)
    links = Links.from_labels(y, 60, random_state=0)
    monkeypatch.setattr("linkmix.rivals.pccc.OPTIMAL", -1)
    with pytest.warns(ConvergenceWarning, match="was not solved within time_limit=60 seconds, so that labels depend"):
        PCCC(3, random_state=0).fit(X, links=links)
    monkeypatch.setattr("linkmix.rivals.pccc.cheapest_classes", lambda *_: None)
    with pytest.raises(InfeasibleLinks, match="no assignment to 3 classes that meets all certain links"):
        PCCC(3, random_state=0).fit(X, links=links)


def test_check_estimator():
    check_estimator(PCCC(), on_skip=None, on_fail="raise")
