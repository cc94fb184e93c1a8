"""Does the tool tell the truth about its result: probabilities, quality, and annotators?

Random links of true labels. Probabilities are of ``predict_proba``, which sees the points alone; classes are matched to
the true ones first.

    python -m benchmarks.honesty probabilities --draws 10 --out runs.csv
    python -m benchmarks.honesty annotators --draws 3
    python -m benchmarks.honesty diagram --links 25 --draws 2 --plot docs/images/reliability.png

``probabilities`` prints, for each number of links,

    ARI             of predict
    right, sure     share of points in the right class, and mean of the largest probability: they should agree
    ECE             how far they are apart, in ten bins of the largest probability
    Brier, base     of the probability that two random points share a class, and of always saying how many do
    worse           share of runs in which Brier is above the base by more than .005
    error, bias     of quality_.pairs_right, against the true share of pairs that are judged right
    covers          share of runs in which the true share is within quality_.low and quality_.high
    time            of a fit, over that of one without calibration (--time; the first draw alone)

``--plain`` leaves the calibration away, for comparison. ``--out`` keeps each run in a file, and goes on from there.

``annotators`` lets `Questioner` ask people, 40 questions by default, and fits to the answers:

    none            no links
    unnamed         the answers as links, without those that contradict earlier ones, which cannot be believed as well
    named           all answers, each with the name of who gave it

one person who is always right; two, one of whom is wrong in 30 % of the cases. With two, `Questioner` is told to expect
15 % wrong answers, so it asks about doubtful pairs again.

``diagram`` draws how often the label is right against the largest probability, with and without calibration: one
picture for all runs, each data set with the same weight.

The constants of the calibration were chosen on draws 0 and 1; by default the draws from 2 on are run.
"""

import argparse
import csv
import os
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score

from benchmarks.flipped_links import read_table
from linkmix import AutoLinkMixture, Links
from linkmix.basics.errors import InfeasibleLinks
from linkmix.queries import Questioner
from linkmix.queries.answers import Answer, as_links
from linkmix.queries.groups import Known
from linkmix.study.paper.data import MissingData
from linkmix.study.paper.protocol import FEWEST_DATA, load

MORE_DATA = {"ionosphere": "class", "sonar": "class", "glass": "class", "vehicle": "class", "letter": "class"}
MOST_ROWS = 1000
BINS = 10
EASY = ("iris", "wine")


@dataclass(frozen=True)
class Run:
    """The result of one fit."""

    data: str
    n_links: int
    draw: int
    ari: float
    ari_labels: float
    right: float
    sure: float
    ece: float
    brier: float
    base: float
    pairs_right: float
    estimate: float
    low: float
    high: float
    seconds: float
    times: float


def points_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Points and true classes; of the letters, the first eight."""
    if name not in MORE_DATA:
        return load(name)
    X, y = read_table(Path(os.environ["LINKMIX_DATA"]) / "data" / f"{name}.csv.gz", MORE_DATA[name])
    if name == "letter":
        X, y = X[y < 8], y[y < 8]
    if len(X) > MOST_ROWS:
        rows = np.random.RandomState(0).choice(len(X), MOST_ROWS, replace=False)
        X, y = X[rows], y[rows]
    return X, np.unique(y, return_inverse=True)[1]


def available(names: Iterable[str] | None) -> Iterator[str]:
    """Data sets on this machine; the others are named."""
    for name in names or (*FEWEST_DATA, *MORE_DATA):
        try:
            points_of(name)
        except (MissingData, KeyError, FileNotFoundError):
            print(f"{name} is not on this machine and left out: set LINKMIX_DATA to the folder that holds data/")
            continue
        yield name


def sure_and_right(probabilities: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Largest probability of each point, and whether it is in the right class; classes are matched first."""
    labels, sure = probabilities.argmax(axis=1), probabilities.max(axis=1)
    counts = np.zeros((probabilities.shape[1], y.max() + 1))
    np.add.at(counts, (labels, y), 1)
    match = np.full(len(counts), -1)
    rows, columns = linear_sum_assignment(-counts)
    match[rows] = columns
    return sure, match[labels] == y


