"""EM-PC: posteriors projected until every cannot-link holds in expectation (Graca, Ganchev and Taskar, 2007).

The E-step finds the labels ``q`` closest to the posterior ``p`` for which both ends of a cannot-link together have at
most one label of each class in expectation:

    q = argmin KL(q || p)        subject to q_a^m + q_b^m <= 1 for every cannot-link (a, b) and class m

EM climbs the log-likelihood of the points minus this divergence.
"""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import spsolve

from linkmix.basics.arrays import Floats, Ints, leave_one_out, log_sum_exp, shares
from linkmix.basics.checks import check_number
from linkmix.basics.errors import InfeasibleLinks
from linkmix.couplings.base import NO_RELIABILITY, BoundCoupling, Coupling, LinkExpectation, refuse_relations
from linkmix.couplings.observed import labels_that_hold
from linkmix.links import Links

FIRST_STEPS, NEWTON_STEPS = 5, 50
SWEEPS = 300
TOLERANCE = 1e-10
DENSE = 300
"""Up to so many multipliers, matrices are dense: sparse ones take longer to build than these to solve."""
CHANGES_OF_BOUNDS = 10


def project(log_posterior: Floats, pairs: Ints, slack: float = 0.0) -> tuple[Floats, float, Floats]:
    """Labels closest to the posterior that satisfy the constraints of the cannot-links.

    Parameters
    ----------
    log_posterior : ndarray of shape (n, n_classes)
        Logarithm of the posterior; rows of probabilities that sum to one.
    pairs : ndarray of shape (n_pairs, 2)
        Cannot-links, each once.
    slack : float
        By how much the constraints may be violated, in the Euclidean norm over all of them.

    Returns
    -------
    labels : ndarray of shape (n, n_classes)
    divergence : float
        KL divergence of the labels from the posterior.
    multipliers : ndarray of shape (n_pairs, n_classes)
    """
    multipliers = _first_multipliers(log_posterior, pairs)
    if slack and len(pairs):
        multipliers = _solve(log_posterior, pairs, multipliers, slack)
    elif len(pairs):
        shared = (np.bincount(pairs.ravel(), minlength=len(log_posterior)) > 1)[pairs].any(axis=1)
        if shared.any():  # the others are solved already
            rows, ends = np.unique(pairs[shared], return_inverse=True)
            multipliers[shared] = _solve(log_posterior[rows], ends.reshape(-1, 2), multipliers[shared])
        multipliers = _sweep(log_posterior, multipliers, pairs)
    labels, log_total = _labels_of(log_posterior, pairs, multipliers)
    pull = multipliers * (labels[pairs[:, 0]] + labels[pairs[:, 1]])
    divergence = float(-log_total.sum() - pull.sum())
    return labels, divergence, multipliers


def _labels_of(log_posterior: Floats, pairs: Ints, multipliers: Floats) -> tuple[Floats, Floats]:
    """Labels that follow from the multipliers, and the logarithms of their sums before they are normalised."""
    pull = np.zeros_like(log_posterior)
    np.add.at(pull, pairs[:, 0], multipliers)
    np.add.at(pull, pairs[:, 1], multipliers)
    log_labels = log_posterior - pull
    log_total = log_sum_exp(log_labels)
    return np.exp(log_labels - log_total[:, None]), log_total


def _solve(log_posterior: Floats, pairs: Ints, first: Floats, slack: float = 0.0) -> Floats:
    """Multipliers of pairs that may share points, by L-BFGS and then, without slack, Newton's method."""
    n_classes = log_posterior.shape[1]

    def labels_of(multipliers: Floats) -> tuple[Floats, Floats]:
        return _labels_of(log_posterior, pairs, multipliers)

    def negative_dual(flat: Floats) -> tuple[float, Floats]:
        multipliers = flat.reshape(-1, n_classes)
        labels, log_total = labels_of(multipliers)
        value = log_total.sum() + multipliers.sum()
        gradient = 1 - labels[pairs[:, 0]] - labels[pairs[:, 1]]
        if slack:
            norm = np.linalg.norm(multipliers)
            value += slack * norm
            gradient = gradient + slack * multipliers / norm if norm > 0 else gradient
        return float(value), gradient.ravel()

    found = minimize(
        negative_dual,
        first.ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * first.size,
        options={"maxiter": 10_000 if slack else FIRST_STEPS, "maxcor": 30, "ftol": 1e-15, "gtol": 1e-11},
    )
    multipliers: Floats = found.x.reshape(-1, n_classes)
    return multipliers if slack else _newton(negative_dual, labels_of, multipliers, pairs)


