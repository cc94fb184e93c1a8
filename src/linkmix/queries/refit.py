"""The mixture that explains the answers: the best of several starts and shapes, stopped early."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkmix import engine
from linkmix.basics.arrays import Array, Floats, Ints, shares
from linkmix.basics.errors import InfeasibleLinks
from linkmix.couplings.graph import Graph, unwarned
from linkmix.couplings.review import REVIEW, links_to_review
from linkmix.data.scaling import PLAIN
from linkmix.densities.base import Density
from linkmix.engine import starts
from linkmix.engine.fitting import Knowledge, bind, few_threads, part
from linkmix.links import Links
from linkmix.mixture import LinkMixture
from linkmix.queries.cover import seeds
from linkmix.queries.doubts import believed_links, settled
from linkmix.queries.state import Ground, State, squared_distances
from linkmix.search.budgets import Budget
from linkmix.search.contest import Candidate, Contest, View, densities, run
from linkmix.search.guesses import first_guesses
from linkmix.search.structure import graphs

BUDGET = Budget(
    guesses=("k-means", "k-means, one scale", "E2CP, sparse", "E2CP, sparse, one scale"),
    shapes=("1", "1, heavy tails"),
    more_shapes=("3, shared", "3, shared, heavy tails", "6", "6, heavy tails"),
    n_points=2000,
)
"""Labels that know of no answers, made once; shapes of classes for every start, and for what the best ones agree on."""
BELIEVED = 0.95
"""Confidence of an answer, where answers turn out to contradict each other."""
SMALLEST = 1e-12
"""No class of a row is less probable than this when rows that belong together vote."""
SPREAD, SPREAD_STEPS = 0.95, 50
"""Share of a label that goes on to the neighbours, and how often it does."""


@dataclass(frozen=True)
class Refit:
    """What came of a refit.

    Attributes
    ----------
    density : Density
    parameters : Parameters
        Of the mixture, for points with columns of unit variance.
    links : Links
        Links that it was fitted with.
    rows : ndarray of shape (n_rows,)
        Rows that it was fitted to.
    guesses : tuple of (name, labels)
        Labels of these rows that know of no answers.
    disagreement : float
        Share of these rows on which the two best starts disagree.
    probabilities : ndarray of shape (n_samples, n_classes)
        Of all rows.
    """

    density: Density[Any, Any]
    parameters: engine.Parameters
    links: Links
    rows: Ints
    guesses: tuple[tuple[str, Ints], ...]
    disagreement: float
    probabilities: Floats


def first_fit(ground: Ground, spread: Floats, labels: Ints | None = None) -> Refit:
    """A mixture without answers, also from labels that there are already."""
    Z, rows, n_classes = ground.Z, ground.candidates, ground.n_classes
    random = np.random.RandomState(ground.seed)
    guesses = tuple(first_guesses(Z[rows], Z[rows] * spread, Links(), n_classes, BUDGET.guesses, random))
    if labels is not None:
        guesses = (("given", labels[rows]), *guesses)
    return _contest(Z, spread, rows, Links(), n_classes, list(guesses), guesses, ground.seed)


def refit(state: State, before: Refit, spread: Floats) -> Refit:
    """Fit to all answers: from where the last fit ended, from the answers alone, and from the first guesses."""
    ground = state.ground
    links = believed_links(state)
    state, _ = settled(state)
    rows = np.union1d(before.rows, links.points)
    guesses = before.guesses
    if len(rows) > len(before.rows):  # rows that were not among those that may be asked about
        place = squared_distances(ground.Z[rows], ground.Z[before.rows]).argmin(axis=1)
        guesses = tuple((name, labels[place]) for name, labels in guesses)
    now = ("now", before.probabilities[rows].argmax(axis=1))
    named = [now, *by_answers(state, rows, spread), *guesses]
    return _contest(ground.Z, spread, rows, links, ground.n_classes, named, guesses, ground.seed, now[1])


def by_answers(state: State, rows: Ints, spread: Floats) -> Iterator[tuple[str, Ints]]:
    """Labels by the answers alone: of the nearest answered row, and spread from neighbour to neighbour."""
    of, chosen = seeds(state)
    Z = state.ground.Z
    home = {g: m for m, g in enumerate(chosen)}
    answered = np.array([row for row, g in of.items() if g in home], dtype=np.int64)
    if len(home) < state.ground.n_classes:
        return
    known = np.array([home[of[row]] for row in answered.tolist()])
    yield "nearest answer", known[squared_distances(Z[rows], Z[answered]).argmin(axis=1)]
    first = np.zeros((len(rows), len(chosen)))
    at = np.searchsorted(rows, answered)
    inside = rows[np.minimum(at, len(rows) - 1)] == answered
    first[at[inside], known[inside]] = 1.0
    for graph in graphs([Z[rows]], Z[rows] * spread):
        degree = np.sqrt(np.maximum(np.asarray(graph.sum(axis=1)).ravel(), 1e-12))[:, None]
        mass = first
        for _ in range(SPREAD_STEPS):
            mass = SPREAD * (graph @ (mass / degree)) / degree + (1 - SPREAD) * first
        yield "spread answers", np.asarray(mass.argmax(axis=1))


def probabilities(density: Density[Any, Any], parameters: engine.Parameters, Z: Floats) -> Floats:
    """Probability of each class for each row."""
    return shares(engine.class_log_joint(density, parameters, Z))


def as_mixture(fit: Refit, X: Floats, center: Floats, scale: Floats) -> LinkMixture:
    """The refit as an estimator for the points as they came. The links have had their say already."""
    parameters = fit.parameters
    shared = parameters.shared_clusters
    n_classes, n_clusters = parameters.cluster_weights.shape
    per_class = n_clusters // n_classes if shared else n_clusters
    arrays = fit.density.attributes(parameters.components, (n_classes, per_class))
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
        clusters_per_class=per_class,
        shared_clusters=shared,
        density="student" if "scales" in start else "gaussian",
        coupling="none",
        init=start,
        max_iter=0,
        random_state=0,
    )
    return mixture.fit(X[fit.rows])


def linked_labels(fit: Refit) -> Ints:
    """Class of each row; rows that answers hold together get the class that is most probable for all of them."""
    labels: Ints = fit.probabilities.argmax(axis=1)
    points = fit.links.points
    if len(points):
        must = Links(fit.links.must).restrict(points)
        group = must.chunklets(len(points))
        log_p = np.log(np.maximum(fit.probabilities[points], SMALLEST))
        total = np.stack([np.bincount(group, weights=column) for column in log_p.T], axis=1)
        labels[points] = total.argmax(axis=1)[group]
    return labels


def doubtful_links(fit: Refit, Z: Floats) -> Array:
    """Links with the probability that they are wrong, the most doubtful first."""
    points = fit.links.points
    if not len(points):
        return np.empty(0, dtype=REVIEW)
    weights = fit.parameters.class_weights
    log_density = engine.class_log_joint(fit.density, fit.parameters, Z[points]) - np.log(weights)
    table = links_to_review(fit.links.restrict(points), log_density, weights)
    table["a"], table["b"] = points[table["a"]], points[table["b"]]
    return table


def _contest(
    Z: Floats,
    spread: Floats,
    rows: Ints,
    all_links: Links,
    n_classes: int,
    starts_from: list[tuple[str, Ints]],
    guesses: tuple[tuple[str, Ints], ...],
    seed: int,
    before: Ints | None = None,
) -> Refit:
    """The best of all starts and shapes."""
    links = all_links.restrict(rows)
    try:
        ground, found = _ranked(Knowledge(Z[rows], links), spread, n_classes, starts_from, seed)
    except InfeasibleLinks:  # some answers are wrong: none of them is certain then
        ground, found = _ranked(Knowledge(Z[rows], links.at_most(BELIEVED)), spread, n_classes, starts_from, seed)
    best = found[0]
    density = ground.model(best.shape).density
    parameters = best.parameters
    if before is not None:
        place = starts.match_labels(best.evidence.labels, before, n_classes)
        parameters = engine.renumber(density, parameters, place)
    return Refit(
        density,
        parameters,
        all_links,
        rows,
        guesses,
        _disagreement(found, n_classes),
        probabilities(density, parameters, Z),
    )


def _ranked(
    given: Knowledge, spread: Floats, n_classes: int, starts_from: list[tuple[str, Ints]], seed: int
) -> tuple[Contest, list[Candidate]]:
    """All candidates, the best first."""
    with few_threads(*given.X.shape), unwarned():
        models = {
            name: bind(density, Graph(quick=True), given.links, n_classes, 1.0)
            for name, density in densities(given.X.shape[1]).items()
        }
        views = {PLAIN: View(given.X, part(given))}
        ground = Contest(views, given.links, None, models, graphs([given.X], given.X * spread), n_classes)
        guesses = [(PLAIN, name, labels) for name, labels in starts_from]
        return ground, run(ground, guesses, BUDGET, seed, lambda results, total: results)


def _disagreement(found: list[Candidate], n_classes: int) -> float:
    """Share of the rows that the best candidate and the best one from another start label differently."""
    best = found[0]
    other = next((one for one in found if one.finished and one.start != best.start), None)
    if other is None:
        return 0.0
    place = starts.match_labels(other.evidence.labels, best.evidence.labels, n_classes)
    return float((place[other.evidence.labels] != best.evidence.labels).mean())
