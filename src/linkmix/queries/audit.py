"""An audit: questions about random pairs, whose answers tell how good labels are.

Pairs that a strategy chooses are harder than others, or easier, so the share of them that labels get right says little.
An audit draws pairs at random, those that the labels put together and those that they keep apart in proportion. What is
known already is not asked: it is counted.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.random import RandomState

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.links import Links
from linkmix.mixture.calibration import Quality

if TYPE_CHECKING:
    from linkmix.queries.groups import Known

N_QUESTIONS = 20
"""Default number of questions: the mean error is then .04, and 40 questions bring it to .03 (benchmarks.audit)."""
RESERVE = 2
"""Pairs in reserve for each question, for answers that say nothing."""
EXPECTED = 0.9
"""The estimate, not the interval, counts one more answer of each kind, which is right to this degree."""
N_DRAWS = 10_000
"""Draws from the posterior by which the interval is found."""


@dataclass(frozen=True)
class Audit:
    """Random pairs, how labels judge them, and what was said about them so far.

    "Same" comes before "different" wherever there are two numbers.

    Attributes
    ----------
    pairs : tuple of (int, int)
        Pairs in the order of the questions, the smaller row first. Those at the end are in reserve.
    judged_same : tuple of bool
        Whether the labels put each pair together.
    wanted : tuple of int
        Number of answers about pairs that are judged same, and that are judged different.
    unknown : tuple of float
        Shares of all pairs of points: those judged same, and those judged different, about which nothing is known.
    known : tuple of two tuples of float
        Shares of all pairs that are known: by what they are known to be, then by what they are judged.
    said : mapping of pair to str
        What was said about pairs: "same", "different", "unsure" or "skip".

    Examples
    --------
    >>> audit = draw(np.repeat([0, 1], 20), 8, RandomState(0))
    >>> audit.n, audit.wanted, len(audit.pairs)
    (8, (4, 4), 24)
    >>> for _ in range(8):
    ...     [(a, b)] = audit.next()
    ...     audit = audit.after({(a, b): "same" if (a < 20) == (b < 20) else "different"})
    >>> print(audit.quality)
    About 98 % of all pairs are judged as you would (73 to 100 %), from 8 questions about random pairs, measured before
    their answers were used.
    """

    pairs: tuple[tuple[int, int], ...]
    judged_same: tuple[bool, ...]
    wanted: tuple[int, int]
    unknown: tuple[float, float]
    known: tuple[tuple[float, float], tuple[float, float]] = ((0.0, 0.0), (0.0, 0.0))
    said: Mapping[tuple[int, int], str] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Number of questions."""
        return sum(self.wanted)

    @property
    def n_answered(self) -> int:
        """Number of questions that were answered, without "unsure" and "skip"."""
        return int(self._counts().sum())

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to ask."""
        return not self.next()

    def next(self, q: int = 1) -> list[tuple[int, int]]:
        """At most ``q`` pairs to ask about. "unsure" and "skip" are replaced by another pair that is judged alike."""
        missing = np.array(self.wanted) - self._counts().sum(axis=0)
        pairs: list[tuple[int, int]] = []
        for pair, same in zip(self.pairs, self.judged_same, strict=True):
            kind = 0 if same else 1
            if len(pairs) < q and missing[kind] > 0 and pair not in self.said:
                missing[kind] -= 1
                pairs.append(pair)
        return pairs

    def after(self, said: Mapping[tuple[int, int], Any]) -> Self:
        """The audit after more answers; those about other pairs are left out."""
        mine = set(self.pairs)
        return replace(self, said={**self.said, **{pair: word for pair, word in said.items() if pair in mine}})

    @cached_property
    def quality(self) -> Quality | None:
        """The share of all pairs that is judged right, from the answers so far; None without any."""
        counts = self._counts()
        if not counts.any():
            return None
        right, total = counts.diagonal(), counts.sum(axis=0)
        known, unknown = np.array(self.known), np.array(self.unknown)
        known_wrong = float(known[0, 1] + known[1, 0])
        estimate = (right + EXPECTED) / (total + 1)
        low, high = interval(right, total, unknown, known_wrong)
        same = float(known[:, 0].sum() + unknown[0])
        truly_same = float(known[0].sum() + unknown @ [estimate[0], 1 - estimate[1]])
        by_chance = same * truly_same + (1 - same) * (1 - truly_same)
        pairs_right = 1 - known_wrong - float(unknown @ (1 - estimate))
        return Quality(pairs_right, low, high, by_chance, int(total.sum()), "audit")

    def _counts(self) -> Ints:
        """Number of answers by what was said, then by what the pair is judged, shape (2, 2)."""
        counts = np.zeros((2, 2), dtype=np.int64)
        for pair, same in zip(self.pairs, self.judged_same, strict=True):
            if (said := self.said.get(pair)) in ("same", "different"):
                counts[0 if said == "same" else 1, 0 if same else 1] += 1
        return counts


def interval(right: Array, total: Array, shares: Array, known_wrong: float = 0.0) -> tuple[float, float]:
    """A 90 % interval for the share of all pairs that are judged right, from random pairs of each kind.

    It uses answers alone, and no opinion of a model: with one, it would cover far too seldom.

    Parameters
    ----------
    right, total : array-like of int, shape (n_kinds,)
        Number of answers that are right, and of all answers.
    shares : array-like of float, shape (n_kinds,)
        Share of each kind in all pairs; the rest of them is known.
    known_wrong : float, default=0.0
        Share of the pairs that are known to be judged wrong.

    Returns
    -------
    low, high : float
        5 % and 95 % of the posterior, with Jeffreys' prior for each kind. If all answers of a kind are right, its
        share counts as 1 for the upper end, since a prior without an atom at 1 would exclude perfect labels.

    Examples
    --------
    >>> [round(end, 2) for end in interval([7, 12], [7, 13], [0.3, 0.7])]
    [0.79, 0.99]
    """
    right, total, shares = np.asarray(right), np.asarray(total), np.asarray(shares)
    wrong = RandomState(0).beta(total - right + 0.5, right + 0.5, size=(N_DRAWS, len(right)))
    most, least = np.quantile(wrong @ shares, 0.95), np.quantile(np.where(right == total, 0.0, wrong) @ shares, 0.05)
    return float(1 - known_wrong - most), float(1 - known_wrong - least)  # exactly 1 if nothing is wrong


def draw(
    labels: Ints,
    n: int,
    random: RandomState,
    known: "Known | None" = None,
    is_open: Callable[[int, int], bool] = lambda a, b: True,
) -> Audit:
    """Draw random pairs to ask about.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,)
        The labels to be measured. Points of no class, of label -1, are neither asked about nor counted.
    n : int
        Number of questions; fewer if there are not that many pairs.
    random : RandomState
        Source of the draw.
    known : Known, optional
        What is known of rows; these pairs are counted and not asked about.
    is_open : callable, optional
        Whether a pair may be asked about.

    Returns
    -------
    Audit

    Examples
    --------
    >>> from linkmix.queries.answers import Answer
    >>> from linkmix.queries.groups import Known
    >>> known = Known()
    >>> known.take(Answer(0, 1, "same"))
    >>> audit = draw(np.array([0, 0, 0, 1]), 20, RandomState(0), known)
    >>> sorted(audit.pairs), audit.wanted
    ([(0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], (2, 3))
    >>> np.round([*audit.unknown, *audit.known[0]], 2).tolist()
    [0.33, 0.5, 0.17, 0.0]
    """
    sizes = np.bincount(labels[labels >= 0]).astype(np.float64)
    n_rows = float(sizes.sum())
    n_same = float((sizes * (sizes - 1)).sum() / 2)
    n_pairs = n_rows * (n_rows - 1) / 2
    all_pairs = np.array([n_same, n_pairs - n_same])
    known_pairs = np.zeros((2, 2)) if known is None else _known_pairs(labels, known)
    unknown = all_pairs - known_pairs.sum(axis=0)

    def may_ask(pair: tuple[int, int]) -> bool:
        return (known is None or known.relation(*pair) is None) and is_open(*pair)

    drawn = [
        _draw_pairs(labels, kind, int(all_pairs[i]), (1 + RESERVE) * n, random, may_ask)
        for i, kind in enumerate(("must", "cannot"))
    ]
    wanted = _split(n, unknown, drawn)
    first = random.permutation(np.repeat([0, 1], wanted)).tolist()
    reserves = [kind for kind in (0, 1) for _ in range(min(RESERVE * wanted[kind], len(drawn[kind]) - wanted[kind]))]
    place = [iter(pairs) for pairs in drawn]
    kinds = first + reserves
    (same_same, same_different), (different_same, different_different) = (known_pairs / n_pairs).tolist()
    return Audit(
        tuple(next(place[kind]) for kind in kinds),
        tuple(kind == 0 for kind in kinds),
        wanted,
        tuple((unknown / n_pairs).tolist()),
        ((same_same, same_different), (different_same, different_different)),
    )


def _split(n: int, unknown: Floats, drawn: Sequence[Sequence[object]]) -> tuple[int, int]:
    """Number of questions of each kind: in proportion, and at least one of each where there are pairs."""
    n = min(n, sum(map(len, drawn)))
    least, most = min(1, len(drawn[0])), min(len(drawn[0]), n - min(1, len(drawn[1])))
    same = round(n * float(unknown[0]) / max(float(unknown.sum()), 1.0))
    same = max(min(max(same, least), most), n - len(drawn[1]))
    return same, n - same


def _draw_pairs(
    labels: Ints, kind: Any, n_pairs: int, n: int, random: RandomState, may_ask: Callable[[tuple[int, int]], bool]
) -> list[tuple[int, int]]:
    """At most ``n`` different pairs of one kind, all equally likely, in random order."""
    n_drawn = n
    while True:
        n_drawn = min(2 * n_drawn, n_pairs)
        links = Links.from_labels(labels.tolist(), n_drawn, kind=kind, random_state=random)
        pairs = random.permutation(links.must if kind == "must" else links.cannot).tolist()
        found = [(a, b) for a, b in pairs if may_ask((a, b))]
        if len(found) >= n or n_drawn == n_pairs:
            return found[:n]


def _known_pairs(labels: Ints, known: "Known") -> Floats:
    """Number of known pairs: by what they are known to be, then by what the labels judge, shape (2, 2)."""
    of_class = {group: labels[rows][labels[rows] >= 0] for group, rows in known.members.items()}
    counts = {group: np.bincount(own, minlength=labels.max() + 1) for group, own in of_class.items()}
    found = np.zeros((2, 2))
    for group, mine in counts.items():
        size = float(mine.sum())
        together = float((mine * (mine - 1)).sum() / 2)
        found[0] += together, size * (size - 1) / 2 - together
        for other in known.apart[group]:
            if group < other:
                together = float(mine @ counts[other])
                found[1] += together, size * float(counts[other].sum()) - together
    return found
