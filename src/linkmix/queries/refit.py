"""Fits the mixture to the answers: a contest between several starts and shapes, stopped early."""

import sys
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkmix import engine
from linkmix.basics.arrays import Array, Floats, Ints, shares
from linkmix.basics.errors import InfeasibleLinks
from linkmix.basics.progress import LOG
from linkmix.columns import Recipe
from linkmix.couplings.observed import labels_that_hold
from linkmix.couplings.review import REVIEW
from linkmix.data.scaling import Scaling
from linkmix.densities import Contaminated, Density
from linkmix.engine import starts
from linkmix.engine.fitting import Knowledge
from linkmix.links import Links
from linkmix.mixture import LinkMixture
from linkmix.mixture.calibration import level, rows_to_measure, temperatures
from linkmix.mixture.door import SeenColumns
from linkmix.mixture.fitted import Fitted, review_links
from linkmix.queries.cover import seeds
from linkmix.queries.door import Prepared
from linkmix.queries.doubts import believed_links, settled
from linkmix.queries.number import first_number, number_by_answers, with_number
from linkmix.queries.state import Ground, RowProbabilities, State, squared_distances
from linkmix.search import AutoLinkMixture, Budget
from linkmix.search.contest import Candidate, Contest
from linkmix.search.guesses import beside_categories
from linkmix.search.left_out import mean_agreement
from linkmix.search.ranking import Evidence
from linkmix.search.winner import Found, contest_of

BUDGET = Budget(
    guesses=("k-means", "k-means, one scale", "E2CP, sparse", "E2CP, sparse, one scale"),
    shapes=("1", "1, heavy tails", "3, shared"),
    more_shapes=("3, shared", "3, shared, heavy tails", "6", "6, heavy tails"),
    n_points=sys.maxsize,
)
"""First guesses, made once without the answers; shapes for every start, and for the consensus of the best ones."""
SPREAD = ("E2CP", "E2CP, one scale", "E2CP, sparse", "E2CP, sparse, one scale")
"""Guesses with answers that may be wrong. By the last of 160 questions to pendigits, draws 0 and 1, a tenth wrong, with
starts and shapes as they are .811 and .909 (adjusted Rand index); with `by_answers` as well .732 on draw 0."""
Start = tuple[str, str, Ints]
"""Name of the view, name of the guess, and its labels."""
NO_LINKS = Links()
NO_ROWS = np.empty(0, dtype=np.int64)
LEAST_LIKELY = 1e-12
"""Lower bound on the probability of a class when must-linked rows get a common label."""
STAYS = 1000.0
"""If cannot-links force rows to leave a class, about so many others leave before one that stands for the class does."""


@dataclass(frozen=True, eq=False)
class Refit:
    """The result of a refit.

    Attributes
    ----------
    density : Density
    parameters : Parameters
        Parameters of the mixture, for scaled points.
    scaling : Scaling
        How points are scaled.
    links : Links
        Links from the answers.
    rows : ndarray of shape (n_rows,)
        Rows that it was fitted to.
    guesses : tuple of (view, name, labels)
        Labels of these rows, made without the answers, for each way in which mixtures look at the points.
    disagreement : float
        Share of these rows on which the two best starts disagree.
    classes : ndarray of shape (n_samples,)
        Most probable class of every row, from the row alone.
    log_joint : ndarray of shape (n_rows, n_classes)
        Log of class weight times density of the rows that it was fitted to. All rows may be too many for such a table.
    temperature : float
        What it is divided by for honest probabilities. Answers to questions are no random sample of all pairs, so it
        rests on how well the candidates agree.
    leaderboard : structured ndarray
        All candidates, the best first.
    nowhere : ndarray of shape (n_nowhere,)
        Rows that are known to belong to no class.
    """

    density: Density[Any, Any]
    parameters: engine.Parameters
    scaling: Scaling
    links: Links
    rows: Ints
    guesses: tuple[Start, ...]
    disagreement: float
    classes: Ints
    log_joint: Floats
    temperature: float
    leaderboard: Array
    nowhere: Ints

    @property
    def log_likelihood(self) -> float:
        """J, when it was fitted."""
        return float(self.leaderboard["log_likelihood"][0])

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.parameters.class_weights)

    @property
    def mixture(self) -> engine.Mixture:
        """The mixture, for points in their own units."""
        return engine.Mixture(self.density, self.parameters, self.scaling)

    def probabilities(self, X: Floats) -> RowProbabilities:
        """Class probabilities of rows by the mixture as it is. Questions are chosen by these."""
        return RowProbabilities(self.rows, shares(self.log_joint), lambda rows: self.mixture.probabilities(X[rows]))

    def honest_probabilities(self, X: Floats) -> Floats:
        """Calibrated class probabilities of all rows, for people."""
        return self.mixture.probabilities(X, self.temperature)


