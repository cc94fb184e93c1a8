"""Growth of the cost, fits out of core and fits on a cluster: ``python -m benchmarks.scale [part ...] [--quick]``.

Parts: growth (cost of an iteration against rows, columns, classes and links), memory (out of core), parquet (the front
door on files of ``--gigabytes``, beside a plain scan of them), questions (memory and time of a refit and a question),
dask (one worker, two workers and no cluster, one mixture and the front door). Times are those of the fastest turn. All
fits of one part begin at the same start, and the last column shows how closely they agree.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls
from sklearn.base import clone

from benchmarks.speed import Ours, fastest, given_start, parameters, problem
from linkmix import AutoLinkMixture, LinkMixture, engine, native
from linkmix.couplings import Pairwise
from linkmix.densities import Gaussian
from linkmix.engine import careful
from linkmix.engine.fitting import Knowledge, bind
from linkmix.engine.fitting import part as part_rows
from linkmix.links import Links


def fastest_step(fit):
    """Seconds of the fastest iteration of a fit, from one E-step to the next, and the model."""
    expect, begun = careful.expect, []

    def noted(*arguments):
        begun.append(time.perf_counter())
        return expect(*arguments)

    careful.expect = noted
    try:
        model = fit()
    finally:
        careful.expect = expect
    return np.diff(begun).min(), model


class Linked:
    """Both steps of EM with correct links between random rows."""

    def __init__(self, n, d, k, n_links):
        rng = np.random.default_rng(0)
        centres, y = 3.0 * rng.normal(size=(k, d)), rng.integers(k, size=n)
        X = rng.normal(size=(n, d)) + centres[y]
        pairs = rng.integers(n, size=(n_links, 2))
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        same = y[pairs[:, 0]] == y[pairs[:, 1]]
        links = Links(must=pairs[same], cannot=pairs[~same]).distinct()
        density = Gaussian()
        self.model = engine.Model(density, bind(Pairwise(), links, k))
        self.data = part_rows(Knowledge(X, links))
        self.n_linked = len(links.points)
        self.parameters = parameters(density, centres)

    def __call__(self):
        expectation = engine.expect(self.model, self.data, self.parameters)
        engine.maximise(self.model, expectation, self.parameters)


class Cost(NamedTuple):
    """Seconds of an iteration, and the size of the problem."""

    series: str
    n: int
    d: int
    k: int
    n_links: int
    n_linked: int
    seconds: float


def growth(options):
    """Print the cost of an iteration against n, d, M and links, with one thread."""
    costs = []
    most = 1_000_000 if options.quick else 10_000_000
    sizes = [n for n in (10_000, 100_000, 1_000_000, 10_000_000) if n <= most]
    counts = [0, 1_000, 10_000, 100_000] + ([] if options.quick else [1_000_000])
    series = {
        "rows (d = 4, M = 4)": [(n, n, 4, 4, 0) for n in sizes],
        "columns (n = 100k, M = 4)": [(d, 100_000, d, 4, 0) for d in (2, 4, 8, 16, 32, 64, 128)],
        "classes (n = 100k, d = 4)": [(m, 100_000, 4, m, 0) for m in (2, 4, 8, 16, 32)],
        "links (n = 200k, d = 4, M = 4)": [(count, 200_000, 4, 4, count) for count in counts],
    }
    print("\nOne iteration, one thread, full covariance. The last column is time over size, relative to the row above.")
    with native.using(threads=1):
        for name, rows in series.items():
            print(f"{name:>32}        ms         ns per row or link   growth")
            before = None
            for size, n, d, k, n_links in rows:
                side = Linked(n, d, k, n_links) if "links" in name else Ours(*problem(n, d, k, 3.0), 1)
                seconds = fastest(2 if n > 1_000_000 else 5, side)[0]
                if n_links == 0 and "links" in name:
                    alone, each = seconds, seconds / n
                elif n_links:
                    each = (seconds - alone) / n_links
                else:
                    each = seconds / n
                ratio = "" if before is None else f"{seconds / before[1] / (size / before[0]):9.2f}"
                print(f"{size:32}{1e3 * seconds:10.2f}{1e9 * each:26.1f}{ratio}", flush=True)
                before = (size, seconds) if size else None
                costs.append(Cost(name.split()[0], n, d, k, n_links, getattr(side, "n_linked", 0), seconds))
    model = cost_model(costs)
    print(f"\n{model.says()}")
    if options.plot:
        plot(costs, model, options.plot)


@dataclass(frozen=True)
class CostModel:
    """Seconds of an iteration: a constant, and a cost per row, per row and component, ..., per link and linked row."""

    weights: np.ndarray
    error: float  # largest relative error on the measurements

    @staticmethod
    def terms(n, d, k, n_links, n_linked):
        return np.array([1.0, n, n * k, n * k * d, n * k * d**2, n_links * k, n_linked * k])

    def seconds(self, n, d, k, n_links=0, n_linked=0):
        return float(self.terms(n, d, k, n_links, n_linked) @ self.weights)

    def says(self):
        fixed, row, component, column, square, link, linked = 1e9 * self.weights
        # 1e9 rows on 100 workers of one thread; Dask takes about a millisecond per task, and has two per partition.
        n_workers, per_worker = 100, 4
        there = self.seconds(1e9 / n_workers, 10, 8)
        scheduler = 2e-3 * n_workers * per_worker
        return (
            f"Cost model, one thread: {fixed / 1e3:.0f} us + n ({row:.1f} + M ({component:.2f} + {column:.3f} d + "
            f"{square:.4f} d^2)) ns + {link:.1f} M ns per link + {linked:.1f} M ns per linked row; "
            f"largest error on these measurements {self.error:.0%}.\n"
            f"1e9 x 10, M = 8, on {n_workers} workers of one thread, {per_worker} partitions each: {there:.2f} s for "
            f"the rows of a worker and {scheduler:.2f} s for {2 * n_workers * per_worker} tasks of the scheduler, so "
            f"{max(there, scheduler):.1f} to {there + scheduler:.1f} s per iteration; 80 GB in all, 0.8 GB per worker."
        )


def cost_model(costs):
    """Fit non-negative costs by least squares of the relative errors."""
    A = np.array([CostModel.terms(*c[1:-1]) / c.seconds for c in costs])
    size = A.max(axis=0)
    weights = nnls(A / size, np.ones(len(costs)))[0] / size
    return CostModel(weights, float(np.abs(A @ weights - 1).max()))


def plot(costs, model, path):
    """Plot the measured costs and the model, one panel per series."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullLocator

    figure = Figure(figsize=(10, 6), layout="constrained")
    of = {"rows": "n", "columns": "d", "classes": "k", "links": "n_links"}
    for panel, (series, field) in zip(figure.subplots(2, 2).flat, of.items(), strict=True):
        some = [c for c in costs if c.series == series and getattr(c, field) > 0]
        sizes = [getattr(c, field) for c in some]
        panel.loglog(sizes, [1e3 * c.seconds for c in some], "o", label="measured")
        predicted = [1e3 * model.seconds(*c[1:-1]) for c in some]
        panel.loglog(sizes, predicted, "-", color="0.5", label="cost model")
        panel.set(xlabel=series, ylabel="ms per iteration")
        panel.set_xticks(sizes, [f"{size:,}" for size in sizes], minor=False)
        panel.xaxis.set_minor_locator(NullLocator())
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if series == "classes" else (1,)))
        panel.yaxis.set_major_formatter("{x:g}")
        panel.yaxis.set_minor_locator(NullLocator())
        panel.grid(alpha=0.3)
        panel.legend()
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


