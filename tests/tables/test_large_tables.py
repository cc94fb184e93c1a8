"""Tables that go to scratch files give what they give in memory, in bounded memory, and leave nothing behind."""

import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyarrow import feather, parquet

from bad_files import BAD
from linkmix import Links
from linkmix.app.cli import main
from linkmix.basics.errors import BadFile
from linkmix.data import rows as data_rows
from linkmix.data import scratch
from linkmix.tables import examine_links, read_links, read_points, write_links
from linkmix.tables.ids import TextIds

N = 30_000  # the text is read in several batches then


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    return tmp_path


@pytest.fixture
def both(monkeypatch):
    """Call a function with all in memory, and with nothing in memory and blocks of few rows."""

    def call(function):
        inside = function()
        with monkeypatch.context() as patch:
            patch.setattr(scratch, "IN_MEMORY", 0)
            patch.setattr(data_rows, "PORTION_NUMBERS", 2000)
            return inside, function()

    return call


def table(n=N, seed=0):
    """Two classes, ids that need quotes, gaps, a column without values and one of text."""
    random = np.random.default_rng(seed)
    y = random.integers(2, size=n)
    X = random.normal(size=(n, 4)) + 4 * y[:, None]
    frame = pd.DataFrame(X, columns=list("abcd")).mask(random.uniform(size=X.shape) < 0.05)
    frame.insert(0, "id", [f'row\n"{row}",' if row % 1000 == 7 else f"r{row}" for row in range(n)])
    frame["note"] = np.where(y == 0, "two\nlines", "")
    frame["gap"] = pd.Series(np.full(n, None), dtype="string")
    frame["plus"] = [f"+{row % 9}" for row in range(n)]
    return frame, y


def write(frame, name):
    if name.endswith("parquet"):
        frame.to_parquet(name, index=False, row_group_size=7000)
    else:
        frame.to_csv(name, index=False, sep="\t" if name.endswith("tsv") else ",")


@pytest.mark.parametrize("name", ["points.csv", "points.tsv", "points.parquet"])
@pytest.mark.parametrize("with_ids", [True, False])
def test_points_are_the_same(name, with_ids, folder, both):
    frame, _ = table()
    write(frame if with_ids else frame.drop(columns="id"), name)
    small, large = both(lambda: read_points(name))
    assert not isinstance(small.X, np.memmap)
    assert isinstance(large.X, np.memmap)
    np.testing.assert_array_equal(large.X, small.X)
    np.testing.assert_array_equal(small.X, frame[[*"abcd", "plus"]].astype(float))
    assert large.ids.tolist() == small.ids.tolist() == (frame["id"].tolist() if with_ids else list(map(str, range(N))))
    assert (large.columns, large.left_out, large.id_column) == (small.columns, small.left_out, small.id_column)
    assert small.left_out == ("gap",)
    assert large.texts["note"].tolist() == small.texts["note"].tolist() == frame["note"].tolist()
    for rows in (slice(5, 9), np.array([N - 1, 0, 1007])):
        assert large.ids[rows].tolist() == small.ids[rows].tolist() == np.array(small.ids.tolist())[rows].tolist()
    assert (large.ids[1007], large.ids[-1]) == (small.ids[1007], small.ids[-1])
    assert os.listdir("scratch") == []


@pytest.mark.parametrize("with_ids", [True, False])
def test_links_find_their_rows(with_ids, folder, both):
    frame, y = table()
    write(frame if with_ids else frame.drop(columns="id"), "points.csv")
    ids = frame["id"].tolist() if with_ids else list(map(str, range(N)))
    links = Links.from_labels(y, 200, random_state=0)
    write_links("links.csv", links, ids)
    Path("wrong.csv").write_text("a,b,kind\n R7 ,r8,must\n07,99999999,cannot\n0,²,must\n")
    Path("wrong.jsonl").write_text('{"a": "\\ud800", "b": "r1", "kind": "must"}\n')

    def look():
        points = read_points("points.csv", texts=False)
        found = [examine_links(file, points.ids).unknown for file in ("wrong.csv", "wrong.jsonl")]
        return read_links("links.csv", points.ids), [str(error) for each in found for error in each]

    small, large = both(look)
    assert small[0] == large[0] == links
    assert small[1] == large[1]
    by_list = [str(error) for file in ("wrong.csv", "wrong.jsonl") for error in examine_links(file, ids).unknown]
    assert [text.partition(":")[0] for text in small[1]] == [text.partition(":")[0] for text in by_list]
    assert with_ids == (small[1] == by_list)  # where ids are row numbers, it is said


