import http.client
import json
import random
import socket
import threading
import time
from contextlib import suppress
from http.client import HTTPException
from urllib.parse import urlsplit

import numpy as np
import pytest

from label_serving import CERTIFICATE, IDS, Serving, write_points
from linkmix.app.label import server
from linkmix.app.label.answers import fold
from linkmix.app.label.jupyter import label
from linkmix.app.label.server import connections, guard
from linkmix.app.label.session import Session
from linkmix.basics.errors import BadFile
from linkmix.tables import read_links, read_points

N_KILLS = 50
X = np.concatenate([np.random.default_rng(0).normal(size=(20, 2)) + 6 * k for k in range(3)])


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "data"
    folder.mkdir()
    secret = folder.parent / "secret.png"
    secret.write_bytes(b"\x89PNG secret")
    (folder / "inside.png").write_bytes(b"\x89PNG inside")
    (folder / "way-out.png").symlink_to(secret)
    (folder / "out").symlink_to(folder.parent)
    (folder / "notes.txt").write_text("no picture")
    pictures = ["inside.png", "../secret.png", str(secret), "way-out.png", "out/secret.png", "missing.png", "x" * 300]
    pictures = [name if name.endswith(".png") else name + ".png" for name in pictures]
    extra = {"picture": pictures + ["inside.png"] * (60 - len(pictures))}
    with Serving(write_points(folder / "points.csv", extra=extra)) as serving:
        yield serving


def entry(serving, **more):
    given = {"entry": "answer", "key": "k", "rows": [0, 1], "said": "same", "table": serving.get("/api/start")["table"]}
    return json.dumps(given | more)


# No other page can write


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": None}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"X-Linkmix": None}, 415),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Type": None}, 415),
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:80", "Origin": "http://evil.example:80"}, 421),
        ({"Host": "127.0.0.1:1"}, 421),
    ],
)
def test_a_write_from_elsewhere_is_refused(served, changed, status):
    headers = {name: value for name, value in (served.own_headers() | changed).items() if value is not None}
    before = served.get("/api/status")["version"]
    assert served.request("POST", "/api/entries", entry(served), headers)[0] == status
    assert served.get("/api/status")["counts"]["same"] == 0
    assert served.get("/api/status")["version"] == before


def test_the_same_write_from_the_page_is_taken(served):
    status, _, body = served.request("POST", "/api/entries", entry(served, key="k1"), served.own_headers())
    assert (status, json.loads(body)["key"]) == (200, "k1")
    status, _, _ = served.request("POST", "/api/entries", entry(served, entry="undo", key="k2"), served.own_headers())
    assert status == 200


@pytest.mark.parametrize("path", ["/", "/api/status", "/api/review", "/picture/0", "/static/main.js"])
def test_another_name_for_this_machine_shows_nothing(served, path):
    status, _, body = served.request("GET", path, headers={"Host": f"evil.example:{served.port}"})
    assert status == 421
    assert b"is not at 'evil.example" in body
    assert served.request("GET", path, headers={"Host": f"localhost:{served.port}"})[0] == 200


def test_other_methods_do_not_help(served):
    for method in ("PUT", "DELETE", "PATCH"):
        assert served.request(method, "/api/entries", entry(served), served.own_headers())[0] == 405
    assert served.request("GET", "/api/entries?entry=undo&key=x")[0] == 405
    headers = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    status, replied, _ = served.request("OPTIONS", "/api/entries", headers=headers)
    assert status == 403
    assert not [name for name in replied if name.lower().startswith("access-control")]


@pytest.mark.parametrize(
    "path",
    ["/", "/static/main.js", "/plotly.js", "/api/start", "/picture/0", "/picture/1", "/nothing", "/api/pair?a=x"],
)
def test_every_reply_forbids_foreign_scripts_and_guessing(served, path):
    _, headers, _ = served.request("GET", path)
    headers = {name.lower(): value for name, value in headers.items()}
    rules = dict(rule.strip().partition(" ")[::2] for rule in headers["content-security-policy"].split(";"))
    assert rules["default-src"] == "'none'"
    assert rules.get("script-src", "'self'") == "'self'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "server" not in headers


