"""The numbers that the report of a fit shows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.data.blocks import Blocks
from linkmix.data.summary import Summary
from linkmix.links import Links
from linkmix.mixture.calibration import Quality, is_calibrated
from linkmix.plots.pages import count
from linkmix.tables import Points

UNSURE = 0.8
"""A label less probable than this is unsure."""
LONGEST_LEVEL = 40
"""Characters of a level that are shown."""

EDGES = np.linspace(0, 1, 21)
"""Edges of the histogram of confidence."""

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
    """A fit with everything it was made from.

    Attributes
    ----------
    points : Points
        The table that was clustered.
    links : Links
        Links between its rows.
    labels : ndarray of shape (n_samples,)
        Class of each point, respecting the links.
    probabilities : ndarray of shape (n_samples, n_classes), or None
        Probability of each class, from the point alone; None if the method gives no probabilities.
    model : estimator
        The fitted estimator.
    n_classes : int
        Number of classes.
    method, what : str
        Name of the method and a one-line description.
    command : str
        The command that the user typed.
    sources : tuple of str
        Names of the input files.
    notes : tuple of str
        Notes for the user.
    noise : ndarray of shape (n_samples,), or None
        Probability that a point belongs to no class; None if the method knows no such points. Their label is -1.
    weights : ndarray of shape (n_features,), or None
        How much each column decides, as shares that sum to 1; None if that is not known.
    names : tuple of str
        Name of each class; nothing if they have numbers alone.
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
    noise: Floats | None = None
    weights: Floats | None = None
    names: tuple[str, ...] = ()

    def name_of(self, m: int) -> str:
        """The name of a class, or its number."""
        return self.names[m] if self.names and m >= 0 else str(m)

    @cached_property
    def confidence(self) -> "Confidence | None":
        """How probable the labels are; None without probabilities."""
        if self.probabilities is None:
            return None
        sums, unsure = np.zeros(self.n_classes), np.zeros(self.n_classes, dtype=np.int64)
        counts = np.zeros(len(EDGES) - 1, dtype=np.int64)
        for first, block in _numbered(self.probabilities):
            labels = self.labels[first : first + len(block)]
            values = block[np.arange(len(block)), labels]
            if self.noise is not None:
                values = values * (1 - self.noise[first : first + len(block)])
            labels, values = labels[labels >= 0], values[labels >= 0]
            sums += np.bincount(labels, weights=values, minlength=self.n_classes)
            unsure += np.bincount(labels[values < UNSURE], minlength=self.n_classes)
            counts += np.histogram(values, EDGES)[0]
        return Confidence(
            sums / np.maximum(self.sizes, 1), float(sums.sum() / max(self.sizes.sum(), 1)), unsure, counts
        )

    def confidence_of(self, rows: Ints) -> Floats | None:
        """Probability of the labels of the given points; None without probabilities."""
        if self.probabilities is None:
            return None
        labels, found = self.labels[rows], np.asarray(self.probabilities[rows, self.labels[rows]])
        if self.noise is None:
            return found
        return np.where(labels < 0, self.noise[rows], found * (1 - self.noise[rows]))

    @property
    def calibrated(self) -> bool:
        """Whether the probabilities are calibrated."""
        return is_calibrated(self.model)

    @property
    def quality(self) -> Quality | None:
        """How good the result is; None if that cannot be told."""
        return getattr(self.model, "quality_", None)

    @property
    def how_good(self) -> str:
        """How good the result is, or why that cannot be told and what to do about it."""
        if self.quality is not None:
            return str(self.quality)
        if not hasattr(self.model, "quality_"):
            return "How good this is was not estimated: only --method auto does that."
        if not self.model.calibrate:
            return "How good this is was not estimated, because of calibrate=False: fit with calibrate=True."
        unknown = "so nothing can be said about how good this is"
        n_must, n_cannot = self.links.n_must, self.links.n_cannot
        if not n_must and not n_cannot:
            return f"No links, {unknown}: give some, or run linkmix label."
        if self.links.n_chosen:
            return (
                f"The links were chosen by questions, not drawn at random, {unknown}: Certify on the page of linkmix "
                "label measures it, or linkmix ask --audit 20."
            )
        if not n_cannot:
            return f"Only must-links, {unknown}: add cannot-links, between points that belong apart."
        if not n_must:
            return f"Only cannot-links, {unknown}: add must-links, between points that belong together."
        return f"Too few links, {unknown}: give more of both kinds."

    @cached_property
    def link_table(self) -> Array:
        """All links, as `review` lists them."""
        return review(self)

    @cached_property
    def summary(self) -> Summary:
        """Mean and spread of each column."""
        return self.points.summary

    @cached_property
    def profiles(self) -> "Profiles":
        """How each class differs from all points together."""
        points = self.points
        levels = [points.level_names(place) for place in range(len(points.columns))]
        return profiles(points.X, self.labels, self.n_classes, self.summary, points.columns, levels)

    @cached_property
    def sizes(self) -> Ints:
        """Number of points in each class."""
        labels = np.asarray(self.labels)
        return np.bincount(labels[labels >= 0], minlength=self.n_classes)

    @property
    def n_noise(self) -> int:
        """Number of points that belong to no class."""
        return len(self.labels) - int(self.sizes.sum())

    @property
    def mixture(self) -> Any:
        """The mixture whose EM steps can be shown, or None."""
        model = getattr(self.model, "best_estimator_", self.model)
        return model if hasattr(model, "log_likelihood_trace_") else None


