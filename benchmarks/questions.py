"""Which question to ask next: strategies against a simulated user.

    python -m benchmarks.questions --seeds 20 --jobs 2 --out results-questions
    python -m benchmarks.questions --strategies cover,random --data iris,wine --seeds 2
    python -m benchmarks.questions --vary early,cells --questions 80 --seeds 2 --out results-settings
    python -m benchmarks.questions --strategies cover --unknown-number --wrong 0 --data eleven --seeds 2-4
    python -m benchmarks.questions --strategies cover --people one,two,program --wrong 0.1,0.2 --seeds 2-4

Every strategy asks 160 questions; a share of the answers is wrong. All of them use the same model, which is refitted
every 10 answers, and every 20 from the 40th on. Runs are kept in a journal as they end; a command that was stopped goes
on where it was. ``--vary`` halves and doubles tuned constants of `cover` by name, or all of them (``--vary all``); a
share above one half is moved half of the way to one instead of doubled. ``--unknown-number`` runs each strategy again
without telling it the number of classes; "eleven" data sets are the eight, glass, vehicle and eight letters, for which
``LINKMIX_DATA`` must be set. ``--people`` says who answers: one person; two by name in turn, one of whom gives a tenth
of the wrong answers and the other one the rest; or a program, which answers the same when asked again. The page has the
mean adjusted Rand index and purity of `predict` against the number of questions, what a supervised Gaussian reaches,
how many questions it takes to reach 90 % of that, and how well the stop signal tells how much labels will change.
"""

import argparse
import time
import warnings
from dataclasses import fields
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.stats import spearmanr
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from benchmarks.number_of_classes import points_of
from linkmix import purity
from linkmix.basics.journal import Journal
from linkmix.densities import Gaussian
from linkmix.engine import most_probable_classes, starts
from linkmix.engine.starts import match_labels
from linkmix.queries import STRATEGIES, Answer, Questioner, QuestionSettings

mpl.use("Agg")
import matplotlib.pyplot as plt

DATA = (
    *("thyroid", "iris", "wine", "digits@1000", "segment@1000", "pendigits@1000"),
    *("mnist-4567@1000", "mnist-4567-10@1000"),
)
ELEVEN = (*DATA, "glass", "vehicle", "letter-8@1000")
UNKNOWN = "number unknown"
PEOPLE = {"one": "", "two": "two people", "program": "a program"}
CAREFUL = 0.2  # of two people, the share of wrong answers of the careful one, over that of both
N_QUESTIONS = 160
FALL = 0.03
SHOWN = (0, 10, 20, 40, 80, 160)
TARGETS = {0.0: (None, 0.70, 0.73, 0.76, 0.81, 0.84), 0.1: (None, 0.70, 0.72, 0.74, 0.76, 0.78)}


