"""CSC: constrained spectral clustering (Wang and Davidson 2010)."""

import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.random import RandomState
from scipy.linalg import LinAlgError, blas, cholesky, eigh, eigvalsh, qr, solve_triangular
from scipy.sparse import block_diag, csr_array
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from linkmix.arrays import Floats, Ints
from linkmix.checks import check_number
from linkmix.links import Links
from linkmix.rivals.base import Rival
from linkmix.rivals.kernels import landmark_map, rbf_similarity, row_blocks, scale_points, similarities

__all__ = ["CSC", "Feasible", "LandmarkGraph", "Problem", "SimilarityGraph", "feasible_vectors"]

RULES = ("eigenvalue", "singular")

_MARGIN = 1e-6  # "just below" an eigenvalue, as in the authors' program
_DENSE_LIMIT = 400  # up to this size all eigenvectors at once cost less than an iteration
_LARGEST_RESIDUAL = 0.02  # of the eigenvectors found with landmarks, by the exact similarity of some rows
_ROWS_CHECKED = 500
_MOST_LANDMARKS = 2000


class CSC(Rival):
    """Spectral clustering in which the links must be met to some degree.

    Among all relaxed labellings v whose agreement with the links, v'Qv, is above a threshold beta, those that cut the
    least similarity. Each link counts as wrong or right to a degree only: links are wishes, and a single one may be
    broken. Without links this is plain normalised spectral clustering.

    Up to `exact_limit` points the eigenproblem is solved exactly, in O(n^3 / 3) time for one Cholesky factorisation and
    O(n^2) for each step of Lanczos, in the memory of the similarity: 8 n^2 bytes, 200 MB at n = 5000. Where more than
    n / 20 vectors are feasible, as with two classes and many links, all are computed at once, with 24 n^2 bytes. With
    more points the similarity is taken from landmarks, in O(n m^2 + (m + r)^3) time for m landmarks and r points in
    links, with about 40 n m + 24 (m + r)^2 bytes (400 MB at n = 20000 with 1000 links).

    Parameters
    ----------
    n_classes : int, default=2
        Number of classes, K.
    beta : {"eigenvalue", "singular"} or float, default="eigenvalue"
        How much the links must be met. "eigenvalue": half of the most that is possible with two classes, and with more
        just below the (K - 1)-th largest eigenvalue of the links' matrix, or the next one that leaves K - 1 vectors.
        "singular": the authors' program, which takes a singular value instead, and may leave fewer vectors than K - 1,
        because a cannot-link gives a negative eigenvalue that is a large singular value. A number from 0 to below 1:
        that part of the most that is possible.
    exact_limit : int, default=5000
        Largest number of points for which the eigenproblem is solved exactly.
    n_landmarks : int, default=300
        Number of landmarks to begin with. Where the vectors do not solve the exact problem well enough it is doubled,
        up to 2000; if that does not help, up to four times `exact_limit` points are solved exactly, and more with a
        warning.
    random_state : int, RandomState or None, default=None
        Draws landmarks, and the starts of Lanczos and k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Class of each point: the sign with two classes, else k-means of the rows of ``embedding_``.
    embedding_ : array of shape (n_samples, n_vectors)
        D^-1/2 v for each vector chosen, times 1 - cost with more than two classes.
    vectors_ : array of shape (n_samples, n_vectors)
        The vectors v, scaled to v'v = vol, the sum of degrees.
    eigenvalues_ : array of shape (n_vectors,)
        The lambda of each; without links the same as the cost.
    costs_ : array of shape (n_vectors,)
        The cut, v'Lv / v'v.
    satisfaction_ : array of shape (n_vectors,)
        Agreement with the links, v'Qv, with Q normalised by the degrees. Above ``beta_``.
    beta_ : float
        The threshold; minus infinity without links.
    solver_ : {"exact", "landmarks"}
        How the eigenproblem was solved.
    residual_ : float
        Relative residual of the worst vector; by the exact similarity of 500 rows if landmarks were used.

    Notes
    -----
    The method wants many links. With fewer links than points the vectors that meet them are large at the linked points
    and next to nothing elsewhere, and the classes of all other points hang on rounding: then fewer points are
    put right than without any links. This is so in the authors' program as well, whose vectors these are to 1e-8.

    References
    ----------
    .. [1] X. Wang, I. Davidson, "Flexible constrained spectral clustering", KDD 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from linkmix import Links
    >>> from linkmix.rivals.csc import CSC
    >>> X = np.array([[0.0], [0.2], [0.4], [5.0], [5.2], [5.4]])
    >>> links = Links.from_labels([0, 0, 1, 1, 1, 1], 12, random_state=0)
    >>> model = CSC(2, random_state=0).fit(X, links=links)
    >>> bool(model.satisfaction_[0] > model.beta_)
    True
    >>> labels = model.labels_
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3] == labels[4] == labels[5])
    True
    """

    def __init__(
        self,
        n_classes: int = 2,
        *,
        beta: Literal["eigenvalue", "singular"] | float = "eigenvalue",
        exact_limit: int = 5000,
        n_landmarks: int = 300,
        random_state: int | RandomState | None = None,
    ) -> None:
        self.n_classes = n_classes
        self.beta = beta
        self.exact_limit = exact_limit
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    def _check_parameters(self) -> None:
        if isinstance(self.beta, str):
            known = self.beta in RULES
        else:
            known = isinstance(self.beta, Real) and not isinstance(self.beta, bool) and 0 <= self.beta < 1
        if not known:
            raise ValueError(f"beta={self.beta!r} is not known: choose 'eigenvalue', 'singular' or a number in [0, 1)")
        check_number("exact_limit", self.exact_limit, Integral, 0)
        check_number("n_landmarks", self.n_landmarks, Integral, 1)

    def _cluster(self, X: Floats, links: Links, random: RandomState) -> Ints:
        if self.n_classes == 1:
            self.solver_ = "exact"
            return self._label(Feasible.none(len(X)), np.ones(len(X)), Problem(None, -1.0), random)
        if len(X) <= max(self.exact_limit, 2):
            return self._exact(X, links, random)
        n_landmarks = self.n_landmarks
        while True:
            graph = LandmarkGraph.of(X, n_landmarks, random)
            problem = self._problem(graph, links)
            found = self._solve(graph, problem, random)
            residual = sampled_residual(X, graph.degrees, problem, found, random)
            if residual <= _LARGEST_RESIDUAL:
                break
            if n_landmarks >= _MOST_LANDMARKS:
                if len(X) <= 4 * self.exact_limit:
                    return self._exact(X, links, random)
                warnings.warn(
                    f"{n_landmarks} landmarks leave a residual of {residual:.2g}, and {len(X)} points are too many for "
                    "the exact solution: raise exact_limit if there is memory for 24 n^2 bytes",
                    ConvergenceWarning,
                    stacklevel=3,
                )
                break
            n_landmarks = min(2 * n_landmarks, _MOST_LANDMARKS)
        self.solver_ = "landmarks"
        return self._label(found._replace(residual=residual), graph.degrees, problem, random)

    def _exact(self, X: Floats, links: Links, random: RandomState) -> Ints:
        graph = SimilarityGraph(rbf_similarity(X, diagonal=0.0))
        problem = self._problem(graph, links)
        self.solver_ = "exact"
        return self._label(self._solve(graph, problem, random), graph.degrees, problem, random)

    def _problem(self, graph: "Graph", links: Links) -> "Problem":
        if not links.n_must + links.n_cannot:
            return Problem(None, -1.0)
        Q = normalise(links_matrix(links, len(graph.degrees)), graph.degrees)
        return Problem(Q, choose_threshold(Q, graph.degrees, self.n_classes, self.beta))

    def _solve(self, graph: "Graph", problem: "Problem", random: RandomState) -> "Feasible":
        found = feasible_vectors(graph, problem, self.n_classes - 1, random)
        if not len(found.costs):
            raise ValueError(f"no vector meets the links as far as beta={self.beta!r} asks: choose a smaller beta")
        return found

    def _label(self, found: "Feasible", degrees: Floats, problem: "Problem", random: RandomState) -> Ints:
        volume = degrees.sum()
        self.vectors_ = found.vectors * np.sqrt(volume)
        self.eigenvalues_ = found.eigenvalues
        self.costs_ = found.costs
        self.satisfaction_ = found.satisfaction * volume
        self.beta_ = float(problem.threshold * volume) if problem.Q is not None else -np.inf
        self.residual_ = found.residual
        embedding = self.vectors_ / np.sqrt(degrees)[:, None]
        self.embedding_ = embedding if self.n_classes == 2 else embedding * (1.0 - found.costs)
        if self.n_classes == 1:
            return np.zeros(len(degrees), dtype=np.int64)
        if self.n_classes == 2:
            return np.asarray(self.embedding_[:, 0] > 0, dtype=np.int64)
        k_means = KMeans(self.n_classes, n_init=10, random_state=random)
        return np.asarray(k_means.fit_predict(self.embedding_), dtype=np.int64)


