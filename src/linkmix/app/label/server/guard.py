"""Who may use the server: who has the token, and of browsers only the page itself."""

import ipaddress
import secrets
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from linkmix.app.label.server.connections import LARGEST_HEAD

HEADER = "x-linkmix"
"""Holds the token. Requests that write need it even where there is none, since another site cannot send it without a
preflight request, which is refused."""
OPEN = ("/", "/palette.css", "/plotly.js")
"""What everybody may see: the empty page and, below /static, its scripts. All data need the token."""
ENTER = "/api/enter"
"""Gives the token for the ticket, once."""
LONGEST_REASON = 500
"""Characters of a refusal, which may quote what was sent."""
# Plotly adds inline style rules to the page; scripts are served from our own files only.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "
)
NOTEBOOKS = "http://localhost:* http://127.0.0.1:* https://localhost:* https://127.0.0.1:* vscode-webview:"
"""Where notebooks on this machine are."""


class Guard:
    """Passes on requests of those who have the token, and refuses all others.

    Parameters
    ----------
    app : ASGI application
        The application to guard.
    token : str or None
        Secret that each request for data must contain: in a header or, for pictures, in the address. No cookie holds
        it, since browsers send cookies to all ports of a machine. Without a token, the server must be addressed by a
        loopback address.
    port : int
        The port of the server.
    framed : bool, default=False
        Whether the page may be shown in the frame of a notebook on this machine. There it takes the token from its
        address alone, so another page that frames it shows nothing.
    ticket : str, optional
        Gives the token once. It is for the address that a browser is started with, since everybody on the machine can
        read the arguments of a program.
    """

    def __init__(
        self, app: ASGIApp, token: str | None, port: int, *, framed: bool = False, ticket: str | None = None
    ) -> None:
        self.app = app
        self.token, self.port, self.framed = token, port, framed
        self._ticket = ticket

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = self.refusal(scope)
        policy = POLICY + (NOTEBOOKS if self.framed and scope["path"] == "/" else "'none'")

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("content-security-policy", policy)
                headers.setdefault("cache-control", "no-store")
                headers["x-content-type-options"] = "nosniff"
                headers["referrer-policy"] = "no-referrer"
                headers["cross-origin-resource-policy"] = "same-origin"
                headers["cross-origin-opener-policy"] = "same-origin"
            await send(message)

        await (refusal or self.app)(scope, receive, sealed)

    def refusal(self, scope: Scope) -> Response | None:
        """The response that refuses a request; None if it may pass."""
        if _head(scope) > LARGEST_HEAD:
            return refuse(f"the headers have more than {LARGEST_HEAD} bytes: send shorter ones", 431)
        headers = Headers(scope=scope)
        host, path, scheme = headers.get("host", ""), scope["path"], scope.get("scheme", "http")
        reads = scope["method"] in ("GET", "HEAD")
        if self.token is None:
            if not is_own(host, self.port, scheme):  # another name for this machine: DNS rebinding
                return refuse(f"this page is not at {host!r}: use the address that linkmix label printed", 421)
        elif not (reads and (path in OPEN or path.startswith("/static/"))):
            given = headers.get(HEADER, "")
            if path == ENTER and self._ticket is not None and _same(given, self._ticket):
                return _from_elsewhere(headers, scheme) or self._enter()
            if path.startswith("/picture/"):  # an image of the page, which has no headers of its own
                given = given or _in_query(scope)
            if not _same(given, self.token):
                return refuse("the token is missing or wrong: use the whole address that linkmix label printed", 403)
        if reads:
            return None
        # All other methods could write.
        if (refusal := _from_elsewhere(headers, scheme)) is not None:
            return refusal
        if HEADER not in headers or headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return refuse(f"a request that writes must be JSON and have the header {HEADER}", 415)
        return None

    def _enter(self) -> Response:
        self._ticket = None
        return JSONResponse({"token": self.token})


def is_own(host: str, port: int, scheme: str = "http") -> bool:
    """Whether a request is addressed to a loopback address at this port.

    Parameters
    ----------
    host : str
        The header ``Host``: a name or a number and, unless it is that of the scheme, a port.
    port : int
        The port of the server.
    scheme : {"http", "https"}

    Examples
    --------
    >>> [is_own(host, 8765) for host in ("127.0.0.2:8765", "[::1]:8765", "localhost", "evil.example:8765")]
    [True, True, False, False]
    >>> is_own("localhost", 80), is_own("[::1]", 443, "https")
    (True, True)
    """
    name, colon, number = host.rpartition(":")
    if not colon or host.endswith("]"):
        name, number = host, "443" if scheme == "https" else "80"
    return number == str(port) and is_loopback(name.removeprefix("[").removesuffix("]"))


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


def refuse(message: str, status: int) -> Response:
    """A response that says why a request is refused."""
    if len(message) > LONGEST_REASON:
        message = f"{message[: LONGEST_REASON // 2]} ... {message[-LONGEST_REASON // 2 :]}"
    return PlainTextResponse(message.encode(errors="backslashreplace") + b"\n", status)


def _from_elsewhere(headers: Headers, scheme: str) -> Response | None:
    """The response that refuses a request of another page; None for one of the page itself."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "same-origin")
    if origin == f"{scheme}://{headers.get('host', '')}" and site == "same-origin":
        return None
    return refuse("this request comes from another page: use the page that linkmix label opened", 403)


def _head(scope: Scope) -> int:
    """Number of bytes in the address and the headers of a request."""
    address = len(scope.get("raw_path") or b"") + len(scope["query_string"])
    return address + sum(len(name) + len(value) for name, value in scope["headers"])


def _in_query(scope: Scope) -> str:
    """The token in the address."""
    return str(parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0])


def _same(one: str, other: str) -> bool:
    return secrets.compare_digest(one.encode(errors="replace"), other.encode())
