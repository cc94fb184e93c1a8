"""Fits on a real Dask cluster of two worker processes."""

import os
import pickle
import re
import signal
import subprocess
import sys
import textwrap
import threading
import warnings

import numpy as np
import pytest

from linkmix import AutoLinkMixture, LinkMixture, Links, calibrate

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
distributed = pytest.importorskip("distributed")

from benchmarks.dask_kills import torture  # noqa: E402
from click.testing import CliRunner  # noqa: E402

from linkmix import distributed as far  # noqa: E402
from linkmix.app.cli import main  # noqa: E402
from linkmix.tables import write_links  # noqa: E402

pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore:Port .* is already in use"
)


@pytest.fixture(scope="module")
def client():
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, worker_dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


def problem(n=5000, d=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = rng.normal(size=(n, d)) + 2.5 * rng.normal(size=(3, d))[y]
    return X, y, Links.from_labels(y, 60, random_state=seed)


def model(d=3, **settings):
    rng = np.random.default_rng(1)
    start = {
        "class_weights": np.full(3, 1 / 3),
        "cluster_weights": np.ones((3, 1)),
        "means": 2 * rng.normal(size=(3, 1, d)),
        "covariances": np.broadcast_to(np.eye(d), (3, 1, d, d)).copy(),
    }
    return LinkMixture(3, **{"init": start, "tol": 0, "max_iter": 15, **settings})


def assert_close_fits(one, other, rtol=1e-10):
    for name in ("class_weights_", "means_", "covariances_", "log_likelihood_trace_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=rtol, err_msg=name)
    np.testing.assert_array_equal(one.labels_, np.asarray(other.labels_))
    np.testing.assert_array_equal(one.links_to_review_[["a", "b"]], other.links_to_review_[["a", "b"]])


@pytest.mark.parametrize(("linked_points", "persist"), [("apart", True), ("both", False)])
def test_a_fit_on_the_cluster_is_the_local_fit(client, linked_points, persist):
    X, _, links = problem()
    local = model(linked_points=linked_points).fit(X, links=links)
    spread = da.from_array(X, chunks=(300, 2))  # 17 partitions: a tree of several levels
    there = far.fit(model(linked_points=linked_points), spread, links=links, client=client, persist=persist)
    assert isinstance(there.labels_, da.Array)
    assert_close_fits(local, there)


def test_a_fit_on_the_cluster_is_calibrated_by_a_sample(client):
    X, y, links = problem()
    there = far.fit(model(), da.from_array(X, chunks=(300, 3)), links=links, client=client)
    rows = np.union1d(links.points, np.arange(0, len(X), 5))
    found = calibrate(there, X[rows], links=links.restrict(rows))
    assert found.model is there
    assert found.quality.n_links == 60
    labels = there.predict(X)
    np.testing.assert_array_equal(found.predict_proba(X).argmax(axis=1), labels)
    a, b = np.random.default_rng(0).integers(len(X), size=(2, 20_000))
    assert found.quality.low <= np.mean((labels[a] == labels[b]) == (y[a] == y[b])) <= found.quality.high


def test_links_by_ids_and_links_of_the_estimator(client):
    points = np.concatenate([np.random.default_rng(0).normal(size=(40, 2)) + 4 * side for side in range(2)])
    ids = [f"row {number}" for number in range(80)]
    links = Links(must=[(0, 1)], cannot=[(2, 70), (1, 50)])
    X = da.from_array(points, chunks=(30, 2))
    expected = far.fit(LinkMixture(2, random_state=0), X, links=links, client=client)
    by_id = far.fit(LinkMixture(2, random_state=0), X, links=links.to_table(ids), ids=ids, client=client)
    bound = far.fit(LinkMixture(2, links=links, random_state=0), X, client=client)
    assert len(expected.links_to_review_) == 3
    for model in (by_id, bound):
        np.testing.assert_array_equal(model.links_to_review_, expected.links_to_review_)
        np.testing.assert_allclose(model.means_, expected.means_, rtol=1e-12)


def test_weights_and_known_labels_follow_their_rows(client):
    X, y, links = problem()
    known = np.where(np.arange(len(y)) % 50 == 3, y, -1)
    weights = np.random.default_rng(3).integers(0, 3, size=len(X)).astype(float)
    local = model().fit(X, known, links=links, sample_weight=weights)
    assert_close_fits(local, far.fit(model(), da.from_array(X, chunks=900), known, links=links, sample_weight=weights))


@pytest.mark.parametrize("persist", [True, False])
def test_names_of_classes_on_the_cluster(client, persist):
    X, y, links = problem()
    told = [["Barolo", "Grignolino", None][m] if i % 50 == 3 else None for i, m in enumerate(y)]
    spread = da.from_array(X, chunks=900)
    local, there = model().fit(X, told, links=links), far.fit(model(), spread, told, links=links, persist=persist)
    assert there.classes_.tolist() == ["Barolo", "Grignolino", "2"]
    assert isinstance(there.labels_, da.Array)
    assert there.labels_.dtype == there.classes_.dtype
    np.testing.assert_array_equal(there.labels_.compute(), local.labels_)
    predicted = far.predict(there, spread)
    assert predicted.dtype == there.classes_.dtype
    np.testing.assert_array_equal(predicted.compute(), local.predict(X))


def test_points_of_no_class_on_the_cluster(client):
    X, _, links = problem(600)
    X = np.concatenate([X, [[99.0, 99.0, 99.0], [-99.0, 99.0, 0.0]]])
    known = np.full(len(X), None)
    known[0], known[1], known[2] = "a", "b", -2
    links = links.without([0, 1, 2])
    local = AutoLinkMixture(3, noise=True, budget="small", random_state=0).fit(X, known, links=links)
    points = da.from_array(X, chunks=(250, 3))
    there = AutoLinkMixture(3, noise=True, budget="small", random_state=0)
    far.fit(there, points, known, links=links, client=client)
    labels = there.labels_.compute()
    np.testing.assert_array_equal(labels, local.labels_)
    assert labels[[2, -2, -1]].tolist() == ["-1"] * 3
    predicted = far.predict(there, points)
    assert predicted.dtype == labels.dtype
    np.testing.assert_array_equal(predicted.compute(), local.predict(X))


def test_data_frames_need_not_know_their_lengths(client):
    X, _, links = problem()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.loc[7, "b"] = np.nan
    spread = dd.from_pandas(frame, npartitions=4, sort=False)
    spread = dd.concat([spread.query("a > 1e9"), spread])  # partitions without rows
    local, there = model().fit(frame, links=links), far.fit(model(), spread, links=links)
    assert_close_fits(local, there)
    assert there.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(far.predict(there, spread).compute(), local.predict(frame))
    np.testing.assert_allclose(far.predict_proba(local, spread).compute(), local.predict_proba(frame), rtol=1e-9)
    with pytest.raises(ValueError, match="feature names should match"):
        far.predict(there, spread[["b", "a", "c"]]).compute()


def test_predictions_of_arrays_have_shapes(client):
    X, _, links = problem()
    local, spread = model().fit(X, links=links), da.from_array(X, chunks=(900, 2))
    classes, probabilities = far.predict(local, spread), far.predict_proba(local, spread)
    assert (classes.shape, classes.dtype, probabilities.shape) == ((5000,), np.int64, (5000, 3))
    np.testing.assert_array_equal(classes.compute(), local.predict(X))
    np.testing.assert_allclose(probabilities.compute(), local.predict_proba(X), rtol=1e-12)


def test_calibrated_probabilities_of_a_search(client):
    """They are those of a fit in memory, temperature included."""
    X, _, links = problem()
    local = AutoLinkMixture(3, budget="small", random_state=0).fit(X[:300], links=links.restrict(np.arange(300)))
    assert local.temperatures_[0] > 1
    spread = da.from_array(X, chunks=(900, 2))
    np.testing.assert_array_equal(far.predict(local, spread).compute(), local.predict(X))
    np.testing.assert_allclose(far.predict_proba(local, spread).compute(), local.predict_proba(X), rtol=1e-12)


@pytest.mark.parametrize("init", ["kmeans++", "links"])
def test_starts_are_drawn_from_a_sample(client, init, monkeypatch):
    monkeypatch.setattr("linkmix.engine.fitting.SAMPLE_NUMBERS", 3000)
    X, _, links = problem()
    settings = {"init": init, "n_init": 3, "random_state": 0, "tol": 1e-6, "max_iter": 300}
    there = far.fit(model(**settings), da.from_array(X, chunks=900), links=links)
    assert there.log_likelihood_ == pytest.approx(model(**settings).fit(X, links=links).log_likelihood_, rel=1e-3)


def test_rows_do_not_travel(client, monkeypatch):
    """What the workers send back is far smaller than the rows."""
    X, _, links = problem(50_000)
    spread = client.persist(da.from_array(X, chunks=10_000))
    received = []

    def counted(method):
        def call(*args, **kwargs):
            result = method(*args, **kwargs)
            received.append(len(pickle.dumps(result)))
            return result

        return call

    monkeypatch.setattr(distributed.Client, "gather", counted(distributed.Client.gather))
    monkeypatch.setattr(distributed.Future, "result", counted(distributed.Future.result))
    there = far.fit(model(max_iter=5), spread, links=links)
    assert there.n_iter_ == 5
    assert len(received) == 2 + 6  # a survey, the linked rows, and the sums of each step
    assert sum(received) < X.nbytes / 50


def noted_part(X, log):
    """A partition that notes that it was computed."""
    with open(log, "a") as lines:
        lines.write("read\n")
    return X


def noted_parts(X, size, log):
    parts = [dask.delayed(noted_part)(X[first : first + size], str(log)) for first in range(0, len(X), size)]
    shapes = [(min(size, len(X) - first), X.shape[1]) for first in range(0, len(X), size)]
    return da.concatenate([da.from_delayed(part, shape, float) for part, shape in zip(parts, shapes, strict=True)])


def assert_close_searches(one, other):
    assert one.leaderboard_["shape"][0] == other.leaderboard_["shape"][0]
    assert one.leaderboard_["start"][0] == other.leaderboard_["start"][0]
    assert_close_fits(one.best_estimator_, other.best_estimator_)
    for name in ("center_", "scale_", "temperatures_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-10, err_msg=name)
    assert one.quality_.pairs_right == pytest.approx(other.quality_.pairs_right, rel=1e-9)
    np.testing.assert_array_equal(one.labels_, np.asarray(other.labels_))


@pytest.mark.parametrize("committee", [1, 2])
def test_a_search_on_the_cluster_is_the_local_search(client, tmp_path, committee):
    """The winner is fitted to all rows on the workers, and each partition is computed once."""
    X, _, links = problem()
    X[17, 1] = np.nan
    settings = {"budget": "small", "committee": committee, "random_state": 0}
    local = AutoLinkMixture(3, **settings).fit(X, links=links)
    there = far.fit(AutoLinkMixture(3, **settings), noted_parts(X, 900, tmp_path / "log"), links=links, client=client)
    assert isinstance(there.labels_, da.Array)
    assert_close_searches(local, there)
    assert len((tmp_path / "log").read_text().split()) == 6
    spread = da.from_array(X, chunks=900)
    np.testing.assert_array_equal(far.predict(there, spread).compute(), local.predict(X))
    np.testing.assert_allclose(far.predict_proba(there, spread).compute(), local.predict_proba(X), rtol=1e-8)


def test_a_search_reads_data_frames_and_known_labels(client):
    X, y, links = problem()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    known = np.where(np.arange(len(y)) % 100 == 3, y, -1)
    settings = {"budget": "small", "random_state": 0}
    local = AutoLinkMixture(3, **settings).fit(frame, known, links=links)
    spread = dd.from_pandas(frame, npartitions=4, sort=False)
    there = far.fit(AutoLinkMixture(3, **settings), spread, known, links=links, persist=False)
    assert there.feature_names_in_.tolist() == ["a", "b", "c"]
    assert_close_searches(local, there)


def test_each_partition_is_computed_once(client, tmp_path):
    X, _, links = problem()
    there = far.fit(model(), noted_parts(X, 900, tmp_path / "kept"), links=links)
    there.labels_.compute()
    assert len((tmp_path / "kept").read_text().split()) == 6
    far.fit(model(max_iter=4), noted_parts(X, 900, tmp_path / "read"), links=links, persist=False)
    assert len((tmp_path / "read").read_text().split()) == 6 * 7  # a survey, the linked rows, and each step


@pytest.mark.slow
@pytest.mark.parametrize(("searches", "n_lost"), [(False, 1), (True, 1), (False, 2)])
def test_the_loss_of_workers_is_not_the_loss_of_the_fit(monkeypatch, searches, n_lost):
    """One or both of two workers are killed during the fit; partitions are recomputed, and the result is the same."""
    X, _, links = problem(20_000)

    def fresh():
        return AutoLinkMixture(3, budget="small", random_state=0) if searches else model(max_iter=20)

    local = fresh().fit(X, links=links)
    monkeypatch.setattr(far, "PATIENCE", 2.0)
    patient = dask.config.set({"distributed.deploy.lost-worker-timeout": "600s"})  # a busy machine starts them slowly
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, worker_dashboard_address=None
    )
    with patient, cluster, distributed.Client(cluster) as client:
        passes = []
        total = far._FreePartitions.total
        before = set(client.run(os.getpid).values())
        lost = sorted(before)[:n_lost]

        def counted(self, function):
            passes.append(len(passes))
            if len(passes) == 4:
                assert all(client.has_what().values())  # both workers have rows
                threading.Timer(0.02, lambda: [os.kill(process, signal.SIGKILL) for process in lost]).start()
            return total(self, function)

        monkeypatch.setattr(far._FreePartitions, "total", counted)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the Dask cluster .* has lost all of its workers", RuntimeWarning)
            there = far.fit(fresh(), da.from_array(X, chunks=1000), links=links, client=client)
        monkeypatch.undo()
        assert len(passes) >= 8
        (assert_close_searches if searches else assert_close_fits)(local, there)
        client.wait_for_workers(2, timeout=300)
        assert not set(lost) & set(client.run(os.getpid).values())


@pytest.mark.slow
def test_workers_that_die_at_random_moments():
    """``python -m benchmarks.dask_kills --kills 50`` kills more of them."""
    told = torture(2, seed=1)
    assert told["kills"] == 2
    assert told["during the fit"] > 0
    assert told["failures"] == 0, told


@pytest.mark.parametrize("estimator", [LinkMixture(3), AutoLinkMixture(3)])
def test_methods_of_the_estimators_refuse_what_belongs_to_a_cluster(estimator):
    """They would copy it into the memory of this process."""
    X, _, _ = problem(200)
    spread, frame = da.from_array(X, chunks=100), dd.from_pandas(pd.DataFrame(X), npartitions=2)
    with pytest.raises(ValueError, match=r"X is a Array of Dask.* use linkmix\.distributed\.fit\(model, X"):
        estimator.fit(spread)
    with pytest.raises(ValueError, match=r"X is a DataFrame of Dask.*linkmix\.distributed\.fit\(model, X"):
        estimator.fit(frame)
    fitted = LinkMixture(3, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"linkmix\.distributed\.predict\(model, X"):
        fitted.predict_proba(spread)


@pytest.mark.parametrize(
    ("ending", "settings"),
    [
        ("parquet", ["--method", "auto", "--links", "links.csv"]),
        ("csv", ["--method", "linkmix", "--links", "links.csv", "--scale"]),
    ],
)
def test_the_command_runs_on_a_cluster(client, tmp_path, monkeypatch, ending, settings):
    """The same labels as without one."""
    monkeypatch.chdir(tmp_path)
    X, _, links = problem(1200)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.insert(0, "id", [f"r{row}" for row in range(len(X))])
    links = links.restrict(np.arange(len(X)))
    write_links("links.csv", links, frame["id"].tolist())
    for number, part in enumerate((frame[:500], frame[500:1100], frame[1100:])):
        if ending == "csv":
            part.to_csv(f"part-{number}.csv", index=False)
        else:
            part.to_parquet(f"part-{number}.parquet")
    command = ["fit", f"part-*.{ending}", "--classes", "3", *settings, "--out"]
    here = CliRunner().invoke(main, [*command, "here"])
    there = CliRunner().invoke(main, [*command, "there", "--cluster", client.scheduler.address])
    assert there.exit_code == 0, there.output
    one, other = (pd.read_csv(tmp_path / where / "labels.csv") for where in ("here", "there"))
    pd.testing.assert_frame_equal(one, other, atol=2e-6)
    assert here.output.replace("here/", "there/") == there.output


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--cluster", "tcp://127.0.0.1:1"], "tcp://127.0.0.1:1: no Dask scheduler answers there"),
        (["--cluster", "nowhere"], "nowhere: no Dask scheduler answers there"),
        (
            ["--cluster", "tcp://127.0.0.1:1", "--method", "cop-kmeans"],
            "--cluster has no effect with --method cop-kmeans",
        ),
    ],
)
def test_a_cluster_that_cannot_be_used(tmp_path, monkeypatch, more, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(far.connect, "__defaults__", (0.5,))
    result = CliRunner().invoke(main, ["fit", "points.csv", "--classes", "3", *more])
    assert result.exit_code == 2
    assert message in result.output
    assert not list(tmp_path.iterdir())


def test_a_file_that_workers_do_not_find(client, tmp_path):
    spread = far.read([tmp_path / "elsewhere.csv"], ["a"])
    with pytest.raises(ValueError, match=r"elsewhere.csv: a worker on .* cannot read it \(No such file"):
        far.fit(model(), spread)


def test_progress(client, capsys):
    X, _, _ = problem()
    far.fit(model(max_iter=3), da.from_array(X, chunks=900))
    assert capsys.readouterr().err == ""
    far.fit(model(max_iter=3), da.from_array(X, chunks=900), verbose=True)
    assert "EM: 100%" in capsys.readouterr().err


def test_bad_input(client):
    X, _, _ = problem()
    with pytest.raises(ValueError, match=r"X is a ndarray with shape \(5000, 3\): give a dask array"):
        far.fit(model(), X)
    bad = X.copy()
    bad[1000, 1] = np.inf
    with pytest.raises(ValueError, match=r"partition 1 of X, counted from 0: Input X contains infinity"):
        far.fit(model(), da.from_array(bad, chunks=900))
    with pytest.raises(ValueError, match="5000"):
        far.fit(model(), da.from_array(X, chunks=900), links=Links(must=[(3, 5000)]))


def test_a_cluster_without_workers_and_a_client_that_is_not_the_default():
    """The fit waits for a worker, says so, and does not ask for the default client, which `connect` does not set."""
    script = """
        import threading, warnings
        import dask.array as da
        import numpy as np
        from distributed import Client, LocalCluster
        from linkmix import LinkMixture, distributed as far

        far.PATIENCE = 0.2
        points = np.random.default_rng(0).normal(size=(300, 2))
        cluster = LocalCluster(n_workers=0, processes=False, dashboard_address=None, worker_dashboard_address=None)
        with cluster, Client(cluster, set_as_default=False) as client, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            threading.Timer(1.0, cluster.scale, [1]).start()
            X = da.from_array(points, chunks=(100, 2))
            there = far.fit(LinkMixture(2, random_state=0), X, client=client)
            print(np.allclose(there.means_, LinkMixture(2, random_state=0).fit(points).means_, rtol=1e-10))
        print(*{str(warning.message) for warning in caught if "linkmix" in warning.filename}, sep="|")
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    same, warned = result.stdout.splitlines()
    assert same == "True"
    assert re.fullmatch(
        r"the Dask cluster inproc://\S+ has lost all of its workers, .* 'dask worker .*', or .*", warned
    )


def test_without_a_cluster():
    script = "import dask.array as da; from linkmix import LinkMixture, distributed as far; "
    script += "far.fit(LinkMixture(), da.zeros((10, 3)))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "ValueError: there is no Dask cluster: start one" in result.stderr
