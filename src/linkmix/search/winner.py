"""From what is given to a contest, and from its winner to a fitted estimator."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import RandomState
from scipy.special import logit

from linkmix import engine
from linkmix.basics.arrays import Array, Floats, Ints, log_sum_exp
from linkmix.couplings import BoundCoupling
from linkmix.data.blocks import Table, labelled, take
from linkmix.data.dependence import told_by_links
from linkmix.data.rows import by_blocks
from linkmix.data.sample import sample_around
from linkmix.data.scaling import COMPONENTS, Scaling, ScalingSettings, scalings, unrelated_columns
from linkmix.densities import Contaminated
from linkmix.engine import starts
from linkmix.engine.fitting import Knowledge, linked_labels, naming_rows, part
from linkmix.links import Links
from linkmix.mixture import LinkMixture
from linkmix.mixture.calibration import Quality
from linkmix.mixture.door import SeenColumns
from linkmix.mixture.fitted import finished, told_labels, without_noise
from linkmix.search.budgets import Budget
from linkmix.search.contest import Candidate, Contest
from linkmix.search.shapes import SHAPES

BLOCK_ROWS = 2**15
"""Rows whose probabilities by each member of a committee are held at once."""
MOST_PAIRS = 1000
"""Links of each kind by which columns are tested."""


@dataclass(frozen=True, eq=False)
class Found:
    """The result of a search.

    Attributes
    ----------
    scaling : Scaling
        How the columns are scaled for the members.
    members : list of LinkMixture
        The committee; the winner is the first.
    places : list of ndarray of shape (n_classes,)
        For each class of the winner, the matching class of each member.
    leaderboard : structured ndarray
        All candidates.
    links_to_review : structured ndarray
        Every link with the probability that it is wrong.
    temperatures : ndarray of shape (n_members,)
        What the log-densities of each member are divided by for honest probabilities.
    quality : Quality or None
        How good the clustering is, if that can be told.
    labels : ndarray of shape (n_samples,)
        Class of each training point, its links honoured.
    choice : structured ndarray or None
        The best candidate for each number of classes, if the number was to be chosen.
    probabilities : ndarray of shape (n_samples,) or None
        Probability of the label of each training point, if the points are in memory.
    """

    scaling: Scaling
    members: list[LinkMixture]
    places: list[Ints]
    temperatures: Floats
    quality: Quality | None
    leaderboard: Array
    links_to_review: Array
    labels: Ints
    choice: Array | None = None
    probabilities: Floats | None = None


def views_of(given: Knowledge[Array | Table], settings: ScalingSettings, n_codes: int = 0) -> dict[str, Scaling]:
    """The ways in which the search looks at points: without noise, unless links or known labels need it.

    Parameters
    ----------
    given : Knowledge
        All that was given.
    settings : ScalingSettings
        What noise is.
    n_codes : int
        Number of columns at the end that hold codes of categories.

    Returns
    -------
    dict of str to Scaling
    """
    views = scalings(given.X, settings, n_codes, _noise(given, settings, n_codes))
    found = views.get(COMPONENTS)
    if found is not None:  # the last of them may be noise, as columns may be
        views[COMPONENTS] = found.without(_noise(given, settings, n_codes, found))
    return views


def _noise(
    given: Knowledge[Array | Table], settings: ScalingSettings, n_codes: int, scaling: Scaling | None = None
) -> Array:
    """Which columns, or components of scaled ones, are noise: by the points, and by the links and known labels."""
    noise = unrelated_columns(given.X, settings, n_codes, scaling)
    if noise.any():
        links = given.links
        if given.known is not None:
            n_known = int(np.count_nonzero(given.known >= 0))
            n_pairs = min(MOST_PAIRS, n_known * (n_known - 1) // 2)
            links = links.union(Links.from_labels(given.known, n_pairs, random_state=0))
        rows = links.points
        X, linked = take(given.X, rows), links.restrict(rows)
        X = X if scaling is None else scaling(X)
        must, cannot = (
            np.abs(X[pairs[:, 0]] - X[pairs[:, 1]]) for pairs in (linked.must[:MOST_PAIRS], linked.cannot[:MOST_PAIRS])
        )
        noise &= ~told_by_links(must, cannot, settings.told)
    return noise


def rows_of(given: Knowledge[Array | Table], budget: Budget, seed: int) -> Ints:
    """The rows that a contest sees: all linked and labelled ones, and a sample of the others."""
    needed = given.links.points
    if given.known is not None:
        needed = np.union1d(needed, np.flatnonzero(given.known >= 0))
    return sample_around(len(given.X), needed, budget.n_points, RandomState(seed), given.sample_weight)


def numbered_as_before(ground: Contest, candidate: Candidate, before: Ints) -> Candidate:
    """The candidate with classes numbered as an earlier fit did, which gave the rows of the contest these numbers."""
    place = starts.kept_numbers(candidate.evidence.labels, before, ground.n_classes, ground.known, ground.links)
    if place is None:
        return candidate
    density = ground.density(candidate.shape)
    return replace(candidate, parameters=engine.renumber(density, candidate.parameters, place))


def contest_of(
    given: Knowledge[Array | Table],
    views: Mapping[str, Scaling],
    n_classes: int,
    budget: Budget,
    seed: int,
    *,
    learn_reliability: bool = False,
    noise: bool = False,
    n_jobs: int | None = None,
    levels: tuple[int, ...] = (),
) -> Contest:
    """A contest on the given points, or on a sample with all linked and labelled ones, scaled in several ways."""
    n = len(given.X)
    n_counted = n if given.sample_weight is None else np.count_nonzero(given.sample_weight)
    if n_counted < n_classes:
        raise ValueError(
            f"n_samples={n_counted} is less than n_classes={n_classes}: pass more points or ask for fewer classes"
        )
    some = given.among(rows_of(given, budget, seed))
    first, *_ = views
    slopes = {name: scaling.log_slope(some.X) for name, scaling in views.items()}
    return Contest.of(
        {name: replace(some, X=scaling(some.X)) for name, scaling in views.items()},
        starts.without_gaps(views[first].on_one_scale(some.X)),
        n_classes,
        budget,
        seed,
        units={name: float((slope - slopes[first]).sum()) for name, slope in slopes.items()},
        learn_reliability=learn_reliability,
        noise=noise,
        n_jobs=n_jobs,
        levels=levels,
    )


def as_member(
    ground: Contest, candidate: Candidate, whole: Knowledge[Array | Table], coupling: BoundCoupling
) -> LinkMixture:
    """A candidate as an estimator, after a last step of EM on all rows, or several if it has not seen all of them."""
    shape, settings = SHAPES[candidate.shape], ground.budget.settings
    model = engine.Model(ground.density(candidate.shape), coupling)
    data = part(whole)
    n_steps = settings.last_steps if ground.shape[0] < len(whole.X) else 1
    with naming_rows(whole.links, ground.n_classes):
        fit = engine.fit(model, data, candidate.parameters, tol=settings.tol, max_iter=n_steps)
    # A name where there is one, so that the settings can be read.
    named: dict[str, Any] = {"density": shape.density, "shrinkage": "auto", "reg_covar": settings.reg_covar}
    mixture = LinkMixture(
        ground.n_classes,
        clusters_per_class=shape.clusters,
        shared_clusters=shape.shared,
        **({"density": model.density} if ground.levels or isinstance(model.density, Contaminated) else named),
        coupling="graph",
        max_iter=settings.first_steps + settings.more_steps,
        random_state=0,
    )
    fitted = finished(model, data, whole, shape.layout(ground.n_classes), fit)
    mixture.take_over(fitted, SeenColumns(whole.X.shape[1]))
    return mixture


@dataclass(frozen=True, eq=False)
class Committee:
    """Fitted mixtures whose probabilities are averaged.

    Attributes
    ----------
    members : list of Mixture
        The winner is the first.
    places : list of ndarray of shape (n_classes,)
        For each class of the winner, the matching class of each member.
    temperatures : ndarray of shape (n_members,)
        What the log-densities of each member are divided by.
    """

    members: list[engine.Mixture]
    places: list[Ints]
    temperatures: Floats

    def probabilities(self, X: Array) -> Floats:
        """Mean of the members' probabilities at their temperatures, with their classes matched, shape (n, M)."""
        if self._alone:
            return self.members[0].probabilities(X, float(self.temperatures[0]))
        return by_blocks(self._mean, X, BLOCK_ROWS, np.empty((len(X), self.members[0].n_classes)))

    def classes(self, X: Array) -> Ints:
        """The class with the largest mean probability, -1 for rows that more probably belong to none."""
        if self._alone:
            return self.members[0].classes(X)
        classes = np.empty(len(X), dtype=np.int64)
        by_blocks(lambda some: self._mean(some).argmax(axis=1), X, BLOCK_ROWS, classes)
        if self.members[0].background is not None:
            classes[self.noise(X) > 0.5] = engine.NOISE
        return classes

    def noise(self, X: Array) -> Floats:
        """Probability that a row belongs to no class; the mean over the members."""
        return np.asarray(np.mean([member.noise(X) for member in self.members], axis=0))

    def log_density(self, X: Array) -> Floats:
        """Log-density under the mean of the members' mixtures."""
        if self._alone:
            return self.members[0].log_density(X)

        def mean(some: Array) -> Floats:
            densities = np.stack([member.log_density(some) for member in self.members], axis=1)
            return np.asarray(log_sum_exp(densities) - np.log(len(self.members)))

        return by_blocks(mean, X, BLOCK_ROWS, np.empty(len(X)))

    @property
    def _alone(self) -> bool:
        """Whether there is one member, whose classes have their own numbers."""
        return len(self.members) == 1 and np.array_equal(self.places[0], np.arange(len(self.places[0])))

    def _mean(self, X: Array) -> Floats:
        each = [
            member.probabilities(X, temperature)[:, place]
            for member, place, temperature in zip(self.members, self.places, self.temperatures.tolist(), strict=True)
        ]
        return np.asarray(np.mean(each, axis=0))


