"""The eigenproblem of constrained spectral clustering: smooth cuts that agree with the links well enough.

L v = lambda (Q - threshold I) v, where L is the normalised Laplacian of a graph and Q the matrix of links.
It is solved on the hyperplane that excludes the trivial cut, which puts all points into one class.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.random import RandomState
from scipy.linalg import LinAlgError, blas, cholesky, eigh, eigvalsh, qr, solve_triangular
from scipy.sparse import block_diag, csr_array
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from linkmix.basics.arrays import Floats
from linkmix.rivals.kernels import POINTS_CHECKED, landmark_map, rbf_similarity, row_blocks, scale_points, similarities

Rule = Literal["eigenvalue", "csp", "csp_K"]
_MARGIN = 1e-6  # "just below" an eigenvalue, as in the authors' programs
_DENSE_LIMIT = 400  # up to this size, computing all eigenvectors is faster than Lanczos
_FEW = 20  # and also if more than one in so many is wanted


def normalise(Q: csr_array, degrees: Floats) -> csr_array:
    """D^-1/2 Q D^-1/2."""
    root = np.sqrt(degrees)
    values = Q.data / (np.repeat(root, np.diff(Q.indptr)) * root[Q.indices])
    return csr_array((values, Q.indices, Q.indptr), shape=Q.shape)


def choose_threshold(Q: csr_array, degrees: Floats, n_classes: int, rule: Rule | float) -> float:
    """Threshold beta / vol for the links Q: normalised by the degrees, except under the rule "csp_K".

    Only linked points matter: all other eigenvalues are zero.
    """
    values = link_eigenvalues(Q)
    # Add enough zeros for the K-th and the next eigenvalue to exist, if there are that many points.
    zeros = np.zeros(min(n_classes + 1, Q.shape[0] - len(values)))
    values = np.sort(np.concatenate([values, zeros]))[::-1]
    singular = np.sort(np.abs(values))[::-1]
    if not isinstance(rule, str):
        return float(rule * values[0])
    if rule == "csp":
        return float(0.5 * singular[0])
    # The authors' margin, capped because eigenvalues of normalised links shrink as 1 / n.
    margin = min(_MARGIN, 0.01 * values[0])
    n_needed = n_classes - 1
    thresholds = values[n_classes - 2 :] - margin
    if rule == "csp_K":
        n_needed = 1
        thresholds = np.concatenate([[singular[n_classes - 1 : n_classes + 1].mean() - _MARGIN], values - margin])
    elif n_classes == 2:
        thresholds = np.concatenate([[0.5 * values[0]], thresholds])
    root = np.sqrt(degrees)
    trivial = (root @ (Q @ root)) / degrees.sum()  # agreement of the trivial cut with the links
    for threshold in thresholds:
        # By the inertia of Q - threshold I on the hyperplane: one vector is lost if the trivial one is feasible.
        if np.sum(values > threshold) - (trivial > threshold) >= n_needed:
            return float(threshold)
    return float(thresholds[-1])


class Problem(NamedTuple):
    """L v = lambda (Q - threshold I) v. Without links, Q is None and the threshold -1, which gives L v = lambda v."""

    Q: csr_array | None  # the links, usually normalised by the degrees
    threshold: float  # beta / vol


class Feasible(NamedTuple):
    """Solutions with lambda > 0, in increasing order of cost."""

    vectors: Floats  # (n, m), unit length
    eigenvalues: Floats  # lambda, (m,)
    costs: Floats  # v'Lv, (m,)
    satisfaction: Floats  # v'Qv, (m,)
    residual: float  # the largest of |B v - L v / lambda| / |B|

    @classmethod
    def none(cls, n_rows: int) -> "Feasible":
        """Return an empty solution: no vector is feasible, or none is needed."""
        return cls(np.empty((n_rows, 0)), np.empty(0), np.empty(0), np.empty(0), 0.0)


class Graph(Protocol):
    """A similarity graph A with degrees D, and its normalised Laplacian L = I - D^-1/2 A D^-1/2."""

    degrees: Floats

    def top(self, B: "Deflated", n_wanted: int, random: RandomState) -> tuple[Floats, Floats]:
        """Largest mu, and v, of B v = mu L v with v orthogonal to the null vector of L. May overwrite A."""

    def laplacian(self, vectors: Floats) -> Floats:
        """L v for the columns of an array, after `top`."""


class Deflated(NamedTuple):
    """B = Q - threshold I, deflated by the null vector u of L: B - B u u' B / (u'Bu), which maps u to zero."""

    Q: csr_array
    threshold: float
    null: Floats
    image: Floats  # B u
    scale: float  # u'Bu

    @classmethod
    def of(cls, Q: csr_array, threshold: float, null: Floats) -> "Deflated":
        """Deflate by the null vector."""
        image = Q @ null - threshold * null
        return cls(Q, threshold, null, image, float(null @ image))

    def dense(self) -> Floats:
        """Return the matrix as an array."""
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
    """The feasible vectors with the smallest cut.

    They solve L v = lambda B v with B = Q - threshold I and lambda > 0. The null vector u of L is a solution with
    lambda = 0; all others satisfy u'Bv = 0. On that subspace L is positive definite, so B v = mu L v with
    mu = 1 / lambda is an ordinary symmetric problem, and the QZ algorithm is not needed.

    Parameters
    ----------
    graph : SimilarityGraph or LandmarkGraph
        The similarities. They are overwritten: the exact solver works in their memory.
    problem : Problem
        The links, and how well they must be satisfied.
    n_vectors : int
        Maximum number of vectors.
    random : RandomState
        Draws the starting vector of Lanczos.

    Returns
    -------
    Feasible
        All feasible vectors, at most `n_vectors`, in increasing order of cost.
    """
    n = len(graph.degrees)
    null = np.sqrt(graph.degrees / graph.degrees.sum())
    Q, threshold = csr_array((n, n)) if problem.Q is None else problem.Q, problem.threshold
    eigenvalues = link_eigenvalues(Q)
    size = max(abs(threshold), float(np.abs(eigenvalues).max(initial=0.0)))  # magnitude of B
    B = Deflated.of(Q, threshold, null)
    if abs(B.scale) < 1e-9 * size:
        # The trivial vector lies exactly on the threshold and cannot be deflated. A slightly higher threshold makes
        # no further vector feasible.
        threshold += 1e-6 * size
        B = Deflated.of(Q, threshold, null)
    n_feasible = int(np.sum(eigenvalues > threshold)) + (n - len(eigenvalues)) * (threshold < 0) - (B.scale > 0)
    # With a negative threshold nearly all vectors are feasible. Those with large mu come from the links, followed by
    # those of the plain spectral problem in increasing order of cost.
    n_wanted = min(n_feasible, int(np.sum(eigenvalues > 0)) + n_vectors)
    if n_wanted <= 0:
        return Feasible.none(n)
    values, vectors = graph.top(B, n_wanted, random)
    vectors = vectors - np.multiply.outer(null, (B.image @ vectors) / B.scale)  # project back onto u'Bv = 0
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
    """Eigenvalues of the links in ascending order, without the zeros of the unlinked points."""
    linked = np.unique(Q.indices)  # rows and columns alike, since Q is symmetric
    return np.asarray(eigvalsh(Q[linked][:, linked].toarray())) if len(linked) else np.empty(0)


@dataclass
class SimilarityGraph:
    """All similarities, as a symmetric matrix with a zero diagonal."""

    similarity: Floats

    @classmethod
    def of(cls, X: Floats) -> "SimilarityGraph":
        """All similarities of some points."""
        return cls(rbf_similarity(X, diagonal=0.0))

    def __post_init__(self) -> None:
        self.degrees: Floats = self.similarity.sum(axis=1)

    def top(self, B: Deflated, n_wanted: int, random: RandomState) -> tuple[Floats, Floats]:
        """Solve exactly, with a Cholesky factor of L that overwrites the similarity."""
        self._factorise(B.null)
        return top_by_factor(B, self._factor, n_wanted, random)

    def laplacian(self, vectors: Floats) -> Floats:
        """L v from the factor of L + u u'."""
        product: Floats = self._factor @ (self._factor.T @ vectors)
        return product - np.multiply.outer(self._null, self._null @ vectors)

    def _factorise(self, null: Floats) -> None:
        """Overwrite the similarity with the Cholesky factor of L + u u', which is positive definite."""
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
    """Lower Cholesky factor of a C-ordered matrix, in its memory. A numerically singular matrix gets a small ridge."""
    diagonal = matrix.diagonal().copy()
    try:
        # The transpose is the same matrix in Fortran order, so that LAPACK makes no copy.
        return np.asarray(cholesky(matrix.T, lower=True, overwrite_a=True, check_finite=False))
    except LinAlgError:
        # Some points are so far from the others that their similarity vanishes. LAPACK overwrote one triangle only.
        np.fill_diagonal(matrix, diagonal)
        lower = np.tril(matrix, -1)
        matrix[:] = lower + lower.T
        lowest = float(eigvalsh(matrix + np.diag(diagonal), subset_by_index=[0, 0])[0])
        np.fill_diagonal(matrix, diagonal + max(0.0, -lowest) + 1e-10)
        return np.asarray(cholesky(matrix, lower=True, check_finite=False))