def test_the_page_and_its_parts_come_from_here_alone(served):
    parts = [f"/static/{file.name}" for file in server.STATIC.iterdir()]
    assert len(parts) > 5
    for path in ("/", "/palette.css", *parts):
        status, _, body = served.request("GET", path)
        assert status == 200
        assert b"http://" not in body.replace(b"http://www.w3.org", b"")
        assert b"https://" not in body
    body = served.request("GET", "/")[2]
    assert b"onclick" not in body
    assert body.count(b"<script") == body.count(b"</script>") == body.count(b'src="/') >= 1
    status, headers, script = served.request("GET", "/plotly.js")
    assert (status, headers["content-type"]) == (200, "text/javascript; charset=utf-8")
    assert len(script) > 1_000_000


def test_pictures_come_from_the_folder_alone(served):
    status, headers, body = served.request("GET", "/picture/0")
    assert (status, headers["content-type"], body) == (200, "image/png", b"\x89PNG inside")
    for row in range(1, 7):
        status, _, body = served.request("GET", f"/picture/{row}")
        assert status == 404, row
        assert b"secret" not in body
    cards = [served.get(f"/api/pair?a={row}&b=59")["a"]["picture"] for row in range(7)]
    assert cards == [True, False, False, False, False, False, False]


@pytest.mark.parametrize(
    "path",
    [
        *("/static/../server.py", "/static/%2e%2e/server.py", "/static/..%2fserver.py", "/static//etc/passwd"),
        *(
            "/picture/..",
            "/picture/-1",
            "/picture/60",
            "/picture/0x1",
            "/picture/inside.png",
            "/picture/%2e%2e%2fsecret.png",
        ),
    ],
)
def test_no_path_leads_out(served, path):
    status, _, body = served.request("GET", path)
    assert status in (400, 404)
    assert b"import" not in body
    assert b"root:" not in body


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"{", 400, "not valid JSON"),
        (b"[]", 400, "not a JSON object"),
        (b"{}", 409, "another table"),
        (b"x" * (2**20 + 1), 413, "more than 1048576 bytes"),
    ],
)
def test_bodies_without_sense(served, body, status, message):
    found, _, said = served.request("POST", "/api/entries", body, served.own_headers())
    assert found == status
    assert message in said.decode()


def test_what_the_session_refuses_is_said(served):
    status, _, body = served.request("POST", "/api/entries", entry(served, rows=[0, 0]), served.own_headers())
    assert (status, body) == (400, b"rows names a row twice: name each row once\n")
    status, _, body = served.request(
        "POST", "/api/entries", entry(served, entry="remove", rows=[8, 9]), served.own_headers()
    )
    assert (status, body) == (409, b"there is no link between these points any more\n")
    assert served.request("GET", "/api/find?id=p17")[2] == b'{"row":17}'
    assert served.request("GET", "/api/find?id=nobody")[0] == 404


# The token

TOKEN = "a-secret-token"
PRIVATE = ("/api/start", "/api/status", "/api/review", "/api/labels", "/picture/0", "/api/pair?a=0&b=1", "/nothing")


def test_nothing_of_the_table_is_shown_without_the_token(tmp_path):
    extra = {"picture": ["one.png"] * 60}
    (tmp_path / "one.png").write_bytes(b"\x89PNG")
    with Serving(write_points(tmp_path / "points.csv", extra=extra), TOKEN) as serving:
        table = serving.get("/api/start")["table"]
        body = json.dumps({"entry": "answer", "key": "k", "rows": [0, 1], "said": "same", "table": table})
        own = serving.own_headers()
        for wrong in ("", "none", TOKEN + "x", TOKEN[:-1], TOKEN.upper(), "\xe9"):
            for path in PRIVATE:
                for address in (path, path + ("&" if "?" in path else "?") + f"token={wrong.encode().hex()}"):
                    status, headers, said = serving.request("GET", address, headers={"X-Linkmix": wrong})
                    assert (status, "set-cookie" in headers) == (403, False), path
                    assert b"p1" not in said
            for path in ("/api/entries", "/api/question", "/api/finish"):
                assert serving.request("POST", path, body, own | {"X-Linkmix": wrong})[0] == 403
        assert serving.request("POST", "/api/entries", body, own | {"Origin": "http://evil.example"})[0] == 403
        assert serving.get("/api/status")["counts"]["same"] == 0
        assert serving.request("POST", "/api/entries", body, own)[0] == 200
        assert serving.request("GET", f"/picture/0?token={TOKEN}")[::2] == (200, b"\x89PNG")
        assert serving.request("GET", f"/api/status?token={TOKEN}")[0] == 403  # addresses are kept by browsers
        for path in ("/", "/static/main.js", "/palette.css"):  # the empty page is no secret
            assert serving.request("GET", path)[0] == 200
            assert serving.request("POST", path, body, own | {"X-Linkmix": ""})[0] == 403


