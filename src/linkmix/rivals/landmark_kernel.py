"""A kernel matrix that is never formed: landmarks for the similarity, sparse links, and a diagonal."""

import warnings
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import RandomState
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from linkmix.basics.arrays import Array, Floats
from linkmix.rivals import kernels
from linkmix.rivals.kernels import Precision, landmark_map, rbf_similarity, scale_points, similarities


@dataclass(frozen=True)
class LandmarkKernel:
    """K = R (F F' + W) R + T, with R and T diagonal: the operations that kernel k-means needs, without the matrix.

    Attributes
    ----------
    features : array of shape (n, m)
        F, the features from landmarks.
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
        """Return the similarity alone, with ones on the diagonal like the exact one."""
        n = len(features)
        missing = 1.0 - np.einsum("nm,nm->n", features, features, dtype=np.float64)
        return cls(features, csr_array((n, n)), np.ones(n), np.maximum(missing, 0.0))

    def __len__(self) -> int:
        return len(self.features)

    @property
    def dtype(self) -> "np.dtype[np.float64]":
        """Double precision: the type of all products, whatever the type of the features."""
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
        return np.asarray(self.root**2 * own + self.ridge)  # W has a zero diagonal

    def with_links(self, links: csr_array) -> "LandmarkKernel":
        """Return the kernel with links added."""
        return replace(self, links=self.links + links)

    def divided_by(self, degrees: Floats) -> "LandmarkKernel":
        """Return the kernel with rows and columns divided by the degrees."""
        return replace(self, root=self.root / degrees, ridge=self.ridge / degrees**2)

    def less(self, diagonal: Floats) -> "LandmarkKernel":
        """Return the kernel minus a diagonal."""
        return replace(self, ridge=self.ridge - diagonal)


def landmark_similarity(X: Floats, random: RandomState, precision: Precision = "float64") -> "LandmarkKernel | Array":
    """The similarity of all points from landmarks, checked against the exact one at some points.

    The number of landmarks is doubled until the relative error is small enough. If it never is, the exact similarity
    is used for up to 20,000 points; with more points a warning states the error. Memory: 16 n m bytes for m landmarks,
    half of that in single precision.
    """
    points = scale_points(X)

    def attempt(n_landmarks: int) -> tuple[Array, float]:
        features = landmark_map(X, n_landmarks, random, precision=precision).features
        some = random.choice(len(X), min(kernels.POINTS_CHECKED, len(X)), replace=False)
        exact = similarities(points[some], points)
        return features, float(np.linalg.norm(features[some] @ features.T - exact) / np.linalg.norm(exact))

    features, error, n_landmarks = kernels.enough_landmarks(
        attempt, kernels.FIRST_LANDMARKS, min(kernels.MOST_LANDMARKS, len(X))
    )
    if error > kernels.LARGEST_ERROR:
        if len(X) <= kernels.LARGEST_EXACT:
            return rbf_similarity(X, precision=precision)
        warnings.warn(
            f"{n_landmarks} landmarks leave an error of {error:.2g} in the similarity, more than "
            f"{kernels.LARGEST_ERROR}: raise exact_limit to {len(X)} if there is memory for {len(X)}^2 similarities",
            ConvergenceWarning,
            stacklevel=4,  # the line that calls fit
        )
    return LandmarkKernel.of(features)
