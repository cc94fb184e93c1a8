"""Done is a button: labels, model, report and links, exactly those that the page shows."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkmix.app.label.requests import NotPossible, check_key
from linkmix.app.label.shown import Shown, named
from linkmix.app.results import Origin, model_notes, results_of, write
from linkmix.queries.answers import as_links

if TYPE_CHECKING:
    from linkmix.app.label.session import Session

LONGEST_WAIT = 3600.0
"""Seconds that a finish waits for the model."""


class Finisher:
    """Writes the results of a session.

    Parameters
    ----------
    session : Session
        The session.
    out : Path
        Folder to write to.
    origin : Origin
        Where the points come from.
    seed : int
        Seed of the session, for the command that does it again.

    Attributes
    ----------
    progress : str or None
        What is being done; None if nothing is.
    """

    def __init__(self, session: "Session", out: Path, origin: Origin, seed: int) -> None:
        self._session, self.out, self.origin, self._seed = session, out, origin, seed
        self.progress: str | None = None
        self._key: str | None = None

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
            that of a prediction (``predict``), and the ``version`` of the session whose labels were written.

        Raises
        ------
        NotPossible
            If a check is under way, the results are being written already, or there is no model.
        """
        session = self._session
        check_key(key)
        with session.lock:
            if session.record.finished is not None and session.record.finished["key"] == key:
                return session.record.finished
            if session.closing:
                raise NotPossible("the server is stopping: start it again and repeat")
            if self.progress is not None:
                raise NotPossible("the results are being written already: wait a moment")
            if session.said.audit is not None:
                raise NotPossible("a check is under way: answer its questions, or stop it")
            self._tell("Waiting for a model that knows all answers ...")
        try:
            with session.lock:
                wanted = session.entries
                done = session.lock.wait_for(
                    lambda: session.shown.entries >= wanted or session.closing or not session.background.busy,
                    LONGEST_WAIT,
                )
                if session.closing or not done or session.shown.entries < wanted:
                    error = session.background.error
                    why = "the server is stopping" if session.closing else f"there is no model of all answers ({error})"
                    raise NotPossible(f"{why}: repeat, or undo the last answer")
                shown, names, version = session.shown, named(session.shown, session.record.names), session.version
                quality = session.said.quality
                self._tell("Writing labels, model, report and links ...")
            found = self._write(shown, {m: name.name for m, name in names.items()}, quality)
            result = found | {"key": key, "version": version, "answers": shown.answered}
            with session.lock:
                if not session.closing:
                    session.files.note({"entry": "finished", "result": result})
            return result
        finally:
            with session.lock:
                self._tell(None)

    def farewell(self) -> list[str]:
        """What the last finish said; without one, how good the labels are, and how to finish."""
        session = self._session
        if (finished := session.record.finished) is not None:
            return [*finished["sentences"], f"Again: {finished['command']}", f"More: {finished['predict']}"]
        said = [] if session.view.how_good is None else [session.view.how_good]
        return [*said, "Nothing was finished: the same command goes on, and Finish on the page writes the results."]

    def _tell(self, what: str | None) -> None:
        self.progress = what
        self._session.changed()

    def _write(self, shown: Shown, names: dict[int, str], quality: Any) -> dict[str, Any]:
        links = as_links(shown.links)
        result = results_of(
            shown.asker.model,
            self._session.points,
            links,
            labels=shown.labels,
            probabilities=shown.probabilities,
            names=names,
            quality=quality,
            origin=self.origin,
        )
        nowhere = [str(self._session.points.ids[answer.a]) for answer in shown.nowhere]
        about = model_notes(self._session.points, missing=self.origin.missing)
        written = write(self.out, result, about, links=links, nowhere=nowhere if self._session.noise else None)
        again = self.origin.fit_command(self.out, shown.n_classes, noise=self._session.noise, seed=self._seed)
        return {
            "folder": str(self.out),
            "files": [str(path) for path, _ in written.files],
            "sentences": [result.how_good],
            "command": again,
            "predict": self.origin.predict_command(self.out),
        }