def test_no_two_tokens_are_alike():
    tokens = {server.new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(len(token) >= 32 for token in tokens)


# Every name and port of this machine


@pytest.mark.parametrize("host", ["127.0.0.2", "localhost", "::1", "127.0.0.1"])
@pytest.mark.parametrize("token", [None, TOKEN])
def test_every_loopback_name_is_answered(tmp_path, host, token):
    with Serving(write_points(tmp_path / "points.csv"), token, host=host) as serving:
        table = serving.get("/api/start")["table"]
        said = {"entry": "answer", "key": "k", "rows": [0, 1], "said": "same", "table": table}
        assert serving.write(**said)[0] == 200


@pytest.mark.parametrize(
    ("host", "port", "scheme", "is_own"),
    [
        ("127.0.0.1", 80, "http", True),
        ("[::1]", 80, "http", True),
        ("localhost", 443, "https", True),
        ("LOCALHOST:8765", 8765, "http", True),
        ("127.0.0.1:80", 80, "http", True),
        ("127.0.0.1", 443, "http", False),
        ("localhost", 8765, "http", False),
        ("localhost.evil.example", 80, "http", False),
        ("127.0.0.1.evil.example:8765", 8765, "http", False),
        ("0.0.0.0:8765", 8765, "http", False),
        ("[::1]:8765:8765", 8765, "http", False),
        ("", 80, "http", False),
    ],
)
def test_names_of_this_machine(host, port, scheme, is_own):
    assert guard.is_own(host, port, scheme) == is_own


# Encrypted


def test_an_encrypted_connection(tmp_path):
    with Serving(write_points(tmp_path / "points.csv"), TOKEN, host="localhost", encrypted=True) as serving:
        table = serving.get("/api/start")["table"]
        said = {"entry": "answer", "key": "k", "rows": [0, 1], "said": "same", "table": table}
        plain = serving.own_headers() | {"Origin": f"http://localhost:{serving.port}"}
        assert serving.request("POST", "/api/entries", json.dumps(said), plain)[0] == 403
        assert serving.write(**said)[0] == 200
        plainly = http.client.HTTPConnection("localhost", serving.port, timeout=5)
        with suppress(OSError):
            plainly.request("GET", "/api/start", headers={"X-Linkmix": TOKEN})
        with pytest.raises((OSError, HTTPException)):
            plainly.getresponse()
        assert serving.get("/api/start")["table"] == table


def test_a_certificate_that_is_none_is_said(tmp_path):
    points = write_points(tmp_path / "points.csv")
    (tmp_path / "empty.pem").write_text("nothing")
    for given in (["empty.pem"], ["empty.pem", "--key", CERTIFICATE / "key.pem"]):
        result = command(points, "--port", 0, "--certificate", tmp_path / given[0], *given[1:])
        assert result.exit_code == 2
        assert "empty.pem" in result.output
        assert "--certificate and --key" in result.output
    result = command(points, "--port", 0, "--certificate", tmp_path / "none.pem")
    assert result.exit_code == 2
    assert "none.pem" in result.output
    result = command(points, "--port", 0, "--key", CERTIFICATE / "key.pem")
    assert "give --certificate as well" in result.output


def test_the_page_goes_without_a_token_on_this_machine_alone(tmp_path):
    result = command(write_points(tmp_path / "points.csv"), "--port", 0, "--host", "0.0.0.0", "--no-token")
    assert result.exit_code == 2
    assert "--no-token would open the page to everybody who can reach 0.0.0.0" in result.output


# Too much at once


def half_open(port, n, sent=b"GET / HTTP/1.1\r\nHost: x\r\n"):
    """Connections that begin a request and never end it."""
    found = []
    for _ in range(n):
        opened = socket.create_connection(("127.0.0.1", port), timeout=20)
        with suppress(ConnectionError):  # not encrypted, and already refused for it
            opened.sendall(sent)
        found.append(opened)
    return found


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET / HTTP/1.1\r\nHost: x\r\n", b"POST /api/entries HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"],
    ids=["nothing", "half a head", "half a body"],
)
@pytest.mark.parametrize("encrypted", [False, True])
def test_connections_that_say_nothing_keep_nobody_out(tmp_path, sent, encrypted):
    with Serving(write_points(tmp_path / "points.csv"), TOKEN, host="localhost", encrypted=encrypted) as serving:
        serving.host = "127.0.0.1"
        idle = half_open(serving.port, 600, sent)
        try:
            for _ in range(5):
                began = time.monotonic()
                assert serving.get("/api/start")["n_points"] == 60
                assert time.monotonic() - began < 5  # on a busy machine; benchmarks.label_server measures it
        finally:
            for opened in idle:
                opened.close()


