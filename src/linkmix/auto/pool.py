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

from linkmix import em, starts
from linkmix.arrays import Array, Floats, Ints, shares
from linkmix.auto.budgets import Budget
from linkmix.auto.ranking import Evidence, Rule, weigh
from linkmix.auto.shapes import SHAPES
from linkmix.auto.structure import structure
from linkmix.densities import Gaussian, StudentT
from linkmix.errors import DegenerateCluster
from linkmix.fitting import Knowledge, naming_rows

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
        ("start", "U32"),
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
    start, shape : str
        Names of the first guess and of the shape.
    parameters : Parameters
        Where EM is.
    evidence : Evidence
        What the links say of it.
    log_likelihood : float
        J.
    n_iter : int
        Number of EM steps.
    seconds : float
        Time taken.
    finished : bool
        Whether it was run to its end and not given up before.
    score : float
        By what it was ranked.
    """

    start: str
    shape: str
    parameters: em.Parameters
    evidence: Evidence
    log_likelihood: float
    n_iter: int
    seconds: float
    finished: bool = False
    score: float = 0.0


@dataclass(frozen=True)
class Contest:
    """What all candidates are fitted to.

    Attributes
    ----------
    given : Knowledge
        Scaled points, links, weights and known labels.
    models : mapping of str to Model
        Density and coupling by the name of the density; the coupling has the links in it.
    graphs : list of sparse arrays
        Which points are neighbours.
    data : Data
        The points, parted into free and linked ones.
    n_classes : int
        Number of classes.
    """

    given: Knowledge
    models: Mapping[str, em.Model]
    graphs: list[Any]
    data: em.Data
    n_classes: int

    def begin(self, start: str, labels: Ints, shape: str, seed: int) -> Candidate | None:
        """Start EM from a guess and make the first steps; None if a cluster degenerates."""
        begin = time.perf_counter()
        model = self.model(shape)
        layout = starts.Shape(self.n_classes, SHAPES[shape].clusters, SHAPES[shape].shared)
        random, weights = RandomState(seed), self.given.sample_weight
        first = starts.from_classes(model.density, self.given.X, labels, layout, random, weights)
        if model.coupling.annotators:
            first = replace(first, reliability=model.coupling.first_reliability())
        return self._run(Candidate(start, shape, first, Evidence(0, 0, labels), 0.0, 0, 0.0), FIRST_STEPS, 0.0, begin)

    def once_more(self, labels: Ints, shape: str, seed: int) -> Candidate | None:
        """Run a candidate from what the best ones agree on."""
        begun = self.begin("the best", labels, shape, seed)
        return None if begun is None else self.finish(begun)

    def finish(self, candidate: Candidate) -> Candidate | None:
        """Run a candidate to its end."""
        done = self._run(candidate, MOST_STEPS, 1e-6, time.perf_counter())
        return None if done is None else replace(done, finished=True)

    def _run(self, candidate: Candidate, n_steps: int, tol: float, begin: float) -> Candidate | None:
        try:
            with naming_rows(self.given.links, self.n_classes):
                fit = em.fit(self.model(candidate.shape), self.data, candidate.parameters, tol=tol, max_iter=n_steps)
        except DegenerateCluster:
            return None
        return replace(
            self.judged(replace(candidate, parameters=fit.parameters)),
            log_likelihood=fit.log_likelihood,
            n_iter=candidate.n_iter + len(fit.trace) - 1,
            seconds=candidate.seconds + time.perf_counter() - begin,
        )

    def judged(self, candidate: Candidate) -> Candidate:
        """The candidate with what speaks for it."""
        evidence = weigh(self.probabilities(candidate), self.given.links)
        found = structure(self.graphs, evidence.labels, self.n_classes)
        return replace(candidate, evidence=replace(evidence, structure=found))

    def believing(self, candidates: Sequence[Candidate]) -> "Contest":
        """The same, with each annotator believed as far as half of the candidates believe him."""
        annotators = self.models["gaussian"].coupling.annotators
        if not annotators:
            return self
        reliability = np.median([candidate.parameters.reliability for candidate in candidates], axis=0)
        links = self.given.links.at_most(dict(zip(annotators, reliability.tolist(), strict=True)))
        return replace(self, given=replace(self.given, links=links))

    def model(self, shape: str) -> em.Model:
        """Density and coupling for a shape."""
        return self.models[SHAPES[shape].density]

    def takes(self, shape: str) -> bool:
        """Whether there are a few points for each cluster of a shape, if it has many."""
        n_clusters = SHAPES[shape].clusters * self.n_classes
        few = POINTS_PER_CLUSTER if SHAPES[shape].clusters > 3 else 1
        return few * n_clusters <= len(self.given.X)

    def probabilities(self, candidate: Candidate) -> Floats:
        """Probability of each class for all points, from the point alone."""
        density = self.model(candidate.shape).density
        return shares(em.class_log_joint(density, candidate.parameters, self.given.X))

    def bic(self, candidate: Candidate) -> float:
        """Bayesian information criterion; lower is better."""
        parameters, n_features = candidate.parameters, self.given.X.shape[1]
        n_components = SHAPES[candidate.shape].clusters * self.n_classes
        density = self.model(candidate.shape).density
        free = density.free_parameters(parameters.components, n_components, n_features)
        count = parameters.cluster_weights.size - 1 + free
        return -2 * candidate.log_likelihood + count * float(np.log(len(self.given.X)))


Progress = Callable[[Iterable[Any], int], Iterable[Any]]


def run(
    contest: Contest,
    guesses: Iterable[tuple[str, Ints]],
    budget: Budget,
    seed: int,
    progress: Progress,
) -> list[Candidate]:
    """Fit candidates and rank them: first a few steps of each, then the promising ones to their end, then once more.

    Parameters
    ----------
    contest : Contest
        What to fit to.
    guesses : iterable of (name, labels)
        Where to start.
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
    tasks = [partial(contest.begin, name, labels, shape, seed) for name, labels in guesses for shape in tried]
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
    more = [partial(contest.once_more, labels, shape, seed) for shape in budget.more_shapes if contest.takes(shape)]
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
