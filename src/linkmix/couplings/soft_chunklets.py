"""Must-linked groups that each point may or may not obey (Law, Topchy and Jain, 2004 and 2005).

Points that must-links connect are a group with one label, drawn by the class weights. A hidden variable for each of its
points says whether the link is enforced, with probability g_i, the strength: the point then has the label of the group,
and otherwise one of its own.

    p(x_i, i in group) = sum_w a_w prod_i [g_i p(x_i | w) + (1 - g_i) sum_m a_m p(x_i | m)]

Every point is in one group, so the E-step is exact. At strength 1 these are the chunklets of GMM-EC. The two points of
a pair share a label for certain with probability g_i g_j, and are independent otherwise. That an unsure link leaves
labels independent, and not different, is what sets it apart from the other couplings.
"""

from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from linkmix.basics.arrays import Floats, log_sum_exp, shares
from linkmix.basics.checks import check_number
from linkmix.couplings.base import NO_RELIABILITY, BoundCoupling, Coupling, LinkExpectation, refuse_relations
from linkmix.couplings.none import BoundUncoupled
from linkmix.links import Links


class BoundSoftChunklets(BoundCoupling):
    """Groups of points, and the strength of each point's tie to its group."""

    def __init__(self, links: Links, n_linked: int, strength: float) -> None:
        i, j = links.must.T
        _, self.group = connected_components(coo_array((np.ones(len(i)), (i, j)), shape=(n_linked, n_linked)), False)
        confidence = np.ones(len(i)) if links.must_confidence is None else links.must_confidence
        surest = np.zeros(n_linked)
        np.maximum.at(surest, links.must.ravel(), np.repeat(confidence, 2))
        # A pair of confidence c then holds with probability 2 c - 1: c = 1/2 says nothing, and nothing says "apart".
        tie = strength * np.sqrt(np.maximum(2 * surest - 1, 0.0))
        with np.errstate(divide="ignore"):
            self._log_tie, self._log_loose = np.log(tie)[:, None], np.log1p(-tie)[:, None]

    def expect(
        self, class_log_density: Floats, class_weights: Floats, reliability: Floats = NO_RELIABILITY
    ) -> LinkExpectation:
        """Labels of the groups, whether each point has that of its group, and the labels of those that have not."""
        log_weights = np.log(class_weights)
        own = log_weights + class_log_density  # (n_linked, M)
        tied = self._log_tie + class_log_density  # the label of the group is m, and so is that of the point
        either = np.logaddexp(tied, self._log_loose + log_sum_exp(own)[:, None])
        log_group = np.tile(log_weights, (self.group.max() + 1, 1))
        np.add.at(log_group, self.group, either)
        group = shares(log_group)
        obeys = group[self.group] * np.exp(tied - np.where(either > -np.inf, either, 0.0))  # known labels: -inf
        alone = (1 - obeys.sum(axis=1))[:, None] * shares(own)
        return LinkExpectation(
            float(log_sum_exp(log_group).sum()), obeys + alone, group.sum(axis=0) + alone.sum(axis=0)
        )


@dataclass(frozen=True)
class SoftChunklets(Coupling):
    """Must-links as random variables: a linked point has the label of its group with some probability.

    Parameters
    ----------
    strength : float, default=0.95
        Probability that a point of a certain link has the label of its group. At 1 this is GMM-EC with chunklets. A
        link of confidence c has the strength times the square root of 2 c - 1; a point has that of its surest link.
    """

    strength: float = 0.95

    def __post_init__(self) -> None:
        check_number("strength", self.strength, Real, 0)
        if self.strength > 1:
            raise ValueError(f"strength={self.strength!r} is no probability: choose a number from 0 to 1")

    def bind(self, links: Links, n_linked: int, n_classes: int) -> BoundCoupling:
        """Prepare the groups; cannot-links are refused."""
        refuse_relations(links, "soft chunklets")
        if links.n_cannot:
            raise ValueError(
                f"coupling 'soft chunklets' makes no use of cannot-links, but got {links}: "
                "drop them or choose coupling='graph' or 'pairwise'"
            )
        return BoundSoftChunklets(links, n_linked, self.strength) if n_linked else BoundUncoupled()
