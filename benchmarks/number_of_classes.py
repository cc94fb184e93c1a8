"""How well `AutoLinkMixture` finds the number of classes, and what that costs.

Random links of true labels; ``n_classes="auto"`` beside the true number, with the same links and seed. Scores are of
``predict``, which sees the points alone. Calibration is left out: it changes no label. Data that are not on this
machine are left out, and named.

    python -m benchmarks.number_of_classes --draws 0 1
    python -m benchmarks.number_of_classes --sets tune --draws 10 11
    python -m benchmarks.number_of_classes --data iris wine --links 25 --journal runs.jsonl

The constants were chosen on the sets of ``--sets tune``, on subsets of their classes and on made tables of other kinds
(bent classes, heavy tails, two groups per class), with draws 10 and 11. Nothing was tried out on the sets of
``--sets other``, nor on draws 0 and 1; but ``letter-26`` holds the letters of the other two, and digits of MNIST with
other columns were among the subsets. Sets by the name
``made-K`` are drawn: K normal classes of unequal size and shape in 8 columns, 40 points for each on average, some of
which overlap.

``--journal`` keeps finished runs, so that a second call only makes what is missing. ``--only auto`` makes no runs with
the known number.

    error        mean of abs(number found - true number)
    log error    mean of abs(log2(number found / true number)): 1 is twice or half as many
    ARI, known   adjusted Rand index of ``predict``, and with the true number
    times        CPU time over that of the known number, sums over the runs
"""

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score

from linkmix import AutoLinkMixture, Links
from linkmix.study.paper.data import MissingData
from linkmix.study.paper.protocol import load

SETS = {
    "tune": (
        *("iris", "thyroid-3", "mnist-123@600", "segment@700", "letter-8@800", "pendigits@1000"),
        *("letter-16@1200", "made-4", "made-12", "made-30"),
    ),
    "other": (
        *("wine", "breast-cancer", "mnist-4567@800", "vehicle", "glass", "digits@800", "coil20-20@1000"),
        *("letter-26@1500", "made-3", "made-8", "made-20", "made-50"),
    ),
}
LETTERS = {"letter-8": range(8), "letter-16": range(8, 24), "letter-26": range(26)}
COLUMNS = 8
POINTS_PER_CLASS = 40


@dataclass(frozen=True)
class Row:
    """The result of one fit."""

    data: str
    n_links: int
    draw: int
    variant: str
    n_true: int
    n_found: int
    ari: float
    seconds: float


