import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris, load_wine, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from linkmix import LinkMixture, Links, links_satisfied, purity
from oracles import COVARIANCE_TYPES, covariance_matrix, random_links

every_form = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)


def blobs(n=90, seed=0, n_classes=3, spread=1.0):
    """Well separated clusters and their labels."""
    centres = 8 * np.array([[0.0, 0.0], [1.0, 0.3], [0.2, 1.1], [1.3, 1.2]])[:n_classes]
    X, y = make_blobs(n, centers=centres, cluster_std=spread, random_state=seed)
    return X, y


def given_start(X, n_classes, clusters_per_class, covariance_type, seed=0):
    """Means at random rows and covariances of all data, as an init mapping."""
    rng = np.random.default_rng(seed)
    M, K, d = n_classes, clusters_per_class, X.shape[1]
    full = np.atleast_2d(np.cov(X.T)) / M + 1e-3 * np.eye(d)
    covariances = {
        "full": np.broadcast_to(full, (M, K, d, d)),
        "tied": full,
        "diag": np.broadcast_to(np.diag(full), (M, K, d)),
        "spherical": np.full((M, K), np.trace(full) / d),
    }[covariance_type]
    return {
        "class_weights": rng.dirichlet(np.full(M, 10.0)),
        "cluster_weights": rng.dirichlet(np.full(K, 10.0), size=M),
        "means": X[rng.choice(len(X), M * K, replace=False)].reshape(M, K, d),
        "covariances": covariances,
    }


def fitted_arrays(model):
    return {
        name: getattr(model, name)
        for name in ("class_weights_", "cluster_weights_", "means_", "covariances_", "log_likelihood_trace_")
    }


def assert_same_fit(one, other, rtol=1e-9):
    expected = fitted_arrays(other)
    for name, array in fitted_arrays(one).items():
        np.testing.assert_allclose(array, expected[name], rtol=rtol, atol=rtol, err_msg=name)
    np.testing.assert_array_equal(one.labels_, other.labels_)


def assert_sound(model, X):
    """Finite everywhere, weights sum to one, J never falls, and every attribute has its shape."""
    M, K, d = model.n_classes, model.clusters_per_class, X.shape[1]
    for name, array in fitted_arrays(model).items():
        assert np.all(np.isfinite(array)), name
    assert model.class_weights_.shape == (M,)
    assert model.cluster_weights_.shape == (M, K)
    assert model.means_.shape == (M, K, d)
    assert model.class_weights_.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(model.cluster_weights_.sum(axis=1), 1, atol=1e-12)
    assert np.all(model.class_weights_ > 0)
    assert model.log_likelihood_trace_.shape == (model.n_iter_ + 1,)
    assert model.log_likelihood_ == model.log_likelihood_trace_[-1]
    for before, after in pairwise(model.log_likelihood_trace_):
        assert after >= before - 1e-9 * abs(before)
    assert model.labels_.shape == (len(X),)
    assert model.labels_.dtype.kind == "i"
    assert set(model.labels_) <= set(range(M))
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (len(X), M)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), probabilities.argmax(axis=1))


# Without links: scikit-learn's GaussianMixture.

DATA = {
    "iris": lambda: load_iris().data,
    "wine": lambda: load_wine().data,
    "generated": lambda: np.random.default_rng(0).normal(size=(80, 3)) * [1.0, 5.0, 0.2] + [100.0, 0.0, -3.0],
}


def spread_start(X, n_classes, clusters_per_class, covariance_type):
    """Means of equal parts of the data along their first principal component: no cluster of too few points."""
    start = given_start(X, n_classes, clusters_per_class, covariance_type)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    along = scaled @ np.linalg.svd(scaled, full_matrices=False)[2][0]
    parts = np.array_split(np.argsort(along), n_classes * clusters_per_class)
    return start | {"means": np.array([X[part].mean(axis=0) for part in parts]).reshape(start["means"].shape)}


