"""Temperatures, levels and the quality, each against something outside: bisection, enumeration, scipy, simulation."""

from itertools import combinations

import numpy as np
import pytest
from scipy.integrate import simpson
from scipy.optimize import brentq
from scipy.special import expit, log_softmax, softmax
from scipy.stats import beta, multivariate_normal

from linkmix import Links
from linkmix.mixture.calibration import (
    LEVELS,
    SETTINGS,
    LeftOut,
    Quality,
    left_out_together,
    level,
    log_evidence,
    n_kept,
    quality,
    temperatures,
    tempered,
)

NONE = np.empty(0, dtype=np.int64)


def a_log_joint(n, n_classes, scale, seed=0):
    return scale * np.random.default_rng(seed).normal(size=(n, n_classes))


def sureness(log_joint, temperature):
    """Mean of the largest probability, from 0 to 1."""
    n_classes = log_joint.shape[1]
    return float((softmax(log_joint / temperature, axis=1).max(axis=1).mean() - 1 / n_classes) / (1 - 1 / n_classes))


def exact_temperature(log_joint, wanted):
    """By bisection; never below 1."""
    if sureness(log_joint, 1.0) <= wanted:
        return 1.0
    return brentq(lambda T: sureness(log_joint, T) - wanted, 1.0, 1e9)


def left_out(log_joint, links=None, rows=NONE, labels=NONE, first=0):
    links = Links() if links is None else links
    n = links.n_must + links.n_cannot
    return LeftOut(log_joint, links, np.arange(first, first + n), np.asarray(rows), np.asarray(labels))


# Temperatures.


@pytest.mark.parametrize(("n", "n_classes", "scale"), [(300, 3, 50.0), (300, 8, 500.0), (40, 2, 5.0), (2, 2, 30.0)])
def test_a_temperature_reaches_the_level_that_is_asked_for(n, n_classes, scale):
    log_joint = a_log_joint(n, n_classes, scale)
    most = sureness(log_joint, 1.0)
    for wanted in (0.1, 0.3, 0.6, 0.8):
        assert wanted < most
        T = float(temperatures(log_joint, np.array([wanted]))[0])
        assert sureness(log_joint, T) == pytest.approx(wanted, abs=0.005)
        assert exact_temperature(log_joint, wanted) == pytest.approx(T, rel=0.03)


def test_temperatures_fall_with_the_level_and_never_below_one():
    log_joint = a_log_joint(200, 4, 3.0)
    found = temperatures(log_joint, LEVELS)
    assert (np.diff(found) <= 0).all()
    assert found.min() == 1.0  # the mixture is less sure than the highest levels: it stays as it is
    assert (found[sureness(log_joint, 1.0) < LEVELS] == 1.0).all()


def test_one_class_and_few_points():
    assert temperatures(np.zeros((5, 1)), np.array([0.2, 0.9])).tolist() == [1.0, 1.0]
    one = np.array([[0.0, -20.0]])
    T = float(temperatures(one, np.array([0.5]))[0])
    assert tempered(one, T).max() == pytest.approx(0.75, abs=0.005)


def test_the_level_of_many_rows_is_measured_on_some_of_them():
    log_joint = a_log_joint(20_000, 3, 40.0)
    T = float(temperatures(log_joint, np.array([0.5]))[0])
    assert sureness(log_joint, T) == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("temperature", [1.0, 7.0, 1e4])
def test_tempering_changes_no_label(temperature):
    log_joint = a_log_joint(500, 5, 300.0)
    P = tempered(log_joint, temperature)
    np.testing.assert_allclose(P, softmax(log_joint / temperature, axis=1), atol=1e-12)
    np.testing.assert_array_equal(P.argmax(axis=1), log_joint.argmax(axis=1))


# Levels.


def pair_level(wanted, n_classes):
    """The level u at which links are explained, by bisection: level = u - spread (1 - 2 / M) u (1 - u)."""
    curve = SETTINGS.spread * (1 - 2 / n_classes)
    return brentq(lambda u: u - curve * u * (1 - u) - wanted, 0, 1)


