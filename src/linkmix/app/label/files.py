"""The files beside a session: the journal, and the file of links that follows it."""

import hashlib
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Self

from linkmix.app.label.answers import ImpossibleEntry, fold
from linkmix.basics.errors import BadFile
from linkmix.basics.files import aside, sweep
from linkmix.basics.journal import Entry, Journal
from linkmix.plots.pages import count
from linkmix.queries import Answer, Answers
from linkmix.queries.answers import Pair, as_links, by_pair
from linkmix.tables import Points, read_link_lines, to_links, write_ids, write_links

_IMPOSSIBLE = "this line is not an entry of a labelling session: restore it from a copy, or name another file of links"

AT_REST = 0.5
"""Seconds that a file of another program must stay the same before it is read."""


class Files:
    """The journal of a session, what follows from it, and the file of links and of points of no class.

    Parameters
    ----------
    points : Points
        The table.
    links_path : path
        The file of links. The journal lies beside it, with ``.journal`` appended to its name.
    said : Answers
        Collects the answers.
    noise : bool
        Whether points may belong to no class.
    raw : bool, default=False
        Whether texts are written as they are, also those that a spreadsheet would run.

    Attributes
    ----------
    journal : Journal
    notes : tuple of str
        What people should know about the files.
    record : Record
        What follows from the journal.
    links_path, noise_path : Path
        Symbolic links stay what they are: the files that they point to are written.
    edited : str or None
        What became of the last change of the file of links by another program, if people should know it.
    """

    def __init__(
        self, points: Points, links_path: str | Path, said: Answers, noise: bool, *, raw: bool = False
    ) -> None:
        self.points, self.noise, self._raw = points, noise, raw
        self.links_path = Path(links_path)
        self.noise_path = self.links_path.with_name(f"{self.links_path.stem}-noise.csv")
        self._there: str | None = None  # digest of the file of links
        self._pairs: set[Pair] = set()  # what was written to it last
        self._dropped = 0
        self.edited: str | None = None
        self.journal = Journal(self.links_path.with_name(self.links_path.name + ".journal"))
        try:
            try:
                self.record = fold(self.journal.entries, points.ids, said)
            except ImpossibleEntry as error:
                raise BadFile(self.journal.path, _IMPOSSIBLE, self.journal.lines[error.number]) from error
            self._take_in_links()
            self._check_ids()
            for path in (self.links_path, self.noise_path):
                sweep(Path(os.path.realpath(path)))
        except BaseException:
            self.journal.close()
            raise

    @property
    def notes(self) -> tuple[str, ...]:
        """What people should know about the files."""
        torn, notes = self.journal.torn, []
        if torn is not None:
            cut = "was cut off by a crash and never confirmed"
            notes.append(f"The last line of {self.journal.path} {cut}; it is in {torn}")
        if self._dropped:
            was = "was" if self._dropped == 1 else "were"
            kept = f"the journal still has {'it' if self._dropped == 1 else 'them'}"
            dropped = f"{count(self._dropped, 'link')} that it no longer has {was} dropped; {kept}"
            notes.append(f"{self.links_path} was changed since linkmix wrote it, and counts: {dropped}")
        return tuple(notes)

    def __enter__(self) -> Self:
        """Enter the context."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the journal."""
        self.journal.close()

    def note(self, entry: Entry) -> None:
        """Append an entry to the journal, and take it in."""
        self.journal.append(entry)
        self.record.take(entry)

    def write(
        self, links: Sequence[Answer], nowhere: Sequence[Answer], lock: AbstractContextManager[Any]
    ) -> str | None:
        """Write the file of links, whose digest is in the journal before it replaces the old file, and that of noise.

        Parameters
        ----------
        links, nowhere : sequence of Answer
            What to write.
        lock : context manager
            Held while the journal is written to.

        Returns
        -------
        str or None
            What failed, in words. The journal holds everything, so the files can be written later.
        """
        path = self.links_path
        try:
            with aside(os.path.realpath(path)) as place:
                write_links(place, as_links(links), self.points.ids, raw=self._raw)
                digest = _digest(place)
                with lock:
                    if self.record.written[-1:] != (digest,):
                        self.note({"entry": "wrote", "digest": digest, "replaces": self._there})
            self._there, self._pairs = digest, {answer.pair for answer in links}
            if self.noise:
                path = self.noise_path
                with aside(os.path.realpath(path)) as place:
                    write_ids(place, [str(self.points.ids[answer.a]) for answer in nowhere], raw=self._raw)
            return None
        except OSError as error:
            return f"{path} could not be written: {error.strerror}."

    def merge(self, lock: AbstractContextManager[Any]) -> bool:
        """Take in what another program has written to the file of links since it was written here.

        Links about pairs that nothing was said about are new, and are added. What was said here is never dropped: where
        the other version says something else, or nothing, it is kept under another name, and `edited` says so.

        Parameters
        ----------
        lock : context manager
            Held while the journal is written to.

        Returns
        -------
        bool
            Whether there are new links.
        """
        try:
            digest = _digest(self.links_path)
            while digest != self._there and (later := _later(self.links_path)) != digest:
                digest = later  # another program is still writing
            if digest == self._there or not self.links_path.stat().st_size:
                return False
        except OSError:  # it is gone, or no file: it is written again, or that fails and is said
            return False
        try:
            statements = self._read()
        except (ValueError, OSError) as error:
            self._there = digest
            self.edited = (
                f"{self.links_path} was changed by another program and cannot be read: {error}. {self._keep()}"
            )
            return False
        answers = self.record.stated(statements)
        theirs = by_pair(answers)
        with lock:
            ours = by_pair(self.record.said.links)
            new = [said for said, answer in zip(statements, answers, strict=True) if answer.pair not in ours]
            if new:
                self.note({"entry": "added", "statements": new, "digest": digest})
        self._there = digest
        differ = sum(_said(theirs[pair]) != _said(ours[pair]) for pair in theirs.keys() & ours.keys())
        missing = len(self._pairs - theirs.keys())
        if differ or missing:
            self.edited = (
                f"{self.links_path} was changed by another program while this one was running. "
                f"{count(len(new), 'new link')} of it {'is' if len(new) == 1 else 'are'} taken over. "
                f"{count(differ, 'link')} that it has otherwise and {missing} that it no longer has stay as they are "
                f"here. {self._keep()}"
            )
        return bool(new)

    def _keep(self) -> str:
        """Keep the file of links as another program has written it, before it is replaced; says where."""
        path, number = self.links_path, 1
        while (kept := path.with_name(f"{path.stem}-edited-{number}{path.suffix}")).exists():
            number += 1
        shutil.copyfile(path, kept)
        return f"Its version is in {kept}."

    def _read(self) -> list[list[Any]]:
        """The statements of the file of links."""
        found = read_link_lines(self.links_path)
        to_links(self.links_path, found, self.points.ids)  # raises if an id is not known, and names the line
        return [
            [
                *(str(self.points.ids[end]) if isinstance(end, int) else end for end in (one.a, one.b)),
                "same" if one.is_must else "different",
                one.confidence,
                one.annotator,
                one.chosen,
            ]
            for one in found
        ]

    def _take_in_links(self) -> None:
        """Read the file of links, unless a session wrote it."""
        if not self.links_path.exists() or not self.links_path.stat().st_size:
            return
        digest = self._there = _digest(self.links_path)
        if digest in self.record.written:
            return
        before = {answer.pair for answer in self.record.said.links}
        self.note({"entry": "links", "statements": self._read(), "digest": digest})
        self._pairs = {answer.pair for answer in self.record.said.links}
        self._dropped = len(before - self._pairs)

    def _check_ids(self) -> None:
        stranger = self.record.stranger()
        if stranger is not None:
            raise BadFile(
                self.journal.path,
                f"holds an answer about {stranger!r}, which is not among the ids of the points: give the table that "
                "the answers are about, or another file of links",
            )
        if self.record.said.nowhere and not self.noise:
            one = self.points.ids[self.record.said.nowhere[0].a]
            raise BadFile(
                self.journal.path,
                f"says that {one!r} belongs to no class: start with --noise, or give another file of links",
            )


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _said(answers: Sequence[Answer]) -> set[tuple[str, str | None]]:
    return {(answer.said, answer.annotator) for answer in answers}


def _later(path: Path) -> str:
    """The digest of a file a moment later."""
    time.sleep(AT_REST)
    return _digest(path)
