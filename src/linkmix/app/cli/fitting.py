"""The commands fit and predict."""

import shlex
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from linkmix.app.cli.failures import BadInput, bad_input, extras_needed, named_by_ids
from linkmix.app.cli.options import (
    FILE,
    FOLDER,
    Classes,
    MethodName,
    columns_option,
    id_option,
    points_argument,
    read,
    say,
    seed_option,
    watched,
)

if TYPE_CHECKING:
    from linkmix.app.report import Result
    from linkmix.basics.arrays import Floats
    from linkmix.links import Links
    from linkmix.tables import Points

LABELS, MODEL, REPORT = "labels.csv", "model.linkmix", "report.html"
MOST_COLUMNS = 2000
"""A full covariance of more columns than this has more numbers than are worth estimating, and fills the memory."""


@click.command()
@points_argument
@click.option("--links", type=FILE, help="File with links: columns a, b and kind, COP-KMeans text, or lines of JSON.")
@click.option(
    "--classes",
    type=Classes(),
    default="auto",
    show_default=True,
    help="Number of classes; auto takes the fewest that explain the links about as well as any.",
)
@id_option
@columns_option
@click.option(
    "--method",
    type=MethodName(),
    default="auto",
    show_default=True,
    help="auto tries many starts and shapes; linkmix is one mixture with settings of yours; paper is GM-PR as printed; "
    "others as in docs/methods.md.",
)
@click.option("--clusters-per-class", type=click.IntRange(1), help="Clusters that make up a class.  [not with auto]")
@click.option(
    "--covariance",
    type=click.Choice(["full", "tied", "diag", "spherical"]),
    help="Form of the covariances.  [not with auto]",
)
@click.option(
    "--coupling",
    type=click.Choice(["pairwise", "graph", "none"]),
    help="How links tie labels together.  [with --method linkmix]",
)
@click.option("--scale", is_flag=True, help="Divide columns by their standard deviations; auto always does.")
@click.option("--try-hard", is_flag=True, help="Try more starts on more rows, and average the best five (auto alone).")
@seed_option
@click.option(
    "--out",
    "folder",
    type=FOLDER,
    default=Path("linkmix-out"),
    show_default=True,
    help="Folder for labels, model and report; it is made if it is not there.",
)
def fit(
    points: Path,
    links: Path | None,
    classes: int | str,
    id_column: str | None,
    columns: list[str] | None,
    method: str,
    clusters_per_class: int | None,
    covariance: str | None,
    coupling: str | None,
    scale: bool,
    try_hard: bool,
    seed: int,
    folder: Path,
) -> None:
    """Cluster the rows of a table with links, and explain the result.

    POINTS is a CSV, TSV or Parquet file with a row for each point. Writes labels.csv (id, label, confidence and the
    probability of each class), model.linkmix for linkmix predict, and report.html, a page that shows the classes.

    \b
    Examples:
      linkmix fit points.csv --links links.csv --classes 3
      linkmix fit cells.parquet --id cell --links links.jsonl --columns area,length --out cells
      linkmix fit points.csv --links links.csv --classes 3 --method linkmix --covariance diag --scale
    """  # noqa: D301
    settings = {"clusters_per_class": clusters_per_class, "covariance_type": covariance, "coupling": coupling}
    with extras_needed(), bad_input():
        model = make(method, classes, seed, settings, try_hard, scale)
        ready(folder)
        table, statements = read(points, id_column, columns, links)
        check(points, table, statements, model, classes, method)
        notebook: dict[str, Any] = {"columns": list(table.columns), "id": table.id_column, "method": method}
        if scale:
            notebook |= scaling(table)
        X = scaled(table.X, notebook)
        say(f"Fitting {len(X):,} points with {method} ...")
        notes = list(about(table))
        with warnings.catch_warnings(record=True) as caught, named_by_ids(links, table):
            warnings.simplefilter("always")
            model.fit(X, links=statements)
        notes += dict.fromkeys(str(warning.message) for warning in caught if warning.category is not FutureWarning)
        result = summarise(model, X, table, statements, method, notes, points, links)
        del X
        say(f"Writing to {folder} ...")
        written = write(folder, result, notebook)
    show(result, written)


