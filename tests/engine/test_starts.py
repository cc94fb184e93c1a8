from itertools import product

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.cluster import kmeans_plusplus

from linkmix import LinkMixture, Links, links_satisfied, purity
from linkmix.engine import starts
from linkmix.engine.starts import nearest_seed
from oracles import COVARIANCE_TYPES

every_form = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)


def start(X, n_classes, clusters_per_class=1, seed=0, links=None, **settings):
    """The start of a fit."""
    model = LinkMixture(n_classes, clusters_per_class=clusters_per_class, max_iter=0, random_state=seed, **settings)
    return model.fit(X, links=links)


def clumps(centres, n=10, spread=0.01, seed=0):
    """Tight clumps of n points each, and the number of the clump of each point."""
    rng = np.random.default_rng(seed)
    centres = np.asarray(centres, dtype=float)
    return np.repeat(centres, n, axis=0) + spread * rng.normal(size=(n * len(centres), centres.shape[1])), np.repeat(
        np.arange(len(centres)), n
    )


@pytest.mark.parametrize("seed", range(20))
def test_each_row_goes_to_its_nearest_seed_and_no_further(seed):
    """There are rows, one in each group, to which the groups are nearest; a step of k-means would spoil that."""
    X = np.random.default_rng(seed).normal(size=(14, 2))
    groups = nearest_seed(X, 3, np.random.RandomState(seed))
    assert sorted(set(groups)) == [0, 1, 2]
    distances = cdist(X, X)
    members = [np.flatnonzero(groups == g) for g in range(3)]
    assert any(np.array_equal(distances[:, list(seeds)].argmin(axis=1), groups) for seeds in product(*members))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_seeds_are_those_of_scikit_learn(dtype, weighted, seed, monkeypatch):
    """Rows in the order of their values, as they are drawn from, and distances in several blocks."""
    monkeypatch.setattr(starts, "DISTANCE_ROWS", 64)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 3)).astype(dtype)
    X = X[np.argsort(X[:, 0])]
    weights = rng.uniform(0.1, 3, size=200) if weighted else None
    draws = np.random.RandomState(seed)
    seeds, _ = kmeans_plusplus(
        X.astype(np.float64), 6, sample_weight=weights, random_state=np.random.RandomState(seed), n_local_trials=1
    )
    np.testing.assert_array_equal(nearest_seed(X, 6, draws, weights), cdist(X, seeds).argmin(axis=1))


def test_seeds_are_drawn_by_squared_distance():
    """Of the rows 0, 1 and 3, those who draw 0 and 1 in any order are one in ten: (1/10 + 1/5 + 0) / 3."""
    X = np.array([[0.0], [1.0], [3.0]])
    random = np.random.RandomState(0)
    n = 600
    apart = 0
    for _ in range(n):
        groups = nearest_seed(X, 2, random)
        apart += groups[0] != groups[1]
    assert abs(apart / n - 0.1) < 5 * np.sqrt(0.1 * 0.9 / n)


