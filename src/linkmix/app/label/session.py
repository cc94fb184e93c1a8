"""A session: questions out, answers in, every one of them in the journal first. No web here."""

import copy
import hashlib
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np

from linkmix.app.label.answers import SAID, State, Statement, fold, pair_of
from linkmix.app.label.cards import Cards
from linkmix.app.label.journal import Entry, Journal
from linkmix.basics.arrays import Ints
from linkmix.basics.errors import BadFile
from linkmix.links import Links
from linkmix.queries import Questioner
from linkmix.queries.doubts import confidence
from linkmix.queries.questioner import SETTLED
from linkmix.tables import Points, read_link_lines, to_links, write_links

MOST_TOGETHER = 2000
"""Points that can be said to be all together at once."""
LINKS_SHOWN = 500
"""Links that a status holds, the newest ones."""
REVIEW_SHOWN = 10
"""Doubtful links that a status holds."""
DOUBTFUL = 0.5
"""A link is doubtful if the model thinks that it is wrong with more than this probability."""
REFIT_EVERY = 10
"""Answers after which questions go by a new model, and the stop signal by what it changed. Labels follow at once."""
SILENCE = 60.0
"""Seconds after which the question of a page that is heard of no more may be put to another one."""
WRITE_AFTER = 0.3
"""Seconds that the file of links may be behind the journal."""
_LONGEST_NAME = 100


class NotPossible(ValueError):
    """What was asked for makes sense, but not now."""