def links_matrix(links: Links, n_rows: int) -> csr_array:
    """Q: +1 at must-links, -1 at cannot-links, symmetric."""
    pairs = np.concatenate([links.must, links.cannot])
    signs = np.repeat([1.0, -1.0], [links.n_must, links.n_cannot])
    rows, columns = np.concatenate([pairs, pairs[:, ::-1]]).T
    return csr_array((np.tile(signs, 2), (rows, columns)), shape=(n_rows, n_rows))


def normalise(Q: csr_array, degrees: Floats) -> csr_array:
    """D^-1/2 Q D^-1/2."""
    root = np.sqrt(degrees)
    values = Q.data / (np.repeat(root, np.diff(Q.indptr)) * root[Q.indices])
    return csr_array((values, Q.indices, Q.indptr), shape=Q.shape)


def choose_threshold(
    Q: csr_array, degrees: Floats, n_classes: int, rule: Literal["eigenvalue", "singular"] | float
) -> float:
    """Threshold beta / vol for normalised links Q, from the linked points alone: other eigenvalues are zero."""
    values = link_eigenvalues(Q)
    # Enough zeros that the (K - 1)-th and the next eigenvalue exist, if there are that many points.
    zeros = np.zeros(min(n_classes + 1, Q.shape[0] - len(values)))
    values = np.sort(np.concatenate([values, zeros]))[::-1]
    if not isinstance(rule, str):
        return float(rule * values[0])
    # The authors' margin, but not so much that it is no margin any more: eigenvalues shrink as 1 / n.
    margin = min(_MARGIN, 0.01 * values[0])
    if rule == "singular":
        return float(np.sort(np.abs(values))[::-1][n_classes - 2] - margin)
    thresholds = values[n_classes - 2 :] - margin
    if n_classes == 2:
        thresholds = np.concatenate([[0.5 * values[0]], thresholds])
    root = np.sqrt(degrees)
    trivial = (root @ (Q @ root)) / degrees.sum()  # how far one class for all points meets the links
    for threshold in thresholds:
        # By the inertia of Q - threshold I on the hyperplane: one vector is lost where the trivial one is feasible.
        if np.sum(values > threshold) - (trivial > threshold) >= n_classes - 1:
            return float(threshold)
    return float(thresholds[-1])


