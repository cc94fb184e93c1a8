"""Finish: what is written is what the page shows, all of it or nothing, also after a crash."""

import csv
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request

import numpy as np
import pytest
from benchmarks import label_server
from click.testing import CliRunner

from label_serving import IDS, write_points
from linkmix.app import results
from linkmix.app.cli import main
from linkmix.app.label.requests import NotPossible
from linkmix.app.label.session import Session
from linkmix.app.results import Origin
from linkmix.search import AutoLinkMixture
from linkmix.tables import read_links, read_points

CLASS = np.repeat([0, 1, 2], 20)
FILES = {"labels.csv", "model.linkmix", "report.html", "links.csv"}


@pytest.fixture
def points_file(tmp_path):
    return write_points(tmp_path / "points.csv")


def opened(points_file, n_classes=3, **options):
    origin = Origin(points_file, points_file.with_name("links.csv"), typed="linkmix label points.csv")
    names = read_points(points_file), n_classes, points_file.with_name("links.csv"), points_file.parent
    return Session(*names, origin=origin, out=points_file.with_name("out"), **options)


def say(session, key, a, b):
    said = "same" if CLASS[a] == CLASS[b] else "different"
    session.write({"entry": "answer", "key": key, "rows": [a, b], "said": said, "page": "page"})


def name(session, row, text):
    session.write({"entry": "name", "key": f"name {row} {text}", "rows": [row], "name": text})


def written_labels(folder):
    with (folder / "labels.csv").open(newline="") as file:
        return {line["id"]: line["label"] for line in csv.DictReader(file)}


def shown_labels(session):
    names = session.status()["names"]
    labels = session.labels().tolist()
    every = results.every_name({int(m): text for m, text in names.items()}, session.shown.n_classes)
    return {one: every[m] if names else str(m) for one, m in zip(IDS, labels, strict=True)}


def answer_some(session, n=30):
    for i in range(n):
        question = session.question("page")
        say(session, f"k{i}", question["a"]["row"], question["b"]["row"])


def test_it_writes_what_the_page_shows(points_file):
    folder = points_file.with_name("out")
    with opened(points_file) as session:
        answer_some(session)
        done = session.finish("f1")
        assert {path.name for path in folder.iterdir()} == FILES
        assert sorted(done["files"]) == sorted(str(folder / file) for file in FILES)
        assert written_labels(folder) == shown_labels(session)
        model = AutoLinkMixture.load(folder / "model.linkmix")
        assert model.labels_.tolist() == session.labels().tolist()
        links = read_links(folder / "links.csv", IDS)
        assert (links.n_must, links.n_cannot) == tuple(session.view.n_links.values())
        assert session.status()["finished"] == done
        assert session.finish("f1") is session.record.finished  # the same key: nothing is written again
        assert not (folder / "earlier-1").exists()


def test_names_are_in_labels_model_and_report(points_file):
    folder = points_file.with_name("out")
    with opened(points_file) as session:
        answer_some(session, 12)
        session.background.wait()
        name(session, 0, "small")
        name(session, 45, "large, loud")
        session.finish("f1")
        found = written_labels(folder)
        assert found == shown_labels(session)
        assert (found[IDS[0]], found[IDS[45]]) == ("small", "large, loud")
    saved = AutoLinkMixture.load(folder / "model.linkmix")
    assert {"small", "large, loud"} < set(saved.classes_)
    assert saved.predict(read_points(points_file).X[[0, 45]]).tolist() == ["small", "large, loud"]
    header = (folder / "labels.csv").read_text().splitlines()[0]
    assert "probability_small" in header
    assert '"probability_large, loud"' in header
    report = (folder / "report.html").read_text()
    assert report.count("large, loud") >= 2
    with opened(points_file) as session:  # the names are there again
        assert set(session.status()["names"].values()) == {"small", "large, loud"}


def test_it_waits_for_a_model_that_knows_all_answers(points_file):
    with opened(points_file) as session:
        for i in range(20):
            say(session, f"k{i}", i, 20 + i)
        session.finish("f1")
        links = read_links(points_file.with_name("out") / "links.csv", IDS)
        assert links.n_cannot == 20


