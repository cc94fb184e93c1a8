"""Columns of noise change nothing, and a column that only the links need is used."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine

from linkmix import AutoLinkMixture, Links, purity


@pytest.mark.parametrize("load", [load_iris, load_wine])
@pytest.mark.parametrize("n_noise", [1, 60])
def test_noise_changes_no_label(load, n_noise):
    X, y = load(return_X_y=True)
    links = Links.from_labels(y, 25, random_state=1)
    model = AutoLinkMixture(3, calibrate=False, random_state=0)
    expected = model.fit(X, links=links).predict(X)
    rng = np.random.default_rng(5)
    noise = rng.normal(size=(len(X), n_noise))
    wide = model.fit(np.c_[noise, X], links=links)
    kept = np.flatnonzero(wide.scale_[:n_noise])
    if len(kept):  # a few in a thousand are
        noise[:, kept] = rng.normal(size=(len(X), len(kept)))
        wide = model.fit(np.c_[noise, X], links=links)
    assert (wide.scale_[:n_noise] == 0).all()
    assert (wide.scale_[n_noise:] > 0).all()
    np.testing.assert_array_equal(wide.predict(np.c_[noise, X]), expected)
    np.testing.assert_array_equal(wide.predict(np.c_[noise + 100, X]), expected)


def hidden_classes():
    """Classes that overlap, in a column that is independent of two others, which depend on each other."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    x, e, z = rng.normal(size=(3, 300))
    return np.c_[x, x + e, z + 2.5 * y], y


def test_links_bring_back_a_column_that_tells_classes_apart_alone():
    X, y = hidden_classes()
    model = AutoLinkMixture(2, calibrate=False, random_state=0).fit(X)
    assert model.scale_[2] == 0
    model.fit(X, links=Links.from_labels(y, 60, random_state=0))
    assert model.scale_[2] > 0
    assert purity(y, model.predict(X)) > 0.85


def test_known_labels_bring_it_back_as_well():
    X, y = hidden_classes()
    known = np.where(np.arange(300) < 40, y, -1)
    model = AutoLinkMixture(2, calibrate=False, random_state=0).fit(X, known)
    assert model.scale_[2] > 0
    one = AutoLinkMixture(2, calibrate=False, random_state=0).fit(X, np.where(np.arange(300) < 1, y, -1))
    assert one.scale_[2] == 0  # a single label says nothing


def test_numbers_of_classes_are_compared_without_noise():
    X, y = load_wine(return_X_y=True)
    noise = np.random.default_rng(1).normal(size=(len(X), 10))
    links = Links.from_labels(y, 40, random_state=0)
    plain, wide = (
        AutoLinkMixture("auto", calibrate=False, random_state=0).fit(Z, links=links) for Z in (X, np.c_[X, noise])
    )
    assert (wide.scale_[13:] == 0).all()
    assert wide.n_classes_ == plain.n_classes_
    np.testing.assert_allclose(wide.choice_["bic"], plain.choice_["bic"])
