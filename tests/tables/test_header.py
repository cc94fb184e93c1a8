"""Files whose first line holds numbers: a row of data, or names."""

import numpy as np
import pytest

from linkmix.basics.errors import BadFile
from linkmix.data import scratch
from linkmix.tables import column_names, read_links, read_numbers, read_points

ROWS = np.array([[5.1, 3.5, 1.4], [4.9, 3.0, 1.4], [7.0, 3.2, 4.7], [6.4, 3.2, 4.5]])


def write(path, separator=",", header=None, rows=ROWS, bom=""):
    lines = [] if header is None else [header]
    path.write_text(bom + "\n".join([*lines, *(separator.join(f"{value:g}" for value in row) for row in rows)]) + "\n")
    return path


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize(("name", "separator"), [("a.data", "\t"), ("a.csv", ","), ("a.txt", " "), ("a.csv", ";")])
def test_the_first_row_of_a_file_without_header_is_data(name, separator, bom, large, tmp_path, monkeypatch):
    if large:
        monkeypatch.setattr(scratch, "IN_MEMORY", 1)
    path = write(tmp_path / name, separator, bom=bom)
    points = read_points(path)
    assert points.columns == ("column1", "column2", "column3")
    np.testing.assert_array_equal(points.X, ROWS)
    assert points.ids.tolist() == ["0", "1", "2", "3"]
    assert len(points.remarks) == 1
    assert f"first line of {name} holds only numbers" in points.remarks[0]
    assert column_names(path) == ["column1", "column2", "column3"]
    np.testing.assert_array_equal(read_numbers(path, ["column3", "column1"]), ROWS[:, [2, 0]])
    points = read_points(path, id="column1", columns=["column3"])
    assert points.ids.tolist() == ["5.1", "4.9", "7", "6.4"]
    np.testing.assert_array_equal(points.X, ROWS[:, [2]])


def test_links_that_number_rows_speak_of_the_right_ones(tmp_path):
    path = write(tmp_path / "iris.data", "\t")
    links = tmp_path / "iris.constraints"
    links.write_text("0\t1\t1\n0\t3\t-1\n")
    found = read_links(links, read_points(path).ids)
    assert (found.must.tolist(), found.cannot.tolist()) == ([[0, 1]], [[0, 3]])


def test_lines_are_counted_from_the_first(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("1.5,3\n2,inf\n3,4\n")
    with pytest.raises(BadFile, match="line 2, column 'column2': inf is not a finite number"):
        read_points(path)
    path.write_text("1.5,3\n2,4\n3,five\n7,8\n")
    with pytest.raises(BadFile, match="line 3, column 'column2': 'five' is not a number"):
        read_points(path)


def test_a_missing_value_in_the_first_row_is_one(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("1.5,,3\n2,4,5\n3,6,9\n")
    np.testing.assert_array_equal(read_points(path).X, [[1.5, np.nan, 3], [2, 4, 5], [3, 6, 9]])


@pytest.mark.parametrize("header", ["0,1,2", "1,2,3", "2001,2002,2003", "400.5,401,401.5"])
def test_numbers_in_equal_steps_are_names(header, tmp_path):
    points = read_points(write(tmp_path / "a.csv", header=header))
    assert points.columns == tuple(header.split(","))
    np.testing.assert_array_equal(points.X, ROWS)
    assert "was read as the names of the columns" in points.remarks[0]


@pytest.mark.parametrize(
    ("header", "said"),
    [("x,y,z", False), ("x,2001,2002", False), ("x,3,z", False), ("5.1,3.5,setosa", True), ("7,3,setosa", True)],
)
def test_names_that_may_be_values_are_said(header, said, tmp_path):
    points = read_points(write(tmp_path / "a.csv", header=header))
    assert points.columns == tuple(header.split(","))
    assert bool(points.remarks) == said


def test_names_that_are_asked_for_decide(tmp_path):
    path = write(tmp_path / "a.csv", header="7,2,9")
    assert read_points(path).X.shape == (5, 3)
    points = read_points(path, columns=["9", "7"])
    np.testing.assert_array_equal(points.X, ROWS[:, [2, 0]])
    assert points.remarks == ()
    path = write(tmp_path / "b.csv", rows=np.array([[1, 2, 3], [5, 6, 9]]))
    assert read_points(path).X.shape == (1, 3)
    columns = ["column1", "column3"]
    for X in (read_points(path, columns=columns).X, read_numbers(path, columns)):
        np.testing.assert_array_equal(X, [[1, 3], [5, 9]])
    assert column_names(path, ["column2"]) == ["column1", "column2", "column3"]
    with pytest.raises(BadFile, match=r"there is no column 'x' \(the .* no header.*\): choose from 'column1'"):
        read_points(write(tmp_path / "c.csv"), columns=["x"])


def test_all_files_of_a_table_are_without_header(tmp_path):
    rows = np.array([[1, 2, 3], [8, 1, 4]])  # whose first line could be names
    write(tmp_path / "a.csv", rows=rows)
    write(tmp_path / "b.csv")
    points = read_points(tmp_path)
    np.testing.assert_array_equal(points.X, np.vstack([rows, ROWS]))
    assert "all 2 files" in points.remarks[0]
    write(tmp_path / "b.csv", header="x,y,z")
    with pytest.raises(BadFile, match="give all files the same columns"):
        read_points(tmp_path)


def test_several_spaces_are_refused(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("  5.1  3.5\n  4.9  3.0\n")
    with pytest.raises(BadFile, match=r"line 1: values are not separated by single spaces: .* awk"):
        read_points(path)
