"""Answers that may be wrong: which pairs to ask about again, and which answers to believe."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from scipy.special import expit, logit

from linkmix.basics.arrays import Floats
from linkmix.links import Links
from linkmix.queries.answers import Answer, Pair, as_links, by_pair, confidence, lead, pair_of
from linkmix.queries.state import State

ROUNDS = 10
"""How often the error rates of people are computed in turn with what is true."""
LEAST_WRONG, MOST_WRONG = 0.01, 0.45
"""Bounds on the share of answers of a person that are wrong."""


def settled(state: State) -> tuple[State, Pair | None]:
    """The answers to believe, and a pair to ask about again.

    A pair is settled by a lead of two answers, by a lead of one that does not surprise the model, or by three answers.
    A lead of one is not enough if many rows are held together by this answer alone: if it is wrong, all others would be
    explained as well by labels that are wrong for all these rows.
    Of several people, answers count by how often each is right. If answers are always right, the first one settles it.

    Parameters
    ----------
    state : State
        With all answers.

    Returns
    -------
    state : State
        With one answer for each pair that has a majority, in the order of the first answers.
    pair : tuple of int, or None
        The unsettled pair that came up last.
    """
    if not state.ground.wrong:
        return state, None
    settings = state.ground.settings
    silent = [answer for answer in state.answers if not answer.is_link]
    aside = state.set_aside()
    believed, again = [], None
    about, weight = by_pair(state.answers), weights(state)
    same = _together(state, [*about])
    leads = {pair: lead(answers, weight) for pair, answers in about.items()}
    only_same = state.ground.n_classes > 2 or state.ground.unknown
    held = rows_held([pair for pair, ahead in leads.items() if ahead > 0 or (ahead and not only_same)])
    for (pair, answers), together in zip(about.items(), same.tolist(), strict=True):
        ahead = leads[pair]
        surprising = (together if ahead > 0 else 1 - together) < settings.again
        is_weighty = held.get(pair, 0) >= settings.weighty
        is_open = abs(ahead) < 0.5 or (abs(ahead) < 1.5 and (surprising or is_weighty))
        if is_open and len(answers) < settings.most_times and pair not in aside:
            again = answers[0]
        if ahead:
            believed.append(Answer(answers[0].a, answers[0].b, "same" if ahead > 0 else "different"))
    return replace(state, answers=(*believed, *silent)), None if again is None else (again.a, again.b)


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
