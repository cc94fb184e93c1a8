"""Questions to a person at a terminal: two rows side by side, and a key for each answer."""

import sys
import uuid
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from linkmix.app.label.session import Session

WIDEST = 28
KEYS = {"s": "same", "d": "different", "u": "unsure", "k": "skip"}
OTHERS = {"z": "undo", "f": "finish", "q": "quit"}
FIRST = "do these two belong together?"
ONCE_MORE = "once more, do these two belong together? The answer was a surprise."
CHOICE = "[s]ame, [d]ifferent, [u]nsure, s[k]ip, undo with [z], [f]inish, [q]uit"
PAGE = "terminal"


def converse(session: "Session", name: str | None, most: int | None, audit_only: bool) -> str:
    """Ask until the person stops, nothing is left to ask or the number of questions is reached.

    Parameters
    ----------
    session : Session
        Chooses the questions and keeps the answers.
    name : str or None
        Name of the person.
    most : int or None
        Number of questions.
    audit_only : bool
        Whether to stop when the audit is complete.

    Returns
    -------
    str
        Why it ended: "finish" or "quit" as the person said, "end" for any other reason.
    """
    n, told = 0, ""
    while most is None or n < most:
        if audit_only and session.said.audit is None:
            return "end"
        question = session.question(PAGE)
        if question is None and session.background.busy:  # a new model may have other questions
            session.background.wait()
            question = session.question(PAGE)
        if question is None:
            click.echo("Nothing is left to ask.")
            return "end"
        progress = session.status()["stop"]["sentence"]
        if question["audit"] is None and progress != told:
            click.echo(f"\n{progress}")
            told = progress
        show(question, n + 1)
        key = read_key()
        if key in ("f", "q"):
            return OTHERS[key]
        n += _keep(session, question, key, name)
    return "end"


def _keep(session: "Session", question: dict[str, Any], key: str, name: str | None) -> int:
    """Record what a key says; return by how much the number of answers has changed."""
    from linkmix.app.label.requests import NotPossible

    entry = {"key": uuid.uuid4().hex, "annotator": name, "page": PAGE}
    if key != "z":
        rows = [question["a"]["row"], question["b"]["row"]]
        session.write(entry | {"entry": "answer", "rows": rows, "said": KEYS[key]})
        return 1
    try:
        undone = session.write(entry | {"entry": "undo"})
    except NotPossible:
        click.echo("There is nothing to undo.")
        return 0
    click.echo(f"Taken back: {(undone or {}).get('said', 'the last entry')}.")
    return -1


def read_key() -> str:
    """Read one of the keys: a single one at a terminal, otherwise a line. The end of the input means quit."""
    if sys.stdin.isatty():
        click.echo(f"{CHOICE}: ", nl=False)
        while True:
            try:
                key = click.getchar()[:1].lower()
            except EOFError:
                key = "q"
            if key in (*KEYS, *OTHERS):
                click.echo((KEYS | OTHERS)[key])
                return key
    while True:
        try:
            key = str(click.prompt(CHOICE, prompt_suffix=": ")).strip().lower()[:1]
        except click.Abort:
            return "q"
        if key in (*KEYS, *OTHERS):
            return key
        click.echo("Type one of the letters in brackets.")


def confirm(question: str) -> bool:
    """Ask a person at a terminal for a yes or no by a single key; Enter means yes."""
    click.echo(f"{question} [y]es, [n]o: ", nl=False)
    while True:
        try:
            key = click.getchar()[:1].lower()
        except EOFError:
            key = "n"
        if key in ("y", "n", "\r", "\n"):
            click.echo("no" if key == "n" else "yes")
            return key != "n"


def show(question: dict[str, Any], number: int) -> None:
    """Print two rows side by side, with a mark where they differ."""
    audit = question["audit"]
    place = f"{number}" if audit is None else f"{audit['answered'] + 1} of {audit['n']}"
    click.echo(f"\nQuestion {place}: {ONCE_MORE if question['again'] else FIRST}")
    rows = [("id", question["a"]["id"], question["b"]["id"])]
    rows += [(field["name"], field["a"], field["b"]) for field in question["fields"]]
    cells = [[_short(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(3)]
    for i, row in enumerate(cells):
        mark = " " if i == 0 or rows[i][1] == rows[i][2] else "*"
        click.echo(f"  {row[0].ljust(widths[0])} {mark} {row[1].ljust(widths[1])}  {row[2].ljust(widths[2])}".rstrip())


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= WIDEST else text[: WIDEST - 3] + "..."
