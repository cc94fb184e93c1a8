"""The paper's coupling: each link is an item of its own, with a joint distribution of its two labels.

A point in several links is part of several items; the items do not know of each other. What that gains and costs
against one network over all links is told in docs/model.md.
"""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from linkmix.arrays import Floats, Ints, leave_one_out, log_sum_exp, shares
from linkmix.class_weights import log_probability_apart, normalise_class_weights, solve_class_weights
from linkmix.couplings.base import NO_RELIABILITY, BoundCoupling, Coupling, LinkExpectation
from linkmix.couplings.graph import LinkGraph, unwarned
from linkmix.couplings.statements import Statements
from linkmix.links import Links, Relation


@dataclass(frozen=True)
class PairwiseExpectation(LinkExpectation):
    """What else the M-step needs to know of the pairs.

    Attributes
    ----------
    must_counts : ndarray of shape (n_classes,)
        The class counts of pairs in their possibility "same class" alone.
    n_apart : float
        Expected number of pairs with different classes.
    same : ndarray of shape (n_pairs,)
        Probability that each pair shares its class.
    """

    must_counts: Floats
    n_apart: float
    same: Floats


class BoundPairwise(BoundCoupling):
    """Pairs that share a label or do not; pairs of which we are not certain are a mixture of both."""

    def __init__(self, links: Links, n_linked: int, n_classes: int, learn_reliability: bool) -> None:
        self.statements = Statements.of(links, learn_reliability=learn_reliability)
        same, different = self.statements.evidence(self.first_reliability())
        self._n_pairs = len(same)
        self._maybe_same = np.flatnonzero(same > -np.inf)
        self._maybe_apart = np.flatnonzero(different > -np.inf) if n_classes > 1 else np.empty(0, dtype=np.int64)
        self._together = self.statements.pairs[self._maybe_same]
        self._apart = self.statements.pairs[self._maybe_apart]
        # Responsibilities of pairs become those of points by sparse products, built once.
        self._together_to_points = _incidence(self._together, n_linked)
        self._first_to_points = _incidence(self._apart[:, :1], n_linked)
        self._second_to_points = _incidence(self._apart[:, 1:], n_linked)
        self._links, self._n_linked, self._n_classes = links, n_linked, n_classes
        self._learn_reliability = learn_reliability
        self._tables = [_Table(relation, n_linked) for relation in links.relations]

    def expect(
        self, class_log_density: Floats, class_weights: Floats, reliability: Floats = NO_RELIABILITY
    ) -> PairwiseExpectation:
        """Posterior of the shared label of pairs that are together and of both labels of pairs that are apart."""
        log_weights = np.log(class_weights)  # (M,)
        log_same, log_apart = self.statements.evidence(reliability)

        i, j = self._together.T
        shared = log_weights + class_log_density[i] + class_log_density[j]  # (n_together, M)
        together = log_sum_exp(shared)
        shared = shares(shared)

        a, b = self._apart.T
        first = second = np.empty((0, len(class_weights)))
        apart = np.empty(0)
        if len(self._apart):
            log_joint = log_weights + class_log_density  # (n_linked, M)
            others = leave_one_out(log_joint)
            first = log_joint[a] + others[b]  # (n_apart, M): label of a, any other label of b
            second = log_joint[b] + others[a]
            apart = log_sum_exp(first)
            first = shares(first)
            second = shares(second)
            apart = apart - log_probability_apart(log_weights)

        hypotheses = np.full((self._n_pairs, 2), -np.inf)  # log of weight times likelihood, together and apart
        hypotheses[self._maybe_same, 0] = log_same[self._maybe_same] + together
        hypotheses[self._maybe_apart, 1] = log_apart[self._maybe_apart] + apart
        log_likelihood = log_sum_exp(hypotheses)
        posterior = shares(hypotheses)
        shared *= posterior[self._maybe_same, :1]
        first *= posterior[self._maybe_apart, 1:]
        second *= posterior[self._maybe_apart, 1:]

        points = self._together_to_points @ shared + self._first_to_points @ first + self._second_to_points @ second
        related = 0.0
        for table in self._tables:
            log_table, table_points = table.expect(class_log_density)
            related += log_table
            points = points + table_points
        must_counts = shared.sum(axis=0)
        class_counts = must_counts + first.sum(axis=0) + second.sum(axis=0)
        return PairwiseExpectation(
            float(log_likelihood.sum()) + related,
            points,
            class_counts,
            must_counts,
            float(posterior[:, 1].sum()),
            posterior[:, 0],
        )

    def labels(self, class_log_density: Floats, class_weights: Floats, reliability: Floats = NO_RELIABILITY) -> Ints:
        """Jointly most probable labels of all points that links tie together, as in the graph coupling.

        A point that is in relations of other kinds alone has its most probable label there.
        """
        links = self._links
        with unwarned():  # the most probable labels are searched for, whatever the width
            graph = LinkGraph(links, self._n_linked, self._n_classes, learn_reliability=self._learn_reliability)
        node = np.log(class_weights) + graph.sum_up(class_log_density)
        together = graph.most_probable_labels(node, reliability)
        linked = np.isin(np.arange(self._n_linked), np.concatenate([links.must, links.cannot]))
        return np.where(linked, together, super().labels(class_log_density, class_weights, reliability))

    def class_weights(self, free_counts: Floats, expectation: LinkExpectation, previous: Floats) -> Floats:
        """Weights that maximise the expected log-likelihood, the normalisation of cannot-links included."""
        assert isinstance(expectation, PairwiseExpectation)
        if len(previous) == 2:  # cannot-links say nothing of two class weights; leave them out before they cancel
            return normalise_class_weights(free_counts + expectation.must_counts, previous)
        return solve_class_weights(free_counts + expectation.class_counts, expectation.n_apart, previous)

    @property
    def annotators(self) -> tuple[Hashable, ...]:
        """Those whose reliability is learned."""
        return self.statements.annotators

    def first_reliability(self) -> Floats:
        """Reliability of each annotator at the start."""
        return self.statements.first_reliability()

    def reliability(self, expectation: LinkExpectation, previous: Floats) -> Floats:
        """Share of right statements of each annotator."""
        assert isinstance(expectation, PairwiseExpectation)
        return self.statements.reliability(expectation.same) if len(previous) else previous

    def log_prior(self, reliability: Floats) -> float:
        """Logarithm of the prior of the reliabilities."""
        return self.statements.log_prior(reliability)


