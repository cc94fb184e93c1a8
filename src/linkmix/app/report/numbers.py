"""What a page about a fit shows, as numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.data.blocks import Blocks
from linkmix.data.summary import summarise
from linkmix.links import Links
from linkmix.tables import Points

UNSURE = 0.8
"""A point whose label is less probable than this is unsure."""
EDGES = np.linspace(0, 1, 21)
"""Points are counted by their confidence between these."""

LINK = np.dtype(
    [
        ("a", np.int64),
        ("b", np.int64),
        ("is_must", bool),
        ("holds", bool),
        ("holds_alone", bool),
        ("probability_wrong", np.float64),
    ]
)


@dataclass(frozen=True)
class Result:
    """A fit with all that it was made from.

    Attributes
    ----------
    points : Points
        What was clustered.
    links : Links
        What was said of them.
    labels : ndarray of shape (n_samples,)
        Class of each point, honouring links.
    probabilities : ndarray of shape (n_samples, n_classes), or None
        Probability of each class, from the point alone, where the method gives any.
    model : estimator
        What was fitted.
    n_classes : int
        Number of classes.
    method, what : str
        Name of the method, and a line on what it is.
    command : str
        What the user typed.
    sources : tuple of str
        Names of the files.
    notes : tuple of str
        What the user should know.
    """

    points: Points
    links: Links
    labels: Ints
    probabilities: Floats | None
    model: Any
    n_classes: int
    method: str
    what: str
    command: str
    sources: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @cached_property
    def confidence(self) -> "Confidence | None":
        """How probable labels are."""
        if self.probabilities is None:
            return None
        sums, unsure = np.zeros(self.n_classes), np.zeros(self.n_classes, dtype=np.int64)
        counts = np.zeros(len(EDGES) - 1, dtype=np.int64)
        for first, block in _numbered(self.probabilities):
            labels = self.labels[first : first + len(block)]
            values = block[np.arange(len(block)), labels]
            sums += np.bincount(labels, weights=values, minlength=self.n_classes)
            unsure += np.bincount(labels[values < UNSURE], minlength=self.n_classes)
            counts += np.histogram(values, EDGES)[0]
        return Confidence(sums / np.maximum(self.sizes, 1), float(sums.sum() / len(self.labels)), unsure, counts)

    def confidence_of(self, rows: Ints) -> Floats | None:
        """Probability of the labels of some points."""
        return None if self.probabilities is None else np.asarray(self.probabilities[rows, self.labels[rows]])

    @cached_property
    def profiles(self) -> "Profiles":
        """How classes differ from all points together."""
        return profiles(self.points.X, self.labels, self.n_classes)

    @cached_property
    def sizes(self) -> Ints:
        """Number of points in each class."""
        return np.bincount(self.labels, minlength=self.n_classes)

    @property
    def mixture(self) -> Any:
        """The mixture whose steps can be shown, or None."""
        model = getattr(self.model, "best_estimator_", self.model)
        return model if hasattr(model, "log_likelihood_trace_") else None


@dataclass(frozen=True)
class Confidence:
    """How probable the labels of the points are, each from the point alone.

    Attributes
    ----------
    means : ndarray of shape (n_classes,)
        Means of the classes; 0 for an empty one.
    mean : float
        Mean of all points.
    unsure : ndarray of int, shape (n_classes,)
        Number of points in each class whose label is less probable than `UNSURE`.
    counts : ndarray of int
        Number of points between one of the `EDGES` and the next.
    """

    means: Floats
    mean: float
    unsure: Ints
    counts: Ints


@dataclass(frozen=True)
class Profiles:
    """How classes differ from all points together.

    Attributes
    ----------
    means : ndarray of shape (n_classes, n_features)
        Means of the classes; NaN where a class has no value.
    center : ndarray of shape (n_features,)
        Means of all points.
    differences : ndarray of shape (n_classes, n_features)
        Differences in standard deviations of all points; 0 for a constant column or an empty class.
    """

    means: Floats
    center: Floats
    differences: Floats


def profiles(X: Floats, labels: Ints, n_classes: int) -> Profiles:
    """Means of classes, and how far they are from the mean of all points.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Points; NaN stands for a value that is not known.
    labels : ndarray of shape (n_samples,)
        Class numbers.
    n_classes : int
        Number of classes.

    Returns
    -------
    Profiles

    Examples
    --------
    >>> found = profiles(np.array([[1.0, 5.0], [1.0, 5.0], [3.0, 5.0], [3.0, np.nan]]), np.array([0, 0, 1, 1]), 2)
    >>> found.means.tolist(), found.differences.tolist()
    ([[1.0, 5.0], [3.0, 5.0]], [[-1.0, 0.0], [1.0, 0.0]])
    """
    found = summarise(X)
    counts, sums = np.zeros((n_classes, X.shape[1])), np.zeros((n_classes, X.shape[1]))
    for first, block in _numbered(X):
        classes = labels[first : first + len(block)]
        for j, known in enumerate(~np.isnan(block.T)):
            some = classes[known]
            counts[:, j] += np.bincount(some, minlength=n_classes)
            sums[:, j] += np.bincount(some, weights=block[known, j] - found.mean[j], minlength=n_classes)
    shifts = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    scale = np.where(found.spread > 0, found.spread, 1.0)
    differences = np.where((counts == 0) | (found.spread == 0), 0.0, shifts / scale)
    return Profiles(found.mean + shifts, found.mean, differences)


def _numbered(X: Floats) -> Iterator[tuple[int, Floats]]:
    """Blocks of rows, each with the number of its first row."""
    first = 0
    for block in map(np.asarray, Blocks.from_array(X)):
        yield first, block
        first += len(block)


def review(result: Result) -> Array:
    """All links, those that the labels break first, then the ones that are most likely wrong.

    Parameters
    ----------
    result : Result
        A fit.

    Returns
    -------
    structured ndarray
        ``a``, ``b``, ``is_must``, ``holds`` (in the labels), ``holds_alone`` (in labels from the points alone) and
        ``probability_wrong``, NaN where the method does not say.
    """
    links = result.links.distinct()
    table = np.empty(links.n_must + links.n_cannot, dtype=LINK)
    ends = np.concatenate([links.must, links.cannot])  # (n_links, 2)
    table["a"], table["b"] = ends.T
    table["is_must"] = np.arange(len(table)) < links.n_must
    labels = result.labels[ends]
    alone = labels if result.probabilities is None else result.probabilities[ends].argmax(axis=2)
    for name, pairs in (("holds", labels), ("holds_alone", alone)):
        table[name] = (pairs[:, 0] == pairs[:, 1]) == table["is_must"]
    wrong = {
        (int(a), int(b), kind == "must"): float(p) for a, b, kind, p in getattr(result.model, "links_to_review_", ())
    }
    table["probability_wrong"] = [
        wrong.get(key, np.nan) for key in zip(*(table[name].tolist() for name in ("a", "b", "is_must")), strict=True)
    ]
    return np.asarray(table[np.lexsort((-table["probability_wrong"], table["holds_alone"], table["holds"]))])


def plane(X: Floats, rows: Ints) -> tuple[Floats, tuple[str, str] | None]:
    """Two coordinates for some rows: the columns themselves if there are one or two, else principal components.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        All points.
    rows : ndarray of int
        Which of them.

    Returns
    -------
    ndarray of shape (n_rows, 2)
        Coordinates. A value that is not known is put in the middle.
    tuple of two str or None
        What the axes are, if they are no columns.
    """
    points = np.asarray(X[rows])
    d = X.shape[1]
    with np.errstate(invalid="ignore"):
        center, scale = np.nanmean(points, axis=0), np.nanstd(points, axis=0)
    if d <= 2:
        filled = np.where(np.isnan(points), center, points)
        if d == 2:
            return filled, None
        height = np.random.RandomState(0).uniform(-1, 1, len(rows))  # one column: spread over the height
        return np.column_stack([filled[:, 0], height]), None
    scaled = np.where(np.isnan(points), 0.0, (points - center) / np.where(scale > 0, scale, 1.0))
    values, vectors = np.linalg.eigh(scaled.T @ scaled)
    top = vectors[:, [-1, -2]]
    top = top * np.sign(top[np.abs(top).argmax(axis=0), [0, 1]])  # so that the same points give the same picture
    total = max(float(values.sum()), np.finfo(float).tiny)
    first, second = (100 * float(values[i]) / total for i in (-1, -2))
    return scaled @ top, (f"first principal component ({first:.0f} %)", f"second ({second:.0f} %)")