def probabilities_of(labels: Ints, points: Array | Table, committee: Committee) -> Floats | None:
    """Probability of the label of each training point, from the point alone; None for points outside memory.

    A label below zero, which stands for no class, has none.
    """
    if isinstance(points, Table):
        return None
    each = committee.probabilities(points)  # (n, M)
    return np.where(labels >= 0, each[np.arange(len(each)), labels], 0.0)


def committee_labels(
    committee: Committee, whole: Knowledge[Array | Table], coupling: BoundCoupling, reliability: Floats
) -> Ints:
    """Labels of the training points by the mean of the committee, with the links applied once more."""
    points, n_classes = whole.links.points, committee.members[0].n_classes
    values = points[:0]
    if len(points):
        linked = whole.among(points)
        with np.errstate(divide="ignore"):
            log_probability = np.maximum(np.log(committee.probabilities(linked.X)), -1e3)
        even = np.full(n_classes, 1 / n_classes)
        values = linked_labels(coupling, part(linked), whole.links, log_probability, even, reliability)
        if committee.members[0].background is not None:
            odds = logit(np.clip(committee.noise(linked.X), 1e-12, 1 - 1e-12))
            values = without_noise(values, odds, whole)
    return labelled(whole.X, committee.classes, *told_labels(whole, values))
