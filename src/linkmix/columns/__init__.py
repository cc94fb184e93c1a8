"""Columns of every kind become one array of numbers and codes."""

from linkmix.columns.problems import BadColumns, Problem
from linkmix.columns.recipe import Column, Recipe, describe, learn
from linkmix.columns.values import MISSING, is_table, needs_recipe
from linkmix.columns.wishes import KINDS

__all__ = [
    "KINDS",
    "MISSING",
    "BadColumns",
    "Column",
    "Problem",
    "Recipe",
    "describe",
    "is_table",
    "learn",
    "needs_recipe",
]
