"""Cells that a spreadsheet would run: harmless where linkmix writes them, and the same ids where it reads them."""

import csv

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as some

from linkmix import Links
from linkmix.app.cli import main
from linkmix.tables import read_ids, read_links, read_points, write_ids, write_joined, write_labels, write_links
from linkmix.tables.cells import guarded, guarded_column, unguarded, unguarded_column
from linkmix.tables.files import Tally
from linkmix.tables.text import as_line

NASTY = [
    "=1+1",
    "'=1+1",
    "''=1+1",
    "-x",
    "@a",
    "+b",
    "\tt",
    "\rr",
    "-5",
    "'-5",
    "-1,234.5",
    "-.",
    "+,",
    "-1.2.3",
    "it's",
    "'tis",
    "-",
    "007",
]
signs = some.text("'=+-@\t\r,\"1ae. ", min_size=1, max_size=6)


def is_harmless(cell):
    """Whether no spreadsheet runs a cell: it begins with no sign, or is a number."""
    try:
        return cell[:1] not in "=+-@\t\r" or bool(float(cell.replace(",", "")) < np.inf)
    except ValueError:
        return False


def cells_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


@given(signs)
def test_what_is_written_is_harmless_and_read_as_the_same_text(value):
    assert unguarded(guarded(value)) == value
    assert is_harmless(guarded(value))
    column = pa.chunked_array([[value]])
    assert guarded_column(column).to_pylist() == [guarded(value)]
    assert unguarded_column(column).to_pylist() == [unguarded(value)]


@settings(max_examples=30, deadline=None)
@given(ids=some.lists(signs, min_size=4, max_size=6, unique=True))
def test_a_round_trip_keeps_every_id(tmp_path_factory, ids):
    folder = tmp_path_factory.mktemp("cells")
    links = Links(must=[(0, 1)], cannot=[(2, 3)], must_annotators=["=me"])
    pq.write_table(pa.table({"id": ids, "x": np.arange(len(ids)) ** 2}), folder / "points.parquet")
    write_links(folder / "links.csv", links, ids)
    write_links(folder / "links.tsv", links, ids)
    write_ids(folder / "noise.csv", ids[1:3])
    write_labels(folder / "labels.csv", ids, np.arange(len(ids)) % 2)
    write_joined(folder / "joined.csv", folder / "points.parquet", np.arange(len(ids)) % 2)
    for name in ("labels.csv", "joined.csv"):
        assert all(map(is_harmless, (row[0] for row in cells_of(folder / name)[1:]))), (folder / name).read_text()
        points = read_points(folder / name, texts=False)
        assert points.ids.tolist() == ids
        for kind in ("csv", "tsv"):
            found = read_links(folder / f"links.{kind}", points.ids)
            assert found.must.tolist() == [[0, 1]]
            assert found.cannot.tolist() == [[2, 3]]
            assert found.must_annotators.tolist() == ["=me"]
        assert read_ids(folder / "noise.csv", points.ids).tolist() == [1, 2]


@pytest.mark.parametrize("raw", [False, True])
def test_fit_and_predict_write_cells_that_no_spreadsheet_runs(tmp_path, raw):
    ids = [name for name in NASTY if not raw or not name.startswith("'")]
    values = np.random.default_rng(0).normal(size=(len(ids), 2)).round(3) + 5 * (np.arange(len(ids)) % 2)[:, None]
    rows = [["=id", "x", "y", "note"], *([name, *row, "=2+3"] for name, row in zip(ids, values.tolist(), strict=True))]
    points, links, out = tmp_path / "points.csv", tmp_path / "links.csv", tmp_path / "out"
    points.write_bytes(
        "".join(as_line(map(guarded, map(str, row)) if row[0][:1] == "'" else row) for row in rows).encode()
    )
    write_links(links, Links(must=[(0, 2)], cannot=[(0, 1)]), ids, raw=raw)
    fit = ["fit", str(points), "--id", "=id", "--links", str(links), "--classes", "2", "--out", str(out), "--join"]
    predict = ["predict", str(out / "model.linkmix"), str(points), "--out", str(tmp_path / "predicted.csv")]
    for command in (fit, predict):
        result = CliRunner().invoke(main, [*command, *(["--raw-cells"] if raw else [])])
        assert result.exit_code == 0, result.output
    for file in (out / "labels.csv", out / "joined.csv", tmp_path / "predicted.csv"):
        found = cells_of(file)
        assert [row[0] if raw else unguarded(row[0]) for row in found] == [row[0] for row in rows]
        assert all(is_harmless(cell) for row in found for cell in row) == (not raw)


def test_a_class_name_is_harmless_too(tmp_path):
    write_labels(tmp_path / "labels.csv", ["a", "b"], np.array([0, 1]), np.eye(2), names=["=x", "-1"])
    assert cells_of(tmp_path / "labels.csv")[1:] == [["a", "'=x", "1", "1", "0"], ["b", "-1", "1", "0", "1"]]


def test_an_apostrophe_across_two_blocks_of_a_large_table_is_seen():
    tally = Tally(None)
    tally.count(b"id\n'")
    tally.count(b"=1\n")
    assert tally.has_guards
