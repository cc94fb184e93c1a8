"""The web server around a labelling session, and the only module that knows about HTTP."""

import ipaddress
import json
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from linkmix.app.label.cards import PICTURES
from linkmix.app.label.requests import MOST_TOGETHER, NotPossible
from linkmix.app.label.session import Session
from linkmix.plots import palette
from linkmix.queries.questions import KINDS, Kind

STATIC = Path(__file__).parent / "static"
LARGEST_BODY = 2**20
"""Maximum number of bytes in a request."""
HEADER = "x-linkmix"
"""Requests that write need this header; another site cannot send it without a preflight request, which is refused."""
SWITCH_INTERVAL = 0.0005
"""Seconds that a refit holds the interpreter while a request waits; Python's default is ten times as long."""
# Plotly adds inline style rules to the page; scripts are served from our own files only.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Guard:
    """Passes on requests that come from the page itself, and refuses all others.

    Parameters
    ----------
    app : ASGI application
        The application to guard.
    token : str or None
        Secret that the address must contain. Without one, the address must be a loopback address.
    port : int
        The port of the server.
    """

    def __init__(self, app: ASGIApp, token: str | None, port: int) -> None:
        self.app = app
        self.token = token
        self.cookie = f"linkmix-{port}"
        self.own = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = self.refusal(scope)

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("content-security-policy", POLICY)
                headers.setdefault("cache-control", "no-store")
                headers["x-content-type-options"] = "nosniff"
                headers["referrer-policy"] = "no-referrer"
                headers["cross-origin-resource-policy"] = "same-origin"
                headers["cross-origin-opener-policy"] = "same-origin"
            await send(message)

        await (refusal or self.app)(scope, receive, sealed)

    def refusal(self, scope: Scope) -> Response | None:
        """The response that refuses a request; None if it may pass."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self.token is None:
            if host.lower() not in self.own:  # another name for this machine: DNS rebinding
                return _refuse(f"this page is not at {host!r}: use the address that linkmix label printed", 421)
        elif not self._is_known(Request(scope)):
            given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
            if not _same(given, self.token):
                return _refuse("the token is missing or wrong: use the whole address that linkmix label printed", 403)
            response = RedirectResponse("/", 303)  # removes the token from the address bar and the history
            response.set_cookie(self.cookie, self.token, httponly=True, samesite="strict")
            return response
        if scope["method"] in ("GET", "HEAD"):
            return None
        # All other methods could write.
        if headers.get("origin") != f"http://{host}" or headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return _refuse("this request comes from another page: use the page that linkmix label opened", 403)
        if HEADER not in headers or headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return _refuse(f"a request that writes must be JSON and have the header {HEADER}", 415)
        return None

    def _is_known(self, request: Request) -> bool:
        return _same(request.cookies.get(self.cookie, ""), self.token or "")


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
            Route("/api/question", self.question),
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
        return Starlette(lifespan=self._lifespan, routes=routes, exception_handlers={ValueError: _bad_request})

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
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
        return FileResponse(_plotly(), media_type="text/javascript", headers=headers)

    def picture(self, request: Request) -> Response:
        """The picture of a point."""
        file = self.session.cards.picture(self._row(request.path_params["row"]))
        if file is None:
            return _refuse("there is no picture of this point in the folder of the table", 404)
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
        return JSONResponse(self.session.status())

    def question(self, request: Request) -> Response:
        """The next question, of one of the given kinds."""
        kinds = _kinds(request.query_params.get("kinds", "pair").split(","))
        return JSONResponse({"question": self.session.question(request.query_params.get("page", ""), kinds)})

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
        return JSONResponse(self.session.view.classes())

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
        return JSONResponse(self.session.view.review())

    def find(self, request: Request) -> Response:
        """The row of an id."""
        row = self.session.row_of(request.query_params.get("id", ""))
        return _refuse("there is no point with this id", 404) if row is None else JSONResponse({"row": row})

    async def write(self, request: Request) -> Response:
        """Record an answer, an undo, or another entry of the journal."""
        return await self._take(request, self._write)

    async def finish(self, request: Request) -> Response:
        """Write the results."""
        return await self._take(request, lambda given: self.session.finish(given.get("key")))

    async def _take(self, request: Request, serve: Callable[[dict[str, Any]], dict[str, Any]]) -> Response:
        """Read a request that writes, check it, and serve it in a thread."""
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > LARGEST_BODY:
                return _refuse(f"the request has more than {LARGEST_BODY} bytes: send a smaller one", 413)
        try:
            given = json.loads(body)
        except ValueError:
            return _refuse("the request is not valid JSON", 400)
        if not isinstance(given, dict):
            return _refuse("the request is not a JSON object", 400)
        if given.get("table") != self.session.table:
            return _refuse("the server has another table of points now: reload the page", 409)
        try:
            return JSONResponse(await run_in_threadpool(serve, given))
        except NotPossible as error:
            return _refuse(str(error), 409)
        except ValueError as error:
            return _refuse(str(error), 400)
        except OSError as error:
            return _refuse(f"it could not be saved: {error.strerror}", 507)

    def _write(self, request: dict[str, Any]) -> dict[str, Any]:
        undone = self.session.write(request)
        said: dict[str, Any] = {"key": request["key"], "version": self.session.version}
        if undone is not None:
            said["undone"] = {name: undone.get(name) for name in ("entry", "ids", "said")}
        if isinstance(page := request.get("page"), str):
            kinds = request.get("kinds")
            said["question"] = self.session.question(page, _kinds(kinds if isinstance(kinds, list) else ["pair"]))
        return said

    def _row(self, given: str) -> int:
        n = len(self.session.points.ids)
        if not (given.isascii() and given.isdigit() and len(given) < 12 and int(given) < n):
            raise ValueError(f"there is no row {given!r}: rows are numbered from 0 to {n - 1}")
        return int(given)


def listen(host: str, port: int) -> socket.socket:
    """Open a socket that listens at an address.

    Parameters
    ----------
    host : str
        Name or address of this machine.
    port : int
        A port; 0 for any free one.

    Returns
    -------
    socket

    Raises
    ------
    OSError
        If the port is in use or the address is not this machine's.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    opened = socket.socket(family, kind, protocol)
    try:
        if sys.platform != "win32":
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # allows a restart right after a crash
        opened.bind(address)
        opened.listen(128)
    except OSError:
        opened.close()
        raise
    return opened


