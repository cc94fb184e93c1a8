"""Which question each page shows: the same one until it is answered, and no two pages the same."""

import time
from collections.abc import Callable, Sequence

from linkmix.basics.journal import Entry
from linkmix.queries import QuestionSettings
from linkmix.queries.questions import Kind, Question, seconds_for

SILENCE = 60.0
"""Seconds after which the question of a page that has gone silent may be put to another page."""
TAKEN_BACK = "You took back your answer to this."
"""Why a question is asked again after an undo."""


class Pages:
    """The pages that are open, each with its question. The caller holds a lock."""

    def __init__(self) -> None:
        self._open: dict[str, Question] = {}
        self._kinds: dict[str, tuple[Kind, ...]] = {}  # what each page asked for
        self._heard: dict[str, float] = {}

    def question(
        self, page: str, kinds: Sequence[Kind], ask: Callable[[int, Sequence[Kind]], list[Question]]
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

        Returns
        -------
        Question or None
            The same until it is answered; None if nothing is left to ask.
        """
        found = self._open.get(page)
        unchanged, self._kinds[page] = self._kinds.get(page) == tuple(kinds), tuple(kinds)
        if found is not None and (unchanged or found.kind in kinds or found.why == TAKEN_BACK):
            return found
        self._open.pop(page, None)
        self.hear(page)
        taken = {frozenset(other.rows) for other in self._open.values()}
        coming = ask(1 + len(taken), kinds)
        if not coming:
            return None
        found = next((one for one in coming if frozenset(one.rows) not in taken), coming[-1])
        self._open[page] = found
        return found

    def hear(self, page: str) -> None:
        """Note that a page is alive, and release the questions of pages that are not."""
        now = time.monotonic()
        self._heard[page] = now
        for other in [other for other, last in self._heard.items() if now - last > SILENCE]:
            del self._heard[other]
            self._open.pop(other, None)
            self._kinds.pop(other, None)

    def answered(self, page: str) -> None:
        """Another question for this page."""
        self._open.pop(page, None)

    def taken_back(self, page: str, entry: Entry, rows: Sequence[int], settings: QuestionSettings) -> None:
        """Ask the question again whose answer was undone on a page."""
        if entry["entry"] in ("answer", "which", "group"):
            kind: Kind = "pair" if entry["entry"] == "answer" else entry["entry"]
            self._open[page] = Question(kind, tuple(rows), TAKEN_BACK, seconds_for(kind, len(rows), settings))

    def clear(self) -> None:
        """Other questions for all pages."""
        self._open.clear()