@click.command()
@click.argument("model", type=FILE)
@points_argument
@id_option
@click.option(
    "--out", "target", type=FILE, default=Path("predicted.csv"), show_default=True, help="File for the labels."
)
def predict(model: Path, points: Path, id_column: str | None, target: Path) -> None:
    """Label the rows of a table with a model that linkmix fit wrote.

    POINTS needs the columns that the model was fitted to; others are left alone. Each row is labelled on its own.

    \b
    Examples:
      linkmix predict linkmix-out/model.linkmix new.csv
      linkmix predict cells/model.linkmix more.parquet --id cell --out more-labels.csv
    """  # noqa: D301
    with extras_needed(), bad_input():
        import numpy as np

        from linkmix.tables import column_names, read_points, write_labels

        saved, notes = load(model)
        if id_column is None and notes.get("id") in column_names(points):
            id_column = notes["id"]
        table = read_points(points, id=id_column, columns=notes["columns"], texts=False, progress=watched())
        refuse_gaps(points, table, saved, "this model")
        say(f"Labelling {len(table.X):,} points ...")
        probabilities = probabilities_of(saved, table.X, notes)
        labels = np.asarray(probabilities).argmax(axis=1)
        write_labels(target, table.ids, labels, probabilities, id_name=table.id_column or "id")
    n_classes = probabilities.shape[1]
    sizes = ", ".join(f"class {m}: {n:,}" for m, n in enumerate(np.bincount(labels, minlength=n_classes).tolist()))
    click.echo(f"{len(labels):,} points labelled ({sizes}).\n{target}")


def make(method: str, classes: int | str, seed: int, settings: dict[str, Any], try_hard: bool, scale: bool) -> Any:
    """The estimator that was asked for; an option that says nothing to it is refused."""
    from linkmix.study.registry import METHODS

    flags = {"clusters_per_class": "--clusters-per-class", "covariance_type": "--covariance", "coupling": "--coupling"}
    scales_itself = method.startswith("auto")
    known = METHODS[method].make(n_classes=2, random_state=0).get_params()
    given = {name: value for name, value in settings.items() if value is not None}
    for name, value in given.items():
        if name not in known:
            why = "which chooses starts and shapes by itself" if scales_itself else "which has no such setting"
            remedy = "linkmix" if name == "coupling" or scales_itself else "linkmix or paper"
            raise BadInput(f"{flags[name]} {value} says nothing to --method {method}, {why}: use --method {remedy}")
    if scale and scales_itself:
        raise BadInput(f"--scale says nothing to --method {method}, which always scales: leave it out")
    if classes == "auto" and not scales_itself:
        raise BadInput(f"--method {method} can not choose the number of classes: give one, such as --classes 3")
    if try_hard:
        if method != "auto":
            raise BadInput(f"--try-hard says nothing to --method {method}: leave it out, or use --method auto")
        given |= {"budget": "large", "committee": 5}
    if scales_itself:
        given["verbose"] = watched()
    return METHODS[method].make(n_classes=classes, random_state=seed, **given)


def ready(folder: Path) -> None:
    """Make the folder and see whether files can be written to it, before hours of work."""
    import tempfile

    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


def check(points: Path, table: "Points", links: "Links", model: Any, classes: int | str, method: str) -> None:
    """Refuse what the method can not use, in terms of the files."""
    from linkmix.basics.errors import BadFile

    n, d = table.X.shape
    least = 2 if classes == "auto" else int(classes) * int(model.get_params().get("clusters_per_class", 1))
    if n < least:
        what = "clusters" if classes != "auto" and least > int(classes) else "classes"
        rows = "1 row" if n == 1 else f"{n} rows"
        raise BadFile(points, f"{rows} can not make {least} {what}: give more rows, or ask for fewer {what}")
    if classes == 1 and links.n_cannot:
        raise BadInput(f"{links.n_cannot} cannot-links need at least two classes: raise --classes")
    form = model.get_params().get("covariance_type", "full" if method.startswith("auto") else None)
    if d > MOST_COLUMNS and form in ("full", "tied"):
        remedy = "use --method linkmix --covariance diag" if method.startswith("auto") else "use --covariance diag"
        raise BadFile(
            points,
            f"{d:,} columns are too many for full covariances (at most {MOST_COLUMNS:,}): choose some with --columns, "
            f"or {remedy}",
        )
    refuse_gaps(points, table, model, f"--method {method}")


