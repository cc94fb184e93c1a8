"""``linkmix fit`` against the same job as a script: ``python -m benchmarks.command_line [--rows N] [--separation S]``.

A table of a million rows and ten columns as CSV and as Parquet, three classes, a hundred links. Each side is a separate
process, measured from start to end: read the file, fit, write a label and the probabilities of all classes for each
row. The script reads with pandas, fits scikit-learn's GaussianMixture with its defaults, which uses no links, and
writes with pandas. The sides take turns, and the fastest turn of each counts. Memory is the peak of the process. It
includes the parts of scratch files that are mapped into it, which the system reclaims when memory is needed elsewhere.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from linkmix import Links
from linkmix.tables import write_links

SCRIPT = """
import sys
import pandas as pd
from sklearn.mixture import GaussianMixture
source, target = sys.argv[1:]
table = (pd.read_parquet if source.endswith("parquet") else pd.read_csv)(source)
X = table.drop(columns="id")
model = GaussianMixture(3, random_state=0).fit(X)
p = model.predict_proba(X)
out = pd.DataFrame({"id": table["id"], "label": p.argmax(axis=1), "confidence": p.max(axis=1)})
for m in range(3):
    out[f"probability_{m}"] = p[:, m].round(6)
out["confidence"] = out["confidence"].round(6)
out.to_csv(target, index=False)
"""
COMMAND = "from linkmix.app.cli import main; main(prog_name='linkmix')"


def write_problem(folder: Path, n: int, separation: float):
    """Write points around three centres, with a different covariance in each class, and links; return the classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=n)
    shapes = np.eye(10) + 0.3 * rng.normal(size=(3, 10, 10))
    noise = rng.normal(size=(n, 10))
    X = separation * rng.normal(size=(3, 10))[y]
    for m in range(3):
        X[y == m] += noise[y == m] @ shapes[m]
    table = pd.DataFrame(X, columns=[f"x{i}" for i in range(10)])
    table.insert(0, "id", [f"p{row:07}" for row in range(n)])
    table.to_csv(folder / "points.csv", index=False)
    table.to_parquet(folder / "points.parquet", index=False)
    write_links(folder / "links.csv", Links.from_labels(y, 100, random_state=0), table["id"].tolist())
    return y


def measure(arguments: list[str]) -> tuple[float, float]:
    """Seconds and peak memory in megabytes of a process."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{arguments[1:]} failed with {status}")
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--separation", type=float, default=1.0)
    parser.add_argument("--turns", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        truth = write_problem(folder, options.rows, options.separation)
        links = ["--links", str(folder / "links.csv"), "--classes", "3"]
        print(f"{options.rows:,} rows, 10 columns, separation {options.separation:g}, {os.cpu_count()} processors")
        print(f"{'file':9}{'job':44}{'seconds':>9}{'peak MB':>9}{'adjusted Rand':>15}")
        for source in ("points.csv", "points.parquet"):
            sides = {"pandas + scikit-learn GaussianMixture": [SCRIPT, str(folder / source), str(folder / "s.csv")]}
            for what in ([], ["--method", "linkmix"], ["--method", "paper"]):
                command = ["fit", str(folder / source), *links, *what, "--out", str(folder / "out")]
                sides[" ".join(["linkmix fit", *what])] = [COMMAND, *command]
            found = {name: [] for name in sides}
            rand = {}
            for _ in range(options.turns):
                for name, arguments in sides.items():
                    found[name].append(measure(arguments))
                    labels = folder / ("s.csv" if arguments[0] == SCRIPT else "out/labels.csv")
                    rand[name] = adjusted_rand_score(truth, pd.read_csv(labels, usecols=["label"])["label"])
            for name, turns in found.items():
                seconds, megabytes = (min(values) for values in zip(*turns, strict=True))
                print(f"{Path(source).suffix:9}{name:44}{seconds:9.1f}{megabytes:9.0f}{rand[name]:15.3f}", flush=True)


if __name__ == "__main__":
    main()
