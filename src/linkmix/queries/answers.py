"""Answers about pairs of rows: recording and undoing them, and the links that follow from them."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from types import MappingProxyType
from typing import Any, Literal, get_args

from linkmix.links import Links
from linkmix.links.table import COLUMNS
from linkmix.mixture.calibration import Quality
from linkmix.queries.audit import Audit

Said = Literal["same", "different", "unsure", "skip"]
SAID: tuple[str, ...] = get_args(Said)
"""The possible answers. A pair answered "unsure" is not asked again; after "skip" it may come up again later."""
Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Answer:
    """A statement about two rows, made by a person or found in a file of links.

    ``a, b, said = answer`` unpacks the first three fields.

    Attributes
    ----------
    a, b : int
        Row numbers.
    said : str
        One of `SAID`: "same" is a must-link, "different" a cannot-link. Or what is no answer to a question: "remove"
        drops everything said about the pair before; "nowhere" says of one row, ``a`` and ``b`` alike, that it belongs
        to no class.
    annotator : str or None
        Who said it.
    confidence : float or None
        Probability that the statement is correct. If None, a given statement is certain; the confidence of any other is
        computed from all answers about the pair.
    given : bool
        Whether it was known from the start, from a file or an argument. Such a statement cannot be undone.
    chosen : bool
        Whether a strategy or a person chose the pair. The pairs of an audit are random.
    """

    a: int
    b: int
    said: Said | Literal["remove", "nowhere"]
    annotator: str | None = None
    confidence: float | None = None
    given: bool = False
    chosen: bool = True

    def __iter__(self) -> Iterator[Any]:
        """Iterate over both rows and what was said."""
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


def lead(answers: Iterable[Answer], weights: Mapping[str | None, float] = MappingProxyType({})) -> float:
    """How many more answers say "same" than "different", each counted by the weight of its annotator, or as one."""
    return sum(weights.get(one.annotator, 1.0) * ((one.said == "same") - (one.said == "different")) for one in answers)


def confidence(lead: float, wrong: float) -> float:
    """Probability that the majority of the answers about a pair is right.

    Parameters
    ----------
    lead : float
        By how many answers the majority leads.
    wrong : float
        Share of answers that are wrong.

    Examples
    --------
    >>> [round(confidence(lead, wrong=0.1), 3) for lead in (1, 2, 3)]
    [0.9, 0.988, 0.999]
    """
    try:
        odds = ((1 - wrong) / wrong) ** lead
    except OverflowError:
        return 1.0
    return float(odds / (1 + odds))


def last_words(answers: Iterable[Answer], wrong: float = 0.0) -> tuple[Answer, ...]:
    """The latest answer of each annotator about one pair.

    Parameters
    ----------
    answers : iterable of Answer
        Answers about the same pair, oldest first.
    wrong : float, default=0.0
        Share of answers that are wrong. If it is not 0, all but the given answers get a confidence.

    Returns
    -------
    tuple of Answer
        Must-links and cannot-links, grouped by annotator. "unsure" cancels the earlier answers of its annotator. What a
        file says twice is kept twice, until its annotator answers.

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
    """Group the answers that are links by pair, in the order in which the pairs first came up."""
    found: dict[Pair, list[Answer]] = {}
    for answer in answers:
        if answer.is_link:
            found.setdefault(answer.pair, []).append(answer)
    return found


def as_links(answers: Iterable[Answer]) -> Links:
    """Answers as links, with confidence, annotator and whether they were chosen. Other answers are left out."""
    names = {name: name for name in COLUMNS} | {"kind": "said"}
    answers = [one for one in answers if one.is_link]
    return Links.from_table({name: [getattr(one, field) for one in answers] for name, field in names.items()})


def as_answers(links: Links) -> list[Answer]:
    """Links as answers, the reverse of `as_links`.

    Examples
    --------
    >>> links = Links(must=[(0, 1)], must_confidence=0.8, cannot=[(1, 2)], cannot_annotators=["eva"])
    >>> as_links(as_answers(links)) == links
    True
    """
    table = {"confidence": None, "annotator": None, "chosen": False, **links.to_table()}
    n = links.n_must + links.n_cannot
    rows = zip(*(value if isinstance(value, list) else [value] * n for value in table.values()), strict=True)
    named = (dict(zip(table, row, strict=True)) for row in rows)
    return [
        Answer(one.pop("a"), one.pop("b"), "same" if one.pop("kind") == "must" else "different", **one) for one in named
    ]