@dataclass(frozen=True)
class Confidence:
    """How probable the labels are, each given its point alone: calibrated, if the model is.

    Attributes
    ----------
    means : ndarray of shape (n_classes,)
        Mean over each class; 0 for an empty one.
    mean : float
        Mean over all points of a class.
    unsure : ndarray of int, shape (n_classes,)
        Number of points in each class with a label less probable than `UNSURE`.
    counts : ndarray of int
        Number of points between consecutive `EDGES`.
    """

    means: Floats
    mean: float
    unsure: Ints
    counts: Ints


@dataclass(frozen=True)
class Profiles:
    """How each class differs from all points together, trait by trait: means of numbers and shares of levels.

    Attributes
    ----------
    means : ndarray of shape (n_classes, n_traits)
        Means of the classes, or shares of a level; NaN where a class has no value.
    center : ndarray of shape (n_traits,)
        Means and shares of all points.
    differences : ndarray of shape (n_classes, n_traits)
        Differences in standard deviations of all points; 0 for a constant column or a class without values.
    names : tuple of str
        Names of the traits, such as "age" and "plan = gold".
    places : tuple of int
        The column that each trait is of.
    shares : tuple of bool
        Whether a trait is the share of a level.
    """

    means: Floats
    center: Floats
    differences: Floats
    names: tuple[str, ...] = ()
    places: tuple[int, ...] = ()
    shares: tuple[bool, ...] = ()

    def top(self, m: int, at_most: int) -> list[int]:
        """The traits that set a class apart the most, one of each column at most."""
        found: dict[int, int] = {}
        for trait in np.argsort(-np.abs(self.differences[m]), kind="stable").tolist():
            found.setdefault(self.places[trait], trait)
            if len(found) == at_most:
                break
        return list(found.values())


