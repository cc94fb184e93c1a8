"""The EM loop and its stopping rule: in the native core where possible, otherwise step by step in Python."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from linkmix import native
from linkmix.basics.arrays import has_gaps
from linkmix.engine.steps import expect, log_prior, maximise
from linkmix.engine.values import Data, Fit, Model, Parameters

ROUNDING = 1e-9
"""A relative decrease of the objective by less than this is rounding."""


def fit(model: Model, data: Data, start: Parameters, *, tol: float, max_iter: int) -> Fit:
    """Repeat both steps until the relative gain of the objective falls below ``tol``, at most ``max_iter`` times.

    With ``tol=0`` exactly ``max_iter`` M-steps are made. The last step is always an E-step.
    """
    native_steps = _native_steps(model, data, start)
    parameters, converged, log_likelihood = start, False, np.nan
    trace: list[float] = []
    while not (converged or len(trace) > max_iter):
        n_steps = max_iter - max(0, len(trace) - 1)
        if native_steps is not None:
            parameters, gained, converged, stuck = native_steps(parameters, tol, n_steps)
            trace += gained[1:] if trace else gained
            log_likelihood = trace[-1]
            if not stuck:
                break
            n_steps = 1  # one careful step; then the core may go on
        some = _careful_steps(model, data, parameters, tol=tol, max_iter=n_steps)
        parameters, converged, log_likelihood = some.parameters, some.converged, some.log_likelihood
        trace += some.trace[1:].tolist() if trace else some.trace.tolist()
    return Fit(parameters, log_likelihood, np.array(trace), converged)


def _careful_steps(model: Model, data: Data, start: Parameters, *, tol: float, max_iter: int) -> Fit:
    """Steps in Python that never lower the objective."""
    parameters, expectation = start, expect(model, data, start)
    trace = [expectation.log_likelihood + log_prior(model, start)]
    converged = False
    for _ in range(max_iter):
        candidate = maximise(model, expectation, parameters)
        after = expect(model, data, candidate)
        objective = after.log_likelihood + log_prior(model, candidate)
        if objective < trace[-1] - ROUNDING * abs(trace[-1]):
            candidate = maximise(model, expectation, parameters, cautiously=True)
            after = expect(model, data, candidate)
            objective = after.log_likelihood + log_prior(model, candidate)
            if objective < trace[-1] - ROUNDING * abs(trace[-1]):  # beyond numerical precision: stay
                candidate, after, objective = parameters, expectation, trace[-1]
        parameters, expectation = candidate, after
        trace.append(objective)
        if tol > 0 and abs(trace[-1] - trace[-2]) <= tol * abs(trace[-1]):
            converged = True
            break
    return Fit(parameters, expectation.log_likelihood, np.array(trace), converged)


NativeSteps = Callable[[Parameters, float, int], tuple[Parameters, list[float], bool, bool]]


def _native_steps(model: Model, data: Data, start: Parameters) -> NativeSteps | None:
    """The EM loop of the native core, if it supports this model and the data are small; otherwise None.

    A call with parameters, tolerance and number of steps returns parameters, J before and after each step, whether the
    tolerance was met, and whether the core got stuck. In that case the next step must be made by `_careful_steps`.
    """
    free = data.free
    plain = data.free_known is None and data.linked_weights is None and data.linked_known is None
    if not plain or start.shared_clusters or not native.active() or not isinstance(free, np.ndarray):
        return None
    components, pairs = model.density.to_native(start.components), model.coupling.to_native()
    if components is None or pairs is None or not native.loops(components, pairs, free, data.linked):
        return None
    if has_gaps(free) or has_gaps(data.linked):
        return None

    def steps(parameters: Parameters, tol: float, max_iter: int) -> tuple[Parameters, list[float], bool, bool]:
        components = model.density.to_native(parameters.components)
        assert components is not None
        done = native.run(
            *(components, pairs, free, data.free_weights, data.linked),
            *(parameters.class_weights, parameters.cluster_weights),
            link_weight=float(model.link_weight),
            tol=float(tol),
            max_iter=max_iter,
        )
        after = replace(
            parameters,
            class_weights=done.class_weights,
            cluster_weights=done.cluster_weights,
            components=model.density.from_native(done.components),
        )
        return after, done.trace, done.converged, done.stuck

    return steps