class Answers:
    """All answers that have not been undone. Adding one updates the links without a pass over the others.

    Iterating yields the answers in order, the given ones first.

    Parameters
    ----------
    given : iterable of Answer
        What is known from the start; it cannot be undone.
    wrong : float, default=0.0
        Share of answers that are expected to be wrong.

    Attributes
    ----------
    turns : dict of key to tuple of Answer
        What can be undone, oldest first. A turn is one or more answers that are added and undone together.
    audit : Audit or None
        The audit that is under way, with what was said so far.
    quality : Quality or None
        What the last complete audit found.
    ordinary : tuple of Answer
        The answers in order, without those to the audit that is under way.
    nowhere : tuple of Answer
        What was said about rows that belong to no class.

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
        """Iterate over the answers in order."""
        return iter(self._all)

    def restart(self, given: Iterable[Answer]) -> None:
        """Drop all answers, and start again from what is given."""
        self._given = tuple(replace(answer, given=True) for answer in given)
        self.turns: dict[Hashable, tuple[Answer, ...]] = {}
        self._audits: list[Audit] = []  # those that are complete, and at the end the one that is under way
        self._auditing = False
        self._fold()

    def add(self, *answers: Answer, key: Hashable = None) -> None:
        """Add a turn.

        Parameters
        ----------
        *answers : Answer
            The answers of this turn.
        key : hashable, optional
            Name of the turn, for `undo`.
        """
        self.turns[object() if key is None else key] = answers
        for answer in answers:
            self._take(answer)
        self._end_if_complete()

    def begin_audit(self, audit: Audit) -> None:
        """Keep answers about the pairs of an audit apart, until it is complete. One that is under way is given up."""
        self.give_up_audit()
        self._audits.append(audit)
        self._auditing = True
        self._end_if_complete()

    def give_up_audit(self) -> None:
        """End the audit that is under way, if there is one. Its answers become ordinary ones."""
        if self._auditing:
            self._audits.pop()
            self._auditing = False

    @property
    def audit(self) -> Audit | None:
        """The audit that is under way, with what was said so far."""
        if not self._auditing:
            return None
        return self._audits[-1].after({one.pair: one.said for one in self._all if not (one.chosen or one.given)})

    @property
    def audits(self) -> tuple[Quality, ...]:
        """What each complete audit found, the oldest first; nothing of one without answers."""
        complete = self._audits[:-1] if self._auditing else self._audits
        return tuple(audit.quality for audit in complete if audit.quality is not None)

    @property
    def quality(self) -> Quality | None:
        """What the last complete audit found."""
        complete = self._audits[:-1] if self._auditing else self._audits
        return complete[-1].quality if complete else None

    @property
    def ordinary(self) -> tuple[Answer, ...]:
        """The answers in order, without those to the audit that is under way."""
        return tuple(one for one in self._all if one.chosen or one.given or not self.is_audited(one.a, one.b))

    @property
    def nowhere(self) -> tuple[Answer, ...]:
        """What was said about rows that belong to no class, each row once."""
        return tuple({one.a: one for one in self._all if one.said == "nowhere"}.values())

    def is_audited(self, a: int, b: int) -> bool:
        """Whether the audit that is under way is about this pair."""
        return self._auditing and pair_of(a, b) in self._audits[-1].pairs

    def _end_if_complete(self) -> None:
        audit = self.audit
        if audit is not None and audit.is_complete:
            self._audits[-1] = audit  # what is said later does not change it
            self._auditing = False

    def undo(self, key: Hashable = None) -> tuple[Answer, ...]:
        """Undo a turn, as if it had never been added.

        Parameters
        ----------
        key : hashable, optional
            Which turn; the last one by default.

        Returns
        -------
        tuple of Answer
            The answers that were undone; empty if no turn is left.
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
        else:  # later answers may depend on it, and removed ones must come back: start over
            self._fold()
        if not self._auditing and self._audits and any(one.pair in self._audits[-1].said for one in answers):
            self._audits[-1] = replace(self._audits[-1], said={})
            self._auditing = True
            self._end_if_complete()
        return answers

    def last_turn(self, annotator: str | None) -> Hashable:
        """Key of the last turn of an annotator that can be undone; None if there is none."""
        return next((key for key in reversed(self.turns) if self.turns[key][0].annotator == annotator), None)

    def words(self, a: int, b: int) -> tuple[Answer, ...]:
        """The latest answer of each annotator about two rows; see `last_words`."""
        return self._words.get(pair_of(a, b), ())

    @property
    def links(self) -> tuple[Answer, ...]:
        """The latest answers about all pairs, in the order in which the pairs first came up."""
        return tuple(chain.from_iterable(self._words.values()))

    def _fold(self) -> None:
        self._all: list[Answer] = []
        self._about: dict[Pair, list[Answer]] = {}  # without skips, and nothing before the first link of a pair
        self._words: dict[Pair, tuple[Answer, ...]] = {}
        for answer in chain(self._given, *self.turns.values()):
            self._take(answer)

    def _take(self, answer: Answer) -> None:
        pair = answer.pair
        if answer.said == "remove":  # a pass over all answers, but links are rarely removed
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
