"""The command ask: a conversation whose every answer is kept."""

import os
import pty
import subprocess
import sys

import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_iris

from linkmix.app.cli import main
from linkmix.tables import read_links

IRIS, SPECIES = load_iris(return_X_y=True)
IDS = [f"{i:03}" for i in range(len(IRIS))]
COLUMNS = ["sepal_length", "sepal_width", "petal_length", "petal_width"]


def run(*arguments, typed=""):
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=typed)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with iris as a table and a model of it."""
    frame = pd.DataFrame(IRIS, columns=COLUMNS)
    frame.insert(0, "id", IDS)
    frame["note"] = ["a flower, number " + name for name in IDS]
    frame.to_csv(tmp_path / "points.csv", index=False)
    monkeypatch.chdir(tmp_path)
    result = run("fit", "points.csv", "--classes", 3, "--method", "linkmix", "--out", "out")
    assert result.exit_code == 0, result.output
    return tmp_path


def ask(*arguments, typed):
    return run("ask", "out/model.linkmix", "points.csv", *arguments, typed=typed)


def test_answers_go_to_the_file_of_links(folder):
    result = ask(typed="s\nd\nu\nq\n")
    assert result.exit_code == 0, result.output
    links = read_links("links.csv", IDS)
    assert (links.n_must, links.n_cannot) == (1, 1)
    assert "2 answers added to links.csv" in result.output
    assert "linkmix fit points.csv --links links.csv --classes 3" in result.output


def test_both_rows_are_shown_with_all_their_fields(folder):
    result = ask(typed="q\n")
    block = result.output.split("do these two belong together?\n")[1].splitlines()
    names = [line.split()[0] for line in block[:6]]
    assert names == ["id", *COLUMNS, "note"]
    a, b = block[0].split()[1:3]
    line = next(line for line in block if line.strip().startswith("petal_length"))
    shown = [float(word) for word in line.split()[1:] if word != "*"]
    assert shown == [IRIS[int(a), 2], IRIS[int(b), 2]]
    assert ("*" in line) == (shown[0] != shown[1])


def test_what_the_file_holds_is_known_and_kept(folder):
    (folder / "links.csv").write_text("a,b,kind,confidence,annotator\n000,001,must,0.9,eva\n000,100,cannot,,\n")
    result = ask(typed="s\nq\n")
    assert result.exit_code == 0, result.output
    links = read_links("links.csv", IDS)
    assert (links.n_must, links.n_cannot) == (2, 1)
    assert links.must_confidence.tolist() == [0.9, 1.0]
    assert links.must_annotators.tolist() == ["eva", None]


def test_undo_takes_the_answer_from_the_file(folder):
    result = ask(typed="s\nz\nz\nq\n")
    assert "Taken back: same." in result.output
    assert "There is nothing to undo." in result.output
    assert read_links("links.csv", IDS).empty
    assert "0 answers added" in result.output


def test_the_end_of_the_input_is_quit_and_nothing_is_lost(folder):
    result = ask(typed="d\n")
    assert result.exit_code == 0, result.output
    assert read_links("links.csv", IDS).n_cannot == 1


def test_other_keys_are_refused(folder):
    result = ask(typed="x\nd\nq\n")
    assert "Type one of the letters in brackets." in result.output
    assert read_links("links.csv", IDS).n_cannot == 1


def test_a_long_conversation_refits_and_asks_nothing_twice(folder):
    truth = dict(zip(IDS, SPECIES, strict=True))
    asked = []
    for _ in range(3):
        result = ask(typed="q\n")
        a, b = result.output.split("belong together?\n")[1].split()[1:3]
        asked.append(frozenset((a, b)))
        ask(typed=("s" if truth[a] == truth[b] else "d") + "\nq\n")
    assert len(set(asked)) == 3
    result = ask(typed="d\n" * 12 + "q\n")
    assert result.exit_code == 0, result.output
    assert "may still change" in result.output or "settled" in result.output


def test_answers_that_may_be_wrong_are_asked_for_again_and_become_one_link(folder):
    first = ask(typed="q\n").output
    ids = [word for word in first.split("id ")[1].split() if word in IDS][:2]
    together = SPECIES[int(ids[0])] == SPECIES[int(ids[1])]
    lie, right = ("d", "s") if together else ("s", "d")
    result = ask("--wrong", 0.1, typed=f"{lie}\n{right}\n{right}\nq\n")
    assert result.exit_code == 0, result.output
    assert [line.split()[-2:] for line in result.output.splitlines() if line.startswith("  id ")][:3] == [ids] * 3
    assert result.output.count("once more, do these two belong together? The answer was a surprise.") == 2
    assert pd.read_csv("links.csv")["confidence"].tolist() == [0.9]
    result = run("fit", "points.csv", "--classes", 3, "--links", "links.csv", "--out", "again")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--strategy", "guess"], "--strategy guess is not known: choose from cover, random"), (["--wrong", 0.6], "0.6")],
)
def test_bad_options_exit_with_2(arguments, message, folder):
    result = ask(*arguments, typed="q\n")
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal, which this system has not")
def test_it_works_in_a_terminal(folder):
    ours, theirs = pty.openpty()
    command = [
        sys.executable,
        "-c",
        "from linkmix.app.cli import main; main()",
        "ask",
        "out/model.linkmix",
        "points.csv",
    ]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder) as process:
        os.close(theirs)
        os.write(ours, b"d\nq\n")
        said = b""
        while True:
            try:
                some = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not some:
                break
            said += some
        assert process.wait(60) == 0, said.decode()
    os.close(ours)
    assert b"1 answers added" in said
    assert read_links(folder / "links.csv", IDS).n_cannot == 1


def test_an_audit_says_how_good_the_model_is(folder):
    ask(typed="s\nd\nq\n")
    shown, typed = [], []
    for number in range(1, 4):  # the same pairs, as long as the links are the same
        result = ask("--audit", 3, typed="".join(typed))
        assert result.exit_code == 0, result.output
        assert f"Question {number} of 3" in result.output
        ids = [line.split()[-2:] for line in result.output.splitlines() if line.startswith("  id ")][-1]
        shown.append(ids)
        typed.append("s\n" if SPECIES[int(ids[0])] == SPECIES[int(ids[1])] else "d\n")
        (folder / "links.csv").unlink()
        ask(typed="s\nd\nq\n")
    result = ask("--audit", 3, typed="".join(typed))
    assert result.exit_code == 0, result.output
    assert "from 3 questions about random pairs, measured before their answers were used." in result.output
    assert "3 answers added to links.csv." in result.output
    written = pd.read_csv("links.csv", dtype=str)
    assert written["chosen"].tolist().count("yes") == 2
    random = written[written["chosen"] == "no"]
    assert {frozenset(pair) for pair in random[["a", "b"]].to_numpy().tolist()} == {frozenset(ids) for ids in shown}


def test_an_audit_that_is_not_complete_keeps_its_answers(folder):
    result = ask("--audit", 5, typed="s\nu\nz\nz\nd\nq\n")
    assert result.exit_code == 0, result.output
    assert "Taken back: unsure." in result.output
    assert "Taken back: same." in result.output
    assert "Too few answers to say how good the model is" in result.output
    assert read_links("links.csv", IDS).n_cannot == 1
