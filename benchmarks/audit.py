"""Does an audit tell how good labels are? Its error, and how often its 90 % interval holds the truth.

    LINKMIX_DATA=folder python -m benchmarks.audit --seeds 4

A simulated user answers questions by `cover`, with a refit as in `benchmarks.questions`. After 40 and after 100 answers
the labels are audited many times, each time with other random pairs. The truth is the share of all pairs of points that
the labels judge as the true classes do. Two figures that cost nothing, for comparison: "own" is what the model's
probabilities imply, and "asked" is the share of the last 20 questions that the model got right before it saw their
answers.

``LINKMIX_DATA`` names the folder with data/vehicle.csv.gz and others; data that are not there are left out.
Constants were chosen on iris, thyroid, digits and vehicle.
"""

import argparse
import os
import warnings
from collections import defaultdict
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from benchmarks.flipped_links import read_table
from linkmix.mixture.calibration import Quality
from linkmix.queries import Questioner
from linkmix.queries.audit import draw
from linkmix.queries.groups import Known
from linkmix.study.paper.data import MissingData
from linkmix.study.paper.protocol import load

CHOSEN_ON = ("iris", "thyroid", "digits@500", "vehicle@500")
OTHERS = ("wine", "segment@500", "ionosphere", "glass")
FILES = ("vehicle", "ionosphere", "glass")
ASKED = (40, 100)
N_AUDIT = (10, 20, 30, 40)


class Row(NamedTuple):
    """Many audits of the same labels."""

    data: str
    n_asked: int
    n_audit: int
    truth: float
    error: float
    covered: float
    width: float
    own: float
    asked: float


def read(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Points and true classes."""
    plain, _, at_most = name.partition("@")
    if plain not in FILES:
        return load(name)
    X, y = read_table(Path(os.environ["LINKMIX_DATA"]) / "data" / f"{plain}.csv.gz", "class")
    rows = np.sort(np.random.default_rng(0).permutation(len(X))[: int(at_most or len(X))])
    return X[rows], y[rows]


def same(labels: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Whether each pair is of one class."""
    return labels[pairs[:, 0]] == labels[pairs[:, 1]]


def simulate(data: str, seed: int, n_draws: int) -> list[Row]:
    """One user, whose labels are audited again and again."""
    X, y = read(data)
    pairs = np.column_stack(np.triu_indices(len(X), 1))
    rows: list[Row] = []
    unseen: list[bool] = []  # whether the model got each question right before it saw the answer

    def answer() -> None:
        a, b = (int(row) for row in asker.next()[0])
        unseen.append(bool((asker.labels[a] == asker.labels[b]) == (y[a] == y[b])))
        asker.answer(a, b, "same" if y[a] == y[b] else "different")

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asker = Questioner(X, len(np.unique(y)), random_state=seed)
        for n in range(1, max(ASKED) + 1):
            if not len(asker.next()):
                break
            answer()
            if n % 10 == 0 and (n <= 40 or n % 20 == 0):
                asker.refit()
            if n in ASKED:
                judged = same(asker.labels, pairs)
                truth = float((judged == same(y, pairs)).mean())
                together = np.einsum("im,im->i", *(asker.probabilities[end] for end in pairs.T))
                own = float(np.where(judged, together, 1 - together).mean())
                for n_audit in N_AUDIT:
                    found = audits(asker, y, n_audit, n_draws)
                    error = np.mean([abs(one.pairs_right - truth) for one in found])
                    covered = np.mean([one.low <= truth <= one.high for one in found])
                    width = np.mean([one.high - one.low for one in found])
                    free = float(np.mean(unseen[-20:]))
                    rows.append(Row(data, n, n_audit, truth, error, covered, width, own - truth, free - truth))
    return rows


def audits(asker: Questioner, y: np.ndarray, n: int, n_draws: int) -> list[Quality]:
    """What many audits of the current labels find, as `Questioner.audit` would draw them."""
    known, found = Known(), []
    for answer in asker.said:
        known.take(answer)
    for seed in range(n_draws):
        audit = draw(asker.labels, n, np.random.RandomState(seed), known)
        while pairs := audit.next(n):
            audit = audit.after({(a, b): "same" if y[a] == y[b] else "different" for a, b in pairs})
        found.append(audit.quality)
    return found


def show(rows: list[Row]) -> None:
    """Tables for Markdown."""
    cells = defaultdict(list)
    for row in rows:
        group = "chosen on" if row.data in CHOSEN_ON else "others"
        for key in (group, "all"):
            cells[key, row.n_asked, row.n_audit].append(row)
    print("| data | asked | " + " | ".join(f"{n} audit questions" for n in N_AUDIT) + " |")
    print("|---|---|" + "---|" * len(N_AUDIT))
    for group, n_asked in product(("chosen on", "others", "all"), ASKED):
        shown = []
        for n in N_AUDIT:
            part = cells[group, n_asked, n]
            if not part:
                continue
            error, covered, width = (np.mean([getattr(row, name) for row in part]) for name in Row._fields[4:7])
            shown.append(f"{error:.3f}, {100 * covered:.0f} %, {width:.2f}")
        if shown:
            print(f"| {group} | {n_asked} | " + " | ".join(shown) + " |")
    print("\n(mean error, how often the 90 % interval covers, mean width of it)\n")
    print("| data | asked | truth | own - truth | asked - truth | error of 20 | covered by 20 |")
    print("|---|---|---|---|---|---|---|")
    for data, n_asked in product((*CHOSEN_ON, *OTHERS), ASKED):
        part = [row for row in rows if (row.data, row.n_asked, row.n_audit) == (data, n_asked, 20)]
        if part:
            truth, error, covered, _, own, asked = np.mean([row[3:] for row in part], axis=0)
            shown = f"{truth:.3f} | {own:+.3f} | {asked:+.3f} | {error:.3f} | {100 * covered:.0f} %"
            print(f"| {data} | {n_asked} | {shown} |")
    part = [row for row in rows if row.n_audit == 20]
    own, asked = (np.mean([abs(getattr(row, name)) for row in part]) for name in ("own", "asked"))
    print(f"\nmean error of own {own:.3f}, of asked {asked:.3f}")


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--draws", type=int, default=200, help="audits of the same labels")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    names = []
    for name in (*CHOSEN_ON, *OTHERS):
        try:
            read(name)
            names.append(name)
        except (MissingData, KeyError, FileNotFoundError):
            print(f"{name} is left out: LINKMIX_DATA names no folder that holds it")
    tasks = product(names, range(options.seeds))
    found = Parallel(n_jobs=options.jobs)(delayed(simulate)(*task, options.draws) for task in tasks)
    show([row for rows in found for row in rows])


if __name__ == "__main__":
    main()