def test_without_a_check_it_says_that_nothing_is_known_and_how_to_know(points_file):
    with opened(points_file) as session:
        answer_some(session, 25)
        done = session.finish("f1")
        assert any(
            "nothing can be said about how good this is" in text and "Certify" in text for text in done["sentences"]
        )


def test_after_a_check_it_says_how_good_it_is(points_file):
    with opened(points_file, n_audit=8) as session:
        answer_some(session, 12)
        session.background.wait()
        session.write({"entry": "audit", "key": "audit"})
        with pytest.raises(NotPossible, match="a check is under way"):
            session.finish("f0")
        for i in range(8):
            question = session.question("page")
            say(session, f"a{i}", question["a"]["row"], question["b"]["row"])
        done = session.finish("f1")
        assert done["sentences"][1].startswith("About 9")
        assert not any("came after that check" in text for text in done["sentences"])
        [audit] = session.status()["audits"]
        assert (audit["answers"], audit["n"]) == (12, 8)
        assert audit["low"] < audit["right"] <= audit["high"]
        model = AutoLinkMixture.load(points_file.with_name("out") / "model.linkmix")
        assert str(model.quality_) == done["sentences"][1]
        say(session, "more", 0, 59)
        assert any(text.startswith("1 answer came after that check") for text in session.finish("f2")["sentences"])


def test_the_commands_do_it_again(points_file):
    with opened(points_file, seed=3) as session:
        answer_some(session, 12)
        done = session.finish("f1")
    out = points_file.with_name("out")
    expected = f"linkmix fit {points_file} --links {out / 'links.csv'} --classes 3 --seed 3"
    assert done["command"] == expected
    assert done["predict"] == f"linkmix predict {out / 'model.linkmix'} {points_file}"


def test_earlier_results_are_kept(points_file):
    folder = points_file.with_name("out")
    with opened(points_file) as session:
        answer_some(session, 4)
        session.finish("f1")
        before = {file: (folder / file).read_bytes() for file in FILES}
        name(session, 0, "first")
        done = session.finish("f2")
    assert {path.name for path in (folder / "earlier-1").iterdir()} == FILES
    assert {file: (folder / "earlier-1" / file).read_bytes() for file in FILES} == before
    assert f"The files of the earlier run are in {folder / 'earlier-1'}." in done["sentences"]


def test_a_new_start_shows_what_was_finished(points_file):
    with opened(points_file) as session:
        answer_some(session, 14)
        name(session, 0, "first")
        session.finish("f1")
        before, shown = session.labels().copy(), session.view.classes()
    with opened(points_file) as session:
        session.background.wait()
        assert (session.labels() == before).all()
        assert [one["name"] for one in session.view.classes()["classes"]] == [one["name"] for one in shown["classes"]]
        session.finish("f2")
        assert not points_file.with_name("out").joinpath("earlier-1").exists()  # it is the same
        say(session, "more", 0, 59)
        session.background.wait()
        session.finish("f3")
        assert written_labels(points_file.with_name("out")) == shown_labels(session)


def test_another_model_in_the_folder_is_not_shown(points_file):
    with opened(points_file) as session:
        answer_some(session, 14)
        session.finish("f1")
    path = points_file.with_name("out") / "model.linkmix"
    path.write_bytes(path.read_bytes()[:-1])
    with opened(points_file) as session:
        session.background.wait()
        assert session.shown.entries == 1


@pytest.mark.parametrize("step", range(12))
def test_a_crash_at_any_step_leaves_all_or_nothing(points_file, monkeypatch, step):
    """Files are moved one by one; whichever move is the last, the next start has one result or the other."""
    folder = points_file.with_name("out")
    with opened(points_file) as session:
        answer_some(session, 3)
        session.finish("f1")
        before = {file: (folder / file).read_bytes() for file in FILES}
        name(session, 0, "first")
        moves = iter(range(step))

        class Crash(BaseException):
            pass

        def dying(one):
            def move(self, target):
                if folder in target.parents and next(moves, None) is None:
                    raise Crash
                return one(self, target)

            return move

        with monkeypatch.context() as patched:
            for method in ("replace", "rename"):
                patched.setattr(f"pathlib.Path.{method}", dying(getattr(type(folder), method)))
            try:
                session.finish("f2")
                crashed = False
            except Crash:
                crashed = True
    results.recover(folder)
    names = {path.name for path in folder.iterdir()} - {"earlier-1"}
    assert names == FILES
    now = {file: (folder / file).read_bytes() for file in FILES}
    is_new = b"first" in now["labels.csv"]
    if is_new:
        assert {file: (folder / "earlier-1" / file).read_bytes() for file in FILES} == before
        model = AutoLinkMixture.load(folder / "model.linkmix")
        assert "first" in model.classes_
        assert b"first" in now["report.html"]
    else:
        assert now == before
        assert crashed