def refuse_gaps(points: Path, table: "Points", model: Any, name: str) -> None:
    """Refuse missing values where the model needs all."""
    import numpy as np
    from sklearn.utils import get_tags

    from linkmix.basics.errors import BadFile
    from linkmix.data.blocks import Blocks

    if get_tags(model).input_tags.allow_nan:
        return
    n_missing = table.X.size - int(table.summary.n_values.sum())
    if n_missing:
        row = 0
        for block in Blocks.from_array(table.X):
            if (gaps := np.isnan(block)).any():
                break
            row += len(block)
        below, column = np.argwhere(gaps)[0]
        first = table.ids[row + int(below)]
        raise BadFile(
            points,
            f"{n_missing:,} values are missing, the first one of id {first!r}, and {name} needs all of "
            "them: fill them, choose other columns, or use --method auto",
            column=table.columns[column],
        )


def scaling(table: "Points") -> "dict[str, Floats]":
    """Mean and standard deviation of each column, 1 for a constant one."""
    import numpy as np

    mean, spread = table.summary.mean, table.summary.spread
    return {"center": mean, "spread": np.where(spread > 0, spread, 1.0)}


def scaled(X: "Floats", notes: Mapping[str, Any]) -> "Floats":
    """Points as the model was given them; those of a large table in a scratch file of their own."""
    from linkmix.data.blocks import Blocks
    from linkmix.tables import piled

    if "center" not in notes:
        return X
    return piled((block - notes["center"]) / notes["spread"] for block in Blocks.from_array(X))


def probabilities_of(model: Any, X: "Floats", notes: Mapping[str, Any]) -> "Floats":
    """Probability of each class for each point, block by block."""
    import numpy as np

    from linkmix.data.blocks import Blocks
    from linkmix.tables import piled

    return piled(model.predict_proba(scaled(np.asarray(block), notes)) for block in Blocks.from_array(X))


def about(table: "Points") -> list[str]:
    """What the user should know about the columns."""
    notes = []
    if table.left_out:
        notes.append(f"left out, for they hold no value: {', '.join(table.left_out)}")
    found = table.summary
    constant = [name for name, same in zip(table.columns, found.low == found.high, strict=True) if same]
    if constant:
        notes.append(f"the same value in every row, which says nothing about classes: {', '.join(constant)}")
    n_missing = table.X.size - int(found.n_values.sum())
    if n_missing:
        notes.append(f"{n_missing:,} values are missing; each class takes them for what it expects there")
    return notes


def summarise(
    model: Any,
    X: "Floats",
    table: "Points",
    links: "Links",
    method: str,
    notes: list[str],
    points_path: Path,
    links_path: Path | None,
) -> "Result":
    """All that labels, report and summary are made of."""
    from linkmix.app.report import Result
    from linkmix.study.registry import METHODS

    probabilities = probabilities_of(model, X, {}) if hasattr(model, "predict_proba") else None
    sources = (points_path.name,) if links_path is None else (points_path.name, links_path.name)
    n_classes = int(getattr(model, "n_classes_", model.n_classes))
    typed = shlex.join(["linkmix", *sys.argv[1:]]) if Path(sys.argv[0]).name == "linkmix" else "linkmix fit"
    what = METHODS[method].what
    return Result(
        table, links, model.labels_, probabilities, model, n_classes, method, what, typed, sources, tuple(notes)
    )


