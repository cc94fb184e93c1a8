"""What pages show, ready for JSON: the status, questions, classes with their members, and links to look at again."""

from typing import TYPE_CHECKING, Any

from linkmix.app.label.shown import REVIEW_SHOWN, Shown, disagreements, doubts, members, named
from linkmix.app.label.shown import faces as faces_of
from linkmix.app.label.vocabulary import Vocabulary
from linkmix.plots.pages import count as counted
from linkmix.queries import Answer
from linkmix.queries.answers import Pair
from linkmix.queries.questions import Question

if TYPE_CHECKING:
    from linkmix.app.label.session import Session

LINKS_SHOWN = 500
"""Number of links in a status, the newest ones."""
MOST_MEMBERS = 200
"""Number of members of a class that are shown at once."""


class View:
    """What pages show of a session.

    Parameters
    ----------
    session : Session
        The session.
    """

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._faces: dict[int, int] = {}
        self._vocabulary = Vocabulary(session.points)

    def status(self) -> dict[str, Any]:
        """Everything that a page shows besides the question, the classes and the map."""
        session = self._session
        with session.lock:
            said, record, shown = session.said, session.record, session.shown
            links, nowhere, kept, audit = said.links, said.nowhere, set(record.kept), said.audit
            error = session.background.error
            troubles = [None if error is None else f"The model could not be refitted: {error}."]
            troubles += [session.file_trouble, session.files.edited]
            status: dict[str, Any] = {
                "version": session.version,
                "table": session.table,
                "refits": session.refits,
                "fitting": session.background.running,
                "trouble": " ".join(filter(None, troubles)) or None,
                "stop": self._stop(),
                "audit": None if audit is None else {"answered": audit.n_answered, "n": audit.n},
                "how_good": self.how_good,
                "counts": dict(record.counts),
                "annotators": sorted({turn[0].annotator or "" for turn in said.turns.values()} - {""}),
                "n_classes": shown.n_classes,
                "another": self._another(),
                "names": {str(m): name.name for m, name in named(shown, record.names).items()},
                "history": list(record.history),
                "audits": list(record.audits),
                "finishing": session.finisher.progress,
                "finished": record.finished,
            }
        status["n_links"] = count(links)
        status["nowhere"] = [self._as_nowhere(answer) for answer in nowhere[: -LINKS_SHOWN - 1 : -1]]
        status["n_nowhere"] = len(nowhere)
        status["links"] = [self._as_link(answer) for answer in links[: -LINKS_SHOWN - 1 : -1]]
        status["review"] = self._doubtful(shown, links, kept)
        status["sizes"] = shown.sizes
        status["n_noise"] = len(shown.labels) - sum(shown.sizes)
        return status

    @property
    def how_good(self) -> str | None:
        """What the last complete audit found, in words; None before one."""
        quality = self._session.said.quality
        return None if quality is None else str(quality)

    @property
    def n_links(self) -> dict[str, int]:
        """How many must-links (same) and cannot-links (different) there are."""
        with self._session.lock:
            return count(self._session.said.links)

    def farewell(self) -> list[str]:
        """What to say when the server stops: what is in the files, and what the last finish said."""
        session = self._session
        n_links = self.n_links
        same, different = counted(n_links["same"], "must-link"), counted(n_links["different"], "cannot-link")
        said = [f"{session.links_path}: {same} and {different}."]
        said += [] if session.files.edited is None else [session.files.edited]
        if session.noise:
            nowhere = counted(len(session.said.nowhere), "point")
            said.append(f"{session.noise_path}: {nowhere} of no class, for linkmix fit --known-noise.")
        return said + session.finisher.farewell()

    def question(self, question: Question) -> dict[str, Any]:
        """A question with the points that it is about.

        Parameters
        ----------
        question : Question
            The question.

        Returns
        -------
        dict
            ``kind``, ``why``, whether it was asked before (``again``), and in an audit how far that is (``audit``). For
            a pair, two points side by side, as `Cards.pair` gives them; for the others the cards of one point (``row``
            or ``anchor``) and of those that it is compared with (``cards``). Labels are None in an audit, since they
            would suggest an answer.
        """
        session = self._session
        with session.lock:
            audit, labels = session.said.audit, session.shown.labels
            again = question.again or (question.kind == "pair" and bool(session.said.words(*question.rows)))
        about = None if audit is None else {"answered": audit.n_answered, "n": audit.n}
        facts = {"kind": question.kind, "why": question.why, "again": again, "audit": about}
        if question.kind == "pair":
            shown = session.cards.pair(*question.rows)
            for end in ("a", "b"):
                shown[end]["label"] = int(labels[shown[end]["row"]]) if audit is None else None
            return shown | facts
        first, *cards = (self._card(row) for row in question.rows)
        return {"row" if question.kind == "which" else "anchor": first, "cards": cards, **facts}

    def classes(self) -> dict[str, Any]:
        """All classes: name, size, the point that each is shown by, and what sets it apart."""
        session = self._session
        with session.lock:
            shown, names = session.shown, named(session.shown, session.record.names)
            by_class, known, another = self.faces(), session.known, self._another()
        answered = dict.fromkeys(range(shown.n_classes), 0)
        for row in known.of:
            if (m := int(shown.labels[row])) >= 0:
                answered[m] += 1
        found = []
        for m, size in enumerate(shown.sizes):
            name = names.get(m)
            found.append(
                {
                    "label": m,
                    "name": None if name is None else name.name,
                    "colour": None if name is None else name.colour,
                    "description": "" if name is None else name.description,
                    "size": size,
                    "answered": answered[m],
                    "face": self._card(by_class[m]) if m in by_class else None,
                    "apart": [*self._vocabulary.apart(shown.labels, m), *shown.apart(m)],
                }
            )
        return {"classes": found, "n_noise": len(shown.labels) - sum(shown.sizes), "another": another}

    def members(self, label: int, kind: str, n: int) -> dict[str, Any]:
        """Cards of typical or doubtful members of a class, with the confidence in their labels."""
        if kind not in ("typical", "doubtful"):
            raise ValueError(f"kind is {kind!r}: use typical or doubtful")
        if not 1 <= n <= MOST_MEMBERS:
            raise ValueError(f"n is {n}: give a number from 1 to {MOST_MEMBERS}")
        session = self._session
        with session.lock:
            shown, by_class, known = session.shown, self.faces(), session.known
        if not 0 <= label < shown.n_classes:
            raise ValueError(f"there is no class {label}: classes are numbered from 0 to {shown.n_classes - 1}")
        rows = members(shown, known, by_class[label], label, kind, n) if label in by_class else []
        return {"cards": self._sure(shown, rows)}

    def card(self, row: int) -> dict[str, Any]:
        """A point with its class and the confidence in it."""
        session = self._session
        with session.lock:
            shown, names = session.shown, named(session.shown, session.record.names)
        label = int(shown.labels[row])
        name = names.get(label)
        about = {"label": label, "name": None if name is None else name.name}
        about |= {"colour": None if name is None else name.colour, "size": shown.sizes[label] if label >= 0 else None}
        return self._sure(shown, [row])[0] | {"class": about}

    def review(self) -> dict[str, Any]:
        """Links worth a second look, and pairs about which people disagree, each with its two points side by side."""
        session = self._session
        with session.lock:
            links, shown, kept = session.said.links, session.shown, set(session.record.kept)
        pair = session.cards.pair
        doubtful = [link | {"pair": pair(*link["rows"])} for link in self._doubtful(shown, links, kept)]
        disputed = [
            {"rows": [*rows], "ids": self._ids(rows), "words": words, "pair": pair(*rows)}
            for rows, words in disagreements(links).items()
            if rows not in kept
        ]
        return {"links": doubtful, "disagreements": disputed}

    def faces(self) -> dict[int, int]:
        """The row that each class is shown by, the same as long as it is in the class."""
        session = self._session
        self._faces = faces_of(session.shown, session.known, session.record.names, self._faces)
        return self._faces

    def _another(self) -> str | None:
        return self._session.asker.another_class

    def _ids(self, rows: Pair) -> list[str]:
        return [str(self._session.points.ids[row]) for row in rows]

    def _card(self, row: int) -> dict[str, Any]:
        session = self._session
        label = None if session.said.audit is not None else int(session.shown.labels[row])
        return session.cards.whole(row) | {"label": label}

    def _sure(self, shown: Shown, rows: list[int]) -> list[dict[str, Any]]:
        sure = shown.confidence(rows).tolist() if rows else []
        return [self._card(row) | {"confidence": round(p, 4)} for row, p in zip(rows, sure, strict=True)]

    def _as_link(self, answer: Answer) -> dict[str, Any]:
        rows = (answer.a, answer.b)
        return {"rows": [*rows], "ids": self._ids(rows), "said": answer.said, "annotator": answer.annotator}

    def _as_nowhere(self, answer: Answer) -> dict[str, Any]:
        ids = self._ids((answer.a, answer.b))[:1]
        return {"rows": [answer.a], "ids": ids, "annotator": answer.annotator}

    def _doubtful(self, shown: Shown, links: tuple[Answer, ...], kept: set[Pair]) -> list[dict[str, Any]]:
        by_pair = {answer.pair: answer for answer in links}
        found = doubts(shown, links, kept, self._session.points)
        return [self._as_link(by_pair[pair]) | {"reason": why} for pair, why in found.items()][:REVIEW_SHOWN]

    def _stop(self) -> dict[str, Any]:
        session, settings = self._session, self._session.asker.settings
        counts, fewest = session.record.counts, 2 * settings.refit_every
        answered = sum(counts[kind] for kind in ("same", "different", "which", "group"))  # some stand for many answers
        signals = [round(1 - one["settled"], 4) for one in session.record.history[-2:]]
        early, another = not signals or answered < fewest, self._another()
        signal = 1.0 if early else signals[-1]
        enough = not early and another is None and len(signals) == 2 and max(signals) < settings.settled
        share = f"about {100 * signal:.0f} %" if signal >= 0.01 else "less than 1 %"
        if early:
            what = f"answer {fewest} questions first" if answered < fewest else "the model is being refitted"
            sentence = f"It is too early to say when to stop: {what}."
        elif another is not None:
            sentence = "Go on: one more class is likely."
        else:
            sentence = f"{'You can stop' if enough else 'Go on'}: {share} of the labels may still change."
        return {"signal": signal, "enough": enough, "sentence": sentence}


def count(links: tuple[Answer, ...]) -> dict[str, int]:
    """How many must-links (same) and cannot-links (different) there are."""
    same = sum(answer.said == "same" for answer in links)
    return {"same": same, "different": len(links) - same}