MEMORY = """
import sys, threading, time
import numpy as np
from benchmarks.scale import fastest_step
from benchmarks.speed import given_start
from linkmix import Blocks, LinkMixture, Links

def anonymous():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024

how, folder, k = sys.argv[1], sys.argv[2], 8
rng = np.random.default_rng(0)
centres = 3 * rng.normal(size=(k, 10))
links = Links(must=[(0, 1000), (5, 999_999)], cannot=[(1, 2)])

def fit(X, steps, links=None):
    return LinkMixture(k, init=given_start(centres), tol=0, max_iter=steps).fit(X, links=links)

def source():
    if how == "in memory":
        return np.load(f"{folder}/X.npy")
    return np.load(f"{folder}/X.npy", mmap_mode="r") if how == "mapped" else Blocks.from_parquet(f"{folder}/X.parquet")

fit(np.random.default_rng(0).normal(size=(1000, 10)), 1)
if how == "Parquet":
    next(iter(source()))
before, peak, done = anonymous(), 0.0, False

def watch():
    global peak
    while not done:
        peak = max(peak, anonymous())
        time.sleep(0.003)

watcher = threading.Thread(target=watch)
watcher.start()
X = source()
seconds, model = fastest_step(lambda: fit(X, 6, links))
done = True
watcher.join()
print(peak - before, seconds, repr(float(model.log_likelihood_)))
"""


