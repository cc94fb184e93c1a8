"""`linkmix reproduce`: every run has a row, an interrupted run continues, and the page shows the findings."""

import re
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy.stats import ttest_rel

from linkmix import Links
from linkmix.app.cli import main
from linkmix.study.comparison import Run
from linkmix.study.paper import claims, evidence, protocol, report
from linkmix.study.paper.data import MissingData
from linkmix.study.paper.figures import COVARIANCES

SMALL = ("toy", "two-moons")
KEY = ["experiment", *Run._fields]
SAME = [*KEY, "purity", "ari", "links_satisfied", "purity_predict", "ari_predict"]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Three trials of the experiments that need no data files, run by the command."""
    folder = tmp_path_factory.mktemp("results")
    result = CliRunner().invoke(main, ["reproduce", *SMALL, "--trials", "3", "--jobs", "1", "--out", str(folder)])
    assert result.exit_code == 0, result.output
    return folder, result.output


@pytest.mark.slow
def test_a_trial_of_all_experiments(tmp_path):
    try:
        for name in protocol.PAPER:
            for data in protocol.EXPERIMENTS[name].data:
                protocol.room.load(data)
    except MissingData as error:
        pytest.skip(str(error))
    result = CliRunner().invoke(main, ["reproduce", "--trials", "1", "--jobs", "2", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    table = pd.read_parquet(tmp_path / protocol.TABLE)
    assert set(table["experiment"]) == set(protocol.PAPER)
    assert len(table) == sum(len(list(protocol.EXPERIMENTS[name].runs(1))) for name in protocol.PAPER)
    assert table["error"].isna().all(), table.loc[table["error"].notna(), [*KEY, "error"]].to_string()
    assert table["purity"].between(0, 1).all()
    for name in ("haberman", "thyroid"):  # purity cannot be below the share of the largest class
        floor = protocol.floor(protocol.load(name)[1])
        assert table.loc[table["data"] == name, "purity"].min() >= floor
    for figure in ("toy", "two-moons", "digits", "purity-both", "purity-must", "purity-cannot", "coil20"):
        assert (tmp_path / f"{figure}.png").stat().st_size > 10_000
        assert (tmp_path / f"{figure}.svg").read_text().startswith("<?xml")
        assert (tmp_path / f"{figure}.pdf").read_bytes().startswith(b"%PDF")
    assert len(claims.examine(table)) == len(claims.CLAIMS) + len(claims.OURS)


def test_the_command_says_what_it_found(small):
    folder, output = small
    assert "holds              Toy: without links the mixture takes the other split" in output
    assert f"{folder}/index.html" in output.replace("\n", "")
    assert "0 failed" in output


def test_the_page_links_to_what_is_there(small):
    folder, _ = small

    class Targets(HTMLParser):
        found: list[str]

        def handle_starttag(self, tag, attributes):
            self.found += [value for key, value in attributes if key in ("src", "href")]

    parser = Targets()
    parser.found = []
    parser.feed((folder / "index.html").read_text())
    assert {"toy.png", "toy.svg", "two-moons.png", "runs.parquet"} <= set(parser.found)
    for target in parser.found:
        assert (folder / target).exists(), target
    assert not list(folder.glob(".*"))  # nothing half-written


def test_methods_without_links_run_once_a_trial(small):
    table = pd.read_parquet(small[0] / protocol.TABLE)
    without = table[table["method"] == "gmm"]
    assert (without["n_links"] == 0).all()
    assert without.groupby(["experiment", "data"]).size().eq(3).all()
    assert not table.duplicated(KEY).any()


@pytest.mark.slow
def test_a_killed_run_ends_as_an_unbroken_one(small, tmp_path):
    unbroken = pd.read_parquet(small[0] / protocol.TABLE)
    script = (
        "from pathlib import Path\nfrom linkmix.study.paper import protocol\n"
        f"protocol.run({SMALL!r}, Path({str(tmp_path)!r}), trials=3, n_jobs=2, progress=False)"
    )
    journal = tmp_path / protocol.JOURNAL
    for n_runs in (5, 20):  # killed twice
        process = subprocess.Popen([sys.executable, "-c", script])
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not (journal.exists() and journal.read_text().count("\n") >= n_runs):
            time.sleep(0.01)
        process.kill()
        process.wait()
        assert not (tmp_path / protocol.TABLE).exists()
    done = journal.read_text().count("\n")
    assert 20 <= done < len(unbroken)
    resumed = protocol.run(SMALL, tmp_path, trials=3, progress=False)
    pd.testing.assert_frame_equal(resumed[SAME], unbroken[SAME])
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / protocol.TABLE)[SAME], unbroken[SAME])


def test_more_trials_add_to_those_that_are_there(small):
    folder, _ = small
    before = (folder / protocol.JOURNAL).read_text()
    table = protocol.run(["two-moons"], folder, trials=4, progress=False)
    after = (folder / protocol.JOURNAL).read_text()
    assert after.startswith(before)
    assert after.count("\n") - before.count("\n") == len(list(protocol.EXPERIMENTS["two-moons"].runs(1)))
    assert set(table["seed"]) == {0, 1, 2, 3}


@pytest.mark.parametrize("name", list(protocol.EXPERIMENTS))
def test_no_run_is_doubled(name):
    runs = list(protocol.EXPERIMENTS[name].runs(2))
    assert len(set(runs)) == len(runs)
    assert [run.seed for run in runs] == sorted(run.seed for run in runs)


def test_a_grid_may_end_after_some_trials():
    grid = protocol.Grid(("toy",), ("paper",), (2,), "must", most_trials=2)
    assert [len([*grid.runs(seed)]) for seed in range(4)] == [1, 1, 0, 0]
    last = {run.method for run in protocol.EXPERIMENTS["coil20"].runs(protocol.FEW_TRIALS + 1) if run.seed == 40}
    assert last == {"paper-3", "sskk", "csc"}
    assert protocol.FEW_TRIALS >= evidence.ENOUGH_TRIALS


def test_an_unknown_name_is_refused():
    result = CliRunner().invoke(main, ["reproduce", "moons"])
    assert result.exit_code == 2
    assert "experiment 'moons' is not known: choose from toy, two-moons" in result.output


def test_missing_data_say_how_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("LINKMIX_DATA", str(tmp_path))
    monkeypatch.setenv("LINKMIX_CACHE", str(tmp_path))
    monkeypatch.setattr("linkmix.study.paper.data.finding.urlopen", _no_network)
    protocol.load.cache_clear()  # another test may have loaded it
    result = CliRunner().invoke(main, ["reproduce", "coil20", "--trials", "1", "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "coil20-10 could not be downloaded" in result.output
    assert "coil20.npz" in result.output
    assert not (tmp_path / "out").exists()


def _no_network(*_, **__):
    raise OSError("no network")


def test_failures_are_on_the_page(tmp_path):
    rows = [("toy", "toy", "paper", "even", 4, s, 0.9, 0.5, 1.0, 0.9, 0.5, 0.1, 1.0, None) for s in range(3)]
    table = pd.DataFrame(rows, columns=[*KEY, *protocol_scores()])
    table.loc[1, protocol_scores()[:-1]] = np.nan
    table.loc[1, "error"] = "ValueError: <b>broken</b>"
    page = report.write(table, tmp_path, "linkmix reproduce toy > 'a & b'").read_text()
    assert "<h2>1 failed run</h2>" in page
    assert "&lt;b&gt;broken&lt;/b&gt;" in page
    assert "toy &gt; &#39;a &amp; b&#39;" in page


def test_the_page_compares_methods_with_few_links(tmp_path):
    rows = [
        ("fewest-links", "iris", method, "both", n, s, 0.9, 0.5, 1.0, 0.9, ari, 0.1, 1.0, None)
        for method, ari in (("auto", 0.7), ("paper", 0.8), ("sskk", 0.6))
        for n in (5, 10)
        for s in range(2)
    ]
    page = report.write(pd.DataFrame(rows, columns=[*KEY, *protocol_scores()]), tmp_path, "linkmix reproduce")
    shown = re.sub("</?bdi>", "", page.read_text())
    assert "Behind by more than 0.02 ARI in 2 of 2 cells." in shown
    assert "<td>iris</td><td>5</td><td>0.7</td><td>0.8</td><td>paper</td><td>True</td>" in shown
    assert "<h2>Mean ARI of predict</h2>" in shown
    assert (tmp_path / report.SUMMARY).exists()


def protocol_scores():
    return ["purity", "ari", "links_satisfied", "purity_predict", "ari_predict", "seconds", "peak_mb", "error"]


def frame(methods, n_trials=40):
    """A table of purity-against-links runs: for each method its purity without noise, by kind."""
    rows = [
        (data, data, method, kind, 0 if method == "gmm" else n, s, p, np.nan)
        for data in evidence.PURITY_SETS
        for kind in ("both", "must", "cannot")
        for method, p in methods.items()
        for n in (16, 64)
        for s in range(n_trials)
    ]
    table = pd.DataFrame(rows, columns=["experiment", *Run._fields, "purity", "purity_predict"])
    noise = np.random.default_rng(0).normal(0, 0.01, len(table))
    return table.assign(purity=table["purity"] + noise)


RIVALS = {"gmm": 0.5, "paper": 0.8, "spectral": 0.5, "sskk": 0.5, "csc": 0.5, "em-pc": 0.7}
AHEAD = "GM-PR is clearly ahead of GMM-EC with any number of links on all data."
NOT_WORSE = "GM-PR is at least as good as GMM-EC with must-links alone."


def verdicts(table):
    return {claim.text: finding.verdict for claim, finding in claims.examine(table)}


@pytest.mark.parametrize(
    ("other", "ahead", "not_worse"),
    [
        (0.6, "holds", "holds"),
        (0.9, "does not hold", "does not hold"),
        (0.8, "undecided", "holds"),  # the interval is within the margin: as good, and not ahead
        (0.808, "does not hold", "undecided"),
    ],
)
def test_verdicts_rest_on_intervals(other, ahead, not_worse):
    found = verdicts(frame(RIVALS | {"gmm-ec-chunklets": other}))
    assert found[AHEAD] == ahead
    assert found[NOT_WORSE] == not_worse
    assert found["GM-PR is at least as good as EM-PC with cannot-links alone."] == "holds"
    assert not [text for text in found if text.startswith("Toy")]  # no run of it, no finding


@pytest.mark.parametrize(
    ("shown", "against", "unclear", "verdict"),
    [
        (22, 0, 0, "holds"),
        (17, 3, 2, "holds in part"),
        (0, 7, 15, "does not hold"),  # seven of 22 intervals are not on the other side by chance
        (1, 1, 4, "undecided"),  # one of six may be: with a probability of 1 - .975^6 = .14
        (0, 2, 4, "does not hold"),
        (11, 0, 11, "undecided"),
        (1, 1, 0, "does not hold"),
    ],
)
def test_contrary_cells_refute_a_claim_about_all_unless_chance_explains_them(shown, against, unclear, verdict):
    assert evidence.Tally(shown, against, unclear, 100).verdict == verdict


def test_few_trials_give_no_verdict():
    found = verdicts(frame(RIVALS | {"gmm-ec-chunklets": 0.6}, n_trials=29))
    assert {*found.values()} == {"not enough trials", "cannot be tested"}


@pytest.mark.parametrize("n_trials", [1, 4])
def test_differences_are_paired_by_hand(n_trials):
    table = frame({"gmm": 0.5, "paper": 0.8}, n_trials)
    cell = evidence.differences(table, "paper", "gmm").loc[("thyroid", 16)]
    rows = table[(table["kind"] == "both") & (table["data"] == "thyroid")]
    paper = rows[(rows["method"] == "paper") & (rows["n_links"] == 16)].set_index("seed")["purity"]
    gmm = rows[rows["method"] == "gmm"].drop_duplicates("seed").set_index("seed")["purity"]
    by_hand = paper - gmm
    assert cell["mean"] == pytest.approx(by_hand.mean())
    if n_trials == 1:
        assert (cell["low"], cell["high"]) == (-np.inf, np.inf)
    else:
        known = ttest_rel(paper, gmm).confidence_interval(evidence.CONFIDENCE)
        assert (cell["low"], cell["high"]) == pytest.approx((known.low, known.high))


def test_the_hypothesis_is_tested_on_the_same_pairs():
    table = frame({"paper": 0.8, "gmm-ec-must": 0.7, "gmm-ec-chunklets": 0.8})
    table = table.assign(experiment="why-ahead")[table["kind"] == "both"]
    ((claim, finding),) = [pair for pair in claims.examine(table) if pair[0].name == "why-ahead"]
    assert finding.verdict == "holds"
    assert claim.text.startswith("Our hypothesis: ")
    assert "ahead in 8 of 8 cells" in finding.figure
    method = protocol.METHODS_AND_VARIANTS["gmm-ec-must"]
    used = method.usable(Links(must=[(0, 1)], cannot=[(0, 99)]))
    assert (used.n_must, used.n_cannot) == (1, 0)


@pytest.mark.parametrize(("number", "verdict"), [("3", "holds"), ("1", "does not hold")])
def test_the_number_that_cross_validation_chooses_is_counted(number, verdict):
    rows = [
        ("coil20", data, method, kind, 1000, seed, 0.5, np.nan, chosen)
        for data in protocol.COIL
        for kind in ("cannot", "both")
        for method in ("paper-cv", "sskk", "csc", *COVARIANCES)
        for seed in range(40)
        for chosen in [f"links 2, likelihood 1, rule {number}" if method == "paper-cv" else None]
    ]
    columns = ["experiment", *Run._fields, "purity", "purity_predict", "chosen"]
    found = {claim.name: finding for claim, finding in claims.examine(pd.DataFrame(rows, columns=columns))}
    assert found["coil-choice"].verdict == verdict
    assert "by links: K = 1 0, K = 2 240, K = 3 0, K = 4 0" in found["coil-choice"].figure
    assert found["coil-covariances"].figure.count("ahead in 0 of 3") == 4


def test_the_page_says_first_how_many_trials_it_rests_on(small):
    folder, _ = small
    page = (folder / "index.html").read_text()
    lead = "Rests on 3 trials of each experiment."
    assert lead in page
    assert page.index(lead) < page.index("<h2>Claims</h2>")
    assert "Verdicts on what varies over trials need\n30 of them." in page


def test_tables_are_those_of_the_runs(small):
    folder, _ = small
    text = (folder / report.TABLES).read_text()
    table = pd.read_parquet(folder / protocol.TABLE)
    table = table[table["seed"] < 3]  # another test may have added a trial
    some = table[(table["data"] == "two-moons") & (table["method"] == "paper-2") & (table["n_links"] == 16)]
    values = some["purity_predict"]
    assert f"{values.mean():.3f} ± {values.std():.3f}".replace("0.", ".") in text
    assert text.startswith("`linkmix reproduce toy two-moons --trials 3`: 3 trials of each experiment, seeds 0 to 2; ")
    assert "| Toy: so few links are enough whatever the start and the links. | **not enough trials** |" in text


def test_samples_are_the_same_each_time():
    X, y = protocol.load("wine@50")
    assert X.shape == (50, 13)
    assert np.array_equal(y, protocol.load("wine@50")[1])
    assert 0.9 < protocol.ceiling(*protocol.load("wine")) <= 1


def test_the_docs_name_every_experiment():
    text = (Path(__file__).parents[2] / "docs" / "reproduction.md").read_text()
    for name in protocol.EXPERIMENTS:
        assert f"`{name}`" in text


def test_the_docs_have_a_place_for_every_claim_and_no_other():
    text = (Path(__file__).parents[2] / "docs" / "reproduction.md").read_text()
    marks = re.findall(r"<!-- claim: ([\w-]+) -->", text)
    assert sorted(marks) == sorted(claim.name for claim in (*claims.CLAIMS, *claims.OURS))
    assert text.count("<!-- rests on -->") == 1
