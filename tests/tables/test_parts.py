"""Many files as one table: what one file with all rows would give, and errors that name the file."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from linkmix import Links
from linkmix.app.cli import main
from linkmix.basics.errors import BadFile
from linkmix.data import rows as data_rows
from linkmix.data import scratch
from linkmix.tables import column_names, read_points, write_links


def table(n=900, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(2, size=n)
    frame = pd.DataFrame(random.normal(size=(n, 3)) + 5 * y[:, None], columns=list("abc"))
    frame = frame.mask(random.uniform(size=frame.shape) < 0.05)
    frame.insert(0, "id", [f"r{row:04}" for row in range(n)])
    frame["note"] = np.where(y == 0, "zero", "one, or more")
    return frame, y


def write(frame, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three parts, one of them with its columns in another order, written in another order than that of their names."""
    monkeypatch.chdir(tmp_path)
    frame, _ = table()
    for ending in ("csv", "parquet"):
        write(frame, tmp_path / f"whole.{ending}")
        write(frame[500:], tmp_path / ending / "part-2" / f"z.{ending}")
        write(frame[:200], tmp_path / ending / f"part-0.{ending}")
        write(frame[200:500][["c", "note", "a", "id", "b"]], tmp_path / ending / f"part-1.{ending}")
        (tmp_path / ending / "_SUCCESS").touch()
        (tmp_path / ending / f".part-9.{ending}").write_text("not a part")
    return tmp_path


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("how", ["{0}", "{0}/**/*.{0}"])
def test_parts_are_one_table(folder, monkeypatch, ending, how, large):
    expected = read_points(f"whole.{ending}")
    if large:
        monkeypatch.setattr(scratch, "IN_MEMORY", 0)
        monkeypatch.setattr(data_rows, "PORTION_NUMBERS", 200)
    found = read_points(how.format(ending))
    assert found.ids.tolist() == expected.ids.tolist()
    assert found.columns == expected.columns == ("a", "b", "c", "note")
    assert found.recipe.level_names == expected.recipe.level_names == {"note": ("one, or more", "zero")}
    np.testing.assert_array_equal(found.X, expected.X)
    assert found.texts["note"].tolist() == expected.texts["note"].tolist()
    assert [file.name for file in found.files] == [f"part-0.{ending}", f"part-1.{ending}", f"z.{ending}"]
    np.testing.assert_allclose(found.summary.spread, expected.summary.spread, rtol=1e-12)
    assert column_names(ending) == ["id", "a", "b", "c", "note"]
    assert not expected.files


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_what_is_wrong_with_a_part_names_its_file(folder, ending):
    def part(number):
        return folder / ending / f"part-{number}.{ending}"

    frame, _ = table()
    write(frame[500:].rename(columns={"b": "B"}), part(3))
    with pytest.raises(
        BadFile, match=rf"part-3.{ending}: has no column 'b', which .*part-0.{ending} has and has column 'B'"
    ):
        read_points(ending)
    double = frame[500:].assign(id=["x", "r0250", *frame["id"][502:] + "x"])
    write(double, part(3))
    also = "line 52 of .*part-1.csv" if ending == "csv" else ".*part-1.parquet"
    line = ", line 3" if ending == "csv" else ""
    with pytest.raises(BadFile, match=rf"part-3.{ending}{line}, column 'id': id 'r0250' is also on {also}"):
        read_points(ending)
    double["id"] = double["id"].replace("r0250", "")
    write(double, part(3))
    with pytest.raises(BadFile, match=rf"part-3.{ending}{line}, column 'id': the id is empty"):
        read_points(ending)
    double = double.assign(id=frame["id"][500:] + "x", b=np.where(np.arange(400) == 2, np.inf, 1.0))
    write(double, part(3))
    with pytest.raises(BadFile, match=rf"part-3.{ending}.*, column 'b': inf is not a finite number"):
        read_points(ending)
    write(double.assign(b="low"), part(3))
    problem = (
        "line 2, column 'b': 'low' is not a number"
        if ending == "csv"
        else "column 'b': holds no numbers, as it does in .*part-0"
    )
    for columns in (None, ["a", "b"]):
        with pytest.raises(BadFile, match=rf"part-3.{ending}, {problem}"):
            read_points(ending, columns=columns)
    assert read_points(ending, columns=["a", "c"]).X.shape == (1300, 2)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_column_may_be_empty_in_some_parts(folder, ending):
    frame, _ = table()
    more = frame[:3].assign(id=["x", "y", "z"], a=None, note=None)
    write(more, folder / ending / f"part-3.{ending}")
    found = read_points(ending)
    assert found.columns == ("a", "b", "c", "note")
    assert np.isnan(found.X[900:903, 3]).all()
    assert np.isnan(found.X[900:903, 0]).all()
    assert found.texts["note"][900:903].tolist() == ["", "", ""]


def test_numbers_that_only_one_part_writes_with_a_sign(folder):
    frame, _ = table()
    write(frame[:3].assign(id=["x", "y", "z"], a=["+5", "+6", "-7"]), folder / "csv" / "part-3.csv")
    assert read_points("csv").X[900:903, 0].tolist() == [5.0, 6.0, -7.0]


def test_folders_and_patterns_without_a_table(folder):
    (folder / "empty").mkdir()
    with pytest.raises(BadFile, match=r"is a folder without files \*\.parquet"):
        read_points("empty")
    with pytest.raises(BadFile, match="no file matches this pattern"):
        read_points("empty/*.csv")
    with pytest.raises(BadFile, match=r"files of several kinds \(\.csv, \.parquet\): choose some by a pattern"):
        read_points(folder)
    with pytest.raises(BadFile, match="is not the same kind of file as"):
        read_points("whole*")
    odd = folder / "odd[1].csv"
    odd.write_text("a,b\n1,2\n3,4\n")
    assert read_points(odd).X.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert read_points("odd*.csv").files == ()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_commands_read_parts(folder, ending):
    frame, y = table()
    write_links("links.csv", Links.from_labels(y, 20, random_state=0), frame["id"].tolist())
    settings = ["--links", "links.csv", "--classes", "2", "--method", "linkmix", "--out"]
    one = CliRunner().invoke(main, ["fit", f"whole.{ending}", *settings, "one"])
    many = CliRunner().invoke(main, ["fit", f"{ending}/**/*.{ending}", *settings, "many"])
    assert many.exit_code == 0, many.output
    said = f"Note: 3 files are one table, in the order of their names: from part-0.{ending} to z.{ending}."
    assert said in many.output
    assert said not in one.output
    assert (folder / "many" / "labels.csv").read_text() == (folder / "one" / "labels.csv").read_text()
    predicted = CliRunner().invoke(main, ["predict", "many/model.linkmix", ending])
    assert predicted.exit_code == 0, predicted.output
    assert predicted.output.startswith("900 points labelled")
    asked = CliRunner().invoke(main, ["label", ending, "--classes", "2"])
    assert asked.exit_code == 2
    assert "--links is missing" in asked.output
