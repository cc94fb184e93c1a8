"""The files beside a session: the journal, and the file of links that follows it."""

import hashlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Self

from linkmix.app.label.answers import ImpossibleEntry, fold
from linkmix.basics.errors import BadFile
from linkmix.basics.files import aside
from linkmix.basics.journal import Entry, Journal
from linkmix.queries import Answer, Answers
from linkmix.queries.answers import as_links
from linkmix.tables import Points, read_link_lines, to_links, write_ids, write_links

_IMPOSSIBLE = "this line is not an entry of a labelling session: restore it from a copy, or name another file of links"


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
    """

    def __init__(
        self, points: Points, links_path: str | Path, said: Answers, noise: bool, *, raw: bool = False
    ) -> None:
        self.points, self.noise, self._raw = points, noise, raw
        self.links_path = Path(links_path)
        self.noise_path = self.links_path.with_name(f"{self.links_path.stem}-noise.csv")
        self._there: str | None = None  # digest of the file of links
        self.journal = Journal(self.links_path.with_name(self.links_path.name + ".journal"))
        try:
            try:
                self.record = fold(self.journal.entries, points.ids, said)
            except ImpossibleEntry as error:
                raise BadFile(self.journal.path, _IMPOSSIBLE, self.journal.lines[error.number]) from error
            self._take_in_links()
            self._check_ids()
        except BaseException:
            self.journal.close()
            raise

    @property
    def notes(self) -> tuple[str, ...]:
        """What people should know about the files."""
        torn = self.journal.torn
        if torn is None:
            return ()
        return (f"The last line of {self.journal.path} was cut off by a crash and never confirmed; it is in {torn}",)

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
            with aside(path) as place:
                write_links(place, as_links(links), self.points.ids, raw=self._raw)
                digest = _digest(place)
                with lock:
                    if self.record.written[-1:] != (digest,):
                        self.note({"entry": "wrote", "digest": digest, "replaces": self._there})
            self._there = digest
            if self.noise:
                path = self.noise_path
                with aside(path) as place:
                    write_ids(place, [str(self.points.ids[answer.a]) for answer in nowhere], raw=self._raw)
            return None
        except OSError as error:
            return f"{path} could not be written: {error.strerror}."

    def _take_in_links(self) -> None:
        """Read the file of links, unless a session wrote it."""
        if not self.links_path.exists() or not self.links_path.stat().st_size:
            return
        digest = self._there = _digest(self.links_path)
        if digest in self.record.written:
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
        self.note({"entry": "links", "statements": statements, "digest": digest})

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
