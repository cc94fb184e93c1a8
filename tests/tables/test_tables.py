"""Files of points, links and labels: what is read, what is written, and that both agree."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linkmix import Links
from linkmix.basics.errors import BadFile
from linkmix.data import scratch
from linkmix.tables import read_link_lines, read_links, read_points, write_labels, write_links


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_ids_stay_text_whatever_they_look_like(tmp_path):
    path = write(tmp_path, "points.csv", "id,x\n007,1\n1e5,2\n0x1F,3\ntrue,4\nNA,5\n2020-01-01,6\n 8,7\n")
    points = read_points(path)
    assert points.ids.tolist() == ["007", "1e5", "0x1F", "true", "NA", "2020-01-01", " 8"]
    assert points.X[:, 0].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert points.id_column == "id"


def test_rows_are_numbered_where_there_are_no_ids(tmp_path):
    points = read_points(write(tmp_path, "points.csv", "x,y\n1,2\n3,4\n"))
    assert (points.ids.tolist(), points.id_column, points.columns) == (["0", "1"], None, ("x", "y"))


def test_an_id_column_of_another_name_and_chosen_columns_in_their_order(tmp_path):
    path = write(tmp_path, "points.csv", "x,key,id,y\n1,a,5,2\n3,b,6,4\n")
    points = read_points(path, id="key", columns=["y", "x"])
    assert (points.ids.tolist(), points.columns, points.X.tolist()) == (["a", "b"], ("y", "x"), [[2, 1], [4, 3]])
    assert {name: column.tolist() for name, column in points.texts.items()} == {"id": ["5", "6"]}
    assert read_points(path, id="key").columns == ("x", "id", "y")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("points.csv", "id,x,y\na,1,2\nb,3,4\n"),
        ("points.csv", "id,x,y\r\na,1,2\r\nb,3,4\r\n"),
        ("points.csv", "id,x,y\na,1,2\nb,3,4"),
        ("points.csv", b"\xef\xbb\xbfid,x,y\na,1,2\nb,3,4\n"),
        ("points.csv", 'id,x,y\n"a","1","2"\nb, 3,4 \n'),
        ("points.csv", "id,x,y\na,1,2\n\nb,+3,4e0\n"),
        ("points.csv", "id;x;y\na;1;2\nb;3;4\n"),
        ("points.tsv", "id\tx\ty\na\t1\t2\nb\t3\t4\n"),
        ("points.txt", "id\tx\ty\na\t1\t2\nb\t3\t4\n"),
    ],
)
def test_ways_of_writing_the_same_table(name, content, tmp_path):
    points = read_points(write(tmp_path, name, content))
    assert points.ids.tolist() == ["a", "b"]
    assert points.columns == ("x", "y")
    np.testing.assert_array_equal(points.X, [[1, 2], [3, 4]])


def test_missing_values_are_nan(tmp_path):
    points = read_points(write(tmp_path, "points.csv", 'id,x\na,1\nb,\nc,NA\nd,NaN\ne,null\nf,""\ng,2\n'))
    np.testing.assert_array_equal(points.X[:, 0], [1, np.nan, np.nan, np.nan, np.nan, np.nan, 2])


def test_other_columns_are_kept_as_the_text_they_are(tmp_path):
    path = write(
        tmp_path, "points.csv", 'id,x,day,note,flag,gap\na,1,2020-01-01T10:00:00Z,"two\nlines",true,\nb,2,,é,false,\n'
    )
    points = read_points(path)
    assert points.columns == ("x", "note", "flag")
    assert {name: column.tolist() for name, column in points.texts.items()} == {
        "day": ["2020-01-01T10:00:00Z", ""],
        "note": ["two\nlines", "é"],
        "flag": ["true", "false"],
    }
    assert points.left_out == ("gap",)
    assert read_points(path, texts=False).texts == {}


def test_a_truth_column_is_text_whatever_it_holds(tmp_path):
    points = read_points(write(tmp_path, "p.csv", "id,x,class\na,1,01\nb,2,2\n"), texts=False, text_columns=["class"])
    assert points.columns == ("x",)
    assert points.texts["class"].tolist() == ["01", "2"]


def test_text_that_begins_after_many_numbers_is_text_or_a_mistake(tmp_path):
    numbers = "".join(f"{i},{i % 7}\n" for i in range(200_000))
    mistake = write(tmp_path, "mistake.csv", f"id,x\n{numbers}last,tall\n")
    with pytest.raises(BadFile) as caught:
        read_points(mistake)
    assert (caught.value.line, caught.value.column) == (200_002, "x")
    words = "".join(f"w{i},word\n" for i in range(300_000))
    lines = (f"{line},{i % 5}\n" for i, line in enumerate((numbers + words).splitlines()))
    points = read_points(write(tmp_path, "words.csv", "id,x,y\n" + "".join(lines)))
    assert points.columns == ("y", "x")
    assert points.recipe.level_names["x"] == ("0", "1", "2", "3", "4", "5", "6", "word")
    assert points.texts["x"][-1] == "word"


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (["1", "+2", "-.5", " 3 ", "1e5", "NA"], [1, 2, -0.5, 3, 1e5, np.nan]),
        (["1 kg", "2 kg", "3 kg"], [1, 2, 3]),
        (['"1,000"', '"2,500.5"', "7"], [1000, 2500.5, 7]),
        (["12 Main St", "7 Elm St", "9 Oak St"], None),
        (["a", "b", "3"], None),
    ],
)
def test_what_is_a_number(values, found, tmp_path):
    path = write(tmp_path, "p.csv", "id,x,y\n" + "".join(f"{i},{value},{i}\n" for i, value in enumerate(values)))
    points = read_points(path)
    if found is None:
        assert points.columns == ("y",)
        assert points.unused["x"] == "text, nearly all values differ"
    else:
        assert points.columns == ("x", "y")
        np.testing.assert_array_equal(points.X[:, 0], found)


@pytest.mark.parametrize("values", [["inf", "-Infinity", "1"], ["1", "2", "inf"]])
def test_infinite_values_are_mistakes(values, tmp_path):
    path = write(tmp_path, "p.csv", "id,x\n" + "".join(f"{i},{value}\n" for i, value in enumerate(values)))
    with pytest.raises(BadFile, match="is not a finite number"):
        read_points(path)


def test_a_line_number_counts_lines_and_not_rows(tmp_path):
    path = write(tmp_path, "points.csv", 'id,note,x\na,"one\ntwo\nthree",1\n\nb,,2\nc,,oops\nd,,5\n')
    with pytest.raises(BadFile, match="'oops' is not a number") as caught:
        read_points(path)
    assert caught.value.line == 7


def test_parquet_and_csv_give_the_same_points(tmp_path):
    frame = pd.DataFrame(
        {
            "id": ["007", "1e5", "x"],
            "a": [1, 2, 3],
            "b": [0.5, np.nan, 1 / 3],
            "name": ["anna", "", "carl"],
            "c": np.array([1, 2, 4], dtype=np.int8),
        }
    )
    frame.to_csv(tmp_path / "points.csv", index=False)
    frame.to_parquet(tmp_path / "points.parquet")
    frame.to_parquet(tmp_path / "points.without-ending", index=False)
    first = read_points(tmp_path / "points.csv")
    for name in ("points.parquet", "points.without-ending"):
        second = read_points(tmp_path / name)
        assert second.columns == first.columns == ("a", "b", "c", "name")
        assert second.ids.tolist() == first.ids.tolist() == ["007", "1e5", "x"]
        np.testing.assert_array_equal(second.X, first.X)
        assert second.texts["name"].tolist() == first.texts["name"].tolist()


def test_parquet_with_other_types_and_a_pandas_index(tmp_path):
    frame = pd.DataFrame(
        {"key": [10, 20], "flag": [True, False], "day": pd.to_datetime(["2020-01-01", "2021-02-03"])}, index=["p", "q"]
    )
    frame.to_parquet(tmp_path / "p.parquet")
    points = read_points(tmp_path / "p.parquet", id="key")
    assert (points.ids.tolist(), points.columns, points.X.tolist()) == (
        ["10", "20"],
        ("day", "flag"),
        [[18262, 1], [18661, 0]],
    )
    assert list(points.texts) == ["day"]


IDS = ["007", "7", "1e5", "a,b", 'say "so"', "two\nlines", "ret\rurn", " space ", "é", "{", "=1+1", "#", "NA"]
LINKS = [
    Links(),
    Links(must=[(0, 1)]),
    Links(cannot=[(1, 0), (2, 3)]),
    Links(must=[(0, 1), (4, 5), (0, 1)], cannot=[(6, 7), (8, 9), (10, 11), (12, 0)]),
    Links(must=[(0, 1)], cannot=[(2, 3), (3, 4)], cannot_confidence=[0.1, 1 / 3]),
    Links(must=[(0, 1)], must_confidence=1.0, cannot=[(2, 3)]),
    Links(must=[(0, 1), (1, 2)], must_annotators=["eva", None], cannot=[(2, 3)], cannot_annotators=['i "d" a,\n']),
    Links(must=[(0, 1), (1, 2)], cannot=[(2, 3)], must_chosen=[True, False]),
    Links(must=[(0, 1)], cannot=[(2, 3)], cannot_chosen=True, cannot_confidence=0.9, must_annotators="eva"),
]


@pytest.mark.parametrize("name", ["links.csv", "links.tsv", "links.jsonl"])
@pytest.mark.parametrize("links", LINKS, ids=repr)
def test_links_read_back_identically(links, name, tmp_path):
    if links.empty and name.endswith("jsonl"):
        pytest.skip("a file without lines says nothing, not even that there are no links")
    write_links(tmp_path / name, links, IDS)
    assert read_links(tmp_path / name, IDS) == links
    assert [path.name for path in tmp_path.iterdir()] == [name]


texts = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ids=st.lists(texts, min_size=2, max_size=6, unique=True), confidence=st.floats(1e-9, 1), annotator=texts)
@pytest.mark.parametrize("name", ["links.csv", "links.tsv", "links.jsonl"])
def test_any_ids_read_back(name, ids, confidence, annotator, tmp_path):
    links = Links(must=[(0, 1)], cannot=[(1, 0)], must_confidence=confidence, cannot_annotators=[annotator])
    write_links(tmp_path / name, links, ids)
    assert read_links(tmp_path / name, ids) == links


def test_annotators_that_no_file_can_hold_are_refused(tmp_path):
    for name in (7, ""):
        with pytest.raises(ValueError, match="is not a text"):
            write_links(tmp_path / "links.csv", Links(must=[(0, 1)], must_annotators=[name]), ["a", "b"])
    assert not list(tmp_path.iterdir())


def test_formats_of_links_agree(tmp_path):
    ids = [str(i) for i in range(10)]
    expected = Links(must=[(0, 3), (1, 2)], cannot=[(4, 9)])
    contents = {
        "links.csv": "a,b,kind\n0,3,must\n1,2,same\n4,9,cannot-link\n",
        "crlf.csv": "a,b,kind\r\n0,3,must\r\n1,2,1\r\n4,9,-1\r\n",
        "order.csv": "annotator,kind,b,a,note\n,MUST,3,0,x\n,must,2,1,\n,Different,9,4,\n",
        "links.tsv": "a\tb\tkind\n0\t3\tmust\n1\t2\tmust\n4\t9\tcannot\n",
        "cop.txt": "0\t3\t1\n1\t2\t1\n4\t9\t-1\n",
        "spaces.txt": "0 3 1\n1 2 1\n\n4 9 -1\n",
        "links.jsonl": '{"a": "0", "b": "3", "kind": "must"}\n{"b": "2", "a": "1", "kind": 1}\n\n'
        '{"a": "4", "b": "9", "kind": "cannot"}\n',
    }
    for name, content in contents.items():
        assert read_links(write(tmp_path, name, content), ids) == expected, name


@pytest.mark.parametrize(
    ("column", "value"),
    [("kind", "maybe"), ("kind", 2), ("kind", None), ("confidence", 2), ("confidence", True), ("confidence", "high")],
)
def test_files_and_tables_are_refused_in_the_same_words(column, value, tmp_path):
    row = {"a": "p", "b": "q", "kind": "must", column: value}
    with pytest.raises(BadFile) as in_file:
        read_links(write(tmp_path, "links.jsonl", json.dumps(row)), ["p", "q"])
    with pytest.raises(ValueError, match=f"^table row 0, column '{column}': ") as in_table:
        Links.from_table([row], ids=["p", "q"])
    assert (in_file.value.line, in_file.value.column) == (1, column)
    assert str(in_table.value).endswith(f": {in_file.value.problem}")
    assert repr(value) in in_file.value.problem


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "+nan", "0.5_0", "inf", "half"])
def test_a_confidence_that_is_none_is_named(value, tmp_path):
    path = write(tmp_path, "links.csv", f"a,b,kind,confidence\np,q,must,\np,q,must,{value}\n")
    with pytest.raises(
        BadFile, match=r"line 3, column 'confidence': .* is not a number above 0 and at most 1: correct"
    ):
        read_links(path, ["p", "q"])


def test_cop_kmeans_counts_rows_even_where_there_are_ids(tmp_path):
    assert read_links(write(tmp_path, "cop.txt", "0\t1\t1\n"), ["1", "0"]).must.tolist() == [[0, 1]]


def test_links_keep_their_lines_and_unknown_ids(tmp_path):
    path = write(tmp_path, "links.csv", 'a,b,kind\n"x\ny",2,must\n\n5,6,cannot\n')
    assert [(s.line, s.a, s.b) for s in read_link_lines(path)] == [(2, "x\ny", "2"), (5, "5", "6")]


def test_an_unknown_id_names_the_one_that_is_meant(tmp_path):
    path = write(tmp_path, "links.csv", "a,b,kind\n007,8,must\n")
    with pytest.raises(BadFile, match=r"line 2, column 'b': '8' is not among the ids of the points \(is it '008'\?\)"):
        read_links(path, ["007", "008"])


def test_labels_are_a_table_that_pandas_reads(tmp_path):
    probabilities = np.array([[0.2, 0.8], [1.0, 0.0], [1 / 3, 2 / 3]])
    ids = ["007", 'a "quoted", id', "two\nlines"]
    write_labels(tmp_path / "labels.csv", ids, np.array([1, 0, 0]), probabilities, id_name="key,")
    table = pd.read_csv(tmp_path / "labels.csv", dtype={"key,": str})
    assert list(table) == ["key,", "label", "confidence", "probability_0", "probability_1"]
    assert table["key,"].tolist() == ids
    assert table["label"].tolist() == [1, 0, 0]
    np.testing.assert_allclose(table["confidence"], [0.8, 1.0, 1 / 3], atol=1e-6)
    write_labels(tmp_path / "labels.csv", ids, np.array([1, 0, 0]))
    assert list(pd.read_csv(tmp_path / "labels.csv")) == ["id", "label"]


def test_json_lines_are_plain_json(tmp_path):
    write_links(tmp_path / "l.jsonl", Links(must=[(0, 1)], must_confidence=0.9), ["é", "b"])
    assert json.loads((tmp_path / "l.jsonl").read_text()) == {"a": "é", "b": "b", "kind": "must", "confidence": 0.9}


def test_columns_that_are_not_used_are_known_with_the_reason(tmp_path, monkeypatch):
    path = write(tmp_path, "points.csv", "id,name,x,y,gap,class\na,anna,1,2,,b\nb,bob,3,4,,c\nc,eva,3,5,,c\n")
    points = read_points(path, text_columns=["class"])
    assert points.unused == {
        "id": "ids", "name": "text, nearly all values differ", "gap": "no values", "class": "read as text"
    }  # fmt: skip
    points = read_points(path, columns=["y"], texts=False)
    assert points.unused == {
        "id": "ids", "name": "not chosen", "x": "not chosen", "gap": "not chosen", "class": "not chosen"
    }  # fmt: skip
    rows = "".join(f"{i + 100},5,{i % 7},{i % 3}\n" for i in range(40))
    path = write(tmp_path, "plain.csv", f"number,same,x,y\n{rows}")
    for large in (False, True):
        if large:
            monkeypatch.setattr(scratch, "IN_MEMORY", 1)
        points = read_points(path)
        assert points.unused == {"number": "numbers the rows", "same": "the same value in every row"}
        assert points.columns == ("x", "y")
        assert points.X.shape == (40, 2)
        assert points.summary.n_values.tolist() == [40, 40]
        assert read_points(path, kinds={"number": "number"}).columns == ("number", "x", "y")
        assert read_points(path, columns=["x", "number"]).columns == ("x", "number")
