"""Files are written whole or not at all."""

import os
import subprocess
import sys
import threading

import pytest

from linkmix.basics.files import aside


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "links.csv"
    target.write_text("old")

    def interrupted():
        with aside(target) as place:
            place.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [file.name for file in tmp_path.iterdir()] == ["links.csv"]
    assert target.read_text() == "old"


def test_the_suffix_stays_and_threads_have_names_of_their_own(tmp_path):
    places = []
    together = threading.Barrier(2)

    def write(number):
        with aside(tmp_path / "links.tsv") as place:
            place.write_text(str(number) * 1000)
            places.append(place)
            together.wait(60)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(places)) == 2
    assert {place.suffix for place in places} == {".tsv"}
    assert (tmp_path / "links.tsv").read_text() in ("0" * 1000, "1" * 1000)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_scratch_file_of_a_killed_process_is_swept_and_no_other(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    gone = [f".notes.{dead.pid}-7.txt", f"..notes.{dead.pid}-7.{dead.pid}-7.txt"]
    kept = [f".notes.{os.getpid()}-7.txt", f".notes.{dead.pid}.txt", f".other.{dead.pid}-7.txt", ".notes.txt"]
    for name in gone + kept:
        (tmp_path / name).write_text("half of i")
    with aside(tmp_path / "notes.txt") as place:
        place.write_text("all of it")
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted([*kept, "notes.txt"])
