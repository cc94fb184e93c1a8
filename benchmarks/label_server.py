"""The server of the labelling page: ``python -m benchmarks.label_server --points 100000`` and ``--kills 200``.

``--half-open 1100``, ``--pages 1000`` and ``--flood 20`` measure how long an honest page waits while connections are
opened that say nothing, while questions are asked for in the name of pages that do not exist, and while so many clients
answer as quickly as they can.

Measures, without a browser: the time from an answer to the next question while the model is refitted, the time of what
else a page asks for, and time and memory of a finish. With ``--kills`` it kills the server at random moments instead,
also while it writes results, and checks after each new start that no confirmed entry is lost, that the results in the
folder are of one model, and that the page shows what is in the files that a finish writes.
"""

import argparse
import http.client
import json
import multiprocessing
import random
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.label_page import CLASSES, write_table
from linkmix.basics.journal import entries_in

PROCESSES = multiprocessing.get_context("forkserver")
"""Children are forked from a process that has imported everything, so that many starts take seconds."""
KINDS = ["pair", "which", "group"]
TOKEN = "a-token-of-the-benchmark"
FILES = 1024
"""Files that the server may open while others open connections."""


def run(points: Path, folder: Path, port: int, n_classes: int | None) -> None:
    """Serve a table, in a process of its own."""
    from linkmix.app.label import server
    from linkmix.app.label.session import Session
    from linkmix.app.results import Origin
    from linkmix.tables import read_points

    listener = server.listen("127.0.0.1", port)
    options: dict[str, Any] = {"out": folder / "out", "origin": Origin(points)}
    session = Session(read_points(points, "id"), n_classes, folder / "links.csv", folder, **options)
    server.serve(session, points.name, listener, token=TOKEN)


