"""A labelling session: it asks questions and writes each answer to a journal. It knows nothing about HTTP."""

import copy
import hashlib
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np

from linkmix.app.label.answers import as_entry, fold
from linkmix.app.label.cards import Cards
from linkmix.basics.arrays import Floats, Ints
from linkmix.basics.errors import BadFile
from linkmix.basics.files import aside
from linkmix.basics.journal import Entry, Journal
from linkmix.queries import SAID, Answer, Background, Questioner, Refit, State
from linkmix.queries.answers import as_links, pair_of
from linkmix.queries.audit import N_QUESTIONS
from linkmix.tables import Points, read_link_lines, to_links, write_ids, write_links

MOST_TOGETHER = 2000
"""Number of points that can be said to belong together at once."""
LINKS_SHOWN = 500
"""Number of links in a status, the newest ones."""
REVIEW_SHOWN = 10
"""Number of doubtful links in a status."""
DOUBTFUL = 0.5
"""A link is doubtful if the model finds it wrong with a higher probability than this."""
SILENCE = 60.0
"""Seconds after which the question of a page that has gone silent may be put to another page."""
WRITE_AFTER = 0.3
"""Seconds that the file of links may be behind the journal."""
_LONGEST_NAME = 100
_ENTRIES = ("answer", "together", "nowhere", "remove", "undo", "audit", "give up")


class NotPossible(ValueError):
    """The request makes sense, but not now."""


