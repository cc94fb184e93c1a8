"""What the rivals that are not mixtures share: the interface, the validation, and the links as a matrix."""

from abc import abstractmethod
from collections.abc import Hashable, Iterable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from linkmix.basics.arrays import Floats, Ints
from linkmix.basics.checks import Constraints, at_least, refuse_sparse
from linkmix.basics.memory import reserve
from linkmix.links import Links
from linkmix.links.checks import LinksLike, as_links, check_ids, check_links, check_y


class Rival(ClusterMixin, BaseEstimator):
    """A clusterer with links.

    Each method declares which links it can use and refuses the others with an error: ignoring them silently would
    make a comparison worthless.

    Attributes
    ----------
    uses_must, uses_cannot, uses_confidence : bool
        Whether the method uses must-links, cannot-links, and the confidence of uncertain links.
    """

    uses_must: ClassVar[bool] = True
    uses_cannot: ClassVar[bool] = True
    uses_confidence: ClassVar[bool] = False

    # The parameters that several rivals have; a rival adds its own.
    _parameter_constraints: ClassVar[Constraints] = {
        "n_classes": [at_least(1)],
        "max_iter": [at_least(1)],
        "exact_limit": [at_least(0)],
    }

    n_classes: int
    random_state: int | RandomState | None
    labels_: Ints

    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        *,
        links: LinksLike | None = None,
        ids: Iterable[Hashable] | None = None,
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
            Ignored.
        links : Links, or a table of links, optional
            Links between rows of `X`. A table names the rows by their ids, as in ``LinkMixture.fit``.
        ids : sequence of shape (n_samples,), optional
            For a table of links: the ids of the rows of `X`, in their order. By default they are the index of `X`, if
            it is a data frame of pandas.
        must_link, cannot_link : array-like of shape (n_links, 2), optional
            The same links as pairs of row numbers, instead of `links`.
        rows : array-like of shape (n_samples,), optional
            For cross-validation: the row number of each row of `X` in the table that the links refer to.

        Returns
        -------
        Rival
            The fitted estimator, with ``labels_``.
        """
        self._validate_params()
        refuse_sparse(X)
        reserve()
        given = as_links(links, must_link, cannot_link, ids=ids, rows=rows, X=X)
        points: Floats = validate_data(self, X, dtype=np.float64)
        check_ids(ids, len(points))
        check_y(y, len(points))
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
        """Return the labels of the points, and set the other fitted attributes."""


def refuse_useless(name: str, links: Links, uses_must: bool, uses_cannot: bool, uses_confidence: bool) -> None:
    """Raise an error if there are links that the named method cannot use."""
    for kind, n, fits in (("must", links.n_must, uses_must), ("cannot", links.n_cannot, uses_cannot)):
        if n and not fits:
            raise ValueError(
                f"{name} cannot use {kind}-links, but got {n} of them: drop them, or choose another method"
            )
    if links.relations:
        raise ValueError(f"{name} cannot use relations with a table, but got {links}: use LinkMixture for them")
    for kind, confidence in (("must", links.must_confidence), ("cannot", links.cannot_confidence)):
        if confidence is not None and np.any(confidence < 1) and not uses_confidence:
            raise ValueError(
                f"{name} takes every link as certain, but a {kind}-link has confidence {confidence.min():g}: "
                "drop the confidences with Links(links.must, links.cannot), or choose another method"
            )


def links_matrix(links: Links, n_rows: int) -> Any:
    """Symmetric sparse matrix of the links: 1 for a must-link, -1 for a cannot-link, times the confidence.

    Several links between the same two rows are added up and clipped to [-1, 1].

    Examples
    --------
    >>> links_matrix(Links(must=[(0, 1)], cannot=[(1, 2)], must_confidence=0.5), 3).toarray()
    array([[ 0. ,  0.5,  0. ],
           [ 0.5,  0. , -1. ],
           [ 0. , -1. ,  0. ]])
    """
    pairs = np.concatenate([links.must, links.cannot])
    sure = [
        np.ones(n) if confidence is None else confidence
        for n, confidence in ((links.n_must, links.must_confidence), (links.n_cannot, links.cannot_confidence))
    ]
    values = np.concatenate([sure[0], -sure[1]])
    one_way = coo_array((values, (pairs[:, 0], pairs[:, 1])), shape=(n_rows, n_rows)).tocsr()
    both = one_way + one_way.T
    both.data = np.clip(both.data, -1.0, 1.0)
    return both
