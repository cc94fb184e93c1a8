"""What a strategy sees: points, answers and what the present model thinks."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import pairwise_distances_argmin

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.queries.answers import Answer, Pair, Said
from linkmix.queries.groups import F, Known, Recent
from linkmix.queries.settings import QuestionSettings


@dataclass(frozen=True, eq=False)
class Ground:
    """What does not change while questions are asked. Compared by identity, so that it can be a key.

    Attributes
    ----------
    Z : ndarray of shape (n_samples, n_features)
        Points without gaps, columns with unit variance.
    candidates : ndarray of shape (n_candidates,)
        Rows that a strategy may ask about.
    n_classes : int
    wrong : float
        Share of answers that are expected to be wrong.
    seed : int
    settings : QuestionSettings
        The tuned constants.
    """

    Z: Floats
    candidates: Ints
    n_classes: int
    wrong: float = 0.0
    seed: int = 0
    settings: QuestionSettings = field(default_factory=QuestionSettings)
    _recent: dict[Hashable, Recent[Any]] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def cells(self) -> tuple[Ints, Floats]:
        """Cell of each candidate, and the centres of the cells."""
        points = self.Z[self.candidates]
        n_cells = max(1, min(self.settings.cells, len(points) // 2))
        means = MiniBatchKMeans(n_cells, n_init=1, random_state=self.seed, batch_size=1024).fit(points).cluster_centers_
        return np.asarray(pairwise_distances_argmin(points, means), dtype=np.int64), np.asarray(means)


@dataclass(frozen=True)
class State:
    """All that the choice of the next question depends on.

    Attributes
    ----------
    ground : Ground
    answers : tuple of Answer
        All answers so far, in their order. Links that were given come first.
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
        """A source of random numbers that depends on the seed and on the number of answers."""
        return np.random.RandomState((self.ground.seed * 7919 + len(self.answers)) % 2**31)

    def with_answer(self, a: int, b: int, said: Said) -> "State":
        """The state after one more answer."""
        return replace(self, answers=(*self.answers, Answer(a, b, said)))

    def fold(self, name: Hashable, new: Callable[[], F]) -> F:
        """What the answers come to, if ``new()`` takes them in one by one.

        Parameters
        ----------
        name : hashable
            What is folded. Recent results of this name are kept: only answers that are new have to be taken in.
        new : callable
            Makes the fold of no answers.

        Returns
        -------
        The fold. Others see it too: it must not be changed.
        """
        recent: Recent[F] = self.ground._recent.setdefault(name, Recent(new))
        return recent.after(self.answers)

    @property
    def known(self) -> Known:
        """What the answers say and what follows from them."""
        return self.fold("known", Known)

    def set_aside(self) -> set[Pair]:
        """Pairs that must not be asked about: somebody is unsure, or has just skipped them."""
        recent = len(self.answers) - self.ground.settings.skipped_for
        return {
            answer.pair
            for i, answer in enumerate(self.answers)
            if answer.said == "unsure" or (answer.said == "skip" and i >= recent)
        }

    def expected(self, a: int, b: int) -> Said:
        """The answer that the model expects."""
        return "same" if self.probabilities[a] @ self.probabilities[b] > 0.5 else "different"

    def entropy(self, rows: Ints) -> Floats:
        """Entropy of the class of each row, as a share of the largest possible one."""
        p = self.probabilities[rows]
        nats = -(p * np.log(np.maximum(p, 1e-300))).sum(axis=1)
        return np.asarray(nats / np.log(max(2, p.shape[1])))


def squared_distances(A: Array, B: Array) -> Floats:
    """Squared distances between all rows of two arrays, shape (len(A), len(B))."""
    squares = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2 * A @ B.T
    return np.asarray(np.maximum(squares, 0.0))