def test_a_request_that_does_not_arrive_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.3)
    with label(X, 3, links=tmp_path / "links.csv", out=tmp_path / "out") as page:
        port = urlsplit(page.address).port
        for sent in (b"", b"GET / HTTP/1.1\r\nHost: x\r\n", b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n"):
            [opened] = half_open(port, 1, sent)
            with opened, suppress(ConnectionResetError):
                began = time.monotonic()
                while opened.recv(4096):  # perhaps a refusal, but then an end
                    pass
            assert time.monotonic() - began < 5
        [opened] = half_open(port, 1, b"")
        with opened, suppress(OSError):  # one byte at a time is no way around it
            began = time.monotonic()
            for letter in b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100:
                opened.sendall(bytes([letter]))
                time.sleep(0.05)
        assert time.monotonic() - began < 3


def test_a_page_that_is_used_stays_connected(tmp_path):
    """Idle connections are closed after silent ones, and those at work never."""
    with Serving(write_points(tmp_path / "points.csv"), TOKEN) as serving:
        kept = http.client.HTTPConnection("127.0.0.1", serving.port, timeout=20)
        for _ in range(3):
            kept.request("GET", "/api/start", headers={"X-Linkmix": TOKEN})
            kept.getresponse().read()
            socket_before = kept.sock
            idle = half_open(serving.port, 300)
            for opened in idle:
                opened.close()
            assert kept.sock is socket_before
        kept.close()


def test_few_files_are_enough():
    assert connections.limits(64) == (16, 32)
    assert connections.limits(2**20) == (256, 512)


@pytest.mark.parametrize(
    ("headers", "path", "status"),
    [
        ({"X-Long": "x" * 20_000}, "/", {400, 431}),
        ({f"X-{i}": "x" * 100 for i in range(90)}, "/", {200}),
        ({f"X-{i}": "x" * 1000 for i in range(30)}, "/", {400, 431}),
        ({}, "/?" + "x" * 20_000, {400, 431}),
    ],
)
def test_heads_have_a_limit(served, headers, path, status):
    assert served.request("GET", path, headers=headers)[0] in status


@pytest.mark.parametrize("depth", [50, 900, 5_000, 400_000])
@pytest.mark.parametrize("field", ["rows", "votes", "page", "kinds", "said", "annotator"])
def test_deep_requests_are_refused(served, depth, field):
    table = served.get("/api/start")["table"]
    body = f'{{"entry": "answer", "key": "k", "table": "{table}", "said": "same", "rows": [0, 1], '
    body += f'"{field}": {"[" * depth}{"]" * depth}}}'
    status, _, said = served.request("POST", "/api/entries", body, served.own_headers())
    assert status == 400, said
    assert len(said) < 1000


@pytest.mark.parametrize("number", ["9" * 400, "1e400", "-1e400", "NaN", "Infinity", "9" * 5000, "0." + "1" * 400])
@pytest.mark.parametrize("field", ["confidence", "rows", "colour", "key", "kinds"])
def test_numbers_without_sense_are_refused(served, number, field):
    table = served.get("/api/start")["table"]
    given = f"[{number}, 1]" if field == "rows" else number
    body = f'{{"entry": "answer", "key": "number", "table": "{table}", "said": "same", "rows": [0, 1], "page": "p", '
    body += f'"{field}": {given}}}'
    status, _, said = served.request("POST", "/api/entries", body, served.own_headers())
    if (field, number[:2]) in (
        ("confidence", "0."),
        *(("colour", start) for start in ("99", "1e", "-1", "Na", "In", "0.")),
    ):
        return  # a confidence, and a field that an answer does not have
    assert status == 400, said


# Pages


def test_a_question_is_opened_by_no_get(served):
    assert served.request("GET", "/api/question?page=x&kinds=pair")[0] == 405


@pytest.mark.parametrize("page", ["", "x" * 65, "a b", "é", "a/b", 5, None, ["a"], {"a": 1}])
def test_names_of_pages(served, page):
    table = served.get("/api/start")["table"]
    body = json.dumps({"page": page, "table": table})
    status, _, said = served.request("POST", "/api/question", body, served.own_headers())
    assert (status, said[:7]) == (400, b"page is")


def test_invented_pages_do_not_slow_an_honest_one(served):
    asked = served.question("honest")
    for number in range(300):
        served.question(f"invented-{number}")
    began = time.monotonic()
    served.get("/api/status?page=honest")
    again = served.question("honest")
    assert time.monotonic() - began < 1
    assert (asked["kind"], again["kind"]) == ("pair", "pair")


def test_a_flood_keeps_nobody_waiting(served):
    """Ten clients ask as quickly as they can; one more is answered. How soon, benchmarks.label_server measures."""
    done = threading.Event()
    table = served.get("/api/start")["table"]
    statuses = set()

    def flood(number):
        while not done.is_set():
            body = json.dumps({"page": f"flood-{number}", "kinds": ["pair", "which", "group"], "table": table})
            statuses.add(served.request("POST", "/api/question", body, served.own_headers())[0])

    threads = [threading.Thread(target=flood, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(0.5)
        for _ in range(5):
            began = time.monotonic()
            served.question("honest")
            served.get("/api/status")
            assert time.monotonic() - began < 10
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert statuses == {200}


def test_addresses_that_a_browser_can_open():
    with server.listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        assert server.address(listener, "127.0.0.1", None) == f"http://127.0.0.1:{port}/"
        assert server.address(listener, "::1", "t") == f"http://[::1]:{port}/#token=t"
        assert server.address(listener, "0.0.0.0", "t") == f"http://{socket.gethostname()}:{port}/#token=t"
        assert server.address(listener, "::1", "t", encrypted=True) == f"https://[::1]:{port}/#token=t"
        with pytest.raises(OSError, match="Address already in use"):
            server.listen("127.0.0.1", port)


# Nothing is lost


def test_two_servers_on_one_journal_are_refused(tmp_path):
    with (
        Serving(write_points(tmp_path / "points.csv")) as serving,
        pytest.raises(BadFile, match=r"links\.csv\.journal.*another linkmix"),
    ):
        Session(read_points(serving.points), 3, serving.links, tmp_path)


@pytest.mark.slow
def test_50_kills_at_random_moments_lose_no_answer_and_double_none(tmp_path):
    """A client answers, and repeats what was not acknowledged, while the server is killed and started again."""
    serving = Serving(write_points(tmp_path / "points.csv"))
    serving.links.write_text("a,b,kind\np0,p59,cannot\n")
    chance = random.Random(0)
    acknowledged, tried, undone = [], 0, set()
    done = threading.Event()
    with Session(read_points(serving.points), 3, tmp_path / "other.csv", tmp_path) as session:
        table = session.table

    def client():
        nonlocal tried
        pairs = ((a, b) for b in range(1, 59) for a in range(b))
        number = 0
        while not done.is_set():
            number += 1
            a, b = next(pairs)
            is_undo = number % 7 == 0
            said = {"entry": "undo"} if is_undo else {"entry": "answer", "rows": [a, b], "said": "same"}
            tried += 1
            while True:
                try:
                    status, _, body = serving.write(timeout=5, key=str(number), table=table, page="page", **said)
                except (OSError, HTTPException):
                    if done.is_set():
                        return
                    time.sleep(0.005)
                    continue
                if status == 409:  # it ends in good order, at the very end
                    return
                assert status == 200, body
                if is_undo:
                    undone.add(str(number - 1))
                acknowledged.append(str(number))
                break

    thread = threading.Thread(target=client)
    thread.start()
    try:
        for number in range(N_KILLS):
            serving.start(wait=False)
            before, end = len(acknowledged), time.monotonic() + 60
            if number % 2:  # in the middle of answers, however slow the machine is
                while len(acknowledged) == before:
                    assert time.monotonic() < end, "the server takes no answers"
                    time.sleep(0.001)
                time.sleep(chance.uniform(0.0, 0.1))
            else:  # at any time, also while it starts
                time.sleep(chance.uniform(0.0, 0.7))
            serving.kill()
            entries = serving.entries() if serving.journal.exists() else []
            written = [one["key"] for one in entries if "key" in one]
            assert len(written) == len(set(written))
        serving.start()
        serving.stop()
    finally:
        done.set()
        thread.join()
        if serving.process is not None:
            serving.kill()
    entries = serving.entries()
    keys = [one["key"] for one in entries if "key" in one]
    assert len(keys) == len(set(keys)), "an answer is doubled"
    assert set(acknowledged) <= set(keys), "an answer is lost"
    assert len(keys) <= tried
    assert keys == sorted(keys, key=int)
    assert len(acknowledged) >= N_KILLS // 2
    links = read_links(serving.links, read_points(serving.points).ids)
    record = fold(entries, IDS)
    assert links.cannot.tolist() == [[0, 59]]
    assert (
        links.n_must
        == len(record.said.links) - 1
        == sum(one["entry"] == "answer" for one in entries) - len([one for one in entries if one["entry"] == "undo"])
    )
    assert undone <= {one["of"] for one in entries if one["entry"] == "undo"}


# The command


def command(*arguments):
    from click.testing import CliRunner

    from linkmix.app.cli import main

    return CliRunner().invoke(main, ["label", *map(str, arguments)])


def test_the_command_says_what_is_wrong(tmp_path):
    points = write_points(tmp_path / "points.csv")
    with server.listen("127.0.0.1", 0) as listener:
        result = command(points, "--classes", 3, "--port", listener.getsockname()[1])
    assert result.exit_code == 2
    assert "Address already in use: choose another --port, or 0 for any that is free" in result.output
    result = command(points, "--classes", 61, "--port", 0)
    assert result.exit_code == 2
    assert "60 points cannot make 61 classes" in result.output
    (tmp_path / "points-links.csv").write_text("a,b,kind\np0,nobody,must\n")
    result = command(points, "--classes", 3, "--port", 0)
    assert result.exit_code == 2
    assert "'nobody' is not among the ids of the points" in result.output
    result = command(points, "--classes", 3, "--port", 0, "--id", "name")
    assert result.exit_code == 2
    assert "there is no column 'name'" in result.output


def test_a_file_of_links_that_cannot_be_written_is_said_and_loses_nothing(tmp_path):
    points = write_points(tmp_path / "points.csv")
    with Session(read_points(points), 3, tmp_path / "links.csv", tmp_path) as session:
        (tmp_path / "links.csv").mkdir()
        session.write({"entry": "answer", "key": "k", "rows": [0, 1], "said": "same"})
        end = time.monotonic() + 10
        while not session.status()["trouble"]:
            assert time.monotonic() < end
            time.sleep(0.05)
        assert "links.csv could not be written" in session.status()["trouble"]
        (tmp_path / "links.csv").rmdir()
    with Session(read_points(points), 3, tmp_path / "links.csv", tmp_path) as session:
        assert session.view.n_links == {"same": 1, "different": 0}
    assert "p0,p1,must" in (tmp_path / "links.csv").read_text()
