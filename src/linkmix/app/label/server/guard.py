"""Who may use the server: requests that come from the page itself, and no others."""

import secrets
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = "x-linkmix"
"""Requests that write need this header; another site cannot send it without a preflight request, which is refused."""
# Plotly adds inline style rules to the page; scripts are served from our own files only.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "
)
NOTEBOOKS = "http://localhost:* http://127.0.0.1:* https://localhost:* https://127.0.0.1:* vscode-webview:"
"""Where notebooks on this machine are."""


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
    frame : str, optional
        Secret that the address of the page must contain for it to be shown, and then also in the frame of a notebook on
        this machine. No other page is ever shown in a frame.
    """

    def __init__(self, app: ASGIApp, token: str | None, port: int, frame: str | None = None) -> None:
        self.app = app
        self.token, self.frame = token, frame
        self.cookie = f"linkmix-{port}"
        self.own = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = self.refusal(scope)
        policy = POLICY + (NOTEBOOKS if self.frame is not None and scope["path"] == "/" else "'none'")

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
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self.token is None:
            if host.lower() not in self.own:  # another name for this machine: DNS rebinding
                return refuse(f"this page is not at {host!r}: use the address that linkmix label printed", 421)
            if self.frame is not None and scope["path"] == "/" and not _same(_given(scope), self.frame):
                return refuse("the token is missing or wrong: show the page from the notebook again", 403)
        elif not self._is_known(Request(scope)):
            if not _same(_given(scope), self.token):
                return refuse("the token is missing or wrong: use the whole address that linkmix label printed", 403)
            response = RedirectResponse("/", 303)  # removes the token from the address bar and the history
            response.set_cookie(self.cookie, self.token, httponly=True, samesite="strict")
            return response
        if scope["method"] in ("GET", "HEAD"):
            return None
        # All other methods could write.
        if headers.get("origin") != f"http://{host}" or headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return refuse("this request comes from another page: use the page that linkmix label opened", 403)
        if HEADER not in headers or headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return refuse(f"a request that writes must be JSON and have the header {HEADER}", 415)
        return None

    def _is_known(self, request: Request) -> bool:
        return _same(request.cookies.get(self.cookie, ""), self.token or "")


def refuse(message: str, status: int) -> Response:
    """A response that says why a request is refused."""
    return PlainTextResponse(message + "\n", status)


def _given(scope: Scope) -> str:
    """The token in the address."""
    return str(parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0])


def _same(one: str, other: str) -> bool:
    return secrets.compare_digest(one.encode(), other.encode())
