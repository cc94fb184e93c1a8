"""Many fits at once are the fits one by one."""

import numpy as np
import pytest

from linkmix import LinkMixture, fit_trials, show_versions
from linkmix.basics.errors import DegenerateCluster

SETTINGS = [
    {},
    {"covariance_type": "tied"},
    {"covariance_type": "diag"},
    {"covariance_type": "spherical"},
    {"clusters_per_class": 2, "covariance_type": "diag"},
    {"shared_clusters": True, "clusters_per_class": 2},
    {"shrinkage": 4.0},
    {"density": "student"},
]


def trials_of(settings, n_trials=5, n=40, d=2):
    """Data and starts of some trials, and the model."""
    rng = np.random.default_rng(0)
    model = LinkMixture(2, max_iter=7, tol=0, random_state=0, **settings)
    X = rng.normal(size=(n_trials, n, d)) + 4 * (rng.random((n_trials, n, 1)) < 0.5)
    starts = []
    for rows in X:
        first = model.set_params(max_iter=0).fit(rows)
        names = ["class_weights", "cluster_weights", "means", "covariances", "scales", "degrees_of_freedom"]
        names += ["pooled_covariance", "pooled_scale", "probabilities", "rates"]
        starts.append({name: getattr(first, f"{name}_") for name in names if hasattr(first, f"{name}_")})
    model.set_params(max_iter=7)
    return model, X, {name: np.stack([start[name] for start in starts]) for name in starts[0]}


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_trials_are_the_fits_one_by_one(settings):
    model, X, init = trials_of(settings)
    trials = fit_trials(model, X, init)
    for i, rows in enumerate(X):
        model.set_params(init={name: array[i] for name, array in init.items()}).fit(rows)
        assert trials.log_likelihood[i] == pytest.approx(model.log_likelihood_, rel=1e-12)
        assert trials.n_iter[i] == model.n_iter_ == 7
        np.testing.assert_allclose(trials.class_weights[i], model.class_weights_, rtol=1e-10)
        np.testing.assert_allclose(trials.cluster_weights[i], model.cluster_weights_, rtol=1e-10)
        for name, array in trials.attributes.items():
            np.testing.assert_allclose(array[i], getattr(model, f"{name}_"), rtol=1e-10, atol=1e-12)
    assert not trials.converged.any()


def test_one_data_set_from_many_starts():
    model, X, init = trials_of({})
    trials = fit_trials(model, X[0], init)
    again = fit_trials(model, np.broadcast_to(X[0], X.shape), init)
    np.testing.assert_array_equal(trials.log_likelihood, again.log_likelihood)
    assert fit_trials(model.set_params(tol=1e-3, max_iter=500), X[0], init).converged.all()


def test_a_trial_that_degenerates_does_not_take_the_others_along():
    model, X, init = trials_of({"reg_covar": 0.0})
    X[2] = 0.0
    trials = fit_trials(model, X, init)
    assert np.flatnonzero(np.isnan(trials.log_likelihood)).tolist() == [2]
    assert np.isnan(trials.attributes["means"][2]).all()
    with pytest.raises(DegenerateCluster, match="every trial"):
        fit_trials(model, 0 * X, init)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, init: (X[:3], init), "X holds 3 trials and init 5"),
        (lambda X, init: (X[:, :, 0, None, None], init), "expected .n_trials, n_samples, n_features."),
        (lambda X, init: (X[:, :1], init), "n_samples=1 is less than the 2 clusters"),
        (lambda X, init: (X, {**init, "means": init["means"][:3]}), "does not hold 5 starts"),
        (lambda X, init: (X, {**init, "means": init["means"][..., :1]}), "has shape"),
        (lambda X, init: (X, {**init, "class_weights": init["class_weights"][0]}), "a start for each trial"),
        (lambda X, init: (X, {**init, "class_weights": 2 * init["class_weights"]}), "must sum to one"),
        (lambda X, init: (X, {**init, "spam": init["means"]}), "unknown entries"),
        (lambda X, init: (np.where(X > 1, np.inf, X), init), "infinity"),
    ],
)
def test_bad_trials_are_refused(change, message):
    model, X, init = trials_of({})
    with pytest.raises(ValueError, match=message):
        fit_trials(model, *change(X, init))


def test_versions_name_the_packages_and_what_computes(capsys):
    show_versions()
    lines = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert lines["numpy"] == np.__version__
    assert lines["computes"].startswith(("native core", "NumPy"))
