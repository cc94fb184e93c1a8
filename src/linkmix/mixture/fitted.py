"""The result of a fit as a value, from which an estimator sets its attributes."""

import warnings
from collections.abc import Callable, Hashable
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkmix import engine
from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.couplings.observed import BoundGraph
from linkmix.couplings.review import RELATION_REVIEW, REVIEW, links_to_review, relations_to_review
from linkmix.couplings.statements import FIRST_RELIABILITY
from linkmix.data.blocks import Table, labelled
from linkmix.densities import Density
from linkmix.engine.fitting import Knowledge, linked_labels
from linkmix.engine.starts import Shape
from linkmix.links import Links

ONE_CLASS = 1 - 1e-6
"""If a class has more weight, the others have vanished."""
NO_ROWS = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Fitted:
    """The result of a fit.

    Attributes
    ----------
    density : Density
    shape : Shape
    fit : Fit
        Parameters, J, its trace and whether EM converged.
    labels : ndarray of shape (n_samples,)
        Class of each training point, its links honoured.
    links_to_review : structured ndarray
        Every link with the probability that it is wrong.
    reliability : dict
        Share of correct links of each annotator, if it was learned.
    relation_probability : ndarray of shape (n_relations,)
        Probability that each relation is satisfied, learned or given.
    relations_to_review : structured ndarray
        Every set of every relation with the probability that its labels do not satisfy it.
    """

    density: Density[Any, Any]
    shape: Shape
    fit: engine.Fit
    labels: Ints
    links_to_review: Array
    reliability: dict[Hashable, float]
    relation_probability: Floats = field(default_factory=lambda: np.empty(0))
    relations_to_review: Array = field(default_factory=lambda: np.empty(0, dtype=RELATION_REVIEW))


def finished(
    model: engine.Model,
    data: engine.Data,
    given: Knowledge[Array | Table],
    shape: Shape,
    fit: engine.Fit,
) -> Fitted:
    """Complete a fit with the labels of its points and the links to review."""
    parameters, points = fit.parameters, given.links.points
    if given.links.relations and isinstance(model.coupling, BoundGraph) and parameters.class_weights.max() > ONE_CLASS:
        warnings.warn(
            f"class {parameters.class_weights.argmax()} has all the weight. With relations that favour equal labels, "
            'one class for all points can be the most probable: use coupling="pairwise", or give more links',
            UserWarning,
            stacklevel=4,
        )
    reliability = dict(zip(model.coupling.annotators, parameters.reliability, strict=False))
    probability = model.coupling.relation_probabilities(parameters.reliability)
    labels, table, related = NO_ROWS, np.empty(0, dtype=REVIEW), np.empty(0, dtype=RELATION_REVIEW)
    if len(points):
        weights = parameters.class_weights
        linked = np.asarray(data.linked, dtype=np.float64)  # few rows: double precision costs nothing
        log_density = engine.class_log_joint(model.density, parameters, linked) - np.log(weights)
        labels = linked_labels(model.coupling, data, given.links, log_density, weights, parameters.reliability)
        table = review_links(given.links, reliability, log_density, weights)
        related = relations_to_review(given.links.restrict(points), log_density, probability)
        mixture = engine.mixture_of(model.density, parameters)
        if mixture.background is not None:
            labels = without_noise(labels, mixture.noise_log_odds(linked), given)
    return Fitted(
        model.density,
        shape,
        fit,
        label_points(model.density, parameters, given.X, *told_labels(given, labels)),
        table,
        reliability,
        probability,
        related,
    )


def without_noise(labels: Ints, noise_log_odds: Floats, given: Knowledge[Array | Table]) -> Ints:
    """Labels of the linked points, -1 for those that belong to no class.

    Points that certain must-links hold together are noise together or not at all: the odds of each count. Points whose
    class is known are none.
    """
    points = given.links.points
    group = given.links.restrict(points).chunklets(len(points))
    odds = np.bincount(group, noise_log_odds)
    if given.known is not None:
        odds[group[given.known[points] >= 0]] = -np.inf
    return np.where(odds[group] > 0, engine.NOISE, labels)


