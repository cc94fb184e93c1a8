"""The paper's coupling: each link is an item of its own, with a joint distribution of its two labels.

A point in several links is part of several items; the items do not know of each other. What that gains and costs
against one network over all links is told in docs/model.md.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from linkmix.arrays import Floats, Ints, leave_one_out, log_sum_exp
from linkmix.class_weights import log_probability_apart, normalise_class_weights, solve_class_weights
from linkmix.couplings.base import BoundCoupling, Coupling, LinkExpectation
from linkmix.links import Links


@dataclass(frozen=True)
class PairwiseExpectation(LinkExpectation):
    """Class counts are those of all links; ``must_counts`` those of the must-links alone."""

    must_counts: Floats


class BoundPairwise(BoundCoupling):
    """Must-link pairs that share a label, cannot-link pairs that do not."""

    def __init__(self, links: Links, n_linked: int) -> None:
        self.must, self.cannot = links.must, links.cannot
        # Responsibilities of pairs become those of points by two sparse products, built once.
        self._must_to_points = _incidence(self.must, n_linked)
        self._first_to_points = _incidence(self.cannot[:, :1], n_linked)
        self._second_to_points = _incidence(self.cannot[:, 1:], n_linked)

    def expect(self, class_log_density: Floats, class_weights: Floats) -> PairwiseExpectation:
        """Posterior of the shared label of must-links and of both labels of cannot-links."""
        log_weights = np.log(class_weights)  # (M,)
        shared = log_weights + class_log_density[self.must[:, 0]] + class_log_density[self.must[:, 1]]  # (n_must, M)
        must_likelihood = log_sum_exp(shared)
        same = np.exp(shared - must_likelihood[:, None])

        log_joint = log_weights + class_log_density  # (n_linked, M)
        others = leave_one_out(log_joint) if len(self.cannot) else log_joint
        a, b = self.cannot[:, 0], self.cannot[:, 1]
        first = log_joint[a] + others[b]  # (n_cannot, M): label of a, any other label of b
        second = log_joint[b] + others[a]
        cannot_likelihood = log_sum_exp(first)
        first = np.exp(first - cannot_likelihood[:, None])
        second = np.exp(second - cannot_likelihood[:, None])

        log_likelihood = must_likelihood.sum() + cannot_likelihood.sum()
        if len(self.cannot):
            log_likelihood -= len(self.cannot) * log_probability_apart(log_weights)
        points = self._must_to_points @ same + self._first_to_points @ first + self._second_to_points @ second
        must_counts = same.sum(axis=0)
        class_counts = must_counts + first.sum(axis=0) + second.sum(axis=0)
        return PairwiseExpectation(float(log_likelihood), points, class_counts, must_counts)

    def class_weights(self, free_counts: Floats, expectation: LinkExpectation, previous: Floats) -> Floats:
        """Weights that maximise the expected log-likelihood, the normalisation of cannot-links included."""
        assert isinstance(expectation, PairwiseExpectation)
        if len(previous) == 2:  # cannot-links say nothing of two class weights; leave them out before they cancel
            return normalise_class_weights(free_counts + expectation.must_counts, previous)
        return solve_class_weights(free_counts + expectation.class_counts, len(self.cannot), previous)


@dataclass(frozen=True)
class Pairwise(Coupling):
    """GM-PR, the generative model with pairwise relations."""

    def bind(self, links: Links, n_linked: int, n_classes: int) -> BoundCoupling:
        """Prepare the pairs."""
        return BoundPairwise(links, n_linked)


def _incidence(pairs: Ints, n_linked: int) -> csr_array:
    """Sparse (n_linked, n_pairs) matrix with a one wherever a point is part of a pair."""
    rows = pairs.ravel()
    columns = np.repeat(np.arange(len(pairs)), pairs.shape[1])
    return csr_array((np.ones(len(rows)), (rows, columns)), shape=(n_linked, len(pairs)))
