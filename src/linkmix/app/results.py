"""The results of a fit in a folder: labels, model, report and more, all of them or none.

This is the one way in which ``fit``, ``label`` and ``ask`` write what they have found.
"""

import copy
import filecmp
import itertools
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linkmix.app.models import Saved, as_given
from linkmix.app.report import Result, page
from linkmix.basics.arrays import Floats, Ints
from linkmix.basics.errors import BadFile
from linkmix.basics.files import alone_in, may_run
from linkmix.links import Links
from linkmix.mixture import model_file
from linkmix.mixture.calibration import Quality
from linkmix.search.importance import column_weights
from linkmix.study.registry import METHODS
from linkmix.tables import Points, write_ids, write_joined, write_labels, write_links

LABELS, MODEL, REPORT = "labels.csv", "model.linkmix", "report.html"
LINKS, NOISE, JOINED = "links.csv", "noise.csv", "joined.csv"
FILES = (LABELS, MODEL, REPORT, LINKS, NOISE, JOINED)
"""Everything that a result may consist of."""
MOST_WEIGHED = 500
"""With more columns than this, how much each of them decides is not said: it takes too long."""
_UNFINISHED, _COMPLETE, _PLAN = ".unfinished", ".complete", "plan.json"


@dataclass(frozen=True)
class Origin:
    """Where points and links come from, as the user typed it.

    Attributes
    ----------
    points : Path or None
        The table; None if it is no file.
    links : Path or None
        The file of links.
    reading : tuple of str
        Options that say how the table is read, as other commands take them.
    missing : tuple of str
        Values that stand for a missing one.
    typed : str
        The command.
    raw_cells : bool
        Whether texts are written as they are, also those that a spreadsheet would run.

    Examples
    --------
    >>> origin = Origin(Path("my points.csv"), reading=("--id", "name"))
    >>> origin.fit_command(Path("out"), 3)
    "linkmix fit 'my points.csv' --id name --links out/links.csv --classes 3"
    >>> origin.predict_command(Path("out"))
    "linkmix predict out/model.linkmix 'my points.csv'"
    """

    points: Path | None = None
    links: Path | None = None
    reading: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    typed: str = "linkmix"
    raw_cells: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the files."""
        return (
            "table" if self.points is None else self.points.name,
            *(() if self.links is None else (self.links.name,)),
        )

    def fit_command(self, folder: Path, n_classes: int, *, noise: bool = False, seed: int = 0) -> str:
        """The command that fits to the links of a result again."""
        words = ["linkmix", "fit", str(self.points or "POINTS"), *self.reading]
        words += ["--links", str(folder / LINKS), "--classes", str(n_classes)]
        words += ["--noise", "--known-noise", str(folder / NOISE)] if noise else []
        return shlex.join([*words, *(["--seed", str(seed)] if seed else [])])

    def predict_command(self, folder: Path) -> str:
        """The command that labels points with the model of a result."""
        return shlex.join(["linkmix", "predict", str(folder / MODEL), str(self.points or "POINTS")])


def typed(command: str) -> str:
    """What the user typed, if this is a run of ``linkmix``; otherwise the name of the command."""
    return shlex.join(["linkmix", *sys.argv[1:]]) if Path(sys.argv[0]).name == "linkmix" else f"linkmix {command}"


def results_of(
    model: Any,
    points: Points,
    links: Links,
    *,
    origin: Origin,
    method: str = "auto",
    X: Floats | None = None,
    labels: Ints | None = None,
    probabilities: Floats | None = None,
    names: Mapping[int, str] | None = None,
    quality: Quality | None = None,
    notes: Sequence[str] = (),
) -> Result:
    """Everything that labels, model, report and summary are made from.

    Parameters
    ----------
    model : estimator
        The fitted model.
    points : Points
        The table that it was fitted to.
    links : Links
        The links that it knows.
    origin : Origin
        Where they come from.
    method : str, default="auto"
        Name of the method.
    X : ndarray of shape (n_samples, n_features), optional
        The points as they were fitted, if their columns were standardised.
    labels : ndarray of shape (n_samples,), optional
        Class numbers; by default those of the model.
    probabilities : ndarray of shape (n_samples, n_classes), optional
        Probability of each class; by default those of the model.
    names : mapping of int to str, optional
        Names of some classes. The model of the result is then a copy that has them.
    quality : Quality, optional
        How good the labels are, if an audit has found that; by default as the model says.
    notes : sequence of str
        Notes for the user.

    Returns
    -------
    Result
    """
    X = points.X if X is None else X
    labels = np.asarray(model.labels_) if labels is None else labels
    n_classes = int(getattr(model, "n_classes_", model.n_classes))
    saved = Saved(model, {"columns": points.used, "recipe": points.recipe})
    if probabilities is None and hasattr(model, "predict_proba"):
        probabilities = saved.probabilities(X)
    is_quick = probabilities is not None and 1 < points.X.shape[1] <= MOST_WEIGHED
    weights = column_weights(model, as_given(X, getattr(model, "recipe_", None))) if is_quick else None
    if weights is not None and len(weights) > len(points.used):  # the model knows columns of numbers alone
        summed = np.bincount([points.used.index(owner) for owner in points.owners], weights)
        weights = summed.astype(np.float64)
    noise = saved.noise(X)
    all_names: tuple[str, ...] = ()
    if names:
        all_names = every_name(names, n_classes)
        model = model.with_names(all_names)
    if quality is not None:
        model = copy.copy(model)
        model.quality_ = quality
    return Result(
        points,
        links,
        labels,
        probabilities,
        model,
        n_classes,
        method,
        METHODS[method].what,
        origin.typed,
        origin.names,
        tuple(notes),
        noise,
        weights,
        all_names,
    )


def every_name(names: Mapping[int, str], n_classes: int) -> tuple[str, ...]:
    """Name every class: one without a name by its number, or by the next number that is no name.

    Examples
    --------
    >>> every_name({1: "cats"}, 3), every_name({1: "0"}, 2)
    (('0', 'cats', '2'), ('1', '0'))
    """
    taken, found = set(names.values()), []
    for m in range(n_classes):
        name = names.get(m) or next(text for text in map(str, itertools.count(m)) if text not in taken)
        taken.add(name)
        found.append(name)
    return tuple(found)


@dataclass(frozen=True)
class Written:
    """What was written.

    Attributes
    ----------
    files : tuple of (Path, str)
        Each file, with what is in it.
    earlier : Path or None
        The folder to which the files of an earlier run went.
    """

    files: tuple[tuple[Path, str], ...]
    earlier: Path | None


def ready(folder: Path) -> None:
    """Create the folder, check that files can be written to it, and repair what a killed process has left."""
    folder.mkdir(parents=True, exist_ok=True)
    check_writable(folder)
    recover(folder)


def check_writable(folder: Path) -> None:
    """Check before hours of work that files can be written to a folder; one that does not exist is not yet created."""
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        error.filename = str(folder)
        raise


def write(
    folder: Path,
    result: Result,
    about: Mapping[str, Any],
    *,
    links: Links | None = None,
    nowhere: Sequence[str] | None = None,
    joined: Path | None = None,
    sheet: str | None = None,
    raw: bool = False,
) -> Written:
    """Write labels, model and report: all of them, whatever happens, or none.

    Files of an earlier run that differ are kept in a folder ``earlier-1``, ``earlier-2`` and so on.

    Parameters
    ----------
    folder : Path
        Where to; created if it does not exist.
    result : Result
        What was found.
    about : mapping
        Notes to write beside the model; see `model_notes`.
    links : Links, optional
        Links to write as well.
    nowhere : sequence of str, optional
        Ids of points of no class, to write as well.
    joined : Path, optional
        The table, to write it again with the labels beside it; ``sheet`` is the sheet of a spreadsheet.
    raw : bool, default=False
        Whether to write texts as they are, also those that a spreadsheet would run; see `linkmix.tables.cells`.

    Returns
    -------
    Written
    """
    ready(folder)
    told: dict[str, str] = {}
    with _unfinished(folder) as place:
        columns = "id and label"
        if result.probabilities is not None:
            calibrated = " (calibrated)" if result.calibrated else " (not calibrated)"
            columns = f"id, label, confidence and probability of each class{calibrated}"
            columns += "" if result.noise is None else "; noise is the probability of no class (not calibrated)"
        found: dict[str, Any] = {"noise": result.noise, "names": result.names, "raw": raw}
        id_name = result.points.id_column or "id"
        write_labels(place / LABELS, result.points.ids, result.labels, result.probabilities, id_name=id_name, **found)
        told[LABELS] = columns
        if joined is not None:
            found |= {"wanted": [*result.points.used, *result.points.unused], "stamps": result.points.stamps}
            write_joined(place / JOINED, joined, result.labels, result.probabilities, sheet=sheet, **found)
            told[JOINED] = f"{joined.name} with the labels as its last columns"
        if result.probabilities is not None:
            model_file.save(place / MODEL, result.model, about)
            told[MODEL] = "the model, for linkmix predict and linkmix explain"
        (place / REPORT).write_text(page(result), encoding="utf-8")
        told[REPORT] = "the classes, what sets them apart, and links worth a second look; open it in a browser"
        if links is not None:
            write_links(place / LINKS, links, result.points.ids, raw=raw)
            told[LINKS] = "the links, for linkmix fit"
        if nowhere is not None:
            write_ids(place / NOISE, nowhere, raw=raw)
            told[NOISE] = "ids of points of no class, for linkmix fit --known-noise"
        earlier = _put(folder, place, told)
    return Written(tuple((folder / name, what) for name, what in told.items()), earlier)


def model_notes(points: Points, *, method: str = "auto", missing: Sequence[str] = (), scaled: bool = False) -> Any:
    """What is written beside a model, for `linkmix predict`: the columns, how they are read, and how scaled."""
    about: dict[str, Any] = {"columns": list(points.used), "id": points.id_column, "method": method}
    about |= {"missing": list(missing)} if missing else {}
    about |= {} if points.recipe is None else {"recipe": points.recipe}
    return about | ({"center": points.summary.mean, "spread": points.summary.scale} if scaled else {})


@contextmanager
def _unfinished(folder: Path) -> Iterator[Path]:
    """A folder to write files to, which is removed if it is still there at the end."""
    place = folder / f"{_UNFINISHED}-{os.getpid()}-{threading.get_ident()}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _put(folder: Path, place: Path, names: Mapping[str, object]) -> Path | None:
    """Give all files their places, in one step that `recover` completes; return where earlier ones are, if any."""
    with alone_in(folder):  # another process may be writing its own results here
        _complete(folder)
        earlier = _plan(folder, place, names)
        for file in place.iterdir():
            with file.open("rb+") as opened:
                os.fsync(opened.fileno())
        place.rename(folder / _COMPLETE)  # from here on the new files count, also after a crash
        _complete(folder)
    return earlier


def _plan(folder: Path, place: Path, names: Mapping[str, object]) -> Path | None:
    """Say which files of an earlier run are kept, and where: those that are there, unless the new ones are the same."""
    there = [name for name in FILES if (folder / name).is_file()]
    same = all(name in names and filecmp.cmp(folder / name, place / name, shallow=False) for name in there)
    earlier = next(folder / f"earlier-{n}" for n in itertools.count(1) if not (folder / f"earlier-{n}").exists())
    plan = {"names": [*names], "there": [] if same else there, "earlier": earlier.name}
    (place / _PLAN).write_text(json.dumps(plan), encoding="utf-8")
    return None if same else earlier


def recover(folder: Path) -> bool:
    """Complete what a crash has interrupted, or remove it; return whether there was something to complete."""
    for left in folder.glob(f"{_UNFINISHED}-*"):
        if not may_run(left.name.split("-")[1]):
            shutil.rmtree(left, ignore_errors=True)
    return complete(folder)


def complete(folder: Path) -> bool:
    """Move files to their places that a crash has kept from there; return whether there were any."""
    if not (folder / _COMPLETE / _PLAN).is_file():
        return False
    with alone_in(folder):
        return _complete(folder)


def _complete(folder: Path) -> bool:
    there = folder / _COMPLETE
    if not (there / _PLAN).is_file():
        return False
    plan = _read_plan(there / _PLAN)
    for name in plan["there"]:
        is_old = name not in plan["names"] or (there / name).is_file()
        if is_old and (folder / name).is_file():
            (folder / plan["earlier"]).mkdir(exist_ok=True)
            (folder / name).replace(folder / plan["earlier"] / name)
    for name in plan["names"]:
        if (there / name).is_file():
            (there / name).replace(folder / name)
    (there / _PLAN).unlink()
    there.rmdir()
    return True


def _read_plan(path: Path) -> dict[str, Any]:
    """The plan of a folder, which may come from elsewhere: it names no files but those that are written here."""
    try:
        plan: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        is_sound = {*plan["names"], *plan["there"]} <= {*FILES} and re.fullmatch(r"earlier-\d+", plan["earlier"])
    except (ValueError, KeyError, TypeError, RecursionError):
        is_sound = False
    if not is_sound:
        raise BadFile(path, f"is no plan of linkmix, or damaged: remove the folder {path.parent}")
    return plan
