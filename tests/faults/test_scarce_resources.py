"""Full disks, folders that cannot be written to, and too little memory: a clear message, and no half result.

LINKMIX_EXAMPLES sets how many limits are tried (``make torture EXAMPLES=10000``).
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.forked import MB, Limits, run
from benchmarks.kills import write_inputs

EXAMPLES = int(os.environ.get("LINKMIX_EXAMPLES", "150"))
MANY = EXAMPLES > 1000
COMMANDS = {
    "fit": "fit points.csv --links links.csv --leave-out class --classes 3 --join --out out",
    "predict": "predict model.linkmix points.csv --join --out out/predicted.csv",
    "ask": "ask points.csv --classes 3 --leave-out class --links out/links.csv --answers 'python rule.py' --out out",
    "compare": "compare points.csv --truth class --methods gmm,paper --n-links 0,10 --trials 1 --jobs 1 --out out",
}
SIZES = [0, 100, 300, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000] if MANY else [0, 2_000, 20_000]
"""Bytes of the longest file that can be written."""
MEGABYTES = [1, 2, 4, 8, 16, 24, 32, 48, 60, 80, 100, 130, 150, 200, 300, 500] if MANY else [4, 400]
"""Memory beyond that of a process without any work."""
COLD_MEGABYTES = [40, *range(50, 1300, 50)] if MANY else [100, 650, 800]
"""Memory of a process that has still to import everything. OpenBLAS, which tries for ever where it gets no memory, hung
at 800 on two processors."""
RULE = """import json, sys
for line in sys.stdin:
    question = json.loads(line)
    print(json.dumps({"id": question["id"], "answer": "same"}), flush=True)
"""


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A folder with inputs, a model and results of every command."""
    folder = tmp_path_factory.mktemp("fitted")
    write_inputs(folder)
    (folder / "rule.py").write_text(RULE)
    ended = run(COMMANDS["fit"].split(), folder)
    assert ended.code == 0, ended
    shutil.copy(folder / "out" / "model.linkmix", folder / "model.linkmix")
    return folder


def split(command):
    import shlex

    return [sys.executable if word == "python" else word for word in shlex.split(command)]


def contents(folder):
    """All files of a folder, hidden ones included, with what is in them."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["fit", "predict", "compare", *(["ask"] if MANY else [])])
def test_a_full_disk_is_said_and_leaves_earlier_results_as_they_were(fitted, tmp_path, name, size):
    shutil.copytree(fitted, tmp_path / "w")
    folder = tmp_path / "w"
    if name == "predict":
        (folder / "out" / "predicted.csv").write_text("id,label\nan earlier result,0\n")
    if name == "compare":
        (folder / "out" / "compare.csv").write_text("earlier\n")
    before = contents(folder / "out")
    ended = run(split(COMMANDS[name]), folder, limits=Limits(file_size=size))
    after = contents(folder / "out")
    assert ended.is_clear, ended.said
    if ended.code:
        assert not ended.said or "rror: " in ended.said, ended.said  # a limit of 0 bytes takes no message either
        grown = {"runs.jsonl", "links.csv.journal", "links.csv"}  # what each run or answer is added to
        assert {file: after.get(file) for file in before if file not in grown} == before
        assert after.keys() - before.keys() <= grown, sorted(after.keys() - before.keys())
    else:
        assert not [file for file in after if Path(file).name.startswith(".")]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="root heeds permissions on Linux alone, if it wants")
@pytest.mark.parametrize("name", ["fit", "predict", *(["compare", "ask"] if MANY else [])])
def test_a_folder_that_cannot_be_written_to_is_said(fitted, tmp_path, name):
    folder = tmp_path / "w"
    shutil.copytree(fitted, folder)
    before = contents(folder / "out")
    (folder / "out").chmod(0o555)
    try:
        ended = run(split(COMMANDS[name]), folder, limits=Limits(ordinary=True))
    finally:
        (folder / "out").chmod(0o755)
    assert ended.code == 2, ended
    assert ended.is_clear, ended.said
    assert "ermission denied: choose another place, or change its permissions" in ended.said
    assert contents(folder / "out") == before


@pytest.mark.parametrize("name", ["fit", *(["predict", "compare", "ask"] if MANY else [])])
def test_a_file_in_place_of_the_folder_is_said(fitted, tmp_path, name):
    shutil.copytree(fitted, tmp_path / "w")
    folder = tmp_path / "w"
    shutil.rmtree(folder / "out")
    (folder / "out").write_text("not a folder\n")
    ended = run(split(COMMANDS[name]), folder)
    assert ended.code == 2, ended
    assert ended.is_clear, ended.said
    assert (folder / "out").read_text() == "not a folder\n"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells and limits the address space")
@pytest.mark.parametrize("megabytes", MEGABYTES)
def test_too_little_memory_is_said_and_leaves_no_half_result(tmp_path, megabytes):
    X = np.random.default_rng(0).normal(size=(20_000, 12)) + 3 * (np.arange(20_000) % 3)[:, None]
    rows = (",".join([f"p{i}", *(f"{x:.3f}" for x in row)]) for i, row in enumerate(X.tolist()))
    names = ",".join(["id", *(f"c{k}" for k in range(X.shape[1]))])
    (tmp_path / "points.csv").write_text("\n".join([names, *rows]) + "\n")
    limits = Limits(memory=megabytes * MB)
    ended = run(["fit", "points.csv", "--classes", "3", "--method", "linkmix", "--out", "out"], tmp_path, limits=limits)
    assert ended.is_clear, f"{megabytes} MB: {ended.code}\n{ended.said}"
    made = sorted(contents(tmp_path / "out")) if (tmp_path / "out").exists() else []
    assert made == ([] if ended.code else ["labels.csv", "model.linkmix", "report.html"])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits the address space")
@pytest.mark.parametrize("megabytes", COLD_MEGABYTES)
def test_too_little_memory_is_said_from_the_start(fitted, tmp_path, megabytes):
    code = f"""import resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({megabytes * MB}, {megabytes * MB}))
from linkmix.app.cli import main
main(sys.argv[1:])"""
    command = [sys.executable, "-c", code, "fit", str(fitted / "points.csv"), "--classes", "3", "--out", "out"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    made = sorted(contents(tmp_path / "out")) if (tmp_path / "out").exists() else []
    if found.returncode == 0:
        assert made == ["labels.csv", "model.linkmix", "report.html"]
        return
    assert found.returncode == 2, found
    assert found.stderr.splitlines()[-1].startswith("Error: there is not enough memory ("), found.stderr
    assert "raise the limit of this process (ulimit -v)" in found.stderr
    assert "Traceback" not in found.stderr, found.stderr
    assert made == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_full_standard_output_is_said_and_the_results_are_there(fitted, tmp_path):
    shutil.copytree(fitted, tmp_path / "w")
    code = "import sys; from linkmix.app.cli import main; main(sys.argv[1:])"
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-c", code, "predict", "model.linkmix", "points.csv"]
        ended = subprocess.run(command, cwd=tmp_path / "w", stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == (
        "Error: what this command says cannot be written (No space left on device): send its output elsewhere; files "
        "that it has written are complete"
    )
    assert len((tmp_path / "w" / "predicted.csv").read_text().splitlines()) == 91
