"""One page about one fit: clusters, profiles, links, convergence, sizes. It needs no other file and no network."""

from linkmix.app.report.numbers import Result, profiles
from linkmix.app.report.page import page

__all__ = ["Result", "page", "profiles"]