def top_by_factor(B: Deflated, factor: Floats, n_wanted: int, random: RandomState) -> tuple[Floats, Floats]:
    """Largest mu, and v, of B v = mu C C' v for a Cholesky factor C: by Lanczos if few are wanted, else densely."""

    def half(vector: Floats) -> Floats:
        return np.asarray(blas.dtrsv(factor, vector, lower=1))

    def other_half(vector: Floats) -> Floats:
        return np.asarray(blas.dtrsv(factor, vector, lower=1, trans=1))

    if len(factor) > _DENSE_LIMIT and n_wanted <= len(factor) // _FEW:
        try:
            values, vectors = _lanczos(B, half, other_half, n_wanted, random)
        except ArpackNoConvergence:  # eigenvalues too close to each other
            values, vectors = _dense(B, factor, n_wanted)
    else:
        values, vectors = _dense(B, factor, n_wanted)
    return values, np.asarray(solve_triangular(factor, vectors, lower=True, trans=1))


def _lanczos(
    B: Deflated,
    half: Callable[[Floats], Floats],
    other_half: Callable[[Floats], Floats],
    n_wanted: int,
    random: RandomState,
) -> tuple[Floats, Floats]:
    """Largest eigenvalues, and vectors, of C^-1 B C'^-1, where `half` multiplies by C^-1 and `other_half` by C'^-1."""
    n = len(B.null)
    scale = max(abs(B.threshold), float(np.abs(B.Q.data).max(initial=0.0)))  # ARPACK treats 1e-11 as zero

    def product(vector: Floats) -> Floats:
        return half((B @ other_half(vector.ravel())) / scale)

    operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
    n_basis = min(n, max(2 * n_wanted + 20, 40))
    start = random.normal(size=n)
    values, vectors = eigsh(operator, k=n_wanted, which="LA", ncv=n_basis, v0=start, tol=1e-10, maxiter=100)
    return values * scale, vectors


