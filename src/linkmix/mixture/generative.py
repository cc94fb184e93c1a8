"""What a fitted mixture tells as a distribution: the likelihood of any points and links, criteria, and samples."""

from abc import abstractmethod
from numbers import Integral

import numpy as np
from numpy.random import RandomState
from sklearn.utils.validation import check_is_fitted

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.basics.checks import check_number
from linkmix.data.blocks import Table
from linkmix.links import Links
from linkmix.links.checks import LinksLike, as_links
from linkmix.links.reading import read_random_state
from linkmix.mixture.door import LinkEstimator, PointsLike


class Generative(LinkEstimator):
    """A `LinkEstimator` with one mixture whose likelihood counts."""

    @abstractmethod
    def _log_likelihood(self, points: Floats | Table, links: Links) -> float: ...

    @abstractmethod
    def _sample(self, n_samples: int, random: RandomState) -> tuple[Array, Ints]: ...

    @abstractmethod
    def _n_parameters(self) -> int: ...

    def log_likelihood(self, X: PointsLike, links: LinksLike | None = None) -> float:
        """Log-likelihood J of the fitted parameters on any points and links.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Blocks
            The points.
        links : Links, or a table of links, optional
            Links between rows of `X`; a table names them by the index of `X`.

        Returns
        -------
        float
            Sum over free points and links, as in the fit.
        """
        return self._log_likelihood(self._seen(X), as_links(links, X=X))

    def bic(self, X: PointsLike, links: LinksLike | None = None) -> float:
        """Bayesian information criterion; lower is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Blocks
            The points.
        links : Links, or a table of links, optional
            Links between rows of `X`; a table names them by the index of `X`.

        Returns
        -------
        float
            ``-2 J + n_parameters log n_samples``.
        """
        points = self._seen(X)
        return -2 * self._log_likelihood(points, as_links(links, X=X)) + self._n_parameters() * float(
            np.log(len(points))
        )

    def aic(self, X: PointsLike, links: LinksLike | None = None) -> float:
        """Akaike information criterion; lower is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Blocks
            The points.
        links : Links, or a table of links, optional
            Links between rows of `X`; a table names them by the index of `X`.

        Returns
        -------
        float
            ``-2 J + 2 n_parameters``.
        """
        return -2 * self.log_likelihood(X, links) + 2 * self._n_parameters()

    def sample(self, n_samples: int = 1) -> tuple[Array, Array]:
        """Draw points from the mixture.

        Parameters
        ----------
        n_samples : int, default=1
            Number of points.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The points, in order of their classes.
        y : ndarray of shape (n_samples,)
            Their classes, entries of ``classes_``. With noise, some of the points are from the background.
        """
        check_is_fitted(self)
        check_number("n_samples", n_samples, Integral, 1)
        X, classes = self._sample(int(n_samples), read_random_state(self.random_state))
        return X, self._classes_of(classes)