def memory(options):
    """Print memory and time of fits out of core."""
    if not os.path.exists("/proc/self/status"):
        print("\nthis system has no /proc/self/status: skipping memory")
        return
    import pyarrow as pa
    from pyarrow import parquet

    n = 1_000_000 if options.quick else 10_000_000
    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(0)
        centres = 3 * rng.normal(size=(8, 10))
        X = np.lib.format.open_memmap(Path(folder) / "X.npy", mode="w+", shape=(n, 10), dtype=np.float64)
        schema = pa.schema([(f"c{j}", pa.float64()) for j in range(10)])
        with parquet.ParquetWriter(Path(folder) / "X.parquet", schema) as writer:
            for first in range(0, n, 100_000):
                block = rng.normal(size=(100_000, 10)) + centres[rng.integers(8, size=100_000)]
                X[first : first + 100_000] = block
                writer.write_table(pa.table({f"c{j}": block[:, j] for j in range(10)}))
        X.flush()
        del X
        print(
            f"\n{n} x 10, {n * 80 / 2**20:.0f} MB, 8 classes, a few links, labels_ of {n * 8 / 2**20:.0f} MB included"
        )
        print("                extra memory, MB   ratio      s per iteration   ratio   agree")
        first = None
        for how in ("in memory", "mapped", "Parquet"):
            command = [sys.executable, "-c", MEMORY, how, folder]
            out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            peak, seconds, likelihood = map(float, out.split())
            first = first or (peak, seconds, likelihood)
            print(
                f"{how:>14}{peak:18.0f}{first[0] / peak:8.1f}{seconds:21.3f}{seconds / first[1]:8.2f}"
                f"{abs(likelihood / first[2] - 1):8.0e}",
                flush=True,
            )


QUESTIONS = """
import sys, threading, time
import numpy as np
from linkmix.queries import Questioner

def anonymous():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024

n, k = int(sys.argv[1]), int(sys.argv[2])
rng = np.random.default_rng(0)
y = rng.integers(k, size=n)
X = rng.normal(size=(n, 10))
X += 4 * rng.normal(size=(k, 10))[y]
before, peak, done = anonymous(), 0.0, False

def watch():
    global peak
    while not done:
        peak = max(peak, anonymous())
        time.sleep(0.003)

watcher = threading.Thread(target=watch)
watcher.start()
asker = Questioner(X, k)
for a, b in asker.next(20):
    asker.answer(a, b, "same" if y[a] == y[b] else "different")
start = time.process_time()
asker.refit()
refitted = time.process_time()
asker.next()
asked = time.process_time()
done = True
watcher.join()
print(peak - before, refitted - start, asked - refitted)
"""


def questions(options):
    """Print memory and time of a refit and a question, among many points and classes."""
    if not os.path.exists("/proc/self/status"):
        print("\nthis system has no /proc/self/status: skipping questions")
        return
    k = 10 if options.quick else 50
    print(
        f"\nquestions about n x 10, {k} classes: two copies of the points and the labels are part of the extra memory"
    )
    print("         n   extra memory, MB   points, MB   a table n x classes, MB   s of a refit   s of a question")
    for n in (10_000, 100_000) if options.quick else (10_000, 100_000, 1_000_000):
        command = [sys.executable, "-c", QUESTIONS, str(n), str(k)]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        peak, refit, question = map(float, out.split())
        sizes = f"{n * 80 / 2**20:13.0f}{n * k * 8 / 2**20:26.0f}"
        print(f"{n:10}{peak:19.0f}{sizes}{refit:15.2f}{question:18.3f}", flush=True)


SCAN = """
import sys
import pyarrow.compute as pc
from pathlib import Path
from pyarrow import parquet

total = 0.0
for file in sorted(Path(sys.argv[1]).glob("*.parquet")):
    with parquet.ParquetFile(file, pre_buffer=False) as opened:
        for batch in opened.iter_batches(50_000):
            total += sum(pc.sum(column).as_py() for column in batch.columns)
print(total)
"""

