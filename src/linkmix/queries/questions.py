"""Questions about two rows or more, and the answers about pairs that a reply comes to."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from linkmix.queries.answers import Answer

Kind = Literal["pair", "which", "group"]


@dataclass(frozen=True)
class Question:
    """A question: ``rows`` are two rows, a row and cards, or an anchor and cards."""

    kind: Kind
    rows: tuple[int, ...]
    why: str = ""
    seconds: float = 4.0
    again: bool = False


def ask(asker: Any, n: int, kinds: tuple[Any, ...]) -> list[Question]:
    """The next questions of a questioner."""
    found = []
    for i, (a, b) in enumerate(asker.next(n).tolist()):
        kind: Any = "pair" if asker.said.audit is not None else kinds[(len(asker.said) + i) % len(kinds)]
        again = bool(asker.said.words(a, b))
        if kind == "pair":
            found.append(Question("pair", (a, b), "The answer settles most of what is open.", again=again))
            continue
        first = [int((asker.labels == m).argmax()) for m in range(asker.model.n_classes)]
        if kind == "group":
            first = (asker.labels == asker.labels[a]).nonzero()[0][:8].tolist()
        cards = [row for row in dict.fromkeys([b, *first]) if row != a]
        found.append(Question(kind, (a, *cards), "The model does not know where this one belongs.", 6.0))
    return found


def answers_to(
    kind: Kind,
    rows: tuple[int, ...],
    picked: Iterable[int] = (),
    said: Any = None,
    annotator: str | None = None,
    chosen: bool = True,
) -> tuple[Answer, ...]:
    """The answers about pairs that a reply comes to."""
    first, *cards = rows
    words: list[Any]
    if said is None:
        picked = set(picked)
        words = [
            ("same" if card in picked else "different")
            if kind == "which"
            else ("different" if card in picked else "same")
            for card in cards
        ]
    else:
        words = [said] * len(cards)
    return tuple(Answer(first, card, word, annotator, chosen=chosen) for card, word in zip(cards, words, strict=True))
