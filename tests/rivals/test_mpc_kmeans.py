"""MPCKMeans: the objective never increases, the metric minimises it, and the farthest points are found."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from scipy.spatial.distance import pdist
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


KINDS = [("cluster", "diagonal"), ("cluster", "full"), ("shared", "diagonal"), ("shared", "full")]


def as_matrices(metric, n_classes, form, shared):
    """The matrix of each class."""
    each = [metric] * n_classes if shared else metric
    return [np.diag(A) if form == "diagonal" else A for A in each]


def objective(X, labels, centres, metrics, links, weight):
    """The published sum, pair by pair, with a matrix for each class."""

    def square(a, b, A):
        return (X[a] - X[b]) @ A @ (X[a] - X[b])

    total = sum(
        (x - centres[m]) @ metrics[m] @ (x - centres[m]) - np.linalg.slogdet(metrics[m])[1]
        for x, m in zip(X, labels, strict=True)
    )
    closed = links.closure()
    for a, b in closed.must:
        if labels[a] != labels[b]:
            total += weight * (square(a, b, metrics[labels[a]]) + square(a, b, metrics[labels[b]])) / 2
    for a, b in closed.cannot:
        if labels[a] == labels[b]:
            A = metrics[labels[a]]
            total += weight * (pdist(X @ np.linalg.cholesky(A), "sqeuclidean").max() - square(a, b, A))
    return total


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@given(
    points,
    certain_links(),
    st.sampled_from([0.01, 1.0, 10.0]),
    st.sampled_from([2, 3]),
    st.sampled_from(KINDS),
    st.integers(0, 99),
)
def test_the_objective_never_rises_and_is_what_it_says(X, links, weight, n_classes, kind, seed):
    metric, form = kind
    model = MPCKMeans(n_classes, weight=weight, metric=metric, form=form, max_iter=50, random_state=seed)
    model.fit(X, links=links)
    trace = model.objective_trace_
    assert (np.diff(trace) <= 1e-9 * (1 + np.abs(trace[:-1]))).all()
    matrices = as_matrices(model.metric_, n_classes, form, metric == "shared")
    assert all(np.linalg.eigvalsh(A).min() > 0 for A in matrices)
    expected = objective(X, model.labels_, model.cluster_centers_, matrices, links, weight)
    assert model.objective_ == pytest.approx(expected, rel=1e-7, abs=1e-6)
    if form == "diagonal":
        assert (model.metric_[..., np.ptp(X, axis=0) == 0] == 1).all()


@given(points, certain_links(), st.sampled_from(KINDS), st.booleans(), st.integers(0, 99))
def test_one_sweep_by_brute_force(X, links, kind, from_labels, seed):
    random = np.random.RandomState(seed)
    shape, form = kind
    model = MPCKMeans(3, metric=shape, form=form)
    metric = model._first_metric(3) * random.uniform(
        0.1, 2, size=(model._first_metric(3).shape[0], *[1] * (form == "full"), 3)
    )
    if form == "full":
        metric = metric @ metric.transpose(0, 2, 1)
    matrices = as_matrices(metric[0] if shape == "shared" else metric, 3, form, shape == "shared")
    centres, labels = X[:3], random.randint(3, size=N_ROWS)
    graph = kmeans_links.weighted_links(links, N_ROWS, 1.0)
    order = random.permutation(graph.linked)
    costs, penalties = model._costs(X, centres, metric), model._penalties(X, graph, metric)
    found = kmeans_links.choose_classes(costs, graph, penalties, labels if from_labels else None, order)
    now = labels.copy()
    placed = set(range(N_ROWS)) if from_labels else set(np.setdiff1d(np.arange(N_ROWS), order).tolist())
    for i in order.tolist():
        placed.add(i)
        seen = sorted(placed)
        known = links.closure().restrict(np.array(seen))
        choices = []
        for m in range(3):
            now[i] = m
            scaled = X[seen]
            # The farthest points are those of all rows, so they are added to the price by hand.
            choices.append(objective_of_some(X, scaled, now[seen], centres, matrices, known))
        now[i] = found[i]
        assert choices[found[i]] == pytest.approx(min(choices), rel=1e-9, abs=1e-7)


def objective_of_some(X, some, labels, centres, metrics, links):
    """The objective of some of the rows, with the largest distance among all."""
    total = objective(some, labels, centres, metrics, Links(must=links.must), 1.0)
    for a, b in links.cannot:
        if labels[a] == labels[b]:
            A = metrics[labels[a]]
            far = pdist(X @ np.linalg.cholesky(A), "sqeuclidean").max()
            total += far - (some[a] - some[b]) @ A @ (some[a] - some[b])
    return total


@pytest.mark.parametrize(("metric", "form"), KINDS)
def test_the_metric_is_the_lowest_point(metric, form):
    """With must-links alone the step is exact; a general optimiser finds no lower one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) * [1, 3, 0.2]
    links = Links(must=[(0, 1), (2, 3), (4, 5), (6, 7)])
    graph = kmeans_links.weighted_links(links, 60, 2.0)
    labels = np.arange(60) % 2
    model = MPCKMeans(2, weight=2.0, metric=metric, form=form)
    centres = kmeans_links.class_means(X, labels, np.zeros((2, 3)))
    learned = model._learned(X, labels, centres, graph, model._first_metric(3))

    def matrices(flat):
        if form == "diagonal":
            each = np.exp(flat.reshape(-1, 3))
        else:
            roots = np.zeros((len(flat) // 6, 3, 3))
            roots[:, *np.tril_indices(3)] = flat.reshape(-1, 6)
            each = roots @ roots.transpose(0, 2, 1)
        return as_matrices(each[0] if metric == "shared" else each, 2, form, metric == "shared")

    n_metrics = 1 if metric == "shared" else 2
    start = np.zeros(3 * n_metrics) if form == "diagonal" else np.tile(np.eye(3)[np.tril_indices(3)], n_metrics)
    lowest = minimize(lambda flat: objective(X, labels, centres, matrices(flat), links, 2.0), start)
    found = as_matrices(learned[0] if metric == "shared" else learned, 2, form, metric == "shared")
    np.testing.assert_allclose(found, matrices(lowest.x), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("metric", "form"), KINDS)
def test_a_step_with_broken_cannot_links_goes_down(metric, form):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 2))
    links = Links(cannot=[(0, 2), (4, 6), (8, 10)])  # all broken below
    graph = kmeans_links.weighted_links(links, 40, 5.0)
    labels = np.arange(40) % 2
    centres = kmeans_links.class_means(X, labels, np.zeros((2, 2)))
    model = MPCKMeans(2, weight=5.0, metric=metric, form=form)
    before = model._first_metric(2)
    learned = model._learned(X, labels, centres, graph, before)
    values = [
        objective(
            X, labels, centres, as_matrices(A[0] if metric == "shared" else A, 2, form, metric == "shared"), links, 5.0
        )
        for A in (before, learned)
    ]
    assert values[1] < values[0]


