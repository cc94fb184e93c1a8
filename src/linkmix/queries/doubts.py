"""Answers that may be wrong: which pairs to ask about again, and which answers to believe."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from scipy.special import expit, logit

from linkmix.basics.arrays import Floats
from linkmix.links import Links
from linkmix.queries.answers import Answer, Pair, as_links, by_pair, confidence, lead, pair_of
from linkmix.queries.consensus import same_without
from linkmix.queries.cover import Neighbourhoods
from linkmix.queries.groups import Known
from linkmix.queries.state import State, squared_distances

ROUNDS = 10
"""How often the error rates of people are computed in turn with what is true."""
LEAST_WRONG, MOST_WRONG = 0.01, 0.45
"""Bounds on the share of answers of a person that are wrong."""


def settled(state: State) -> tuple[State, Pair | None]:
    """The answers to believe, and a pair to ask about again.

    All answers together with the model say how likely each is to be wrong (`same_without`). One that is more likely
    wrong than right is not believed. One that may be wrong is tested by another question, if that is worth it: by the
    probability that it is wrong, times the number of rows that it alone holds together. If there are more
    neighbourhoods than classes and all are said to differ, one of these answers must be wrong, so each counts for more.
    A row that was said to differ from some and has no place yet is compared with others first, which tells as much.
    Of several people, answers count by how often each is right. If answers are always right, the first one settles it.

    Parameters
    ----------
    state : State
        With all answers.

    Returns
    -------
    state : State
        With one answer for each pair that is believed, in the order of the first answers.
    pair : tuple of int, or None
        A pair that tests the answer which is worth most to test; None if none is worth it.
    """
    if not state.ground.wrong:
        return state, None
    about, leads, wrong = _weighed(state)
    settings, believed = state.ground.settings, _believed(about, leads, wrong)
    in_vain = {pair for pair in about if pair not in believed and len(about[pair]) >= settings.most_times}
    in_order = dict.fromkeys(answer.pair if answer.is_link else answer for answer in state.answers)
    kept = [believed.get(one) if isinstance(one, tuple) else one for one in in_order]
    now = replace(state, answers=tuple(one for one in kept if one is not None), in_vain=frozenset(in_vain))
    worth = _worth(now, leads, wrong, [*believed.values()])
    least = settings.again * (1 + min(2.0, settings.tested_late / max(1, len(about))))  # at first, new rows teach more
    same = [pair for pair, one in believed.items() if one.said == "same"]
    for pair in sorted(worth, key=lambda pair: -worth[pair]):
        if worth[pair] < least:
            break
        if (again := _another(state, pair, about, same, leads[pair] > 0)) is not None:
            return now, again
    return now, None


def _weighed(state: State) -> tuple[dict[Pair, list[Answer]], dict[Pair, float], dict[Pair, float]]:
    """The answers about each pair, by how much "same" leads, and the probability that the majority is wrong."""
    about, weight = by_pair(state.answers), weights(state)
    leads = {pair: lead(answers, weight) for pair, answers in about.items()}
    settings, rows = state.ground.settings, sorted({row for pair in leads for row in pair})
    n_classes = state.ground.n_classes + state.ground.unknown
    prior = np.full((len(rows), n_classes), settings.model_wrong / n_classes)
    if rows:
        prior[:, : state.ground.n_classes] += (1 - settings.model_wrong) * state.probabilities[rows]
    evidence = np.array([*leads.values()]) * logit(1 - state.ground.wrong)
    same = np.clip(same_without([*leads], evidence, rows, prior), settings.most_sure, 1 - settings.most_sure)
    wrong = expit(np.where(evidence > 0, -1, 1) * (logit(same) + evidence))
    return about, leads, dict(zip(about, wrong.tolist(), strict=True))


def _believed(
    about: dict[Pair, list[Answer]], leads: dict[Pair, float], wrong: dict[Pair, float]
) -> dict[Pair, Answer]:
    """One answer for each pair whose majority is more likely right than wrong."""
    return {
        pair: Answer(answers[0].a, answers[0].b, "same" if leads[pair] > 0 else "different")
        for pair, answers in about.items()
        if leads[pair] and wrong[pair] <= 0.5
    }


def _worth(
    believing: State, leads: dict[Pair, float], wrong: dict[Pair, float], believed: list[Answer]
) -> dict[Pair, float]:
    """What it is worth to ask about pairs again: rows that are misplaced if the majority is wrong, on average."""
    ground, known = believing.ground, Neighbourhoods.after(believing)
    n, settings = len(known.members), ground.settings
    too_many = not ground.unknown and n > ground.n_classes
    crowded = too_many and all(len(others) == n - 1 for others in known.apart.values())
    holds = ("same",) if ground.n_classes > 2 or ground.unknown else ("same", "different")
    held = rows_held([one.pair for one in believed if one.said in holds])
    return {
        pair: wrong[pair] * max(settings.crowded if crowded and ahead < 0 else 1, held.get(pair, 1))
        for pair, ahead in leads.items()
        if ahead > 0 or not any(row in known.open for row in pair)
    }


def _another(state: State, pair: Pair, about: dict[Pair, list[Answer]], same: list[Pair], alike: bool) -> Pair | None:
    """A pair that tests an answer: two rows that are with its rows, the nearest ones that are new, or the pair itself.

    Whoever always answers the same pair alike is tested too. None if enough was asked between these rows.
    """
    settings, Z, aside = state.ground.settings, state.ground.Z, state.set_aside()
    neighbours: dict[int, set[int]] = {}
    for a, b in same:
        if (a, b) != pair:
            neighbours.setdefault(a, set()).add(b)
            neighbours.setdefault(b, set()).add(a)
    one, other = (_reached(row, neighbours) for row in pair)
    if not alike:  # the row with fewer others around it was to be placed
        one, other = sorted((one, other), key=len)
        one = {row for row in pair if row in one}
    if one & other:
        one, other = {pair[0]}, {pair[1]}
    between = [each for each in about if not one.isdisjoint(each) and not other.isdisjoint(each)]
    if sum(len(about[each]) for each in between) >= settings.most_times:
        return None
    left, right = sorted(one), sorted(other)
    for place in np.argsort(squared_distances(Z[left], Z[right]), axis=None, kind="stable").tolist():
        a, b = left[place // len(right)], right[place % len(right)]
        if pair_of(a, b) not in about and pair_of(a, b) not in aside:
            return a, b
    return None if pair in aside else (about[pair][0].a, about[pair][0].b)


def _reached(row: int, neighbours: dict[int, set[int]]) -> set[int]:
    """All rows that can be reached from one."""
    found, left = {row}, [row]
    while left:
        new = neighbours.get(left.pop(), set()) - found
        found |= new
        left += new
    return found


def rows_held(pairs: Iterable[Pair]) -> dict[Pair, int]:
    """For pairs that alone hold two sets of rows together, the number of rows in the smaller one.

    Examples
    --------
    Rows 0 to 2 are a triangle; 3 and 4 hang on it.

    >>> rows_held([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)])
    {(3, 4): 1, (2, 3): 2}
    """
    neighbours: dict[int, list[int]] = {}
    for a, b in pairs:
        neighbours.setdefault(a, []).append(b)
        neighbours.setdefault(b, []).append(a)
    found: dict[Pair, int] = {}
    order: dict[int, int] = {}
    lowest: dict[int, int] = {}
    size: dict[int, int] = {}
    for root in neighbours:
        if root in order:
            continue
        bridges = []
        order[root] = lowest[root] = len(order)
        size[root] = 1
        stack = [(root, root, iter(neighbours[root]))]
        while stack:
            row, above, others = stack[-1]
            for other in others:
                if other not in order:
                    order[other] = lowest[other] = len(order)
                    size[other] = 1
                    stack.append((other, row, iter(neighbours[other])))
                    break
                if other != above:
                    lowest[row] = min(lowest[row], order[other])
            else:
                stack.pop()
                if row != root:
                    lowest[above] = min(lowest[above], lowest[row])
                    size[above] += size[row]
                    if lowest[row] > order[above]:
                        bridges.append((pair_of(row, above), size[row]))
        found |= {pair: min(below, size[root] - below) for pair, below in bridges}
    return found


def weights(state: State) -> dict[str | None, float]:
    """How much the answers of each person count, in units of one answer of which the expected share is wrong.

    How often each of several people is wrong follows from what others say about the same pairs and from the model.

    Parameters
    ----------
    state : State
        With all answers, of which some may be wrong.

    Examples
    --------
    Row 1 is like row 0, and row 2 is not. Eva is right, Max is not.

    >>> from linkmix.queries.state import Ground
    >>> ground = Ground(np.zeros((3, 1)), np.arange(3), 2, wrong=0.1)
    >>> said = [Answer(0, 1, "same", "eva"), Answer(0, 2, "different", "eva"), Answer(1, 2, "different", "eva")]
    >>> said += [Answer(0, 1, "different", "max"), Answer(0, 2, "same", "max"), Answer(1, 2, "same", "max")]
    >>> found = weights(State(ground, tuple(said * 2), np.array([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9]])))
    >>> found["eva"] > 1 > found["max"] > 0
    True
    """
    links = [answer for answer in state.answers if answer.is_link]
    names = {answer.annotator: i for i, answer in enumerate({one.annotator: one for one in links}.values())}
    if len(names) < 2:
        return dict.fromkeys(names, 1.0)
    settings, wrong = state.ground.settings, state.ground.wrong
    pairs = {pair: k for k, pair in enumerate(dict.fromkeys(answer.pair for answer in links))}
    pair = np.array([pairs[answer.pair] for answer in links])
    who = np.array([names[answer.annotator] for answer in links])
    sign = np.array([1.0 if answer.said == "same" else -1.0 for answer in links])
    by_model = logit(np.clip(_together(state, [*pairs]), settings.again, 1 - settings.again))
    rate = np.full(len(names), wrong)
    for _ in range(ROUNDS):
        same = expit(by_model + np.bincount(pair, -sign * logit(rate)[who], len(pairs)))
        is_wrong = np.where(sign > 0, 1 - same[pair], same[pair])
        n_wrong, n_said = np.bincount(who, is_wrong), np.bincount(who)
        rate = (n_wrong + settings.prior_answers * wrong) / (n_said + settings.prior_answers)
        rate = np.clip(rate, LEAST_WRONG, MOST_WRONG)
    return {name: float(logit(rate[i]) / logit(wrong)) for name, i in names.items()}


def _together(state: State, pairs: list[Pair]) -> Floats:
    """Probability by the model that the rows of each pair are of one class."""
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return np.asarray(np.einsum("ij,ij->i", state.probabilities[ends[:, 0]], state.probabilities[ends[:, 1]]))


def believed_links(state: State, trust: float = 1.0) -> Links:
    """Answers as links, each with the probability that it is right.

    If answers may be wrong, the probability follows from the lead on each pair, and links that contradict each other
    are all kept: the points show which of them is wrong. If answers are always right, one that contradicts earlier ones
    is left out.

    Parameters
    ----------
    state : State
        With all answers.

    Returns
    -------
    Links

    Examples
    --------
    >>> from linkmix.queries.state import Ground
    >>> ground = Ground(np.zeros((4, 1)), np.arange(4), 2, wrong=0.1)
    >>> state = State(ground, (), np.full((4, 2), 0.5)).with_answer(0, 1, "same").with_answer(2, 3, "different")
    >>> links = believed_links(state.with_answer(1, 0, "same"))
    >>> links.must_confidence.round(3).tolist(), links.cannot_confidence.round(3).tolist()
    ([0.988], [0.9])
    """
    wrong = state.ground.wrong
    if not wrong:
        return as_links(state.known.kept)
    about = by_pair(state.answers)
    weight = weights(state)
    leads = {pair: lead(answers, weight) for pair, answers in about.items()}
    must, cannot = (
        {pair: confidence(n * sign * trust, wrong) for pair, n in leads.items() if n * sign > 0} for sign in (1, -1)
    )
    return Links(
        [*must],
        [*cannot],
        must_confidence=np.array([*must.values()]),
        cannot_confidence=np.array([*cannot.values()]),
        must_chosen=[all(one.chosen for one in about[pair]) for pair in must],
        cannot_chosen=[all(one.chosen for one in about[pair]) for pair in cannot],
    )


def consistent_links(state: State) -> Links:
    """Answers that are believed, as certain links. Of those that contradict each other, the surest are kept.

    Parameters
    ----------
    state : State
        With all answers.

    Returns
    -------
    Links

    Examples
    --------
    Two say that rows 0 and 1 are alike, one that 1 and 2 are; that 0 and 2 differ contradicts both.

    >>> from linkmix.queries.state import Ground
    >>> said = [(0, 1, "same"), (1, 0, "same"), (1, 2, "same"), (0, 2, "different"), (2, 0, "different")]
    >>> ground = Ground(np.zeros((3, 1)), np.arange(3), 2, wrong=0.1)
    >>> links = consistent_links(State(ground, tuple(Answer(*one) for one in said), np.full((3, 2), 0.5)))
    >>> links.must.tolist(), links.cannot.tolist()
    ([[0, 1]], [[0, 2]])
    """
    about, leads, wrong = _weighed(state)
    believed, known = _believed(about, leads, wrong), Known()
    for pair in sorted(believed, key=lambda pair: wrong[pair]):
        known.take(believed[pair])
    return as_links(known.kept)
