"""One network over all links: must-links merge points into chunklets, cannot-links join chunklets.

The labels of each connected component are inferred jointly, and exactly unless the network is too dense. For certain
links that share no point this equals the pairwise coupling; where links share points it uses more information. With
Gaussian clusters it is GMM-EC (Shental, Bar-Hillel, Hertz and Weinshall, 2003).

    p(X, z) = (1 / Z) prod_j a_{z_j}^{e_j} p(X_j | z_j) prod_{(j, k) cannot} [z_j != z_k] prod_l q_l(z)

``e_j`` is 1 if chunklets are drawn independently, and the number of points if points are. ``Z`` is the same sum without
data. A link of confidence q is an observation, made with probability q if the labels agree with it and 1 - q if not;
observations do not enter ``Z``.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from linkmix.basics.arrays import Floats, Ints, leave_one_out, log_sum_exp
from linkmix.basics.checks import check_choice, check_flag
from linkmix.basics.errors import InfeasibleLinks
from linkmix.couplings.base import NO_RELIABILITY, BoundCoupling, Coupling, LinkExpectation
from linkmix.couplings.class_weights import SMALLEST_WEIGHT, normalise_class_weights, solve_class_weights
from linkmix.couplings.network import (
    ApproximateInference,
    InfeasibleNetwork,
    LabelNetwork,
    LabelPosterior,
    UndecidedNetwork,
)
from linkmix.couplings.statements import BoundStatements, Statements, StatementsExpectation
from linkmix.links import Links

SAMPLING = ("chunklets", "points")
LARGEST_TABLE, LARGEST_QUICK_TABLE = 2**20, 2**12
"""Entries of the largest table of exact inference: about a second, or a millisecond, for each step of EM."""
WEIGHT_STEPS = 200
"""Largest number of optimiser steps for the class weights in one M-step."""
LOOPY_TOL, QUICK_LOOPY_TOL = 1e-8, 1e-3
"""Belief propagation stops when no message changes by more than this."""


@contextmanager
def unwarned() -> Iterator[None]:
    """Silence the warning about networks too wide for exact inference, where no inference is needed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ApproximateInference)
        yield


class LinkGraph:
    """Chunklets, the certain cannot-links between them, and the evidence of uncertain links.

    Shared by the coupling, which needs probabilities, and by `most_probable_labels`, which needs labels.
    """

    def __init__(
        self,
        links: Links,
        n_linked: int,
        n_classes: int,
        *,
        learn_reliability: bool = False,
        max_table: int = LARGEST_TABLE,
        loopy_tol: float = LOOPY_TOL,
    ) -> None:
        self.statements = Statements.of(links, learn_reliability=learn_reliability)
        self.chunklet = links.chunklets(n_linked)
        self.size = np.bincount(self.chunklet, minlength=0).astype(np.float64)
        same, _ = self.statements.evidence(self.statements.first_reliability())
        ends = self.chunklet[self.statements.pairs]  # (n_pairs, 2)
        inside = ends[:, 0] == ends[:, 1]
        # Certain must-links form the chunklets; any other statement within a chunklet is a constant.
        self.inside = np.flatnonzero(inside)
        self.between = np.flatnonzero(~inside)
        self.certain = np.isneginf(same[self.between])
        self.edges = ends[self.between]
        self.n_classes = n_classes
        with self._naming_links():
            self.network = LabelNetwork(
                len(self.size), n_classes, self.edges, hard=self.certain, max_table=max_table, loopy_tol=loopy_tol
            )

    def potentials(self, reliability: Floats) -> tuple[Floats, Floats, float]:
        """Log-potentials of the edges for equal and different labels, and the constant from within chunklets."""
        same, different = self.statements.evidence(reliability)
        return same[self.between], different[self.between], float(same[self.inside].sum())

    def sum_up(self, values: Floats) -> Floats:
        """Sums over the points of each chunklet, shape (n_chunklets, M)."""
        out = np.zeros((len(self.size), values.shape[1]))
        np.add.at(out, self.chunklet, values)
        return out

    def most_probable_labels(self, node: Floats, reliability: Floats) -> Ints:
        """Jointly most probable labels of the linked points, from the log-potentials of the chunklets.

        They satisfy all certain links; InfeasibleLinks is raised if that is impossible.
        """
        log_same, log_different, _ = self.potentials(reliability)
        with self._naming_links():
            return np.asarray(self.network.most_probable(node, log_same, log_different)[self.chunklet])

    def infer(self, node: Floats, reliability: Floats) -> tuple[LabelPosterior, float]:
        """Posterior of the chunklets, and the constant from within them."""
        log_same, log_different, constant = self.potentials(reliability)
        with self._naming_links():
            return self.network.infer(node, log_same, log_different), constant

    @contextmanager
    def _naming_links(self) -> Iterator[None]:
        """Translate errors about edges between chunklets into errors about links."""
        try:
            yield
        except UndecidedNetwork as error:
            raise InfeasibleLinks(
                "no labels that meet all links were found in time, though there may be some: "
                "ask for more classes or give fewer links"
            ) from error
        except InfeasibleNetwork as error:
            cannot = self.statements.pairs[self.between[error.edges]]
            raise InfeasibleLinks(str(error), Links(cannot=cannot)) from None


@dataclass(frozen=True, eq=False)
class GraphExpectation(StatementsExpectation):
    """What else the M-step needs to know about the network.

    Attributes
    ----------
    loose_counts : ndarray of shape (n_classes,)
        The class counts of chunklets without cannot-links.
    prior_counts : ndarray of shape (n_classes,)
        The class counts expected without data.
    """

    loose_counts: Floats
    prior_counts: Floats


