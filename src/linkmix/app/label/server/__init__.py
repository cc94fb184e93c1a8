"""The web server around a labelling session, and the only place that knows about HTTP."""

from linkmix.app.label.server.guard import HEADER, Guard, is_loopback
from linkmix.app.label.server.running import InThread, address, listen, new_token, serve, tls_context
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
    "tls_context",
]
