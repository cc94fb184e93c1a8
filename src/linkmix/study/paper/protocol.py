"""What the experiments run: data, links, methods and seeds, and the resulting table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from linkmix.basics.arrays import Array, Floats
from linkmix.basics.files import aside
from linkmix.couplings import Graph
from linkmix.densities import Gaussian
from linkmix.engine import class_log_joint, starts
from linkmix.rivals import GMMEC, GMPR
from linkmix.study.comparison import KIND, Run, run_all
from linkmix.study.metrics import purity
from linkmix.study.paper import data as room
from linkmix.study.paper import synthetic
from linkmix.study.paper.chosen import ChosenGMPR
from linkmix.study.paper.figures.styles import COVARIANCES
from linkmix.study.registry import METHODS, Method

if TYPE_CHECKING:
    import pandas as pd

JOURNAL, TABLE = "runs.jsonl", "runs.parquet"


@dataclass(frozen=True)
class Grid:
    """All combinations of some data, methods and numbers of links.

    Attributes
    ----------
    data, methods : tuple of str
        Names of data sets and of methods.
    n_links : tuple of int
        Numbers of links; methods that use no links are run once, without any.
    kind : {"both", "must", "cannot", "even"}
        Which links.
    most_trials : int, optional
        Number of trials after which there are no more runs, for what takes long and varies little.
    """

    data: tuple[str, ...]
    methods: tuple[str, ...]
    n_links: tuple[int, ...]
    kind: KIND = "both"
    most_trials: int | None = None

    def runs(self, seed: int) -> Iterator[Run]:
        """Yield the runs of one trial."""
        if self.most_trials is not None and seed >= self.most_trials:
            return
        for name in self.data:
            for method in self.methods:
                uses_links = METHODS_AND_VARIANTS[method].uses_links
                for n in self.n_links if uses_links else (0,):
                    yield Run(name, method, self.kind if uses_links else "both", n, seed)


@dataclass(frozen=True)
class Experiment:
    """An experiment of the paper, or one of ours.

    Attributes
    ----------
    name : str
        Its name on the command line.
    title : str
        What it shows.
    grids : tuple of Grid
        What is run in each trial.
    trials : int
        Default number of trials.
    """

    name: str
    title: str
    grids: tuple[Grid, ...]
    trials: int = 100

    def runs(self, trials: int) -> Iterator[Run]:
        """Yield all runs, trial by trial: trials take equally long, so the time left can be estimated."""
        for seed in range(trials):
            yield from dict.fromkeys(run for grid in self.grids for run in grid.runs(seed))  # grids may overlap

    @property
    def data(self) -> list[str]:
        """Names of the data sets."""
        return list(dict.fromkeys(name for grid in self.grids for name in grid.data))


class _ChunkletGMMEC(GMMEC):
    """GMM-EC as its authors run it: chunklets, not points, are drawn independently."""

    published_coupling = Graph(sampling="chunklets")


def _paper(name: str, what: str, **settings: Any) -> Method:
    return Method(name, partial(GMPR, **settings), True, True, False, what)


METHODS_AND_VARIANTS: dict[str, Method] = METHODS | {
    method.name: method
    for method in (
        *(_paper(f"paper-{k}", f"GM-PR with {k} clusters per class", clusters_per_class=k) for k in (2, 3, 4)),
        _paper(
            "paper-toy",
            "GM-PR from the start that the toy figure shows",
            init=synthetic.start_at(synthetic.toy()[0], synthetic.TOY_START),
        ),
        _paper("paper-3-diag", "the same with diagonal covariances", clusters_per_class=3, covariance_type="diag"),
        _paper("paper-3-tied", "the same with one covariance for all", clusters_per_class=3, covariance_type="tied"),
        _paper("paper-3-reg", "the same with 0.1 added to the variances", clusters_per_class=3, reg_covar=0.1),
        Method("paper-cv", ChosenGMPR, True, True, False, "GM-PR, clusters per class by cross-validation"),
        Method("gmm-ec-chunklets", _ChunkletGMMEC, True, True, True, "GMM-EC as its authors run it"),
        Method("gmm-ec-must", _ChunkletGMMEC, True, False, True, "the same, with the must-links among the pairs alone"),
    )
}
"""The methods of the registry, and variants that some experiments need."""

MIXTURES = ("gmm", "paper", "gmm-ec-chunklets")
ALL_OF_THE_PAPER = (*MIXTURES, "spectral", "sskk", "csc")
UCI_LINKS = (4, 8, 16, 32, 64, 128, 256)
DIGIT_LINKS = (16, 64, 128, 256)
DIGITS = ("mnist-123", "mnist-4567")
PURITY_LINKS = {"haberman": UCI_LINKS, "thyroid": UCI_LINKS, "mnist-123": DIGIT_LINKS, "mnist-4567": DIGIT_LINKS}
FEW_TRIALS = 40
"""Enough for a verdict; what we ask beyond the paper gets no more."""
COIL, COIL_LINKS = ("coil20-10", "coil20-15", "coil20-20"), (100, 300, 1000)
FEWEST_LINKS = (10, 25, 50, 100, 200)
FEWEST_DATA = (
    *("thyroid", "haberman", "iris", "wine", "breast-cancer"),
    *(f"{name}@1000" for name in ("mnist-123", "mnist-4567", "segment", "pendigits", "digits", "coil20-20")),
)
"""At most 1000 rows of each, because some rivals take time cubic in the number of rows."""


def _purity_against_links(name: str, title: str) -> Experiment:
    n_links = PURITY_LINKS[name]
    return Experiment(
        name,
        title,
        (
            Grid((name,), ALL_OF_THE_PAPER, n_links),
            Grid((name,), MIXTURES, n_links, "must"),
            Grid((name,), (*MIXTURES, "em-pc"), n_links, "cannot"),
        ),
    )


EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            "toy",
            "Two clusters that could be split in two ways; two links of either kind decide",
            (
                Grid(("toy", "toy-large"), ("gmm", "paper"), (4,), "even"),
                *(Grid(("toy",), ("paper", "paper-toy"), (2,), kind) for kind in ("must", "cannot")),
                Grid(("toy",), ("paper-toy",), (4,), "even"),
            ),
        ),
        Experiment(
            "two-moons",
            "Two moons: two clusters per class follow a shape that one cannot",
            (Grid(("two-moons",), ("gmm", "paper", "paper-2"), (4, 16, 64), "even"),),
        ),
        _purity_against_links("haberman", "Survival after surgery: purity against links"),
        _purity_against_links("thyroid", "Thyroid gland: purity against links"),
        _purity_against_links("mnist-123", "Digits 1, 2, 3: purity against links"),
        _purity_against_links("mnist-4567", "Digits 4, 5, 6, 7: purity against links"),
        Experiment(
            "coil20",
            "Twenty objects in 10, 15 and 20 dimensions: three clusters per class, other covariances, cross-validation",
            (
                Grid(COIL, ("paper-3", "sskk", "csc"), COIL_LINKS, "cannot"),  # as the caption says
                Grid(COIL, ("paper-3", "sskk", "csc"), COIL_LINKS, most_trials=FEW_TRIALS),  # as the text may mean
                Grid(COIL, COVARIANCES, COIL_LINKS[::2], "cannot", most_trials=FEW_TRIALS),
                Grid(
                    COIL, ("paper-cv",), COIL_LINKS[-1:], most_trials=FEW_TRIALS
                ),  # cannot-links hardly tell one K from another
            ),
        ),
        Experiment(
            "clusters-per-class",
            "One to four clusters per class on digits",
            (Grid(DIGITS, ("paper", "paper-2", "paper-3", "paper-4"), DIGIT_LINKS),),
        ),
        Experiment(
            "why-ahead",
            "A hypothesis of ours: GMM-EC with the must-links alone among the same pairs",
            tuple(
                Grid((name,), ("paper", "gmm-ec-chunklets", "gmm-ec-must"), n_links)
                for name, n_links in PURITY_LINKS.items()
            ),
        ),
        Experiment(
            "fewest-links",
            "Beyond the paper: every method on all data, with few links",
            (Grid(FEWEST_DATA, tuple(name for name in METHODS if name != "auto-5"), FEWEST_LINKS),),
            trials=10,
        ),
    )
}
PAPER = tuple(name for name in EXPERIMENTS if name != "fewest-links")
"""The experiments of the paper, and the hypothesis about them."""


def run(
    names: Sequence[str],
    folder: Path,
    *,
    trials: int | None = None,
    n_jobs: int = 1,
    progress: bool = True,
) -> "pd.DataFrame":
    """Run experiments, or the part of them that is not yet in the folder.

    Parameters
    ----------
    names : sequence of str
        Names from `EXPERIMENTS`.
    folder : Path
        Folder of the journal of runs and the table; it is created if it does not exist. If the run is interrupted, the
        next one continues from the journal.
    trials : int, optional
        Number of trials; by default that of each experiment.
    n_jobs : int, default=1
        Number of processes.
    progress : bool, default=True
        Whether to show a progress bar.

    Returns
    -------
    pandas.DataFrame
        One row per run, as returned by `linkmix.compare`, with the name of the experiment in the first column. A run
        that two experiments share is made once and has a row in each.
    """
    import pandas as pd

    chosen = [experiment_named(name) for name in names]
    runs = {experiment.name: list(experiment.runs(trials or experiment.trials)) for experiment in chosen}
    # Interleave the trials of all experiments, so that the time left can be estimated from the finished trials.
    in_order = sorted((run for some in runs.values() for run in some), key=lambda run: run.seed)
    sets = {name: load(name) for experiment in chosen for name in experiment.data}
    folder.mkdir(parents=True, exist_ok=True)
    table = run_all(
        in_order, sets, METHODS_AND_VARIANTS, n_jobs=n_jobs, journal=folder / JOURNAL, progress=progress
    ).set_index(list(Run._fields))
    parts = [
        table.loc[pd.MultiIndex.from_tuples(some, names=Run._fields)].reset_index().assign(experiment=name)
        for name, some in runs.items()
    ]
    whole = pd.concat(parts, ignore_index=True)
    whole = whole[["experiment", *whole.columns.drop("experiment")]]
    with aside(folder / TABLE) as place:
        whole.to_parquet(place, index=False)
    return whole


def experiment_named(name: str) -> Experiment:
    """Return the experiment with a name; an unknown name is an error that lists all names.

    Examples
    --------
    >>> experiment_named("thyroid").data
    ['thyroid']
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"experiment {name!r} is not known: choose from {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]


