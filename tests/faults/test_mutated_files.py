"""Files of every format with random changes: read or refused, in a few seconds, and never with rows lost in silence.

LINKMIX_EXAMPLES sets how many are tried: twice as many in this process, and a tenth of it by the command line, and
LINKMIX_SEED which ones. A failure shrinks to the smallest file that still fails, which is written to tests/faults/kept
and tried first from then on.
"""

import os
import random
import shutil
import signal
import time
import warnings
from pathlib import Path

import pytest
from benchmarks.forked import run

from file_samples import SAMPLES, records
from linkmix.basics.errors import BadFile
from mutations import mutated, smallest

KEPT = Path(__file__).parent / "kept"
EXAMPLES = int(os.environ.get("LINKMIX_EXAMPLES", "150"))
SEED = int(os.environ.get("LINKMIX_SEED", "0"))
LONGEST = 20
"""Seconds that reading a file of some kilobytes may take."""
BY_NAME = {sample.name: sample for sample in SAMPLES}
BY_COMMAND = {
    "points": "fit {file} --classes 2 --out out",
    "links": "check-links good.csv {file}",
    "ids": "fit good.csv --classes 2 --noise --known-noise {file} --out out",
    "model": "predict {file} good.csv --out out/labels.csv",
    "answers": "ask good.csv --classes 2 --links answers --no-finish --out out",
}


def late(number, frame):
    raise TimeoutError


def check(sample, path, content):
    """Read a file; what is wrong with it is said by BadFile, and a text has as many rows as the csv module finds."""
    path.write_bytes(content)
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LONGEST)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = sample.read(path)
    except BadFile:
        return
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    if sample.is_text and not content.startswith(b"{"):
        counts = {records(content, separator) for separator in ",\t; "}
        n = sample.n_rows(found)
        assert counts & {n, n + 1, -1} or sample.name == "ids.csv", f"{n} rows, where the csv module finds {counts}"


def fails(sample, path, content):
    try:
        check(sample, path, content)
    except Exception:
        return True
    return False


def test_a_mutated_file_is_read_or_refused(tmp_path):
    draw = random.Random(SEED)
    others = [sample.content for sample in SAMPLES]
    for number in range(2 * EXAMPLES):
        sample = draw.choice(SAMPLES)
        path, content = tmp_path / sample.name, mutated(draw, sample.content, others)
        if fails(sample, path, content):
            content = smallest(content, lambda some, sample=sample, path=path: fails(sample, path, some))
            (KEPT / f"mutated-{sample.name}").write_bytes(content)
            print(f"seed {SEED}, example {number}: {content[:2000]!r}")
            check(sample, path, content)


@pytest.mark.parametrize("file", sorted(KEPT.glob("mutated-*")), ids=lambda file: file.name)
def test_a_file_that_once_failed_is_read_or_refused(tmp_path, file):
    name = file.name.partition("-")[2]
    check(BY_NAME[name.partition("~")[0]], tmp_path / name.partition("~")[0], file.read_bytes())


def run_on(folder, sample, content):
    """Give a file to the command that reads it; it ends well, or with a message for people."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "out").mkdir()
    (folder / "good.csv").write_bytes(BY_NAME["points.csv"].content)
    (folder / sample.name).write_bytes(content)
    command = BY_COMMAND[sample.name.partition(".")[0]].format(file=sample.name)
    ended = run(command.split(), folder, longest=60)
    assert ended.is_clear, f"linkmix {command} with {content[:500]!r}: {ended.code}\n{ended.said}"
    made = sorted(file.name for file in (folder / "out").iterdir())
    if ended.code:
        assert "rror: " in ended.said or "no such" in ended.said.lower() or sample.name.startswith("links"), ended.said
        assert made == [], made
    elif sample.is_text and "points" in sample.name:
        n_labels = records((folder / "out" / "labels.csv").read_bytes(), ",") - 1
        assert {records(content, separator) for separator in ",\t; "} & {n_labels, n_labels + 1}


def test_a_mutated_file_on_the_command_line_ends_well_or_with_a_message(tmp_path):
    draw = random.Random(SEED + 1)
    others = [sample.content for sample in SAMPLES]
    began = time.monotonic()
    for number in range(max(EXAMPLES // 10, 1) if EXAMPLES > 150 else 5):
        sample = draw.choice(SAMPLES)
        content = mutated(draw, sample.content, others)
        try:
            run_on(tmp_path / "run", sample, content)
        except Exception:
            (KEPT / f"mutated-{sample.name}").write_bytes(content)
            print(f"seed {SEED}, example {number} after {time.monotonic() - began:.0f} s")
            raise
