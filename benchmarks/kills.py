"""Kills at random moments: ``python -m benchmarks.kills --fit 100 --compare 60 --reproduce 40 --seed 0``.

``linkmix fit`` is killed while it replaces results of 2 classes by those of 3 and the other way round. The files of its
folder must always be whole, and once the folder is used again all of them must be of one run, with nothing left behind.
``linkmix compare`` and ``linkmix reproduce`` are killed and started again until they end: no file may be half written,
and what they find must be what a run finds that nobody disturbs. The labelling server has kills of its own,
``python -m benchmarks.label_server --kills 200``.
"""

import argparse
import json
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.forked import run
from linkmix import AutoLinkMixture

FIT = "fit points.csv --links links.csv --id id --columns x,y --out out --classes"
COMPARE = (
    "compare points.csv --truth class --id id --columns x,y --methods gmm,paper --n-links 0,10 --trials 2 --jobs 1"
)
REPRODUCE = "reproduce toy --trials 1 --jobs 1"
RESULTS = ("labels.csv", "model.linkmix", "report.html")
TIMES = ("seconds", "peak_mb")
"""What differs between two runs that are the same."""


def write_inputs(folder: Path, n_rows: int = 90) -> None:
    """A table of three classes in which two are close, and links."""
    draw = np.random.default_rng(0)
    classes = np.arange(n_rows) % 3
    X = draw.normal(size=(n_rows, 2)) + np.array([[0, 0], [7, 0], [7, 5]])[classes]
    rows = [f"p{i},{x:.4f},{y:.4f},{'abc'[m]}" for i, ((x, y), m) in enumerate(zip(X, classes, strict=True))]
    (folder / "points.csv").write_text("\n".join(["id,x,y,class", *rows]) + "\n", encoding="utf-8")
    links = [f"p{i},p{i + 3},must\np{i},p{i + 1},cannot" for i in range(0, 9, 3)]
    (folder / "links.csv").write_text("\n".join(["a,b,kind", *links]) + "\n", encoding="utf-8")


def kill_fits(folder: Path, n_kills: int, draw: random.Random) -> int:
    """Kill fits that replace each other's results; returns how many were killed before their end."""
    write_inputs(folder)
    out = folder / "out"
    seconds = min(_done(f"{FIT} {n}", folder).seconds for n in (2, 3, 2))
    killed = n_classes = 0
    while killed < n_kills:
        n_classes = 3 if n_classes == 2 else 2
        killed += _killed(f"{FIT} {n_classes}", folder, seconds, draw)
        for name in RESULTS:
            if (out / name).exists():
                classes_of(out / name)  # raises if it is half a file
        if draw.random() < 0.5:  # the folder is used: by a prediction, or by the next fit
            _done(f"predict {out}/model.linkmix points.csv", folder)
            found = {name: classes_of(out / name) for name in RESULTS}
            assert len(set(found.values())) == 1, f"files of different runs: {found}"
        shutil.rmtree(out / "earlier-9", ignore_errors=True)
    _done(f"{FIT} 2", folder)
    found = {name: classes_of(out / name) for name in RESULTS}
    assert set(found.values()) == {2}, found
    for earlier in out.glob("earlier-*"):
        assert len({classes_of(file) for file in earlier.iterdir()}) == 1, f"files of different runs in {earlier}"
    left = sorted(file.name for file in out.iterdir() if file.name.startswith("."))
    assert not left, f"left behind: {left}"
    return killed


def classes_of(file: Path) -> int:
    """Number of classes that a file of a result tells; an error if it is not whole."""
    if file.suffix == ".csv":
        lines = file.read_text(encoding="utf-8").splitlines()
        assert [line.count(",") for line in lines] == [lines[0].count(",")] * 91, f"{file} is not whole"
        return lines[0].count("probability_")
    if file.suffix == ".html":
        text = file.read_text(encoding="utf-8")
        assert text.rstrip().endswith("</html>"), f"{file} is not whole"
        return 3 if "3 classes" in text else 2
    return int(AutoLinkMixture.load(file).n_classes)


