"""The web server around a session. The only module that knows about HTTP."""

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
from linkmix.app.label.session import MOST_TOGETHER, NotPossible, Session

STATIC = Path(__file__).parent / "static"
LARGEST_BODY = 2**20
"""Bytes of a request."""
HEADER = "x-linkmix"
"""A request that writes has this header, which a page from elsewhere can not send without being asked."""
SWITCH_INTERVAL = 0.0005
"""Seconds that a refit keeps the interpreter while a request waits for it; Python's default is ten times as long."""
# Plotly puts its own style rules into the page; scripts come from files of ours alone.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Guard:
    """Lets requests through that come from the page itself, and no others.

    Parameters
    ----------
    app : ASGI application
        What is guarded.
    token : str or None
        What the address has to hold. Without one, the address has to be this machine's own.
    port : int
        The port that is listened at.
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
        """Why a request is not let through; None if it is."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self.token is None:
            if host.lower() not in self.own:  # another name that leads here: DNS rebinding
                return _refuse(f"this page is not at {host!r}: use the address that linkmix label printed", 421)
        elif not self._is_known(Request(scope)):
            given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
            if not _same(given, self.token):
                return _refuse("the address lacks its token: use the whole address that linkmix label printed", 403)
            response = RedirectResponse("/", 303)  # the token leaves the address, and with it the history
            response.set_cookie(self.cookie, self.token, httponly=True, samesite="strict")
            return response
        if scope["method"] in ("GET", "HEAD"):
            return None
        # Checked for every method that could write.
        if headers.get("origin") != f"http://{host}" or headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return _refuse("this request comes from another page", 403)
        if HEADER not in headers or headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return _refuse(f"a request that writes is JSON and has the header {HEADER}", 415)
        return None

    def _is_known(self, request: Request) -> bool:
        return _same(request.cookies.get(self.cookie, ""), self.token or "")


