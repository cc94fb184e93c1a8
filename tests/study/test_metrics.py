"""Purity and the share of satisfied links."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.cluster import contingency_matrix

from linkmix import Links, links_satisfied, purity

pairs_of_labels = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["a", "b", "c"])), min_size=1, max_size=40)


@given(pairs_of_labels)
def test_purity_from_the_contingency_matrix(pairs):
    truth, found = zip(*pairs, strict=True)
    expected = contingency_matrix(truth, found).max(axis=0).sum() / len(pairs)
    assert purity(truth, found) == expected


@given(pairs_of_labels)
def test_purity_is_at_least_the_share_of_the_largest_class(pairs):
    truth, found = zip(*pairs, strict=True)
    assert max(map(truth.count, truth)) / len(truth) <= purity(truth, found) <= 1


def test_purity_takes_any_labels():
    truth = np.array(["x", "x", "y"])
    assert purity(truth, [5, 5, -3]) == 1
    assert purity(truth, [7.5, 7.5, 7.5]) == pytest.approx(2 / 3)
    assert purity(list(truth), ["q", "r", "s"]) == 1
    assert isinstance(purity(truth, truth), float)


@pytest.mark.parametrize(
    ("truth", "found", "message"),
    [
        ([0, 1], [0, 1, 1], r"y_true has shape \(2,\) and labels \(3,\): pass two lists"),
        ([[0, 1]], [[0, 1]], r"y_true has shape \(1, 2\) and labels \(1, 2\): pass two lists"),
        ([], [], "y_true is empty: purity needs at least one point"),
    ],
)
def test_purity_refuses(truth, found, message):
    with pytest.raises(ValueError, match=message):
        purity(truth, found)


@pytest.mark.parametrize(
    ("links", "share"),
    [
        (Links(), 1.0),
        (Links(must=[(0, 1)]), 1.0),
        (Links(must=[(0, 2)]), 0.0),
        (Links(cannot=[(0, 2)]), 1.0),
        (Links(cannot=[(0, 1)]), 0.0),
        (Links(must=[(0, 1), (0, 2), (3, 2)], cannot=[(0, 3)]), 0.75),
    ],
)
def test_links_satisfied(links, share):
    assert links_satisfied([4, 4, 9, 9], links) == share
    assert links_satisfied(np.array(["a", "a", "b", "b"]), links) == share
    assert isinstance(links_satisfied([4, 4, 9, 9], links), float)


@given(st.integers(0, 2**32 - 1))
def test_links_from_labels_are_satisfied_by_them(seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=20)
    assert links_satisfied(labels, Links.from_labels(labels, 30, random_state=seed % 1000)) == 1


def test_links_satisfied_refuses():
    with pytest.raises(ValueError, match=r"labels has shape \(1, 2\): pass a list"):
        links_satisfied([[0, 1]], Links(must=[(0, 1)]))
    with pytest.raises(ValueError, match="links row 5, but there are 2 rows"):
        links_satisfied([0, 1], Links(must=[(0, 5)]))
