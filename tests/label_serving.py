"""A labelling server in a process of its own, that can be killed and started again."""

import http.client
import json
import multiprocessing
import socket
import ssl
import time
from pathlib import Path

import numpy as np

from linkmix.app.label import server
from linkmix.app.label.session import Session
from linkmix.app.results import Origin
from linkmix.basics.journal import entries_in
from linkmix.tables import read_points

# Children are forked from a process that has imported everything, so that 50 starts take seconds.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["pytest", "linkmix.app.label.server"])

IDS = [f"p{i}" for i in range(60)]
"""Ids of the points that `write_points` writes."""


def write_points(path: Path, n_each: int = 20, extra: dict[str, list[str]] | None = None) -> Path:
    """Three round classes; ids p0, p1, ... and the class is the id divided by ``n_each``."""
    X = np.concatenate([np.random.default_rng(0).normal(size=(n_each, 2)) + 6 * k for k in range(3)]).round(3)
    columns = {"id": [f"p{i}" for i in range(len(X))], "x": X[:, 0].tolist(), "y": X[:, 1].tolist(), **(extra or {})}
    lines = [",".join(columns)]
    lines += [
        ",".join('"' + str(value).replace('"', '""') + '"' for value in row)
        for row in zip(*columns.values(), strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return opened.getsockname()[1]


CERTIFICATE = Path(__file__).parent / "app" / "certificate"
"""Folder with a certificate for localhost that signed itself, and its key; valid for a hundred years."""


def run(
    points: Path, links: Path, host: str, port: int, token: str | None, encrypted: bool, wrong: float, noise: bool
) -> None:
    listener = server.listen(host, port)
    session = Session(read_points(points), 3, links, points.parent, origin=Origin(points), wrong=wrong, noise=noise)
    tls = server.tls_context(CERTIFICATE / "certificate.pem", CERTIFICATE / "key.pem") if encrypted else None
    server.serve(session, points.name, listener, token=token, tls=tls)


class Serving:
    """A server over a table, with its links beside it."""

    def __init__(
        self,
        points: Path,
        token: str | None = None,
        wrong: float = 0.0,
        noise: bool = False,
        *,
        host: str = "127.0.0.1",
        encrypted: bool = False,
        run=run,
    ):
        self.points, self.host, self.encrypted, self.run = points, host, encrypted, run
        self.links = points.with_name("links.csv")
        self.journal = points.with_name("links.csv.journal")
        self.token, self.wrong, self.noise = token, wrong, noise
        self.port = free_port()
        name = f"[{host}]" if ":" in host else host
        self.url = f"{'https' if encrypted else 'http'}://{name}:{self.port}/"
        self.process = None

    def start(self, wait: bool = True) -> None:
        place = (self.host, self.port, self.token, self.encrypted)
        self.process = PROCESSES.Process(
            target=self.run, args=(self.points, self.links, *place, self.wrong, self.noise)
        )
        self.process.start()
        end = time.monotonic() + 60
        while wait:
            try:
                self.request("GET", "/api/start")
                return
            except OSError:
                assert self.process.is_alive(), "the server did not start"
                assert time.monotonic() < end, "the server does not answer"
                time.sleep(0.02)

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.process.close()
        self.process = None

    def stop(self) -> None:
        """Ask it to end, as Ctrl-C does."""
        if self.process is not None:
            self.process.terminate()
            self.process.join(20)
            assert self.process.exitcode is not None, "the server did not end"
            self.process.close()
            self.process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exception):
        self.stop()

    def request(self, method, path, body=None, headers=None, timeout=20):
        if self.encrypted:
            trusted = ssl.create_default_context(cafile=CERTIFICATE / "certificate.pem")
            connection = http.client.HTTPSConnection(self.host, self.port, timeout=timeout, context=trusted)
        else:
            connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        try:
            connection.request(method, path, body, headers or {})
            reply = connection.getresponse()
            return reply.status, dict(reply.getheaders()), reply.read()
        finally:
            connection.close()

    def own_headers(self) -> dict[str, str]:
        """What the page itself sends with a request that writes."""
        own = {"Origin": self.url.rstrip("/"), "Content-Type": "application/json"}
        return own | {"X-Linkmix": self.token or "none"}

    def write(self, timeout=20, **entry):
        return self.request("POST", "/api/entries", json.dumps(entry), self.own_headers(), timeout)

    def question(self, page, *kinds):
        """The question of a page."""
        body = json.dumps({"page": page, "kinds": kinds or ["pair"], "table": self.get("/api/start")["table"]})
        status, _, body = self.request("POST", "/api/question", body, self.own_headers())
        assert status == 200, body
        return json.loads(body)["question"]

    def get(self, path):
        status, _, body = self.request("GET", path, headers={"X-Linkmix": self.token or "none"})
        assert status == 200, body
        return json.loads(body)

    def entries(self) -> list[dict]:
        """The journal, as the next start would see it."""
        return entries_in(self.journal)
