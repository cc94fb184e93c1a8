"""The command fit."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from linkmix.app.cli.failures import BadInput, bad_input, extras_needed, named_by_ids
from linkmix.app.cli.options import (
    FILE,
    Classes,
    Counts,
    MethodName,
    Reading,
    out_option,
    points_argument,
    raw_cells_option,
    reading_options,
    seed_option,
)
from linkmix.app.cli.terminal import say, watched

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkmix.app.report import Result
    from linkmix.app.results import Written
    from linkmix.basics.arrays import Ints
    from linkmix.links import Links
    from linkmix.tables import Points

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
    help="Number of classes; auto chooses the one that explains links and points best.",
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
@click.option(
    "--clusters-per-class",
    type=Counts(),
    help="Number of clusters in each class, or one for each class, such as 1,2,1.  [not with auto]",
)
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
@raw_cells_option
@seed_option
@out_option("linkmix-out", "labels, model and report")
def fit(
    points: Path,
    links: Path | None,
    classes: int | str,
    reading: Reading,
    method: str,
    clusters_per_class: int | list[int] | None,
    covariance: str | None,
    coupling: str | None,
    scale: bool,
    try_hard: bool,
    noise: bool,
    known_noise: Path | None,
    cluster: str | None,
    join: bool,
    raw_cells: bool,
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
      linkmix fit survey.xlsx --sheet answers --na '?,n/d' --as 'size=ordered:S<M<L' --join
      linkmix fit points.csv --links links.csv --classes 3 --method linkmix --covariance diag --scale
      linkmix fit 'parts/*.parquet' --links links.csv --classes 3
      linkmix fit '/shared/parts/*.parquet' --links links.csv --classes 3 --cluster tcp://host:8786
    """  # noqa: D301
    settings = {"clusters_per_class": clusters_per_class, "covariance_type": covariance, "coupling": coupling}
    with extras_needed(), bad_input():
        from linkmix.app.cli.notes import about
        from linkmix.app.cli.points import only_numbers, read, standardised
        from linkmix.app.models import as_given
        from linkmix.app.results import Origin, check_writable, model_notes, results_of, typed, write

        if known_noise is not None and not noise:
            raise BadInput("--known-noise has no effect without --noise: add --noise")
        model = make(method, classes, seed, settings, try_hard, scale, noise)
        if cluster is not None:
            check_cluster(cluster, model, method)
        check_writable(folder)
        table, known = read(points, reading, links)
        losses: list[str] = []
        if not method.startswith("auto"):
            table = only_numbers(table, f"--method {method}", losses)
        check(points, table, known, model, classes, method)
        about_model = model_notes(table, method=method, missing=reading.missing, scaled=scale)
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
        if classes == "auto":
            found = len(model.classes_)
            chosen = "1 class was" if found == 1 else f"{found} classes were"
            notes.append(f"{chosen} chosen, to explain links and points best; if you know the number, give --classes")
        components = getattr(model, "components_", None)
        if components is not None:
            notes.append(
                f"classes were looked for on {len(components)} principal components of the {X.shape[1]:,} columns; the "
                "model predicts from the columns as they are"
            )
        origin = Origin(points, links, typed=typed("fit"))
        result = results_of(model, table, known, origin=origin, method=method, X=X, notes=notes)
        del X, coded
        say(f"Writing to {folder} ...")
        joined: dict[str, Any] = {"joined": points, "sheet": reading.sheet} if join else {}
        written = write(folder, result, about_model, raw=raw_cells, **joined)
    show(result, written)
    if written.earlier is not None:
        click.echo(f"The files of the earlier run are in {written.earlier}.")


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
        raise click.ClickException(f'--cluster needs {error.name}: pip install "linkmix[dask]"') from None
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


def check(points: Path, table: "Points", links: "Links", model: Any, classes: int | str, method: str) -> None:
    """Refuse what the method cannot use, in terms of the files."""
    from linkmix.app.cli.points import refuse_gaps
    from linkmix.basics.errors import BadFile

    n, d = table.X.shape
    each = model.get_params().get("clusters_per_class", 1)
    least = 2 if classes == "auto" else sum(each) if isinstance(each, list) else int(classes) * int(each)
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


def show(result: "Result", written: "Written") -> None:
    """Print the summary: first of all how good the result is."""
    from linkmix.app.report import columns_in_words, deciding_in_words, links_in_words, n_used, noise_in_words, traits

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
        rows.append([result.name_of(m), f"{size:,}", f"{100 * size / n:.1f} %", sure, f"  {apart}"])
    if result.noise is not None:
        rows.append(["none", f"{result.n_noise:,}", f"{100 * result.n_noise / n:.1f} %", "", "  label -1"])
    print_classes(["class", "points", "share", "confidence"], rows)
    click.echo()
    for path, what in written.files:
        click.echo(f"{path}: {what}")


def print_classes(names: list[str], rows: list[list[str]]) -> None:
    """The table of classes, with what sets them apart in its last column."""
    widths = [max(len(row[i]) for row in [names, *rows]) for i in range(len(names))]
    head = "  ".join(name.rjust(width) for name, width in zip(names, widths, strict=True))
    click.echo(f"{head}    apart by (standard deviations)")
    for row in rows:
        click.echo("  ".join(cell.rjust(width) for cell, width in zip(row[:4], widths, strict=True)) + "  " + row[4])
