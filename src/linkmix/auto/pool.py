"""Candidates: every first guess with every shape, fitted to the same points and links, the hopeless ones given up."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.random import RandomState

from linkmix import em, starts
from linkmix.arrays import Array, Floats, Ints, shares
from linkmix.auto.ranking import Evidence, Rule, weigh
from linkmix.auto.shapes import SHAPES
from linkmix.densities import Gaussian
from linkmix.errors import DegenerateCluster
from linkmix.fitting import Knowledge, naming_rows

FIRST_STEPS = 3
"""EM steps after which a candidate is looked at for the first time."""
KEPT = 1 / 3
"""Share of the candidates that go on after that."""
AT_LEAST = 8
"""Number of candidates that go on at least."""
MOST_STEPS = 100
REG_COVAR = 1e-4
"""Added to the variances of columns of unit variance."""

LEADERBOARD = np.dtype(
    [
        ("start", "U32"),
        ("shape", "U12"),
        ("links_broken", np.float64),
        ("log_probability_of_links", np.float64),
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
    """

    start: str
    shape: str
    parameters: em.Parameters
    evidence: Evidence
    log_likelihood: float
    n_iter: int
    seconds: float
    finished: bool = False


@dataclass(frozen=True)
class Contest:
    """What all candidates are fitted to.

    Attributes
    ----------
    given : Knowledge
        Scaled points, links, weights and known labels.
    model : Model
        Density and coupling; it has the links in it.
    data : Data
        The points, parted into free and linked ones.
    n_classes : int
        Number of classes.
    """

    given: Knowledge
    model: em.Model
    data: em.Data
    n_classes: int

    def begin(self, start: str, labels: Ints, shape: str, seed: int) -> Candidate | None:
        """Start EM from a guess and make the first steps; None if a cluster degenerates."""
        begin = time.perf_counter()
        clusters, shared = SHAPES[shape]
        layout = starts.Shape(self.n_classes, clusters, shared)
        random, weights = RandomState(seed), self.given.sample_weight
        first = starts.from_classes(self.model.density, self.given.X, labels, layout, random, weights)
        if self.model.coupling.annotators:
            first = replace(first, reliability=self.model.coupling.first_reliability())
        return self._run(Candidate(start, shape, first, Evidence(0, 0, labels), 0.0, 0, 0.0), FIRST_STEPS, 0.0, begin)

    def finish(self, candidate: Candidate) -> Candidate | None:
        """Run a candidate to its end."""
        done = self._run(candidate, MOST_STEPS, 1e-6, time.perf_counter())
        return None if done is None else replace(done, finished=True)

    def _run(self, candidate: Candidate, n_steps: int, tol: float, begin: float) -> Candidate | None:
        try:
            with naming_rows(self.given.links, self.n_classes):
                fit = em.fit(self.model, self.data, candidate.parameters, tol=tol, max_iter=n_steps)
        except DegenerateCluster:
            return None
        return replace(
            candidate,
            parameters=fit.parameters,
            evidence=weigh(shares(self.log_joint(fit.parameters)), self.given.links),
            log_likelihood=fit.log_likelihood,
            n_iter=candidate.n_iter + len(fit.trace) - 1,
            seconds=candidate.seconds + time.perf_counter() - begin,
        )

    def log_joint(self, parameters: em.Parameters) -> Floats:
        """Log of class weight times density of all points."""
        return em.class_log_joint(self.model.density, parameters, self.given.X)

    def bic(self, candidate: Candidate) -> float:
        """Bayesian information criterion; lower is better."""
        parameters, n_features = candidate.parameters, self.given.X.shape[1]
        clusters, _ = SHAPES[candidate.shape]
        n_components = clusters * self.n_classes
        free = self.model.density.free_parameters(parameters.components, n_components, n_features)
        count = parameters.cluster_weights.size - 1 + free
        return -2 * candidate.log_likelihood + count * float(np.log(len(self.given.X)))


Progress = Callable[[Iterable[Any], int], Iterable[Any]]


def run(
    contest: Contest,
    guesses: Iterable[tuple[str, Ints]],
    shapes: tuple[str, ...],
    rule: Rule,
    seed: int,
    progress: Progress,
) -> list[Candidate]:
    """Fit candidates and rank them: first a few steps of each, then the promising ones to their end.

    Parameters
    ----------
    contest : Contest
        What to fit to.
    guesses : iterable of (name, labels)
        Where to start.
    shapes : tuple of str
        Names from `SHAPES`.
    rule : Rule
        By what to rank.
    seed : int
        Seed of the draws that part classes into clusters.
    progress : callable
        Wraps the results as they come in, given their number.

    Returns
    -------
    list of Candidate
        The best first; those that were given up at the end.
    """
    n_counted = len(contest.given.X)
    tried = [shape for shape in shapes if SHAPES[shape][0] * contest.n_classes <= n_counted]
    tasks = [partial(contest.begin, name, labels, shape, seed) for name, labels in guesses for shape in tried]
    begun = _all(tasks, progress)
    if not begun:
        raise DegenerateCluster(
            f"none of the {len(tasks)} candidates has clusters of more than one point: pass more points or ask for "
            f"fewer classes than n_classes={contest.n_classes}"
        )
    order = _order(begun, rule, contest.n_classes)
    n_kept = max(AT_LEAST, int(np.ceil(KEPT * len(begun))))
    finished = _all([partial(contest.finish, begun[i]) for i in order[:n_kept]], progress)
    best = [finished[i] for i in _order(finished, rule, contest.n_classes)]
    return best + [begun[i] for i in order[n_kept:]] if finished else [begun[i] for i in order]


def leaderboard(contest: Contest, candidates: list[Candidate]) -> Array:
    """All candidates as a table, the best first."""
    table = np.empty(len(candidates), dtype=LEADERBOARD)
    for row, candidate in enumerate(candidates):
        table[row] = (
            candidate.start,
            candidate.shape,
            candidate.evidence.broken,
            candidate.evidence.log_probability,
            candidate.log_likelihood,
            contest.bic(candidate),
            candidate.n_iter,
            not candidate.finished,
            candidate.seconds,
        )
    return table


def density(n_features: int) -> Gaussian:
    """Full covariances, shrunk to the pooled one by a weight of so many points as a covariance needs at least."""
    return Gaussian(reg_covar=REG_COVAR, shrinkage=n_features + 2.0)


def _all(tasks: Sequence[Callable[[], Candidate | None]], progress: Progress) -> list[Candidate]:
    """Results of all tasks that came to one."""
    results = Parallel(prefer="threads", return_as="generator")(delayed(task)() for task in tasks)
    return [result for result in progress(results, len(tasks)) if result is not None]


def _order(candidates: list[Candidate], rule: Rule, n_classes: int) -> list[int]:
    if not candidates:
        return []
    scores = rule([candidate.evidence for candidate in candidates], n_classes)
    return [int(i) for i in np.argsort(-scores, kind="stable")]
