"""A kernel matrix that is never made: landmarks for the similarity, sparse links, and a diagonal."""

import warnings
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import RandomState
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from linkmix.basics.arrays import Array, Floats
from linkmix.rivals.kernels import Precision, landmark_map, rbf_similarity, scale_points, similarities

FIRST_LANDMARKS, MOST_LANDMARKS = 300, 2400
LARGEST_ERROR = 0.02
POINTS_CHECKED = 500
LARGEST_EXACT = 20_000
"""Up to so many points (3.2 GB) landmarks that do not do are given up for the exact similarity."""


@dataclass(frozen=True)
class LandmarkKernel:
    """K = R (F F' + W) R + T, with R and T diagonal: what kernel k-means asks of a matrix, without the matrix.

    Attributes
    ----------
    features : array of shape (n, m)
        F, from landmarks.
    links : csr_array of shape (n, n)
        W, symmetric.
    root : array of shape (n,)
        The diagonal of R.
    ridge : array of shape (n,)
        The diagonal of T.
    """

    features: Array
    links: csr_array
    root: Floats
    ridge: Floats

    @classmethod
    def of(cls, features: Array) -> "LandmarkKernel":
        """The similarity itself, with ones on the diagonal, as the exact one has them."""
        n = len(features)
        missing = 1.0 - np.einsum("nm,nm->n", features, features, dtype=np.float64)
        return cls(features, csr_array((n, n)), np.ones(n), np.maximum(missing, 0.0))

    def __len__(self) -> int:
        return len(self.features)

    @property
    def dtype(self) -> "np.dtype[np.float64]":
        """Products are in double precision, whatever the features are."""
        return np.dtype(np.float64)

    def __matmul__(self, other: Array) -> Floats:
        flat = np.asarray(other, dtype=np.float64)
        columns = flat[:, None] if flat.ndim == 1 else flat
        scaled = self.root[:, None] * columns
        product = self.features @ (self.features.T @ scaled) + self.links @ scaled
        product = self.root[:, None] * product + self.ridge[:, None] * columns
        return np.asarray(product[:, 0] if flat.ndim == 1 else product)

    def diagonal(self) -> Floats:
        """The diagonal of K."""
        own = np.einsum("nm,nm->n", self.features, self.features, dtype=np.float64)
        return np.asarray(self.root**2 * own + self.ridge)  # no point is linked to itself

    def with_links(self, links: csr_array) -> "LandmarkKernel":
        """Links added."""
        return replace(self, links=self.links + links)

    def divided_by(self, degrees: Floats) -> "LandmarkKernel":
        """Rows and columns divided by degrees."""
        return replace(self, root=self.root / degrees, ridge=self.ridge / degrees**2)

    def less(self, diagonal: Floats) -> "LandmarkKernel":
        """A diagonal taken away."""
        return replace(self, ridge=self.ridge - diagonal)


def landmark_similarity(X: Floats, random: RandomState, precision: Precision = "float64") -> "LandmarkKernel | Array":
    """The similarity of all points from landmarks, checked against the exact one at some points.

    Landmarks are doubled until the error, relative to the size of the similarity, is small enough. Where it does not
    become so, the exact similarity is made after all, up to 20,000 points; beyond, a warning says how large it is.
    Memory: 16 n m bytes for m landmarks, half of that in single precision.
    """
    n_landmarks = FIRST_LANDMARKS
    while True:
        features = landmark_map(X, n_landmarks, random, precision=precision).features
        some = random.choice(len(X), min(POINTS_CHECKED, len(X)), replace=False)
        points = scale_points(X)
        exact = similarities(points[some], points)
        error = float(np.linalg.norm(features[some] @ features.T - exact) / np.linalg.norm(exact))
        if error <= LARGEST_ERROR:
            return LandmarkKernel.of(features)
        if n_landmarks >= min(MOST_LANDMARKS, len(X)):
            if len(X) <= LARGEST_EXACT:
                return rbf_similarity(X, precision=precision)
            warnings.warn(
                f"{n_landmarks} landmarks leave an error of {error:.2g} in the similarity, more than {LARGEST_ERROR}: "
                f"raise exact_limit to {len(X)} if there is memory for {len(X)}^2 similarities",
                ConvergenceWarning,
                stacklevel=4,
            )
            return LandmarkKernel.of(features)
        n_landmarks *= 2
