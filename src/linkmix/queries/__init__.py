"""Which pair to ask about next."""

from linkmix.queries.questioner import STRATEGIES, Questioner, Strategy
from linkmix.queries.refit import Refit
from linkmix.queries.state import SAID, Answer, State

__all__ = ["SAID", "STRATEGIES", "Answer", "Questioner", "Refit", "State", "Strategy"]
