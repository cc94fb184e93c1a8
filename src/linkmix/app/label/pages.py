"""Which question each page shows: the same one until it is answered, and no two pages the same."""

import time
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass

from linkmix.basics.journal import Entry
from linkmix.queries import QuestionSettings
from linkmix.queries.questions import KINDS, Kind, Question, seconds_for

SILENCE = 60.0
"""Seconds after which the question of a page that has gone silent may be put to another page."""
MOST_PAGES = 100
"""Pages that are remembered. Of more, one that never answered is forgotten, that of the longest silence first."""
MOST_APART = 8
"""Pages that get questions of their own; more of them may be asked the same."""
TAKEN_BACK = "You took back your answer to this."
"""Why a question is asked again after an undo."""


@dataclass
class Pool:
    """Questions that were chosen together, each as if those before it had been answered as the model expects.

    While several pages are open, they are served from it, so that a question takes no longer for many than for one.

    Attributes
    ----------
    questions : list of Question
        Those that nobody has answered.
    entries : int
        Number of entries when they were chosen.
    model : hashable
        The model that chose them.
    """

    questions: list[Question]
    entries: int
    model: Hashable

    def __post_init__(self) -> None:
        self._n = len(self.questions)

    def serves(self, taken: Collection[frozenset[int]], n: int, entries: int, model: Hashable) -> bool:
        """Whether it was chosen for ``n`` pages, not too much was said since, and a question is not taken.

        If as many are taken as are ever chosen, any question will do.
        """
        left = self.questions if len(taken) >= MOST_APART else self._free(taken)
        return self.model == model and self._n >= n and entries - self.entries < n and bool(left)

    def next(self, taken: Collection[frozenset[int]]) -> Question | None:
        """A question that is not taken; if all are, one of them in turn."""
        found = next(iter(self._free(taken)), None)
        if found is None and self.questions:
            found = self.questions[0]
            self.questions = [*self.questions[1:], found]
        return found

    def _free(self, taken: Collection[frozenset[int]]) -> list[Question]:
        return [one for one in self.questions if frozenset(one.rows) not in taken]

    def drop(self, question: Question) -> None:
        """Forget a question that was answered."""
        self.questions = [one for one in self.questions if set(one.rows) != set(question.rows)]


class Pages:
    """The pages that are open, each with its question. The caller holds a lock."""

    def __init__(self) -> None:
        self._open: dict[str, Question] = {}
        self._kinds: dict[str, tuple[Kind, ...]] = {}  # what each page asked for
        self._heard: dict[str, float] = {}  # that of longest silence first
        self._used: set[str] = set()  # pages that have answered
        self._pools: dict[tuple[Kind, ...], Pool] = {}

    def question(
        self,
        page: str,
        kinds: Sequence[Kind],
        ask: Callable[[int, Sequence[Kind]], list[Question]],
        entries: int,
        model: Hashable,
    ) -> Question | None:
        """The question of a page.

        Parameters
        ----------
        page : str
            The page.
        kinds : sequence of {"pair", "which", "group"}
            Kinds that it may be of.
        ask : callable
            Gives the next questions, as `Questioner.ask` does.
        entries : int
            Number of entries that people have made.
        model : hashable
            The model that chooses questions.

        Returns
        -------
        Question or None
            The same until it is answered; None if nothing is left to ask.
        """
        found = self._open.get(page)
        unchanged = self._kinds.get(page) == tuple(kinds)
        self._remember(page)
        self._kinds[page] = tuple(kinds)
        if found is not None and (unchanged or found.kind in kinds or found.why == TAKEN_BACK):
            return found
        self._open.pop(page, None)
        taken = {frozenset(other.rows) for other in self._open.values()}
        n = min(1 + len(taken), MOST_APART)
        wanted = tuple(kind for kind in KINDS if kind in kinds)
        pool = self._pools.get(wanted)
        if n == 1 or pool is None or not pool.serves(taken, n, entries, model):
            pool = self._pools[wanted] = Pool(ask(n, wanted), entries, model)
        found = pool.next(taken)
        if found is not None:
            self._open[page] = found
        return found

    def hear(self, page: str) -> None:
        """Note that a page is alive, if it has asked for a question."""
        if page in self._heard:
            self._remember(page)

    def answered(self, page: str) -> None:
        """Another question for this page."""
        if (done := self._open.pop(page, None)) is not None:
            for pool in self._pools.values():
                pool.drop(done)
        self._remember(page)
        self._used.add(page)

    def taken_back(self, page: str, entry: Entry, rows: Sequence[int], settings: QuestionSettings) -> None:
        """Ask the question again whose answer was undone on a page."""
        if entry["entry"] in ("answer", "which", "group"):
            kind: Kind = "pair" if entry["entry"] == "answer" else entry["entry"]
            self._remember(page)
            self._open[page] = Question(kind, tuple(rows), TAKEN_BACK, seconds_for(kind, len(rows), settings))

    def clear(self) -> None:
        """Other questions for all pages."""
        self._open.clear()
        self._pools.clear()

    def _remember(self, page: str) -> None:
        """Note that a page is alive, and release the questions of pages that are not, and of too many."""
        now = time.monotonic()
        self._heard.pop(page, None)
        self._heard[page] = now
        gone = [other for other, last in self._heard.items() if now - last > SILENCE]
        if len(self._heard) - len(gone) > MOST_PAGES:
            others = [other for other in self._heard if other not in (page, *gone)]
            gone.append(next((other for other in others if other not in self._used), others[0]))
        for other in gone:
            del self._heard[other]
            self._open.pop(other, None)
            self._kinds.pop(other, None)
            self._used.discard(other)
