"""Starts that use links."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs

from linkmix import LinkMixture, Links, links_satisfied, purity
from linkmix.engine.starts import Shape, link_classes

seeds = st.integers(0, 2**32 - 1)


def start(X, links, n_classes, seed=0, **more):
    return link_classes(X, links, Shape(n_classes), np.random.RandomState(seed), **more)


def stripes(n=300, seed=0):
    """Two long thin classes side by side, that any distance would cut across."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    return np.column_stack([rng.uniform(-10, 10, size=n), 1.0 * y + 0.15 * rng.normal(size=n)]), y


@pytest.mark.parametrize("coupling", ["pairwise", "graph"])
def test_random_state_decides_everything(coupling):
    X, y = make_blobs(100, centers=4, random_state=0)
    links = Links.from_labels(y, 30, random_state=0)
    settings = {"coupling": coupling, "init": "links", "n_init": 3}
    one, other = (LinkMixture(4, **settings, random_state=7).fit(X, links=links) for _ in range(2))
    np.testing.assert_array_equal(one.log_likelihood_trace_, other.log_likelihood_trace_)
    np.testing.assert_array_equal(one.labels_, other.labels_)
    classes = [tuple(start(X, links, 4, seed)) for seed in range(20)]
    assert classes == [tuple(start(X, links, 4, seed)) for seed in range(20)]
    assert len(set(classes)) > 1


