"""What the links say about each pair of points, and how far that can be trusted.

A certain link leaves one possibility: same class, or different classes. A link that is right with probability q leaves
two: what it says, with weight q, and the opposite, with weight 1 - q. Several statements about one pair multiply.
"""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from linkmix.basics.arrays import Floats, Ints
from linkmix.couplings.base import BoundCoupling, LinkExpectation
from linkmix.couplings.relations import NO_RELATIONS, BoundRelations
from linkmix.links import Links
from linkmix.links.pairs import distinct_pairs

FIRST_RELIABILITY = 0.9
"""Initial reliability of annotators whose links have no confidence."""
PRIOR_RIGHT, PRIOR_WRONG = 9.0, 1.0
"""Pseudo-counts of right and wrong links, so that a few surprising links do not discredit an annotator."""


@dataclass(frozen=True, eq=False)
class Statements:
    """Statements about pairs of points: all must-links in their order, then all cannot-links.

    Attributes
    ----------
    pairs : ndarray of shape (n_pairs, 2)
        Each pair of points that occurs in a statement, once.
    pair : ndarray of shape (n_statements,)
        The pair that each statement is about.
    says_same : ndarray of bool, shape (n_statements,)
    confidence : ndarray of shape (n_statements,)
        Probability that the statement is right; where reliability is learned, the first guess.
    annotator : ndarray of shape (n_statements,)
        Number of the annotator whose reliability is learned, -1 where the confidence is fixed.
    annotators : tuple
        The annotators by number; None stands for statements without an annotator.
    """

    pairs: Ints
    pair: Ints
    says_same: np.ndarray[tuple[int], np.dtype[np.bool_]]
    confidence: Floats
    annotator: Ints
    annotators: tuple[Hashable, ...]

    @classmethod
    def of(cls, links: Links, *, learn_reliability: bool) -> "Statements":
        """Statements of links; with ``learn_reliability`` every annotator's confidence is learned."""
        ends = np.sort(np.concatenate([links.must, links.cannot]), axis=1)
        pairs, pair = distinct_pairs(ends)
        says_same = np.arange(len(ends)) < links.n_must
        default = FIRST_RELIABILITY if learn_reliability else 1.0
        confidence = np.concatenate(
            [
                np.full(n, default) if given is None else given
                for n, given in ((links.n_must, links.must_confidence), (links.n_cannot, links.cannot_confidence))
            ]
        )
        annotator = np.full(len(ends), -1)
        annotators: list[Hashable] = []
        if learn_reliability:
            names = [
                name
                for n, given in ((links.n_must, links.must_annotators), (links.n_cannot, links.cannot_annotators))
                for name in ([None] * n if given is None else given)
            ]
            annotators = list(dict.fromkeys(names))
            number = {name: i for i, name in enumerate(annotators)}
            annotator = np.array([number[name] for name in names], dtype=np.int64)
        return cls(pairs, pair, says_same, confidence, annotator, tuple(annotators))

    def evidence(self, reliability: Floats) -> tuple[Floats, Floats]:
        """Log-weight of "same class" and of "different classes" for each pair, shape (n_pairs,) both."""
        right = self.confidence
        if len(self.annotators):
            right = np.where(self.annotator >= 0, reliability[self.annotator], right)
        with np.errstate(divide="ignore"):
            log_right, log_wrong = np.log(right), np.log1p(-right)
        same, different = np.zeros(len(self.pairs)), np.zeros(len(self.pairs))
        np.add.at(same, self.pair, np.where(self.says_same, log_right, log_wrong))
        np.add.at(different, self.pair, np.where(self.says_same, log_wrong, log_right))
        return same, different

    def first_reliability(self) -> Floats:
        """Mean confidence of each annotator's statements, capped below certainty so that it can be learned."""
        counts = np.bincount(self.annotator[self.annotator >= 0], minlength=len(self.annotators))
        sums = np.bincount(
            self.annotator[self.annotator >= 0],
            weights=self.confidence[self.annotator >= 0],
            minlength=len(self.annotators),
        )
        return np.minimum(sums / np.maximum(counts, 1), FIRST_RELIABILITY)

    def right(self, same_probability: Floats) -> Floats:
        """Probability that each statement is right, from the probability that each pair shares its class."""
        same = same_probability[self.pair]
        return np.where(self.says_same, same, 1 - same)

    def reliability(self, same_probability: Floats) -> Floats:
        """Share of correct statements of each annotator, with the pseudo-counts of the prior."""
        right = np.bincount(self.annotator, weights=self.right(same_probability), minlength=len(self.annotators))
        counts = np.bincount(self.annotator, minlength=len(self.annotators))
        return np.asarray((right + PRIOR_RIGHT) / (counts + PRIOR_RIGHT + PRIOR_WRONG))

    def log_prior(self, reliability: Floats) -> float:
        """Logarithm of the prior of the reliabilities of annotators, up to a constant."""
        return float((PRIOR_RIGHT * np.log(reliability) + PRIOR_WRONG * np.log1p(-reliability)).sum())


@dataclass(frozen=True, eq=False)
class StatementsExpectation(LinkExpectation):
    """What the M-step of the reliabilities needs.

    Attributes
    ----------
    same : ndarray of shape (n_pairs,)
        Probability that each pair shares its class.
    satisfied : ndarray of shape (n_relations,)
        Expected number of sets that satisfy each relation.
    """

    same: Floats
    satisfied: Floats


class BoundStatements(BoundCoupling):
    """A coupling that can learn how far its statements can be trusted.

    The reliabilities are those of annotators, and after them the probabilities of relations that are learned.
    """

    statements: Statements
    relations: BoundRelations = NO_RELATIONS

    @property
    def annotators(self) -> tuple[Hashable, ...]:
        """Annotators whose reliability is learned."""
        return self.statements.annotators

    def first_reliability(self) -> Floats:
        """Initial reliability of each annotator, and probability of each relation that is learned."""
        return np.concatenate([self.statements.first_reliability(), self.relations.first()])

    def reliability(self, expectation: LinkExpectation, previous: Floats) -> Floats:
        """Share of correct statements of each annotator, and of sets that satisfy each relation that is learned."""
        assert isinstance(expectation, StatementsExpectation)
        if not len(previous):
            return previous
        people = self.statements.reliability(expectation.same) if self.annotators else previous[:0]
        return np.concatenate([people, self.relations.learn(expectation.satisfied)])

    def log_prior(self, reliability: Floats) -> float:
        """Logarithm of the prior of the reliabilities."""
        n = len(self.annotators)
        return self.statements.log_prior(reliability[:n]) + self.relations.log_prior(reliability[n:])

    def relation_probabilities(self, reliability: Floats) -> Floats:
        """Probability that each relation is satisfied, learned or given."""
        return self.relations.probabilities(reliability[len(self.annotators) :])
