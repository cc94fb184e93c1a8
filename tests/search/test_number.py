"""The number of classes: what the links need at least, what is tried, and what is chosen."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from linkmix import AutoLinkMixture, Links
from linkmix.basics.errors import InfeasibleLinks
from linkmix.search import BUDGETS, number
from linkmix.search.number import fewest_classes, hierarchy, largest_clique, numbers, worth_of_points
from linkmix.search.settings import SETTINGS

QUICK = {"budget": "small", "calibrate": False, "random_state": 0}


def blobs(n_classes, seed=0, per_class=40, n_features=4):
    """Classes with gaps between them, of unequal size."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_classes, n_features))
    while (distance := np.linalg.norm(centres[:, None] - centres, axis=2) + 9 * np.eye(n_classes)).min() < 7:
        one = int(distance.min(axis=1).argmin())
        centres[one] = rng.normal(scale=1.5 * n_classes ** (1 / n_features) + 3, size=n_features)
    y = np.repeat(np.arange(n_classes), rng.integers(per_class // 2, 3 * per_class // 2, size=n_classes))
    return centres[y] + rng.normal(size=(len(y), n_features)), y


@pytest.mark.parametrize("n_classes", [2, 3, 5, 9, 14])
@pytest.mark.parametrize("n_links", [0, 20])
def test_the_number_is_right_where_classes_have_gaps_between_them(n_classes, n_links):
    X, y = blobs(n_classes)
    model = AutoLinkMixture("auto", **QUICK).fit(X, links=Links.from_labels(y, n_links, random_state=0))
    assert model.n_classes_ == n_classes
    assert adjusted_rand_score(y, model.labels_) > 0.98


def test_thirty_classes():
    X, y = blobs(30, n_features=6)
    model = AutoLinkMixture("auto", **QUICK).fit(X, links=Links.from_labels(y, 50, random_state=0))
    assert model.n_classes_ == 30
    tried = model.choice_["n_classes"].tolist()
    assert tried == sorted(set(tried))
    assert {29, 30, 31} <= set(tried)  # the neighbours of the choice
    assert len(tried) < 25


def test_the_search_is_that_of_the_number_found():
    X, y = blobs(4)
    links = Links.from_labels(y, 15, random_state=0)
    auto = AutoLinkMixture("auto", **QUICK).fit(X, links=links)
    known = AutoLinkMixture(auto.n_classes_, **QUICK).fit(X, links=links)
    np.testing.assert_array_equal(auto.labels_, known.labels_)
    np.testing.assert_array_equal(auto.leaderboard_["score"], known.leaderboard_["score"])
    threads = AutoLinkMixture("auto", n_jobs=2, **QUICK).fit(X, links=links)
    np.testing.assert_array_equal(threads.choice_, auto.choice_)


def test_many_links_outweigh_the_points():
    """Four groups with gaps between them, of which the user wants two classes."""
    X, group = make_blobs(240, centers=[[0, 0], [8, 0], [0, 20], [8, 20]], random_state=0)
    model = AutoLinkMixture("auto", **QUICK)
    assert model.fit(X).n_classes_ == 4
    assert model.fit(X, links=Links.from_labels(group // 2, 80, random_state=0)).n_classes_ == 2
    assert adjusted_rand_score(group // 2, model.labels_) == 1
    assert model.fit(X, links=Links.from_labels(group, 80, random_state=0)).n_classes_ == 4


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_cliques_against_brute_force(share):
    rng = np.random.default_rng(int(10 * share))
    for _ in range(30):
        n = int(rng.integers(2, 10))
        edges = {pair for pair in combinations(range(n), 2) if rng.random() < share}
        largest = max(
            (
                k
                for k in range(2, n + 1)
                for some in combinations(range(n), k)
                if edges.issuperset(combinations(some, 2))
            ),
            default=0,
        )
        assert largest_clique(edges) == largest
        assert largest_clique([(b, a) for a, b in edges] * 2) == largest


def test_a_long_search_for_a_clique_ends_with_a_lower_bound():
    rng = np.random.default_rng(0)
    edges = [pair for pair in combinations(range(120), 2) if rng.random() < 0.8]
    short, long = largest_clique(edges, 100), largest_clique(edges, 5000)
    assert 5 < short <= long < 60
    assert largest_clique(combinations(range(300), 2), 100) == 300  # the first look finds it


def test_fewest_classes_by_links_and_labels():
    triangle = [(0, 2), (2, 4), (4, 1)]
    assert fewest_classes(Links(must=[(0, 1)], cannot=triangle)) == 3
    assert fewest_classes(Links(must=[(0, 1)], must_confidence=[0.9], cannot=triangle)) == 2
    assert fewest_classes(Links(must=[(0, 1)], cannot=triangle, cannot_confidence=[1, 1, 0.8])) == 2
    assert fewest_classes(Links()) == fewest_classes(Links(must=[(0, 1)])) == 2
    assert fewest_classes(Links(cannot=triangle), np.array([-1, 6, -1])) == 7
    rows = 10**9 + np.arange(3)
    assert fewest_classes(Links(cannot=[*combinations(rows.tolist(), 2)])) == 3


def test_numbers_that_the_links_rule_out_are_not_tried():
    X, y = blobs(3)
    inside = np.flatnonzero(y == 0)[:6]
    hub, *rim = inside.tolist()  # a wheel with five spokes needs four classes; its largest clique has three points
    cannot = [(hub, one) for one in rim] + [(rim[i], rim[(i + 1) % 5]) for i in range(5)]
    assert fewest_classes(Links(cannot=cannot)) == 3
    model = AutoLinkMixture("auto", **QUICK).fit(X, links=Links(cannot=cannot))
    assert model.choice_["n_classes"][0] == 4
    assert model.n_classes_ >= 4
    clique = [*combinations(inside.tolist(), 2)]
    model.fit(X, links=Links(cannot=clique))
    assert model.choice_["n_classes"][0] == 6


def test_links_that_need_more_classes_than_are_tried(monkeypatch):
    monkeypatch.setattr(number, "ALL_UP_TO", 2)
    X = np.random.default_rng(0).normal(size=(10, 2))
    cannot = [(0, one) for one in range(1, 6)] + [(i, i % 5 + 1) for i in range(1, 6)]
    with pytest.raises(InfeasibleLinks, match="no labelling with 3 classes"):
        AutoLinkMixture("auto", **QUICK).fit(X, links=Links(cannot=cannot))


def test_more_classes_than_the_limit_if_links_need_them():
    X, _ = blobs(3)
    few = replace(BUDGETS["small"], settings=replace(SETTINGS, most_classes=4))
    model = AutoLinkMixture("auto", **{**QUICK, "budget": few})
    assert model.fit(X).choice_["n_classes"].tolist() == [2, 3, 4]
    model.fit(X, links=Links(cannot=[*combinations(range(0, 12, 2), 2)]))
    assert model.choice_["n_classes"].tolist() == [6]


def test_the_unit_of_the_weights_does_not_matter():
    X, y = blobs(3, per_class=20)
    links = Links.from_labels(y, 5, random_state=0)
    model = AutoLinkMixture("auto", **QUICK)
    scores = [model.fit(X, links=links, sample_weight=np.full(len(X), w)).choice_["score"] for w in (1.0, 50.0)]
    assert model.n_classes_ == 3
    plain = model.fit(X, links=links).choice_["score"]
    np.testing.assert_allclose(scores[0], plain, rtol=1e-9)
    assert len(scores[1]) == len(plain)
    np.testing.assert_allclose(scores[1] - scores[1].max(), plain - plain.max(), atol=6.0)  # shrinkage differs a little


def test_rows_without_weight_say_nothing():
    X, _ = blobs(3)
    far = np.random.default_rng(1).normal(size=(40, 4)) + 60
    weights = np.concatenate([np.ones(len(X)), np.zeros(40)])
    model = AutoLinkMixture("auto", **QUICK).fit(np.concatenate([X, far]), sample_weight=weights)
    assert model.n_classes_ == 3


def test_known_labels_are_evidence():
    X, group = make_blobs(240, centers=[[0, 0], [8, 0], [0, 20], [8, 20]], random_state=0)
    told = np.where(np.arange(240) % 6 == 0, group // 2, -1)  # 40 labels: two classes, each of two groups
    model = AutoLinkMixture("auto", **QUICK).fit(X, told)
    assert model.n_classes_ == 2
    some = np.where((np.arange(240) % 6 == 0) & (group < 2), group, -1)  # labels of two of four classes
    assert model.fit(X, some).n_classes_ == 4


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_few_points(n):
    X = np.random.default_rng(n).normal(size=(n, 2))
    model = AutoLinkMixture("auto", **QUICK).fit(X)
    assert 2 <= model.n_classes_ <= n
    assert model.choice_["n_classes"].max() <= n


def test_one_point():
    with pytest.raises(ValueError, match="n_samples=1"):
        AutoLinkMixture("auto", **QUICK).fit(np.zeros((1, 2)))


def test_a_hierarchy_of_some_points(monkeypatch):
    X, y = blobs(5)
    monkeypatch.setattr(number, "LARGEST_HIERARCHY", 60)
    assert adjusted_rand_score(y, hierarchy(X, 0)(5)) == 1
    assert AutoLinkMixture("auto", **QUICK).fit(X).n_classes_ == 5


def test_a_hierarchy_of_copies():
    labels = hierarchy(np.repeat([[0.0], [1.0]], 5, axis=0), 0)(4)
    assert labels.min() == 0
    assert labels.max() < 4


def test_the_numbers_tried_cover_the_range():
    for fewest in range(2, 60):
        for most in range(fewest, 70):
            tried = [*numbers(fewest, most)]
            assert tried[0] == fewest
            assert tried[-1] == most
            steps = np.divide(tried[1:], tried[:-1])
            assert (steps > 1).all()
            assert all(step < 1.25 or number < 10 for step, number in zip(steps, tried, strict=False))


def test_points_count_less_than_links_and_pay_for_classes():
    assert worth_of_points(-100.0, 10, 3, 400) > worth_of_points(-101.0, 10, 3, 400)
    assert worth_of_points(-100.0, 10, 3, 400) > worth_of_points(-100.0, 11, 3, 400)
    assert worth_of_points(-100.0, 10, 3, 400) > worth_of_points(-100.0, 10, 4, 400)
    gain = worth_of_points(-100.0, 10, 3, 400) - worth_of_points(-101.0, 10, 3, 400)
    assert gain == pytest.approx(1 / 20)
