"""A user's script that touches the public contract; type checkers read it, and nothing runs it."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import linkmix
from linkmix import AutoLinkMixture, Blocks, LinkMixture, Links, Relation, compare, links_satisfied, purity
from linkmix.couplings import Graph, solve_class_weights
from linkmix.densities import Gaussian, StudentT
from linkmix.mixture.calibration import Quality
from linkmix.queries import Questioner
from linkmix.rivals import COPKMeans, PCKMeans

X: NDArray[np.float64] = np.zeros((6, 2))
links = Links(must=[(0, 1)], cannot=[(2, 3)])
assert_type(links.must, NDArray[np.int64])
assert_type(links.n_cannot, int)
assert_type(Links.from_labels([0, 0, 1, 1], 3, random_state=0), Links)
assert_type(Links.from_table({"a": ["x"], "b": ["y"], "kind": ["must"]}, ["x", "y"]), Links)
assert_type(links.closure(), Links)
relation: Relation = Relation([(0, 1)], [[0, 1], [1, 0]])

model = LinkMixture(
    n_classes=3,
    clusters_per_class=[1, 2, 1],
    density="student",
    covariance_type="diag",
    shrinkage="auto",
    coupling="graph",
    reliability="learn",
    linked_points="both",
    init="links",
    acceleration="none",
    warm_start=True,
    random_state=np.random.default_rng(0),
).fit(X, links=links)
assert_type(model, LinkMixture)
assert_type(model.class_weights_, NDArray[np.float64])
assert_type(model.cluster_weights_, NDArray[np.float64])
assert_type(model.means_, NDArray[np.float64])
assert_type(model.covariances_, NDArray[np.float64])
assert_type(model.labels_, NDArray[Any])
assert_type(model.classes_, NDArray[Any])
assert_type(model.links_to_review_, NDArray[Any])
assert_type(model.log_likelihood_, float)
assert_type(model.log_likelihood_trace_, NDArray[np.float64])
assert_type(model.converged_, bool)
assert_type(model.n_iter_, int)
assert_type(model.n_features_in_, int)
assert_type(model.predict(X), NDArray[Any])
assert_type(model.predict_proba([[0.0, 1.0]]), NDArray[np.float64])
assert_type(model.log_likelihood(X, links), float)
assert_type(model.score(X), float)
assert_type(model.score_samples(X), NDArray[np.float64])
assert_type(model.bic(X), float)
assert_type(model.sample(5), tuple[NDArray[Any], NDArray[Any]])
model.save("model.linkmix")
assert_type(LinkMixture.load("model.linkmix"), LinkMixture)
LinkMixture(2, density=StudentT(), coupling=Graph(), init={"means": X})
LinkMixture(2, density=Gaussian())

auto = AutoLinkMixture("auto", budget="small", committee=2, warm_start=True, random_state=0).fit(
    Blocks([X]), links=links
)
assert_type(auto.fit(X), AutoLinkMixture)
assert_type(auto.quality_, Quality | None)
if auto.quality_ is not None:
    assert_type(auto.quality_.pairs_right, float)
    assert_type(auto.quality_.low, float)
assert_type(auto.n_classes_, int)
assert_type(auto.labels_, NDArray[Any])
assert_type(auto.probabilities_, NDArray[np.float64] | None)
assert_type(auto.best_estimator_, LinkMixture)
assert_type(auto.leaderboard_, NDArray[Any])
assert_type(auto.bic(X), float)
assert_type(auto.fit_predict(X), NDArray[Any])

assert_type(purity([0, 1], auto.labels_), float)
assert_type(links_satisfied(auto.labels_, links), float)
assert_type(solve_class_weights([3.0, 2.0], 1), NDArray[np.float64])
assert_type(COPKMeans(2, random_state=0).fit(X, links=links).labels_, NDArray[np.int64])
assert_type(PCKMeans(2).fit(X).labels_, NDArray[np.int64])

asker = Questioner(X, 2)
assert_type(asker.next(), NDArray[np.int64])
asker.refit()
assert_type(asker.links, Links)
assert_type(asker.stop_signal, float)
linkmix.calibrate(model, X, links=links).predict_proba(X)
compare({"toy": (X, [0, 0, 0, 1, 1, 1])}, ["gmm-pr"], n_links=[0], seeds=[0])
