"""The sample of rows around those that matter."""

import numpy as np
from numpy.random import RandomState

from linkmix.data.sample import sample_around


def test_rows_without_weight_take_no_place_in_the_sample() -> None:
    weights = np.zeros(10_000)
    weights[::50] = 1.0
    rows = sample_around(10_000, np.array([3, 7]), 100, RandomState(0), weights)
    assert len(rows) == 100
    assert np.all(np.isin(rows, [3, 7]) | (weights[rows] > 0))


def test_all_rows_with_weight_are_in_the_sample_if_they_are_few() -> None:
    weights = np.zeros(10_000)
    weights[::2500] = 1.0
    rows = sample_around(10_000, np.empty(0, dtype=np.int64), 100, RandomState(0), weights)
    assert rows.tolist() == [0, 2500, 5000, 7500]
