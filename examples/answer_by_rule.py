"""A program that answers questions about texts by a rule, and `linkmix ask` that learns classes from its answers.

The texts are the documentation of Python's own functions: of `math`, of `os` and of `str`. The rule counts words, as
someone who knows the subject would; where no subject has most words, it is unsure. Started with --answer, this file is
the program: it reads a question per line and writes an answer per line. A language model takes the place of the rule in
the same way; see docs/programs.md.
"""

import csv
import inspect
import json
import math
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from linkmix import purity

SUBJECTS = {
    math: "x y number numbers float real integer infinity nan logarithm sine cosine tangent angle radians sum product",
    os: "file files directory path process descriptor fd pid system dir_fd signal user group mode terminal exit",
    str: "string strings substring str character characters uppercase lowercase case whitespace prefix suffix ascii",
}


def subject_of(text: str) -> int | None:
    """Which subject has most of the words of a text; None if two have."""
    words = re.findall(r"[a-z_]+", text.lower())
    counts = [sum(word in known.split() for word in words) for known in SUBJECTS.values()]
    return counts.index(max(counts)) if counts.count(max(counts)) == 1 else None


def answer_all() -> None:
    """The program: a line of JSON in, a line of JSON out."""
    for line in sys.stdin:
        question = json.loads(line)
        one, other = (subject_of(question[end]["text"]) for end in ("a", "b"))
        said = "unsure" if one is None or other is None else "same" if one == other else "different"
        print(json.dumps({"id": question["id"], "answer": said}), flush=True)


def texts() -> list[tuple[str, int, str]]:
    """Name, subject and documentation of each function."""
    found = []
    for subject, home in enumerate(SUBJECTS):
        for name, function in inspect.getmembers(home, callable):
            text = inspect.getdoc(function) if not name.startswith("_") and not inspect.isclass(function) else None
            if text and len(text) > 30:
                found.append((f"{home.__name__}.{name}", subject, " ".join(text.split())[:400]))
    return found


def main() -> None:
    rows = texts()
    truth = np.array([subject for _, subject, _ in rows])
    judged = np.array([-1 if (found := subject_of(text)) is None else found for _, _, text in rows])
    print(f"{len(rows)} texts; the rule is right about {np.mean(judged == truth):.0%} of them")
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "texts.csv"
        with table.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("id", "text"), *((name, text) for name, _, text in rows)])

        def labels(command: str, *options: str) -> np.ndarray:
            """Labels that a command of linkmix finds; prints the first lines that it says."""
            out = Path(folder) / command
            words = [command, str(table), "--classes", "3", "--as", "text=text", "--out", str(out), *options]
            linkmix = [sys.executable, "-c", "from linkmix.app.cli import main; main()"]
            said = subprocess.run([*linkmix, *words], check=True, capture_output=True, text=True).stdout
            print("\n".join(f"  {line}" for line in said.splitlines()[:2] if line))
            with (out / "labels.csv").open(encoding="utf-8") as file:
                return np.array([int(row["label"]) for row in csv.DictReader(file)])

        print(f"the texts alone: purity {purity(truth, labels('fit')):.2f}")
        program = shlex.join([sys.executable, __file__, "--answer"])
        found = labels("ask", "--answers", program, "--name", "rule", "--questions", "120")
        print(f"after 120 questions: purity {purity(truth, found):.2f}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--answer"]:
        answer_all()
    else:
        main()