class Session:
    """Collects people's answers about points; no answer is lost in a crash.

    Each answer is on disk, as a line of the journal, before `write` returns, and everything else follows from the
    journal. The file of links is updated a moment later. The model is refitted in a background thread.

    Parameters
    ----------
    points : Points
        The table.
    n_classes : int
        Number of classes.
    links_path : path
        File of links. It is read at the start and updated from then on. The journal lies beside it, with ``.journal``
        appended to its name.
    folder : path
        Folder with the pictures that the table names.
    wrong : float, default=0.0
        Share of answers that are expected to be wrong. If it is not 0, doubtful pairs are asked about again, and links
        have a confidence.
    noise : bool, default=False
        Whether points may belong to no class. People can say so, and the model finds others.
    n_audit : int, default=20
        Number of random questions that tell how good the labels are, once someone asks for them.
    seed : int, default=0
        Seed of the questions.

    Attributes
    ----------
    version : int
        Grows whenever something changes.
    table : str
        A digest of the ids, since row numbers are valid for one table only.
    background : Background
        Refits the model.
    noise_path : Path
        File with the ids of points that were said to belong to no class, if there may be such points.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> X = np.concatenate([np.random.default_rng(0).normal(size=(20, 2)) + 6 * k for k in range(3)])
    >>> points = Points(np.array([f"p{i}" for i in range(60)], dtype=object), ("x", "y"), X)
    >>> folder = Path(tempfile.mkdtemp())
    >>> with Session(points, 3, folder / "links.csv", folder) as session:
    ...     session.write({"entry": "answer", "key": "k1", "rows": [0, 1], "said": "same"})
    ...     session.write({"entry": "answer", "key": "k2", "rows": [1, 21], "said": "different", "annotator": "ida"})
    >>> print((folder / "links.csv").read_text())
    a,b,kind,annotator,chosen
    p0,p1,must,,yes
    p1,p21,cannot,ida,yes
    <BLANKLINE>
    """

    def __init__(
        self,
        points: Points,
        n_classes: int,
        links_path: str | Path,
        folder: str | Path,
        *,
        wrong: float = 0.0,
        noise: bool = False,
        n_audit: int = N_QUESTIONS,
        seed: int = 0,
    ) -> None:
        self.points = points
        self.n_classes = n_classes
        self.noise = noise
        self.n_audit = n_audit
        self.links_path = Path(links_path)
        self.noise_path = self.links_path.with_name(f"{self.links_path.stem}-noise.csv")
        self.cards = Cards(points, folder)
        self.version = 1
        self.table = hashlib.sha256("\n".join(points.ids).encode()).hexdigest()[:16]
        self._asker = Questioner(points.coded, n_classes, wrong=wrong, noise=noise, random_state=seed)
        self._journal = Journal(self.links_path.with_name(self.links_path.name + ".journal"))
        try:
            self._record = fold(self._journal.entries, points.ids, self._asker.said)
            self._said = self._record.said
            self._take_in_links()
            self._check_ids()
        except BaseException:
            self._journal.close()
            raise
        self._open: dict[str, tuple[int, int]] = {}  # the question of each page
        self._heard: dict[str, float] = {}
        self._lock = threading.Condition()
        self._closing = False
        self._file_trouble: str | None = None
        self._refits = 0  # how often the labels were refitted
        self._models = 0  # how many models have chosen questions
        self._settled = 0  # refits in a row that found nearly all labels settled
        self._shown = self._asker  # with the labels of the last refit
        self._answered = -self._asker.settings.refit_every  # answers known to the model that chooses questions
        self.background = Background(
            self._snapshot, self._refitted, self._adopt, lock=self._lock, changed=self._changed
        )
        if len(self._said):
            self.background.want()
        self._write_wanted = bool(self._journal.entries)
        self._writer = threading.Thread(target=self._write_always, daemon=True)
        self._writer.start()

    def __enter__(self) -> Self:
        """Enter the context."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the session."""
        self.close()

    def close(self) -> None:
        """Write the file of links and release the journal."""
        with self._lock:
            if self._closing:
                return
            self._closing = True
            self.background.stop()  # without waiting: a refit leaves nothing to save
            self._lock.notify_all()
        self._writer.join()
        self._journal.close()

    # Requests

    def write(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Record an entry, and return once it is on disk.

        Parameters
        ----------
        request : dict
            ``entry`` is "answer", "together", "nowhere", "remove", "undo", "audit" or "give up". ``key`` is chosen by
            the sender; an entry with a key that was used before is ignored, so a request can be repeated if no reply
            came. ``rows`` are row numbers, ``said`` is an answer, ``annotator`` may name the person and ``page`` the
            page that sends it.

        Returns
        -------
        dict or None
            For an undo, the entry that was undone.

        Raises
        ------
        NotPossible
            If there is nothing to undo, to remove, to audit or to give up.
        ValueError
            If the request is invalid.
        """
        entry = self._entry(request)
        page = request.get("page")
        with self._lock:
            if self._closing:
                raise NotPossible("the server is stopping: start it again and repeat")
            if entry["key"] in self._record.entries:
                return None
            undone = self._make_definite(entry)
            auditing = self._said.audit is not None
            self._note(entry)
            if auditing != (self._said.audit is not None):
                self._open.clear()  # other questions from now on
            if self._said.audit is None:  # the labels that are measured stay until it is complete
                self.background.want()
            self._write_wanted = True
            if isinstance(page, str):
                self._open.pop(page, None)
                if undone is not None and undone["entry"] == "answer":  # ask that one again
                    a, b = (self._record.row_of[value] for value in undone["ids"])
                    self._open[page] = (a, b)
            self._changed()
            return undone

    def _entry(self, request: dict[str, Any]) -> Entry:
        """A request as a line of the journal."""
        what, key = request.get("entry"), request.get("key")
        if what not in _ENTRIES:
            raise ValueError(f"entry is {what!r}: use one of {', '.join(_ENTRIES)}")
        if not isinstance(key, str) or not 0 < len(key) <= _LONGEST_NAME:
            raise ValueError(
                f"key is {key!r}: give a string of 1 to {_LONGEST_NAME} characters, a new one for each entry"
            )
        entry: Entry = {"entry": what, "key": key}
        if what in ("answer", "together", "nowhere", "remove"):
            fewest = 1 if what in ("nowhere", "remove") else 2
            most = MOST_TOGETHER if what in ("together", "nowhere") else 2
            entry["ids"] = self._ids(request.get("rows"), fewest, most)
        if what == "answer":
            if request.get("said") not in SAID:
                raise ValueError(f"said is {request.get('said')!r}: use one of {', '.join(SAID)}")
            entry["said"] = request["said"]
        entry["annotator"] = _name(request.get("annotator"))
        entry["time"] = datetime.now(UTC).isoformat(timespec="milliseconds")
        return entry

    def _ids(self, rows: Any, fewest: int, most: int) -> list[str]:
        n = len(self.points.ids)
        if not isinstance(rows, list) or not fewest <= len(rows) <= most:
            found = f"has length {len(rows)}" if isinstance(rows, list) else f"is {rows!r}"
            wanted = f"{most}" if fewest == most else f"{fewest} to {most}"
            raise ValueError(f"rows {found}: give a list of {wanted} row numbers")
        for row in rows:
            if not isinstance(row, int) or isinstance(row, bool) or not 0 <= row < n:
                raise ValueError(f"row {row!r} does not exist: rows are numbered from 0 to {n - 1}")
        if len(set(rows)) < len(rows):
            raise ValueError("rows names a row twice: name each row once")
        return [str(self.points.ids[row]) for row in rows]

    def _make_definite(self, entry: Entry) -> Entry | None:
        """Record which entry an undo refers to; refuse a request that would change nothing."""
        if entry["entry"] == "undo":
            key = self._said.last_turn(entry["annotator"])
            if key is None:
                raise NotPossible("there is nothing of yours to undo")
            undone = self._record.entries[str(key)]
            if not self._record.row_of.keys() >= set(undone["ids"]):  # a link was removed, and then its point
                raise NotPossible(f"{' and '.join(undone['ids'])} are not all in the table any more")
            entry["of"] = undone["key"]
            return undone
        rows = [self._record.row_of[value] for value in entry.get("ids", ())]
        nowhere = {answer.a for answer in self._said.nowhere}
        if entry["entry"] == "remove":
            if len(rows) == 1 and rows[0] not in nowhere:
                raise NotPossible("nobody says any more that this point belongs to no class")
            if len(rows) == 2 and not self._said.words(*rows):
                raise NotPossible("there is no link between these points any more")
        elif nowhere.intersection(rows) and entry["entry"] != "nowhere":
            row = next(row for row in rows if row in nowhere)
            raise NotPossible(f"{self.points.ids[row]} was said to belong to no class: remove that first")
        if entry["entry"] == "nowhere":
            if not self.noise:
                raise NotPossible("every point has a class here: start the server with linkmix label --noise")
            if self._said.audit is not None:
                raise NotPossible("a check is under way, which is about pairs: answer unsure, or stop the check")
            if nowhere.issuperset(rows):
                raise NotPossible("that was said before")
        if entry["entry"] == "audit":
            if self._said.audit is not None:
                raise NotPossible("the check is under way already")
            audit = self._asker.draw_audit(self.n_audit, self._shown.labels)
            if audit.is_complete:
                raise NotPossible("every pair is known already, so there is nothing to ask")
            entry |= as_entry(audit, self.points.ids)
        if entry["entry"] == "give up" and self._said.audit is None:
            raise NotPossible("no check is under way")
        return None

    # Replies

    def question(self, page: str) -> dict[str, Any] | None:
        """The question of a page; the same one until it is answered.

        Parameters
        ----------
        page : str
            Which page asks. Two pages get different pairs, as long as there are others.

        Returns
        -------
        dict or None
            Two points side by side, as `Cards.pair` gives them, with their labels, and whether they were asked about
            before (``again``); None if nothing is left to ask. In an audit, ``audit`` has how many of its questions
            were answered, and of how many; labels are then None, since they would suggest an answer.
        """
        with self._lock:
            pair = self._open.get(page)
            if pair is None:
                self.hear(page)
                taken = {frozenset(other) for other in self._open.values()}
                for a, b in self._asker.next(1 + len(taken)).tolist():
                    pair = (a, b)
                    if frozenset(pair) not in taken:
                        break
                if pair is None:
                    return None
                self._open[page] = pair
            labels, again, audit = self.labels(), bool(self._said.words(*pair)), self._audit()
        shown = self.cards.pair(*pair)
        shown["again"], shown["audit"] = again, audit
        for end in ("a", "b"):
            shown[end]["label"] = int(labels[shown[end]["row"]]) if audit is None else None
        return shown

    def _audit(self) -> dict[str, int] | None:
        """How far the audit is; None if there is none under way."""
        audit = self._said.audit
        return None if audit is None else {"answered": audit.n_answered, "n": audit.n}

    @property
    def how_good(self) -> str | None:
        """What the last complete audit found, in words; None before one."""
        with self._lock:
            quality = self._said.quality
        return None if quality is None else str(quality)

    def hear(self, page: str) -> None:
        """Note that a page is alive, and release the questions of pages that are not."""
        with self._lock:
            now = time.monotonic()
            self._heard[page] = now
            for other in [other for other, last in self._heard.items() if now - last > SILENCE]:
                del self._heard[other]
                self._open.pop(other, None)

    def row_of(self, id: str) -> int | None:
        """Row of the point with this id; None if there is none."""
        return self._record.row_of.get(id)

    def labels(self) -> Ints:
        """Class of each point according to the last refit."""
        return self._shown.labels

    @property
    def n_links(self) -> dict[str, int]:
        """How many must-links (same) and cannot-links (different) there are."""
        with self._lock:
            return _count(self._said.links)

    @property
    def n_nowhere(self) -> int:
        """How many points were said to belong to no class."""
        with self._lock:
            return len(self._said.nowhere)

    def status(self) -> dict[str, Any]:
        """Everything that a page shows besides the question and the map, ready for JSON."""
        with self._lock:
            links, nowhere, asker = self._said.links, self._said.nowhere, self._shown
            error = self.background.error
            troubles = [None if error is None else f"The model could not be refitted: {error}.", self._file_trouble]
            status: dict[str, Any] = {
                "version": self.version,
                "table": self.table,
                "refits": self._refits,
                "fitting": self.background.running,
                "trouble": " ".join(filter(None, troubles)) or None,
                "stop": self._stop(),
                "audit": self._audit(),
                "how_good": self.how_good,
                "counts": dict(self._record.counts),
                "annotators": sorted({turn[0].annotator or "" for turn in self._said.turns.values()} - {""}),
            }
        status["n_links"] = _count(links)
        status["nowhere"] = [self._as_nowhere(answer) for answer in nowhere[: -LINKS_SHOWN - 1 : -1]]
        status["n_nowhere"] = len(nowhere)
        status["links"] = [self._as_shown(answer) for answer in links[: -LINKS_SHOWN - 1 : -1]]
        status["review"] = self._review(links, asker)
        status["sizes"] = np.bincount(asker.labels[asker.labels >= 0], minlength=self.n_classes).tolist()
        status["n_noise"] = int((asker.labels < 0).sum())
        return status

    def _as_shown(self, answer: Answer) -> dict[str, Any]:
        rows = [answer.a, answer.b]
        return {
            "rows": rows,
            "ids": [str(self.points.ids[row]) for row in rows],
            "said": answer.said,
            "annotator": answer.annotator,
        }

    def _as_nowhere(self, answer: Answer) -> dict[str, Any]:
        return {"rows": [answer.a], "ids": [str(self.points.ids[answer.a])], "annotator": answer.annotator}

    def _review(self, links: tuple[Answer, ...], asker: Questioner) -> list[dict[str, Any]]:
        """Links worth a second look: those that contradict others, then those that the model doubts."""
        found: dict[tuple[int, int], dict[str, Any]] = {}
        by_pair = {answer.pair: answer for answer in links}
        for conflict in as_links(links).conflicts(REVIEW_SHOWN):
            pair = pair_of(*conflict.cannot)
            through = ", ".join(str(self.points.ids[row]) for row in conflict.chain[1:-1][:5])
            reason = f"other links join these two, through {through}" if through else "it was answered both ways"
            found[pair] = self._as_shown(by_pair[pair]) | {"reason": reason}
        for a, b, _, wrong in asker.review[:REVIEW_SHOWN].tolist():
            pair = pair_of(a, b)
            if wrong > DOUBTFUL and pair in by_pair and pair not in found:
                found[pair] = self._as_shown(by_pair[pair]) | {"reason": f"wrong with probability {wrong:.2f}"}
        return list(found.values())[:REVIEW_SHOWN]

    def _stop(self) -> dict[str, Any]:
        signal = self._asker.stop_signal if self._models >= 2 else 1.0
        share = f"about {100 * signal:.0f} %" if signal >= 0.01 else "less than 1 %"
        if self._models < 2:
            enough = 2 * self._asker.settings.refit_every
            sentence = f"It is too early to say when to stop: answer {enough} questions first."
        elif self._settled >= 2:
            sentence = f"You can stop: {share} of the labels may still change."
        else:
            sentence = f"Go on: {share} of the labels may still change."
        return {"signal": round(signal, 4), "enough": self._settled >= 2, "sentence": sentence}

    # Background work

    def _changed(self) -> None:
        self.version += 1
        self._lock.notify_all()

    def _snapshot(self) -> tuple[Questioner, tuple[State, Refit, Floats], int]:
        return copy.copy(self._asker), self._asker.snapshot(), len(self._said.ordinary)

    @staticmethod
    def _refitted(snapshot: tuple[Questioner, tuple[State, Refit, Floats], int]) -> tuple[Questioner, int]:
        """A questioner with a new model, and the number of answers that the model was fitted to."""
        asker, points, answered = snapshot
        asker.adopt(asker.fit(points))
        return asker, answered

    def _adopt(self, found: tuple[Questioner, int]) -> None:
        """Show the labels of a new model; after enough answers, choose questions by it as well."""
        self._shown, answered = found
        self._refits += 1
        settings = self._asker.settings
        if abs(answered - self._answered) >= settings.refit_every:
            self._asker, self._answered = found
            self._models += 1
            self._settled = self._settled + 1 if self._asker.stop_signal < settings.settled else 0

    def _write_always(self) -> None:
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._write_wanted or self._closing)
                self._lock.wait_for(lambda: self._closing, WRITE_AFTER)
                last, wanted, links = self._closing, self._write_wanted, self._said.links
                nowhere = [answer.a for answer in self._said.nowhere]
                self._write_wanted = False
            if wanted:
                trouble = self._write_links(links) or self._write_noise(nowhere)
                with self._lock:
                    if trouble != self._file_trouble:
                        self._file_trouble = trouble
                        self._changed()
            if last:
                return

    def _write_links(self, links: tuple[Answer, ...]) -> str | None:
        """Write the file of links. Its digest is in the journal before it replaces the old file.

        Returns a message if this fails. The journal holds everything, so the file can be written later.
        """
        try:
            with aside(self.links_path) as place:
                write_links(place, as_links(links), self.points.ids)
                digest = _digest(place)
                with self._lock:
                    if self._record.written[-1:] != (digest,):
                        self._note({"entry": "wrote", "digest": digest})
            return None
        except OSError as error:
            return f"{self.links_path} could not be written: {error.strerror}."

    def _write_noise(self, rows: list[int]) -> str | None:
        """Write the ids of points that were said to belong to no class; a message if this fails."""
        if not self.noise:
            return None
        try:
            with aside(self.noise_path) as place:
                write_ids(place, [str(self.points.ids[row]) for row in rows])
            return None
        except OSError as error:
            return f"{self.noise_path} could not be written: {error.strerror}."

    def _note(self, entry: Entry) -> None:
        self._journal.append(entry)
        self._record.take(entry)

    # Start-up

    def _take_in_links(self) -> None:
        """Read the file of links, unless a session wrote it."""
        if not self.links_path.exists() or not self.links_path.stat().st_size:
            return
        digest = _digest(self.links_path)
        if digest in self._record.written:
            return
        found = read_link_lines(self.links_path)
        to_links(self.links_path, found, self.points.ids)  # raises if an id is not known, and names the line
        statements = [
            [
                *(str(self.points.ids[end]) if isinstance(end, int) else end for end in (one.a, one.b)),
                "same" if one.is_must else "different",
                one.confidence,
                one.annotator,
                one.chosen,
            ]
            for one in found
        ]
        self._note({"entry": "links", "statements": statements, "digest": digest})

    def _check_ids(self) -> None:
        stranger = self._record.stranger()
        if stranger is not None:
            raise BadFile(
                self._journal.path,
                f"holds an answer about {stranger!r}, which is not among the ids of the points: give the table that "
                "the answers are about, or another file of links",
            )
        if self._said.nowhere and not self.noise:
            one = self.points.ids[self._said.nowhere[0].a]
            raise BadFile(
                self._journal.path,
                f"says that {one!r} belongs to no class: start with --noise, or give another file of links",
            )


def _count(links: tuple[Answer, ...]) -> dict[str, int]:
    """How many must-links (same) and cannot-links (different) there are."""
    same = sum(answer.said == "same" for answer in links)
    return {"same": same, "different": len(links) - same}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _name(given: Any) -> str | None:
    """The name of a person, without characters that would break a line."""
    if given is None:
        return None
    if not isinstance(given, str) or len(given) > _LONGEST_NAME:
        raise ValueError(f"annotator is {given!r}: give a name of at most {_LONGEST_NAME} characters")
    return "".join(letter for letter in given if letter.isprintable()).strip() or None