class Client:
    """Speaks with a server as a page does.

    Attributes
    ----------
    confirmed : list of str
        Keys of the entries that the server has confirmed.
    """

    def __init__(self, points: Path, folder: Path, n_classes: int | None = None) -> None:
        with socket.socket() as opened:
            opened.bind(("127.0.0.1", 0))
            self.port = opened.getsockname()[1]
        self.folder, self._arguments = folder, (points, folder, self.port, n_classes)
        self.confirmed: list[str] = []
        self._number = 0

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        self.process = PROCESSES.Process(target=run, args=self._arguments)
        self.process.start()
        end = time.monotonic() + 120
        while True:
            try:
                self.table = self.get("/api/start")["table"]
                return
            except OSError:
                if not self.process.is_alive() or time.monotonic() > end:
                    raise RuntimeError("the server did not start") from None
                time.sleep(0.02)

    def kill(self) -> None:
        """Kill the server, whatever it is doing."""
        self.process.kill()
        self.process.join()

    def memory(self) -> float:
        """The most memory that the server has had, in megabytes."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))

    def request(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, bytes]:
        """Send a request; returns its status and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        own = {"Origin": f"http://127.0.0.1:{self.port}", "X-Linkmix": TOKEN}
        headers = {**own, "Content-Type": "application/json"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            reply = connection.getresponse()
            return reply.status, reply.read()
        except http.client.HTTPException as error:
            raise OSError(str(error)) from None
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        """What is at a path, from JSON."""
        status, body = self.request("GET", path)
        if status != 200:
            raise RuntimeError(f"{path}: {status} {body.decode()}")
        return json.loads(body)

    def post(self, path: str, **fields: Any) -> tuple[int, Any]:
        """Send an entry, or ask for a finish; 409 means that it is not possible now."""
        self._number += 1
        key = f"{self._number}-{random.getrandbits(60)}"
        status, body = self.request("POST", path, {"key": key, "table": self.table, **fields})
        if status == 200 and path == "/api/entries":
            self.confirmed.append(key)
        if status not in (200, 409):
            raise RuntimeError(f"{fields}: {status} {body.decode()}")
        return status, json.loads(body) if status == 200 else body.decode()

    def question(self, page: str) -> Any:
        """The question of a page."""
        return self.post("/api/question", page=page, kinds=KINDS)[1]["question"]

    def settled(self) -> dict[str, Any]:
        """The status, once no refit runs."""
        while True:
            status = self.get("/api/status")
            if not status["fitting"]:
                time.sleep(0.05)
                again = self.get("/api/status")
                if not again["fitting"] and again["refits"] == status["refits"]:
                    return again
            time.sleep(0.02)

    def labels(self) -> np.ndarray:
        """The labels that the page shows."""
        return np.frombuffer(self.request("GET", "/api/labels")[1], dtype="<i2")


def answered(question: dict[str, Any], class_of: Any) -> dict[str, Any]:
    """The right reply to a question."""
    if question["kind"] == "pair":
        rows = [question[end]["row"] for end in ("a", "b")]
        return {"entry": "answer", "rows": rows, "said": "same" if len({*map(class_of, rows)}) == 1 else "different"}
    first = question["row" if question["kind"] == "which" else "anchor"]["row"]
    cards = [card["row"] for card in question["cards"]]
    same = [card for card in cards if class_of(card) == class_of(first)]
    if question["kind"] == "which":
        return {"entry": "which", "rows": [first, *cards], "like": same}
    return {"entry": "group", "rows": [first, *cards], "out": [card for card in cards if card not in same]}


@contextmanager
def serving(n_points: int, n_classes: int | None = None) -> Iterator[Client]:
    """A server over a table of five classes."""
    folder = Path(tempfile.mkdtemp())
    write_table(folder / "points.parquet", n_points)
    PROCESSES.set_forkserver_preload(["linkmix.app.label.server", "linkmix.search", "pyarrow.parquet"])
    client = Client(folder / "points.parquet", folder, n_classes)
    client.start()
    try:
        yield client
    finally:
        client.kill()
        shutil.rmtree(folder)


def measure(n_points: int, n_answers: int) -> None:
    """Measure, and print one table."""
    with serving(n_points) as client:
        times: dict[str, list[float]] = {}
        fitting = []

        def timed(what: str, ask: Any) -> Any:
            began = time.perf_counter()
            found = ask()
            times.setdefault(what, []).append(1000 * (time.perf_counter() - began))
            return found

        question = client.question("p")
        for _ in range(n_answers):
            reply = answered(question, lambda row: row % CLASSES)
            sent = timed(
                "answer to next question", partial(client.post, "/api/entries", page="p", kinds=KINDS, **reply)
            )
            question = sent[1]["question"]
            if question is None:
                break
            fitting.append(timed("status", lambda: client.get("/api/status"))["fitting"])
            timed("classes", lambda: client.get("/api/classes"))
            for kind in ("typical", "doubtful"):
                timed(f"{kind} members", partial(client.get, f"/api/members?label=0&kind={kind}&n=12"))
            timed("card", lambda: client.get("/api/card?row=5"))
            timed("review", lambda: client.get("/api/review"))
            time.sleep(0.15)
        print(f"{n_points:,} points, {len(fitting)} questions of all kinds\n")
        print(f"{'':30}{'median':>10}{'95 %':>10}{'longest':>10}")
        for what, found in times.items():
            print(f"{what:30}" + "".join(f"{value:7.0f} ms" for value in np.percentile(found, [50, 95, 100])))
        client.settled()
        timed("map of the classes", lambda: client.request("GET", "/api/places?projection=classes"))
        print(f"{'map of the classes':30}{times['map of the classes'][0]:7.0f} ms")
        before = client.memory()
        began = time.perf_counter()
        client.post("/api/finish")
        print(f"{'finish':30}{time.perf_counter() - began:7.1f} s")
        print(f"{'memory before, and with it':30}{before:7.0f} and {client.memory():.0f} MB")
        print(f"a refit ran {100 * np.mean(fitting):.0f} % of the time")


def torture(n_kills: int, n_points: int = 300, seed: int = 0, *, told: bool = True) -> dict[str, int]:
    """Kill the server at random moments, and check what is there after each new start.

    Returns
    -------
    dict
        How many entries and finishes were confirmed, and how often a kill came during a finish.
    """
    chance = random.Random(seed)
    counts = {"kills": 0, "entries": 0, "finishes": 0, "kills while finishing": 0}
    with serving(n_points) as client:
        for kill in range(n_kills):
            state = {"finishing": False, "finishes": 0}
            doing = finish_on if kill % 2 else disturb
            worker = threading.Thread(target=doing, args=(client, random.Random(chance.random()), state))
            worker.start()
            time.sleep(chance.uniform(0, 1.5))
            counts["kills while finishing"] += state["finishing"]
            client.kill()
            worker.join()
            counts["finishes"] += state["finishes"]
            client.start()
            check(client)
            counts["kills"] += 1
            if told and (kill + 1) % 20 == 0:
                print(f"{kill + 1} kills: {len(client.confirmed)} entries, {counts['finishes']} finishes", flush=True)
        counts["entries"] = len(client.confirmed)
    return counts


def waits(client: Client, page: str, n: int = 30) -> list[float]:
    """Milliseconds that a page waits: for its news, for its question, and from an answer to the next question."""
    found = []
    for _ in range(n):
        for ask in (
            lambda: client.get(f"/api/status?page={page}"),
            lambda: client.question(page),
            lambda: client.post(
                "/api/entries", page=page, kinds=KINDS, **answered(client.question(page), lambda row: row % CLASSES)
            ),
        ):
            began = time.perf_counter()
            ask()
            found.append(1000 * (time.perf_counter() - began))
    return found


def tell(what: str, found: list[float]) -> None:
    """Print a line of the table."""
    print(f"{what:50}" + "".join(f"{value:7.0f} ms" for value in np.percentile(found, [50, 95, 100])), flush=True)


def crowd(n_points: int, half_open: int, n_pages: int, n_flood: int) -> None:
    """Measure how long an honest page waits while others do their worst, and print one table."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, most))  # what most systems give to a process
    print(f"{n_points:,} points, {FILES} files\n\n{'':50}{'median':>10}{'95 %':>10}{'longest':>10}")
    with serving(n_points, CLASSES) as client:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        client.settled()
        tell("a page alone", waits(client, "honest"))
        if half_open:
            opened = []
            began = time.perf_counter()
            for _ in range(half_open):
                one = socket.create_connection(("127.0.0.1", client.port), timeout=20)
                one.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
                opened.append(one)
            seconds = time.perf_counter() - began
            tell(f"after {half_open} half-open connections in {seconds:.1f} s", waits(client, "honest"))
            for one in opened:
                one.close()
        if n_pages:
            for number in range(n_pages):
                client.question(f"invented-{number}")
            tell(f"after {n_pages} invented pages", waits(client, "honest"))
        if n_flood:
            done = PROCESSES.Event()
            flooders = [PROCESSES.Process(target=flood, args=(client.port, number, done)) for number in range(n_flood)]
            for one in flooders:
                one.start()
            time.sleep(3)
            before = client.get("/api/status")["counts"]
            began = time.perf_counter()
            tell(f"while {n_flood} clients answer all the time", waits(client, "honest", 10))
            rate = (sum(client.get("/api/status")["counts"].values()) - sum(before.values())) / (
                time.perf_counter() - began
            )
            print(f"{'  answers a second':50}{rate:7.0f}")
            done.set()
            for one in flooders:
                one.join()


def flood(port: int, number: int, done: Any) -> None:
    """Answer as quickly as possible, in a process of its own."""
    client = Client(Path(), Path())
    client.port = port
    client.table = client.get("/api/start")["table"]
    while not done.is_set():
        question = client.question(f"flood-{number}")
        if question is None:
            client.post("/api/entries", entry="undo", page=f"flood-{number}")
        else:
            said = answered(question, lambda row: row % CLASSES)
            client.post("/api/entries", page=f"flood-{number}", kinds=KINDS, **said)


def disturb(client: Client, chance: random.Random, state: dict[str, Any]) -> None:
    """Say all kinds of things, and finish now and then, until the server is gone."""
    try:
        while True:
            if chance.random() < 0.08:
                state["finishing"] = True
                state["finishes"] += client.post("/api/finish")[0] == 200
                state["finishing"] = False
                continue
            if chance.random() < 0.2:
                face = chance.choice(client.get("/api/classes")["classes"])["face"]
                name = chance.choice(["cats", "dogs", "birds", None])
                client.post("/api/entries", entry="name", rows=[face["row"]], name=name)
                continue
            if chance.random() < 0.1:
                client.post("/api/entries", entry="undo")
                continue
            question = client.question("p")
            if question is None:
                client.post("/api/entries", entry="undo")
            else:
                client.post("/api/entries", page="p", **answered(question, lambda row: row % CLASSES))
    except (OSError, ValueError):
        return


def finish_on(client: Client, chance: random.Random, state: dict[str, Any]) -> None:
    """Finish again and again, with other names, until the server is gone: most of the time files are being written."""
    try:
        while True:
            face = chance.choice(client.get("/api/classes")["classes"])["face"]
            client.post("/api/entries", entry="name", rows=[face["row"]], name=f"name {chance.random()}")
            client.settled()
            state["finishing"] = True
            state["finishes"] += client.post("/api/finish")[0] == 200
            state["finishing"] = False
    except (OSError, ValueError):
        return


def check(client: Client) -> None:
    """Raise an AssertionError if something is lost, torn, or not what the page shows."""
    journal = entries_in(client.folder / "links.csv.journal")
    keys = [entry["key"] for entry in journal if "key" in entry]
    assert len(keys) == len(set(keys)), "an entry is there twice"
    assert set(keys) >= set(client.confirmed), "a confirmed entry is lost"
    out = client.folder / "out"
    if out.exists():
        there = {path.name for path in out.iterdir() if not path.name.startswith("earlier-")}
        assert there in (set(), {"labels.csv", "model.linkmix", "report.html", "links.csv"}), there
        if there:
            in_one_piece(out)
    status = client.settled()
    last = next((entry["entry"] for entry in reversed(journal) if entry["entry"] != "wrote"), None)
    is_shown = last == "finished"
    if is_shown and (out / "labels.csv").exists() and status["finished"] is not None:
        assert written(out) == shown(client), "the page does not show what was finished"
    reply, result = client.post("/api/finish")
    assert reply == 200, result
    assert written(out) == shown(client), "the page does not show what finish wrote"
    in_one_piece(out)
    shutil.rmtree(out / "earlier-1", ignore_errors=True)


def written(out: Path) -> list[str]:
    """The labels in the file."""
    return [line.split(",")[1] for line in (out / "labels.csv").read_text().splitlines()[1:]]


def shown(client: Client) -> list[str]:
    """The labels that the page shows, by name if there are names."""
    from linkmix.app.results import every_name

    found = client.get("/api/status")
    names = {int(m): name for m, name in found["names"].items()}
    every = every_name(names, found["n_classes"])
    return [every[m] if names else str(m) for m in client.labels().tolist()]


def in_one_piece(out: Path) -> None:
    """Check that labels, model and report are of one model."""
    from linkmix.search import AutoLinkMixture

    model = AutoLinkMixture.load(out / "model.linkmix")
    assert [str(label) for label in model.labels_.tolist()] == written(out), "labels and model differ"
    report = (out / "report.html").read_text()
    assert all(str(name) in report for name in model.classes_.tolist()), "the report is of another model"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--answers", type=int, default=100)
    parser.add_argument("--kills", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--half-open", type=int, default=0)
    parser.add_argument("--pages", type=int, default=0)
    parser.add_argument("--flood", type=int, default=0)
    given = parser.parse_args()
    if given.half_open or given.pages or given.flood:
        crowd(given.points, given.half_open, given.pages, given.flood)
    elif given.kills is None:
        measure(given.points, given.answers)
    else:
        print(torture(given.kills, seed=given.seed))
