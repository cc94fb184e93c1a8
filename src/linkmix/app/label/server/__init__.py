"""The web server around a labelling session, and the only place that knows about HTTP."""

from linkmix.app.label.server.guard import HEADER, Guard
from linkmix.app.label.server.running import InThread, address, is_loopback, listen, new_token, serve
from linkmix.app.label.server.site import LARGEST_BODY, STATIC, Site

__all__ = [
    "HEADER",
    "LARGEST_BODY",
    "STATIC",
    "Guard",
    "InThread",
    "Site",
    "address",
    "is_loopback",
    "listen",
    "new_token",
    "serve",
]
