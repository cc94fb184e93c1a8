"""Points, links and labels in files, and from ids to rows and back."""

from linkmix.tables.labels import write_labels
from linkmix.tables.points import Points, read_points
from linkmix.tables.statements import Statement, read_links, read_statements, to_links, write_links

__all__ = [
    "Points",
    "Statement",
    "read_links",
    "read_points",
    "read_statements",
    "to_links",
    "write_labels",
    "write_links",
]
