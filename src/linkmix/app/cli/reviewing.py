"""The commands check-links and explain."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkmix.app.cli.failures import bad_input, conflict_by_ids, extras_needed
from linkmix.app.cli.options import FILE, id_option, points_argument, watched

if TYPE_CHECKING:
    from linkmix.links import Links
    from linkmix.tables import Examination, Points

SHOWN = 20


@click.command("check-links")
@points_argument
@click.argument("links", type=FILE)
@id_option
def check_links(points: Path, links: Path, id_column: str | None) -> None:
    """Look for mistakes in a file of links, and say what follows from them.

    Lists unknown ids, repetitions and contradictions, each contradiction with the shortest chain of must-links; counts
    the links that follow from the given ones; and says how many classes they need. Exits with 2 if linkmix fit could
    not use the links.

    \b
    Examples:
      linkmix check-links points.csv links.csv
      linkmix check-links cells.parquet links.jsonl --id cell
    """  # noqa: D301
    with extras_needed(), bad_input():
        from linkmix.tables import examine_links, read_points

        table = read_points(points, id=id_column, texts=False, progress=watched())
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
        click.echo("Whether some number of classes meets all of them was not found out.")
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


@click.command()
@click.argument("model", type=FILE)
@points_argument
@click.argument("a")
@click.argument("b")
@click.option("--links", type=FILE, help="The links, to see which of them force the two together or apart.")
@id_option
def explain(model: Path, points: Path, a: str, b: str, links: Path | None, id_column: str | None) -> None:
    """Say why two points are in one class, or are not.

    A and B are ids of points. Says how probable it is that both are of one class, which columns speak for and against
    it, and which links force it.

    \b
    Examples:
      linkmix explain linkmix-out/model.linkmix points.csv anna bob
      linkmix explain linkmix-out/model.linkmix points.csv 007 1e5 --links links.csv
    """  # noqa: D301
    with extras_needed(), bad_input():
        from linkmix.app.cli.fitting import load, refuse_gaps, scaled
        from linkmix.links.forcing import forcing_links
        from linkmix.search.explanation import explain as think
        from linkmix.tables import Points, column_names, read_links, read_points

        saved, notes = load(model)
        if id_column is None and notes.get("id") in column_names(points):
            id_column = notes["id"]
        table = read_points(points, id=id_column, columns=notes["columns"], texts=False, progress=watched())
        rows = [find(points, table, value) for value in (a, b)]
        if rows[0] == rows[1]:
            raise ValueError(f"{a!r} and {b!r} are one point: give two")
        two = Points(table.ids[rows], table.columns, table.X[rows])
        refuse_gaps(points, two, saved, "this model")
        pair = think(saved, scaled(two.X, notes))
        statements = None if links is None else read_links(links, table.ids)
        forced = None if statements is None else forcing_links(statements, *rows)
    for name, p in zip((a, b), pair.probabilities, strict=True):
        order = (-p).argsort()[:3]
        click.echo(f"{name}: " + ", ".join(f"class {m} with probability {p[m]:.3f}" for m in order if p[m] > 5e-4))
    click.echo(f"\nOf one class with probability {pair.together:.3f}, from the points alone.")
    if pair.drives is not None:
        show_drives(pair.drives.tolist(), two)
    if statements is not None:
        show_forced(forced, table, statements, rows)


def find(points: Path, table: "Points", value: str) -> int:
    """Row of a point."""
    from linkmix.basics.errors import BadFile
    from linkmix.tables.ids import rows_of

    row = rows_of(table.ids, {value}).get(value)
    if row is None:
        where = "row numbers" if table.id_column is None else f"the ids in column {table.id_column!r}"
        raise BadFile(points, f"{value!r} is not among {where} (such as {str(table.ids[0])!r}): check the id, or --id")
    return row


def show_drives(drives: list[float], two: "Points") -> None:
    """Print which columns speak for one class, and which against it."""
    click.echo("\nWhat each column adds to the log-odds of one class, and the two values:")
    width = min(max(map(len, two.columns)), 40)
    for j in sorted(range(len(drives)), key=lambda j: -abs(drives[j]))[:SHOWN]:
        effect = "for" if drives[j] > 0.05 else "against" if drives[j] < -0.05 else "neither"
        values = f"{two.X[0, j]:g} and {two.X[1, j]:g}"
        click.echo(f"  {two.columns[j][:40]:{width}}  {drives[j]:+8.2f}  {effect:8} {values}")
    if len(drives) > SHOWN:
        click.echo(f"  and {len(drives) - SHOWN} columns with less effect")


def show_forced(
    forced: tuple[bool, list[tuple[int, int, bool]]] | None, table: "Points", links: "Links", rows: list[int]
) -> None:
    """Print the links that decide."""
    if forced is None:
        n_linked = sum(row in links.points for row in rows)
        both = (
            "both are in links, but"
            if n_linked == 2
            else "one of them is in links, but"
            if n_linked
            else "neither is in a link, so"
        )
        click.echo(f"\n{both[0].upper()}{both[1:]} no links force them together or apart.")
        return
    together, way = forced
    click.echo(f"\nLinks force them {'together' if together else 'apart'}:")
    for one, other, is_must in way:
        kind = "must link" if is_must else "cannot link"
        click.echo(f"  {table.ids[one]} and {table.ids[other]} {kind}")
