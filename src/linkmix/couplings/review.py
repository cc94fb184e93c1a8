"""Which links and relations are most likely wrong."""

import numpy as np
from scipy.special import expit, logit

from linkmix.basics.arrays import Array, Floats
from linkmix.couplings.base import NO_RELIABILITY
from linkmix.couplings.pairwise import BoundPairwise, set_labels
from linkmix.couplings.statements import Statements
from linkmix.links import Links

NOMINAL_CONFIDENCE = 0.95
"""Confidence assumed for a certain link: a link that cannot be wrong could not be ranked."""

RELATION_REVIEW = np.dtype([("relation", np.int64), ("set", np.int64), ("probability_wrong", np.float64)])
REVIEW = np.dtype([("a", np.int64), ("b", np.int64), ("kind", "U6"), ("probability_wrong", np.float64)])


def links_to_review(links: Links, class_log_density: Floats, class_weights: Floats) -> Array:
    """Every link with the probability that it is wrong, given the densities of its two points, most doubtful first.

    Parameters
    ----------
    links : Links
        Links between the points, each with its confidence before the points are considered.
    class_log_density : ndarray of shape (n_points, n_classes)
    class_weights : ndarray of shape (n_classes,)

    Returns
    -------
    structured ndarray of shape (n_links,)
        Fields ``a``, ``b``, ``kind`` ("must" or "cannot") and ``probability_wrong``.
    """
    doubted = links.without_relations().at_most(NOMINAL_CONFIDENCE)
    pairs = BoundPairwise(doubted, len(class_log_density), len(class_weights), learn_reliability=False)
    if not len(pairs.statements.pairs):
        return np.empty(0, dtype=REVIEW)
    same = pairs.expect(class_log_density, class_weights, NO_RELIABILITY).same
    return _table(links, pairs.statements.right(same))


def relations_to_review(links: Links, class_log_density: Floats, probabilities: Floats) -> Array:
    """Every set of every relation with the probability that its labels do not satisfy it, most doubtful first.

    Given the densities of the points of the set alone. A relation without doubt is taken to be satisfied with a
    probability of 0.95, as a certain link is.

    Parameters
    ----------
    links : Links
        Relations between the points.
    class_log_density : ndarray of shape (n_points, n_classes)
    probabilities : ndarray of shape (n_relations,)
        Probability that each relation is satisfied, before the points are considered.

    Returns
    -------
    structured ndarray
        Fields ``relation`` and ``set``, its positions in the links and in the relation, and ``probability_wrong``.

    Examples
    --------
    >>> from linkmix import SetRelation
    >>> together = SetRelation.classes([(0, 1), (0, 2)], exactly=1)
    >>> F = np.log([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9]])
    >>> relations_to_review(Links(relations=[together]), F, np.ones(1))["probability_wrong"].round(3)
    array([0.193, 0.018])
    """
    found = [np.empty(0, dtype=RELATION_REVIEW)]
    for number, (relation, probability) in enumerate(zip(links.relations, probabilities.tolist(), strict=True)):
        parts = relation.parts(class_log_density.shape[1]).doubted(NOMINAL_CONFIDENCE)
        table = np.zeros(len(relation.sets), dtype=RELATION_REVIEW)
        table["relation"], table["set"] = number, np.arange(len(table))
        if parts.is_open:
            log_table = parts.log_table(min(probability, NOMINAL_CONFIDENCE))
            scratch = np.zeros_like(class_log_density)
            each = set_labels(relation.sets, log_table, class_log_density, scratch)
            table["probability_wrong"] = np.concatenate([labels[:, ~parts.satisfied].sum(axis=1) for labels, _ in each])
        found.append(table)
    every = np.concatenate(found)
    return every[np.argsort(-every["probability_wrong"], kind="stable")]


def links_to_review_by(links: Links, together: Floats) -> Array:
    """The same, given how probable it is that two points belong together if nothing is said about them.

    Parameters
    ----------
    links : Links
        Links, each with its confidence.
    together : ndarray of shape (n_links,)
        For the two points of each link, must-links first: the probability that they share a class.

    Returns
    -------
    structured ndarray of shape (n_links,)
        As from `links_to_review`.

    Examples
    --------
    >>> links = Links(must=[(0, 1), (2, 3)], cannot=[(4, 5)])
    >>> links_to_review_by(links, np.array([0.9, 0.1, 0.2]))["probability_wrong"].round(3)
    array([0.321, 0.013, 0.006])
    """
    statements = Statements.of(links.at_most(NOMINAL_CONFIDENCE), learn_reliability=False)
    prior = np.empty(len(statements.pairs))
    prior[statements.pair] = together
    same, different = statements.evidence(NO_RELIABILITY)
    return _table(links, statements.right(expit(logit(prior) + same - different)))


def _table(links: Links, right: Floats) -> Array:
    """Links with the probability that they are wrong, the most doubtful first."""
    table = np.empty(links.n_must + links.n_cannot, dtype=REVIEW)
    ends = np.concatenate([links.must, links.cannot])
    table["a"], table["b"] = ends[:, 0], ends[:, 1]
    table["kind"] = np.repeat(["must", "cannot"], [links.n_must, links.n_cannot])
    table["probability_wrong"] = 1 - right
    return table[np.argsort(-table["probability_wrong"], kind="stable")]
