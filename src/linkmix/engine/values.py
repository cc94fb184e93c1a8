"""The values that the engine works with, all of them frozen: parameters, models, data and sums."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

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
    cluster_weights : ndarray of shape (M, K), or (M, M * K)
        Each class has K components of its own, or each class mixes the whole pool of components.
    components : object
        Parameters of the M * K components of the density.
    reliability : ndarray of shape (n_annotators,)
        Share of correct links of each annotator, if the coupling learns it.
    shared_clusters : bool
        Whether all classes mix one pool of components.
    """

    class_weights: Floats
    cluster_weights: Floats
    components: Any
    reliability: Floats = field(default_factory=lambda: np.empty(0))
    shared_clusters: bool = False


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
