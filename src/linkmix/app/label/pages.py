"""Which question each page shows: the same one until it is answered, and no two pages the same."""

import time
from collections.abc import Callable, Hashable, Sequence

from linkmix.basics.journal import Entry
from linkmix.queries import QuestionSettings
from linkmix.queries.questions import Kind, Question, seconds_for

SILENCE = 60.0
"""Seconds after which the question of a page that has gone silent may be put to another page."""
MOST_PAGES = 100
"""Pages that are remembered. Of more, one that never answered is forgotten, that of the longest silence first."""
MOST_APART = 8
"""Pages that get questions of their own. More of them may be asked the same, since each question further on takes as
long to find as the first."""
TAKEN_BACK = "You took back your answer to this."
"""Why a question is asked again after an undo."""


class Pages:
    """The pages that are open, each with its question. The caller holds a lock."""

    def __init__(self) -> None:
        self._open: dict[str, Question] = {}
        self._kinds: dict[str, tuple[Kind, ...]] = {}  # what each page asked for
        self._heard: dict[str, float] = {}  # that of longest silence first
        self._used: set[str] = set()  # pages that have answered
        self._coming: tuple[Hashable, list[Question]] = (None, [])  # what was asked for last, and found

    def question(
        self,
        page: str,
        kinds: Sequence[Kind],
        ask: Callable[[int, Sequence[Kind]], list[Question]],
        known: Hashable = None,
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
        known : hashable, optional
            What the next questions depend on. If it is as before, they are not computed again.

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
        state = None if known is None else (known, tuple(kinds))
        for wanted in (1, min(1 + len(taken), MOST_APART)):
            coming = self._next(state, wanted, ask, kinds)
            found = next((one for one in coming if frozenset(one.rows) not in taken), None)
            if found is not None:
                break
        if found is None and coming:
            found = coming[-1]
        if found is not None:
            self._open[page] = found
        return found

    def hear(self, page: str) -> None:
        """Note that a page is alive, if it has asked for a question."""
        if page in self._heard:
            self._remember(page)

    def answered(self, page: str) -> None:
        """Another question for this page."""
        self._open.pop(page, None)
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

    def _next(
        self,
        state: Hashable,
        n: int,
        ask: Callable[[int, Sequence[Kind]], list[Question]],
        kinds: Sequence[Kind],
    ) -> list[Question]:
        before, found = self._coming
        if state is None or state != before or len(found) < n:
            found = ask(n, kinds)
            self._coming = (state, found)
        return found[:n]

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
