"""SSKK: semi-supervised kernel k-means (Kulis, Basu, Dhillon, Mooney 2005, 2009)."""

import warnings
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.random import RandomState
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import StrOptions

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.basics.checks import Constraints, at_least
from linkmix.links import Links
from linkmix.rivals.base import Rival, links_matrix
from linkmix.rivals.kernels import Precision, exact_features, rbf_similarity
from linkmix.rivals.landmark_kernel import LandmarkKernel, landmark_similarity

Objective = Literal["ratio-association", "normalised-cut", "ratio-cut"]
OBJECTIVES = ("ratio-association", "normalised-cut", "ratio-cut")

LINKS_OF_A_POINT = 10
"""The strong weight is the mean size of a class divided by this. Chosen on iris, wine, thyroid and blobs with 10 to
1000 links (draws 0 to 2): a tenth of it hardly counts, and ten times as much makes kernel k-means keep its start."""
_DENSE_LIMIT = 200  # up to this size, computing all eigenvalues is faster than Lanczos
_TIE = 1e-12  # a point moves only for a gain above rounding, or ties would keep it moving


class SSKK(Rival):
    """Kernel k-means in which links change the similarity of the points that they join.

    A must-link adds `link_weight` to the similarity of its two points and a cannot-link subtracts it. Weighted kernel
    k-means on the result is equivalent to a graph cut of the points plus the weight of the broken links. Links are
    soft: if their weight is small they may be broken.

    An iteration takes O(n^2 k) time. Memory is one n x n matrix: 8 n^2 bytes (200 MB at n = 5000), or half of that with
    ``precision="float32"``. Above `exact_limit` points the similarity comes from landmarks, in O(n m k) time and
    16 n m bytes for m landmarks (100 MB at n = 20000 and m = 300).

    Parameters
    ----------
    n_classes : int, default=2
        Number of classes, k.
    objective : {"ratio-association", "normalised-cut", "ratio-cut"}, default="ratio-association"
        The graph objective: the similarity within classes divided by their sizes, the cut divided by the sum of
        degrees, or the cut divided by the sizes.
    sigma : float, default=0.0
        Added to the diagonal of the kernel (divided by the degrees, for the normalised cut). A large value makes the
        kernel positive semi-definite, but also keeps every point in its initial class.
    link_weight : {"strong", "original"} or float, default="strong"
        Weight of a link. "strong": n / (10 k), so that breaking one link costs about as much as moving one point to a
        wrong class, however many links there are. "original", the published default: n / (k C) for C links, so that
        all links together weigh as much as about two points, and many of them hardly count.
    max_iter : int, default=100
        Maximum number of iterations.
    precision : {"float64", "float32"}, default="float64"
        Precision of the kernel matrix.
    exact_limit : int, default=10000
        Number of points above which the similarity is approximated from landmarks (Nystrom) and checked against the
        exact similarity of some points.
    random_state : int, RandomState or None, default=None
        Source of randomness for the first seed among chunklets of the same size, and for the landmarks.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Class of each point.
    objective_trace_ : array
        Objective of kernel k-means at the start and after each iteration that moved a point. It leaves out the
        contribution of the shift, which is the same for all labels. Smaller is better.
    n_iter_ : int
        Number of iterations, including the last one, which moves no point.
    converged_ : bool
        Whether the last iteration moved no point.
    shift_ : float
        Final value added to the diagonal: `sigma`, or more if the iteration cycled.

    Notes
    -----
    Initial labels: the seeds are chunklets, and cannot-links apply to whole chunklets. The first seed is the largest
    chunklet, each further one the chunklet farthest from those chosen; every other chunklet joins the closest seed.
    Distances use the similarity minus the cannot-links for every objective, because under the kernels of the two cuts
    all points are close to one seed. Unlinked points are seeds only if the links give too few chunklets: they would
    always be the farthest.

    If the kernel is indefinite, the iteration may cycle, or settle at labels worse than earlier ones. The diagonal is
    then raised to the smallest value that makes the kernel positive semi-definite, and the iteration continues from
    the best labels so far; from there on the objective cannot get worse. The kernel of the ratio cut, minus the
    Laplacian, is never positive semi-definite, so it is shifted from the start.

    References
    ----------
    .. [1] B. Kulis, S. Basu, I. Dhillon, R. Mooney, "Semi-supervised graph clustering: a kernel approach", Machine
       Learning 74, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from linkmix.rivals.sskk import SSKK
    >>> X = np.array([[0.0], [0.2], [0.4], [5.0], [5.2], [5.4]])
    >>> SSKK(2, random_state=0).fit(X, must_link=[(0, 2)], cannot_link=[(2, 3)]).labels_
    array([0, 0, 0, 1, 1, 1])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **Rival._parameter_constraints,
        "objective": [StrOptions({*OBJECTIVES})],
        "sigma": [at_least(0, Real)],
        "link_weight": [StrOptions({"strong", "original"}), at_least(0, Real)],
        "precision": [StrOptions({"float64", "float32"})],
    }

    def __init__(
        self,
        n_classes: int = 2,
        *,
        objective: Objective = "ratio-association",
        sigma: float = 0.0,
        link_weight: Literal["strong", "original"] | float = "strong",
        max_iter: int = 100,
        precision: Precision = "float64",
        exact_limit: int = 10_000,
        random_state: int | RandomState | None = None,
    ) -> None:
        self.n_classes = n_classes
        self.objective = objective
        self.sigma = sigma
        self.link_weight = link_weight
        self.max_iter = max_iter
        self.precision = precision
        self.exact_limit = exact_limit
        self.random_state = random_state

    def _cluster(self, X: Floats, links: Links, random: RandomState) -> Ints:
        weight = self._weight(len(X), links.n_must + links.n_cannot)
        similarity: Array | LandmarkKernel
        if len(X) > self.exact_limit:
            similarity = landmark_similarity(X, random, self.precision)
        else:
            features = exact_features(X) if self.precision == "float64" else None
            if features is None:
                similarity = rbf_similarity(X, precision=self.precision)
            else:
                similarity = LandmarkKernel.of(features)
        start = seed_labels(similarity, links, weight, self.n_classes, random)
        kernel, weights = link_kernel(similarity, links, weight, self.objective)
        sigma = float(self.sigma)
        if self.objective == "ratio-cut":
            sigma = max(sigma, -lowest_eigenvalue(kernel, weights))
        result = kernel_kmeans(kernel, start, weights, sigma=sigma, max_iter=self.max_iter)
        if not result.converged:
            warnings.warn(
                f"SSKK stopped after max_iter={self.max_iter} iterations before it converged: raise max_iter",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.objective_trace_ = result.objective_trace
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.shift_ = result.shift
        return result.labels

    def _weight(self, n_rows: int, n_links: int) -> float:
        """Weight of a link."""
        if not isinstance(self.link_weight, str):
            return float(self.link_weight)
        share = LINKS_OF_A_POINT if self.link_weight == "strong" else max(n_links, 1)
        return n_rows / (self.n_classes * share)


def link_kernel(
    similarity: "Array | LandmarkKernel", links: Links, link_weight: float, objective: Objective
) -> "tuple[Array | LandmarkKernel, Floats]":
    """The kernel of an objective without a shift, which overwrites the similarity, and the weights of the points."""
    if isinstance(similarity, LandmarkKernel):
        degrees = similarity @ np.ones(len(similarity))
        kernel = similarity.with_links(link_weight * links_matrix(links, len(similarity)))
        if objective == "normalised-cut":
            return kernel.divided_by(degrees), degrees
        return kernel.less(degrees) if objective == "ratio-cut" else kernel, np.ones(len(similarity))
    degrees = similarity.sum(axis=1, dtype=np.float64)
    for pairs, sign in ((links.must, 1.0), (links.cannot, -1.0)):
        rows, columns = pairs.T
        similarity[rows, columns] += sign * link_weight  # `fit` made sure that each pair occurs once
        similarity[columns, rows] += sign * link_weight
    if objective == "normalised-cut":
        similarity /= degrees[:, None].astype(similarity.dtype)
        similarity /= degrees.astype(similarity.dtype)
        return similarity, degrees
    if objective == "ratio-cut":
        similarity[np.diag_indices_from(similarity)] -= degrees.astype(similarity.dtype)
    return similarity, np.ones(len(similarity))


class KernelMeans(NamedTuple):
    """Result of weighted kernel k-means."""

    labels: Ints  # (n,)
    objective_trace: Floats  # at the start and after each iteration that moved a point
    n_iter: int
    converged: bool
    shift: float


class _Centroids(NamedTuple):
    """Squared distances to the centroids of some labels, and the objective of these labels."""

    distances: Floats  # (n, k), without the term K_ii, which is common to all centroids
    objective: float


def kernel_kmeans(
    kernel: "Array | LandmarkKernel",
    labels: Ints,
    weights: Floats | None = None,
    *,
    n_classes: int | None = None,
    sigma: float = 0.0,
    max_iter: int = 100,
) -> KernelMeans:
    """Weighted kernel k-means from given labels.

    Each iteration moves every point to the closest centroid, d(x_i, c) = K_ii - 2 sum_j w_j K_ij / sum w +
    sum_jl w_j w_l K_jl / (sum w)^2. If K is positive semi-definite the objective, the weighted sum of these distances,
    never increases. Otherwise it may: if the labels repeat earlier ones, or settle at a worse objective than before,
    `sigma` is raised to the smallest value that makes the kernel positive semi-definite, and the iteration continues
    from the best labels.

    Parameters
    ----------
    kernel : array of shape (n, n), or LandmarkKernel
        Symmetric.
    labels : array of int, shape (n,)
        Initial classes, from 0.
    weights : array of shape (n,), optional
        Weights of the points; ones by default.
    n_classes : int, optional
        Number of classes; by default as many as in `labels`. An empty class takes the point that is farthest from its
        own centroid.
    sigma : float, default=0.0
        Adds sigma / w_i to the diagonal of the kernel. The matrix itself is not changed.
    max_iter : int, default=100
        Maximum number of iterations.

    Returns
    -------
    KernelMeans
        Labels, the objective without the constant sigma (n - k), the number of iterations, whether it converged, and
        the final shift.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([0.0, 1.0, 5.0, 6.0])
    >>> result = kernel_kmeans(np.outer(x, x), np.array([0, 1, 1, 1]))
    >>> result.labels, result.objective_trace
    (array([0, 0, 1, 1]), array([14.,  1.]))
    """
    weights = np.ones(len(kernel)) if weights is None else weights
    n_classes = int(labels.max()) + 1 if n_classes is None else n_classes
    means = _Means(kernel, weights, n_classes)
    labels = np.asarray(labels, dtype=np.int64)
    # Fill empty classes first: objectives are comparable only for equal k, since the shift adds sigma (n - k).
    labels = means.fill(labels, means.at(labels, sigma).distances, sigma)
    current = means.at(labels, sigma)
    trace = [current.objective]
    seen = {labels.tobytes()}
    best, best_labels = current.objective, labels
    psd = False
    for n_iter in range(1, max_iter + 1):
        moved = means.move(labels, current.distances, sigma)
        if np.array_equal(moved, labels) and (psd or current.objective <= best):
            return KernelMeans(labels, np.array(trace), n_iter, True, sigma)
        if not psd and moved.tobytes() in seen:
            # It cycles, or settled at a worse objective. From the best labels so far, a positive semi-definite kernel
            # can only improve.
            sigma, psd = max(sigma, -lowest_eigenvalue(kernel, weights)), True
            labels = best_labels
        else:
            labels = moved
        current = means.at(labels, sigma)
        trace.append(current.objective)
        seen.add(labels.tobytes())
        if current.objective < best:
            best, best_labels = current.objective, labels
    return KernelMeans(labels, np.array(trace), max_iter, False, sigma)


@dataclass(frozen=True)
class _Means:
    """Centroids in the feature space of a kernel."""

    kernel: "Array | LandmarkKernel"
    weights: Floats
    n_classes: int

    def at(self, labels: Ints, sigma: float) -> _Centroids:
        rows = np.arange(len(labels))
        member = np.zeros((len(labels), self.n_classes), dtype=self.kernel.dtype)
        member[rows, labels] = self.weights
        sums = (self.kernel @ member).astype(np.float64)  # (n, k): sum over j in c of w_j K_ij
        mass = np.bincount(labels, self.weights, minlength=self.n_classes)
        inverse = np.divide(1.0, mass, out=np.zeros_like(mass), where=mass > 0)
        own = np.bincount(labels, self.weights * sums[rows, labels], minlength=self.n_classes)  # sum_jl w_j w_l K_jl
        trace = float(self.weights @ self.kernel.diagonal())
        distances = own * inverse**2 - 2.0 * sums * inverse
        # Contribution of sigma / w_i on the diagonal, without changing the matrix; sigma / w_i itself is common to all.
        distances += sigma * inverse
        distances[rows, labels] -= 2.0 * sigma * inverse[labels]
        distances[:, mass == 0] = np.inf
        return _Centroids(distances, trace - float(own @ inverse))

    def move(self, labels: Ints, distances: Floats, sigma: float) -> Ints:
        rows = np.arange(len(labels))
        nearest = np.asarray(distances.argmin(axis=1), dtype=np.int64)
        here = distances[rows, labels]
        gain = here - distances[rows, nearest]
        moved = np.where(gain > _TIE * (1.0 + np.abs(here)), nearest, labels)
        return self.fill(moved, distances, sigma)

    def fill(self, labels: Ints, distances: Floats, sigma: float) -> Ints:
        """Give each empty class the most expensive point. With a semi-definite kernel this cannot be worse."""
        sizes = np.bincount(labels, minlength=self.n_classes)
        if sizes.all():
            return labels
        labels = labels.copy()
        rows = np.arange(len(labels))
        cost = self.weights * (self.kernel.diagonal() + distances[rows, labels]) + sigma
        for empty in np.flatnonzero(sizes == 0):
            taken = int(np.where(sizes[labels] > 1, cost, -np.inf).argmax())
            sizes[labels[taken]] -= 1
            sizes[empty] += 1
            labels[taken] = empty
        return labels


def lowest_eigenvalue(kernel: "Array | LandmarkKernel", weights: Floats) -> float:
    """A tight lower bound of the eigenvalues of w^1/2 K w^1/2. Its negative is the shift that makes K semi-definite.

    Examples
    --------
    >>> import numpy as np
    >>> lowest_eigenvalue(np.array([[0.0, 1.0], [1.0, 0.0]]), np.ones(2))
    -1.0
    """
    n = len(kernel)
    root = np.sqrt(weights)

    def product(vector: Array) -> Floats:
        image: Floats = (kernel @ (root * vector.ravel()).astype(kernel.dtype)).astype(np.float64)
        return root * image

    if n > _DENSE_LIMIT:
        try:
            operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
            start = np.random.RandomState(0).normal(size=n)  # ARPACK's own start would differ from call to call
            values, vectors = eigsh(operator, k=1, which="SA", tol=1e-6, v0=start)
        except ArpackNoConvergence:
            pass
        else:
            # Some eigenvalue is within the residual of the Ritz value; the factor leaves a margin for lower ones.
            return float(values[0] - 2.0 * np.linalg.norm(product(vectors[:, 0]) - values[0] * vectors[:, 0]))
    matrix = kernel if isinstance(kernel, np.ndarray) else kernel @ np.eye(n)
    scaled = root[:, None] * matrix * root
    value = float(eigh(scaled, eigvals_only=True, subset_by_index=[0, 0])[0])
    return value - 1e-14 * n * abs(value)


def seed_labels(
    similarity: "Array | LandmarkKernel", links: Links, link_weight: float, n_classes: int, random: RandomState
) -> Ints:
    """Initial labels: chunklets that are far apart are the seeds, and every other chunklet joins the closest one.

    Distances use the similarity minus all cannot-links that follow from the given ones. These need not be listed, since
    all pairs of rows of two chunklets have the same link. Must-links define the chunklets and do not count again: their
    weight within a seed would push away every unlinked point.
    """
    components = links.chunklets(len(similarity))
    sizes = np.bincount(components)
    # Sum of all similarities within each chunklet.
    within = np.bincount(components, similarity.diagonal().astype(np.float64))
    linked = np.unique(links.must)
    linked = linked[np.argsort(components[linked], kind="stable")]
    for rows in np.split(linked, np.flatnonzero(np.diff(components[linked])) + 1) if len(linked) else ():
        within[components[rows[0]]] = _sum_of_rows(similarity, rows)[rows].sum()
    spread = within / sizes**2.0
    apart = components[links.cannot]  # (n_cannot, 2)

    candidates = np.unique(components[links.points])
    if len(candidates) < n_classes:
        candidates = np.arange(len(sizes))
    largest = candidates[sizes[candidates] == sizes[candidates].max()]
    chosen = [int(random.choice(largest))]
    distances: list[Floats] = []  # from each chunklet to each seed
    while True:
        seed = chosen[-1]
        sums = _sum_of_rows(similarity, np.flatnonzero(components == seed))
        between = np.bincount(components, sums)
        others = np.unique(np.concatenate([apart[apart[:, 0] == seed, 1], apart[apart[:, 1] == seed, 0]]))
        between[others] -= link_weight * sizes[others] * sizes[seed]
        distances.append(spread + spread[seed] - 2.0 * between / (sizes * sizes[seed]))
        distances[-1][seed] = -np.inf  # a seed stays in its own class, even with an indefinite kernel
        if len(chosen) == n_classes:
            return np.asarray(np.argmin(distances, axis=0)[components], dtype=np.int64)
        nearest = np.min(distances, axis=0)[candidates]  # minus infinity for the seeds
        chosen.append(int(candidates[nearest.argmax()]))


def _sum_of_rows(similarity: "Array | LandmarkKernel", rows: Ints) -> Floats:
    """Sum of some rows of the similarity, shape (n,)."""
    if isinstance(similarity, LandmarkKernel):
        return similarity @ np.isin(np.arange(len(similarity)), rows).astype(np.float64)
    return np.asarray(similarity[rows].sum(axis=0, dtype=np.float64))
