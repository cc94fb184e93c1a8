"""The command predict."""

from pathlib import Path
from typing import Any

import click

from linkmix.app.cli.failures import bad_input, extras_needed
from linkmix.app.cli.options import FILE, Reading, points_argument, raw_cells_option, reading_options
from linkmix.app.cli.terminal import say


@click.command()
@click.argument("model", type=FILE)
@points_argument
@reading_options("id_column", "missing", "sheet")
@click.option(
    "--out", "target", type=FILE, default=Path("predicted.csv"), show_default=True, help="File for the labels."
)
@click.option("--join", is_flag=True, help="Also write the table as it is, with the labels beside it.")
@raw_cells_option
def predict(model: Path, points: Path, reading: Reading, target: Path, join: bool, raw_cells: bool) -> None:
    """Label the rows of a table with a fitted model.

    MODEL is a file that linkmix fit wrote. POINTS needs the columns that the model was fitted to, with values of the
    same kinds; other columns are ignored. It may be a folder, or a pattern in quotes, whose files are one table. Each
    row is labelled by itself, without links. With --join a second file, whose name ends in -joined.csv, holds the table
    with the labels as its last columns.

    \b
    Examples:
      linkmix predict linkmix-out/model.linkmix new.csv
      linkmix predict cells/model.linkmix more.parquet --id cell --out more-labels.csv
      linkmix predict linkmix-out/model.linkmix 'parts/*.parquet'
      linkmix predict linkmix-out/model.linkmix new.csv.gz --join
    """  # noqa: D301
    with extras_needed(), bad_input():
        import numpy as np

        from linkmix.app.cli.points import refuse_gaps
        from linkmix.app.cli.saved_models import load, read_for
        from linkmix.app.report import noise_in_words
        from linkmix.basics.files import aside
        from linkmix.tables import write_joined, write_labels

        saved = load(model)
        table = read_for(saved, points, reading)
        refuse_gaps(points, table, saved, "this model")
        say(f"Labelling {len(table.X):,} points ...")
        probabilities = saved.probabilities(table.X)
        labels, noise = np.asarray(probabilities).argmax(axis=1), saved.noise(table.X)
        if noise is not None:
            labels[noise > 0.5] = -1
        was_there = target.exists()
        found: dict[str, Any] = {"noise": noise, "names": saved.names, "raw": raw_cells}
        written = [f"{target} (in place of an earlier file)" if was_there else f"{target}"]
        with aside(target) as place:  # it gets its place after the joined table, so both or none
            write_labels(place, table.ids, labels, probabilities, id_name=table.id_column or "id", **found)
            if join:
                joined = target.with_name(f"{target.stem}-joined.csv")
                read: dict[str, Any] = {"wanted": table.used, "sheet": reading.sheet, "stamps": table.stamps}
                write_joined(joined, points, labels, probabilities, **read, **found)
                written.append(f"{joined}")
    counts = np.bincount(labels[labels >= 0], minlength=probabilities.shape[1]).tolist()
    sizes = ", ".join(f"{saved.names[m] if saved.names else f'class {m}'}: {n:,}" for m, n in enumerate(counts))
    click.echo(f"{len(labels):,} points labelled ({sizes}).")
    if noise is not None:
        click.echo(noise_in_words(int((labels < 0).sum()), len(labels)))
    for name in written:
        click.echo(name)
