"""AutoLinkMixture as a distribution: likelihood, criteria and samples, in the units of the user."""

from functools import partial

import numpy as np
import pytest
from numpy.random import RandomState
from sklearn.datasets import load_digits, load_iris

from linkmix import AutoLinkMixture, LinkMixture, Links


def skewed():
    random = np.random.default_rng(0)
    logs = np.concatenate([random.normal(0, 0.5, (60, 3)), random.normal(3, 0.5, (60, 3))])
    return np.exp(logs), np.repeat([0, 1], 60)


def with_a_constant():
    X, y = load_iris(return_X_y=True)
    return np.column_stack([X * [1, 10, 100, 1], np.full(len(X), 7.0)]), y


SETS = {"plain": with_a_constant, "calm": skewed, "components": lambda: load_digits(n_class=4, return_X_y=True)}


@pytest.fixture(scope="module", params=SETS)
def case(request):
    X, y = SETS[request.param]()
    links = Links.from_labels(y, 20, random_state=0)
    options = {"calibrate": False, "budget": "small", "random_state": 0}
    return X, links, AutoLinkMixture(len(np.unique(y)), **options).fit(X, links=links)


def test_the_likelihood_of_points_is_the_sum_of_their_densities(case):
    X, _, model = case
    assert model.log_likelihood(X) == pytest.approx(model.score_samples(X).sum(), rel=1e-10)


def test_links_change_it_as_they_do_for_the_winner(case):
    X, links, model = case
    inside = model.best_estimator_
    view = model._view()
    gain = inside.log_likelihood(view(X), links) - inside.log_likelihood(view(X))
    assert model.log_likelihood(X, links) - model.log_likelihood(X) == pytest.approx(gain, abs=1e-6)
    assert gain != 0


def test_units_move_it_by_their_logarithm():
    X = load_iris().data
    options = {"calibrate": False, "budget": "small", "random_state": 0}
    small, large = (AutoLinkMixture(3, **options).fit(points) for points in (X, X * 8.0))
    moved = len(X) * 4 * np.log(8.0)
    assert small.log_likelihood(X) == pytest.approx(large.log_likelihood(X * 8.0) + moved, rel=1e-9)
    assert small.bic(X) == pytest.approx(large.bic(X * 8.0) - 2 * moved, rel=1e-9)


def test_criteria_count_the_parameters_of_the_winner(case):
    X, links, model = case
    J, inside, Z = model.log_likelihood(X, links), model.best_estimator_, model._view()(X)
    n_parameters = (inside.aic(Z) + 2 * inside.log_likelihood(Z)) / 2
    assert model.aic(X, links) == pytest.approx(-2 * J + 2 * n_parameters)
    assert model.bic(X, links) == pytest.approx(-2 * J + n_parameters * np.log(len(X)))


def test_samples_are_as_the_density_says(case):
    X, _, model = case
    drawn, classes = model.sample(4000)
    assert drawn.shape == (4000, X.shape[1])
    weights = model.best_estimator_.class_weights_
    assert np.bincount(classes, minlength=len(weights)) / 4000 == pytest.approx(weights, abs=0.04)
    again, _ = model.sample(4000)
    assert np.array_equal(drawn, again)
    if model.components_ is None:
        # of all distributions, the one that points come from has the largest mean log-density, minus its entropy
        other = AutoLinkMixture(len(weights), budget="small", calibrate=False, random_state=1).fit(drawn[::2])
        assert model.score(drawn[1::2]) > other.score(drawn[1::2]) - 0.05
    else:  # what the components do not tell is noise of this variance
        Z = model._view()._columns(drawn)
        basis = np.linalg.qr(model.components_[:, model.scale_ > 0].T)[0]
        left = Z - Z @ basis @ basis.T
        n_left = Z.shape[1] - basis.shape[1]
        assert np.square(left).sum() / (len(left) * n_left) == pytest.approx(model.noise_variance_, rel=0.02)


def test_scaling_and_back(case):
    X, _, model = case
    view = model._view()
    Z = RandomState(0).normal(size=view(X[:50]).shape)
    assert np.abs(view(view.back(Z, RandomState(1))) - Z).max() < 1e-8


def test_a_generator_is_a_random_state_too(tmp_path):
    X = load_iris().data
    for kind in (LinkMixture, partial(AutoLinkMixture, budget="small")):
        one, two = (kind(3, random_state=np.random.default_rng(5)).fit(X) for _ in range(2))
        assert np.array_equal(one.labels_, two.labels_)
        assert len(one.sample(3)[0]) == 3
        one.save(tmp_path / "model.linkmix")
        assert np.array_equal(type(one).load(tmp_path / "model.linkmix").predict(X), one.predict(X))


def test_a_container_of_tables_is_named_with_the_remedy():
    class AnnData:
        shape, obs, obsm = (5, 2), object(), {}

    message = r'AnnData, not a table: pass one of its tables, such as adata.obsm\["X_pca"\]'
    with pytest.raises(ValueError, match=message):
        LinkMixture(2).fit(AnnData())
