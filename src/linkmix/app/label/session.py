"""A labelling session: it asks questions and writes each answer to a journal. It knows nothing about HTTP."""

import copy
import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from linkmix.app.label.answers import as_entry as audit_entry
from linkmix.app.label.cards import Cards
from linkmix.app.label.corrections import contradicted
from linkmix.app.label.files import Files
from linkmix.app.label.finishing import Finisher
from linkmix.app.label.pages import Pages
from linkmix.app.label.requests import NotPossible, as_entry, check_page
from linkmix.app.label.shown import Shown, named
from linkmix.app.label.view import View
from linkmix.app.results import Origin
from linkmix.basics.arrays import Ints
from linkmix.basics.journal import Entry
from linkmix.basics.palette import MORE_COLOURS
from linkmix.queries import Answer, Answers, Background, Questioner
from linkmix.queries.audit import N_QUESTIONS
from linkmix.queries.groups import Known, Recent
from linkmix.queries.questions import Kind
from linkmix.queries.refit import Snapshot
from linkmix.tables import Points

WRITE_AFTER = 0.3
"""Seconds that the file of links may be behind the journal."""


Taken = tuple[Questioner, Snapshot, tuple[tuple[Answer, ...], tuple[Answer, ...], int, int], tuple[int, ...]]
"""What a refit needs; what it will know: links, points of no class, entries and answers; and who stands for classes."""


