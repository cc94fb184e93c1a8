"""The command predict."""

from pathlib import Path

import click

from linkmix.app.cli.failures import bad_input, extras_needed
from linkmix.app.cli.options import FILE, id_option, points_argument
from linkmix.app.cli.terminal import say


@click.command()
@click.argument("model", type=FILE)
@points_argument
@id_option
@click.option(
    "--out", "target", type=FILE, default=Path("predicted.csv"), show_default=True, help="File for the labels."
)
def predict(model: Path, points: Path, id_column: str | None, target: Path) -> None:
    """Label the rows of a table with a fitted model.

    MODEL is a file that linkmix fit wrote. POINTS needs the columns that the model was fitted to; other columns are
    ignored. It may be a folder, or a pattern in quotes, whose files are one table. Each row is labelled by itself,
    without links.

    \b
    Examples:
      linkmix predict linkmix-out/model.linkmix new.csv
      linkmix predict cells/model.linkmix more.parquet --id cell --out more-labels.csv
      linkmix predict linkmix-out/model.linkmix 'parts/*.parquet'
    """  # noqa: D301
    with extras_needed(), bad_input():
        import numpy as np

        from linkmix.app.cli.points import refuse_gaps
        from linkmix.app.cli.saved_models import load, noise_of, probabilities_of, read_for
        from linkmix.app.report import noise_in_words
        from linkmix.tables import write_labels

        saved, notes = load(model)
        table = read_for(notes, points, id_column)
        refuse_gaps(points, table, saved, "this model")
        say(f"Labelling {len(table.X):,} points ...")
        probabilities = probabilities_of(saved, table.X, notes)
        labels, noise = np.asarray(probabilities).argmax(axis=1), noise_of(saved, table.X, notes)
        if noise is not None:
            labels[noise > 0.5] = -1
        write_labels(target, table.ids, labels, probabilities, noise=noise, id_name=table.id_column or "id")
    counts = np.bincount(labels[labels >= 0], minlength=probabilities.shape[1]).tolist()
    sizes = ", ".join(f"class {m}: {n:,}" for m, n in enumerate(counts))
    click.echo(f"{len(labels):,} points labelled ({sizes}).")
    if noise is not None:
        click.echo(noise_in_words(int((labels < 0).sum()), len(labels)))
    click.echo(target)
