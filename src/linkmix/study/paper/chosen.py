"""GM-PR with the number of clusters per class by cross-validation, as the paper chooses it for COIL-20."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from linkmix.basics.arrays import Array, Floats
from linkmix.links import Links
from linkmix.rivals import GMPR
from linkmix.search.choice import Choice, choose

CANDIDATES = (1, 2, 3, 4)
"""Numbers of clusters per class to choose from."""


class ChosenGMPR(BaseEstimator):
    """GM-PR with the number of clusters per class by five-fold cross-validation.

    The paper does not say what was held out. Here it is points with all their links, as in `linkmix.choose`.

    Parameters
    ----------
    n_classes : int, default=2
        Number of classes.
    random_state : int, default=0
        Seed of folds and starts.

    Attributes
    ----------
    choice_ : Choice
        What was found for each number.
    chosen_ : str
        The number by the share of hidden links that agree, by the likelihood of hidden points, and by the rule of one
        standard error, which is the one that is used.
    labels_ : ndarray of shape (n_samples,)
        Labels of GM-PR with that number.

    Examples
    --------
    >>> from linkmix.study.paper.synthetic import two_moons
    >>> X, y = two_moons()
    >>> ChosenGMPR(2, random_state=0).fit(X, Links.from_labels(y, 64, random_state=0)).chosen_
    'links 3, likelihood 3, rule 3'
    """

    def __init__(self, n_classes: int = 2, *, random_state: int = 0) -> None:
        self.n_classes = n_classes
        self.random_state = random_state

    def fit(self, X: Floats, links: Links) -> Self:
        """Choose the number of clusters per class, and fit GM-PR with it."""
        self.choice_ = choose(
            X,
            links,
            self.n_classes,
            clusters_per_class=CANDIDATES,
            covariance_types=("full",),
            random_state=self.random_state,
            make=GMPR,
        )
        per_class = self.choice_.chosen.clusters_per_class
        self.chosen_ = ", ".join(f"{name} {number}" for name, number in by_each(self.choice_).items())
        model = GMPR(self.n_classes, clusters_per_class=per_class, random_state=self.random_state)  # type: ignore[arg-type]
        self._model = model.fit(X, links=links)
        self.labels_ = model.labels_
        return self

    def predict(self, X: Floats) -> Array:
        """Most probable class of each point, from the point alone."""
        return self._model.predict(X)


def by_each(choice: Choice) -> dict[str, Any]:
    """Number of clusters by hidden links, by hidden points and by the rule; the smallest of equals."""
    table = choice.table
    numbers = table["clusters_per_class"]
    agree = np.nan_to_num(table["links_agree"], nan=-1.0)
    return {
        "links": numbers[agree.argmax()],
        "likelihood": numbers[table["log_likelihood"].argmax()],
        "rule": choice.chosen.clusters,
    }
