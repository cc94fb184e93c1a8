"""SpectralRBF: normalised spectral clustering without links, the baseline of the kernel methods."""

import warnings
from typing import ClassVar

import numpy as np
from numpy.random import RandomState
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.exceptions import ConvergenceWarning

from linkmix.basics.arrays import Floats, Ints
from linkmix.links import Links
from linkmix.rivals import kernels
from linkmix.rivals.base import Rival
from linkmix.rivals.k_means import k_means
from linkmix.rivals.kernels import landmark_map, rbf_similarity, scale_points, similarities


class SpectralRBF(Rival):
    """scikit-learn's spectral clustering with the similarity of SSKK and CSC, without links.

    The similarity is exp(-d^2 / (2 sigma^2)) with a zero diagonal, where sigma^2 is the mean squared distance of two
    different points. Compare CSC with it to see what links add.

    Memory: the similarity and a copy of it, 16 n^2 bytes (400 MB at n = 5000); with m landmarks 16 n m bytes (100 MB at
    n = 20000 and m = 300).

    Parameters
    ----------
    n_classes : int, default=2
        Number of classes.
    exact_limit : int, default=5000
        Number of points above which the similarity is approximated from landmarks (Nystrom). The eigenvectors are
        then checked against the exact similarity of some points, and landmarks are added until they pass. If they
        never do, the exact similarity is used for up to 20,000 points; with more points there is a warning.
    random_state : int, RandomState or None, default=None
        Source of randomness for the eigensolver, the landmarks and k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Class of each point.
    residual_ : float
        Relative residual of the eigenvectors from landmarks, measured at some points; zero without landmarks.

    References
    ----------
    .. [1] J. Shi, J. Malik, "Normalized cuts and image segmentation", IEEE PAMI 22, 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from linkmix.rivals.spectral import SpectralRBF
    >>> X = np.array([[0.0], [0.2], [0.4], [5.0], [5.2], [5.4]])
    >>> labels = SpectralRBF(2, random_state=0).fit(X).labels_
    >>> bool(labels[0] == labels[1] == labels[2] != labels[3] == labels[4] == labels[5])
    True
    """

    uses_must: ClassVar[bool] = False
    uses_cannot: ClassVar[bool] = False

    def __init__(
        self, n_classes: int = 2, *, exact_limit: int = 5000, random_state: int | RandomState | None = None
    ) -> None:
        self.n_classes = n_classes
        self.exact_limit = exact_limit
        self.random_state = random_state

    def _cluster(self, X: Floats, links: Links, random: RandomState) -> Ints:
        self.residual_ = 0.0
        if self.n_classes in (1, len(X)):
            return np.arange(len(X), dtype=np.int64) % self.n_classes  # only one clustering is possible
        if len(X) > self.exact_limit:
            embedding, residual = landmark_embedding(X, self.n_classes, random)
            if residual <= kernels.LARGEST_ERROR or len(X) > kernels.LARGEST_EXACT:
                self.residual_ = residual
                return k_means(embedding, self.n_classes, 10, random)
        from sklearn import cluster  # 0.2 s, so not before it is needed

        features = kernels.exact_features(X)
        if features is not None:  # what scikit-learn computes, without the matrix
            start = random.uniform(-1, 1, len(X))
            embedding = leading_vectors(features, self.n_classes, start)
            labels = cluster.k_means(embedding, self.n_classes, random_state=random, n_init=10)[1]
            return np.asarray(labels, dtype=np.int64)
        similarity = rbf_similarity(X, diagonal=0.0)
        model = cluster.SpectralClustering(self.n_classes, affinity="precomputed", random_state=random)
        return np.asarray(model.fit_predict(similarity), dtype=np.int64)


def leading_vectors(features: Floats, n_vectors: int, start: Floats) -> Floats:
    """Leading eigenvectors of the random walk on the similarity F F' - I, by Lanczos from a start."""
    degrees = features @ features.sum(axis=0) - 1.0
    scaled = features / np.sqrt(degrees)[:, None]

    def product(vector: Floats) -> Floats:
        flat = vector.ravel()
        return np.asarray(scaled @ (scaled.T @ flat) - flat / degrees)

    operator = LinearOperator((len(scaled),) * 2, matvec=product, dtype=np.float64)
    _, vectors = eigsh(operator, k=n_vectors, which="LA", v0=start)
    vectors = vectors[:, ::-1] / np.sqrt(degrees)[:, None]
    return np.asarray(vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(n_vectors)]))


def landmark_embedding(X: Floats, n_vectors: int, random: RandomState) -> tuple[Floats, float]:
    """Leading eigenvectors of the random walk on the similarity, from landmarks, and their residual at some points."""

    def attempt(n_landmarks: int) -> tuple[Floats, float]:
        features = landmark_map(X, n_landmarks, random).features  # the similarity is about features @ features.T
        degrees = np.maximum(features @ features.sum(axis=0), 0.01)
        scaled = features / np.sqrt(degrees)[:, None]
        values, small = eigh(scaled.T @ scaled)  # (m, m), with the nonzero eigenvalues of the n x n matrix
        values, small = values[: -n_vectors - 1 : -1], small[:, : -n_vectors - 1 : -1]
        embedding = (scaled @ small) / np.sqrt(values * degrees[:, None])
        return embedding, _residual(X, embedding, values, random)

    embedding, residual, n_landmarks = kernels.enough_landmarks(
        attempt, kernels.FIRST_LANDMARKS, min(kernels.MOST_LANDMARKS, len(X))
    )
    if residual > kernels.LARGEST_ERROR and len(X) > kernels.LARGEST_EXACT:
        warnings.warn(
            f"{n_landmarks} landmarks leave a residual of {residual:.2g} in the eigenvectors, more than "
            f"{kernels.LARGEST_ERROR}: raise exact_limit to {len(X)} if there is memory for {len(X)}^2 similarities",
            ConvergenceWarning,
            stacklevel=4,  # the line that calls fit
        )
    return embedding, residual


def _residual(X: Floats, embedding: Floats, values: Floats, random: RandomState) -> float:
    """Relative residual of the eigenvectors under one step of the exact random walk, at some points."""
    some = random.choice(len(X), min(kernels.POINTS_CHECKED, len(X)), replace=False)
    points = scale_points(X)
    rows = similarities(points[some], points)
    step = (rows @ embedding) / rows.sum(axis=1)[:, None]
    off = np.linalg.norm(step - values * embedding[some], axis=0)
    return float((off / np.linalg.norm(embedding[some], axis=0)).max())
