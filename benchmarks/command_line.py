"""``linkmix fit`` against the same job as a script: ``python -m benchmarks.command_line [--rows N] [--separation S]``.

    python -m benchmarks.command_line
    python -m benchmarks.command_line cold --against ../earlier

A table of a million rows and ten columns as CSV and as Parquet, three classes, a hundred links. Each side is a separate
process, measured from start to end: read the file, fit, write a label and the probabilities of all classes for each
row. The script reads with pandas, fits scikit-learn's GaussianMixture with its defaults, which uses no links, and
writes with pandas. The sides take turns, and the fastest turn of each counts. Memory is the peak of the process. It
includes the parts of scratch files that are mapped into it, which the system reclaims when memory is needed elsewhere.

"cold" is the start: 200 rows, four columns, 20 links. The script then fits GaussianMixture(n_init=10). CPU seconds of
one thread, the median of all turns; ``--against`` measures the code in another folder in the same turns.
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
source, target, n_init = sys.argv[1:]
table = (pd.read_parquet if source.endswith("parquet") else pd.read_csv)(source)
X = table.drop(columns="id")
model = GaussianMixture(3, n_init=int(n_init), random_state=0).fit(X)
p = model.predict_proba(X)
out = pd.DataFrame({"id": table["id"], "label": p.argmax(axis=1), "confidence": p.max(axis=1)})
for m in range(3):
    out[f"probability_{m}"] = p[:, m].round(6)
out["confidence"] = out["confidence"].round(6)
out.to_csv(target, index=False)
"""
COMMAND = "from linkmix.app.cli import main; main(prog_name='linkmix')"


def write_problem(folder: Path, n: int, separation: float, d: int = 10, n_links: int = 100):
    """Write points around three centres, with a different covariance in each class, and links; return the classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=n)
    shapes = np.eye(d) + 0.3 * rng.normal(size=(3, d, d))
    noise = rng.normal(size=(n, d))
    X = separation * rng.normal(size=(3, d))[y]
    for m in range(3):
        X[y == m] += noise[y == m] @ shapes[m]
    table = pd.DataFrame(X, columns=[f"x{i}" for i in range(d)])
    table.insert(0, "id", [f"p{row:07}" for row in range(n)])
    table.to_csv(folder / "points.csv", index=False)
    table.to_parquet(folder / "points.parquet", index=False)
    write_links(folder / "links.csv", Links.from_labels(y, n_links, random_state=0), table["id"].tolist())
    return y


def measure(arguments: list[str], source: Path | None = None) -> tuple[float, float, float]:
    """Seconds, peak memory in megabytes and CPU seconds of a process, which imports linkmix from a folder."""
    environment = os.environ if source is None else os.environ | {"PYTHONPATH": str(source / "src")}
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", *arguments], stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{arguments[1:]} failed with {status}")
    return time.perf_counter() - start, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


def cold(options) -> None:
    """Print what a small job costs from the start of Python to its end."""
    here = Path(__file__).resolve().parents[1]
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_problem(folder, 200, 3.0, 4, 20)
        command = [COMMAND, "fit", str(folder / "points.csv"), "--links", str(folder / "links.csv")]
        ours = {
            "from linkmix import LinkMixture": ["from linkmix import LinkMixture"],
            "linkmix fit --classes 3": [*command, "--classes", "3", "--out", str(folder / "out")],
            "linkmix fit --classes auto": [*command, "--out", str(folder / "out")],
        }
        sides = {
            "import sklearn.base": (["import sklearn.base"], here),
            "from sklearn.mixture import GaussianMixture": (["from sklearn.mixture import GaussianMixture"], here),
            "pandas + GaussianMixture(n_init=10)": (
                [SCRIPT, str(folder / "points.csv"), str(folder / "s.csv"), "10"],
                here,
            ),
        }
        sides |= {name: (arguments, here) for name, arguments in ours.items()}
        if options.against:
            sides |= {f"{name}, {options.against}": (arguments, options.against) for name, arguments in ours.items()}
        turns = [[measure(*side)[2] for side in sides.values()] for _ in range(options.turns)]
    medians = dict(zip(sides, np.median(turns, axis=0), strict=True))
    script = medians["pandas + GaussianMixture(n_init=10)"]
    print(f"{'200 rows, 4 columns, 20 links':60}{'CPU s':>7}{'to the script':>15}{'to the other':>14}")
    for name, seconds in medians.items():
        other = medians.get(f"{name}, {options.against}")
        print(f"{name:60}{seconds:7.2f}{seconds / script:15.2f}" + (f"{seconds / other:14.2f}" if other else ""))


def large(options) -> None:
    """Print seconds, memory and agreement for a large table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        truth = write_problem(folder, options.rows, options.separation)
        links = ["--links", str(folder / "links.csv"), "--classes", "3"]
        print(f"{options.rows:,} rows, 10 columns, separation {options.separation:g}, {os.cpu_count()} processors")
        print(f"{'file':9}{'job':44}{'seconds':>9}{'peak MB':>9}{'adjusted Rand':>15}")
        for source in ("points.csv", "points.parquet"):
            sides = {
                "pandas + scikit-learn GaussianMixture": [SCRIPT, str(folder / source), str(folder / "s.csv"), "1"]
            }
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
                seconds, megabytes, _ = (min(values) for values in zip(*turns, strict=True))
                print(f"{Path(source).suffix:9}{name:44}{seconds:9.1f}{megabytes:9.0f}{rand[name]:15.3f}", flush=True)


PARTS = {part.__name__: part for part in (large, cold)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", default="large", choices=PARTS)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--separation", type=float, default=1.0)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--against", type=Path, help="folder of other code, for cold")
    options = parser.parse_args()
    PARTS[options.part](options)


if __name__ == "__main__":
    main()