@given(seeds, st.integers(1, 5), st.integers(5, 40), st.integers(0, 60))
@settings(max_examples=60)
def test_chunklets_start_as_one(seed, n_classes, n, n_links):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    X = rng.normal(size=(n, 2))
    links = Links.from_labels(y, min(n_links, n * (n - 1) // 2), random_state=seed)
    classes = start(X, links, n_classes, seed % 1000)
    assert classes.shape == (n,)
    assert classes.min() >= 0
    assert classes.max() < n_classes
    assert links_satisfied(classes, Links(must=links.must)) == 1.0


@given(seeds, st.integers(5, 60), st.integers(1, 60))
@settings(max_examples=60)
def test_two_classes_start_with_every_link_met(seed, n, n_links):
    """Two classes leave each component two labellings: it is always plain how to meet all links."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    X = rng.normal(size=(n, 2))
    links = Links.from_labels(y, min(n_links, n * (n - 1) // 2), random_state=seed)
    assert links_satisfied(start(X, links, 2, seed % 1000), links) == 1.0


def test_a_chain_of_cannot_links_starts_with_every_link_met():
    """Both ends are sure of the first class, which leaves nothing for those between them, unless they give way."""
    X = np.array([[0.0, 0], [1, 0], [1.1, 0], [0, 0.1], [0, 0.2], [9, 0], [9, 1], [9.2, 0.3]])
    links = Links(must=[(5, 6)], cannot=[(0, 1), (1, 2), (2, 3), (0, 5)])
    for seed in range(10):
        assert links_satisfied(start(X, links, 2, seed), links) == 1.0


@given(seeds, st.integers(3, 5), st.integers(10, 60), st.integers(1, 60))
@settings(max_examples=60)
def test_cannot_links_are_met_where_classes_are_far_apart(seed, n_classes, n, n_links):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n)])
    X = 100 * np.eye(n_classes)[y] + rng.normal(size=(len(y), n_classes))
    links = Links.from_labels(y).union(Links.from_labels(y, min(n_links, n), random_state=seed))
    classes = start(X, links, n_classes, seed % 1000)
    assert purity(y, classes) == 1.0
    assert links_satisfied(classes, links) == 1.0


@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_no_links_at_all(n_classes):
    X, _ = make_blobs(60, centers=3, random_state=0)
    model = LinkMixture(n_classes, init="links", random_state=0).fit(X)
    assert np.isfinite(model.log_likelihood_)
    assert len(model.means_) == n_classes


@pytest.mark.parametrize("links", [Links(must=[(0, 1)]), Links(cannot=[(0, 59)]), Links(must=[(0, 1), (1, 2)])])
def test_fewer_linked_groups_than_classes(links):
    X, _ = make_blobs(60, centers=4, random_state=0)
    classes = start(X, links, 4)
    assert len(np.unique(classes)) == 4
    assert links_satisfied(classes, links) == 1.0


def test_infeasible_links_still_make_a_start():
    """The pairwise model is at ease with them."""
    X, _ = make_blobs(60, centers=2, random_state=0)
    links = Links(cannot=[(0, 1), (1, 2), (0, 2)])
    assert set(start(X, links, 2)) == {0, 1}
    with pytest.warns(UserWarning, match="labels_ breaks some links"):
        LinkMixture(2, init="links", random_state=0).fit(X, links=links)


@pytest.mark.parametrize("max_iter", [0, 30])
@pytest.mark.parametrize("coupling", ["pairwise", "graph"])
def test_links_find_what_distances_do_not(coupling, max_iter):
    """Long thin stripes: the paper's start cuts across them, and EM does not come back from all of its starts."""
    scores = {"kmeans++": [], "links": []}
    for seed in range(6):
        X, y = stripes(seed=seed)
        links = Links.from_labels(y, 60, random_state=seed)
        for init, found in scores.items():
            model = LinkMixture(2, coupling=coupling, init=init, tol=0, max_iter=max_iter, random_state=seed)
            found.append(purity(y, model.fit(X, links=links).predict(X)))
    if max_iter == 0:
        assert np.mean(scores["links"]) > np.mean(scores["kmeans++"]) + 0.1
    assert np.mean(scores["links"]) >= np.mean(scores["kmeans++"])


def test_fewer_groups_than_classes():
    """Five points in three chunklets, and four classes to fill."""
    X = np.random.default_rng(0).normal(size=(5, 2))
    links = Links(must=[(0, 1), (2, 3)])
    classes = start(X, links, 4)
    assert classes[0] == classes[1]
    assert classes[2] == classes[3]
    model = LinkMixture(4, init="links", reg_covar=1e-2, random_state=0).fit(X, links=links)
    assert links_satisfied(model.labels_, links) == 1.0


def test_the_order_of_rows_does_not_matter_where_links_leave_no_choice():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 20)
    X = 50 * np.eye(3)[y] + rng.normal(size=(60, 3))
    links = Links.from_labels(y)
    order = rng.permutation(60)
    one = start(X, links, 3)
    other = start(X[order], links.restrict(order), 3)
    assert purity(one[order], other) == 1.0


def test_units_of_columns_do_not_matter():
    X, y = make_blobs(80, centers=3, random_state=1)
    links = Links.from_labels(y, 30, random_state=0)
    for seed in range(5):
        np.testing.assert_array_equal(start(X, links, 3, seed), start(X * [1e6, 1e-3], links, 3, seed))


def test_constant_columns_and_missing_values():
    X, y = make_blobs(80, centers=3, random_state=1)
    links = Links.from_labels(y, 30, random_state=0)
    X = np.column_stack([X, np.full(80, 3.0)])
    gaps = X.copy()
    gaps[::5, 0] = np.nan
    for data in (X, gaps):
        classes = start(data, links, 3)
        assert links_satisfied(classes, Links(must=links.must)) == 1.0
        assert set(classes) == {0, 1, 2}


def test_points_without_weight_do_not_pull():
    X, y = make_blobs(80, centers=3, random_state=1)
    links = Links.from_labels(y[:70], 30, random_state=0)
    far = X.copy()
    far[75:] += 1e4
    weights = np.where(np.arange(80) < 75, 1.0, 0.0)
    with_far = start(far, links, 3, sample_weight=weights)[:75]
    without = start(far[:75], links, 3)
    np.testing.assert_array_equal(with_far, without)


@pytest.mark.parametrize("how", ["confidence", "learn"])
def test_uncertain_links_are_used_too(how):
    """They are most likely right; a start may take them at their word."""
    gains = []
    for seed in range(6):
        X, y = stripes(seed=seed)
        certain = Links.from_labels(y, 60, random_state=seed)
        links = Links(certain.must, certain.cannot, must_confidence=0.9, cannot_confidence=0.9)
        settings = {"init": "links", "max_iter": 0, "random_state": seed}
        if how == "learn":
            links, settings["reliability"] = certain, "learn"
        model = LinkMixture(2, **settings).fit(X, links=links)
        paper = LinkMixture(2, max_iter=0, random_state=seed).fit(X)
        gains.append(purity(y, model.predict(X)) - purity(y, paper.predict(X)))
    assert np.mean(gains) > 0


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"'init' parameter .*'links'.*Mapping.* Got 'link' instead"):
        LinkMixture(init="link").fit(np.eye(4))
