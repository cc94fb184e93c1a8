"""What a user should know about a table before believing the result."""

import shlex
from typing import TYPE_CHECKING

import click

from linkmix.app.cli.options import as_option

if TYPE_CHECKING:
    from collections.abc import Iterable

    from linkmix.tables import Points

MOST_PAIRS = 5
"""Repeated columns that are named."""


def about(table: "Points", *, chosen: bool) -> list[str]:
    """Files and what was assumed about them, suspicious columns and missing values.

    Parameters
    ----------
    table : Points
        The table as it was read.
    chosen : bool
        Whether ``--columns`` named its columns.

    Returns
    -------
    list of str
        Sentences without a full stop.
    """
    notes = []
    if table.files:
        first, last = table.files[0].name, table.files[-1].name
        notes.append(f"{len(table.files):,} files are one table, in the order of their names: from {first} to {last}")
    notes += cautions(table, chosen=chosen)
    if table.n_missing:
        notes.append(f"{missing_in_words(table.n_missing)}; each class fills in what it expects")
    return notes


def missing_in_words(n: int) -> str:
    """How many values are missing."""
    return "1 value is missing" if n == 1 else f"{n:,} values are missing"


def cautions(table: "Points", *, chosen: bool) -> list[str]:
    """What was assumed about files, and columns that are used and probably should not be, each with the remedy."""
    from linkmix.tables import suspect

    found = suspect(table)
    notes = list(table.remarks)
    notes += [
        f"column {name!r} numbers the rows, and classes are made by it like by any other: {_remedy([name], chosen)}"
        for name in found.running
    ]
    notes += [
        f"column {name!r} may be the answer, by its name, and classes are made by it: {_remedy([name], chosen)}"
        for name in found.answers
    ]
    if found.repeated:
        same = ", ".join(f"{name!r} as {first!r}" for name, first in found.repeated[:MOST_PAIRS])
        more = len(found.repeated) - MOST_PAIRS
        said = f"{same} and {more:,} more" if more > 0 else same
        copies = [name for name, _ in found.repeated]
        notes.append(f"the same values in every row, which count twice: {said}: {_remedy(copies, chosen)}")
    return notes


def tell(notes: "Iterable[str]") -> None:
    """Print notes beside the result of a command."""
    for note in notes:
        click.echo(f"Note: {note}.", err=True)


def _remedy(names: list[str], chosen: bool) -> str:
    """How to do without some columns; ready to be copied if they are few."""
    if chosen:
        return f"take {'it' if len(names) == 1 else 'them'} out of --columns if that is wrong"
    if len(names) > MOST_PAIRS:
        return "leave them out with --leave-out if that is wrong"
    return f"if that is wrong, add --leave-out {shlex.quote(as_option(names))}"
