"""Reference values from the folder ``reference`` in LINKMIX_DATA; skipped if the variable is not set."""

import numpy as np
import pytest

from linkmix import LinkMixture, Links, engine
from linkmix.couplings import Pairwise
from linkmix.couplings.class_weights import solve_class_weights
from linkmix.densities import FORMS, Gaussian


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("reference", ["gmpr_onestep_K2"], indirect=True)
def test_one_step_of_the_papers_model(reference):
    X, links = reference["X"], Links(must=reference["ML"], cannot=reference["CL"])
    settings = {
        "n_classes": 3,
        "clusters_per_class": 2,
        "init": {
            "class_weights": reference["alpha0"],
            "cluster_weights": reference["pi0"],
            "means": reference["mu0"],
            "covariances": reference["Sigma0"],
        },
        "reg_covar": 0,
        "tol": 0,
    }
    start = LinkMixture(**settings, max_iter=0).fit(X, links=links)
    assert_close(start.log_likelihood_, reference["loglik"])
    free = np.setdiff1d(np.arange(len(X)), links.points)
    posterior = reference["ell"][free].sum(axis=2)
    assert_close(start.predict_proba(X[free]), posterior)

    model = LinkMixture(**settings, max_iter=1).fit(X, links=links)
    assert_close(model.log_likelihood_trace_[0], reference["loglik"])
    assert_close(model.class_weights_, reference["alpha1"])
    assert_close(model.cluster_weights_, reference["pi1"])
    assert_close(model.means_, reference["mu1"])
    assert_close(model.covariances_, reference["Sigma1"])


@pytest.mark.parametrize("reference", ["gmpr_onestep_K2"], indirect=True)
def test_posteriors_of_the_papers_model(reference):
    """Responsibilities of the free points, and of both ends of each link."""
    seen = []

    class Recording(Gaussian):
        def statistics(self, parameters, X, weights):
            seen.append(weights.reshape(-1, 3, 2))
            return super().statistics(parameters, X, weights)

    X, links = reference["X"], Links(must=reference["ML"], cannot=reference["CL"])
    points = links.points
    free = np.setdiff1d(np.arange(len(X)), points)
    density = Recording(FORMS["full"], 0.0)
    arrays = {"means": reference["mu0"], "covariances": reference["Sigma0"]}
    parameters = engine.Parameters(reference["alpha0"], reference["pi0"], density.given(arrays, (3, 2), 2))
    coupling = Pairwise().bind(links.restrict(points), len(points), 3)
    expectation = engine.expect(engine.Model(density, coupling), engine.Data(X[free], X[points]), parameters)

    linked = np.zeros((len(X), 3, 2))
    for pairs, first, second in (("ML", "s_i", "s_j"), ("CL", "d_a", "d_b")):
        np.add.at(linked, reference[pairs][:, 0], reference[first])
        np.add.at(linked, reference[pairs][:, 1], reference[second])
    assert_close(np.concatenate(seen), np.concatenate([linked[points], reference["ell"][free]]))
    assert_close(expectation.log_likelihood, reference["loglik"])
    assert_close(expectation.free_class_counts + expectation.links.class_counts, reference["c"])


@pytest.mark.parametrize("reference", ["gmpr_vs_gmmec_disjoint"], indirect=True)
@pytest.mark.parametrize(("linked_points", "name"), [("apart", "gmpr_excl"), ("both", "gmpr_incl")])
def test_trace_of_the_papers_model(reference, linked_points, name):
    trace = reference[f"{name}_ll"]
    model = LinkMixture(
        3,
        linked_points=linked_points,
        init={
            "class_weights": reference["alpha0"],
            "cluster_weights": np.ones((3, 1)),
            "means": reference["mu0"][:, None],
            "covariances": reference["Sigma0"][:, None],
        },
        reg_covar=0,
        tol=0,
        max_iter=len(trace) - 1,
    ).fit(reference["X"], links=Links(must=reference["ML"], cannot=reference["CL"]))
    assert_close(model.log_likelihood_trace_, trace)
    assert_close(model.class_weights_, reference[f"{name}_alpha"])
    assert_close(model.means_[:, 0], reference[f"{name}_mu"])
    assert_close(model.covariances_[:, 0], reference[f"{name}_Sigma"])


@pytest.mark.parametrize("reference", ["alpha_mstep"], indirect=True)
@pytest.mark.parametrize("case", [0, 1, 2])
def test_class_weights(reference, case):
    found = solve_class_weights(reference[f"c{case}"], reference[f"nC{case}"])
    np.testing.assert_allclose(found, reference[f"alpha{case}"], rtol=0, atol=1e-8)