@cache
def load(name: str) -> tuple[Floats, Array]:
    """Points and true classes of a data set, downloaded if necessary.

    Parameters
    ----------
    name : str
        Name of a data set. With ``@`` and a number at its end: a random sample of that many rows, always the same.

    Returns
    -------
    X, y

    Examples
    --------
    >>> X, y = load("iris@60")
    >>> X.shape
    (60, 4)
    """
    plain, _, at_most = name.partition("@")
    found = room.load(plain, download=True)
    if not at_most:
        return found.X, found.y
    rows = np.sort(np.random.default_rng(0).permutation(len(found.X))[: int(at_most)])
    return found.X[rows], found.y[rows]


def floor(y: Array) -> float:
    """Share of the largest class, below which purity cannot fall.

    Examples
    --------
    >>> import numpy as np
    >>> floor(np.array([0, 0, 0, 1]))
    0.75
    """
    return float(np.bincount(y).max() / len(y))


def ceiling(X: Floats, y: Array) -> float:
    """Purity of a supervised mixture on held-out rows: one Gaussian per class, with shrunk covariances.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Points.
    y : ndarray of shape (n_samples,)
        True classes.

    Returns
    -------
    float
        Purity of the predictions of a five-fold cross-validation.

    Examples
    --------
    >>> round(ceiling(*load("iris")), 2)
    0.97
    """
    predicted = np.empty_like(y)
    shape = starts.Shape(len(np.unique(y)))
    density = Gaussian(reg_covar=1e-4, shrinkage=X.shape[1] + 2.0)
    for seen, unseen in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        moments = starts.from_classes(density, X[seen], y[seen], shape, np.random.RandomState(0))
        predicted[unseen] = class_log_joint(density, moments, X[unseen]).argmax(axis=1)
    return purity(y, predicted)
