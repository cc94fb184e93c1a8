"""Our strategy: ask about what is large, far from any answer and doubtful, and find its class in few questions.

Rows of one class form neighbourhoods. A new row is chosen from the cell with the most mass that is far from any answer
and doubtful; its neighbourhood is found by asking about the likeliest one first. Where answers may be wrong, each of
them is evidence, and a row is asked about again until its place is sure enough.
"""

from dataclasses import dataclass, field

import numpy as np

from linkmix.arrays import Floats, Ints
from linkmix.queries.state import Answer, State, squared_distances

Pair = tuple[int, int]
SURE = 0.93
"""A row has its place, and two neighbourhoods are one or not, when this is so probable."""
NEW = 0.1
"""Weight of a class that has not been seen, against all that have."""
LEAST_WRONG = 1e-6
DOUBT = 0.2
"""Share of mass times distance that counts where there is no doubt at all."""
MERGE_TURNS = 9
"""On so many of ten turns neighbourhoods are merged, as long as there are more of them than classes."""


@dataclass
class Open:
    """A row whose neighbourhood is being looked for."""

    prior: dict[int, float]  # of each neighbourhood
    answers: list[tuple[int, bool]] = field(default_factory=list)  # row, and whether it is of the same class


class Neighbourhoods:
    """All that answers say about neighbourhoods."""

    def __init__(self, state: State) -> None:
        self.Z = state.ground.Z
        self.n_classes = state.ground.n_classes
        self.wrong = max(state.ground.wrong, LEAST_WRONG)
        self.of: dict[int, int] = {}
        self.members: dict[int, list[int]] = {}
        self.odds: dict[tuple[int, int], float] = {}  # log-odds that two neighbourhoods are of one class
        self.open: dict[int, Open] = {}
        self.asked: set[Pair] = set()
        self.given_up: set[int] = set()
        for row in state.tentative:
            if row not in self.of:
                self._found(row)
        for answer in state.answers:
            self._take(answer)

    @property
    def step(self) -> float:
        """Log-odds that one answer is worth."""
        return float(np.log((1 - self.wrong) / self.wrong))

    def differ(self, one: int, other: int) -> bool:
        """Whether two neighbourhoods are known to be of different classes."""
        return self.probability(one, other) < 1 - SURE

    def probability(self, one: int, other: int) -> float:
        """Probability that two neighbourhoods are of one class, from answers alone."""
        return float(1 / (1 + np.exp(-self.odds.get((min(one, other), max(one, other)), 0.0))))

    def complete(self) -> bool:
        """Whether every class has been seen: as many neighbourhoods as classes, and all of them differ."""
        names = list(self.members)
        return len(names) == self.n_classes and all(self.differ(a, b) for i, a in enumerate(names) for b in names[:i])

    def distances(self, row: int) -> dict[int, float]:
        """Squared distance of a row to the nearest member of each neighbourhood."""
        rows = [r for members in self.members.values() for r in members]
        names = np.repeat(list(self.members), [len(m) for m in self.members.values()])
        squares = ((self.Z[rows] - self.Z[row]) ** 2).sum(axis=1)
        return {g: float(squares[names == g].min()) for g in self.members}

    def posterior(self, row: int) -> tuple[dict[int, float], float]:
        """Probability of each neighbourhood for an open row, and of a class that has not been seen."""
        found = self.open[row]
        weights = {g: found.prior.get(g, 0.0) for g in self.members}
        new = 1e-3 if self.complete() else NEW
        for other, same in found.answers:
            asked = self.of[other]
            for g in weights:
                if g == asked:
                    weights[g] *= 1 - self.wrong if same else self.wrong
                else:
                    together = self.probability(g, asked) if not self.differ(g, asked) and g != asked else 0.0
                    together = 0.0 if not self.odds.get((min(g, asked), max(g, asked))) else together
                    like = together * (1 - self.wrong) + (1 - together) * self.wrong
                    weights[g] *= like if same else 1 - like
            new *= self.wrong if same else 1 - self.wrong
        total = sum(weights.values()) + new
        return {g: w / total for g, w in weights.items()}, new / total

    def _take(self, answer: Answer) -> None:
        a, b, said = answer
        pair = (min(a, b), max(a, b))
        self.asked.add(pair)
        if said not in ("same", "different"):
            for row in (a, b):
                if row not in self.of and row not in self.open:
                    self.given_up.add(row)
            return
        if b not in self.of and a in self.of:
            a, b = b, a
        if b not in self.of:
            self.open.pop(b, None)
            self._found(b)
        if a in self.of:
            self._relate(self.of[a], self.of[b], said == "same")
        else:
            if a not in self.open:
                self.open[a] = Open(self._prior(a))
            self.open[a].answers.append((b, said == "same"))
            self._try_to_place(a)

    def _prior(self, row: int) -> dict[int, float]:
        squares = self.distances(row)
        nearest = max(min(squares.values()), 1e-12)
        weights = {g: float(np.exp(-(d - nearest) / nearest)) for g, d in squares.items()}
        total = sum(weights.values())
        return {g: w / total for g, w in weights.items()}

    def _try_to_place(self, row: int) -> None:
        belongs, new = self.posterior(row)
        best = max(belongs, key=lambda g: belongs[g])
        if belongs[best] >= SURE:
            self.of[row] = best
            self.members[best].append(row)
        elif new > 0.5:
            self._found(row)
        else:
            return
        for other, same in self.open.pop(row).answers:
            if self.of[other] != self.of[row]:
                self._relate(self.of[row], self.of[other], same)

    def _found(self, row: int) -> None:
        self.of[row] = row
        self.members[row] = [row]

    def _relate(self, one: int, other: int, same: bool) -> None:
        if one == other:
            return
        key = (min(one, other), max(one, other))
        self.odds[key] = self.odds.get(key, 0.0) + (self.step if same else -self.step)
        if self.probability(*key) >= SURE:
            self._merge(*key)

    def _merge(self, one: int, other: int) -> None:
        for row in self.members[other]:
            self.of[row] = one
        self.members[one] += self.members.pop(other)
        for found in self.open.values():
            found.prior[one] = found.prior.get(one, 0.0) + found.prior.pop(other, 0.0)
        for key in [key for key in self.odds if other in key]:
            value = self.odds.pop(key)
            third = key[0] if key[1] == other else key[1]
            if third != one:
                new = (min(one, third), max(one, third))
                self.odds[new] = self.odds.get(new, 0.0) + value


