"""MPCKMeans: the objective never increases, the metric minimises it, and the farthest points are found."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import check_estimator

from linkmix import Links
from linkmix.rivals import kmeans_links
from linkmix.rivals.mpc_kmeans import MPCKMeans, farthest_pair
from linkmix.rivals.pc_kmeans import PCKMeans

N_ROWS = 9
pairs_of_rows = st.tuples(st.integers(0, N_ROWS - 1), st.integers(0, N_ROWS - 1)).filter(
    lambda pair: pair[0] != pair[1]
)
points = arrays(np.float64, (N_ROWS, 3), elements=st.integers(-20, 20).map(float))


@st.composite
def certain_links(draw):
    links = Links(draw(st.lists(pairs_of_rows, max_size=7)), draw(st.lists(pairs_of_rows, max_size=7)))
    assume(not links.conflicts())
    return links


def objective(X, labels, centres, metric, links, weight):
    """The published sum, pair by pair."""
    scaled = X * np.sqrt(metric)
    square = squareform(pdist(scaled, "sqeuclidean"))
    total = ((scaled - centres[labels] * np.sqrt(metric)) ** 2).sum() - len(X) * np.log(metric).sum()
    closed = links.closure()
    total += weight * sum(square[a, b] for a, b in closed.must if labels[a] != labels[b])
    return total + weight * sum(square.max() - square[a, b] for a, b in closed.cannot if labels[a] == labels[b])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@given(points, certain_links(), st.sampled_from([0.01, 1.0, 10.0]), st.sampled_from([2, 3]), st.integers(0, 99))
def test_the_objective_never_rises_and_is_what_it_says(X, links, weight, n_classes, seed):
    model = MPCKMeans(n_classes, weight=weight, max_iter=50, random_state=seed).fit(X, links=links)
    trace = model.objective_trace_
    assert (np.diff(trace) <= 1e-9 * (1 + np.abs(trace[:-1]))).all()
    assert (model.metric_ > 0).all()
    assert np.isfinite(model.metric_).all()
    expected = objective(X, model.labels_, model.cluster_centers_, model.metric_, links, weight)
    assert model.objective_ == pytest.approx(expected, rel=1e-8, abs=1e-7)
    assert (model.metric_[np.ptp(X, axis=0) == 0] == 1).all()


@given(points, certain_links(), st.integers(0, 99))
def test_one_sweep_by_brute_force(X, links, seed):
    random = np.random.RandomState(seed)
    metric = random.uniform(0.1, 2, size=3)
    centres, labels = X[:3], random.randint(3, size=N_ROWS)
    model = MPCKMeans(3)
    graph = kmeans_links.weighted_links(links, N_ROWS, 1.0)
    order = random.permutation(graph.linked)
    found = kmeans_links.choose_classes(
        model._costs(X, centres, metric), graph, model._penalties(X, graph, metric), labels, order
    )
    now = labels.copy()
    for i in [*order.tolist(), *np.setdiff1d(np.arange(N_ROWS), order).tolist()]:
        choices = []
        for m in range(3):
            now[i] = m
            choices.append(objective(X, now, centres, metric, links, 1.0))
        now[i] = found[i]
        assert choices[found[i]] == pytest.approx(min(choices), rel=1e-9, abs=1e-7)


def test_the_metric_is_the_lowest_point():
    """With must-links alone the step is exact; a general optimiser finds no lower one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) * [1, 3, 0.2]
    links = Links(must=[(0, 1), (2, 3), (4, 5), (6, 7)])
    graph = kmeans_links.weighted_links(links, 60, 2.0)
    labels = np.arange(60) % 2
    model = MPCKMeans(2, weight=2.0)
    centres = kmeans_links.class_means(X, labels, np.zeros((2, 3)))
    metric = model._learned(X, labels, centres, graph, np.ones(3))
    lowest = minimize(
        lambda log: objective(X, labels, centres, np.exp(log), links, 2.0), np.zeros(3), options={"gtol": 1e-8}
    )
    np.testing.assert_allclose(metric, np.exp(lowest.x), rtol=1e-4)


def test_a_step_with_broken_cannot_links_goes_down():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 2))
    links = Links(cannot=[(0, 2), (4, 6), (8, 10)])  # all broken below
    graph = kmeans_links.weighted_links(links, 40, 5.0)
    labels = np.arange(40) % 2
    centres = kmeans_links.class_means(X, labels, np.zeros((2, 2)))
    metric = MPCKMeans(2, weight=5.0)._learned(X, labels, centres, graph, np.ones(2))
    before, after = (objective(X, labels, centres, A, links, 5.0) for A in (np.ones(2), metric))
    assert after < before


@given(arrays(np.float64, st.tuples(st.integers(1, 30), st.integers(1, 3)), elements=st.floats(-50, 50, width=16)))
def test_farthest_pair_by_brute_force(X):
    a, b = farthest_pair(X)
    largest = pdist(X, "sqeuclidean").max(initial=0.0)
    assert ((X[a] - X[b]) ** 2).sum() == pytest.approx(largest, rel=1e-9)


def test_the_column_that_matters_gets_the_weight():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = np.column_stack([y + 0.15 * rng.normal(size=200), 3 * rng.normal(size=200)])
    links = Links.from_labels(y, 60, random_state=0)
    model = MPCKMeans(2, random_state=0).fit(X, links=links)
    assert model.metric_[0] > 50 * model.metric_[1]
    assert adjusted_rand_score(y, model.predict(X)) > 0.95
    assert adjusted_rand_score(y, PCKMeans(2, random_state=0).fit(X, links=links).predict(X)) < 0.5


def test_predict_uses_the_metric():
    X, y = load_iris(return_X_y=True)
    model = MPCKMeans(3, random_state=0).fit(X, links=Links.from_labels(y, 30, random_state=0))
    root = np.sqrt(model.metric_)
    square = ((X[:, None] * root - model.cluster_centers_[None] * root) ** 2).sum(axis=2)
    np.testing.assert_array_equal(model.predict(X), square.argmin(axis=1))
    assert adjusted_rand_score(y, model.predict(X)) > 0.7


def test_uncertain_links_count_less():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    sure, unsure = (
        MPCKMeans(2, init=[[0.0], [3.0]], random_state=0)._penalties(
            X,
            kmeans_links.weighted_links(Links(must=[(0, 3)], cannot=[(1, 2)], must_confidence=c), 4, 1.0),
            np.ones(1),
        )
        for c in (1.0, 0.5)
    )
    assert sorted(sure) == [8.0, 9.0]
    assert sorted(unsure) == [4.5, 8.0]


def test_check_estimator():
    check_estimator(MPCKMeans(), on_skip=None, on_fail="raise")


def test_predict_before_fit():
    with pytest.raises(NotFittedError):
        MPCKMeans().predict(np.eye(3))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"weight": -1}, r"'weight' parameter of MPCKMeans must be a float in the range \[0\.0, inf\)\. Got -1"),
        ({"max_iter": 0}, r"'max_iter' parameter of MPCKMeans must be an int in the range \[1, inf\)\. Got 0"),
        ({"init": np.eye(3)}, r"init has shape \(3, 3\): give one centre per class, shape \(2, 5\)"),
    ],
)
def test_bad_settings(settings, words):
    with pytest.raises(ValueError, match=words):
        MPCKMeans(**settings).fit(np.eye(5))