def is_loopback(host: str) -> bool:
    """Whether an address can be reached only from this machine.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def new_token(host: str) -> str | None:
    """A token for an address that others can reach; None for one that they cannot."""
    return None if is_loopback(host) else secrets.token_urlsafe(24)


def address(listener: socket.socket, host: str, token: str | None) -> str:
    """The address of the page.

    Parameters
    ----------
    listener : socket
        From `listen`.
    host : str
        What was passed to `listen`; an address that stands for all addresses is replaced by the name of this machine.
    token : str or None
        From `new_token`.

    Returns
    -------
    str
    """
    port = listener.getsockname()[1]
    try:
        number = ipaddress.ip_address(host)
        name = socket.gethostname() if number.is_unspecified else f"[{host}]" if number.version == 6 else host
    except ValueError:
        name = host
    return f"http://{name}:{port}/" + ("" if token is None else f"?token={token}")


def serve(
    session: Session,
    title: str,
    listener: socket.socket,
    *,
    token: str | None = None,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve the page until the process is asked to stop, then close the session.

    Parameters
    ----------
    session : Session
        Takes the answers and gives the questions.
    title : str
        What the page is about.
    listener : socket
        From `listen`.
    token : str, optional
        From `new_token`.
    ready : callable
        Called when the page can be opened.
    """
    _plotly()  # fails now if plotly is missing, rather than showing a page without a map
    sys.setswitchinterval(SWITCH_INTERVAL)
    app = Guard(Site(session, title).application(), token, listener.getsockname()[1])
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="on", server_header=False, timeout_graceful_shutdown=1
    )
    try:
        ready()  # the socket already listens, so an early browser only waits a moment
        with suppress(KeyboardInterrupt):  # raised again by the server after a clean shutdown
            uvicorn.Server(config).run(sockets=[listener])
    finally:
        session.close()
        listener.close()


def _plotly() -> Path:
    """The script that the plotly package contains."""
    found = find_spec("plotly")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("No module named 'plotly'", name="plotly")
    return Path(found.origin).parent / "package_data" / "plotly.min.js"


def _kinds(given: list[Any]) -> list[Kind]:
    for kind in given:
        if kind not in KINDS:
            raise ValueError(f"the kind of question {kind!r} is not known: use some of {', '.join(KINDS)}")
    return given


def _number(name: str, given: str) -> int:
    if not (given.isascii() and given.isdigit() and len(given) < 12):
        raise ValueError(f"{name} is {given!r}: give a number")
    return int(given)


def _same(one: str, other: str) -> bool:
    return secrets.compare_digest(one.encode(), other.encode())


def _binary(content: bytes, headers: dict[str, str] | None = None) -> Response:
    return Response(content, media_type="application/octet-stream", headers=headers)


def _refuse(message: str, status: int) -> Response:
    return PlainTextResponse(message + "\n", status)


async def _bad_request(request: Request, error: Exception) -> Response:
    return _refuse(str(error), 400)