def run(*arguments):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    return result.exit_code, result.output


@pytest.mark.parametrize("name", ["points.csv", "points.parquet"])
@pytest.mark.parametrize(
    "options",
    [["--method", "auto"], ["--method", "paper", "--scale"], ["--method", "pck-means", "--scale", "--columns", "full"]],
    ids=lambda options: options[1],
)
def test_fit_and_predict_are_the_same(name, options, folder, both):
    frame, y = table(1200)
    frame["full"] = y + np.random.default_rng(1).normal(size=len(y)) / 9
    write(frame, name)
    write_links("links.csv", Links.from_labels(y, 30, random_state=0), frame["id"].tolist())

    def fit():
        shutil.rmtree("out", ignore_errors=True)
        Path("predicted.csv").unlink(missing_ok=True)
        command = ["fit", name, "--links", "links.csv", "--classes", 2, *options, "--out", "out"]
        code, said = run(*command)
        assert code == 0, said
        files = {file.name: file.read_text() for file in Path("out").iterdir() if file.suffix != ".linkmix"}
        if Path("out/model.linkmix").exists():
            code, predicted = run("predict", "out/model.linkmix", name, "--out", "predicted.csv")
            assert code == 0, predicted
            said += predicted
            files["predicted.csv"] = Path("predicted.csv").read_text()
        tables = [pd.read_csv(file, dtype={"id": str}) for file in ("out/labels.csv", "predicted.csv") if file in said]
        return said, tables, files.keys()

    small, large = both(fit)
    assert large[0] == small[0]
    assert large[2] == small[2]
    assert small[1]
    for one, other in zip(small[1], large[1], strict=True):
        assert other["id"].tolist() == one["id"].tolist() == frame["id"].tolist()
        np.testing.assert_array_equal(other["label"], one["label"])
        np.testing.assert_allclose(other.iloc[:, 2:], one.iloc[:, 2:], atol=2e-6)
        assert max((one["label"] == y).mean(), (one["label"] != y).mean()) > 0.95
    assert os.listdir("scratch") == []


@pytest.mark.parametrize(("points", "links", "options"), [b[1:4] for b in BAD if b[1]], ids=[b[0] for b in BAD if b[1]])
def test_mistakes_are_said_in_the_same_words(points, links, options, folder, both):
    Path("points.csv").write_bytes(points if isinstance(points, bytes) else points.encode())
    given = [] if links is None else ["--links", "links.csv"]
    Path("links.csv").write_text(links or "")
    defaults = [] if "--method" in options else ["--method", "linkmix"]
    defaults += [] if "--classes" in options else ["--classes", "3"]
    small, large = both(lambda: run("fit", "points.csv", *given, *defaults, *options))
    assert small == large
    assert small[0] == 2


LATE = {
    "a word": (b"\nlast,tall,1\n", r"line 40002, column 'x': 'tall' is not a number"),
    "infinity": (b"\nlast,inf,1\n", r"line 40002, column 'x': inf is not a finite number"),
    "an id again": (b"\n39,1,1\n", r"line 40002, column 'id': id '39' is also on line 41"),
    "no id": (b"\n,1,1\n", r"line 40002, column 'id': the id is empty"),
    "a short row": (b"\nlast,1\n", r"line 40002: 2 values are on a line of a file with 3 columns"),
    "another encoding": (b"\n\xe9,1,1\n", r"line 40002: byte 0xe9 is not UTF-8"),
    "an open quote": (b'\n"last,1,1\n', r"line 40002: a quote is opened and never closed"),
}


@pytest.mark.parametrize(("end", "message"), LATE.values(), ids=LATE.keys())
def test_a_mistake_at_the_end_of_a_large_file(end, message, folder, both):
    lines = "\n".join(f"{row},{row / 7},{row % 9}.25000000000000" for row in range(40_000))
    Path("points.csv").write_bytes(b"id,x,y\n" + lines.encode() + end)
    assert Path("points.csv").stat().st_size > 1.5 * 2**20  # Arrow reads a megabyte at a time

    def refused():
        with pytest.raises(BadFile, match=message) as caught:
            read_points("points.csv")
        return str(caught.value)

    small, large = both(refused)
    assert small == large
    assert os.listdir("scratch") == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize("at_once", [10, 1000, 2**24])