def cover(state: State) -> Pair | None:
    """What is large, far from any answer and doubtful; and then its neighbourhood, the likeliest first."""
    known = Neighbourhoods(state)
    aside = state.set_aside()
    turn = sum(answer.said in ("same", "different") for answer in state.answers)
    if state.answers:
        for row in reversed(list(known.open)):
            if (pair := _placing(state, known, aside, row)) is not None:
                return pair
    if len(known.members) > known.n_classes and turn % 10 < MERGE_TURNS:
        if (pair := _merging(known, aside)) is not None:
            return pair
    left = _left(state, known)
    while len(left):
        row = _largest(state, known, left)
        if (pair := _placing(state, known, aside, row)) is not None:
            return pair
        left = left[left != row]
    return _merging(known, aside)


def _left(state: State, known: Neighbourhoods) -> Ints:
    taken = np.array([*known.of, *known.open, *known.given_up], dtype=np.int64)
    return np.setdiff1d(state.ground.candidates, taken)


def _largest(state: State, known: Neighbourhoods, left: Ints) -> int:
    """The middle of the cell with the most mass times distance times doubt."""
    cell, centres = state.ground.cells
    place = np.searchsorted(state.ground.candidates, left)
    Z = state.ground.Z
    answered = np.array([*known.of, *known.open], dtype=np.int64)
    far = squared_distances(Z[left], Z[answered]).min(axis=1) if len(answered) else np.ones(len(left))
    score = np.bincount(cell[place], weights=far * (DOUBT + state.entropy(left)), minlength=len(centres))
    inside = cell[place] == np.argmax(score)
    rows = left[inside] if inside.any() else left
    return int(rows[np.argmin(((Z[rows] - centres[np.argmax(score)]) ** 2).sum(axis=1))])


def _placing(state: State, known: Neighbourhoods, aside: set[Pair], row: int) -> Pair | None:
    """The next question about the neighbourhood of a row; None if there is none to ask."""
    if not known.members:
        others = state.ground.candidates[state.ground.candidates != row]
        return (
            (row, int(others[np.argmin(((known.Z[others] - known.Z[row]) ** 2).sum(axis=1))])) if len(others) else None
        )
    squares = known.distances(row)
    nearest = max(min(squares.values()), 1e-12)
    belongs = known.posterior(row)[0] if row in known.open else known._prior(row)
    asked = {known.of[other] for other, _ in known.open[row].answers} if row in known.open else set()
    certain = known.wrong <= LEAST_WRONG

    def order(g: int) -> float:
        together = float(state.probabilities[row] @ state.probabilities[known.members[g]].mean(axis=0))
        value = together + 0.5 * float(np.exp(-0.5 * (squares[g] - nearest) / nearest))
        return value * belongs[g] / max(known._prior(row)[g], 1e-12) if not certain else value

    for g in sorted(known.members, key=order, reverse=True):
        if certain and (g in asked or any(known.differ(g, other) is False and g == other for other in asked)):
            continue
        members = np.array(known.members[g])
        for member in members[np.argsort(((known.Z[members] - known.Z[row]) ** 2).sum(axis=1))].tolist():
            pair = (min(row, member), max(row, member))
            if pair not in aside and pair not in known.asked:
                return row, member
    return None


def _merging(known: Neighbourhoods, aside: set[Pair]) -> Pair | None:
    """The closest two rows of neighbourhoods of which it is not known whether they are of one class."""
    names = list(known.members)
    rows = np.array([row for g in names for row in known.members[g]], dtype=np.int64)
    group = np.repeat(np.arange(len(names)), [len(known.members[g]) for g in names])
    unknown = np.zeros((len(names), len(names)), dtype=bool)
    for i, a in enumerate(names):
        for j, b in enumerate(names[:i]):
            unknown[i, j] = not known.differ(a, b)
    squares = np.where(unknown[group[:, None], group], squared_distances(known.Z[rows], known.Z[rows]), np.inf)
    for flat in np.argsort(squares, axis=None, kind="stable"):
        i, j = divmod(int(flat), len(rows))
        if not np.isfinite(squares[i, j]):
            return None
        a, b = int(rows[i]), int(rows[j])
        if (min(a, b), max(a, b)) not in aside and (min(a, b), max(a, b)) not in known.asked:
            return a, b
    return None


def seeds(state: State) -> tuple[dict[int, int], list[int]]:
    """Neighbourhood of each answered row, and neighbourhoods to seed the classes with.

    Seeds are those known to differ from each other, the largest first, then the others.
    """
    known = Neighbourhoods(state)
    order = sorted(known.members, key=lambda g: -len(known.members[g]))
    chosen: list[int] = []
    for g in order:
        if len(chosen) < known.n_classes and all(known.differ(g, other) for other in chosen):
            chosen.append(g)
    for g in order:
        if len(chosen) < known.n_classes and g not in chosen:
            chosen.append(g)
    return known.of, chosen


def _entropy(p: Floats) -> float:
    return float(-(p * np.log(np.maximum(p, 1e-300))).sum())