@dataclass(frozen=True)
class Pairwise(Coupling):
    """GM-PR, the generative model with pairwise relations.

    Parameters
    ----------
    learn_reliability : bool, default=False
        Whether to learn how often each annotator is right, instead of taking confidences as given.
    """

    learn_reliability: bool = False

    def bind(self, links: Links, n_linked: int, n_classes: int) -> BoundCoupling:
        """Prepare the pairs."""
        for i, relation in enumerate(links.relations):
            if len(relation.table) != n_classes:
                raise ValueError(
                    f"relations[{i}] has a table for {len(relation.table)} classes, but n_classes={n_classes}: "
                    "give a table with one row and one column for each class"
                )
        return BoundPairwise(links, n_linked, n_classes, self.learn_reliability)


class _Table:
    """Pairs whose two labels have a joint distribution of their own, which owes nothing to the class weights."""

    def __init__(self, relation: Relation, n_linked: int) -> None:
        self.pairs = relation.pairs
        with np.errstate(divide="ignore"):
            self.log_table = np.log(relation.table)  # (M, M)
        self._first_to_points = _incidence(self.pairs[:, :1], n_linked)
        self._second_to_points = _incidence(self.pairs[:, 1:], n_linked)

    def expect(self, class_log_density: Floats) -> tuple[float, Floats]:
        """Log-likelihood of the pairs, and the label weights of the points."""
        i, j = self.pairs.T
        log_joint = self.log_table + class_log_density[i][:, :, None] + class_log_density[j][:, None, :]  # (n, M, M)
        log_likelihood = log_sum_exp(log_joint.reshape(len(i), -1))
        posterior = np.exp(log_joint - log_likelihood[:, None, None])
        points = self._first_to_points @ posterior.sum(axis=2) + self._second_to_points @ posterior.sum(axis=1)
        return float(log_likelihood.sum()), np.asarray(points)


def _incidence(pairs: Ints, n_linked: int) -> csr_array:
    """Sparse (n_linked, n_pairs) matrix with a one wherever a point is part of a pair."""
    rows = pairs.ravel()
    columns = np.repeat(np.arange(len(pairs)), pairs.shape[1])
    return csr_array((np.ones(len(rows)), (rows, columns)), shape=(n_linked, len(pairs)))