def test_ctrl_c_says_what_finish_said(points_file):
    with opened(points_file) as session:
        answer_some(session, 5)
        assert session.view.farewell()[-1].startswith("Nothing was finished")
        done = session.finish("f1")
        said = session.view.farewell()
        assert said[1 : 1 + len(done["sentences"])] == done["sentences"]
        assert said[-2:] == [f"Again: {done['command']}", f"New points: {done['predict']}"]
        say(session, "more", 0, 1)
        assert "Since then 1 answer came: finish again to use them." in session.view.farewell()


def test_what_is_not_a_key_is_refused(points_file):
    with opened(points_file) as session, pytest.raises(ValueError, match="key is None: give a string"):
        session.finish(None)


def test_kills_at_random_moments_leave_one_result_and_lose_nothing():
    """The first few of many: ``python -m benchmarks.label_server --kills 200``."""
    counts = label_server.torture(4, n_points=60, seed=1, told=False)
    assert counts["kills"] == 4
    assert counts["entries"] > 0


def test_what_a_killed_process_left_is_removed(points_file):
    folder = points_file.with_name("out")
    left = folder / ".unfinished-999999999-1"
    left.mkdir(parents=True)
    (left / "labels.csv").write_text("half")
    mine = folder / f".unfinished-{os.getpid()}-1"
    mine.mkdir()
    with opened(points_file):
        assert [path.name for path in folder.iterdir()] == [mine.name]  # this process may still be writing


def test_the_command_without_a_number_of_classes_finishes_and_says_so_at_its_end(points_file):
    """From the table alone to named classes; Ctrl-C says again what Finish said."""
    out = points_file.with_name("out")
    command = [sys.executable, "-c", "from linkmix.app.cli import main; main()", "label", str(points_file)]
    command += ["--id", "id", "--port", "0", "--no-browser", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            base, token = re.search(r"(http://[^/]+)/#token=(\S+)", process.stdout.readline()).groups()
            own = {"X-Linkmix": token}

            def get(path):
                with urllib.request.urlopen(urllib.request.Request(base + path, headers=own)) as reply:
                    return json.load(reply)

            start = get("/api/start")
            assert start["n_classes"] is None
            assert start["kinds"] == ["pair", "which", "group"]

            def post(path, **body):
                data = json.dumps({"table": start["table"], **body}).encode()
                headers = {"Content-Type": "application/json", "Origin": base, **own}
                with urllib.request.urlopen(urllib.request.Request(base + path, data, headers)) as reply:
                    return json.load(reply)

            for i, (a, b) in enumerate(((0, 20), (20, 40), (0, 40))):
                post("/api/entries", entry="answer", key=f"k{i}", rows=[a, b], said="different")
            post("/api/entries", entry="name", key="n", rows=[0], name="small ones")
            done = post("/api/finish", key="f")
            assert get("/api/status")["n_classes"] == 3
        finally:
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=60)[0]
    assert process.returncode == 0
    for sentence in done["sentences"]:
        assert sentence in said
    assert f"Again: linkmix fit {points_file} --id id --links {out / 'links.csv'} --classes 3" in said
    assert sum(line.split(",")[1] == "small ones" for line in (out / "labels.csv").read_text().splitlines()) == 20
    fitted = CliRunner().invoke(main, [*shlex.split(done["command"])[1:], "--out", str(out.with_name("again"))])
    assert fitted.exit_code == 0, fitted.output
    predicted = CliRunner().invoke(main, [*shlex.split(done["predict"])[1:], "--out", str(out / "new.csv")])
    assert predicted.exit_code == 0, predicted.output
    assert "small ones: 20" in predicted.output
    assert (out / "new.csv").read_text().count("small ones") == 21  # also in the name of a column
