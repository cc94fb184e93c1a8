"""A few kills; ``python -m benchmarks.kills`` does many, also of comparisons and experiments."""

import json
import random

from benchmarks.forked import run
from benchmarks.kills import FIT, RESULTS, classes_of, kill_fits, write_inputs


def test_a_killed_fit_harms_no_file(tmp_path):
    assert kill_fits(tmp_path, 3, random.Random(0)) == 3


def test_a_prediction_completes_what_a_crash_has_interrupted(tmp_path):
    write_inputs(tmp_path)
    for n_classes in (2, 3):
        assert run(f"{FIT} {n_classes}".split(), tmp_path).code == 0
    out = tmp_path / "out"
    complete = out / ".complete"  # as if the crash came when only the labels had their place
    complete.mkdir()
    for name in ("model.linkmix", "report.html"):
        (out / name).rename(complete / name)
        (out / "earlier-1" / name).rename(out / name)
    plan = {"names": list(RESULTS), "there": list(RESULTS), "earlier": "earlier-1"}
    (complete / "plan.json").write_text(json.dumps(plan))
    ended = run(["predict", "out/model.linkmix", "points.csv"], tmp_path)
    assert ended.code == 0, ended
    assert {classes_of(out / name) for name in RESULTS} == {3}
    assert {classes_of(out / "earlier-1" / name) for name in RESULTS} == {2}
    assert (tmp_path / "predicted.csv").read_text().count("probability_") == 3
    assert not complete.exists()