class BoundGraph(BoundStatements):
    """A network of chunklets."""

    def __init__(
        self, links: Links, n_linked: int, n_classes: int, sampling: str, learn_reliability: bool, quick: bool
    ) -> None:
        max_table, loopy_tol = (LARGEST_QUICK_TABLE, QUICK_LOOPY_TOL) if quick else (LARGEST_TABLE, LOOPY_TOL)
        self._given = (links, n_linked, n_classes, sampling, learn_reliability)
        self._quick = quick
        self.graph = LinkGraph(
            links,
            n_linked,
            n_classes,
            learn_reliability=learn_reliability,
            max_table=max_table,
            loopy_tol=loopy_tol,
        )
        graph = self.graph
        self.statements = graph.statements
        self._exponent = graph.size if sampling == "points" else np.ones(len(graph.size))
        # The prior network contains only the certain cannot-links, and most of it is simple: an isolated chunklet of
        # exponent 1 sums to 1, two of them apart to 1 - sum a^2. The rest is a separate network.
        edges = np.unique(np.sort(graph.edges[graph.certain], axis=1), axis=0)
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
        with unwarned():  # the network of all links has already warned
            hard = np.ones(len(rest_edges), dtype=bool)
            self._prior = LabelNetwork(
                len(self._rest), n_classes, rest_edges, hard=hard, max_table=max_table, loopy_tol=loopy_tol
            )
        self._prior_same = np.full(len(rest_edges), -np.inf)
        self._prior_different = np.zeros(len(rest_edges))

    def careful(self) -> BoundCoupling:
        """Full M-steps for the class weights, and exact inference up to a larger table."""
        if not (self.graph.network.is_exact and self._prior.is_exact):
            return BoundGraph(*self._given, quick=False)
        other = copy(self)  # the networks are the same
        other._quick = False
        return other

    def expect(
        self, class_log_density: Floats, class_weights: Floats, reliability: Floats = NO_RELIABILITY
    ) -> GraphExpectation:
        """Posterior of each chunklet's label, given all links of its component."""
        graph, log_weights = self.graph, np.log(class_weights)
        node = self._node(class_log_density, log_weights)
        posterior, constant = graph.infer(node, reliability)
        same = np.ones(len(graph.statements.pairs))  # pairs within a chunklet
        same[graph.between] = posterior.edge_same
        weighted = self._exponent[:, None] * posterior.marginals
        log_prior, prior_counts = self._log_prior_partition(log_weights)
        return GraphExpectation(
            posterior.log_partition + constant - log_prior,
            posterior.marginals[graph.chunklet],
            weighted.sum(axis=0),
            same,
            weighted[self._alone].sum(axis=0),
            prior_counts,
        )

    def labels(self, class_log_density: Floats, class_weights: Floats, reliability: Floats = NO_RELIABILITY) -> Ints:
        """Jointly most probable labels of each component."""
        return self.graph.most_probable_labels(self._node(class_log_density, np.log(class_weights)), reliability)

    def class_weights(self, free_counts: Floats, expectation: LinkExpectation, previous: Floats) -> Floats:
        """Weights that maximise the expected log-likelihood: concave in log a, the gradient a difference of counts."""
        assert isinstance(expectation, GraphExpectation)
        counts = free_counts + expectation.class_counts
        if not len(self._rest):
            if len(previous) == 2:  # pairs do not depend on two class weights; leave them out before they cancel
                return normalise_class_weights(free_counts + expectation.loose_counts, previous)
            return solve_class_weights(counts, self._n_pairs, previous)
        if not self._prior.is_exact:  # the gradient would be approximate and costly: use the shares of the labels
            return normalise_class_weights(counts, previous)
        if self._quick:  # one step towards the expected counts, without inference in the network
            expected = expectation.prior_counts + (counts.sum() - expectation.prior_counts.sum()) * previous
            return normalise_class_weights(previous * counts / expected, previous)

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

    def _node(self, class_log_density: Floats, log_weights: Floats) -> Floats:
        """Log-potentials of the chunklets."""
        return self._exponent[:, None] * log_weights + self.graph.sum_up(class_log_density)

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


@dataclass(frozen=True)
class Graph(Coupling):
    """Exact inference over the network of all links.

    Parameters
    ----------
    learn_reliability : bool, default=False
        Whether to learn how often each annotator is right, instead of taking confidences as given.
    sampling : {"chunklets", "points"}, default="chunklets"
        What is drawn independently before the links are known: groups of must-linked points, or points.
    quick : bool, default=False
        Whether to approximate, for comparing many fits: belief propagation where exact inference would take more than
        a millisecond, and one small step for the class weights instead of a full M-step.
    """

    learn_reliability: bool = False
    sampling: str = "chunklets"
    quick: bool = False

    def __post_init__(self) -> None:
        check_flag("learn_reliability", self.learn_reliability)
        check_choice("sampling", self.sampling, SAMPLING)
        check_flag("quick", self.quick)

    def bind(self, links: Links, n_linked: int, n_classes: int) -> BoundCoupling:
        """Build the network."""
        if links.relations:
            raise ValueError(
                f"coupling 'graph' supports only must-links and cannot-links, but got {links}: use coupling='pairwise' "
                "for relations with a table"
            )
        return BoundGraph(links, n_linked, n_classes, self.sampling, self.learn_reliability, self.quick)
