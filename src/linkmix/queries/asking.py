"""Asks programs: gives them batches of questions, keeps their answers, and refits the model in between."""

import queue
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np

from linkmix.basics.checks import check_number
from linkmix.queries.answers import Answer, Pair, by_pair, pair_of
from linkmix.queries.programs import Answerer, BadAnswer, Outcome, PairQuestion, Reply, Tally
from linkmix.queries.questioner import Questioner

REFIT_EVERY = 20
"""The model is refitted after so many answers, or after a tenth of all answers if that is more."""
MOST_VOTES = 7
"""A pair is asked about this often at most, if answers have to agree."""
TO_COMPARE = 30
"""A program is asked about up to this many pairs that others answered, to compare."""


class Desk(Protocol):
    """What `run` needs of whoever chooses the questions and keeps the answers."""

    def pairs(self, n: int, out: Collection[Pair]) -> list[Pair]:
        """Up to n pairs to ask about next, none of them in ``out``."""
        ...

    def fields(self, row: int) -> Mapping[str, Any]:
        """What the program sees of a row."""
        ...

    def said(self) -> Iterable[Answer]:
        """All answers so far, of people and of programs."""
        ...

    def keep(self, question: PairQuestion, reply: Reply, repeated: bool, votes: Sequence[str] = ()) -> None:
        """Record a reply.

        ``repeated`` if the pair was asked to learn how often the program errs. If it was asked until one answer leads,
        ``votes`` are all answers.
        """
        ...

    def set_aside(self, question: PairQuestion, votes: Sequence[str]) -> None:
        """Record votes that did not come to agree; the pair may be asked about again later."""
        ...

    def refresh(self, last: bool = False) -> None:
        """Bring the model up to date, if enough answers are new to it or these are the last ones."""
        ...


class QuestionerDesk:
    """A `Questioner` that asks a program.

    Parameters
    ----------
    asker : Questioner
        Chooses the pairs; the answers are added to it.
    name : str, optional
        Name of the program, which its links will carry.
    records : sequence of mapping, optional
        The fields of each row that the program sees, such as ``table.to_dict("records")``; by default its number.
    """

    def __init__(
        self, asker: Questioner, name: str | None = None, records: Sequence[Mapping[str, Any]] | None = None
    ) -> None:
        self.asker, self.name, self.records = asker, name, records
        self._known = len(asker.said)  # answers that the model was fitted to

    def pairs(self, n: int, out: Collection[Pair]) -> list[Pair]:
        """Up to n pairs to ask about next, none of them in ``out``."""
        return without(self.asker.next(n + len(out)).tolist(), out)[:n]

    def fields(self, row: int) -> Mapping[str, Any]:
        """What the program sees of a row."""
        return {"row": row} if self.records is None else self.records[row]

    def said(self) -> Iterable[Answer]:
        """All answers so far."""
        return self.asker.said

    def keep(self, question: PairQuestion, reply: Reply, repeated: bool, votes: Sequence[str] = ()) -> None:
        """Add a reply to the answers."""
        a, b = question.rows
        chosen = not self.asker.said.is_audited(a, b)
        self.asker.said.add(Answer(a, b, reply.said, self.name, chosen=chosen))

    def set_aside(self, question: PairQuestion, votes: Sequence[str]) -> None:
        """Skip a pair."""
        self.asker.said.add(Answer(*question.rows, "skip", self.name))

    def refresh(self, last: bool = False) -> None:
        """Refit the model, if enough answers are new to it or these are the last ones."""
        n = len(self.asker.said)
        if self.asker.said.audit is None and (is_due(n, self._known) or (last and n > self._known)):
            self._known = n
            self.asker.refit()


