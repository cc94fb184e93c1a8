"""PCKMeans: the objective never increases, and each step is the cheapest choice."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from linkmix import Links, links_satisfied, native
from linkmix.rivals import kmeans_links
from linkmix.rivals.pc_kmeans import PCKMeans

N_ROWS = 8
pairs_of_rows = st.tuples(st.integers(0, N_ROWS - 1), st.integers(0, N_ROWS - 1)).filter(
    lambda pair: pair[0] != pair[1]
)
points = arrays(np.float64, (N_ROWS, 2), elements=st.integers(-20, 20).map(float))


@st.composite
def any_links(draw):
    """Links that do not contradict each other, certain or not."""
    arguments = {}
    for kind in ("must", "cannot"):
        pairs = draw(st.lists(pairs_of_rows, max_size=7))
        arguments[kind] = pairs
        if draw(st.booleans()):
            values = st.sampled_from([0.3, 0.8, 1.0])
            arguments[f"{kind}_confidence"] = draw(st.lists(values, min_size=len(pairs), max_size=len(pairs)))
    links = Links(**arguments)
    assume(not links.conflicts())
    return links


def stated_costs(links, weight):
    """Price of each pair, as (a, b, kind) -> price: closed where certain, in proportion where not."""
    prices: dict[tuple[int, int, str], float] = {}
    certain = {"must": [], "cannot": []}
    for kind in certain:
        pairs, confidence = getattr(links, kind).tolist(), getattr(links, f"{kind}_confidence")
        for (a, b), sure in zip(pairs, [1.0] * len(pairs) if confidence is None else confidence, strict=True):
            if sure == 1:
                certain[kind].append((a, b))
            else:
                key = (min(a, b), max(a, b), kind)
                prices[key] = prices.get(key, 0.0) + weight * sure
    closed = Links(**certain).closure()
    for kind in certain:
        for a, b in getattr(closed, kind).tolist():
            prices[a, b, kind] = prices.get((a, b, kind), 0.0) + weight
    return prices


def price(prices, labels):
    return sum(p for (a, b, kind), p in prices.items() if (labels[a] == labels[b]) != (kind == "must"))


def never_rises(trace):
    return (np.diff(trace) <= 1e-9 * np.abs(trace[:-1])).all()


@given(points, any_links(), st.sampled_from([1.0, 30.0, 1000.0]), st.sampled_from([2, 3]), st.integers(0, 99))
def test_the_objective_never_rises_and_is_what_it_says(X, links, weight, n_classes, seed):
    model = PCKMeans(n_classes, weight=weight, random_state=seed).fit(X, links=links)
    assert never_rises(model.objective_trace_)
    assert len(model.objective_trace_) == model.n_iter_
    distances = ((X - model.cluster_centers_[model.labels_]) ** 2).sum()
    expected = distances / 2 + price(stated_costs(links.distinct(), weight), model.labels_)
    assert model.objective_ == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert model.converged_


@given(points, any_links(), st.integers(0, 99))
def test_at_the_end_no_row_gains_by_moving_alone(X, links, seed):
    model = PCKMeans(3, weight=20.0, random_state=seed).fit(X, links=links)
    prices = stated_costs(links.distinct(), 20.0)

    def total(labels):
        return ((X - model.cluster_centers_[labels]) ** 2).sum() / 2 + price(prices, labels)

    for i in range(N_ROWS):
        for m in range(3):
            moved = model.labels_.copy()
            moved[i] = m
            assert total(moved) >= total(model.labels_) - 1e-9


@given(points, any_links(), st.booleans(), st.integers(0, 99))
def test_one_sweep_by_brute_force(X, links, from_labels, seed):
    random = np.random.RandomState(seed)
    links = links.distinct()
    graph = kmeans_links.weighted_links(links, N_ROWS, 20.0)
    prices = stated_costs(links, 20.0)
    costs = kmeans_links.squared_distances(X, X[:3]) / 2
    order = random.permutation(graph.linked)
    before = random.randint(3, size=N_ROWS) if from_labels else None
    found = kmeans_links.choose_classes(costs, graph, graph.weights, before, order)
    with native.using("off"):
        np.testing.assert_array_equal(found, kmeans_links.choose_classes(costs, graph, graph.weights, before, order))

    labels = dict(enumerate(before)) if from_labels else {}
    for i in [*order.tolist(), *np.setdiff1d(np.arange(N_ROWS), order).tolist()]:

        def cost(m, i=i):
            others = {j: label for j, label in labels.items() if j != i}
            broken = sum(
                p
                for (a, b, kind), p in prices.items()
                if i in (a, b) and (j := a + b - i) in others and (others[j] == m) != (kind == "must")
            )
            return costs[i, m] + broken

        choices = [cost(m) for m in range(3)]
        assert choices[found[i]] == pytest.approx(min(choices), abs=1e-9)
        labels[i] = found[i]


def test_without_links_it_is_k_means():
    X, _ = load_iris(return_X_y=True)
    model = PCKMeans(3, init=X[[0, 50, 100]]).fit(X)
    reference = KMeans(3, init=X[[0, 50, 100]], n_init=1, tol=0, algorithm="lloyd").fit(X)
    np.testing.assert_array_equal(model.labels_, reference.labels_)
    assert model.objective_ == pytest.approx(reference.inertia_ / 2, rel=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_links_help_on_real_data():
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    alone = np.mean([adjusted_rand_score(y, PCKMeans(3, random_state=seed).fit_predict(X)) for seed in range(5)])
    with_links = [
        adjusted_rand_score(y, PCKMeans(3, random_state=0).fit_predict(X, links=links))
        for links in (Links.from_labels(y, 200, random_state=seed) for seed in range(5))
    ]
    assert np.mean(with_links) > alone + 0.05


def test_a_high_price_makes_links_hold():
    X, y = load_iris(return_X_y=True)
    links = Links.from_labels(y, 40, random_state=3)
    assert links_satisfied(PCKMeans(3, weight=0.0, random_state=0).fit(X, links=links).labels_, links) < 1
    assert links_satisfied(PCKMeans(3, weight=1e4, random_state=0).fit(X, links=links).labels_, links) == 1


def test_a_strong_link_is_worth_the_same_on_any_scale():
    X, y = load_iris(return_X_y=True)
    links = Links.from_labels(y, 40, random_state=3)
    plain, large = (PCKMeans(3, random_state=0).fit(scale * X, links=links) for scale in (1.0, 1000.0))
    np.testing.assert_array_equal(plain.labels_, large.labels_)
    as_number = PCKMeans(3, weight=X.var(axis=0).sum(), random_state=0).fit(X, links=links)
    assert plain.objective_ == pytest.approx(as_number.objective_)
    one, original = (PCKMeans(3, weight=w, random_state=0).fit(X, links=links) for w in (1.0, "original"))
    assert original.objective_ == one.objective_


def test_far_from_the_origin_nothing_changes():
    X, y = load_iris(return_X_y=True)
    links = Links.from_labels(y, 40, random_state=3)
    near, far = (PCKMeans(3, init=Z[[0, 50, 100]], random_state=0).fit(Z, links=links) for Z in (X, X + 2.0**20))
    np.testing.assert_array_equal(near.labels_, far.labels_)
    assert far.objective_ == pytest.approx(near.objective_, rel=1e-6)


# Seeds.


def seeds(X, links, n_classes, seed=0, farthest=False):
    return kmeans_links.linked_seeds(X, links, n_classes, np.random.RandomState(seed), farthest=farthest)


X_LINE = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [30.0], [31.0], [50.0]])


def test_the_largest_components_come_first_and_of_equal_ones_the_farthest():
    links = Links(must=[(0, 1), (1, 2), (3, 4), (5, 6)])
    np.testing.assert_allclose(seeds(X_LINE, links, 1), [[1.0]])
    np.testing.assert_allclose(seeds(X_LINE, links, 2), [[1.0], [30.5]])
    np.testing.assert_allclose(seeds(X_LINE, links, 3), [[1.0], [30.5], [10.5]])


def test_size_times_distance():
    links = Links(must=[(0, 1), (1, 2), (3, 4), (5, 6)])
    np.testing.assert_allclose(seeds(X_LINE, links, 3, farthest=True), [[1.0], [30.5], [10.5]])
    X = np.array([[0.0], [0.1], [0.2], [0.3], [2.0], [2.1], [2.2], [90.0], [91.0]])
    near_or_small = Links(must=[(0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (7, 8)])  # of 4, 3 and 2 rows
    np.testing.assert_allclose(seeds(X, near_or_small, 2, farthest=True), [[0.15], [90.5]])
    np.testing.assert_allclose(seeds(X, near_or_small, 2, farthest=False), [[0.15], [2.1]])


@pytest.mark.parametrize("seed", range(5))
def test_a_point_known_to_differ_comes_next(seed):
    links = Links(must=[(0, 1), (5, 6)], cannot=[(0, 3), (3, 6), (4, 5)])
    found = seeds(X_LINE, links, 3, seed)
    np.testing.assert_allclose(sorted(found[:2, 0]), [0.5, 30.5])
    assert found[2, 0] == 10.0


def test_the_rest_are_different_points():
    X = np.repeat([[0.0], [1.0], [2.0]], 20, axis=0)
    for seed in range(5):
        assert sorted(seeds(X, Links(), 3, seed)[:, 0]) == [0.0, 1.0, 2.0]
    assert seeds(np.zeros((4, 2)), Links(), 3).shape == (3, 2)


# The door.


def test_the_iteration_cap_warns():
    X, _ = load_iris(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 steps: raise max_iter"):
        model = PCKMeans(3, max_iter=1, random_state=0).fit(X)
    assert not model.converged_


def test_check_estimator():
    check_estimator(PCKMeans(), on_skip=None, on_fail="raise")


def test_predict_before_fit():
    with pytest.raises(NotFittedError):
        PCKMeans().predict(np.eye(3))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"weight": -1}, r"'weight' .* a str among {.*} or a float in the range \[0\.0, inf\)\. Got -1"),
        (
            {"weight": np.inf},
            r"'weight' .* a str among {.*} or a float in the range \[0\.0, inf\)\. Got inf",
        ),
        ({"max_iter": 0}, r"'max_iter' parameter of PCKMeans must be an int in the range \[1, inf\)\. Got 0"),
        ({"init": np.eye(3)}, r"init has shape \(3, 3\): give one centre per class, shape \(2, 5\)"),
        ({"init": "random"}, "init must be a table of centres with one row per class: could not convert string"),
    ],
)
def test_bad_settings(settings, words):
    with pytest.raises(ValueError, match=words):
        PCKMeans(**settings).fit(np.eye(5))
