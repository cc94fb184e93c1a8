"""What the paper claims, and whether our runs confirm it.

Methods are compared trial by trial, on the same links and starts. Each difference has a 95 % interval (Student's t). A
method is ahead if the whole interval is above zero; it is at least as good if the whole interval is above minus a
margin. A difference that is merely not significant shows nothing: the cell is open.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import betaincinv, stdtrit

from linkmix.study.paper import synthetic
from linkmix.study.paper.figures.runs import score
from linkmix.study.paper.figures.styles import STYLES

if TYPE_CHECKING:
    import pandas as pd

Cells = Any
"""A table with a row for each data set and number of links; the pandas types cannot express what a row contains."""
Verdict = Literal["holds", "holds in part", "does not hold", "undecided", "not enough trials", "cannot be tested"]
PURITY_SETS = ("haberman", "thyroid", "mnist-123", "mnist-4567")
MARGIN = 0.01
"""A method that is behind by less than this, in mean purity, is at least as good: one point in a hundred."""
CONFIDENCE = 0.95
"""Of the intervals."""
WHATEVER = 0.9
"""A share of trials above this counts as "whatever the start"."""
ENOUGH_TRIALS = 30
"""With fewer, no verdict is given on what varies over trials."""


@dataclass(frozen=True)
class Finding:
    """What our runs say about a claim.

    Attributes
    ----------
    verdict : str
        "holds" if all cells show it, "holds in part" if more than half do, "does not hold" if at least half show the
        contrary or cells that show it are at most half and none is open, else "undecided"; "not enough trials" or
        "cannot be tested".
    figure : str
        The figures that the verdict is based on.
    """

    verdict: Verdict
    figure: str


@dataclass(frozen=True)
class Claim:
    """A claim of the paper.

    Attributes
    ----------
    text : str
        The claim in our words.
    experiments : tuple of str
        The experiments that test it; all of them must be in the table. Empty if no run can test it.
    examine : callable
        From the table of runs to a `Finding`.
    """

    text: str
    experiments: tuple[str, ...]
    examine: "Callable[[pd.DataFrame], Finding]"


def examine(table: "pd.DataFrame") -> list[tuple[Claim, Finding]]:
    """Examine each claim that the runs in a table can test.

    Parameters
    ----------
    table : DataFrame
        Runs, as returned by `linkmix.study.paper.protocol.run`.

    Returns
    -------
    list of (Claim, Finding)
    """
    there = set(table["experiment"])
    return [(claim, claim.examine(table)) for claim in CLAIMS if there.issuperset(claim.experiments)]


def differences(
    table: "pd.DataFrame", one: str, other: str, *, kind: str = "both", experiments: Iterable[str] = PURITY_SETS
) -> Cells:
    """Mean difference of two methods over trials, with its interval, for all data and numbers of links.

    Parameters
    ----------
    table : DataFrame
        Runs.
    one, other : str
        Names of the methods. A method that uses no links is compared at every number of links.
    kind : str
        Kind of links.
    experiments : iterable of str
        Names of the experiments to use.

    Returns
    -------
    DataFrame
        Index ``data`` and ``n_links``; columns ``mean``, ``low`` and ``high`` of its interval, infinite for a single
        trial, the number of ``trials``, and the means ``one`` and ``other``.

    Examples
    --------
    >>> import pandas as pd
    >>> runs = pd.DataFrame({"method": ["a", "a", "b", "b"], "n_links": [4, 4, 0, 0], "seed": [0, 1, 0, 1]})
    >>> runs = runs.assign(experiment="e", data="iris", kind="both", purity=[0.8, 0.9, 0.6, 0.68], purity_predict=None)
    >>> differences(runs, "a", "b", experiments=["e"]).round(3).values.tolist()
    [[0.21, 0.083, 0.337, 2.0, 0.85, 0.64]]
    """
    chosen: Any = table[table["experiment"].isin(list(experiments))]
    chosen = chosen.assign(score=score(chosen))
    with_links = chosen[(chosen["kind"] == kind) & (chosen["n_links"] > 0)]
    left = with_links[with_links["method"] == one].set_index(["data", "n_links", "seed"])["score"]
    right = with_links[with_links["method"] == other].set_index(["data", "n_links", "seed"])["score"]
    if right.empty:
        blind = chosen[(chosen["method"] == other) & (chosen["n_links"] == 0)].drop_duplicates(["data", "seed"])
        baseline = blind.set_index(["data", "seed"])["score"]
        keys = left.index.droplevel("n_links")
        right = left.copy()
        right[:] = baseline.reindex(keys).to_numpy()
    both = left.to_frame("one").join(right.to_frame("other"), how="inner").dropna()
    both["mean"] = both["one"] - both["other"]
    groups = both.groupby(level=["data", "n_links"], sort=False)
    result = groups[["mean", "one", "other"]].mean()
    result["trials"] = groups.size()
    half = half_width(groups["mean"].std(ddof=1), result["trials"])
    result["low"], result["high"] = result["mean"] - half, result["mean"] + half
    return result[["mean", "low", "high", "trials", "one", "other"]]


def half_width(deviation: Any, n: Any) -> Any:
    """Half the width of the interval of a mean of n trials; infinite for a single one.

    Examples
    --------
    >>> float(half_width(1.0, 100).round(3))
    0.198
    """
    n = np.asarray(n)
    several = np.maximum(n, 2)
    half = stdtrit(several - 1, (1 + CONFIDENCE) / 2) * np.asarray(deviation) / np.sqrt(several)
    return np.where(n > 1, half, np.inf)


@dataclass(frozen=True)
class Tally:
    """In how many cells a statement is shown, in how many its contrary, and how many are open."""

    shown: int
    against: int
    open: int
    n_trials: int

    @classmethod
    def of(cls, cells: Cells, ahead: bool) -> "Tally":
        """Count the cells in which the first method is ahead, or at least as good."""
        least = 0.0 if ahead else -MARGIN
        shown, against = int((cells["low"] > least).sum()), int((cells["high"] < least).sum())
        return cls(shown, against, len(cells) - shown - against, int(cells["trials"].min()))

    def __add__(self, other: "Tally") -> "Tally":
        """Both together."""
        return Tally(
            self.shown + other.shown,
            self.against + other.against,
            self.open + other.open,
            min(self.n_trials, other.n_trials),
        )

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.shown + self.against + self.open

    @property
    def verdict(self) -> Verdict:
        """What follows from the cells together."""
        if self.n_trials < ENOUGH_TRIALS:
            return "not enough trials"
        if self.shown == self.n_cells:
            return "holds"
        if 2 * self.shown > self.n_cells:
            return "holds in part"
        return "undecided" if 2 * self.against < self.n_cells and self.open else "does not hold"

    def __str__(self) -> str:
        """The counts in words."""
        return f"{self.shown} of {self.n_cells}" + "".join(
            f", {n} {word}" for n, word in ((self.against, "not"), (self.open, "open")) if n
        )


def _count(cells: Cells, ahead: bool = False) -> tuple[Tally, str]:
    """Number of cells in which the first method is ahead, or at least as good, in total and for each data set."""
    tally = Tally.of(cells, ahead)
    parts = [
        f"{name} {Tally.of(cells.loc[[name]], ahead)}, mean difference {cells.loc[name, 'mean'].mean():+.3f}, "
        f"intervals from {cells.loc[name, 'low'].min():+.3f} to {cells.loc[name, 'high'].max():+.3f}"
        for name in cells.index.unique("data")
    ]
    return tally, f"{'ahead' if ahead else 'at least as good'} in {tally} cells ({'; '.join(parts)})"


def _counted(cells: Cells, ahead: bool = False) -> Finding:
    tally, text = _count(cells, ahead)
    return Finding(tally.verdict, text)


def _toy_panels(table: "pd.DataFrame") -> Finding:
    X, y = synthetic.toy()
    errors = {name: synthetic.count_errors(y, model.predict(X)) for name, model in synthetic.toy_fits(X).items()}
    others = errors["none"] >= len(y) / 4
    turned = sum(errors[kind] <= 2 for kind in ("both", "must", "cannot"))
    return Finding(
        Tally(turned + others, 4 - turned - others, 0, ENOUGH_TRIALS).verdict,  # one start, nothing that varies
        f"points on the wrong side, of {len(y)}: {errors['none']} without links, {errors['both']} with 2 + 2, "
        f"{errors['must']} with 2 must-links, {errors['cannot']} with 2 cannot-links, from one start",
    )


def _toy_draws(table: "pd.DataFrame") -> Finding:
    rows: Any = table[(table["experiment"] == "toy") & (table["n_links"] > 0)]
    rows = rows.assign(turned=score(rows) >= 0.95)
    shares = rows.groupby(["data", "method", "kind"])["turned"].mean()
    names = {"paper": "k-means++ start", "paper-toy": "start of the figure"}
    kinds = {"even": "2 + 2 links", "must": "2 must-links", "cannot": "2 cannot-links"}
    text = ", ".join(
        f"{data}, {names[method]}, {kinds[kind]}: {share:.0%}" for (data, method, kind), share in shares.items()
    )
    ours = rows[rows["method"] == "paper"].groupby(["data", "kind"])["turned"].agg(["sum", "size"])
    low, high = (betaincinv(ours["sum"] + 0.5, ours["size"] - ours["sum"] + 0.5, q) for q in (0.025, 0.975))  # Jeffreys
    shown, against = int((low > WHATEVER).sum()), int((high < WHATEVER).sum())
    tally = Tally(shown, against, len(ours) - shown - against, int(ours["size"].min()))
    return Finding(tally.verdict, f"share of the trials that end at the wanted split: {text}")


def _moons(table: "pd.DataFrame") -> Finding:
    X, y = synthetic.two_moons()
    errors = {name: synthetic.count_errors(y, model.predict(X)) for name, model in synthetic.two_moons_fits(X).items()}
    rows: Any = table[table["experiment"] == "two-moons"]
    means = rows.assign(score=score(rows)).groupby(["method", "n_links"])["score"].mean()
    names = {"gmm": "GMM", "paper": "K = 1", "paper-2": "K = 2"}
    draws = ", ".join(f"{names[method]} with {n} links {mean:.3f}" for (method, n), mean in means.items())
    return Finding(
        "holds" if errors["two"] < errors["one"] <= errors["none"] else "does not hold",
        f"wrong points in the figure, of {len(y)}: GMM {errors['none']}, K = 1 {errors['one']}, K = 2 {errors['two']} "
        f"(the paper counts {', '.join(map(str, synthetic.MOONS_OF_THE_PAPER))} on points of its own); "
        f"mean purity over random starts and links: {draws}",
    )


def _gmm_ec(table: "pd.DataFrame") -> Finding:
    return _counted(differences(table, "paper", "gmm-ec-chunklets"), ahead=True)


def _gmm_ec_must(table: "pd.DataFrame") -> Finding:
    return _counted(differences(table, "paper", "gmm-ec-chunklets", kind="must"))


def _must(table: "pd.DataFrame") -> Finding:
    return _counted(differences(table, "paper", "gmm", kind="must"))


def _cannot(table: "pd.DataFrame") -> Finding:
    return _counted(differences(table, "paper", "gmm", kind="cannot"))


def _em_pc(table: "pd.DataFrame") -> Finding:
    return _counted(differences(table, "paper", "em-pc", kind="cannot"))


def _em_pc_decay(table: "pd.DataFrame") -> Finding:
    cells = differences(table, "em-pc", "gmm", kind="cannot")
    gains = [cells.loc[name].iloc[-1] for name in PURITY_SETS]
    text = ", ".join(
        f"{name} {gain['mean']:+.3f} ({gain['low']:+.3f} to {gain['high']:+.3f})"
        for name, gain in zip(PURITY_SETS, gains, strict=True)
    )
    steps = [(gains[0], gains[2]), (gains[1], gains[2]), (gains[2], gains[3])]
    far = [float(np.hypot(one["high"] - one["mean"], other["high"] - other["mean"])) for one, other in steps]
    falls = [one["mean"] - other["mean"] for one, other in steps]
    shown = sum(fall > by for fall, by in zip(falls, far, strict=True))
    against = sum(fall < -by for fall, by in zip(falls, far, strict=True))
    tally = Tally(shown, against, 3 - shown - against, int(cells["trials"].min()))
    return Finding(
        tally.verdict,
        f"gain of EM-PC over GMM with the most cannot-links (2, 2, 3 and 4 classes): {text}; it falls from 2 to 3 and "
        f"from 3 to 4 classes in {tally} steps",
    )


def _variance(table: "pd.DataFrame") -> Finding:
    chosen: Any = table[table["experiment"].isin(PURITY_SETS) & (table["n_links"] > 0) & (table["kind"] == "both")]
    spread = chosen.assign(score=score(chosen)).groupby(["data", "n_links", "method"])["score"].std().unstack()
    lowest = spread["paper"] <= spread.min(axis=1) + 1e-12
    beside = spread["paper"] <= spread["gmm-ec-chunklets"]
    n_trials = int(chosen.groupby(["data", "n_links", "method"]).size().min())
    return Finding(
        Tally(int(lowest.sum()), int((~lowest).sum()), 0, n_trials).verdict,
        f"GM-PR has the smallest standard deviation of all in {int(lowest.sum())} of {len(lowest)} cells, a smaller "
        f"one than GMM-EC in {int(beside.sum())}",
    )


def _coil(table: "pd.DataFrame") -> Finding:
    rivals = ("sskk", "csc")
    (sskk, about_sskk), (csc, about_csc) = (
        _count(differences(table, "paper-3", rival, experiments=["coil20"]), ahead=True) for rival in rivals
    )
    return Finding((sskk + csc).verdict, f"against SSKK {about_sskk}; against CSC {about_csc}")


def _more_clusters(name: str, ahead: bool, above: int) -> "Callable[[pd.DataFrame], Finding]":
    def look(table: "pd.DataFrame") -> Finding:
        import pandas as pd

        parts = []
        for method in ("paper-2", "paper-3", "paper-4"):
            cells = differences(table, method, "paper", experiments=["clusters-per-class"]).loc[[name]]
            parts.append(cells[cells.index.get_level_values("n_links") > above].assign(method=method))
        cells = pd.concat(parts)
        tally, columns = Tally.of(cells, ahead), (cells["method"], cells["mean"], cells["low"], cells["high"])
        text = ", ".join(
            f"K = {method[-1]} with {n} links {mean:+.3f} ({low:+.3f} to {high:+.3f})"
            for (_, n), method, mean, low, high in zip(cells.index, *columns, strict=True)
        )
        word = "better" if ahead else "at least as good"
        return Finding(tally.verdict, f"{word} in {tally} cells; difference to K = 1: {text}")

    return look


def _against(rivals: Sequence[str]) -> "Callable[[pd.DataFrame], Finding]":
    def look(table: "pd.DataFrame") -> Finding:
        tallies = {rival: Tally.of(differences(table, "paper", rival), ahead=False) for rival in rivals}
        first, *others = tallies.values()
        text = "; ".join(f"{STYLES[rival].name} {tally}" for rival, tally in tallies.items())
        return Finding(sum(others, first).verdict, f"cells in which GM-PR is at least as good as {text}")

    return look


def _no_numbers(table: "pd.DataFrame") -> Finding:
    return Finding("cannot be tested", "the text prints no purity and no number of links, only curves")


def _cross_validation(table: "pd.DataFrame") -> Finding:
    return Finding("cannot be tested", "the text does not say what was held out, nor how the fits were scored")


CLAIMS = (
    Claim(
        "Toy: without links the mixture takes the other split; 2 + 2 links, 2 must-links or 2 cannot-links turn it.",
        ("toy",),
        _toy_panels,
    ),
    Claim("Toy: so few links are enough whatever the start and the links.", ("toy",), _toy_draws),
    Claim("GM-PR is clearly ahead of GMM-EC with any number of links on all data.", PURITY_SETS, _gmm_ec),
    Claim(
        "GM-PR is at least as good as each rival everywhere.",
        PURITY_SETS,
        _against(("gmm", "spectral", "sskk", "csc", "gmm-ec-chunklets")),
    ),
    Claim("GM-PR does well with must-links alone: no worse than without links.", PURITY_SETS, _must),
    Claim("GM-PR is at least as good as GMM-EC with must-links alone.", PURITY_SETS, _gmm_ec_must),
    Claim(
        "Cannot-links alone serve GM-PR with two classes and with more: no worse than without links.",
        PURITY_SETS,
        _cannot,
    ),
    Claim("GM-PR is at least as good as EM-PC with cannot-links alone.", PURITY_SETS, _em_pc),
    Claim("EM-PC gains less the more classes there are.", PURITY_SETS, _em_pc_decay),
    Claim("GM-PR varies less over trials than the others.", PURITY_SETS, _variance),
    Claim(
        "Two moons: two clusters per class make fewer errors than one, and one no more than GMM.",
        ("two-moons",),
        _moons,
    ),
    Claim(
        "COIL-20: GM-PR with K = 3 beats SSKK and CSC with up to 1000 links, in 10, 15 and 20 dimensions.",
        ("coil20",),
        _coil,
    ),
    Claim(
        "Digits 1, 2, 3: K = 2, 3 and 4 beat K = 1 above 64 links.",
        ("clusters-per-class",),
        _more_clusters("mnist-123", True, 64),
    ),
    Claim(
        "Digits 4, 5, 6, 7: more clusters per class do not hurt.",
        ("clusters-per-class",),
        _more_clusters("mnist-4567", False, 0),
    ),
    Claim("How many links fewer than the state of the art GM-PR needs.", (), _no_numbers),
    Claim("COIL-20: cross-validation chooses K = 3.", (), _cross_validation),
)
"""The claims of the paper, in its order."""
