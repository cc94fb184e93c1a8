"""Compares numbers of clusters per class and covariance types, by the links and then by BIC."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike

from linkmix.basics.arrays import Array
from linkmix.basics.errors import DegenerateCluster
from linkmix.data.sample import sample_around
from linkmix.densities import FORMS
from linkmix.links import Links
from linkmix.mixture import LinkMixture
from linkmix.search.ranking import weigh

RANKING = np.dtype(
    [
        ("clusters_per_class", np.int64),
        ("covariance_type", "U9"),
        ("links_broken", np.float64),
        ("log_likelihood", np.float64),
        ("bic", np.float64),
    ]
)
MOST_ROWS = 5000
"""With more rows than this, shapes are compared on the linked ones and a random sample of the others."""


def compare_shapes(
    X: ArrayLike,
    links: Links,
    n_classes: int,
    *,
    clusters_per_class: Sequence[int] = (1, 2, 3),
    covariance_types: Sequence[str] = tuple(FORMS),
    random_state: int = 0,
    progress: Any = iter,
) -> Array:
    """Fit mixtures of many shapes and rank them by links broken (by labels from the points alone), then by BIC.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The points, preferably with columns of unit variance.
    links : Links
        Links between them.
    n_classes : int
        Number of classes.
    clusters_per_class, covariance_types : sequences
        The shapes to try.
    random_state : int
        Seed of the starts and of the sample of rows.
    progress : callable
        Wraps the list of shapes, for example to show a progress bar.

    Returns
    -------
    structured ndarray
        ``clusters_per_class``, ``covariance_type``, ``links_broken``, ``log_likelihood`` and ``bic``, the best first.
        Shapes with more clusters than rows, or with a cluster that degenerates, are left out.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> table = compare_shapes(X, Links.from_labels(y, 20, random_state=0), 3, clusters_per_class=[1, 2])
    >>> int(table["clusters_per_class"][0]), str(table["covariance_type"][0])
    (2, 'tied')
    """
    points = np.asarray(X, dtype=np.float64)
    if len(points) > MOST_ROWS:
        rows = sample_around(len(points), links.points, MOST_ROWS, RandomState(random_state))
        points, links = points[rows], links.restrict(rows)
    shapes: Iterable[tuple[int, str]] = [(k, form) for k in clusters_per_class for form in covariance_types]
    found = []
    for k, form in progress(shapes):
        if k * n_classes > len(points):
            continue
        model = LinkMixture(
            n_classes,
            clusters_per_class=k,
            covariance_type=form,
            coupling="graph",
            init="links",
            n_init=3,
            random_state=random_state,
        )
        try:
            model.fit(points, links=links)
        except DegenerateCluster:
            continue
        broken = weigh(model.predict_proba(points), links).broken
        found.append((k, form, broken, model.log_likelihood_, model.bic(points, links)))
    table = np.array(found, dtype=RANKING)
    return np.asarray(table[np.lexsort((table["bic"], table["links_broken"]))])