def kill_until_done(command: str, what: Callable[[Path], Any], folder: Path, n_kills: int, draw: random.Random) -> int:
    """Kill a command that goes on where it was; what it finds in the end is what an undisturbed run finds."""
    write_inputs(folder)
    seconds = min(_done(f"{command} --out undisturbed-{n}", folder).seconds for n in (1, 2))
    expected = what(folder / "undisturbed-1")
    killed = round_ = 0
    while killed < n_kills:
        out = folder / f"out-{round_}"
        round_ += 1
        for _ in range(draw.randint(1, 4)):
            killed += _killed(f"{command} --out {out.name}", folder, seconds, draw)
            if out.exists():
                whole_files(out)
        _done(f"{command} --out {out.name}", folder)
        whole_files(out)
        assert what(out) == expected, f"{command}: another result after kills"
        left = sorted(file.name for file in out.iterdir() if file.name.startswith("."))
        assert not left, f"left behind: {left}"
        shutil.rmtree(out)
    return killed


def compared(out: Path) -> Any:
    """What a comparison has found, without what depends on the machine."""
    import pandas as pd

    return pd.read_csv(out / "compare.csv").drop(columns=[*TIMES]).to_csv()


def reproduced(out: Path) -> Any:
    """What an experiment has found, without what depends on the machine."""
    import pandas as pd

    return pd.read_parquet(out / "runs.parquet").drop(columns=[*TIMES]).to_csv()


def whole_files(out: Path) -> None:
    """Refuse a file that is half written; the last line of the runs may be."""
    import pandas as pd

    for file in out.iterdir():
        if file.name.startswith("."):
            continue
        if file.suffix == ".jsonl":
            *lines, _ = file.read_text(encoding="utf-8").split("\n")
            n_bad = sum(not _is_json(line) for line in lines)
            assert n_bad <= 4, f"{n_bad} half lines in {file}"  # one for each kill at most
        elif file.suffix == ".csv":
            assert len(pd.read_csv(file)) == 8
        elif file.suffix == ".parquet":
            assert len(pd.read_parquet(file)) == 9
        else:
            ends = {".html": b"</html>", ".svg": b"</svg>", ".png": b"IEND\xaeB`\x82"}
            assert file.read_bytes().rstrip().endswith(ends[file.suffix]), f"{file} is not whole"


def _is_json(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _killed(command: str, folder: Path, seconds: float, draw: random.Random) -> bool:
    """Kill a command at a random moment, half of them near its end, when it writes; whether it had not ended before."""
    moment = seconds * (draw.uniform(0, 1.1) if draw.random() < 0.5 else draw.uniform(0.6, 1.1))
    ended = run(command.split(), folder, kill_after=moment)
    assert ended.code in (0, -9), ended
    assert "Traceback" not in ended.said, ended
    return ended.code == -9


def _done(command: str, folder: Path) -> Any:
    ended = run(command.split(), folder)
    assert ended.code == 0, f"linkmix {command}: {ended}"
    return ended


def main() -> None:
    """Kill as often as asked, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", type=int, default=0, metavar="N", help="kill linkmix fit N times")
    parser.add_argument("--compare", type=int, default=0, metavar="N", help="kill linkmix compare N times")
    parser.add_argument("--reproduce", type=int, default=0, metavar="N", help="kill linkmix reproduce N times")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    draw = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as name:
        kills: dict[str, Callable[[Path], int]] = {
            "fit": lambda folder: kill_fits(folder, given.fit, draw),
            "compare": lambda folder: kill_until_done(COMPARE, compared, folder, given.compare, draw),
            "reproduce": lambda folder: kill_until_done(REPRODUCE, reproduced, folder, given.reproduce, draw),
        }
        for what, kill in kills.items():
            if getattr(given, what):
                folder = Path(name) / what
                folder.mkdir()
                killed = kill(folder)
                print(
                    f"linkmix {what}: {killed} kills before the end, seed {given.seed}: no file was harmed", flush=True
                )


if __name__ == "__main__":
    main()