def profiles(
    X: Floats,
    labels: Ints,
    n_classes: int,
    summary: Summary,
    columns: Sequence[str] = (),
    levels: Sequence[tuple[str, ...]] = (),
) -> Profiles:
    """Means of the classes, and how far they are from the means of all points.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Points; NaN stands for a missing value.
    labels : ndarray of shape (n_samples,)
        Class numbers; -1 counts in no class.
    n_classes : int
        Number of classes.
    summary : Summary
        ``summarise(X)``.
    columns : sequence of str
        Names of the columns.
    levels : sequence of tuple of str
        Names of the levels of each column of codes, nothing for a column of numbers; by default all are numbers.

    Returns
    -------
    Profiles

    Examples
    --------
    >>> from linkmix.data.summary import summarise
    >>> X = np.array([[1.0, 5.0], [1.0, 5.0], [3.0, 5.0], [3.0, np.nan]])
    >>> found = profiles(X, np.array([0, 0, 1, 1]), 2, summarise(X))
    >>> found.means.tolist(), found.differences.tolist()
    ([[1.0, 5.0], [3.0, 5.0]], [[-1.0, 0.0], [1.0, 0.0]])
    >>> codes = np.array([[0.0], [0.0], [1.0], [0.0]])
    >>> found = profiles(codes, np.array([0, 0, 1, 1]), 2, summarise(codes), ["plan"], [("free", "gold")])
    >>> found.names, found.means.tolist(), found.center.tolist()
    (('plan = free', 'plan = gold'), [[1.0, 0.0], [0.5, 0.5]], [0.75, 0.25])
    """
    d = X.shape[1]
    columns, levels = columns or [str(j) for j in range(d)], levels or [()] * d
    counts, sums = np.zeros((n_classes, d)), np.zeros((n_classes, d))
    tallies = {j: np.zeros((n_classes, len(levels[j]))) for j in range(d) if levels[j]}
    for first, block in _numbered(X):
        classes = labels[first : first + len(block)]
        for j, known in enumerate(~np.isnan(block.T) & (classes >= 0)):
            some, values = classes[known], block[known, j]
            if j in tallies:
                size = n_classes * len(levels[j])
                pairs = some * len(levels[j]) + values.astype(np.int64)
                tallies[j] += np.bincount(pairs, minlength=size).reshape(n_classes, -1)
            else:
                counts[:, j] += np.bincount(some, minlength=n_classes)
                sums[:, j] += np.bincount(some, weights=values - summary.mean[j], minlength=n_classes)
    shifts = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    differences = np.where((counts == 0) | summary.constant, 0.0, shifts / summary.scale)
    parts = []  # of each column: means, center, differences, names
    for j, name in enumerate(columns):
        if j in tallies:
            parts.append((*_shares(tallies[j]), [f"{name} = {_cut(level)}" for level in levels[j]]))
        else:
            mean = summary.mean[j : j + 1]
            parts.append((mean + shifts[:, [j]], mean, differences[:, [j]], [name]))
    return Profiles(
        np.concatenate([part[0] for part in parts], axis=1),
        np.concatenate([part[1] for part in parts]),
        np.concatenate([part[2] for part in parts], axis=1),
        tuple(name for part in parts for name in part[3]),
        tuple(j for j, part in enumerate(parts) for _ in part[3]),
        tuple(j in tallies for j, part in enumerate(parts) for _ in part[3]),
    )


def traits(profiles: Profiles, m: int, at_most: int = 3) -> list[str]:
    """What sets a class apart: numbers in standard deviations, levels by their share.

    Examples
    --------
    >>> from linkmix.data.summary import summarise
    >>> X = np.array([[1.0, 0.0], [2.0, 0.0], [9.0, 0.0], [8.0, 1.0]])
    >>> names = ["age", "plan"], [(), ("free", "gold")]
    >>> traits(profiles(X, np.array([0, 0, 1, 1]), 2, summarise(X), *names), 1)
    ['age +1.0', 'plan = free 50 % (overall 75 %)']
    """
    said = []
    for trait in profiles.top(m, at_most):
        if not profiles.differences[m, trait]:
            continue
        if profiles.shares[trait]:
            share, overall = 100 * profiles.means[m, trait], 100 * profiles.center[trait]
            said.append(f"{profiles.names[trait]} {share:.0f} % (overall {overall:.0f} %)")
        else:
            said.append(f"{profiles.names[trait]} {profiles.differences[m, trait]:+.1f}")
    return said


def _cut(level: str) -> str:
    return level if len(level) <= LONGEST_LEVEL else f"{level[: LONGEST_LEVEL - 3]}..."


def _shares(tally: Floats) -> tuple[Floats, Floats, Floats]:
    """Shares of levels in each class and in all, and their differences in standard deviations."""
    n = tally.sum(axis=1, keepdims=True)
    shares = np.divide(tally, n, out=np.full_like(tally, np.nan), where=n > 0)
    center = tally.sum(axis=0) / max(tally.sum(), 1)
    spread = np.sqrt(center * (1 - center))
    differences = np.divide(shares - center, spread, out=np.zeros_like(shares), where=(spread > 0) & (n > 0))
    return shares, center, differences


