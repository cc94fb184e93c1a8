"""What people may ask of a session: requests are checked at the door and become entries of the journal, in ids."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from linkmix.app.label.answers import TURNS
from linkmix.basics.journal import Entry
from linkmix.links.names import NOT_NAMES
from linkmix.queries import SAID
from linkmix.queries.questions import KINDS, Kind
from linkmix.tables.ids import Ids

MOST_TOGETHER = 2000
"""Number of points that something can be said about at once."""
MOST_CARDS = 100
"""Number of points in one question."""
LONGEST_NAME = 100
LONGEST_PAGE = 64
LONGEST_DESCRIPTION = 2000
ENTRIES = (*TURNS, "undo", "audit", "give up")
NUMBERS = {
    "answer": (2, 2),
    "which": (2, MOST_CARDS),
    "group": (2, MOST_CARDS),
    "together": (2, MOST_TOGETHER),
    "nowhere": (1, MOST_TOGETHER),
    "remove": (1, 2),
    "name": (1, 1),
    "belongs": (1, MOST_TOGETHER),
    "not": (1, MOST_TOGETHER),
    "merge": (2, 2),
    "split": (1, MOST_TOGETHER),
    "turn": (2, 2),
    "keep": (2, 2),
}
"""The least and the largest number of rows of an entry; others have none."""


class NotPossible(ValueError):
    """The request makes sense, but not now."""


def as_entry(request: dict[str, Any], ids: Ids, n_colours: int) -> Entry:
    """A request as a line of the journal, as far as it does not depend on what was said before.

    Parameters
    ----------
    request : dict
        See `Session.write`.
    ids : sequence of str
        Ids of the points.
    n_colours : int
        Number of colours that a class can have.

    Returns
    -------
    dict

    Raises
    ------
    ValueError
        If something is missing or wrong.

    Examples
    --------
    >>> entry = as_entry({"entry": "belongs", "key": "k1", "rows": [2], "to": [0]}, ["anna", "bob", "carl"], 8)
    >>> entry["ids"], entry["face"]
    (['carl'], 'anna')
    """
    what, key = request.get("entry"), request.get("key")
    if what not in ENTRIES:
        raise ValueError(f"entry is {what!r}: use one of {', '.join(ENTRIES)}")
    check_key(key)
    entry: Entry = {"entry": what, "key": key}
    if what in NUMBERS:
        entry["ids"] = ids_of("rows", request.get("rows"), ids, *NUMBERS[what])
    if what == "answer":
        entry["said"] = _choice("said", request.get("said"), SAID)
        entry |= _remarks(request)
    elif what in ("which", "group"):
        entry |= _reply(request, entry["ids"], ids)
    elif what == "turn" and request.get("said") is not None:
        entry["said"] = _choice("said", request["said"], ("same", "different"))
    elif what in ("belongs", "not", "split"):
        field = "to" if what == "belongs" else "of"
        [entry["face"]] = ids_of(field, request.get(field), ids, 1, 1)
        if entry["face"] in entry["ids"]:
            raise ValueError(f"{field} names {entry['face']!r}, which is among rows: give the face of another class")
    elif what == "name":
        entry |= _naming(request, n_colours)
    entry["annotator"] = person(request.get("annotator"))
    entry["time"] = datetime.now(UTC).isoformat(timespec="milliseconds")
    return entry


def check_key(key: Any) -> None:
    """Raise a ValueError if this cannot be the key of a request."""
    if not isinstance(key, str) or not 0 < len(key) <= LONGEST_NAME:
        raise ValueError(f"key is {key!r}: give a string of 1 to {LONGEST_NAME} characters, a new one for each entry")


def check_page(page: Any) -> str:
    """The name of a page, if it is one; raises a ValueError otherwise."""
    if not isinstance(page, str) or not re.fullmatch(f"[A-Za-z0-9-]{{1,{LONGEST_PAGE}}}", page):
        raise ValueError(f"page is {page!r}: give 1 to {LONGEST_PAGE} letters, digits or hyphens")
    return page


def kinds_of(request: dict[str, Any]) -> list[Kind]:
    """The kinds of questions that a request asks for; pairs if it names none."""
    kinds = request.get("kinds")
    if kinds is None:
        return ["pair"]
    if not isinstance(kinds, list) or not 1 <= len(kinds) <= len(KINDS):
        raise ValueError(f"kinds is {kinds!r}: give a list of some of {', '.join(KINDS)}")
    for kind in kinds:
        _choice("kinds", kind, KINDS)
    return kinds


def ids_of(field: str, rows: Any, ids: Ids, fewest: int, most: int) -> list[str]:
    """The ids of rows that a request names."""
    n = len(ids)
    if not isinstance(rows, list) or not fewest <= len(rows) <= most:
        found = f"has length {len(rows)}" if isinstance(rows, list) else f"is {rows!r}"
        wanted = f"{most}" if fewest == most else f"{fewest} to {most}"
        raise ValueError(f"{field} {found}: give a list of {wanted} row number{'s' if most > 1 else ''}")
    for row in rows:
        if not isinstance(row, int) or isinstance(row, bool) or not 0 <= row < n:
            raise ValueError(f"row {row!r} does not exist: rows are numbered from 0 to {n - 1}")
    if len(set(rows)) < len(rows):
        raise ValueError(f"{field} names a row twice: name each row once")
    return [str(ids[row]) for row in rows]


def _reply(request: dict[str, Any], asked: list[str], ids: Ids) -> Entry:
    """The reply to a question about several points."""
    field = "like" if request["entry"] == "which" else "out"
    if request.get("said") is not None:
        if request.get(field):
            raise ValueError(f"said is {request['said']!r} and {field} names rows: give one of them")
        return {"said": _choice("said", request["said"], ("unsure", "skip"))}
    picked = ids_of(field, request.get(field), ids, 0, len(asked) - 1)
    for value in picked:
        if value not in asked[1:]:
            raise ValueError(f"{field} names {value!r}, which is not among the cards: give some of rows[1:]")
    return {field: picked}


def _remarks(request: dict[str, Any]) -> Entry:
    """What a program may say about its answer. None of it changes what the answer means."""
    confidence, reason, repeated = (request.get(name) for name in ("confidence", "reason", "repeated"))
    is_number = isinstance(confidence, int | float) and not isinstance(confidence, bool)
    if confidence is not None and not (is_number and 0 <= confidence <= 1):
        raise ValueError(f"confidence is {confidence!r}: give a number from 0 to 1, or null")
    if reason is not None:
        reason = _text("reason", reason, LONGEST_DESCRIPTION)
    if repeated not in (None, True, False):
        raise ValueError(f"repeated is {repeated!r}: give true, false or null")
    votes = request.get("votes")
    if votes is not None and not (isinstance(votes, list) and len(votes) <= MOST_CARDS):
        raise ValueError(f"votes is {votes!r}: give a list of at most {MOST_CARDS} answers, or null")
    for vote in votes or ():
        _choice("votes", vote, SAID)
    remarks = {"confidence": confidence, "reason": reason, "repeated": repeated or None, "votes": votes}
    return {name: value for name, value in remarks.items() if value is not None}


def _naming(request: dict[str, Any], n_colours: int) -> Entry:
    """The fields of a name."""
    name, colour, description = request.get("name"), request.get("colour"), request.get("description") or ""
    if name is not None:
        name = _text("name", name, LONGEST_NAME).strip()
        if name in NOT_NAMES:
            raise ValueError(f"the name {name!r} stands for no class: give another one, or null for none")
    if colour is not None and (not isinstance(colour, int) or isinstance(colour, bool) or not 0 <= colour < n_colours):
        raise ValueError(f"colour is {colour!r}: give a number from 0 to {n_colours - 1}, or null")
    return {"name": name, "colour": colour, "description": _text("description", description, LONGEST_DESCRIPTION)}


def person(given: Any) -> str | None:
    """The name of a person, without characters that would break a line."""
    return None if given is None else _text("annotator", given, LONGEST_NAME).strip() or None


def _text(field: str, given: Any, longest: int) -> str:
    if not isinstance(given, str) or len(given) > longest:
        what = "name" if field in ("annotator", "name") else "text"
        raise ValueError(f"{field} is {given!r}: give a {what} of at most {longest} characters")
    kept = "\n" if field == "description" else ""
    return "".join(letter for letter in given if letter.isprintable() or letter in kept)


def _choice(field: str, given: Any, choices: Sequence[str]) -> str:
    if given not in choices:
        raise ValueError(f"{field} is {given!r}: use one of {', '.join(choices)}")
    return str(given)
