"""The command check-links."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkmix.app.cli.failures import bad_input, conflict_by_ids, extras_needed
from linkmix.app.cli.options import FILE, Reading, points_argument, reading_options

if TYPE_CHECKING:
    from linkmix.tables import Examination, Points

SHOWN = 20
"""Lines of each list that are shown."""


@click.command("check-links")
@points_argument
@click.argument("links", type=FILE)
@reading_options("id_column", "sheet")
def check_links(points: Path, links: Path, reading: Reading) -> None:
    """Find mistakes in a file of links.

    Lists unknown ids, repetitions and contradictions, each contradiction with the shortest chain of must-links; counts
    the links that follow from the given ones; and says how many classes they need. Exits with 2 if linkmix fit could
    not use the links.

    \b
    Examples:
      linkmix check-links points.csv links.csv
      linkmix check-links cells.parquet links.jsonl --id cell
    """  # noqa: D301
    with extras_needed(), bad_input():
        from linkmix.app.cli.notes import tell
        from linkmix.tables import examine_links, read_id_column

        table = read_id_column(points, reading.id_column, sheet=reading.sheet)
        tell(table.remarks)
        found = examine_links(links, table.ids)
    show(found, table)
    if not found.sound:
        raise click.exceptions.Exit(2)


def show(found: "Examination", table: "Points") -> None:
    """Print what was found."""
    links = found.links
    ends = links.points
    click.echo(
        f"{found.n_lines} links: {links.n_must} must-links and {links.n_cannot} cannot-links between "
        f"{len(ends)} of {len(table.ids):,} points can be used."
    )
    listing(
        "Unknown ids, and points linked to themselves",
        [f"line {error.line}" + (f", {error.column}" if error.column else "") + f": {error.problem}"
         for error in found.unknown],
    )  # fmt: skip
    repeated = [
        f"line {again.line}: {again.a!r} and {again.b!r}, as on line {first.line}" for again, first in found.repeated
    ]
    listing("Repeated links, which change nothing", repeated)
    listing("Contradictions", [conflict_by_ids(conflict.chain, table.ids) for conflict in found.conflicts])
    if found.closure is None:
        click.echo("Nothing follows from links that contradict each other.")
        return
    must, cannot = found.closure
    click.echo(
        f"From the certain ones follow {must} must-links and {cannot} cannot-links in all; must-links hold "
        f"{found.n_groups} groups of points together."
    )
    if found.fewest_classes is None:
        click.echo("The search for a number of classes that meets all of them ended without a result.")
    elif found.fewest_classes == 1:
        click.echo("Any number of classes can meet them.")
    else:
        click.echo(f"They can be met with {found.fewest_classes} classes or more.")


def listing(what: str, lines: list[str]) -> None:
    """Print a count and the first few lines."""
    click.echo(f"{what}: {len(lines) or 'none'}")
    for line in lines[:SHOWN]:
        click.echo(f"  {line}")
    if len(lines) > SHOWN:
        click.echo(f"  and {len(lines) - SHOWN} more")
