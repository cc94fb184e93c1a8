"""E2CP: links are propagated over a neighbour graph and change its weights; then spectral clustering."""

from collections.abc import Iterator
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import RandomState
from scipy.linalg import eigh
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.utils._param_validation import Interval, StrOptions

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.basics.checks import Constraints, at_least
from linkmix.links import Links
from linkmix.rivals.base import Rival, links_matrix
from linkmix.rivals.k_means import k_means

NEIGHBOURS = {"dense": 10, "sparse": 5}
SMALLEST_WEIGHT = 1e-10
"""Lower bound of an edge's weight: a point far from all others stays connected to its neighbours."""
BLOCK = 32
EDGES = 65536
LARGEST_EXACT = 200
"""Number of points up to which a dense eigensolver is used; above it Lanczos is faster."""
BRUTE_ROWS, BRUTE_COLUMNS = 5000, 6
"""Up to so many rows of at least so many columns, comparing all pairs is quicker than a tree."""
FEW_ROWS = 400
"""Up to so many rows, NumPy finds the neighbours sooner than scikit-learn's trees are imported."""
SMALLEST_GAP = 1e-12
"""Squared distances that differ by less than this, relative to the largest squared length, may be the same."""
LARGEST_LINKED = 500
"""Number of linked points up to which the eigenvectors of the links are used."""