class Session:
    """Collects people's answers about points; no answer is lost in a crash.

    Each answer is on disk, as a line of the journal, before `write` returns, and everything else follows from the
    journal. The file of links is updated a moment later. The model is refitted in a background thread.

    Parameters
    ----------
    points : Points
        The table.
    n_classes : int or None
        Number of classes; None if it is not known.
    links_path : path
        File of links. It is read at the start and updated from then on. The journal lies beside it, with ``.journal``
        appended to its name.
    folder : path
        Folder with the pictures that the table names.
    out : path, optional
        Folder that `finish` writes to; by default ``linkmix-out`` beside the file of links.
    origin : Origin, optional
        Where the points come from, for the commands that `finish` tells.
    wrong : float, default=0.0
        Share of answers that are expected to be wrong. If it is not 0, doubtful pairs are asked about again, and links
        have a confidence.
    noise : bool, default=False
        Whether points may belong to no class. People can say so, and the model finds others.
    n_audit : int, default=20
        Number of random questions that tell how good the labels are, once someone asks for them.
    strategy : str, default="cover"
        How pairs are chosen.
    labels : ndarray of shape (n_samples,), optional
        Labels of an earlier model: where the first fit starts, and what an audit measures.
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
    view : View
        What pages show.
    shown : Shown
        The model that pages show.
    finisher : Finisher
        Writes the results.

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
        n_classes: int | None,
        links_path: str | Path,
        folder: str | Path,
        *,
        out: str | Path | None = None,
        origin: Origin | None = None,
        wrong: float = 0.0,
        noise: bool = False,
        n_audit: int = N_QUESTIONS,
        strategy: str = "cover",
        labels: Ints | None = None,
        seed: int = 0,
    ) -> None:
        self.points = points
        self.n_classes = n_classes
        self.noise = noise
        self.n_audit = n_audit
        self.cards = Cards(points, folder)
        self.version = 1
        self.table = hashlib.sha256("\n".join(points.ids).encode()).hexdigest()[:16]
        self._audited = labels
        self.said = Answers(wrong=wrong)
        self.files = Files(points, links_path, self.said, noise, raw=origin is not None and origin.raw_cells)
        self.record = self.files.record
        try:
            out = self.links_path.with_name("linkmix-out") if out is None else Path(out)
            self.finisher = Finisher(self, out, Origin() if origin is None else origin, seed)
            self._finished = self.finisher.again()
            begin = labels if self._finished is None or noise else self._finished.labels
            options: dict[str, Any] = {"strategy": strategy, "labels": begin, "wrong": wrong, "noise": noise}
            self.asker = Questioner(points.coded, n_classes, random_state=seed, **options)
        except BaseException:
            self.files.journal.close()
            raise
        self.asker.said = self.said
        self._expect()
        self.lock = threading.Condition()
        self.closing = False
        self.file_trouble: str | None = None
        self.refits = 0  # how often the labels were refitted
        self.models = 0  # how many models have chosen questions
        self._pages = Pages()
        self._entries = 0  # entries of people since the start
        self._groups = Recent(Known)
        self.shown = self._finished or Shown(points, self.asker.model, self.asker.labels)  # of the last refit
        self.shown.prepare()
        self._answered = -self.asker.settings.refit_every  # answers known to the model that chooses questions
        self.view = View(self)
        self.background = Background(self._snapshot, self._refitted, self._adopt, lock=self.lock, changed=self.changed)
        if len(self.said):
            self._entries = 0 if self._finished else 1  # the first model knows nothing of them
            self.background.want()
        self._write_wanted = bool(self.files.journal.entries)
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
        with self.lock:
            if self.closing:
                return
            self.closing = True
            self._write_wanted = bool(self.files.journal.entries)  # Ctrl-C may have come between an answer and this
            self.background.stop()  # without waiting: a refit leaves nothing to save
            self.lock.notify_all()
        self._writer.join()
        self.files.journal.close()

    @property
    def links_path(self) -> Path:
        """File of links."""
        return self.files.links_path

    @property
    def noise_path(self) -> Path:
        """File with the ids of points that were said to belong to no class, if there may be such points."""
        return self.files.noise_path

    # Requests

    def write(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Record an entry, and return once it is on disk.

        Parameters
        ----------
        request : dict
            ``entry`` says what it is: one of `linkmix.app.label.requests.ENTRIES`, explained at `Record`. ``key`` is
            chosen by the sender; an entry with a key that was used before is ignored, so a request can be repeated if
            no reply came. ``rows`` are row numbers, ``said`` is an answer; ``like`` and ``out`` are the rows picked in
            a question about several; ``to`` and ``of`` hold the row that a class is shown by; ``name``, ``colour`` and
            ``description`` are those of a class; ``annotator`` may name the person and ``page`` the page that sends it.
            A program may add its ``confidence``, a ``reason``, ``repeated`` if the question was to test it, and
            ``votes``, all its answers if it was asked several times.

        Returns
        -------
        dict or None
            For an undo, the entry that was undone.

        Raises
        ------
        NotPossible
            If there is nothing to undo, to remove, to audit or to give up, or it contradicts what is known.
        ValueError
            If the request is invalid.
        """
        entry = as_entry(request, self.points.ids, len(MORE_COLOURS))
        page = None if request.get("page") is None else check_page(request["page"])
        with self.lock:
            if self.closing:
                raise NotPossible("the server is stopping: start it again and repeat")
            if entry["key"] in self.record.entries:
                return None
            undone = self._make_definite(entry)
            auditing = self.said.audit is not None
            self.files.note(entry)
            self._entries += 1
            self._expect()
            if auditing != (self.said.audit is not None):
                self._pages.clear()
            if self.said.audit is None:  # the labels that are measured stay until it is complete
                self.background.want()
            self._write_wanted = True
            if page is not None:
                self._pages.answered(page)
                if undone is not None:
                    rows = [self.record.row_of[value] for value in undone["ids"]]
                    self._pages.taken_back(page, undone, rows, self.asker.settings)
            self.changed()
            return undone

    def _make_definite(self, entry: Entry) -> Entry | None:
        """Add what follows from what was said before; refuse a request that would change nothing."""
        what = entry["entry"]
        if what == "undo":
            key = self.record.last_turn(entry["annotator"])
            if key is None:
                raise NotPossible("there is nothing of yours to undo")
            undone = self.record.entries[key]
            if not self.record.row_of.keys() >= set(undone["ids"]):  # a link was removed, and then its point
                raise NotPossible(f"{' and '.join(undone['ids'])} are not all in the table any more")
            entry["of"] = undone["key"]
            return undone
        rows = [self.record.row_of[value] for value in entry.get("ids", ())]
        face = self.record.row_of[entry["face"]] if "face" in entry else None
        self._check_nowhere(what, [*rows, *([] if face is None else [face])])
        words = self.said.words(*rows) if what in ("remove", "turn", "keep") and len(rows) == 2 else ()
        if what in ("remove", "turn", "keep") and len(rows) == 2 and not words:
            raise NotPossible("there is no link between these points any more")
        if what == "turn" and "said" not in entry:
            [said, *others] = {word.said for word in words}
            if others:
                raise NotPossible("people disagree about this pair: give said, what it is")
            entry["said"] = "different" if said == "same" else "same"
        elif what in ("belongs", "not", "merge", "split"):
            found = contradicted(what, rows, face, self.said.links)
            entry["drop"] = [[str(self.points.ids[a]), str(self.points.ids[b])] for a, b in found]
            if what == "split":
                known, faces = self.known, {*self.view.faces().values()} - {face, *rows}
                new = [row for row in faces if all(known.relation(one, row) != "same" for one in rows)]
                entry["apart"] = [str(self.points.ids[row]) for row in sorted(new)]
        elif what == "name":
            entry |= self._naming(rows[0], entry["name"])
        elif what == "audit":
            if self.said.audit is not None:
                raise NotPossible("the check is under way already")
            audit = self.asker.draw_audit(self.n_audit, self.shown.labels if self._audited is None else self._audited)
            if audit.is_complete:
                raise NotPossible("every pair is known already, so there is nothing to ask")
            entry |= audit_entry(audit, self.points.ids)
        elif what == "give up" and self.said.audit is None:
            raise NotPossible("no check is under way")
        return None

    def _check_nowhere(self, what: str, rows: Sequence[int]) -> None:
        """Refuse what is said about points of no class, and of points that are to be such where there are none."""
        nowhere = {answer.a for answer in self.said.nowhere}
        if what == "remove":
            if len(rows) == 1 and rows[0] not in nowhere:
                raise NotPossible("nobody says any more that this point belongs to no class")
        elif what != "nowhere":
            if (row := next((row for row in rows if row in nowhere), None)) is not None:
                raise NotPossible(f"{self.points.ids[row]} was said to belong to no class: remove that first")
        elif not self.noise:
            raise NotPossible("every point has a class here: start the server with linkmix label --noise")
        elif self.said.audit is not None:
            raise NotPossible("a check is under way, which is about pairs: answer unsure, or stop the check")
        elif nowhere.issuperset(rows):
            raise NotPossible("that was said before")
        elif (row := next((row for row in rows if row in self.record.names), None)) is not None:
            name = self.record.names[row].name
            raise NotPossible(f"{self.points.ids[row]} stands for the class {name!r}: remove that name first")

    def _naming(self, row: int, name: str | None) -> Entry:
        """Which names the class has so far, and which classes have other names and are thereby different."""
        label, labels = int(self.shown.labels[row]), self.shown.labels
        if label < 0:
            raise NotPossible(f"{self.points.ids[row]} belongs to no class so far: say first what it is like")
        if name is None and label not in named(self.shown, self.record.names):
            raise NotPossible("this class has no name that could be removed")
        here = [other for other in self.record.names if labels[other] == label or other == row]
        others = [other for other in self.record.names if other not in here]
        for other in others if name is not None else ():
            if self.record.names[other].name == name:
                raise NotPossible(f"another class is called {name!r}: merge the two, or give another name")
            if self.known.relation(row, other) == "same":
                raise NotPossible(
                    f"this point is known to be like {self.points.ids[other]}, of the class "
                    f"{self.record.names[other].name!r}: correct that first"
                )
        apart = [str(self.points.ids[other]) for other in others if name is not None]
        return {"replaces": [str(self.points.ids[other]) for other in here], "apart": apart}

    def finish(self, key: Any) -> dict[str, Any]:
        """Write the results; see `Finisher.finish`."""
        return self.finisher.finish(key)

    # Questions

    def question(self, page: str, kinds: Sequence[Kind] = ("pair",)) -> dict[str, Any] | None:
        """The question of a page; the same one until it is answered.

        Parameters
        ----------
        page : str
            Which page asks. Two pages get different questions, as long as there are others.
        kinds : sequence of {"pair", "which", "group"}
            Kinds that it may be of; in an audit, pairs alone.

        Returns
        -------
        dict or None
            See `View.question`; None if nothing is left to ask.
        """
        with self.lock:
            found = self._pages.question(page, kinds, self.asker.ask, self._entries, self.models)
        return None if found is None else self.view.question(found)

    def hear(self, page: str) -> None:
        """Note that a page is alive."""
        with self.lock:
            self._pages.hear(page)

    # What is known

    @property
    def known(self) -> Known:
        """What the answers say and imply."""
        with self.lock:
            return self._groups.after(self.said.links)

    def row_of(self, id: str) -> int | None:
        """Row of the point with this id; None if there is none."""
        return self.record.row_of.get(id)

    def labels(self) -> Ints:
        """Class of each point according to the last refit."""
        return self.shown.labels

    def status(self) -> dict[str, Any]:
        """See `View.status`."""
        return self.view.status()

    @property
    def entries(self) -> int:
        """Number of entries of people since the start."""
        return self._entries

    # Background work

    def changed(self) -> None:
        """Tell pages and threads that something has changed."""
        self.version += 1
        self.lock.notify_all()

    def _expect(self) -> None:
        """Tell the questioner how many classes there are, after those that people have split and merged."""
        if self.n_classes is not None:
            self.asker.expect(min(max(1, self.n_classes + self.record.n_more), len(self.points.X)))

    def _snapshot(self) -> Taken:
        said = self.said
        known = said.links, said.nowhere, self._entries, len(said.ordinary)
        placed = {*self.record.names, *self.view.faces().values()}
        return copy.copy(self.asker), self.asker.snapshot(), known, tuple(placed)

    def _refitted(self, snapshot: Taken) -> tuple[Questioner, Shown]:
        """A questioner with a new model, and what is shown of it."""
        asker, points, known, placed = snapshot
        asker.adopt(asker.fit(points), placed)
        shown = Shown(self.points, asker.model, asker.labels, *known)
        shown.prepare()
        return asker, shown

    def _adopt(self, refitted: tuple[Questioner, Shown]) -> None:
        """Show the labels of a new model; after enough answers, choose questions by it as well."""
        asker, found = refitted
        if self._finished is None or found.entries:  # what was finished is shown until something more is said
            self.shown = found
        self.refits += 1
        settings = self.asker.settings
        if abs(found.answered - self._answered) >= settings.refit_every:
            self.asker, self._answered = asker, found.answered
            self.models += 1
            if self.models > 1 and not self.closing:
                settled = round(1 - self.asker.stop_signal, 4)
                self.files.note({"entry": "model", "answers": found.answered, "settled": settled})

    def _write_always(self) -> None:
        while True:
            with self.lock:
                self.lock.wait_for(lambda: self._write_wanted or self.closing)
                self.lock.wait_for(lambda: self.closing, WRITE_AFTER)
                last, wanted, links, nowhere = self.closing, self._write_wanted, self.said.links, self.said.nowhere
                self._write_wanted = False
            if wanted:
                edited = self.files.edited
                if self.files.merge(self.lock):
                    with self.lock:
                        links = self.said.links
                        self._entries += 1
                        self.background.want()
                        self.changed()
                trouble = self.files.write(links, nowhere, self.lock)
                with self.lock:
                    if (trouble, edited) != (self.file_trouble, self.files.edited):
                        self.file_trouble = trouble
                        self.changed()
            if last:
                return
