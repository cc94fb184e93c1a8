"""SQUAREM: EM that extrapolates along its last two steps where that raises the objective.

Near the end, EM moves by ever smaller steps in nearly the same direction. From parameters x0 with the EM steps x1 and
x2, take r = x1 - x0 and v = (x2 - x1) - r. SQUAREM goes to ``x0 + 2 a r + a^2 v`` with ``a = |r| / |v|`` (Varadhan and
Roland 2008, scheme S3); a = 1 gives x2. The E-step there says whether the objective rose, and is at the same time the
first half of the next EM step, so no pass over the rows is lost. Otherwise the fit goes on from x2.

The parameters are coordinates about x0 that any numbers are valid for, in units of the Fisher information: neither the
path nor the number of steps depends on the units of the columns.
"""

from typing import Any

import numpy as np

from linkmix import native
from linkmix.basics.arrays import Floats, shares
from linkmix.basics.errors import DegenerateCluster, InfeasibleLinks
from linkmix.densities.base import Density
from linkmix.engine.careful import Place, careful_step, place, settled
from linkmix.engine.steps import SMALLEST_CLUSTER_WEIGHT, maximise
from linkmix.engine.values import Data, Fit, Model, Parameters

LONGER = 4.0
"""Factor by which the longest step grows where it was good, and shrinks where it was not, as in the paper."""
SHORTEST = 1.5
"""The longest step does not shrink below this."""
FARTHEST = 50.0
"""No coordinate may move further than this, in standard deviations or nats: it would be far off the data."""


def pays(n_rows: int, n_features: int, n_components: int) -> bool:
    """Whether acceleration saves time, which it does where a step takes over a millisecond.

    Smaller steps are made faster in the native core than chosen here. The shape of the problem alone decides, so that
    results do not depend on where rows are, or on the core.
    """
    return n_rows * n_components * n_features * (n_features + 4) > native.CHUNK_WORK


def accelerated_steps(model: Model, data: Data, start: Parameters, *, least_gain: float, max_iter: int) -> Fit:
    """Repeat plain and extrapolated steps until a plain one gains at most ``least_gain``.

    Each E-step after the first counts as a step. One that was in vain repeats the objective in the trace.
    """
    now = place(model, data, start)
    trace, longest, converged = [now.objective], 1.0, False
    while not converged and len(trace) <= max_iter:
        first = careful_step(model, data, now)
        trace.append(first.objective)
        converged = first.objective - now.objective <= least_gain
        before, now = now, first
        if converged or len(trace) > max_iter:
            break
        second = maximise(model, first.expectation, first.parameters)
        coordinates = _Coordinates(model.density, before.parameters)
        r = coordinates.of(first.parameters)
        v = coordinates.of(second) - 2 * r
        length = float(np.clip(np.linalg.norm(r) / np.linalg.norm(v), 1.0, longest)) if v.any() else 1.0
        if length > 1.0:
            parameters = coordinates.at(2 * length * r + length**2 * v, second)
            far = None if parameters is None else _place_if_valid(model, data, parameters)
            if far is not None and far.objective >= first.objective:
                now = far
                trace.append(far.objective)
                longest = LONGER * longest if length == longest else longest
                continue
            longest = max(SHORTEST, length / LONGER)
            if far is not None:
                trace.append(first.objective)
                if len(trace) > max_iter:
                    break
        else:
            longest *= LONGER if longest == 1.0 else 1.0
        now = settled(model, data, first, second)
        trace.append(now.objective)
        converged = now.objective - first.objective <= least_gain
    return Fit(now.parameters, now.expectation.log_likelihood, np.array(trace), converged)


def _place_if_valid(model: Model, data: Data, parameters: Parameters) -> Place | None:
    try:
        with np.errstate(all="ignore"):
            return place(model, data, parameters)
    except (DegenerateCluster, InfeasibleLinks):
        return None


class _Coordinates:
    """Coordinates of parameters about others. Reliabilities have none."""

    def __init__(self, density: Density[Any, Any], about: Parameters) -> None:
        self.density, self.about = density, about
        joint = about.class_weights[:, None] * about.cluster_weights  # (M, K) or (M, C)
        per_component = joint.sum(axis=0) if about.shared_clusters else joint.ravel()
        smallest = np.finfo(np.float64).tiny
        self.scales = [np.sqrt(np.maximum(share, smallest)) for share in (about.class_weights, joint, per_component)]

    def of(self, parameters: Parameters) -> Floats:
        """Coordinates as one vector."""
        components = self.density.to_vector(parameters.components, self.about.components)
        assert components is not None
        with np.errstate(all="ignore"):  # a cluster weight of 0 stays at 0
            ratio = np.where(
                self.about.cluster_weights > 0, parameters.cluster_weights / self.about.cluster_weights, 1.0
            )
            parts = [np.log(parameters.class_weights / self.about.class_weights), np.log(ratio), components]
        scales = self.scales[0], self.scales[1], self.scales[2][:, None]
        return np.concatenate([(part * scale).ravel() for part, scale in zip(parts, scales, strict=True)])

    def at(self, vector: Floats, last: Parameters) -> Parameters | None:
        """Parameters at coordinates, with the reliabilities of ``last``; None if they are too far away."""
        of_class, of_cluster, of_component = self.scales
        M, K = of_cluster.shape
        classes, clusters, components = np.split(vector, [M, M + M * K])
        classes = classes / of_class
        clusters = clusters.reshape(M, K) / of_cluster
        components = components.reshape(len(of_component), -1) / of_component[:, None]
        if not all(np.abs(part).max() <= FARTHEST for part in (classes, clusters, components)):
            return None
        try:
            with np.errstate(all="ignore"):
                weights = shares(self.about.log_cluster_weights() + clusters)
                lowest = np.where(self.about.cluster_weights > 0, SMALLEST_CLUSTER_WEIGHT, 0.0)
                return Parameters(
                    shares(np.log(self.about.class_weights) + classes),
                    np.maximum(weights, lowest),
                    self.density.from_vector(components, self.about.components),
                    last.reliability,
                    last.shared_clusters,
                )
        except DegenerateCluster:
            return None
