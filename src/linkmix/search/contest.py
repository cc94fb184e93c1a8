"""Candidates: every first guess with every shape, fitted to the same points and links, the hopeless ones given up.

What the best of them agree on is then a guess of its own, for more shapes.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.random import RandomState
from scipy.optimize import linear_sum_assignment

from linkmix import engine
from linkmix.basics.arrays import Array, Floats, Ints, shares
from linkmix.basics.errors import DegenerateCluster
from linkmix.densities import Gaussian, StudentT
from linkmix.engine import starts
from linkmix.engine.fitting import naming_rows
from linkmix.links import Links
from linkmix.search.budgets import Budget
from linkmix.search.ranking import Evidence, Rule, weigh
from linkmix.search.shapes import SHAPES
from linkmix.search.structure import structure

FIRST_STEPS = 5
"""EM steps after which a candidate is looked at for the first time."""
HOPELESS = 12.0
"""Nats by which a candidate may be behind the best one then and still go on."""
AT_LEAST = 8
"""Number of candidates that go on at least."""
MOST_STEPS = 25
"""EM steps after that. More of them lead away from the user's classes: the likelihood of a wrong model wants others."""
BEST = 5
"""Number of the best candidates whose mean is the guess of the second round."""
POINTS_PER_CLUSTER = 3
"""Points that there are at least for each of many clusters."""
REG_COVAR = 1e-4
"""Added to the variances of columns of unit variance."""

LEADERBOARD = np.dtype(
    [
        ("columns", "U8"),
        ("start", "U40"),
        ("shape", "U24"),
        ("links_broken", np.float64),
        ("log_probability_of_links", np.float64),
        ("structure", np.float64),
        ("score", np.float64),
        ("log_likelihood", np.float64),
        ("bic", np.float64),
        ("n_iter", np.int64),
        ("given_up", np.bool_),
        ("seconds", np.float64),
    ]
)


@dataclass(frozen=True)
class Candidate:
    """A start, a shape, and how far EM has come from there.

    Attributes
    ----------
    columns, start, shape : str
        Names of the way the columns are scaled, of the first guess and of the shape.
    parameters : Parameters
        Where EM is.
    evidence : Evidence
        What the links say of it.
    log_likelihood : float
        J, of the columns as they were scaled first.
    n_iter : int
        Number of EM steps.
    seconds : float
        Time taken.
    finished : bool
        Whether it was run to its end and not given up before.
    score : float
        By what it was ranked.
    """

    columns: str
    start: str
    shape: str
    parameters: engine.Parameters
    evidence: Evidence
    log_likelihood: float
    n_iter: int
    seconds: float
    finished: bool = False
    score: float = 0.0


@dataclass(frozen=True)
class View:
    """The points as some of the candidates see them.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        Scaled points.
    data : Data
        The same, parted into free and linked ones.
    units : float
        What J loses by the scale of this view, compared with the first one.
    """

    X: Floats
    data: engine.Data
    units: float = 0.0


