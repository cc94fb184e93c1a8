"""Comparisons: every run has a row, runs are reproducible, and an interrupted comparison continues where it stopped."""

import json
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score

from linkmix import Links, compare, links_satisfied, purity
from linkmix.rivals import GMPR

IRIS = {"iris": load_iris(return_X_y=True)}
SCORES = ["purity", "ari", "links_satisfied", "purity_predict", "ari_predict"]


def scores(table):
    return table.sort_values(["data", "method", "n_links", "seed"])[SCORES].reset_index(drop=True)


def test_a_run_is_scored_by_hand():
    X, y = IRIS["iris"]
    row = compare(IRIS, ["paper"], n_links=[25], seeds=[3], progress=False).iloc[0]
    links = Links.from_labels(y, 25, random_state=3)
    model = GMPR(3, random_state=3).fit(X, links=links)
    assert row["purity"] == purity(y, model.labels_)
    assert row["ari_predict"] == adjusted_rand_score(y, model.predict(X))
    assert row["links_satisfied"] == links_satisfied(model.labels_, links) == 1.0
    assert row["seconds"] > 0


def test_every_run_has_its_row_and_processes_do_not_matter():
    one, two = (
        compare(IRIS, ["gmm", "em-pc"], n_links=[0, 30], seeds=range(2), n_jobs=n_jobs, progress=False)
        for n_jobs in (1, 2)
    )
    assert len(one) == 8
    assert one[["method", "n_links", "seed"]].drop_duplicates().shape == (8, 3)
    pd.testing.assert_frame_equal(scores(one), scores(two))


def test_a_failure_is_a_row_with_the_reason():
    X, y = IRIS["iris"]
    table = compare({"holes": (np.where(X > 7, np.inf, X), y)}, ["gmm"], n_links=[0], seeds=[0], progress=False)
    assert "infinity" in table.loc[0, "error"]
    small = compare({"small": (X[::30], y[::30])}, ["gmm"], n_links=[50], seeds=[0], progress=False)
    assert small.loc[0, "error"].startswith("ValueError: n_links is 50, but the 5 labelled rows make 10 pairs")
    assert list(small.columns) == list(table.columns)


def test_other_data_under_the_same_name_are_other_runs(tmp_path):
    X, y = IRIS["iris"]
    journal = tmp_path / "runs.jsonl"
    arguments = {"n_links": np.array([0]), "seeds": np.arange(1), "journal": journal, "progress": False}
    whole = compare(IRIS, ["gmm"], **arguments)
    part = compare({"iris": (X[:100], y[:100])}, ["gmm"], **arguments)
    assert whole.loc[0, "purity"] != part.loc[0, "purity"]
    with pytest.raises(ValueError, match="150 points and 149 labels"):
        compare({"iris": (X, y[1:])}, ["gmm"])
    with pytest.raises(ValueError, match="folder that does not exist"):
        compare(IRIS, ["gmm"], journal=tmp_path / "no" / "runs.jsonl")


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match="method 'magic' is not known: choose from auto, auto-5, linkmix, paper"):
        compare(IRIS, ["magic"])


def test_a_journal_goes_on_where_it_was(tmp_path):
    journal = tmp_path / "runs.jsonl"
    whole = compare(IRIS, ["gmm", "paper"], n_links=[0, 20], seeds=range(3), progress=False)
    compare(IRIS, ["gmm", "paper"], n_links=[0, 20], seeds=range(2), journal=journal, progress=False)
    lines = journal.read_text().splitlines()
    assert len(lines) == 8
    marked = json.loads(lines[0]) | {"purity": 0.123}  # a run that is there is not made again
    journal.write_text("\n".join([json.dumps(marked), *lines[1:7], lines[7][:20]]))  # the last line was cut off
    table = compare(IRIS, ["gmm", "paper"], n_links=[0, 20], seeds=range(3), journal=journal, progress=False)
    assert (table["purity"] == 0.123).sum() == 1
    table.loc[table["purity"] == 0.123, "purity"] = whole.loc[table["purity"] == 0.123, "purity"]
    pd.testing.assert_frame_equal(scores(table), scores(whole))
    written = journal.read_text()
    assert written.count("\n") == 13  # twelve runs and the line that was cut off
    again = compare(IRIS, ["gmm", "paper"], n_links=[0, 20], seeds=range(3), journal=journal, progress=False)
    assert len(again) == 12
    assert journal.read_text() == written


def test_a_killed_comparison_loses_nothing(tmp_path):
    journal = tmp_path / "runs.jsonl"
    script = (
        "from sklearn.datasets import load_iris\nfrom linkmix import compare\n"
        f"compare({{'iris': load_iris(return_X_y=True)}}, ['gmm', 'paper'], n_links=[0, 20], seeds=range(30), "
        f"journal={str(journal)!r}, progress=False)"
    )
    process = subprocess.Popen([sys.executable, "-c", script])
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (journal.exists() and journal.read_text().count("\n") >= 5):
        time.sleep(0.02)
    process.kill()
    process.wait()
    n_done = journal.read_text().count("\n")
    assert 5 <= n_done < 120
    table = compare(IRIS, ["gmm", "paper"], n_links=[0, 20], seeds=range(30), journal=journal, progress=False)
    assert len(table) == 120
    unbroken = compare(IRIS, ["paper"], n_links=[20], seeds=range(30), progress=False)
    chosen = table[(table["method"] == "paper") & (table["n_links"] == 20)]
    pd.testing.assert_frame_equal(scores(chosen), scores(unbroken))
