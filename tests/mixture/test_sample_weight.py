"""Weights of points: how often each of them counts."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from linkmix import LinkMixture, Links
from linkmix.couplings import Graph, Pairwise
from linkmix.couplings.graph import SAMPLING
from relation_oracles import (
    Wish,
    assert_never_falls,
    assert_step,
    enumerate_graph,
    enumerate_pairs,
    fit_arguments,
    random_scene,
    settings_of,
)

COUPLINGS = {
    "pairwise": (Pairwise(), enumerate_pairs),
    **{name: (Graph(sampling=name), partial(enumerate_graph, sampling=name)) for name in SAMPLING},
}
both_couplings = pytest.mark.parametrize("coupling", ["pairwise", "graph"])
FITTED = ("class_weights_", "cluster_weights_", "means_", "covariances_")


def blobs(n=60, seed=0):
    return make_blobs(n, centers=[[0, 0], [5, 0], [0, 5]], random_state=seed)


def start():
    """Near enough to the blobs that rounding is not amplified on the way."""
    return {
        "class_weights": np.array([0.5, 0.3, 0.2]),
        "cluster_weights": np.ones((3, 1)),
        "means": np.array([[[0.5, 0.3]], [[4.0, 1.0]], [[1.0, 4.0]]]),
        "covariances": np.tile(2 * np.eye(2), (3, 1, 1, 1)),
    }


def assert_same_fit(one, other, tolerance=1e-9):
    np.testing.assert_allclose(one.log_likelihood_trace_, other.log_likelihood_trace_, rtol=1e-10)
    for name in FITTED:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=0, atol=tolerance)


@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize("linked_points", ["apart", "both"])
@pytest.mark.parametrize("seed", range(4))
def test_steps_by_enumeration(coupling, linked_points, seed):
    """A free point counts w times in J; a linked one is w points that share one label. Weights need not be whole.

    Where links are observed, each of these w points is drawn, so the weight of its class counts w times as well.
    """
    rng = np.random.default_rng(seed)
    scene = random_scene(rng, Wish(3, 2, 12, 6, 6, n_uncertain=3), linked_points=linked_points, link_weight=1.5)
    scene = replace(scene, sample_weight=rng.uniform(0, 3, size=12) * (rng.random(12) < 0.8))
    made, enumerate_all = COUPLINGS[coupling]
    found = enumerate_all(scene)
    assert_step(scene, made, found)
    model = LinkMixture(**settings_of(scene), coupling=made, max_iter=0).fit(**fit_arguments(scene))
    assert model.log_likelihood_ == pytest.approx(found.log_likelihood, abs=1e-10)


@pytest.mark.parametrize("density", ["gaussian", "student"])
@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_whole_weights_are_repeated_rows(covariance_type, density):
    """Also the start: the draw of the seeds follows the weights."""
    X, _ = blobs()
    weights = np.random.default_rng(0).integers(0, 4, size=len(X))
    repeated = np.repeat(X, weights, axis=0)
    settings = {"density": density, "covariance_type": covariance_type, "tol": 0, "max_iter": 10, "random_state": 1}
    one = LinkMixture(3, **settings).fit(X, sample_weight=weights)
    other = LinkMixture(3, **settings).fit(repeated)
    np.testing.assert_allclose(one.log_likelihood_trace_, other.log_likelihood_trace_, rtol=1e-9)
    np.testing.assert_allclose(one.means_, other.means_, atol=1e-7)


@both_couplings
def test_whole_weights_of_free_rows_are_repeated_rows_beside_links(coupling):
    X, y = blobs()
    links = Links.from_labels(y[:20], 12, random_state=0)
    weights = np.random.default_rng(0).integers(0, 4, size=len(X))
    weights[:20] = 1
    rows = np.repeat(np.arange(len(X)), weights)
    settings = {"coupling": coupling, "init": start(), "tol": 0, "max_iter": 8}
    one = LinkMixture(3, **settings).fit(X, links=links, sample_weight=weights)
    other = LinkMixture(3, **settings).fit(X[rows], links=links)
    assert_same_fit(one, other)
    np.testing.assert_array_equal(one.labels_[rows], other.labels_)


@pytest.mark.parametrize("coupling", ["graph", Graph(sampling="chunklets")])
def test_whole_weights_of_linked_rows_are_copies_that_must_link(coupling):
    """In a network; in the pairwise model a copy would bring a pair of its own."""
    X, y = blobs(40)
    links = Links.from_labels(y[:14], 15, random_state=2)
    weights = np.random.default_rng(1).integers(1, 4, size=len(X))
    rows = np.repeat(np.arange(len(X)), weights)
    first = np.searchsorted(rows, np.arange(len(X)))
    linked = np.isin(rows, links.points)
    copies = [(int(first[row]), i) for i, row in enumerate(rows) if linked[i] and first[row] != i]
    assert copies
    together = Links(must=[*first[links.must].tolist(), *copies], cannot=first[links.cannot])
    settings = {"coupling": coupling, "init": start(), "tol": 0, "max_iter": 8}
    one = LinkMixture(3, **settings).fit(X, links=links, sample_weight=weights)
    other = LinkMixture(3, **settings).fit(X[rows], links=together)
    assert_same_fit(one, other)
    np.testing.assert_array_equal(one.labels_[rows], other.labels_)
    if coupling == "graph":  # class weights are shares of rows, each as often as it counts
        shares = np.bincount(one.labels_, weights=weights, minlength=3) / weights.sum()
        np.testing.assert_allclose(one.class_weights_, shares, rtol=0, atol=0.01)


@pytest.mark.parametrize("init", ["kmeans++", "links", "given"])
def test_no_weight_is_no_row(init):
    X, _ = blobs()
    X[::7] += 1000  # out of the way, if they counted
    weights = np.where(np.arange(len(X)) % 7 == 0, 0.0, 1.0)
    settings = {"init": start() if init == "given" else init, "tol": 0, "max_iter": 8, "random_state": 0}
    one = LinkMixture(3, **settings).fit(X, sample_weight=weights)
    other = LinkMixture(3, **settings).fit(X[weights > 0])
    assert_same_fit(one, other)
    np.testing.assert_array_equal(one.labels_[weights > 0], other.labels_)
    assert len(one.labels_) == len(X)


@both_couplings
def test_no_weight_of_a_must_linked_row_is_no_row(coupling):
    """Its partner counts alone: a pair of which one point is not looked at."""
    X, _ = blobs()
    links = Links(must=[(0, 1), (2, 3)], cannot=[(4, 5)])
    weights = np.ones(len(X))
    weights[1] = 0
    rows = np.delete(np.arange(len(X)), 1)
    settings = {"coupling": coupling, "init": start(), "tol": 0, "max_iter": 8}
    one = LinkMixture(3, **settings).fit(X, links=links, sample_weight=weights)
    other = LinkMixture(3, **settings).fit(X[rows], links=links.restrict(rows))
    assert_same_fit(one, other)
    assert one.labels_[0] == one.labels_[1]


def test_equal_weights_count_like_none():
    X, y = blobs()
    links = Links.from_labels(y, 10, random_state=0)
    settings = {"init": start(), "tol": 0, "max_iter": 8}
    one = LinkMixture(3, **settings).fit(X, links=links, sample_weight=np.ones(len(X)))
    other = LinkMixture(3, **settings).fit(X, links=links)
    np.testing.assert_allclose(one.log_likelihood_trace_, other.log_likelihood_trace_, rtol=1e-13)
    without = LinkMixture(3, **settings).fit(X)
    tripled = LinkMixture(3, **settings).fit(X, sample_weight=np.full(len(X), 3.0))
    np.testing.assert_allclose(tripled.log_likelihood_trace_, 3 * without.log_likelihood_trace_, rtol=1e-12)
    np.testing.assert_allclose(tripled.means_, without.means_, atol=1e-10)


@both_couplings
def test_j_never_falls(coupling):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = blobs(seed=seed)
        model = LinkMixture(3, coupling=coupling, tol=0, max_iter=20, random_state=seed)
        model.fit(X, links=Links.from_labels(y, 30, random_state=seed), sample_weight=rng.exponential(size=len(X)))
        assert_never_falls(model.log_likelihood_trace_)


def test_known_labels_and_weights():
    rng = np.random.default_rng(5)
    scene = random_scene(rng, Wish(3, 1, 12, 6, 6, n_uncertain=2))
    known = np.where(rng.random(12) < 0.4, scene.hidden, -1)
    scene = replace(scene, known=known, sample_weight=rng.uniform(0.1, 3, size=12))
    for made, enumerate_all in COUPLINGS.values():
        assert_step(scene, made, enumerate_all(scene))


def test_weights_of_known_rows_without_weight():
    """Zero times minus infinity is nothing, not a number: a known label leaves other classes no density."""
    X, y = blobs()
    known = np.where(np.arange(len(y)) % 2, y, -1)
    weights = np.where(np.arange(len(y)) % 3, 1.0, 0.0)
    links = Links.from_labels(y, 20, random_state=0)
    for coupling in ("pairwise", "graph"):
        model = LinkMixture(3, coupling=coupling, random_state=0).fit(X, known, links=links, sample_weight=weights)
        assert np.isfinite(model.log_likelihood_)
        assert np.isfinite(model.means_).all()


def test_categories_that_a_class_can_not_have_and_no_weight():
    """A density of zero to the power of zero is one."""
    X = np.array([[0], [0], [1], [1], [0], [2], [2], [1]], dtype=float)
    model = LinkMixture(2, density="categorical", random_state=0)
    model.fit(X, links=Links(must=[(0, 1)], cannot=[(2, 5)]), sample_weight=[1, 1, 1, 1, 1, 0, 1, 1])
    assert np.isfinite(model.log_likelihood_)


def test_bad_weights_are_refused():
    X, _ = blobs()
    model = LinkMixture(3)
    for weights, message in (
        (np.zeros(len(X)), "zero"),
        (-np.ones(len(X)), "[Nn]egative"),
        (np.ones(len(X) - 1), "sample_weight"),
        (np.full(len(X), np.nan), "sample_weight.*NaN|NaN"),
        (np.full(len(X), np.inf), "infinity"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X, sample_weight=weights)
    assert not hasattr(model, "means_")


def test_fewer_rows_with_weight_than_clusters_are_refused():
    X, _ = blobs(20)
    weights = np.zeros(20)
    weights[:2] = 1
    with pytest.raises(ValueError, match="3 clusters"):
        LinkMixture(3).fit(X, sample_weight=weights)


def test_links_and_weights_go_with_the_rows():
    X, y = blobs()
    links = Links.from_labels(y, 20, random_state=0)
    weights = np.random.default_rng(0).uniform(0.5, 2, size=len(X))
    order = np.random.default_rng(1).permutation(len(X))
    settings = {"init": start(), "tol": 0, "max_iter": 5}
    one = LinkMixture(3, **settings).fit(X, links=links, sample_weight=weights)
    other = LinkMixture(3, **settings).fit(X[order], links=links, rows=order, sample_weight=weights[order])
    np.testing.assert_allclose(one.log_likelihood_trace_, other.log_likelihood_trace_, rtol=1e-12)
