"""No coupling: an ordinary mixture in which every point is free."""

from dataclasses import dataclass

import numpy as np

from linkmix.basics.arrays import Floats
from linkmix.couplings.base import NO_RELIABILITY, BoundCoupling, Coupling, LinkExpectation
from linkmix.links import Links
from linkmix.native import NO_PAIRS, PairTable


class BoundUncoupled(BoundCoupling):
    """Nothing is linked."""

    def expect(
        self, class_log_density: Floats, class_weights: Floats, reliability: Floats = NO_RELIABILITY
    ) -> LinkExpectation:
        """Nothing to add."""
        return LinkExpectation(0.0, np.zeros_like(class_log_density), np.zeros(len(class_weights)))

    def to_native(self) -> PairTable | None:
        """No pairs."""
        return NO_PAIRS


@dataclass(frozen=True)
class Uncoupled(Coupling):
    """Points are independent. Links are refused, since they would have no effect."""

    def bind(self, links: Links, n_linked: int, n_classes: int) -> BoundCoupling:
        """Refuse links."""
        if n_linked:
            raise ValueError(
                f"coupling 'none' makes no use of links, but got {links}: pass no links or choose coupling='pairwise'"
            )
        return BoundUncoupled()
