"""A prior that pulls the covariances of all components towards a common one.

It counts as ``weight`` observations with the covariance S0 pooled over the groups of the start:

    log prior = -weight / 2 * sum over components of (log |S| + tr(S^-1 S0))

S0 is fixed by the start, so that EM never lowers J plus the log-prior.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkmix.basics.arrays import Floats
from linkmix.densities.base import given_array
from linkmix.densities.covariance import CovarianceForm, per_covariance


@dataclass(frozen=True)
class Shrinkage:
    """The prior for one form of covariance. Weight 0 means no prior; a tied covariance needs none."""

    form: CovarianceForm
    n_observations: float

    @property
    def weight(self) -> float:
        """Number of observations that the prior counts as."""
        return 0.0 if self.form.shared else float(self.n_observations)

    def shrink(self, covariances: Floats, weight: Floats, pooled: Floats | None) -> Floats:
        """Covariances of components with this ``weight``, pulled towards the pooled one; unchanged without a prior."""
        if not self.weight:
            return covariances
        share = per_covariance(weight / (weight + self.weight), covariances)
        return np.asarray(share * covariances + (1 - share) * self.target(pooled))

    def log_prior(self, covariances: Floats, whiteners: Floats, pooled: Floats | None, n_features: int) -> float:
        """Logarithm of the prior, up to a constant."""
        if not self.weight:
            return 0.0
        target = np.broadcast_to(self.target(pooled), covariances.shape)
        half_log_precision = self.form.half_log_precision(whiteners, n_features)
        trace = self.form.trace(whiteners, target, n_features)
        return self.weight * float((half_log_precision - 0.5 * trace).sum())

    def given(self, mapping: Mapping[str, Any], covariances: Floats, name: str, n_features: int) -> Floats | None:
        """The user's target ``pooled_<name>``, by default the mean of the covariances."""
        if not self.weight:
            return None
        if f"pooled_{name}" not in mapping:
            return np.asarray(covariances.mean(axis=0))
        pooled = given_array(mapping, f"pooled_{name}", self.form.shape((), n_features))
        values = np.linalg.eigvalsh(self.form.matrix(pooled, n_features))
        smallest = float(values[0])
        if smallest < -1e-10 * float(values[-1]):  # below zero by more than rounding
            raise ValueError(
                f"init['pooled_{name}'] has a negative eigenvalue, {smallest:.3g}: give a covariance, or leave it "
                f"out for the mean of init['{name}s']"
            )
        return pooled

    def checked(self, pooled: Floats | None) -> Floats | None:
        """The pooled covariance unchanged; an error if there is a prior but no pooled covariance."""
        return self.target(pooled) if self.weight else pooled

    def target(self, pooled: Floats | None) -> Floats:
        """The pooled covariance; an error if the parameters were made without a prior."""
        if pooled is None:
            raise ValueError(
                f"the parameters have no pooled covariance, which shrinkage={self.n_observations!r} needs: create "
                "them with the start method of this density"
            )
        return pooled
