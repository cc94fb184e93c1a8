"""The commands choose and compare."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkmix.app.cli.failures import bad_input, extras_needed, named_by_ids
from linkmix.app.cli.options import (
    FILE,
    FOLDER,
    Classes,
    ColumnName,
    Names,
    Numbers,
    columns_option,
    id_option,
    points_argument,
    print_table,
    progress,
    read,
    say,
    seed_option,
    watched,
)

if TYPE_CHECKING:
    import pandas as pd


@click.command()
@points_argument
@click.option("--links", type=FILE, help="File with links, as for linkmix fit.")
@click.option("--classes", type=Classes(), default="auto", show_default=True, help="Number of classes, if you know it.")
@id_option
@columns_option
@seed_option
def choose(
    points: Path,
    links: Path | None,
    classes: int | str,
    id_column: str | None,
    columns: list[str] | None,
    seed: int,
) -> None:
    """Choose the number of classes, the clusters per class and the form of covariance.

    The number of classes is the fewest that explain the links about as well as any from 2 to 10. Shapes are then ranked
    by the links that their labels break, and among equals by BIC.

    \b
    Examples:
      linkmix choose points.csv --links links.csv
      linkmix choose points.csv --links links.csv --classes 3 --columns height,weight
    """  # noqa: D301
    with extras_needed(), bad_input():
        from linkmix.app.cli.fitting import scaled, scaling
        from linkmix.search import AutoLinkMixture
        from linkmix.search.choice import compare_shapes

        table, statements = read(points, id_column, columns, links)
        choice = None
        with named_by_ids(links, table):
            if classes == "auto":
                say("Trying 2 to 10 classes ...")
                model = AutoLinkMixture("auto", verbose=watched(), random_state=seed).fit(table.X, links=statements)
                choice, n_classes = model.choice_, model.n_classes_
            else:
                n_classes = int(classes)
            X = scaled(table.X, scaling(table))[:, table.summary.high > table.summary.low]
            shapes = compare_shapes(X, statements, n_classes, random_state=seed, progress=progress("shapes", "fit"))
        if not len(shapes):
            raise ValueError(f"{points}: no shape can be fitted to {len(X)} rows: give more rows, or fewer classes")
    if choice is not None:
        rows = [
            [
                f"{row['n_classes']}",
                f"{row['links_broken']:g}",
                f"{row['log_probability_of_links']:.2f}",
                f"{row['bic']:,.0f}",
                "chosen" if row["n_classes"] == n_classes else "",
            ]
            for row in choice
        ]
        print_table(["classes", "links broken", "log-probability of links", "BIC", ""], rows)
        click.echo()
    best = shapes[0]
    rows = [
        [
            f"{row['clusters_per_class']}",
            str(row["covariance_type"]),
            f"{row['links_broken']:g}",
            f"{row['bic']:,.0f}",
            "chosen" if number == 0 else "",
        ]
        for number, row in enumerate(shapes)
    ]
    print_table(["clusters per class", "covariance", "links broken", "BIC", ""], rows)
    given = "" if links is None else f" --links {links}"
    chosen = f"--clusters-per-class {best['clusters_per_class']} --covariance {best['covariance_type']}"
    click.echo(f"\nlinkmix fit {points}{given} --classes {n_classes} --method linkmix {chosen} --scale")


@click.command()
@points_argument
@click.option("--truth", type=ColumnName(), required=True, help="Column with the true class of each row.")
@id_option
@columns_option
@click.option("--methods", type=Names(), help="Methods, with commas between them. By default all of the registry.")
@click.option(
    "--n-links", type=Numbers(), default="0,10,25,50,100", show_default=True, help="Numbers of links, with commas."
)
@click.option("--trials", type=click.IntRange(1), default=10, show_default=True, help="Runs with other links each.")
@click.option("--jobs", "n_jobs", type=click.IntRange(1), help="Number of processes; by default one per processor.")
@click.option("--scale", is_flag=True, help="Divide columns by their standard deviations.")
@click.option(
    "--out", "folder", type=FOLDER, default=Path("compare"), show_default=True, help="Folder for table and picture."
)
def compare(
    points: Path,
    truth: str,
    id_column: str | None,
    columns: list[str] | None,
    methods: list[str] | None,
    n_links: list[int],
    trials: int,
    n_jobs: int | None,
    scale: bool,
    folder: Path,
) -> None:
    """Compare methods on a table whose classes are known.

    Draws links at random from the true classes, runs each method with them, and scores its labels by their purity.
    Writes runs.jsonl, which keeps each run when it ends, so that a stopped command goes on; compare.csv with all runs;
    and compare.png.

    \b
    Examples:
      linkmix compare iris.csv --truth species
      linkmix compare iris.csv --truth species --methods auto,paper,gmm --n-links 10,20,50 --trials 5
    """  # noqa: D301
    with extras_needed(), bad_input():
        import numpy as np

        from linkmix.app.cli.fitting import scaled, scaling
        from linkmix.basics.errors import BadFile
        from linkmix.basics.files import aside
        from linkmix.plots import save_picture
        from linkmix.study.comparison import compare as run
        from linkmix.study.paper.figures import purity_against_links
        from linkmix.study.registry import METHODS

        table, _ = read(points, id_column, columns, None, text_columns=[truth])
        y = table.texts[truth]
        if "" in set(y):
            row = int(np.flatnonzero(y == "")[0])
            raise BadFile(points, f"id {table.ids[row]!r} has no class: fill it, or remove the row", column=truth)
        classes, counts = np.unique(y.astype(str), return_counts=True)
        if len(classes) < 2 or len(classes) > len(y) // 2:
            raise BadFile(points, f"{len(classes)} different values in {len(y)} rows are no classes", column=truth)
        X = scaled(table.X, scaling(table)) if scale else table.X
        folder.mkdir(parents=True, exist_ok=True)
        name = points.stem
        runs = run(
            {name: (X, y.astype(str))},
            methods,
            n_links=n_links,
            seeds=range(trials),
            n_jobs=n_jobs or os.cpu_count() or 1,
            journal=folder / "runs.jsonl",
            progress=watched(),
        )
        with aside(folder / "compare.csv") as place:
            runs.to_csv(place, index=False)
        done = [m for m in METHODS if runs.loc[runs["method"] == m, "purity"].notna().any()]
        if any(number > 0 for number in n_links) and done:
            floors = {name: float(counts.max() / counts.sum())}
            save_picture(purity_against_links(runs, [name], "both", done, floors), folder / "compare.png")
    show_runs(runs, n_links, float(counts.max() / counts.sum()))
    click.echo(f"\n{folder / 'compare.csv'}: all runs\n{folder / 'compare.png'}: purity against links")


def show_runs(runs: "pd.DataFrame", n_links: list[int], floor: float) -> None:
    """Print mean purity by method and number of links."""
    means = runs.groupby(["method", "n_links"], sort=False)["purity"].mean()
    rows = []
    for method in runs["method"].unique():
        values = [means.get((method, n)) for n in n_links]
        rows.append([str(method), *("failed" if v is None or v != v else f"{v:.3f}" for v in values)])
    rows.sort(key=lambda row: row[-1].replace("failed", "0"), reverse=True)
    click.echo(f"Mean purity (share of the largest class: {floor:.3f})\n")
    print_table(["links", *map(str, n_links)], rows)
    failed = runs[runs["error"].notna()]
    for method in failed["method"].unique():
        part = failed[failed["method"] == method]
        click.echo(f"{method}: {len(part)} runs failed, the first one with: {part['error'].iloc[0]}")
