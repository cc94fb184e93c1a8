"""A second fit of AutoLinkMixture with warm_start=True: one more start, and the same numbers and names of classes."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from linkmix import AutoLinkMixture, Blocks, Links
from linkmix.data.scaling import scalings
from linkmix.engine.fitting import Knowledge
from linkmix.search import BUDGETS
from linkmix.search.contest import THE_LAST
from linkmix.search.left_out import left_outs, mean_agreement
from linkmix.search.winner import contest_of

QUICK = replace(BUDGETS["small"], guesses=("k-means", "PCK-means"), shapes=("1", "2, shared"), more_shapes=())
Y = np.repeat([0, 1, 2, 3], 40)
X = np.random.default_rng(0).normal(size=(160, 2)) + np.array([[0, 0], [5, 0], [0, 5], [5, 5]])[Y]
LINKS = Links.from_labels(Y, 20, random_state=0)


def auto(n_classes=4, **settings):
    return AutoLinkMixture(n_classes, **{"budget": QUICK, "calibrate": False, "random_state": 0, **settings})


def test_classes_keep_their_numbers():
    model = auto(warm_start=True).fit(X)
    before, moved = model.labels_, 0
    for seed in range(1, 5):
        model.set_params(random_state=seed).fit(X, links=LINKS)
        assert np.mean(model.labels_ == before) > 0.95
        assert np.mean(model.predict(X) == before) > 0.95
        moved += np.mean(auto(random_state=seed).fit(X, links=LINKS).labels_ == before) < 0.9
    assert moved  # without a warm start the numbers are any


def test_every_member_of_a_committee_is_matched():
    model = auto(warm_start=True, committee=3).fit(X)
    before = model.labels_
    model.set_params(random_state=3).fit(X, links=LINKS)
    assert len(model.estimators_) == 3
    assert np.mean(model.labels_ == before) > 0.95
    assert np.mean(model.predict_proba(X)[np.arange(160), before]) > 0.9


def test_fewer_and_more_classes_keep_the_numbers_of_those_that_are_alike():
    model = auto(warm_start=True).fit(X, links=LINKS)
    before = model.labels_
    model.set_params(n_classes=3, random_state=1).fit(X)
    overlap = np.array([[np.sum((model.labels_ == new) & (before == old)) for old in range(4)] for new in range(3)])
    assert THE_LAST not in model.leaderboard_["start"]
    assert sum(overlap[k, k] >= 35 for k in range(3)) >= 2
    three = model.labels_
    model.set_params(n_classes=4, random_state=2).fit(X, links=LINKS)
    assert sum(np.sum((model.labels_ == k) & (three == k)) >= 35 for k in range(3)) >= 2


def test_the_last_fit_is_one_more_start():
    model = auto(warm_start=True).fit(X)
    assert THE_LAST not in model.leaderboard_["start"]
    n_before = len(model.leaderboard_)
    model.fit(X)
    assert THE_LAST in model.leaderboard_["start"]
    assert len(model.leaderboard_) > n_before
    assert THE_LAST not in auto().fit(X).fit(X).leaderboard_["start"]


def test_names_are_kept():
    told = np.full(160, None, dtype=object)
    told[[0, 1, 50, 51]] = "near", "near", "right", "right"
    model = auto(warm_start=True).fit(X, told)
    assert model.classes_.tolist() == ["near", "right", "2", "3"]
    before = model.labels_
    model.set_params(random_state=5).fit(X, links=LINKS)
    assert model.classes_.tolist() == ["near", "right", "2", "3"]
    assert np.mean(model.labels_ == before) > 0.95


def test_known_labels_come_before_earlier_numbers():
    model = auto(warm_start=True).fit(X, links=LINKS)
    before = model.labels_
    swapped = np.full(160, -1)
    swapped[[0, 1, 2]] = before[45]  # class 0 of the truth gets the number of class 1
    model.fit(X, swapped)
    assert (model.labels_[:3] == before[45]).all()
    assert np.mean(model.labels_[80:] == before[80:]) > 0.95


def test_blocks_start_from_the_last_fit():
    model = auto(warm_start=True).fit(X, links=LINKS)
    before = model.labels_
    model.set_params(random_state=1).fit(Blocks([X[:70], X[70:]]), links=LINKS)
    assert THE_LAST in model.leaderboard_["start"]
    assert np.mean(np.asarray(model.labels_) == before) > 0.95


def test_noise_is_no_class_of_the_last_fit():
    far = np.vstack([X, [[40.0, 40.0]]])
    model = auto(warm_start=True, noise=True).fit(far)
    before = model.labels_
    assert before[-1] == -1
    assert np.mean(model.set_params(random_state=1).fit(far).labels_ == before) > 0.9


@pytest.mark.parametrize("other", [X[:, :1], np.column_stack([X, X[:, 0]])])
def test_other_columns_begin_anew(other):
    model = auto(warm_start=True).fit(X).fit(other)
    assert THE_LAST not in model.leaderboard_["start"]
    assert model.n_features_in_ == other.shape[1]


def test_columns_of_other_names_begin_anew():
    table = pd.DataFrame(X, columns=["a", "b"])
    model = auto(warm_start=True).fit(table)
    assert THE_LAST in model.fit(table).leaderboard_["start"]
    assert THE_LAST not in model.fit(table[["b", "a"]]).leaderboard_["start"]


def test_a_table_whose_codes_change_is_seen_as_the_last_fit_saw_it():
    rng = np.random.default_rng(1)
    hue = np.array(["red", "green", "blue", "red"])[Y]
    table = pd.DataFrame({"size": X[:, 0], "height": X[:, 1], "hue": hue})
    model = auto(warm_start=True).fit(table)
    before = model.labels_
    more = table.assign(hue=np.where(rng.random(160) < 0.05, "green", hue))
    more["hue"] = more["hue"].replace("red", "zinc").where(rng.random(160) < 0.5, more["hue"])  # codes shift
    refit = model.set_params(random_state=2).fit(more)
    assert np.mean(refit.labels_ == before) > 0.9


# Honesty: what calibrates must not have seen the links that it is judged by.


def contest(points, links, seed=7):
    return contest_of(Knowledge(points, links), scalings(points, QUICK.settings), 4, QUICK, seed)


def test_no_refit_starts_from_the_last_fit():
    ground = contest(X, LINKS)
    cheat = np.random.default_rng(3).integers(4, size=160)  # so bad that it would show
    cold = ground.run(ground.guesses())
    warm = [ground.finish(ground.begin(view, THE_LAST, cheat, "1")) for view in ground.views]
    assert all(one is not None for one in warm)
    mixed = [*warm, *cold]
    for one, other in zip(left_outs(ground, cold), left_outs(ground, mixed), strict=True):
        np.testing.assert_array_equal(one.log_joint, other.log_joint)
    assert mean_agreement(mixed, 4) == mean_agreement(cold, 4)
    assert left_outs(ground, warm) == []  # rather than one that has seen the links


def test_the_quality_of_a_warm_fit_is_not_better_than_it_is():
    """Classes that have nothing to do with the points: a refit that knew the links would seem to guess them."""
    rng = np.random.default_rng(0)
    points, any_classes = rng.normal(size=(200, 2)), rng.integers(2, size=200)
    links = Links.from_labels(any_classes, 150, random_state=0)
    model = auto(2, warm_start=True, calibrate=True).fit(points, links=links)
    cold = model.quality_.pairs_right
    for _ in range(3):
        model.fit(points, links=links)
    assert THE_LAST in model.leaderboard_["start"]
    assert model.quality_.pairs_right == pytest.approx(cold, abs=0.05)
    assert model.quality_.pairs_right < 0.65
    assert adjusted_rand_score(any_classes, model.labels_) > 0.3  # which is the links themselves
