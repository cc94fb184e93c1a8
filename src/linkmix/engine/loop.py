"""The EM loop and its stopping rule: in the native core where possible, otherwise step by step in Python."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from linkmix import native
from linkmix.engine.acceleration import accelerated_steps
from linkmix.engine.careful import careful_step, place
from linkmix.engine.values import Data, Fit, Model, Parameters


def fit(model: Model, data: Data, start: Parameters, *, tol: float, max_iter: int, accelerate: bool = False) -> Fit:
    """Repeat both steps until the objective gains at most ``tol`` per row in a step, at most ``max_iter`` times.

    The gain of a log-likelihood does not depend on the units of the columns. With ``tol=0`` exactly ``max_iter``
    plain M-steps are made. The last step is always an E-step. A density without coordinates is not accelerated.
    """
    if accelerate and tol > 0 and model.density.to_vector(start.components, start.components) is not None:
        return accelerated_steps(model, data, start, least_gain=tol * data.weight, max_iter=max_iter)
    native_steps = _native_steps(model, data, start)
    parameters, converged, log_likelihood = start, False, np.nan
    least_gain = tol * data.weight
    trace: list[float] = []
    n_careful = 1
    while not (converged or len(trace) > max_iter):
        n_steps = max_iter - max(0, len(trace) - 1)
        if native_steps is not None:
            parameters, done = native_steps(parameters, least_gain, n_steps)
            trace += done.trace[1:] if trace else done.trace
            log_likelihood, converged = done.log_likelihood, done.converged
            if not done.stuck:
                break
            # One careful step, then the core may go on; more of them where it got stuck again at once.
            n_careful = 2 * n_careful if len(done.trace) <= 1 else 1
            n_steps = min(n_careful, max_iter + 1 - len(trace))
        some = _careful_steps(model, data, parameters, least_gain=least_gain, max_iter=n_steps)
        parameters, converged, log_likelihood = some.parameters, some.converged, some.log_likelihood
        trace += some.trace[1:].tolist() if trace else some.trace.tolist()
    return Fit(parameters, log_likelihood, np.array(trace), converged)


def _careful_steps(model: Model, data: Data, start: Parameters, *, least_gain: float, max_iter: int) -> Fit:
    """Plain steps in Python."""
    now = place(model, data, start)
    trace, converged = [now.objective], False
    while not converged and len(trace) <= max_iter:
        now = careful_step(model, data, now)
        trace.append(now.objective)
        converged = least_gain > 0 and trace[-1] - trace[-2] <= least_gain
    return Fit(now.parameters, now.expectation.log_likelihood, np.array(trace), converged)


NativeSteps = Callable[[Parameters, float, int], tuple[Parameters, native.Steps]]


def _native_steps(model: Model, data: Data, start: Parameters) -> NativeSteps | None:
    """The EM loop of the native core, if it supports this model and free rows are few; otherwise None.

    A call with parameters, least gain and number of steps returns the parameters after these steps, and what else the
    core says about them. Where it got stuck, the next step must be made by `_careful_steps`.
    """
    if not native.active() or not isinstance(data.free, np.ndarray):
        return None
    if not start.cluster_weights.all():  # the core knows no clusters that a class cannot have
        return None
    components, links = model.density.to_native(start.components), model.coupling.to_native()
    if components is None or links is None or not native.loops(components, len(data.free)):
        return None
    groups = data.native_groups
    if groups is None:
        return None

    def steps(parameters: Parameters, least_gain: float, max_iter: int) -> tuple[Parameters, native.Steps]:
        components = model.density.to_native(parameters.components)
        assert components is not None
        done = native.run(
            *(components, links, *groups, parameters.class_weights, parameters.cluster_weights),
            shared_clusters=parameters.shared_clusters,
            link_weight=float(model.link_weight),
            least_gain=float(least_gain),
            max_iter=max_iter,
        )
        after = replace(
            parameters,
            class_weights=done.class_weights,
            cluster_weights=done.cluster_weights,
            components=model.density.from_native(done.components),
        )
        return after, done

    return steps
