"""Answers that may be wrong: which pairs to ask about again, and which answers to believe."""

from dataclasses import replace

import numpy as np

from linkmix.links import Links
from linkmix.queries.answers import Answer, Pair, as_links, by_pair, confidence, lead
from linkmix.queries.state import State


def settled(state: State) -> tuple[State, Pair | None]:
    """The answers to believe, and a pair to ask about again.

    A pair is settled by a lead of two answers, by a lead of one that does not surprise the model, or by three answers.
    If answers are always right, the first one settles it.

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
    about = by_pair(state.answers)
    ends = np.array([*about], dtype=np.int64).reshape(-1, 2)
    same = np.einsum("ij,ij->i", state.probabilities[ends[:, 0]], state.probabilities[ends[:, 1]])
    for (pair, answers), together in zip(about.items(), same.tolist(), strict=True):
        ahead = lead(answers)
        surprising = (together if ahead > 0 else 1 - together) < settings.again
        is_open = ahead == 0 or (abs(ahead) == 1 and surprising)
        if is_open and len(answers) < settings.most_times and pair not in aside:
            again = answers[0]
        if ahead:
            believed.append(Answer(answers[0].a, answers[0].b, "same" if ahead > 0 else "different"))
    return replace(state, answers=(*believed, *silent)), None if again is None else (again.a, again.b)


def believed_links(state: State) -> Links:
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
    leads = {pair: lead(answers) for pair, answers in about.items()}
    must, cannot = (
        {pair: confidence(n * sign, wrong) for pair, n in leads.items() if n * sign > 0} for sign in (1, -1)
    )
    return Links(
        [*must],
        [*cannot],
        must_confidence=np.array([*must.values()]),
        cannot_confidence=np.array([*cannot.values()]),
        must_chosen=[all(one.chosen for one in about[pair]) for pair in must],
        cannot_chosen=[all(one.chosen for one in about[pair]) for pair in cannot],
    )
