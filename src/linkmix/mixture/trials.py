"""Many fits of one model at once: data sets of the same shape, each with its own start.

Checks are made once for all of them, and each fit is one call of the native core. Made for studies of starts or draws,
where a single fit takes less time than its checks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkmix import engine
from linkmix.basics.arrays import Array, Floats
from linkmix.basics.errors import DegenerateCluster
from linkmix.engine import starts
from linkmix.engine.fitting import bind, few_threads
from linkmix.links.checks import NO_LINKS
from linkmix.mixture.door import let_in
from linkmix.mixture.link_mixture import LinkMixture
from linkmix.mixture.settings import accelerates, coupling_of, density_of, door_of, shape_of


@dataclass(frozen=True)
class Trials:
    """The results of T fits, along the first axis of each array.

    Attributes
    ----------
    class_weights : ndarray of shape (T, n_classes)
    cluster_weights : ndarray of shape (T, n_classes, clusters_per_class)
    attributes : dict of ndarray
        The arrays of the density, such as ``means`` (T, n_classes, clusters_per_class, n_features).
    log_likelihood : ndarray of shape (T,)
        NaN where a cluster degenerated; the other arrays then hold NaN as well.
    n_iter : ndarray of shape (T,)
    converged : ndarray of bool, shape (T,)
    """

    class_weights: Floats
    cluster_weights: Floats
    attributes: dict[str, Array]
    log_likelihood: Floats
    n_iter: Array
    converged: Array


def fit_trials(model: LinkMixture, X: ArrayLike, init: Mapping[str, ArrayLike]) -> Trials:
    """Fit a model without links to many data sets, or to one from many starts.

    Parameters
    ----------
    model : LinkMixture
        Its settings are used; it is not fitted itself.
    X : array-like of shape (T, n_samples, n_features), or (n_samples, n_features)
        The points of each trial, or of all of them.
    init : mapping
        The starts: arrays as in ``LinkMixture(init=...)``, with the trials along their first axis.

    Returns
    -------
    Trials
        Arrays with one entry for each trial.

    Examples
    --------
    >>> import numpy as np
    >>> from linkmix import LinkMixture
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> starts = {
    ...     "class_weights": np.full((2, 2), 0.5),
    ...     "cluster_weights": np.ones((2, 2, 1)),
    ...     "means": np.array([[[[0.0]], [[5.0]]], [[[5.0]], [[0.0]]]]),
    ...     "covariances": np.ones((2, 2, 1, 1, 1)),
    ... }
    >>> trials = fit_trials(LinkMixture(2), X, starts)
    >>> trials.attributes["means"][:, :, 0, 0].round(2)
    array([[0.1, 5.1],
           [5.1, 0.1]])
    """
    model.check_settings()
    shape = shape_of(model)
    weights = np.asarray(init.get("class_weights", ()))
    n_trials = len(weights)
    if weights.ndim != 2 or not n_trials:
        raise ValueError(
            f"init['class_weights'] has shape {weights.shape}, expected (n_trials, {shape.n_classes}): give a start "
            "for each trial"
        )
    given: Array = np.asarray(X)
    if given.ndim not in (2, 3):
        raise ValueError(f"X has shape {given.shape}, expected (n_trials, n_samples, n_features): give points as rows")
    if given.ndim == 3 and len(given) != n_trials:
        raise ValueError(f"X holds {len(given)} trials and init {n_trials}: give the same number of both")
    n, d = (int(size) for size in given.shape[-2:])
    if n < shape.n_components:
        raise ValueError(f"n_samples={n} is less than the {shape.n_components} clusters asked for: pass more points")
    density = density_of(model, d)
    rows, _ = let_in(model, given.reshape(-1, d), door_of(model, density), reset=True)
    assert isinstance(rows, np.ndarray)
    points: Array = rows.reshape(-1, n, d)
    firsts = starts.given_starts(density, init, shape, d, n_trials)
    bound = engine.Model(density, bind(coupling_of(model), NO_LINKS, model.n_classes), model.link_weight)
    settings: dict[str, Any] = {"tol": model.tol, "max_iter": model.max_iter, "accelerate": accelerates(model, n, d)}
    results: list[engine.Fit | None] = []
    with few_threads(n, d):
        for trial, start in enumerate(firsts):
            own = points[trial % len(points)]
            try:
                fit = engine.fit(bound, engine.Data(own, own[:0]), start, **settings)
            except DegenerateCluster:
                results.append(None)
            else:
                results.append(fit)
    return _stacked(results, density, shape)


def _stacked(results: list[engine.Fit | None], density: Any, shape: starts.Shape) -> Trials:
    """One array of each kind."""
    done = next((fit for fit in results if fit is not None), None)
    if done is None:
        raise DegenerateCluster("a cluster degenerated in every trial: raise reg_covar or ask for fewer clusters")
    layout = shape.layout

    def arrays(fit: engine.Fit) -> dict[str, Array]:
        parameters = fit.parameters
        weights = {"class_weights": parameters.class_weights, "cluster_weights": parameters.cluster_weights}
        return {**weights, **density.attributes(parameters.components, layout)}

    missing = {name: np.full(np.shape(array), np.nan) for name, array in arrays(done).items()}
    rows = [missing if fit is None else arrays(fit) for fit in results]
    stacked = {name: np.stack([row[name] for row in rows]) for name in missing}
    return Trials(
        stacked.pop("class_weights"),
        stacked.pop("cluster_weights"),
        stacked,
        np.array([np.nan if fit is None else fit.log_likelihood for fit in results]),
        np.array([0 if fit is None else len(fit.trace) - 1 for fit in results]),
        np.array([fit is not None and fit.converged for fit in results]),
    )
