"""Columns of every kind become one array of numbers and codes."""

from linkmix.columns.coded import Coded, code
from linkmix.columns.kinds import Category, Number, Ordered
from linkmix.columns.moments import Date, TimeOfDay
from linkmix.columns.numerals import Convention
from linkmix.columns.problems import BadColumns, Problem
from linkmix.columns.recipe import Column, Recipe, describe, learn
from linkmix.columns.sources import MISSING, is_table, mostly_truth_values, needs_recipe
from linkmix.columns.wide import Picture, Reduction, Sentences, Vector, Words
from linkmix.columns.wishes import KINDS

PARTS = (
    *(Recipe, Column, Number, Convention, Category, Ordered, Date, TimeOfDay),
    *(Vector, Reduction, Words, Sentences, Picture),
)
"""The dataclasses that a recipe is made of."""

__all__ = [
    "KINDS",
    "MISSING",
    "PARTS",
    "BadColumns",
    "Coded",
    "Column",
    "Problem",
    "Recipe",
    "code",
    "describe",
    "is_table",
    "learn",
    "mostly_truth_values",
    "needs_recipe",
]
