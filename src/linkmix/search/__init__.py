"""The search behind `AutoLinkMixture`: mixtures from many starts and in many shapes, ranked by the links."""

from linkmix.search.auto_link_mixture import AutoLinkMixture
from linkmix.search.budgets import BUDGETS, Budget

__all__ = ["BUDGETS", "AutoLinkMixture", "Budget"]
