"""The files of a session, and other programs that write to them."""

import os
import time

import pytest

from label_serving import write_points
from linkmix.app.label.session import Session
from linkmix.tables import read_points


@pytest.fixture
def points_file(tmp_path):
    return write_points(tmp_path / "points.csv")


def opened(points_file):
    return Session(read_points(points_file), 3, points_file.with_name("links.csv"), points_file.parent)


def written(links, text, seconds=20):
    """Wait until the file of links holds a text."""
    end = time.monotonic() + seconds
    while not links.exists() or text not in links.read_text():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_links_that_another_program_adds_while_the_session_runs_are_taken_over(points_file):
    links = points_file.with_name("links.csv")
    with opened(points_file) as session:
        session.write({"entry": "answer", "key": "k1", "rows": [0, 1], "said": "same"})
        written(links, "p0,p1,must")
        with links.open("a") as file:
            file.write("p5,p30,cannot,yes\n")
        session.write({"entry": "answer", "key": "k2", "rows": [1, 2], "said": "same"})
        written(links, "p1,p2,must")
        assert "p5,p30,cannot" in links.read_text()
        assert session.view.n_links == {"same": 2, "different": 1}
        assert session.status()["trouble"] is None
        session.write({"entry": "undo", "key": "k3"})
        assert session.view.n_links == {"same": 1, "different": 1}
        session.write({"entry": "remove", "key": "k4", "rows": [5, 30]})
        assert session.view.n_links == {"same": 1, "different": 0}
        session.write({"entry": "undo", "key": "k5"})
    assert not list(points_file.parent.glob("*edited*"))
    with opened(points_file) as session:
        assert session.view.n_links == {"same": 1, "different": 1}


def test_another_version_of_the_file_drops_no_answer_and_is_kept(points_file):
    """A spreadsheet that was open for an hour saves what it had, with one link turned round and a new one."""
    links = points_file.with_name("links.csv")
    with opened(points_file) as session:
        for key, (a, b) in enumerate([(0, 1), (1, 2), (2, 3)]):
            session.write({"entry": "answer", "key": f"k{key}", "rows": [a, b], "said": "same"})
        written(links, "p2,p3,must")
        theirs = "a,b,kind,chosen\np0,p1,cannot,yes\np50,p1,cannot,no\n"
        links.write_text(theirs)
        session.write({"entry": "answer", "key": "k", "rows": [4, 5], "said": "same"})
        written(links, "p4,p5,must")
        assert session.view.n_links == {"same": 4, "different": 1}
        trouble = session.status()["trouble"]
        assert (
            "1 new link of it is taken over. 1 link that it has otherwise and 2 that it no longer has stay" in trouble
        )
    assert trouble in session.view.farewell()
    assert (points_file.with_name("links-edited-1.csv")).read_text() == theirs
    assert "p50,p1,cannot" in links.read_text()
    with opened(points_file) as session:
        assert session.view.n_links == {"same": 4, "different": 1}
        assert session.files.notes == ()


def test_a_version_that_cannot_be_read_is_kept_and_said(points_file):
    links = points_file.with_name("links.csv")
    with opened(points_file) as session:
        session.write({"entry": "answer", "key": "k", "rows": [0, 1], "said": "same"})
        written(links, "p0,p1,must")
        links.write_text("a,b,kind\np0,nobody,must\n")
        session.write({"entry": "answer", "key": "k1", "rows": [4, 5], "said": "same"})
        written(links, "p4,p5,must")
        assert "cannot be read" in session.status()["trouble"]
        assert "'nobody' is not among the ids" in session.status()["trouble"]
    assert "nobody" in points_file.with_name("links-edited-1.csv").read_text()
    assert "p0,p1,must" in links.read_text()


def test_links_that_an_edit_before_the_start_has_dropped_are_counted(points_file):
    links = points_file.with_name("links.csv")
    with opened(points_file) as session:
        session.write({"entry": "answer", "key": "k", "rows": [0, 1], "said": "same"})
        session.write({"entry": "answer", "key": "k1", "rows": [1, 2], "said": "same"})
    links.write_text("a,b,kind\np0,p1,must\n")
    with opened(points_file) as session:
        assert session.view.n_links == {"same": 1, "different": 0}
        [note] = session.files.notes
        assert "1 link that it no longer has was dropped; the journal still has it" in note


def test_symbolic_links_stay_and_what_they_point_to_is_written(points_file):
    elsewhere = points_file.with_name("elsewhere")
    elsewhere.mkdir()
    links, target = points_file.with_name("links.csv"), elsewhere / "real.csv"
    target.write_text("a,b,kind\np7,p8,must\n")
    links.symlink_to(target)
    with opened(points_file) as session:
        session.write({"entry": "answer", "key": "k", "rows": [0, 1], "said": "same"})
    assert links.is_symlink()
    assert "p7,p8,must" in target.read_text()
    assert "p0,p1,must" in target.read_text()
    assert [path.name for path in elsewhere.iterdir()] == ["real.csv"]
    with opened(points_file) as session:
        assert session.view.n_links == {"same": 2, "different": 0}


def test_what_a_killed_process_left_is_removed_at_the_start(points_file):
    gone = points_file.with_name(".links.999999999-17.csv")
    ours = points_file.with_name(f".links.{os.getpid()}-17.csv")
    other = points_file.with_name(".links.notes.csv")
    for path in (gone, ours, other):
        path.write_text("half")
    with opened(points_file):
        assert [path.exists() for path in (gone, ours, other)] == [False, True, True]
