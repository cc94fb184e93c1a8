"""linkmix.calibrate: honest probabilities of one mixture."""

from itertools import combinations

import numpy as np
import pytest
from numpy.random import RandomState
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.validation import check_is_fitted

from linkmix import AutoLinkMixture, Blocks, LinkMixture, Links, calibrate
from linkmix.mixture.calibration import LeftOut, level, quality
from linkmix.mixture.folds import folds
from linkmix.rivals import GMMEC

X, Y = load_iris(return_X_y=True)
LINKS = Links.from_labels(Y, 40, random_state=0)
MODEL = LinkMixture(3, coupling="graph", shrinkage="auto", init="links", n_init=3, random_state=0)


def hard(seed, n=300):
    """Classes that overlap, in columns that depend on each other, which a diagonal covariance takes for evidence."""
    rng = np.random.default_rng(seed)
    points, y = make_blobs(n, centers=[[0, 0], [1.6, 0], [0, 1.6]], random_state=seed)
    return np.repeat(points, 8, axis=1) + 0.1 * rng.normal(size=(n, 16)), y


def calibration_error(P, y):
    """Of the largest probability, in ten bins; classes are matched by their majority."""
    label = P.argmax(axis=1)
    majority = np.array([np.bincount(y[label == m], minlength=3).argmax() for m in range(3)])
    sure, right = P.max(axis=1), majority[label] == y
    at = np.minimum((10 * sure).astype(int), 9)
    return sum(abs((sure - right)[at == one].sum()) for one in range(10)) / len(y)


def test_probabilities_become_honest():
    before, after = [], []
    for seed in range(5):
        points, y = hard(seed)
        model = LinkMixture(3, coupling="graph", covariance_type="diag", init="links", random_state=seed)
        found = calibrate(model, points, links=Links.from_labels(y, 60, random_state=seed))
        before.append(calibration_error(found.model.predict_proba(points), y))
        after.append(calibration_error(found.predict_proba(points), y))
        assert found.temperature > 2  # every column comes eight times
    assert np.mean(before) > 0.15
    assert np.mean(after) < 0.08
    assert (np.array(after) < before).all()


def test_what_it_holds():
    found = calibrate(MODEL, X, links=LINKS)
    plain = LinkMixture(**MODEL.get_params()).fit(X, links=LINKS)
    np.testing.assert_array_equal(found.model.labels_, plain.labels_)
    P = found.predict_proba(X)
    np.testing.assert_allclose(P, softmax(plain.predict_log_joint(X) / found.temperature, axis=1), atol=1e-12)
    np.testing.assert_array_equal(P.argmax(axis=1), found.model.predict(X))
    assert found.temperature >= 1
    assert 0 < found.level < 1
    a, b = np.triu_indices(len(Y), 1)
    labels = P.argmax(axis=1)
    truth = ((labels[a] == labels[b]) == (Y[a] == Y[b])).mean()
    assert found.quality.low <= truth <= found.quality.high
    assert found.quality.n_links == 40
    with pytest.raises(AttributeError):
        found.temperature = 1.0
    with pytest.raises(NotFittedError):  # what was given is not changed
        check_is_fitted(MODEL)


def start_at(points, labels):
    """A start without randomness: moments of given classes."""
    n_classes = labels.max() + 1
    return {
        "class_weights": np.bincount(labels) / len(labels),
        "cluster_weights": np.ones((n_classes, 1)),
        "means": np.stack([points[labels == m].mean(axis=0) for m in range(n_classes)])[:, None],
        "covariances": np.stack([np.cov(points[labels == m].T) for m in range(n_classes)])[:, None],
    }


def test_the_level_is_that_of_refits_by_hand():
    points, y = hard(1)
    points = points[:, ::8]
    links = Links.from_labels(y, 50, random_state=0)
    model = LinkMixture(3, coupling="graph", init=start_at(points, y), random_state=0)
    found = calibrate(model, points, links=links)
    left, labellings = [], [found.model.predict(points)]
    for fold in folds(links, None, RandomState(RandomState(0).randint(2**31 - 1))):
        refit = clone(model).fit(points, links=fold.kept)
        left.append(LeftOut(refit.predict_log_joint(points), fold.left, fold.at, fold.rows, fold.labels))
        labellings.append(refit.predict(points))
    agreement = np.mean([adjusted_rand_score(one, other) for one, other in combinations(labellings, 2)])
    assert found.level == pytest.approx(level(left, agreement), abs=1e-9)
    assert found.quality == quality(found.predict_proba(points), left)