def _dense(B: Deflated, factor: Floats, n_wanted: int) -> tuple[Floats, Floats]:
    n = len(factor)
    half = solve_triangular(factor, B.dense().T, lower=True, overwrite_b=True, check_finite=False)
    whole = solve_triangular(factor, half.T, lower=True, check_finite=False)
    del half  # frees an n x n matrix before the next one is needed
    values, vectors = eigh(whole, subset_by_index=[n - n_wanted, n - 1], overwrite_a=True, check_finite=False)
    return values, vectors


@dataclass
class _LowRankGraph:
    """Similarities A = F F' minus a diagonal, without an n x n matrix."""

    features: Floats  # F, (n, m)

    def __post_init__(self) -> None:
        sums = self.features @ self.features.sum(axis=0)
        self.degrees: Floats = self._degrees_of(sums)
        self._diagonal = 1.0 + (sums - self.degrees) / self.degrees  # E in L = E - G G'
        self._scaled = self.features / np.sqrt(self.degrees)[:, None]  # G = D^-1/2 F

    def _degrees_of(self, sums: Floats) -> Floats:
        return sums - 1.0  # the diagonal of F F' is one

    def laplacian(self, vectors: Floats) -> Floats:
        """L v."""
        product: Floats = self._diagonal[:, None] * vectors
        product -= self._scaled @ (self._scaled.T @ vectors)
        return product


class FeatureGraph(_LowRankGraph):
    """Similarities A = F F' - I of low rank, exactly."""

    def top(self, B: Deflated, n_wanted: int, random: RandomState) -> tuple[Floats, Floats]:
        """Solve by Lanczos, with C = E^1/2 (I + P (w^1/2 - I) P'), so that C C' = L + u u'."""
        n, root = len(self.degrees), np.sqrt(self._diagonal)
        basis, triangle = qr(np.column_stack([self._scaled, B.null]) / root[:, None], mode="economic")
        signs = np.append(-np.ones(self.features.shape[1]), 1.0)
        values, small = eigh(np.eye(len(triangle)) + (triangle * signs) @ triangle.T)  # w, and P in the basis
        if n_wanted <= n // _FEW and values[0] > 1e-8:  # otherwise a point is nearly unconnected
            directions, change = basis @ small, 1.0 / np.sqrt(values) - 1.0

            def inverse(vector: Floats) -> Floats:
                return np.asarray(vector + directions @ (change * (directions.T @ vector)))

            try:
                found, vectors = _lanczos(B, lambda v: inverse(v / root), lambda v: inverse(v) / root, n_wanted, random)
            except ArpackNoConvergence:
                pass
            else:
                return found, np.stack([inverse(vector) for vector in vectors.T], axis=1) / root[:, None]
        similarity = self.features @ self.features.T
        np.fill_diagonal(similarity, 0.0)
        return SimilarityGraph(similarity).top(B, n_wanted, random)


class LandmarkGraph(_LowRankGraph):
    """Similarities from landmarks: A = F F' minus a diagonal that makes the diagonal of A zero, as far as possible.

    On vectors orthogonal to F and to the unit vectors of the linked points, L is the identity and B is minus the
    threshold, so none of them is feasible. The problem is therefore confined to the span of these two, however many
    points there are.
    """

    @classmethod
    def of(cls, X: Floats, n_landmarks: int, random: RandomState) -> "LandmarkGraph":
        """Draw landmarks among the points."""
        return cls(landmark_map(X, n_landmarks, random).features)

    def _degrees_of(self, sums: Floats) -> Floats:
        # A point far from all landmarks would have a degree near zero, or a negative one.
        return np.maximum(super()._degrees_of(sums), 0.01 * max(float(sums.mean()), 1.0))

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
    """Largest |L v - lambda B v| over the unit vectors v, by the exact similarity of rows drawn at random."""
    n = len(X)
    rows = random.choice(n, size=min(POINTS_CHECKED, n), replace=False)
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