def halved_and_doubled(names: list[str]) -> list[str]:
    """Strategies that are `cover` with one of its constants halved or doubled, such as "cover, early=20"."""
    chosen = [field.name for field in fields(QuestionSettings) if names == ["all"] or field.name in names]
    values = {name: getattr(QuestionSettings(), name) for name in chosen}
    return ["cover"] + [
        f"cover, {name}={other}"
        for name, value in values.items()
        for other in (
            (value // 2, 2 * value)
            if isinstance(value, int)
            else (value / 2, 2 * value if value <= 0.5 else (1 + value) / 2)
        )
    ]


def settings_of(strategy: str) -> tuple[str, QuestionSettings, set[str]]:
    """Name of the strategy, the constants that it is run with, and what is special about it."""
    name, *others = strategy.split(", ")
    varied = dict(other.split("=") for other in others if "=" in other)
    values = {constant: type(getattr(QuestionSettings(), constant))(float(v)) for constant, v in varied.items()}
    return name, QuestionSettings(**values), {other for other in others if "=" not in other}


def answer_of(y: np.ndarray, a: int, b: int, n: int, wrong: float, who: set[str], random: Any) -> Answer:
    """What somebody says about a pair, as the n-th answer."""
    name, share, draw = None, wrong, random.random()
    if PEOPLE["two"] in who:
        name, share = ("careful", CAREFUL * wrong) if n % 2 else ("careless", (2 - CAREFUL) * wrong)
    elif PEOPLE["program"] in who:  # the same pair gets the same answer
        name, draw = "program", np.random.default_rng([min(a, b), max(a, b)]).random()
    same = bool(y[a] == y[b]) != bool(draw < share)
    return Answer(a, b, "same" if same else "different", name)


def simulate(data: str, strategy: str, wrong: float, seed: int, n_questions: int) -> dict[str, Any]:
    """One user who answers all questions of one strategy."""
    name, settings, special = settings_of(strategy)
    X, y = points_of(data)
    n_classes = len(np.unique(y))
    random = np.random.default_rng(seed)
    curve: list[dict[str, float]] = []
    labelings = []
    waits = []

    def score(n: int) -> None:
        predicted = asker.model.predict(X)
        labelings.append(predicted)
        curve.append(
            {
                "n": n,
                "ari": float(adjusted_rand_score(y, predicted)),
                "purity": purity(y, predicted),
                "signal": asker.stop_signal,
                "off": abs(asker.n_classes - n_classes),
            }
        )

    begin = time.perf_counter()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = None if UNKNOWN in special else n_classes
        asker = Questioner(X, known, strategy=name, wrong=wrong, random_state=seed, settings=settings)
        score(0)
        for n in range(1, n_questions + 1):
            asked = time.perf_counter()
            pairs = asker.next()
            waits.append(time.perf_counter() - asked)
            if not len(pairs):  # all is known
                break
            asker.said.add(answer_of(y, *pairs[0].tolist(), n, wrong, special, random))
            if n % 10 == 0 and (n <= 40 or n % 20 == 0):
                asker.refit()
                score(n)
        if curve[-1]["n"] < n_questions:
            asker.refit()
            score(n_questions)
    for point, labels in zip(curve, labelings, strict=True):  # what the next 20 answers changed
        later = next((other for p, other in zip(curve, labelings, strict=True) if p["n"] >= point["n"] + 20), None)
        if later is not None:
            most = int(max(later.max(), labels.max())) + 1
            point["change"] = float((match_labels(later, labels, most)[later] != labels).mean())
    return {
        "data": data,
        "strategy": strategy,
        "wrong": wrong,
        "seed": seed,
        "seconds": time.perf_counter() - begin,
        "wait_p95": float(np.quantile(waits, 0.95)),
        "curve": curve,
    }


def supervised(data: str) -> float:
    """Adjusted Rand index of one shrunk Gaussian for each true class."""
    X, y = points_of(data)
    Z = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    density = Gaussian(reg_covar=1e-4, shrinkage=Z.shape[1] + 2.0)
    moments = starts.from_classes(density, Z, y, starts.Shape(len(np.unique(y))), np.random.RandomState(0))
    return float(adjusted_rand_score(y, most_probable_classes(density, moments, Z)))


def run(tasks: list[tuple[str, str, float, int]], path: Path, n_jobs: int, n_questions: int) -> list[dict[str, Any]]:
    """Make the runs that are not in the journal yet, and keep each when it ends."""
    with Journal(path) as journal:
        done = {(row["data"], row["strategy"], row["wrong"], row["seed"]): row for row in journal.entries}
        missing = [task for task in tasks if task not in done]
        results = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)(
            delayed(simulate)(*task, n_questions) for task in missing
        )
        for row in results:
            journal.append(row)
            last = row["curve"][-1]["ari"]
            print(f"{row['strategy']:28}{row['data']:20}wrong {row['wrong']:.1f} seed {row['seed']} ARI {last:.3f}")
            done[row["data"], row["strategy"], row["wrong"], row["seed"]] = row
    return [done[task] for task in tasks]