def scikit_learn(start, covariance_type, max_iter, **options):
    """A GaussianMixture with the same start; classes and clusters make one list of components there."""
    d = start["means"].shape[-1]
    covariances = np.asarray(start["covariances"])
    precisions = {
        "full": lambda: np.linalg.inv(covariances.reshape(-1, d, d)),
        "tied": lambda: np.linalg.inv(covariances),
        "diag": lambda: 1 / covariances.reshape(-1, d),
        "spherical": lambda: 1 / covariances.reshape(-1),
    }[covariance_type]()
    weights = (start["class_weights"][:, None] * start["cluster_weights"]).ravel()
    return GaussianMixture(
        len(weights),
        covariance_type=covariance_type,
        weights_init=weights / weights.sum(),
        means_init=start["means"].reshape(-1, d),
        precisions_init=precisions,
        max_iter=max_iter,
        tol=0,
        **options,
    )


def fit_quietly(mixture, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return mixture.fit(X)


@every_form
@pytest.mark.parametrize("data", DATA)
def test_without_links_it_is_scikit_learns_mixture_at_every_iteration(data, covariance_type):
    X = DATA[data]()
    start = spread_start(X, 3, 1, covariance_type)
    for t in range(1, 31):
        reference = fit_quietly(scikit_learn(start, covariance_type, t), X)
        model = LinkMixture(3, covariance_type=covariance_type, init=start, max_iter=t, tol=0).fit(X)
        where = f"iteration {t}"
        np.testing.assert_allclose(model.class_weights_, reference.weights_, rtol=1e-8, atol=1e-8, err_msg=where)
        np.testing.assert_allclose(model.means_[:, 0], reference.means_, rtol=1e-8, atol=1e-8, err_msg=where)
        found = model.covariances_ if covariance_type == "tied" else model.covariances_[:, 0]
        np.testing.assert_allclose(found, reference.covariances_, rtol=1e-8, atol=1e-8, err_msg=where)
        assert model.log_likelihood_ == pytest.approx(len(X) * reference.score(X), rel=1e-8), where


@every_form
@pytest.mark.parametrize(("n_classes", "clusters_per_class"), [(1, 3), (2, 2)])
def test_clusters_of_classes_are_components_of_one_mixture(n_classes, clusters_per_class, covariance_type):
    X = DATA["iris"]()
    start = spread_start(X, n_classes, clusters_per_class, covariance_type)
    reference = fit_quietly(scikit_learn(start, covariance_type, 10), X)
    model = LinkMixture(
        n_classes,
        clusters_per_class=clusters_per_class,
        covariance_type=covariance_type,
        init=start,
        max_iter=10,
        tol=0,
    ).fit(X)
    weights = model.class_weights_[:, None] * model.cluster_weights_
    np.testing.assert_allclose(weights.ravel(), reference.weights_, rtol=1e-8)
    np.testing.assert_allclose(model.means_.reshape(-1, 4), reference.means_, rtol=1e-8)
    np.testing.assert_allclose(
        model.covariances_.reshape(reference.covariances_.shape), reference.covariances_, rtol=1e-8
    )
    assert model.score(X) == pytest.approx(reference.score(X), rel=1e-8)


@every_form
def test_scores_are_those_of_scikit_learn(covariance_type):
    X = DATA["iris"]()
    start = spread_start(X, 3, 1, covariance_type)
    reference = fit_quietly(scikit_learn(start, covariance_type, 15), X)
    model = LinkMixture(3, covariance_type=covariance_type, init=start, max_iter=15, tol=0).fit(X)
    new = X[::7] + 0.05
    np.testing.assert_allclose(model.score_samples(new), reference.score_samples(new), rtol=1e-8)
    np.testing.assert_allclose(model.predict_proba(new), reference.predict_proba(new), rtol=0, atol=1e-8)
    np.testing.assert_array_equal(model.predict(new), reference.predict(new))
    for name in ("score", "bic", "aic"):
        assert getattr(model, name)(new) == pytest.approx(getattr(reference, name)(new), rel=1e-8), name
    assert model.log_likelihood(new) == pytest.approx(model.score_samples(new).sum(), rel=1e-12)


def test_the_same_mixture_with_coupling_none_and_without_links():
    X, _ = blobs()
    one, other = (LinkMixture(3, coupling=coupling, random_state=0).fit(X) for coupling in ("none", "pairwise"))
    assert_same_fit(one, other, rtol=0)


# Links of all kinds.


def links_of(kind, y, rng):
    """Pairs of rows that follow the labels y."""
    pairs = [tuple(int(i) for i in rng.choice(len(y), 2, replace=False)) for _ in range(25)]
    must = [(a, b) for a, b in pairs if y[a] == y[b]]
    cannot = [(a, b) for a, b in pairs if y[a] != y[b]]
    return Links(must=must if kind != "cannot" else [], cannot=cannot if kind != "must" else [])


@pytest.mark.parametrize("kind", ["must", "cannot", "both"])
@pytest.mark.parametrize("linked_points", ["apart", "both"])
@every_form
def test_links_between_well_separated_classes(kind, linked_points, covariance_type):
    X, y = blobs()
    links = links_of(kind, y, np.random.default_rng(0))
    model = LinkMixture(3, covariance_type=covariance_type, linked_points=linked_points, n_init=5, random_state=0).fit(
        X, links=links
    )
    assert_sound(model, X)
    assert model.converged_
    assert purity(y, model.labels_) == 1
    assert links_satisfied(model.labels_, links) == 1


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("linked_points", ["apart", "both"])
def test_every_point_linked(n_classes, linked_points):
    X, y = blobs(n=40, n_classes=n_classes)
    links = Links.from_labels(y)
    assert len(links.points) == len(X)
    model = LinkMixture(n_classes, linked_points=linked_points, n_init=5, random_state=0).fit(X, links=links)
    assert_sound(model, X)
    assert purity(y, model.labels_) == 1
    assert links_satisfied(model.labels_, links) == 1


@pytest.mark.parametrize("kind", ["must", "cannot", "both"])
def test_a_point_in_fifty_links(kind):
    """Fifty links count the point fifty times. It may draw a class of its own around it, but no link is broken."""
    X, y = blobs(n=150)
    same, other = np.flatnonzero(y == y[0])[1:], np.flatnonzero(y != y[0])
    links = Links(
        must=[(0, i) for i in same[:49]] if kind != "cannot" else [],
        cannot=[(i, 0) for i in other[:50]] if kind != "must" else [],
    )
    assert links.n_must + links.n_cannot >= 49
    model = LinkMixture(3, n_init=5, random_state=0).fit(X, links=links)
    assert_sound(model, X)
    assert links_satisfied(model.labels_, links) == 1


def test_repeated_links_change_nothing():
    X, y = blobs(spread=3.0)
    links = links_of("both", y, np.random.default_rng(1))
    repeated = Links(
        must=np.concatenate([links.must, links.must[:, ::-1], links.must[:3]]),
        cannot=np.concatenate([links.cannot, links.cannot[:, ::-1], links.cannot[:3]]),
    )
    one, other = (LinkMixture(3, random_state=0).fit(X, links=some) for some in (links, repeated))
    assert_same_fit(one, other, rtol=1e-12)
    assert other.log_likelihood(X, repeated) == pytest.approx(one.log_likelihood(X, links), rel=1e-12)


def test_two_classes_and_nothing_but_cannot_links_keep_their_weights():
    """Such links hold one point of either class each, whatever the weights are."""
    X, y = blobs(n=60, n_classes=2)
    first, second = np.flatnonzero(y == 0), np.flatnonzero(y == 1)
    links = Links(cannot=np.column_stack([first, second]))
    assert len(links.points) == len(X)
    start = given_start(X, 2, 1, "full") | {"class_weights": np.array([0.8, 0.2])}
    model = LinkMixture(2, init=start).fit(X, links=links)
    assert_sound(model, X)
    np.testing.assert_array_equal(model.class_weights_, [0.8, 0.2])
    assert purity(y, model.labels_) == 1


def test_one_class_with_must_links():
    X, _ = blobs()
    model = LinkMixture(1, random_state=0).fit(X, links=Links(must=[(0, 1), (1, 2), (5, 6)]))
    assert_sound(model, X)
    assert model.class_weights_.tolist() == [1.0]
    assert not model.labels_.any()
    points = np.concatenate([X, X[[1]]])  # row 1 is part of two links, and counts twice
    np.testing.assert_allclose(model.means_[0, 0], points.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(
        model.covariances_[0, 0], np.cov(points.T, bias=True) + 1e-6 * np.eye(2), rtol=1e-9, atol=1e-9
    )


def test_links_that_no_labelling_meets():
    """Three points, pairwise apart, and two classes. Each link is an item of its own, so J is as sound as ever."""
    X, _ = blobs(n=40, n_classes=2, spread=2.0)
    links = Links(cannot=[(0, 1), (1, 2), (2, 0)])
    with pytest.warns(UserWarning, match=r"labels_ breaks some links: no labelling with 2 classes .* raise n_classes"):
        model = LinkMixture(2, random_state=0).fit(X, links=links)
    assert_sound(model, X)
    assert links_satisfied(model.labels_, links) == pytest.approx(2 / 3)


def test_links_turn_a_clustering():
    """Two wide rows of points: alone they fall into left and right, with links into top and bottom."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 30)
    X = np.column_stack([rng.uniform(-3, 3, 60), np.where(y, 1.0, -1.0) + 0.4 * rng.normal(size=60)])
    left_and_right = {
        "class_weights": [0.5, 0.5],
        "cluster_weights": [[1.0], [1.0]],
        "means": [[[-1.5, 0.0]], [[1.5, 0.0]]],
        "covariances": [[np.diag([0.75, 1.2])], [np.diag([0.75, 1.2])]],
    }
    links = Links.from_labels(y, 60, random_state=0)
    alone = LinkMixture(2, covariance_type="tied", init=left_and_right | {"covariances": np.diag([0.75, 1.2])}).fit(X)
    linked = LinkMixture(2, init=left_and_right).fit(X, links=links)
    assert purity(y, alone.labels_) < 0.7
    assert purity(y, linked.labels_) > 0.95
    assert purity(y, linked.predict(X)) > 0.95


def test_labels_honour_links_that_predictions_do_not_know():
    X = np.array([[0.0], [0.2], [-0.1], [0.1], [5.0], [5.2], [4.9], [5.1], [2.4]])
    start = {
        "class_weights": [0.5, 0.5],
        "cluster_weights": [[1.0], [1.0]],
        "means": [[[0.0]], [[5.0]]],
        "covariances": [[1.0], [1.0]],
    }
    model = LinkMixture(2, covariance_type="spherical", init=start, max_iter=0).fit(X, must_link=[(8, 5)])
    assert model.predict(X)[8] == 0
    assert model.labels_[8] == model.labels_[5] == 1
    np.testing.assert_array_equal(model.labels_[:8], model.predict(X)[:8])


def test_pairs_may_be_given_as_arguments():
    X, _ = blobs(spread=3.0)
    pairs = {"must_link": [(0, 1), (2, 3)], "cannot_link": np.array([[4, 5]])}
    one = LinkMixture(3, random_state=0).fit(X, **pairs)
    other = LinkMixture(3, random_state=0).fit(X, links=Links(must=pairs["must_link"], cannot=pairs["cannot_link"]))
    assert_same_fit(one, other, rtol=0)


def test_a_weighty_link_is_heard_more():
    X, _ = blobs(n=60, n_classes=2, spread=3.0)
    left, right = np.argmin(X[:, 0]), np.argmax(X[:, 0])
    start = given_start(X, 2, 1, "full", seed=3)
    shares = []
    for link_weight in (1e-3, 1.0, 1e3):
        model = LinkMixture(2, init=start, link_weight=link_weight).fit(X, must_link=[(left, right)])
        assert_sound(model, X)
        assert model.log_likelihood(X, Links(must=[(left, right)])) == pytest.approx(model.log_likelihood_, rel=1e-12)
        together = model.predict_proba(X[[left, right]])
        shares.append(together[0] @ together[1])
    assert shares[0] < 0.5 < shares[2]


def test_a_weak_link_hardly_counts():
    X, _ = blobs(n=60, n_classes=2, spread=2.0)
    start = given_start(X, 2, 1, "full", seed=3)
    alone = LinkMixture(2, init=start, max_iter=10, tol=0).fit(X)
    weak = LinkMixture(2, init=start, max_iter=10, tol=0, linked_points="both", link_weight=1e-9)
    weak.fit(X, links=Links(must=[(0, 1)], cannot=[(2, 3)]))
    np.testing.assert_allclose(weak.means_, alone.means_, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(weak.class_weights_, alone.class_weights_, rtol=1e-6)


@every_form
@pytest.mark.parametrize("linked_points", ["apart", "both"])
def test_log_likelihood_of_the_training_data(covariance_type, linked_points):
    X, y = blobs(spread=3.0)
    links = links_of("both", y, np.random.default_rng(2))
    model = LinkMixture(
        3, covariance_type=covariance_type, linked_points=linked_points, link_weight=0.7, random_state=0, tol=1e-4
    ).fit(X, links=links)
    assert model.log_likelihood(X, links) == pytest.approx(model.log_likelihood_, rel=1e-12)
    assert model.log_likelihood(X) == pytest.approx(model.score_samples(X).sum(), rel=1e-12)
    assert abs(model.log_likelihood(X) - model.log_likelihood_) > 1
    n_parameters = 2 + 3 * 2 + {"full": 9, "tied": 3, "diag": 6, "spherical": 3}[covariance_type]
    assert model.bic(X, links) == pytest.approx(-2 * model.log_likelihood_ + n_parameters * np.log(90), rel=1e-12)
    assert model.aic(X, links) == pytest.approx(-2 * model.log_likelihood_ + 2 * n_parameters, rel=1e-12)


# Hard data.


@every_form
def test_a_cluster_that_dies(covariance_type):
    """A start so far away that no point has a density there: that class keeps a place and a tiny weight."""
    X, y = blobs(n=40, n_classes=2)
    start = given_start(X, 3, 1, covariance_type)
    start["means"] = np.array([[X[y == 0][0]], [X[y == 1][0]], [[1e6, 1e6]]])
    links = links_of("both", y, np.random.default_rng(0))
    model = LinkMixture(3, covariance_type=covariance_type, init=start).fit(X, links=links)
    assert_sound(model, X)
    assert model.class_weights_[2] < 1e-9
    np.testing.assert_array_equal(model.labels_, y)
    np.testing.assert_array_equal(model.means_[2, 0], [1e6, 1e6])


@every_form
def test_a_cluster_inside_a_class_that_dies(covariance_type):
    X, y = blobs(n=40, n_classes=2)
    start = given_start(X, 2, 2, covariance_type)
    start["means"] = np.array([[X[y == 0][0], [1e6, 1e6]], [X[y == 1][0], X[y == 1][1]]])
    model = LinkMixture(2, clusters_per_class=2, covariance_type=covariance_type, init=start).fit(X)
    assert_sound(model, X)
    np.testing.assert_allclose(model.cluster_weights_[0], [1, 0], atol=1e-9)
    assert purity(y, model.labels_) == 1


@every_form
@pytest.mark.parametrize("clusters_per_class", [1, 2])
def test_identical_points(covariance_type, clusters_per_class):
    X = np.full((12, 2), 3.5)
    model = LinkMixture(2, clusters_per_class=clusters_per_class, covariance_type=covariance_type, random_state=0)
    model.fit(X, must_link=[(0, 1)], cannot_link=[(2, 3)])
    assert_sound(model, X)
    np.testing.assert_allclose(model.means_, 3.5)


@every_form
def test_as_many_points_as_clusters(covariance_type):
    X = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [9.0, 9.0]])
    model = LinkMixture(2, clusters_per_class=2, covariance_type=covariance_type, random_state=0).fit(
        X, must_link=[(0, 1)]
    )
    assert_sound(model, X)


@every_form
def test_one_column(covariance_type):
    X = np.concatenate([np.linspace(0, 1, 15), np.linspace(7, 8, 15)])[:, None]
    model = LinkMixture(2, covariance_type=covariance_type, random_state=0).fit(X, cannot_link=[(0, 29)])
    assert_sound(model, X)
    assert purity(np.repeat([0, 1], 15), model.labels_) == 1


def test_numbers_whose_squares_are_zero():
    X, _ = blobs()
    model = LinkMixture(3, random_state=0).fit(X * 1e-170)
    assert_sound(model, X * 1e-170)


def test_probabilities_far_from_all_data():
    """Two classes of one density can not be told apart; the digits run out, but a row still sums to one."""
    X, _ = blobs()
    start = given_start(X, 2, 1, "full") | {"class_weights": np.array([0.7, 0.3]), "means": np.zeros((2, 1, 2))}
    model = LinkMixture(2, init=start, max_iter=0).fit(X)
    far = np.array([[1e3, -1e3], [1e6, 1e6], [-1e9, 3e9], [1e12, 0.0]])
    np.testing.assert_allclose(model.predict_proba(far[:2]), [[0.7, 0.3]] * 2, rtol=1e-4)
    np.testing.assert_allclose(model.predict_proba(far).sum(axis=1), 1, rtol=1e-10)


def test_all_points_in_cannot_links_and_fewer_points_than_columns():
    """Covariances are flat here, log-densities huge, and nothing but rounding is left of some differences."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        y = rng.permutation([0, 0, 1, 1, 2, 2])
        X = 1e4 * rng.normal(size=(6, 8))
        cannot = [(a, b) for a in range(6) for b in range(a) if y[a] != y[b]]
        model = LinkMixture(3, random_state=seed).fit(X, cannot_link=cannot)
        assert_sound(model, X)


@every_form
def test_a_small_cluster_far_from_the_origin_keeps_its_covariance(covariance_type):
    """Clusters a millionth as wide as their distance, a million away from the origin, and nothing added."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 150)
    centres = 1e6 + np.array([[0.0, 0.0, 0.0], [1.0, -1.0, 0.5]])
    roots = rng.normal(size=(2, 3, 3))
    X = centres[y] + 1e-6 * np.einsum("nij,nj->ni", roots[y], rng.normal(size=(300, 3)))
    cannot = [(int(a), int(150 + a)) for a in range(5)]
    model = LinkMixture(2, covariance_type=covariance_type, reg_covar=0, random_state=0)
    model.fit(X, links=Links(must=[(10, 19), (160, 169)], cannot=cannot))  # every point in one link at most
    assert purity(y, model.labels_) == 1

    exact = X.astype(np.longdouble)
    two_passes, one_pass = [], []
    order = [0, 1] if model.labels_[0] == 0 else [1, 0]
    for c in order:
        rows = exact[y == c]
        two_passes.append((rows - rows.mean(axis=0)).T @ (rows - rows.mean(axis=0)) / len(rows))
        rows = X[y == c]
        one_pass.append(rows.T @ rows / len(rows) - np.outer(rows.mean(axis=0), rows.mean(axis=0)))

    def in_form(matrices):
        matrices = np.array(matrices)
        diagonal = np.diagonal(matrices, axis1=1, axis2=2)
        return {
            "full": matrices[:, None],
            "tied": matrices.mean(axis=0),
            "diag": diagonal[:, None],
            "spherical": diagonal.mean(axis=1)[:, None],
        }[covariance_type]

    np.testing.assert_allclose(model.covariances_, in_form(two_passes), rtol=1e-9)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        np.testing.assert_allclose(in_form(one_pass), in_form(two_passes), rtol=1e-9)

    # The likelihood at these parameters, the differences in long double.
    expected = 0.0
    free = np.setdiff1d(np.arange(300), [10, 19, 160, 169, *np.ravel(cannot)])
    log_weights = np.log(model.class_weights_)
    for m, c in enumerate(order):
        differences = (exact[y == c] - model.means_[m, 0]).astype(float)
        covariance = covariance_matrix(model.covariances_, covariance_type, m, 0, 3)
        rows = np.flatnonzero(y == c)
        log_density = dict(zip(rows, multivariate_normal(np.zeros(3), covariance).logpdf(differences), strict=True))
        expected += sum(log_density[n] + log_weights[m] for n in rows if n in free)
        expected += sum(log_density[n] for n in rows if n not in free)
        expected += log_weights[m]  # one must-link in either class
    expected += 5 * (log_weights.sum() - np.log(1 - np.sum(model.class_weights_**2)))
    assert model.log_likelihood_ == pytest.approx(expected, rel=1e-9)


# Starts, repetitions and the end of the iteration.


def test_random_state_decides_everything():
    X, y = blobs(spread=4.0)
    links = links_of("both", y, np.random.default_rng(0))

    def fit(random_state):
        model = LinkMixture(3, clusters_per_class=2, n_init=2, random_state=random_state, tol=1e-3)
        return model.fit(X, links=links)

    assert_same_fit(fit(1), fit(1), rtol=0)
    assert_same_fit(fit(np.random.RandomState(1)), fit(1), rtol=0)
    assert len({round(fit(seed).log_likelihood_, 6) for seed in range(6)}) > 1


def test_the_global_random_state_is_left_alone():
    X, _ = blobs()
    np.random.seed(3)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(3)  # noqa: NPY002
    LinkMixture(3, random_state=0).fit(X).sample(5)
    assert np.random.random() == expected  # noqa: NPY002


def test_n_init_keeps_the_best_of_its_starts():
    X, y = blobs(spread=4.0)
    links = links_of("both", y, np.random.default_rng(0))
    random = np.random.RandomState(0)
    single = [LinkMixture(3, random_state=random, tol=1e-4).fit(X, links=links).log_likelihood_ for _ in range(6)]
    together = LinkMixture(3, n_init=6, random_state=np.random.RandomState(0), tol=1e-4).fit(X, links=links)
    assert max(single) > single[0] + 1e-3, "the first start is the best already"
    assert together.log_likelihood_ == max(single)


@every_form
def test_no_iterations_return_the_start(covariance_type):
    X, _ = blobs()
    start = given_start(X, 3, 2, covariance_type)
    model = LinkMixture(3, clusters_per_class=2, covariance_type=covariance_type, init=start, max_iter=0).fit(X)
    assert_sound(model, X)
    assert model.n_iter_ == 0
    assert not model.converged_
    for name, array in start.items():
        np.testing.assert_array_equal(getattr(model, f"{name}_"), array, err_msg=name)


def test_a_start_is_not_changed_by_the_fit():
    X, _ = blobs()
    start = given_start(X, 3, 2, "full")
    copies = {name: np.array(array) for name, array in start.items()}
    model = LinkMixture(3, clusters_per_class=2, init=start, max_iter=3, tol=0).fit(X)
    assert model.init is start
    for name, array in start.items():
        np.testing.assert_array_equal(array, copies[name])
        assert not np.shares_memory(array, getattr(model, f"{name}_"))


def test_the_data_are_not_changed_by_the_fit():
    X, _ = blobs()
    X.setflags(write=False)
    copy = X.copy()
    LinkMixture(3, random_state=0).fit(X, must_link=[(0, 1)]).predict(X)
    np.testing.assert_array_equal(X, copy)


def test_the_iteration_cap_warns():
    X, _ = blobs(spread=4.0)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2 .* tol=1e-12: raise max_iter or tol"):
        model = LinkMixture(3, max_iter=2, tol=1e-12, random_state=0).fit(X)
    assert not model.converged_
    assert model.n_iter_ == 2


@pytest.mark.parametrize("max_iter", [1, 2, 13])
def test_without_a_tolerance_every_step_is_made(max_iter):
    X, _ = blobs()
    model = LinkMixture(3, max_iter=max_iter, tol=0, random_state=0).fit(X)  # no warning: it was asked for
    assert model.n_iter_ == max_iter
    assert model.log_likelihood_trace_.shape == (max_iter + 1,)
    assert not model.converged_


def test_the_tolerance_is_a_gain_per_row():
    X, _ = blobs(spread=4.0)
    model = LinkMixture(3, tol=1e-4, random_state=0).fit(X)
    trace = model.log_likelihood_trace_
    gains = np.diff(trace) / len(X)
    assert model.converged_
    assert gains[-1] <= 1e-4
    assert np.all(gains[:-1] > 1e-4)


def test_a_new_fit_forgets_the_old_one():
    X, _ = blobs()
    model = LinkMixture(3, random_state=0)
    first = fitted_arrays(model.fit(X))
    model.fit(2 * X + 1, links=Links(must=[(0, 1)]))
    assert_same_fit(model.fit(X), LinkMixture(3, random_state=0).fit(X), rtol=0)
    for name, array in fitted_arrays(model).items():
        np.testing.assert_array_equal(array, first[name])


# Order does not matter.


@every_form
@pytest.mark.parametrize("linked_points", ["apart", "both"])
def test_the_order_of_the_rows_does_not_matter(covariance_type, linked_points):
    X, y = blobs(spread=3.0)
    rng = np.random.default_rng(4)
    links = links_of("both", y, rng)
    start = given_start(X, 3, 2, covariance_type)
    settings = {
        "n_classes": 3,
        "clusters_per_class": 2,
        "covariance_type": covariance_type,
        "linked_points": linked_points,
        "init": start,
        "tol": 0,
        "max_iter": 10,
    }
    order = rng.permutation(len(X))
    place = np.argsort(order)
    one = LinkMixture(**settings).fit(X, links=links)
    other = LinkMixture(**settings).fit(X[order], links=Links(must=place[links.must], cannot=place[links.cannot]))
    np.testing.assert_allclose(other.log_likelihood_trace_, one.log_likelihood_trace_, rtol=1e-10)
    np.testing.assert_allclose(other.means_, one.means_, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(other.covariances_, one.covariances_, rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(other.labels_, one.labels_[order])


@every_form
def test_the_order_of_the_classes_does_not_matter(covariance_type):
    X, y = blobs(spread=3.0)
    links = links_of("both", y, np.random.default_rng(4))
    start = given_start(X, 3, 2, covariance_type)
    order = [2, 0, 1]
    turned = {
        name: array if name == "covariances" and covariance_type == "tied" else array[order]
        for name, array in start.items()
    }
    one, other = (
        LinkMixture(3, clusters_per_class=2, covariance_type=covariance_type, init=init, tol=0, max_iter=10).fit(
            X, links=links
        )
        for init in (start, turned)
    )
    np.testing.assert_allclose(other.log_likelihood_trace_, one.log_likelihood_trace_, rtol=1e-10)
    np.testing.assert_allclose(other.class_weights_, one.class_weights_[order], rtol=1e-8)
    np.testing.assert_allclose(other.cluster_weights_, one.cluster_weights_[order], rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(other.means_, one.means_[order], rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(np.array(order)[other.labels_], one.labels_)


def test_rows_name_the_points_that_links_speak_of():
    X, _ = blobs(spread=3.0)
    rows = np.random.default_rng(0).permutation(len(X))[:60]
    must, cannot = random_links(np.random.default_rng(1), len(X), 40)
    place = {int(row): position for position, row in enumerate(rows)}
    kept = [[(place[a], place[b]) for a, b in pairs if a in place and b in place] for pairs in (must, cannot)]
    assert all(kept)
    one = LinkMixture(3, random_state=0).fit(X[rows], links=Links(must=must, cannot=cannot), rows=rows)
    other = LinkMixture(3, random_state=0).fit(X[rows], links=Links(must=kept[0], cannot=kept[1]))
    assert_same_fit(one, other, rtol=1e-12)


# Samples.


@every_form
def test_samples_follow_the_mixture(covariance_type):
    X, _ = blobs()
    start = given_start(X, 2, 2, covariance_type)
    model = LinkMixture(
        2, clusters_per_class=2, covariance_type=covariance_type, init=start, max_iter=0, random_state=0
    ).fit(X)
    n = 30_000
    drawn, classes = model.sample(n)
    assert drawn.shape == (n, 2)
    assert classes.shape == (n,)
    for m in range(2):
        weights = start["cluster_weights"][m]
        mean = weights @ start["means"][m]
        covariance = sum(
            w * (covariance_matrix(start["covariances"], covariance_type, m, k, 2) + np.outer(c - mean, c - mean))
            for k, (w, c) in enumerate(zip(weights, start["means"][m], strict=True))
        )
        rows = drawn[classes == m]
        share = start["class_weights"][m]
        assert abs(len(rows) / n - share) < 5 * np.sqrt(share * (1 - share) / n)
        spread = np.sqrt(np.diag(covariance))
        np.testing.assert_array_less(np.abs(rows.mean(axis=0) - mean), 5 * spread / np.sqrt(len(rows)))
        np.testing.assert_allclose(np.cov(rows.T), covariance, rtol=0, atol=0.05 * np.max(covariance))


def test_samples_are_repeatable():
    X, _ = blobs()
    model = LinkMixture(3, random_state=5).fit(X)
    for one, other in zip(model.sample(20), model.sample(20), strict=True):
        np.testing.assert_array_equal(one, other)
    assert model.sample()[0].shape == (1, 2)
