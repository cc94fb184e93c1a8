"""Refits without some of the links, and what AutoLinkMixture makes of them: honest probabilities and the quality."""

import json
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from numpy.random import RandomState
from scipy.special import softmax
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import adjusted_rand_score

from linkmix import AutoLinkMixture, Blocks, Links
from linkmix.data.scaling import PLAIN, scalings
from linkmix.engine.fitting import Knowledge
from linkmix.mixture.calibration import is_calibrated, left_out_together, level
from linkmix.mixture.folds import folds
from linkmix.search import BUDGETS
from linkmix.search.left_out import left_outs, mean_agreement
from linkmix.search.winner import contest_of

X, Y = load_wine(return_X_y=True)
LINKS = Links.from_labels(Y, 40, random_state=0)
ONE_RECIPE = replace(BUDGETS["small"], guesses=("PCK-means",), shapes=("1",), more_shapes=())
FEW_RECIPES = replace(BUDGETS["small"], guesses=("k-means", "PCK-means"), shapes=("1", "3, shared"), more_shapes=())
OLD_FILE = Path(__file__).parents[1] / "mixture" / "models" / "format-1.linkmix"


def contest(links, known=None, budget=FEW_RECIPES, n_classes=3, weights=None):
    views = scalings(X, budget.settings)
    return contest_of(Knowledge(X, links, weights, known), views, n_classes, budget, seed=7)


def searched(links, known=None, budget=FEW_RECIPES):
    ground = contest(links, known, budget)
    candidates = ground.run(ground.guesses())
    return ground, candidates, left_outs(ground, candidates)


def scaled_as_by(model, points):
    """What its mixtures see."""
    far = (points - model.middle_) / np.where(model.width_ > 0, model.width_, 1)
    return (np.where(model.width_ > 0, np.arcsinh(far), points) - model.center_) / model.scale_


# Refits.


def test_each_link_is_left_out_of_one_refit():
    ground, _, found = searched(LINKS)
    dealt = list(folds(LINKS, None, RandomState(ground.seed)))
    assert len(found) == len(dealt) == 5
    for one, fold in zip(found, dealt, strict=True):
        assert one.links == fold.left
        np.testing.assert_array_equal(one.at, fold.at)
        assert one.log_joint.shape == (len(X), 3)
        assert adjusted_rand_score(Y, one.log_joint.argmax(axis=1)) > 0.7
    assert sorted(np.concatenate([one.at for one in found])) == list(range(40))


def test_a_refit_has_not_seen_its_fold():
    """If the links of one fold say the opposite, its refit is the same to the last bit, and all others change."""
    views = {PLAIN: scalings(X, BUDGETS["small"].settings)[PLAIN]}
    ends = np.concatenate([LINKS.must, LINKS.cannot])
    fold = list(folds(LINKS, None, RandomState(7)))[1]
    found = []
    for confidence in (0.99, 0.01):  # as it is said, or the opposite: the deal does not depend on it
        sure = np.full(len(ends), 0.99)
        sure[fold.at] = confidence
        links = Links(
            LINKS.must,
            LINKS.cannot,
            must_confidence=sure[: LINKS.n_must],
            cannot_confidence=sure[LINKS.n_must :],
        )
        ground = contest_of(Knowledge(X, links), views, 3, ONE_RECIPE, seed=7)
        # The guess without links would be another recipe, and which one is better may depend on the fold.
        candidates = [one for one in ground.run(ground.guesses()) if one.start == "PCK-means"]
        found.append((candidates[0].parameters, left_outs(ground, candidates)))
    (one, refits), (other, others) = found
    assert not np.array_equal(one.class_weights, other.class_weights)
    for number in range(5):
        np.testing.assert_array_equal(refits[number].at, others[number].at)
        same = np.array_equal(refits[number].log_joint, others[number].log_joint)
        assert same == (number == 1)


