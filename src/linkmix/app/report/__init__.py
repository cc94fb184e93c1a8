"""The report of a fit: one HTML page with classes, profiles, links and convergence, without scripts or other files."""

from linkmix.app.report.numbers import Result, profiles
from linkmix.app.report.page import page

__all__ = ["Result", "page", "profiles"]
