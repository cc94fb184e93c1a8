"""A contest between candidates: every first guess with every shape, fitted to the same points and links.

Hopeless candidates are given up early. The consensus of the best ones is then one more guess, for more shapes.
`AutoLinkMixture` and the refits of a `Questioner` are both contests; they differ in the points, the links and the
guesses.
"""

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.random import RandomState
from scipy.optimize import linear_sum_assignment

from linkmix import engine
from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.basics.errors import DegenerateCluster
from linkmix.couplings import BoundCoupling, Graph
from linkmix.couplings.observed import unwarned
from linkmix.densities import FORMS, Categorical, Contaminated, Density, Gaussian, Product, StudentT
from linkmix.densities.contaminated import counting
from linkmix.engine import starts
from linkmix.engine.fitting import Knowledge, bind, few_threads, naming_rows, part
from linkmix.links import Links
from linkmix.rivals.e2cp import NEIGHBOURS
from linkmix.search.budgets import Budget
from linkmix.search.guesses import WITHOUT, beside_categories, first_guesses, in_order
from linkmix.search.outliers import outlying
from linkmix.search.ranking import Evidence, weigh
from linkmix.search.shapes import SHAPES
from linkmix.search.spaces import Space, distinct, indicators, one_scale
from linkmix.search.structure import graphs, structure

