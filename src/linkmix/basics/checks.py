"""Checks of parameters. An error gives the fact, the value and the remedy."""

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _check_sample_weight

from linkmix.basics.arrays import Floats

Constraints = dict[str, list[Any]]
"""The values allowed for each parameter of an estimator, declared as in scikit-learn."""


class Number(Interval):
    """Constraint of a parameter that is a number in an interval; True and False are not numbers here."""

    def is_satisfied_by(self, val: object) -> bool:
        """Whether a value is allowed."""
        return not isinstance(val, bool | np.bool_) and bool(super().is_satisfied_by(val))


def at_least(smallest: float, kind: type = Integral) -> Number:
    """Constraint of a parameter that is a finite number, an integer by default."""
    return Number(kind, smallest, None, closed="left")


def check_number(name: str, value: object, kind: type, smallest: float) -> None:
    """Refuse anything but a finite number of this kind that is large enough."""
    if isinstance(value, bool) or not isinstance(value, kind) or not smallest <= value < np.inf:  # type: ignore[operator]
        what = "a whole number" if kind is Integral else "a finite number"
        raise ValueError(f"{name}={value!r} is not {what} of at least {smallest}: choose one that is")


def check_flag(name: str, value: object) -> None:
    """Refuse anything but True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name}={value!r} is neither True nor False: choose one of them")


def check_choice(name: str, value: object, choices: Iterable[str], more: str = "") -> None:
    """Refuse anything but one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name}={value!r} is not known: choose one of {', '.join(map(repr, choices))}{more}")


def refuse_sparse(X: object) -> None:
    """Refuse a sparse matrix, with a better remedy than scikit-learn's: to make it dense may need all the memory."""
    if issparse(X):
        raise TypeError(
            f"X is a sparse matrix of shape {getattr(X, 'shape', None)}, but dense data is required: reduce it first "
            "with sklearn.decomposition.TruncatedSVD(50).fit_transform(X), or pass X.toarray() if it is small"
        )


def check_sample_weight(sample_weight: ArrayLike | None, n_rows: int) -> Floats | None:
    """Weights of the rows, or None."""
    if sample_weight is None:
        return None
    rows = np.broadcast_to(0.0, (n_rows, 1))  # scikit-learn needs points, but only counts them
    weights: Floats = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
    if not weights.sum() > 0:
        raise ValueError("sample_weight is zero for every point: give at least one point some weight")
    return weights