def _newton(
    negative_dual: Callable[[Floats], tuple[float, Floats]],
    labels_of: Callable[[Floats], tuple[Floats, Floats]],
    multipliers: Floats,
    pairs: Ints,
) -> Floats:
    """Newton steps from where L-BFGS ended. Near the minimum they go on where the dual is flat to rounding."""
    curvature = _Curvature.of(pairs, multipliers.shape[1])
    flat = multipliers.ravel()
    value, gradient = negative_dual(flat)
    for _ in range(NEWTON_STEPS):
        missed = _missed(flat, gradient)
        if missed <= TOLERANCE:
            break
        labels, _ = labels_of(flat.reshape(multipliers.shape))
        free = (flat > 0) | (gradient < 0)
        ridge = 1e-12 + 1e-3 * min(1.0, float(np.abs(gradient[free]).max()) ** 2)  # the labels of a point sum to one
        step = _bounded_step(curvature.at(labels, ridge), gradient, flat)
        size = 1.0
        while size > 1e-8:
            trial = np.maximum(flat + size * step, 0.0)
            trial_value, trial_gradient = negative_dual(trial)
            # The dual is flat to rounding long before the constraints are met; then their violation decides.
            flatness = 1e-12 * (1 + abs(value))
            if trial_value < value - flatness or (
                trial_value <= value + flatness and _missed(trial, trial_gradient) < 0.9 * missed
            ):
                break
            size /= 2
        else:
            break
        flat, value, gradient = trial, trial_value, trial_gradient
    return flat.reshape(multipliers.shape)


@dataclass(frozen=True, eq=False)
class _Curvature:
    """The second derivatives of the dual: moving a multiplier moves the labels of both ends by minus their covariance.

    Attributes
    ----------
    rows, columns, entries : ndarray of int
        For each point and each two of its pairs, possibly the same one, and each two classes: the two multipliers, and
        the entry of the covariances of all points.
    n : int
        Number of multipliers.
    """

    rows: Ints
    columns: Ints
    entries: Ints
    n: int

    @classmethod
    def of(cls, pairs: Ints, n_classes: int) -> "_Curvature":
        """Everything that stays as it is from step to step."""
        order = np.argsort(pairs.ravel(), kind="stable")
        at, point = order // 2, pairs.ravel()[order]
        degree = np.bincount(point)[point]  # of the point at each end
        first = np.searchsorted(point, point)
        one = np.repeat(at, degree)
        within = np.arange(len(one)) - np.repeat(np.cumsum(degree) - degree, degree)
        other = at[np.repeat(first, degree) + within]
        m, other_m = (grid.ravel() for grid in np.mgrid[:n_classes, :n_classes])
        return cls(
            (one[:, None] * n_classes + m).ravel(),
            (other[:, None] * n_classes + other_m).ravel(),
            (np.repeat(point, degree)[:, None] * n_classes**2 + m * n_classes + other_m).ravel(),
            len(pairs) * n_classes,
        )

    def at(self, labels: Floats, ridge: float) -> Any:
        """The matrix at some labels, dense if it is small; `ridge` is added to its diagonal."""
        covariances = labels[:, :, None] * (np.eye(labels.shape[1]) - labels[:, None, :])
        values = covariances.ravel()[self.entries]
        if self.n > DENSE:
            matrix = csr_array((values, (self.rows, self.columns)), shape=(self.n, self.n))
            return matrix + ridge * eye_array(self.n, format="csr")
        summed = np.bincount(self.rows * self.n + self.columns, weights=values, minlength=self.n**2)
        dense = np.asarray(summed, dtype=np.float64).reshape(self.n, self.n)
        dense[np.diag_indices_from(dense)] += ridge
        return dense


def _bounded_step(hessian: Any, gradient: Floats, flat: Floats) -> Floats:
    """The step to the minimum of the quadratic model under the bound zero, by changing which multipliers stay there."""
    zero = (flat <= 0) & (gradient >= 0)
    for _ in range(CHANGES_OF_BOUNDS):
        step = -flat
        step[~zero] = 0.0
        right = -(gradient + hessian @ step)[~zero]
        inside = hessian[~zero][:, ~zero]
        step[~zero] = np.linalg.solve(inside, right) if isinstance(inside, np.ndarray) else spsolve(inside, right)
        below = np.where(zero, gradient + hessian @ step >= 0, flat + step < 0)
        if np.array_equal(below, zero):
            break
        zero = below
    return step


def _sweep(log_posterior: Floats, multipliers: Floats, pairs: Ints) -> Floats:
    """Satisfy one constraint after the other exactly, until all hold.

    Where probabilities are 0 or 1 up to rounding, the dual has no curvature left for Newton's method. A single
    multiplier has a closed form in logits: with q_a + q_b = 1, it changes by half the sum of both logits.
    """
    multipliers = multipliers.copy()
    log_labels = log_posterior.copy()
    np.subtract.at(log_labels, pairs[:, 0], multipliers)
    np.subtract.at(log_labels, pairs[:, 1], multipliers)
    groups: list[Ints] = []
    for _ in range(SWEEPS):
        labels = shares(log_labels)
        excess = labels[pairs[:, 0]] + labels[pairs[:, 1]] - 1
        if excess.max() <= TOLERANCE:
            break
        groups = groups or _matchings(pairs)
        moving = (excess > 0) | (multipliers > 0)
        for group in groups:
            for m in range(multipliers.shape[1]):
                at = group[moving[group, m]]
                ends = pairs[at]
                logits = log_labels[ends, m] - leave_one_out(log_labels[ends])[..., m]
                change = np.maximum(logits.sum(axis=1) / 2, -multipliers[at, m])
                multipliers[at, m] += change
                log_labels[ends, m] -= change[:, None]
    return multipliers


