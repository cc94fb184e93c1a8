"""Points of no class on the labelling page: in the journal, in the model, in a file for fit."""

import pandas as pd
import pytest
from click.testing import CliRunner
from test_label_page import after, message, page_of, rows_of, view

from label_serving import Serving, write_points
from linkmix.app.cli import main
from linkmix.app.label.requests import NotPossible
from linkmix.app.label.session import Session
from linkmix.basics.errors import BadFile
from linkmix.tables import read_ids, read_points


@pytest.fixture
def points_file(tmp_path):
    return write_points(tmp_path / "points.csv")


def opened(points_file, noise=True):
    return Session(read_points(points_file), 3, points_file.with_name("links.csv"), points_file.parent, noise=noise)


def entry(key, what, *rows, **more):
    return {"entry": what, "key": key, "rows": list(rows), **more}


def test_what_is_said_reaches_the_model_and_a_file(points_file):
    with opened(points_file) as session:
        session.write(entry("k1", "answer", 0, 1, said="same"))
        session.write(entry("k2", "nowhere", 0, 25, annotator="ida"))
        session.write(entry("k3", "nowhere", 50))
        session.write({"entry": "undo", "key": "k4"})
        session.background.wait()
        assert session.labels()[[0, 1, 25]].tolist() == [-1, -1, -1]
        assert session.labels()[50] >= 0
        status = session.status()
        assert [(one["ids"], one["annotator"]) for one in status["nowhere"]] == [(["p25"], "ida"), (["p0"], "ida")]
        assert (status["n_nowhere"], sum(status["sizes"]) + status["n_noise"]) == (2, 60)
        with pytest.raises(NotPossible, match="p25 was said to belong to no class: remove that first"):
            session.write(entry("k5", "answer", 25, 26, said="same"))
        with pytest.raises(NotPossible, match="that was said before"):
            session.write(entry("k6", "nowhere", 25))
    noise = points_file.with_name("links-noise.csv")
    assert noise.read_text() == "id\np0\np25\n"
    with opened(points_file) as session:  # the journal holds it
        assert [one["ids"] for one in session.status()["nowhere"]] == [["p25"], ["p0"]]
        session.write(entry("k7", "remove", 25))
        with pytest.raises(NotPossible, match="nobody says any more"):
            session.write(entry("k8", "remove", 25))
        session.write(entry("k9", "answer", 25, 26, said="same"))
    assert noise.read_text() == "id\np0\n"


def test_a_class_keeps_its_name_though_the_model_takes_its_face_for_noise(points_file):
    with points_file.open("a") as file:
        file.write("far,90,-90\n")
    with opened(points_file) as session:
        session.background.wait()
        assert session.labels()[60] == -1
        session.write(entry("k1", "answer", 60, 0, said="same"))
        session.background.wait()
        assert session.labels()[60] == session.labels()[0] >= 0
        session.write(entry("k2", "name", 60, name="first"))
        session.write(entry("k3", "remove", 60, 0))
        session.background.wait()
        assert session.labels()[60] >= 0
        assert "first" in session.status()["names"].values()
        with pytest.raises(NotPossible, match="far stands for the class 'first': remove that name first"):
            session.write(entry("k4", "nowhere", 60))
        session.finish("done")
    written = pd.read_csv(points_file.with_name("linkmix-out") / "labels.csv").set_index("id")["label"]
    assert written["far"] == "first"


def test_without_noise_every_point_has_a_class(points_file):
    with (
        opened(points_file, noise=False) as session,
        pytest.raises(NotPossible, match="start the server with linkmix label --noise"),
    ):
        session.write(entry("k1", "nowhere", 0))
    with opened(points_file) as session:
        session.write(entry("k2", "nowhere", 0))
    with pytest.raises(BadFile, match="says that 'p0' belongs to no class: start with --noise"):
        opened(points_file, noise=False)


def test_a_check_is_about_pairs(points_file):
    with opened(points_file) as session:
        session.write({"entry": "audit", "key": "k1"})
        with pytest.raises(NotPossible, match="a check is under way"):
            session.write(entry("k2", "nowhere", 0))


