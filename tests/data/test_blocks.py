"""Rows that are read block by block: the same fit as in memory, in bounded memory."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace

import numpy as np
import pytest

from linkmix import AutoLinkMixture, Blocks, LinkMixture, Links, engine, native
from linkmix.data import rows
from linkmix.data.blocks import Door
from linkmix.densities import Bernoulli, Categorical
from linkmix.engine import steps
from linkmix.search import BUDGETS

ENGINES = ["native", "off"]


@pytest.fixture(params=ENGINES)
def computed_by(request):
    if request.param == "native" and not native.active():
        pytest.skip("the native core is not built")
    with native.using("off" if request.param == "off" else None):
        yield request.param


@pytest.fixture
def small_portions(monkeypatch):
    """Portions of 600 numbers, and no fit in one call of the core: as if the data were large."""
    monkeypatch.setattr(rows, "PORTION_NUMBERS", 600)
    monkeypatch.setattr(native, "loops", lambda *_: False)


def problem(n=1000, d=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = rng.normal(size=(n, d)) + 2.5 * rng.normal(size=(3, d))[y]
    return X, y, Links.from_labels(y, 40, random_state=seed)


def start(d=3, seed=1):
    rng = np.random.default_rng(seed)
    return {
        "class_weights": np.full(3, 1 / 3),
        "cluster_weights": np.ones((3, 1)),
        "means": 2 * rng.normal(size=(3, 1, d)),
        "covariances": np.broadcast_to(np.eye(d), (3, 1, d, d)).copy(),
    }


def cuts(X, seed=0):
    """Blocks of all sizes, one of them empty."""
    rng = np.random.default_rng(seed)
    places = np.sort(rng.integers(len(X), size=9))
    return np.split(X, [*places, places[-1]])


def model(**settings):
    return LinkMixture(3, **{"init": start(), "tol": 0, "max_iter": 15, **settings})


ATTRIBUTES = ["class_weights_", "means_", "covariances_", "log_likelihood_trace_", "labels_", "links_to_review_"]


def assert_equal_fits(one, other):
    for name in ATTRIBUTES:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.mark.parametrize("linked_points", ["apart", "both"])
@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_every_digit_of_a_fit_to_blocks_is_that_of_the_fit_in_memory(
    computed_by, small_portions, covariance_type, linked_points
):
    X, _, links = problem()
    shape = {"full": (3, 1, 3, 3), "tied": (3, 3), "diag": (3, 1, 3), "spherical": (3, 1)}[covariance_type]
    covariances = np.broadcast_to(np.eye(3), shape) if len(shape) in (2, 4) and shape[-1] == 3 else np.ones(shape)
    settings = {
        "covariance_type": covariance_type,
        "linked_points": linked_points,
        "init": {**start(), "covariances": covariances},
    }
    memory = model(**settings).fit(X, links=links)
    streamed = model(**settings).fit(Blocks(cuts(X)), links=links)
    assert_equal_fits(memory, streamed)
    assert streamed.n_iter_ == 15


def test_the_parts_of_a_stream_are_really_small(small_portions, monkeypatch):
    sizes = []
    whole = engine.free_sums
    monkeypatch.setattr(steps, "free_sums", lambda *args: (sizes.append(len(args[2])), whole(*args))[1])
    X, _, links = problem()
    model(max_iter=0).fit(Blocks(cuts(X)), links=links)
    n_free = len(X) - len(links.points)
    assert sizes == [200] * (n_free // 200) + [n_free % 200]


def test_weights_and_known_labels_follow_their_rows(computed_by, small_portions):
    X, y, links = problem()
    known = np.where(np.arange(len(y)) % 50 == 3, y, -1)
    weights = np.random.default_rng(3).integers(0, 3, size=len(X)).astype(float)
    given = {"y": known, "links": links, "sample_weight": weights}
    assert_equal_fits(model().fit(X, **given), model().fit(Blocks(cuts(X)), **given))
    del given["y"]
    assert_equal_fits(model().fit(X, **given), model().fit(Blocks(cuts(X)), **given))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_a_memory_mapped_array(tmp_path, small_portions, dtype):
    X, _, links = problem()
    X = (10 * X).astype(dtype)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    settings = {"init": {**start(), "covariances": 100 * start()["covariances"]}}
    assert_equal_fits(model(**settings).fit(X, links=links), fit := model(**settings).fit(mapped, links=links))
    np.testing.assert_array_equal(fit.predict(mapped), fit.predict(X))


def test_everything_that_takes_points_takes_blocks(small_portions):
    X, _, links = problem()
    fit = model().fit(X, links=links)
    blocks = Blocks(cuts(X))
    np.testing.assert_array_equal(fit.predict(blocks), fit.predict(X))
    np.testing.assert_allclose(fit.predict_proba(blocks), fit.predict_proba(X), rtol=1e-12)
    np.testing.assert_allclose(fit.score_samples(blocks), fit.score_samples(X), rtol=1e-12)
    weights = np.arange(len(X)) % 3
    assert fit.score(blocks, sample_weight=weights) == pytest.approx(fit.score(X, sample_weight=weights), rel=1e-12)
    for name in ("log_likelihood", "bic", "aic"):
        assert getattr(fit, name)(blocks, links) == pytest.approx(getattr(fit, name)(X, links), rel=1e-12)


def test_a_folder_of_parquet_files(tmp_path, small_portions):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    X, _, links = problem()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["name"] = "x"
    frame.loc[5, "b"] = np.nan
    frame[:300].to_parquet(tmp_path / "1.parquet", row_group_size=70)
    frame[300:].to_parquet(tmp_path / "2.parquet")
    blocks = Blocks.from_parquet(tmp_path, columns=["c", "a", "b"])
    memory = model().fit(frame[["c", "a", "b"]], links=links)
    streamed = model().fit(blocks, links=links)
    for name in ATTRIBUTES[:4]:
        np.testing.assert_allclose(getattr(memory, name), getattr(streamed, name), rtol=1e-10)
    assert streamed.feature_names_in_.tolist() == ["c", "a", "b"]
    np.testing.assert_array_equal(streamed.predict(blocks), memory.predict(frame[["c", "a", "b"]]))
    one = model().fit(Blocks.from_parquet(tmp_path / "2.parquet", columns=["a", "b", "c"]))
    assert len(one.labels_) == 700
    with pytest.raises(ValueError, match="has no column 'd': choose from 'a', 'b', 'c', 'name'"):
        Blocks.from_parquet(tmp_path, columns=["a", "d"])
    with pytest.raises(ValueError, match="feature names should match"):
        streamed.predict(Blocks.from_parquet(tmp_path, columns=["a", "b", "c"]))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"holds no file \*\.parquet"):
        Blocks.from_parquet(tmp_path / "empty")
    with pytest.raises(ValueError, match=r"1\.parquet, column 'name' holds .*string, and no numbers"):
        Blocks.from_parquet(tmp_path)
    frame[300:].drop(columns="b").to_parquet(tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=r"2\.parquet has no column 'b': choose from 'a', 'c', 'name'"):
        Blocks.from_parquet(tmp_path, columns=["a", "b"])


def test_numbers_of_all_kinds_in_parquet_files(tmp_path):
    """As pandas reads them, which takes longer and need not be there."""
    pd = pytest.importorskip("pandas")
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    single = rng.normal(size=9000).astype(np.float32)
    columns = {
        "double": pa.array(rng.normal(size=9000)),
        "gaps": pa.array([None if i % 7 == 0 else float(i) for i in range(9000)]),
        "whole": pa.array([None if i % 5 == 0 else i for i in range(9000)], pa.int16()),
        "true": pa.array([None if i % 5 == 0 else i % 2 == 0 for i in range(9000)]),
        "exact": pa.array(range(9000), pa.int64()).cast(pa.decimal128(24, 2)),
        "empty": pa.nulls(9000),
        "single": pa.array(single),
    }
    parquet.write_table(pa.table(columns), tmp_path / "all.parquet", row_group_size=4000)
    found = np.concatenate(list(Blocks.from_parquet(tmp_path)))
    expected = (
        pd.read_parquet(tmp_path / "all.parquet").astype(object).map(lambda value: np.nan if value is None else value)
    )
    np.testing.assert_array_equal(found, expected.to_numpy(dtype=np.float64))
    assert found.dtype == np.float64
    alone = np.concatenate(list(Blocks.from_parquet(tmp_path, columns=["single"])))
    assert alone.dtype == np.float32
    np.testing.assert_array_equal(alone[:, 0], single)
    parquet.write_table(pa.table({"single": single.astype(np.float64) + 1e-12}), tmp_path / "other.parquet")
    both = np.concatenate(list(Blocks.from_parquet(tmp_path, columns=["single"])))
    np.testing.assert_array_equal(both[9000:, 0], single.astype(np.float64) + 1e-12)  # no digit is lost


def test_parquet_needs_no_pandas(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"a": np.arange(50.0), "b": np.arange(50.0) % 7}), tmp_path / "points.parquet")
    script = f"""
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pandas":
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Blocker())
from linkmix import Blocks, LinkMixture
model = LinkMixture(2, random_state=0).fit(Blocks.from_parquet({str(tmp_path)!r}))
print(model.feature_names_in_)
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.stdout == "['a' 'b']\n", result.stderr


