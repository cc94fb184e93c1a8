"""What is known about pairs of rows: links, and relations of any other kind."""

from linkmix.basics.errors import Conflict
from linkmix.links.links import Links
from linkmix.links.relation import Relation

__all__ = ["Conflict", "Links", "Relation"]
