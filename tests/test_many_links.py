"""Where nearly every point is linked, class weights are still those of the points, and new points are classified."""

import time
import tracemalloc
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris

from linkmix import AutoLinkMixture, LinkMixture, Links, purity
from linkmix.basics.errors import InfeasibleLinks
from linkmix.couplings import Graph
from linkmix.couplings.network import ApproximateInference
from linkmix.couplings.observed import LARGEST_TABLE
from linkmix.rivals import GMMEC, GMPR

X, y = load_iris(return_X_y=True)
NETWORKS = {
    "graph": lambda seed: LinkMixture(3, coupling="graph", random_state=seed),
    "gmm-ec": lambda seed: GMMEC(3, random_state=seed),
    "auto": lambda seed: AutoLinkMixture(3, budget="small", random_state=seed),
}


def halves(seed):
    order = np.random.default_rng(seed).permutation(len(X))
    return order[:75], order[75:]


def links_of(kind, labels, seed):
    """All rows but one as closely linked as can be, or 300 random links."""
    if kind == "random":
        return Links.from_labels(labels, 300, random_state=seed)
    known = labels.copy()
    known[0] = -1
    links = Links.from_labels(known)
    assert len(links.points) == 74
    return links


def shares_of(labels):
    return np.bincount(labels, minlength=3) / len(labels)


@pytest.mark.parametrize("method", NETWORKS)
@pytest.mark.parametrize("kind", ["all but one", "random"])
@pytest.mark.parametrize("seed", range(5))
def test_half_of_iris_linked(seed, kind, method):
    train, test = halves(seed)
    links = links_of(kind, y[train], seed)
    pairwise = GMPR(3, random_state=seed).fit(X[train], links=links)
    network = NETWORKS[method](seed).fit(X[train], links=links)
    assert purity(y[test], network.predict(X[test])) >= purity(y[test], pairwise.predict(X[test])) - 0.03
    model = network.best_estimator_ if method == "auto" else network
    order = [np.bincount(y[train][network.labels_ == m], minlength=3).argmax() for m in range(3)]
    assert sorted(order) == [0, 1, 2]
    np.testing.assert_allclose(model.class_weights_, shares_of(y[train])[order], rtol=0, atol=0.02)


def test_a_normaliser_leaves_the_class_weights_to_the_one_point_without_a_link():
    """Why links are not a condition: three chunklets, all apart, have Z = 3! a_1 a_2 a_3."""
    train, _ = halves(0)
    links = links_of("all but one", y[train], 0)
    model = LinkMixture(3, coupling=Graph(sampling="chunklets"), random_state=0).fit(X[train], links=links)
    assert model.class_weights_.max() > 0.99


def random_links(n_points, n_classes, n_links):
    random = np.random.default_rng(0)
    labels = random.integers(n_classes, size=n_points)
    return labels, Links.from_labels(labels, n_links, random_state=0)


def hub(n_links):
    return np.zeros(n_links + 1, dtype=np.int64), Links(cannot=[(0, i) for i in range(1, n_links + 1)])


@pytest.mark.parametrize("n_classes", [3, 4])
@pytest.mark.parametrize("n_links", [1250, 1300, 1350, 1400, 2000])
def test_no_number_of_links_makes_the_tables_large(n_links, n_classes):
    """Just below the limit of exact inference, its tables once took twenty times the time of belief propagation."""
    labels, links = random_links(2000, n_classes, n_links)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ApproximateInference)
        bound = Graph().bind(links, len(labels), n_classes)
    assert bound.graph.network.plan[13] <= LARGEST_TABLE  # entries of all tables


@pytest.mark.parametrize("n_links", [1000, 10_000])
def test_a_hub_takes_room_in_proportion_to_its_links(n_links):
    """A hub is a tree, and its plan is a list of its links."""
    labels, links = hub(n_links)
    network = Graph().bind(links, len(labels), 3).graph.network
    assert network.is_exact
    assert len(network.plan) < 12 * n_links + 100


def test_memory_grows_with_the_links_and_not_with_their_square():
    labels, links = random_links(4000, 4, 4000)
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ApproximateInference)
            bound = Graph(quick=True).bind(links, len(labels), 4)
            bound.expect(np.zeros((len(labels), 4)), np.full(4, 0.25))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5000 * 4000  # bytes; a row of a table of all pairs of points would take 32 000


def test_the_labels_do_not_depend_on_the_clock(monkeypatch):
    """Labels of a core too wide for tables are searched for with limits that count operations."""
    labels, links = random_links(300, 3, 700)
    log_density = np.random.default_rng(1).normal(size=(300, 3))
    log_density[np.arange(300), labels] += 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ApproximateInference)
        bound = Graph().bind(links.at_most(0.9), 300, 3)
    assert not bound.graph.network.is_exact
    first = bound.labels(log_density, np.full(3, 1 / 3))

    def clock():
        raise AssertionError("the search looked at the clock")

    for name in ("time", "perf_counter", "monotonic", "process_time"):
        monkeypatch.setattr(time, name, clock)
    assert bound.labels(log_density, np.full(3, 1 / 3)).tolist() == first.tolist()
    assert purity(labels, first) > 0.8


def test_links_that_contradict_each_other_beside_an_unsure_one_are_named():
    X = np.random.default_rng(0).normal(size=(20, 2))
    links = Links(cannot=[(0, 1), (1, 2), (2, 0), (3, 0)], cannot_confidence=[1, 1, 1, 0.9])
    with pytest.raises(InfeasibleLinks, match="0-1"):
        LinkMixture(2, coupling="graph").fit(X, links=links)