@every_form
def test_a_start_has_equal_weights_and_the_moments_of_the_groups(covariance_type):
    X, y = clumps([[0, 0], [50, 0], [0, 50]], spread=1.0)
    model = start(X, 3, covariance_type=covariance_type, reg_covar=1e-3)
    np.testing.assert_array_equal(model.class_weights_, np.full(3, 1 / 3))
    np.testing.assert_array_equal(model.cluster_weights_, np.ones((3, 1)))
    assert purity(y, model.labels_) == 1
    groups = [X[model.labels_ == m] for m in range(3)]
    np.testing.assert_allclose(model.means_[:, 0], [rows.mean(axis=0) for rows in groups], rtol=1e-10)
    full = np.array([np.cov(rows.T, bias=True) for rows in groups]) + 1e-3 * np.eye(2)
    diagonal = np.diagonal(full, axis1=1, axis2=2)
    expected = {
        "full": full[:, None],
        "tied": full.mean(axis=0),
        "diag": diagonal[:, None],
        "spherical": diagonal.mean(axis=1)[:, None],
    }[covariance_type]
    np.testing.assert_allclose(model.covariances_, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_clusters_of_a_class_start_inside_its_points(seed):
    """Two far pairs of clumps: the classes are the pairs, their clusters the clumps."""
    centres = np.array([[0.0, 0.0], [0.0, 10.0], [1000.0, 0.0], [1000.0, 10.0]])
    X, _ = clumps(centres)
    model = start(X, 2, 2, seed=seed)
    np.testing.assert_array_equal(model.cluster_weights_, np.full((2, 2), 0.5))
    for means in model.means_:
        assert abs(means[0, 0] - means[1, 0]) < 1, "clusters of one class from both pairs"
    found = model.means_.reshape(4, 2).round()
    assert sorted(map(tuple, found)) == sorted(map(tuple, centres))


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9])
@pytest.mark.parametrize("seed", range(5))
def test_a_start_far_from_the_origin(offset, seed):
    """Squares of the coordinates have no digits left for the distances between the points."""
    X, y = clumps([[0, 0], [8, 0], [0, 8]], spread=0.001)
    assert purity(y, start(X + offset, 3, seed=seed).labels_) == 1


def test_the_order_of_the_rows_does_not_matter():
    X = np.random.default_rng(0).normal(size=(60, 2))
    order = np.random.default_rng(1).permutation(60)
    np.testing.assert_array_equal(
        nearest_seed(X[order], 4, np.random.RandomState(0)), nearest_seed(X, 4, np.random.RandomState(0))[order]
    )


def test_random_state_decides():
    X = np.random.default_rng(0).normal(size=(60, 2))
    one, other = (start(X, 4, 2, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one.means_, other.means_)
    assert len({start(X, 4, 2, seed=seed).means_.tobytes() for seed in range(5)}) > 1


@every_form
@pytest.mark.parametrize(
    "X",
    [
        np.zeros((8, 2)),
        np.repeat([[0.0, 0.0], [1.0, 1.0]], 4, axis=0),
        np.array([[0.0, 0.0]] * 7 + [[9.0, 9.0]]),
        np.random.default_rng(0).normal(size=(8, 2)),
    ],
    ids=["identical", "two places", "one outlier", "eight points"],
)
def test_fewer_places_than_clusters(X, covariance_type):
    """Clusters without a point of their own start somewhere in the data, with a covariance that works."""
    for seed in range(5):
        model = start(X, 4, 2, seed=seed, covariance_type=covariance_type)
        assert np.all(np.isfinite(model.log_likelihood_trace_))
        assert np.all(model.means_ >= X.min() - 1e-12)
        assert np.all(model.means_ <= X.max() + 1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_a_start_from_links_seeds_every_class(seed):
    """Two clumps close to each other and a far, wide one: squared distance alone would seed the wide one twice."""
    X, y = clumps([[0, 0], [1, 0], [100, 0]])
    X[y == 2] += np.linspace(-40, 40, 10)[:, None] * [0.0, 1.0]
    links = Links.from_labels(y)
    model = start(X, 3, seed=seed, links=links, init="links")
    assert purity(y, model.labels_) == 1
    assert links_satisfied(model.labels_, links) == 1
    np.testing.assert_array_equal(model.class_weights_, np.full(3, 1 / 3))
    plain = [start(X, 3, seed=other) for other in range(10)]
    assert min(purity(y, other.labels_) for other in plain) < 1, "the case is too easy"


def test_a_start_from_links_without_links():
    X, _ = clumps([[0, 0], [8, 0], [0, 8]])
    for links in (None, Links()):
        model = start(X, 3, links=links, init="links")
        assert np.all(np.isfinite(model.means_))
        assert model.means_.shape == (3, 1, 2)
