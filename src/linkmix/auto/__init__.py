"""The front door: many starts and shapes, ranked by the links."""

from linkmix.auto.budgets import BUDGETS, Budget
from linkmix.auto.estimator import AutoLinkMixture

__all__ = ["BUDGETS", "AutoLinkMixture", "Budget"]