class Problem(NamedTuple):
    """L v = lambda (Q - threshold I) v; without links Q is None and the threshold -1, the problem L v = lambda v."""

    Q: csr_array | None  # the links, normalised by the degrees
    threshold: float  # beta / vol


class Feasible(NamedTuple):
    """Solutions with lambda > 0, in order of their cost."""

    vectors: Floats  # (n, m), of length one
    eigenvalues: Floats  # lambda, (m,)
    costs: Floats  # v'Lv, (m,)
    satisfaction: Floats  # v'Qv, (m,)
    residual: float  # the largest of |B v - L v / lambda| / |B|

    @classmethod
    def none(cls, n_rows: int) -> "Feasible":
        """Where no vector is feasible, or none is needed."""
        return cls(np.empty((n_rows, 0)), np.empty(0), np.empty(0), np.empty(0), 0.0)


class Graph(Protocol):
    """A similarity graph A with degrees D, and its normalised Laplacian L = I - D^-1/2 A D^-1/2."""

    degrees: Floats

    def top(self, B: "Deflated", n_wanted: int, random: RandomState) -> tuple[Floats, Floats]:
        """Largest mu, and v, of B v = mu L v with v orthogonal to the null vector of L. May use up A."""

    def laplacian(self, vectors: Floats) -> Floats:
        """L v for the columns of an array, after `top`."""


