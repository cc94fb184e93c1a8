"""The command fit."""

import itertools
import shlex
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from linkmix.app.cli.failures import BadInput, bad_input, extras_needed, named_by_ids
from linkmix.app.cli.options import (
    FILE,
    Classes,
    MethodName,
    Reading,
    out_option,
    points_argument,
    reading_options,
    seed_option,
)
from linkmix.app.cli.terminal import say, watched

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from linkmix.app.report import Result
    from linkmix.app.report.numbers import Profiles
    from linkmix.basics.arrays import Floats, Ints
    from linkmix.links import Links
    from linkmix.tables import Points

LABELS, MODEL, REPORT, JOINED = "labels.csv", "model.linkmix", "report.html", "joined.csv"
MOST_WEIGHED = 500
"""With more columns than this, how much each of them decides is not said: it takes too long."""
MOST_COLUMNS = 2000
"""Limit for full covariances: beyond it they have more entries than can be estimated, and fill the memory."""


@click.command()
@points_argument
@click.option(
    "--links",
    type=FILE,
    help="File with links: a table with columns a, b and kind, COP-KMeans text, or JSON lines.",
)
@click.option(
    "--classes",
    type=Classes(),
    default="auto",
    show_default=True,
    help="Number of classes; auto takes the smallest number that explains the links about as well as any.",
)
@reading_options()
@click.option(
    "--method",
    type=MethodName(),
    default="auto",
    show_default=True,
    help="auto tries many starts and shapes; linkmix is one mixture with your settings; paper is GM-PR as published; "
    "docs/methods.md lists the others.",
)
@click.option("--clusters-per-class", type=click.IntRange(1), help="Number of clusters in each class.  [not with auto]")
@click.option(
    "--covariance",
    type=click.Choice(["full", "tied", "diag", "spherical"]),
    help="Covariance type.  [not with auto]",
)
@click.option(
    "--coupling",
    type=click.Choice(["pairwise", "graph", "none"]),
    help="How links tie labels together.  [only with --method linkmix]",
)
@click.option("--scale", is_flag=True, help="Standardise the columns: mean 0, variance 1; auto always does.")
@click.option(
    "--try-hard", is_flag=True, help="Try more starts on more rows, and average the best five.  [only with auto]"
)
@click.option(
    "--noise", is_flag=True, help="Allow points that belong to no class: they get the label -1.  [only with auto]"
)
@click.option(
    "--known-noise", type=FILE, help="File with the ids of points that belong to no class, as linkmix label writes it."
)
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Address of a running Dask scheduler, such as tcp://host:8786, whose workers read the files and run EM.  "
    "[only with mixtures]",
)
@click.option("--join", is_flag=True, help="Also write joined.csv: the table as it is, with the labels beside it.")
@seed_option
@out_option("linkmix-out", "labels, model and report")
def fit(
    points: Path,
    links: Path | None,
    classes: int | str,
    reading: Reading,
    method: str,
    clusters_per_class: int | None,
    covariance: str | None,
    coupling: str | None,
    scale: bool,
    try_hard: bool,
    noise: bool,
    known_noise: Path | None,
    cluster: str | None,
    join: bool,
    seed: int,
    folder: Path,
) -> None:
    """Cluster the rows of a table with links.

    POINTS is a CSV, TSV, Parquet, Feather or Excel file with one row per point, also compressed (.csv.gz), or many of
    them as one table: a folder, or a pattern in quotes. It may be larger than the memory. Columns may hold numbers
    (also "10,216.49" or "70 kg"), categories, truth values, dates and texts; says which were used, and which not.
    Says first how good the result is, as far as the links tell. Writes labels.csv (id, label, confidence and the
    probability of each class), model.linkmix for linkmix predict, and report.html, a page that shows the classes. The
    files of an earlier run in the same folder are kept in its folder earlier-1, earlier-2 and so on.

    \b
    Examples:
      linkmix fit points.csv --links links.csv --classes 3
      linkmix fit cells.parquet --id cell --links links.jsonl --columns area,length --out cells
      linkmix fit points.csv --links links.csv --leave-out class --as zip=category --as customer_id=number
      linkmix fit survey.xlsx --sheet answers --na '?,n/d' --as size=ordered:S<M<L --join
      linkmix fit points.csv --links links.csv --classes 3 --method linkmix --covariance diag --scale
      linkmix fit 'parts/*.parquet' --links links.csv --classes 3
      linkmix fit '/shared/parts/*.parquet' --links links.csv --classes 3 --cluster tcp://host:8786
    """  # noqa: D301
    settings = {"clusters_per_class": clusters_per_class, "covariance_type": covariance, "coupling": coupling}
    with extras_needed(), bad_input():
        from linkmix.app.cli.notes import about
        from linkmix.app.cli.points import as_given, only_numbers, read, standardised

        if known_noise is not None and not noise:
            raise BadInput("--known-noise has no effect without --noise: add --noise")
        model = make(method, classes, seed, settings, try_hard, scale, noise)
        if cluster is not None:
            check_cluster(cluster, model, method)
        ready(folder)
        table, known = read(points, reading, links)
        losses: list[str] = []
        if not method.startswith("auto"):
            table = only_numbers(table, f"--method {method}", losses)
        check(points, table, known, model, classes, method)
        about_model: dict[str, Any] = {"columns": list(table.used), "id": table.id_column, "method": method}
        about_model |= {"missing": list(reading.missing)} if reading.missing else {}
        about_model |= {} if table.recipe is None else {"recipe": table.recipe}
        if scale:
            about_model |= {"center": table.summary.mean, "spread": table.summary.scale}
        X = standardised(table) if scale else table.X
        coded = as_given(X, table.recipe if method.startswith("auto") else None)
        say(f"Fitting {len(X):,} points with {method} ...")
        of_noise = None if known_noise is None else known_labels(known_noise, table)
        notes = about(table, chosen=reading.columns is not None) + losses
        with warnings.catch_warnings(record=True) as caught, named_by_ids(links, table):
            warnings.simplefilter("always")
            if cluster is None:
                model.fit(coded, of_noise, links=known)
            elif table.recipe is not None:
                raise BadInput("--cluster reads plain numbers alone: choose such columns with --columns")
            else:
                fit_on(cluster, model, table.files or (points,), table, known, scale, of_noise)
        notes += dict.fromkeys(str(warning.message) for warning in caught if warning.category is not FutureWarning)
        components = getattr(model, "components_", None)
        if components is not None:
            notes.append(
                f"classes were looked for on {len(components)} principal components of the {X.shape[1]:,} columns; the "
                "model predicts from the columns as they are"
            )
        result = summarise(model, X, table, known, method, notes, points, links)
        del X, coded
        say(f"Writing to {folder} ...")
        written, earlier = write(folder, result, about_model, points if join else None, reading.sheet)
    show(result, written)
    if earlier is not None:
        click.echo(f"The files of the earlier run are in {earlier}.")