class E2CP(Rival):
    """Exhaustive and efficient constraint propagation, then spectral clustering.

    Each link is a signed weight between two points: 1 for a must-link and -1 for a cannot-link, times its confidence.
    These weights are propagated over a graph of nearest neighbours, first along one end of the link and then along the
    other, which gives a weight F_ij for every pair. A positive F pulls the similarity W_ij of the pair towards 1, a
    negative one towards 0. The rows of the leading eigenvectors of the normalised similarities, scaled to unit length,
    are clustered by k-means. Links are soft: they may be broken. Neighbours depend on distances, so standardise the
    columns first.

    Parameters
    ----------
    n_classes : int, default=2
        Number of classes.
    graph : {"dense", "sparse"}, default="dense"
        "dense" changes the similarity of all pairs, as published. It needs an n x n matrix, 0.8 GB at 10,000 points,
        and O(n^2) time per linked point, which is O(n^3) if most points are linked. "sparse" changes only the edges of
        the graph, to which must-links are added as edges of weight 1; it needs memory in proportion to n.
    n_neighbors : int, optional
        Number of neighbours of each point in the graph; by default 10 for "dense" and 5 for "sparse".
    alpha : float, default=0.8
        How far links are propagated, in [0, 1).
    rescale : bool, default=True
        Whether to divide F by its largest absolute value. Without it, as published, F is only of order (1 - alpha)^2
        at the links themselves, so that links hardly change a dense graph; with a sparse graph it matters little.
    tol : float, default=1e-13
        Relative accuracy of the propagation and of the eigenvectors.
    random_state : int, RandomState or None, default=None
        Source of randomness for k-means and the starting vector of Lanczos.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Class of each point.
    affinity_matrix_ : ndarray or sparse array of shape (n_samples, n_samples)
        Similarities, adjusted by the links.

    References
    ----------
    Lu, Ip (2010): Constrained spectral clustering via exhaustive and efficient constraint propagation. ECCV.

    Examples
    --------
    >>> from linkmix import Links
    >>> from linkmix.rivals.e2cp import E2CP
    >>> X = [[0.0], [1.0], [2.0], [3.0], [10.0], [11.0], [12.0], [13.0]]
    >>> labels = E2CP(n_neighbors=3, random_state=0).fit(X, links=Links(must=[(0, 1)], cannot=[(3, 4)])).labels_
    >>> bool((labels[:4] == labels[0]).all() and (labels[4:] == 1 - labels[0]).all())
    True
    """

    uses_confidence: ClassVar[bool] = True
    _parameter_constraints: ClassVar[Constraints] = {
        **Rival._parameter_constraints,
        "graph": [StrOptions({*NEIGHBOURS})],
        "n_neighbors": [at_least(1), None],
        "alpha": [Interval(Real, 0, 1, closed="left")],
        "rescale": ["boolean"],
        "tol": [Interval(Real, 0, 1, closed="neither")],
    }

    labels_: Ints

    def __init__(
        self,
        n_classes: int = 2,
        *,
        graph: str = "dense",
        n_neighbors: int | None = None,
        alpha: float = 0.8,
        rescale: bool = True,
        tol: float = 1e-13,
        random_state: int | RandomState | None = None,
    ) -> None:
        self.n_classes = n_classes
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.rescale = rescale
        self.tol = tol
        self.random_state = random_state

    def _cluster(self, X: Floats, links: Links, random: RandomState) -> Ints:
        if len(X) == 1:
            self.affinity_matrix_: Any = np.zeros((1, 1))
            return np.zeros(1, dtype=np.int64)
        n_neighbors = NEIGHBOURS[self.graph] if self.n_neighbors is None else self.n_neighbors
        return self.labels_on(neighbour_graph(nearest(X, min(n_neighbors, len(X) - 1))), links, random)

    def labels_on(self, weights: Any, links: Links, random: RandomState, n_init: int = 10) -> Ints:
        """Classes of points whose graph of neighbours is known.

        Parameters
        ----------
        weights : sparse array of shape (n_samples, n_samples)
            The graph, as of `neighbour_graph`.
        links : Links
            Links between the points.
        random : RandomState
            Source of randomness.
        n_init : int, default=10
            Number of runs of k-means on the eigenvectors.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        signs = links_matrix(links, weights.shape[0])
        surest = np.abs(signs.data).max(initial=0.0)
        if self.graph == "sparse":
            weights = with_edges(weights, signs)
        edges = weights.nonzero()
        similarity = normalised(weights)
        if self.graph == "sparse":
            spread = propagated_on_edges(similarity, signs, self.alpha, edges[0], edges[1], self.tol)
            spread = rescaled(spread, surest) if self.rescale else spread
            self.affinity_matrix_ = csr_array((adjusted(weights[edges], spread), edges), shape=weights.shape)
        else:
            spread = propagated(similarity, signs, self.alpha, self.tol)
            spread = rescaled(spread, surest) if self.rescale else spread
            on_edges = adjusted(weights[edges], spread[edges])
            self.affinity_matrix_ = np.clip(spread, 0.0, 1.0, out=spread)  # where there is no edge, W is zero
            self.affinity_matrix_[edges] = on_edges
        parts = connected_components(with_edges(weights, signs), directed=False)[1]  # cannot-links join nothing
        return spectral_labels(self.affinity_matrix_, parts.astype(np.int64), self.n_classes, random, self.tol, n_init)


class Neighbours(NamedTuple):
    """Nearest neighbours of each point, the nearest first."""

    distances: Floats  # (n, n_neighbors)
    others: Ints  # (n, n_neighbors)


def nearest(X: Floats, n_neighbors: int) -> Neighbours:
    """The nearest neighbours of each point."""
    brute = len(X) <= BRUTE_ROWS and X.shape[1] >= BRUTE_COLUMNS
    found = _of_few(X, n_neighbors) if 2 * n_neighbors + 1 < len(X) <= FEW_ROWS else None
    if found is None:
        from sklearn.neighbors import NearestNeighbors  # 0.2 s, so not before it is needed

        search = NearestNeighbors(n_neighbors=n_neighbors, algorithm="brute" if brute else "auto")
        found = Neighbours(*search.fit(X).kneighbors())
    if not brute:
        return found
    others = found.others  # found by products of matrices, by which copies of a point are not at distance zero
    distances = np.sqrt(((X[others] - X[:, None]) ** 2).sum(axis=2))
    order = np.argsort(distances, axis=1, kind="stable")
    return Neighbours(np.take_along_axis(distances, order, axis=1), np.take_along_axis(others, order, axis=1))


def _of_few(X: Floats, n_neighbors: int) -> Neighbours | None:
    """The nearest neighbours among few points; None if some are equally near, whose order scikit-learn decides."""
    squares = np.zeros((len(X), len(X)))
    for column in X.T:
        squares += (column[:, None] - column) ** 2
    np.fill_diagonal(squares, np.inf)
    others = np.argpartition(squares, n_neighbors, axis=1)[:, : n_neighbors + 1]
    near = np.take_along_axis(squares, others, axis=1)
    order = np.argsort(near, axis=1)
    others, near = np.take_along_axis(others, order, axis=1), np.take_along_axis(near, order, axis=1)
    if np.diff(near, axis=1).min() <= SMALLEST_GAP * (X**2).sum(axis=1).max():
        return None
    return Neighbours(np.sqrt(near[:, :-1]), others[:, :-1])


def neighbour_graph(neighbours: Neighbours) -> Any:
    """Similarities exp(-d_ij^2 / (s_i s_j)) of neighbours, where s is a point's distance to its last neighbour."""
    distances, others = neighbours
    n = len(distances)
    # Copies of a point would have scale zero; the bound makes the similarity between copies one.
    scale = np.maximum(distances[:, -1], np.finfo(np.float64).tiny ** 0.25)
    weights = np.exp(-((distances / scale[:, None]) * (distances / scale[others])))
    rows = np.repeat(np.arange(n), distances.shape[1])
    values = np.maximum(weights, SMALLEST_WEIGHT).ravel()
    graph = coo_array((values, (rows, others.ravel())), shape=(n, n)).tocsr()
    return (graph + graph.T) / 2


