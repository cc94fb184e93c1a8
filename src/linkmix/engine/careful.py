"""Steps of EM in Python that never lower the objective."""

from dataclasses import dataclass

from linkmix.engine.steps import expect, log_prior, maximise
from linkmix.engine.values import Data, Expectation, Model, Parameters

ROUNDING = 1e-9
"""A relative decrease of the objective by less than this is rounding."""


@dataclass(frozen=True)
class Place:
    """Parameters, the E-step there, and the objective: J plus any log-priors."""

    parameters: Parameters
    expectation: Expectation
    objective: float


def place(model: Model, data: Data, parameters: Parameters) -> Place:
    """E-step at some parameters: one pass over all rows."""
    expectation = expect(model, data, parameters)
    return Place(parameters, expectation, expectation.log_likelihood + log_prior(model, parameters))


def careful_step(model: Model, data: Data, now: Place) -> Place:
    """Both steps of EM."""
    return settled(model, data, now, maximise(model, now.expectation, now.parameters))


def settled(model: Model, data: Data, now: Place, candidate: Parameters) -> Place:
    """The E-step at the result of the M-step; if the objective fell, that of the cautious M-step."""
    lowest = now.objective - ROUNDING * abs(now.objective)
    after = place(model, data, candidate)
    if after.objective < lowest:
        after = place(model, data, maximise(model, now.expectation, now.parameters, cautiously=True))
        if after.objective < lowest:  # beyond numerical precision: stay
            return now
    return after