def _numbered(X: Floats) -> Iterator[tuple[int, Floats]]:
    """Blocks of rows, each with the number of its first row."""
    first = 0
    for block in map(np.asarray, Blocks.from_array(X)):
        yield first, block
        first += len(block)


def review(result: Result) -> Array:
    """All links, each pair once per kind: those that the labels break first, then the ones most likely to be wrong.

    Parameters
    ----------
    result : Result
        A fit.

    Returns
    -------
    structured ndarray
        ``a``, ``b``, ``is_must``, ``holds`` (for the labels), ``holds_alone`` (for labels from the points alone, which
        are those of ``predict``) and ``probability_wrong``, which is NaN if the method does not estimate it.
    """
    links = Links(result.links.must, result.links.cannot).distinct()  # whoever said so
    table = np.empty(links.n_must + links.n_cannot, dtype=LINK)
    ends = np.concatenate([links.must, links.cannot])  # (n_links, 2)
    table["a"], table["b"] = ends.T
    table["is_must"] = np.arange(len(table)) < links.n_must
    labels = result.labels[ends]
    alone = labels_alone(result, ends)
    for name, pairs in (("holds", labels), ("holds_alone", alone)):
        # Two points of no class are not in one class, but a must-link may hold them together.
        same = (pairs[:, 0] == pairs[:, 1]) & (table["is_must"] | (pairs[:, 0] >= 0))
        table[name] = same == table["is_must"]
    wrong: dict[tuple[int, int, bool], float] = {}
    for a, b, kind, p in getattr(result.model, "links_to_review_", ()):  # the most suspicious first
        wrong.setdefault((int(a), int(b), kind == "must"), float(p))
    table["probability_wrong"] = [
        wrong.get(key, np.nan) for key in zip(*(table[name].tolist() for name in ("a", "b", "is_must")), strict=True)
    ]
    return np.asarray(table[np.lexsort((table["holds_alone"], -table["probability_wrong"], table["holds"]))])


def labels_alone(result: Result, rows: Ints) -> Ints:
    """Labels of some points from these alone, without links; those of the fit, if the method gives no probabilities."""
    if result.probabilities is None:
        return np.asarray(result.labels[rows])
    found = np.asarray(result.probabilities[rows].argmax(axis=-1))
    return found if result.noise is None else np.where(result.noise[rows] > 0.5, -1, found)


def noise_in_words(n_noise: int, n_points: int) -> str:
    """How many points belong to no class.

    Examples
    --------
    >>> print(noise_in_words(17, 607))
    17 points (2.8 %) belong to no class (label -1).
    """
    verb = "belongs" if n_noise == 1 else "belong"
    return f"{count(n_noise, 'point')} ({100 * n_noise / n_points:.1f} %) {verb} to no class (label -1)."


def links_in_words(result: Result) -> str:
    """How many links there are, and how many of them the labels and the points alone satisfy."""
    table = result.link_table
    n_must = int(table["is_must"].sum())
    said = f"{count(len(table), 'link')} ({n_must:,} must, {len(table) - n_must:,} cannot); "
    said += f"satisfied by the labels: {share_of(table['holds'])}"
    if result.probabilities is not None:
        said += f"; by the points alone: {share_of(table['holds_alone'])}"
    reliability = getattr(result.mixture, "annotator_reliability_", {})
    if reliability:
        right = ", ".join(f"{who or 'no name'} {100 * share:.0f} %" for who, share in reliability.items())
        said += f". Some links seem wrong, so none is taken as certain. Estimated share of right ones: {right}"
    return f"{said}."


def share_of(holds: Array) -> str:
    """How many hold, also as a percentage."""
    return f"{int(holds.sum()):,} ({percent(holds)})"


def percent(holds: Array) -> str:
    """Percentage that holds; 0 or 100 only if none or all do.

    Examples
    --------
    >>> percent(np.array([True] * 999 + [False])), percent(np.array([True, True]))
    ('99 %', '100 %')
    """
    rounded = round(100 * float(holds.mean()))
    return f"{rounded if holds.all() or not holds.any() else min(max(rounded, 1), 99)} %"