def with_edges(weights: Any, signs: Any) -> Any:
    """Add an edge for each must-link, weighted by its confidence."""
    together = signs.copy()
    together.data = np.maximum(together.data, 0.0)
    return weights.maximum(together).tocsr()


def normalised(weights: Any) -> Any:
    """D^-1/2 W D^-1/2, dense or sparse like W."""
    degree = np.asarray(weights.sum(axis=1)).ravel()
    root = 1 / np.sqrt(np.maximum(degree, SMALLEST_WEIGHT))
    if isinstance(weights, np.ndarray):
        return weights * root[:, None] * root
    scaled = weights.tocoo()
    a, b = scaled.coords
    return csr_array((scaled.data * root[a] * root[b], (a, b)), shape=weights.shape)


def propagated(similarity: Any, signs: Any, alpha: float, tol: float = 1e-13) -> Floats:
    """F = (1 - a)^2 (I - a L)^-1 Z (I - a L)^-1, for all pairs.

    It is the fixed point of F' = a L F' + (1 - a) Z, followed by F = a F L + (1 - a) F'.
    """
    blocks = list(_factors(similarity, signs, alpha, tol))
    if not blocks:
        return np.zeros(similarity.shape)
    left, right = (np.concatenate(some, axis=1) for some in zip(*blocks, strict=True))  # no larger than F itself
    return np.asarray(left @ right.T)


def propagated_on_edges(similarity: Any, signs: Any, alpha: float, a: Ints, b: Ints, tol: float = 1e-13) -> Floats:
    """The same F for the pairs (a_i, b_i) only, in O(n) memory."""
    total = np.zeros(len(a))
    for left, right in _factors(similarity, signs, alpha, tol):
        for begin in range(0, len(a), EDGES):
            some = slice(begin, begin + EDGES)
            total[some] += np.einsum("ij,ij->i", left[a[some]], right[b[some]])
    return total


def _factors(similarity: Any, signs: Any, alpha: float, tol: float) -> Iterator[tuple[Floats, Floats]]:
    """Yield blocks of columns G and H (n, k) with F = sum of G H'.

    With the eigenvectors of Z, restricted to the linked points, one linear system per linked point is solved. The
    inverse would take n of them. Where Z is too large for its eigenvectors, two per linked point are.
    """
    linked = np.flatnonzero(np.diff(signs.indptr))
    within = signs[linked][:, linked]
    few = len(linked) <= LARGEST_LINKED
    values, vectors = np.linalg.eigh(within.toarray()) if few else (np.empty(0), np.empty((0, 0)))

    def spread(columns: Floats) -> Floats:
        right = np.zeros((similarity.shape[0], columns.shape[1]))
        right[linked] = columns
        return (1 - alpha) * _solve(similarity, right, alpha, tol)

    for begin in range(0, len(linked), BLOCK):
        some = slice(begin, begin + BLOCK)
        if few:
            columns = spread(vectors[:, some])
            yield columns * values[some], columns
        else:
            width = len(linked[some])
            yield spread(within[:, some].toarray()), spread(np.eye(len(linked), width, -begin))


