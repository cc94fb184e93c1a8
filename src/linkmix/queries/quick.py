"""Questions about several rows at once, chosen by expected gain for each second of a person's time.

Rows and cells are those of `cover`. "Which of these is it like?" compares a row with several neighbourhoods at once,
and tells these apart as well. A group of cards confirms many rows of which the model is nearly sure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.queries.answers import Pair, pair_of
from linkmix.queries.cover import Neighbourhoods, cover, scored_cells
from linkmix.queries.questions import Kind, Question, seconds_for
from linkmix.queries.state import State, squared_distances

CLOSE = "These lie close together, and nobody has said yet whether they are of one class."
OPEN = "This point did not fit its likeliest class, so its class is still open."
DOUBTFUL = "The model is in doubt about this point and those around it."
UNSEEN = "This point lies in a large region without answers."
CONFIRM = "The model puts these points into one class, but few answers are near them."
IN_DOUBT = 0.5
"""Share of the largest entropy above which the reason given is doubt. It changes a sentence and no question."""


@dataclass(frozen=True, eq=False)
class _View:
    """The neighbourhoods and the rows that may be asked about."""

    state: State
    known: Neighbourhoods
    aside: set[Pair]
    kinds: tuple[Kind, ...]

    @cached_property
    def groups(self) -> list[int]:
        """Names of the neighbourhoods."""
        return list(self.known.members)

    @cached_property
    def members(self) -> Ints:
        """Rows of all neighbourhoods, one after the other."""
        return np.array([row for rows in self.known.members.values() for row in rows], dtype=np.int64)

    @cached_property
    def first(self) -> Ints:
        """Place of the first row of each neighbourhood in `members`."""
        return np.cumsum([0, *(len(rows) for rows in self.known.members.values())])[:-1]

    @cached_property
    def undecided(self) -> Array:
        """Whether two neighbourhoods may be of one class, shape (n_groups, n_groups)."""
        place = {g: i for i, g in enumerate(self.groups)}
        table = ~np.eye(len(self.groups), dtype=bool)
        for g, others in self.known.apart.items():
            table[place[g], [place[other] for other in others]] = False
        return table

    def belongs(self, rows: Ints) -> Floats:
        """Probability that each row belongs to each neighbourhood, by the model and by distance."""
        Z, p, settings = self.state.ground.Z, self.state.probabilities, self.state.ground.settings
        sizes = np.diff([*self.first, len(self.members)])[:, None]
        by_model = p[rows] @ (np.add.reduceat(p[self.members], self.first, axis=0) / sizes).T + 1e-9
        distance = np.sqrt(np.minimum.reduceat(squared_distances(Z[rows], Z[self.members]), self.first, axis=1))
        nearest = np.maximum(distance.min(axis=1, keepdims=True), 1e-9)
        by_distance = np.exp(-settings.falloff * (distance - nearest) / nearest)
        for table in (by_model, by_distance):
            table[self.excluded(rows)] = 0.0
            table /= np.maximum(table.sum(axis=1, keepdims=True), 1e-300)
        return np.asarray((1 - settings.by_distance) * by_model + settings.by_distance * by_distance)

    @property
    def most_cards(self) -> int:
        """How many neighbourhoods a row may be compared with at once."""
        return self.state.ground.settings.most_cards if "which" in self.kinds else 1

    def excluded(self, rows: Ints) -> Array:
        """Whether each row is known not to belong to each neighbourhood."""
        place = {g: i for i, g in enumerate(self.groups)}
        table = np.zeros((len(rows), len(self.groups)), dtype=bool)
        for i, row in enumerate(rows.tolist()):
            if row in self.known.open:
                table[i, [place[g] for g in self.known.excluded(row)]] = True
        return table

    def card(self, row: int, group: int) -> int | None:
        """The member of a neighbourhood to show beside a row: the nearest one that may be asked about."""
        Z = self.state.ground.Z
        rows = np.array([r for r in self.known.members[group] if pair_of(row, r) not in self.aside], dtype=np.int64)
        return int(rows[np.argmin(((Z[rows] - Z[row]) ** 2).sum(axis=1))]) if len(rows) else None


def quick(state: State, kinds: Sequence[Kind]) -> Question | None:
    """The next question, of any of some kinds.

    While there are more neighbourhoods than classes, the closest ones of which it is not known whether they are of one
    class come first; then, until all classes are known, rows that did not fit where they were. After that, the question
    with the largest expected gain for each second.

    Parameters
    ----------
    state : State
    kinds : sequence of {"pair", "which", "group"}
        Kinds that may be asked. Pairs alone are those of `cover`. Where none of these kinds helps, a pair is asked.

    Returns
    -------
    Question or None
        None if nothing is left to ask.
    """
    view = _View(state, Neighbourhoods.after(state), state.set_aside(), tuple(kinds))
    found = (_merge(view) or _place_open(view) or _best(view)) if view.groups and {*kinds} != {"pair"} else None
    if found is None and (pair := cover(state)) is not None:
        found = Question("pair", pair, _why(view, pair[0]), state.ground.settings.pair_seconds)
    return found


def _why(view: _View, row: int) -> str:
    """Why a row is compared with others."""
    if row in view.known.of:
        return CLOSE
    if row in view.known.open:
        return OPEN
    return DOUBTFUL if view.state.entropy(np.array([row]))[0] > IN_DOUBT else UNSEEN


def gain_of_placing(
    q: Floats, possible: Ints, undecided: Array, complete: bool, n_classes: int, news: Floats
) -> Floats:
    """Expected gain of comparing each row with its 1, 2, ... likeliest neighbourhoods.

    It counts the probability that the row is then placed, times the news of that, and the number of pairs of
    neighbourhoods that are then known to be apart and were not, as a share of those that a class has.

    Parameters
    ----------
    q : ndarray of shape (n_rows, n_cards)
        Probability that each row belongs to each neighbourhood, the likeliest first.
    possible : ndarray of shape (n_rows,)
        Number of neighbourhoods that each row may belong to.
    undecided : ndarray of shape (n_rows, n_cards, n_cards)
        Whether two of these neighbourhoods may be of one class.
    complete : bool
        Whether the neighbourhoods are all classes, so that what is no other is the last one.
    n_classes : int
    news : ndarray of shape (n_rows,)

    Returns
    -------
    ndarray of shape (n_rows, n_cards)
        For each number of cards.

    Examples
    --------
    >>> q, undecided = np.array([[0.7, 0.2, 0.1]]), np.ones((1, 3, 3), dtype=bool)
    >>> gain_of_placing(q, np.array([3]), undecided, False, 3, np.ones(1)).round(2).tolist()
    [[0.7, 1.35, 2.0]]
    """
    n_cards = np.arange(1, q.shape[1] + 1)
    placed = q.cumsum(axis=1)
    if complete:
        placed = np.where(n_cards >= possible[:, None] - 1, 1.0, placed)
    told = undecided & ~np.eye(q.shape[1], dtype=bool)
    both = np.tril(told).sum(axis=2), np.triu(told)
    told_apart = np.cumsum(q * both[0] + np.einsum("ri,rij->rj", q, both[1]), axis=1)
    return np.asarray(news[:, None] * placed + told_apart / max(1, n_classes - 1))


def gain_of_confirming(q: Floats, n_classes: int, news: Floats) -> Floats:
    """Expected gain of asking whether each row fits a neighbourhood.

    A row that does not fit gains what is known when one of many classes is ruled out.

    Parameters
    ----------
    q : ndarray of shape (n_rows,)
        Probability that each row belongs to the neighbourhood.
    n_classes : int
    news : ndarray of shape (n_rows,)

    Returns
    -------
    ndarray of shape (n_rows,)

    Examples
    --------
    >>> gain_of_confirming(np.array([1.0, 0.6]), 4, np.ones(2)).round(3).tolist()
    [1.0, 0.683]
    """
    ruled_out = 1.0 if n_classes < 3 else np.log(n_classes / (n_classes - 1)) / np.log(n_classes)
    return np.asarray(news * (q + (1 - q) * ruled_out))


def _merge(view: _View) -> Question | None:
    """Compare the closest undecided neighbourhoods, where there are more of them than classes."""
    settings = view.state.ground.settings
    turn = sum(answer.is_link for answer in view.state.answers)
    if len(view.groups) <= view.state.ground.n_classes or turn % 10 >= settings.merge_turns:
        return None
    Z, ends = view.state.ground.Z[view.members], np.append(view.first, len(view.members))
    between = squared_distances(Z, Z)
    nearest = np.minimum.reduceat(np.minimum.reduceat(between, view.first, axis=1), view.first, axis=0)
    nearest[~view.undecided] = np.inf
    for place in np.argsort(nearest, axis=None, kind="stable").tolist():
        two = divmod(place, len(view.groups))
        if nearest[two] == np.inf:
            break
        small, large = sorted(two, key=lambda g: int(ends[g + 1] - ends[g]))
        inside, others = slice(ends[small], ends[small + 1]), slice(ends[large], ends[large + 1])
        row = int(view.members[inside][between[inside, others].min(axis=1).argmin()])
        likely = np.argsort(nearest[small], kind="stable")[: min(view.most_cards, view.undecided[small].sum())]
        if question := _comparison(view, row, likely):
            return question
    return None


def _place_open(view: _View) -> Question | None:
    """Place the rows that did not fit where they were, until all classes are known."""
    if view.known.complete:
        return None
    for row in reversed(view.known.open):
        rows = np.array([row])
        rates, order = _rates(view, rows, np.ones(1), view.belongs(rows))
        if rates.max(initial=0.0) > 0 and (question := _comparison(view, row, order[0, : int(rates[0].argmax()) + 1])):
            return question
    return None


def _best(view: _View) -> Question | None:
    """The question with the largest gain for each second."""
    state, known, settings = view.state, view.known, view.state.ground.settings
    placed = np.array([*known.of, *known.open, *known.given_up, *state.nowhere], dtype=np.int64)
    left = np.setdiff1d(state.ground.candidates, placed)
    waiting = np.array([*known.open], dtype=np.int64)
    value, rows = scored_cells(state, known, left) if len(left) else (np.ones(0), left)
    value = np.append(value, np.full(len(waiting), value.max(initial=0.0) or 1.0))  # where the model was wrong
    rows = np.append(rows, waiting)
    if not len(rows):
        return None
    options: list[tuple[float, Question]] = []
    q = view.belongs(rows)
    rates, order = _rates(view, rows, value, q)
    for place in np.argsort(-rates, axis=None, kind="stable").tolist():
        i, k = divmod(place, rates.shape[1])
        if rates[i, k] <= 0:
            break
        if question := _comparison(view, int(rows[i]), order[i, : k + 1]):
            options.append((float(rates[i, k]), question))
            break
    if "group" in view.kinds:
        news = value * (settings.news - q.max(axis=1))
        options += [found for g in range(len(view.groups)) if (found := _group(view, g, rows, q[:, g], news))]
    return max(options, key=lambda option: option[0], default=(0.0, None))[1]


def _rates(view: _View, rows: Ints, value: Floats, q: Floats) -> tuple[Floats, Ints]:
    """Gain for each second of comparing rows with 1, 2, ... neighbourhoods, and the order of these."""
    settings, n_classes = view.state.ground.settings, view.state.ground.n_classes
    possible = (~view.excluded(rows)).sum(axis=1)
    order = np.argsort(-q, axis=1, kind="stable")[:, : min(view.most_cards, int(possible.max(initial=0)))]
    sorted_q = np.take_along_axis(q, order, axis=1)
    undecided = view.undecided[order[:, :, None], order[:, None, :]]
    news = settings.news - q.max(axis=1)
    gain = gain_of_placing(sorted_q, possible, undecided, view.known.complete, n_classes, news)
    seconds = [_seconds(view, k) for k in range(1, order.shape[1] + 1)]
    return np.where(sorted_q > 0, value[:, None] * gain / seconds, -1.0), order


def _kind(view: _View, n_cards: int) -> Kind:
    return "which" if "which" in view.kinds and (n_cards > 1 or "pair" not in view.kinds) else "pair"


def _seconds(view: _View, n_cards: int) -> float:
    return seconds_for(_kind(view, n_cards), n_cards + 1, view.state.ground.settings)


def _comparison(view: _View, row: int, groups: Ints) -> Question | None:
    """Compare a row with some neighbourhoods, in the order in which these were founded."""
    cards = [card for g in sorted(groups.tolist()) if (card := view.card(row, view.groups[g])) is not None]
    if not cards:
        return None
    return Question(_kind(view, len(cards)), (row, *cards), _why(view, row), _seconds(view, len(cards)))


def _group(view: _View, g: int, rows: Ints, q: Floats, news: Floats) -> tuple[float, Question] | None:
    """Cards that probably belong to a neighbourhood, and the gain for each second."""
    state, settings = view.state, view.state.ground.settings
    gain = gain_of_confirming(q, state.ground.n_classes, news)
    likely = np.flatnonzero(q >= settings.fit)
    likely = likely[np.argsort(-gain[likely], kind="stable")][: settings.group_cards]
    if not len(likely):
        return None
    members = np.array(view.known.members[view.groups[g]])
    Z = state.ground.Z
    anchor = int(members[squared_distances(Z[members], Z[rows[likely]]).sum(axis=1).argmin()])
    likely = likely[[pair_of(anchor, row) not in view.aside for row in rows[likely].tolist()]]
    if len(likely) < 2:
        return None
    seconds = seconds_for("group", len(likely) + 1, settings)
    cards = rows[likely].tolist()
    return float(gain[likely].sum()) / seconds, Question("group", (anchor, *cards), CONFIRM, seconds)
