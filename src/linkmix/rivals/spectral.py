"""SpectralRBF: normalised spectral clustering without links, the baseline of the kernel methods."""

import warnings
from numbers import Integral
from typing import ClassVar

import numpy as np
from numpy.random import RandomState
from scipy.linalg import eigh
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.exceptions import ConvergenceWarning

from linkmix.basics.arrays import Floats, Ints
from linkmix.basics.checks import check_number
from linkmix.links import Links
from linkmix.rivals.base import Rival
from linkmix.rivals.kernels import landmark_map, rbf_similarity, scale_points, similarities

FIRST_LANDMARKS, MOST_LANDMARKS = 300, 2400
LARGEST_RESIDUAL = 0.02
POINTS_CHECKED = 500
LARGEST_EXACT = 20_000


class SpectralRBF(Rival):
    """Spectral clustering of scikit-learn with the similarity that SSKK and CSC use, and no links.

    exp(-d^2 / (2 sigma^2)), sigma^2 the mean squared distance of two different points, with a zero diagonal. What links
    add to CSC is what it gains over this.

    Memory: the similarity and a copy of it, 16 n^2 bytes (400 MB at n = 5000); with landmarks 16 n m bytes for m of
    them (100 MB at n = 20000 and m = 300).

    Parameters
    ----------
    n_classes : int, default=2
        Number of classes.
    exact_limit : int, default=5000
        Number of points beyond which the similarity is approximated from landmarks (Nystrom). The eigenvectors are
        then checked against the exact similarity of some points, with more landmarks until they pass; where they do
        not, the exact similarity is made up to 20,000 points, and a warning given beyond.
    random_state : int, RandomState or None, default=None
        For the eigensolver, the landmarks and k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Class of each point.
    residual_ : float
        Of the eigenvectors from landmarks, at some points and relative to their length; zero without landmarks.

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

    def _check_parameters(self) -> None:
        check_number("exact_limit", self.exact_limit, Integral, 0)

    def _cluster(self, X: Floats, links: Links, random: RandomState) -> Ints:
        self.residual_ = 0.0
        if self.n_classes in (1, len(X)):
            return np.arange(len(X), dtype=np.int64) % self.n_classes  # nothing to choose
        if len(X) > self.exact_limit:
            embedding, residual = landmark_embedding(X, self.n_classes, random)
            if residual <= LARGEST_RESIDUAL or len(X) > LARGEST_EXACT:
                self.residual_ = residual
                k_means = KMeans(self.n_classes, n_init=10, random_state=random)
                return np.asarray(k_means.fit_predict(embedding), dtype=np.int64)
        similarity = rbf_similarity(X, diagonal=0.0)
        model = SpectralClustering(self.n_classes, affinity="precomputed", random_state=random)
        return np.asarray(model.fit_predict(similarity), dtype=np.int64)


def landmark_embedding(X: Floats, n_vectors: int, random: RandomState) -> tuple[Floats, float]:
    """Leading eigenvectors of the random walk on the similarity, from landmarks, and their residual at some points."""
    n_landmarks = FIRST_LANDMARKS
    while True:
        features = landmark_map(X, n_landmarks, random).features  # similarity = features @ features.T, about
        degrees = np.maximum(features @ features.sum(axis=0), 0.01)
        scaled = features / np.sqrt(degrees)[:, None]
        values, small = eigh(scaled.T @ scaled)  # (m, m): the same eigenvalues other than zero as the n x n matrix
        values, small = values[: -n_vectors - 1 : -1], small[:, : -n_vectors - 1 : -1]
        embedding = (scaled @ small) / np.sqrt(values * degrees[:, None])
        residual = _residual(X, embedding, values, random)
        if residual <= LARGEST_RESIDUAL:
            return embedding, residual
        if n_landmarks >= min(MOST_LANDMARKS, len(X)):
            if len(X) > LARGEST_EXACT:
                warnings.warn(
                    f"{n_landmarks} landmarks leave a residual of {residual:.2g} in the eigenvectors, more than "
                    f"{LARGEST_RESIDUAL}: raise exact_limit to {len(X)} if there is memory for {len(X)}^2 similarities",
                    ConvergenceWarning,
                    stacklevel=5,
                )
            return embedding, residual
        n_landmarks *= 2


def _residual(X: Floats, embedding: Floats, values: Floats, random: RandomState) -> float:
    """How far the exact random walk from some points moves the eigenvectors off themselves."""
    some = random.choice(len(X), min(POINTS_CHECKED, len(X)), replace=False)
    points = scale_points(X)
    rows = similarities(points[some], points)
    step = (rows @ embedding) / rows.sum(axis=1)[:, None]
    off = np.linalg.norm(step - values * embedding[some], axis=0)
    return float((off / np.linalg.norm(embedding[some], axis=0)).max())
