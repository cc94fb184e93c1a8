"""Done is a button: labels, model, report and links, exactly those that the page shows."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkmix.app.label.requests import NotPossible, check_key
from linkmix.app.label.shown import Shown, named
from linkmix.app.report import Result
from linkmix.app.results import MODEL, Origin, Written, model_notes, recover, results_of, write
from linkmix.mixture.calibration import Quality
from linkmix.plots.pages import count
from linkmix.queries.answers import as_links

if TYPE_CHECKING:
    from linkmix.app.label.session import Session

LONGEST_WAIT = 3600.0
"""Seconds that a finish waits for the model."""
MOST_NAMES = 10
"""Classes that are listed with their sizes."""
UNFINISHED = "Nothing was finished: the same command goes on, and Finish on the page writes the results."


class Finisher:
    """Writes the results of a session.

    Parameters
    ----------
    session : Session
        The session.
    out : Path
        Folder to write to. What a crash has interrupted there is completed.
    origin : Origin
        Where the points come from.
    seed : int
        Seed of the session, for the command that does it again.

    Attributes
    ----------
    progress : str or None
        What is being done; None if nothing is.
    result : Result or None
        What was written last, as objects.
    """

    def __init__(self, session: "Session", out: Path, origin: Origin, seed: int) -> None:
        self._session, self.out, self.origin, self._seed = session, out, origin, seed
        self.progress: str | None = None
        self.result: Result | None = None
        if out.is_dir():
            recover(out)

    def finish(self, key: Any) -> dict[str, Any]:
        """Wait for a model that knows all answers, and write labels, model, report and links from it.

        Parameters
        ----------
        key : str
            Chosen by the sender. If the request is repeated, the results are not written again.

        Returns
        -------
        dict
            ``folder``, ``files``, ``sentences`` that say how good the results are, the ``command`` that does it again,
            that of a prediction (``predict``), the number of ``answers``, and the ``version`` of the session.

        Raises
        ------
        NotPossible
            If a check is under way, the results are being written already, or there is no model.
        """
        session = self._session
        check_key(key)
        with session.lock:
            finished = session.record.finished
            if finished is not None and finished["key"] == key:
                return finished
            if session.closing:
                raise NotPossible("the server is stopping: start it again and repeat")
            if self.progress is not None:
                raise NotPossible("the results are being written already: wait a moment")
            if session.said.audit is not None:
                raise NotPossible("a check is under way: answer its questions, or stop it")
            self._tell("Waiting for a model that knows all answers ...")
        try:
            with session.lock:
                shown = self._wait()
                names = {m: name.name for m, name in named(shown, session.record.names).items()}
                quality, audits, version = session.said.quality, list(session.record.audits), session.version
                self._tell("Writing labels, model, report and links ...")
            result, written = self._write(shown, names, quality)
            told = {
                "key": key,
                "folder": str(self.out),
                "files": [str(path) for path, _ in written.files],
                "sentences": sentences(result, written, self.out, shown.answered, audits),
                "command": self.origin.fit_command(self.out, shown.n_classes, noise=session.noise, seed=self._seed),
                "predict": self.origin.predict_command(self.out),
                "answers": shown.answered,
                "version": version,
            }
            entry = {"entry": "finished", "result": told, "digest": _digest(self.out / MODEL)}
            with session.lock:
                self.result = result
                if not session.closing:
                    session.files.note(entry)
            return told
        finally:
            with session.lock:
                self._tell(None)

    def again(self) -> Shown | None:
        """What the last finish has written, if nothing was said since; None otherwise."""
        session, path = self._session, self.out / MODEL
        digest = session.record.unchanged
        if digest is None or not path.is_file() or _digest(path) != digest:
            return None
        return Shown.again(path, session.points, session.said)

    def farewell(self) -> list[str]:
        """What the last finish said; without one, how good the labels are, and how to finish."""
        session = self._session
        finished = session.record.finished
        if finished is None:
            return [*([] if session.view.how_good is None else [session.view.how_good]), UNFINISHED]
        more = len(session.said.ordinary) - finished["answers"]
        since = [f"Since then {count(more, 'answer')} came: finish again to use them."] if more > 0 else []
        return [*finished["sentences"], *since, f"Again: {finished['command']}", f"New points: {finished['predict']}"]

    def _tell(self, what: str | None) -> None:
        self.progress = what
        self._session.changed()

    def _wait(self) -> Shown:
        """The model that knows everything said so far."""
        session = self._session
        wanted, background = session.entries, session.background
        session.lock.wait_for(
            lambda: session.shown.entries >= wanted or session.closing or not background.busy, LONGEST_WAIT
        )
        if session.shown.entries < wanted:
            if session.closing:
                raise NotPossible("the server is stopping: start it again and repeat")
            raise NotPossible(f"there is no model of all answers ({background.error}): undo the last answer, or repeat")
        return session.shown

    def _write(self, shown: Shown, names: dict[int, str], quality: Quality | None) -> tuple[Result, Written]:
        points, links = self._session.points, as_links(shown.links)
        found: dict[str, Any] = {"labels": shown.labels, "probabilities": shown.probabilities, "names": names}
        result = results_of(shown.model, points, links, origin=self.origin, quality=quality, **found)
        nowhere = [str(points.ids[answer.a]) for answer in shown.nowhere] if self._session.noise else None
        about = model_notes(points, missing=self.origin.missing)
        return result, write(self.out, result, about, links=links, nowhere=nowhere, raw=self.origin.raw_cells)


def sentences(result: Result, written: Written, out: Path, answered: int, audits: list[dict[str, Any]]) -> list[str]:
    """Where results are, how good they are and what they are, in words.

    Parameters
    ----------
    result : Result
        What was found.
    written : Written
        What was written.
    out : Path
        Where to.
    answered : int
        Number of answers that the model knows.
    audits : list of dict
        What audits have found, after how many answers.

    Returns
    -------
    list of str
    """
    *names, last = (path.name for path, _ in written.files)
    said = [f"{', '.join(names)} and {last} are in {out}.", result.how_good]
    if audits and (more := answered - audits[-1]["answers"] - audits[-1]["n"]) > 0:
        said.append(f"{count(more, 'answer')} came after that check, so it may be better now: check again to know.")
    if result.n_classes <= MOST_NAMES:
        sizes = (f"{result.name_of(m)}: {size:,}" for m, size in enumerate(result.sizes.tolist()))
        said.append(f"{count(result.n_classes, 'class', 'classes')} ({', '.join(sizes)}).")
    else:
        said.append(f"{result.n_classes} classes.")
    if written.earlier is not None:
        said.append(f"The files of the earlier run are in {written.earlier}.")
    return said


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
