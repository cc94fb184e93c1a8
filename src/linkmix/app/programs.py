"""Programs that answer: processes that read questions and write answers as lines of JSON."""

import contextlib
import json
import os
import queue
import shlex
import signal
import subprocess
import sys
import threading
import uuid
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

import numpy as np

from linkmix.basics.journal import entries_in
from linkmix.queries import Answer, BadAnswer, PairQuestion, Reply, Tally
from linkmix.queries.answers import Pair
from linkmix.queries.asking import is_due, without
from linkmix.tables import Points

if TYPE_CHECKING:
    from linkmix.app.label.session import Session

LINES_KEPT = 5
"""Last lines on stderr that an error shows."""
LONGEST_SHOWN = 200
"""Characters of a line that an error shows."""
LONGEST_LINE = 2**20
"""Bytes of an answer; what is longer is no answer, and may have no end."""
MOST_UNREAD = 1000
"""Lines that are read before somebody wants them; a program that writes more of them has to wait."""
LONGEST_REASON = 2000
"""Characters of a reason that are kept."""
SECONDS_TO_END = 2.0
"""What a program gets to end by itself once its input is closed."""
_FORM = '{"id": 1, "answer": "same"}'


class Program:
    """A process that answers questions, one line of JSON each way.

    A question is ``{"id": 7, "question": "same?", "a": {...}, "b": {...}, "more": 2}``, with the fields of both rows
    and how many questions of the same batch follow. An answer is ``{"id": 7, "answer": "same"}``, or "different" or
    "unsure", perhaps with ``"confidence": 0.9`` and ``"reason": "..."``. Answers may come in any order, and other
    fields in them are ignored. The process is started with the first question and serves until it is closed.

    Parameters
    ----------
    command : str
        The program and its arguments, as in a shell, which is not used: write ``sh -c '...'`` for pipes.
    timeout : float, default=60.0
        Seconds to wait for each answer.

    Examples
    --------
    >>> import sys
    >>> code = 'import json; print(json.dumps({"id": json.loads(input())["id"], "answer": "same"}))'
    >>> with Program(shlex.join([sys.executable, "-c", code])) as program:
    ...     list(program.answer([PairQuestion(7, (0, 1), {"name": "anna"}, {"name": "ann"})]))
    [Reply(id=7, said='same', confidence=None, reason=None)]
    """

    def __init__(self, command: str, timeout: float = 60.0) -> None:
        self.command, self.timeout = command, timeout
        self._words = words_of(command)
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: queue.SimpleQueue[tuple[int, bytes] | None] = queue.SimpleQueue()  # of stdout; None at its end
        self._complaints: deque[str] = deque(maxlen=LINES_KEPT)
        self._to_write: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        """Enter the context."""
        return self

    def __exit__(self, *exception: object) -> None:
        """End the process."""
        self.close(at_once=exception[0] is not None)

    def answer(self, questions: Sequence[PairQuestion]) -> Iterator[Reply]:
        """Answer a batch of questions.

        Parameters
        ----------
        questions : sequence of PairQuestion
            They are all written before the first answer is waited for.

        Yields
        ------
        Reply
            As soon as its line has come.

        Raises
        ------
        BadAnswer
            If the program cannot be started, ends early, is silent for too long, or writes something else.
        """
        if self._process is None:
            self._start()
        for one in questions:
            self._to_write.put(as_line(one))
        unanswered = {one.id for one in questions}
        while unanswered:
            yield self._next(unanswered, len(questions))

    def _next(self, unanswered: set[int], n: int) -> Reply:
        try:
            found = self._lines.get(timeout=self.timeout)
        except queue.Empty:
            self.close(at_once=True)
            raise BadAnswer(
                f"{self.command} gave no answer within {self.timeout:g} seconds, after {n - len(unanswered)} of {n}: "
                f"let it write each answer at once (flush its output), or give it more time by "
                f"--timeout{self._said_on_stderr()}"
            ) from None
        if found is None:
            assert self._process is not None
            code = self._process.wait()
            self._join()
            raise BadAnswer(
                f"{self.command} ended with exit code {code} after {n - len(unanswered)} of {n} answers: it has to go "
                f"on reading until its input ends{self._said_on_stderr()}"
            )
        number, line = found
        text = line.decode("utf-8", errors="replace").strip()
        try:
            reply = as_reply(text)
            if reply.id not in unanswered:
                raise BadAnswer(f"id {reply.id} was not asked, or was answered before: answer each question once")
        except BadAnswer as error:
            shown = text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "..."
            self.close(at_once=True)
            raise BadAnswer(
                f"line {number} of the output of {self.command} is {shown!r}: {error}{self._said_on_stderr()}"
            ) from None
        unanswered.remove(reply.id)
        return reply

    def _start(self) -> None:
        # Python buffers what it writes to a pipe, and on some systems does not write UTF-8; others ignore this.
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"}
        pipe = subprocess.PIPE
        # A Ctrl-C is for linkmix, which keeps the answers that have come and then ends the programs.
        own_group: dict[str, Any] = (
            {"creationflags": 0x200} if sys.platform == "win32" else {"start_new_session": True}  # a new process group
        )
        try:
            process = subprocess.Popen(
                self._words, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, bufsize=0, **own_group
            )
        except OSError as error:
            raise BadAnswer(
                f"{self._words[0]} cannot be started ({error.strerror}): check the name of the program"
            ) from None
        self._process = process
        for work in (self._read_answers, self._read_complaints, self._write):
            thread = threading.Thread(target=work, args=(process,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def _read_answers(self, process: "subprocess.Popen[bytes]") -> None:
        for number, line in enumerate(_lines_of(process.stdout), 1):
            if line.strip():
                self._lines.put((number, line))
            while self._lines.qsize() > MOST_UNREAD and not self._ended.wait(0.01):
                pass
        self._lines.put(None)

    def _read_complaints(self, process: "subprocess.Popen[bytes]") -> None:
        for line in _lines_of(process.stderr):
            self._complaints.append(line.decode("utf-8", errors="replace").rstrip()[:LONGEST_SHOWN])

    def _write(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None
        try:
            while (line := self._to_write.get()) is not None:
                rest = memoryview(line)
                while rest:
                    rest = rest[process.stdin.write(rest) or 0 :]
            process.stdin.close()
        except (OSError, ValueError):  # the program is gone, which its reader reports
            return

    def _said_on_stderr(self) -> str:
        said = [line for line in self._complaints if line]
        return "\nIts last lines on stderr:\n  " + "\n  ".join(said) if said else ""

    def _join(self) -> None:
        self._to_write.put(None)  # nothing more will be asked
        for thread in self._threads:
            thread.join(SECONDS_TO_END)

    def close(self, at_once: bool = False) -> None:
        """End the process: its input ends, and if it does not end then, it is killed.

        Parameters
        ----------
        at_once : bool, default=False
            Kill it without waiting.
        """
        process = self._process
        if process is None:
            return
        self._ended.set()
        self._to_write.put(None)  # the end of its input
        try:
            process.wait(0 if at_once else SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            _kill(process)
            process.wait()
        self._join()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process, and those that it started."""
    if sys.platform == "win32":
        process.kill()
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


class SessionDesk:
    """A labelling session that asks a program; its answers go to the journal, like those of people.

    Parameters
    ----------
    session : Session
        The session.
    name : str
        Name of the program.
    """

    def __init__(self, session: "Session", name: str) -> None:
        self._session, self._name = session, name
        self._known = len(session.said)  # answers that the model was fitted to

    def pairs(self, n: int, out: Collection[Pair]) -> list[Pair]:
        """Up to n pairs to ask about next, none of them in ``out``."""
        with self._session.lock:
            return without(self._session.asker.next(n + len(out)).tolist(), out)[:n]

    def fields(self, row: int) -> Mapping[str, Any]:
        """What the program sees of a row."""
        return fields_of(self._session.points, row)

    def said(self) -> list[Answer]:
        """All answers so far."""
        with self._session.lock:
            return list(self._session.said)

    def keep(self, question: PairQuestion, reply: Reply, repeated: bool, votes: Sequence[str] = ()) -> None:
        """Write a reply to the journal."""
        reason = None if reply.reason is None else reply.reason[:LONGEST_REASON]
        self._write(question, reply.said, confidence=reply.confidence, reason=reason, repeated=repeated, votes=votes)

    def set_aside(self, question: PairQuestion, votes: Sequence[str]) -> None:
        """Write votes that did not come to agree to the journal."""
        self._write(question, "skip", votes=votes)

    def _write(self, question: PairQuestion, said: str, votes: Sequence[str], **remarks: Any) -> None:
        entry = {"entry": "answer", "key": uuid.uuid4().hex, "rows": list(question.rows), "said": said}
        self._session.write(entry | {"annotator": self._name, "votes": list(votes) or None} | remarks)

    def refresh(self, last: bool = False) -> None:
        """Wait for the model, if enough answers are new to it or these are the last ones."""
        session = self._session
        if not last and not is_due(len(session.said), self._known):
            return
        self._known = len(session.said)
        session.background.wait()
        if session.background.error is not None:
            raise session.background.error


def tally_in(journal: Path, name: str) -> Tally:
    """What earlier runs tell about a program: its repeated answers in a journal.

    Parameters
    ----------
    journal : path
        The journal of a session; there need not be one.
    name : str
        Name of the program.

    Returns
    -------
    Tally
    """
    if not journal.exists():
        return Tally()
    entries = entries_in(journal)
    undone = {entry["of"] for entry in entries if entry.get("entry") == "undo"}
    words: dict[frozenset[str], list[tuple[str | None, str]]] = {}
    tally = Tally()
    for entry in entries:
        if entry.get("entry") == "links":
            for a, b, said, _, annotator, *_ in entry["statements"]:
                words.setdefault(frozenset((a, b)), []).append((annotator, said))
        if entry.get("entry") != "answer" or entry["key"] in undone:
            continue
        before = words.setdefault(frozenset(entry["ids"]), [])
        if (votes := entry.get("votes", ())) and len(votes) > 1 and entry["annotator"] == name:
            tally = tally.after([said for said in votes[:1] if said != "unsure"], [], votes[1])
        if entry.get("repeated") and entry["annotator"] == name:
            own = [said for annotator, said in before if annotator == name]
            tally = tally.after(own, [said for annotator, said in before if annotator != name], entry["said"])
        if entry["said"] in ("same", "different"):
            before.append((entry["annotator"], entry["said"]))
    return tally


def words_of(command: str) -> list[str]:
    """The words of a command; an error if there are none, or a quote is not closed.

    Examples
    --------
    >>> words_of("python 'my rule.py' --fast")
    ['python', 'my rule.py', '--fast']
    """
    try:
        words = shlex.split(command, posix=sys.platform != "win32")
    except ValueError as error:
        raise BadAnswer(f"the command {command!r} cannot be read ({error}): check its quotes") from None
    if not words:
        raise BadAnswer("the command is empty: give a program and its arguments")
    return words


def as_line(question: PairQuestion) -> bytes:
    """A question as a line of JSON."""
    fields = {"id": question.id, "question": "same?", "a": question.a, "b": question.b, "more": question.more}
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


def as_reply(line: str) -> Reply:
    """A line of JSON as an answer.

    Examples
    --------
    >>> as_reply('{"id": 1, "answer": "different", "confidence": 0.8}')
    Reply(id=1, said='different', confidence=0.8, reason=None)
    """
    if len(line) > LONGEST_LINE:
        raise BadAnswer(f"longer than {LONGEST_LINE:,} characters: end each answer with a new line")
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise BadAnswer(f"not an object of JSON: write lines such as {_FORM}, and everything else to stderr")
    missing = [name for name in ("id", "answer") if name not in found]
    if missing:
        raise BadAnswer(f"there is no {missing[0]!r}: write lines such as {_FORM}")
    return Reply(found["id"], found["answer"], found.get("confidence"), found.get("reason"))


def fields_of(points: Points, row: int) -> Mapping[str, Any]:
    """What a program sees of a row: its id and all its fields; texts as they stand in the file, missing values as None.

    Examples
    --------
    >>> names = {"name": np.array(["anna", "bob"])}
    >>> points = Points(np.array(["7", "8"]), ("height", "age"), np.array([[1.8, 40], [np.nan, 30]]), names)
    >>> fields_of(points, 1)
    {'id': '8', 'name': 'bob', 'height': None, 'age': 30}
    """
    fields: dict[str, Any] = {"id": str(points.ids[row])}
    fields |= {name: None if values[row] is None else str(values[row]) for name, values in points.texts.items()}
    for place, owner in enumerate(points.owners):
        if owner not in points.texts:
            fields[points.columns[place]] = _value(points, row, place)
    return fields


def _value(points: Points, row: int, place: int) -> str | float | int | None:
    value = float(points.X[row, place])
    if np.isnan(value):
        return None
    if points.levels[place]:
        return points.written(row, place)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _lines_of(stream: IO[bytes] | None) -> Iterator[bytes]:
    assert stream is not None
    rest = b""
    try:
        while some := stream.read(65536):
            *lines, rest = (rest + some).split(b"\n")
            yield from lines
            if len(rest) > LONGEST_LINE:
                yield rest
                rest = b""
    except (OSError, ValueError):  # closed
        pass
    if rest:
        yield rest
