"""Columns of every kind become one array of numbers and codes."""

from linkmix.columns.coded import Coded, code
from linkmix.columns.problems import BadColumns, Problem
from linkmix.columns.recipe import Column, Recipe, describe, learn
from linkmix.columns.sources import MISSING, is_table, needs_recipe
from linkmix.columns.wishes import KINDS

__all__ = [
    "KINDS",
    "MISSING",
    "BadColumns",
    "Coded",
    "Column",
    "Problem",
    "Recipe",
    "code",
    "describe",
    "is_table",
    "learn",
    "needs_recipe",
]
