"""What is known about rows: links between two of them, and relations of any other kind."""

from linkmix.basics.errors import Conflict
from linkmix.links.links import Links
from linkmix.links.relation import AnyRelation, Relation, SetRelation

__all__ = ["AnyRelation", "Conflict", "Links", "Relation", "SetRelation"]
