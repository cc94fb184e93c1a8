"""Workers of a Dask cluster that die during fits: ``python -m benchmarks.dask_kills --kills 50 --seed 0``.

Each fit runs on two worker processes, of which one is killed with SIGKILL at a random moment of the fit; the cluster
then starts another one. Every fit has to end with the numbers of the fit that nothing disturbed, to 1e-10, and with the
same labels. Fits alternate between rows that the workers keep and rows that they compute again in every step; every
fifth fit is a search by `AutoLinkMixture`. In every fourth fit a second worker is killed, a moment after the first.
"""

import argparse
import logging
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from linkmix import AutoLinkMixture, LinkMixture, Links
from linkmix import distributed as far

TOLERANCE = 1e-10
KINDS = [(False, True), (False, False), (False, True), (False, False), (True, True)]
"""Whether a fit is a search, and whether the workers keep their rows."""


def problem(n: int = 6000, d: int = 3) -> tuple[np.ndarray, Links]:
    """Three classes, and links."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=n)
    X = rng.normal(size=(n, d)) + 2.5 * rng.normal(size=(3, d))[y]
    return X, Links.from_labels(y, 60, random_state=0)


def model(searches: bool) -> LinkMixture | AutoLinkMixture:
    """An estimator that makes a few dozen passes over the rows."""
    if searches:
        return AutoLinkMixture(3, budget="small", random_state=0)
    return LinkMixture(3, init="links", tol=0, max_iter=30, random_state=0)


def numbers(fitted: Any) -> dict[str, np.ndarray]:
    """What a fit found."""
    best = fitted.best_estimator_ if isinstance(fitted, AutoLinkMixture) else fitted
    names = ["class_weights_", "means_", "covariances_", "log_likelihood_trace_"]
    return {name: np.asarray(getattr(best, name)) for name in names}


def compared(one: Any, labels: np.ndarray, other: Any, other_labels: np.ndarray) -> float:
    """The largest relative difference of two fits; infinite if labels or shapes differ."""
    worst = 0.0 if np.array_equal(labels, other_labels) else np.inf
    for name, expected in numbers(one).items():
        found = numbers(other)[name]
        if found.shape != expected.shape:
            return np.inf
        worst = max(worst, float(np.max(np.abs(found - expected) / np.maximum(np.abs(expected), 1e-3))))
    return worst


@contextmanager
def cluster() -> Iterator[Client]:
    """Two worker processes, which are started again when they die."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    patience = ["distributed.deploy.lost-worker-timeout", "distributed.comm.timeouts.connect"]
    patience += ["distributed.comm.timeouts.tcp", "distributed.scheduler.worker-ttl"]
    dask.config.set(dict.fromkeys(patience, "3600s"))  # a busy machine takes minutes to start a worker
    quiet: Any = {"dashboard_address": None, "worker_dashboard_address": None, "silence_logs": logging.CRITICAL}
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **quiet) as local, Client(local) as client:
        yield client


def alive(client: Client) -> list[int]:
    """Process ids of two workers, as soon as there are so many."""
    while True:
        client.wait_for_workers(2, timeout=3600)
        found = client.run(os.getpid, on_error="ignore")
        if len(found) == 2:  # the scheduler may not know yet that one is dead
            return sorted(found.values())
        time.sleep(0.05)


def kill(process: int) -> None:
    """Kill a worker that may have died already."""
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def fitted(client: Client, spread: da.Array, links: Links, kind: tuple[bool, bool]) -> tuple[Any, np.ndarray, float]:
    """A fit, its labels, and how long it took."""
    begin = time.perf_counter()
    found = far.fit(model(kind[0]), spread, links=links, client=client, persist=kind[1])
    seconds = time.perf_counter() - begin
    return found, found.labels_.compute(), seconds


def torture(n_kills: int, seed: int = 0, n_rows: int = 6000) -> dict[str, float]:
    """Kill so many workers; counts fits, kills and fits that ended differently, and prints them after each fit."""
    chance = random.Random(seed)
    X, links = problem(n_rows)
    told: dict[str, float] = dict.fromkeys(["fits", "kills", "during the fit", "failures"], 0)
    told["largest difference"] = 0.0
    expected: dict[tuple[bool, bool], tuple[Any, np.ndarray, float]] = {}
    with cluster() as client:
        spread = da.from_array(X, chunks=(400, X.shape[1]))
        while told["kills"] < n_kills:
            kind = KINDS[int(told["fits"]) % len(KINDS)]
            if kind not in expected:
                fitted(client, spread, links, kind)  # the second time everything is imported
                expected[kind] = fitted(client, spread, links, kind)
            seconds = expected[kind][2]
            victims = chance.sample(alive(client), 2)[: 2 if told["fits"] % 4 == 3 else 1]
            moment = chance.uniform(0, seconds)
            timers = [threading.Timer(moment + 0.3 * late, kill, [victim]) for late, victim in enumerate(victims)]
            told["fits"] += 1
            told["kills"] += len(victims)
            for timer in timers:
                timer.start()
            try:
                found = far.fit(model(kind[0]), spread, links=links, client=client, persist=kind[1])
                told["during the fit"] += sum(not timer.is_alive() for timer in timers)
                difference = compared(*expected[kind][:2], found, found.labels_.compute())
            except Exception as error:
                what = f"{type(error).__name__}: {error}"
                print(f"fit {told['fits']}, {kind}, at {moment:.2f} s of {seconds:.2f}: {what}", flush=True)
                difference = np.inf
            for timer in timers:
                timer.join()
            told["failures"] += difference > TOLERANCE
            told["largest difference"] = max(told["largest difference"], difference)
            print(told, flush=True)
    return told


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=6000)
    given = parser.parse_args()
    sys.exit(torture(given.kills, given.seed, given.rows)["failures"] > 0)
