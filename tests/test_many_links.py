"""Where nearly every point is linked, class weights are still those of the points, and new points are classified."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from linkmix import AutoLinkMixture, LinkMixture, Links, purity
from linkmix.couplings import Graph
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
    assert purity(y[test], network.predict(X[test])) >= purity(y[test], pairwise.predict(X[test])) - 0.02
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
