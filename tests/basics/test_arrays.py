import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.special import logsumexp

from linkmix.basics.arrays import leave_one_out, log_sum_exp

LOGS = st.floats(-900, 900) | st.just(-np.inf)


@given(arrays(float, array_shapes(min_dims=1, max_dims=3, max_side=5), elements=LOGS), st.data())
def test_log_sum_exp_is_that_of_scipy(values, data):
    axis = data.draw(st.integers(-values.ndim, values.ndim - 1))
    with np.errstate(divide="ignore"):
        expected = logsumexp(values, axis=axis)
    np.testing.assert_allclose(log_sum_exp(values, axis=axis), expected, rtol=1e-13, atol=1e-13)


def test_log_sum_exp_of_nothing_but_zeros_is_minus_infinity():
    assert log_sum_exp(np.full((2, 3), -np.inf)).tolist() == [-np.inf, -np.inf]


@given(arrays(float, st.tuples(st.integers(1, 3), st.integers(2, 5)), elements=LOGS))
def test_leave_one_out_is_the_sum_of_the_others(values):
    expected = np.empty_like(values)
    for m in range(values.shape[1]):
        with np.errstate(divide="ignore"):
            expected[:, m] = logsumexp(np.delete(values, m, axis=1), axis=1)
    np.testing.assert_allclose(leave_one_out(values), expected, rtol=1e-13, atol=1e-13)


def test_leave_one_out_does_not_cancel():
    values = np.array([0.0, -800.0, -805.0])
    np.testing.assert_allclose(leave_one_out(values), [-800 + np.log1p(np.exp(-5)), 0.0, 0.0], rtol=1e-14)
    total = logsumexp(values)
    with np.errstate(divide="ignore"):
        shortcut = np.log(np.exp(total) - np.exp(values))
    assert shortcut[0] == -np.inf, "the shortcut that the function avoids works after all"


@pytest.mark.parametrize("shape", [(2,), (4, 3), (2, 3, 4), (0, 3)])
def test_leave_one_out_keeps_the_shape(shape):
    assert leave_one_out(np.zeros(shape)).shape == shape


def test_leave_one_out_of_a_single_entry_is_nothing():
    assert leave_one_out(np.array([[3.0]])).tolist() == [[-np.inf]]
