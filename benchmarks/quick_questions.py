"""Questions about several rows at once against pairs alone, by the time of a simulated person.

    LINKMIX_DATA=folder python -m benchmarks.quick_questions --seeds 20 --out results-quick
    python -m benchmarks.quick_questions --policies mixed,pairs --data iris,wine --first 2 --seeds 2

A policy is "pairs" (those of `cover`), "mixed" (all kinds), "mixed, half" or "mixed, twice" (the new kinds take half or
twice their time), or any of the kinds, such as "pair+which". With "mixed, corrections" the person also looks at one
class after each refit, that with the most doubt in its members: its face beside the eight most doubtful ones. Those
that belong to another class whose face she knows are moved there, those of one class at a time, or said not to fit;
this takes 5 seconds, also if there is nothing to correct. The person answers right, or a share ``--wrong`` of all pairs
wrong. The model is refitted every 40 seconds of the person's time, and every 80 from 160 seconds on: as often as
`benchmarks.questions` does for pairs. Answers count only if they were complete before. Runs are kept in a journal as
they end; a command that was stopped goes on where it was, and more draws can be added later. The page has the mean
adjusted Rand index of `predict` against seconds, with the number of questions, for the sets of docs/questions.md and
for five others.

``LINKMIX_DATA`` names the folder with data/glass.csv.gz and others; data that are not there are left out.
"""

import argparse
import os
import time
import warnings
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from benchmarks.flipped_links import read_table
from benchmarks.questions import DATA
from linkmix.basics.journal import Journal
from linkmix.queries import KINDS, Answer, Question, Questioner, QuestionSettings
from linkmix.queries.groups import Known
from linkmix.study.paper.protocol import load

mpl.use("Agg")
import matplotlib.pyplot as plt

FILES = ("glass", "ionosphere", "letter-8@1000", "sonar", "vehicle")
POLICIES = ("pairs", "mixed", "mixed, corrections", "mixed, half", "mixed, twice")
SHOWN = (0, 40, 80, 160, 320, 640)
REFITS = (40, 80, 120, *range(160, 641, 80))
PACES = {"": 1.0, "corrections": 1.0, "half": 0.5, "twice": 2.0}
CORRECTION_SECONDS = 5.0
N_LOOKED_AT = 8
NEW_KINDS = ("which_seconds", "which_row_seconds", "group_row_seconds")
N_LETTERS = 8


