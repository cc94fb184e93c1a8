"""No coupling: an ordinary mixture. Every point is free."""

from dataclasses import dataclass

import numpy as np

from linkmix.basics.arrays import Floats
from linkmix.couplings.base import NO_RELIABILITY, BoundCoupling, Coupling, LinkExpectation
from linkmix.couplings.class_weights import normalise_class_weights
from linkmix.links import Links
from linkmix.native import NO_PAIRS, PairTable


class BoundUncoupled(BoundCoupling):
    """Nothing is linked."""

    def expect(
        self, class_log_density: Floats, class_weights: Floats, reliability: Floats = NO_RELIABILITY
    ) -> LinkExpectation:
        """Nothing to add."""
        return LinkExpectation(0.0, np.zeros_like(class_log_density), np.zeros(len(class_weights)))

    def class_weights(self, free_counts: Floats, expectation: LinkExpectation, previous: Floats) -> Floats:
        """Shares of the classes."""
        return normalise_class_weights(free_counts, previous)

    def to_native(self) -> PairTable | None:
        """No pairs."""
        return NO_PAIRS


@dataclass(frozen=True)
class Uncoupled(Coupling):
    """Points are independent. Links are refused: nothing would become of them."""

    def bind(self, links: Links, n_linked: int, n_classes: int) -> BoundCoupling:
        """Refuse links."""
        if n_linked:
            raise ValueError(
                f"coupling 'none' makes no use of links, but got {links}: pass no links or choose coupling='pairwise'"
            )
        return BoundUncoupled()