T = TypeVar("T")
THE_BEST = "the best"
"""Name of the guess that is the consensus of the best candidates."""
THE_LAST = "the last fit"
"""Name of the guess by an earlier fit, which may have seen any of the links."""
Guessed = tuple[str, str, Ints]
"""Name of the view, name of the guess, and its labels."""
LEADERBOARD = np.dtype(
    [
        ("columns", "U10"),
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


@dataclass(frozen=True, eq=False)
class Candidate:
    """A start, a shape, and how far EM has come from there.

    Attributes
    ----------
    view, start, shape : str
        Names of the way the columns are scaled, of the first guess and of the shape.
    guess : ndarray of shape (n_samples,)
        The labels that it started from, before known ones were put in.
    parameters : Parameters
        Current parameters.
    evidence : Evidence
        The evidence for it.
    log_likelihood : float
        J, in the units of the first view.
    n_iter : int
        Number of EM steps.
    seconds : float
        Time taken.
    finished : bool
        Whether it was run to the end, rather than given up early.
    score : float
        The score that it was ranked by.
    """

    view: str
    start: str
    shape: str
    guess: Ints
    parameters: engine.Parameters
    evidence: Evidence
    log_likelihood: float
    n_iter: int
    seconds: float
    finished: bool = False
    score: float = 0.0


@dataclass(frozen=True, eq=False)
class View:
    """The points as some of the candidates see them.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        Scaled points.
    data : Data
        The same, separated into free and linked ones.
    units : float
        Added to J to make it comparable with the first view: the difference of the log-Jacobians.
    """

    X: Floats
    data: engine.Data
    units: float = 0.0


@dataclass(frozen=True, eq=False)
class Contest:
    """What all candidates are fitted to, and how they are judged.

    Attributes
    ----------
    views : mapping of str to View
        The points, by the name of the way their columns are scaled.
    spaces : mapping of str to mapping of str to Space
        For each view, the points as first guesses see them: "columns", scaled, and perhaps "whole", in their own units.
    links : Links
        Links between them, by which candidates are judged.
    weights : ndarray of shape (n_samples,) or None
        How often each point counts.
    known : ndarray of shape (n_samples,) or None
        Known labels, -1 where not known.
    learn_reliability : bool
        Whether to learn how often each annotator is right.
    coupling : BoundCoupling
        All links as one network, built once for all candidates.
    densities : mapping of str to Density
        Densities of the clusters, by name.
    graphs : list of sparse arrays
        Graphs of nearest neighbours.
    n_classes : int
        Number of classes.
    budget : Budget
        What is tried, and how it is ranked.
    seed : int
        Seed of the guesses, and of the draws that divide classes into clusters.
    n_jobs : int or None
        Number of threads, as for joblib.
    levels : tuple of int
        Number of levels of each column of codes; these are the last columns of all views.
    outlying : mapping of str to ndarray of shape (n_samples,), or None
        With noise, the points in each view that the starts leave out.
    """

    views: Mapping[str, View]
    spaces: Mapping[str, Mapping[str, Space]]
    links: Links
    weights: Floats | None
    known: Ints | None
    learn_reliability: bool
    coupling: BoundCoupling
    densities: Mapping[str, Density[Any, Any]]
    graphs: list[Any]
    n_classes: int
    budget: Budget
    seed: int
    n_jobs: int | None = None
    levels: tuple[int, ...] = ()
    outlying: Mapping[str, Array] | None = None

    @classmethod
    def of(
        cls,
        given: Mapping[str, Knowledge[Array]],
        raw: Floats,
        n_classes: int,
        budget: Budget,
        seed: int,
        *,
        units: Mapping[str, float] | None = None,
        learn_reliability: bool = False,
        noise: bool = False,
        n_jobs: int | None = None,
        levels: tuple[int, ...] = (),
    ) -> "Contest":
        """Prepare a contest from what is given.

        Parameters
        ----------
        given : mapping of str to Knowledge
            Scaled points with their links, weights and known labels, by the name of the way they are scaled.
        raw : ndarray of shape (n_samples, n_features)
            The points in their own units, gaps filled, without constant columns and without codes.
        n_classes : int
            Number of classes.
        budget : Budget
            What is tried, and how it is ranked.
        seed : int
            Seed of all random choices.
        units : mapping of str to float, optional
            The ``units`` of each view; 0 by default.
        learn_reliability : bool, default=False
            Whether to learn how often each annotator is right.
        noise : bool, default=False
            Whether points may belong to no class.
        n_jobs : int, optional
            Number of threads, as for joblib.
        levels : tuple of int
            Number of levels of each of the last columns, if these hold codes of categories.

        Returns
        -------
        Contest
        """
        first = next(iter(given.values()))
        n_neighbors = max(budget.settings.neighbours, *NEIGHBOURS.values(), budget.settings.around if noise else 0)
        if levels:  # units of numbers cannot be compared with categories, so each column counts the same instead
            raw = indicators(first.X, levels, even=True)
        as_they_are = Space(one_scale(raw), n_neighbors)
        scaled = {name: Space(one_scale(indicators(some.X, levels)), n_neighbors) for name, some in given.items()}
        whole = [as_they_are] if len(given) == 1 else []
        spaces = {
            name: dict(zip(("columns", "whole"), distinct([space, *whole]), strict=False))
            for name, space in scaled.items()
        }
        made = densities(first.X.shape[1], budget.settings.reg_covar, levels)
        return cls(
            {name: View(some.X, part(some), (units or {}).get(name, 0.0)) for name, some in given.items()},
            spaces,
            first.links,
            first.sample_weight,
            first.known,
            learn_reliability,
            _bound(first.links, first.sample_weight, n_classes, learn_reliability),
            with_noise(made, first.noise) if noise else made,
            graphs([*scaled.values()], as_they_are, raw, budget.settings),
            n_classes,
            budget,
            seed,
            n_jobs,
            levels,
            {name: outlying(space.nearest, budget.settings) for name, space in scaled.items()}
            if noise and len(raw) > 1
            else None,
        )

    def with_classes(self, n_classes: int) -> "Contest":
        """The same contest for another number of classes."""
        if n_classes == self.n_classes:
            return self
        coupling = _bound(self.links, self.weights, n_classes, self.learn_reliability)
        return replace(self, n_classes=n_classes, coupling=coupling)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of points and of columns."""
        n, d = next(iter(self.views.values())).X.shape
        return n, d

    def given(self, links: Links, known: Ints | None) -> "Contest":
        """The same contest with other links and known labels."""
        return replace(
            self,
            views={
                name: replace(view, data=part(Knowledge(view.X, links, self.weights, known)))
                for name, view in self.views.items()
            },
            links=links,
            known=known,
            coupling=_bound(links, self.weights, self.n_classes, self.learn_reliability),
        )

    def guesses(self) -> Iterator[tuple[str, str, Ints]]:
        """First guesses by the methods of the budget: name of the view, name of the method, and the labels.

        Equal guesses of a view come only once.
        """
        names = self.budget.guesses
        if self.levels:
            names = beside_categories(names, linked=len(self.links.points) > 0 or self.known is not None)
        for view in self.views:
            seen: set[bytes] = set()
            for name, labels in self.guesses_of(view, names):
                key = in_order(labels).tobytes()
                if key not in seen:
                    seen.add(key)
                    yield view, name, labels

    def guesses_of(self, view: str, names: tuple[str, ...]) -> list[tuple[str, Ints]]:
        """First guesses of one view by some methods: name of the method, and the labels."""
        made = self._first_guesses(view, names)
        with few_threads(*self.shape), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a guess may stop early
            return list(zip(made, all_of([*made.values()], self.n_jobs), strict=True))

    def guess_of(self, view: str, start: str) -> Ints | None:
        """A first guess by the name of the start, with its warnings; None if there is none of this name."""
        guess = self._first_guesses(view, (start.removesuffix(WITHOUT),)).get(start)
        return None if guess is None else guess()

    def _first_guesses(self, view: str, names: tuple[str, ...]) -> dict[str, Callable[[], Ints]]:
        links = self.links
        if self.known is not None:  # the methods see known labels as links
            links = links.union(Links.from_labels(self.known))
        return dict(first_guesses(self.spaces[view], links, self.n_classes, names, self.seed))

    def run(
        self, guesses: Iterable[tuple[str, str, Ints]], progress: "Progress" = lambda results, total: results
    ) -> list[Candidate]:
        """Fit and rank candidates: a few steps of each, the promising ones to the end, then their consensus.

        Parameters
        ----------
        guesses : iterable of (view, name, labels)
            Where to start.
        progress : callable
            Wraps the iterable of results, given their number, for example to show a progress bar.

        Returns
        -------
        list of Candidate
            The best first; those that were given up at the end.
        """
        with few_threads(*self.shape):
            return self._run(guesses, progress)

    def _run(self, guesses: Iterable[tuple[str, str, Ints]], progress: "Progress") -> list[Candidate]:
        budget, settings = self.budget, self.budget.settings
        tried = self.taken(budget.shapes)
        tasks = [partial(self.begin, *guess, shape) for guess in guesses for shape in tried]
        begun = self._all(tasks, progress)
        if not begun:
            raise DegenerateCluster(
                f"none of the {len(tasks)} candidates has clusters of more than one point: pass more points or ask for "
                f"fewer classes than n_classes={self.n_classes}"
            )
        judge = self.believing(begun)
        begun = judge.ranked(begun if judge is self else [judge.judged(candidate) for candidate in begun])
        n_kept = max(settings.kept, sum(one.score >= begun[0].score - settings.hopeless for one in begun))
        going_on, given_up = begun[:n_kept], begun[n_kept:]
        finished = judge.ranked(self._all([partial(judge.finish, one) for one in going_on], progress))
        if not finished:
            return begun
        if finished[0].evidence.broken == 0:  # all links are met: a second round is not needed
            return finished + given_up
        labels = mean_of([self.probabilities(best) for best in finished[: settings.best]]).argmax(axis=1)
        shapes = self.taken(budget.more_shapes)
        more = [partial(judge.once_more, view, labels, shape) for view in self.views for shape in shapes]
        return judge.ranked(finished + self._all(more, progress)) + given_up

    def _all(self, tasks: Sequence[Callable[[], Candidate | None]], progress: "Progress") -> list[Candidate]:
        """Results of all tasks, without those that are None."""
        return [result for result in all_of(tasks, self.n_jobs, progress) if result is not None]

    def begin(self, view: str, start: str, labels: Ints, shape: str) -> Candidate | None:
        """Start EM from a guess and make the first steps; None if a cluster degenerates."""
        begin = time.perf_counter()
        layout = SHAPES[shape].layout(self.n_classes)
        random = RandomState(self.seed)
        told = self._told(labels)
        first = self._first(view, told, self.density(shape), layout, random)
        first = replace(first, reliability=self.coupling.first_reliability())
        candidate = Candidate(view, start, shape, labels, first, Evidence(0, 0, told), 0.0, 0, 0.0)
        return self._steps(candidate, self.budget.settings.first_steps, 0.0, begin)

    def _first(
        self, view: str, labels: Ints, density: Density[Any, Any], layout: starts.Shape, random: RandomState
    ) -> engine.Parameters:
        """The start of EM from labels of all points; with noise, outlying points are left out."""
        X, weights = self.views[view].X, self.weights
        places = self.spaces[view]["columns"].points if self.levels else None
        if self.outlying is None or not isinstance(density, Contaminated):
            return starts.from_classes(density, X, labels, layout, random, weights, places)
        counts = np.ones(len(X)) if weights is None else weights
        inside = np.where(self.outlying[view], 0.0, counts)
        if not inside.any():
            inside = counts
        first = starts.from_classes(density, X, labels, layout, random, inside, places)
        return replace(first, components=density.around(first.components, X, counts, 1 - inside.sum() / counts.sum()))

    def _told(self, labels: Ints) -> Ints:
        """Labels with the known ones put in, and numbered like these, or as relations demand."""
        told = None
        if self.known is not None:
            matched = starts.match_labels(labels, self.known, self.n_classes)[labels]
            labels = np.where(self.known >= 0, self.known, matched)
            told = np.unique(self.known[self.known >= 0])
        return np.asarray(starts.number_classes(labels, self.links, self.n_classes, told)[labels])

    def once_more(self, view: str, labels: Ints, shape: str) -> Candidate | None:
        """Run a candidate from the consensus of the best ones."""
        begun = self.begin(view, THE_BEST, labels, shape)
        return None if begun is None else self.finish(begun)

    def finish(self, candidate: Candidate) -> Candidate | None:
        """Run a candidate to the end."""
        settings = self.budget.settings
        done = self._steps(candidate, settings.more_steps, settings.tol, time.perf_counter())
        return None if done is None else replace(done, finished=True)

    def _steps(self, candidate: Candidate, n_steps: int, tol: float, begin: float) -> Candidate | None:
        view = self.views[candidate.view]
        model = engine.Model(self.density(candidate.shape), self.coupling)
        try:
            with naming_rows(self.links, self.n_classes):
                fit = engine.fit(model, view.data, candidate.parameters, tol=tol, max_iter=n_steps)
        except DegenerateCluster:
            return None
        return replace(
            self.judged(replace(candidate, parameters=fit.parameters)),
            log_likelihood=fit.log_likelihood + view.units,
            n_iter=candidate.n_iter + len(fit.trace) - 1,
            seconds=candidate.seconds + time.perf_counter() - begin,
        )

    def judged(self, candidate: Candidate) -> Candidate:
        """The candidate with the evidence for it."""
        evidence = weigh(self.probabilities(candidate), self.links, self.budget.settings.least)
        found = structure(self.graphs, evidence.labels, self.n_classes)
        return replace(candidate, evidence=replace(evidence, structure=found))

    def ranked(self, candidates: list[Candidate]) -> list[Candidate]:
        """Candidates with their scores, the best first."""
        if not candidates:
            return []
        settings = self.budget.settings
        if self.levels:
            settings = replace(settings, structure=settings.structure_of_categories)
        scores = self.budget.rule([one.evidence for one in candidates], self.n_classes, settings)
        return [replace(candidates[i], score=float(scores[i])) for i in np.argsort(-scores, kind="stable")]

    def believing(self, candidates: Sequence[Candidate]) -> "Contest":
        """The same contest, with the reliability of each annotator set to its median over the candidates."""
        annotators = self.coupling.annotators
        if not annotators:
            return self
        every = [candidate.parameters.reliability[: len(annotators)] for candidate in candidates]
        reliability = np.median(every, axis=0)
        return replace(self, links=self.links.at_most(dict(zip(annotators, reliability.tolist(), strict=True))))

    def density(self, shape: str) -> Density[Any, Any]:
        """Density of the clusters of a shape."""
        return self.densities[SHAPES[shape].density]

    def taken(self, shapes: Sequence[str]) -> list[str]:
        """Those of some shapes that are tried, if there are others none that do not pay.

        Heavy tails do not pay beside categories, and classes of one covariance only there.
        On the nine tables of benchmarks.mixed_tables (draws 0 and 1, chosen from the same candidates) the mean adjusted
        Rand index without heavy tails is .297, .413 and .571 with 0, 25 and 100 links, with them .306, .407 and .568.
        """
        taken = [shape for shape in shapes if self.takes(shape)]
        not_here = "student" if self.levels else "tied"
        return [shape for shape in taken if SHAPES[shape].density != not_here] or taken

    def takes(self, shape: str) -> bool:
        """Whether there is a density for a shape, and enough points for its clusters."""
        if len(self.levels) == self.shape[1] and SHAPES[shape].density != "gaussian":
            return False  # categories have neither tails nor covariances
        few = self.budget.settings.points_per_cluster if SHAPES[shape].clusters > 3 else 1
        has_density = SHAPES[shape].density in self.densities
        return has_density and few * SHAPES[shape].clusters * self.n_classes <= self.shape[0]

    def probabilities(self, candidate: Candidate) -> Floats:
        """Probability of each class for all points, from the point alone."""
        X = self.views[candidate.view].X
        return engine.Mixture(self.density(candidate.shape), candidate.parameters).probabilities(X)

    def bic(self, candidate: Candidate) -> float:
        """Bayesian information criterion; lower is better."""
        parameters, (n_points, n_features) = candidate.parameters, self.shape
        n_components = SHAPES[candidate.shape].clusters * self.n_classes
        free = self.density(candidate.shape).free_parameters(parameters.components, n_components, n_features)
        count = parameters.cluster_weights.size - 1 + free
        return -2 * candidate.log_likelihood + count * float(np.log(n_points))

    def leaderboard(self, candidates: list[Candidate]) -> Array:
        """All candidates as a table, the best first."""
        table = np.empty(len(candidates), dtype=LEADERBOARD)
        for row, candidate in enumerate(candidates):
            table[row] = (
                candidate.view,
                candidate.start,
                candidate.shape,
                candidate.evidence.broken,
                candidate.evidence.log_probability,
                candidate.evidence.structure,
                candidate.score,
                candidate.log_likelihood,
                self.bic(candidate),
                candidate.n_iter,
                not candidate.finished,
                candidate.seconds,
            )
        return table


Progress = Callable[[Iterable[Any], int], Iterable[Any]]


def _bound(links: Links, weights: Floats | None, n_classes: int, learn_reliability: bool) -> BoundCoupling:
    with unwarned():  # no warning about approximate inference: the winner is fitted exactly
        return bind(Graph(learn_reliability, quick=True), links, n_classes, weights)


def mean_of(probabilities: Sequence[Floats]) -> Floats:
    """Mean of the probabilities of several models, each with its classes in the order of the first one."""
    first = probabilities[0]
    return np.asarray(np.mean([each[:, place_of(each, first)] for each in probabilities], axis=0))


def place_of(probabilities: Floats, first: Floats) -> Ints:
    """For each class of the first model, the matching class of another one."""
    return np.asarray(linear_sum_assignment(-(first.T @ probabilities))[1])


def densities(n_features: int, reg_covar: float, levels: Sequence[int] = ()) -> dict[str, Density[Any, Any]]:
    """Densities with full covariances, shrunk towards the pooled one by pseudo-observations: two more than columns.

    Of the columns, the last ones may hold codes of categories, which are independent of the others given the cluster.
    """
    n_numbers = n_features - len(levels)
    shrinkage = n_numbers + 2.0
    numbers: dict[str, Density[Any, Any]] = {
        "gaussian": Gaussian(reg_covar=reg_covar, shrinkage=shrinkage),
        "student": StudentT(reg_covar=reg_covar, shrinkage=shrinkage),
        "tied": Gaussian(FORMS["tied"], reg_covar=reg_covar),
    }
    if not levels:
        return numbers
    categories = Categorical(n_levels=tuple(levels))
    if not n_numbers:
        return dict.fromkeys(numbers, categories)
    parts = range(n_numbers), range(n_numbers, n_features)
    return {
        name: Product({"numbers": (density, parts[0]), "categories": (categories, parts[1])})
        for name, density in numbers.items()
    }


def with_noise(plain: Mapping[str, Density[Any, Any]], known: Array | None) -> dict[str, Density[Any, Any]]:
    """Densities with a background, for points of which some, a mask (n,), are known to belong to no class.

    None has heavy tails, which would compete with the background for the same points.
    """
    return {"gaussian": counting(Contaminated(plain["gaussian"]), known)}


def all_of(
    tasks: Sequence[Callable[[], T]], n_jobs: int | None, progress: Progress = lambda results, total: results
) -> list[T]:
    """Results of all tasks, in order, made by several threads if there are several jobs."""
    if effective_n_jobs(n_jobs) == 1:
        return [*progress((task() for task in tasks), len(tasks))]
    results = Parallel(n_jobs, require="sharedmem", return_as="generator")(delayed(task)() for task in tasks)
    return [*progress(results, len(tasks))]
