"""CSC: constrained spectral clustering (Wang and Davidson 2010)."""

import warnings
from numbers import Real
from typing import ClassVar

import numpy as np
from numpy.random import RandomState
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from linkmix.basics.arrays import Floats, Ints
from linkmix.basics.checks import Constraints, at_least
from linkmix.links import Links
from linkmix.rivals import kernels
from linkmix.rivals.base import Rival, links_matrix
from linkmix.rivals.constrained_cut import (
    Feasible,
    FeatureGraph,
    Graph,
    LandmarkGraph,
    Problem,
    Rule,
    SimilarityGraph,
    choose_threshold,
    feasible_vectors,
    normalise,
    sampled_residual,
)
from linkmix.rivals.k_means import k_means

_MOST_LANDMARKS = 2000


class CSC(Rival):
    """Spectral clustering that must agree with the links to a given degree.

    Among all relaxed labellings v whose agreement with the links, v'Qv, is above a threshold beta, it finds those that
    cut the least similarity. The constraint is on the total agreement, so a single link may be broken. Without links
    this is plain normalised spectral clustering.

    Up to `exact_limit` points the eigenproblem is solved exactly, in O(n^3 / 3) time for one Cholesky factorisation and
    O(n^2) for each Lanczos step, in the memory of the similarity: 8 n^2 bytes, 200 MB at n = 5000. If more than
    n / 20 vectors are feasible, as with two classes and many links, all are computed at once, with 24 n^2 bytes. With
    more points the similarity is approximated from landmarks, in O(n m^2 + (m + r)^3) time for m landmarks and r linked
    points, with about 40 n m + 24 (m + r)^2 bytes (400 MB at n = 20000 with 1000 links). The exact solution of 1000 or
    more points in few columns, whose similarity has a low rank, needs neither n^2 bytes nor a factorisation.

    Parameters
    ----------
    n_classes : int, default=2
        Number of classes, K.
    beta : {"csp_K", "csp", "eigenvalue"} or float, default="csp_K"
        How well the links must be satisfied. "csp_K" and "csp" are the rules of the authors' two programs. csp_K.m, for
        any number of classes: the mean of the K-th and the (K + 1)-th singular value of the links as they are, not
        normalised, minus 1e-6 (just below an eigenvalue, if that leaves no vector). csp.m, for two classes: half of the
        largest singular value of the links, normalised by the degrees. Both may leave fewer than K - 1 vectors, because
        a cannot-link gives a negative eigenvalue that is a large singular value. "eigenvalue" always leaves K - 1: with
        two classes half of the largest eigenvalue of the normalised links; with more, just below the (K - 1)-th
        largest, or the next one that leaves enough. A number in [0, 1): that fraction of the largest eigenvalue of the
        normalised links.
    exact_limit : int, default=5000
        Largest number of points for which the eigenproblem is solved exactly.
    n_landmarks : int, default=300
        Initial number of landmarks. It is doubled, up to 2000, while the residual of the exact problem is too large. If
        2000 are not enough, the problem is solved exactly for up to four times `exact_limit` points; with more points
        there is a warning.
    random_state : int, RandomState or None, default=None
        Source of randomness for the landmarks and the starts of Lanczos and k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Class of each point: the sign of ``embedding_`` with two classes, k-means on its rows with more.
    embedding_ : array of shape (n_samples, n_vectors)
        D^-1/2 v for each chosen vector; with more than two classes it is multiplied by 1 - cost.
    vectors_ : array of shape (n_samples, n_vectors)
        The vectors v, scaled to v'v = vol, the sum of the degrees.
    eigenvalues_ : array of shape (n_vectors,)
        The lambda of each vector; equal to the cost without links.
    costs_ : array of shape (n_vectors,)
        The cut, v'Lv / v'v.
    satisfaction_ : array of shape (n_vectors,)
        Agreement with the links, v'Qv, with Q normalised by the degrees unless beta is "csp_K". Above ``beta_``.
    beta_ : float
        The threshold; minus infinity without links.
    solver_ : {"exact", "landmarks"}
        How the eigenproblem was solved.
    residual_ : float
        Largest relative residual of a vector; measured on 500 rows of the exact similarity if landmarks were used.

    Notes
    -----
    The method needs many links. With fewer links than points, the feasible vectors are large at the linked points and
    almost zero elsewhere, so that rounding decides the classes of all other points: the result is then worse than
    without links. The authors' programs behave the same way; their vectors agree with these to 1e-8.

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

    _parameter_constraints: ClassVar[Constraints] = {
        **Rival._parameter_constraints,
        "beta": [StrOptions({"eigenvalue", "csp", "csp_K"}), Interval(Real, 0, 1, closed="left")],
        "n_landmarks": [at_least(1)],
    }

    def __init__(
        self,
        n_classes: int = 2,
        *,
        beta: Rule | float = "csp_K",
        exact_limit: int = 5000,
        n_landmarks: int = 300,
        random_state: int | RandomState | None = None,
    ) -> None:
        self.n_classes = n_classes
        self.beta = beta
        self.exact_limit = exact_limit
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    def _cluster(self, X: Floats, links: Links, random: RandomState) -> Ints:
        if self.n_classes == 1:
            self.solver_ = "exact"
            return self._label(Feasible.none(len(X)), np.ones(len(X)), Problem(None, -1.0), random)
        if len(X) <= max(self.exact_limit, 2):
            return self._exact(X, links, random)

        def attempt(n_landmarks: int) -> tuple[tuple[Graph, Problem, Feasible], float]:
            graph = LandmarkGraph.of(X, n_landmarks, random)
            problem = self._problem(graph, links)
            found = self._solve(graph, problem, random)
            return (graph, problem, found), sampled_residual(X, graph.degrees, problem, found, random)

        (graph, problem, found), residual, n_landmarks = kernels.enough_landmarks(
            attempt, self.n_landmarks, _MOST_LANDMARKS
        )
        if residual > kernels.LARGEST_ERROR:
            if len(X) <= 4 * self.exact_limit:
                return self._exact(X, links, random)
            warnings.warn(
                f"{n_landmarks} landmarks leave a residual of {residual:.2g}, and {len(X)} points are too many for "
                "the exact solution: raise exact_limit if there is memory for 24 n^2 bytes",
                ConvergenceWarning,
                stacklevel=3,  # the line that calls fit
            )
        self.solver_ = "landmarks"
        return self._label(found._replace(residual=residual), graph.degrees, problem, random)

    def _exact(self, X: Floats, links: Links, random: RandomState) -> Ints:
        features = kernels.exact_features(X)
        graph: Graph = SimilarityGraph.of(X) if features is None else FeatureGraph(features)
        problem = self._problem(graph, links)
        self.solver_ = "exact"
        return self._label(self._solve(graph, problem, random), graph.degrees, problem, random)

    def _problem(self, graph: Graph, links: Links) -> Problem:
        if not links.n_must + links.n_cannot:
            return Problem(None, -1.0)
        Q = links_matrix(links, len(graph.degrees))
        if self.beta != "csp_K":
            Q = normalise(Q, graph.degrees)
        return Problem(Q, choose_threshold(Q, graph.degrees, self.n_classes, self.beta))

    def _solve(self, graph: Graph, problem: Problem, random: RandomState) -> Feasible:
        found = feasible_vectors(graph, problem, self.n_classes - 1, random)
        if not len(found.costs):
            raise ValueError(
                f"no vector agrees with the links as well as beta={self.beta!r} requires: choose a smaller beta, or "
                "beta='eigenvalue', which always leaves enough"
            )
        return found

    def _label(self, found: Feasible, degrees: Floats, problem: Problem, random: RandomState) -> Ints:
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
        return k_means(self.embedding_, self.n_classes, 10, random)