def make_app(session: Session, title: str, *, token: str | None, port: int) -> ASGIApp:
    """The web application around a session.

    Parameters
    ----------
    session : Session
        Where answers go.
    title : str
        What the page is about: the name of the file of points.
    token : str or None
        What the address has to hold; None for an address of this machine.
    port : int
        The port that is listened at.

    Returns
    -------
    ASGI application
    """
    places, axes = session.cards.places()
    map_bytes = np.ascontiguousarray(places, dtype="<f4").tobytes()

    def start(request: Request) -> Response:
        return JSONResponse(
            {
                "title": title,
                "links": session.links_path.name,
                "n_points": len(session.points.ids),
                "n_classes": session.n_classes,
                "axes": axes,
                "table": session.table,
                "most_together": MOST_TOGETHER,
            }
        )

    def status(request: Request) -> Response:
        if page := request.query_params.get("page"):
            session.hear(page)
        if request.query_params.get("have") == str(session.version):
            return Response(status_code=204)
        return JSONResponse(session.status())

    def question(request: Request) -> Response:
        return JSONResponse({"question": session.question(request.query_params.get("page", ""))})

    def labels(request: Request) -> Response:
        return _binary(session.labels().astype("<i2").tobytes())

    def places_of_points(request: Request) -> Response:
        return _binary(map_bytes)

    def pair(request: Request) -> Response:
        a, b = (_row(session, request.query_params.get(end, "")) for end in ("a", "b"))
        return JSONResponse(session.cards.pair(a, b))

    def find(request: Request) -> Response:
        row = session.row_of(request.query_params.get("id", ""))
        return _refuse("there is no point with this id", 404) if row is None else JSONResponse({"row": row})

    def picture(request: Request) -> Response:
        file = session.cards.picture(_row(session, request.path_params["row"]))
        if file is None:
            return _refuse("there is no picture of this point in the folder of the table", 404)
        headers = {"content-security-policy": "default-src 'none'; sandbox"}
        return FileResponse(file, media_type=PICTURES[file.suffix.lower()], headers=headers)

    async def write(request: Request) -> Response:
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > LARGEST_BODY:
                return _refuse(f"the request has more than {LARGEST_BODY} bytes", 413)
        return await run_in_threadpool(_write, session, body)

    def plotly(request: Request) -> Response:
        headers = {"cache-control": "max-age=86400"}
        return FileResponse(_plotly(), media_type="text/javascript", headers=headers)

    def page(request: Request) -> Response:
        return FileResponse(STATIC / "index.html")

    @asynccontextmanager
    async def closing(app: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(session.close)  # before the signal that ends the server ends the process

    app = Starlette(
        lifespan=closing,
        routes=[
            Route("/", page),
            Route("/plotly.js", plotly),
            Mount("/static", StaticFiles(directory=STATIC)),
            Route("/picture/{row}", picture),
            Route("/api/start", start),
            Route("/api/status", status),
            Route("/api/question", question),
            Route("/api/labels", labels),
            Route("/api/places", places_of_points),
            Route("/api/pair", pair),
            Route("/api/find", find),
            Route("/api/entries", write, methods=["POST"]),
        ],
        exception_handlers={ValueError: _bad_request},
    )
    return Guard(app, token, port)


def _write(session: Session, body: bytes) -> Response:
    try:
        request = json.loads(body)
    except ValueError:
        return _refuse("the request is no JSON", 400)
    if not isinstance(request, dict):
        return _refuse("the request is no object", 400)
    if request.get("table") != session.table:
        return _refuse("the server has another table of points now: load the page again", 409)
    try:
        undone = session.write(request)
    except NotPossible as error:
        return _refuse(str(error), 409)
    except ValueError as error:
        return _refuse(str(error), 400)
    except OSError as error:
        return _refuse(f"the answer could not be kept: {error.strerror}", 507)
    said: dict[str, Any] = {"key": request["key"], "version": session.version}
    if undone is not None:
        said["undone"] = {name: undone.get(name) for name in ("entry", "ids", "said")}
    if isinstance(page := request.get("page"), str):
        said["question"] = session.question(page)
    return JSONResponse(said)


def listen(host: str, port: int) -> socket.socket:
    """Listen at an address.

    Parameters
    ----------
    host : str
        Name or number of this machine.
    port : int
        A port; 0 for any that is free.

    Returns
    -------
    socket

    Raises
    ------
    OSError
        If the port is taken, or the address is not this machine's.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    opened = socket.socket(family, kind, protocol)
    try:
        if sys.platform != "win32":
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # start again at once after a crash
        opened.bind(address)
        opened.listen(128)
    except OSError:
        opened.close()
        raise
    return opened


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone.

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
    """A token for an address that others can reach, None for one that they can not."""
    return None if is_loopback(host) else secrets.token_urlsafe(24)


def address(listener: socket.socket, host: str, token: str | None) -> str:
    """Where a browser finds the page.

    Parameters
    ----------
    listener : socket
        From `listen`.
    host : str
        What was listened at; an address that means all of them is replaced by the name of this machine.
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
    """Serve the page until the process is asked to end, then close the session.

    Parameters
    ----------
    session : Session
        Where answers go.
    title : str
        What the page is about.
    listener : socket
        From `listen`.
    token : str, optional
        What the address has to hold.
    ready : callable
        Called when the page can be opened.
    """
    _plotly()  # say what is missing before anybody looks at a page without a map
    sys.setswitchinterval(SWITCH_INTERVAL)
    app = make_app(session, title, token=token, port=listener.getsockname()[1])
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="on", server_header=False, timeout_graceful_shutdown=1
    )
    try:
        ready()  # the socket listens: who comes early waits a moment
        with suppress(KeyboardInterrupt):  # which the server raises again after it has ended in good order
            uvicorn.Server(config).run(sockets=[listener])
    finally:
        session.close()
        listener.close()


def _plotly() -> Path:
    """The script that the package plotly ships."""
    found = find_spec("plotly")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("No module named 'plotly'", name="plotly")
    return Path(found.origin).parent / "package_data" / "plotly.min.js"


def _row(session: Session, given: str) -> int:
    if not (given.isascii() and given.isdigit() and len(given) < 12 and int(given) < len(session.points.ids)):
        raise ValueError(f"row {given!r} is not there: rows are numbered from 0 to {len(session.points.ids) - 1}")
    return int(given)


def _same(one: str, other: str) -> bool:
    return secrets.compare_digest(one.encode(), other.encode())


def _binary(content: bytes) -> Response:
    return Response(content, media_type="application/octet-stream")


def _refuse(message: str, status: int) -> Response:
    return PlainTextResponse(message + "\n", status)


async def _bad_request(request: Request, error: Exception) -> Response:
    return _refuse(str(error), 400)
