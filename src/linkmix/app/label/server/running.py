"""Runs the server: at an address, until the process ends or in a thread."""

import ipaddress
import secrets
import socket
import ssl
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvicorn

from linkmix.app.label.server.connections import LARGEST_HEAD, Door
from linkmix.app.label.server.guard import Guard
from linkmix.app.label.server.site import Site, plotly_script
from linkmix.app.label.session import Session
from linkmix.basics.errors import BadFile

SWITCH_INTERVAL = 0.0005
"""Seconds that a refit holds the interpreter while a request waits; Python's default is ten times as long."""


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


def new_token() -> str:
    """A secret that nobody guesses."""
    return secrets.token_urlsafe(24)


def tls_context(certificate: Path, key: Path | None = None) -> ssl.SSLContext:
    """Certificate and key for encrypted connections.

    Parameters
    ----------
    certificate : Path
        File with the certificate, and those that vouch for it, in PEM format.
    key : Path, optional
        File with the private key, which must not be encrypted; by default it is in the same file.

    Returns
    -------
    SSLContext

    Raises
    ------
    BadFile
        If they cannot be used.
    """
    for path in filter(None, (certificate, key)):
        path.open("rb").close()  # an error of ssl would not name the file
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    def no_password() -> str:
        raise BadFile(key or certificate, "holds a key with a password: give one without, or use ssh -L")

    try:
        context.load_cert_chain(certificate, key, no_password)
    except ssl.SSLError as error:
        where = f"no certificate with its private key ({error.reason or 'not in PEM format'})"
        raise BadFile(certificate, f"holds {where}: give both in PEM format, with --certificate and --key") from None
    return context


def address(
    listener: socket.socket, host: str, token: str | None, *, ticket: bool = False, encrypted: bool = False
) -> str:
    """The address of the page.

    Parameters
    ----------
    listener : socket
        From `listen`.
    host : str
        What was passed to `listen`; an address that stands for all addresses is replaced by the name of this machine.
    token : str or None
        From `new_token`. It is in the part of the address that browsers keep to themselves.
    ticket : bool, default=False
        Whether it is a ticket, which the page changes for the token.
    encrypted : bool, default=False
        Whether connections are encrypted.

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
    scheme, usual = ("https", 443) if encrypted else ("http", 80)
    secret = "" if token is None else f"#{'ticket' if ticket else 'token'}={token}"
    return f"{scheme}://{name}{'' if port == usual else f':{port}'}/{secret}"


def serve(
    session: Session,
    title: str,
    listener: socket.socket,
    *,
    token: str | None = None,
    ticket: str | None = None,
    tls: ssl.SSLContext | None = None,
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
        From `new_token`. Without it, all who can reach the server may use it.
    ticket : str, optional
        From `new_token`. The first page that has it gets the token.
    tls : SSLContext, optional
        From `tls_context`, for encrypted connections.
    ready : callable
        Called when the page can be opened.
    """
    server = _server(session, title, listener, token, tls, ticket=ticket)
    try:
        ready()  # the socket already listens, so an early browser only waits a moment
        with suppress(KeyboardInterrupt):  # raised again by the server after a clean shutdown
            server.run(sockets=[listener])
    finally:
        session.close()
        listener.close()


class InThread:
    """A server in a thread, for a page in the frame of a notebook on this machine.

    Parameters
    ----------
    session : Session
        Takes the answers and gives the questions.
    title : str
        What the page is about.

    Attributes
    ----------
    address : str
        Address of the page, with a token without which it shows nothing.
    token : str
        The token.
    """

    def __init__(self, session: Session, title: str) -> None:
        self._session, self._listener = session, listen("127.0.0.1", 0)
        self.token = new_token()
        self.address = address(self._listener, "localhost", self.token)  # the site of most notebooks, for browsers
        self._server = _server(session, title, self._listener, self.token, framed=True)
        self._thread = threading.Thread(target=self._server.run, args=([self._listener],), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the server, and close the session."""
        self._server.should_exit = True
        self._thread.join(10)
        self._session.close()
        self._listener.close()


def _server(
    session: Session,
    title: str,
    listener: socket.socket,
    token: str | None,
    tls: ssl.SSLContext | None = None,
    *,
    framed: bool = False,
    ticket: str | None = None,
) -> uvicorn.Server:
    plotly_script()  # fails now if plotly is missing, rather than showing a page without a map
    sys.setswitchinterval(SWITCH_INTERVAL)
    site = Site(session, title).application()
    app = Guard(site, token, listener.getsockname()[1], framed=framed, ticket=ticket)
    door = Door(tls)
    options: dict[str, Any] = {
        "http": door,
        "ws": "none",
        "backlog": door.arriving,
        "h11_max_incomplete_event_size": LARGEST_HEAD,
        "log_config": None,
        "log_level": "error",  # requests without sense are answered, and no news
        "access_log": False,
        "proxy_headers": False,
        "server_header": False,
    }
    return uvicorn.Server(uvicorn.Config(app, lifespan="on", timeout_graceful_shutdown=1, **options))