def tidy(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """One line for each run and number of questions."""
    names = ("data", "strategy", "wrong", "seed")
    return pd.DataFrame([{name: row[name] for name in names} | point for row in rows for point in row["curve"]])


def write(rows: list[dict[str, Any]], folder: Path) -> None:
    """Tables and a plot."""
    table = tidy(rows)
    lines = []
    names = [name for name in ELEVEN if name in set(table["data"])]
    ceiling = {name: supervised(name) for name in names}
    for wrong, part in table.groupby("wrong"):
        for measure in ("ari", "purity"):
            means = part.groupby(["strategy", "n", "data"])[measure].mean().groupby(["strategy", "n"]).mean().unstack()
            lines += [f"\n{measure}, mean of {len(names)} data sets, {100 * wrong:.0f} % wrong answers", ""]
            shown = [n for n in SHOWN if n in means]
            lines += ["| strategy | draws | " + " | ".join(map(str, shown)) + " |", "|---|---|" + "---|" * len(shown)]
            for strategy, values in means.iterrows():
                draws = part[part["strategy"] == strategy]["seed"].nunique()
                lines.append(f"| {strategy} | {draws} | " + " | ".join(f"{values[n]:.3f}" for n in shown) + " |")
            if measure == "ari":
                wanted = dict(zip(SHOWN, TARGETS.get(wrong, (None,) * len(SHOWN)), strict=True))
                goals = [" " if wanted[n] is None else f"{wanted[n]:.2f}" for n in shown]
                lines.append("| target | | " + " | ".join(goals) + " |")
        if (part["off"] > 0).any():
            off = part.groupby(["strategy", "n", "data"])["off"].mean().groupby(["strategy", "n"]).mean().unstack()
            lines += ["\nError of the number of classes", "", "| strategy | " + " | ".join(map(str, shown)) + " |"]
            lines += ["|---|" + "---|" * len(shown)]
            lines += [f"| {one} | " + " | ".join(f"{row[n]:.2f}" for n in shown) + " |" for one, row in off.iterrows()]
        lines += [f"\n{sentence}" for sentence in falls(part)]
        lines += [
            "\nQuestions until 90 % of the supervised Gaussian is reached, and the mean of the sets that of its mean",
            "",
        ]
        lines += ["| strategy | " + " | ".join([*names, "mean"]) + " |", "|---|" + "---|" * (len(names) + 1)]
        for strategy, of_one in part.groupby("strategy"):
            curves = of_one.groupby(["n", "data"])["ari"].mean().unstack()
            cells = [reached(curves[name], 0.9 * ceiling[name]) for name in names]
            cells.append(reached(curves.mean(axis=1), 0.9 * np.mean(list(ceiling.values()))))
            lines.append(f"| {strategy} | " + " | ".join(cells) + " |")
    lines += ["\nSupervised Gaussian: " + ", ".join(f"{name} {value:.3f}" for name, value in ceiling.items())]
    told = table[(table["n"] > 0) & table["change"].notna()]
    told = told[told["strategy"] == "cover"]
    if len(told) > 2:
        rank = spearmanr(told["signal"], told["change"]).statistic
        settled = told[told["signal"] < 0.03]
        lines += [
            f"\nStop signal of cover against what the next 20 answers changed: Spearman {rank:.2f}; mean signal "
            f"{told['signal'].mean():.3f}, mean change {told['change'].mean():.3f}; below 0.03 in {len(settled)} of "
            f"{len(told)} cases, then the mean change is {settled['change'].mean():.3f}."
        ]
    waits = pd.DataFrame(rows).groupby("strategy")["wait_p95"].max()
    lines += ["\nTime for a question, 95 % of them, in milliseconds: " + ", ".join(
        f"{name} {1000 * value:.0f}" for name, value in waits.items()
    )]  # fmt: skip
    (folder / "questions.md").write_text("\n".join(lines).lstrip() + "\n", encoding="utf-8")
    draw(table, folder / "questions.png")
    print("\n".join(lines))


def falls(table: pd.DataFrame) -> list[str]:
    """How often a refit made the labels worse, for each strategy."""
    sentences = []
    for strategy, part in table.groupby("strategy"):
        ordered = part.sort_values("n").groupby(["data", "seed"])["ari"]
        down = -ordered.diff()
        n_runs, lost = len(ordered), down[down > FALL]
        sentences.append(
            f"{strategy}: {len(lost)} refits of {n_runs} runs lower the adjusted Rand index by more than {FALL}, by "
            f"{lost.sum() / n_runs:.3f} in a run."
        )
    return sentences


def reached(curve: pd.Series, goal: float) -> str:
    """The number of questions at which a curve gets to a goal, by straight lines between what was measured."""
    above = np.flatnonzero(curve.to_numpy() >= goal)
    if not len(above):
        return f"> {N_QUESTIONS}"
    k = int(above[0])
    if k == 0:
        return "0"
    (low, high), (before, after) = curve.iloc[k - 1 : k + 1], curve.index[k - 1 : k + 1]
    return f"{before + (goal - low) / (high - low) * (after - before):.0f}"


def draw(table: pd.DataFrame, path: Path) -> None:
    """Curves of all strategies, a panel for each share of wrong answers and measure."""
    shares = sorted(table["wrong"].unique())
    figure, axes = plt.subplots(2, len(shares), figsize=(5 * len(shares), 7), squeeze=False, sharex=True, sharey="row")
    for column, wrong in enumerate(shares):
        for ax, measure in zip(axes[:, column], ("ari", "purity"), strict=True):
            part = table[table["wrong"] == wrong]
            means = part.groupby(["strategy", "n", "data"])[measure].mean().groupby(["strategy", "n"]).mean().unstack(0)
            for strategy in means:
                ours = strategy == "cover"
                colour = f"C{list(STRATEGIES).index(settings_of(strategy)[0])}"
                width, order = (2.5, 3) if ours else (1.2, 2)
                ax.plot(means.index, means[strategy], color=colour, lw=width, label=strategy, zorder=order)
            ax.set_ylabel({"ari": "adjusted Rand index", "purity": "purity"}[measure])
            ax.set_title(f"{100 * wrong:.0f} % wrong answers")
            ax.grid(alpha=0.3)
        axes[-1, column].set_xlabel("questions")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="lower center", ncol=len(STRATEGIES), frameon=False)
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    figure.savefig(path, dpi=120)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--wrong", default="0,0.1")
    parser.add_argument("--seeds", default="20", help="number of draws, or the first and the last, such as 2-4")
    parser.add_argument("--unknown-number", action="store_true", help="also without telling the number of classes")
    parser.add_argument("--people", default="one", help="who answers: one, two or program, or several of these")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--vary", help="constants of cover to halve and double, by name, or all")
    parser.add_argument("--questions", type=int, default=N_QUESTIONS)
    parser.add_argument("--out", type=Path, default=Path("results-questions"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    shares = [float(share) for share in options.wrong.split(",")]
    names = list(ELEVEN) if options.data == "eleven" else options.data.split(",")
    strategies = halved_and_doubled(options.vary.split(",")) if options.vary else options.strategies.split(",")
    strategies = [
        ", ".join(part for part in (one, PEOPLE[people], number) if part)
        for one, people in product(strategies, options.people.split(","))
        for number in ("", UNKNOWN)[: 1 + options.unknown_number]
    ]
    first, _, last = options.seeds.rpartition("-")
    draws = range(int(first), int(last) + 1) if first else range(int(last))
    tasks = [(d, s, w, seed) for seed, w, s, d in product(draws, shares, strategies, names)]
    write(run(tasks, options.out / "questions.jsonl", options.jobs, options.questions), options.out)


if __name__ == "__main__":
    main()