Snapshot = tuple[State, Refit, Prepared]
"""Everything that a refit needs."""


def first_fit(ground: Ground, points: Prepared, labels: Ints | None = None, links: Links = NO_LINKS) -> Refit:
    """The first model, fitted without answers; labels that exist already are one more start.

    If the number of classes is not known, it is that of these labels, or the points and the given links decide.
    """
    rows = ground.candidates
    contest = _contest(ground, rows, points, NO_LINKS, NO_ROWS)
    if ground.unknown:
        if labels is None:
            n_classes = first_number(contest, links.restrict(rows))
        else:
            names, labels = np.unique(labels, return_inverse=True)
            n_classes = len(names)
        ground, contest = ground.with_classes(n_classes, True), contest.with_classes(n_classes)
    guesses = tuple(contest.guesses())
    if labels is not None:
        guesses = (*((view, "given", labels[rows]) for view in contest.views), *guesses)
    return _best(contest, guesses, ground, rows, points, NO_LINKS, guesses, NO_ROWS)


def refit(state: State, before: Refit, points: Prepared) -> Refit:
    """Fit to all answers: from where the last fit ended, from the answers alone, and from the first guesses.

    Where answers may be wrong, guesses with the answers as links take the place of the answers alone. The number of
    classes is that of the state, unless the answers need more, or it is not known.
    """
    links = believed_links(state, state.ground.settings.trust)
    believed, _ = settled(state)
    n_classes = number_by_answers(believed)
    ground = state.ground.with_classes(n_classes, state.ground.unknown)
    believed = replace(believed, ground=ground)
    rows = np.union1d(before.rows, links.points)
    guesses = before.guesses
    if len(rows) > len(before.rows):  # linked rows that were not among the candidates
        place = squared_distances(ground.Z[rows], ground.Z[before.rows]).argmin(axis=1)
        guesses = tuple((view, name, labels[place]) for view, name, labels in guesses)
    now, nowhere = before.classes[rows], np.array(sorted(state.nowhere), dtype=np.int64)
    try:
        contest = _contest(ground, rows, points, links, nowhere)
    except InfeasibleLinks:  # some answers are wrong, so none is taken as certain
        contest = _contest(ground, rows, points, links.at_most(ground.settings.believed), nowhere)
    start = now
    if n_classes != before.n_classes:
        start = with_number(now, believed, rows, n_classes)
        guesses = tuple(contest.given(NO_LINKS, None).guesses())
    told = [("now", start), *([] if ground.wrong else by_answers(believed, rows, contest.graphs))]
    begin = [(view, name, labels) for view in contest.views for name, labels in told] + [*guesses]
    if ground.wrong:
        begin += by_links(contest)
    try:
        return _best(contest, begin, ground, rows, points, links, guesses, nowhere, before)
    except InfeasibleLinks:
        contest = _contest(ground, rows, points, links.at_most(ground.settings.believed), nowhere)
        return _best(contest, begin, ground, rows, points, links, guesses, nowhere, before)


