"""What each part of `AutoLinkMixture` is worth, what wrong links do to it, and how it does on data it was not tuned to.

Random links of true labels on the eleven data sets of docs/fewest-links.md; scores are of ``predict``, which sees the
points alone. Data that are not on this machine are left out, and named.

    python -m benchmarks.fewest_links parts --seeds 3 --links 10 50 200
    python -m benchmarks.fewest_links noise --seeds 10 --links 100
    python -m benchmarks.fewest_links other --seeds 5 --links 10 50 200
    python -m benchmarks.fewest_links settings --seeds 2 --links 25 --budget small --only structure kept

``parts`` takes one thing away or exchanges it at a time. ``other`` has data sets that no constant was chosen on, and
the methods that come closest. ``settings`` halves and doubles tuned constants of the search, by name (all of
`linkmix.search.settings.SearchSettings` by default). ``noise`` turns a fifth of the links into their opposite:

    none         no links
    right        the links before any was flipped
    confidence   every link is right with probability 0.8, and the estimator is told so
    learned      one annotator made all links, and how often that person is right is learned

"found" is the share of the wrong links among as many at the top of ``links_to_review_``; blind choice would give 0.2.
"""

import argparse
import time
import warnings
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import adjusted_rand_score

from linkmix import AutoLinkMixture, Links, purity
from linkmix.search import BUDGETS
from linkmix.search.ranking import Evidence, by_links_structure_and_agreement
from linkmix.search.settings import SETTINGS, SearchSettings
from linkmix.study.paper.data import MissingData
from linkmix.study.paper.protocol import FEWEST_DATA, load
from linkmix.study.registry import METHODS

WRONG = 0.2


class Row(NamedTuple):
    """The result of one fit."""

    data: str
    n_links: int
    variant: str
    purity: float
    ari: float
    seconds: float
    found: float = float("nan")


def by_links(candidates: Sequence[Evidence], n_classes: int, settings: SearchSettings) -> np.ndarray:
    """Log-probability of the links."""
    return np.array([candidate.log_probability for candidate in candidates])


def by_links_and_structure(candidates: Sequence[Evidence], n_classes: int, settings: SearchSettings) -> np.ndarray:
    """Without agreement."""
    structure = np.array([candidate.structure for candidate in candidates])
    return by_links(candidates, n_classes, settings) + settings.structure * structure


def by_links_and_agreement(candidates: Sequence[Evidence], n_classes: int, settings: SearchSettings) -> np.ndarray:
    """Without structure."""
    return by_links_structure_and_agreement([replace(one, structure=0.0) for one in candidates], n_classes, settings)


def fewest_broken(candidates: Sequence[Evidence], n_classes: int, settings: SearchSettings) -> np.ndarray:
    """Fewest broken links, then their probability."""
    return np.array([-1e6 * candidate.broken + candidate.log_probability for candidate in candidates])


OTHER_DATA = ("two-moons", "toy-large", "coil20-10@1000", "coil20-15@1000")
OTHER_METHODS = ("auto", "e2cp", "e2cp-sparse", "linkmix", "mpck-means", "paper")
DEFAULT = BUDGETS["default"]
PARTS: dict[str, dict[str, object]] = {
    "as it is": {},
    "committee of five": {"committee": 5},
    "small budget": {"budget": "small"},
    "ranked by links alone": {"budget": replace(DEFAULT, rule=by_links)},
    "by broken links, then their probability": {"budget": replace(DEFAULT, rule=fewest_broken)},
    "by links and structure": {"budget": replace(DEFAULT, rule=by_links_and_structure)},
    "by links and agreement": {"budget": replace(DEFAULT, rule=by_links_and_agreement)},
    "Gaussian clusters alone": {
        "budget": replace(
            DEFAULT, shapes=("1", "2, shared", "3, shared"), more_shapes=("1", "2, shared", "3, shared", "6")
        )
    },
    "one cluster per class": {"budget": replace(DEFAULT, shapes=("1", "1, heavy tails"), more_shapes=())},
    "no second round": {"budget": replace(DEFAULT, more_shapes=())},
    "no E2CP start": {
        "budget": replace(DEFAULT, guesses=tuple(name for name in DEFAULT.guesses if "E2CP" not in name))
    },
}


