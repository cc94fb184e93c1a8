"""What a strategy sees: points, answers and what the present model thinks, all of it frozen."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, get_args

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import pairwise_distances_argmin

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.links import Links

Said = Literal["same", "different", "unsure", "skip"]
SAID: tuple[str, ...] = get_args(Said)
"""What can be answered. A pair of which one is unsure is not asked again; one that is skipped may be, later."""
SKIPPED_FOR = 20
"""So many answers later a skipped pair may be asked again."""
CELLS = 150
"""Cells that the points are parted into, at most half as many as points."""


class Answer(NamedTuple):
    """An answer about two rows."""

    a: int
    b: int
    said: Said


@dataclass(frozen=True)
class Ground:
    """What does not change while questions are asked.

    Attributes
    ----------
    Z : ndarray of shape (n_samples, n_features)
        Points without gaps, columns with unit variance.
    candidates : ndarray of shape (n_candidates,)
        Rows that may be asked about of their own accord.
    n_classes : int
    wrong : float
        Share of the answers that is expected to be wrong.
    seed : int
    """

    Z: Floats
    candidates: Ints
    n_classes: int
    wrong: float = 0.0
    seed: int = 0

    @cached_property
    def cells(self) -> tuple[Ints, Floats]:
        """Cell of each candidate, and the centres of the cells."""
        points = self.Z[self.candidates]
        n_cells = max(1, min(CELLS, len(points) // 2))
        means = MiniBatchKMeans(n_cells, n_init=1, random_state=self.seed, batch_size=1024).fit(points).cluster_centers_
        return np.asarray(pairwise_distances_argmin(points, means), dtype=np.int64), np.asarray(means)


@dataclass(frozen=True)
class State:
    """All that the choice of the next question depends on.

    Attributes
    ----------
    ground : Ground
    answers : tuple of Answer
        All answers so far, links that were given at the beginning first.
    probabilities : ndarray of shape (n_samples, n_classes)
        What the present model thinks of each row, from the row alone.
    tentative : tuple of int
        A row in the middle of each class of the first model.
    """

    ground: Ground
    answers: tuple[Answer, ...]
    probabilities: Floats
    tentative: tuple[int, ...] = ()

    def random(self) -> np.random.RandomState:
        """A source of random numbers that depends on the seed and on how far we are."""
        return np.random.RandomState((self.ground.seed * 7919 + len(self.answers)) % 2**31)

    def with_answer(self, a: int, b: int, said: Said) -> "State":
        """The state after one more answer."""
        return State(self.ground, (*self.answers, Answer(a, b, said)), self.probabilities, self.tentative)

    def set_aside(self) -> set[tuple[int, int]]:
        """Pairs that are not to be asked: one is unsure, or has just skipped them."""
        recent = len(self.answers) - SKIPPED_FOR
        return {
            (min(a, b), max(a, b))
            for i, (a, b, said) in enumerate(self.answers)
            if said == "unsure" or (said == "skip" and i >= recent)
        }

    def expected(self, a: int, b: int) -> Said:
        """The answer that the model expects."""
        return "same" if self.probabilities[a] @ self.probabilities[b] > 0.5 else "different"

    def entropy(self, rows: Ints) -> Floats:
        """Entropy of the class of each row, as a share of the largest there can be."""
        p = self.probabilities[rows]
        nats = -(p * np.log(np.maximum(p, 1e-300))).sum(axis=1)
        return np.asarray(nats / np.log(max(2, p.shape[1])))


class Known:
    """What answers say, and what follows from them: groups of rows, and groups that are apart.

    An answer that contradicts what was known before is left out.
    """

    def __init__(self, answers: tuple[Answer, ...]) -> None:
        self._parent: dict[int, int] = {}
        self.members: dict[int, list[int]] = {}
        self.apart: dict[int, set[int]] = {}
        self.kept: list[Answer] = []
        for answer in answers:
            self.add(answer)

    def group(self, row: int) -> int:
        """Name of the group of a row, which may be alone."""
        if row not in self._parent:
            self._parent[row] = row
            self.members[row] = [row]
            self.apart[row] = set()
        while self._parent[row] != row:
            self._parent[row] = self._parent[self._parent[row]]
            row = self._parent[row]
        return row

    def add(self, answer: Answer) -> None:
        """Take an answer in."""
        if answer.said not in ("same", "different"):
            return
        a, b = self.group(answer.a), self.group(answer.b)
        if answer.said == "different":
            if a == b:
                return
            self.apart[a].add(b)
            self.apart[b].add(a)
        else:
            if b in self.apart[a]:
                return
            if a != b:
                self._merge(a, b)
        self.kept.append(answer)

    def _merge(self, a: int, b: int) -> None:
        if len(self.members[a]) < len(self.members[b]):
            a, b = b, a
        self._parent[b] = a
        self.members[a] += self.members.pop(b)
        for other in self.apart.pop(b):
            self.apart[other].discard(b)
            self.apart[other].add(a)
            self.apart[a].add(other)

    def relation(self, a: int, b: int) -> Said | None:
        """What is known of two rows; None if nothing is."""
        if a not in self._parent or b not in self._parent:
            return "same" if a == b else None
        one, other = self.group(a), self.group(b)
        if one == other:
            return "same"
        return "different" if other in self.apart[one] else None

    def links(self) -> Links:
        """The answers that do not contradict each other, as links."""
        return as_links(self.kept)


def as_links(answers: "list[Answer] | tuple[Answer, ...]") -> Links:
    """Answers as links; those that say nothing are left out."""
    return Links(
        [(a, b) for a, b, said in answers if said == "same"], [(a, b) for a, b, said in answers if said == "different"]
    )


def squared_distances(A: Array, B: Array) -> Floats:
    """Squared distances between all rows of two arrays, shape (len(A), len(B))."""
    squares = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2 * A @ B.T
    return np.asarray(np.maximum(squares, 0.0))
