"""Points on a map: principal components as scikit-learn finds them, and columns as they are."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import silhouette_score
from sklearn.preprocessing import StandardScaler

from linkmix.data import plane as room
from linkmix.data.plane import plane
from linkmix.data.summary import summarise

X = load_wine(return_X_y=True)[0]
NAMES = [f"c{j}" for j in range(100)]


@pytest.mark.parametrize("points", [X, X[:8]], ids=["more rows than columns", "more columns than rows"])
def test_many_columns_give_their_principal_components(points):
    places, axes = plane(points, NAMES, summarise(points))
    scaled = StandardScaler().fit_transform(points)
    expected = PCA(2).fit(scaled)
    np.testing.assert_allclose(np.abs(places), np.abs(expected.transform(scaled)), atol=1e-8)
    share = 100 * expected.explained_variance_ratio_
    assert axes == [f"first principal component ({share[0]:.0f} %)", f"second ({share[1]:.0f} %)"]


def test_one_or_two_columns_are_the_axes():
    rows = np.arange(10)
    places, axes = plane(X[:, :2], NAMES[:2], summarise(X[:, :2]), rows)
    np.testing.assert_array_equal(places, X[:10, :2])
    assert axes == ["c0", "c1"]
    places, axes = plane(X[:, :1], NAMES[:1], summarise(X[:, :1]))
    np.testing.assert_array_equal(places[:, 0], X[:, 0])
    assert len(np.unique(places[:, 1])) == len(X)
    assert axes == ["c0", "(spread at random)"]


@pytest.mark.parametrize("d", [1, 2, 5])
def test_a_missing_value_is_put_at_the_mean(d):
    gaps = X[:, :d].copy()
    gaps[3] = np.nan
    places, _ = plane(gaps, NAMES[:d], summarise(gaps))
    middle = 0.0 if d > 2 else np.nanmean(gaps, axis=0)
    np.testing.assert_allclose(places[3, : min(d, 2)], middle, atol=1e-12)


def test_the_same_points_have_the_same_map_wherever_they_are_asked_for(monkeypatch):
    summary = summarise(X)
    places, axes = plane(X, NAMES, summary)
    rows = np.array([5, 100, 7])
    some, same = plane(X, NAMES, summary, rows)
    np.testing.assert_allclose(some, places[rows], rtol=1e-12)
    assert same == axes
    monkeypatch.setattr(room, "MOST_ROWS", 60)  # fitted to every third row, drawn for all
    fewer, _ = plane(X, NAMES, summary)
    assert fewer.shape == places.shape
    for j in (0, 1):
        assert np.corrcoef(fewer[:, j], places[:, j])[0, 1] > 0.95


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_points_and_constant_columns_have_a_map(n):
    for points in (X[:n], np.ones((n, 4))):
        places, _ = plane(points, NAMES, summarise(points))
        assert places.shape == (n, 2)
        assert np.isfinite(places).all()


def test_with_labels_the_map_shows_the_classes():
    """Against linear discriminant analysis, which spans the same plane; and better than principal components do."""
    X, y = load_wine(return_X_y=True)
    places, axes = plane(X, NAMES, summarise(X), labels=y)
    theirs = LinearDiscriminantAnalysis(n_components=2).fit_transform(X, y)
    mine, others = (np.linalg.qr(p - p.mean(axis=0))[0] for p in (places, theirs))
    assert np.linalg.svd(mine.T @ others, compute_uv=False).min() > 0.95
    assert axes == ["direction in which the classes differ most", "second such direction"]
    principal, _ = plane(X, NAMES, summarise(X))
    assert silhouette_score(places, y) > 0.1 + silhouette_score(principal, y)


@pytest.mark.parametrize("d", [3, 250])
def test_two_classes_and_rows_of_none(d):
    random = np.random.default_rng(0)
    labels = np.repeat([0, 1, -1], 60)
    X = random.normal(size=(180, d))
    X[:, 1] *= 5
    X[60:120, 2] += 4
    places, _ = plane(X, NAMES, summarise(X), labels=labels)
    assert abs(places[:60, 0].mean() - places[60:120, 0].mean()) > 1.5
    assert abs(places[:60, 1].mean() - places[60:120, 1].mean()) < 1
    assert np.isfinite(places).all()


def test_one_class_has_principal_components():
    places, axes = plane(X, NAMES, summarise(X), labels=np.zeros(len(X), dtype=int))
    np.testing.assert_array_equal(places, plane(X, NAMES, summarise(X))[0])
    assert axes[0].startswith("first principal")


def test_some_rows_are_where_they_are_on_the_whole_map():
    y, rows = load_wine(return_X_y=True)[1], np.array([3, 100, 150])
    whole, some = (plane(X, NAMES, summarise(X), chosen, y)[0] for chosen in (None, rows))
    np.testing.assert_allclose(some, whole[rows])