def halved_and_doubled(only: list[str] | None, budget: str) -> dict[str, dict[str, object]]:
    """The constants of the search as they are, and each of them halved and doubled."""
    variants: dict[str, dict[str, object]] = {"as it is": {"budget": budget}}
    for field in fields(SETTINGS):
        if only is None or field.name in only:
            value = getattr(SETTINGS, field.name)
            for other in (value // 2 if isinstance(value, int) else value / 2, 2 * value):
                settings = replace(SETTINGS, **{field.name: other})
                variants[f"{field.name} = {other:g}"] = {"budget": replace(BUDGETS[budget], settings=settings)}
    return variants


def flip(links: Links, seed: int) -> tuple[Links, set[tuple[int, int]]]:
    """A share of the links turned into their opposite, and which pairs these are."""
    pairs = np.concatenate([links.must, links.cannot])
    says_same = np.arange(len(pairs)) < links.n_must
    wrong = np.random.default_rng(seed).choice(len(pairs), size=round(WRONG * len(pairs)), replace=False)
    says_same[wrong] = ~says_same[wrong]
    return Links(pairs[says_same], pairs[~says_same]), {(min(a, b), max(a, b)) for a, b in pairs[wrong].tolist()}


def run(name: str, n_links: int, seed: int, variant: str, settings: dict[str, object], links: Links | None) -> Row:
    """One fit."""
    X, y = load(name)
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make = METHODS[variant].make if variant in METHODS else AutoLinkMixture
        model = make(n_classes=len(np.unique(y)), random_state=seed, **settings).fit(X, links=links)
    seconds = time.perf_counter() - begin
    labels = model.predict(X) if hasattr(model, "predict") else model.labels_
    found = float("nan")
    if variant in ("confidence", "learned"):
        _, wrong = flip(Links.from_labels(y, n_links, random_state=seed), seed)
        top = model.links_to_review_[: len(wrong)]
        found = float(np.mean([(min(a, b), max(a, b)) in wrong for a, b in zip(top["a"], top["b"], strict=True)]))
    return Row(name, n_links, variant, purity(y, labels), adjusted_rand_score(y, labels), seconds, found)


def tasks(
    kind: str, names: list[str], all_links: list[int], n_seeds: int, only: list[str] | None, budget: str
) -> list[tuple]:
    """Arguments of all runs."""
    made = []
    for name in names:
        _, y = load(name)
        for n_links in all_links:
            for seed in range(n_seeds):
                right = Links.from_labels(y, n_links, random_state=seed)
                if kind == "parts":
                    variants = [(key, settings, right) for key, settings in PARTS.items()]
                elif kind == "settings":
                    varied = halved_and_doubled(only, budget)
                    made += [(name, n_links, seed, key, settings, right) for key, settings in varied.items()]
                    continue
                elif kind == "other":
                    variants = [(method, {}, right) for method in OTHER_METHODS]
                else:
                    flipped, _ = flip(right, seed)
                    sure = 1 - WRONG
                    unsure = Links(flipped.must, flipped.cannot, must_confidence=sure, cannot_confidence=sure)
                    who = np.full(n_links, "one", dtype=object)
                    named = Links(
                        flipped.must,
                        flipped.cannot,
                        must_annotators=who[: flipped.n_must],
                        cannot_annotators=who[: flipped.n_cannot],
                    )
                    variants = [
                        ("none", {}, None),
                        ("right", {}, right),
                        ("confidence", {}, unsure),
                        ("learned", {}, named),
                    ]
                made += [
                    (name, n_links, seed, variant, settings, links)
                    for variant, settings, links in variants
                    if only is None or variant in only
                ]
    return made


def show(rows: list[Row], kind: str) -> None:
    """Means over seeds: one line per variant, and for noise one per data set as well."""
    variants = list(dict.fromkeys(row.variant for row in rows))
    numbers = sorted({row.n_links for row in rows})
    if kind == "noise":
        print(f"{'data':<18}" + "".join(f"{variant:>12}" for variant in variants) + f"{'found':>8}  lost of the gain")
        names = list(dict.fromkeys(row.data for row in rows))
        for name in [*names, "mean"]:
            mean = {
                variant: np.mean([row.ari for row in rows if row.variant == variant and name in (row.data, "mean")])
                for variant in variants
            }
            found = np.nanmean([row.found for row in rows if name in (row.data, "mean")] or [np.nan])
            gain = mean.get("right", np.nan) - mean.get("none", np.nan)
            lost = (mean.get("right", np.nan) - mean.get("confidence", np.nan)) / gain if gain > 0.01 else float("nan")
            print(f"{name:<18}" + "".join(f"{mean[v]:>12.3f}" for v in variants) + f"{found:>8.2f}  {lost:.2f}")
        return
    print(f"{'':<42}" + "".join(f"{n:>8}" for n in numbers) + f"{'mean':>8}{'seconds':>9}")
    for variant in variants:
        means = [np.mean([row.ari for row in rows if row.variant == variant and row.n_links == n]) for n in numbers]
        seconds = np.mean([row.seconds for row in rows if row.variant == variant])
        print(f"{variant:<42}" + "".join(f"{mean:>8.3f}" for mean in means) + f"{np.mean(means):>8.3f}{seconds:>9.1f}")


def main() -> None:
    """Read the arguments, run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["parts", "noise", "other", "settings"])
    parser.add_argument("--seeds", type=int, default=3, help="number of draws of links (default: 3)")
    parser.add_argument("--links", type=int, nargs="+", default=[100], help="numbers of links (default: 100)")
    parser.add_argument("--data", nargs="*", help="data sets (default: all of this kind)")
    parser.add_argument("--only", nargs="*", help="variants, or names of settings (default: all)")
    parser.add_argument("--budget", choices=list(BUDGETS), default="default", help="budget for settings")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes (default: 1)")
    arguments = parser.parse_args()
    names = []
    for name in arguments.data or (OTHER_DATA if arguments.kind == "other" else FEWEST_DATA):
        try:
            load(name)
            names.append(name)
        except MissingData:
            print(f"{name} is not on this machine: linkmix data fetch {name.split('@')[0]}")
    begin = time.perf_counter()
    todo = tasks(arguments.kind, names, arguments.links, arguments.seeds, arguments.only, arguments.budget)
    rows = []
    for row in Parallel(n_jobs=arguments.jobs, return_as="generator")(delayed(run)(*task) for task in todo):
        rows.append(row)
        print(f"\r{len(rows)} of {len(todo)} fits", end="", flush=True)
    print(f"\n\n{arguments.seeds} seeds; ARI of predict, mean over seeds and data\n")
    show(rows, arguments.kind)
    print(f"\n{time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
