"""The values that the engine works with, all of them frozen: parameters, models, data and sums."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from linkmix import native
from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.couplings.base import BoundCoupling, LinkExpectation
from linkmix.data.rows import Addable, FreeRows, Rows, added
from linkmix.densities.base import Density, Statistics


@dataclass(frozen=True)
class Parameters:
    """Everything that EM estimates.

    Attributes
    ----------
    class_weights : ndarray of shape (M,)
    cluster_weights : ndarray of shape (M, K), or (M, C)
        Each class has K components of its own, or each class mixes the whole pool of C components, with a weight of
        zero for those that it cannot have.
    components : object
        Parameters of the M * K components of the density.
    reliability : ndarray of shape (n_annotators,)
        Share of correct links of each annotator, if the coupling learns it.
    shared_clusters : bool
        Whether all classes mix one pool of components.

    Reliabilities of annotators are followed by the probabilities of relations, if these are learned.
    """

    class_weights: Floats
    cluster_weights: Floats
    components: Any
    reliability: Floats = field(default_factory=lambda: np.empty(0))
    shared_clusters: bool = False

    def log_cluster_weights(self) -> Floats:
        """Logarithm of the cluster weights; minus infinity for components that a class cannot have."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.cluster_weights))


@dataclass(frozen=True)
class Model:
    """What is fitted: a density, a coupling bound to its links, and the weight of a link relative to a free point."""

    density: Density[Any, Any]
    coupling: BoundCoupling
    link_weight: float = 1.0


@dataclass(frozen=True)
class FreeSums(Statistics):
    """The result of an E-step on free rows. The sums of two sets of rows add up to those of their union."""

    log_likelihood: float
    statistics: Statistics
    cluster_counts: Floats  # the shape of the cluster weights
    class_counts: Floats  # (M,)


@dataclass(frozen=True)
class Data:
    """Free rows, and linked rows in the order in which the coupling numbers them.

    Weights say how often a row counts; known labels are class numbers, -1 where the label is not known. A linked row
    of weight w counts as w copies that share its label. Free rows outside memory bring their weights and labels along.
    """

    free: Array | FreeRows
    linked: Array
    free_weights: Floats | None = None
    linked_weights: Floats | None = None
    free_known: Ints | None = None
    linked_known: Ints | None = None
    weight_outside: float = 0.0  # sum of the weights of free rows outside memory

    @cached_property
    def weight(self) -> float:
        """Sum of the weights of all rows, free and linked: their number, if they have no weights."""
        free = self.weight_outside
        if isinstance(self.free, np.ndarray):
            free = len(self.free) if self.free_weights is None else float(self.free_weights.sum())
        return free + (len(self.linked) if self.linked_weights is None else float(self.linked_weights.sum()))

    @cached_property
    def native_groups(self) -> tuple[native.Group, native.Group, native.Group] | None:
        """Rows in memory as the native core wants them: free ones of unknown and of known class, and linked ones.

        None if the core cannot read them, or if values are missing.
        """
        assert isinstance(self.free, np.ndarray)
        free, linked = Rows(self.free, self.free_weights, self.free_known), Rows(self.linked)
        if not (native.serves(free.X) and native.serves(linked.X) and free.complete and linked.complete):
            return None
        is_known = np.zeros(len(free), dtype=bool) if free.known is None else free.known >= 0
        unknown, told = (free[~is_known], free[is_known]) if is_known.any() else (free, free[:0])
        return (
            native.Group(unknown.X, unknown.weights),
            native.Group(told.X, told.weights, told.known),
            native.Group(self.linked, self.linked_weights, self.linked_known),
        )

    @cached_property
    def portions(self) -> list[Rows]:
        """The free rows in memory, portion by portion."""
        assert isinstance(self.free, np.ndarray)
        return list(Rows(self.free, self.free_weights, self.free_known).portions())

    def total(self, function: Callable[[Rows], Addable]) -> Addable | None:
        """Sum of a function over all portions of free rows; None if there are none."""
        return added(map(function, self.portions)) if isinstance(self.free, np.ndarray) else self.free.total(function)


@dataclass(frozen=True)
class Expectation:
    """The result of an E-step on all points: J, and the sums that the M-step needs."""

    log_likelihood: float
    statistics: Statistics
    cluster_counts: Floats  # the shape of the cluster weights
    free_class_counts: Floats  # (M,)
    links: LinkExpectation


@dataclass(frozen=True)
class Fit:
    """The result of EM.

    Attributes
    ----------
    parameters : Parameters
    log_likelihood : float
        J of the parameters.
    trace : ndarray
        The objective of EM, which is J plus any log-priors, at the start and after each M-step.
    converged : bool
    """

    parameters: Parameters
    log_likelihood: float
    trace: Floats
    converged: bool
