"""PCKMeans: k-means in which each broken link costs the same."""

import numpy as np
from numpy.random import RandomState

from linkmix.basics.arrays import Floats
from linkmix.links import Links
from linkmix.rivals.kmeans_links import PenaltyRival, WeightedLinks, linked_seeds, squared_distances


class PCKMeans(PenaltyRival):
    """k-means with a price on broken links.

    Minimises half the sum of squared distances to the centres plus `weight` for each broken link. Links that follow
    from certain ones count as well, as published; their number grows with the square of the size of the must-link
    components. A link of confidence c costs c times the weight. Bring the columns to a common scale first: the weight
    is compared with squared distances.

    Points choose one after the other, given the classes of the others, as published; in each step they are also placed
    anew, and the cheaper of the two is kept, since points that hold each other can not leave a class one by one.

    Parameters
    ----------
    n_classes : int, default=2
        Number of classes.
    weight : float, default=1.0
        What a broken link costs.
    max_iter : int, default=300
        Largest number of steps.
    init : array-like of shape (n_classes, n_features), optional
        Centres to start from. Without them they are the means of the largest must-link components, of equally large
        ones those far apart; if there are fewer, a point that cannot link all of these, and draws by k-means++.
    random_state : int, RandomState or None, default=None
        Source of randomness: the start, and the order in which linked points choose.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Class of each point.
    cluster_centers_ : ndarray of shape (n_classes, n_features)
        Mean of each class.
    objective_ : float
        What was minimised, at the end.
    objective_trace_ : ndarray of shape (n_iter_,)
        The same after each step; it never rises.
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
    >>> cheap.labels_  # the link is not worth its price
    array([0, 0, 0, 1, 1])
    >>> dear = PCKMeans(weight=100.0, init=[[0.0], [9.0]], random_state=0).fit(X, links=links)
    >>> bool(dear.labels_[2] == dear.labels_[3])
    True
    >>> cheap.predict([[3.0], [7.0]])
    array([0, 1])
    """

    def _seeds(self, X: Floats, links: Links, random: RandomState) -> Floats:
        return linked_seeds(X, links, self.n_classes, random, farthest=False)

    def _costs(self, X: Floats, centres: Floats, metric: Floats) -> Floats:
        return np.asarray(0.5 * squared_distances(X, centres))

    def _penalties(self, X: Floats, links: WeightedLinks, metric: Floats) -> Floats:
        return links.weights
