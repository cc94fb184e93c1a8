"""RCA, MMC and ITML: each metric is the optimum that its paper asks for, and k-means uses it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import check_estimator

from linkmix import Links
from linkmix.rivals import ITML, MMC, RCA
from linkmix.rivals.itml import project
from linkmix.rivals.learned_metric import random_pairs
from linkmix.rivals.mmc import lowest
from linkmix.rivals.rca import chunklet_covariance

METHODS = [RCA, MMC, ITML]


def usable(kind, links):
    return Links(links.must, links.cannot if kind.uses_cannot else [])


def stretched(seed=0):
    """Three classes side by side, each far longer than the gap to the next, at an angle to the columns."""
    random = np.random.RandomState(seed)
    y = np.arange(300) % 3
    X = random.normal(size=(300, 3)) * [1, 20, 5]
    X[:, 0] += 8 * y
    return X @ np.linalg.qr(random.normal(size=(3, 3)))[0], y


@pytest.mark.parametrize("kind", METHODS)
def test_links_find_the_direction_that_matters(kind):
    X, y = stretched()
    links = usable(kind, Links.from_labels(y, 300, random_state=0))
    model = kind(3, random_state=0).fit(X, links=links)
    assert adjusted_rand_score(y, KMeans(3, n_init=5, random_state=0).fit_predict(X)) < 0.1
    assert adjusted_rand_score(y, model.labels_) > 0.97
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert np.linalg.eigvalsh(model.metric_).min() > -1e-12


@pytest.mark.parametrize("kind", METHODS)
def test_without_links_columns_are_divided_by_their_deviations(kind):
    X, _ = load_wine(return_X_y=True)
    model = kind(3, random_state=0).fit(X)
    if kind is MMC:  # random pairs stand for cannot-links, so the metric is learned, but from the columns alone
        assert np.linalg.eigvalsh(model.metric_).min() >= -1e-12
        return
    np.testing.assert_allclose(model.metric_, np.diag(1 / X.var(axis=0)), rtol=1e-9)


@pytest.mark.parametrize("kind", METHODS)
def test_the_scale_of_a_column_makes_no_difference(kind):
    X, y = load_iris(return_X_y=True)
    links = usable(kind, Links.from_labels(y, 60, random_state=0))
    one, other = (kind(3, random_state=0).fit(X * scale, links=links) for scale in (1.0, [1e3, 1, 1e-2, 1]))
    assert adjusted_rand_score(one.labels_, other.labels_) == 1


# RCA


@given(st.integers(0, 1000))
def test_the_covariance_of_chunklets_by_hand(seed):
    random = np.random.RandomState(seed)
    X = random.normal(size=(20, 3))
    chunklet = random.randint(8, size=20)
    covariance, freedom = chunklet_covariance(X, chunklet)
    groups = [X[chunklet == j] for j in range(8) if (chunklet == j).sum() > 1]
    centred = np.concatenate([g - g.mean(axis=0) for g in groups] or [np.zeros((0, 3))])
    np.testing.assert_allclose(covariance, centred.T @ centred / max(len(centred), 1), atol=1e-12)
    assert freedom == len(centred) - len(groups)


def test_rca_as_published_inverts_the_covariance_of_chunklets():
    X, y = load_iris(return_X_y=True)
    links = Links.from_labels(y, 60, kind="must", random_state=0)
    model = RCA(3, shrinkage=0.0, random_state=0).fit(X, links=links)
    covariance, freedom = chunklet_covariance(X, links.chunklets(150))
    np.testing.assert_allclose(model.metric_, np.linalg.inv(covariance), rtol=1e-8)
    shrunk = RCA(3, random_state=0).fit(X, links=links).metric_
    share = 4 / (4 + freedom)
    np.testing.assert_allclose(
        np.linalg.inv(shrunk), (1 - share) * covariance + share * np.diag(X.var(axis=0)), rtol=1e-8
    )


def test_rca_as_published_does_not_see_linear_maps():
    X, y = load_iris(return_X_y=True)
    links = Links.from_labels(y, 80, kind="must", random_state=0)
    mapped = X @ np.random.RandomState(0).normal(size=(4, 4))
    one, other = (RCA(3, shrinkage=0.0, random_state=0).fit(Z, links=links) for Z in (X, mapped))
    assert adjusted_rand_score(one.labels_, other.labels_) == 1


def test_too_few_must_links_for_the_published_rca():
    X, _ = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"vary in 1 of 4 directions, .* shrinkage=0: give more must-links"):
        RCA(3, shrinkage=0.0).fit(X, must_link=[(0, 1)])


# MMC


@pytest.mark.parametrize("diagonal", [True, False])
def test_no_optimiser_finds_a_lower_metric(diagonal):
    random = np.random.RandomState(1)
    near, far = random.normal(size=(15, 3)) * [1, 2, 0.3], random.normal(size=(10, 3))
    spread = near.T @ near
    metric, value, _ = lowest(spread, far, diagonal, 1000)

    def objective(A):
        return (A * spread).sum() - np.log(np.sqrt(np.einsum("nd,de,ne->n", far, A, far)).sum())

    assert value == pytest.approx(objective(metric), rel=1e-9)
    for _ in range(5):
        start = random.normal(size=3 if diagonal else 9)

        def of(flat):
            return objective(np.diag(flat**2) if diagonal else flat.reshape(3, 3) @ flat.reshape(3, 3).T)

        assert value <= minimize(of, start, method="BFGS").fun + 1e-6
    if not diagonal:
        assert value <= lowest(spread, far, True, 1000)[1] + 1e-9


def test_without_random_pairs_few_must_links_leave_the_metric_unlimited():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"differ in 1 of 4 directions, .* or n_random=1"):
        MMC(3, n_random=0.0).fit(X, must_link=[(0, 1)], cannot_link=[(0, 149)])
    links = Links.from_labels(y, 100, random_state=0)
    assert adjusted_rand_score(y, MMC(3, n_random=0.0, random_state=0).fit(X, links=links).labels_) > 0.7


def test_mmc_says_when_steps_run_out():
    X, y = load_wine(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        MMC(3, max_iter=1, random_state=0).fit(X, links=Links.from_labels(y, 30, random_state=0))


# ITML


@pytest.mark.parametrize("seed", range(4))
def test_the_projected_metric_is_the_optimum(seed):
    """The divergence of the metric plus gamma times that of the bounds, minimised by a general optimiser."""
    random = np.random.RandomState(seed)
    moved, is_must = random.normal(size=(4, 2)), np.array([True, True, False, False])
    bounds, gamma = (0.3, 4.0), 1.0
    metric, _ = project(np.eye(2), moved, is_must, bounds, gamma, 20_000)

    def divergence(ratio):
        return ratio - np.log(ratio) - 1

    def cost(A):
        lengths = np.einsum("nd,de,ne->n", moved, A, moved)
        wanted = np.where(is_must, bounds[0], bounds[1])
        # The best slack is the length itself where the bound is broken, and the bound where it is not.
        broken = np.where(is_must, lengths > wanted, lengths < wanted)
        paid = np.where(broken, divergence(lengths / wanted), 0.0)
        return np.trace(A) - np.linalg.slogdet(A)[1] - 2 + gamma * paid.sum()

    def of(flat):
        root = np.array([[np.exp(flat[0]), 0], [flat[1], np.exp(flat[2])]])
        return cost(root @ root.T)

    best = minimize(of, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 5000})
    assert cost(metric) == pytest.approx(best.fun, rel=2e-3)


def test_bounds_of_itml():
    X, y = load_iris(return_X_y=True)
    links = Links.from_labels(y, 40, random_state=0)
    model = ITML(3, random_state=0).fit(X, links=links)
    assert 0 < model.bounds_[0] < model.bounds_[1]
    assert ITML(3, bounds=(1.0, 9.0), random_state=0).fit(X, links=links).bounds_ == (1.0, 9.0)
    with pytest.raises(ValueError, match="must be two positive numbers, the smaller one first"):
        ITML(3, bounds=(9.0, 1.0)).fit(X, links=links)


def test_equal_points_have_no_distance_to_change():
    X = np.repeat([[0.0, 0.0], [1.0, 1.0], [5.0, 0.0]], 4, axis=0)
    links = Links(must=[(0, 1), (4, 5)], cannot=[(0, 4), (5, 9)])
    for kind in (MMC, ITML):
        assert np.isfinite(kind(3, random_state=0).fit(X, links=links).metric_).all()


@pytest.mark.parametrize("n_rows", [2, 5, 400])
def test_random_pairs_differ(n_rows):
    pairs = random_pairs(n_rows, 100, np.random.RandomState(0))
    assert (pairs[:, 0] != pairs[:, 1]).all()
    assert pairs.min() >= 0
    assert pairs.max() < n_rows
    assert len(pairs) == min(100, n_rows * (n_rows - 1) // 2)


@pytest.mark.parametrize("settings", [{}, {"form": "diagonal"}], ids=str)
def test_check_estimator_of_mmc(settings):
    check_estimator(MMC(**settings), on_skip=None, on_fail="raise")


@pytest.mark.parametrize("kind", [RCA, ITML])
def test_check_estimator(kind):
    check_estimator(kind(), on_skip=None, on_fail="raise")


def test_rca_refuses_cannot_links():
    with pytest.raises(ValueError, match="RCA cannot use cannot-links, but got 1 of them"):
        RCA().fit(np.eye(4), cannot_link=[(0, 1)])
