"""The M-step of the class weights.

With ``c`` the expected class counts and ``|C|`` the number of cannot-links, the class weights minimise

    -sum_m c_m log a_m + |C| log(1 - sum_m a_m^2)        subject to sum_m a_m = 1        (paper, eq. mixing_opt)

which is not convex in ``a`` when there are three classes or more, but is convex in ``theta = log a``:

    -c . theta + |C| LSE_{m<m'}(theta_m + theta_m') + n1 LSE(theta),        n1 = sum_m c_m - 2 |C|

up to a constant. Newton's method in ``theta`` finds the minimum in a handful of steps.
"""

import numpy as np
from numpy.typing import ArrayLike

from linkmix.basics.arrays import Floats, leave_one_out, log_sum_exp

SMALLEST_WEIGHT = 1e-12
MAX_NEWTON_STEPS = 100


def normalise_class_weights(counts: Floats, previous: Floats | None = None) -> Floats:
    """Shares of the counts, at least 1e-12 each; without any counts the previous weights, or equal ones."""
    total = counts.sum()
    if not total > 0:
        return np.full(len(counts), 1 / len(counts)) if previous is None else previous
    weights = np.maximum(counts / total, SMALLEST_WEIGHT)
    return np.asarray(weights / weights.sum())


def log_probability_apart(log_class_weights: Floats) -> float:
    """Logarithm of the probability that two independent labels differ, ``log(1 - sum a^2)``.

    Examples
    --------
    >>> import numpy as np
    >>> round(float(np.exp(log_probability_apart(np.log([0.5, 0.3, 0.2])))), 12)
    0.62
    """
    return float(log_sum_exp(log_class_weights + leave_one_out(log_class_weights)))


def solve_class_weights(counts: ArrayLike, n_cannot: float, previous: ArrayLike | None = None) -> Floats:
    """Class weights that maximise the expected log-likelihood for given class counts.

    Parameters
    ----------
    counts : array-like of shape (n_classes,)
        Expected number of labels of each class: free points, must-link pairs (one label each) and both ends of the
        cannot-link pairs.
    n_cannot : float
        Number of cannot-links among them (a sum of weights when links are weighted).
    previous : array-like of shape (n_classes,), optional
        Where the search starts, and the result if the counts determine nothing (two classes, cannot-links only).

    Returns
    -------
    ndarray of shape (n_classes,)
        Positive weights that sum to one.

    Examples
    --------
    >>> solve_class_weights([12.5, 9.5, 8.0], 10).round(8)
    array([0.46861751, 0.29604983, 0.23533266])
    """
    c = np.asarray(counts, dtype=np.float64)
    start = None if previous is None else np.asarray(previous, dtype=np.float64)
    if c.ndim != 1 or c.size == 0:
        raise ValueError(f"counts must be one number per class, got shape {c.shape}: pass a list of n_classes numbers")
    if not np.all(np.isfinite(c)) or np.any(c < 0):
        raise ValueError(f"counts must be finite and not negative, got {c.tolist()}: pass sums of responsibilities")
    if not (np.isfinite(n_cannot) and n_cannot >= 0):
        raise ValueError(f"n_cannot must be finite and not negative, got {n_cannot}: pass the number of cannot-links")
    if c.sum() < 2 * n_cannot * (1 - 1e-12):
        raise ValueError(
            f"counts sum to {c.sum():g}, less than the {2 * n_cannot:g} ends of {n_cannot:g} cannot-links: "
            "count both ends of every cannot-link"
        )
    if start is not None and (start.shape != c.shape or not np.all(start > 0)):
        raise ValueError(f"previous must be {c.size} positive weights, got {start.tolist()}: pass the last solution")
    if c.size == 1 and n_cannot > 0:
        raise ValueError("cannot-links need at least two classes, got counts of one: pass more classes")
    if n_cannot == 0:
        return normalise_class_weights(c, start)
    if c.size == 2:  # each cannot-link has one end in either class, whatever the weights: it does not affect them
        return normalise_class_weights(np.maximum(c - n_cannot, 0.0), start)
    return _newton(c, float(n_cannot), start)


def _newton(c: Floats, n_cannot: float, start: Floats | None) -> Floats:
    """Damped Newton in log a for three classes or more. The objective is convex, so the minimum is global."""
    n1 = c.sum() - 2 * n_cannot
    lowest = np.log(SMALLEST_WEIGHT)

    def objective(theta: Floats) -> float:
        return float(-c @ theta + n_cannot * log_probability_apart(theta) + n1 * log_sum_exp(theta))

    theta = np.log(normalise_class_weights(c) if start is None else start)
    value = objective(theta)
    for _ in range(MAX_NEWTON_STEPS):
        a = np.exp(theta - log_sum_exp(theta))
        apart = np.exp(log_probability_apart(np.log(a)))
        q = a * np.exp(leave_one_out(np.log(a))) / apart  # (M,) share of one end of a cannot-link, sums to one
        gradient = n1 * a + 2 * n_cannot * q - c
        at_floor = (theta <= lowest) & (gradient > 0)  # a class with vanishing weight stays at the lower bound
        gradient[at_floor] = 0.0
        if np.abs(gradient).max() <= 1e-13 * c.sum():
            break
        pairs = np.outer(a, a) / apart
        np.fill_diagonal(pairs, 0.0)
        hessian = n_cannot * (2 * np.diag(q) + 2 * pairs - 4 * np.outer(q, q)) + n1 * (np.diag(a) - np.outer(a, a))
        # The objective is invariant under shifts of theta; these two terms make the system regular.
        hessian += (c.sum() / len(c)) * (np.ones_like(hessian) / len(c) + 1e-14 * np.eye(len(c)))
        hessian[at_floor, :] = hessian[:, at_floor] = 0.0
        hessian[at_floor, at_floor] = 1.0
        step = np.clip(np.linalg.solve(hessian, -gradient), -5.0, 5.0)
        size, slope = 1.0, float(gradient @ step)
        while size > 1e-10:
            trial = theta + size * step
            trial = np.maximum(trial - log_sum_exp(trial), lowest)
            trial_value = objective(trial)
            # Close to the minimum the objective is flat to rounding, but a Newton step still gains digits.
            if trial_value <= value + 1e-4 * size * min(slope, 0.0) + 1e-13 * (abs(value) + c.sum()):
                break
            size /= 2
        else:
            break  # no step lowers the objective any more: only rounding errors are left
        theta, value = trial, trial_value
    return normalise_class_weights(np.exp(theta - log_sum_exp(theta)))
