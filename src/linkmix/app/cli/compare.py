"""The command compare."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkmix.app.cli.failures import bad_input, extras_needed
from linkmix.app.cli.options import (
    ColumnName,
    Names,
    Numbers,
    Reading,
    jobs_option,
    out_option,
    points_argument,
    reading_options,
)
from linkmix.app.cli.terminal import print_table, watched

if TYPE_CHECKING:
    import pandas as pd


@click.command()
@points_argument
@click.option("--truth", type=ColumnName(), required=True, help="Column with the true class of each row.")
@reading_options()
@click.option("--methods", type=Names(), help="Methods, separated by commas. Default: all.")
@click.option(
    "--n-links",
    type=Numbers(),
    default="0,10,25,50,100",
    show_default=True,
    help="Numbers of links to try, separated by commas.",
)
@click.option(
    "--trials",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Runs for each number of links.",
)
@jobs_option
@click.option("--scale", is_flag=True, help="Standardise the columns: mean 0, variance 1.")
@out_option("compare", "the table and the picture")
def compare(
    points: Path,
    truth: str,
    reading: Reading,
    methods: list[str] | None,
    n_links: list[int],
    trials: int,
    n_jobs: int | None,
    scale: bool,
    folder: Path,
) -> None:
    """Compare methods on a table whose classes are known.

    Draws random links from the true classes, runs each method with them, and scores its labels by their purity. Writes
    runs.jsonl, where each run is saved as soon as it ends, so that a stopped command continues where it was;
    compare.csv with all runs; and compare.png.

    \b
    Examples:
      linkmix compare iris.csv --truth species
      linkmix compare iris.csv --truth species --methods auto,paper,gmm --n-links 10,20,50 --trials 5
    """  # noqa: D301
    with extras_needed(), bad_input():
        import numpy as np

        from linkmix.app.cli.notes import cautions, tell
        from linkmix.app.cli.points import only_numbers, read, standardised
        from linkmix.basics.errors import BadFile
        from linkmix.basics.files import aside
        from linkmix.plots import save_picture
        from linkmix.study.comparison import compare as run
        from linkmix.study.paper.figures import purity_against_links
        from linkmix.study.registry import METHODS
        from linkmix.tables.cells import guarded
        from linkmix.tables.files import stem_of

        table, _ = read(points, reading, None, text_columns=[truth])
        losses: list[str] = []
        table = only_numbers(table, "compare", losses)
        tell(cautions(table, chosen=reading.columns is not None) + losses)
        y = table.texts[truth]
        if "" in set(y):
            row = int(np.flatnonzero(y == "")[0])
            raise BadFile(points, f"id {table.ids[row]!r} has no class: fill it, or remove the row", column=truth)
        classes, counts = np.unique(y.astype(str), return_counts=True)
        if len(classes) < 2 or len(classes) > len(y) // 2:
            raise BadFile(
                points,
                f"{len(classes)} different values in {len(y)} rows are not classes: choose another column with --truth",
                column=truth,
            )
        X = standardised(table) if scale else table.X
        folder.mkdir(parents=True, exist_ok=True)
        name = stem_of(points)
        runs = run(
            {name: (X, y.astype(str))},
            methods,
            n_links=n_links,
            seeds=range(trials),
            n_jobs=n_jobs or os.cpu_count() or 1,
            journal=folder / "runs.jsonl",
            progress=watched(),
        )
        with aside(folder / "compare.csv") as place:  # which gets its place after the picture, so both or none
            runs.assign(data=guarded(name)).to_csv(place, index=False)
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
