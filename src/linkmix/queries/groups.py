"""Groups of rows in the same class, and which groups are known to differ: union-find with cannot-links."""

from collections.abc import Callable
from copy import copy
from typing import Generic, Protocol, Self, TypeVar

from linkmix.queries.answers import Answer, Said

RECENT = 8
"""Number of folds that are cached: enough for undo, for other pages and for a batch of questions."""


class Groups:
    """Groups of rows known to be in the same class, and which groups are known to be in different classes.

    Attributes
    ----------
    of : dict of int to int
        Group of each row. A group is named by one of its rows.
    members : dict of int to list of int
        Rows of each group.
    apart : dict of int to set of int
        For each group, the groups known to differ from it.
    """

    def __init__(self) -> None:
        self.of: dict[int, int] = {}
        self.members: dict[int, list[int]] = {}
        self.apart: dict[int, set[int]] = {}

    def copy(self) -> Self:
        """An independent copy."""
        other = copy(self)
        other.of = self.of.copy()
        other.members = {g: rows.copy() for g, rows in self.members.items()}
        other.apart = {g: groups.copy() for g, groups in self.apart.items()}
        return other

    def found(self, row: int) -> None:
        """Start a new group with a row that is in none."""
        self.of[row] = row
        self.members[row] = [row]
        self.apart[row] = set()

    def join(self, row: int, group: int) -> None:
        """Add a row that is in no group to one."""
        self.of[row] = group
        self.members[group].append(row)

    def relate(self, one: int, other: int, same: bool) -> bool:
        """Merge the second group into the first, or record that they differ.

        Returns
        -------
        bool
            Whether this is consistent with what was known. If not, nothing changes.
        """
        if one == other:
            return same
        if not same:
            self.apart[one].add(other)
            self.apart[other].add(one)
            return True
        if other in self.apart[one]:
            return False
        for row in self.members[other]:
            self.of[row] = one
        self.members[one] += self.members.pop(other)
        for third in self.apart.pop(other):
            self.apart[third].discard(other)
            self.apart[third].add(one)
            self.apart[one].add(third)
        return True


class Known(Groups):
    """What the answers say and imply. An answer that contradicts earlier ones is left out.

    Attributes
    ----------
    kept : list of Answer
        Links that do not contradict each other, and those that are not certain.

    Examples
    --------
    >>> known = Known()
    >>> for answer in (Answer(0, 1, "same"), Answer(1, 2, "different"), Answer(0, 2, "same")):
    ...     known.take(answer)
    >>> known.relation(0, 2), known.relation(0, 3), len(known.kept)
    ('different', None, 2)
    """

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Answer] = []

    def copy(self) -> Self:
        """An independent copy."""
        other = super().copy()
        other.kept = self.kept.copy()
        return other

    def take(self, answer: Answer) -> None:
        """Process one answer."""
        if not answer.is_link:
            return
        if answer.confidence is not None and answer.confidence < 1:  # it may be wrong, so nothing follows from it
            self.kept.append(answer)
            return
        for row in (answer.a, answer.b):
            if row not in self.of:
                self.found(row)
        one, other = self.of[answer.a], self.of[answer.b]
        if len(self.members[one]) < len(self.members[other]):  # union by size: few rows change their group
            one, other = other, one
        if self.relate(one, other, answer.said == "same"):
            self.kept.append(answer)

    def relation(self, a: int, b: int) -> Said | None:
        """What is known about two rows; None if nothing is."""
        if a == b:
            return "same"
        if a not in self.of or b not in self.of:
            return None
        one, other = self.of[a], self.of[b]
        return "same" if one == other else "different" if other in self.apart[one] else None


class Fold(Protocol):
    """A state that is updated by one answer after another."""

    def take(self, answer: Answer) -> None:
        """Process one answer."""

    def copy(self) -> Self:
        """An independent copy."""


F = TypeVar("F", bound=Fold)


class Recent(Generic[F]):
    """A cache of folds of recent lists of answers. A list that extends one of them is folded from there on.

    A fold is never changed once it has been returned, so several threads can read it.

    Parameters
    ----------
    new : callable
        Creates the fold of an empty list.
    """

    def __init__(self, new: Callable[[], F]) -> None:
        self._new = new
        self._kept: list[tuple[tuple[Answer, ...], F]] = []

    def after(self, answers: tuple[Answer, ...]) -> F:
        """The fold of these answers."""
        fitting = [one for one in self._kept if answers[: len(one[0])] == one[0]]
        taken, fold = max(fitting, key=lambda one: len(one[0]), default=((), None))
        if fold is None or len(taken) < len(answers):
            fold = self._new() if fold is None else fold.copy()
            for answer in answers[len(taken) :]:
                fold.take(answer)
            self._kept = [(answers, fold), *self._kept][:RECENT]
        return fold