class Session:
    """Answers of people about points, safe against a crash at any time.

    All that is said is a line of the journal before `write` comes back, and all that is known follows from the journal.
    The file of links is written from it, a moment later. A model is refitted in a thread of its own.

    Parameters
    ----------
    points : Points
        The table.
    n_classes : int
        Number of classes.
    links_path : path
        File of links. What it holds is taken in; from then on it is written. The journal is beside it, with
        ``.journal`` after its name.
    folder : path
        Folder with the pictures that the table names.
    wrong : float, default=0.0
        Share of the answers that is expected to be wrong. Doubtful pairs are then asked about again, and links have a
        confidence.
    seed : int, default=0
        Seed of the questions.

    Attributes
    ----------
    version : int
        Grows whenever something changes.
    table : str
        A digest of the ids. Row numbers mean something for one table alone.

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
    a,b,kind,annotator
    p0,p1,must,
    p1,p21,cannot,ida
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
        seed: int = 0,
    ) -> None:
        self.points = points
        self.n_classes = n_classes
        self.links_path = Path(links_path)
        self.cards = Cards(points, folder)
        self.version = 1
        self.table = hashlib.sha256("\n".join(points.ids).encode()).hexdigest()[:16]
        self._row_of = {value: row for row, value in enumerate(points.ids)}
        self._wrong = wrong
        self._asker = Questioner(points.X, n_classes, wrong=wrong, random_state=seed)
        self._journal = Journal(self.links_path.with_name(self.links_path.name + ".journal"))
        try:
            self._state = fold(self._journal.entries)
            self._take_in_links()
            self._check_ids()
        except BaseException:
            self._journal.close()
            raise
        self._keys = {entry["key"] for entry in self._journal.entries if "key" in entry}
        self._open: dict[str, tuple[int, int]] = {}  # the question of each page
        self._heard: dict[str, float] = {}
        self._lock = threading.Condition()
        self._closing = False
        self._trouble: dict[str, str] = {}
        self._refits = 0  # of the labels
        self._models = 0  # that questions went by
        self._fitting_since: float | None = None
        self._settled = 0  # refits in a row that found nearly all labels settled
        self._shown = self._asker  # with the labels of the last refit
        self._answered = -REFIT_EVERY  # answers that the model of the questioner knows
        self._refit_wanted = self._follow()
        self._write_wanted = bool(self._journal.entries)
        self._threads = [
            threading.Thread(target=work, daemon=True) for work in (self._refit_always, self._write_always)
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        """Use a session for a while."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Write the file of links and release the journal."""
        with self._lock:
            if self._closing:
                return
            self._closing = True
            self._lock.notify_all()
        self._threads[1].join()  # a refit may take long, and nothing of it need be kept
        self._journal.close()

    # What comes in

    def write(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Record something that a person says, and come back when it is on the disk.

        Parameters
        ----------
        request : dict
            ``entry`` is "answer", "together", "remove" or "undo". ``key`` is made by the one who asks; a key that was
            used before changes nothing, so that a request can be repeated when no reply came. ``rows`` are row numbers,
            ``said`` is an answer, ``annotator`` may name the person, ``page`` the page that this comes from.

        Returns
        -------
        dict or None
            For an undo, the entry that was taken back.

        Raises
        ------
        NotPossible
            If there is nothing to undo or to remove.
        ValueError
            If the request makes no sense.
        """
        entry = self._entry(request)
        page = request.get("page")
        with self._lock:
            if self._closing:
                raise NotPossible("the server is stopping: start it again and repeat")
            if entry["key"] in self._keys:
                return None
            undone = self._make_definite(entry)
            self._journal.append(entry)
            self._keys.add(entry["key"])
            self._state = fold(self._journal.entries)
            self._refit_wanted |= self._follow()
            self._write_wanted = True
            if isinstance(page, str):
                self._open.pop(page, None)
                if undone is not None and undone["entry"] == "answer":  # ask that one again
                    a, b = (self._row_of[value] for value in undone["ids"])
                    self._open[page] = (a, b)
            self._changed()
            return undone

    def _entry(self, request: dict[str, Any]) -> Entry:
        """A request as a line of the journal."""
        what, key = request.get("entry"), request.get("key")
        if what not in ("answer", "together", "remove", "undo"):
            raise ValueError(f"entry is {what!r}: use answer, together, remove or undo")
        if not isinstance(key, str) or not 0 < len(key) <= _LONGEST_NAME:
            raise ValueError(
                f"key is {key!r}: give a text of 1 to {_LONGEST_NAME} characters, a new one for each entry"
            )
        entry: Entry = {"entry": what, "key": key}
        if what != "undo":
            entry["ids"] = self._ids(request.get("rows"), MOST_TOGETHER if what == "together" else 2)
        if what == "answer":
            if request.get("said") not in SAID:
                raise ValueError(f"said is {request.get('said')!r}: use one of {', '.join(SAID)}")
            entry["said"] = request["said"]
        entry["annotator"] = _name(request.get("annotator"))
        entry["time"] = datetime.now(UTC).isoformat(timespec="milliseconds")
        return entry

    def _ids(self, rows: Any, most: int) -> list[str]:
        n = len(self.points.ids)
        if not isinstance(rows, list) or not 2 <= len(rows) <= most:
            n_rows = len(rows) if isinstance(rows, list) else rows
            raise ValueError(f"rows are {n_rows}: give {'2' if most == 2 else f'from 2 to {most}'} row numbers")
        for row in rows:
            if not isinstance(row, int) or isinstance(row, bool) or not 0 <= row < n:
                raise ValueError(f"row {row!r} is not there: rows are numbered from 0 to {n - 1}")
        if len(set(rows)) < len(rows):
            raise ValueError("a row is named twice: name each once")
        return [str(self.points.ids[row]) for row in rows]

    def _make_definite(self, entry: Entry) -> Entry | None:
        """Say which entry an undo takes back; refuse what changes nothing."""
        if entry["entry"] == "undo":
            mine = [old for old in self._state.undoable if old["annotator"] == entry["annotator"]]
            if not mine:
                raise NotPossible("there is nothing of yours to undo")
            entry["of"] = mine[-1]["key"]
            return mine[-1]
        if entry["entry"] == "remove" and all(old.pair != pair_of(*entry["ids"]) for old in self._state.links):
            raise NotPossible("there is no link between these points any more")
        return None

    # What goes out

    def question(self, page: str) -> dict[str, Any] | None:
        """The question of a page; the same one until it is answered.

        Parameters
        ----------
        page : str
            Which page asks. Two pages do not get the same pair, if there are others.

        Returns
        -------
        dict or None
            Two points side by side, as `Cards.pair` gives them, with their labels, and whether they were asked about
            before (``again``); None if nothing is left to ask.
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
            labels, links = self.labels(), self._state.links
        shown = self.cards.pair(*pair)
        ids = pair_of(*(str(self.points.ids[row]) for row in pair))
        shown["again"] = any(statement.pair == ids for statement in links)
        for end in ("a", "b"):
            shown[end]["label"] = int(labels[shown[end]["row"]])
        return shown

    def hear(self, page: str) -> None:
        """A page is alive; the questions of those that are not are free again."""
        with self._lock:
            now = time.monotonic()
            self._heard[page] = now
            for other in [other for other, last in self._heard.items() if now - last > SILENCE]:
                del self._heard[other]
                self._open.pop(other, None)

    def row_of(self, id: str) -> int | None:
        """Row of the point with this id; None if there is none."""
        return self._row_of.get(id)

    def labels(self) -> Ints:
        """Class of each point, as far as the last refit knows."""
        return self._shown.labels

    @property
    def n_links(self) -> dict[str, int]:
        """How many must-links (same) and cannot-links (different) there are."""
        links = self._state.links
        same = sum(statement.said == "same" for statement in links)
        return {"same": same, "different": len(links) - same}

    def status(self) -> dict[str, Any]:
        """All that a page shows beside the question and the map, as JSON can hold it."""
        with self._lock:
            state, asker = self._state, self._shown
            status: dict[str, Any] = {
                "version": self.version,
                "table": self.table,
                "refits": self._refits,
                "fitting": self._fitting_since is not None,
                "trouble": " ".join(self._trouble.values()) or None,
                "stop": self._stop(),
            }
        status["counts"] = dict(state.counts)
        status["n_links"] = self.n_links
        status["links"] = [self._as_shown(statement) for statement in state.links[: -LINKS_SHOWN - 1 : -1]]
        status["review"] = self._review(state, asker)
        status["sizes"] = np.bincount(asker.labels, minlength=self.n_classes).tolist()
        status["annotators"] = sorted({entry["annotator"] for entry in state.undoable if entry["annotator"]})
        return status

    def _as_shown(self, statement: Statement) -> dict[str, Any]:
        return {
            "rows": [self._row_of[statement.a], self._row_of[statement.b]],
            "ids": [statement.a, statement.b],
            "said": statement.said,
            "annotator": statement.annotator,
        }

    def _review(self, state: State, asker: Questioner) -> list[dict[str, Any]]:
        """Links worth a second look: those that contradict others, then those that the model doubts."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        by_pair = {statement.pair: statement for statement in state.links}
        for conflict in self._as_links(state).conflicts(REVIEW_SHOWN):
            ids = [str(self.points.ids[row]) for row in conflict.chain]
            statement = by_pair[pair_of(ids[0], ids[-1])]
            through = ", ".join(ids[1:-1][:5])
            reason = f"others hold these two together, through {through}" if through else "it is said to be both"
            found[statement.pair] = self._as_shown(statement) | {"reason": reason}
        for a, b, _, wrong in asker.review[:REVIEW_SHOWN].tolist():
            pair = pair_of(str(self.points.ids[a]), str(self.points.ids[b]))
            if wrong > DOUBTFUL and pair in by_pair and pair not in found:
                found[pair] = self._as_shown(by_pair[pair]) | {"reason": f"wrong with probability {wrong:.2f}"}
        return list(found.values())[:REVIEW_SHOWN]

    def _stop(self) -> dict[str, Any]:
        signal = self._asker.stop_signal if self._models >= 2 else 1.0
        share = f"about {100 * signal:.0f} %" if signal >= 0.01 else "less than 1 %"
        if self._models < 2:
            sentence = f"It is too early to say when to stop: answer {2 * REFIT_EVERY} questions first."
        elif self._settled >= 2:
            sentence = f"You can stop: {share} of the labels may still change."
        else:
            sentence = f"Go on: {share} of the labels may still change."
        return {"signal": round(signal, 4), "enough": self._settled >= 2, "sentence": sentence}

    # What goes on behind

    def _changed(self) -> None:
        self.version += 1
        self._lock.notify_all()

    def _set_trouble(self, what: str, trouble: str | None) -> None:
        with self._lock:
            if self._trouble.get(what) != trouble:
                self._trouble.pop(what, None)
                if trouble is not None:
                    self._trouble[what] = trouble
                self._changed()

    def _follow(self) -> bool:
        """Bring the questioner to what the journal says; whether that changed anything."""
        wanted = [(self._row_of[s.a], self._row_of[s.b], s.said) for s in self._state.statements]
        has = self._asker.answers
        common = 0
        while common < min(len(has), len(wanted)) and tuple(has[common]) == wanted[common]:
            common += 1
        for _ in range(len(has) - common):
            self._asker.undo()
        for a, b, said in wanted[common:]:
            self._asker.answer(a, b, said)  # type: ignore[arg-type]
        return len(has) > common or len(wanted) > common

    def _refit_always(self) -> None:
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._refit_wanted or self._closing)
                if self._closing:
                    return
                self._refit_wanted = False
                self._fitting_since = time.monotonic()
                asker = copy.copy(self._asker)  # its state is frozen, so that this one can be fitted aside
                answered = len(self._state.statements)
                self._changed()
            trouble = None
            try:
                asker.refit()
            except Exception as error:  # the old model stays, and answers go on
                trouble = f"The model could not be refitted: {error}."
            with self._lock:
                self._fitting_since = None
                self._set_trouble("model", trouble)
                if trouble is None:
                    self._shown = asker
                    self._refits += 1
                    if abs(answered - self._answered) >= REFIT_EVERY:
                        self._adopt(asker, answered)
                self._changed()

    def _adopt(self, asker: Questioner, answered: int) -> None:
        """Let questions go by a new model."""
        self._answered = answered
        self._models += 1
        self._settled = self._settled + 1 if asker.stop_signal < SETTLED else 0
        self._asker = copy.copy(asker)
        self._follow()

    def _write_always(self) -> None:
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._write_wanted or self._closing)
                self._lock.wait_for(lambda: self._closing, WRITE_AFTER)
                last, wanted, state = self._closing, self._write_wanted, self._state
                self._write_wanted = False
            if wanted:
                self._set_trouble("file", self._write_links(state))
            if last:
                return

    def _write_links(self, state: State) -> str | None:
        """Write the file of links aside; it is known to be ours before it takes the place of the old one.

        Gives what went wrong, if anything did. The journal has all, so that this can be mended later.
        """
        aside = self.links_path.with_name(f".{self.links_path.stem}.next{self.links_path.suffix}")
        try:
            write_links(aside, self._as_links(state), self.points.ids)
            digest = _digest(aside)
            with self._lock:
                if self._state.written[-1:] != (digest,):
                    self._journal.append({"entry": "wrote", "digest": digest})
                    self._state = fold(self._journal.entries)
            aside.replace(self.links_path)
            return None
        except OSError as error:
            return f"{self.links_path} could not be written: {error.strerror}."
        finally:
            aside.unlink(missing_ok=True)

    def _as_links(self, state: State) -> Links:
        return Links.from_table(
            [
                {
                    "a": self._row_of[statement.a],
                    "b": self._row_of[statement.b],
                    "kind": statement.said,
                    "confidence": self._confidence(statement),
                    "annotator": statement.annotator,
                }
                for statement in state.links
            ]
        )

    def _confidence(self, statement: Statement) -> float | None:
        """What a file says, or what follows from the answers where they may be wrong; the last word counts."""
        if statement.lead is None or not self._wrong:
            return statement.confidence
        return round(confidence(max(1, statement.lead), self._wrong), 6)

    # The beginning

    def _take_in_links(self) -> None:
        """Take the file of links in, unless it is one that we have written."""
        if not self.links_path.exists() or not self.links_path.stat().st_size:
            return
        digest = _digest(self.links_path)
        if digest in self._state.written:
            return
        found = read_link_lines(self.links_path)
        to_links(self.links_path, found, self.points.ids)  # names the line, if an id is not known
        statements = [
            [
                *(str(self.points.ids[end]) if isinstance(end, int) else end for end in (one.a, one.b)),
                "same" if one.is_must else "different",
                one.confidence,
                one.annotator,
            ]
            for one in found
        ]
        self._journal.append({"entry": "links", "statements": statements, "digest": digest})
        self._state = fold(self._journal.entries)

    def _check_ids(self) -> None:
        for statement in self._state.statements:
            for value in (statement.a, statement.b):
                if value not in self._row_of:
                    raise BadFile(
                        self._journal.path,
                        f"holds an answer about {value!r}, which is not among the ids of the points: give the table "
                        "that the answers are about, or another file of links",
                    )


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _name(given: Any) -> str | None:
    """A name of a person, without what would break a line."""
    if given is None:
        return None
    if not isinstance(given, str) or len(given) > _LONGEST_NAME:
        raise ValueError(f"annotator is {given!r}: give a name of at most {_LONGEST_NAME} characters")
    return "".join(letter for letter in given if letter.isprintable()).strip() or None