def by_answers(state: State, rows: Ints, graphs: list[Any]) -> Iterator[tuple[str, Ints]]:
    """Labels from the answers alone: those of the nearest answered row, and by label spreading over each graph."""
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
    for graph in graphs:
        degree = np.sqrt(np.maximum(np.asarray(graph.sum(axis=1)).ravel(), 1e-12))[:, None]
        mass, share = first, state.ground.settings.spread
        for _ in range(state.ground.settings.spread_steps):
            mass = share * (graph @ (mass / degree)) / degree + (1 - share) * first
        yield "spread answers", np.asarray(mass.argmax(axis=1))


def by_links(contest: Contest) -> list[Start]:
    """Guesses made with answers as links: a wrong one is outvoted by the neighbours of its rows."""
    names = beside_categories(SPREAD, linked=True) if contest.levels else SPREAD
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a guess may stop early
        made = ((view, name, contest.guess_of(view, name)) for view in contest.views for name in names)
        return [(view, name, labels) for view, name, labels in made if labels is not None]


def as_estimator(fit: Refit, labels: Ints, doubtful: Array, recipe: Recipe | None = None) -> AutoLinkMixture:
    """The refit as an estimator for points in their own units, or for tables that a recipe codes."""
    parameters, scaling = fit.parameters, fit.scaling
    n_classes, n_clusters = parameters.cluster_weights.shape
    shape = starts.Shape(
        n_classes, n_clusters // n_classes if parameters.shared_clusters else n_clusters, parameters.shared_clusters
    )
    mixture = LinkMixture(
        n_classes,
        clusters_per_class=shape.clusters_per_class,
        shared_clusters=shape.shared_clusters,
        density=fit.density,
        coupling="graph",
        random_state=0,
    )
    done = engine.Fit(parameters, fit.log_likelihood, np.array([fit.log_likelihood]), converged=False)
    used = SeenColumns(scaling(np.zeros((1, len(scaling.scale)))).shape[1])
    mixture.take_over(Fitted(fit.density, shape, done, labels, doubtful, {}), used)
    estimator = AutoLinkMixture(n_classes, noise=isinstance(fit.density, Contaminated), random_state=0)
    found = Found(
        scaling, [mixture], [np.arange(n_classes)], np.array([fit.temperature]), None, fit.leaderboard, doubtful, labels
    )
    columns = SeenColumns(len(scaling.scale)) if recipe is None else SeenColumns.of(recipe)
    estimator.take_over(found, columns, recipe=recipe)
    return estimator


def labels_with_answers(fit: Refit, X: Floats, placed: Collection[int] = ()) -> Ints:
    """Class of each row; must-linked rows get the class that is most probable for all of them.

    If cannot-links would be broken by that, linked rows get the labels that are most probable for all of them jointly.
    Rows that stand for their classes (``placed``) stay: those that differ from them leave, also if they are more. With
    noise, -1 for rows of no class. Who says that a row is like another one has said that it has a class, whatever the
    model says; rows that stand for a class have one, too.
    """
    labels = fit.classes.copy()
    points = fit.links.points
    if len(points):
        must = Links(fit.links.must).restrict(points)
        group = must.chunklets(len(points))
        log_p = np.log(np.maximum(shares(fit.log_joint[np.searchsorted(fit.rows, points)]), LEAST_LIKELY))
        total = np.stack([np.bincount(group, weights=column) for column in log_p.T], axis=1)
        labels[points] = total.argmax(axis=1)[group]
        weights = fit.parameters.class_weights
        told = fit.links.restrict(points)
        log_p[np.isin(points, [*placed])] *= STAYS
        with suppress(InfeasibleLinks):  # more groups are apart than there are classes
            labels[points] = labels_that_hold(labels[points], told, log_p - np.log(weights), weights)
    mixture = engine.mixture_of(fit.density, fit.parameters, fit.scaling)
    if mixture.background is not None:
        is_noise = mixture.noise_log_odds(X) > 0
        is_noise[[*placed, *fit.links.must.ravel()]] = False
        labels[is_noise] = engine.NOISE
        labels[fit.nowhere] = engine.NOISE
    return labels


