"""Turns the entries of a journal, which name points by id, into answers about rows, names of classes and notes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from linkmix.basics.journal import Entry
from linkmix.queries import SAID, Answer, Answers, Audit
from linkmix.queries.answers import Pair, pair_of
from linkmix.queries.questions import answers_to
from linkmix.tables.ids import Ids


@dataclass(frozen=True)
class Name:
    """What people call a class: the class that holds the point that was named, its face.

    Attributes
    ----------
    name : str
    colour : int or None
        Number of a colour; None for that of the class number.
    description : str
    """

    name: str
    colour: int | None = None
    description: str = ""


TURNS = (
    *("answer", "together", "which", "group", "nowhere", "remove"),
    *("name", "belongs", "not", "merge", "split", "turn", "keep"),
)
"""Entries that people make and can undo."""


class ImpossibleEntry(ValueError):
    """An entry that no session has written.

    Parameters
    ----------
    number : int
        Its place among the entries, from 0.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"entry {number} is not one of a session")
        self.number = number


class Record:
    """What follows from a journal, updated by each entry.

    Entries have a field ``entry``. Of those that people make, each is one turn, undone as a whole; ``ids`` are points,
    ``face`` is the point that a class is shown by, and ``drop`` are pairs about which nothing said before counts, since
    it contradicts the entry:

    * ``answer``: about the two points in ``ids``, ``said`` is one of `SAID`.
    * ``which``: the first of ``ids`` is the same as those in ``like`` and different from the others.
    * ``group``: the first of ``ids`` is different from those in ``out`` and the same as the others. With ``said``,
      "unsure" or "skip", nothing is known of either.
    * ``together``: all points in ``ids`` belong together, recorded as a chain of must-links.
    * ``nowhere``: the points in ``ids`` belong to no class.
    * ``belongs``, ``not``: the points in ``ids`` belong to the class of ``face``, or do not.
    * ``split``: the points in ``ids`` belong together, in another class than ``face`` and than the faces of other
      classes, ``apart``: in a new one.
    * ``merge``: the two points in ``ids``, faces of two classes, belong together. Of two names the first one stays.
    * ``name``: the class of the point in ``ids`` has a name (or none any more) and is different from the classes of
      ``apart``, which have other names; it had the names of ``replaces`` before.
    * ``turn``: the pair in ``ids`` is ``said`` to be the opposite of what was said before.
    * ``keep``: what was said about the pair in ``ids`` is right, whatever the model says.
    * ``remove``: drops everything said about the pair in ``ids``, or that the one point in it belongs to no class.
    * ``undo``: undoes the entry with the key ``of``, as if it had never been made.
    * ``audit``: an audit begins; see `as_entry`. ``give up`` ends it early, and its answers become ordinary ones.

    And those that a session makes:

    * ``links``: ``statements`` from a file of links replace everything said before, which can then no longer be
      undone.
    * ``added``: more ``statements``, which another program has added to the file of links while the session ran. They
      cannot be undone, but removed. The file had this ``digest``.
    * ``wrote``: a file of links with this ``digest`` is to take the place of the one with the digest ``replaces``.
    * ``model``: after so many ``answers`` a model was found whose labels had ``settled`` to this degree.
    * ``finished``: results were written, among them a model with this ``digest``; ``result`` says which.

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
    names : dict of int to Name
        Names by the rows that have them, the oldest first.
    kept : set of (int, int)
        Pairs that were confirmed.
    n_more : int
        By how many classes people's splits outnumber their merges.
    counts : dict of str to int
        How often each answer to a question was given, and how many questions about more than two points.
    entries : dict of str to dict
        Entries by key, including undone ones.
    written : tuple of str
        Digests that the file of links may have, the newest last: a crash may come just before that replaces the other.
    history : list of dict
        How far labels had settled, after how many answers.
    audits : list of dict
        What complete audits found, after how many answers.
    finished : dict or None
        The last results.
    unchanged : str or None
        Digest of the model that was written last, if nothing was said since.
    row_of : dict of str to int
        Row of each id.
    """

    def __init__(self, ids: Iterable[str], said: Answers | None = None) -> None:
        self.said = Answers() if said is None else said
        self.names: dict[int, Name] = {}
        self.kept: set[Pair] = set()
        self.n_more = 0
        self.counts = dict.fromkeys((*SAID, "which", "group"), 0)
        self.entries: dict[str, Entry] = {}
        self.written: tuple[str, ...] = ()
        self.history: list[dict[str, Any]] = []
        self.audits: list[dict[str, Any]] = []
        self.finished: dict[str, Any] | None = None
        self.unchanged: str | None = None
        self.row_of = {value: row for row, value in enumerate(ids)}
        self._turns: dict[str, Entry] = {}  # what can be undone, oldest first
        self._settled: list[Entry] = []  # what can no longer be undone
        self._strangers: dict[str, int] = {}  # negative row numbers for ids that are not in the table

    def take(self, entry: Entry) -> None:
        """Process the next entry."""
        what = entry["entry"]
        if "key" in entry:
            self.entries[entry["key"]] = entry
        if what not in ("wrote", "model"):
            self.unchanged = entry.get("digest") if what == "finished" else None
        if what == "undo":
            self._undo(entry["of"])
        elif what in ("links", "added", "wrote"):
            before = (entry["replaces"],) if "replaces" in entry else self.written[-1:]
            self.written = (*filter(None, before), entry["digest"])
            if what == "links":
                self._settled += self._turns.values()
                self._turns.clear()
                self.said.restart(self.stated(entry["statements"]))
            elif what == "added":
                self.said.add(*self.stated(entry["statements"]))
        elif what == "audit":
            self._begin(entry)
        elif what == "give up":
            self.said.give_up_audit()
        elif what == "model":
            self.history.append({name: entry[name] for name in ("answers", "settled")})
        elif what == "finished":
            self.finished = entry["result"]
        else:
            self._turns[entry["key"]] = entry
            if answers := self._answers(entry):
                self.said.add(*answers, key=entry["key"])
            self._count(entry, 1)
            self._remember(entry)
        self._compare_audits()

    def last_turn(self, annotator: str | None) -> str | None:
        """Key of the last turn of an annotator that can be undone; None if there is none."""
        return next((key for key in reversed(self._turns) if self._turns[key]["annotator"] == annotator), None)

    def stranger(self) -> str | None:
        """An id that an answer names but the table does not contain; None if there is none."""
        rows = {row for answer in self.said for row in (answer.a, answer.b)} | set(self.names)
        return next((value for value, row in self._strangers.items() if row in rows), None)

    def _answers(self, entry: Entry) -> list[Answer]:
        """What an entry says about pairs, in the order in which it counts."""
        what, rows = entry["entry"], [self._row(value) for value in entry["ids"]]
        if what not in TURNS or (entry.get("said") or "same") not in SAID:
            raise ValueError(f"entry {what!r}, said {entry.get('said')!r}")  # of another program, or by hand
        who = entry["annotator"]
        face = self._row(entry["face"]) if "face" in entry else -1
        dropped = [(self._row(a), self._row(b)) for a, b in entry.get("drop", ())]
        found: list[Any] = [(a, b, "remove") for a, b in dropped]
        if what in ("which", "group"):
            picked = [self._row(value) for value in entry.get("like" if what == "which" else "out", ())]
            found += answers_to(what, tuple(rows), picked, entry.get("said"))
        elif what == "nowhere" or (what == "remove" and len(rows) == 1):
            found += [(row, row, what) for row in rows]
        elif what == "remove":
            found += [(*rows, what)]
        elif what == "turn":
            found += [(*rows, "remove"), (*rows, entry["said"])]
        elif what in ("belongs", "not"):
            found += [(row, face, "same" if what == "belongs" else "different") for row in rows]
        elif what not in ("name", "keep"):
            found += [(a, b, entry.get("said", "same")) for a, b in pairwise(rows)]
            found += [(rows[0], face, "different")] if what == "split" else []
        found += [(rows[0], self._row(other), "different") for other in entry.get("apart", ())]
        return [Answer(a, b, said, who, chosen=not self.said.is_audited(a, b)) for a, b, said in found]

    def stated(self, statements: Iterable[Sequence[Any]]) -> list[Answer]:
        """What statements of a file of links say about rows."""
        return [
            Answer(self._row(a), self._row(b), said, annotator, confidence, given=True, chosen=any(chosen))
            for a, b, said, confidence, annotator, *chosen in statements
        ]

    def _count(self, entry: Entry, by: int) -> None:
        what = entry["entry"]
        if what in ("answer", "which", "group"):
            self.counts[entry["said"] if what == "answer" else what] += by

    def _remember(self, entry: Entry) -> None:
        """Take what an entry says beside answers: names, and pairs that were confirmed."""
        what, rows = entry["entry"], [self._row(value) for value in entry["ids"]]
        if what == "name":
            for value in entry["replaces"]:
                self.names.pop(self._row(value), None)
            if entry["name"] is None:
                self.names.pop(rows[0], None)
            else:
                self.names[rows[0]] = Name(entry["name"], entry["colour"], entry["description"])
        elif what == "merge" and self.names.keys() >= set(rows):
            del self.names[rows[1]]
        elif what == "keep":
            self.kept.add(pair_of(*rows))
        elif what in ("turn", "remove") and len(rows) == 2:
            self.kept.discard(pair_of(*rows))
        self.n_more += {"split": 1, "merge": -1}.get(what, 0)

    def _undo(self, key: str) -> None:
        undone = self._turns.pop(key)
        if key in self.said.turns:
            self.said.undo(key)
        self._count(undone, -1)
        self.names, self.kept, self.n_more = {}, set(), 0
        for entry in (*self._settled, *self._turns.values()):
            self._remember(entry)

    def _compare_audits(self) -> None:
        """Note what an audit has found when it is complete; forget it if an undo opens it again."""
        found = self.said.audits
        del self.audits[len(found) :]
        for quality in found[len(self.audits) :]:
            n = len(self.said.ordinary) - quality.n_links
            numbers = {"right": quality.pairs_right, "low": quality.low, "high": quality.high}
            self.audits.append({"answers": n, "n": quality.n_links, **numbers})

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

    Raises
    ------
    ImpossibleEntry
        If an entry is not one that a session writes.

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
    undone = {entry.get("of") for entry in entries if entry.get("entry") == "undo"}
    record = Record(ids, said)
    for number, entry in enumerate(entries):
        try:
            if entry["entry"] == "undo" or entry.get("key") in undone:  # as if it had never been made; its key is used
                record.entries[entry["key"]] = entry
                record.unchanged = None
            else:
                record.take(entry)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise ImpossibleEntry(number) from error
    return record