class Deflated(NamedTuple):
    """B = Q - threshold I less what it does to the null vector u of L: B - B u u' B / (u'Bu), times u zero."""

    Q: csr_array
    threshold: float
    null: Floats
    image: Floats  # B u
    scale: float  # u'Bu

    @classmethod
    def of(cls, Q: csr_array, threshold: float, null: Floats) -> "Deflated":
        """Take the null vector out."""
        image = Q @ null - threshold * null
        return cls(Q, threshold, null, image, float(null @ image))

    def dense(self) -> Floats:
        """As one matrix."""
        matrix: Floats = self.Q.toarray()
        matrix[np.diag_indices_from(matrix)] -= self.threshold
        for rows in row_blocks(len(matrix), len(matrix)):
            matrix[rows] -= np.multiply.outer(self.image[rows] / self.scale, self.image)
        return matrix

    def __matmul__(self, vectors: Floats) -> Floats:
        """Product with one vector or several."""
        product: Floats = self.Q @ vectors - self.threshold * vectors
        return product - np.multiply.outer(self.image, (self.image @ vectors) / self.scale)


def feasible_vectors(graph: Graph, problem: Problem, n_vectors: int, random: RandomState) -> Feasible:
    """The feasible vectors that cut the least.

    L v = lambda B v with B = Q - threshold I and lambda > 0. The null vector u of L is a solution with lambda = 0; all
    others have u'Bv = 0. There L is positive definite, so that B v = mu L v with mu = 1 / lambda is an ordinary
    symmetric problem, and no QZ algorithm is needed.

    Parameters
    ----------
    graph : SimilarityGraph or LandmarkGraph
        The similarities. It is used up: the exact solver works in its memory.
    problem : Problem
        Links, and how far they must be met.
    n_vectors : int
        Largest number of vectors.
    random : RandomState
        For the start of Lanczos.

    Returns
    -------
    Feasible
        As many vectors as there are, at most `n_vectors`, in order of their cost.
    """
    n = len(graph.degrees)
    null = np.sqrt(graph.degrees / graph.degrees.sum())
    Q, threshold = csr_array((n, n)) if problem.Q is None else problem.Q, problem.threshold
    eigenvalues = link_eigenvalues(Q)
    size = max(abs(threshold), float(np.abs(eigenvalues).max(initial=0.0)))  # of B
    B = Deflated.of(Q, threshold, null)
    if abs(B.scale) < 1e-9 * size:
        # The trivial vector meets the links exactly as far as asked, and can not be taken out: ask for a little more,
        # which makes no vector feasible that was not.
        threshold += 1e-6 * size
        B = Deflated.of(Q, threshold, null)
    n_feasible = int(np.sum(eigenvalues > threshold)) + (n - len(eigenvalues)) * (threshold < 0) - (B.scale > 0)
    # With a negative threshold nearly all vectors are feasible. Those with large mu are the ones that the links make,
    # and after them come those of the plain spectral problem, in the order of their cost.
    n_wanted = min(n_feasible, int(np.sum(eigenvalues > 0)) + n_vectors)
    if n_wanted <= 0:
        return Feasible.none(n)
    values, vectors = graph.top(B, n_wanted, random)
    vectors = vectors - np.multiply.outer(null, (B.image @ vectors) / B.scale)  # back to where u'Bv = 0
    vectors /= np.linalg.norm(vectors, axis=0)
    satisfaction = np.einsum("nm,nm->m", vectors, Q @ vectors)
    images = graph.laplacian(vectors)
    costs = np.einsum("nm,nm->m", vectors, images)
    kept = np.flatnonzero((values > 0) & (satisfaction > threshold))
    kept = kept[np.argsort(costs[kept], kind="stable")][:n_vectors]
    residuals = Q @ vectors[:, kept] - threshold * vectors[:, kept] - images[:, kept] * values[kept]
    residual = float(np.linalg.norm(residuals, axis=0).max(initial=0.0) / size)
    return Feasible(vectors[:, kept], 1.0 / values[kept], costs[kept], satisfaction[kept], residual)


