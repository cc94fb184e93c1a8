"""Honest probabilities, and an honest estimate of how good a clustering is, from links that a refit had not seen.

A mixture is far too sure of itself: its densities are wrong in detail, and every column adds to the error. Dividing the
log-densities by one temperature mends that. Which temperature cannot be told from links that the model was fitted to,
but refits without some of the links tell it by what they say about these.

Temperatures of different mixtures do not compare, so a *level* is estimated instead: the mean of the largest
probability, on a scale from 0 (all classes equally probable) to 1 (no doubt). Each mixture then gets the temperature
that brings it to this level.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import RandomState
from scipy.special import expit

from linkmix.basics.arrays import Array, Floats, Ints, shares
from linkmix.links import Links

LEVELS: Floats = np.concatenate([[0.005], np.arange(0.025, 0.98, 0.025), [0.99, 0.9975]])
"""Levels that are compared."""
TEMPERATURES: Floats = np.geomspace(1, 1e4, 80)
"""Temperatures between which is interpolated."""
N_ROWS = 500
"""Rows by which a level is measured."""
N_PAIRS = 20_000
"""Random pairs by which the implied quality is measured."""
FEWEST_RANDOM = 10
"""Number of random statements that an estimate of the quality takes, if other links were chosen."""
UNLIKE_RANDOM = 3.0
"""Standard deviations by which the share of must-links may differ from what random pairs would give."""


@dataclass(frozen=True)
class CalibrationSettings:
    """Tuned constants.

    Attributes
    ----------
    middle, slope : float
        Without any link, the level is ``expit(slope * (agreement - middle))``: candidates that agree are mostly right.
    strength : float
        How many statements that expectation is worth.
    spread : float
        With many classes, pairs look more certain than points: a doubtful point is confused with a few classes, but a
        temperature spreads its probability over all. Links are therefore explained at a level ``u`` with
        ``level = u - spread (1 - 2 / n_classes) u (1 - u)``.
    least : float
        Smallest probability that a statement counts for: some are wrong.
    counted : float
        Number of independent pairs that one left-out link is worth for the quality.
    implied : float
        Number of pairs that the quality implied by the probabilities is worth.
    upwards : float
        The upper part of the interval of the quality is so many times as wide: refits saw fewer links than the model
        that they speak for, which is a little better.
    upwards_dense : float
        What each link per point adds to that, up to one link per point: if most points have links, a model learns much
        from the last fifth of them.
    """

    middle: float = 0.51
    slope: float = 6.3
    strength: float = 10.0
    spread: float = 0.6
    least: float = 1e-3
    counted: float = 0.6
    implied: float = 12.0
    upwards: float = 1.2
    upwards_dense: float = 1.0


SETTINGS = CalibrationSettings()


@dataclass(frozen=True, eq=False)
class LeftOut:
    """What a refit says about all rows, and what it had not seen.

    Attributes
    ----------
    log_joint : ndarray of shape (n_samples, n_classes)
        Log of class weight times density.
    links : Links
        Links that it had not seen.
    at : ndarray of shape (n_left_links,)
        Their positions among all links, must-links first.
    rows, labels : ndarray of shape (n_left,)
        Rows whose known labels it had not seen, and these labels.
    """

    log_joint: Floats
    links: Links
    at: Ints
    rows: Ints
    labels: Ints


@dataclass(frozen=True)
class Quality:
    """How good a clustering is: the share of all pairs of points that it judges as the user would.

    Attributes
    ----------
    pairs_right : float
        The estimated share.
    low, high : float
        Ends of a 90 % interval.
    by_chance : float
        The share that labels of the same class sizes would reach if they had nothing to do with the user's classes.
    n_links : int
        Number of statements that the estimate rests on.
    source : str
        What these are: "links", or "audit" for random pairs asked about for this purpose.

    Examples
    --------
    >>> print(Quality(0.871, 0.81, 0.92, 0.55, 50))
    About 87 % of all pairs are judged as you would (81 to 92 %), from 50 links.
    >>> print(Quality(0.58, 0.47, 0.69, 0.55, 10))  # doctest: +NORMALIZE_WHITESPACE
    About 58 % of all pairs are judged as you would (47 to 69 %), from 10 links. That may be no better than chance:
    random labels would judge 55 % right. More links, other columns or another number of classes may help.
    """

    pairs_right: float
    low: float
    high: float
    by_chance: float
    n_links: int
    source: str = "links"

    @property
    def better_than_chance(self) -> bool:
        """Whether the whole interval is above what chance would reach."""
        return self.low > self.by_chance

    def __str__(self) -> str:
        """Say it in words."""
        what = {
            "links": "links",
            "audit": "questions about random pairs, measured before their answers were used",
        }[self.source]
        said = (
            f"About {100 * self.pairs_right:.0f} % of all pairs are judged as you would "
            f"({100 * self.low:.0f} to {100 * self.high:.0f} %), from {self.n_links} {what}."
        )
        if self.better_than_chance:
            return said
        return (
            f"{said} That may be no better than chance: random labels would judge {100 * self.by_chance:.0f} % right. "
            "More links, other columns or another number of classes may help."
        )


def is_calibrated(model: Any) -> bool:
    """Whether the probabilities of a fitted estimator are calibrated."""
    return bool(getattr(model, "calibrate", False)) and hasattr(model, "temperatures_")  # early files have none


def tempered(log_joint: Floats, temperature: float) -> Floats:
    """Probabilities of the classes at a temperature, shape (n, M)."""
    return shares(log_joint / temperature)


def rows_to_measure(n: int) -> Ints:
    """The rows, out of n, by which `temperatures` measures how sure a mixture is."""
    return np.arange(n) if n <= N_ROWS else RandomState(0).choice(n, N_ROWS, replace=False)


def temperatures(log_joint: Floats, levels: Floats) -> Floats:
    """Temperatures that bring a mixture to each of these levels; never below 1.

    Parameters
    ----------
    log_joint : ndarray of shape (n_samples, n_classes)
        Log of class weight times density.
    levels : ndarray of shape (n_levels,)
        From 0 to 1.

    Returns
    -------
    ndarray of shape (n_levels,)

    Examples
    --------
    >>> log_joint = np.array([[0.0, -10.0], [-20.0, 0.0]])
    >>> T = temperatures(log_joint, np.array([0.5]))
    >>> tempered(log_joint, T[0]).max(axis=1).mean().round(2)
    np.float64(0.75)
    """
    n, n_classes = log_joint.shape
    if n_classes == 1:
        return np.ones(len(levels))
    rows = rows_to_measure(n)
    below = log_joint[rows] - log_joint[rows].max(axis=1, keepdims=True)
    sure = np.array([(1 / np.exp(below / T).sum(axis=1)).mean() for T in TEMPERATURES])
    found = (sure - 1 / n_classes) / (1 - 1 / n_classes)  # falls with the temperature
    return np.asarray(np.exp(np.interp(levels, found[::-1], np.log(TEMPERATURES)[::-1])))


def level(left_outs: Sequence[LeftOut], agreement: float, settings: CalibrationSettings = SETTINGS) -> float:
    """How sure a mixture may be, from 0 to 1.

    Parameters
    ----------
    left_outs : sequence of LeftOut
        Refits, and what they had not seen.
    agreement : float
        How well the candidates of the search agree: their mean adjusted Rand index.
    settings : CalibrationSettings
        Tuned constants.

    Returns
    -------
    float
        Mean of the posterior.
    """
    expected = float(expit(settings.slope * (agreement - settings.middle)))
    log_posterior = settings.strength * (expected * np.log(LEVELS) + (1 - expected) * np.log1p(-LEVELS))
    for one in left_outs:
        log_posterior += log_evidence(one, settings)
    weight = np.exp(log_posterior - log_posterior.max()) * np.gradient(LEVELS)
    return float(weight @ LEVELS / weight.sum())


def log_evidence(one: LeftOut, settings: CalibrationSettings = SETTINGS) -> Floats:
    """Log-probability of what a refit had not seen, at each level, shape (n_levels,)."""
    total = np.zeros(len(LEVELS))
    points = one.links.points
    linked, kinds = one.log_joint[points], [*_kinds(one.links.restrict(points))]
    for at, T in enumerate(temperatures(one.log_joint, _pair_levels(one.log_joint.shape[1], settings.spread))):
        P = tempered(linked, T)
        for pairs, confidence, wanted in kinds:
            together = np.einsum("im,im->i", *(P[end] for end in pairs.T))
            holds = together if wanted else 1 - together
            said = confidence * holds + (1 - confidence) * (1 - holds)
            total[at] += np.log(np.maximum(said, settings.least)).sum()
    if len(one.rows):
        for at, T in enumerate(temperatures(one.log_joint, LEVELS)):
            right = tempered(one.log_joint[one.rows], T)[np.arange(len(one.rows)), one.labels]
            total[at] += np.log(np.maximum(right, settings.least)).sum()
    return total


def quality(
    probabilities: Floats, left_outs: Sequence[LeftOut], settings: CalibrationSettings = SETTINGS
) -> Quality | None:
    """How good a clustering is.

    Parameters
    ----------
    probabilities : ndarray of shape (n_samples, n_classes)
        Calibrated probabilities.
    left_outs : sequence of LeftOut
        Refits, and what they had not seen.
    settings : CalibrationSettings
        Tuned constants.

    Returns
    -------
    Quality or None
        None if nothing can be said: there are no links, only links of one kind, or too few that were not chosen.
    """
    random = RandomState(0)
    a, b = random.randint(len(probabilities), size=(2, N_PAIRS))
    a, b = a[a != b], b[a != b]
    labels = probabilities.argmax(axis=1)
    judged_same = labels[a] == labels[b]
    together = np.einsum("im,im->i", probabilities[a], probabilities[b])
    says_same, right, confidence = _statements(left_outs, random)
    n_same, n_said = int(says_same.sum()), len(says_same)
    if not 0 < n_same < n_said or (n_said < FEWEST_RANDOM and any(one.links.n_chosen for one in left_outs)):
        return None
    share = float(together.mean())
    weight = np.ones(n_said)
    if abs(n_same / n_said - share) > UNLIKE_RANDOM * np.sqrt(max(share * (1 - share), 0.01) / n_said):
        # These are no random pairs, but those of each kind may be: weigh the kinds, and count what that is worth.
        weight = np.where(says_same, share * n_said / n_same, (1 - share) * n_said / (n_said - n_same))
        weight *= weight.sum() / (weight**2).sum()
    shares_right = (np.arange(1000) + 0.5) / 1000  # candidates for the share of pairs that are judged right
    # Many links have few values.
    agrees, alike = np.unique(np.where(right, confidence, 1 - confidence), return_inverse=True)
    says = np.log(agrees[:, None] * shares_right + (1 - agrees[:, None]) * (1 - shares_right))
    log_posterior = settings.counted * np.bincount(alike, weight) @ says
    implied = float(np.where(judged_same, together, 1 - together).mean())
    log_posterior += (settings.implied * implied - 1) * np.log(shares_right)
    log_posterior += (settings.implied * (1 - implied) - 1) * np.log1p(-shares_right)
    posterior = np.exp(log_posterior - log_posterior.max())
    posterior /= posterior.sum()
    low, high = np.interp([0.05, 0.95], np.cumsum(posterior), shares_right).tolist()
    pairs_right = float(posterior @ shares_right)
    upwards = settings.upwards + settings.upwards_dense * min(1.0, n_said / len(probabilities))
    high = min(1.0, pairs_right + upwards * (high - pairs_right))
    same, truly_same = float(judged_same.mean()), (n_same + settings.implied * share) / (n_said + settings.implied)
    by_chance = same * truly_same + (1 - same) * (1 - truly_same)
    return Quality(pairs_right, low, high, by_chance, n_said)


def n_kept(left_outs: Sequence[LeftOut]) -> tuple[int, int]:
    """How many of the left-out links the labels of the refits keep, and of how many."""
    n_kept = n_links = 0
    for one in left_outs:
        labels = one.log_joint.argmax(axis=1)
        for pairs, _, together in _kinds(one.links):
            n_kept += int(np.count_nonzero((labels[pairs[:, 0]] == labels[pairs[:, 1]]) == together))
            n_links += len(pairs)
    return n_kept, n_links


def left_out_together(left_outs: Sequence[LeftOut], level: float, n_links: int) -> Floats:
    """Probability that the two points of each link share a class, by the refit that had not seen the link.

    Parameters
    ----------
    left_outs : sequence of LeftOut
        Refits that together leave out each link once.
    level : float
        How sure they may be.
    n_links : int
        Number of links.

    Returns
    -------
    ndarray of shape (n_links,)
        Must-links first. One half where no refit succeeded.
    """
    together = np.full(n_links, 0.5)
    for one in left_outs:
        P = tempered(one.log_joint, float(temperatures(one.log_joint, np.array([level]))[0]))
        a, b = np.concatenate([one.links.must, one.links.cannot]).T
        together[one.at] = np.einsum("im,im->i", P[a], P[b])
    return together


def _pair_levels(n_classes: int, spread: float) -> Floats:
    """The levels at which links are explained."""
    curve = spread * (1 - 2 / n_classes)
    if curve <= 0:
        return LEVELS
    return np.asarray((np.sqrt((1 - curve) ** 2 + 4 * curve * LEVELS) - (1 - curve)) / (2 * curve))


def _random(links: Links) -> Links:
    """The links that were not chosen."""
    must, cannot = (
        np.ones(n, dtype=bool) if chosen is None else ~chosen
        for n, chosen in ((links.n_must, links.must_chosen), (links.n_cannot, links.cannot_chosen))
    )
    return links.where(must, cannot)


def _kinds(links: Links) -> Iterator[tuple[Ints, Floats, bool]]:
    """Pairs, confidences and whether they are to be together, for both kinds of links."""
    for pairs, confidence, together in (
        (links.must, links.must_confidence, True),
        (links.cannot, links.cannot_confidence, False),
    ):
        yield pairs, np.ones(len(pairs)) if confidence is None else confidence, together


def _statements(left_outs: Sequence[LeftOut], random: RandomState) -> tuple[Array, Array, Floats]:
    """For each left-out statement about two rows: whether it says "same", whether the refit agrees, its confidence.

    Chosen links are no random pairs and do not count. Rows with known labels are paired at random, each once.
    """
    says_same: list[Array] = []
    right: list[Array] = []
    sure: list[Floats] = []
    for one in left_outs:
        labels = one.log_joint.argmax(axis=1)
        for pairs, confidence, together in _kinds(_random(one.links)):
            says_same.append(np.full(len(pairs), together))
            right.append((labels[pairs[:, 0]] == labels[pairs[:, 1]]) == together)
            sure.append(confidence)
        order = random.permutation(len(one.rows))
        half = len(order) // 2
        first, second = order[:half], order[half : 2 * half]
        same = one.labels[first] == one.labels[second]
        says_same.append(same)
        right.append((labels[one.rows[first]] == labels[one.rows[second]]) == same)
        sure.append(np.ones(half))
    if not left_outs:
        return np.empty(0, dtype=bool), np.empty(0, dtype=bool), np.empty(0)
    return np.concatenate(says_same), np.concatenate(right), np.concatenate(sure)
