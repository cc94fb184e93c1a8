"""Wrong answers: which pairs to ask about again, and what to believe."""

from dataclasses import replace

from linkmix.queries.state import Answer, Said, State

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
    votes: dict[tuple[int, int], list[Answer]] = {}
    silent = []
    for answer in state.answers:
        if answer.said in ("same", "different"):
            votes.setdefault((min(answer.a, answer.b), max(answer.a, answer.b)), []).append(answer)
        else:
            silent.append(answer)
    aside = state.set_aside()
    believed, again = [], None
    for pair, answers in votes.items():
        lead = sum(1 if answer.said == "same" else -1 for answer in answers)
        said: Said = "same" if lead > 0 else "different"
        together = float(state.probabilities[pair[0]] @ state.probabilities[pair[1]])
        surprising = (together if lead > 0 else 1 - together) < AGAIN
        if (lead == 0 or (abs(lead) == 1 and surprising)) and len(answers) < MOST_TIMES and pair not in aside:
            again = answers[0]
        if lead:
            believed.append(Answer(answers[0].a, answers[0].b, said))
    return replace(state, answers=(*believed, *silent)), None if again is None else (again.a, again.b)
