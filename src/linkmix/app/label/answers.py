"""Turns the entries of a journal, which name points by id, into answers about rows."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from linkmix.basics.journal import Entry
from linkmix.queries import SAID, Answer, Answers, Audit
from linkmix.queries.answers import pair_of
from linkmix.tables.ids import Ids


class Record:
    """The answers that follow from a journal, updated by each entry.

    Entries have a field ``entry``:

    * ``answer``: ``ids`` holds two ids and ``said`` one of `SAID`.
    * ``together``: ``ids`` holds the ids of points that all belong together, recorded as a chain of must-links.
    * ``nowhere``: the points in ``ids`` belong to no class.
    * ``remove``: drops everything said about the pair in ``ids``, or that the one point in it belongs to no class.
    * ``undo``: undoes the entry with the key ``of``, as if it had never been made.
    * ``audit``: an audit begins; see `as_entry`. ``give up`` ends it early, and its answers become ordinary ones.
    * ``links``: ``statements`` from a file of links replace everything said before, which can then no longer be
      undone.
    * ``wrote``: a file of links with this ``digest`` was written.

    Parameters
    ----------
    ids : iterable of str
        Ids of the points, in their order.
    said : Answers, optional
        Collects the answers.

    Attributes
    ----------
    said : Answers
        All answers that have not been undone.
    counts : dict of str to int
        How often each answer to a question was given.
    entries : dict of str to dict
        Entries by key, including undone ones.
    written : tuple of str
        Digests of the last two versions of the file of links that were read or written, the newest last. Two are kept
        because a crash may come just before the newest replaces the other.
    row_of : dict of str to int
        Row of each id.
    """

    def __init__(self, ids: Iterable[str], said: Answers | None = None) -> None:
        self.said = Answers() if said is None else said
        self.counts = dict.fromkeys(SAID, 0)
        self.entries: dict[str, Entry] = {}
        self.written: tuple[str, ...] = ()
        self.row_of = {value: row for row, value in enumerate(ids)}
        self._strangers: dict[str, int] = {}  # negative row numbers for ids that are not in the table

    def take(self, entry: Entry) -> None:
        """Process the next entry."""
        what = entry["entry"]
        if "key" in entry:
            self.entries[entry["key"]] = entry
        if what == "undo":
            self.said.undo(entry["of"])
            undone = self.entries[entry["of"]]
            if undone["entry"] == "answer":
                self.counts[undone["said"]] -= 1
        elif what in ("links", "wrote"):
            self.written = (*self.written[-1:], entry["digest"])
            if what == "links":
                self.said.restart(
                    Answer(self._row(a), self._row(b), said, annotator, confidence, chosen=any(chosen))
                    for a, b, said, confidence, annotator, *chosen in entry["statements"]
                )
        elif what == "audit":
            self._begin(entry)
        elif what == "give up":
            self.said.give_up_audit()
        else:
            said: Any = {"together": "same", "remove": "remove", "nowhere": "nowhere"}.get(what) or entry["said"]
            rows = [self._row(value) for value in entry["ids"]]
            pairs = [(row, row) for row in rows] if what == "nowhere" or len(rows) == 1 else pairwise(rows)
            answers = [Answer(a, b, said, entry["annotator"], chosen=not self.said.is_audited(a, b)) for a, b in pairs]
            self.said.add(*answers, key=entry["key"])
            if what == "answer":
                self.counts[said] += 1

    def stranger(self) -> str | None:
        """An id that an answer names but the table does not contain; None if there is none."""
        rows = {row for answer in self.said for row in (answer.a, answer.b)}
        return next((value for value, row in self._strangers.items() if row in rows), None)

    def _begin(self, entry: Entry) -> None:
        """Begin an audit, unless points of it are not in the table any more."""
        if all(value in self.row_of for pair in entry["pairs"] for value in pair):
            pairs = tuple(pair_of(*(self.row_of[value] for value in pair)) for pair in entry["pairs"])
            same, different = entry["known"]
            numbers = tuple(entry["wanted"]), tuple(entry["unknown"]), (tuple(same), tuple(different))
            self.said.begin_audit(Audit(pairs, tuple(entry["judged_same"]), *numbers))

    def _row(self, value: str) -> int:
        row = self.row_of.get(value)
        return self._strangers.setdefault(value, -1 - len(self._strangers)) if row is None else row


def as_entry(audit: Audit, ids: Ids) -> Entry:
    """An audit as fields of an entry, its pairs by ids, so that it can go on after a new start."""
    fields = {name: getattr(audit, name) for name in ("judged_same", "wanted", "unknown", "known")}
    return {"entry": "audit", "pairs": [[str(ids[a]), str(ids[b])] for a, b in audit.pairs], **fields}


def fold(entries: Iterable[Entry], ids: Iterable[str], said: Answers | None = None) -> Record:
    """Process a whole journal.

    Parameters
    ----------
    entries : iterable of dict
        Entries in the order of the journal.
    ids : iterable of str
        Ids of the points, in their order.
    said : Answers, optional
        Collects the answers.

    Returns
    -------
    Record

    Examples
    --------
    >>> answers = [
    ...     {"entry": "answer", "key": "k1", "ids": ["anna", "bob"], "said": "same", "annotator": None},
    ...     {"entry": "answer", "key": "k2", "ids": ["bob", "carl"], "said": "same", "annotator": None},
    ...     {"entry": "undo", "key": "k3", "of": "k2"},
    ... ]
    >>> [tuple(answer) for answer in fold(answers, ["anna", "bob", "carl"]).said.links]
    [(0, 1, 'same')]
    """
    entries = list(entries)
    undone = {entry["of"] for entry in entries if entry["entry"] == "undo"}
    record = Record(ids, said)
    for entry in entries:
        if entry["entry"] == "undo" or entry.get("key") in undone:  # as if it had never been made; its key is used up
            record.entries[entry["key"]] = entry
        else:
            record.take(entry)
    return record