@pytest.mark.parametrize("n_links", [0, 40])
def test_the_passes_over_the_blocks_are_few(small_portions, monkeypatch, n_links):
    """A survey, a sample, each E-step and the labels.

    Earlier the linked rows, the extent of the columns and their variance took a pass each: with five steps 10 instead
    of 9 for one mixture, and 4 more than now for the search.
    """
    monkeypatch.setattr("linkmix.data.scaling.MOST_ROWS", 100)
    X, y, _ = problem()
    links = Links.from_labels(y, n_links, random_state=0)
    passes = []

    def read():
        passes.append(len(passes))
        return iter(cuts(X))

    LinkMixture(3, tol=0, max_iter=5, random_state=0).fit(Blocks(read), links=links)
    assert len(passes) == 1 + 1 + 6 + 1
    passes.clear()
    few = replace(BUDGETS["small"], n_points=300, guesses=("k-means",), shapes=("1",), more_shapes=())
    found = AutoLinkMixture(3, budget=few, random_state=0).fit(Blocks(read), links=links)
    n_steps = found.best_estimator_.n_iter_
    assert n_steps > 1
    assert len(passes) == 1 + 2 + (n_steps + 1) + 1  # two samples: one for long tails, one for the search


def test_labels_that_outgrow_the_memory_are_in_a_scratch_file(small_portions, monkeypatch, tmp_path):
    """A model file does not hold them."""
    X, _, links = problem()
    here = model().fit(Blocks(cuts(X)), links=links)
    monkeypatch.setattr("linkmix.data.scratch.IN_MEMORY", 4000)
    there = model().fit(Blocks(cuts(X)), links=links)
    assert type(here.labels_) is np.ndarray
    assert isinstance(there.labels_, np.memmap)
    assert_equal_fits(here, there)
    np.testing.assert_array_equal(there.predict(Blocks(cuts(X))), here.predict(X))
    there.save(tmp_path / "there.linkmix")
    again = LinkMixture.load(tmp_path / "there.linkmix")
    assert not hasattr(again, "labels_")
    np.testing.assert_array_equal(again.predict(X), here.predict(X))
    found = AutoLinkMixture(3, budget="small", random_state=0).fit(Blocks(cuts(X)), links=links)
    found.save(tmp_path / "found.linkmix")
    np.testing.assert_array_equal(AutoLinkMixture.load(tmp_path / "found.linkmix").predict(X), found.predict(X))


