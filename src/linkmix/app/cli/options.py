"""Options that several commands share."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from linkmix.links import Links
    from linkmix.tables import Points

FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)


class Names(click.ParamType):  # type: ignore[type-arg]
    """Names with commas between them; quotes around a name that holds a comma."""

    name = "A,B,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        """Split a text at its commas."""
        import csv

        if isinstance(value, list):
            return value
        names = [name.strip() for name in next(csv.reader([str(value)]), [])]
        if not all(names):
            self.fail(f"{value!r} holds an empty name: write names with commas between them", param, ctx)
        return names


class Numbers(click.ParamType):  # type: ignore[type-arg]
    """Whole numbers with commas between them."""

    name = "N,N,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        """Split a text at its commas."""
        if isinstance(value, list):
            return value
        try:
            numbers = [int(part) for part in str(value).split(",")]
        except ValueError:
            numbers = [-1]
        if min(numbers) < 0:
            self.fail(f"{value!r} is not whole numbers with commas between them, such as 0,10,50", param, ctx)
        return numbers


class Classes(click.ParamType):  # type: ignore[type-arg]
    """A number of classes, or auto."""

    name = "N|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """Read a number or the word auto."""
        if value == "auto" or isinstance(value, int):
            return value  # type: ignore[no-any-return]
        try:
            number = int(value)
        except ValueError:
            number = 0
        if number < 1:
            self.fail(f"{value!r} is neither a whole number of at least 1 nor 'auto'", param, ctx)
        return number


class MethodName(click.ParamType):  # type: ignore[type-arg]
    """A method of the registry."""

    name = "method"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check the name."""
        from linkmix.study.registry import METHODS

        if value not in METHODS:
            self.fail(f"{value!r} is not known: choose from {', '.join(METHODS)}", param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
        """Names of methods, for the shell."""
        from click.shell_completion import CompletionItem

        from linkmix.study.registry import METHODS

        return [CompletionItem(name, help=METHODS[name].what) for name in METHODS if name.startswith(incomplete)]


class ColumnName(click.ParamType):  # type: ignore[type-arg]
    """A column of the table of points."""

    name = "column"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
        """Columns of the file that is on the line already, for the shell."""
        from click.shell_completion import CompletionItem

        from linkmix.tables import column_names

        for word in [ctx.params.get("points", ""), *ctx.args]:  # a line that is not complete may be read in part only
            try:
                return [CompletionItem(name) for name in column_names(word) if name.startswith(incomplete)]
            except (ValueError, OSError, TypeError):
                continue
        return []


points_argument = click.argument("points", type=FILE)
id_option = click.option(
    "--id",
    "id_column",
    type=ColumnName(),
    help="Column with the ids. By default the column called id; without one, rows are numbered from 0.",
)
columns_option = click.option(
    "--columns", type=Names(), help="Columns to cluster by, with commas between them. By default all that hold numbers."
)
wrong_option = click.option(
    "--wrong",
    type=click.FloatRange(0, 0.5, max_open=True),
    default=0.0,
    show_default=True,
    help="Share of answers that may be wrong; doubtful pairs are then asked about again.",
)
seed_option = click.option(
    "--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, help="Seed of all random choices."
)


def read(
    points: Path, id_column: str | None, columns: list[str] | None, links: Path | None, **options: Any
) -> "tuple[Points, Links]":
    """Read points and links."""
    from linkmix.links import Links
    from linkmix.tables import read_links, read_points

    say(f"Reading {points} ...")
    table = read_points(points, id=id_column, columns=columns, texts=False, progress=watched(), **options)
    return table, Links() if links is None else read_links(links, table.ids)


def say(message: str) -> None:
    """Tell a person at a terminal what is going on; a script does not want to know."""
    if watched():
        click.echo(message, err=True)


def watched() -> bool:
    """Whether a person sees the progress."""
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
    """Print a table; the first column goes to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in [names, *rows]) for i in range(len(names))]
    for row in [names, *rows]:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        click.echo("  ".join(cells).rstrip())