def test_known_labels_are_left_out_too():
    known = np.where(np.arange(len(Y)) % 6 == 0, Y, -1)
    _, _, found = searched(Links(), known)
    rows = np.sort(np.concatenate([one.rows for one in found]))
    np.testing.assert_array_equal(rows, np.flatnonzero(known >= 0))
    for one in found:
        np.testing.assert_array_equal(one.labels, known[one.rows])
        assert np.mean(one.log_joint.argmax(axis=1)[one.rows] == one.labels) > 0.7  # classes keep their numbers
    assert level(found, 0.5) > 0.75 > 0.55 > level([], 0.5)


def test_a_class_of_which_no_label_is_left_is_not_compared():
    """Such a class has no number in the refit: another class may have taken it."""
    known = np.full(len(Y), -1)
    known[[0, 1, 2, 60, 61, 62, 170]] = Y[[0, 1, 2, 60, 61, 62, 170]]
    _, _, found = searched(Links(), known)
    compared = np.concatenate([one.rows for one in found])
    assert 170 not in compared
    assert {0, 1, 2, 60, 61, 62} == set(compared.tolist())


def test_only_the_first_folds_and_nothing_to_leave_out():
    ground = contest(LINKS, budget=ONE_RECIPE)
    candidates = ground.run(ground.guesses())
    all_of_them, some = left_outs(ground, candidates), left_outs(ground, candidates, 2)
    assert [one.at.tolist() for one in some] == [one.at.tolist() for one in all_of_them[:2]]
    without = contest(Links(), budget=ONE_RECIPE)
    assert left_outs(without, without.run(without.guesses())) == []


def test_agreement_is_the_mean_adjusted_rand_index():
    ground, candidates, _ = searched(LINKS)
    labels = [one.evidence.labels for one in candidates if one.finished]
    assert len(labels) > 2
    n = len(labels)
    expected = np.mean([adjusted_rand_score(labels[i], labels[j]) for i in range(n) for j in range(i)])
    assert mean_agreement(candidates, ground.n_classes) == pytest.approx(expected, abs=1e-9)
    assert mean_agreement(candidates[:1], 3) == 1.0


# AutoLinkMixture.


def checked(model, points):
    """What holds for every calibrated model."""
    P = model.predict_proba(points)
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_array_equal(P.argmax(axis=1), model.predict(points))
    assert (model.temperatures_ >= 1).all()
    assert len(model.temperatures_) == len(model.estimators_)
    assert is_calibrated(model)
    return P


def test_the_winner_is_brought_to_the_level():
    model = AutoLinkMixture(3, budget=FEW_RECIPES, random_state=0).fit(X, links=LINKS)
    P = checked(model, X)
    log_joint = model.best_estimator_.predict_log_joint(scaled_as_by(model, X))
    np.testing.assert_allclose(P, softmax(log_joint / model.temperatures_[0], axis=1), atol=1e-9)
    quality_ = model.quality_
    a, b = np.triu_indices(len(Y), 1)
    labels = model.predict(X)
    truth = ((labels[a] == labels[b]) == (Y[a] == Y[b])).mean()
    assert quality_.low <= truth <= quality_.high
    assert quality_.n_links == 40
    assert quality_.better_than_chance


def test_links_to_review_are_judged_by_refits_that_have_not_seen_them():
    model = AutoLinkMixture(3, budget=FEW_RECIPES, random_state=0).fit(X, links=LINKS)
    seed = int(RandomState(0).randint(2**31 - 1))
    views = scalings(X, FEW_RECIPES.settings)
    ground = contest_of(Knowledge(X, LINKS), views, 3, FEW_RECIPES, seed)
    candidates = ground.run(ground.guesses())
    left = left_outs(ground, candidates)
    together = left_out_together(left, level(left, mean_agreement(candidates, 3)), 40)
    pairs = np.concatenate([LINKS.must, LINKS.cannot])
    says_same = np.arange(40) < LINKS.n_must
    # Bayes: a link is right in 95 % of the cases, whatever the points say.
    right = np.where(says_same, together, 1 - together)
    wrong = 0.05 * (1 - right) / (0.05 * (1 - right) + 0.95 * right)
    expected = {tuple(pair): value for pair, value in zip(pairs.tolist(), wrong, strict=True)}
    table = model.links_to_review_
    found = {
        (int(a), int(b)): value for a, b, value in zip(table["a"], table["b"], table["probability_wrong"], strict=True)
    }
    assert found.keys() == expected.keys()
    for pair, value in expected.items():
        assert found[pair] == pytest.approx(value, abs=1e-9)
    assert (np.diff(table["probability_wrong"]) <= 0).all()


