"""Folders for results that came from elsewhere, or that several processes write to."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from linkmix.app.results import LABELS, REPORT, _put, _unfinished, recover
from linkmix.basics.errors import BadFile

SOUND = {"names": ["labels.csv"], "there": [], "earlier": "earlier-1"}


@pytest.mark.parametrize(
    "plan",
    [
        json.dumps(SOUND | {"names": ["../../mine.txt"]}),
        json.dumps(SOUND | {"there": ["../mine.txt"]}),
        json.dumps(SOUND | {"there": ["labels.csv"], "earlier": "../other"}),
        json.dumps(SOUND | {"names": [["labels.csv"]]}),
        json.dumps({"names": []}),
        "[" * 100_000,
        "[]",
        "\ud800".encode(errors="surrogatepass"),
    ],
)
def test_a_plan_that_linkmix_did_not_write_is_refused(plan, tmp_path):
    mine, folder = tmp_path / "mine.txt", tmp_path / "out"
    (folder / ".complete").mkdir(parents=True)
    mine.write_text("mine\n")
    (folder / "labels.csv").write_text("earlier\n")
    (folder / ".complete" / "plan.json").write_bytes(plan if isinstance(plan, bytes) else plan.encode())
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(BadFile, match=r"plan.json: is no plan of linkmix, or damaged: remove the folder .*\.complete"):
        recover(folder)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_sound_plan_is_completed(tmp_path):
    there = tmp_path / ".complete"
    there.mkdir()
    (there / "plan.json").write_text(json.dumps(SOUND | {"there": ["labels.csv"]}))
    (there / "labels.csv").write_text("new\n")
    (tmp_path / "labels.csv").write_text("old\n")
    assert recover(tmp_path)
    assert (tmp_path / "labels.csv").read_text() == "new\n"
    assert (tmp_path / "earlier-1" / "labels.csv").read_text() == "old\n"


def test_results_that_are_written_at_the_same_moment_do_not_mix(tmp_path):
    """Every set of files is in one place, the last one in the folder and the others in earlier-N."""
    n_writers, n_sets = 4, 8

    def write_some(writer):
        for number in range(n_sets):
            with _unfinished(tmp_path) as place:
                for name in (LABELS, REPORT):
                    (place / name).write_text(f"{writer} {number}\n")
                _put(tmp_path, place, {LABELS: "", REPORT: ""})

    with ThreadPoolExecutor(n_writers) as pool:
        for done in [pool.submit(write_some, writer) for writer in range(n_writers)]:
            done.result()
    folders = [tmp_path, *tmp_path.glob("earlier-*")]
    found = [{(folder / name).read_text() for name in (LABELS, REPORT)} for folder in folders]
    assert sorted(map(sorted, found)) == sorted([f"{w} {n}\n"] for w in range(n_writers) for n in range(n_sets))
    assert not list(tmp_path.glob(".*"))
