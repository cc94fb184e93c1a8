"""The command ask."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from linkmix.app.cli.failures import BadInput, bad_input, extras_needed
from linkmix.app.cli.options import FILE, Reading, points_argument, reading_options, seed_option, wrong_option
from linkmix.app.cli.terminal import say

if TYPE_CHECKING:
    from linkmix.queries import Questioner
    from linkmix.tables import Points

WIDEST = 28
KEYS = {"s": "same", "d": "different", "u": "unsure"}
FIRST = "do these two belong together?"
ONCE_MORE = "once more, do these two belong together? The answer was a surprise."
QUESTION = "[s]ame, [d]ifferent, [u]nsure, undo with [z], [q]uit"


@click.command()
@click.argument("model", type=FILE)
@points_argument
@click.option(
    "--links",
    "links_path",
    type=FILE,
    default=Path("links.csv"),
    show_default=True,
    help="File of links: what is in it is known, and answers are added to it.",
)
@reading_options("id_column", "missing", "sheet")
@click.option("--strategy", default="cover", show_default=True, help="How pairs are chosen; see docs/questions.md.")
@wrong_option
@click.option(
    "--audit",
    type=click.IntRange(1, 1000),
    help="Ask this many questions about random pairs instead, such as 20, and say how good the model is.",
)
@seed_option
def ask(
    model: Path,
    points: Path,
    links_path: Path,
    reading: Reading,
    strategy: str,
    wrong: float,
    audit: int | None,
    seed: int,
) -> None:
    """Ask which points belong together, the most useful pair first.

    MODEL is a model that linkmix fit wrote: it says which columns of POINTS count and how many classes there are. Two
    rows are shown side by side. Each answer is saved in the file of links before the next question.

    \b
    Examples:
      linkmix ask linkmix-out/model.linkmix points.csv
      linkmix ask linkmix-out/model.linkmix points.csv --links links.csv --wrong 0.1
      linkmix ask linkmix-out/model.linkmix points.csv --links links.csv --audit 20
    """  # noqa: D301
    with extras_needed(), bad_input():
        from linkmix.app.cli.points import refuse_gaps
        from linkmix.app.cli.saved_models import load, read_for
        from linkmix.links import Links
        from linkmix.queries import STRATEGIES, Questioner
        from linkmix.tables import read_links

        if strategy not in STRATEGIES:
            raise BadInput(f"--strategy {strategy} is not known: choose from {', '.join(STRATEGIES)}")
        saved = load(model)
        table = read_for(saved, points, reading, texts=True)
        refuse_gaps(points, table, saved, "this model")
        before = read_links(links_path, table.ids) if links_path.exists() else Links()
        labels = saved.probabilities(table.X).argmax(axis=1)
        say("Looking for the first question ...")
        asker = Questioner(
            table.coded,
            saved.n_classes,
            strategy=strategy,
            links=Links(before.must, before.cannot),
            labels=labels,
            wrong=wrong,
            random_state=seed,
        )
        if audit is not None:
            asker.audit(audit, labels)
        n_answers = converse(asker, table, before, links_path, audit is not None)
    if audit is None:
        click.echo(f"\n{n_answers} answers added to {links_path}; {asker.stop_meaning}.")
    else:
        unfinished = "Too few answers to say how good the model is: all questions have to be answered at once."
        click.echo(f"\n{unfinished if asker.quality is None else asker.quality}")
        click.echo(f"{n_answers} answers added to {links_path}.")
    click.echo(f"Next: linkmix fit {points} --links {links_path} --classes {asker.model.n_classes}")


def converse(asker: "Questioner", table: "Points", before: Any, links_path: Path, is_audit: bool = False) -> int:
    """Ask until the user stops or nothing is left to ask; return the number of links that came of it."""
    from linkmix.queries import Background
    from linkmix.tables import write_links

    with Background(asker.snapshot, asker.fit, asker.adopt) as refits:
        while True:
            with refits.lock:
                if refits.error is not None:
                    raise refits.error
                audit = asker.said.audit
                if is_audit and audit is None:
                    break
                pairs = asker.next()
            if not len(pairs):
                click.echo("Nothing is left to ask.")
                break
            a, b = (int(row) for row in pairs[0])
            again = any({answer.a, answer.b} == {a, b} and answer.said in KEYS.values() for answer in asker.answers)
            number = f"{len(asker.answers) + 1}" if audit is None else f"{audit.n_answered + 1} of {audit.n}"
            click.echo(f"\nQuestion {number}: {ONCE_MORE if again else FIRST}")
            show_pair(table, a, b)
            key = read_key()
            if key == "q":
                break
            with refits.lock:
                if key == "z":
                    taken = asker.undo()
                    click.echo("There is nothing to undo." if taken is None else f"Taken back: {taken.said}.")
                else:
                    asker.answer(a, b, KEYS[key])  # type: ignore[arg-type]
                    if not is_audit and not refits.busy and len(asker.answers) % asker.settings.refit_every == 0:
                        refits.want()
                links = before.union(asker.new_links)
            write_links(links_path, links, table.ids)
        if refits.busy:
            say("Fitting to the last answers ...")
            refits.wait()
        if refits.error is not None:
            raise refits.error
    return sum(answer.is_link for answer in asker.answers)


def read_key() -> str:
    """Read one of the letters; the end of the input means quit."""
    while True:
        try:
            key = str(click.prompt(QUESTION, prompt_suffix=": ")).strip().lower()[:1]
        except click.Abort:
            return "q"
        if key in (*KEYS, "z", "q"):
            return key
        click.echo("Type one of the letters in brackets.")


def show_pair(table: "Points", a: int, b: int) -> None:
    """Print two rows side by side, with a mark where they differ."""
    rows = [("id", str(table.ids[a]), str(table.ids[b]))]
    shown = [j for j, owner in enumerate(table.owners) if owner not in table.texts]
    rows += [(table.columns[j], table.written(a, j), table.written(b, j)) for j in shown]
    rows += [(name, str(values[a]), str(values[b])) for name, values in table.texts.items()]
    cells = [[_short(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(3)]
    for i, row in enumerate(cells):
        mark = " " if i == 0 or row[1] == row[2] else "*"
        click.echo(f"  {row[0].ljust(widths[0])} {mark} {row[1].ljust(widths[1])}  {row[2].ljust(widths[2])}".rstrip())


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= WIDEST else text[: WIDEST - 3] + "..."
