"""The pages and the data of a session, with a handler for each path."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from anyio.to_thread import current_default_thread_limiter
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from linkmix.app.label.cards import PICTURES
from linkmix.app.label.requests import MOST_TOGETHER, NotPossible, check_page, kinds_of
from linkmix.app.label.server.guard import refuse
from linkmix.app.label.session import Session
from linkmix.basics import palette
from linkmix.queries.questions import KINDS

STATIC = Path(__file__).parents[1] / "static"
LARGEST_BODY = 2**20
"""Maximum number of bytes in a request."""
N_THREADS = 8
"""Requests that are served at once. Others wait in the order in which they came, those of one page one by one."""


class Site:
    """The pages and the data of a session, with a handler for each path.

    Parameters
    ----------
    session : Session
        Takes the answers and gives the questions.
    title : str
        What the page is about: the name of the file of points.
    """

    def __init__(self, session: Session, title: str) -> None:
        self.session = session
        self._latest, self._pages = Latest(session), OneByOne()
        places, axes = session.cards.places()
        self._places = np.ascontiguousarray(places, dtype="<f4").tobytes()
        self._start = {
            "title": title,
            "links": session.links_path.name,
            "n_points": len(session.points.ids),
            "n_classes": session.n_classes,
            "n_colours": len(palette.MORE_COLOURS),
            "axes": axes,
            "table": session.table,
            "most_together": MOST_TOGETHER,
            "n_audit": session.n_audit,
            "noise": session.noise,
            "pictures": session.cards.picture_column is not None,
            "kinds": [*KINDS],
        }

    def application(self) -> Starlette:
        """All handlers as a web application that closes the session when it ends."""
        routes = [
            Route("/", self.page),
            Route("/palette.css", self.colours),
            Route("/plotly.js", self.plotly),
            Mount("/static", StaticFiles(directory=STATIC)),
            Route("/picture/{row}", self.picture),
            Route("/api/start", self.start),
            Route("/api/status", self.status),
            Route("/api/question", self.question, methods=["POST"]),
            Route("/api/labels", self.labels),
            Route("/api/places", self.places),
            Route("/api/pair", self.pair),
            Route("/api/find", self.find),
            Route("/api/classes", self.classes),
            Route("/api/members", self.members),
            Route("/api/card", self.card),
            Route("/api/review", self.review),
            Route("/api/entries", self.write, methods=["POST"]),
            Route("/api/finish", self.finish, methods=["POST"]),
        ]
        refusals = {ValueError: _bad_request, OverflowError: _bad_request}
        return Starlette(lifespan=self._lifespan, routes=routes, exception_handlers=refusals)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        current_default_thread_limiter().total_tokens = N_THREADS
        yield
        await run_in_threadpool(self.session.close)  # before the signal that ends the server ends the process

    def page(self, request: Request) -> Response:
        """The page itself."""
        return FileResponse(STATIC / "index.html")

    def colours(self, request: Request) -> Response:
        """The colours as style rules."""
        return Response(palette.css(), media_type="text/css")

    def plotly(self, request: Request) -> Response:
        """The script that draws the map."""
        headers = {"cache-control": "max-age=86400"}
        return FileResponse(plotly_script(), media_type="text/javascript", headers=headers)

    def picture(self, request: Request) -> Response:
        """The picture of a point."""
        file = self.session.cards.picture(self._row(request.path_params["row"]))
        if file is None:
            return refuse("there is no picture of this point in the folder of the table", 404)
        headers = {"content-security-policy": "default-src 'none'; sandbox"}
        return FileResponse(file, media_type=PICTURES[file.suffix.lower()], headers=headers)

    def start(self, request: Request) -> Response:
        """Facts that do not change during a session."""
        return JSONResponse(self._start)

    def status(self, request: Request) -> Response:
        """Progress and links; empty if the page has this version already."""
        if page := request.query_params.get("page"):
            self.session.hear(page)
        if request.query_params.get("have") == str(self.session.version):
            return Response(status_code=204)
        return self._latest("status", self.session.status)

    async def question(self, request: Request) -> Response:
        """The next question of a page, of one of the given kinds. This opens it, so it is no GET."""
        return await self._take(request, lambda given: {"question": self._question(given)})

    def labels(self, request: Request) -> Response:
        """The class of each point, as 16-bit integers."""
        return _binary(self.session.labels().astype("<i2").tobytes())

    def places(self, request: Request) -> Response:
        """The coordinates of all points on the map, as 32-bit floats; on demand in a projection that shows classes."""
        projection = request.query_params.get("projection", "points")
        if projection not in ("points", "classes"):
            raise ValueError(f"projection is {projection!r}: use points or classes")
        if projection == "points":
            return _binary(self._places)
        places, _ = self.session.cards.places(self.session.labels())
        return _binary(np.ascontiguousarray(places, dtype="<f4").tobytes())

    def pair(self, request: Request) -> Response:
        """Two points side by side."""
        a, b = (self._row(request.query_params.get(end, "")) for end in ("a", "b"))
        return JSONResponse(self.session.cards.pair(a, b))

    def classes(self, request: Request) -> Response:
        """The classes with their names, faces and what sets them apart."""
        return self._latest("classes", self.session.view.classes)

    def members(self, request: Request) -> Response:
        """Typical or doubtful members of a class."""
        given = request.query_params
        label, n = _number("label", given.get("label", "")), _number("n", given.get("n", "12"))
        return JSONResponse(self.session.view.members(label, given.get("kind", "typical"), n))

    def card(self, request: Request) -> Response:
        """A point with its class."""
        return JSONResponse(self.session.view.card(self._row(request.query_params.get("row", ""))))

    def review(self, request: Request) -> Response:
        """Links worth a second look, and disagreements."""
        return self._latest("review", self.session.view.review)

    def find(self, request: Request) -> Response:
        """The row of an id."""
        row = self.session.row_of(request.query_params.get("id", ""))
        return refuse("there is no point with this id", 404) if row is None else JSONResponse({"row": row})

    async def write(self, request: Request) -> Response:
        """Record an answer, an undo, or another entry of the journal."""
        return await self._take(request, self._write)

    async def finish(self, request: Request) -> Response:
        """Write the results."""
        return await self._take(request, lambda given: self.session.finish(given.get("key")))

    async def _take(self, request: Request, serve: Callable[[dict[str, Any]], dict[str, Any]]) -> Response:
        """Read a request that changes something, check it, and serve it in a thread."""
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > LARGEST_BODY:
                return refuse(f"the request has more than {LARGEST_BODY} bytes: send a smaller one", 413)
        try:
            given = json.loads(body)
        except (ValueError, RecursionError):  # no JSON, no text, a number of thousands of digits, or too deep
            return refuse("the request is not valid JSON, or too deep", 400)
        if not isinstance(given, dict):
            return refuse("the request is not a JSON object", 400)
        if given.get("table") != self.session.table:
            return refuse("the server has another table of points now: reload the page", 409)
        try:
            async with self._pages.turn(given.get("page")):
                return JSONResponse(await run_in_threadpool(serve, given))
        except NotPossible as error:
            return refuse(str(error), 409)
        except ValueError as error:
            return refuse(str(error), 400)
        except OSError as error:
            return refuse(f"it could not be saved: {error.strerror}", 507)

    def _write(self, request: dict[str, Any]) -> dict[str, Any]:
        kinds_of(request)  # whatever is wrong is said before anything is written
        undone = self.session.write(request)
        said: dict[str, Any] = {"key": request["key"], "version": self.session.version}
        if undone is not None:
            said["undone"] = {name: undone.get(name) for name in ("entry", "ids", "said")}
        if request.get("page") is not None:
            said["question"] = self._question(request)
        return said

    def _question(self, request: dict[str, Any]) -> dict[str, Any] | None:
        return self.session.question(check_page(request.get("page")), kinds_of(request))

    def _row(self, given: str) -> int:
        n = len(self.session.points.ids)
        if not (given.isascii() and given.isdigit() and len(given) < 12 and int(given) < n):
            raise ValueError(f"there is no row {given!r}: rows are numbered from 0 to {n - 1}")
        return int(given)


class OneByOne:
    """Lets the requests of each page wait for each other, so that one page takes no time of the others."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def turn(self, page: Any) -> AsyncIterator[None]:
        """Wait for the requests of this page that came before; without a page, for none."""
        if not isinstance(page, str):
            yield
            return
        lock, n = self._locks.get(page, (asyncio.Lock(), 0))
        self._locks[page] = (lock, n + 1)
        try:
            async with lock:
                yield
        finally:
            lock, n = self._locks.pop(page)
            if n > 1:
                self._locks[page] = (lock, n - 1)


class Latest:
    """What pages show, computed once for each version of the session, however many ask for it.

    Parameters
    ----------
    session : Session
        The session.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._found: dict[str, tuple[int, bytes]] = {}
        self._locks: dict[str, threading.Lock] = {}

    def __call__(self, name: str, compute: Callable[[], dict[str, Any]]) -> Response:
        """The latest of this name, as JSON."""
        with self._locks.setdefault(name, threading.Lock()):
            version = self._session.version
            found = self._found.get(name)
            if found is None or found[0] != version:
                found = self._found[name] = (version, bytes(JSONResponse(compute()).body))
        return Response(found[1], media_type="application/json")


def plotly_script() -> Path:
    """The script that the plotly package contains."""
    found = find_spec("plotly")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("No module named 'plotly'", name="plotly")
    return Path(found.origin).parent / "package_data" / "plotly.min.js"


def _number(name: str, given: str) -> int:
    if not (given.isascii() and given.isdigit() and len(given) < 12):
        raise ValueError(f"{name} is {given!r}: give a number")
    return int(given)


def _binary(content: bytes) -> Response:
    return Response(content, media_type="application/octet-stream")


async def _bad_request(request: Request, error: Exception) -> Response:
    return refuse(str(error), 400)
