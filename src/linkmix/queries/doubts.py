"""Wrong answers: which pairs to ask about again, and what to believe."""

from dataclasses import replace

import numpy as np

from linkmix.links import Links
from linkmix.queries.state import Answer, Known, Said, State

MOST_TIMES = 3
"""A pair is asked about so often at most."""
AGAIN = 0.25
"""An answer that the model finds less probable than this is asked for again."""


def settled(state: State) -> tuple[State, tuple[int, int] | None]:
    """What is believed, and a pair to ask about again.

    A pair is settled by two answers more of one kind than of the other, by one that does not surprise the model, or by
    three answers. Where answers are always right, the first one settles it.

    Parameters
    ----------
    state : State
        With all answers.

    Returns
    -------
    state : State
        With one answer for each pair that is settled, in the order of the first answers.
    pair : tuple of int, or None
        The pair that is not settled and was asked about last.
    """
    if not state.ground.wrong:
        return state, None
    silent = [answer for answer in state.answers if answer.said not in ("same", "different")]
    aside = state.set_aside()
    believed, again = [], None
    for pair, answers in _votes(state).items():
        lead = _lead(answers)
        said: Said = "same" if lead > 0 else "different"
        together = float(state.probabilities[pair[0]] @ state.probabilities[pair[1]])
        surprising = (together if lead > 0 else 1 - together) < AGAIN
        if (lead == 0 or (abs(lead) == 1 and surprising)) and len(answers) < MOST_TIMES and pair not in aside:
            again = answers[0]
        if lead:
            believed.append(Answer(answers[0].a, answers[0].b, said))
    return replace(state, answers=(*believed, *silent)), None if again is None else (again.a, again.b)


def believed_links(state: State) -> Links:
    """Answers as links, each with the probability that it is right.

    Where answers may be wrong, a pair has that of its votes, and links that contradict each other are all kept: which
    of them is wrong, the points will tell. Where answers are always right, one that contradicts earlier ones is left
    out.

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
    if not state.ground.wrong:
        return Known(state.answers).links()
    wrong = state.ground.wrong
    leads = {pair: _lead(answers) for pair, answers in _votes(state).items()}
    must, cannot = (
        {pair: confidence(n * sign, wrong) for pair, n in leads.items() if n * sign > 0} for sign in (1, -1)
    )
    return Links(
        [*must], [*cannot], must_confidence=np.array([*must.values()]), cannot_confidence=np.array([*cannot.values()])
    )


def confidence(lead: int, wrong: float) -> float:
    """Probability that a pair is what more of its answers say, so many more than say the opposite.

    Examples
    --------
    >>> [round(confidence(lead, wrong=0.1), 3) for lead in (1, 2, 3)]
    [0.9, 0.988, 0.999]
    """
    odds = ((1 - wrong) / wrong) ** lead
    return float(odds / (1 + odds))


def _votes(state: State) -> dict[tuple[int, int], list[Answer]]:
    """All answers about each pair that say something."""
    votes: dict[tuple[int, int], list[Answer]] = {}
    for answer in state.answers:
        if answer.said in ("same", "different"):
            votes.setdefault((min(answer.a, answer.b), max(answer.a, answer.b)), []).append(answer)
    return votes


def _lead(answers: list[Answer]) -> int:
    """How many more say same than different."""
    return sum(1 if answer.said == "same" else -1 for answer in answers)
