"""The same table and the same links in every format, values that stand for missing ones, and names of columns."""

import gzip
import zipfile

import numpy as np
import pandas as pd
import pytest

from linkmix import Links
from linkmix.basics.errors import BadFile
from linkmix.data import scratch
from linkmix.tables import column_names, read_id_column, read_link_lines, read_links, read_points

RNG = np.random.default_rng(0)
N = 3000
FRAME = pd.DataFrame(
    {
        "id": [f"{row:05}" for row in range(N)],
        "x": RNG.normal(size=N).round(6),
        "plan": RNG.choice(["gold", "free", 'say "so"', "two\nlines"], N),
        "y": np.where(RNG.random(N) < 0.1, np.nan, RNG.integers(50, size=N)),
        "flag": RNG.random(N) < 0.3,
    }
)
LINKS = pd.DataFrame({"a": ["00001", "00002"], "b": ["00007", "00009"], "kind": ["must", "cannot"]})
FORMATS = ["t.csv", "t.csv.gz", "t.tsv.gz", "t.parquet", "t.feather", "t.arrow", "t.xlsx"]


def write(frame, path):
    name = path.name
    if name.endswith("parquet"):
        frame.to_parquet(path, index=False)
    elif name.endswith(("feather", "arrow")):
        frame.to_feather(path)
    elif name.endswith("xlsx"):
        pytest.importorskip("openpyxl")
        frame.to_excel(path, index=False)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in name else ",")
    return path


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_points(name, large, tmp_path, monkeypatch):
    path = write(FRAME, tmp_path / name)
    if large:
        monkeypatch.setattr(scratch, "IN_MEMORY", 0)
    points = read_points(path)
    assert points.columns == ("x", "y", "plan", "flag")
    np.testing.assert_array_equal(points.X[:, :2], FRAME[["x", "y"]])
    assert [points.written(row, 2) for row in range(20)] == FRAME["plan"][:20].tolist()
    np.testing.assert_array_equal(points.X[:, 3], FRAME["flag"])
    assert points.ids.tolist() == read_id_column(path).ids.tolist() == FRAME["id"].tolist()
    assert column_names(path) == list(FRAME)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_links(name, tmp_path):
    path = write(LINKS, tmp_path / name)
    assert read_links(path, FRAME["id"].tolist()) == Links(must=[(1, 7)], cannot=[(2, 9)])


def test_compressed_files_of_a_folder_are_one_table(tmp_path):
    for part, rows in enumerate((FRAME[:1000], FRAME[1000:])):
        write(rows, tmp_path / f"part-{part}.csv.gz")
    points = read_points(tmp_path)
    assert [file.name for file in points.files] == ["part-0.csv.gz", "part-1.csv.gz"]
    np.testing.assert_array_equal(points.X[:, 0], FRAME["x"])


def test_a_gzip_file_of_two_pieces_is_read_to_its_end(tmp_path, monkeypatch):
    pieces = [FRAME[["x"]][:1500].to_csv(index=False), FRAME[["x"]][1500:].to_csv(index=False, header=False)]
    (tmp_path / "t.csv.gz").write_bytes(b"".join(gzip.compress(piece.encode()) for piece in pieces))
    for limit in (2**28, 0):
        monkeypatch.setattr(scratch, "IN_MEMORY", limit)
        np.testing.assert_array_equal(read_points(tmp_path / "t.csv.gz").X, FRAME[["x"]])


def test_a_sheet_is_chosen_by_its_name(tmp_path):
    pytest.importorskip("openpyxl")
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        FRAME[:5].to_excel(book, sheet_name="one", index=False)
        FRAME[5:12][["id", "x"]].to_excel(book, sheet_name="two", index=False)
    assert read_points(tmp_path / "t.xlsx").ids.tolist() == FRAME["id"][:5].tolist()
    points = read_points(tmp_path / "t.xlsx", sheet="two")
    np.testing.assert_array_equal(points.X[:, 0], FRAME["x"][5:12])
    with pytest.raises(BadFile, match="there is no sheet 'three': choose from 'one', 'two'"):
        read_points(tmp_path / "t.xlsx", sheet="three")


def test_a_mistake_in_a_sheet_names_its_row(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["x", "note"], [1, "two\nlines"], [], [2, "-"], ["tall", "-"], [4, "-"], [5, "."]):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(BadFile, match="line 5, column 'x': 'tall' is not a number"):
        read_points(tmp_path / "t.xlsx")


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_values_that_stand_for_missing_ones(name, tmp_path):
    frame = pd.DataFrame(
        {"x": [1.0, 2.5, -999, 4, 5], "word": ["a", "b", "a", "?", "b"], "y": ["1", "?", "3", "4", "8"]}
    )
    path = write(frame, tmp_path / name)
    points = read_points(path, missing=["?", "-999"])
    assert points.columns == ("x", "y", "word")
    expected = [[1, 1, 0], [2.5, np.nan, 1], [np.nan, 3, 0], [4, 4, np.nan], [5, 8, 1]]
    np.testing.assert_array_equal(points.X, expected)
    again = read_points(path, recipe=points.recipe, missing=["?", "-999"])
    np.testing.assert_array_equal(again.X, expected)


