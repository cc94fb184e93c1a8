"""Which links are most likely wrong."""

import numpy as np
from scipy.special import expit, logit

from linkmix.basics.arrays import Array, Floats
from linkmix.couplings.base import NO_RELIABILITY
from linkmix.couplings.pairwise import BoundPairwise
from linkmix.couplings.statements import Statements
from linkmix.links import Links

NOMINAL_CONFIDENCE = 0.95
"""Confidence assumed for a certain link: a link that cannot be wrong could not be ranked."""

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
    doubted = links.at_most(NOMINAL_CONFIDENCE)
    pairs = BoundPairwise(doubted, len(class_log_density), len(class_weights), learn_reliability=False)
    if not len(pairs.statements.pairs):
        return np.empty(0, dtype=REVIEW)
    same = pairs.expect(class_log_density, class_weights, NO_RELIABILITY).same
    return _table(links, pairs.statements.right(same))


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
