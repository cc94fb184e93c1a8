"""What a journal of answers comes to. Pure: the same entries give the same state."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise

from linkmix.app.label.journal import Entry

SAID = ("same", "different", "unsure", "skip")
"""What can be said of a pair. It is not asked again after unsure, and only later after skip."""
Pair = tuple[str, str]


@dataclass(frozen=True)
class Statement:
    """What one person says of two points, or what a file does.

    Attributes
    ----------
    a, b : str
        Ids of the points.
    said : str
        One of `SAID`; same is a must-link and different a cannot-link.
    confidence : float or None
        None if it is certain.
    annotator : str or None
    lead : int or None
        For a link, how many more answers of this annotator say so than say the opposite. None if a file says it.
    """

    a: str
    b: str
    said: str
    confidence: float | None = None
    annotator: str | None = None
    lead: int | None = None

    @property
    def pair(self) -> Pair:
        """The two ids, the smaller one first."""
        return pair_of(self.a, self.b)


@dataclass(frozen=True)
class State:
    """All that is known after some entries.

    Attributes
    ----------
    statements : tuple of Statement
        All that was said and not taken back, in its order.
    links : tuple of Statement
        The must-links and cannot-links among them: the last word of each annotator about each pair.
    counts : dict of str to int
        How often each answer to a question was given.
    undoable : tuple of dict
        The entries that can be taken back, the oldest first.
    written : tuple of str
        Digests of the last two files of links that were read or written, the last one last. A crash may come just
        before the last one took its place.
    """

    statements: tuple[Statement, ...] = ()
    links: tuple[Statement, ...] = ()
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SAID, 0))
    undoable: tuple[Entry, ...] = ()
    written: tuple[str, ...] = ()


def pair_of(a: str, b: str) -> Pair:
    """The same pair whichever point comes first."""
    return (a, b) if a <= b else (b, a)


def fold(entries: Iterable[Entry]) -> State:
    """Add up the entries of a journal.

    Entries have a field ``entry``:

    * ``answer``: ``ids`` holds two ids and ``said`` one of `SAID`. In the links, a later answer of the same annotator
      about the same pair replaces an earlier one; two annotators who differ are both kept.
    * ``together``: ``ids`` holds the ids of points that all belong together, which is a chain of must-links.
    * ``remove``: drops whatever was said of the pair in ``ids``.
    * ``undo``: takes back the entry with the key ``of``, as if it had never been made.
    * ``links``: ``statements`` replace all that was said before. That is a file of links that was read, so what was
      before can not be undone.
    * ``wrote``: a file of links with this ``digest`` was written.

    Parameters
    ----------
    entries : iterable of dict
        Entries in the order of the journal.

    Returns
    -------
    State

    Examples
    --------
    >>> answers = [
    ...     {"entry": "answer", "key": "k1", "ids": ["anna", "bob"], "said": "same", "annotator": None},
    ...     {"entry": "answer", "key": "k2", "ids": ["bob", "carl"], "said": "same", "annotator": None},
    ...     {"entry": "undo", "key": "k3", "of": "k2"},
    ... ]
    >>> fold(answers).links
    (Statement(a='anna', b='bob', said='same', confidence=None, annotator=None, lead=1),)
    """
    entries = list(entries)
    undone = {entry["of"] for entry in entries if entry["entry"] == "undo"}
    statements: list[Statement] = []
    links = _LastWords()
    counts = dict.fromkeys(SAID, 0)
    undoable: list[Entry] = []
    written: list[str] = []
    for entry in entries:
        what = entry["entry"]
        if what == "wrote":
            written.append(entry["digest"])
        elif what == "links":
            written.append(entry["digest"])
            statements = [Statement(*values) for values in entry["statements"]]
            links = _LastWords(statements)
            undoable = []
        elif what != "undo" and entry["key"] not in undone:
            undoable.append(entry)
            ids, annotator = entry["ids"], entry["annotator"]
            if what == "remove":
                pair = pair_of(*ids)
                statements = [statement for statement in statements if statement.pair != pair]
                links.remove(pair)
                continue
            if what == "together":
                said = [Statement(a, b, "same", None, annotator) for a, b in pairwise(ids)]
            else:
                counts[entry["said"]] += 1
                said = [Statement(ids[0], ids[1], entry["said"], None, annotator)]
            statements += said
            for statement in said:
                links.add(statement)
    return State(tuple(statements), links.all(), counts, tuple(undoable), tuple(written[-2:]))


class _LastWords:
    """Links, in the order in which their pairs came up. What a file says twice stays there twice."""

    def __init__(self, from_file: Iterable[Statement] = ()) -> None:
        self._of: dict[Pair, dict[str | None, list[Statement]]] = {}
        for statement in from_file:
            self._of.setdefault(statement.pair, {}).setdefault(statement.annotator, []).append(statement)

    def add(self, statement: Statement) -> None:
        """What its annotator has said of the pair before gives way. A skip says nothing."""
        if statement.said in ("same", "different"):
            of_pair = self._of.setdefault(statement.pair, {})
            before = sum(
                (old.lead or 0) * (1 if old.said == statement.said else -1)
                for old in of_pair.get(statement.annotator, ())
            )
            of_pair[statement.annotator] = [replace(statement, lead=before + 1)]
        elif statement.said == "unsure":
            self._of.get(statement.pair, {}).pop(statement.annotator, None)

    def remove(self, pair: Pair) -> None:
        self._of.pop(pair, None)

    def all(self) -> tuple[Statement, ...]:
        return tuple(statement for by in self._of.values() for said in by.values() for statement in said)
