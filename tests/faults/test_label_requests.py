"""Random requests to the labelling server: whatever is sent, it is answered, and what is refused changes nothing.

LINKMIX_EXAMPLES sets how many are tried. Each follows from its seed, which a failure names with the request.
"""

import asyncio
import json
import os
import random
import time

import pytest

from label_serving import write_points
from linkmix.app.label.server import LARGEST_BODY, Guard, Site
from linkmix.app.label.session import Session
from linkmix.tables import read_points

EXAMPLES = int(os.environ.get("LINKMIX_EXAMPLES", "300"))
TOKEN = "a-secret-token"
LONGEST = 60.0
"""Seconds within which each request is answered, on a busy machine."""
PATHS = (
    *("/", "/palette.css", "/static/main.js", "/static/", "/picture/0", "/picture/61", "/api/start"),
    *("/api/status", "/api/labels", "/api/places", "/api/pair", "/api/find", "/api/classes"),
    *("/api/members", "/api/card", "/api/review", "/api/question", "/api/entries", "/api/finish"),
)
WRITING = ("/api/question", "/api/entries", "/api/finish")
ENTRIES = (
    *("answer", "together", "which", "group", "nowhere", "remove", "name", "belongs", "not", "merge", "split"),
    *("turn", "keep", "undo", "audit", "give up"),
)
FIELDS = (
    *("entry", "key", "rows", "said", "like", "out", "to", "of", "name", "colour", "description", "annotator"),
    *("page", "kinds", "confidence", "reason", "repeated", "votes", "table"),
)
QUERIES = ("page", "have", "a", "b", "id", "label", "kind", "n", "row", "projection", "token", "kinds")
TEXTS = (
    *("", "same", "different", "p0", "pair", "classes", "typical", "0", "59", "60", "-1", "1e3", "٣", "\x00", "\ud800"),
    *("../../etc/passwd", "%2e%2e", "'; --", "<script>", "\u202e", "é" * 50, "x" * 5000, "9" * 400, "NaN", "null"),
)
NUMBERS = (0, 1, 2, 59, 60, -1, 2**31, 2**63, 2**64, -(2**70), 10**399, 0.5, -0.0, 1e308, float("inf"), float("nan"))


def value(chance, depth=0):
    """Any value of JSON, deep ones among them."""
    kind = chance.randrange(9 if depth < 3 else 6)
    if kind == 0:
        return chance.choice(NUMBERS)
    if kind == 1:
        return chance.choice(TEXTS)
    if kind == 2:
        return chance.choice([None, True, False])
    if kind == 3:
        return [chance.randrange(-1, 62) for _ in range(chance.choice([0, 1, 2, 3, 8, 2500]))]
    if kind == 4:
        return chance.choice(("same", "different", "unsure", "skip", *ENTRIES))
    if kind == 5:
        return chance.randrange(60)
    if kind == 6:
        return {chance.choice(FIELDS): value(chance, depth + 1) for _ in range(chance.randrange(4))}
    if kind == 7:
        return [value(chance, depth + 1) for _ in range(chance.randrange(4))]
    found = value(chance, 3)
    for _ in range(chance.choice([10, 200])):
        found = [found]
    return found


def sensible(chance, path, table):
    """What a page could send."""
    if path == "/api/question":
        return {
            "page": chance.choice("abcdefgh"),
            "kinds": chance.choice([["pair"], ["which", "group"]]),
            "table": table,
        }
    if path == "/api/finish":
        return {"key": chance.choice("ab"), "table": table}
    entry = chance.choice(ENTRIES)
    n = {"answer": 2, "turn": 2, "keep": 2, "merge": 2, "remove": 2, "name": 1}.get(entry, chance.randrange(1, 9))
    rows = chance.sample(range(60), n + 1)
    picked = chance.sample(rows[1:n], chance.randrange(n)) if n > 1 else []
    return {
        "entry": entry,
        "key": str(chance.random()),
        "rows": rows[:n],
        "said": None if entry in ("which", "group") else chance.choice(["same", "different", "unsure", "skip"]),
        ("like" if entry == "which" else "out"): picked,
        ("to" if entry == "belongs" else "of"): rows[n:],
        "name": chance.choice([None, "cats", "dogs"]),
        "page": chance.choice("abcdefgh"),
        "table": table,
    }


def body_of(chance, path, table):
    """A body, sensible or spoiled."""
    given = sensible(chance, path, table)
    for _ in range(chance.choice([0, 0, 1, 1, 2, 5])):
        if chance.random() < 0.3 and given:
            del given[chance.choice([*given])]
        else:
            given[chance.choice(FIELDS)] = value(chance)
    body = json.dumps(given).encode()
    spoiled = chance.randrange(20)
    if spoiled == 0:
        body = body[: chance.randrange(len(body))]
    elif spoiled == 1:
        places = chance.sample(range(len(body)), min(3, len(body)))
        body = bytes(chance.randrange(256) if i in places else letter for i, letter in enumerate(body))
    elif spoiled == 2:
        body = chance.randbytes(chance.choice([0, 1, 50, 5000]))
    elif spoiled == 3:
        depth = chance.choice([100, 990, 3000, 100_000])
        body = b"[" * depth + chance.choice([b"", b"]" * depth])
    elif spoiled == 4:
        body = chance.choice([b"", b"null", b"[]", b"1", b'"x"', b"9" * 5000, b"\xff\xfe", b"x" * (LARGEST_BODY + 1)])
    elif spoiled == 5:
        deep = "[" * 800 + "]" * 800
        body = json.dumps(given)[:-1].encode() + f', "{chance.choice(FIELDS)}": {deep}}}'.encode()
    return body


