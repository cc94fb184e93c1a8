"""LinkMixture, the scikit-learn face of the engine: one mixture with settings of your own."""

from linkmix.mixture.link_mixture import LinkMixture
from linkmix.mixture.trials import Trials, fit_trials

__all__ = ["LinkMixture", "Trials", "fit_trials"]