def log_said(one, wanted, temperature_of):
    """Log-probability of what was left out at a level, written out link by link and row by row."""
    total, log_joint = 0.0, one.log_joint
    P = softmax(log_joint / temperature_of(log_joint, pair_level(wanted, log_joint.shape[1])), axis=1)
    for pairs, confidence, same in (
        (one.links.must, one.links.must_confidence, True),
        (one.links.cannot, one.links.cannot_confidence, False),
    ):
        for i, (a, b) in enumerate(pairs):
            sure = 1.0 if confidence is None else confidence[i]
            together = sum(P[a, m] * P[b, m] for m in range(P.shape[1]))
            holds = together if same else 1 - together
            total += np.log(max(sure * holds + (1 - sure) * (1 - holds), SETTINGS.least))
    if len(one.rows):
        P = softmax(log_joint / temperature_of(log_joint, wanted), axis=1)
        for row, label in zip(one.rows, one.labels, strict=True):
            total += np.log(max(P[row, label], SETTINGS.least))
    return total


def grid_temperature(log_joint, wanted):
    return float(temperatures(log_joint, np.array([wanted]))[0])


def some_left_out(n_classes, seed=0):
    log_joint = a_log_joint(60, n_classes, 20.0, seed)
    y = np.random.default_rng(seed + 1).integers(n_classes, size=60)
    y[:40] = log_joint[:40].argmax(axis=1)  # right in two thirds of the rows or more
    links = Links.from_labels(y, 12, random_state=seed)
    unsure = np.linspace(0.6, 1.0, links.n_must)
    links = Links(links.must, links.cannot, must_confidence=unsure if len(unsure) else None)
    return left_out(log_joint, links, np.arange(0, 60, 9), y[::9])


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_the_evidence_by_enumeration(n_classes):
    one = some_left_out(n_classes)
    expected = [log_said(one, wanted, grid_temperature) for wanted in LEVELS]
    np.testing.assert_allclose(log_evidence(one), expected, rtol=1e-9)


@pytest.mark.parametrize(("n_classes", "agreement"), [(2, 0.2), (3, 0.6), (7, 0.9)])
def test_the_level_by_numerical_integration(n_classes, agreement):
    left_outs = [some_left_out(n_classes, seed) for seed in range(3)]
    expected = expit(SETTINGS.slope * (agreement - SETTINGS.middle))

    def log_density(u):
        log_prior = SETTINGS.strength * (expected * np.log(u) + (1 - expected) * np.log(1 - u))
        return log_prior + sum(log_said(one, u, exact_temperature) for one in left_outs)

    grid = np.linspace(0.001, 0.999, 201)
    log_densities = np.array([log_density(u) for u in grid])
    density = np.exp(log_densities - log_densities.max())
    mass = simpson(density, x=grid)
    mean = simpson(grid * density, x=grid) / mass
    assert level(left_outs, agreement) == pytest.approx(mean, abs=0.01)


def test_kept_links_are_counted():
    labels = np.array([0, 0, 1, 1])
    one = left_out(np.log(0.8 * np.eye(2)[labels] + 0.1), Links(must=[(0, 1), (1, 2)], cannot=[(0, 3), (2, 3), (1, 3)]))
    assert n_kept([one]) == (3, 5)
    assert n_kept([one, one]) == (6, 10)
    assert n_kept([]) == (0, 0)


def test_without_links_the_level_is_the_mean_of_a_beta_distribution():
    previous = 0.0
    for agreement in (0.1, 0.4, 0.6, 0.95):
        expected = expit(SETTINGS.slope * (agreement - SETTINGS.middle))
        prior = beta(SETTINGS.strength * expected + 1, SETTINGS.strength * (1 - expected) + 1)
        found = level([], agreement)
        assert found == pytest.approx(prior.mean(), abs=0.005)
        assert found > previous
        previous = found


def test_links_that_are_broken_lower_the_level_and_links_that_are_kept_raise_it():
    log_joint = a_log_joint(200, 3, 100.0)
    labels = log_joint.argmax(axis=1)
    other = np.random.default_rng(5).permutation(labels)
    for agreement in (0.1, 0.9):
        for n_links, at_least, at_most in ((20, 0.0, 1.0), (2000, 0.95, 0.2)):
            kept = level([left_out(log_joint, Links.from_labels(labels, n_links, random_state=0))], agreement)
            broken = level([left_out(log_joint, Links.from_labels(other, n_links, random_state=0))], agreement)
            assert kept > max(level([], agreement), at_least)
            assert broken < min(level([], agreement), at_most)


