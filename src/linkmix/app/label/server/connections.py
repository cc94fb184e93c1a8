"""The connections of the server: how many there may be, and how long each may take to say what it wants."""

import asyncio
import ssl
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 256
"""Connections that may be open at once; a browser opens at most six for one page."""
MOST_ARRIVING = 512
"""Connections that may wait to be accepted."""
REQUEST_SECONDS = 15.0
"""Seconds that a connection may take from its beginning, or from the first byte of a request, to the end of one."""
READING_SECONDS = 30.0
"""Seconds that a reply may wait for a client that reads none of it."""
HANDSHAKE_SECONDS = 5.0
"""Seconds that a client may take to agree on a key."""
LARGEST_HEAD = 2**14
"""Maximum number of bytes in the first line and the headers of a request."""


class Door:
    """Lets connections in, and closes slow and superfluous ones.

    If there are too many, the oldest one that has never sent a whole request is closed, or else the one that has been
    idle for longest. So thousands of connections that say nothing keep nobody out.

    Parameters
    ----------
    tls : SSLContext, optional
        Certificate and key, for encrypted connections.

    Attributes
    ----------
    most, arriving : int
        Connections that may be open, and that may wait to be accepted: fewer where the process may open few files.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.tls = tls
        self.most, self.arriving = limits(_files())
        self._open: dict[Connection, asyncio.Transport] = {}  # that of least recent use first

    def __call__(self, **given: Any) -> asyncio.Protocol:
        """A new connection."""
        connection = Connection(self, **given)
        return connection if self.tls is None else Handshake(self, connection)

    def enter(self, connection: "Connection", transport: asyncio.Transport) -> None:
        """Note an open connection, and close another if there are too many."""
        self._open[connection] = transport
        if len(self._open) > self.most:
            others = [other for other in self._open if other is not connection and not other.is_busy]
            silent = (other for other in others if not other.has_asked)
            self.close(next(silent, others[0] if others else connection))

    def used(self, connection: "Connection") -> None:
        """Note that a connection has been of use just now."""
        if (transport := self._open.pop(connection, None)) is not None:
            self._open[connection] = transport

    def leave(self, connection: "Connection") -> None:
        """Note that a connection is closed."""
        self._open.pop(connection, None)

    def close(self, connection: "Connection") -> None:
        """Close a connection at once."""
        if (transport := self._open.pop(connection, None)) is not None:
            transport.abort()


class Connection(H11Protocol):
    """A connection that is closed if a request does not arrive in time, or if its reply is not read.

    Parameters
    ----------
    door : Door
        Counts the connections.
    **given
        What uvicorn gives.

    Attributes
    ----------
    has_asked : bool
        Whether it has sent a whole request.
    """

    def __init__(self, door: Door, **given: Any) -> None:
        super().__init__(**given)
        self.has_asked = False
        self._door = door
        self._request: asyncio.TimerHandle | None = None  # until a request must be here
        self._reading: asyncio.TimerHandle | None = None  # until a reply must go on

    @property
    def is_busy(self) -> bool:
        """Whether a whole request is here, and its reply is under way."""
        replying = self.cycle is not None and not self.cycle.response_complete
        return replying and self.conn.their_state is not h11.SEND_BODY

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin."""
        super().connection_made(transport)
        if self._door.tls is None:
            self._door.enter(self, transport)
        self._time()

    def data_received(self, data: bytes) -> None:
        """Take some bytes."""
        super().data_received(data)
        self._time()

    def on_response_complete(self) -> None:
        """End a reply."""
        super().on_response_complete()
        self._door.used(self)
        self._time()

    def pause_writing(self) -> None:
        """Wait for the client to read."""
        super().pause_writing()
        self._reading = self.loop.call_later(READING_SECONDS, self._door.close, self)

    def resume_writing(self) -> None:
        """Go on writing."""
        super().resume_writing()
        self._reading = _stopped(self._reading)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._request, self._reading = _stopped(self._request), _stopped(self._reading)
        self._door.leave(self)
        super().connection_lost(exc)

    def _time(self) -> None:
        """Limit the time of a request that is not here yet; between requests, uvicorn does so."""
        self.has_asked = self.has_asked or self.cycle is not None
        if self.is_busy or self.timeout_keep_alive_task is not None or self.transport.is_closing():
            self._request = _stopped(self._request)
        elif self._request is None:
            self._request = self.loop.call_later(REQUEST_SECONDS, self._door.close, self)


class Handshake(asyncio.Protocol):
    """A connection that is being encrypted. It counts as open from the beginning."""

    def __init__(self, door: Door, connection: Connection) -> None:
        self._door, self._connection = door, connection
        self._task: asyncio.Task[None] | None = None
        self._early = b""  # what came together with the end of the handshake

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)
        self._door.enter(self._connection, transport)
        self._task = self._connection.loop.create_task(self._agree(transport))

    def data_received(self, data: bytes) -> None:
        """Keep what comes early."""
        self._early += data

    def connection_lost(self, exc: Exception | None) -> None:
        """End early."""
        self._door.leave(self._connection)

    async def _agree(self, transport: asyncio.Transport) -> None:
        loop, connection, tls = self._connection.loop, self._connection, self._door.tls
        assert tls is not None
        options: dict[str, Any] = {"server_side": True, "ssl_handshake_timeout": HANDSHAKE_SECONDS}
        try:
            encrypted = await loop.start_tls(transport, self, tls, **options)
        except OSError:  # no handshake, an older protocol, or closed meanwhile
            encrypted = None
        if encrypted is None or encrypted.is_closing():
            self._door.leave(connection)
            transport.abort()
            return
        encrypted.set_protocol(connection)
        connection.connection_made(encrypted)
        if self._early:
            connection.data_received(self._early)


def limits(files: int) -> tuple[int, int]:
    """How many connections may be open, and how many may wait to be accepted, in a process with so many files.

    Examples
    --------
    >>> limits(1024), limits(256)
    ((256, 512), (64, 128))
    """
    return min(MOST_CONNECTIONS, max(16, files // 4)), min(MOST_ARRIVING, max(16, files // 2))


def _files() -> int:
    """Number of files that this process may open."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return 4 * MOST_CONNECTIONS
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 4 * MOST_CONNECTIONS if most == resource.RLIM_INFINITY else most


def _stopped(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """No timer, after this one is stopped."""
    if timer is not None:
        timer.cancel()
    return None