def make(
    method: str,
    classes: int | str,
    seed: int,
    settings: dict[str, Any],
    try_hard: bool,
    scale: bool,
    noise: bool = False,
) -> Any:
    """The estimator that was asked for; an option that has no effect on it is refused."""
    from linkmix.study.registry import METHODS

    flags = {"clusters_per_class": "--clusters-per-class", "covariance_type": "--covariance", "coupling": "--coupling"}
    scales_itself = method.startswith("auto")
    known = METHODS[method].make(n_classes=2, random_state=0).get_params()
    given = {name: value for name, value in settings.items() if value is not None}
    for name, value in given.items():
        if name not in known:
            why = "which chooses starts and shapes itself" if scales_itself else "which has no such setting"
            remedy = "linkmix" if name == "coupling" or scales_itself else "linkmix or paper"
            raise BadInput(f"{flags[name]} {value} has no effect with --method {method}, {why}: use --method {remedy}")
    if scale and scales_itself:
        raise BadInput(f"--scale has no effect with --method {method}, which always scales: leave it out")
    if classes == "auto" and not scales_itself:
        raise BadInput(f"--method {method} cannot choose the number of classes: give one, such as --classes 3")
    if try_hard:
        if method != "auto":
            raise BadInput(f"--try-hard has no effect with --method {method}: leave it out, or use --method auto")
        given |= {"budget": "large", "committee": 5}
    if noise:
        if not scales_itself:
            raise BadInput(f"--noise has no effect with --method {method}: leave it out, or use --method auto")
        given["noise"] = True
    if scales_itself:
        given["verbose"] = watched()
    return METHODS[method].make(n_classes=classes, random_state=seed, **given)


def check_cluster(address: str, model: Any, method: str) -> None:
    """Refuse methods that do not run on a cluster, and a cluster that is not there, before anything is read."""
    from linkmix.mixture.door import LinkEstimator

    if not isinstance(model, LinkEstimator):
        raise BadInput(f"--cluster has no effect with --method {method}: leave it out, or use --method auto")
    try:
        from linkmix.distributed import connect
    except ModuleNotFoundError as error:
        raise click.ClickException(f"--cluster needs {error.name}: pip install 'linkmix[dask]'") from None
    connect(address).close()


