"""What a coupling must offer to the EM engine.

A coupling says how the labels of linked points depend on each other. It sees the linked points only, and of them only
the log-density of each class: it knows nothing of clusters, covariances or columns.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from linkmix.basics.arrays import Floats, Ints
from linkmix.links import Links
from linkmix.native import PairTable


@dataclass(frozen=True)
class LinkExpectation:
    """What the E-step says of the linked points.

    Attributes
    ----------
    log_likelihood : float
        The part of J that belongs to the links.
    label_weights : ndarray of shape (n_linked, n_classes)
        Sum of the label responsibilities of each linked point over all items that it is part of.
    class_counts : ndarray of shape (n_classes,)
        Expected number of labels of each class. A must-link has one label, though it has two points.
    """

    log_likelihood: float
    label_weights: Floats
    class_counts: Floats


NO_RELIABILITY: Floats = np.empty(0)
"""What a coupling without annotators to judge goes by."""


class BoundCoupling(ABC):
    """A coupling together with the links of one data set, numbered within the linked points."""

    @abstractmethod
    def expect(
        self, class_log_density: Floats, class_weights: Floats, reliability: Floats = NO_RELIABILITY
    ) -> LinkExpectation:
        """E-step of the linked points from ``log p(x | class)`` (n_linked, n_classes) and the class weights."""

    @abstractmethod
    def class_weights(self, free_counts: Floats, expectation: LinkExpectation, previous: Floats) -> Floats:
        """M-step of the class weights, from the label counts of the free points and the last E-step.

        The counts of the free points come divided by the weight of a link, which leaves the solution the same.
        """

    def labels(self, class_log_density: Floats, class_weights: Floats, reliability: Floats = NO_RELIABILITY) -> Ints:
        """Labels of the linked points, from what `expect` sees: the most probable one of each, if nothing else is said.

        A coupling whose links are certain gives labels that meet them.
        """
        return np.asarray(self.expect(class_log_density, class_weights, reliability).label_weights.argmax(axis=1))

    def to_native(self) -> PairTable | None:
        """All that is said of the linked points as pairs; None where more is said, or where the core would not do."""
        return None

    # A coupling that learns how far annotators can be trusted has more to say.

    @property
    def annotators(self) -> tuple[Hashable, ...]:
        """Those whose reliability is learned."""
        return ()

    def first_reliability(self) -> Floats:
        """Reliability of each annotator at the start."""
        return NO_RELIABILITY

    def reliability(self, expectation: LinkExpectation, previous: Floats) -> Floats:
        """M-step of the reliabilities."""
        return previous

    def log_prior(self, reliability: Floats) -> float:
        """Logarithm of the prior of the reliabilities."""
        return 0.0


class Coupling(ABC):
    """A way in which links tie labels together.

    Attributes
    ----------
    learn_reliability : bool
        Whether it learns how often each annotator is right, instead of taking confidences as given.
    """

    learn_reliability: bool = False

    @abstractmethod
    def bind(self, links: Links, n_linked: int, n_classes: int) -> BoundCoupling:
        """Prepare for links between ``n_linked`` points, numbered from 0; every point is in at least one link."""
