"""Answers about pairs of rows, and what they come to."""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal, get_args

from linkmix.links import Links

Said = Literal["same", "different", "unsure", "skip"]
SAID: tuple[str, ...] = get_args(Said)
"""What can be answered. After "unsure" a pair is not asked again; after "skip" it may be, later."""
Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Answer:
    """What somebody says about two rows, or what a file of links says about them.

    ``a, b, said = answer`` unpacks the first three fields.

    Attributes
    ----------
    a, b : int
        Row numbers.
    said : str
        One of `SAID`: "same" is a must-link, "different" a cannot-link. Or "remove", which is never an answer to a
        question: it drops whatever was said about the pair before.
    annotator : str or None
        Who says it.
    confidence : float or None
        Probability that it is right. None means certain if it is given; otherwise it follows from all answers about
        the pair.
    given : bool
        Whether it was known at the beginning, from a file or an argument. It cannot be undone then.
    """

    a: int
    b: int
    said: Said | Literal["remove"]
    annotator: str | None = None
    confidence: float | None = None
    given: bool = False

    def __iter__(self) -> Iterator[Any]:
        """Give rows and answer."""
        return iter((self.a, self.b, self.said))

    @property
    def pair(self) -> Pair:
        """Both rows, the smaller one first."""
        return pair_of(self.a, self.b)

    @property
    def is_link(self) -> bool:
        """Whether it is a must-link or a cannot-link."""
        return self.said in ("same", "different")


def pair_of(a: int, b: int) -> Pair:
    """The same pair whichever row comes first."""
    return (a, b) if a <= b else (b, a)


def lead(answers: Iterable[Answer]) -> int:
    """How many more answers say "same" than "different"."""
    return sum((answer.said == "same") - (answer.said == "different") for answer in answers)


def confidence(lead: int, wrong: float) -> float:
    """Probability that the majority of the answers about a pair is right.

    Parameters
    ----------
    lead : int
        How many more answers say so than say the opposite.
    wrong : float
        Share of answers that are wrong.

    Examples
    --------
    >>> [round(confidence(lead, wrong=0.1), 3) for lead in (1, 2, 3)]
    [0.9, 0.988, 0.999]
    """
    odds = ((1 - wrong) / wrong) ** lead
    return float(odds / (1 + odds))


def last_words(answers: Iterable[Answer], wrong: float = 0.0) -> tuple[Answer, ...]:
    """The last word of each annotator about one pair.

    Parameters
    ----------
    answers : iterable of Answer
        All about the same pair, in their order.
    wrong : float, default=0.0
        Share of answers that are wrong. If it is not 0, the last words that were not given get a confidence.

    Returns
    -------
    tuple of Answer
        Links, by annotator. "unsure" takes back what its annotator said before. What a file says twice stays there
        twice, until its annotator answers.

    Examples
    --------
    >>> answers = [Answer(0, 1, "same"), Answer(0, 1, "different"), Answer(1, 0, "different")]
    >>> [(word.said, round(word.confidence, 3)) for word in last_words(answers, wrong=0.1)]
    [('different', 0.9)]
    """
    by: dict[str | None, list[Answer]] = {}
    for answer in answers:
        if answer.is_link:
            by.setdefault(answer.annotator, []).append(answer)
        elif answer.said == "unsure":
            by.pop(answer.annotator, None)
    words: list[Answer] = []
    for said in by.values():
        own = [answer for answer in said if not answer.given]
        if own and wrong:
            ahead = lead(own) if own[-1].said == "same" else -lead(own)
            words.append(replace(own[-1], confidence=round(confidence(max(1, ahead), wrong), 6)))
        else:
            words += own[-1:] or said
    return tuple(words)


def by_pair(answers: Iterable[Answer]) -> dict[Pair, list[Answer]]:
    """All links among answers by their pairs, in the order in which the pairs came up."""
    found: dict[Pair, list[Answer]] = {}
    for answer in answers:
        if answer.is_link:
            found.setdefault(answer.pair, []).append(answer)
    return found


def as_links(answers: Iterable[Answer]) -> Links:
    """Answers as links, without confidence and annotator. Those that are no links are left out."""
    answers = list(answers)
    return Links(*([(one.a, one.b) for one in answers if one.said == kind] for kind in ("same", "different")))