def known_labels(path: Path, table: "Points") -> "Ints":
    """What is known about the classes of points: -2 for those of no class, which a file lists, and -1 for others."""
    import numpy as np

    from linkmix.tables import read_ids

    known = np.full(len(table.ids), -1)
    known[read_ids(path, table.ids)] = -2
    return known


def fit_on(
    address: str,
    model: Any,
    files: "Sequence[Path]",
    table: "Points",
    links: "Links",
    scale: bool,
    known: "Ints | None" = None,
) -> None:
    """Fit on a Dask cluster: the workers read the files, and the labels come back part by part."""
    from linkmix import distributed
    from linkmix.tables import piled

    with distributed.connect(address) as client:
        X = distributed.read(files, table.columns)
        if scale:
            X = (X - table.summary.mean) / table.summary.scale
        distributed.fit(model, X, known, links=links, client=client, verbose=watched())
        model.labels_ = piled(client.compute(part).result() for part in model.labels_.to_delayed())


def ready(folder: Path) -> None:
    """Create the folder and check that files can be written to it, before hours of work."""
    import tempfile

    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


def check(points: Path, table: "Points", links: "Links", model: Any, classes: int | str, method: str) -> None:
    """Refuse what the method cannot use, in terms of the files."""
    from linkmix.app.cli.points import refuse_gaps
    from linkmix.basics.errors import BadFile

    n, d = table.X.shape
    least = 2 if classes == "auto" else int(classes) * int(model.get_params().get("clusters_per_class", 1))
    if n < least:
        what = "clusters" if classes != "auto" and least > int(classes) else "classes"
        rows = "1 row" if n == 1 else f"{n} rows"
        raise BadFile(points, f"{rows} cannot make {least} {what}: give more rows, or ask for fewer {what}")
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
    """What labels, report and summary are made from."""
    import numpy as np

    from linkmix.app.cli.points import as_given
    from linkmix.app.cli.saved_models import Saved
    from linkmix.app.report import Result
    from linkmix.search.importance import column_weights
    from linkmix.study.registry import METHODS

    notes_of_model = {"columns": table.used, "recipe": table.recipe}
    probabilities = Saved(model, notes_of_model).probabilities(X) if hasattr(model, "predict_proba") else None
    is_quick = probabilities is not None and 1 < table.X.shape[1] <= MOST_WEIGHED
    weights = column_weights(model, as_given(X, getattr(model, "recipe_", None))) if is_quick else None
    if weights is not None and len(weights) > len(table.used):  # the model knows columns of numbers alone
        summed = np.bincount([table.used.index(owner) for owner in table.owners], weights)
        weights = summed.astype(np.float64)
    sources = (points_path.name,) if links_path is None else (points_path.name, links_path.name)
    n_classes = int(getattr(model, "n_classes_", model.n_classes))
    typed = shlex.join(["linkmix", *sys.argv[1:]]) if Path(sys.argv[0]).name == "linkmix" else "linkmix fit"
    what = METHODS[method].what
    noise = Saved(model, notes_of_model).noise(X)
    return Result(
        table,
        links,
        model.labels_,
        probabilities,
        model,
        n_classes,
        method,
        what,
        typed,
        sources,
        tuple(notes),
        noise,
        weights,
    )


