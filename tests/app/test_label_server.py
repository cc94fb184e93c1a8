import json
import random
import socket
import threading
import time
from http.client import HTTPException

import pytest

from label_serving import IDS, Serving, write_points
from linkmix.app.label import server
from linkmix.app.label.answers import fold
from linkmix.app.label.session import Session
from linkmix.basics.errors import BadFile
from linkmix.tables import read_links, read_points

N_KILLS = 50


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


@pytest.mark.parametrize("path", ["/", "/api/status", "/api/question?page=x", "/picture/0", "/static/main.js"])
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


def test_nothing_is_shown_without_the_token(tmp_path):
    token = "a-secret-token"
    serving = Serving(write_points(tmp_path / "points.csv"), token)
    with serving:
        cookie = None
        for path in ("/", "/api/start", "/api/question?page=x", "/static/main.js", "/?token=", "/?token=another"):
            status, headers, body = serving.request("GET", path)
            assert (status, "set-cookie" in headers) == (403, False), path
            assert b"p1" not in body
        status, headers, _ = serving.request("GET", f"/?token={token}", headers={"Host": "any.name:1"})
        cookie = headers["set-cookie"]
        assert (status, headers["location"]) == (303, "/")
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        known = {"Cookie": cookie.partition(";")[0]}
        assert serving.request("GET", "/api/start", headers=known)[0] == 200
        assert serving.request("GET", "/api/start", headers={"Cookie": known["Cookie"] + "x"})[0] == 403
        table = json.loads(serving.request("GET", "/api/start", headers=known)[2])["table"]
        body = json.dumps({"entry": "answer", "key": "k", "rows": [0, 1], "said": "same", "table": table})
        assert serving.request("POST", "/api/entries", body, serving.own_headers())[0] == 403
        foreign = {"Origin": "http://evil.example"}
        assert serving.request("POST", "/api/entries", body, serving.own_headers() | known | foreign)[0] == 403
        assert serving.request("POST", "/api/entries", body, serving.own_headers() | known)[0] == 200


def test_only_this_machine_goes_without_a_token():
    assert [server.new_token(host) for host in ("127.0.0.1", "localhost", "::1", "127.8.8.8")] == [None] * 4
    tokens = {server.new_token(host) for host in ("0.0.0.0", "::", "192.168.1.7", "some.name") for _ in range(3)}
    assert len(tokens) == 12
    assert all(len(token) >= 32 for token in tokens)


def test_addresses_that_a_browser_can_open():
    with server.listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        assert server.address(listener, "127.0.0.1", None) == f"http://127.0.0.1:{port}/"
        assert server.address(listener, "::1", "t") == f"http://[::1]:{port}/?token=t"
        assert server.address(listener, "0.0.0.0", "t") == f"http://{socket.gethostname()}:{port}/?token=t"
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
