"""The command explain."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkmix.app.cli.failures import bad_input, extras_needed
from linkmix.app.cli.options import FILE, Reading, points_argument, reading_options

if TYPE_CHECKING:
    from linkmix.links import Links
    from linkmix.tables import Points

SHOWN = 20
"""Columns that are shown."""
BEFORE = "with no column"
"""Names the log-odds of two points of which nothing is known."""


@click.command()
@click.argument("model", type=FILE)
@points_argument
@click.argument("a")
@click.argument("b")
@click.option("--links", type=FILE, help="File with links, to see which of them force the two together or apart.")
@reading_options("id_column", "missing", "sheet")
def explain(model: Path, points: Path, a: str, b: str, links: Path | None, reading: Reading) -> None:
    """Explain why two points are together, or apart.

    MODEL is a file that linkmix fit wrote, A and B are the ids of two points. Prints how probable it is that both are
    in the same class, what each column adds to that, and which links force it.

    \b
    Examples:
      linkmix explain linkmix-out/model.linkmix points.csv anna bob
      linkmix explain linkmix-out/model.linkmix points.csv 007 1e5 --links links.csv
    """  # noqa: D301
    with extras_needed(), bad_input():
        from linkmix.app.cli.points import refuse_gaps
        from linkmix.app.cli.saved_models import load, read_for
        from linkmix.links.forcing import forcing_links
        from linkmix.mixture.calibration import is_calibrated
        from linkmix.search.explanation import explain as explain_pair
        from linkmix.tables import read_links

        saved = load(model)
        table = read_for(saved, points, reading, texts=True)
        rows = [find(points, table, value) for value in (a, b)]
        if rows[0] == rows[1]:
            raise ValueError(f"{a!r} and {b!r} are one point: give two different ones")
        two = replace(table, ids=table.ids[rows], X=table.X[rows], described=None)
        two = replace(two, texts={name: values[rows] for name, values in table.texts.items()})
        refuse_gaps(points, two, saved, "this model")
        pair = explain_pair(saved, two.X)
        known = None if links is None else read_links(links, table.ids)
        forced = None if known is None else forcing_links(known, *rows)
    for name, p in zip((a, b), pair.probabilities, strict=True):
        order = (-p).argsort()[:3]
        click.echo(f"{name}: " + ", ".join(f"class {m} with probability {p[m]:.3f}" for m in order if p[m] > 5e-4))
    kind = "calibrated probability" if is_calibrated(saved.estimator) else "probability"
    click.echo(f"\nIn the same class with {kind} {pair.together:.3f}, judged by the points alone.")
    if pair.drives is not None and pair.prior is not None:
        show_drives(pair.prior, pair.drives.tolist(), pair.together, two)
    if known is not None:
        show_forced(forced, table, known, rows)


def find(points: Path, table: "Points", value: str) -> int:
    """Row of a point."""
    from linkmix.basics.errors import BadFile
    from linkmix.tables.ids import rows_of

    row = rows_of(table.ids, {value}).get(value)
    if row is None:
        where = "row numbers" if table.id_column is None else f"the ids in column {table.id_column!r}"
        raise BadFile(
            points, f"{value!r} is not among {where} (such as {str(table.ids[0])!r}): correct the id, or --id"
        )
    return row


def show_drives(prior: float, drives: list[float], together: float, two: "Points") -> None:
    """Print what each column adds to the log-odds of the same class, down to their sum."""
    click.echo("\nWhat each column adds to the log-odds of the same class, and the two values:")
    added: dict[str, float] = {}
    values: dict[str, str] = {}
    for j, owner in enumerate(two.owners):
        added[owner] = added.get(owner, 0.0) + drives[j]
        texts = two.texts.get(owner)
        shown = [two.written(row, j) if texts is None else str(texts[row]) for row in (0, 1)]
        values[owner] = " and ".join(value or "missing" for value in shown)
    width = max(min(max(map(len, added)), 40), len(BEFORE))
    click.echo(f"  {BEFORE:{width}}  {prior:+8.2f}")
    order = sorted(added, key=lambda name: -abs(added[name]))
    for name in order[:SHOWN]:
        effect = "for" if added[name] > 0.05 else "against" if added[name] < -0.05 else "neither"
        click.echo(f"  {name[:40]:{width}}  {added[name]:+8.2f}  {effect:8} {values[name]}")
    if order[SHOWN:]:
        rest = f"{len(order) - SHOWN} more columns"
        click.echo(f"  {rest:{width}}  {sum(added[name] for name in order[SHOWN:]):+8.2f}")
    click.echo(f"  {'sum':{width}}  {prior + sum(drives):+8.2f}  the log-odds of probability {together:.3f}")


def show_forced(
    forced: tuple[bool, list[tuple[int, int, bool]]] | None, table: "Points", links: "Links", rows: list[int]
) -> None:
    """Print the links that decide."""
    if forced is None:
        n_linked = sum(row in links.points for row in rows)
        linked = ["Neither is in a link, so", "One of them is in links, but", "Both are in links, but"][n_linked]
        click.echo(f"\n{linked} no links force them together or apart.")
        return
    together, way = forced
    click.echo(f"\nLinks force them {'together' if together else 'apart'}:")
    for one, other, is_must in way:
        kind = "must link" if is_must else "cannot link"
        click.echo(f"  {table.ids[one]} and {table.ids[other]} {kind}")