def link_eigenvalues(Q: csr_array) -> Floats:
    """Eigenvalues of the links in ascending order, without the zeros of all points in no link."""
    linked = np.unique(Q.indices)  # as many as there are columns, since Q is symmetric
    return np.asarray(eigvalsh(Q[linked][:, linked].toarray())) if len(linked) else np.empty(0)


@dataclass
class SimilarityGraph:
    """All similarities, as a symmetric matrix with a zero diagonal."""

    similarity: Floats

    def __post_init__(self) -> None:
        self.degrees: Floats = self.similarity.sum(axis=1)

    def top(self, B: Deflated, n_wanted: int, random: RandomState) -> tuple[Floats, Floats]:
        """Solve exactly, with a Cholesky factor of L in place of the similarity."""
        self._factorise(B.null)
        return top_by_factor(B, self._factor, n_wanted, random)

    def laplacian(self, vectors: Floats) -> Floats:
        """L v from the factor of L + u u'."""
        product: Floats = self._factor @ (self._factor.T @ vectors)
        return product - np.multiply.outer(self._null, self._null @ vectors)

    def _factorise(self, null: Floats) -> None:
        """Cholesky factor of L + u u', which is positive definite, in the memory of the similarity."""
        laplacian = self.similarity
        self.similarity = np.empty((0, 0))
        root = np.sqrt(self.degrees)
        for rows in row_blocks(len(root), len(root)):
            laplacian[rows] /= -np.multiply.outer(root[rows], root)
            laplacian[rows] += np.multiply.outer(null[rows], null)
        laplacian[np.diag_indices_from(laplacian)] += 1.0
        self._null = null
        self._factor = factor_in_place(laplacian)


def factor_in_place(matrix: Floats) -> Floats:
    """Lower Cholesky factor in the memory of a matrix in C order; raised a little if it is singular to rounding."""
    diagonal = matrix.diagonal().copy()
    try:
        # The transpose is the same matrix in the order that LAPACK works in without a copy.
        return np.asarray(cholesky(matrix.T, lower=True, overwrite_a=True, check_finite=False))
    except LinAlgError:
        # Points so far from the others that nothing is cut between them. LAPACK wrote into one triangle only.
        np.fill_diagonal(matrix, diagonal)
        lower = np.tril(matrix, -1)
        matrix[:] = lower + lower.T
        lowest = float(eigvalsh(matrix + np.diag(diagonal), subset_by_index=[0, 0])[0])
        np.fill_diagonal(matrix, diagonal + max(0.0, -lowest) + 1e-10)
        return np.asarray(cholesky(matrix, lower=True, check_finite=False))


def top_by_factor(B: Deflated, factor: Floats, n_wanted: int, random: RandomState) -> tuple[Floats, Floats]:
    """Largest mu, and v, of B v = mu C C' v for a Cholesky factor C: by Lanczos if they are few, else all at once."""
    if len(factor) > _DENSE_LIMIT and n_wanted <= len(factor) // 20:
        try:
            values, vectors = _lanczos(B, factor, n_wanted, random)
        except ArpackNoConvergence:  # eigenvalues too close to each other
            values, vectors = _dense(B, factor, n_wanted)
    else:
        values, vectors = _dense(B, factor, n_wanted)
    return values, np.asarray(solve_triangular(factor, vectors, lower=True, trans=1))


def _lanczos(B: Deflated, factor: Floats, n_wanted: int, random: RandomState) -> tuple[Floats, Floats]:
    n = len(factor)
    scale = max(abs(B.threshold), float(np.abs(B.Q.data).max(initial=0.0)))  # ARPACK takes 1e-11 for zero

    def product(vector: Floats) -> Floats:
        inner = B @ blas.dtrsv(factor, vector.ravel(), lower=1, trans=1)
        result: Floats = blas.dtrsv(factor, inner / scale, lower=1)
        return result

    operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
    n_basis = min(n, max(2 * n_wanted + 20, 40))
    start = random.normal(size=n)
    values, vectors = eigsh(operator, k=n_wanted, which="LA", ncv=n_basis, v0=start, tol=1e-10, maxiter=100)
    return values * scale, vectors