def is_due(n_answers: int, n_known: int) -> bool:
    """Whether so many answers call for a new model, if the last one knew ``n_known`` of them."""
    return n_answers - n_known >= max(REFIT_EVERY, n_answers // 10)


def without(pairs: Iterable[Sequence[int]], out: Collection[Pair]) -> list[Pair]:
    """The pairs that are not in ``out``, each once."""
    taken = {pair_of(*pair) for pair in out}
    found: dict[Pair, Pair] = {}
    for a, b in pairs:
        if pair_of(a, b) not in taken:
            found.setdefault(pair_of(a, b), (a, b))
    return list(found.values())


def run(
    asker: Questioner | Desk,
    answerer: Answerer | Sequence[Answerer],
    budget: int = 160,
    *,
    seconds: float | None = None,
    name: str | None = None,
    records: Sequence[Mapping[str, Any]] | None = None,
    batch: int = 10,
    agree: int = 1,
    repeat: float = 0.1,
    least_confidence: float = 0.0,
    tally: Tally | None = None,
    progress: Callable[[Outcome], None] = lambda outcome: None,
    random_state: int = 0,
) -> Outcome:
    """Ask a program until the budget is used up or nothing is left to ask.

    If single answers may be wrong, make the questioner with ``wrong=0.1``, or another share that you expect: it asks
    again where an answer is a surprise, and believes none entirely. If the mistakes of the program come and go, it is
    better to ask about each pair until its answers agree: ``agree=2``, with ``wrong=0.012``, since two answers more for
    the right one than for the wrong one are wrong in 0.012 of all cases if single ones are in 0.1.

    Parameters
    ----------
    asker : Questioner
        Chooses the pairs, keeps the answers, and is refitted every 20 answers. Or any other `Desk`.
    answerer : Answerer, or sequence of them
        Who answers. Several work in parallel, each in a thread of its own.
    budget : int, default=160
        Number of questions.
    seconds : float, optional
        After this time nothing more is asked; answers to what was asked are waited for.
    name : str, optional
        Name of the program, which its links will carry.
    records : sequence of mapping, optional
        The fields of each row that the program sees; by default its number.
    batch : int, default=10
        How many questions an answerer gets at once. They are chosen without the answers to each other, so more than 20
        cost some of what questions teach.
    agree : int, default=1
        Each pair is asked about again, with the rows swapped, until one answer leads by this many, seven times at
        most. Only then is it recorded, as one answer.
    repeat : float, default=0.1
        Share of the questions that are asked to learn how often the program errs: about pairs that others answered,
        and, with ``agree=1``, again about its own, with the rows swapped.
    least_confidence : float, default=0.0
        An answer that the program is less sure of than this counts as "unsure".
    tally : Tally, optional
        What is known from earlier runs.
    progress : callable, optional
        Called with the `Outcome` so far after every answer.
    random_state : int, default=0
        Seed of what is repeated.

    Returns
    -------
    Outcome

    Raises
    ------
    BadAnswer
        If the program gives answers that make no sense, or too few.

    Examples
    --------
    >>> X = np.concatenate([np.random.default_rng(0).normal(size=(20, 2)) + 6 * k for k in range(3)])
    >>> class ByPlace:
    ...     def answer(self, questions):
    ...         return [Reply(one.id, "same" if one.rows[0] // 20 == one.rows[1] // 20 else "different")
    ...                 for one in questions]
    >>> asker = Questioner(X, n_classes=3, wrong=0.1)
    >>> outcome = run(asker, ByPlace(), budget=40, name="rule")
    >>> outcome.answered, outcome.ended
    (40, 'budget')
    >>> np.unique(np.stack([asker.labels, np.repeat([0, 1, 2], 20)]), axis=1).shape
    (2, 3)
    """
    check_number("budget", budget, Integral, 1)
    check_number("batch", batch, Integral, 1)
    check_number("agree", agree, Integral, 1)
    if seconds is not None:
        check_number("seconds", seconds, Real, 0)
    for what, share in (("repeat", repeat), ("least_confidence", least_confidence)):
        if isinstance(share, bool) or not isinstance(share, Real) or not 0 <= share <= 1:
            raise ValueError(f"{what}={share!r} is not a share from 0 to 1: choose one that is")
    desk = QuestionerDesk(asker, name, records) if isinstance(asker, Questioner) else asker
    answerers = [answerer] if isinstance(answerer, Answerer) else list(answerer)
    talk = _Talk(desk, answerers, name, int(agree), repeat, least_confidence, tally or Tally(), random_state)
    end = np.inf if seconds is None else time.monotonic() + seconds
    try:
        while True:
            while talk.idle and talk.failure is None and talk.asked < budget and time.monotonic() < end:
                if not talk.ask(batch, budget - talk.asked):
                    break
            if not talk.n_busy:
                break
            talk.hear(talk.events.get())
            progress(talk.outcome)
    finally:  # also if a person interrupts: what has come is kept
        talk.close()
        progress(talk.outcome)
    if talk.failure is not None:
        raise talk.failure
    desk.refresh(last=True)
    ended = "budget" if budget - talk.asked < agree else "time" if time.monotonic() >= end else "nothing left"
    return replace(talk.outcome, ended=ended)


class _Talk:
    """A conversation with one or several answerers.

    They work in threads. Answers are kept in another one, the thread of the clerk: Ctrl-C is raised in the main thread,
    at any place, and would leave an answer counted and not kept. All else happens in the thread of `run`.
    """

    def __init__(
        self,
        desk: Desk,
        answerers: Iterable[Answerer],
        name: str | None,
        agree: int,
        repeat: float,
        least_confidence: float,
        tally: Tally,
        seed: int,
    ) -> None:
        self.desk, self.name, self.repeat, self.least_confidence = desk, name, repeat, least_confidence
        self.agree = agree
        self.idle, self.n_busy = list(answerers), 0
        self.events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        self.failure: BaseException | None = None
        self._clerk = ThreadPoolExecutor(1)
        self._begin = time.monotonic()
        self._outcome = Outcome(tally=tally)
        self._random = np.random.default_rng(seed)
        self._open: dict[int, PairQuestion] = {}
        self._tests: set[Pair] = set()  # pairs whose next answer tells how often the program errs
        self._due: list[Pair] = []  # pairs to ask about once more
        self._votes: dict[Pair, tuple[PairQuestion, tuple[str, ...]]] = {}  # on pairs without enough agreement
        self._to_compare = self._answered_by_others(TO_COMPARE - tally.compared)

    def _answered_by_others(self, n: int) -> list[Pair]:
        """Up to n random pairs that others answered, and the program did not."""
        words = by_pair(self.desk.said())
        pairs = [pair for pair, said in words.items() if all(one.annotator != self.name for one in said)]
        return [pairs[i] for i in self._random.permutation(len(pairs))[: max(0, n)]]

    @property
    def asked(self) -> int:
        """Number of questions that were asked."""
        return self._outcome.asked

    @property
    def outcome(self) -> Outcome:
        """What came of it so far."""
        return replace(self._outcome, seconds=time.monotonic() - self._begin)

    def ask(self, n: int, left: int) -> bool:
        """Give up to n questions, of those that are left, to an answerer that is idle; False if there are none."""
        n = min(n, left)
        busy = [one.rows for one in self._open.values()]
        second = without(self._due[:n], busy)
        self._due = self._due[n:]
        n_compared = int(self._random.binomial(n - len(second), self.repeat)) if self._to_compare else 0
        compared, self._to_compare = self._to_compare[:n_compared], self._to_compare[n_compared:]
        second += without(compared, [*busy, *second])
        self._tests.update(pair_of(*pair) for pair in (second if self.agree == 1 else compared))
        room = min(n - len(second), (left - len(second) - len(self._due)) // self.agree)  # leave some for their repeats
        first = self.desk.pairs(room, [*busy, *second, *self._votes]) if room > 0 else []
        if self.agree == 1 and not self._to_compare and self.repeat < 1:
            again = self._random.random(len(first)) < self.repeat / (1 - self.repeat)
            self._due += [(b, a) for (a, b), is_due in zip(first, again, strict=True) if is_due]
        pairs = [*second, *first]
        if not pairs:
            return False
        questions = []
        for place, (a, b) in enumerate(pairs):
            number, more = self.asked + 1 + place, len(pairs) - 1 - place
            questions.append(PairQuestion(number, (a, b), self.desk.fields(a), self.desk.fields(b), more))
        self._open |= {one.id: one for one in questions}
        self._outcome = replace(self._outcome, asked=self.asked + len(questions))
        self.n_busy += 1
        threading.Thread(target=self._work, args=(self.idle.pop(0), questions), daemon=True).start()
        return True

    def _work(self, answerer: Answerer, questions: list[PairQuestion]) -> None:
        error = None
        try:
            for reply in answerer.answer(questions):
                self.events.put(reply)
        except BaseException as failure:  # raised in the thread of `run`
            error = failure
        self.events.put(_Ended(answerer, questions, error))

    def hear(self, event: "_Event") -> None:
        """Take what came from an answerer: a reply, or the end of its batch."""
        if not isinstance(event, _Ended):
            try:
                self._clerk.submit(self._take, event).result()
            except BadAnswer as error:
                self.failure = self.failure or error
            return
        silent = [one.id for one in event.questions if self._open.pop(one.id, None) is not None]
        self.n_busy -= 1
        self.idle.append(event.answerer)
        if event.error is not None or silent:
            named = ", ".join(map(str, silent[:5])) + (" ..." if len(silent) > 5 else "")
            n = len(event.questions)
            missing = BadAnswer(f"{len(silent)} of {n} questions got no answer, those with id {named}: answer all")
            self.failure = self.failure or event.error or missing
        if self.failure is None:
            self.desk.refresh()

    def _take(self, reply: Reply) -> None:
        if not isinstance(reply, Reply):
            raise BadAnswer(f"the answerer gave {reply!r}: give a Reply for each question")
        question = self._open.pop(reply.id, None)
        if question is None:
            raise BadAnswer(f"id {reply.id} was not asked, or was answered before: answer each question once")
        if reply.confidence is not None and reply.confidence < self.least_confidence:
            reply = replace(reply, said="unsure")
        self._count(reply.said)
        pair = pair_of(*question.rows)
        votes = (*self._votes.pop(pair, (question, ()))[1], reply.said)
        if self.agree > 1:
            if len(votes) == 2:
                self._learn(self._outcome.tally.after([one for one in votes[:1] if one != "unsure"], [], votes[1]))
            lead = votes.count("same") - votes.count("different")
            if abs(lead) < self.agree and len(votes) < MOST_VOTES and reply.said != "unsure":
                self._votes[pair] = question, votes
                self._due.append((question.rows[1], question.rows[0]))
                return
            if reply.said != "unsure":
                reply = replace(reply, said="same" if lead > 0 else "different")
        elif reply.said == "unsure":  # such a pair is not asked about again
            self._due = without(self._due, [pair])
        is_test = pair in self._tests
        if is_test:
            about = [one for one in self.desk.said() if one.is_link and one.pair == pair]
            own = [one.said for one in about if one.annotator == self.name]
            others = [one.said for one in about if one.annotator != self.name]
            self._learn(self._outcome.tally.after(own, others, reply.said))
            self._tests.discard(pair)
        self.desk.keep(question, reply, is_test, votes if self.agree > 1 else ())

    def _count(self, said: str) -> None:
        counts = dict(self._outcome.counts)
        counts[said] += 1
        self._outcome = replace(self._outcome, counts=counts)

    def _learn(self, tally: Tally) -> None:
        self._outcome = replace(self._outcome, tally=tally)

    def close(self) -> None:
        """Keep the replies that have come already, and votes that do not agree yet, since no more can come."""
        rest = self._clerk.submit(self._take_the_rest)
        self._clerk.shutdown()
        rest.result()

    def _take_the_rest(self) -> None:
        while not self.events.empty():
            event = self.events.get()
            if isinstance(event, Reply):
                try:
                    self._take(event)
                except BadAnswer as error:
                    self.failure = self.failure or error
        for question, votes in self._votes.values():
            self.desk.set_aside(question, votes)
        self._votes.clear()


@dataclass(frozen=True)
class _Ended:
    """An answerer has answered its batch, or failed."""

    answerer: Answerer
    questions: list[PairQuestion]
    error: BaseException | None


_Event = Reply | _Ended