def test_rows_that_were_taken_are_not_read_again(small_portions):
    X, _, _ = problem()
    passes = []

    def read():
        passes.append(len(passes))
        return iter(cuts(X))

    table = Blocks(read).enter(Door([np.float64], False, lambda X: None))
    twice = table.through(lambda block: 2 * block)
    rows = np.arange(3, 900, 7)
    np.testing.assert_array_equal(table.take(rows), X[rows])
    np.testing.assert_array_equal(twice.take(rows[::3]), 2 * X[rows[::3]])
    np.testing.assert_array_equal(table.take(rows[-1:]), X[rows[-1:]])
    assert len(passes) == 2
    np.testing.assert_array_equal(twice.take(np.array([3, 999])), 2 * X[[3, 999]])
    np.testing.assert_array_equal(table.take(np.array([999])), X[[999]])
    assert len(passes) == 3


@pytest.mark.parametrize("init", ["kmeans++", "links"])
def test_starts_are_drawn_from_a_sample(small_portions, monkeypatch, init):
    X, _, links = problem(3000)
    monkeypatch.setattr("linkmix.engine.fitting.SAMPLE_NUMBERS", 900)
    seen, make = [], LinkMixture._fresh_starts
    monkeypatch.setattr(
        LinkMixture, "_fresh_starts", lambda self, some, *rest: seen.append(some.X) or make(self, some, *rest)
    )
    fit = LinkMixture(3, init=init, n_init=3, random_state=0, max_iter=200).fit(Blocks(cuts(X)), links=links)
    assert 250 < len(seen[0]) <= 300
    assert all((X[p] == seen[0]).all(axis=1).any() for p in links.points)
    best = LinkMixture(3, init=init, n_init=3, random_state=0, max_iter=200).fit(X, links=links)
    assert fit.log_likelihood_ == pytest.approx(best.log_likelihood_, rel=1e-3)


