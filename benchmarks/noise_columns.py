"""What columns of noise cost `AutoLinkMixture`, and how it does on sixteen sets: two versions of the code side by side.

Random links of true labels; the score is the adjusted Rand index of ``predict``, which sees the points alone. Columns
of standard normal noise are added to the data, whose own columns are scaled to unit variance first, so that noise is as
loud as any of them; without noise (``--noise 0 --raw``) the columns stay as they came. Labels do not depend on the
calibration, so it is left away unless ``--calibrate`` asks for it.

    python -m benchmarks.noise_columns run --out after.csv
    python -m benchmarks.noise_columns run --raw --noise 0 --links 10 25 50 --all --out sixteen.csv
    PYTHONPATH=OTHER/src python -m benchmarks.noise_columns run --out before.csv
    python -m benchmarks.noise_columns compare before.csv after.csv

``run`` goes on where the file ends. ``--all`` adds the five sets on which nothing was tuned (glass, ionosphere, letter,
sonar and vehicle) to the eleven of docs/fewest-links.md. ``compare`` shows what both files have.
"""

import argparse
import csv
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score

from benchmarks.honesty import MORE_DATA, available, points_of
from linkmix import AutoLinkMixture, Links
from linkmix.study.paper.protocol import FEWEST_DATA


@dataclass(frozen=True)
class Fit:
    """The result of one fit."""

    data: str
    raw: int
    n_noise: int
    n_links: int
    draw: int
    ari: float
    seconds: float

    @property
    def case(self) -> tuple[str, int, int, int, int]:
        """What was fitted."""
        return self.data, self.raw, self.n_noise, self.n_links, self.draw


def with_noise(X: np.ndarray, n_noise: int, draw: int) -> np.ndarray:
    """The points with their columns scaled to unit variance, and columns of noise behind them."""
    spread = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    noise = np.random.default_rng(draw).normal(size=(n_noise, len(X))).T  # 10 columns are the first of 50
    return np.concatenate([Z, noise], axis=1)


def fitted(name: str, raw: int, n_noise: int, n_links: int, draw: int, calibrate: bool) -> Fit:
    """One fit."""
    X, y = points_of(name)
    X = X if raw else with_noise(X, n_noise, draw)
    model = AutoLinkMixture(len(np.unique(y)), calibrate=calibrate, random_state=draw)
    links = Links.from_labels(y, n_links, random_state=draw)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.process_time()
        model.fit(X, links=links)
        seconds = time.process_time() - begin
    return Fit(name, raw, n_noise, n_links, draw, adjusted_rand_score(y, model.predict(X)), seconds)


def read(path: Path) -> list[Fit]:
    """The fits of a file."""
    kinds = {field.name: field.type for field in fields(Fit)}
    with path.open(newline="") as file:
        return [Fit(**{key: kinds[key](value) for key, value in row.items()}) for row in csv.DictReader(file)]


def run(arguments: argparse.Namespace) -> None:
    """Make all fits that are not yet in the file."""
    done = {fit.case for fit in read(arguments.out)} if arguments.out.exists() else set()
    names = list(available(arguments.data or ((*FEWEST_DATA, *MORE_DATA) if arguments.all else FEWEST_DATA)))
    with arguments.out.open("a", newline="") as file:
        table = csv.DictWriter(file, [field.name for field in fields(Fit)])
        if not done:
            table.writeheader()
        for draw in range(arguments.first, arguments.first + arguments.draws):
            for n_noise in arguments.noise:
                for n_links in arguments.links:
                    for name in names:
                        case = (name, int(arguments.raw), n_noise, n_links, draw)
                        if case not in done:
                            fit = fitted(*case, arguments.calibrate)
                            table.writerow(asdict(fit))
                            file.flush()
                            print(*case, f"{fit.ari:.3f}", f"{fit.seconds:.1f} s", flush=True)


def compare(paths: Sequence[Path]) -> None:
    """Print the means over the draws that all files have."""
    tables = [{fit.case: fit for fit in read(path)} for path in paths]
    shared = [case for case in tables[0] if all(case in table for table in tables)]
    kinds = sorted({case[1:4] for case in shared}, key=lambda kind: (-kind[0], kind[1:]))
    names = list(dict.fromkeys(case[0] for case in shared))
    for raw, n_noise, n_links in kinds:
        draws = sorted({case[4] for case in shared if case[1:4] == (raw, n_noise, n_links)})
        scale = "as they came" if raw else f"{n_noise} columns of noise"
        print(f"\n{n_links} links, {scale}; draws {draws}\n")
        print("| data | " + " | ".join(path.stem for path in paths) + " | difference | seconds |")
        print("|---" * (len(paths) + 3) + "|")
        rows = []
        for name in names:
            cases = [case for case in shared if case[:4] == (name, raw, n_noise, n_links)]
            if cases:
                means = [np.mean([table[case].ari for case in cases]) for table in tables]
                seconds = [np.mean([table[case].seconds for case in cases]) for table in tables]
                rows.append((means, seconds))
                show(name, means, seconds)
        show("mean", *np.mean(rows, axis=0))


def show(name: str, means: Sequence[float], seconds: Sequence[float]) -> None:
    """Print a line."""
    cells = " | ".join(f"{value:.3f}" for value in means)
    print(f"| {name} | {cells} | {means[-1] - means[0]:+.3f} | {' '.join(f'{value:.2f}' for value in seconds)} |")


def main() -> None:
    """Read the arguments, run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runner = commands.add_parser("run", help="make fits and keep them in a file")
    runner.add_argument("--out", type=Path, required=True, help="CSV file of the fits")
    runner.add_argument("--noise", type=int, nargs="+", default=[0, 10, 50], help="columns of noise (default: 0 10 50)")
    runner.add_argument("--links", type=int, nargs="+", default=[50], help="numbers of links (default: 50)")
    runner.add_argument("--draws", type=int, default=3, help="number of draws (default: 3)")
    runner.add_argument("--first", type=int, default=2, help="number of the first draw (default: 2)")
    runner.add_argument("--data", nargs="*", help="data sets (default: the eleven)")
    runner.add_argument("--all", action="store_true", help="all sixteen sets")
    runner.add_argument("--raw", action="store_true", help="columns as they came, without noise")
    runner.add_argument("--calibrate", action="store_true", help="with calibration, as in a default fit")
    comparer = commands.add_parser("compare", help="compare files")
    comparer.add_argument("files", type=Path, nargs="+", help="CSV files")
    arguments = parser.parse_args()
    if arguments.command == "compare":
        compare(arguments.files)
        return
    if arguments.raw and arguments.noise != [0]:
        runner.error("--raw goes with --noise 0: noise is as loud as the other columns only if these are scaled")
    run(arguments)


if __name__ == "__main__":
    main()
