"""Points, links and labels in files, and from ids to rows and back."""

from linkmix.tables.examination import Examination, examine_links
from linkmix.tables.labels import write_labels
from linkmix.tables.points import Points, column_names, read_points
from linkmix.tables.scratch import piled
from linkmix.tables.statements import Statement, read_links, read_statements, to_links, write_links

__all__ = [
    "Examination",
    "Points",
    "Statement",
    "column_names",
    "examine_links",
    "piled",
    "read_links",
    "read_points",
    "read_statements",
    "to_links",
    "write_labels",
    "write_links",
]
