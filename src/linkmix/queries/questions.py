"""Kinds of questions, and the answers about pairs that a reply to each of them stands for.

A pair: are both of one class? Which: tap all cards that are like this row. A group: tap the cards that do not fit.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from linkmix.basics.checks import check_choice
from linkmix.queries.answers import SAID, Answer, Said
from linkmix.queries.settings import QuestionSettings

Kind = Literal["pair", "which", "group"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""All kinds of questions."""


@dataclass(frozen=True)
class Question:
    """A question for a person.

    Attributes
    ----------
    kind : {"pair", "which", "group"}
    rows : tuple of int
        A pair: both rows. "which": a row, and the cards beside it; all that are like it are to be picked. "group": an
        anchor, and cards that probably are like it; those that are not are to be picked.
    why : str
        A sentence that says why it is asked.
    seconds : float
        Time that a person probably takes.
    again : bool
        Whether the pair was answered before.
    """

    kind: Kind
    rows: tuple[int, ...]
    why: str
    seconds: float
    again: bool = False


def seconds_for(kind: Kind, n_rows: int, settings: QuestionSettings) -> float:
    """Time that a person takes for a question about some rows.

    Examples
    --------
    >>> [round(seconds_for(kind, 9, QuestionSettings()), 1) for kind in ("which", "group")]
    [8.3, 9.0]
    """
    if kind == "pair":
        return settings.pair_seconds
    if kind == "which":
        return settings.which_seconds + settings.which_row_seconds * n_rows
    return settings.group_row_seconds * n_rows


def answers_to(
    kind: Kind,
    rows: Sequence[int],
    picked: Iterable[int] = (),
    said: Said | None = None,
    annotator: str | None = None,
    chosen: bool = True,
) -> tuple[Answer, ...]:
    """The answers about pairs that a reply stands for.

    Parameters
    ----------
    kind : {"pair", "which", "group"}
    rows : sequence of int
        As in `Question`.
    picked : iterable of int
        Cards that were picked: those like the row for "which", those that do not fit for "group".
    said : {"same", "different", "unsure", "skip"}, optional
        What was said about a pair. For the other kinds, "unsure" or "skip" if nothing was picked for that reason.
    annotator : str, optional
        Who said it.
    chosen : bool, default=True
        As in `Answer`.

    Returns
    -------
    tuple of Answer
        One about each pair of the first row and a card, "same" before "different".

    Examples
    --------
    >>> [tuple(answer) for answer in answers_to("which", (4, 0, 1, 2), picked=[1])]
    [(4, 1, 'same'), (4, 0, 'different'), (4, 2, 'different')]
    >>> [tuple(answer) for answer in answers_to("group", (4, 0, 1, 2), picked=[1])]
    [(4, 0, 'same'), (4, 2, 'same'), (4, 1, 'different')]
    """
    check_choice("kind", kind, KINDS)
    first, *cards = (int(row) for row in rows)
    if not cards or len({first, *cards}) != len(rows):
        raise ValueError(f"rows={tuple(rows)} of a question: give two or more different rows")
    if kind == "pair" and len(cards) > 1:
        raise ValueError(f"a pair has two rows, got {len(rows)}: use the kind 'which' or 'group'")
    out = {int(row) for row in picked}
    if strange := out - {*cards}:
        raise ValueError(f"picked row {min(strange)} is no card of the question: pick some of {cards}")
    if kind == "pair" and said is None:
        raise ValueError(f"nothing was said about the pair {tuple(rows)}: give said, one of {SAID}")
    if said is not None:
        check_choice("said", said, SAID if kind == "pair" else SAID[2:])
        if out:
            raise ValueError(f"said={said!r} with rows picked: give one of both")
        return tuple(Answer(first, card, said, annotator, chosen=chosen) for card in cards)
    same = [card for card in cards if (card in out) == (kind == "which")]
    different = [card for card in cards if card not in same]
    return (
        *(Answer(first, card, "same", annotator, chosen=chosen) for card in same),
        *(Answer(first, card, "different", annotator, chosen=chosen) for card in different),
    )