def read(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Points and true classes, at most as many rows as the name says; "letter-8" has the first eight letters."""
    plain, _, at_most = name.partition("@")
    if plain not in {one.partition("@")[0] for one in FILES}:
        return load(name)
    X, y = read_table(Path(os.environ["LINKMIX_DATA"]) / "data" / f"{plain.partition('-')[0]}.csv.gz", "class")
    y = np.unique(y, return_inverse=True)[1]
    if plain == "letter-8":
        X, y = X[y < N_LETTERS], y[y < N_LETTERS]
    rows = np.sort(np.random.default_rng(0).permutation(len(X))[: int(at_most or len(X))])
    return X[rows], y[rows]


def settings_of(policy: str) -> tuple[tuple[str, ...], QuestionSettings]:
    """Kinds of questions, and the constants; "mixed, fit=0.7" varies one of them."""
    name, _, varied = policy.partition(", ")
    kinds = {"pairs": ("pair",), "mixed": KINDS}.get(name) or tuple(name.split("+"))
    if "=" in varied:
        pairs = [one.split("=") for one in varied.split(" ")]
        values = {key: type(getattr(QuestionSettings(), key))(float(value)) for key, value in pairs}
    else:
        values = {key: PACES[varied] * getattr(QuestionSettings(), key) for key in NEW_KINDS}
    return kinds, QuestionSettings(**values)


def reply(asker: Questioner, question: Question, y: np.ndarray, wrong: float, random: np.random.Generator) -> None:
    """Answer as a person who errs about a share of all pairs."""
    first, *cards = question.rows
    same = [card for card in cards if bool(y[card] == y[first]) != bool(random.random() < wrong)]
    if question.kind == "pair":
        asker.reply(question, said="same" if same else "different")
    else:
        asker.reply(question, same if question.kind == "which" else [card for card in cards if card not in same])


def correct(asker: Questioner, y: np.ndarray) -> None:
    """Look at the class with the most doubt, and correct what one correction can."""
    sure = asker.probabilities[np.arange(len(y)), asker.labels]
    said = Counter(row for answer in asker.answers for row in answer.pair)
    faces = {
        m: max(np.flatnonzero(asker.labels == m).tolist(), key=lambda row: (said[row], sure[row]))
        for m in np.unique(asker.labels).tolist()
    }
    known = Known()
    for answer in asker.answers:
        known.take(answer)
    open_ = {
        m: [
            row
            for row in np.flatnonzero(asker.labels == m).tolist()
            if row != face and known.relation(row, face) is None
        ]
        for m, face in faces.items()
    }
    worst = max(faces, key=lambda m: float((1 - sure[open_[m]]).sum()))
    shown = sorted(open_[worst], key=lambda row: float(sure[row]))[:N_LOOKED_AT]
    foreign = [row for row in shown if y[row] != y[faces[worst]]]
    if not foreign:
        return
    homes = {int(y[face]): face for m, face in faces.items() if m != worst}
    by_class = Counter(int(y[row]) for row in foreign if int(y[row]) in homes)
    if by_class:
        [(home, _)] = by_class.most_common(1)
        pairs = [(row, homes[home], "same") for row in foreign if y[row] == home]
    else:
        pairs = [(row, faces[worst], "different") for row in foreign]
    asker.said.add(*(Answer(*pair) for pair in pairs))


def simulate(data: str, policy: str, wrong: float, seed: int, budget: int) -> dict[str, Any]:
    """One person who answers the questions of one policy."""
    X, y = read(data)
    kinds, settings = settings_of(policy)
    random = np.random.default_rng(seed)
    asked: Counter[str] = Counter()
    waits: list[float] = []
    curve: list[dict[str, float]] = []
    spent = 0.0
    begin = time.perf_counter()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asker = Questioner(X, len(np.unique(y)), wrong=wrong, random_state=seed, settings=settings)

        def score(seconds: int) -> None:
            ari = float(adjusted_rand_score(y, asker.model.predict(X)))
            curve.append({"seconds": seconds, "ari": ari, "answers": len(asker.answers), **asked})

        score(0)
        for seconds in [at for at in REFITS if at <= budget]:
            if asked and policy.endswith("corrections"):
                spent += CORRECTION_SECONDS
                correct(asker, y)
            while True:
                at = time.perf_counter()
                questions = asker.ask(kinds=kinds)
                waits.append(time.perf_counter() - at)
                if not questions or spent + questions[0].seconds > seconds:
                    break
                spent += questions[0].seconds
                asked[questions[0].kind] += 1
                reply(asker, questions[0], y, wrong, random)
            if len(asker.answers) > curve[-1]["answers"]:
                asker.refit()
            score(seconds)
    return {
        "data": data,
        "policy": policy,
        "wrong": wrong,
        "seed": seed,
        "cpu": time.perf_counter() - begin,
        "wait_p95": float(np.quantile(waits, 0.95)),
        "curve": curve,
    }


def run(tasks: list[tuple[str, str, float, int]], path: Path, n_jobs: int, budget: int) -> list[dict[str, Any]]:
    """Make the runs that are not in the journal yet, and keep each when it ends."""
    with Journal(path) as journal:
        done = {(row["data"], row["policy"], row["wrong"], row["seed"]): row for row in journal.entries}
        results = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)(
            delayed(simulate)(*task, budget) for task in tasks if task not in done
        )
        for row in results:
            journal.append(row)
            found = " ".join(f"{p['ari']:.3f}" for p in row["curve"] if p["seconds"] in SHOWN)
            print(f"{row['policy']:24}{row['data']:18}seed {row['seed']} {found}", flush=True)
            done[row["data"], row["policy"], row["wrong"], row["seed"]] = row
    return [done[task] for task in tasks]


def write(rows: list[dict[str, Any]], folder: Path) -> None:
    """Tables and a plot."""
    names = ("data", "policy", "wrong", "seed")
    table = pd.DataFrame([{name: row[name] for name in names} | point for row in rows for point in row["curve"]])
    for kind in KINDS:
        table[kind] = table[kind].fillna(0) if kind in table else 0.0
    table["questions"] = table[[*KINDS]].sum(axis=1)
    shown = [at for at in SHOWN if at in set(table["seconds"])]
    lines = []
    for wrong, part in table.groupby("wrong"):
        for title, chosen in {
            "sets of docs/questions.md": {*DATA},
            "other sets": {*FILES},
            "sets": {*table["data"]},
        }.items():
            here = part[part["data"].isin(chosen)]
            if not len(here):
                continue
            lines += [f"\nAdjusted Rand index, mean of {here['data'].nunique()} {title}, {100 * wrong:.0f} % wrong", ""]
            lines += [
                "| policy | draws | " + " | ".join(f"{at} s" for at in shown) + " |",
                "|---" * (2 + len(shown)) + "|",
            ]
            means = here.groupby(["policy", "seconds", "data"])["ari"].mean().groupby(["policy", "seconds"]).mean()
            for policy in dict.fromkeys(here["policy"]):
                cells = [f"{means[policy, at]:.3f}".lstrip("0") for at in shown]
                draws = here[here["policy"] == policy]["seed"].nunique()
                lines.append(f"| {policy} | {draws} | " + " | ".join(cells) + " |")
        lines += ["\nQuestions (pairs, which, groups) and answers about pairs, means of all sets", ""]
        lines += ["| policy | " + " | ".join(f"{at} s" for at in shown[1:]) + " |", "|---" * len(shown) + "|"]
        counts = part.groupby(["policy", "seconds"])[[*KINDS, "questions", "answers"]].mean()
        for policy in dict.fromkeys(part["policy"]):
            cells = []
            for at in shown[1:]:
                one = counts.loc[(policy, at)]
                by_kind = ", ".join(f"{one[kind]:.0f}" for kind in KINDS)
                cells.append(f"{one['questions']:.0f} ({by_kind}), {one['answers']:.0f}")
            lines.append(f"| {policy} | " + " | ".join(cells) + " |")
        lines += ["\nBy set, draws as above", ""]
        lines += ["| data | policy | " + " | ".join(f"{at} s" for at in shown) + " |", "|---" * (2 + len(shown)) + "|"]
        by_set = part.groupby(["data", "policy", "seconds"])["ari"].mean()
        for name, policy in product(dict.fromkeys(part["data"]), dict.fromkeys(part["policy"])):
            cells = [f"{by_set[name, policy, at]:.3f}".lstrip("0") for at in shown]
            lines.append(f"| {name} | {policy} | " + " | ".join(cells) + " |")
    waits = pd.DataFrame(rows).groupby("policy")["wait_p95"].max()
    lines += ["\nTime for a question, 95 % of them, in milliseconds, the largest of all runs: " + ", ".join(
        f"{name} {1000 * value:.0f}" for name, value in waits.items()
    )]  # fmt: skip
    (folder / "quick_questions.md").write_text("\n".join(lines).lstrip() + "\n", encoding="utf-8")
    draw(table, folder / "quick_questions.png")
    print("\n".join(lines))


def draw(table: pd.DataFrame, path: Path) -> None:
    """Curves of all policies, against seconds and against questions."""
    shares = sorted(table["wrong"].unique())
    figure, axes = plt.subplots(len(shares), 2, figsize=(10, 4 * len(shares)), squeeze=False, sharey=True)
    for wrong, (by_time, by_number) in zip(shares, axes, strict=True):
        part = table[table["wrong"] == wrong]
        of_sets = part.groupby(["policy", "seconds", "data"])[["ari", "questions"]].mean()
        means = of_sets.groupby(["policy", "seconds"]).mean()
        for k, policy in enumerate(dict.fromkeys(part["policy"])):
            one = means.loc[policy]
            width = 2.5 if policy in ("mixed", "pairs") else 1.2
            by_time.plot(one.index, one["ari"], color=f"C{k}", lw=width, label=policy)
            by_number.plot(one["questions"], one["ari"], color=f"C{k}", lw=width, label=policy)
        by_time.set_ylabel(f"adjusted Rand index, {100 * wrong:.0f} % wrong")
        for ax in (by_time, by_number):
            ax.grid(alpha=0.3)
    axes[-1, 0].set_xlabel("seconds of a person's time")
    axes[-1, 1].set_xlabel("questions")
    axes[0, 0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--policies", default=";".join(POLICIES), help="separated by semicolons")
    parser.add_argument("--data", default=",".join((*DATA, *FILES)))
    parser.add_argument("--wrong", default="0")
    parser.add_argument("--first", type=int, default=0, help="first draw; constants were chosen on draws 0 and 1")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=SHOWN[-1])
    parser.add_argument("--out", type=Path, default=Path("results-quick"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    shares = [float(share) for share in options.wrong.split(",")]
    seeds = range(options.first, options.first + options.seeds)
    names = [name for name in options.data.split(",") if "LINKMIX_DATA" in os.environ or name not in FILES]
    tasks = [(d, p, w, seed) for seed, w, d, p in product(seeds, shares, names, options.policies.split(";"))]
    write(run(tasks, options.out / "quick_questions.jsonl", options.jobs, options.seconds), options.out)


if __name__ == "__main__":
    main()
