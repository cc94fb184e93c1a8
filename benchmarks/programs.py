"""Questions to a program that is wrong in one answer of ten or of five: what helps.

    python -m benchmarks.programs --seeds 2 --out results-programs.jsonl

A simulated program is asked 320 questions in batches of 20; its mistakes come and go. Four ways of dealing with them:

    believed   its answers are taken to be right (``wrong=0``)
    expected   the questioner knows how often they are wrong, and asks again where one surprises it (``wrong=0.1``)
    agree 2    each pair is asked about until one answer leads by two (``agree=2``), and the questioner knows how often
               that is still wrong
    agree 3    by three

"none" and "asked" are the adjusted Rand index of the labels of the questioner, before and after so many questions, as
``linkmix ask`` writes them. "learned" is that of an `AutoLinkMixture` fitted to the same links with the name of the
program, whose reliability it learns if there is reason to. A command that was stopped goes on where it was. The real
data sets need LINKMIX_DATA.
"""

import argparse
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from linkmix import AutoLinkMixture
from linkmix.basics.journal import Journal
from linkmix.queries import PairQuestion, Questioner, Reply, run
from linkmix.queries.answers import as_links, confidence
from linkmix.study.paper.protocol import load

DATA = ("segment@1000", "digits@1000", "pendigits@1000")
SHOWN = (160, 320)
WAYS = {"agree 2": 2, "expected": 1, "believed": 1, "agree 3": 3}


class Simulated:
    """Answers by the true classes, and lies at random."""

    def __init__(self, y: np.ndarray, wrong: float, seed: int) -> None:
        self.y, self.wrong, self.random = y, wrong, np.random.default_rng(seed)

    def answer(self, questions: list[PairQuestion]) -> list[Reply]:
        """Answer a batch."""
        lies = self.random.random(len(questions)) < self.wrong
        same = [bool(self.y[one.rows[0]] == self.y[one.rows[1]]) for one in questions]
        return [
            Reply(one.id, "same" if is_same != bool(lie) else "different")
            for one, is_same, lie in zip(questions, same, lies, strict=True)
        ]


def simulate(data: str, wrong: float, way: str, seed: int) -> dict[str, Any]:
    """One program, asked all questions."""
    X, y = load(data)
    n_classes = len(np.unique(y))
    program = Simulated(y, wrong, seed)
    found: dict[str, Any] = {"data": data, "wrong": wrong, "way": way, "seed": seed}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asker = Questioner(
            X,
            n_classes,
            wrong=0.0 if way == "believed" else round(1 - confidence(WAYS[way], wrong), 4),
            random_state=seed,
        )
        found["none"] = adjusted_rand_score(y, asker.labels)
        before = 0
        for n in SHOWN:
            run(asker, program, n - before, name="program", batch=20, repeat=0, agree=WAYS[way])
            before = n
            found[f"asked {n}"] = adjusted_rand_score(y, asker.labels)
            model = AutoLinkMixture(n_classes, calibrate=False, random_state=seed)
            found[f"learned {n}"] = adjusted_rand_score(y, model.fit(X, links=as_links(asker.said.links)).labels_)
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--wrong", default="0.1,0.2")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=300)
    parser.add_argument("--out", type=Path, default=Path("results-programs.jsonl"))
    options = parser.parse_args()
    keys = ("data", "wrong", "way", "seed")
    with Journal(options.out) as journal:
        done = {tuple(entry[key] for key in keys) for entry in journal.entries}
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            for data in options.data.split(","):
                for wrong, way in product(map(float, options.wrong.split(",")), options.ways.split(",")):
                    if (data, wrong, way, seed) not in done:
                        journal.append(simulate(data, wrong, way, seed))
        table = pd.DataFrame(journal.entries)
    print(table.drop(columns="seed").groupby(["data", "wrong", "way"]).mean().round(3).to_string())
    print(table.drop(columns=["seed", "data"]).groupby(["wrong", "way"]).mean().round(3).to_string())


if __name__ == "__main__":
    main()
