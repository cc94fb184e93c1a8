import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from linkmix.data.discriminant import discriminant_plane
from linkmix.data.summary import summarise


def classes(n_classes, n=400, d=6):
    random = np.random.default_rng(3)
    labels = np.arange(n) % n_classes
    mixing = random.normal(size=(d, d))
    return (random.normal(size=(n, d)) + 3 * random.normal(size=(n_classes, d))[labels]) @ mixing, labels


def test_it_is_linear_discriminant_analysis_with_shrinkage():
    X, labels = classes(4, n=4000)
    shown = discriminant_plane(X, labels, summarise(X))
    reference = LinearDiscriminantAnalysis(solver="eigen", n_components=2, shrinkage=0.05).fit_transform(
        (X - X.mean(axis=0)) / X.std(axis=0), labels
    )
    for axis in range(2):
        assert abs(np.corrcoef(shown[:, axis], reference[:, axis])[0, 1]) == pytest.approx(1, abs=2e-3)


def test_two_classes_missing_values_and_points_of_no_class():
    X, labels = classes(2)
    X[::7, 1] = np.nan
    shown = discriminant_plane(X, labels, summarise(X))
    assert np.isfinite(shown).all()
    assert shown.shape == (400, 2)
    assert (shown.std(axis=0) > 0.1).all()
    known = labels.copy()
    known[::5] = -1
    assert np.isfinite(discriminant_plane(X, known, summarise(X))).all()


def test_shrinkage_keeps_classes_of_noise_closer():
    random = np.random.default_rng(0)
    X, labels = random.normal(size=(300, 200)), np.arange(300) % 3
    shown = discriminant_plane(X, labels, summarise(X))
    free = LinearDiscriminantAnalysis(solver="eigen", n_components=2).fit_transform(X, labels)

    def apart(places):
        means = np.stack([places[labels == m].mean(axis=0) for m in range(3)])
        return means.std() / (places - means[labels]).std()

    assert apart(shown) < 0.85 * apart(free)


def test_without_classes_or_columns_there_is_none():
    X, labels = classes(2)
    assert discriminant_plane(X, np.zeros_like(labels), summarise(X)) is None
    assert discriminant_plane(X[:, :1], labels, summarise(X[:, :1])) is None
