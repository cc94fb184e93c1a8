"""Programs that answer questions about pairs: a rule, a language model, a crowd; and how often they err."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import numpy as np

from linkmix.queries.answers import Pair

Replied = Literal["same", "different", "unsure"]
REPLIES: tuple[str, ...] = get_args(Replied)
"""What a program may answer."""
EXPECTED_WRONG = (2.0, 18.0)
"""Beta prior of the share of wrong answers, before any pair was repeated: one in ten."""


class BadAnswer(ValueError):
    """A program does not answer as it should. Everything that it answered before is kept."""


@dataclass(frozen=True, slots=True)
class PairQuestion:
    """The question whether two rows belong to the same class.

    Attributes
    ----------
    id : int
        Number of the question, which the reply repeats.
    rows : tuple of int
        Both row numbers.
    a, b : mapping of str to value
        The fields of both rows.
    more : int
        How many questions of the same batch follow.
    """

    id: int
    rows: Pair
    a: Mapping[str, Any] = field(default_factory=dict)
    b: Mapping[str, Any] = field(default_factory=dict)
    more: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of a program.

    Attributes
    ----------
    id : int
        Number of the question.
    said : {"same", "different", "unsure"}
        The answer.
    confidence : float, optional
        How sure the program says it is, from 0 to 1.
    reason : str, optional
        Why, for people.

    Examples
    --------
    >>> Reply(1, "same", confidence=0.9).said
    'same'
    >>> Reply(1, "maybe")
    Traceback (most recent call last):
    linkmix.queries.programs.BadAnswer: the answer is 'maybe': use one of 'same', 'different', 'unsure'
    """

    id: int
    said: Replied
    confidence: float | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.id, bool) or not isinstance(self.id, Integral):
            raise BadAnswer(f"the id is {self.id!r}: repeat the id of the question, a whole number")
        if self.said not in REPLIES:
            raise BadAnswer(f"the answer is {self.said!r}: use one of {', '.join(map(repr, REPLIES))}")
        sure = self.confidence
        if sure is not None and (isinstance(sure, bool) or not isinstance(sure, Real) or not 0 <= sure <= 1):
            raise BadAnswer(f"the confidence is {sure!r}: give a number from 0 to 1, or leave it out")
        if self.reason is not None and not isinstance(self.reason, str):
            raise BadAnswer(f"the reason is {self.reason!r}: give a text, or leave it out")


@runtime_checkable
class Answerer(Protocol):
    """Whoever answers questions: any object with this method.

    Examples
    --------
    >>> class ByLength:
    ...     def answer(self, questions):
    ...         return [Reply(one.id, "same" if len(one.a["name"]) == len(one.b["name"]) else "different")
    ...                 for one in questions]
    >>> isinstance(ByLength(), Answerer)
    True
    """

    def answer(self, questions: Sequence[PairQuestion]) -> Iterable[Reply]:
        """Answer a batch of questions, in any order; a generator's replies are kept one by one as they come."""
        ...


@dataclass(frozen=True)
class Tally:
    """How often a program contradicted itself and others, and how often it is therefore wrong.

    Attributes
    ----------
    repeated, contradicted : int
        Pairs that were asked twice, and those with two answers.
    compared, disagreed : int
        Pairs that others had answered before, and those on which the program disagrees. Others are taken to be right.

    Examples
    --------
    >>> Tally().wrong, round(Tally(repeated=40, contradicted=12).wrong, 2)
    (0.1, 0.16)
    >>> print(Tally(repeated=40, contradicted=12))
    About 16 % of its answers are wrong (10 to 24 %): of 40 pairs asked twice, 12 got two answers.
    """

    repeated: int = 0
    contradicted: int = 0
    compared: int = 0
    disagreed: int = 0

    def after(self, own: Iterable[str], others: Iterable[str], said: str) -> "Tally":
        """The tally after one more answer about a pair, given what was said about it before."""
        if said == "unsure":
            return self
        if own := list(own):
            return replace(self, repeated=self.repeated + 1, contradicted=self.contradicted + (own[0] != said))
        lead = sum((one == "same") - (one == "different") for one in others)
        if not lead:
            return self
        disagrees = (lead > 0) != (said == "same")
        return replace(self, compared=self.compared + 1, disagreed=self.disagreed + disagrees)

    def _posterior(self) -> tuple[Any, Any]:
        share = np.linspace(0, 0.5, 1001)[1:-1]
        twice = 2 * share * (1 - share)  # one of two answers is wrong
        a, b = EXPECTED_WRONG
        log_p = (a - 1) * np.log(share) + (b - 1) * np.log1p(-share)
        log_p += self.contradicted * np.log(twice) + (self.repeated - self.contradicted) * np.log1p(-twice)
        log_p += self.disagreed * np.log(share) + (self.compared - self.disagreed) * np.log1p(-share)
        p = np.exp(log_p - log_p.max())
        return share, p / p.sum()

    @property
    def wrong(self) -> float:
        """Expected share of wrong answers."""
        share, p = self._posterior()
        return round(float(share @ p), 3)

    @property
    def interval(self) -> tuple[float, float]:
        """A 90 % interval of the share."""
        share, p = self._posterior()
        low, high = np.interp([0.05, 0.95], np.cumsum(p), share)
        return float(low), float(high)

    def __str__(self) -> str:
        """The tally in a sentence."""
        if not self.repeated + self.compared:
            return "How often it is wrong is not known: no pair was asked twice."
        low, high = self.interval
        seen = [f"of {self.repeated} pairs asked twice, {self.contradicted} got two answers"] * (self.repeated > 0)
        others = f"of {self.compared} pairs that others answered, it disagrees on {self.disagreed}"
        seen += [others] * (self.compared > 0)
        about = f"About {100 * self.wrong:.0f} % of its answers are wrong"
        return f"{about} ({100 * low:.0f} to {100 * high:.0f} %): {'; '.join(seen)}."


@dataclass(frozen=True)
class Outcome:
    """What came of asking a program.

    Attributes
    ----------
    asked : int
        Number of questions that were asked.
    counts : mapping of str to int
        How often each answer was given.
    tally : Tally
        How often the program errs.
    seconds : float
        How long it took.
    ended : {"", "budget", "time", "nothing left"}
        Why it ended; nothing as long as it goes on.
    """

    asked: int = 0
    counts: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(REPLIES, 0))
    tally: Tally = field(default_factory=Tally)
    seconds: float = 0.0
    ended: str = ""

    @property
    def answered(self) -> int:
        """Number of answers."""
        return sum(self.counts.values())
