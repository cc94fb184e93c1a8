"""Our strategy: ask about what is large, far from any answer and doubtful, and find its class in few questions.

Rows of one class form neighbourhoods. Without a question, each class of the first model has a tentative one. A new row
is chosen from the cell with the most mass that is far from any answer and doubtful; its neighbourhood is found by
asking about the likeliest one first, and if there is none it founds one.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from linkmix.basics.arrays import Floats, Ints
from linkmix.queries.state import Answer, State, squared_distances

Pair = tuple[int, int]
NEW = 0.1
"""With less weight left on neighbourhoods that a row may belong to, it founds one."""
EARLY = 40
"""For so many answers doubt counts for more and distance for less. Later the model is sure of itself also where it is
wrong, far from any answer. Not where answers may be wrong: those about doubtful points can not be checked."""
DOUBT, EARLY_DOUBT = 0.2, 0.02
"""Share of mass times distance that counts where there is no doubt at all."""
MERGE_TURNS = 9
"""On so many of ten turns neighbourhoods are merged, as long as there are more of them than classes."""


@dataclass
class Open:
    """A row whose neighbourhood is being looked for."""

    prior: dict[int, float]  # weight of each neighbourhood
    different: list[int] = field(default_factory=list)  # rows that it is not of one class with


class Neighbourhoods:
    """All that answers say about neighbourhoods, each of which is named by one of its rows."""

    def __init__(self, state: State) -> None:
        self.Z = state.ground.Z
        self.n_classes = state.ground.n_classes
        self.of: dict[int, int] = {}
        self.members: dict[int, list[int]] = {}
        self.apart: dict[int, set[int]] = {}
        self.open: dict[int, Open] = {}
        self.given_up: set[int] = set()
        for row in state.tentative:
            self._found(row)
        for answer in state.answers:
            self._take(answer)

    @property
    def complete(self) -> bool:
        """Whether every class has been seen: as many neighbourhoods as classes, and all of them differ."""
        n = len(self.members)
        return n == self.n_classes and all(len(self.apart[g]) == n - 1 for g in self.members)

    def distances(self, row: int) -> dict[int, float]:
        """Squared distance of a row to the nearest member of each neighbourhood."""
        rows = [r for members in self.members.values() for r in members]
        first = np.cumsum([0, *(len(members) for members in self.members.values())][:-1])
        squares = ((self.Z[rows] - self.Z[row]) ** 2).sum(axis=1)
        return dict(zip(self.members, np.minimum.reduceat(squares, first).tolist(), strict=True))

    def excluded(self, row: int) -> set[int]:
        """Neighbourhoods that an open row can not belong to."""
        return {self.of[other] for other in self.open[row].different} if row in self.open else set()

    def _take(self, answer: Answer) -> None:
        a, b, said = answer
        if said not in ("same", "different"):
            self.given_up.update(row for row in (a, b) if row not in self.of and row not in self.open)
            return
        if b not in self.of and a in self.of:
            a, b = b, a
        if b not in self.of:
            self._settle(b, b)
        if a in self.of:
            self._relate(self.of[a], self.of[b], said == "same")
            return
        if a not in self.open:
            self.open[a] = Open(self._prior(a))
        if said == "same":
            self._settle(a, self.of[b])
            return
        self.open[a].different.append(b)
        left = self.members.keys() - self.excluded(a)
        if self.complete:
            if len(left) == 1:  # it follows, and need not be asked
                self._settle(a, next(iter(left)))
        elif sum(weight for g, weight in self.open[a].prior.items() if g in left) < NEW:
            self._settle(a, a)

    def _prior(self, row: int) -> dict[int, float]:
        squares = self.distances(row)
        nearest = max(min(squares.values()), 1e-12)
        weights = {g: float(np.exp(-(d - nearest) / nearest)) for g, d in squares.items()}
        total = sum(weights.values())
        return {g: w / total for g, w in weights.items()}

    def _settle(self, row: int, g: int) -> None:
        """Put a row into a neighbourhood, which may be its own."""
        before = self.open.pop(row, None)
        if g == row:
            self._found(row)
        else:
            self.of[row] = g
            self.members[g].append(row)
        for other in before.different if before else ():
            self._relate(self.of[row], self.of[other], same=False)

    def _found(self, row: int) -> None:
        self.of[row] = row
        self.members[row] = [row]
        self.apart[row] = set()

    def _relate(self, one: int, other: int, same: bool) -> None:
        if one == other:
            return
        if not same:
            self.apart[one].add(other)
            self.apart[other].add(one)
        elif other not in self.apart[one]:  # what contradicts an earlier answer is left out
            self._merge(one, other)

    def _merge(self, one: int, other: int) -> None:
        for row in self.members[other]:
            self.of[row] = one
        self.members[one] += self.members.pop(other)
        for third in self.apart.pop(other):
            self.apart[third].discard(other)
            self.apart[third].add(one)
            self.apart[one].add(third)
        for found in self.open.values():
            found.prior[one] = found.prior.get(one, 0.0) + found.prior.pop(other, 0.0)


def cover(state: State) -> Pair | None:
    """Ask about what is large, far from any answer and doubtful; then about its neighbourhood, the likeliest first.

    Parameters
    ----------
    state : State

    Returns
    -------
    tuple of int, or None
        Two rows; None if nothing is left to ask.
    """
    known = Neighbourhoods(state)
    aside = state.set_aside()
    turn = sum(answer.said in ("same", "different") for answer in state.answers)
    merging = len(known.members) > state.ground.n_classes and turn % 10 < MERGE_TURNS
    questions = (
        *(_placing(state, known, row) for row in reversed(list(known.open))),
        *([_merging(known)] if merging else []),
    )
    for question in questions:
        for pair in question:
            if _key(*pair) not in aside:
                return pair
    left = np.setdiff1d(state.ground.candidates, np.array([*known.of, *known.open, *known.given_up], dtype=np.int64))
    while len(left):
        row = _largest(state, known, left)
        for pair in _placing(state, known, row):
            if _key(*pair) not in aside:
                return pair
        left = left[left != row]
    return next((pair for pair in _merging(known) if _key(*pair) not in aside), None)


def _key(one: int, other: int) -> Pair:
    return (one, other) if one < other else (other, one)


def _largest(state: State, known: Neighbourhoods, left: Ints) -> int:
    """The middle of the cell with the most mass times distance times doubt."""
    cell, centres = state.ground.cells
    place = np.searchsorted(state.ground.candidates, left)
    Z = state.ground.Z
    answered = np.array([*known.of, *known.open], dtype=np.int64)
    squares = squared_distances(Z[left], Z[answered]).min(axis=1) if len(answered) else np.ones(len(left))
    if len(state.answers) < EARLY and not state.ground.wrong:
        weights = np.sqrt(squares) * (EARLY_DOUBT + state.entropy(left))
    else:
        weights = squares * (DOUBT + state.entropy(left))
    score: Floats = np.bincount(cell[place], weights=weights, minlength=len(centres)).astype(np.float64)
    score[np.bincount(cell[place], minlength=len(centres)) == 0] = -1.0
    best = int(np.argmax(score))
    rows = left[cell[place] == best]
    return int(rows[np.argmin(((Z[rows] - centres[best]) ** 2).sum(axis=1))])


def _placing(state: State, known: Neighbourhoods, row: int) -> Iterable[Pair]:
    """Questions about the neighbourhood of a row, the likeliest first, each beside its nearest member."""
    if not known.members:
        others = state.ground.candidates[state.ground.candidates != row]
        near = others[np.argsort(((known.Z[others] - known.Z[row]) ** 2).sum(axis=1), kind="stable")]
        yield from ((row, int(other)) for other in near)
        return
    squares = known.distances(row)
    nearest = max(min(squares.values()), 1e-12)
    excluded = known.excluded(row)
    p = state.probabilities

    def order(g: int) -> float:
        together = float(p[row] @ p[known.members[g]].mean(axis=0))
        return together + 0.5 * float(np.exp(-0.5 * (squares[g] - nearest) / nearest))

    for g in sorted(known.members.keys() - excluded, key=order, reverse=True):
        members = np.array(known.members[g])
        near = members[np.argsort(((known.Z[members] - known.Z[row]) ** 2).sum(axis=1), kind="stable")]
        yield from ((row, int(member)) for member in near)


def _merging(known: Neighbourhoods) -> Iterable[Pair]:
    """Closest rows of neighbourhoods of which it is not known whether they are of one class."""
    names = list(known.members)
    rows = np.array([row for g in names for row in known.members[g]], dtype=np.int64)
    group = np.repeat(np.arange(len(names)), [len(known.members[g]) for g in names])
    unknown = np.zeros((len(names), len(names)), dtype=bool)
    for i, a in enumerate(names):
        for j, b in enumerate(names[:i]):
            unknown[i, j] = b not in known.apart[a]
    one, other = np.nonzero(unknown[group[:, None], group])
    squares = ((known.Z[rows[one]] - known.Z[rows[other]]) ** 2).sum(axis=1)
    for k in np.argsort(squares, kind="stable"):
        yield int(rows[one[k]]), int(rows[other[k]])


def seeds(state: State) -> tuple[dict[int, int], list[int]]:
    """Neighbourhood of each answered row, and the neighbourhoods to seed the classes with.

    Seeds are those known to differ from each other, the largest first, then the others.
    """
    known = Neighbourhoods(state)
    order = sorted(known.members, key=lambda g: -len(known.members[g]))
    chosen: list[int] = []
    for g in order:
        if len(chosen) < state.ground.n_classes and all(other in known.apart[g] for other in chosen):
            chosen.append(g)
    chosen += [g for g in order if g not in chosen][: state.ground.n_classes - len(chosen)]
    return known.of, chosen
