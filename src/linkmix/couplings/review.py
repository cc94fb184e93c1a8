"""Which links are most likely wrong."""

import numpy as np

from linkmix.basics.arrays import Array, Floats
from linkmix.couplings.base import NO_RELIABILITY
from linkmix.couplings.pairwise import BoundPairwise
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
    if not (links.n_must or links.n_cannot):
        return np.empty(0, dtype=REVIEW)
    pairs = BoundPairwise(
        links.at_most(NOMINAL_CONFIDENCE), len(class_log_density), len(class_weights), learn_reliability=False
    )
    same = pairs.expect(class_log_density, class_weights, NO_RELIABILITY).same
    table = np.empty(links.n_must + links.n_cannot, dtype=REVIEW)
    ends = np.concatenate([links.must, links.cannot])
    table["a"], table["b"] = ends[:, 0], ends[:, 1]
    table["kind"] = np.repeat(["must", "cannot"], [links.n_must, links.n_cannot])
    table["probability_wrong"] = 1 - pairs.statements.right(same)
    return table[np.argsort(-table["probability_wrong"], kind="stable")]