FRONT_DOOR = """
import sys
from linkmix import AutoLinkMixture, Blocks
from linkmix.tables import read_links
from linkmix.tables.ids import RowNumbers

passes, files = 0, Blocks.from_parquet(sys.argv[1])
links = read_links(sys.argv[2], RowNumbers(int(sys.argv[3])))

def read():
    global passes
    passes += 1
    return iter(files)

model = AutoLinkMixture(4, random_state=0).fit(Blocks(read), links=links)
print(passes, model.best_estimator_.n_iter_, len(model.labels_))
"""


def watched(command, folder):
    """Run a command; seconds of processor and clock, peak of its own memory in MB, and what it prints.

    Its own memory is without pages of files, which the system takes back when it needs them.
    """
    begun, before = time.perf_counter(), os.times()
    out = Path(folder) / "out.txt"
    peak = 0
    with out.open("w") as file:
        process = subprocess.Popen(command, stdout=file, env={**os.environ, "TMPDIR": str(folder)})
        while process.poll() is None:
            try:
                lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
                peak = max([peak, *(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))])
            except OSError:
                pass
            time.sleep(0.02)
    if process.returncode:
        raise SystemExit(f"{command[-1]} failed: {out.read_text()}")
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    return seconds, time.perf_counter() - begun, peak / 1024, out.read_text().strip()


def parquet(options):
    """Print memory, passes and time of the front door on Parquet files, beside a plain scan of the same files."""
    if not os.path.exists("/proc/self/status"):
        print("\nthis system has no /proc/self/status: skipping parquet")
        return
    import pyarrow as pa
    from pyarrow import parquet

    gigabytes = options.gigabytes or (0.1 if options.quick else 1)
    n_rows = int(gigabytes * 1e9 / 80)
    size, row_group = min(2_500_000, n_rows), 250_000
    n_files = -(-n_rows // size)
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        free, needed = shutil.disk_usage(place).free / 1e9, 4 * gigabytes
        if free < needed:
            print(f"\n{place} has {free:.0f} GB, and {needed:.0f} are needed: skipping parquet")
            return
        folder = Path(place) / "parts"
        folder.mkdir()
        centres = 2 * np.random.default_rng(0).normal(size=(4, 10))
        classes = []
        for number in range(n_files):
            rng = np.random.default_rng(number)
            y = rng.integers(4, size=size)
            classes.append(y[:1000])
            with parquet.ParquetWriter(
                folder / f"part-{number:04}.parquet", pa.schema([(f"c{j}", pa.float64()) for j in range(10)])
            ) as writer:
                for first in range(0, size, row_group):
                    some = y[first : first + row_group]
                    block = rng.normal(size=(len(some), 10)) + centres[some]
                    writer.write_table(pa.table({f"c{j}": block[:, j] for j in range(10)}), row_group)
        pairs = np.random.default_rng(1).integers((n_files, 1000), size=(100, 2, 2))
        with open(Path(place) / "links.csv", "w") as file:
            file.write("a,b,kind\n")
            for a, b in pairs.tolist():
                same = classes[a[0]][a[1]] == classes[b[0]][b[1]]
                file.write(f"{a[0] * size + a[1]},{b[0] * size + b[1]},{'must' if same else 'cannot'}\n")
        used = sum(file.stat().st_size for file in folder.iterdir()) / 1e9
        print(f"\n{n_files * size:,} x 10 in {n_files} Parquet files, {used:.2f} GB, 4 classes, 100 links")
        print("                              processor s   clock s   against scan   own memory, MB   passes")
        scan = None
        links = str(Path(place) / "links.csv")
        jobs = {
            "plain scan": [sys.executable, "-c", SCAN, str(folder)],
            "AutoLinkMixture, Blocks": [sys.executable, "-c", FRONT_DOOR, str(folder), links, str(n_files * size)],
            "linkmix fit": [
                *(sys.executable, "-c", "from linkmix.app.cli import main; main()"),
                *("fit", str(folder / "*.parquet"), "--links", links),
                *("--classes", "4", "--out", str(Path(place) / "result")),
            ],
        }
        for name, command in jobs.items():
            seconds, clock, peak, said = watched(command, place)
            scan = scan or seconds
            passes = said.split()[0] if name.startswith("Auto") else "1" if name == "plain scan" else ""
            print(f"{name:>26}{seconds:15.1f}{clock:10.1f}{seconds / scan:15.1f}{peak:17.0f}{passes:>9}", flush=True)
            if name == "linkmix fit":
                print(said)


def make_block(seed, n, centres):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, centres.shape[1])) + centres[rng.integers(len(centres), size=n)]


