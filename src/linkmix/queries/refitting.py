"""The mixture that explains the answers: the best of several starts and shapes, stopped early."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkmix import em, starts
from linkmix.arrays import Array, Floats, Ints, shares
from linkmix.auto.labelings import first_guesses
from linkmix.auto.pool import Candidate, Contest, densities, run
from linkmix.auto.ranking import by_links_structure_and_agreement
from linkmix.auto.shapes import SHAPES
from linkmix.auto.structure import graphs
from linkmix.couplings.graph import Graph, unwarned
from linkmix.densities.base import Density
from linkmix.errors import InfeasibleLinks
from linkmix.fitting import Knowledge, bind, few_threads, part
from linkmix.links import Links
from linkmix.mixture import LinkMixture
from linkmix.queries.cover import seeds
from linkmix.queries.state import Known, State, as_links, squared_distances

GUESSES = ("k-means", "k-means, one scale", "E2CP, sparse", "E2CP, sparse, one scale")
"""Labels that know of no answers, made once."""
FEW, MANY = ("1", "1, heavy tails"), ("3, shared", "3, shared, heavy tails", "6", "6, heavy tails")
"""Shapes of classes: for every start, and for what the best ones agree on where they break answers."""
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
    parameters: em.Parameters
    links: Links
    rows: Ints
    guesses: tuple[tuple[str, Ints], ...]
    disagreement: float
    probabilities: Floats


def first_fit(Z: Floats, spread: Floats, rows: Ints, n_classes: int, seed: int) -> Refit:
    """A mixture without answers."""
    guesses = tuple(first_guesses(Z[rows], spread, Links(), n_classes, GUESSES, np.random.RandomState(seed)))
    return _contest(Z, spread, rows, Links(), n_classes, list(guesses), guesses, seed)


def refit(state: State, before: Refit, spread: Floats) -> Refit:
    """Fit to all answers: from where the last fit ended, from what the answers say alone, and from the first guesses."""
    ground = state.ground
    links = usable_links(state)
    rows = np.union1d(before.rows, links.points)
    guesses = before.guesses
    if len(rows) > len(before.rows):  # rows that were not among those that may be asked about
        place = squared_distances(ground.Z[rows], ground.Z[before.rows]).argmin(axis=1)
        guesses = tuple((name, labels[place]) for name, labels in guesses)
    now = ("now", before.probabilities[rows].argmax(axis=1))
    named = [now, *by_answers(state, rows, spread), *guesses]
    return _contest(ground.Z, spread, rows, links, ground.n_classes, named, guesses, ground.seed, now[1])


def usable_links(state: State) -> Links:
    """Answers as links: certain ones free of contradictions, or all of them, each as sure as answers are."""
    if state.ground.wrong:
        return as_links(state.answers).at_most(1 - state.ground.wrong)
    return Known(state.answers).links()


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
    for graph in graphs(Z[rows], spread):
        degree = np.sqrt(np.maximum(np.asarray(graph.sum(axis=1)).ravel(), 1e-12))[:, None]
        mass = first
        for _ in range(SPREAD_STEPS):
            mass = SPREAD * (graph @ (mass / degree)) / degree + (1 - SPREAD) * first
        yield "spread answers", np.asarray(mass.argmax(axis=1))


def probabilities(density: Density[Any, Any], parameters: em.Parameters, Z: Floats) -> Floats:
    """Probability of each class for each row."""
    return shares(em.class_log_joint(density, parameters, Z))


def as_mixture(fit: Refit, X: Floats, center: Floats, scale: Floats) -> LinkMixture:
    """The refit as an estimator for the points as they came, with labels that honour the links."""
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
        coupling="graph",
        init=start,
        max_iter=0,
        tol=0.0,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # many links are inferred approximately
        return mixture.fit(X[fit.rows], links=fit.links.restrict(fit.rows))


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
    given = Knowledge(Z[rows], links)

    def models(of: Links) -> dict[str, em.Model]:
        return {
            name: bind(density, Graph(quick=True), of, n_classes, 1.0)
            for name, density in densities(Z.shape[1], missing=False).items()
        }

    with few_threads(*given.X.shape), unwarned():
        try:
            bound = models(links)
        except InfeasibleLinks:  # wrong answers: none of them is certain then
            given = Knowledge(given.X, links.at_most(0.95))
            bound = models(given.links)
        ground = Contest(given, bound, graphs(given.X, spread), part(given), n_classes)
        found = run(
            ground,
            starts_from,
            FEW,
            MANY,
            by_links_structure_and_agreement,
            seed,
            lambda results, total: results,
        )
    best = found[0]
    density = ground.model(best.shape).density
    parameters = best.parameters
    if before is not None:
        place = starts.match_labels(best.evidence.labels, before, n_classes)
        parameters = em.renumber(density, parameters, place)
    return Refit(
        density,
        parameters,
        all_links,
        rows,
        guesses,
        _disagreement(found, n_classes),
        probabilities(density, parameters, Z),
    )


def _disagreement(found: list[Candidate], n_classes: int) -> float:
    """Share of the rows that the best candidate and the best one from another start label differently."""
    best = found[0]
    other = next((one for one in found if one.finished and one.start != best.start), None)
    if other is None:
        return 0.0
    place = starts.match_labels(other.evidence.labels, best.evidence.labels, n_classes)
    return float((place[other.evidence.labels] != best.evidence.labels).mean())