def told_labels(given: Knowledge[Array | Table], of_linked: Ints) -> tuple[Ints, Ints]:
    """The rows, in order, that do not get the label of a single point, and the labels of these.

    They are the linked ones, with their labels given, and those whose class, or lack of one, is known.
    """
    rows, labels = given.links.points, of_linked
    if given.known is not None:
        told = np.setdiff1d(np.flatnonzero(given.known >= 0), rows)
        rows, labels = np.concatenate([rows, told]), np.concatenate([labels, given.known[told]])
    if given.noise is not None:  # these have neither links nor a known class
        told = np.flatnonzero(given.noise)
        rows, labels = np.concatenate([rows, told]), np.concatenate([labels, np.full(len(told), engine.NOISE)])
    order = np.argsort(rows)
    return rows[order], labels[order]


def review_links(links: Links, reliability: dict[Hashable, float], log_density: Floats, weights: Floats) -> Array:
    """Every link with the probability that it is wrong, the most doubtful first, from log-densities (n_linked, M)."""
    points = links.points
    table = links_to_review(trusted(links.restrict(points), reliability), log_density, weights)
    table["a"], table["b"] = points[table["a"]], points[table["b"]]
    return table


def label_points(
    density: Density[Any, Any],
    parameters: engine.Parameters,
    points: Array | Table,
    rows: Ints = NO_ROWS,
    labels: Ints = NO_ROWS,
) -> Ints:
    """Most probable class of each point, from the point alone; some ``rows`` get the given ``labels``."""
    return labelled(points, engine.mixture_of(density, parameters).classes, rows, labels)


def light(model: Any) -> Any:
    """A copy of a fitted estimator that predicts, without what grows with the training points."""
    other = copy(model)
    grown = ("labels_", "probabilities_", "links", "links_to_review_", "relations_to_review_", "leaderboard_", "init")
    for name in grown:
        if name in vars(other):
            setattr(other, name, None)
    if hasattr(model, "estimators_"):
        other.estimators_ = [light(member) for member in model.estimators_]
        other.best_estimator_ = other.estimators_[0]
    return other


def each_row(function: Callable[[Array], Array], points: Array | Table) -> Array:
    """The result of a function of rows, one for each row; of points outside memory, block by block."""
    if not isinstance(points, Table):
        return function(points)
    out = None
    for first, some in zip(points.firsts.tolist(), points.map(function), strict=False):
        if out is None:
            out = np.empty((len(points), *some.shape[1:]), dtype=some.dtype)
        out[first : first + len(some)] = some
    assert out is not None
    return out


def trusted(links: Links, reliability: dict[Hashable, float]) -> Links:
    """Links with the reliability of their annotators as confidence, if it was learned."""
    if not reliability:
        return links

    def confidence(annotators: Array | None, n: int) -> list[float]:
        names = [None] * n if annotators is None else annotators
        return [float(reliability.get(name, FIRST_RELIABILITY)) for name in names]

    return Links(
        links.must,
        links.cannot,
        must_confidence=confidence(links.must_annotators, links.n_must),
        cannot_confidence=confidence(links.cannot_annotators, links.n_cannot),
        must_annotators=links.must_annotators,
        cannot_annotators=links.cannot_annotators,
        relations=links.relations,
    )


def settled(links: Links, probability: Floats) -> Links:
    """Links with the learned probability of their relations, if there are as many as were fitted."""
    if not any(relation.learn for relation in links.relations) or len(links.relations) != len(probability):
        return links
    pairs = zip(links.relations, probability.tolist(), strict=True)
    relations = [relation.settled(value) if relation.learn else relation for relation, value in pairs]
    return links.without_relations().union(Links(relations=relations))
