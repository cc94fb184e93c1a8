"""From checked input to a fit: separates linked from free rows, tries the starts, and labels the linked points."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.random import RandomState
from threadpoolctl import ThreadpoolController

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.basics.errors import DegenerateCluster, InfeasibleLinks
from linkmix.basics.progress import LOG
from linkmix.couplings import BoundCoupling, Coupling
from linkmix.data.blocks import Table, take
from linkmix.data.rows import Rows, without
from linkmix.data.sample import sample_around
from linkmix.densities import Density
from linkmix.engine import loop, starts, steps
from linkmix.engine.values import Data, Fit, Model, Parameters
from linkmix.links import Links

LINKS_SHOWN = 10
WIDE = 64
"""With at least this many columns, matrices are large enough to gain from several threads."""
TINY = 2**12
"""With at most this many numbers, linear algebra uses one thread anyway."""
SAMPLE_NUMBERS = 2**20
"""Number of values in a sample of rows that are not in memory."""
STARTS: dict[str, Callable[..., Ints]] = {
    "kmeans++": starts.kmeans_plusplus_classes,
    "links": starts.link_classes,
}


PointsT = TypeVar("PointsT", bound=Array | Table, covariant=True)
"""Points in memory, or elsewhere."""
Start = Callable[[], Parameters]
"""Makes a start. If it fails, only this start is lost."""


@dataclass(frozen=True)
class Knowledge(Generic[PointsT]):
    """All input of a fit: points (n, d) in memory or elsewhere, links, and optionally weights and known labels.

    Rows that are known to belong to no class are ``noise`` (n,). They have no links and count for nothing.
    """

    X: PointsT
    links: Links
    sample_weight: Floats | None = None
    known: Ints | None = None
    noise: Array | None = None

    def among(self, rows: Ints) -> "Knowledge[Array]":
        """The same for some rows, given by their sorted numbers."""
        weights, known, noise = self.sample_weight, self.known, self.noise
        return Knowledge(
            take(self.X, rows),
            self.links if len(rows) == len(self.X) else self.links.restrict(rows),
            None if weights is None else weights[rows],
            None if known is None else known[rows],
            None if noise is None else noise[rows],
        )


def at_hand(given: Knowledge[Array | Table], random: RandomState) -> Knowledge[Array]:
    """The input in memory: for points that are elsewhere, a sample that includes all linked rows.

    The sample also includes rows with known labels, as many as fit.
    """
    if not isinstance(given.X, Table):
        return given  # type: ignore[return-value]
    n, d = given.X.shape
    size = max(1, SAMPLE_NUMBERS // d)
    needed = given.links.points
    if given.known is not None:
        told = np.flatnonzero(given.known >= 0)
        needed = np.union1d(needed, random.choice(told, min(size, len(told)), replace=False))
    return given.among(sample_around(n, needed, size, random, given.sample_weight))


def part(given: Knowledge[Array | Table], *, keep_linked: bool = False) -> Data:
    """Separate linked rows from free ones; with ``keep_linked``, linked rows are free rows as well."""
    points, weights, known = given.links.points, given.sample_weight, given.known
    if isinstance(given.X, Table):
        apart = points[:0] if keep_linked else points
        return Data(
            given.X.free(apart, weights, known),
            given.X.take(points),
            linked_weights=None if weights is None else weights[points],
            linked_known=None if known is None else known[points],
            weight_outside=len(given.X) - len(apart)
            if weights is None
            else float(weights.sum() - weights[apart].sum()),
        )
    rows = Rows(given.X, weights, known)  # a view where no row is linked: no copy of all points
    free = rows if keep_linked else without(rows, points)
    linked = rows[points]
    return Data(free.X, linked.X, free.weights, linked.weights, free.known, linked.known)


def bind(coupling: Coupling, links: Links, n_classes: int, sample_weight: Floats | None = None) -> BoundCoupling:
    """Bind the coupling to its links, with the linked rows renumbered from 0."""
    points = links.points
    with naming_rows(links, n_classes):
        bound = coupling.bind(links.restrict(points) if len(points) else links, len(points), n_classes)
    return bound if sample_weight is None else bound.weighted(sample_weight[points])


def fresh_starts(
    given: Knowledge[Array],
    density: Density[Any, Any],
    init: str,
    shape: starts.Shape,
    n_starts: int,
    random: RandomState,
) -> list[Start]:
    """Starts by a method of `STARTS`; each call draws a new one."""
    links, known = given.links, given.known
    if known is not None:  # starts treat known labels as links, and number the classes by them
        links = links.union(Links.from_labels(known))

    def start() -> Parameters:
        classes = STARTS[init](given.X, links, shape, random, given.sample_weight)
        if known is not None:
            classes = starts.match_labels(classes, known, shape.n_classes)[classes]
            classes = np.where(known >= 0, known, classes)
        told = None if known is None else np.unique(known[known >= 0])
        classes = starts.number_classes(classes, given.links, shape.n_classes, told)[classes]
        return starts.from_classes(density, given.X, classes, shape, random, given.sample_weight)

    return [start] * n_starts


def best_fit(
    model: Model,
    data: Data,
    candidates: Iterable[Start],
    links: Links,
    *,
    tol: float,
    max_iter: int,
    accelerate: bool = False,
) -> Fit:
    """The fit with the highest J over all starts. Starts in which a cluster degenerates are skipped, unless all do.

    Fits are compared by J, not by J plus log-prior: a prior that depends on the start is not comparable between starts.
    """
    best, failure = None, None
    for candidate in candidates:
        try:
            start = candidate()
            first = model.coupling.first_reliability()
            if len(start.reliability) != len(first):
                start = replace(start, reliability=first)
            with naming_rows(links, len(start.class_weights)):
                fit = loop.fit(model, data, start, tol=tol, max_iter=max_iter, accelerate=accelerate)
        except DegenerateCluster as error:
            failure = error
            LOG.debug("EM gave up a start: %s", error)
            continue
        how = "converged" if fit.converged else "stopped"
        LOG.debug("EM %s after %d steps, log-likelihood %.8g", how, len(fit.trace) - 1, fit.log_likelihood)
        if best is None or fit.log_likelihood > best.log_likelihood:
            best = fit
    if best is None:
        assert failure is not None
        raise failure
    return best


def linked_labels(
    coupling: BoundCoupling, data: Data, links: Links, class_log_density: Floats, weights: Floats, reliability: Floats
) -> Ints:
    """Labels of the linked points, from their log-densities (n_linked, M) and the class weights."""
    log_labels = steps.label_log_density(class_log_density, data)
    try:
        with naming_rows(links, len(weights)):
            return coupling.labels(log_labels, weights, reliability)
    except InfeasibleLinks as error:
        # The pairwise likelihood is defined even if no labelling meets all links; labels are not.
        warnings.warn(f"labels_ breaks some links: {error}", UserWarning, stacklevel=5)
        return np.asarray(coupling.expect(log_labels, weights, reliability).label_weights.argmax(axis=1))


@contextmanager
def few_threads(n_rows: int, n_features: int) -> Iterator[None]:
    """Limit linear algebra on small matrices to one thread: several would mostly wait for each other."""
    if n_features >= WIDE or n_rows * n_features <= TINY:
        yield
        return
    with _thread_pools().limit(limits=1):
        yield


@cache
def _thread_pools() -> ThreadpoolController:
    return ThreadpoolController()  # searches the loaded libraries, so it is made only once


@contextmanager
def naming_rows(links: Links, n_classes: int) -> Iterator[None]:
    """In errors about links that cannot be met, name the rows of X; a coupling numbers only the linked rows."""
    try:
        yield
    except InfeasibleLinks as error:
        if error.links is None:  # no particular links are to blame
            raise
        pairs = links.points[error.links.cannot]
        shown = ", ".join(f"{a}-{b}" for a, b in pairs[:LINKS_SHOWN].tolist())
        more = f" and {len(pairs) - LINKS_SHOWN} more" if len(pairs) > LINKS_SHOWN else ""
        raise InfeasibleLinks(
            f"no labelling with {n_classes} classes meets these {len(pairs)} cannot-links together with the "
            f"must-links: rows {shown}{more}; drop one of them or raise n_classes",
            Links(cannot=pairs),
        ) from None