def in_bins(sure: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Sum of the values of the points in each of ten bins of the largest probability."""
    return np.bincount(np.minimum((BINS * sure).astype(int), BINS - 1), weights=values, minlength=BINS)


def calibration_error(probabilities: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """Share of points in the right class, mean largest probability, and expected calibration error."""
    sure, right = sure_and_right(probabilities, y)
    gaps = np.abs(in_bins(sure, sure - right))
    return float(right.mean()), float(sure.mean()), float(gaps.sum() / len(y))


def run(name: str, n_links: int, draw: int, plain: bool, timed: bool) -> Run:
    """One fit, and how true it is."""
    X, y = points_of(name)
    links = Links.from_labels(y, n_links, random_state=draw)
    model = AutoLinkMixture(len(np.unique(y)), calibrate=not plain, random_state=draw)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.perf_counter()
        model.fit(X, links=links)
        seconds, times = time.perf_counter() - begin, float("nan")
        if timed:
            begin = time.perf_counter()
            AutoLinkMixture(model.n_classes, calibrate=False, random_state=draw).fit(X, links=links)
            times = seconds / (time.perf_counter() - begin)
    P = model.predict_proba(X)
    labels = P.argmax(axis=1)
    a, b = np.triu_indices(len(y), 1)
    if len(a) > 200_000:
        some = np.random.RandomState(0).choice(len(a), 200_000, replace=False)
        a, b = a[some], b[some]
    same = y[a] == y[b]
    brier = float(((np.einsum("im,im->i", P[a], P[b]) - same) ** 2).mean())
    pairs_right = float(((labels[a] == labels[b]) == same).mean())
    found = model.quality_
    quality = (np.nan,) * 3 if found is None else (found.pairs_right, found.low, found.high)
    right, sure, ece = calibration_error(P, y)
    ari = adjusted_rand_score(y, labels)
    base = float(same.mean() * (1 - same.mean()))
    scores = (ari, adjusted_rand_score(y, model.labels_), right, sure, ece, brier, base, pairs_right)
    return Run(name, n_links, draw, *scores, *quality, seconds, times)


def runs(arguments: argparse.Namespace) -> list[Run]:
    """All runs, those in the file first."""
    done: list[Run] = []
    kinds = {field.name: field.type for field in fields(Run)}
    if arguments.out and arguments.out.exists():
        with arguments.out.open(newline="") as file:
            done = [Run(**{key: kinds[key](value) for key, value in row.items()}) for row in csv.DictReader(file)]
    names = list(available(arguments.data))
    draws = range(arguments.first, arguments.first + arguments.draws)
    wanted = [(name, n, draw) for draw in draws for n in arguments.links for name in names]
    have = {(one.data, one.n_links, one.draw) for one in done}
    todo = [one for one in wanted if one not in have]
    tasks = (delayed(run)(*one, arguments.plain, arguments.time and one[2] == arguments.first) for one in todo)
    for n, one in enumerate(Parallel(n_jobs=arguments.jobs, return_as="generator")(tasks), 1):
        print(f"\r{n} of {len(todo)} fits", end="", flush=True)
        done.append(one)
        if arguments.out:
            new = not arguments.out.exists()
            with arguments.out.open("a", newline="") as file:
                writer = csv.DictWriter(file, list(kinds))
                if new:
                    writer.writeheader()
                writer.writerow(asdict(one))
    print()
    return [one for one in done if (one.data, one.n_links, one.draw) in set(wanted)]


def mean(values: Iterable[float]) -> str:
    """Mean of the values that are known, with three digits; empty if none is."""
    known = [value for value in values if not np.isnan(value)]
    return f"{np.mean(known):.3f}" if known else ""


def show(found: list[Run]) -> None:
    """Print means by number of links, and by data set."""
    groups: dict[str, list[Run]] = {}
    for one in sorted(found, key=lambda one: one.n_links):
        groups.setdefault(f"{one.n_links} links", []).append(one)
    groups["25 and more"] = [one for one in found if one.n_links >= 25]
    groups["all"] = found
    groups["easy, 10 links"] = [one for one in found if one.n_links == 10 and one.data in EASY]
    for name in dict.fromkeys(one.data for one in found):
        groups[name] = [one for one in found if one.data == name]
    heads = ("ARI", "labels", "right", "sure", "ECE", "Brier", "base", "worse", "error", "bias", "covers", "time")
    print("| | " + " | ".join(heads) + " |")
    print("|---" * (len(heads) + 1) + "|")
    for title, some in groups.items():
        if not some:
            continue

        told = [one for one in some if not np.isnan(one.estimate)]
        cells = [
            *(mean(getattr(one, key) for one in some) for key in ("ari", "ari_labels", "right", "sure", "ece")),
            *(mean(getattr(one, key) for one in some) for key in ("brier", "base")),
            mean(float(one.brier > one.base + 0.005) for one in some),
            mean(abs(one.estimate - one.pairs_right) for one in told),
            mean(one.estimate - one.pairs_right for one in told),
            mean(float(one.low <= one.pairs_right <= one.high) for one in told),
            mean(one.times for one in some),
        ]
        print(f"| {title} | " + " | ".join(cells) + " |")


def bins_of(name: str, n_links: int, draw: int, calibrate: bool) -> np.ndarray:
    """Share of all points, of largest probability and of right labels in each bin, shape (3, n_bins)."""
    X, y = points_of(name)
    links = Links.from_labels(y, n_links, random_state=draw)
    model = AutoLinkMixture(len(np.unique(y)), calibrate=calibrate, random_state=draw)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, links=links)
    sure, right = sure_and_right(model.predict_proba(X), y)
    return np.stack([in_bins(sure, values) for values in (np.ones(len(y)), sure, right)]) / len(y)


def diagram(arguments: argparse.Namespace) -> None:
    """Draw the reliability diagram."""
    from matplotlib.figure import Figure

    from linkmix.basics.palette import COLOURS, INK
    from linkmix.plots.figures import save_picture

    names = list(available(arguments.data))
    draws = range(arguments.first, arguments.first + arguments.draws)
    figure = Figure(figsize=(5.4, 5.4), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3.4, 1])
    above.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=":")
    for at, (calibrate, colour, title) in enumerate(
        ((False, COLOURS[1], "as the mixture says"), (True, COLOURS[0], "calibrated"))
    ):
        cases = [(name, n, draw, calibrate) for draw in draws for n in arguments.links for name in names]
        found = Parallel(n_jobs=arguments.jobs)(delayed(bins_of)(*case) for case in cases)
        share, sure, right = np.mean(found, axis=0)
        error = np.mean([np.abs(one[1] - one[2]).sum() for one in found])
        some = share > 0.005
        label = f"{title}: mean {sure.sum():.2f}, right {right.sum():.2f}, ECE {error:.2f}"
        marker = "so"[at]
        above.plot(sure[some] / share[some], right[some] / share[some], color=colour, marker=marker, label=label)
        width = 0.4 / BINS
        below.bar((np.arange(BINS) + 0.28 + 0.44 * at) / BINS, share, width=width, color=colour)
        print(label, np.round(share, 3), np.round(right / np.maximum(share, 1e-9), 3))
    above.set(ylabel="share of points in the right class", xlim=(0, 1), ylim=(0, 1))
    above.legend(loc="upper left", frameon=False)
    below.set(xlabel="largest probability of a point", ylabel="share of points")
    for ax in (above, below):
        ax.spines[["top", "right"]].set_visible(False)
    save_picture(figure, arguments.plot)
    n_links = ", ".join(map(str, arguments.links))
    print(f"{arguments.plot}: {len(names)} data sets, {n_links} links, {arguments.draws} draws")


def asked(name: str, draw: int, n_questions: int, wrong: tuple[float, ...]) -> dict[str, float]:
    """ARI of predict after questions to one or several people, who are wrong this often."""
    X, y = points_of(name)
    n_classes, random = len(np.unique(y)), np.random.RandomState(draw)
    asker = Questioner(X, n_classes, wrong=float(np.mean(wrong)), random_state=draw)
    said: list[Answer] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(n_questions):
            for a, b in asker.next().tolist():
                person = number % len(wrong)
                same = (y[a] == y[b]) != (random.rand() < wrong[person])
                said.append(Answer(a, b, "same" if same else "different", f"person {person}"))
                asker.said.add(said[-1])
            if (number + 1) % 10 == 0:
                asker.refit()
        believed = Known()
        for answer in said:
            believed.take(replace(answer, annotator=None))
        found = {}
        for variant, answers in (("none", []), ("unnamed", believed.kept), ("named", said)):
            begin = time.perf_counter()
            try:
                model = AutoLinkMixture(n_classes, random_state=draw).fit(X, links=as_links(answers))
            except InfeasibleLinks:  # too many groups are apart: these answers cannot all be believed
                found[variant] = found[f"{variant}, s"] = float("nan")
                continue
            found[f"{variant}, s"] = time.perf_counter() - begin
            found[variant] = adjusted_rand_score(y, model.predict(X))
    return found


def annotators(arguments: argparse.Namespace) -> None:
    """Print the ARI with and without names."""
    names = list(available(arguments.data))
    draws = range(arguments.first, arguments.first + arguments.draws)
    keys = ("none", "unnamed", "named", "unnamed, s", "named, s")
    for people, wrong in (("one person, right", (0.0,)), ("two, one wrong in 30 %", (0.0, 0.3))):
        print(f"\n{people}; {arguments.questions} questions\n")
        print("| | " + " | ".join(keys) + " |")
        print("|---" * (len(keys) + 1) + "|")
        rows = []
        for name in names:
            tasks = (delayed(asked)(name, draw, arguments.questions, wrong) for draw in draws)
            mine = Parallel(n_jobs=arguments.jobs)(tasks)
            rows += mine
            print(f"| {name} | " + " | ".join(mean(one[key] for one in mine) for key in keys) + " |")
        print("| all | " + " | ".join(mean(one[key] for one in rows) for key in keys) + " |")
        both = [one for one in rows if not np.isnan(one["unnamed"])]
        if len(both) < len(rows):
            title = f"the {len(both)} of {len(rows)} that can be believed"
            print(f"| {title} | " + " | ".join(mean(one[key] for one in both) for key in keys) + " |")


def main() -> None:
    """Read the arguments, run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["probabilities", "annotators", "diagram"])
    parser.add_argument("--draws", type=int, default=10, help="number of draws (default: 10)")
    parser.add_argument("--first", type=int, default=2, help="number of the first draw (default: 2)")
    parser.add_argument("--links", type=int, nargs="+", default=[10, 25, 50, 100, 200], help="numbers of links")
    parser.add_argument("--questions", type=int, default=40, help="number of questions (default: 40)")
    parser.add_argument("--data", nargs="*", help="data sets (default: all)")
    parser.add_argument("--plain", action="store_true", help="without calibration")
    parser.add_argument("--time", action="store_true", help="compare the time with that of plain fits")
    parser.add_argument("--out", type=Path, help="CSV file to keep each run in")
    parser.add_argument("--plot", type=Path, help="PNG file of the diagram")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes (default: 1)")
    arguments = parser.parse_args()
    if arguments.kind == "annotators":
        annotators(arguments)
        return
    if arguments.kind == "diagram":
        if arguments.plot is None:
            parser.error("diagram needs --plot FILE.png")
        diagram(arguments)
        return
    begin = time.perf_counter()
    show(runs(arguments))
    print(f"\n{time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
