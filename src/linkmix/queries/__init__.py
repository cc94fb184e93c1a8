"""Active learning with links: which pair to ask about next, and what follows from the answers."""

from linkmix.queries.answers import SAID, Answer, Answers
from linkmix.queries.asking import Desk, run
from linkmix.queries.audit import Audit
from linkmix.queries.background import Background
from linkmix.queries.programs import Answerer, BadAnswer, Outcome, PairQuestion, Reply, Tally
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
    "Answerer",
    "Answers",
    "Audit",
    "Background",
    "BadAnswer",
    "Desk",
    "Kind",
    "Outcome",
    "PairQuestion",
    "Question",
    "QuestionSettings",
    "Questioner",
    "Refit",
    "Reply",
    "State",
    "Strategy",
    "Tally",
    "answers_to",
    "run",
]
