"""Summaries of columns: one pass, and sums of parts."""

import numpy as np
import pytest

from linkmix.data import rows
from linkmix.data.summary import extent, summarise


def points(n=5000, d=4, dtype=np.float64):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * [1e-3, 1.0, 1e5, 1.0] + [1e3, 0.0, -1e7, 0.1]
    X[:, 3] = 0.1  # constant, and the mean of many 0.1 is not 0.1
    X[::7, 1] = np.nan
    return X.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_summary_is_what_numpy_computes_in_several_passes(dtype, order):
    X = np.asarray(points(dtype=dtype), order=order)
    found, exact = summarise(X), X.astype(np.longdouble)
    np.testing.assert_array_equal(found.n_values, np.count_nonzero(~np.isnan(X), axis=0))
    np.testing.assert_array_equal(found.low, np.nanmin(X, axis=0))
    np.testing.assert_array_equal(found.high, np.nanmax(X, axis=0))
    np.testing.assert_array_equal(extent(X), [found.low, found.high])
    np.testing.assert_allclose(found.mean, np.nanmean(exact, axis=0).astype(float), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(found.spread[:3], np.nanstd(exact, axis=0).astype(float)[:3], rtol=1e-9)
    assert found.mean[3] == X[0, 3]
    assert found.spread[3] == 0
    assert found.constant.tolist() == [False, False, False, True]


def test_summaries_of_parts_add_up(monkeypatch):
    X = points()
    whole = summarise(X)
    monkeypatch.setattr(rows, "PORTION_NUMBERS", 900)
    for cut in ([1], [0, 5, 5, 4999], [2500]):
        first, *others = [summarise(part) for part in np.split(X, cut)]
        for other in others:
            first = first + other
        np.testing.assert_array_equal(first.n_values, whole.n_values)
        np.testing.assert_array_equal([first.low, first.high], [whole.low, whole.high])
        np.testing.assert_allclose(first.mean, whole.mean, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(first.squares, whole.squares, rtol=1e-9)
        assert first.spread[3] == 0


def test_a_column_without_values():
    found = summarise(np.array([[np.nan, 1.0], [np.nan, 3.0]])) + summarise(np.array([[np.nan, 5.0]]))
    assert found.n_values.tolist() == [0, 3]
    assert np.isnan(found.low[0])
    assert found.mean.tolist() == [0.0, 3.0]
    assert found.spread[1] == pytest.approx(np.std([1.0, 3.0, 5.0]))