def doubtful_links(fit: Refit, X: Floats) -> Array:
    """Links with the probability that they are wrong, the most doubtful first."""
    points = fit.links.points
    if not len(points):
        return np.empty(0, dtype=REVIEW)
    weights = fit.parameters.class_weights
    log_density = fit.mixture.log_joint(X[points]) - np.log(weights)
    return review_links(fit.links, {}, log_density / fit.temperature, weights)


def _contest(ground: Ground, rows: Ints, points: Prepared, links: Links, nowhere: Ints) -> Contest:
    """A contest on some rows with the answers as links; rows that are known to be ``nowhere`` count for nothing."""
    known = Knowledge(points.X[rows], links.restrict(rows))
    if len(nowhere):
        is_noise = np.isin(rows, nowhere)
        known = replace(known, sample_weight=np.where(is_noise, 0.0, 1.0), noise=is_noise)
    options: dict[str, Any] = {"levels": points.levels, "noise": ground.noise}
    return contest_of(known, points.views, ground.n_classes, BUDGET, ground.seed, **options)


def _best(
    contest: Contest,
    begin: Sequence[Start],
    ground: Ground,
    rows: Ints,
    points: Prepared,
    links: Links,
    guesses: tuple[Start, ...],
    nowhere: Ints,
    before: Refit | None = None,
) -> Refit:
    """The best of all starts and shapes, and of the last fit as it is; its classes numbered as before."""
    found = contest.run(begin)
    LOG.info("refit: %d points, %r, best of %d starts: %r", contest.shape[0], links, len(begin), found[0].start)
    if before is not None and before.n_classes == contest.n_classes:
        found = _unless_the_last_is_better(contest, found, before, rows, ground.settings.stay)
    best = found[0]
    density, parameters, scaling = contest.density(best.shape), best.parameters, points.views[best.view]
    if before is not None:
        place = starts.match_labels(best.evidence.labels, before.classes[rows], ground.n_classes)
        parameters = engine.renumber(density, parameters, place)
    mixture = engine.Mixture(density, parameters, scaling)
    measured = points.X[rows_to_measure(len(points.X))]
    sure = level([], mean_agreement(found, ground.n_classes))
    return Refit(
        density,
        parameters,
        scaling,
        links,
        rows,
        guesses,
        _disagreement(found, ground.n_classes),
        mixture.classes(points.X),
        mixture.log_joint(points.X[rows]),
        float(temperatures(mixture.log_joint(measured), np.array([sure]))[0]),
        contest.leaderboard(found),
        nowhere,
    )


def _unless_the_last_is_better(
    contest: Contest, found: list[Candidate], before: Refit, rows: Ints, stay: float
) -> list[Candidate]:
    """Candidates of a refit, the best first, which is the last fit as it is if no other explains more.

    The others have seen the new answers, and the last fit has not; so it stays unless the best of them explains answers
    and structure better by ``stay`` nats. What candidates agree on does not count here: most are new.
    """
    labels, (view, shape) = before.classes[rows], before.leaderboard[["columns", "shape"]][0]
    evidence = Evidence(0, 0, labels)
    last = contest.judged(
        Candidate(str(view), "now", str(shape), labels, before.parameters, evidence, before.log_likelihood, 0, 0.0)
    )
    settings = contest.budget.settings
    worth = settings.structure_of_categories if contest.levels else settings.structure
    new, old = (one.evidence.log_probability + worth * one.evidence.structure for one in (found[0], last))
    return found if new > old + stay else [replace(last, score=found[0].score, finished=True), *found]


def _disagreement(found: list[Candidate], n_classes: int) -> float:
    """Share of the rows that the best candidate and the best one from another start label differently."""
    best = found[0]
    other = next((one for one in found if one.finished and one.start != best.start), None)
    if other is None:
        return 0.0
    place = starts.match_labels(other.evidence.labels, best.evidence.labels, n_classes)
    return float((place[other.evidence.labels] != best.evidence.labels).mean())