def _solve(similarity: Any, right: Floats, alpha: float, tol: float) -> Floats:
    """(I - a L)^-1 times the columns, by Chebyshev iteration: the eigenvalues lie between 1 - a and 1 + a.

    There is no factorisation and hence no fill-in, and the number of steps depends on alpha and the accuracy only.
    """
    # The error shrinks by this factor in each step. The bound avoids the logarithm of zero if alpha = 0.
    rate = max(alpha / (1 + np.sqrt(1 - alpha**2)), tol)
    n_steps = int(np.ceil(np.log(tol * (1 - alpha)) / np.log(rate)))
    before: Floats = right
    solution: Floats = right + alpha * (similarity @ right)
    relaxation = 2.0
    for _ in range(n_steps):
        relaxation = 1 / (1 - alpha**2 * relaxation / 4)
        following = similarity @ solution
        following *= alpha  # in place: these passes over memory take about as long as the product
        following += right
        following -= before
        following *= relaxation
        following += before
        before, solution = solution, following
    return solution


def rescaled(spread: Floats, surest: float) -> Floats:
    """Scale F so that its largest absolute value is the largest confidence of a link."""
    largest = np.abs(spread).max(initial=0.0)
    return np.asarray(spread * (surest / largest)) if largest > 0 else spread


def adjusted(weights: Floats, spread: Floats) -> Floats:
    """Similarities adjusted by the links: towards 1 where F is positive, towards 0 where it is negative."""
    # The published bound |F| <= 1 holds for few links; many links at one point can add up to more.
    bounded = np.clip(spread, -1.0, 1.0)
    # Published as 1 - (1 - F)(1 - W) and (1 + F) W; in this form F = 0 leaves W unchanged to the last digit.
    return np.asarray(weights + bounded * np.where(bounded >= 0, 1 - weights, weights))


def _leading_vectors(weights: Any, parts: Ints, n_vectors: int, random: RandomState, tol: float) -> Floats:
    """Leading eigenvectors of the normalised similarities.

    Each part of the points that no edge leaves has a known eigenvector with eigenvalue 1. Lanczos finds only one vector
    of a repeated eigenvalue, so the known ones are deflated first.
    """
    degree = np.asarray(weights.sum(axis=1)).ravel()
    root = np.sqrt(degree)
    scale = 1 / np.sqrt(np.maximum(degree, SMALLEST_WEIGHT))
    sizes = np.bincount(parts, weights=degree)
    heaviest = np.argsort(-sizes, kind="stable")[:n_vectors]  # if there are more than wanted
    known = np.zeros((len(root), len(heaviest)))
    for column, number in enumerate(heaviest):
        known[parts == number, column] = root[parts == number] / np.sqrt(sizes[number])
    if len(sizes) >= n_vectors:
        return known

    def deflated(vector: Array) -> Floats:
        flat = np.asarray(vector).ravel()
        return np.asarray(scale * (weights @ (scale * flat)) - known @ (known.T @ flat))

    operator = LinearOperator(weights.shape, matvec=deflated, dtype=np.float64)
    first = random.uniform(-1, 1, size=len(root))
    _, others = eigsh(operator, k=n_vectors - len(sizes), which="LA", v0=first, tol=tol)
    return np.column_stack([known, others])


def spectral_labels(
    weights: Any, parts: Ints, n_classes: int, random: RandomState, tol: float, n_init: int = 10
) -> Ints:
    """k-means on the rows of the leading eigenvectors, scaled to unit length.

    Parameters
    ----------
    weights : ndarray or sparse array of shape (n, n)
        Similarities.
    parts : ndarray of shape (n,)
        Parts of the points that no edge leaves, numbered from 0.
    n_classes : int
        Number of classes.
    random : RandomState
        Source of randomness.
    tol : float
        Relative accuracy of the eigenvectors, if they are found by Lanczos.
    n_init : int, default=10
        Number of runs of k-means.
    """
    n = weights.shape[0]
    if n_classes == 1:
        return np.zeros(n, dtype=np.int64)
    if n <= max(LARGEST_EXACT, 2 * n_classes):
        similarity = normalised(weights)
        full: Array = similarity if isinstance(similarity, np.ndarray) else similarity.toarray()
        _, vectors = eigh((full + full.T) / 2, subset_by_index=[n - n_classes, n - 1])
    else:
        vectors = _leading_vectors(weights, parts, n_classes, random, tol)
    length = np.sqrt((vectors**2).sum(axis=1, keepdims=True))
    rows = vectors / np.where(length > 0, length, 1.0)
    return k_means(rows, n_classes, n_init, random)
