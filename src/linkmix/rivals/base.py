"""What the rivals that are not mixtures share: the interface, and the door."""

from abc import abstractmethod
from numbers import Integral
from typing import ClassVar, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from linkmix.basics.arrays import Floats, Ints
from linkmix.basics.checks import check_number
from linkmix.links import Links
from linkmix.links.checks import as_links, check_links


class Rival(ClusterMixin, BaseEstimator):
    """A clusterer with links.

    A method says which links it can use; others are refused in plain words, since leaving them out in silence would
    make a comparison worthless.

    Attributes
    ----------
    uses_must, uses_cannot, uses_confidence : bool
        What the method makes of must-links, cannot-links, and links that are not certain.
    """

    uses_must: ClassVar[bool] = True
    uses_cannot: ClassVar[bool] = True
    uses_confidence: ClassVar[bool] = False

    n_classes: int
    random_state: int | RandomState | None

    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        *,
        links: Links | None = None,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
        rows: ArrayLike | None = None,
    ) -> Self:
        """Cluster points with links.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The points.
        y : object
            Not used.
        links : Links, optional
            Links between rows of `X`.
        must_link, cannot_link : array-like of shape (n_links, 2), optional
            The same as plain pairs of row numbers, instead of `links`.
        rows : array-like of shape (n_samples,), optional
            Number of each row of `X` in the table that the links speak of, for cross-validation.

        Returns
        -------
        Rival
            The fitted estimator, with ``labels_``.
        """
        check_number("n_classes", self.n_classes, Integral, 1)
        self._check_parameters()
        given = as_links(links, must_link, cannot_link)
        points: Floats = validate_data(self, X, dtype=np.float64)
        if len(points) < self.n_classes:
            raise ValueError(
                f"n_samples={len(points)} is less than n_classes={self.n_classes}: pass more points or ask for fewer"
            )
        checked = check_links(given, len(points), self.n_classes, rows)
        refuse_useless(type(self).__name__, checked, self.uses_must, self.uses_cannot, self.uses_confidence)
        self.labels_ = self._cluster(points, checked, check_random_state(self.random_state))
        return self

    @abstractmethod
    def _cluster(self, X: Floats, links: Links, random: RandomState) -> Ints:
        """Labels of the points; other fitted attributes are set on the way."""

    def _check_parameters(self) -> None:
        """Refuse parameters that make no sense."""
        return


def refuse_useless(name: str, links: Links, uses_must: bool, uses_cannot: bool, uses_confidence: bool) -> None:
    """Refuse links that the method named can not use."""
    for kind, n, fits in (("must", links.n_must, uses_must), ("cannot", links.n_cannot, uses_cannot)):
        if n and not fits:
            raise ValueError(
                f"{name} can not use {kind}-links, but got {n} of them: drop them, or choose another method"
            )
    if links.relations:
        raise ValueError(f"{name} can not use relations with a table, but got {links}: use LinkMixture for them")
    for kind, confidence in (("must", links.must_confidence), ("cannot", links.cannot_confidence)):
        if confidence is not None and np.any(confidence < 1) and not uses_confidence:
            raise ValueError(
                f"{name} takes every link as certain, but a {kind}-link has confidence {confidence.min():g}: "
                "take the links at their word with Links(links.must, links.cannot), or choose another method"
            )
