"""What commands print: progress for a person who watches, and tables."""

import sys
from collections.abc import Callable, Iterable
from typing import Any

import click


def say(message: str) -> None:
    """Tell a person at a terminal what is going on, but not a script."""
    if watched():
        click.echo(message, err=True)


def watched() -> bool:
    """Whether a person watches."""
    return sys.stderr.isatty()


def progress(what: str, unit: str) -> Callable[[Iterable[Any]], Iterable[Any]]:
    """A progress bar for a person at a terminal."""

    def shown(items: Iterable[Any]) -> Iterable[Any]:
        if not watched():
            return items
        from tqdm import tqdm

        return tqdm(list(items), desc=what, unit=unit)  # type: ignore[no-any-return]

    return shown


def print_table(names: list[str], rows: list[list[str]]) -> None:
    """Print a table, its first column aligned to the left and all others to the right."""
    widths = [max(len(row[i]) for row in [names, *rows]) for i in range(len(names))]
    for row in [names, *rows]:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        click.echo("  ".join(cells).rstrip())
