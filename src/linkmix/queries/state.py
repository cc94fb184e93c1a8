"""What a strategy sees: the points, the answers and the class probabilities of the current model."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import pairwise_distances_argmin

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.queries.answers import Answer, Pair, Said, as_links
from linkmix.queries.groups import F, Known, Recent
from linkmix.queries.settings import QuestionSettings


@dataclass(frozen=True, eq=False)
class Ground:
    """What does not change between two refits. Compared by identity, so it can be a dictionary key.

    Attributes
    ----------
    Z : ndarray of shape (n_samples, n_dimensions)
        Points without gaps, columns with unit variance, by which distances are measured.
    candidates : ndarray of shape (n_candidates,)
        Rows that a strategy may ask about.
    n_classes : int
    wrong : float
        Share of answers that are expected to be wrong.
    seed : int
    settings : QuestionSettings
        The tuned constants.
    noise : bool
        Whether rows may belong to no class.
    unknown : bool
        Whether the number of classes is not known, so that ``n_classes`` is a guess.
    """

    Z: Floats
    candidates: Ints
    n_classes: int
    wrong: float = 0.0
    seed: int = 0
    settings: QuestionSettings = field(default_factory=QuestionSettings)
    noise: bool = False
    unknown: bool = False
    _recent: dict[Hashable, Recent[Any]] = field(default_factory=dict, init=False, repr=False)

    def with_classes(self, n_classes: int, unknown: bool) -> "Ground":
        """The same ground for another number of classes."""
        if (n_classes, unknown) == (self.n_classes, self.unknown):
            return self
        other = replace(self, n_classes=n_classes, unknown=unknown)
        other.__dict__.update({name: self.__dict__[name] for name in ("cells",) if name in self.__dict__})
        return other

    @cached_property
    def cells(self) -> tuple[Ints, Floats]:
        """Cell of each candidate, and the centres of the cells."""
        points = self.Z[self.candidates]
        n_cells = max(1, min(self.settings.cells, len(points) // 2))
        means = MiniBatchKMeans(n_cells, n_init=1, random_state=self.seed, batch_size=1024).fit(points).cluster_centers_
        return np.asarray(pairwise_distances_argmin(points, means), dtype=np.int64), np.asarray(means)


@dataclass(frozen=True, eq=False)
class RowProbabilities:
    """Class probabilities of rows: of some from a table, of all others computed when they are asked for.

    Indexed by row numbers like an array of shape (n_samples, n_classes), which for many points and classes would not
    fit into memory.

    Attributes
    ----------
    rows : ndarray of shape (n_rows,)
        The rows in the table, in ascending order.
    table : ndarray of shape (n_rows, n_classes)
    compute : callable
        Gives the probabilities of any rows.

    Examples
    --------
    >>> table = np.array([[1.0, 0.0], [0.5, 0.5]])
    >>> p = RowProbabilities(np.array([2, 5]), table, lambda rows: np.zeros((len(rows), 2)))
    >>> p[5].tolist(), p[[2, 3]].tolist()
    ([0.5, 0.5], [[1.0, 0.0], [0.0, 0.0]])
    """

    rows: Ints
    table: Floats
    compute: Callable[[Ints], Floats]

    def __getitem__(self, rows: int | Sequence[int] | Ints) -> Floats:
        """Class probabilities of a row, or of several."""
        wanted = np.atleast_1d(np.asarray(rows, dtype=np.int64))
        place = np.minimum(np.searchsorted(self.rows, wanted), len(self.rows) - 1)
        found, others = self.table[place], self.rows[place] != wanted
        if others.any():
            found[others] = self.compute(wanted[others])
        return found.reshape(*np.shape(rows), found.shape[-1])


@dataclass(frozen=True)
class State:
    """Everything that the choice of the next question depends on.

    Attributes
    ----------
    ground : Ground
    answers : tuple of Answer
        All answers so far, in order. Given links come first.
    probabilities : RowProbabilities, or ndarray of shape (n_samples, n_classes)
        Class probabilities by the current model, from each row alone.
    tentative : tuple of int
        A central row of each class of the first model.
    nowhere : frozenset of int
        Rows that are known to belong to no class; no answer here is about them.
    """

    ground: Ground
    answers: tuple[Answer, ...]
    probabilities: RowProbabilities | Floats
    tentative: tuple[int, ...] = ()
    nowhere: frozenset[int] = frozenset()

    @classmethod
    def after(
        cls,
        ground: Ground,
        answers: Iterable[Answer],
        probabilities: RowProbabilities | Floats,
        tentative: Iterable[int] = (),
    ) -> "State":
        """The state after some answers, of which those about rows of no class are left out.

        What must link with such a row belongs to no class either.
        """
        said = [answer for answer in answers if answer.said != "nowhere"]
        known = {answer.a for answer in answers if answer.said == "nowhere"}
        if known:
            same = as_links(answer for answer in said if answer.said == "same").certain()
            group = same.chunklets(len(ground.Z))
            known = set(np.flatnonzero(np.isin(group, group[list(known)])).tolist())
        return cls(
            ground,
            tuple(answer for answer in said if not known & {answer.a, answer.b}),
            probabilities,
            tuple(row for row in tentative if row not in known),
            frozenset(known),
        )

    def random(self) -> np.random.RandomState:
        """A random number generator that depends only on the seed and the number of answers."""
        return np.random.RandomState((self.ground.seed * 7919 + len(self.answers)) % 2**31)

    def with_answer(self, a: int, b: int, said: Said) -> "State":
        """The state after one more answer."""
        return replace(self, answers=(*self.answers, Answer(a, b, said)))

    def fold(self, name: Hashable, new: Callable[[], F]) -> F:
        """The state that ``new()`` reaches by processing all answers one by one.

        Parameters
        ----------
        name : hashable
            Name of the cache. Recent results are kept under it, so only new answers have to be processed.
        new : callable
            Creates the state before any answer.

        Returns
        -------
        The state. It is shared and must not be changed.
        """
        recent: Recent[F] = self.ground._recent.setdefault(name, Recent(new))
        return recent.after(self.answers)

    @property
    def known(self) -> Known:
        """What the answers say and imply."""
        return self.fold("known", Known)

    def set_aside(self) -> set[Pair]:
        """Pairs not to ask about: someone was unsure about them or skipped them recently."""
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
        """Entropy of the class of each row, as a share of its maximum."""
        p = self.probabilities[rows]
        nats = -(p * np.log(np.maximum(p, 1e-300))).sum(axis=1)
        return np.asarray(nats / np.log(max(2, p.shape[1])))


def squared_distances(A: Array, B: Array) -> Floats:
    """Squared distances between all rows of two arrays, shape (len(A), len(B))."""
    squares = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2 * A @ B.T
    return np.asarray(np.maximum(squares, 0.0))
