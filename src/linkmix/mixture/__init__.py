"""`LinkMixture`, the scikit-learn estimator on top of the engine: one mixture, with settings that you choose."""

from linkmix.mixture.calibrated import Calibration, calibrate
from linkmix.mixture.link_mixture import LinkMixture
from linkmix.mixture.trials import Trials, fit_trials

__all__ = ["Calibration", "LinkMixture", "Trials", "calibrate", "fit_trials"]