@given(arrays(np.float64, st.tuples(st.integers(1, 30), st.integers(1, 3)), elements=st.floats(-50, 50, width=16)))
def test_farthest_pair_by_brute_force(X):
    a, b = farthest_pair(X)
    largest = pdist(X, "sqeuclidean").max(initial=0.0)
    assert ((X[a] - X[b]) ** 2).sum() == pytest.approx(largest, rel=1e-9)


@pytest.mark.parametrize("metric", ["cluster", "shared"])
def test_the_column_that_matters_gets_the_weight(metric):
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = np.column_stack([y + 0.15 * rng.normal(size=200), 3 * rng.normal(size=200)])
    links = Links.from_labels(y, 60, random_state=0)
    model = MPCKMeans(2, metric=metric, random_state=0).fit(X, links=links)
    assert (model.metric_[..., 0] > 50 * model.metric_[..., 1]).all()
    assert adjusted_rand_score(y, model.predict(X)) > 0.95
    assert adjusted_rand_score(y, PCKMeans(2, random_state=0).fit(X, links=links).predict(X)) < 0.5


def test_each_class_has_the_metric_that_suits_it():
    """Two sheets across each other: one is wide in the first column, the other in the second."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    X = rng.normal(size=(300, 2)) * np.where(y[:, None] == 0, [6, 0.3], [0.3, 6])
    links = Links.from_labels(y, 300, random_state=0)
    scores = {
        metric: adjusted_rand_score(y, MPCKMeans(2, metric=metric, random_state=0).fit(X, links=links).predict(X))
        for metric in ("cluster", "shared")
    }
    assert scores["cluster"] > 0.75 > 0.3 > scores["shared"]


@pytest.mark.parametrize(("metric", "form"), KINDS)
def test_predict_uses_the_metric(metric, form):
    X, y = load_iris(return_X_y=True)
    model = MPCKMeans(3, metric=metric, form=form, random_state=0)
    model.fit(X, links=Links.from_labels(y, 30, random_state=0))
    matrices = as_matrices(model.metric_, 3, form, metric == "shared")
    square = np.stack(
        [
            np.einsum("nd,de,ne->n", X - centre, A, X - centre) - np.linalg.slogdet(A)[1]
            for centre, A in zip(model.cluster_centers_, matrices, strict=True)
        ],
        axis=1,
    )
    np.testing.assert_array_equal(model.predict(X), square.argmin(axis=1))
    assert adjusted_rand_score(y, model.predict(X)) > 0.7


def test_uncertain_links_count_less():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    sure, unsure = (
        MPCKMeans(2, metric="shared")._penalties(
            X,
            kmeans_links.weighted_links(Links(must=[(0, 3)], cannot=[(1, 2)], must_confidence=c), 4, 1.0),
            np.ones((1, 1)),
        )
        for c in (1.0, 0.5)
    )
    assert sorted(sure) == [8.0, 9.0]
    assert sorted(unsure) == [4.5, 8.0]


@pytest.mark.parametrize("settings", [{}, {"metric": "shared"}, {"form": "full"}], ids=str)
def test_check_estimator(settings):
    check_estimator(MPCKMeans(**settings), on_skip=None, on_fail="raise")


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