def test_fit_knows_what_was_said(points_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "noise.csv").write_text("id\np3\np44\n")
    told = ["fit", "points.csv", "--classes", "3", "--noise", "--known-noise", "noise.csv"]
    result = CliRunner().invoke(main, told)
    assert result.exit_code == 0, result.output
    labels = pd.read_csv("linkmix-out/labels.csv", index_col="id")["label"]
    assert labels[["p3", "p44"]].tolist() == [-1, -1]
    (tmp_path / "noise.csv").write_text("p3\np99\n")
    refused = CliRunner().invoke(main, told)
    assert "line 2: 'p99' is not among the ids of the points" in refused.output
    refused = CliRunner().invoke(main, [part for part in told if part != "--noise"])
    assert "--known-noise has no effect without --noise: add --noise" in refused.output
    (tmp_path / "noise.csv").write_text("when,id\nnow,p3\n\n")
    assert read_ids(tmp_path / "noise.csv", ["p1", "p3"]).tolist() == [1]


def test_labels_with_points_of_no_class_can_be_checked_and_finished(points_file):
    with opened(points_file) as session:
        session.write(entry("k1", "nowhere", 5))
        session.write(entry("k2", "answer", 0, 20, said="different"))
        session.background.wait()
        assert session.labels()[5] == -1
        session.write({"entry": "audit", "key": "audit"})
        while session.said.audit is not None:
            question = session.question("page")
            a, b = question["a"]["row"], question["b"]["row"]
            assert 5 not in (a, b)
            said = "same" if a // 20 == b // 20 else "different"
            session.write(entry(f"{a} {b}", "answer", a, b, said=said, page="page"))
        session.write(entry("n", "name", 0, name="first"))
        done = session.finish("f")
        assert done["sentences"][1].startswith("About 9")
        assert "--noise --known-noise" in done["command"]
        with pytest.raises(NotPossible, match="p5 was said to belong to no class"):
            session.write(entry("m", "name", 5, name="five"))
        before = session.labels().copy()
    folder = points_file.with_name("linkmix-out")
    assert (folder / "noise.csv").read_text().split() == ["id", "p5"]
    labels = pd.read_csv(folder / "labels.csv", index_col="id")["label"].astype(str)
    assert (labels["p5"], labels["p0"]) == ("-1", "first")
    with opened(points_file) as session:
        session.background.wait()
        assert (session.labels() == before).all()


def test_neither_on_the_page(browser, tmp_path):
    with Serving(write_points(tmp_path / "points.csv"), noise=True) as serving:
        with page_of(browser, serving.url) as page:
            first = after(page, lambda: page.keyboard.press("n"))
            message(page, "Saved: 2 points have no class.")
            view(page, "review")
            page.wait_for_selector('#nowhere-title:text-is("No class (2)")')
            second = after(page, lambda: page.click("text=A: no class"))
            message(page, "Saved: no class.")
            page.wait_for_selector('#nowhere-title:text-is("No class (3)")')
            gone = {*first.split(), second.split()[0]}
            assert not gone & set(rows_of(page).split())
            view(page, "map")
            page.wait_for_selector('#legend li:has-text("no class")')
            view(page, "review")
            page.click(f'[aria-label="Remove that p{second.split()[0]} has no class"]')
            page.wait_for_selector('#nowhere-title:text-is("No class (2)")')
            page.keyboard.press("z")
            page.wait_for_selector('#nowhere-title:text-is("No class (3)")')
            view(page, "progress")
            assert "Said to have no class\n3" in page.inner_text("#counts")
        said = [(one["entry"], one.get("ids")) for one in serving.entries() if one["entry"] == "nowhere"]
        assert said == [("nowhere", [f"p{row}" for row in first.split()]), ("nowhere", [f"p{second.split()[0]}"])]


def test_without_noise_the_page_does_not_offer_it(browser, tmp_path):
    with Serving(write_points(tmp_path / "points.csv")) as serving, page_of(browser, serving.url) as page:
        assert not page.locator("text=Neither has a class").is_visible()
        before = rows_of(page)
        page.keyboard.press("n")
        after(page, lambda: page.keyboard.press("s"))
        assert [one["ids"] for one in serving.entries() if "key" in one] == [[f"p{row}" for row in before.split()]]
