"""Labels are joined to the rows that they are of, or not at all."""

import os

import numpy as np
import pytest
from click.testing import CliRunner

from linkmix.app.cli import main
from linkmix.basics.errors import BadFile
from linkmix.mixture.door import LinkEstimator
from linkmix.tables import read_points, write_joined

ROWS = [f"p{i},{i % 3}.{i}" for i in range(6)]


def write(path, rows):
    path.write_text("\n".join(["id,x", *rows]) + "\n")


@pytest.mark.parametrize(
    ("n_labels", "said"), [(5, "has more rows than there are labels, 5"), (7, "has 6 rows, and there are 7 labels")]
)
def test_each_row_has_one_label(n_labels, said, tmp_path):
    write(tmp_path / "t.csv", ROWS)
    (tmp_path / "joined.csv").write_text("an earlier one\n")
    with pytest.raises(BadFile, match=said):
        write_joined(tmp_path / "joined.csv", tmp_path / "t.csv", np.zeros(n_labels, dtype=np.int64))
    assert (tmp_path / "joined.csv").read_text() == "an earlier one\n"


def test_a_table_that_was_changed_since_it_was_read_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    write(path, ROWS)
    os.utime(path, (1, 1))
    points = read_points(path)
    write_joined(tmp_path / "joined.csv", path, np.arange(6), stamps=points.stamps)
    before = (tmp_path / "joined.csv").read_text()
    write(path, ROWS[::-1])
    with pytest.raises(BadFile, match="was changed after it was read"):
        write_joined(tmp_path / "joined.csv", path, np.arange(6), stamps=points.stamps)
    assert (tmp_path / "joined.csv").read_text() == before


def test_a_table_that_is_sorted_during_a_fit_gets_no_labels(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    write(path, ROWS)
    os.utime(path, (1, 1))
    fit = LinkEstimator.fit

    def sorting(self, *arguments, **options):
        write(path, ROWS[::-1])
        return fit(self, *arguments, **options)

    monkeypatch.setattr(LinkEstimator, "fit", sorting)
    command = ["fit", str(path), "--classes", "2", "--method", "linkmix", "--join", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 2, result.output
    assert "was changed after it was read, so the labels may be of other rows: run it again" in result.output
    assert not list((tmp_path / "out").iterdir())
