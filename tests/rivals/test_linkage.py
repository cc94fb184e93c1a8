"""ConstrainedLinkage: the same joins as a naive search over all pairs of groups."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import cdist
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import check_estimator

from linkmix import Links, links_satisfied
from linkmix.rivals import ConstrainedLinkage
from linkmix.rivals.linkage import LINKAGES

pairs_of_rows = st.tuples(st.integers(0, 11), st.integers(0, 11)).filter(lambda pair: pair[0] < pair[1])


def distance(X, a, b, kind):
    between = cdist(X[a], X[b])
    if kind == "ward":
        both = X[a + b]
        return sum(sign * ((g - g.mean(axis=0)) ** 2).sum() for sign, g in ((1, both), (-1, X[a]), (-1, X[b])))
    return {"average": between.mean(), "complete": between.max(), "single": between.min()}[kind]


def naive(X, links, n_classes, kind):
    """Look at all pairs of groups in each step."""
    chunklet = links.chunklets(len(X))
    groups = [np.flatnonzero(chunklet == j).tolist() for j in np.unique(chunklet)]
    while len(groups) > n_classes:
        choices = []
        for a, b in itertools.combinations(range(len(groups)), 2):
            broken = sum(
                (i in groups[a] and j in groups[b]) or (i in groups[b] and j in groups[a]) for i, j in links.cannot
            )
            choices.append((broken, distance(X, groups[a], groups[b], kind), a, b))
        _, _, a, b = (
            min(choices, key=lambda choice: (choice[0], choice[1]))
            if all(choice[0] for choice in choices)
            else min((choice for choice in choices if not choice[0]), key=lambda choice: choice[1])
        )
        groups[a] += groups[b]
        del groups[b]
    labels = np.empty(len(X), dtype=int)
    for m, group in enumerate(groups):
        labels[group] = m
    return labels


@pytest.mark.filterwarnings("ignore:no groups that may be joined")
@settings(max_examples=80)
@given(
    st.integers(0, 10_000),
    st.lists(pairs_of_rows, max_size=5),
    st.lists(pairs_of_rows, max_size=12),
    st.integers(2, 4),
    st.sampled_from(LINKAGES),
)
def test_against_a_naive_search(seed, must, cannot, n_classes, kind):
    X = np.random.RandomState(seed).normal(size=(12, 2))
    links = Links(must, cannot)
    assume(not links.conflicts())
    links = links.distinct()
    try:
        model = ConstrainedLinkage(n_classes, linkage=kind).fit(X, links=links)
    except ValueError as error:
        assume("classes" not in str(error))
        raise
    expected = naive(X, links, n_classes, kind)
    assert adjusted_rand_score(model.labels_, expected) == 1
    assert model.n_broken_ == sum(expected[a] == expected[b] for a, b in links.cannot)


@pytest.mark.parametrize("kind", LINKAGES)
@pytest.mark.parametrize("n_classes", [2, 7])
def test_without_links_it_is_the_hierarchy_of_scipy(kind, n_classes):
    X = np.random.RandomState(0).normal(size=(120, 3))
    expected = fcluster(linkage(X, kind), n_classes, "maxclust")
    assert adjusted_rand_score(ConstrainedLinkage(n_classes, linkage=kind).fit_predict(X), expected) == 1


def test_links_hold_on_real_data():
    X, y = load_iris(return_X_y=True)
    for seed in range(3):
        links = Links.from_labels(y, 40, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model = ConstrainedLinkage(3).fit(X, links=links)
        assert links_satisfied(model.labels_, Links(must=links.must)) == 1
        assert round((1 - links_satisfied(model.labels_, links)) * 40) == model.n_broken_


def test_a_dead_end_breaks_the_fewest_links_and_says_so():
    """0, 1 and 2 are apart from each other in turn, so the greedy joins leave three groups that none may join."""
    X = np.array([[0.0], [10.0], [11.0], [20.0]])
    links = Links(cannot=[(0, 1), (2, 3), (0, 3)])
    with pytest.warns(UserWarning, match="1 cannot-links are broken"):
        model = ConstrainedLinkage(2, linkage="single").fit(X, links=links)
    assert model.n_broken_ == 1


def test_must_links_that_leave_too_few_groups():
    with pytest.raises(ValueError, match="must-links leave 2 groups of points, fewer than n_classes=3"):
        ConstrainedLinkage(3).fit(np.arange(4.0)[:, None], must_link=[(0, 1), (2, 3)])


@pytest.mark.parametrize("kind", LINKAGES)
def test_check_estimator(kind):
    check_estimator(ConstrainedLinkage(linkage=kind), on_skip=None, on_fail="raise")
