"""The command choose."""

import shlex
from pathlib import Path

import click

from linkmix.app.cli.failures import bad_input, extras_needed, named_by_ids
from linkmix.app.cli.options import (
    FILE,
    Classes,
    Reading,
    points_argument,
    reading_options,
    seed_option,
)
from linkmix.app.cli.terminal import print_table, progress, say, watched


@click.command()
@points_argument
@click.option("--links", type=FILE, help="File with links, as for linkmix fit.")
@click.option("--classes", type=Classes(), default="auto", show_default=True, help="Number of classes, if you know it.")
@reading_options()
@seed_option
def choose(
    points: Path,
    links: Path | None,
    classes: int | str,
    reading: Reading,
    seed: int,
) -> None:
    """Choose the number of classes and the shape of the mixture.

    The number of classes, from 2 to 50, is the one that explains links and points best. Shapes (clusters
    per class and covariance type) are then ranked by how many links their labels break, and ties by BIC.

    \b
    Examples:
      linkmix choose points.csv --links links.csv
      linkmix choose points.csv --links links.csv --classes 3 --columns height,weight
    """  # noqa: D301
    with extras_needed(), bad_input():
        from linkmix.app.cli.notes import cautions, tell
        from linkmix.app.cli.points import only_numbers, read, standardised
        from linkmix.search import AutoLinkMixture
        from linkmix.search.choice import compare_shapes

        table, known = read(points, reading, links)
        losses: list[str] = []
        plain = only_numbers(table, "--method linkmix", losses)
        tell(cautions(table, chosen=reading.columns is not None) + losses)
        choice = None
        with named_by_ids(links, table):
            if classes == "auto":
                say("Comparing 2 to 50 classes ...")
                model = AutoLinkMixture("auto", verbose=watched(), random_state=seed)
                model.fit(table.coded, links=known)
                choice, n_classes = model.choice_, model.n_classes_
            else:
                n_classes = int(classes)
            X = standardised(plain)
            shapes = compare_shapes(X, known, n_classes, random_state=seed, progress=progress("shapes", "fit"))
        if not len(shapes):
            raise ValueError(f"{points}: no shape can be fitted to {len(X)} rows: give more rows, or fewer classes")
    if choice is not None:
        rows = [
            [
                f"{row['n_classes']}",
                f"{row['links_broken']:g}",
                f"{row['log_probability_of_links']:.2f}",
                f"{row['bic']:,.0f}",
                f"{row['score'] - choice['score'].max():.1f}",
                "chosen" if row["n_classes"] == n_classes else "",
            ]
            for row in choice
        ]
        print_table(
            ["classes", "links missed by the points alone", "log-probability of links", "BIC", "score", ""], rows
        )
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
    print_table(["clusters per class", "covariance", "links missed by the points alone", "BIC", ""], rows)
    given = "" if links is None else f" --links {links}"
    given += f" {shlex.join(reading.as_typed)}" if reading.as_typed else ""
    chosen = f"--clusters-per-class {best['clusters_per_class']} --covariance {best['covariance_type']}"
    click.echo(f"\nlinkmix fit {points}{given} --classes {n_classes} --method linkmix {chosen} --scale")