@dataclass(frozen=True)
class Contest:
    """What all candidates are fitted to.

    Attributes
    ----------
    views : mapping of str to View
        The points, by the name of the way their columns are scaled.
    links : Links
        Links between them, by which candidates are judged.
    weights : ndarray of shape (n_samples,) or None
        How often each point counts.
    models : mapping of str to Model
        Density and coupling by the name of the density; the coupling has the links in it.
    graphs : list of sparse arrays
        Which points are neighbours.
    n_classes : int
        Number of classes.
    """

    views: Mapping[str, View]
    links: Links
    weights: Floats | None
    models: Mapping[str, engine.Model]
    graphs: list[Any]
    n_classes: int

    @property
    def shape(self) -> tuple[int, int]:
        """Number of points and of columns."""
        n, d = next(iter(self.views.values())).X.shape
        return n, d

    def begin(self, columns: str, start: str, labels: Ints, shape: str, seed: int) -> Candidate | None:
        """Start EM from a guess and make the first steps; None if a cluster degenerates."""
        begin = time.perf_counter()
        model = self.model(shape)
        layout = starts.Shape(self.n_classes, SHAPES[shape].clusters, SHAPES[shape].shared)
        X = self.views[columns].X
        first = starts.from_classes(model.density, X, labels, layout, RandomState(seed), self.weights)
        if model.coupling.annotators:
            first = replace(first, reliability=model.coupling.first_reliability())
        candidate = Candidate(columns, start, shape, first, Evidence(0, 0, labels), 0.0, 0, 0.0)
        return self._run(candidate, FIRST_STEPS, 0.0, begin)

    def once_more(self, columns: str, labels: Ints, shape: str, seed: int) -> Candidate | None:
        """Run a candidate from what the best ones agree on."""
        begun = self.begin(columns, "the best", labels, shape, seed)
        return None if begun is None else self.finish(begun)

    def finish(self, candidate: Candidate) -> Candidate | None:
        """Run a candidate to its end."""
        done = self._run(candidate, MOST_STEPS, 1e-6, time.perf_counter())
        return None if done is None else replace(done, finished=True)

    def _run(self, candidate: Candidate, n_steps: int, tol: float, begin: float) -> Candidate | None:
        view = self.views[candidate.columns]
        try:
            with naming_rows(self.links, self.n_classes):
                fit = engine.fit(
                    self.model(candidate.shape), view.data, candidate.parameters, tol=tol, max_iter=n_steps
                )
        except DegenerateCluster:
            return None
        return replace(
            self.judged(replace(candidate, parameters=fit.parameters)),
            log_likelihood=fit.log_likelihood + view.units,
            n_iter=candidate.n_iter + len(fit.trace) - 1,
            seconds=candidate.seconds + time.perf_counter() - begin,
        )

    def judged(self, candidate: Candidate) -> Candidate:
        """The candidate with what speaks for it."""
        evidence = weigh(self.probabilities(candidate), self.links)
        found = structure(self.graphs, evidence.labels, self.n_classes)
        return replace(candidate, evidence=replace(evidence, structure=found))

    def believing(self, candidates: Sequence[Candidate]) -> "Contest":
        """The same, with each annotator believed as far as half of the candidates believe him."""
        annotators = self.models["gaussian"].coupling.annotators
        if not annotators:
            return self
        reliability = np.median([candidate.parameters.reliability for candidate in candidates], axis=0)
        return replace(self, links=self.links.at_most(dict(zip(annotators, reliability.tolist(), strict=True))))

    def model(self, shape: str) -> engine.Model:
        """Density and coupling for a shape."""
        return self.models[SHAPES[shape].density]

    def takes(self, shape: str) -> bool:
        """Whether there are a few points for each cluster of a shape, if it has many."""
        n_clusters = SHAPES[shape].clusters * self.n_classes
        few = POINTS_PER_CLUSTER if SHAPES[shape].clusters > 3 else 1
        return few * n_clusters <= self.shape[0]

    def probabilities(self, candidate: Candidate) -> Floats:
        """Probability of each class for all points, from the point alone."""
        density = self.model(candidate.shape).density
        return shares(engine.class_log_joint(density, candidate.parameters, self.views[candidate.columns].X))

    def bic(self, candidate: Candidate) -> float:
        """Bayesian information criterion; lower is better."""
        parameters, (n_points, n_features) = candidate.parameters, self.shape
        n_components = SHAPES[candidate.shape].clusters * self.n_classes
        density = self.model(candidate.shape).density
        free = density.free_parameters(parameters.components, n_components, n_features)
        count = parameters.cluster_weights.size - 1 + free
        return -2 * candidate.log_likelihood + count * float(np.log(n_points))


Progress = Callable[[Iterable[Any], int], Iterable[Any]]