def _matchings(pairs: Ints) -> list[Ints]:
    """Groups of pairs that share no point, so that a whole group can be updated at once."""
    taken: dict[int, set[int]] = {}
    groups: list[list[int]] = []
    for number, (a, b) in enumerate(pairs.tolist()):
        used = taken.setdefault(a, set()) | taken.setdefault(b, set())
        group = next(g for g in range(len(used) + 1) if g not in used)
        if group == len(groups):
            groups.append([])
        groups[group].append(number)
        taken[a].add(group)
        taken[b].add(group)
    return [np.array(group, dtype=np.int64) for group in groups]


def _missed(flat: Floats, gradient: Floats) -> float:
    """Violation of the optimality conditions: constraints are tight where a multiplier is positive, else met."""
    return float(np.abs(np.where(flat > 0, gradient, np.minimum(gradient, 0.0))).max())


def _first_multipliers(log_posterior: Floats, pairs: Ints) -> Floats:
    """Exact multipliers of a pair that shares no point with another; a start for the others.

    At most one class can be too probable at both ends. There q_a = sigmoid((logit p_a - logit p_b) / 2), which
    corresponds to a multiplier of half the sum of the logits.
    """
    probability = np.exp(log_posterior)
    with np.errstate(divide="ignore"):
        logit = log_posterior - np.log1p(-np.minimum(probability, 1 - 1e-16))
    half = (logit[pairs[:, 0]] + logit[pairs[:, 1]]) / 2
    return np.where(probability[pairs[:, 0]] + probability[pairs[:, 1]] > 1, np.maximum(half, 0.0), 0.0)


def _without_known(log_posterior: Floats, pairs: Ints) -> tuple[Floats, Ints]:
    """Rule out for its partners the class of a point that can have only one, and drop these pairs.

    A constraint with such a point would need an infinite multiplier. A partner with one class left is such a point too.
    """
    log_posterior = log_posterior.copy()
    while True:
        possible = ~np.isneginf(log_posterior)
        known = possible.sum(axis=1) == 1
        if not known[pairs].any():
            return log_posterior, pairs
        for a, b in ((pairs[:, 0], pairs[:, 1]), (pairs[:, 1], pairs[:, 0])):
            told = known[a]
            log_posterior[b[told], possible.argmax(axis=1)[a[told]]] = -np.inf
        if np.isneginf(log_posterior).all(axis=1).any():
            row = int(np.flatnonzero(np.isneginf(log_posterior).all(axis=1))[0])
            at = (pairs == row).any(axis=1)
            raise InfeasibleLinks(
                "the known labels of their points leave no class for these cannot-links: drop one of them",
                Links(cannot=pairs[at]),
            )
        pairs = pairs[~known[pairs].any(axis=1)]


class BoundProjection(BoundCoupling):
    """Cannot-links that hold in expectation."""

    def __init__(self, links: Links, slack: float) -> None:
        self.pairs, self.slack, self._links = links.cannot, slack, links

    def expect(
        self, class_log_density: Floats, class_weights: Floats, reliability: Floats = NO_RELIABILITY
    ) -> LinkExpectation:
        """Projected posterior of the linked points."""
        log_joint = np.log(class_weights) + class_log_density
        log_row = log_sum_exp(log_joint)
        log_posterior, pairs = _without_known(log_joint - log_row[:, None], self.pairs)
        labels, divergence, _ = project(log_posterior, pairs, self.slack)
        return LinkExpectation(float(log_row.sum()) - divergence, labels, labels.sum(axis=0))

    def labels(self, class_log_density: Floats, class_weights: Floats, reliability: Floats = NO_RELIABILITY) -> Ints:
        """Most probable label of each point; where a certain link breaks, the jointly most probable ones."""
        own = super().labels(class_log_density, class_weights, reliability)
        return labels_that_hold(own, self._links, class_log_density, class_weights)


@dataclass(frozen=True)
class Projection(Coupling):
    """EM with posterior constraints.

    Parameters
    ----------
    slack : float, default=0.0
        By how much the constraints may be violated, in the Euclidean norm over all of them.
    """

    slack: float = 0.0

    def __post_init__(self) -> None:
        check_number("slack", self.slack, Real, 0)

    def bind(self, links: Links, n_linked: int, n_classes: int) -> BoundCoupling:
        """Prepare the constraints."""
        refuse_relations(links, "projection")
        return BoundProjection(links, self.slack)
