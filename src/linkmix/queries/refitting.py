"""The mixture that explains the answers: fitted from several starts, stopped by the answers."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import RandomState

from linkmix import em, starts
from linkmix.arrays import Array, Floats, Ints, shares
from linkmix.auto.ranking import weigh
from linkmix.couplings.graph import Graph, unwarned
from linkmix.densities import Gaussian
from linkmix.densities.base import Density
from linkmix.errors import DegenerateCluster, InfeasibleLinks
from linkmix.fitting import Knowledge, bind, few_threads, part
from linkmix.links import Links
from linkmix.mixture import LinkMixture
from linkmix.queries.cover import seeds
from linkmix.queries.state import Known, State, as_links, squared_distances

FIT_ROWS = 20_000
"""Rows that a refit looks at, beside those that were asked about."""
STEPS = 8
"""Steps of EM from each start: more of them lead away from what the user wants."""
FIRST_STEPS = 30
BEHIND = 3.0
"""Nats of the answers by which an iterate may be behind the best one of its path, and be taken for being later."""
STRUCTURE = 50.0
"""Nats that one unit of modularity is worth."""
REG_COVAR = 1e-4


@dataclass(frozen=True)
class Refit:
    """What came of a refit.

    Attributes
    ----------
    parameters : object
        Of the mixture, for points with columns of unit variance.
    links : Links
        Links that it was fitted with.
    rows : ndarray of shape (n_rows,)
        Rows that it was fitted to.
    disagreement : float
        Share of these rows on which the starts disagree.
    probabilities : ndarray of shape (n_samples, n_classes)
        Of all rows.
    """

    density: Density[Any, Any]
    parameters: em.Parameters
    links: Links
    rows: Ints
    disagreement: float
    probabilities: Floats


def first_fit(Z: Floats, rows: Ints, n_classes: int, seed: int) -> Refit:
    """A mixture without links: the best of a few starts by k-means."""
    from sklearn.cluster import KMeans

    some = Z[rows]
    density = _density(Z.shape[1])
    labels = KMeans(n_classes, n_init=10, random_state=seed).fit(some).labels_.astype(np.int64)
    shape = starts.Shape(n_classes)
    model, data = _bound(density, some, Links(), n_classes)
    with few_threads(*some.shape):
        start = starts.from_classes(density, some, labels, shape, RandomState(seed))
        found = em.fit(model, data, start, tol=1e-5, max_iter=FIRST_STEPS).parameters
    return Refit(density, found, Links(), rows, 0.0, probabilities(density, found, Z))


def refit(state: State, before: Refit) -> Refit:
    """Fit to all answers, from where the last fit ended and from what the answers say alone."""
    ground = state.ground
    n_classes = ground.n_classes
    all_links = usable_links(state)
    rows = np.union1d(before.rows, all_links.points)
    Z, links = ground.Z[rows], all_links.restrict(rows)
    density = before.density
    try:
        model, data = _bound(density, Z, links, n_classes)
    except InfeasibleLinks:  # wrong answers: none of them is certain then
        links = links.at_most(0.95)
        model, data = _bound(density, Z, links, n_classes)
    shape = starts.Shape(n_classes)
    labels = by_answers(state, rows, before)
    with few_threads(*Z.shape):
        paths = [before.parameters, starts.from_classes(density, Z, labels, shape, RandomState(ground.seed))]
        found = [_latest_good(model, data, density, path, Z, links) for path in paths]
    ends = [end for end in found if end is not None]
    if not ends:
        return replace(before, links=all_links)
    best = max(ends, key=lambda end: end[1])
    guesses = [em.most_probable_classes(density, end[0], Z) for end in ends]
    apart = 0.0
    if len(ends) > 1:
        place = starts.match_labels(guesses[1], guesses[0], n_classes)
        apart = float((place[guesses[1]] != guesses[0]).mean())
    winner = _numbered(density, best[0], Z, before)
    return Refit(density, winner, all_links, rows, apart, probabilities(density, winner, ground.Z))


def usable_links(state: State) -> Links:
    """Answers as links: certain ones free of contradictions, or all of them, each as sure as answers are."""
    if state.ground.wrong:
        return as_links(state.answers).at_most(1 - state.ground.wrong)
    return Known(state.answers).links()


def by_answers(state: State, rows: Ints, before: Refit) -> Ints:
    """Labels by the answers alone: each row to the class of its nearest answered row."""
    of, chosen = seeds(state)
    Z = state.ground.Z
    home = {g: m for m, g in enumerate(chosen)}
    answered = [row for row, g in of.items() if g in home]
    if not answered:
        return np.asarray(em.most_probable_classes(before.density, before.parameters, Z[rows]))
    known = np.array([home[of[row]] for row in answered])
    return np.asarray(known[squared_distances(Z[rows], Z[answered]).argmin(axis=1)])


def probabilities(density: Density[Any, Any], parameters: em.Parameters, Z: Floats) -> Floats:
    """Probability of each class for each row."""
    return shares(em.class_log_joint(density, parameters, Z))


def as_mixture(fit: Refit, X: Floats, center: Floats, scale: Floats) -> LinkMixture:
    """The refit as an estimator for the points as they came, with labels that honour the links."""
    parameters = fit.parameters
    n_classes = len(parameters.class_weights)
    arrays = fit.density.attributes(parameters.components, (n_classes, 1))
    start: dict[str, Array] = {
        "class_weights": parameters.class_weights,
        "cluster_weights": parameters.cluster_weights,
        "means": arrays["means"] * scale + center,
    }
    for name in ("covariances", "scales"):
        if name in arrays:
            start[name] = arrays[name] * np.outer(scale, scale)
    if "degrees_of_freedom" in arrays:
        start["degrees_of_freedom"] = arrays["degrees_of_freedom"]
    mixture = LinkMixture(
        n_classes,
        density="student" if "scales" in start else "gaussian",
        coupling="graph",
        init=start,
        max_iter=0,
        tol=0.0,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # many links are inferred approximately
        return mixture.fit(X[fit.rows], links=fit.links.restrict(fit.rows))


def _density(n_features: int) -> Density[Any, Any]:
    return Gaussian(reg_covar=REG_COVAR, shrinkage=n_features + 2.0)


def _bound(density: Density[Any, Any], Z: Floats, links: Links, n_classes: int) -> tuple[em.Model, em.Data]:
    with unwarned():
        return bind(density, Graph(quick=True), links, n_classes, 1.0), part(Knowledge(Z, links))


def _latest_good(
    model: em.Model, data: em.Data, density: Density[Any, Any], start: em.Parameters, Z: Floats, links: Links
) -> tuple[em.Parameters, float] | None:
    """The latest iterate that explains the answers about as well as the best one, and how well it does."""
    path = []
    parameters = start
    linked = Z[links.points]
    within = links.restrict(links.points)
    try:
        for _ in range(STEPS):
            with unwarned():
                parameters = em.fit(model, data, parameters, tol=0.0, max_iter=1).parameters
            path.append((parameters, weigh(probabilities(density, parameters, linked), within).log_probability))
    except (DegenerateCluster, InfeasibleLinks):
        pass
    if not path:
        return None
    best = max(value for _, value in path)
    return next(one for one in reversed(path) if one[1] >= best - BEHIND)


def _numbered(density: Density[Any, Any], parameters: em.Parameters, Z: Floats, before: Refit) -> em.Parameters:
    """Classes with the numbers that they had."""
    now = em.most_probable_classes(density, parameters, Z)
    then = em.most_probable_classes(density, before.parameters, Z)
    return em.renumber(density, parameters, starts.match_labels(now, then, len(parameters.class_weights)))