def run(
    contest: Contest,
    guesses: Iterable[tuple[str, str, Ints]],
    budget: Budget,
    seed: int,
    progress: Progress,
) -> list[Candidate]:
    """Fit candidates and rank them: first a few steps of each, then the promising ones to their end, then once more.

    Parameters
    ----------
    contest : Contest
        What to fit to.
    guesses : iterable of (columns, name, labels)
        Where to start: by which view, from which guess, and its labels.
    budget : Budget
        Shapes for all guesses, shapes for what the best candidates agree on, and by what to rank.
    seed : int
        Seed of the draws that part classes into clusters.
    progress : callable
        Wraps the results as they come in, given their number.

    Returns
    -------
    list of Candidate
        The best first; those that were given up at the end.
    """
    rule = budget.rule
    tried = [shape for shape in budget.shapes if contest.takes(shape)]
    tasks = [partial(contest.begin, *guess, shape, seed) for guess in guesses for shape in tried]
    begun = _all(tasks, progress)
    if not begun:
        raise DegenerateCluster(
            f"none of the {len(tasks)} candidates has clusters of more than one point: pass more points or ask for "
            f"fewer classes than n_classes={contest.n_classes}"
        )
    contest = contest.believing(begun)
    begun = _ranked([contest.judged(candidate) for candidate in begun], rule, contest.n_classes)
    n_kept = max(AT_LEAST, sum(candidate.score >= begun[0].score - HOPELESS for candidate in begun))
    given_up = begun[n_kept:]
    finished = _ranked(
        _all([partial(contest.finish, best) for best in begun[:n_kept]], progress), rule, contest.n_classes
    )
    if not finished:
        return begun
    if finished[0].evidence.broken == 0:  # the links ask for no more
        return finished + given_up
    labels = mean_of([contest.probabilities(best) for best in finished[:BEST]]).argmax(axis=1)
    shapes = [shape for shape in budget.more_shapes if contest.takes(shape)]
    more = [partial(contest.once_more, view, labels, shape, seed) for view in contest.views for shape in shapes]
    return _ranked(finished + _all(more, progress), rule, contest.n_classes) + given_up


def mean_of(probabilities: Sequence[Floats]) -> Floats:
    """Mean of the probabilities of several models, each with its classes in the order of the first one."""
    first = probabilities[0]
    return np.asarray(np.mean([each[:, place_of(each, first)] for each in probabilities], axis=0))


def place_of(probabilities: Floats, first: Floats) -> Ints:
    """For each class of the first model, the class of another one that goes with it."""
    return np.asarray(linear_sum_assignment(-(first.T @ probabilities))[1])


def leaderboard(contest: Contest, candidates: list[Candidate]) -> Array:
    """All candidates as a table, the best first."""
    table = np.empty(len(candidates), dtype=LEADERBOARD)
    for row, candidate in enumerate(candidates):
        table[row] = (
            candidate.columns,
            candidate.start,
            candidate.shape,
            candidate.evidence.broken,
            candidate.evidence.log_probability,
            candidate.evidence.structure,
            candidate.score,
            candidate.log_likelihood,
            contest.bic(candidate),
            candidate.n_iter,
            not candidate.finished,
            candidate.seconds,
        )
    return table


def densities(n_features: int) -> dict[str, Gaussian | StudentT]:
    """Full covariances, shrunk to the pooled one by a weight of so many points as a covariance needs at least."""
    shrinkage = n_features + 2.0
    return {
        "gaussian": Gaussian(reg_covar=REG_COVAR, shrinkage=shrinkage),
        "student": StudentT(reg_covar=REG_COVAR, shrinkage=shrinkage),
    }


def _all(tasks: Sequence[Callable[[], Candidate | None]], progress: Progress) -> list[Candidate]:
    """Results of all tasks that came to one."""
    results = Parallel(prefer="threads", return_as="generator")(delayed(task)() for task in tasks)
    return [result for result in progress(results, len(tasks)) if result is not None]


def _ranked(candidates: list[Candidate], rule: Rule, n_classes: int) -> list[Candidate]:
    if not candidates:
        return []
    scores = rule([candidate.evidence for candidate in candidates], n_classes)
    return [replace(candidates[i], score=float(scores[i])) for i in np.argsort(-scores, kind="stable")]
