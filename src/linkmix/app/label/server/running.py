"""Runs the server: at an address, until the process ends or in a thread."""

import ipaddress
import secrets
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import uvicorn

from linkmix.app.label.server.guard import Guard
from linkmix.app.label.server.site import Site, plotly_script
from linkmix.app.label.session import Session

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
    server = _server(session, title, listener, token)
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
        Address of the page, with a token without which it is not shown.
    """

    def __init__(self, session: Session, title: str) -> None:
        self._session, self._listener = session, listen("127.0.0.1", 0)
        frame = secrets.token_urlsafe(24)
        self.address = address(self._listener, "localhost", frame)  # the site of most notebooks, as browsers see it
        self._server = _server(session, title, self._listener, None, frame)
        self._thread = threading.Thread(target=self._server.run, args=([self._listener],), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the server, and close the session."""
        self._server.should_exit = True
        self._thread.join(10)
        self._session.close()
        self._listener.close()


def _server(
    session: Session, title: str, listener: socket.socket, token: str | None, frame: str | None = None
) -> uvicorn.Server:
    plotly_script()  # fails now if plotly is missing, rather than showing a page without a map
    sys.setswitchinterval(SWITCH_INTERVAL)
    app = Guard(Site(session, title).application(), token, listener.getsockname()[1], frame)
    options: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False}
    return uvicorn.Server(uvicorn.Config(app, lifespan="on", timeout_graceful_shutdown=1, **options))
