"""Checks that every density must pass."""

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from linkmix import engine
from linkmix.couplings import Pairwise
from linkmix.densities import Density
from linkmix.links import Links
from oracles import random_links


def leaves(value: Any) -> list[np.ndarray]:
    """All arrays inside dataclasses and dicts."""
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, dict):
        return [leaf for part in value.values() for leaf in leaves(part)]
    return [] if value is None else [np.asarray(value)]


def assert_same(found: Any, expected: Any, **tolerance: float) -> None:
    for a, b in zip(leaves(found), leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, **tolerance)


def check_protocol(density: Density, X: np.ndarray, shape: tuple[int, int] = (2, 2), seed: int = 0) -> None:
    """Sums that add up, components that can be reordered, arrays that can be given back, samples of the right kind."""
    rng = np.random.default_rng(seed)
    n_components = int(np.prod(shape))
    weights = rng.random((len(X), n_components))
    density.check(X)
    parameters = density.start(X, weights)
    whole = density.statistics(parameters, X, weights)
    cut = len(X) // 3
    both = density.statistics(parameters, X[:cut], weights[:cut]) + density.statistics(
        parameters, X[cut:], weights[cut:]
    )
    assert_same(both, whole, rtol=1e-11, atol=1e-11)
    nothing = density.statistics(parameters, X[:0], weights[:0])
    assert [leaf.shape for leaf in leaves(nothing)] == [leaf.shape for leaf in leaves(whole)]
    assert not any(leaf.any() for leaf in leaves(nothing))

    log_density = density.log_density(parameters, X)
    assert log_density.shape == (len(X), n_components)
    assert np.all(np.isfinite(log_density))
    assert density.log_density(parameters, X[:0]).shape == (0, n_components)
    order = rng.permutation(n_components)
    taken = density.take(parameters, order)
    np.testing.assert_array_equal(density.log_density(taken, X), log_density[:, order])
    np.testing.assert_allclose(density.log_prior(taken), density.log_prior(parameters), rtol=1e-12)

    arrays = density.attributes(parameters, shape)
    given = density.given(arrays, shape, X.shape[1])
    np.testing.assert_allclose(density.log_density(given, X), log_density, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(density.log_prior(given), density.log_prior(parameters), rtol=1e-12)

    drawn = density.sample(parameters, 1, 7, np.random.RandomState(0))
    assert drawn.shape == (7, X.shape[1])
    density.check(drawn)
    assert density.sample(parameters, 1, 0, np.random.RandomState(0)).shape == (0, X.shape[1])
    assert density.free_parameters(parameters, n_components, X.shape[1]) > 0


def linked_model(
    density: Density, X: np.ndarray, seed: int = 0, n_links: int = 12
) -> tuple[engine.Model, engine.Data, Links]:
    """Pairwise links that follow a hidden labelling."""
    must, cannot = random_links(np.random.default_rng(seed), len(X), n_links)
    links = Links(must=must, cannot=cannot)
    points = links.points
    bound = Pairwise().bind(links.restrict(points), len(points), 2)
    return engine.Model(density, bound), engine.Data(np.delete(X, points, axis=0), X[points]), links


def start_of(density: Density, X: np.ndarray, clusters_per_class: int, seed: int = 0) -> engine.Parameters:
    shape = (2, clusters_per_class)
    weights = np.random.default_rng(seed).dirichlet(np.ones(int(np.prod(shape))), size=len(X))
    return engine.Parameters(np.full(2, 0.5), np.full(shape, 1 / clusters_per_class), density.start(X, weights))


def check_climbs(
    density: Density, X: np.ndarray, clusters_per_class: int = 1, seed: int = 0, max_iter: int = 40
) -> engine.Fit:
    """J plus the log-prior never falls, from a poor start, with links."""
    model, data, _ = linked_model(density, X, seed)
    fit = engine.fit(model, data, start_of(density, X, clusters_per_class, seed), tol=0.0, max_iter=max_iter)
    gains = np.diff(fit.trace)
    assert np.all(gains >= -1e-9 * np.abs(fit.trace[:-1])), gains.min()
    assert gains.sum() > 1e-3, "the start was no poor one"
    objective = engine.expect(model, data, fit.parameters).log_likelihood + density.log_prior(fit.parameters.components)
    np.testing.assert_allclose(fit.trace[-1], objective, rtol=1e-12)
    # The attributes that the user sees are what was fitted.
    shape, components = fit.parameters.cluster_weights.shape, fit.parameters.components
    seen = density.given(density.attributes(components, shape), shape, X.shape[1])
    np.testing.assert_allclose(density.log_density(seen, X), density.log_density(components, X), rtol=1e-8, atol=1e-8)
    return fit


def expected_objective(density: Density, parameters: Any, X: np.ndarray, weights: np.ndarray) -> float:
    """What the M-step maximises, for a density without hidden variables."""
    return float((weights * density.log_density(parameters, X)).sum()) + density.log_prior(parameters)
