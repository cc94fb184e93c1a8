"""From raw values to those that are clustered."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.decomposition import PCA

from linkmix.basics.arrays import Floats
from linkmix.data.summary import summarise
from linkmix.study.paper.data.files import Names


class Preparation(NamedTuple):
    """A function of the raw values and their column names, described in one line."""

    text: str
    apply: Callable[[Floats, Names], tuple[Floats, Names]]


def pca(n_components: int, text: str, top: float) -> Preparation:
    """Principal components of values up to ``top``, with the same signs and rounded digits on all machines."""

    def project(X: Floats, columns: Names) -> tuple[Floats, Names]:
        X = X / top
        fitted = PCA(n_components, svd_solver="full").fit(X)
        axes = fitted.components_
        axes = axes * np.sign(axes[np.arange(n_components), np.abs(axes).argmax(axis=1)])[:, None]
        return ((X - fitted.mean_) @ axes.T).round(6), tuple(f"component {j + 1}" for j in range(n_components))

    return Preparation(f"{text}, PCA to {n_components} dimensions", project)


def pixels(top: float) -> Preparation:
    """Pixels up to ``top``, from 0 to 1."""

    def scale(X: Floats, columns: Names) -> tuple[Floats, Names]:
        return X / top, tuple(f"pixel {j + 1}" for j in range(X.shape[1]))

    return Preparation("pixels from 0 to 1", scale)


def _z_score(X: Floats, columns: Names) -> tuple[Floats, Names]:
    varies = np.ptp(X, axis=0) > 0
    X = X[:, varies]
    return summarise(X).standardise(X), tuple(np.array(columns)[varies].tolist())


def _benchmark_scale(X: Floats, columns: Names) -> tuple[Floats, Names]:
    """Scale UCI's thyroid as the benchmark did. The constants come from comparing the two; the error is below 6e-8."""
    means = [109.38, 9.881, 1.902, 2.856, 4.167]
    return (X - means) / [11.53631072, 4.629433608, 1.101695665, 6.857854293, 8.198731765], columns


AS_IT_IS = Preparation("as it is", lambda X, columns: (X, columns))
BENCHMARK = Preparation("scaled as in the benchmark of Raetsch et al.", _benchmark_scale)
SIXTEENTHS = Preparation("pixels / 16", lambda X, columns: (X / 16, columns))
Z_SCORED = Preparation("z-scored", _z_score)
Z_SCORED_18 = Preparation("z-scored, the constant column dropped", _z_score)