def test_luck_of_the_start_counts_as_doubt():
    """On points without any structure, a fit from another start finds other classes."""
    points = np.random.default_rng(0).uniform(size=(200, 3))
    links = Links(must=[(0, 1)], cannot=[(2, 3)])
    labels = LinkMixture(4, random_state=0).fit(points, links=links).predict(points)
    fixed = calibrate(LinkMixture(4, init=start_at(points, labels), random_state=0), points, links=links)
    lucky = calibrate(LinkMixture(4, random_state=0), points, links=links)
    assert lucky.level < fixed.level - 0.2


def test_a_seed_makes_it_repeat():
    one, other = calibrate(MODEL, X, links=LINKS), calibrate(MODEL, X, links=LINKS)
    assert (one.level, one.temperature, one.quality) == (other.level, other.temperature, other.quality)


def test_a_fitted_model_is_kept_and_a_sample_will_do():
    fitted = LinkMixture(**MODEL.get_params()).fit(X, links=LINKS)
    before = fitted.predict_proba(X)
    rows = np.union1d(LINKS.points, np.arange(0, len(X), 2))
    found = calibrate(fitted, X[rows], links=LINKS.restrict(rows))
    assert found.model is fitted
    np.testing.assert_array_equal(fitted.predict_proba(X), before)
    np.testing.assert_array_equal(found.predict_proba(X).argmax(axis=1), fitted.predict(X))
    assert found.level == pytest.approx(calibrate(MODEL, X, links=LINKS).level, abs=0.05)
    blocks = Blocks.from_array(X)
    np.testing.assert_allclose(found.predict_proba(blocks), found.predict_proba(X), atol=1e-12)


def test_known_labels_calibrate_directly():
    points, y = hard(0)
    known = np.where(np.arange(len(y)) % 4 == 0, y, -1)
    model = LinkMixture(3, covariance_type="diag", random_state=0)
    found = calibrate(model, points, known)
    assert found.quality.n_links == pytest.approx(75 / 2, abs=5)
    P = found.predict_proba(points)
    sure, right = P.max(axis=1).mean(), (P.argmax(axis=1) == y).mean()
    assert sure == pytest.approx(right, abs=0.08)
    assert found.model.predict_proba(points).max(axis=1).mean() > right + 0.1


NAMES = {"must_annotators": "eva", "cannot_annotators": "ida"}


@pytest.mark.parametrize(
    ("links", "n_statements"),
    [
        (Links(LINKS.must, LINKS.cannot, must_confidence=0.8, cannot_confidence=0.9), 40),
        (Links(LINKS.must, LINKS.cannot, **NAMES), 40),
        (Links([*LINKS.must, (0, 1)], [*LINKS.cannot, (0, 1)], **NAMES), 42),
        (LINKS.union(LINKS), 40),
    ],
    ids=["unsure", "named", "named and contradicting", "repeated"],
)
def test_links_of_all_kinds(links, n_statements):
    found = calibrate(MODEL, X, links=links)
    assert found.temperature >= 1
    assert found.quality.pairs_right > 0.85
    assert found.quality.n_links == n_statements
    np.testing.assert_allclose(found.predict_proba(X).sum(axis=1), 1)


def test_weights_and_rivals():
    weights = np.random.default_rng(0).uniform(0.5, 2, len(X))
    found = calibrate(MODEL, X, links=LINKS, sample_weight=weights)
    plain = LinkMixture(**MODEL.get_params()).fit(X, links=LINKS, sample_weight=weights)
    np.testing.assert_array_equal(found.model.means_, plain.means_)
    assert calibrate(GMMEC(3, random_state=0), X, links=LINKS).temperature >= 1


def test_links_of_one_kind_tell_no_quality():
    found = calibrate(MODEL, X, links=Links(must=LINKS.must))
    assert found.quality is None
    assert found.temperature >= 1


def test_what_is_refused():
    with pytest.raises(ValueError, match="an AutoLinkMixture, whose fit calibrates its probabilities already"):
        calibrate(AutoLinkMixture(3), X, links=LINKS)
    with pytest.raises(ValueError, match="model is a str: give a LinkMixture"):
        calibrate("mixture", X, links=LINKS)
    with pytest.raises(ValueError, match="neither links nor known labels to leave out"):
        calibrate(MODEL, X)
    with pytest.raises(ValueError, match="neither links nor known labels to leave out"):
        calibrate(MODEL, X, Y)  # true labels without any -1 are ignored, as by fit
    with pytest.raises(ValueError, match="X is a Blocks, and calibrate needs points in memory"):
        calibrate(MODEL, Blocks.from_array(X), links=LINKS)
    with pytest.raises(ValueError, match="links row 149, but there are 100 rows"):
        calibrate(MODEL, X[:100], links=Links(must=[(0, 149)], cannot=[(0, 1)]))