def as_full_links(answers: Iterable[Answer]) -> Links:
    """Answers that are all links, with confidence and annotator."""
    names = {"a": "a", "b": "b", "kind": "said", "confidence": "confidence", "annotator": "annotator"}
    answers = list(answers)
    return Links.from_table({name: [getattr(one, field) for one in answers] for name, field in names.items()})


class Answers:
    """All that was said and not taken back. One more answer updates it, without a pass over the others.

    Iterating gives the answers in their order, those that were given first.

    Parameters
    ----------
    given : iterable of Answer
        What is known at the beginning; it cannot be undone.
    wrong : float, default=0.0
        Share of answers that are expected to be wrong.

    Attributes
    ----------
    turns : dict of key to tuple of Answer
        What can be undone, the oldest first. A turn is one or more answers that were given, and are undone, together.

    Examples
    --------
    >>> said = Answers()
    >>> said.add(Answer(0, 1, "same"), key="k1")
    >>> said.add(Answer(1, 0, "different"), key="k2")
    >>> [word.said for word in said.links]
    ['different']
    >>> _ = said.undo()
    >>> [word.said for word in said.links]
    ['same']
    """

    def __init__(self, given: Iterable[Answer] = (), wrong: float = 0.0) -> None:
        self._wrong = wrong
        self.restart(given)

    def __len__(self) -> int:
        """Count the answers."""
        return len(self._all)

    def __iter__(self) -> Iterator[Answer]:
        """Give the answers in their order."""
        return iter(self._all)

    def restart(self, given: Iterable[Answer]) -> None:
        """Forget everything, and begin with what is given."""
        self._given = tuple(replace(answer, given=True) for answer in given)
        self.turns: dict[Hashable, tuple[Answer, ...]] = {}
        self._fold()

    def add(self, *answers: Answer, key: Hashable = None) -> None:
        """Take in a turn.

        Parameters
        ----------
        *answers : Answer
            What was said.
        key : hashable, optional
            Names the turn, for `undo`.
        """
        self.turns[object() if key is None else key] = answers
        for answer in answers:
            self._take(answer)

    def undo(self, key: Hashable = None) -> tuple[Answer, ...]:
        """Take a turn back, as if it had never been.

        Parameters
        ----------
        key : hashable, optional
            Which turn; the last one by default.

        Returns
        -------
        tuple of Answer
            What was taken back; empty if there is no turn left.
        """
        if not self.turns:
            return ()
        last = next(reversed(self.turns))
        key = last if key is None else key
        answers = self.turns.pop(key)
        if key == last and all(answer.said != "remove" for answer in answers):
            for answer in reversed(answers):
                self._all.pop()
                if self._about.get(answer.pair, [None])[-1] is answer:
                    self._about[answer.pair].pop()
                    self._update(answer.pair)
        else:  # what came later may rest on it, and what was removed has to come back: fold again
            self._fold()
        return answers

    def last_turn(self, annotator: str | None) -> Hashable:
        """Key of the last turn of an annotator that can be undone; None if there is none."""
        return next((key for key in reversed(self.turns) if self.turns[key][0].annotator == annotator), None)

    def words(self, a: int, b: int) -> tuple[Answer, ...]:
        """What is held of two rows: the last word of each annotator, see `last_words`."""
        return self._words.get(pair_of(a, b), ())

    @property
    def links(self) -> tuple[Answer, ...]:
        """The last words about all pairs, in the order in which the pairs came up."""
        return tuple(chain.from_iterable(self._words.values()))

    def _fold(self) -> None:
        self._all: list[Answer] = []
        self._about: dict[Pair, list[Answer]] = {}  # without skips, and from the first link of each pair on
        self._words: dict[Pair, tuple[Answer, ...]] = {}
        for answer in chain(self._given, *self.turns.values()):
            self._take(answer)

    def _take(self, answer: Answer) -> None:
        pair = answer.pair
        if answer.said == "remove":  # goes over all answers, but links are seldom removed
            self._all = [other for other in self._all if other.pair != pair]
            self._about.pop(pair, None)
            self._words.pop(pair, None)
            return
        self._all.append(answer)
        if answer.is_link or (answer.said == "unsure" and pair in self._about):
            self._about.setdefault(pair, []).append(answer)
            self._update(pair)

    def _update(self, pair: Pair) -> None:
        if self._about[pair]:
            self._words[pair] = last_words(self._about[pair], self._wrong)
        else:
            del self._about[pair], self._words[pair]
