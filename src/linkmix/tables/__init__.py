"""Points, links and labels in files, and from ids to rows and back."""

from linkmix.data.scratch import piled
from linkmix.tables.examination import Examination, examine_links
from linkmix.tables.id_list import read_ids, write_ids
from linkmix.tables.joined import write_joined
from linkmix.tables.labels import write_labels
from linkmix.tables.links import LinkLine, read_link_lines, read_links, to_links, write_links
from linkmix.tables.points import Points, column_names, read_id_column, read_numbers, read_points
from linkmix.tables.suspicions import Suspicions, suspect

__all__ = [
    "Examination",
    "LinkLine",
    "Points",
    "Suspicions",
    "column_names",
    "examine_links",
    "piled",
    "read_id_column",
    "read_ids",
    "read_link_lines",
    "read_links",
    "read_numbers",
    "read_points",
    "suspect",
    "to_links",
    "write_ids",
    "write_joined",
    "write_labels",
    "write_links",
]