def test_repeated_ids_are_found_part_by_part(monkeypatch, at_once):
    monkeypatch.setattr("linkmix.tables.ids.SORTED", at_once)
    values = [f"row {row}" for row in range(3000)]
    assert TextIds(pa.chunked_array([values[:5], values[5:]])).suspects().tolist() == []
    for row, other in ((17, 2900), (30, 31), (2999, 0)):
        values[row] = values[other]
    values[50] = ""
    values[51] = "\u00e9"
    found = TextIds(pa.chunked_array([values[:5], values[5:]])).suspects().tolist()
    assert found == [0, 17, 30, 31, 50, 2900, 2999]


def test_a_scratch_folder_without_room_is_named(folder, monkeypatch):
    write(table(100)[0], "points.csv")
    monkeypatch.setattr(scratch, "IN_MEMORY", 0)
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: open("/dev/full", "wb"))  # noqa: SIM115
    with pytest.raises(ValueError, match=r"scratch: No space left on device: .* set TMPDIR to another folder"):
        read_points("points.csv")


CHILD = """
from linkmix.app.cli import main
from linkmix.data import rows as data_rows
from linkmix.data import scratch
scratch.IN_MEMORY, data_rows.PORTION_NUMBERS = 2**20, 2**17
main(prog_name="linkmix")
"""


def test_a_bar_goes_from_the_beginning_to_the_end_of_a_large_file(folder, both, monkeypatch):
    import tqdm

    bars = []

    class Bar(tqdm.tqdm):
        def __init__(self, **options):
            super().__init__(**options, file=io.StringIO())
            bars.append(self)
            self.seen = []

        def update(self, n=1):
            super().update(n)
            self.seen.append(self.n)

    monkeypatch.setattr(tqdm, "tqdm", Bar)
    frame, _ = table()
    for name, total in (("points.csv", None), ("points.parquet", N)):
        write(frame.drop(columns="plus"), name)
        both(lambda name=name: read_points(name, progress=True))
        small, large = bars[-2:]
        assert small.n == large.n == large.total == (total or Path(name).stat().st_size)
        assert small.seen == [small.total]
        assert sorted(large.seen) == large.seen
        assert len(large.seen) > 2
    both(lambda: read_points("points.csv"))
    assert len(bars) == 4


def has_file_in(place, process):
    for file in Path(f"/proc/{process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed by now
            if os.readlink(file).startswith(str(place)):
                return True
    return False


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="this system does not tell the files of a process")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupt_leaves_no_scratch_file(number, folder):
    write(table(200_000)[0].drop(columns=["plus", "note"]), "points.csv")
    arguments = [sys.executable, "-c", CHILD, "fit", "points.csv", "--classes", "2", "--out", "out"]
    environment = os.environ | {"TMPDIR": str(folder / "scratch")}
    process = subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not has_file_in(folder / "scratch", process):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said.strip()) == ((-number, "") if number == signal.SIGKILL else (1, "Aborted!"))
    assert os.listdir("scratch") == []
    assert not os.path.exists("out")


