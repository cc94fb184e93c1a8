"""The report of a fit: one HTML page with classes, profiles, links and convergence, without scripts or other files."""

from linkmix.app.report.columns import columns_in_words, deciding_in_words, n_used
from linkmix.app.report.numbers import Result, links_in_words, noise_in_words, profiles, traits
from linkmix.app.report.page import page

__all__ = [
    "Result",
    "columns_in_words",
    "deciding_in_words",
    "links_in_words",
    "n_used",
    "noise_in_words",
    "page",
    "profiles",
    "traits",
]
