"""Names for array types, and sums in log space."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Array = NDArray[Any]


def log_sum_exp(values: Floats, axis: int = -1) -> Floats:
    """Logarithm of the sum of exponentials along one axis.

    An entry of minus infinity counts as zero; a slice with nothing else gives minus infinity.

    Examples
    --------
    >>> import numpy as np
    >>> log_sum_exp(np.array([[0.0, 0.0], [-800.0, -np.inf]])).tolist()
    [0.6931471805599453, -800.0]
    """
    if values.shape[axis] == 1:
        return values.squeeze(axis)
    top = values.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total: Floats = np.log(np.exp(values - top).sum(axis=axis)) + top.squeeze(axis)
    return total


def has_gaps(X: Array) -> bool:
    """Whether any value is NaN, judged by their sum: exact for numbers that are small enough to be squared.

    Examples
    --------
    >>> import numpy as np
    >>> has_gaps(np.array([[1.0, np.nan]])), has_gaps(np.array([[1.0, 2.0]]))
    (True, False)
    """
    return bool(np.isnan(X.sum(dtype=np.float64)))


def shares(values: Floats, axis: int = -1) -> Floats:
    """Softmax: exponentials divided by their sum, without overflow for huge values."""
    top = values.max(axis=axis, keepdims=True)
    weights = np.exp(values - np.where(np.isfinite(top), top, 0.0))
    total = weights.sum(axis=axis, keepdims=True)
    return np.asarray(weights / np.where(total > 0, total, 1.0))


def leave_one_out(values: Floats) -> Floats:
    """Log-sum-exp over all other entries of the last axis, for each entry.

    Computed from running sums from both ends. The shorter ``log(exp(total) - exp(entry))`` cancels: for
    ``(0, -800, -805)`` it gives minus infinity in the first place instead of -799.993.

    Examples
    --------
    >>> import numpy as np
    >>> leave_one_out(np.array([0.0, -800.0, -805.0])).round(3).tolist()
    [-799.993, 0.0, 0.0]
    """
    before = np.full_like(values, -np.inf)
    after = np.full_like(values, -np.inf)
    np.logaddexp.accumulate(values[..., :-1], axis=-1, out=before[..., 1:])
    np.logaddexp.accumulate(values[..., :0:-1], axis=-1, out=after[..., -2::-1])
    return np.asarray(np.logaddexp(before, after))
