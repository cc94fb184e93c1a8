"""What the paper claims, and whether our runs confirm it; `evidence` says how methods are compared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import betaincinv

from linkmix.study.paper import synthetic
from linkmix.study.paper.chosen import CANDIDATES
from linkmix.study.paper.evidence import ENOUGH_TRIALS, PURITY_SETS, Cells, Tally, Verdict, differences
from linkmix.study.paper.figures.runs import score
from linkmix.study.paper.figures.styles import COVARIANCES, STYLES

if TYPE_CHECKING:
    import pandas as pd

WHATEVER = 0.9
"""A share of trials above this counts as "whatever the start"."""


@dataclass(frozen=True)
class Finding:
    """What our runs say about a claim.

    Attributes
    ----------
    verdict : str
        "holds" if all cells show it, "holds in part" if more than half do; otherwise "does not hold" if no cell is open
        or more cells show the contrary than chance explains, else "undecided"; "not enough trials" or "cannot be
        tested".
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
    name : str
        A short name, by which pages refer to it.
    text : str
        The claim in our words.
    experiments : tuple of str
        The experiments that test it; all of them must be in the table. Empty if no run can test it.
    examine : callable
        From the table of runs to a `Finding`.
    """

    name: str
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
    return [(claim, claim.examine(table)) for claim in (*CLAIMS, *OURS) if there.issuperset(claim.experiments)]


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
        f"(the paper counts {', '.join(map(str, synthetic.MOONS_OF_THE_PAPER))} on points of its own; on sixteen "
        "points that were looked for they come out); "
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


def _coil(kind: str, ours: str = "paper-3") -> "Callable[[pd.DataFrame], Finding]":
    def look(table: "pd.DataFrame") -> Finding:
        (sskk, about_sskk), (csc, about_csc) = (
            _count(differences(table, ours, rival, kind=kind, experiments=["coil20"]), ahead=True)
            for rival in ("sskk", "csc")
        )
        return Finding((sskk + csc).verdict, f"against SSKK {about_sskk}; against CSC {about_csc}")

    return look


def _coil_covariances(table: "pd.DataFrame") -> Finding:
    tallies, parts = [], []
    for method in COVARIANCES:
        cells = differences(table, method, "sskk", kind="cannot", experiments=["coil20"])
        tallies.append(Tally.of(cells, ahead=True))
        by_data = ", ".join(f"{cells.loc[name, 'mean'].mean():+.3f}" for name in cells.index.unique("data"))
        parts.append(f"{STYLES[method].name}: {by_data}, ahead in {tallies[-1]} cells")
    return Finding(
        sum(tallies[1:], tallies[0]).verdict,
        f"mean difference to SSKK in each number of dimensions: {'; '.join(parts)}",
    )


def _cross_validation(table: "pd.DataFrame") -> Finding:
    runs: Any = table[(table["method"] == "paper-cv") & table["chosen"].notna()]
    runs = runs.join(
        runs["chosen"].str.extract(r"links (?P<links>\d+), likelihood (?P<likelihood>\d+), rule (?P<rule>\d+)")
    )
    tally, parts = Tally(0, 0, 0, len(runs)), []
    for criterion in ("links", "likelihood", "rule"):
        counts = runs[criterion].value_counts()
        parts.append(f"by {criterion}: " + ", ".join(f"K = {k} {counts.get(str(k), 0)}" for k in CANDIDATES))
    for _, some in runs.groupby("data"):
        n, hits = len(some), int((some["rule"] == "3").sum())
        low, high = (float(betaincinv(hits + 0.5, n - hits + 0.5, q)) for q in (0.025, 0.975))  # Jeffreys
        tally += Tally(int(low > 0.5), int(high < 0.5), int(low <= 0.5 <= high), n)
    mean = differences(table, "paper-cv", "paper-3", experiments=["coil20"])["mean"].mean()
    return Finding(
        tally.verdict,
        f"fits that choose each number, {'; '.join(parts)}; mean purity with the chosen number minus that with K = 3: "
        f"{mean:+.3f}",
    )


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


def _why_ahead(table: "pd.DataFrame") -> Finding:
    cells = differences(table, "paper", "gmm-ec-must", experiments=["why-ahead"])
    tally, text = _count(cells, ahead=True)
    most = ", ".join(
        f"{name} {row['mean']:+.3f} ({row['low']:+.3f} to {row['high']:+.3f})"
        for name, row in ((name, cells.loc[name].iloc[-1]) for name in cells.index.unique("data"))
    )
    return Finding(tally.verdict, f"{text}; with the most links: {most}")


def _no_numbers(table: "pd.DataFrame") -> Finding:
    return Finding("cannot be tested", "the text prints no purity and no number of links, only curves")


CLAIMS = (
    Claim(
        "toy",
        "Toy: without links the mixture takes the other split; 2 + 2 links, 2 must-links or 2 cannot-links turn it.",
        ("toy",),
        _toy_panels,
    ),
    Claim("toy-draws", "Toy: so few links are enough whatever the start and the links.", ("toy",), _toy_draws),
    Claim("ahead", "GM-PR is clearly ahead of GMM-EC with any number of links on all data.", PURITY_SETS, _gmm_ec),
    Claim(
        "rivals",
        "GM-PR is at least as good as each rival everywhere.",
        PURITY_SETS,
        _against(("gmm", "spectral", "sskk", "csc", "gmm-ec-chunklets")),
    ),
    Claim("must", "GM-PR does well with must-links alone: no worse than without links.", PURITY_SETS, _must),
    Claim("must-gmm-ec", "GM-PR is at least as good as GMM-EC with must-links alone.", PURITY_SETS, _gmm_ec_must),
    Claim(
        "cannot",
        "Cannot-links alone serve GM-PR with two classes and with more: no worse than without links.",
        PURITY_SETS,
        _cannot,
    ),
    Claim("em-pc", "GM-PR is at least as good as EM-PC with cannot-links alone.", PURITY_SETS, _em_pc),
    Claim("em-pc-decay", "EM-PC gains less the more classes there are.", PURITY_SETS, _em_pc_decay),
    Claim("variance", "GM-PR varies less over trials than the others.", PURITY_SETS, _variance),
    Claim(
        "moons",
        "Two moons: two clusters per class make fewer errors than one, and one no more than GMM.",
        ("two-moons",),
        _moons,
    ),
    Claim(
        "coil",
        "COIL-20: GM-PR with K = 3 beats SSKK and CSC with up to 1000 cannot-links, in 10, 15 and 20 dimensions.",
        ("coil20",),
        _coil("cannot"),
    ),
    Claim("coil-both", "COIL-20: the same with links of both kinds.", ("coil20",), _coil("both")),
    Claim("coil-choice", "COIL-20: cross-validation chooses K = 3.", ("coil20",), _cross_validation),
    Claim(
        "digits-123",
        "Digits 1, 2, 3: K = 2, 3 and 4 beat K = 1 above 64 links.",
        ("clusters-per-class",),
        _more_clusters("mnist-123", True, 64),
    ),
    Claim(
        "digits-4567",
        "Digits 4, 5, 6, 7: more clusters per class do not hurt.",
        ("clusters-per-class",),
        _more_clusters("mnist-4567", False, 0),
    ),
    Claim("fewer", "How many links fewer than the state of the art GM-PR needs.", (), _no_numbers),
)
"""The claims of the paper, in its order."""
OURS = (
    Claim(
        "why-ahead",
        "Our hypothesis: GM-PR is ahead of a GMM-EC that gets the must-links alone among the same random pairs.",
        ("why-ahead",),
        _why_ahead,
    ),
    Claim(
        "coil-covariances",
        "Our question: with another covariance GM-PR with K = 3 is ahead of SSKK on COIL-20.",
        ("coil20",),
        _coil_covariances,
    ),
)
"""What the paper does not say, and we asked after we had seen its figures and ours."""