def test_a_column_of_plain_numbers_may_have_such_values(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,2\n-999,3\n-999.0,n/d\n4,5\n")
    points = read_points(tmp_path / "t.csv", missing=["-999", "n/d"])
    np.testing.assert_array_equal(points.X, [[1, 2], [np.nan, 3], [np.nan, np.nan], [4, 5]])
    assert points.recipe is None


def test_names_that_occur_twice_in_parquet(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    columns = [pa.array([1.0, 2, 3]), pa.array([4.0, 6, 5]), pa.array([7.0, 7, 9])]
    parquet.write_table(pa.table(columns, names=["x", "y", "x"]), tmp_path / "t.parquet")
    points = read_points(tmp_path / "t.parquet")
    assert points.columns == ("x", "y", "x_2")
    assert points.X.tolist() == [[1, 4, 7], [2, 6, 7], [3, 5, 9]]
    assert "2 columns of t.parquet are called 'x': they are read as 'x', 'x_2'" in points.remarks


def test_numbered_names_do_not_hide_others(tmp_path):
    (tmp_path / "t.csv").write_text("x,x_2,x,,column4\n1,2,3,4,8\n5,6,7,9,2\n8,3,6,1,1\n")
    assert read_points(tmp_path / "t.csv").columns == ("x", "x_2", "x_3", "column4_2", "column4")


def test_all_mistakes_of_a_file_of_links_are_told(tmp_path):
    path = tmp_path / "links.csv"
    path.write_text("a,b,kind\n1,2,maybe\n1,2\n,3,must\n1,2,must\n")
    with pytest.raises(BadFile) as caught:
        read_link_lines(path)
    lines = str(caught.value).splitlines()
    assert [line.split(": ")[0].removeprefix(f"{path}, ") for line in lines] == [
        "line 2, column 'kind'", "line 3", "line 4, column 'a'"
    ]  # fmt: skip
    path.write_text("a,b,kind\n" + "".join(f"1,x{i},must\n" for i in range(14)))
    with pytest.raises(BadFile) as caught:
        read_links(path, ["1", "2"])
    lines = str(caught.value).splitlines()
    assert len(lines) == 11
    assert "line 2, column 'b': 'x0' is not among the ids" in lines[0]
    assert lines[-1] == "and 4 more"


@pytest.mark.parametrize("large", [False, True])
def test_a_quote_that_is_never_closed_hides_no_rows(large, tmp_path, monkeypatch):
    if large:
        monkeypatch.setattr(scratch, "IN_MEMORY", 0)
    path = tmp_path / "t.csv"
    path.write_text('id,x,n\n1,2,"5 disk\n3,4,b\n5,6,c\n')
    with pytest.raises(BadFile, match="line 2: a quote is opened and never closed"):
        read_points(path)
    path.write_text('id,x,n\n1,2,"5\ndisk"\n3,4,b\n\n5,6,"say ""so"""\n')  # all of this is sound
    assert read_points(path).X[:, 0].tolist() == [2, 4, 6]
    path.write_text('id,x,n\n1,2,5" disk\n3,4,b\n5,6,c"\n')  # quotes inside values mean nothing
    assert read_points(path).texts["n"].tolist() == ['5" disk', "b", 'c"']


@pytest.mark.parametrize("said", ["A1", "A1:C5", "A1:B31", "A1:XFD1048576"])
def test_a_sheet_that_tells_a_wrong_size_loses_nothing(said, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [("id", "x", "y"), *((f"p{i}", i / 2, i * i) for i in range(30))]:
        book.active.append(row)
    book.save(tmp_path / "right.xlsx")
    path = tmp_path / "wrong.xlsx"
    with zipfile.ZipFile(tmp_path / "right.xlsx") as right, zipfile.ZipFile(path, "w") as wrong:
        for name in right.namelist():
            wrong.writestr(
                name, right.read(name).replace(b'dimension ref="A1:C31"', f'dimension ref="{said}"'.encode())
            )
    points = read_points(path)
    assert points.ids.tolist() == [f"p{i}" for i in range(30)]
    assert points.columns == ("x", "y")


def test_a_cell_at_the_far_end_of_a_sheet_is_a_row_of_its_own(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [("id", "x"), ("a", 1), ("b", 2), ("c", 4)]:
        book.active.append(row)
    book.active.cell(1_048_576, 16_384).number_format = "0.00"  # formatted, but empty: such cells are left behind
    book.save(tmp_path / "t.xlsx")
    assert read_points(tmp_path / "t.xlsx").X[:, 0].tolist() == [1, 2, 4]