def test_without_calibration_probabilities_are_those_of_the_mixture():
    plain = AutoLinkMixture(3, budget=FEW_RECIPES, calibrate=False, random_state=0).fit(X, links=LINKS)
    calibrated = AutoLinkMixture(3, budget=FEW_RECIPES, random_state=0).fit(X, links=LINKS)
    own = plain.best_estimator_.predict_proba(scaled_as_by(plain, X))
    np.testing.assert_allclose(plain.predict_proba(X), own, atol=1e-9)
    assert plain.temperatures_.tolist() == [1.0]
    assert plain.quality_ is None
    assert not is_calibrated(plain)
    np.testing.assert_array_equal(plain.predict(X), calibrated.predict(X))  # labels do not depend on it
    np.testing.assert_array_equal(plain.labels_, calibrated.labels_)
    np.testing.assert_array_equal(plain.leaderboard_["score"], calibrated.leaderboard_["score"])
    assert calibrated.predict_proba(X).max(axis=1).mean() < own.max(axis=1).mean()


def test_without_links_there_is_no_quality():
    model = AutoLinkMixture(3, budget=FEW_RECIPES, random_state=0).fit(X)
    checked(model, X)
    assert model.quality_ is None
    one_kind = AutoLinkMixture(3, budget=FEW_RECIPES, random_state=0).fit(X, links=Links(cannot=LINKS.cannot))
    assert one_kind.quality_ is None


KNOWN = np.where(np.arange(len(Y)) % 6 == 0, Y, -1)
NAMES = {
    "must_annotators": [("eva", "ida")[i % 2] for i in range(LINKS.n_must)],
    "cannot_annotators": [("eva", "ida")[i % 2] for i in range(LINKS.n_cannot)],
}


@pytest.mark.parametrize(
    ("settings", "given", "n_statements"),
    [
        ({}, {"links": Links(LINKS.must, LINKS.cannot, must_confidence=0.8, cannot_confidence=0.9)}, 40),
        ({}, {"links": Links(LINKS.must, LINKS.cannot, **NAMES)}, 40),
        ({}, {"y": KNOWN}, 13),
        ({}, {"y": KNOWN, "links": LINKS}, 53),
        ({}, {"links": LINKS, "sample_weight": np.linspace(0.5, 2, len(Y))}, 40),
        ({"budget": replace(FEW_RECIPES, n_points=110)}, {"links": LINKS}, 40),
        ({"committee": 3}, {"links": LINKS}, 40),
        pytest.param({"n_classes": "auto"}, {"links": LINKS}, 40, marks=pytest.mark.slow),
    ],
    ids=["unsure", "annotators", "known labels", "both", "weights", "sampled rows", "committee", "auto"],
)
def test_every_kind_of_fit_is_calibrated(settings, given, n_statements):
    model = AutoLinkMixture(**{"n_classes": 3, "budget": FEW_RECIPES, "random_state": 0, **settings})
    model.fit(X, **given)
    checked(model, X)
    assert model.temperatures_[0] > 1
    found = model.quality_
    # Of the known labels of each fold, an odd one out has no partner.
    assert n_statements - 2 <= found.n_links <= n_statements + 2
    labels = model.predict(X)
    a, b = np.triu_indices(len(Y), 1)
    truth = ((labels[a] == labels[b]) == (Y[a] == Y[b])).mean()
    assert found.low - 0.03 <= truth <= found.high + 0.03
    assert found.pairs_right > 0.8


