"""What a page shows of one model: classes, their faces and members, and links that are worth a second look."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from linkmix.app.label.answers import Name
from linkmix.app.models import as_given
from linkmix.app.report.numbers import Profiles, profiles, traits
from linkmix.basics.arrays import Floats, Ints
from linkmix.columns.wide import Picture, Sentences, Words
from linkmix.data.summary import summarise
from linkmix.queries import Answer, Answers
from linkmix.queries.answers import Pair, as_links, by_pair, pair_of
from linkmix.queries.groups import Known
from linkmix.search import AutoLinkMixture
from linkmix.tables import Points

MOST_PROFILED = 20_000
"""What sets a class apart is taken from at most this many rows, evenly spaced."""
MOST_LOOKED_AT, LEAST_OF_CLASS = 20_000, 200
"""Typical and doubtful members are looked for among this many rows, and at least so many of each class."""
MOST_TRAITS = 5
"""Columns by which a class is set apart."""
REVIEW_SHOWN = 10
"""Number of doubtful links that are shown."""
DOUBTFUL = 0.5
"""A link is doubtful if the model finds it wrong with a higher probability than this."""


@dataclass(frozen=True, eq=False)
class Shown:
    """One model and what it was fitted to. Everything that follows from it is computed once, when it is asked for.

    Attributes
    ----------
    points : Points
        The table.
    model : AutoLinkMixture
        The model.
    labels : ndarray of shape (n_samples,)
        Class number of each point; -1 for no class.
    links : tuple of Answer
        The links that the model knows.
    nowhere : tuple of Answer
        The points of no class that the model knows.
    entries : int
        Number of entries that had been made.
    answered : int
        Number of answers that the model knows.
    """

    points: Points
    model: AutoLinkMixture
    labels: Ints
    links: tuple[Answer, ...] = ()
    nowhere: tuple[Answer, ...] = ()
    entries: int = 0
    answered: int = 0

    @classmethod
    def again(cls, path: Path, points: Points, said: Answers) -> "Shown":
        """What was shown when results were written, from the file of the model."""
        model = AutoLinkMixture.load(path)
        number_of = {name: number for number, name in enumerate(model.classes_.tolist())}
        labels = np.array([number_of.get(label, -1) for label in model.labels_.tolist()], dtype=np.int64)
        return cls(points, model, labels, said.links, said.nowhere, 0, len(said.ordinary))

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.model.classes_)

    @cached_property
    def sizes(self) -> list[int]:
        """Number of points in each class."""
        return [int(size) for size in np.bincount(self.labels[self.labels >= 0], minlength=self.n_classes)]

    @cached_property
    def probabilities(self) -> Floats:
        """Calibrated probability of each class for each point, from the point alone, as the model gives them."""
        return np.asarray(self.model.predict_proba(self.points.coded))

    def confidence(self, rows: Sequence[int] | Ints) -> Floats:
        """Probability of the labels of some rows; of one of no class, that it is not in its most probable class."""
        chosen = np.asarray(rows, dtype=np.int64)
        labels = self.labels[chosen]
        p = self.model.predict_proba(as_given(np.asarray(self.points.X[chosen]), self.points.recipe))
        found = p[np.arange(len(chosen)), np.maximum(labels, 0)]
        return np.where(labels < 0, 1 - found, found)

    @cached_property
    def _looked_at(self) -> list[tuple[Ints, Floats]]:
        """Rows of each class, evenly spaced if there are many, and the confidence in their labels."""
        most = max(LEAST_OF_CLASS, MOST_LOOKED_AT // self.n_classes)
        some = [np.flatnonzero(self.labels == m) for m in range(self.n_classes)]
        some = [rows[:: -(-len(rows) // most)] if len(rows) > most else rows for rows in some]
        sure = self.confidence(np.concatenate(some)) if any(map(len, some)) else np.empty(0)
        return list(zip(some, np.split(sure, np.cumsum([len(rows) for rows in some])[:-1]), strict=True))

    @cached_property
    def members(self) -> list[Ints]:
        """Rows of each class, the most typical first: of high confidence, and of these where points are dense."""
        found = []
        for rows, sure in self._looked_at:
            X = as_given(np.asarray(self.points.X[rows]), self.points.recipe)
            dense = self.model.score_samples(X) if len(rows) else np.empty(0)
            found.append(rows[np.lexsort((-dense, -np.round(sure, 2)))])
        return found

    @cached_property
    def doubtful(self) -> list[Ints]:
        """Rows of each class, those of least confidence first."""
        return [rows[np.argsort(sure, kind="stable")] for rows, sure in self._looked_at]

    @cached_property
    def profiles(self) -> Profiles | None:
        """How each class differs from all points together, by some of the points; None where all are texts or pictures.

        Components of texts and pictures are left out, since they mean nothing to a person.
        """
        points = self.points
        some = slice(None, None, -(-len(points.X) // MOST_PROFILED))
        columns = () if points.recipe is None else points.recipe.columns
        wide = {column.name for column in columns if isinstance(column.kind, Words | Sentences | Picture)}
        told = [place for place, owner in enumerate(points.owners) if owner not in wide]
        if not told:
            return None
        X, names = np.asarray(points.X[some])[:, told], [points.columns[place] for place in told]
        levels = [points.level_names(place) for place in told]
        return profiles(X, self.labels[some], self.n_classes, summarise(X), names, levels)

    def prepare(self) -> None:
        """Compute now what the first request would have to wait for."""
        _ = self.members, self.doubtful, self.profiles

    def apart(self, m: int) -> list[str]:
        """What sets a class apart, in words; `Vocabulary` does so for texts."""
        return traits(self.profiles, m, MOST_TRAITS) if self.sizes[m] and self.profiles is not None else []


def faces(shown: Shown, known: Known, names: Mapping[int, Name], before: Mapping[int, int]) -> dict[int, int]:
    """The row that each class is shown by.

    Parameters
    ----------
    shown : Shown
        The model.
    known : Known
        What the answers say.
    names : mapping of int to Name
        Names by rows, the oldest first.
    before : mapping of int to int
        The faces by class so far.

    Returns
    -------
    dict of int to int
        By class, empty ones left out. A row with a name; the face of before, if it is still in the class; otherwise an
        answered row that many others are known to be like, of high confidence; or the most typical one.
    """
    labels, found = shown.labels, {}
    for m, row in before.items():
        if m < shown.n_classes and labels[row] == m:
            found[m] = row
    answered: dict[int, list[int]] = {}
    for row in known.of:
        answered.setdefault(int(labels[row]), []).append(row)
    for m in range(shown.n_classes):
        if m not in found and (rows := answered.get(m)):
            sure = dict(zip(rows, shown.confidence(rows).tolist(), strict=True))
            found[m] = max(rows, key=lambda row: (len(known.members[known.of[row]]), sure[row]))
        elif m not in found and shown.sizes[m]:
            found[m] = int(shown.members[m][0])
    for one in reversed([*names]):
        if labels[one] >= 0:
            found[int(labels[one])] = one
    return found


def named(shown: Shown, names: Mapping[int, Name]) -> dict[int, Name]:
    """Names by class: that of the oldest named row in it."""
    found = {int(shown.labels[row]): name for row, name in reversed([*names.items()])}
    return {m: found[m] for m in sorted(found) if m >= 0}


def members(shown: Shown, known: Known, face: int, m: int, kind: str, n: int) -> list[int]:
    """Members of a class: typical ones, or doubtful ones, about which nothing is known.

    Parameters
    ----------
    shown : Shown
        The model.
    known : Known
        What the answers say.
    face : int
        The row that the class is shown by.
    m : int
        The class.
    kind : {"typical", "doubtful"}
    n : int
        Number of rows.

    Returns
    -------
    list of int
        Rows, the most typical or the most doubtful first, without the face.
    """
    if kind == "typical":
        return [row for row in shown.members[m][: n + 1].tolist() if row != face][:n]
    open_ = (int(row) for row in shown.doubtful[m] if row != face and known.relation(int(row), face) is None)
    return list(islice(open_, n))


def doubts(shown: Shown, links: tuple[Answer, ...], kept: set[Pair], points: Points) -> dict[Pair, str]:
    """Links worth a second look, with the reason: those that contradict others, then those that the model doubts."""
    found: dict[Pair, str] = {}
    by = {answer.pair for answer in links}
    for conflict in as_links(links).conflicts(REVIEW_SHOWN):
        through = ", ".join(str(points.ids[row]) for row in conflict.chain[1:-1][:5])
        reason = f"other links join these two, through {through}" if through else "it was answered both ways"
        found[pair_of(*conflict.cannot)] = reason
    for a, b, _, wrong in shown.model.links_to_review_[: REVIEW_SHOWN + len(kept)].tolist():
        pair = pair_of(a, b)
        if wrong > DOUBTFUL and pair in by:
            found.setdefault(pair, f"wrong with probability {wrong:.2f}")
    return {pair: reason for pair, reason in found.items() if pair not in kept}


def disagreements(links: tuple[Answer, ...]) -> dict[Pair, list[dict[str, Any]]]:
    """Pairs about which people disagree, with the words of each."""
    return {
        pair: [{"annotator": word.annotator, "said": word.said} for word in words]
        for pair, words in by_pair(links).items()
        if len({word.said for word in words}) > 1
    }
