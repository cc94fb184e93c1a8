"""SpectralRBF: normalised spectral clustering without links, the baseline of the kernel methods."""

from typing import ClassVar

import numpy as np
from numpy.random import RandomState
from sklearn.cluster import SpectralClustering

from linkmix.arrays import Floats, Ints
from linkmix.links import Links
from linkmix.rivals.base import Rival
from linkmix.rivals.kernels import rbf_similarity

__all__ = ["SpectralRBF"]


class SpectralRBF(Rival):
    """Spectral clustering of scikit-learn with the similarity that SSKK and CSC use, and no links.

    exp(-d^2 / (2 sigma^2)), sigma^2 the mean squared distance of two different points, with a zero diagonal. What links
    add to CSC is what it gains over this.

    Memory: the similarity and a copy of it, 16 n^2 bytes (400 MB at n = 5000).

    Parameters
    ----------
    n_classes : int, default=2
        Number of classes.
    random_state : int, RandomState or None, default=None
        For the eigensolver and k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Class of each point.

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

    def __init__(self, n_classes: int = 2, *, random_state: int | RandomState | None = None) -> None:
        self.n_classes = n_classes
        self.random_state = random_state

    def _cluster(self, X: Floats, links: Links, random: RandomState) -> Ints:
        if self.n_classes in (1, len(X)):
            return np.arange(len(X), dtype=np.int64) % self.n_classes  # nothing to choose
        similarity = rbf_similarity(X, diagonal=0.0)
        model = SpectralClustering(self.n_classes, affinity="precomputed", random_state=random)
        return np.asarray(model.fit_predict(similarity), dtype=np.int64)