def test_known_labels_number_the_classes_of_a_stream(small_portions, monkeypatch):
    monkeypatch.setattr("linkmix.engine.fitting.SAMPLE_NUMBERS", 900)
    X, y, _ = problem(3000)
    known = np.full(len(y), -1)
    known[::300] = y[::300]
    fit = LinkMixture(3, random_state=0).fit(Blocks(cuts(X)), known)
    assert (fit.labels_[known >= 0] == known[known >= 0]).all()
    assert np.mean(fit.predict(X) == y) > 0.7


def test_a_warm_start_keeps_the_numbers_of_the_classes(small_portions):
    X, _, links = problem()
    fit = LinkMixture(3, warm_start=True, n_init=3, random_state=0).fit(Blocks(cuts(X)))
    before = fit.predict(X)
    assert np.mean(fit.fit(Blocks(cuts(X)), links=links).predict(X) == before) > 0.8


def test_missing_values_and_other_densities(computed_by, small_portions):
    X, _, links = problem()
    X[::7, 1] = np.nan
    assert_equal_fits(model().fit(X, links=links), model().fit(Blocks(cuts(X)), links=links))
    codes = (X > 0).astype(float)
    for density, name in ((Bernoulli(), "probabilities"), (Categorical(n_levels=2), "probabilities")):
        probabilities = np.random.default_rng(0).uniform(0.2, 0.8, size=(3, 1, 3))
        if isinstance(density, Categorical):
            probabilities = np.stack([1 - probabilities, probabilities], axis=-1)
        first = {"class_weights": np.full(3, 1 / 3), "cluster_weights": np.ones((3, 1)), name: probabilities}
        memory = model(density=density, init=first).fit(codes, links=links)
        streamed = model(density=density, init=first).fit(Blocks(cuts(codes)), links=links)
        np.testing.assert_array_equal(memory.log_likelihood_trace_, streamed.log_likelihood_trace_)
        with pytest.raises(ValueError, match=r"block 1 of X.*column 2 holds 0\.5"):
            streamed.predict(Blocks([codes, np.full((2, 3), [0, 1, 0.5])]))


def test_few_rows_are_an_array_in_memory():
    X, _, links = problem(100)
    settings = {"init": "links", "random_state": 0, "tol": 1e-6, "max_iter": 300}
    assert_equal_fits(model(**settings).fit(X, links=links), model(**settings).fit(Blocks(cuts(X)), links=links))


def test_what_can_be_read_only_once_is_refused():
    X, _, _ = problem()
    with pytest.raises(ValueError, match=r"Blocks got a generator, which can be read only once.*Blocks\(lambda"):
        Blocks(block for block in cuts(X))
    with pytest.raises(ValueError, match="X is a generator, which can be read only once"):
        model().fit(block for block in cuts(X))
    with pytest.raises(ValueError, match="source has type int: pass an iterable"):
        Blocks(3)