def fit_here(X, links, model):
    return model.fit(X, links=links)


def dask(options):
    """Print the time of an iteration with one worker, two workers, and without a cluster."""
    import dask.array as da
    import distributed
    from dask.delayed import delayed

    from linkmix import distributed as far

    n_blocks, size, d, k = 20, 25_000 if options.quick else 250_000, 10, 8
    centres = 3 * np.random.default_rng(0).normal(size=(k, d))
    pairs = np.random.default_rng(1).integers(n_blocks * size, size=(1000, 2))
    links = Links(must=pairs[pairs[:, 0] != pairs[:, 1]])

    def timed(fit):
        return fastest_step(lambda: fit(LinkMixture(k, init=given_start(centres), tol=0, max_iter=20)))

    whole = [make_block(seed, size, centres) for seed in range(n_blocks)]
    front_door = AutoLinkMixture(k, random_state=0)
    with native.using(threads=1):
        X = np.concatenate(whole)
        seconds, local = timed(partial(fit_here, X, links))
        near = np.random.default_rng(2).choice(len(X), 400, replace=False)
        y = ((X[near, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        right = Links.from_labels(y, 100, random_state=0)
        right = Links(must=near[right.must], cannot=near[right.cannot])
        begun = time.perf_counter()
        found = clone(front_door).fit(X, links=right)
        searched = time.perf_counter() - begun
    del whole, X
    print(f"\n{n_blocks * size} x {d}, {k} classes, 1000 must-links, {n_blocks} partitions, workers of one thread")
    print("                   s per iteration   against one worker   against local   agree")
    print(f"{'local':>14}{seconds:20.3f}{'':21}{1:16.2f}")
    one = None
    for n_workers in (1, 2):
        cluster = distributed.LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None)
        with cluster, distributed.Client(cluster) as client:
            blocks = [delayed(make_block)(seed, size, centres) for seed in range(n_blocks)]
            spread = da.concatenate([da.from_delayed(block, shape=(size, d), dtype=np.float64) for block in blocks])
            spread = client.persist(spread)
            distributed.wait(spread)
            taken, there = timed(lambda model: far.fit(model, spread, links=links))  # noqa: B023
            one = one or taken
            name = f"{n_workers} worker{'s' if n_workers > 1 else ''}"
            agree = apart(there, local)
            print(f"{name:>14}{taken:20.3f}{one / taken:21.2f}{seconds / taken:16.2f}{agree:8.0e}", flush=True)
            if n_workers == 2:
                begun = time.perf_counter()
                with native.using(threads=1):
                    far_found = far.fit(clone(front_door), spread, links=right)
                distributed.wait(far_found.labels_)
                spent = time.perf_counter() - begun
    agree = apart(far_found.best_estimator_, found.best_estimator_)
    print(
        f"AutoLinkMixture: local {searched:.1f} s, two workers {spent:.1f} s, ratio {searched / spent:.2f}; largest "
        f"difference of the parameters {agree:.0e}"
    )


def apart(one, other):
    """Largest relative difference of two mixtures in their means, relative to the largest mean, weights and J."""
    return max(
        np.abs(one.means_ - other.means_).max() / np.abs(other.means_).max(),
        np.abs(one.class_weights_ / other.class_weights_ - 1).max(),
        abs(one.log_likelihood_ / other.log_likelihood_ - 1),
    )


PARTS = {part.__name__: part for part in (growth, memory, parquet, questions, dask)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"any of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="smaller problems")
    parser.add_argument("--plot", metavar="PNG", help="file for a plot of the growth")
    parser.add_argument("--gigabytes", type=float, help="size of the files of parquet (default: 1)")
    parser.add_argument("--folder", help="folder for files; needs four times their size (default: the temporary one)")
    options = parser.parse_args()
    if unknown := set(options.parts) - PARTS.keys():
        parser.error(f"there is no part {', '.join(sorted(unknown))}: choose from {', '.join(PARTS)}")
    print(native.description())
    for name in options.parts or PARTS:
        PARTS[name](options)


if __name__ == "__main__":
    main()