def made(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal classes of unequal size and shape; always the same for one number."""
    random = np.random.default_rng(n_classes)
    shares = random.dirichlet(np.full(n_classes, 8.0))
    y = random.choice(n_classes, size=POINTS_PER_CLASS * n_classes, p=shares)
    y[:n_classes] = np.arange(n_classes)
    centres = 2.4 * random.normal(size=(n_classes, COLUMNS))
    shapes = np.eye(COLUMNS) + 0.35 * random.normal(size=(n_classes, COLUMNS, COLUMNS))
    noise = random.normal(size=(len(y), COLUMNS))
    return centres[y] + np.einsum("nij,nj->ni", shapes[y], noise), y


def points_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Points and true classes."""
    plain, _, at_most = name.partition("@")
    if plain.startswith("made-"):
        return made(int(plain.removeprefix("made-")))
    if plain == "thyroid-3":
        X, y = _file("thyroid", 5, "class3")
    elif plain in ("glass", "vehicle"):
        X, y = _file(plain, -1, "class")
    elif plain in LETTERS:
        X, y = _file("letter", -1, "class")
        some = np.isin(y, LETTERS[plain])
        X, y = X[some], y[some]
    else:
        return load(name)
    if at_most:
        rows = np.sort(np.random.default_rng(0).permutation(len(X))[: int(at_most)])
        X, y = X[rows], y[rows]
    return X, np.unique(y, return_inverse=True)[1]


def _file(name: str, n_columns: int, answer: str) -> tuple[np.ndarray, np.ndarray]:
    """The first columns of a file, and one that holds the answer."""
    import pandas as pd

    table = pd.read_csv(Path(os.environ["LINKMIX_DATA"]) / "data" / f"{name}.csv.gz")
    return table.iloc[:, :n_columns].to_numpy(float), np.unique(table[answer], return_inverse=True)[1]


def run(name: str, n_links: int, draw: int, variant: str) -> Row:
    """One fit."""
    X, y = points_of(name)
    n_true = len(np.unique(y))
    links = Links.from_labels(y, n_links, random_state=draw)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = AutoLinkMixture(n_true if variant == "known" else "auto", calibrate=False, random_state=draw)
        begin = time.process_time()
        model.fit(X, links=links)
        seconds = time.process_time() - begin
        ari = adjusted_rand_score(y, model.predict(X))
    return Row(name, n_links, draw, variant, n_true, model.n_classes_, float(ari), seconds)


def rows_of(options: argparse.Namespace, names: list[str]) -> Iterator[Row]:
    """All runs that are asked for, made or read."""
    done: dict[tuple[str, int, int, str], Row] = {}
    if options.journal and options.journal.exists():
        for line in options.journal.read_text().splitlines():
            row = Row(**json.loads(line))
            done[row.data, row.n_links, row.draw, row.variant] = row
    for name in names:
        for n_links in options.links:
            for draw in options.draws:
                for variant in options.only:
                    key = name, n_links, draw, variant
                    if key not in done:
                        done[key] = run(*key)
                        if options.journal:
                            with options.journal.open("a") as journal:
                                journal.write(json.dumps(asdict(done[key])) + "\n")
                    yield done[key]


def show(rows: list[Row]) -> None:
    """Means by set, by number of links, and over all."""
    print(f"{'':<18}{'true':>5}  {'found':<28}{'error':>7}{'log error':>11}{'ARI':>7}{'known':>7}{'times':>7}")

    def line(title: str, chosen: Callable[[Row], bool], true: str = "", found: str = "") -> None:
        auto = [row for row in rows if row.variant == "auto" and chosen(row)]
        known = [row for row in rows if row.variant == "known" and chosen(row)]
        error = np.mean([abs(row.n_found - row.n_true) for row in auto])
        log_error = np.mean([abs(np.log2(row.n_found / row.n_true)) for row in auto])
        ari = [float(np.mean([row.ari for row in some])) if some else np.nan for some in (auto, known)]
        seconds = [sum(row.seconds for row in some) for some in (auto, known)]
        times = seconds[0] / seconds[1] if known else np.nan
        print(f"{title:<18}{true:>5}  {found:<28}{error:7.2f}{log_error:11.2f}{ari[0]:7.3f}{ari[1]:7.3f}{times:7.2f}")

    names = list(dict.fromkeys(row.data for row in rows))
    for name in names:
        some = [row for row in rows if row.data == name and row.variant == "auto"]
        found = " | ".join(
            " ".join(str(row.n_found) for row in some if row.n_links == n)
            for n in sorted({row.n_links for row in some})
        )
        line(name, lambda row, name=name: row.data == name, str(some[0].n_true), found)  # type: ignore[misc]
    for n in sorted({row.n_links for row in rows}):
        line(f"{n} links", lambda row, n=n: row.n_links == n)  # type: ignore[misc]
    line("mean", lambda row: True)


def main() -> None:
    """Read the arguments, run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", choices=list(SETS), default="other", help="which data sets (default: other)")
    parser.add_argument("--data", nargs="+", help="data sets by name")
    parser.add_argument("--links", type=int, nargs="+", default=[0, 10, 25, 100], help="numbers of links")
    parser.add_argument("--draws", type=int, nargs="+", default=[0, 1], help="seeds of the links and of the search")
    parser.add_argument("--only", choices=["known", "auto"], nargs="+", default=["known", "auto"], help="what is run")
    parser.add_argument("--journal", type=Path, help="file that keeps finished runs")
    options = parser.parse_args()
    names = []
    for name in options.data or SETS[options.sets]:
        try:
            points_of(name)
            names.append(name)
        except (MissingData, KeyError, FileNotFoundError):
            print(f"{name} is not on this machine and left out: set LINKMIX_DATA to the folder that holds data/")
    rows = []
    for row in rows_of(options, names):
        rows.append(row)
        print(f"\r{len(rows)} fits", end="", flush=True)
    print()
    show(rows)


if __name__ == "__main__":
    main()
