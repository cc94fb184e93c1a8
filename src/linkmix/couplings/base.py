"""What a coupling must offer to the EM engine.

A coupling says how the labels of linked points depend on each other. It sees only the linked points, and for each of
them only the log-density of each class: it knows nothing of clusters, covariances or columns.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from linkmix.basics.arrays import Floats, Ints
from linkmix.couplings.class_weights import normalise_class_weights
from linkmix.links import Links
from linkmix.native import LinkTable


@dataclass(frozen=True, eq=False)
class LinkExpectation:
    """The result of the E-step for the linked points.

    Attributes
    ----------
    log_likelihood : float
        The part of J that comes from the links.
    label_weights : ndarray of shape (n_linked, n_classes)
        Sum of the label responsibilities of each linked point over all items that it belongs to.
    class_counts : ndarray of shape (n_classes,)
        Expected number of labels of each class. A must-link has one label, though it has two points.
    """

    log_likelihood: float
    label_weights: Floats
    class_counts: Floats


NO_RELIABILITY: Floats = np.empty(0)
"""The reliabilities of a coupling that learns none."""


class BoundCoupling(ABC):
    """A coupling together with the links of one data set, numbered within the linked points."""

    @abstractmethod
    def expect(
        self, class_log_density: Floats, class_weights: Floats, reliability: Floats = NO_RELIABILITY
    ) -> LinkExpectation:
        """E-step of the linked points from ``log p(x | class)`` (n_linked, n_classes) and the class weights."""

    def class_weights(self, free_counts: Floats, expectation: LinkExpectation, previous: Floats) -> Floats:
        """M-step of the class weights, from the label counts of the free points and the last E-step.

        By default the shares of the classes. A coupling whose prior is normalised by a function of the class weights
        needs more. The counts of the free points are already divided by the weight of a link, which does not change
        the solution.
        """
        return normalise_class_weights(free_counts + expectation.class_counts, previous)

    def labels(self, class_log_density: Floats, class_weights: Floats, reliability: Floats = NO_RELIABILITY) -> Ints:
        """Labels of the linked points, from the arguments of `expect`; by default the most probable label of each.

        A coupling with certain links returns labels that satisfy them.
        """
        return np.asarray(self.expect(class_log_density, class_weights, reliability).label_weights.argmax(axis=1))

    def careful(self) -> "BoundCoupling":
        """The same coupling without approximations that serve the comparison of many fits only."""
        return self

    def weighted(self, weights: Floats) -> "BoundCoupling":
        """The same coupling for linked points of these weights, shape (n_linked,).

        The log-densities that `expect` gets are multiplied by the weights already. By default nothing else changes: a
        point has one label, however much it weighs.
        """
        return self

    def to_native(self) -> LinkTable | None:
        """Everything known about the linked points, as the native core represents it; None if it cannot."""
        return None

    # For a coupling that learns how far annotators can be trusted, and how probable relations are:

    @property
    def annotators(self) -> tuple[Hashable, ...]:
        """Annotators whose reliability is learned."""
        return ()

    def first_reliability(self) -> Floats:
        """Initial reliability of each annotator, and of each relation whose probability is learned."""
        return NO_RELIABILITY

    def relation_probabilities(self, reliability: Floats) -> Floats:
        """Probability that each relation is satisfied, learned or given."""
        return NO_RELIABILITY

    def reliability(self, expectation: LinkExpectation, previous: Floats) -> Floats:
        """M-step of the reliabilities."""
        return previous

    def log_prior(self, reliability: Floats) -> float:
        """Logarithm of the prior of the reliabilities."""
        return 0.0


class Coupling(ABC):
    """A way in which links tie labels together.

    The couplings of linkmix are frozen dataclasses whose fields are their settings. Equality, representation and
    saving follow from the fields.

    Attributes
    ----------
    learn_reliability : bool
        Whether it learns how often each annotator is right, instead of taking confidences as given.
    """

    learn_reliability: bool = False

    @abstractmethod
    def bind(self, links: Links, n_linked: int, n_classes: int) -> BoundCoupling:
        """Prepare for links between ``n_linked`` points, numbered from 0; every point is in at least one link."""


def refuse_relations(links: Links, name: str) -> None:
    """Raise a ValueError if there are relations, which a coupling makes no use of."""
    if links.relations:
        raise ValueError(
            f"coupling '{name}' makes no use of relations, but got {links}: choose coupling='graph' or 'pairwise'"
        )
