"""The paper's coupling: each link is an item of its own, with a joint distribution of its two labels.

A point in several links belongs to several items, which are independent of each other. docs/model.md compares this with
one network over all links.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from linkmix import native
from linkmix.basics.arrays import Array, Floats, Ints, leave_one_out, log_sum_exp, shares
from linkmix.basics.checks import check_flag
from linkmix.couplings.base import NO_RELIABILITY, BoundCoupling, Coupling, LinkExpectation
from linkmix.couplings.class_weights import log_probability_apart, normalise_class_weights, solve_class_weights
from linkmix.couplings.none import BoundUncoupled
from linkmix.couplings.observed import joint_labels
from linkmix.couplings.relations import BoundRelations
from linkmix.couplings.statements import BoundStatements, Statements, StatementsExpectation
from linkmix.links import Links

BLOCK_ENTRIES = 2**20
"""Entries of the tables of sets of points that are held at once."""


@dataclass(frozen=True, eq=False)
class PairwiseExpectation(StatementsExpectation):
    """What else the M-step needs to know about the pairs.

    Attributes
    ----------
    must_counts : ndarray of shape (n_classes,)
        The class counts of pairs under the hypothesis "same class" alone.
    n_apart : float
        Expected number of pairs with different classes.
    """

    must_counts: Floats
    n_apart: float


class BoundPairwise(BoundStatements):
    """Pairs that share a label or do not; an uncertain pair is a mixture of both."""

    def __init__(self, links: Links, n_linked: int, n_classes: int, learn_reliability: bool) -> None:
        self.statements = Statements.of(links, learn_reliability=learn_reliability)
        self._evidence = self.statements.evidence(self.first_reliability())
        self._pairs = _Pairs(self.statements.pairs, *self._evidence, n_linked, n_classes)
        self._links, self._n_linked, self._n_classes = links, n_linked, n_classes
        self._learn_reliability = learn_reliability
        self.relations = BoundRelations.of(links.relations, n_classes, joint=True)

    def expect(
        self, class_log_density: Floats, class_weights: Floats, reliability: Floats = NO_RELIABILITY
    ) -> PairwiseExpectation:
        """Posterior of the shared label of pairs that are together and of both labels of pairs that are apart."""
        evidence = self.statements.evidence(reliability) if len(self.annotators) else self._evidence
        found = self._pairs.expect(class_log_density, class_weights, *evidence)
        if not self.relations.parts:
            return found
        log_likelihood, points = found.log_likelihood, found.label_weights.copy()
        probabilities = self.relation_probabilities(reliability)
        satisfied = np.zeros(len(probabilities))
        for number, (sets, parts) in enumerate(zip(self.relations.sets, self.relations.parts, strict=True)):
            log_table = parts.log_table(probabilities[number])
            for labels, log_set in set_labels(sets, log_table, class_log_density, points):
                log_likelihood += float(log_set.sum())
                satisfied[number] += labels[:, parts.satisfied].sum()
        return replace(found, log_likelihood=log_likelihood, label_weights=points, satisfied=satisfied)

    def labels(self, class_log_density: Floats, class_weights: Floats, reliability: Floats = NO_RELIABILITY) -> Ints:
        """Jointly most probable labels of all points connected by links, as in the graph coupling.

        A point that occurs only in relations of other kinds gets its own most probable label, unless this makes labels
        impossible by a relation.
        """
        links = self._links.without_relations()
        linked = np.isin(np.arange(self._n_linked), np.concatenate([links.must, links.cannot]))
        labels = self._labels_by_links(links, linked, class_log_density, class_weights, reliability)
        probabilities = self.relation_probabilities(reliability)
        for sets, parts, probability in zip(self.relations.sets, self.relations.parts, probabilities, strict=True):
            if (parts.table(probability)[tuple(labels[sets].T)] == 0).any():
                return joint_labels(
                    self._links,
                    class_log_density,
                    class_weights,
                    learn_reliability=self._learn_reliability,
                    reliability=reliability,
                )
        return labels

    def _labels_by_links(
        self, links: Links, linked: Array, class_log_density: Floats, class_weights: Floats, reliability: Floats
    ) -> Ints:
        together = self._labels_without_conflict(class_log_density, class_weights)
        if together is not None:
            return np.where(linked, together, super().labels(class_log_density, class_weights, reliability))
        together = joint_labels(
            links,
            class_log_density,
            class_weights,
            learn_reliability=self._learn_reliability,
            reliability=reliability[: len(self.annotators)],
        )
        return np.where(linked, together, super().labels(class_log_density, class_weights, reliability))

    def _labels_without_conflict(self, class_log_density: Floats, class_weights: Floats) -> Ints | None:
        """Most probable label of each chunklet, if links are certain and these labels satisfy all cannot-links.

        Then no other labels that satisfy the links are more probable, and no search is needed.
        """
        same, apart = self._evidence
        if self.annotators or not np.all(np.isneginf(same) ^ np.isneginf(apart)):
            return None
        chunklet = self._links.chunklets(self._n_linked)
        sums = np.stack([np.bincount(chunklet, weights=column) for column in class_log_density.T], axis=1)
        labels: Ints = (np.log(class_weights) + sums).argmax(axis=1)[chunklet]
        a, b = self._links.cannot.T
        return None if np.any(labels[a] == labels[b]) else labels

    def class_weights(self, free_counts: Floats, expectation: LinkExpectation, previous: Floats) -> Floats:
        """Weights that maximise the expected log-likelihood, the normalisation of cannot-links included."""
        assert isinstance(expectation, PairwiseExpectation)
        if len(previous) == 2:  # cannot-links do not depend on two class weights; leave them out before they cancel
            return normalise_class_weights(free_counts + expectation.must_counts, previous)
        return solve_class_weights(free_counts + expectation.class_counts, expectation.n_apart, previous)

    def to_native(self) -> native.PairTable | None:
        """The pairs; None if there are relations of other kinds, or if reliability is learned."""
        if self.relations.parts or self.annotators:
            return None
        return self._pairs.to_native(*self._evidence)


@dataclass(frozen=True)
class Pairwise(Coupling):
    """GM-PR, the generative model with pairwise relations.

    Parameters
    ----------
    learn_reliability : bool, default=False
        Whether to learn how often each annotator is right, instead of taking confidences as given.
    """

    learn_reliability: bool = False

    def __post_init__(self) -> None:
        check_flag("learn_reliability", self.learn_reliability)

    def bind(self, links: Links, n_linked: int, n_classes: int) -> BoundCoupling:
        """Prepare the pairs."""
        if not n_linked:
            return BoundUncoupled()
        return BoundPairwise(links, n_linked, n_classes, self.learn_reliability)


class _Pairs:
    """Pairs of points that share a label or do not, as far as the evidence allows either."""

    def __init__(self, pairs: Ints, log_same: Floats, log_apart: Floats, n_linked: int, n_classes: int) -> None:
        self._maybe_same = log_same > -np.inf
        self._maybe_apart = (log_apart > -np.inf) & (n_classes > 1)
        self._pairs, self._n_linked = pairs, n_linked

    def expect(
        self, class_log_density: Floats, class_weights: Floats, log_same: Floats, log_apart: Floats
    ) -> PairwiseExpectation:
        """E-step, given the log-weight of "same class" and of "different classes" for each pair."""
        if native.active():
            return self._expect_natively(class_log_density, class_weights, log_same, log_apart)
        log_weights = np.log(class_weights)  # (M,)
        together_to_points, first_to_points, second_to_points = self._incidences

        i, j = self._pairs[self._maybe_same].T
        shared = log_weights + class_log_density[i] + class_log_density[j]  # (n_together, M)
        together = log_sum_exp(shared)
        shared = shares(shared)

        a, b = self._pairs[self._maybe_apart].T
        first = second = np.empty((0, len(class_weights)))
        apart = np.empty(0)
        if len(a):
            log_joint = log_weights + class_log_density  # (n_linked, M)
            others = leave_one_out(log_joint)
            first = log_joint[a] + others[b]  # (n_apart, M): label of a, any other label of b
            second = log_joint[b] + others[a]
            apart = log_sum_exp(first)
            first = shares(first)
            second = shares(second)
            apart = apart - log_probability_apart(log_weights)

        hypotheses = np.full((len(self._pairs), 2), -np.inf)  # log of weight times likelihood, together and apart
        hypotheses[self._maybe_same, 0] = log_same[self._maybe_same] + together
        hypotheses[self._maybe_apart, 1] = log_apart[self._maybe_apart] + apart
        log_likelihood = log_sum_exp(hypotheses)
        posterior = shares(hypotheses)
        shared *= posterior[self._maybe_same, :1]
        first *= posterior[self._maybe_apart, 1:]
        second *= posterior[self._maybe_apart, 1:]

        must_counts = shared.sum(axis=0)
        return PairwiseExpectation(
            float(log_likelihood.sum()),
            together_to_points @ shared + first_to_points @ first + second_to_points @ second,
            must_counts + first.sum(axis=0) + second.sum(axis=0),
            posterior[:, 0],
            NO_RELIABILITY,
            must_counts,
            float(posterior[:, 1].sum()),
        )

    @cached_property
    def _incidences(self) -> tuple[csr_array, csr_array, csr_array]:
        """Sparse matrices that turn responsibilities of pairs into those of points."""
        together, apart = self._pairs[self._maybe_same], self._pairs[self._maybe_apart]
        return (
            _incidence(together, self._n_linked),
            _incidence(apart[:, :1], self._n_linked),
            _incidence(apart[:, 1:], self._n_linked),
        )

    @cached_property
    def _by_kind(self) -> tuple[Ints, Ints]:
        """Order of the pairs by what is possible, so that the native core can predict its branches; and the pairs."""
        order = np.argsort(self._maybe_same + 2 * self._maybe_apart, kind="stable")
        return order, np.ascontiguousarray(self._pairs[order], dtype=np.int64)

    def _expect_natively(
        self, class_log_density: Floats, class_weights: Floats, log_same: Floats, log_apart: Floats
    ) -> PairwiseExpectation:
        table = self.to_native(log_same, log_apart)
        log_likelihood, labels, must_counts, class_counts, n_apart, ordered = native.expect_pairs(
            class_log_density, class_weights, table
        )
        same = np.empty_like(ordered)
        same[self._by_kind[0]] = ordered
        return PairwiseExpectation(log_likelihood, labels, class_counts, same, NO_RELIABILITY, must_counts, n_apart)

    def to_native(self, log_same: Floats, log_apart: Floats) -> native.PairTable:
        """The evidence as weights, scaled so that the larger one is 1."""
        order, pairs = self._by_kind
        log_same = log_same[order]
        log_apart = np.where(self._maybe_apart, log_apart, -np.inf)[order]
        top = np.maximum(log_same, log_apart)
        return native.PairTable(pairs, np.exp(log_same - top), np.exp(log_apart - top), float(top.sum()))


def set_labels(
    sets: Ints, log_table: Floats, class_log_density: Floats, points: Floats
) -> Iterator[tuple[Floats, Floats]]:
    """Joint distribution of the labels of sets of points (n, k), some sets at a time, and their log-likelihoods.

    The labels have the joint distribution of the table, independent of the class weights. Those of each point are
    added to ``points`` (n_points, n_classes).
    """
    n_classes, k = len(log_table), log_table.ndim
    step = max(1, BLOCK_ENTRIES // log_table.size)
    for some in (sets[first : first + step] for first in range(0, len(sets), step)):
        joint = np.repeat(log_table[None], len(some), axis=0)  # (n, M, ...)
        for axis in range(k):
            shape = (len(some), *(1,) * axis, n_classes, *(1,) * (k - axis - 1))
            joint += class_log_density[some[:, axis]].reshape(shape)
        flat = joint.reshape(len(some), -1)
        labels = shares(flat).reshape(joint.shape)
        for axis in range(k):
            others = tuple(1 + other for other in range(k) if other != axis)
            np.add.at(points, some[:, axis], labels.sum(axis=others))
        yield labels, log_sum_exp(flat)


def _incidence(pairs: Ints, n_linked: int) -> csr_array:
    """Sparse (n_linked, n_pairs) matrix with a one where a point belongs to a pair."""
    rows = pairs.ravel()
    columns = np.repeat(np.arange(len(pairs)), pairs.shape[1])
    return csr_array((np.ones(len(rows)), (rows, columns)), shape=(n_linked, len(pairs)))
