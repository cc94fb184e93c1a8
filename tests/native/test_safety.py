"""What the native core is safe for: any arguments, threads, forks, interpreters, and too little memory."""

import importlib.util
import os
import subprocess
import sys
import sysconfig
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from linkmix import AutoLinkMixture, LinkMixture, Links, native

TESTS = Path(__file__).parents[1]
CALLS = int(os.environ.get("LINKMIX_CALLS", "1500"))

pytestmark = pytest.mark.skipif(not native.active(), reason="the native core is not built, or LINKMIX_NATIVE=0")


def run(script, *arguments, **environment):
    """Run a script in a process of its own; its output."""
    command = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    paths = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
    variables = {**os.environ, "PYTHONPATH": paths, **environment}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, env=variables)
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-4000:]}"
    return done.stdout


def problem(n=400, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    return rng.normal(size=(n, 2)) + 4 * rng.normal(size=(3, 2))[y], Links.from_labels(y, 30, random_state=seed)


@pytest.mark.skipif(os.name == "nt", reason="the calls are timed by a signal")
def test_random_calls_are_answered_or_refused():
    """As many as LINKMIX_CALLS says; ``make sanitize`` makes more of them, under sanitizers."""
    told = run("import sys, random_calls; sys.argv[1:] = ['--calls', sys.argv[1]]; random_calls.main()", str(CALLS))
    assert "nothing broke" in told
    for name in native._core.__dict__:
        if callable(getattr(native._core, name)) and not name.startswith("__"):
            assert f"{name} answered" in told
            assert f"{name} refused" in told


def test_outputs_must_not_overlap_what_was_checked():
    """Components would write to the pairs that it follows."""
    core = native._core
    both = np.array([[0, 1], [1, 2]])
    with pytest.raises(ValueError, match="overlaps another one: pass a copy"):
        core.components(both, both.ravel())
    labels = np.zeros(3, dtype=np.int64)
    with pytest.raises(ValueError, match="overlaps"):
        core.sweep(2, np.zeros((3, 2)), np.zeros(4, dtype=np.int64), labels[:0], np.zeros(0), labels, labels)


def test_threads_share_the_core():
    """The same numbers whoever else computes, and while another thread changes the level."""
    core, rng = native._core, np.random.default_rng(0)
    X, means, whiteners = rng.normal(size=(5000, 6)), rng.normal(size=(4, 6)), np.tile(np.eye(6), (4, 1, 1))

    def sums(_):
        out = np.empty(1 + 4 * 7 + 4 * 36)
        core.sums(0, False, X, means, whiteners, None, False, np.full(4, -1.4), None, 0, len(X), out)
        return out

    expected, done = sums(0), threading.Event()

    def switch():
        while not done.is_set():
            for level in core.levels():
                core.use(level)

    best = core.use(core.levels()[-1])
    other = threading.Thread(target=switch)
    try:
        with ThreadPoolExecutor(8) as pool:
            for found in pool.map(sums, range(100)):
                np.testing.assert_array_equal(found, expected)
            other.start()
            for found in pool.map(sums, range(100)):
                np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    finally:
        done.set()
        other.join()
        core.use(best)


def fit_again(X, links, searches):
    model = AutoLinkMixture(3, budget="small", random_state=0) if searches else LinkMixture(3, random_state=0)
    return model.fit(X, links=links).labels_


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("searches", [False, True])
def test_a_child_fits_after_its_parent_has(searches):
    """In a process of its own, so that no other threads are there when it forks."""
    script = """
        import multiprocessing, sys, warnings
        import numpy as np
        from linkmix import native
        from native.test_safety import fit_again, problem

        warnings.simplefilter("ignore", DeprecationWarning)  # forks of processes with threads
        searches = sys.argv[1] == "True"
        X, links = problem()
        with native.using(threads=3):
            expected = fit_again(X, links, searches)
            context = multiprocessing.get_context("fork")
            with context.Pool(2) as pool:
                found = pool.starmap_async(fit_again, [(X, links, searches)] * 3).get(timeout=300)
        print(all(np.array_equal(labels, expected) for labels in found))
    """
    assert run(script, str(searches), OMP_NUM_THREADS="2").strip() == "True"


INTERPRETERS = """
import array, importlib.machinery, importlib.util

def load(path):
    loader = importlib.machinery.ExtensionFileLoader("_core", path)
    spec = importlib.util.spec_from_file_location("_core", path, loader=loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module

def answers(core):
    rows = memoryview(bytes(array.array("d", range(12)))).cast("d", (6, 2))
    means = memoryview(bytes(array.array("d", [0, 1, 8, 9]))).cast("d", (2, 2))
    whiteners, out = array.array("d", [1, 1]), array.array("d", bytes(96))
    core.log_density(2, False, rows, means, whiteners, 0, 6, out)
    ids = array.array("q", bytes(40))
    core.components(memoryview(bytes(array.array("q", [0, 3, 3, 4]))).cast("q"), ids)
    return out.tolist(), ids.tolist()
"""


@pytest.mark.skipif(
    not any(importlib.util.find_spec(name) for name in ("_interpreters", "_xxsubinterpreters")),
    reason="this Python has no module for interpreters",
)
def test_other_interpreters_load_the_core():
    """Each with a lock of its own where Python has that, all at the same time; NumPy itself stays out of them."""
    script = """
        import sys, threading
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters

        code, path = sys.argv[1:]
        exec(code)
        expected = answers(load(path))
        failures = []

        def elsewhere():
            own = interpreters.create()
            asked = f"assert all(answers(load({path!r})) == {expected!r} for _ in range(20))"
            try:
                failed = interpreters.run_string(own, code + asked)
                if failed is not None:
                    failures.append(failed)
            except Exception as error:
                failures.append(error)
            finally:
                interpreters.destroy(own)

        threads = [threading.Thread(target=elsewhere) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(len(expected[0]), expected[1], failures)
    """
    told = run(script, INTERPRETERS, native._core.__file__)
    assert told.strip() == "12 [0, 1, 2, 0, 0] []"


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has a global lock")
def test_the_core_does_not_bring_the_lock_back():
    assert run("import sys; from linkmix import native; print(sys._is_gil_enabled())").strip() == "False"


def test_fewer_threads_if_the_system_gives_no_more(monkeypatch):
    """No thread at all, one, and two: the same numbers."""
    X, _ = problem(60_000)
    means, whiteners = X[:3].copy(), np.tile(np.eye(2), (3, 1, 1))
    expected = native.log_density("full", X, means, whiteners)
    start = threading.Thread.start
    for most in range(3):
        started = []

        def limited(thread, started=started, most=most):
            if len(started) == most:
                raise RuntimeError("can't start new thread")
            started.append(thread)
            start(thread)

        with monkeypatch.context() as patched, native.using(threads=4):
            patched.setattr(native, "chunk_rows", lambda *_: 3840)
            patched.setattr(threading.Thread, "start", limited)
            found = native.log_density("full", X, means, whiteners)
        assert len(started) == most
        np.testing.assert_array_equal(found, expected)


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS is a limit on Linux alone")
def test_too_little_memory_is_a_clear_error():
    """The core says what it did not get, and computes again when there is enough."""
    script = """
        import resource
        import numpy as np
        from linkmix import native

        core = native._core
        n, M = 3_000_000, 2
        density, weights = np.zeros((n, M)), np.full(M, 0.5)
        pairs, sure = np.array([[0, 1]]), np.ones(1)
        outputs = np.empty((n, M)), np.empty(2 * M), np.empty(1)
        size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        before = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (size + 50 * 2**20, before[1]))
        try:
            core.pairs(density, weights, pairs, sure, sure, *outputs)
        except MemoryError as error:
            message = str(error)
        resource.setrlimit(resource.RLIMIT_AS, before)
        print(message)
        print(core.pairs(density, weights, pairs, sure, sure, *outputs))
    """
    message, found = run(script).splitlines()
    assert message.startswith("the native core needs 161 more megabytes, which it did not get: allow this process more")
    assert found.startswith("(")


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS is a limit on Linux alone")
@pytest.mark.parametrize("megabytes", [1, 4, 8, 12, 30, 200])
def test_a_fit_with_little_memory_ends_with_the_fit_or_a_memory_error(megabytes):
    """Also if threads get no stack; afterwards the same process fits as if nothing had been."""
    script = """
        import resource, sys
        import numpy as np
        from linkmix import LinkMixture, native
        from native.test_safety import problem

        def fit(X, links):
            return LinkMixture(3, max_iter=3, tol=0, random_state=0).fit(X, links=links)

        fit(*problem())  # everything is imported
        X, links = problem(200_000)
        found = None
        with native.using(threads=4):
            size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            before = resource.getrlimit(resource.RLIMIT_AS)
            resource.setrlimit(resource.RLIMIT_AS, (size + int(sys.argv[1]) * 2**20, before[1]))
            try:
                found = fit(X, links)
                told = "fitted"
            except MemoryError as error:
                told = str(error)
            resource.setrlimit(resource.RLIMIT_AS, before)
            again = fit(X, links)
        print(told)
        found = found or again
        print(found.log_likelihood_ == again.log_likelihood_ and np.array_equal(found.labels_, again.labels_))
    """
    small = {"OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "65536"}  # what is freed is given back
    told, same = run(script, str(megabytes), **small).strip().splitlines()
    assert same == "True"
    if megabytes == 1:
        assert told.startswith("Unable to allocate")
    elif megabytes == 200:
        assert told == "fitted"
    else:
        assert told == "fitted" or "Unable to allocate" in told or "more megabytes" in told
