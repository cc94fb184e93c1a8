"""The command ask."""

import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from linkmix.app.cli.failures import BadInput, bad_input, extras_needed, until_interrupted
from linkmix.app.cli.options import FILE, Reading, out_option, raw_cells_option, reading_options, seed_option
from linkmix.app.cli.terminal import say, watched

if TYPE_CHECKING:
    from linkmix.app.label.session import Session
    from linkmix.queries import Outcome, Tally
    from linkmix.tables import Points

ONLY_PROGRAMS = ("batch", "parallel", "agree", "repeat", "least_confidence", "timeout", "seconds")
"""Options that mean something with --answers alone."""
N_QUESTIONS = 160
"""Questions to a program, unless told otherwise."""


@click.command()
@click.argument("places", metavar="[MODEL] POINTS", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--classes", type=click.IntRange(1, 1000), help="Number of classes, if it is known.")
@click.option(
    "--links",
    "links_path",
    type=FILE,
    help="File of links: it is read if it exists, and answers are added to it. By default the name of POINTS with "
    "-links.csv at its end, as for linkmix label; with MODEL links.csv.",
)
@reading_options()
@click.option(
    "--answers",
    metavar="COMMAND",
    help="A program that answers instead of you: it reads questions and writes answers as lines of JSON; see "
    "docs/programs.md.",
)
@click.option("--name", help="Your name, or that of the program, which the links will carry.  [default: program]")
@click.option(
    "--questions",
    type=click.IntRange(1),
    help=f"Stop after this many questions.  [default for programs: {N_QUESTIONS}]",
)
@click.option("--seconds", type=click.FloatRange(0, min_open=True), help="Stop after this time.  [only with --answers]")
@click.option(
    "--batch",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Questions that the program gets at once.  [only with --answers]",
)
@click.option(
    "--parallel",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="How many processes of the program run at the same time.  [only with --answers]",
)
@click.option(
    "--agree",
    type=click.IntRange(1, 5),
    default=1,
    show_default=True,
    help="Ask about each pair until one answer leads by this many, such as 2: for programs whose mistakes come and "
    "go.  [only with --answers]",
)
@click.option(
    "--repeat",
    type=click.FloatRange(0, 1),
    default=0.1,
    show_default=True,
    help="Share of the questions that are asked to learn how often the program is wrong.  [only with --answers]",
)
@click.option(
    "--least-confidence",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help="An answer that the program is less sure of counts as unsure.  [only with --answers]",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    help="Seconds to wait for an answer.  [only with --answers]",
)
@click.option("--strategy", default="cover", show_default=True, help="How pairs are chosen; see docs/questions.md.")
@click.option(
    "--wrong",
    type=click.FloatRange(0, 0.5, max_open=True),
    help="Expected share of wrong answers; if above 0, doubtful pairs are asked about again.  [default: 0; for a "
    "program what its repeated answers tell, 0.1 before there are any, and less with --agree]",
)
@click.option(
    "--audit",
    type=click.IntRange(1, 1000),
    help="Ask this many questions about random pairs instead, such as 20, and say how good the labels are.",
)
@click.option(
    "--finish/--no-finish",
    default=None,
    help="Write labels, model, report and links at the end, or do not.  [default: a person at a terminal is asked; "
    "with --answers, finish]",
)
@raw_cells_option
@seed_option
@out_option("linkmix-out", "labels, model, report and links")
@click.pass_context
def ask(
    context: click.Context,
    places: tuple[Path, ...],
    classes: int | None,
    links_path: Path | None,
    reading: Reading,
    answers: str | None,
    name: str | None,
    questions: int | None,
    seconds: float | None,
    batch: int,
    parallel: int,
    agree: int,
    repeat: float,
    least_confidence: float,
    timeout: float,
    strategy: str,
    wrong: float | None,
    audit: int | None,
    finish: bool | None,
    raw_cells: bool,
    seed: int,
    folder: Path,
) -> None:
    """Ask which points belong together: you, or a program.

    Two rows of the table POINTS are shown side by side, the most useful pair first, and a single key answers. Every
    answer is on the disk before the next question, in the same journal as those of linkmix label: the same command, or
    the page, goes on where it was. At the end labels, model and report are written, as on the page.

    With --answers a program answers: a rule, a language model, a crowd. It reads lines such as {"id": 7, "question":
    "same?", "a": {"name": "anna"}, "b": {"name": "ann"}} and writes lines such as {"id": 7, "answer": "same"}.

    With MODEL, a model that linkmix fit wrote, its columns and its number of classes count, and --audit measures it.

    \b
    Examples:
      linkmix ask points.csv --classes 3
      linkmix ask points.csv --classes 3 --audit 20
      linkmix ask linkmix-out/model.linkmix points.csv --links links.csv
      linkmix ask texts.csv --classes 3 --as text=text --answers 'python answer_by_rule.py'
      linkmix ask texts.csv --classes 3 --answers 'python ask_model.py' --name gpt --batch 20 --parallel 4
      linkmix ask texts.csv --classes 3 --answers 'python ask_model.py' --questions 500 --seconds 600
    """  # noqa: D301
    with extras_needed(), bad_input():
        from linkmix.queries import STRATEGIES

        if strategy not in STRATEGIES:
            raise BadInput(f"--strategy {strategy} is not known: choose from {', '.join(STRATEGIES)}")
        _refuse_options(context, answers, audit)
        model, points = _model_and_points(places)
        started = _Start(model, points, classes, links_path, reading, folder, strategy, audit, seed, raw_cells)
        if answers is not None:
            limits = {"budget": questions or N_QUESTIONS, "seconds": seconds, "batch": batch, "agree": agree}
            limits |= {"repeat": repeat, "least_confidence": least_confidence}
            program = _Asked(answers, name or "program", parallel, timeout, limits)
            _ask_program(started, program, wrong, finish is not False)
        else:
            _ask_person(started, name, questions, wrong or 0.0, finish)


def _refuse_options(context: click.Context, answers: str | None, audit: int | None) -> None:
    given = [
        option
        for option in ONLY_PROGRAMS
        if context.get_parameter_source(option) is not click.core.ParameterSource.DEFAULT
    ]
    if answers is None and given:
        raise BadInput(f"--{given[0].replace('_', '-')} has no effect without --answers: give a program that answers")
    if answers is not None and audit is not None:
        raise BadInput("--audit measures the labels by what a person says: leave out --answers")


def _model_and_points(places: tuple[Path, ...]) -> tuple[Path | None, Path]:
    if len(places) > 2:
        raise BadInput(f"{len(places)} files are given: give POINTS, or MODEL and POINTS")
    return (None, places[0]) if len(places) == 1 else (places[0], places[1])


class _Start:
    """Everything that a session needs but the share of wrong answers."""

    def __init__(
        self,
        model: Path | None,
        points: Path,
        classes: int | None,
        links_path: Path | None,
        reading: Reading,
        folder: Path,
        strategy: str,
        audit: int | None,
        seed: int,
        raw_cells: bool,
    ) -> None:
        from linkmix.app.label.session import Session
        from linkmix.app.results import Origin, typed

        labels, n_classes = None, classes
        if model is None:
            self.table = _read(points, reading)
        else:
            self.table, labels, n_classes = _read_with(model, points, reading, classes)
        if links_path is None and self.table.files:
            raise BadInput("--links is missing: say where the answers about a table of several files go")
        self.links_path = links_path or _links_beside(points, model)
        self.is_audit = audit is not None
        origin = Origin(points, self.links_path, reading.as_typed_with_id, reading.missing, typed("ask"), raw_cells)
        options: dict[str, Any] = {} if audit is None else {"n_audit": audit}
        options |= {"out": folder, "origin": origin, "strategy": strategy, "labels": labels, "seed": seed}

        def begin(wrong: float) -> "Session":
            from linkmix.app.cli.notes import tell

            say("Looking for the first question ...")
            session = Session(self.table, n_classes, self.links_path, points.parent, wrong=wrong, **options)
            tell(session.files.notes)
            return session

        self.session: Callable[[float], Session] = begin

    @property
    def journal(self) -> Path:
        """The journal of the session."""
        return self.links_path.with_name(self.links_path.name + ".journal")


def _links_beside(points: Path, model: Path | None) -> Path:
    from linkmix.tables.files import stem_of

    return points.with_name(f"{stem_of(points)}-links.csv") if model is None else Path("links.csv")


def _read(points: Path, reading: Reading) -> "Points":
    from linkmix.app.cli.notes import cautions, tell
    from linkmix.app.report import columns_in_words
    from linkmix.tables import read_points

    say(f"Reading {points} ...")
    table = read_points(points, **reading.arguments)
    for sentence in columns_in_words(table):
        click.echo(sentence, err=True)
    tell(cautions(table, chosen=reading.columns is not None))
    return table


def _read_with(model: Path, points: Path, reading: Reading, classes: int | None) -> "tuple[Points, Any, int]":
    """Points as a model was fitted to them, their labels by it, and its number of classes."""
    from linkmix.app.cli.points import refuse_gaps
    from linkmix.app.cli.saved_models import load, read_for

    given = (classes, reading.columns, reading.leave_out or None, reading.kinds or None)
    names = ("--classes", "--columns", "--leave-out", "--as")
    for option, value in zip(names, given, strict=True):
        if value is not None:
            raise BadInput(f"{option} has no effect with MODEL, which says it: leave out one of them")
    saved = load(model)
    table = read_for(saved, points, reading, texts=True)
    refuse_gaps(points, table, saved, "this model")
    return table, saved.probabilities(table.X).argmax(axis=1), saved.n_classes


def _ask_person(start: _Start, name: str | None, questions: int | None, wrong: float, finish: bool | None) -> None:
    from linkmix.app.cli.conversation import confirm, converse
    from linkmix.plots.pages import count

    with start.session(wrong) as session:
        if start.is_audit and session.said.audit is None:
            session.write({"entry": "audit", "key": uuid.uuid4().hex, "annotator": name})
        before, ended = len(session.said.turns), "quit"
        with until_interrupted() as interrupted:
            ended = converse(session, name, questions, start.is_audit)
        n_answers = len(session.said.turns) - before
        at_terminal = sys.stdin.isatty() and not interrupted
        wanted = finish if finish is not None else ended == "finish"
        unfinished_audit = session.said.audit is not None
        if finish is None and ended in ("quit", "end") and at_terminal and not unfinished_audit and len(session.said):
            wanted = confirm("Write labels, model and report?")
        if wanted and unfinished_audit:
            click.echo("Nothing is written while a check is under way: answer its questions first.")
            wanted = False
        if wanted:
            _finish(session)
        stop = session.status()["stop"]["sentence"]
    done = (
        f"{count(abs(n_answers), 'answer')} {'added to' if n_answers >= 0 else 'taken back from'} {start.links_path}."
    )
    click.echo(f"\n{done} {'' if start.is_audit else stop}".rstrip())
    if start.is_audit and unfinished_audit:
        click.echo("Too few answers to say how good the labels are: the same command asks the rest.")
    _say_goodbye(session, bool(wanted))


def _finish(session: "Session") -> None:
    say("Writing labels, model, report and links ...")
    session.finish(uuid.uuid4().hex)


def _say_goodbye(session: "Session", finished: bool) -> None:
    for sentence in session.view.farewell():
        click.echo(sentence)
    if not finished:
        click.echo("The same command goes on from here; with --finish it writes labels, model and report.")


@dataclass(frozen=True)
class _Asked:
    """A program, and how it is asked."""

    command: str
    name: str
    parallel: int
    timeout: float
    limits: dict[str, Any]


def _ask_program(start: _Start, asked: _Asked, wrong: float | None, finish: bool) -> None:
    from linkmix.app.programs import Program, SessionDesk, tally_in, words_of
    from linkmix.queries import BadAnswer, Outcome, run
    from linkmix.queries.answers import confidence

    words_of(asked.command)  # refuses what is no command before anything else is done
    tally = tally_in(start.journal, asked.name)
    last = Outcome(tally=tally)
    if wrong is None:
        wrong = round(1 - confidence(asked.limits["agree"], tally.wrong), 4)  # of answers that lead by so many
    with start.session(wrong) as session, ExitStack() as programs:
        if session.said.audit is not None:
            raise BadInput(
                f"a check of the labels is under way in {start.links_path}, which a person has to answer: linkmix ask "
                "without --answers does, or linkmix label"
            )
        answerers = [programs.enter_context(Program(asked.command, asked.timeout)) for _ in range(asked.parallel)]

        def note(outcome: Outcome) -> None:
            nonlocal last
            last = outcome
            shown(outcome)

        with until_interrupted() as interrupted, _bar(asked.limits["budget"]) as shown:
            try:
                last = run(
                    SessionDesk(session, asked.name),
                    answerers,
                    name=asked.name,
                    tally=tally,
                    progress=note,
                    **asked.limits,
                )
            except BadAnswer as error:
                kept = f"{last.answered} answers were kept in {start.links_path}: the same command goes on from there"
                raise BadInput(f"{error}\n{kept}") from None
        programs.close()
        if finish and not interrupted:
            _finish(session)
        stop = session.status()["stop"]["sentence"]
    for sentence in _in_words(last, last.tally, asked.name, bool(interrupted)):
        click.echo(sentence)
    click.echo(stop)
    _say_goodbye(session, finish and not interrupted)


def _in_words(outcome: "Outcome", tally: "Tally", name: str, interrupted: bool) -> Iterator[str]:
    why = "interrupted" if interrupted else {"nothing left": "nothing is left to ask"}.get(outcome.ended, "")
    counts = ", ".join(f"{number} {said}" for said, number in outcome.counts.items())
    yield f"{name}: {outcome.answered} answers ({counts}) in {outcome.seconds:.0f} s{'; ' * bool(why)}{why}."
    yield str(tally)


@contextmanager
def _bar(n: int) -> "Iterator[Callable[[Outcome], None]]":
    """A progress bar of answers for a person who watches."""
    if not watched():
        yield lambda outcome: None
        return
    from tqdm import tqdm

    with tqdm(total=n, desc="Asking", unit="answer") as bar:

        def show(outcome: "Outcome") -> None:
            bar.update(outcome.answered - bar.n)
            bar.set_postfix(outcome.counts)

        yield show