def test_a_committee_is_the_mean_at_its_temperatures():
    model = AutoLinkMixture(3, committee=3, budget=FEW_RECIPES, random_state=0).fit(X, links=LINKS)
    P = checked(model, X)
    Z = scaled_as_by(model, X)
    first = None
    total = np.zeros_like(P)
    for member, T in zip(model.estimators_, model.temperatures_, strict=True):
        one = softmax(member.predict_log_joint(Z) / T, axis=1)
        first = one if first is None else first
        order = max(permutations(range(3)), key=lambda order: (one[:, list(order)] * first).sum())
        total += one[:, list(order)]
    np.testing.assert_allclose(P, total / 3, atol=1e-9)
    sure = [
        softmax(member.predict_log_joint(Z) / T, axis=1).max(axis=1).mean()
        for member, T in zip(model.estimators_, model.temperatures_, strict=True)
    ]
    assert np.ptp(sure) < 0.02  # all are brought to one level


def test_blocks_give_the_same_probabilities():
    model = AutoLinkMixture(3, budget=FEW_RECIPES, random_state=0).fit(X, links=LINKS)
    halves = Blocks(lambda: iter([X[:100], X[100:]]))
    there = AutoLinkMixture(3, budget=FEW_RECIPES, random_state=0).fit(halves, links=LINKS)
    np.testing.assert_allclose(there.temperatures_, model.temperatures_, rtol=1e-6)
    assert there.quality_.pairs_right == pytest.approx(model.quality_.pairs_right, abs=1e-6)
    np.testing.assert_allclose(there.predict_proba(halves), model.predict_proba(X), atol=1e-6)
    checked(there, X)


def test_a_file_keeps_the_calibration(tmp_path):
    model = AutoLinkMixture(3, committee=2, budget="small", random_state=0).fit(X, links=LINKS)
    model.save(tmp_path / "model.linkmix")
    loaded = AutoLinkMixture.load(tmp_path / "model.linkmix")
    assert loaded.quality_ == model.quality_
    assert is_calibrated(loaded)
    np.testing.assert_array_equal(loaded.temperatures_, model.temperatures_)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_a_file_from_before_the_calibration_has_the_probabilities_that_it_had():
    model = AutoLinkMixture.load(OLD_FILE)
    expected = json.loads(OLD_FILE.with_suffix(".json").read_text())
    np.testing.assert_allclose(model.predict_proba(expected["points"]), expected["probabilities"], atol=1e-9)
    assert not is_calibrated(model)


def test_few_links_and_few_points():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(8, 2)), 5 + rng.normal(size=(8, 2))])
    for links in (Links(must=[(0, 1)], cannot=[(0, 9)]), Links(cannot=[(0, 9)]), Links(must=[(0, 1)])):
        model = AutoLinkMixture(2, budget=FEW_RECIPES, random_state=0).fit(points, links=links)
        checked(model, points)
        assert (model.quality_ is None) == (not (links.n_must and links.n_cannot))
    one = AutoLinkMixture(1, budget=FEW_RECIPES, random_state=0).fit(points, links=Links(must=[(0, 1)]))
    assert one.temperatures_.tolist() == [1.0]


@pytest.mark.slow
def test_probabilities_on_real_data_are_more_honest_than_those_of_the_mixture():
    """Where classes overlap: two columns of iris, and labels of wine of which a part is drawn anew."""
    iris, kinds = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    blurred = np.where(rng.random(len(Y)) < 0.3, rng.integers(3, size=len(Y)), Y)
    gaps = {True: [], False: []}
    for points, y in ((iris[:, :2], kinds), (X, blurred)):
        for draw in range(3):
            links = Links.from_labels(y, 50, random_state=draw)
            for calibrate in (True, False):
                model = AutoLinkMixture(3, budget="small", calibrate=calibrate, random_state=draw).fit(
                    points, links=links
                )
                P = model.predict_proba(points)
                labels = P.argmax(axis=1)
                right = sum(np.bincount(y[labels == m], minlength=3).max() for m in range(3)) / len(y)
                gaps[calibrate].append(P.max(axis=1).mean() - right)
    assert np.mean(gaps[False]) > 0.1
    assert abs(np.mean(gaps[True])) < 0.07
