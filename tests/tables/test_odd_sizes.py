"""Files that are odd by their size: no rows, endless lines, numbers of thousands of digits."""

import time

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet
import pytest

from linkmix.basics.errors import BadFile
from linkmix.tables import column_names, read_id_column, read_ids, read_links, read_numbers, read_points

DIGITS = "1" * 5000


@pytest.mark.parametrize("write", [parquet.write_table, feather.write_feather])
def test_a_typed_table_without_rows_says_so(tmp_path, write):
    path = tmp_path / ("t.parquet" if write is parquet.write_table else "t.feather")
    write(pa.table({"id": pa.array([], pa.string()), "x": pa.array([], pa.float64())}), str(path))
    for read in (read_points, read_id_column):
        with pytest.raises(BadFile, match="has column names but no rows: give a row for each point"):
            read(path)
    assert read_numbers(path, ["x"]).shape == (0, 1)
    with pytest.raises(BadFile, match="there is no column 'y': choose from 'id', 'x'"):
        read_numbers(path, ["y"])


@pytest.mark.parametrize("text", ["z" * 3_000_000, '"' + "z\n" * 1_500_000 + '"'], ids=["long", "many lines"])
def test_a_line_of_megabytes_is_read(tmp_path, text):
    path = tmp_path / "points.csv"
    path.write_text(f"id,x,note\na,1,{text}\nb,2,c\nc,4,d\n")
    points = read_points(path)
    assert points.ids.tolist() == ["a", "b", "c"]
    assert points.X.tolist() == [[1], [2], [4]]
    assert len(points.texts["note"][0]) == 3_000_000


def test_a_line_that_is_too_long_for_any_block_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("linkmix.tables.text_source.LONGEST_LINE", 2**20)
    path = tmp_path / "points.csv"
    path.write_text(f"id,x,note\na,1,{'z' * 5_000_000}\nb,2,c\n")
    with pytest.raises(BadFile, match="a line is longer than 1,048,576 bytes: is a quote or line break missing"):
        read_points(path)


def test_columns_of_one_name_get_names_of_their_own_at_once(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text(",".join(["c"] * 20_000) + "\n" + ",".join(["1"] * 20_000) + "\n")
    began = time.perf_counter()
    assert len(set(column_names(path))) == 20_000
    assert time.perf_counter() - began < 20


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("l.csv", f"a,b,kind,confidence\na,b,must,{DIGITS}\n", "line 2, column 'confidence': inf is not a"),
        ("l.jsonl", f'{{"a":"a","b":"b","kind":"must","confidence":{"1" * 400}}}\n', "line 1, column 'confidence': 1"),
        ("l.jsonl", f'{{"a":"a","b":"b","kind":"must","confidence":{DIGITS}}}\n', "line 1: holds a number of"),
        ("l.jsonl", '{"a":' + "[" * 100_000 + "\n", "line 1: holds a number of thousands of digits, or is nested too"),
        ("l.jsonl", '{"a":"a","b":"b","kind":"must","chosen":{}}\n', "line 1, column 'chosen': {} is neither"),
        ("l.txt", f"{DIGITS} 1 1\n", "line 1, column 'a': there is no row 1000000000000000000, only 2 rows"),
    ],
    ids=["text", "400 digits", "5000 digits", "deep", "an object", "a row number"],
)
def test_endless_numbers_in_links_are_refused(tmp_path, name, content, said):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(BadFile) as caught:
        read_links(path, ["a", "b"])
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"id\n\xff\n", "line 2: byte 0xff is not UTF-8"),
        (b'id\n"a\n', "a quote is opened and never closed"),
        (b"", "is empty"),
        (b"id\na\nz\n", "line 3: 'z' is not among the ids of the points: correct it"),
    ],
)
def test_a_list_of_ids_that_cannot_be_read_says_why(tmp_path, content, said):
    path = tmp_path / "noise.csv"
    path.write_bytes(content)
    with pytest.raises(BadFile) as caught:
        read_ids(path, ["a", "b"])
    assert said in str(caught.value)
