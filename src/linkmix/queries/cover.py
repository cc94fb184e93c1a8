"""Our strategy: pick rows from large, uncertain regions far from any answer, and place each in few questions.

A neighbourhood is a set of rows known to be in the same class. Each class of the first model starts with a tentative
one, at no cost. The next row comes from the cell with the highest product of mass, distance to any answer and
uncertainty. It is compared with the likeliest neighbourhood first; a row that belongs to none founds a new one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from linkmix.basics.arrays import Floats, Ints
from linkmix.queries.answers import Answer, Pair, pair_of
from linkmix.queries.groups import Groups
from linkmix.queries.state import Ground, RowProbabilities, State, squared_distances


@dataclass(frozen=True)
class Open:
    """A row whose neighbourhood is not known yet."""

    prior: dict[int, float]  # weight of each neighbourhood
    different: tuple[int, ...] = ()  # rows known to be in another class


class Neighbourhoods(Groups):
    """The neighbourhoods that follow from the answers, each named by one of its rows."""

    def __init__(self, ground: Ground, tentative: Iterable[int]) -> None:
        super().__init__()
        self.Z = ground.Z
        self.n_classes = ground.n_classes
        self.unknown = ground.unknown
        self.n_apart = self.n_merged = 0  # answers about two neighbourhoods, by what they said
        self.in_vain, self.waited = 0, 0  # of these, how many in a row said "different"; answers since the last one
        self.new = ground.settings.new
        self.open: dict[int, Open] = {}
        self.given_up: set[int] = set()
        for row in tentative:
            self.found(row)

    @classmethod
    def after(cls, state: State) -> "Neighbourhoods":
        """The neighbourhoods after all answers. They are shared and must not be changed."""
        ground, tentative = state.ground, state.tentative  # the cached function must not keep the state alive
        return state.fold((cls, tentative), lambda: cls(ground, tentative))

    def copy(self) -> Self:
        """An independent copy."""
        other = super().copy()
        other.open = self.open.copy()
        other.given_up = self.given_up.copy()
        return other

    @property
    def complete(self) -> bool:
        """Whether every class has been seen: as many neighbourhoods as classes, and all of them differ."""
        n = len(self.members)
        return not self.unknown and n == self.n_classes and all(len(self.apart[g]) == n - 1 for g in self.members)

    def distances(self, row: int) -> dict[int, float]:
        """Squared distance of a row to the nearest member of each neighbourhood."""
        rows = [r for members in self.members.values() for r in members]
        first = np.cumsum([0, *(len(members) for members in self.members.values())][:-1])
        squares = ((self.Z[rows] - self.Z[row]) ** 2).sum(axis=1)
        return dict(zip(self.members, np.minimum.reduceat(squares, first).tolist(), strict=True))

    def excluded(self, row: int) -> set[int]:
        """Neighbourhoods that an open row cannot belong to."""
        return {self.of[other] for other in self.open[row].different} if row in self.open else set()

    def take(self, answer: Answer) -> None:
        """Process one answer."""
        a, b, said = answer
        if not answer.is_link:
            self.given_up.update(row for row in (a, b) if row not in self.of and row not in self.open)
            return
        self.waited += 1
        if b not in self.of and a in self.of:
            a, b = b, a
        if b not in self.of:
            self._settle(b, b)
        if a in self.of:
            self._compare(self.of[a], self.of[b], said == "same")
            return
        if said == "same":
            self._settle(a, self.of[b])
            return
        if a not in self.open:
            self.open[a] = Open(self._prior(a))
        self.open[a] = Open(self.open[a].prior, (*self.open[a].different, b))
        left = self.members.keys() - self.excluded(a)
        if self.complete:
            if len(left) == 1:  # no other class is possible
                self._settle(a, next(iter(left)))
        elif sum(weight for g, weight in self.open[a].prior.items() if g in left) < self.new:
            self._settle(a, a)

    def _compare(self, one: int, other: int, same: bool) -> None:
        """Process an answer about two neighbourhoods."""
        if one != other and other not in self.apart[one]:
            self.n_apart, self.n_merged = self.n_apart + (not same), self.n_merged + same
            self.in_vain, self.waited = 0 if same else self.in_vain + 1, 0
        self._relate(one, other, same)

    def _prior(self, row: int) -> dict[int, float]:
        squares = self.distances(row)
        nearest = max(min(squares.values()), 1e-12)
        weights = {g: float(np.exp(-(d - nearest) / nearest)) for g, d in squares.items()}
        total = sum(weights.values())
        return {g: w / total for g, w in weights.items()}

    def _settle(self, row: int, g: int) -> None:
        """Add a row to a neighbourhood, or found a new one with it."""
        before = self.open.pop(row, None)
        if g == row:
            self.found(row)
        else:
            self.join(row, g)
        for other in before.different if before else ():
            self._relate(self.of[row], self.of[other], same=False)

    def _relate(self, one: int, other: int, same: bool) -> None:
        if one != other and self.relate(one, other, same) and same:
            for row, found in self.open.items():
                if other in found.prior:
                    prior = found.prior.copy()
                    prior[one] = prior.get(one, 0.0) + prior.pop(other)
                    self.open[row] = Open(prior, found.different)


def cover(state: State) -> Pair | None:
    """Pick a row from a large, uncertain region far from any answer; then find its neighbourhood, likeliest first.

    Parameters
    ----------
    state : State

    Returns
    -------
    tuple of int, or None
        Two rows; None if nothing is left to ask.
    """
    known = Neighbourhoods.after(state)
    aside = state.set_aside()
    turn = sum(answer.is_link for answer in state.answers)
    settings = state.ground.settings
    too_many = len(known.members) > state.ground.n_classes and turn % 10 < settings.merge_turns
    if state.ground.unknown:  # there may be fewer classes
        too_many |= known.waited >= 2 ** min(known.in_vain, settings.most_in_vain) - 1
    questions = (
        *(_placing(state, known, row) for row in reversed(list(known.open))),
        *([merging(known)] if too_many else []),
    )
    for question in questions:
        for pair in question:
            if pair_of(*pair) not in aside:
                return pair
    placed = [*known.of, *known.open, *known.given_up, *state.nowhere]
    left = np.setdiff1d(state.ground.candidates, np.array(placed, dtype=np.int64))
    while len(left):
        row = _largest(state, known, left)
        for pair in _placing(state, known, row):
            if pair_of(*pair) not in aside:
                return pair
        left = left[left != row]
    return next((pair for pair in merging(known) if pair_of(*pair) not in aside), None)


def _largest(state: State, known: Neighbourhoods, left: Ints) -> int:
    """The central row of the cell with the largest mass times distance times uncertainty."""
    score, central = scored_cells(state, known, left)
    return int(central[np.argmax(score)])


def scored_cells(state: State, known: Neighbourhoods, left: Ints) -> tuple[Floats, Ints]:
    """Mass times distance times uncertainty of each cell, by the rows that are left in it, and its central row.

    Parameters
    ----------
    state : State
    known : Neighbourhoods
    left : ndarray of shape (n_left,)
        Candidates that may be asked about, in ascending order; at least one.

    Returns
    -------
    score : ndarray of shape (n_cells,)
        For cells with a row that is left.
    central : ndarray of shape (n_cells,)
        The row that is nearest to the centre of each of these cells.
    """
    cell, centres = state.ground.cells
    place = cell[np.searchsorted(state.ground.candidates, left)]
    Z, settings = state.ground.Z, state.ground.settings
    answered = np.array([*known.of, *known.open], dtype=np.int64)
    squares = squared_distances(Z[left], Z[answered]).min(axis=1) if len(answered) else np.ones(len(left))
    if len(state.answers) < settings.early and not state.ground.wrong:
        weights = np.sqrt(squares) * (settings.early_doubt + state.entropy(left))
    else:
        weights = squares * (settings.doubt + state.entropy(left))
    score = np.bincount(place, weights=weights, minlength=len(centres)).astype(np.float64)
    off_centre = ((Z[left] - centres[place]) ** 2).sum(axis=1)
    order = np.lexsort((off_centre, place))
    used, first = np.unique(place[order], return_index=True)
    return score[used], left[order[first]]


def _placing(state: State, known: Neighbourhoods, row: int) -> Iterable[Pair]:
    """Pairs that compare a row with each neighbourhood, likeliest first, and with its nearest members first."""
    if not known.members:
        others = np.setdiff1d(state.ground.candidates, [row, *state.nowhere])
        near = others[np.argsort(((known.Z[others] - known.Z[row]) ** 2).sum(axis=1), kind="stable")]
        yield from ((row, int(other)) for other in near)
        return
    squares = known.distances(row)
    nearest = max(min(squares.values()), 1e-12)
    excluded = known.excluded(row)
    p, nearness = state.probabilities, state.ground.settings.nearness

    def order(g: int) -> float:
        together = float(p[row] @ p[known.members[g]].mean(axis=0))
        return together + nearness * float(np.exp(-0.5 * (squares[g] - nearest) / nearest))

    for g in sorted(known.members.keys() - excluded, key=order, reverse=True):
        members = np.array(known.members[g])
        near = members[np.argsort(((known.Z[members] - known.Z[row]) ** 2).sum(axis=1), kind="stable")]
        yield from ((row, int(member)) for member in near)


def merging(known: Neighbourhoods) -> Iterable[Pair]:
    """Pairs of rows from neighbourhoods that may still be in the same class, closest first."""
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

    The seeds are neighbourhoods known to differ from each other, largest first, then the others.
    """
    known = Neighbourhoods.after(state)
    order = sorted(known.members, key=lambda g: -len(known.members[g]))
    chosen: list[int] = []
    for g in order:
        if len(chosen) < state.ground.n_classes and all(other in known.apart[g] for other in chosen):
            chosen.append(g)
    chosen += [g for g in order if g not in chosen][: state.ground.n_classes - len(chosen)]
    return known.of, chosen


def leaders(ground: Ground, probabilities: RowProbabilities) -> tuple[int, ...]:
    """For each class, the central row of the cell that holds most of its mass."""
    cell, centres = ground.cells
    p = probabilities[ground.candidates]
    mass = np.stack([np.bincount(cell, weights=column, minlength=len(centres)) for column in p.T])  # (M, C)
    rows = []
    for m in range(ground.n_classes):
        inside = ground.candidates[cell == np.argmax(mass[m])]
        centre = centres[np.argmax(mass[m])]
        rows.append(int(inside[np.argmin(((ground.Z[inside] - centre) ** 2).sum(axis=1))]))
    return tuple(dict.fromkeys(rows))