def request_of(seed, table):
    """A scope of ASGI and the messages of a body."""
    chance = random.Random(seed)
    path = chance.choice(PATHS)
    if chance.random() < 0.4:
        path = chance.choice(WRITING)
    writes = path in WRITING
    method = "POST" if writes else "GET"
    if chance.random() < 0.1:
        method = chance.choice(["GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "FOO", ""])
    headers = {
        b"host": b"127.0.0.1:8765",
        b"x-linkmix": TOKEN.encode(),
        b"content-type": b"application/json",
        b"origin": b"http://127.0.0.1:8765",
    }
    for _ in range(chance.choice([0, 0, 0, 1, 2])):
        name = chance.choice(
            [*headers, b"cookie", b"sec-fetch-site", b"range", b"if-none-match", b"accept", b"x" * 300]
        )
        if chance.random() < 0.4:
            headers.pop(name, None)
        else:
            odd = [b"", b"\xff\xfe", b"evil.example", b"bytes=0-1,5-", b"x" * 17_000, b"application/json; charset=\xff"]
            headers[name] = chance.choice([*odd, chance.randbytes(8)])
    if chance.random() < 0.15:
        spoiled = [path + "/", path + "/..", "/.." + path, path.upper(), path + "\x00", "/" + path, path[:-1], "", "*"]
        odd = [
            "/static/../server/site.py",
            "/picture/../../x",
            "/picture/" + "9" * 400,
            "/static/" + "a" * 300,
            "/é\ud800",
        ]
        path = chance.choice([*spoiled, *odd])
    names = chance.choices(QUERIES, k=chance.randrange(4))
    query = "&".join(f"{name}={chance.choice([*TEXTS, str(chance.randrange(62))])}" for name in names)
    raw = query.encode(errors="surrogatepass")
    if chance.random() < 0.1:
        raw = chance.choice([b"%", b"%zz=%", b"&&&===", chance.randbytes(30), b"a=" * 3000])
    body = body_of(chance, path if writes and path in WRITING else "/api/entries", table) if writes else b""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(errors="surrogatepass"),
        "query_string": raw,
        "root_path": "",
        "headers": [*headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8765),
    }
    cut = sorted(chance.randrange(len(body) + 1) for _ in range(chance.randrange(3)))
    parts = [body[a:b] for a, b in zip([0, *cut], [*cut, len(body)], strict=True)]
    messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    messages[-1]["more_body"] = False
    if chance.random() < 0.03:  # the client is gone
        messages = [*messages[:-1], {"type": "http.disconnect"}]
    return scope, messages


async def reply(app, scope, messages):
    """The status of a reply, and its body; None if the client has gone before the end."""
    waiting, sent = [*messages], []

    async def receive():
        if waiting:
            return waiting.pop(0)
        await asyncio.sleep(0)
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    from starlette.requests import ClientDisconnect

    try:
        await asyncio.wait_for(app(scope, receive, send), LONGEST)
    except ClientDisconnect:
        return None, b""
    assert [one["type"] for one in sent[:1]] == ["http.response.start"], sent
    return sent[0]["status"], b"".join(one.get("body", b"") for one in sent[1:])


def said(session):
    """What people have said, as it is in the journal, and the number of finishes."""
    entries = session.files.journal.entries
    return [one["key"] for one in entries if "key" in one], sum(one["entry"] == "finished" for one in entries)


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    points = write_points(tmp_path_factory.mktemp("requests") / "points.csv")
    with Session(read_points(points), 3, points.with_name("links.csv"), points.parent) as session:
        yield session


def test_random_requests_are_answered_and_refused_ones_change_nothing(session, capfd):
    app = Guard(Site(session, "points.csv").application(), TOKEN, 8765)
    first = int(os.environ.get("LINKMIX_SEED", "0"))
    counts = {}
    with asyncio.Runner() as runner:
        for seed in range(first, first + EXAMPLES):
            scope, messages = request_of(seed, session.table)
            told = f"seed {seed}: {scope['method']} {scope['path']!r} {scope['query_string']!r} {messages!r:.2000}"
            before, began = said(session), time.monotonic()
            try:
                status, body = runner.run(reply(app, scope, messages))
            except BaseException as error:
                raise AssertionError(told) from error
            assert time.monotonic() - began < LONGEST, told
            assert status is None or status < 500, f"{told}\n{status} {body!r}"
            if status is None or status >= 400:
                assert said(session) == before, f"{told}\n{status} {body!r}"
                assert len(body) < 3000, told
            if dict(scope["headers"]).get(b"x-linkmix") != TOKEN.encode():
                assert b"p17" not in body, told
            counts[status] = counts.get(status, 0) + 1
    assert capfd.readouterr().err == ""
    assert counts[200] > EXAMPLES / 10, counts
    assert sum(n for status, n in counts.items() if status in (400, 403, 409)) > EXAMPLES / 10, counts