def peak_of(process):
    """Largest number of megabytes that were no mere view of a file, which the system can take back at any time."""
    peak = 0.0
    while process.poll() is None:
        found = re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
        peak = max(peak, int(found[1]) / 1024 if found else 0.0)
        time.sleep(0.002)
    return peak


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="this system does not tell the memory of a process")
@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path):
    """The numbers that a larger file has more are not in memory."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    # Starts use a sample of some 100,000 rows, and Arrow reads some 40 MB of text ahead, whatever the size of the file;
    # a busy machine moves that by some megabytes.
    sizes = {"fit": (200_000, 600_000), "predict": (600_000, 1_400_000)}
    n, d = 1_400_000, 10
    random = np.random.default_rng(0)
    X = random.integers(90, size=(n, d)) / 8 + 20 * random.integers(2, size=(n, 1))
    table = pa.table({"id": pa.array(np.arange(n)).cast(pa.string()), **{f"x{j}": X[:, j] for j in range(d)}})
    commands = {
        "fit": "fit points --classes 2 --method paper --scale",
        "predict": "predict linkmix-out/model.linkmix points",
    }
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    for name, command in commands.items():
        few, many = sizes[name]
        # Labels, and the numbers that ids are compared by, are in memory: 16 of the 80 bytes of a row.
        allowed = 0.7 * 8 * d * (many - few) / 2**20
        peaks = {few: np.inf, many: np.inf}
        for rows in (few, many, many, many):  # again if the machine was too busy for Arrow to hand on what it had read
            if peaks[many] - peaks[few] < allowed:
                break
            if name == "fit":
                parquet.write_table(table[:rows], tmp_path / "points", row_group_size=50_000)
            else:
                csv.write_csv(table[:rows], tmp_path / "points")
            arguments = [sys.executable, "-c", CHILD, *command.split()]
            process = subprocess.Popen(arguments, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL)
            peaks[rows] = min(peaks[rows], peak_of(process))
            assert process.returncode == 0
        assert peaks[many] - peaks[few] < allowed, (name, peaks)
    assert not [file for file in tmp_path.iterdir() if file.name.startswith("tmp")]


def mixed(n=2500, seed=0):
    """Columns of every kind, one that varies only at the end, one that has values only there."""
    random = np.random.default_rng(seed)
    y = random.integers(2, size=n)
    late = np.arange(n) >= n - 10
    frame = pd.DataFrame(
        {
            "id": [f"r{row}" for row in range(n)],
            "plan": np.where(random.random(n) < 0.9, np.array(["gold", "free"])[y], "silver"),
            "spend": [f"{value:,.2f}" for value in random.gamma(2, 900, n)],
            "since": (pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(900, size=n), unit="D")).strftime(
                "%d.%m.%Y"
            ),
            "age": random.integers(18, 80, n),
            "late": np.where(late, "b", "a"),
            "later": np.where(late, np.arange(n) * 1.5, np.nan),
            "same": "x",
        }
    )
    return frame.mask(random.random(frame.shape) < 0.03).assign(id=frame["id"], later=frame["later"]), y


@pytest.mark.parametrize("name", ["points.csv", "points.parquet"])
def test_kinds_are_learned_from_the_first_rows_of_a_large_table(name, folder, monkeypatch):
    frame, _ = mixed()
    write(frame, name)
    small = read_points(name)
    monkeypatch.setattr(scratch, "IN_MEMORY", 0)
    monkeypatch.setattr(data_rows, "PORTION_NUMBERS", 2000)
    monkeypatch.setattr("linkmix.tables.reading.LEARNED", 500)
    large = read_points(name)
    assert isinstance(large.X, np.memmap)
    assert large.columns == ("spend", "since", "age", "later", "plan", "late")
    assert large.unused == small.unused == {"id": "ids", "same": "the same value in every row that has one"}
    shared = [small.columns.index(column) for column in large.columns if column in small.columns]
    np.testing.assert_array_equal(large.X, small.X[:, shared])
    again = read_points(name, recipe=large.recipe)
    np.testing.assert_array_equal(again.X, large.X)


CUT_SHORT = """
import os, sys
from linkmix.basics.errors import BadFile
from linkmix.data import scratch
from linkmix.tables import arrow_source, read_points

path = sys.argv[1]
scratch.IN_MEMORY = 0
arrow_source.portion_rows = lambda n_columns: 1000
for kind in (arrow_source.Parquet, arrow_source.Feather):
    def cut(self, n_rows, names, read=kind._read):
        for batch in read(self, n_rows, names):
            yield batch
            os.truncate(path, 5000)
    kind._read = cut
try:
    read_points(path)
except BadFile as error:
    print(error)
"""


@pytest.mark.parametrize("form", ["parquet", "feather"])
def test_a_file_that_becomes_shorter_while_it_is_read_is_said_and_kills_nothing(form, tmp_path):
    path = tmp_path / f"points.{form}"
    table = pa.table({"x": np.random.default_rng(0).normal(size=200_000)})
    if form == "parquet":
        parquet.write_table(table, path, row_group_size=20_000)
    else:
        feather.write_feather(table, path, compression="uncompressed", chunksize=20_000)
    found = subprocess.run([sys.executable, "-c", CUT_SHORT, path], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found  # a mapped file would end it with SIGBUS
    assert found.stdout.startswith(f"{path}: is damaged (")
    assert found.stdout.endswith("): write it again\n")