def test_known_labels_tell_the_level_directly():
    """A mixture that is right in 70 % of the rows and says nothing about which: its level is (.7 - 1/2) / (1/2)."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=2000)
    said = np.where(rng.random(2000) < 0.7, y, 1 - y)
    log_joint = np.where(said[:, None] == np.arange(2), 0.0, -200.0)
    assert level([left_out(log_joint, None, np.arange(2000), y)], 0.9) == pytest.approx(0.4, abs=0.06)


def test_probability_that_the_points_of_each_link_belong_together():
    first, second = a_log_joint(30, 3, 9.0, 0), a_log_joint(30, 3, 9.0, 1)
    links = Links(must=[(0, 1), (2, 3), (4, 5)], cannot=[(6, 7), (8, 9)])
    mask = np.array([True, False, True]), np.array([False, True])
    one = LeftOut(first, links.where(*mask), np.array([0, 2, 4]), NONE, NONE)
    other = LeftOut(second, links.where([False, True, False], [False, False]), np.array([1]), NONE, NONE)
    found = left_out_together([one, other], 0.4, 5)
    assert found[3] == 0.5  # no refit has left it out
    for at, pair, log_joint in ((0, (0, 1), first), (1, (2, 3), second), (2, (4, 5), first), (4, (8, 9), first)):
        P = softmax(log_joint / grid_temperature(log_joint, 0.4), axis=1)
        assert found[at] == pytest.approx(sum(P[pair[0]] * P[pair[1]]), rel=1e-9)


# Quality.


def even_probabilities(n=200):
    """Two classes of equal size, each point nine tenths sure: every pair is judged right with probability .82."""
    P = np.full((n, 2), 0.1)
    P[np.arange(n), np.arange(n) % 2] = 0.9
    return P


def judged(P, n_right, n_wrong):
    """Links of which so many are kept by the labels of P, as many of each kind."""
    odd, even = np.arange(1, len(P), 2), np.arange(0, len(P), 2)
    together, apart = list(combinations(even, 2)), list(zip(even, odd, strict=True))
    must = together[: n_right // 2] + apart[: n_wrong // 2]
    cannot = apart[50 : 50 + n_right - n_right // 2] + together[500 : 500 + n_wrong - n_wrong // 2]
    return Links(must, cannot)


def interval(mean, low, high, links_per_point):
    """With a wider upper part, for the links that refits had not seen."""
    upwards = SETTINGS.upwards + SETTINGS.upwards_dense * min(1.0, links_per_point)
    return low, min(1.0, mean + upwards * (high - mean))


@pytest.mark.parametrize(("n_right", "n_wrong"), [(10, 2), (40, 10), (30, 30), (60, 0)])
def test_the_quality_is_a_beta_posterior_for_certain_links(n_right, n_wrong):
    P = even_probabilities()
    links = judged(P, n_right, n_wrong)
    half = np.arange(links.n_must) % 2 == 0, np.arange(links.n_cannot) % 2 == 0
    log_joint = np.log(P) * 30
    left_outs = [left_out(log_joint, links.where(*half)), left_out(log_joint, links.where(~half[0], ~half[1]))]
    found = quality(P, left_outs)
    a = SETTINGS.counted * n_right + SETTINGS.implied * 0.82
    b = SETTINGS.counted * n_wrong + SETTINGS.implied * 0.18
    posterior = beta(a, b)
    assert found.pairs_right == pytest.approx(posterior.mean(), abs=2e-3)
    ends = interval(posterior.mean(), *posterior.ppf([0.05, 0.95]), (n_right + n_wrong) / len(P))
    assert (found.low, found.high) == pytest.approx(ends, abs=4e-3)
    assert found.n_links == n_right + n_wrong


def test_unsure_links_count_for_less():
    """Against a sum over a grid, link by link."""
    P = even_probabilities()
    plain = judged(P, 40, 12)
    unsure = Links(plain.must, plain.cannot, must_confidence=0.7, cannot_confidence=0.9)
    log_joint, labels = np.log(P), P.argmax(axis=1)
    grid = np.linspace(0, 1, 4001)[1:-1]
    log_posterior = np.log(beta(SETTINGS.implied * 0.82, SETTINGS.implied * 0.18).pdf(grid))
    for pairs, confidence, same in ((unsure.must, 0.7, True), (unsure.cannot, 0.9, False)):
        for a, b in pairs:
            agrees = confidence if (labels[a] == labels[b]) == same else 1 - confidence
            log_posterior += SETTINGS.counted * np.log(agrees * grid + (1 - agrees) * (1 - grid))
    posterior = np.exp(log_posterior - log_posterior.max())
    posterior /= posterior.sum()
    found, certain = quality(P, [left_out(log_joint, unsure)]), quality(P, [left_out(log_joint, plain)])
    assert found.pairs_right == pytest.approx(posterior @ grid, abs=2e-3)
    ends = np.interp([0.05, 0.95], np.cumsum(posterior), grid)
    ends = interval(posterior @ grid, *ends, (plain.n_must + plain.n_cannot) / len(P))
    assert (found.low, found.high) == pytest.approx(ends, abs=4e-3)
    assert found.high - found.low > certain.high - certain.low


def test_nothing_is_said_without_links_of_both_kinds():
    P = even_probabilities()
    links = judged(P, 20, 4)
    assert quality(P, []) is None
    assert quality(P, [left_out(np.log(P))]) is None
    assert quality(P, [left_out(np.log(P), Links(must=links.must))]) is None
    assert quality(P, [left_out(np.log(P), Links(cannot=links.cannot))]) is None
    assert quality(P, [left_out(np.log(P), links)]) is not None


def test_known_labels_are_paired_at_random():
    P = even_probabilities()
    rows = np.arange(0, 200, 3)
    truth = P.argmax(axis=1)
    found = quality(P, [left_out(np.log(P), None, rows, truth[rows])])
    assert found.n_links == len(rows) // 2
    posterior = beta(SETTINGS.counted * 33 + SETTINGS.implied * 0.82, SETTINGS.implied * 0.18)
    assert found.pairs_right == pytest.approx(posterior.mean(), abs=2e-3)


def test_chance_is_what_labels_that_mean_nothing_would_reach():
    rng = np.random.default_rng(0)
    y = rng.choice(3, size=300, p=[0.6, 0.3, 0.1])
    P = np.full((300, 3), 0.02)
    P[np.arange(300), y] = 0.96
    a, b = np.triu_indices(300, 1)
    same = y[a] == y[b]
    shuffled = (rng.permutation(y) for _ in range(100))
    by_chance = np.mean([((labels[a] == labels[b]) == same).mean() for labels in shuffled])
    found = quality(P, [left_out(np.log(P), Links.from_labels(y, 600, random_state=0))])
    assert found.by_chance == pytest.approx(by_chance, abs=0.02)
    assert found.better_than_chance


def test_links_that_are_no_random_pairs_are_weighed_by_kind():
    """Four equal classes, so that a quarter of all pairs belong together, but three quarters of the links say so."""
    n, n_must, n_cannot = 400, 90, 30
    labels = np.arange(n) % 4
    P = np.full((n, 4), 0.001)
    P[np.arange(n), labels] = 0.997
    groups = [np.flatnonzero(labels == m) for m in range(4)]
    together = list(zip(groups[0][:-1], groups[0][1:], strict=True))
    apart = list(zip(groups[1], groups[2], strict=True))
    kept_must, kept_cannot = 54, 27  # three in five, nine in ten
    must = together[:kept_must] + apart[: n_must - kept_must]
    cannot = apart[60 : 60 + kept_cannot] + together[60 : 60 + n_cannot - kept_cannot]
    found = quality(P, [left_out(np.log(P), Links(must, cannot))])
    same = np.equal.outer(labels, labels)
    share = same[~np.eye(n, dtype=bool)].mean()
    # Effective sample size of the weights, as in importance sampling.
    w = np.repeat([share / n_must, (1 - share) / n_cannot], [n_must, n_cannot])
    effective = 1 / (w**2).sum()
    rate = share * kept_must / n_must + (1 - share) * kept_cannot / n_cannot
    prior = SETTINGS.implied * 0.996  # about
    worth = SETTINGS.counted * effective
    assert found.pairs_right == pytest.approx((worth * rate + prior) / (worth + SETTINGS.implied), abs=0.01)
    unweighted = (kept_must + kept_cannot) / (n_must + n_cannot)
    assert abs(found.pairs_right - rate) < abs(found.pairs_right - unweighted)


def test_it_is_said_in_words():
    good, bad = Quality(0.871, 0.81, 0.92, 0.55, 50), Quality(0.58, 0.47, 0.69, 0.55, 10, "audit")
    assert str(good) == "About 87 % of all pairs are judged as you would (81 to 92 %), from 50 links."
    assert "from 10 questions about random pairs, measured before their answers were used." in str(bad)
    assert "That may be no better than chance: random labels would judge 55 % right." in str(bad)
    assert good.better_than_chance
    assert not bad.better_than_chance


# Where the truth is known: labels are drawn from a mixture, so its posterior is the true one.


def drawn(seed, n=400):
    """Log-joint of three overlapping Gaussian classes, and labels drawn from their posterior."""
    rng = np.random.default_rng(seed)
    means = np.array([[0.0, 0.0], [1.8, 0.0], [0.9, 1.6]])
    X = means[rng.integers(3, size=n)] + rng.normal(size=(n, 2))
    log_joint = np.stack([multivariate_normal(mean).logpdf(X) for mean in means], axis=1) - np.log(3)
    cumulated = np.exp(log_softmax(log_joint, axis=1)).cumsum(axis=1)
    return log_joint, (rng.random((n, 1)) > cumulated).sum(axis=1)


def five_folds(log_joint, y, n_links, seed):
    links = Links.from_labels(y, n_links, random_state=seed)
    must, cannot = np.arange(links.n_must) % 5, np.arange(links.n_cannot) % 5
    return [left_out(log_joint, links.where(must == fold, cannot == fold)) for fold in range(5)]


def calibration_error(P, y):
    sure, right = P.max(axis=1), P.argmax(axis=1) == y
    at = np.minimum((10 * sure).astype(int), 9)
    return sum(abs((sure - right)[at == one].sum()) for one in range(10)) / len(y)


@pytest.mark.parametrize("n_links", [25, 100, 400])
def test_probabilities_are_honest_where_the_truth_is_known(n_links):
    before, after, shares_right, sure = [], [], [], []
    for seed in range(12):
        log_joint, y = drawn(seed)
        sharp = 6 * log_joint  # far too sure of itself
        found = level(five_folds(sharp, y, n_links, seed), 0.6)
        P = tempered(sharp, grid_temperature(sharp, found))
        before.append(calibration_error(tempered(sharp, 1.0), y))
        after.append(calibration_error(P, y))
        shares_right.append((P.argmax(axis=1) == y).mean())
        sure.append(P.max(axis=1).mean())
    assert np.mean(before) > 0.2
    assert np.mean(after) < {25: 0.12, 100: 0.09, 400: 0.08}[n_links]
    assert (np.array(after) < before).all()
    assert np.mean(sure) == pytest.approx(np.mean(shares_right), abs=0.06)


@pytest.mark.parametrize("n_links", [20, 100])
def test_the_interval_covers_where_the_truth_is_known(n_links):
    covered, errors, by_counting = [], [], []
    for seed in range(40):
        log_joint, y = drawn(seed, 300)
        left_outs = five_folds(6 * log_joint, y, n_links, seed)
        T = grid_temperature(6 * log_joint, level(left_outs, 0.6))
        found = quality(tempered(6 * log_joint, T), left_outs)
        labels = log_joint.argmax(axis=1)
        a, b = np.triu_indices(len(y), 1)
        truth = ((labels[a] == labels[b]) == (y[a] == y[b])).mean()
        covered.append(found.low <= truth <= found.high)
        errors.append(found.pairs_right - truth)
        by_counting.append(np.sqrt(2 / np.pi * truth * (1 - truth) / n_links))  # expected error of counting links
    assert np.mean(covered) >= 0.85
    assert np.mean(np.abs(errors)) < np.mean(by_counting)
    assert abs(np.mean(errors)) < 0.03
