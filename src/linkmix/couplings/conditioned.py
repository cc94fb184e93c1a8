"""The network of links as a condition on the labels, as in the original GMM-EC.

    p(X, z | links) = (1 / Z) prod_j a_{z_j}^{e_j} p(X_j | z_j) prod_{(j, k) cannot} [z_j != z_k] prod_l q_l(z)

``e_j`` is 1 if chunklets are drawn independently, and the number of points if points are. ``Z`` is the same sum without
data and without uncertain links. For certain links that share no point, and chunklets, this is the pairwise coupling.

Because of ``Z``, linked points say little about the class weights: if one chunklet of every class is linked to all
others, ``Z = M! prod(a)`` cancels what they say. Where nearly all points are linked, the weights rest on the rest.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from linkmix import native
from linkmix.basics.arrays import Floats, leave_one_out, log_sum_exp
from linkmix.couplings.base import NO_RELIABILITY, BoundCoupling, LinkExpectation
from linkmix.couplings.class_weights import SMALLEST_WEIGHT, normalise_class_weights, solve_class_weights
from linkmix.couplings.network import LabelNetwork
from linkmix.couplings.observed import LARGEST_TABLE, LOOPY_TOL, BoundGraph, unwarned
from linkmix.couplings.statements import StatementsExpectation
from linkmix.links import Links

WEIGHT_STEPS = 200
"""Largest number of optimiser steps for the class weights in one M-step."""


@dataclass(frozen=True, eq=False)
class ConditionedExpectation(StatementsExpectation):
    """What else the M-step of the class weights needs.

    Attributes
    ----------
    loose_counts : ndarray of shape (n_classes,)
        The class counts of chunklets without cannot-links.
    """

    loose_counts: Floats


class BoundConditioned(BoundGraph):
    """A network of chunklets, normalised by the probability of its certain links."""

    def __init__(self, links: Links, n_linked: int, n_classes: int, *, sampling: str, learn_reliability: bool) -> None:
        super().__init__(links, n_linked, n_classes, learn_reliability=learn_reliability)
        graph = self.graph
        if sampling == "chunklets":
            self._exponent = np.ones(len(graph.size))
        # The prior network contains only the certain cannot-links, and most of it is simple: an isolated chunklet of
        # exponent 1 sums to 1, two of them apart to 1 - sum a^2. The rest is a separate network.
        edges, statement = np.unique(np.sort(graph.edges[graph.certain], axis=1), axis=0, return_index=True)
        degree = np.bincount(edges.ravel(), minlength=len(graph.size))
        plain = self._exponent == 1
        self._alone = plain & (degree == 0)
        pair = (degree[edges] == 1).all(axis=1) & plain[edges].all(axis=1)
        self._n_pairs = int(pair.sum())
        rest = ~self._alone
        rest[edges[pair].ravel()] = False
        self._rest = np.flatnonzero(rest)
        number = np.cumsum(rest) - 1
        rest_edges = number[edges[~pair]]
        self._first = np.unique(graph.chunklet, return_index=True)[1]  # a point of each chunklet
        named = graph.between[graph.certain][statement[~pair]]  # a link for each edge of the rest
        with unwarned(), graph.naming_links(named):  # the network of all links has already warned
            hard = np.ones(len(rest_edges), dtype=bool)
            self._prior = LabelNetwork(
                len(self._rest), n_classes, rest_edges, hard=hard, max_table=LARGEST_TABLE, loopy_tol=LOOPY_TOL
            )
        self._prior_same = np.full(len(rest_edges), -np.inf)
        self._prior_different = np.zeros(len(rest_edges))

    def weighted(self, weights: Floats) -> BoundCoupling:
        """The same: a chunklet has one label, and ``Z`` knows no weights."""
        return self

    def careful(self) -> BoundCoupling:
        """The same: it approximates only where it has to."""
        return self

    def to_native(self) -> native.LinkTable | None:
        """None: the core knows no normalisation by ``Z``."""
        return None

    def expect(
        self, class_log_density: Floats, class_weights: Floats, reliability: Floats = NO_RELIABILITY
    ) -> ConditionedExpectation:
        """Posterior of each chunklet's label, given all links of its component."""
        found = super().expect(class_log_density, class_weights, reliability)
        log_prior, _ = self._log_prior_partition(np.log(class_weights))
        loose = self._exponent[self._alone] @ found.label_weights[self._first[self._alone]]
        return ConditionedExpectation(
            *(found.log_likelihood - log_prior, found.label_weights, found.class_counts),
            *(found.same, found.satisfied, loose),
        )

    def class_weights(self, free_counts: Floats, expectation: LinkExpectation, previous: Floats) -> Floats:
        """Weights that maximise the expected log-likelihood: concave in log a, the gradient a difference of counts."""
        assert isinstance(expectation, ConditionedExpectation)
        counts = free_counts + expectation.class_counts
        if not len(self._rest):
            if len(previous) == 2:  # pairs do not depend on two class weights; leave them out before they cancel
                return normalise_class_weights(free_counts + expectation.loose_counts, previous)
            return solve_class_weights(counts, self._n_pairs, previous)
        if not self._prior.is_exact:  # the gradient would be approximate and costly: use the shares of the labels
            return normalise_class_weights(counts, previous)

        def objective(theta: Floats) -> tuple[float, Floats]:
            normalised = theta - log_sum_exp(theta)
            log_partition, prior_counts = self._log_prior_partition(normalised)
            gradient = prior_counts + (counts.sum() - prior_counts.sum()) * np.exp(normalised) - counts
            return float(log_partition - counts @ normalised), gradient

        lowest = np.log(SMALLEST_WEIGHT)
        found = minimize(
            objective,
            np.log(previous),
            jac=True,
            method="L-BFGS-B",
            bounds=[(lowest, None)] * len(previous),
            options={"maxiter": WEIGHT_STEPS, "ftol": 1e-15, "gtol": 1e-11 * counts.sum()},
        ).x
        return normalise_class_weights(np.exp(found - log_sum_exp(found)))

    def _log_prior_partition(self, log_weights: Floats) -> tuple[float, Floats]:
        """Log-partition function without data, and the expected class counts, for normalised weights."""
        weights = np.exp(log_weights)
        log_partition, counts = 0.0, self._alone.sum() * weights
        if self._n_pairs:
            others = leave_one_out(log_weights)
            log_apart = float(log_sum_exp(log_weights + others))
            log_partition += self._n_pairs * log_apart
            counts = counts + 2 * self._n_pairs * np.exp(log_weights + others - log_apart)
        if len(self._rest):
            exponent = self._exponent[self._rest]
            prior = self._prior.infer(exponent[:, None] * log_weights, self._prior_same, self._prior_different)
            log_partition += prior.log_partition
            counts = counts + exponent @ prior.marginals
        return log_partition, counts
