"""Options that several commands share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from linkmix.app.cli.imports import imports_that_stay

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)


class Names(click.ParamType):  # type: ignore[type-arg]
    """Names separated by commas; quotes around a name that holds a comma."""

    name = "A,B,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        """Split a text at its commas."""
        import csv

        if isinstance(value, list):
            return value
        names = [name.strip() for name in next(csv.reader([str(value)]), [])]
        if not all(names):
            self.fail(f"{value!r} holds an empty name: separate names by single commas", param, ctx)
        return names


class KindOf(click.ParamType):  # type: ignore[type-arg]
    """A column and what it is taken for: COLUMN=KIND."""

    name = "COLUMN=KIND"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Split a text at its first sign of equality."""
        with imports_that_stay():
            from linkmix.columns import KINDS
            from linkmix.columns.wishes import read_wishes

        if isinstance(value, tuple):
            return value[0], value[1]
        column, _, kind = (part.strip() for part in str(value).partition("="))
        if not column or not kind:
            self.fail(f"{value!r} is not COLUMN=KIND, with one of the kinds {', '.join(KINDS)}", param, ctx)
        try:
            read_wishes({column: kind}, [column])
        except ValueError as error:
            self.fail(str(error).replace(f"kinds[{column!r}] is", f"{column!r} is to be"), param, ctx)
        return column, kind


class Numbers(click.ParamType):  # type: ignore[type-arg]
    """Whole numbers separated by commas."""

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
            self.fail(f"{value!r} is not a list of whole numbers separated by commas, such as 0,10,50", param, ctx)
        return numbers


class Counts(click.ParamType):  # type: ignore[type-arg]
    """A whole number of at least 1, or several separated by commas."""

    name = "N|N,N,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | list[int]:
        """Read one number, or split a text at its commas."""
        if isinstance(value, int | list):
            return value
        try:
            numbers = [int(part) for part in str(value).split(",")]
        except ValueError:
            numbers = [0]
        if min(numbers) < 1:
            self.fail(f"{value!r} is neither a whole number of at least 1 nor a list such as 1,2,1", param, ctx)
        return numbers if len(numbers) > 1 else numbers[0]


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
        with imports_that_stay():
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
        """Columns of the file that was typed already, for the shell."""
        from click.shell_completion import CompletionItem

        from linkmix.tables import column_names

        for word in [ctx.params.get("points", ""), *ctx.args]:  # click may have parsed only part of an incomplete line
            try:
                return [CompletionItem(name) for name in column_names(word) if name.startswith(incomplete)]
            except (ValueError, OSError, TypeError):
                continue
        return []


points_argument = click.argument("points", type=click.Path(path_type=Path))  # a file, a folder or a pattern
_READING = {
    "id_column": click.option(
        "--id",
        "id_column",
        type=ColumnName(),
        help="Column with the ids. Default: the column named id, or row numbers from 0 if there is none.",
    ),
    "columns": click.option(
        "--columns", type=Names(), help="Columns to cluster by, separated by commas. Default: all that can be used."
    ),
    "leave_out": click.option(
        "--leave-out", type=Names(), default=[], help="Columns not to cluster by, separated by commas."
    ),
    "kinds": click.option(
        "--as",
        "kinds",
        type=KindOf(),
        multiple=True,
        help="What a column is taken for, such as zip=category, size=ordered:S<M<L or note=ignore; can be repeated. "
        "Default: its values decide.",
    ),
    "missing": click.option(
        "--na",
        "missing",
        type=Names(),
        default=[],
        help="Values that stand for a missing one, separated by commas, besides NA, N/A, NaN, null and None: '?,n/d'.",
    ),
    "sheet": click.option("--sheet", help="Sheet of a spreadsheet (.xlsx).  [default: the first one]"),
}
"""Options that say how a table is read."""


@dataclass(frozen=True)
class Reading:
    """How a table is read, as options say.

    Attributes
    ----------
    id_column, columns, leave_out, kinds, missing, sheet
        See ``--help``.
    """

    id_column: str | None = None
    columns: list[str] | None = None
    leave_out: tuple[str, ...] = ()
    kinds: tuple[tuple[str, str], ...] = ()
    missing: tuple[str, ...] = ()
    sheet: str | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of `linkmix.tables.read_points`."""
        return {
            "id": self.id_column,
            "columns": self.columns,
            "leave_out": self.leave_out,
            "kinds": dict(self.kinds),
            "missing": self.missing,
            "sheet": self.sheet,
        }

    @property
    def as_typed(self) -> list[str]:
        """The options that say which columns are used and what they are, for another command."""
        lists = (("--columns", self.columns), ("--leave-out", self.leave_out), ("--na", self.missing))
        typed = [word for flag, names in lists if names for word in (flag, as_option(names))]
        typed += [word for column, kind in self.kinds for word in ("--as", f"{column}={kind}")]
        return [*typed, *(() if self.sheet is None else ("--sheet", self.sheet))]

    @property
    def as_typed_with_id(self) -> tuple[str, ...]:
        """The same, with the option that says which column holds the ids."""
        return (*(() if self.id_column is None else ("--id", self.id_column)), *self.as_typed)


def reading_options(*names: str) -> Callable[[Any], Any]:
    """Options that say how a table is read, all or some of them; the command gets them as ``reading``."""
    chosen = names or tuple(_READING)

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_reading(**given: Any) -> Any:
            values = {name: given.pop(name) for name in chosen}
            values |= {name: tuple(values[name]) for name in ("leave_out", "kinds", "missing") if name in values}
            return command(reading=Reading(**values), **given)

        found: Callable[..., Any] = with_reading
        for name in reversed(chosen):
            found = _READING[name](found)
        return found

    return decorate


def as_option(names: Sequence[str]) -> str:
    """Names as ``--columns`` and ``--leave-out`` take them: in quotes where they hold commas.

    Examples
    --------
    >>> as_option(["age", "a, b"])
    'age,"a, b"'
    """
    import csv
    import io

    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()


wrong_option = click.option(
    "--wrong",
    type=click.FloatRange(0, 0.5, max_open=True),
    default=0.0,
    show_default=True,
    help="Expected share of wrong answers; if above 0, doubtful pairs are asked about again.",
)
seed_option = click.option(
    "--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, help="Random seed."
)
raw_cells_option = click.option(
    "--raw-cells",
    is_flag=True,
    help="Write texts such as =1+1 as they are. By default an apostrophe before them keeps spreadsheets from running "
    "them; linkmix reads both as the same.",
)
jobs_option = click.option(
    "--jobs", "n_jobs", type=click.IntRange(1), help="Number of processes. Default: one per processor."
)


def out_option(folder: str, what: str) -> Callable[[Any], Any]:
    """The option for the folder that a command writes to."""
    return click.option(
        "--out",
        "folder",
        type=FOLDER,
        default=Path(folder),
        show_default=True,
        help=f"Folder for {what}; created if it does not exist.",
    )
