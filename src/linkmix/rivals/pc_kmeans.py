"""PCKMeans: k-means with a constant penalty for each broken link."""

from numbers import Real
from typing import ClassVar, Literal

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import StrOptions

from linkmix.basics.arrays import Floats
from linkmix.basics.checks import Constraints, at_least
from linkmix.links import Links
from linkmix.rivals.kmeans_links import PenaltyRival, WeightedLinks, linked_seeds, squared_distances


class PCKMeans(PenaltyRival):
    """k-means with a penalty for broken links.

    Minimises half the sum of squared distances to the centres plus `weight` for each broken link. As published, links
    that follow from certain ones count as well; their number grows with the square of the size of the chunklets. A link
    of confidence c costs c times the weight.

    As published, points are assigned one after the other, given the classes of the others. In addition each step also
    assigns all points from scratch and keeps the cheaper of the two, since points that their links hold together
    cannot leave a class one by one.

    Parameters
    ----------
    n_classes : int, default=2
        Number of classes.
    weight : {"strong", "original"} or float, default="strong"
        Penalty for a broken link. "strong": the mean squared distance of a point from the mean of all, so that a link
        outvotes the points on any scale. "original": 1, the published experiments' penalty; what it means depends on
        the scale and the number of the columns.
    max_iter : int, default=300
        Maximum number of steps.
    init : array-like of shape (n_classes, n_features), optional
        Initial centres. By default the means of the largest chunklets, the farthest first among equally large ones; if
        there are too few, a point that is cannot-linked to all of these, then k-means++ draws.
    random_state : int, RandomState or None, default=None
        Source of randomness for the initial centres and the order in which linked points are assigned.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Class of each point.
    cluster_centers_ : ndarray of shape (n_classes, n_features)
        Mean of each class.
    objective_ : float
        Objective at the end.
    objective_trace_ : ndarray of shape (n_iter_,)
        Objective after each step; it never increases.
    n_iter_ : int
        Number of steps.
    converged_ : bool
        Whether the last step changed nothing.

    References
    ----------
    Basu, Banerjee, Mooney (2004): Active semi-supervision for pairwise constrained clustering. SDM.

    Examples
    --------
    >>> from linkmix import Links
    >>> from linkmix.rivals.pc_kmeans import PCKMeans
    >>> X = [[0.0], [1.0], [2.0], [8.0], [9.0]]
    >>> links = Links(must=[(2, 3)])
    >>> cheap = PCKMeans(weight=1.0, init=[[0.0], [9.0]]).fit(X, links=links)
    >>> cheap.labels_  # breaking the link is cheaper
    array([0, 0, 0, 1, 1])
    >>> dear = PCKMeans(weight=100.0, init=[[0.0], [9.0]], random_state=0).fit(X, links=links)
    >>> bool(dear.labels_[2] == dear.labels_[3])
    True
    >>> cheap.predict([[3.0], [7.0]])
    array([0, 1])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **PenaltyRival._parameter_constraints,
        "weight": [StrOptions({"strong", "original"}), at_least(0, Real)],
    }

    def __init__(
        self,
        n_classes: int = 2,
        *,
        weight: Literal["strong", "original"] | float = "strong",
        max_iter: int = 300,
        init: ArrayLike | None = None,
        random_state: int | RandomState | None = None,
    ) -> None:
        super().__init__(n_classes, weight=weight, max_iter=max_iter, init=init, random_state=random_state)

    def _link_weight(self, X: Floats) -> float:
        if self.weight == "strong":
            return float(X.var(axis=0).sum())
        return 1.0 if self.weight == "original" else float(self.weight)

    def _seeds(self, X: Floats, links: Links, random: RandomState) -> Floats:
        return linked_seeds(X, links, self.n_classes, random, farthest=False)

    def _costs(self, X: Floats, centres: Floats, metric: Floats) -> Floats:
        return np.asarray(0.5 * squared_distances(X, centres))

    def _penalties(self, X: Floats, links: WeightedLinks, metric: Floats) -> Floats:
        return links.weights
