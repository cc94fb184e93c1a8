"""Active learning with links: which pair to ask about next, and what follows from the answers."""

from linkmix.queries.answers import SAID, Answer, Answers
from linkmix.queries.audit import Audit
from linkmix.queries.background import Background
from linkmix.queries.questioner import STRATEGIES, Questioner, Strategy
from linkmix.queries.questions import KINDS, Kind, Question, answers_to
from linkmix.queries.refit import Refit
from linkmix.queries.settings import QuestionSettings
from linkmix.queries.state import State

__all__ = [
    "KINDS",
    "SAID",
    "STRATEGIES",
    "Answer",
    "Answers",
    "Audit",
    "Background",
    "Kind",
    "Question",
    "QuestionSettings",
    "Questioner",
    "Refit",
    "State",
    "Strategy",
    "answers_to",
]
