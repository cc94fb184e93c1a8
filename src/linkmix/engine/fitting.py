"""From checked input to a fit: rows parted into free and linked, starts tried, linked points labelled."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.random import RandomState
from sklearn.utils.random import sample_without_replacement
from threadpoolctl import ThreadpoolController

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.basics.errors import DegenerateCluster, InfeasibleLinks
from linkmix.couplings import Coupling
from linkmix.data.blocks import Table
from linkmix.data.rows import Rows, without
from linkmix.densities import Density
from linkmix.engine import loop, starts, steps
from linkmix.engine.values import Data, Fit, Model, Parameters
from linkmix.links import Links

LINKS_SHOWN = 10
WIDE = 64
"""From so many columns on, the matrices of a fit are large enough to share among threads."""
TINY = 2**12
"""With no more numbers than this, linear algebra keeps to one thread by itself."""
SAMPLE_NUMBERS = 2**20
"""Numbers in a sample of rows that are not in memory."""
STARTS: dict[str, Callable[..., Ints]] = {
    "kmeans++": starts.kmeans_plusplus_classes,
    "links": starts.link_classes,
}


Start = Callable[[], Parameters]
"""A way to make a start: it may fail, and then only this one start is lost."""


@dataclass(frozen=True)
class Knowledge:
    """All that is given: points (n, d), links between them, and where they are given, weights and known labels."""

    X: Array
    links: Links
    sample_weight: Floats | None = None
    known: Ints | None = None


@dataclass(frozen=True)
class FarKnowledge:
    """The same of points that are not in memory."""

    X: Table
    links: Links
    sample_weight: Floats | None = None
    known: Ints | None = None


def at_hand(given: Knowledge | FarKnowledge, random: RandomState) -> Knowledge:
    """All that is given, as far as it fits into memory: of points that are elsewhere a sample.

    It holds all linked rows, and as many of the rows with known labels as a sample of rows has place for.
    """
    if isinstance(given, Knowledge):
        return given
    n, d = given.X.shape
    size = min(n, max(1, SAMPLE_NUMBERS // d))
    weights, known = given.sample_weight, given.known
    rows = sample_without_replacement(n, size, random_state=random)
    if weights is not None:
        rows = rows[weights[rows] > 0]
    if known is not None:
        told = np.flatnonzero(known >= 0)
        rows = np.union1d(rows, random.choice(told, min(size, len(told)), replace=False))
    rows = np.union1d(rows, given.links.points)
    return Knowledge(
        given.X.take(rows),
        given.links.restrict(rows),
        None if weights is None else weights[rows],
        None if known is None else known[rows],
    )


def part(given: Knowledge | FarKnowledge, *, keep_linked: bool = False) -> Data:
    """Part linked rows from free ones; with ``keep_linked`` linked rows are free rows as well."""
    points = given.links.points
    if isinstance(given, FarKnowledge):
        weights, known = given.sample_weight, given.known
        return Data(
            given.X.free(points[:0] if keep_linked else points, weights, known),
            given.X.take(points),
            linked_weights=None if weights is None else weights[points],
            linked_known=None if known is None else known[points],
        )
    weights, known = given.sample_weight, given.known
    rows = Rows(given.X, weights, known)  # a view where no row is linked: no copy of all points
    free = rows if keep_linked else without(rows, points)
    linked = rows[points]
    return Data(free.X, linked.X, free.weights, linked.weights, free.known, linked.known)


def bind(density: Density[Any, Any], coupling: Coupling, links: Links, n_classes: int, link_weight: float) -> Model:
    """Tell the coupling of its links, in numbers of the linked rows."""
    points = links.points
    with naming_rows(links, n_classes):
        within = links.restrict(points) if len(points) else links
        return Model(density, coupling.bind(within, len(points), n_classes), link_weight)


def fresh_starts(
    given: Knowledge, density: Density[Any, Any], init: str, shape: starts.Shape, n_starts: int, random: RandomState
) -> list[Start]:
    """Starts by name; each call draws another one."""
    links, known = given.links, given.known
    if known is not None:  # for the starts, known labels are links like others; they number the classes as well
        links = links.union(Links.from_labels(known))

    def start() -> Parameters:
        classes = STARTS[init](given.X, links, shape, random, given.sample_weight)
        if known is not None:
            classes = starts.match_labels(classes, known, shape.n_classes)[classes]
            classes = np.where(known >= 0, known, classes)
        return starts.from_classes(density, given.X, classes, shape, random, given.sample_weight)

    return [start] * n_starts


def best_fit(model: Model, data: Data, candidates: Iterable[Start], links: Links, *, tol: float, max_iter: int) -> Fit:
    """The fit with the highest J of all starts. A start in which a cluster degenerates is passed over, if any does not.

    By J and not by J plus priors: a prior that is made from the start does not compare between starts.
    """
    best, failure = None, None
    for candidate in candidates:
        try:
            start = candidate()
            if len(start.reliability) != len(model.coupling.annotators):
                start = replace(start, reliability=model.coupling.first_reliability())
            with naming_rows(links, len(start.class_weights)):
                fit = loop.fit(model, data, start, tol=tol, max_iter=max_iter)
        except DegenerateCluster as error:
            failure = error
            continue
        if best is None or fit.log_likelihood > best.log_likelihood:
            best = fit
    if best is None:
        assert failure is not None
        raise failure
    return best


def linked_labels(model: Model, data: Data, links: Links, parameters: Parameters, class_log_density: Floats) -> Ints:
    """Labels of the linked points, from their log-densities (n_linked, M)."""
    log_labels = steps.label_log_density(class_log_density, data)
    weights, reliability = parameters.class_weights, parameters.reliability
    try:
        with naming_rows(links, len(weights)):
            return model.coupling.labels(log_labels, weights, reliability)
    except InfeasibleLinks as error:
        # The pairwise model is at ease with links that no labelling meets; labels can not be.
        warnings.warn(f"labels_ breaks some links: {error}", UserWarning, stacklevel=5)
        return np.asarray(model.coupling.expect(log_labels, weights, reliability).label_weights.argmax(axis=1))


@contextmanager
def few_threads(n_rows: int, n_features: int) -> Iterator[None]:
    """One thread for linear algebra where matrices are small: more of them wait for each other instead of working."""
    if n_features >= WIDE or n_rows * n_features <= TINY:
        yield
        return
    with _thread_pools().limit(limits=1):
        yield


@cache
def _thread_pools() -> ThreadpoolController:
    return ThreadpoolController()  # a search through the loaded libraries, made once


@contextmanager
def naming_rows(links: Links, n_classes: int) -> Iterator[None]:
    """Say which rows of X links that can not be met are between, where the network counts linked rows."""
    try:
        yield
    except InfeasibleLinks as error:
        if error.links is None:  # none are to blame
            raise
        pairs = links.points[error.links.cannot]
        shown = ", ".join(f"{a}-{b}" for a, b in pairs[:LINKS_SHOWN].tolist())
        more = f" and {len(pairs) - LINKS_SHOWN} more" if len(pairs) > LINKS_SHOWN else ""
        raise InfeasibleLinks(
            f"no labelling with {n_classes} classes meets these {len(pairs)} cannot-links together with the "
            f"must-links: rows {shown}{more}; drop one of them or raise n_classes",
            Links(cannot=pairs),
        ) from None