def write(
    folder: Path, result: "Result", notes: dict[str, Any], joined: Path | None, sheet: str | None
) -> tuple[list[tuple[Path, str]], Path | None]:
    """Write labels, model and report: all are complete before the first one gets its name.

    Returns what was written, and the folder to which the files of an earlier run went.
    """
    from contextlib import ExitStack

    from linkmix.app.report import page
    from linkmix.basics.files import aside
    from linkmix.mixture import model_file
    from linkmix.tables import write_joined, write_labels

    id_name = result.points.id_column or "id"
    with ExitStack() as stack:
        places: dict[str, Path] = {}
        html = places[REPORT] = stack.enter_context(aside(folder / REPORT))
        html.write_text(page(result), encoding="utf-8")
        shown = "the classes, what sets them apart, and links worth a second look; open it in a browser"
        written = [(folder / REPORT, shown)]
        if result.probabilities is not None:
            places[MODEL] = stack.enter_context(aside(folder / MODEL))
            model_file.save(places[MODEL], result.model, notes)
            written.append((folder / MODEL, "the model, for linkmix predict and linkmix explain"))
        if joined is not None:
            places[JOINED] = stack.enter_context(aside(folder / JOINED))
            names = [*result.points.used, *result.points.unused]
            found = (result.labels, result.probabilities)
            write_joined(places[JOINED], joined, *found, noise=result.noise, wanted=names, sheet=sheet)
            written.append((folder / JOINED, f"{joined.name} with the labels as its last columns"))
        labels = places[LABELS] = stack.enter_context(aside(folder / LABELS))
        write_labels(
            labels, result.points.ids, result.labels, result.probabilities, noise=result.noise, id_name=id_name
        )
        columns = "id and label"
        if result.probabilities is not None:
            calibrated = " (calibrated)" if result.calibrated else " (not calibrated)"
            columns = f"id, label, confidence and probability of each class{calibrated}"
            columns += "" if result.noise is None else "; noise is the probability of no class (not calibrated)"
        written.append((folder / LABELS, columns))
        earlier = keep_earlier(folder, places)
    return written[::-1], earlier


def keep_earlier(folder: Path, places: "Mapping[str, Path]") -> Path | None:
    """Move the files of an earlier run to a folder of their own, unless the new ones are the same."""
    import filecmp

    there = [name for name in (LABELS, MODEL, REPORT, JOINED) if (folder / name).is_file()]
    if all(name in places and filecmp.cmp(folder / name, places[name], shallow=False) for name in there):
        return None
    earlier = next(folder / f"earlier-{n}" for n in itertools.count(1) if not (folder / f"earlier-{n}").exists())
    earlier.mkdir()
    for name in there:
        (folder / name).replace(earlier / name)
    return earlier


def show(result: "Result", written: list[tuple[Path, str]]) -> None:
    """Print the summary: first of all how good the result is."""
    from linkmix.app.report import columns_in_words, deciding_in_words, links_in_words, n_used, noise_in_words

    click.echo(f"{result.how_good}\n")
    n, d = len(result.points.X), n_used(result.points, result.model)
    said = ", ".join(
        f"{number:,} {one if number == 1 else many}"
        for number, one, many in (
            (n, "point", "points"),
            (d, "column", "columns"),
            (result.n_classes, "class", "classes"),
        )
    )
    click.echo(said + ".")
    if result.noise is not None:
        click.echo(noise_in_words(result.n_noise, n))
    if len(result.link_table):
        click.echo(links_in_words(result))
    for sentence in columns_in_words(result.points, result.model):
        click.echo(sentence)
    for note in result.notes:
        click.echo(f"Note: {note}.")
    if result.weights is not None and result.weights.any():
        click.echo(deciding_in_words(result.points.used, result.weights))
    click.echo()
    confidence, rows = result.confidence, []
    for m, size in enumerate(result.sizes):
        sure = "" if confidence is None or not size else f"{confidence.means[m]:.3f}"
        apart = ", ".join(traits(result.profiles, m)) if size else "no points"
        rows.append([str(m), f"{size:,}", f"{100 * size / n:.1f} %", sure, f"  {apart}"])
    if result.noise is not None:
        rows.append(["none", f"{result.n_noise:,}", f"{100 * result.n_noise / n:.1f} %", "", "  label -1"])
    print_classes(["class", "points", "share", "confidence"], rows)
    click.echo()
    for path, what in written:
        click.echo(f"{path}: {what}")


def traits(profiles: "Profiles", m: int) -> list[str]:
    """What sets a class apart: numbers in standard deviations, levels by their share."""
    said = []
    for trait in profiles.top(m, 3):
        if not profiles.differences[m, trait]:
            continue
        if profiles.shares[trait]:
            share, overall = 100 * profiles.means[m, trait], 100 * profiles.center[trait]
            said.append(f"{profiles.names[trait]} {share:.0f} % (overall {overall:.0f} %)")
        else:
            said.append(f"{profiles.names[trait]} {profiles.differences[m, trait]:+.1f}")
    return said


def print_classes(names: list[str], rows: list[list[str]]) -> None:
    """The table of classes, with what sets them apart in its last column."""
    widths = [max(len(row[i]) for row in [names, *rows]) for i in range(len(names))]
    head = "  ".join(name.rjust(width) for name, width in zip(names, widths, strict=True))
    click.echo(f"{head}    apart by (standard deviations)")
    for row in rows:
        click.echo("  ".join(cell.rjust(width) for cell, width in zip(row[:4], widths, strict=True)) + "  " + row[4])
