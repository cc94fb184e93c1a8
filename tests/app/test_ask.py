"""The command ask: a conversation with a person or a program whose every answer is kept."""

import json
import os
import pty
import select
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score

from linkmix.app.cli import main
from linkmix.basics.journal import entries_in
from linkmix.tables import read_links

IRIS, SPECIES = (every[::2] for every in load_iris(return_X_y=True))
IDS = [f"{i:03}" for i in range(len(IRIS))]
COLUMNS = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
LINKS = "points-links.csv"
LINKMIX = [sys.executable, "-c", "from linkmix.app.cli import main; main()"]
needs_terminal = pytest.mark.skipif(
    not hasattr(os, "openpty"), reason="needs a pseudo-terminal, which this system has not"
)

RULE = """
import json, sys
species = json.load(open("species.json"))
for line in sys.stdin:
    question = json.loads(line)
    a, b = (species[question[end]["id"]] for end in "ab")
    print(json.dumps({"id": question["id"], "answer": "same" if a == b else "different", "confidence": 0.9}))
"""


def run(*arguments, typed=""):
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=typed)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with iris as a table, and a program that knows the species."""
    frame = pd.DataFrame(IRIS, columns=COLUMNS)
    frame.insert(0, "id", IDS)
    frame["note"] = ["a flower, number " + name for name in IDS]
    frame.to_csv(tmp_path / "points.csv", index=False)
    (tmp_path / "species.json").write_text(json.dumps(dict(zip(IDS, SPECIES.tolist(), strict=True))))
    (tmp_path / "rule.py").write_text(RULE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def model(folder):
    result = run("fit", "points.csv", "--classes", 3, "--method", "linkmix", "--out", "out")
    assert result.exit_code == 0, result.output
    return "out/model.linkmix"


def ask(*arguments, typed):
    return run("ask", "points.csv", "--classes", 3, *arguments, typed=typed)


def ask_rule(*arguments, code=None):
    name = "rule.py"
    if code is not None:
        name = "other.py"
        with open(name, "w") as file:
            file.write(code)
    return run("ask", "points.csv", "--classes", 3, "--answers", shlex.join([sys.executable, name]), *arguments)


def pairs_shown(output):
    return [line.split()[-2:] for line in output.splitlines() if line.startswith("  id ")]


def links():
    return read_links(LINKS, IDS)


def journal():
    return entries_in(LINKS + ".journal")


# A person, by lines


def test_answers_go_to_the_journal_and_the_file_of_links(folder):
    result = ask("--name", "ida", typed="s\nd\nu\nk\nq\n")
    assert result.exit_code == 0, result.output
    assert (links().n_must, links().n_cannot) == (1, 1)
    assert links().must_annotators.tolist() == ["ida"]
    assert [entry["said"] for entry in journal() if entry["entry"] == "answer"] == [
        "same",
        "different",
        "unsure",
        "skip",
    ]
    assert f"4 answers added to {LINKS}." in result.output
    assert f"{LINKS}: 1 must-link and 1 cannot-link." in result.output
    assert "The same command goes on from here; with --finish" in result.output


def test_both_rows_are_shown_with_all_their_fields(folder):
    result = ask(typed="q\n")
    why, _, *block = result.output.split("do these two belong together?\n")[1].splitlines()
    assert why.startswith("  ")
    assert why.endswith(".")
    names = [line.split()[0] for line in block[:6]]
    assert names[0] == "id"
    assert sorted(names[1:]) == sorted([*COLUMNS, "note"])
    a, b = block[0].split()[1:3]
    line = next(line for line in block if line.strip().startswith("petal_length"))
    shown = [float(word) for word in line.split()[1:] if word != "*"]
    assert shown == [IRIS[int(a), 2], IRIS[int(b), 2]]
    assert ("*" in line) == (shown[0] != shown[1])


def test_long_texts_are_wrapped_and_do_nothing_to_the_terminal(folder):
    texts = [f"{'word ' * 12}number {i} \x1b[31m {'end ' * 400}" for i in range(20)]
    random = np.random.default_rng(0)
    lines = [f'{i},{random.normal():.3f},"{text}"' for i, text in enumerate(texts)]
    Path("texts.csv").write_text("\n".join(["id,x,text", *lines]) + "\n")
    result = run("ask", "texts.csv", "--classes", 2, "--columns", "x", typed="q\n")
    assert result.exit_code == 0, result.output
    a, b = pairs_shown(result.output)[0]
    assert f"number {a}" in result.output
    assert f"number {b}" in result.output
    assert "\x1b" not in result.output
    block = result.output.split("belong together?\n")[1].split("[s]ame")[0].splitlines()
    assert max(map(len, block)) <= 80
    assert len(block) < 20


def test_what_the_file_holds_is_known_and_kept(folder):
    (folder / "links.csv").write_text("a,b,kind,confidence,annotator\n000,001,must,0.9,eva\n000,060,cannot,,\n")
    result = ask("--links", "links.csv", typed="s\nq\n")
    assert result.exit_code == 0, result.output
    found = read_links("links.csv", IDS)
    assert (found.n_must, found.n_cannot) == (2, 1)
    assert found.must_confidence.tolist() == [0.9, 1.0]
    assert found.must_annotators.tolist() == ["eva", None]


def test_undo_takes_the_answer_from_the_file_and_asks_again(folder):
    result = ask(typed="s\nz\nz\nq\n")
    assert "Taken back: same." in result.output
    assert "There is nothing to undo." in result.output
    shown = pairs_shown(result.output)
    assert shown[0] == shown[2] != shown[1]
    assert links().empty
    assert "0 answers added" in result.output


def test_the_end_of_the_input_is_quit_and_nothing_is_lost(folder):
    result = ask(typed="d\n")
    assert result.exit_code == 0, result.output
    assert links().n_cannot == 1


def test_other_keys_are_refused(folder):
    result = ask(typed="x\nd\nq\n")
    assert "Type one of the letters in brackets." in result.output
    assert links().n_cannot == 1


def test_it_goes_on_where_it_was_and_asks_nothing_twice(folder):
    asked = []
    for _ in range(3):
        result = ask(typed="d\nq\n")
        asked.append(frozenset(pairs_shown(result.output)[0]))
    assert len(set(asked)) == 3
    result = ask("--questions", 12, typed="d\n" * 50)
    assert result.exit_code == 0, result.output
    assert "12 answers added" in result.output
    assert len([entry for entry in journal() if entry["entry"] == "answer"]) == 15


def test_the_number_of_classes_need_not_be_known(folder):
    result = run("ask", "points.csv", "--out", "done", typed="d\ns\nf\n")
    assert result.exit_code == 0, result.output
    assert len(pd.read_csv("done/labels.csv")) == len(IRIS)


def test_progress_is_told(folder):
    result = ask(typed="d\nq\n")
    assert "It is too early to say when to stop: answer 20 questions first." in result.output


def test_finish_writes_what_the_session_shows(folder):
    result = ask("--questions", 3, "--finish", "--out", "done", typed="d\n" * 3)
    assert result.exit_code == 0, result.output
    assert {"labels.csv", "model.linkmix", "report.html", "links.csv"} <= set(os.listdir("done"))
    assert len(pd.read_csv("done/labels.csv")) == len(IRIS)
    assert "linkmix predict done/model.linkmix points.csv" in result.output
    assert "The same command goes on" not in result.output
    result = run("predict", "done/model.linkmix", "points.csv", "--out", "again.csv")
    assert result.exit_code == 0, result.output


def test_the_key_f_finishes(folder):
    result = ask("--out", "done", typed="d\nf\n")
    assert result.exit_code == 0, result.output
    assert os.path.exists("done/labels.csv")


def test_no_finish_wins_over_the_key(folder):
    result = ask("--out", "done", "--no-finish", typed="d\nf\n")
    assert result.exit_code == 0, result.output
    assert not os.path.exists("done")


def test_answers_that_may_be_wrong_are_asked_for_again(folder):
    liar = RULE.replace("a == b", "a != b")
    assert ask_rule("--questions", 12, "--repeat", 0, "--wrong", 0.1, "--no-finish", code=liar).exit_code == 0
    result = ask("--wrong", 0.1, typed="q\n")
    assert "once more, do these two belong together? The answer was a surprise." in result.output
    [ids] = pairs_shown(result.output)
    assert set(ids) in [set(entry["ids"]) for entry in journal() if entry["entry"] == "answer"]
    assert set(pd.read_csv(LINKS)["confidence"]) & {0.9}
    assert "once more" not in ask(typed="q\n").output  # if answers are taken to be right, nothing is


def test_an_audit_says_how_good_the_labels_are(folder):
    result = ask("--audit", 3, typed="s\n")
    assert "Question 1 of 3" in result.output
    assert "Too few answers to say how good the labels are: the same command asks the rest." in result.output
    result = ask("--audit", 3, typed="u\nz\ns\nd\n")
    assert result.exit_code == 0, result.output
    assert "Question 2 of 3" in result.output
    assert "Question 1 of 3" not in result.output
    assert "Taken back: unsure." in result.output
    assert "from 3 questions about random pairs" in result.output
    assert "chosen" not in pd.read_csv(LINKS)  # they are random
    assert links().n_must + links().n_cannot == 3


def test_nothing_is_finished_while_a_check_is_under_way(folder):
    result = ask("--audit", 3, "--finish", typed="s\nq\n")
    assert result.exit_code == 0, result.output
    assert "Nothing is written while a check is under way" in result.output
    assert not os.path.exists("linkmix-out")


# With a model, as before


def test_a_model_says_which_columns_and_classes_there_are(model):
    result = run("ask", model, "points.csv", typed="s\nd\nq\n")
    assert result.exit_code == 0, result.output
    found = read_links("links.csv", IDS)
    assert (found.n_must, found.n_cannot) == (1, 1)
    assert "2 answers added to links.csv." in result.output


def test_an_audit_measures_the_model(model):
    typed = ""
    for _ in range(5):
        result = run("ask", model, "points.csv", "--audit", 3, "--no-finish", typed=typed)
        assert result.exit_code == 0, result.output
        if "questions about random pairs" in result.output:
            break
        a, b = pairs_shown(result.output)[-1]
        typed += "s\n" if SPECIES[int(a)] == SPECIES[int(b)] else "d\n"
        os.remove("links.csv.journal")
    assert "from 3 questions about random pairs" in result.output
    assert "About 9" in result.output  # the model is good, and all answers were right


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--classes", 3], "--classes has no effect with MODEL"),
        (["--columns", "sepal_length"], "--columns has no effect with MODEL"),
        (["--leave-out", "note"], "--leave-out has no effect with MODEL"),
        (["--as", "note=ignore"], "--as has no effect with MODEL"),
    ],
)
def test_what_the_model_says_is_not_said_twice(arguments, message, model):
    result = run("ask", model, "points.csv", *arguments, typed="q\n")
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--strategy", "guess"], "--strategy guess is not known: choose from cover, random"),
        (["--wrong", 0.6], "0.6"),
        (["--batch", 5], "--batch has no effect without --answers"),
        (["--agree", 2], "--agree has no effect without --answers"),
        (["--least-confidence", 0.5], "--least-confidence has no effect without --answers"),
        (["--answers", "rule", "--audit", 5], "--audit measures the labels by what a person says"),
        (["--answers", ""], "the command is empty"),
        (["--answers", "rule '"], "check its quotes"),
        (["other.csv", "third.csv"], "3 files are given: give POINTS, or MODEL and POINTS"),
    ],
)
def test_bad_options_exit_with_2(arguments, message, folder):
    result = ask(*arguments, typed="q\n")
    assert result.exit_code == 2
    assert message in result.output
    assert not os.path.exists(LINKS + ".journal")


# A person at a terminal


class Terminal:
    """A command in a pseudo-terminal."""

    def __init__(self, *arguments):
        self.ours, theirs = pty.openpty()
        command = [*LINKMIX, "ask", "points.csv", "--classes", "3", *arguments]
        self.process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
        os.close(theirs)
        self.said, self.place = "", 0

    def until(self, text, seconds=120):
        """Read until some text has come after that of the last call; False if that takes too long."""
        end = time.monotonic() + seconds
        while text not in self.said[self.place :]:
            ready, _, _ = select.select([self.ours], [], [], max(0, end - time.monotonic()))
            if not ready:
                return False
            self.said += os.read(self.ours, 4096).decode(errors="replace")
        self.place = self.said.index(text, self.place) + len(text)
        return True

    def reply(self, prompt, key, echo):
        """Press a key at a prompt. One that comes before the terminal is ready does not count: then press again."""
        assert self.until(prompt), self.said
        for _ in range(5):
            time.sleep(0.1)
            self.press(key)  # no Enter
            if self.until(echo, seconds=15):
                return
        raise AssertionError(f"{key!r} had no effect: {self.said}")

    def press(self, keys):
        os.write(self.ours, keys.encode())

    def end(self):
        """Read to the end."""
        while True:
            try:
                some = os.read(self.ours, 4096)
            except OSError:  # the other end is closed
                break
            if not some:
                break
            self.said += some.decode(errors="replace")
        os.close(self.ours)
        return self.process.wait(120)


@needs_terminal
def test_single_keys_answer_at_a_terminal(folder):
    terminal = Terminal("--out", "done")
    for key, said in (
        ("s", "same"),
        ("D", "different"),
        ("k", "skip"),
        ("z", "undo"),
        ("u", "unsure"),
        ("q", "quit"),
    ):
        terminal.reply("[q]uit: ", key, said)
    terminal.reply("Write labels, model and report? [y]es, [n]o: ", "y", "yes")
    assert terminal.end() == 0, terminal.said
    assert "Taken back: skip." in terminal.said
    assert f"3 answers added to {LINKS}." in terminal.said
    assert (links().n_must, links().n_cannot) == (1, 1)
    assert os.path.exists("done/labels.csv")
    assert "linkmix predict done/model.linkmix points.csv" in terminal.said


@needs_terminal
@pytest.mark.parametrize("key", ["\x03", "\x04"])
def test_control_c_and_d_keep_everything(key, folder):
    terminal = Terminal("--out", "done")
    terminal.reply("[q]uit: ", "d", "different")
    terminal.reply("[q]uit: ", key, "\n")
    if key == "\x04":
        terminal.reply("[y]es, [n]o: ", "n", "no")
    assert terminal.end() == 0, terminal.said
    assert f"1 answer added to {LINKS}." in terminal.said
    assert links().n_cannot == 1
    assert not os.path.exists("done")


# A program


def test_a_program_answers_and_the_results_are_written(folder):
    result = ask_rule("--questions", 60, "--name", "rule", "--out", "done")
    assert result.exit_code == 0, result.output
    assert "rule: 60 answers (" in result.output
    assert "pairs asked twice, 0 got two answers." in result.output
    entries = [entry for entry in journal() if entry["entry"] == "answer"]
    assert len(entries) == 60
    assert {entry["annotator"] for entry in entries} == {"rule"}
    assert {entry["confidence"] for entry in entries} == {0.9}
    assert any(entry.get("repeated") for entry in entries)
    assert set(pd.read_csv(LINKS)["annotator"]) == {"rule"}
    labels = pd.read_csv("done/labels.csv", dtype={"id": str}).set_index("id")["label"]
    assert adjusted_rand_score(SPECIES, labels[IDS]) > 0.9
    assert "linkmix predict done/model.linkmix points.csv" in result.output


def test_a_program_goes_on_beside_people(folder):
    ask("--name", "ida", typed="d\ns\nq\n")
    first = ask_rule("--questions", 10, "--no-finish", "--name", "rule")
    assert first.exit_code == 0, first.output
    assert "The same command goes on from here" in first.output
    second = ask_rule("--questions", 10, "--no-finish", "--name", "rule", "--repeat", 1)
    assert second.exit_code == 0, second.output
    assert "of 2 pairs that others answered, it disagrees on" in second.output
    by = [entry["annotator"] for entry in journal() if entry["entry"] == "answer"]
    assert (by.count("ida"), by.count("rule")) == (2, 20)
    assert not os.path.exists("linkmix-out")
    third = ask("--name", "ida", typed="q\n")
    assert third.exit_code == 0, third.output


def test_several_processes_answer_in_parallel(folder):
    code = RULE + "\n    open(f'pid-{__import__(\"os\").getpid()}', 'w').close()"
    result = ask_rule("--questions", 40, "--batch", 5, "--parallel", 3, "--no-finish", code=code)
    assert result.exit_code == 0, result.output
    assert "program: 40 answers" in result.output
    assert len([name for name in os.listdir(".") if name.startswith("pid-")]) == 3


def test_answers_have_to_agree(folder):
    result = ask_rule("--questions", 40, "--agree", 2, "--no-finish")
    assert result.exit_code == 0, result.output
    assert "program: 40 answers" in result.output
    entries = [entry for entry in journal() if entry["entry"] == "answer"]
    assert len(entries) == 20
    assert all(entry["votes"] == [entry["said"]] * 2 for entry in entries)
    assert "of 20 pairs asked twice, 0 got two answers." in result.output
    assert pd.read_csv(LINKS)["confidence"].ge(0.98).all()  # 0.9 is that of a single answer


def test_doubtful_answers_count_as_unsure(folder):
    result = ask_rule("--questions", 12, "--least-confidence", 0.95, "--no-finish")
    assert "12 answers (0 same, 0 different, 12 unsure)" in result.output
    assert links().empty


def test_a_time_limit_ends_it(folder):
    code = "import time\n" + RULE.replace("    question =", "    time.sleep(0.2)\n    question =")
    result = ask_rule("--questions", 5000, "--seconds", 1, "--batch", 2, "--no-finish", code=code)
    assert result.exit_code == 0, result.output
    n = len([entry for entry in journal() if entry["entry"] == "answer"])
    assert 2 <= n < 100
    assert f"program: {n} answers" in result.output


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys; sys.exit('no key')", "ended with exit code 1 after 0 of 10 answers"),
        ("import sys; sys.exit('no key')", "  no key"),
        ("print('hello'); input()", "line 1 of the output of"),
        ("print('hello'); input()", "is 'hello': not an object of JSON"),
        ("import time; time.sleep(60)", "gave no answer within 1 seconds"),
    ],
)
def test_errors_of_the_program_are_named(code, message, folder):
    result = ask_rule("--timeout", 1, code=code)
    assert result.exit_code == 2
    assert message in result.output
    assert f"0 answers were kept in {LINKS}: the same command goes on from there" in result.output


def test_a_program_that_does_not_exist_is_named(folder):
    result = ask("--answers", "no-such-program", typed="")
    assert result.exit_code == 2
    assert "no-such-program cannot be started" in result.output


def test_what_was_answered_before_an_error_is_kept(folder):
    code = RULE + "\n    if question['id'] == 14: raise RuntimeError('the service is down')"
    result = ask_rule("--questions", 40, code=code)
    assert result.exit_code == 2
    assert "RuntimeError: the service is down" in result.output
    kept = [entry for entry in journal() if entry["entry"] == "answer"]
    assert 10 <= len(kept) <= 14
    assert f"{len(kept)} answers were kept" in result.output
    assert links().n_must + links().n_cannot > 5
    result = ask_rule("--questions", 10, "--no-finish")
    assert result.exit_code == 0, result.output


def test_a_program_does_not_answer_the_check_of_a_person(folder):
    ask("--audit", 3, typed="s\nq\n")
    result = ask_rule("--questions", 10)
    assert result.exit_code == 2
    assert "a check of the labels is under way" in result.output


@pytest.mark.skipif(os.name == "nt", reason="sends a signal")
def test_control_c_keeps_the_answers_of_a_program(folder):
    (folder / "slow.py").write_text(
        "import time\n" + RULE.replace("    question =", "    time.sleep(0.1)\n    question =")
    )
    command = [*LINKMIX, "ask", "points.csv", "--classes", "3", "--answers", shlex.join([sys.executable, "slow.py"])]
    process = subprocess.Popen([*command, "--questions", "5000"], stdout=subprocess.PIPE, text=True)
    end = time.monotonic() + 120
    while not os.path.exists(LINKS + ".journal") or len(journal_lines()) < 5:
        assert time.monotonic() < end
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said
    kept = [entry for entry in journal() if entry["entry"] == "answer"]
    assert f"program: {len(kept)} answers" in said
    assert "; interrupted." in said
    assert links().n_must + links().n_cannot == len({frozenset(entry["ids"]) for entry in kept})


def journal_lines():
    with open(LINKS + ".journal", "rb") as file:
        return [line for line in file if b'"is":{"entry":"answer"' in line and line.endswith(b"\n")]


def test_repeats_teach_how_often_a_program_errs(folder):
    code = "import random\nrandom.seed(1)\n" + RULE.replace(
        '"same" if a == b else', '"same" if (a == b) != (random.random() < 0.3) else'
    )
    result = ask_rule("--questions", 100, "--repeat", 0.5, "--no-finish", "--name", "liar", code=code)
    assert result.exit_code == 0, result.output
    share = int(result.output.split("About ")[1].split(" %")[0])
    assert 15 <= share <= 45
    confident = pd.read_csv(LINKS)["confidence"].min()
    again = ask_rule("--questions", 1, "--no-finish", "--name", "liar", "--repeat", 0, code=code)
    assert again.exit_code == 0, again.output
    assert pd.read_csv(LINKS)["confidence"].min() < confident  # what was learned counts at the next start
    assert np.isfinite(confident)