def test_blocks_that_change_are_noticed(small_portions):
    X, _, _ = problem()
    once = iter(cuts(X))
    with pytest.raises(ValueError, match=r"differ from those of the first pass .11 blocks with 1000 rows"):
        model().fit(Blocks(lambda: once))
    lengths = iter([1000, 990, 980, 970])
    with pytest.raises(ValueError, match="differ from those of the first pass"):
        model().fit(Blocks(lambda: [X[: next(lengths)]]))


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([], "X has no rows in any block"),
        ([np.empty((0, 2))], "X has no rows in any block"),
        ([np.ones((4, 2)), np.ones((4, 3))], "block 1 of X has 3 columns and block 0 has 2"),
        ([np.ones((4, 2)), [[1, np.inf]]], "block 1 of X, counted from 0: Input X contains infinity"),
        ([np.ones((4, 2)), [[1, 1e200]]], "block 1 of X, counted from 0: X holds 1e[+]200"),
        ([np.ones(4)], "block 0 of X, counted from 0: Expected 2D array, got 1D array"),
        ([[[1, np.nan]], [[2, np.nan]]], "column 1 of X has no value in any row"),
    ],
)
def test_bad_blocks_are_named(blocks, message):
    with pytest.raises(ValueError, match=message):
        model().fit(Blocks(blocks))


def test_links_to_rows_that_are_not_there(small_portions):
    X, _, _ = problem()
    with pytest.raises(ValueError, match="1000"):
        model().fit(Blocks(cuts(X)), links=Links(must=[(3, 1000)]))


LIMITED = """
    import resource, sys
    import numpy as np
    from linkmix import Blocks, LinkMixture, Links
    from linkmix.data import rows

    rows.PORTION_NUMBERS = 2**17  # one megabyte
    path, kind = sys.argv[1:]

    def fit(X, links):
        start = dict(class_weights=[0.5, 0.5], cluster_weights=np.ones((2, 1)), means=[[[0.0] * 10], [[1.0] * 10]],
                     covariances=np.ones((2, 1, 10)))
        for init in (start,) if kind == "parquet" else (start, "kmeans++"):
            model = LinkMixture(2, covariance_type="diag", init=init, tol=0, max_iter=2, random_state=0)
            model.fit(X, links=links)
        return model.predict(X)

    def taken():
        with open("/proc/self/status") as lines:
            return next(int(line.split()[1]) for line in lines if line.startswith("VmData")) * 1024

    X = Blocks.from_parquet(path) if kind == "parquet" else np.load(path, mmap_mode="r")
    few = next(iter(X)) if kind == "parquet" else np.array(X[:10_000])
    fit(few, Links(must=[(0, 1)]))  # libraries take their room when they are first used
    resource.setrlimit(resource.RLIMIT_DATA, (taken() + 60 * 2**20, resource.RLIM_INFINITY))
    if kind == "loaded":
        X = np.array(X)
    labels = fit(X, Links(must=[(1, 999_999)], cannot=[(2, 500_000)]))
    assert labels.shape == (1_000_000,)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of memory that leaves mapped files alone")
@pytest.mark.parametrize("kind", ["mapped", "parquet", "loaded"])
def test_memory_is_bounded_by_a_block(tmp_path, kind):
    """80 megabytes of rows in a process that may take 60 more; the one that loads them fails."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_000_000, 10)) + 3 * rng.integers(2, size=(1_000_000, 1))
    path = tmp_path / "X"
    if kind == "parquet":
        pd = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        pd.DataFrame(X, columns=[f"c{j}" for j in range(10)]).to_parquet(path, row_group_size=10_000)
    else:
        np.save(path := tmp_path / "X.npy", X)
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LIMITED), str(path), kind],
        env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},  # others reserve more than they use
        capture_output=True,
        text=True,
        check=False,
    )
    if kind == "loaded":
        assert "MemoryError" in result.stderr
    else:
        assert result.returncode == 0, result.stderr


INTERRUPTED = """
    import time
    import numpy as np
    from linkmix import Blocks, LinkMixture

    def blocks():
        for seed in range(40):
            yield np.random.default_rng(seed).normal(size=(50_000, 4))

    model = LinkMixture(8, tol=0, max_iter=10**8, random_state=0)
    print("ready", flush=True)
    try:
        model.fit(Blocks(blocks))
    except KeyboardInterrupt:
        print("interrupted", hasattr(model, "means_"), flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_ctrl_c_ends_a_fit_to_blocks_before_its_end():
    command = [sys.executable, "-c", textwrap.dedent(INTERRUPTED)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(2.0)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted False\n"  # a fit that goes on to its end prints nothing