def write(folder: Path, result: "Result", notes: dict[str, Any]) -> list[tuple[Path, str]]:
    """Write labels, model and report: all of them are complete before the first one gets its name."""
    from contextlib import ExitStack

    from linkmix.app.report import page
    from linkmix.basics.files import aside
    from linkmix.mixture import model_file
    from linkmix.tables import write_labels

    id_name = result.points.id_column or "id"
    with ExitStack() as stack:
        html = stack.enter_context(aside(folder / REPORT))
        html.write_text(page(result), encoding="utf-8")
        written = [(folder / REPORT, "the classes, what sets them apart, and links to review; open it in a browser")]
        if result.probabilities is not None:
            model_file.save(stack.enter_context(aside(folder / MODEL)), result.model, notes)
            written.append((folder / MODEL, "the model, for linkmix predict and linkmix explain"))
        labels = stack.enter_context(aside(folder / LABELS))
        write_labels(labels, result.points.ids, result.labels, result.probabilities, id_name=id_name)
        columns = "id and label" if result.probabilities is None else "id, label, confidence, probability of each class"
        written.append((folder / LABELS, columns))
    if result.probabilities is None:
        (folder / MODEL).unlink(missing_ok=True)  # of an earlier fit, and no longer true
    return written[::-1]


def load(path: Path) -> tuple[Any, dict[str, Any]]:
    """A model with its notes."""
    from linkmix.basics.errors import BadFile
    from linkmix.mixture import LinkMixture, model_file
    from linkmix.rivals.mixtures import EMPC, GMM, GMMEC, GMPR, PPC
    from linkmix.search import AutoLinkMixture

    found = model_file.load(path, [AutoLinkMixture, LinkMixture, GMPR, GMM, GMMEC, EMPC, PPC])
    notes = dict(found.notes)
    if "columns" not in notes:
        names = getattr(found.estimator, "feature_names_in_", None)
        if names is None:
            raise BadFile(path, "does not know the names of its columns: fit with linkmix fit, or to a data frame")
        notes["columns"] = [str(name) for name in names]
    return found.estimator, notes


def show(result: "Result", written: list[tuple[Path, str]]) -> None:
    """Print the summary."""
    import numpy as np

    from linkmix.study.metrics import links_satisfied

    n, d = result.points.X.shape
    links = result.links
    said = ", ".join(
        f"{number:,} {one if number == 1 else many}"
        for number, one, many in (
            (n, "point", "points"),
            (d, "column", "columns"),
            (result.n_classes, "class", "classes"),
        )
    )
    if links.n_must + links.n_cannot:
        share = links_satisfied(result.labels, links)
        said += f"; {links.n_must} must-links and {links.n_cannot} cannot-links, {100 * share:.0f} % satisfied"
    click.echo(said + ".")
    for note in result.notes:
        click.echo(f"Note: {note}.")
    click.echo()
    differences, confidence, rows = result.profiles.differences, result.confidence, []
    for m, size in enumerate(result.sizes):
        top = np.argsort(-np.abs(differences[m]), kind="stable")[:3]
        apart = ", ".join(f"{result.points.columns[j]} {differences[m, j]:+.1f}" for j in top if differences[m, j])
        sure = "" if confidence is None or not size else f"{confidence.means[m]:.3f}"
        rows.append([str(m), f"{size:,}", f"{100 * size / n:.1f} %", sure, "  " + (apart if size else "no points")])
    print_classes(["class", "points", "share", "confidence"], rows)
    click.echo()
    for path, what in written:
        click.echo(f"{path}: {what}")


def print_classes(names: list[str], rows: list[list[str]]) -> None:
    """The table of classes, with what sets them apart in its last column."""
    widths = [max(len(row[i]) for row in [names, *rows]) for i in range(len(names))]
    head = "  ".join(name.rjust(width) for name, width in zip(names, widths, strict=True))
    click.echo(f"{head}    apart by (standard deviations)")
    for row in rows:
        click.echo("  ".join(cell.rjust(width) for cell, width in zip(row[:4], widths, strict=True)) + "  " + row[4])
