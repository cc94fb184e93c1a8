"""Questions to a person at a terminal: two rows side by side, and a key for each answer."""

import shutil
import sys
import textwrap
import uuid
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from linkmix.app.label.session import Session

WIDEST, NARROWEST = 28, 16
"""Characters of the name of a field, and of a value at least, however narrow the terminal is."""
MOST_LINES = 12
"""Lines of a value."""
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
    """Print why they are asked about, and two rows side by side, with a mark where they differ."""
    audit = question["audit"]
    place = f"{number}" if audit is None else f"{audit['answered'] + 1} of {audit['n']}"
    click.echo(f"\nQuestion {place}: {ONCE_MORE if question['again'] else FIRST}")
    click.echo(f"  {question['why']}\n")
    rows = [("id", question["a"]["id"], question["b"]["id"])]
    rows += [(field["name"], field["a"], field["b"]) for field in question["fields"]]
    names = [_lines(row[0], WIDEST, 1)[0] for row in rows]
    at = max(map(len, names))
    width = max(NARROWEST, (shutil.get_terminal_size().columns - at - 7) // 2)
    cells = [[_lines(value, width, MOST_LINES) for value in row[1:]] for row in rows]
    width = max(len(line) for a, _ in cells for line in a)
    for i, (name, (a, b)) in enumerate(zip(names, cells, strict=True)):
        mark = " " if i == 0 or rows[i][1] == rows[i][2] else "*"
        for number, (left, right) in enumerate(zip_longest(a, b, fillvalue="")):
            head = f"{name.ljust(at)} {mark}" if number == 0 else " " * (at + 2)
            click.echo(f"  {head} {left.ljust(width)}  {right}".rstrip())


def _lines(text: str, width: int, most: int) -> list[str]:
    """A text in lines, without characters that would do something to the terminal; at least one line."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return textwrap.wrap(plain, width, max_lines=most, placeholder=" ...") or [""]
