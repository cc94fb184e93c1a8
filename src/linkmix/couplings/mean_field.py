"""PPC: links as penalties in the label prior (Lu and Leen, 2004), with mean-field inference.

    p(z) ~ prod_i a_{z_i} prod_{(i, j)} exp(w_ij [z_i = z_j]),        w_ij = +w for a must-link, -w for a cannot-link

The E-step finds the independent label distributions closest to the posterior, by coordinate ascent

    q_i(m) ~ a_m p(x_i | m) exp(sum_j w_ij q_j(m))

over groups of points without links among them, so that every update raises the bound. As in the published method, the
normalisation of the prior is left out: class weights are shares of the expected labels.
"""

from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.sparse import csr_array

from linkmix.basics.arrays import Floats, Ints, log_sum_exp
from linkmix.basics.checks import check_number
from linkmix.couplings.base import NO_RELIABILITY, BoundCoupling, Coupling, LinkExpectation, refuse_relations
from linkmix.couplings.observed import labels_that_hold
from linkmix.links import Links

MAX_SWEEPS = 200
TOLERANCE = 1e-12


class BoundMeanField(BoundCoupling):
    """Penalties between linked points."""

    def __init__(self, links: Links, n_linked: int, weight: float) -> None:
        pairs = np.concatenate([links.must, links.cannot])
        penalty = weight * np.repeat([1.0, -1.0], [links.n_must, links.n_cannot])
        # The published method weighs a link of confidence c by its log-odds; here the weight is scaled by 2 c - 1.
        confidence = np.concatenate(
            [
                np.ones(n) if given is None else 2 * given - 1
                for n, given in ((links.n_must, links.must_confidence), (links.n_cannot, links.cannot_confidence))
            ]
        )
        penalty = penalty * confidence
        rows, columns = np.concatenate([pairs, pairs[:, ::-1]]).T
        self.penalties = csr_array((np.concatenate([penalty, penalty]), (rows, columns)), shape=(n_linked, n_linked))
        self.groups = [(group, self.penalties[group]) for group in _independent_groups(pairs, n_linked)]
        self._links = links

    def expect(
        self, class_log_density: Floats, class_weights: Floats, reliability: Floats = NO_RELIABILITY
    ) -> LinkExpectation:
        """Mean-field labels of the linked points, and the bound that they attain."""
        log_joint = np.log(class_weights) + class_log_density
        labels = np.exp(log_joint - log_sum_exp(log_joint)[:, None])
        for _ in range(MAX_SWEEPS):
            before = labels.copy()
            for group, penalties in self.groups:
                pulled = log_joint[group] + penalties @ labels
                labels[group] = np.exp(pulled - log_sum_exp(pulled)[:, None])
            if np.abs(labels - before).max(initial=0.0) <= TOLERANCE:
                break
        log_labels = np.log(np.maximum(labels, np.finfo(np.float64).tiny))
        finite = np.where(labels > 0, log_joint, 0.0)
        bound = (labels * (finite - log_labels)).sum() + 0.5 * (labels * (self.penalties @ labels)).sum()
        return LinkExpectation(float(bound), labels, labels.sum(axis=0))

    def labels(self, class_log_density: Floats, class_weights: Floats, reliability: Floats = NO_RELIABILITY) -> Ints:
        """Most probable label of each point; where a certain link breaks, the jointly most probable ones."""
        own = super().labels(class_log_density, class_weights, reliability)
        return labels_that_hold(own, self._links, class_log_density, class_weights)


@dataclass(frozen=True)
class MeanField(Coupling):
    """Penalised probabilistic clustering.

    Parameters
    ----------
    weight : float, default=1.0
        Log-probability gained by each must-link that holds and lost by each cannot-link that is violated.
    """

    weight: float = 1.0

    def __post_init__(self) -> None:
        check_number("weight", self.weight, Real, 0)

    def bind(self, links: Links, n_linked: int, n_classes: int) -> BoundCoupling:
        """Prepare the penalties."""
        refuse_relations(links, "mean field")
        return BoundMeanField(links, n_linked, self.weight)


def _independent_groups(pairs: Ints, n_linked: int) -> list[Ints]:
    """Groups of points without links among them, by greedy colouring of the link graph."""
    neighbours: list[list[int]] = [[] for _ in range(n_linked)]
    for a, b in pairs.tolist():
        neighbours[a].append(b)
        neighbours[b].append(a)
    colour = np.full(n_linked, -1)
    for i in sorted(range(n_linked), key=lambda i: -len(neighbours[i])):
        taken = set(colour[neighbours[i]].tolist())
        colour[i] = next(c for c in range(n_linked + 1) if c not in taken)
    return [np.flatnonzero(colour == c) for c in range(int(colour.max(initial=-1)) + 1)]
