"""The command line. The only room that prints; each command has a module of its own."""

import os
import sys
from difflib import get_close_matches
from importlib import import_module
from typing import Any

try:
    import click
except ModuleNotFoundError:
    sys.exit('The linkmix command needs click: pip install "linkmix[app]"')

from linkmix.app.cli.failures import NoMemory, lacks_memory

COMMANDS = (
    *("ask", "check-links", "choose", "compare", "data", "demo"),
    *("explain", "fit", "label", "predict", "reproduce"),
)
"""Each command is a function in a module of its own, both with its name."""


class Commands(click.Group):
    """Commands whose modules are imported when they are needed.

    The modules themselves import nothing but click until the command runs, so that --help is quick.
    """

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run a command; if what it says cannot be written, such as to a full disk, say so and exit with 1."""
        if not options.get("standalone_mode", True):
            return super().main(*arguments, **options)
        try:
            try:
                super().main(*arguments, **options)
            finally:
                sys.stdout.flush()
        except (MemoryError, ImportError) as error:
            if not lacks_memory(error):
                raise
            NoMemory.by(error).show()
            sys.exit(NoMemory.exit_code)
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes it once more at the end
            remedy = "send its output elsewhere; files that it has written are complete"
            click.echo(f"Error: what this command says cannot be written ({error.strerror}): {remedy}", err=True)
            sys.exit(1)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name."""
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(import_module(f"{__name__}.{name}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command to run; for one that does not exist, the error names the command that may be meant."""
        if args[0] not in COMMANDS and (alike := get_close_matches(args[0], COMMANDS, 1)):
            ctx.fail(f"No such command {args[0]!r}. Did you mean {alike[0]!r}?")
        return super().resolve_command(ctx, args)


def print_version(context: click.Context, option: click.Parameter, wanted: bool) -> None:
    """Print the version and stop."""
    if not wanted or context.resilient_parsing:
        return
    from linkmix import __version__

    click.echo(f"linkmix {__version__}")
    context.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=print_version, help="Show the version."
)
def main() -> None:
    """Cluster points with must-links and cannot-links.

    Say which points belong together and which do not: linkmix fits a mixture model in which those links are part of
    the likelihood.

    \b
    Examples:
      linkmix demo                 what 20 links change on real data
      linkmix fit points.csv --links links.csv --classes 3
                                   labels, a model and a report from your own table
      linkmix label points.csv --classes 3
                                   a page that asks which points belong together
      linkmix reproduce toy        an experiment of the paper
      linkmix fit --help           the options of one command
    """  # noqa: D301  (click wants the backspace itself)