def _dense(B: Deflated, factor: Floats, n_wanted: int) -> tuple[Floats, Floats]:
    n = len(factor)
    half = solve_triangular(factor, B.dense().T, lower=True, overwrite_b=True, check_finite=False)
    whole = solve_triangular(factor, half.T, lower=True, check_finite=False)
    del half  # an n x n matrix less for what follows
    values, vectors = eigh(whole, subset_by_index=[n - n_wanted, n - 1], overwrite_a=True, check_finite=False)
    return values, vectors


@dataclass
class LandmarkGraph:
    """Similarities from landmarks: A = F F' less a diagonal that makes its own diagonal zero, as far as it can.

    On all vectors without a share in F and in linked points L is the identity and B is minus the threshold, so these
    are not feasible: the problem lives in the span of both, however many points there are.
    """

    features: Floats  # F, (n, m)

    @classmethod
    def of(cls, X: Floats, n_landmarks: int, random: RandomState) -> "LandmarkGraph":
        """Draw landmarks among the points."""
        return cls(landmark_map(X, n_landmarks, random).features)

    def __post_init__(self) -> None:
        sums = self.features @ self.features.sum(axis=0)
        # A point far from all landmarks would have next to no degree, or a negative one.
        self.degrees: Floats = np.maximum(sums - 1.0, 0.01 * max(float(sums.mean()), 1.0))
        self._diagonal = 1.0 + (sums - self.degrees) / self.degrees  # of L + G G'
        self._scaled = self.features / np.sqrt(self.degrees)[:, None]  # G = D^-1/2 F

    def laplacian(self, vectors: Floats) -> Floats:
        """L v, without an n x n matrix."""
        product: Floats = self._diagonal[:, None] * vectors
        product -= self._scaled @ (self._scaled.T @ vectors)
        return product

    def top(self, B: Deflated, n_wanted: int, random: RandomState) -> tuple[Floats, Floats]:
        """Solve in the span of the linked points' unit vectors, the features and the null vector."""
        n = len(self.degrees)
        linked = np.unique(B.Q.indices)
        others = np.setdiff1d(np.arange(n), linked)
        basis, _ = qr(np.column_stack([self._scaled[others], B.null[others]]), mode="economic")  # (n - r, m + 1)
        r, q = len(linked), basis.shape[1]
        at_links = self._scaled[linked]
        inner = basis.T @ self._scaled[others]  # (q, m)
        laplacian = np.empty((r + q, r + q))
        laplacian[:r, :r] = np.diag(self._diagonal[linked]) - at_links @ at_links.T
        laplacian[:r, r:] = -at_links @ inner.T
        laplacian[r:, :r] = laplacian[:r, r:].T
        laplacian[r:, r:] = basis.T @ (self._diagonal[others, None] * basis) - inner @ inner.T
        null = np.concatenate([B.null[linked], basis.T @ B.null[others]])
        links = csr_array(block_diag([B.Q[linked][:, linked], csr_array((q, q))]))
        small = Deflated.of(links, B.threshold, null)
        factor = factor_in_place(laplacian + np.multiply.outer(null, null))
        values, reduced = top_by_factor(small, factor, min(n_wanted, r + q - 1), random)
        vectors = np.empty((n, len(values)))
        vectors[linked] = reduced[:r]
        vectors[others] = basis @ reduced[r:]
        return values, vectors


def sampled_residual(X: Floats, degrees: Floats, problem: Problem, found: Feasible, random: RandomState) -> float:
    """|L v - lambda B v| of the worst vector of length one, by the exact similarity of some rows drawn at random."""
    n = len(X)
    rows = random.choice(n, size=min(_ROWS_CHECKED, n), replace=False)
    points = scale_points(X)
    cut = np.zeros((len(rows), found.vectors.shape[1]))
    spread = found.vectors / np.sqrt(degrees)[:, None]
    for part in row_blocks(len(rows), n):
        similarity = similarities(points[rows[part]], points)
        similarity[np.arange(len(similarity)), rows[part]] = 0.0
        cut[part] = (similarity @ spread) / np.sqrt(similarity.sum(axis=1))[:, None]
    links = -problem.threshold * found.vectors
    if problem.Q is not None:
        links += problem.Q @ found.vectors
    difference = found.vectors[rows] - cut - found.eigenvalues * links[rows]
    return float(np.linalg.norm(difference, axis=0).max(initial=0.0) * np.sqrt(n / len(rows)))
