"""CSC: constrained spectral clustering (Wang and Davidson 2010)."""

import warnings
from numbers import Integral, Real
from typing import Literal

import numpy as np
from numpy.random import RandomState
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from linkmix.basics.arrays import Floats, Ints
from linkmix.basics.checks import check_number
from linkmix.links import Links
from linkmix.rivals.base import Rival
from linkmix.rivals.constrained_cut import (
    Feasible,
    Graph,
    LandmarkGraph,
    Problem,
    SimilarityGraph,
    choose_threshold,
    feasible_vectors,
    links_matrix,
    normalise,
    sampled_residual,
)
from linkmix.rivals.kernels import rbf_similarity

RULES = ("eigenvalue", "singular")
_LARGEST_RESIDUAL = 0.02  # of the eigenvectors found with landmarks, by the exact similarity of some rows
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
