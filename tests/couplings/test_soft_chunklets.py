"""Must-links as random variables: enumeration of groups, enforcements and labels, and what it becomes in the limits."""

import itertools
from collections import defaultdict

import numpy as np
import pytest
from sklearn.datasets import load_iris

from linkmix import LinkMixture, Links, links_satisfied
from linkmix.couplings import Graph, Pairwise, SoftChunklets
from linkmix.rivals import SoftChunkletMixture

MUST = [(0, 1), (1, 2), (3, 4)]
"""Two groups, of three and of two points."""


def enumerated(log_density, weights, groups, tie):
    """Likelihood, label probabilities and expected draws by class weights, by a sum over every hidden variable."""
    n, n_classes = log_density.shape
    density = np.exp(log_density)
    total, labels, draws = 0.0, np.zeros((n, n_classes)), np.zeros(n_classes)
    for group in groups:
        likelihood, own_labels, own_draws = 0.0, defaultdict(float), np.zeros(n_classes)
        for w in range(n_classes):
            for enforced in itertools.product([True, False], repeat=len(group)):
                for z in itertools.product(range(n_classes), repeat=len(group)):
                    p, drawn = weights[w], np.eye(n_classes)[w]
                    for i, v, m in zip(group, enforced, z, strict=True):
                        p *= (tie[i] * (m == w) if v else (1 - tie[i]) * weights[m]) * density[i, m]
                        drawn = drawn + (not v) * np.eye(n_classes)[m]
                    likelihood += p
                    own_draws += p * drawn
                    for i, m in zip(group, z, strict=True):
                        own_labels[i, m] += p
        total += np.log(likelihood)
        draws += own_draws / likelihood
        for (i, m), p in own_labels.items():
            labels[i, m] = p / likelihood
    return total, labels, draws


@pytest.mark.parametrize("n_classes", [1, 2, 3])
@pytest.mark.parametrize("strength", [0.0, 0.3, 0.95, 1.0])
@pytest.mark.parametrize("confidence", [None, [0.9, 0.6, 0.3]])
def test_the_e_step_by_enumeration(n_classes, strength, confidence):
    random = np.random.default_rng(n_classes)
    log_density, weights = 2 * random.normal(size=(5, n_classes)), random.dirichlet(np.ones(n_classes))
    links = Links(must=MUST, must_confidence=confidence)
    found = SoftChunklets(strength).bind(links, 5, n_classes).expect(log_density, weights)
    surest = np.ones(5) if confidence is None else np.array([0.9, 0.9, 0.6, 0.5, 0.5])  # below 1/2 says nothing
    tie = strength * np.sqrt(2 * surest - 1)
    likelihood, labels, draws = enumerated(log_density, weights, [(0, 1, 2), (3, 4)], tie)
    assert found.log_likelihood == pytest.approx(likelihood, abs=1e-10)
    np.testing.assert_allclose(found.label_weights, labels, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.class_counts, draws, rtol=0, atol=1e-10)


def test_far_away_from_everything():
    log_density = np.array([[-1e6, -2e6], [-3e6, -1e6], [0.0, -np.inf]])
    found = SoftChunklets().bind(Links(must=[(0, 1), (1, 2)]), 3, 2).expect(log_density, np.array([0.5, 0.5]))
    assert np.isfinite(found.log_likelihood)
    np.testing.assert_allclose(found.label_weights, [[1, 0], [0, 1], [1, 0]], atol=1e-12)  # the second one leaves


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_certain_links_are_the_chunklets_of_gmm_ec(iris):
    X, y = iris
    links = Links.from_labels(y, 60, kind="must", random_state=1)
    soft, hard = (
        LinkMixture(3, coupling=coupling, random_state=0, tol=1e-8).fit(X, links=links)
        for coupling in (SoftChunklets(1.0), Graph(sampling="chunklets"))
    )
    np.testing.assert_allclose(soft.log_likelihood_trace_, hard.log_likelihood_trace_, rtol=1e-10)
    np.testing.assert_allclose(soft.means_, hard.means_, atol=1e-8)


def test_links_without_strength_are_none(iris):
    X, y = iris
    links = Links.from_labels(y, 60, kind="must", random_state=1)
    loose = LinkMixture(3, coupling=SoftChunklets(0.0), random_state=0, tol=1e-8).fit(X, links=links)
    free = LinkMixture(3, coupling="none", random_state=0, tol=1e-8).fit(X)
    np.testing.assert_allclose(loose.means_, free.means_, atol=1e-5)


def test_pairs_of_two_even_classes_are_those_of_gm_pr():
    """Elsewhere the two models differ: an unsure pair is independent here, and apart there."""
    log_density = np.random.default_rng(0).normal(size=(4, 2))
    links = Links(must=[(0, 1), (2, 3)], must_confidence=[0.9, 0.6])
    for even, weights in ((True, np.array([0.5, 0.5])), (False, np.array([0.8, 0.2]))):
        soft = SoftChunklets(1.0).bind(links, 4, 2).expect(log_density, weights)
        pairs = Pairwise().bind(links, 4, 2).expect(log_density, weights)
        assert np.allclose(soft.label_weights, pairs.label_weights, rtol=0, atol=1e-12) == even


def test_a_wrong_link_is_left(iris):
    X, y = iris
    right = Links.from_labels(y, 40, kind="must", random_state=0)
    links = Links(must=[*right.must, (0, 100)])  # the last one is wrong
    model = SoftChunkletMixture(3, random_state=0).fit(X, links=links)
    assert model.labels_[0] != model.labels_[100]
    assert links_satisfied(model.labels_, right) > 0.9


def test_what_is_refused(iris):
    X, _ = iris
    with pytest.raises(ValueError, match=r"makes no use of cannot-links, but got .*: drop them or choose"):
        LinkMixture(3, coupling=SoftChunklets()).fit(X, links=Links(cannot=[(0, 1)]))
    with pytest.raises(ValueError, match="SoftChunkletMixture cannot use cannot-links"):
        SoftChunkletMixture(3).fit(X, links=Links(cannot=[(0, 1)]))
    for strength, why in ((1.5, "is no probability"), (-0.1, "is not a finite number of at least 0")):
        with pytest.raises(ValueError, match=why):
            SoftChunklets(strength)
