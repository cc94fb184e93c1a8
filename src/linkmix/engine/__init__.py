"""The EM engine: fits any density combined with any coupling."""

from linkmix.engine.acceleration import pays
from linkmix.engine.loop import fit
from linkmix.engine.prediction import NOISE, Mixture, class_log_joint, mixture_of, most_probable_classes, sample
from linkmix.engine.steps import (
    cluster_log_joint,
    expect,
    free_sums,
    label_log_density,
    log_prior,
    maximise,
    renumber,
)
from linkmix.engine.values import Data, Expectation, Fit, FreeSums, Model, Parameters

__all__ = [
    "NOISE",
    "Data",
    "Expectation",
    "Fit",
    "FreeSums",
    "Mixture",
    "Model",
    "Parameters",
    "class_log_joint",
    "cluster_log_joint",
    "expect",
    "fit",
    "free_sums",
    "label_log_density",
    "log_prior",
    "maximise",
    "mixture_of",
    "most_probable_classes",
    "pays",
    "renumber",
    "sample",
]
