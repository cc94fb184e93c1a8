"""Files are written whole or not at all."""

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
