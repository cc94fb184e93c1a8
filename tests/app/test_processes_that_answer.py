"""Programs behind a pipe: what goes out, what comes in, and every way in which it can go wrong."""

import json
import os
import re
import shlex
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from linkmix.app.label.requests import as_entry
from linkmix.app.programs import Program, as_line, as_reply, fields_of, tally_in, words_of
from linkmix.queries import BadAnswer, PairQuestion, Reply, Tally
from linkmix.tables import read_points

QUESTIONS = [PairQuestion(n, (n, n + 1), {"name": f"é{n}"}, {"name": "bob"}, 3 - n) for n in (1, 2, 3)]
ANSWER_ALL = """
import json, sys
for line in sys.stdin:
    question = json.loads(line)
    print(json.dumps({"id": question["id"], "answer": "same", "reason": question["a"]["name"]}))
"""


def program(code, **options):
    return Program(shlex.join([sys.executable, "-c", code]), **options)


def refused(code, **options):
    with program(code, **options) as opened, pytest.raises(BadAnswer) as error:
        list(opened.answer(QUESTIONS))
    return str(error.value)


def test_questions_go_out_and_answers_come_in():
    with program(ANSWER_ALL) as opened:
        first = list(opened.answer(QUESTIONS))
        again = list(opened.answer([PairQuestion(4, (0, 1), {"name": "x"}, {})]))  # the same process
    assert first == [Reply(n, "same", None, f"é{n}") for n in (1, 2, 3)]
    assert again == [Reply(4, "same", None, "x")]


def test_a_question_is_a_line_of_json():
    line = as_line(PairQuestion(7, (0, 1), {"text": "two\nlines"}, {"size": 1.5, "note": None}, 2))
    assert line.count(b"\n") == 1
    assert json.loads(line) == {
        "id": 7,
        "question": "same?",
        "a": {"text": "two\nlines"},
        "b": {"size": 1.5, "note": None},
        "more": 2,
    }


def test_answers_may_come_in_any_order_with_other_fields_and_empty_lines():
    code = """
import json, sys
questions = [json.loads(sys.stdin.readline()) for _ in range(3)]
for question in questions[::-1]:
    print()
    print(json.dumps({"id": question["id"], "answer": "unsure", "confidence": 0.5, "tokens": 12}))
"""
    with program(code) as opened:
        assert [reply.id for reply in opened.answer(QUESTIONS)] == [3, 2, 1]


def test_large_batches_do_not_block():
    long = "x" * 20_000
    questions = [PairQuestion(n, (0, 1), {"name": long}, {"name": long}) for n in range(200)]
    with program(ANSWER_ALL) as opened:
        assert len(list(opened.answer(questions))) == 200


def test_an_early_end_is_named_with_code_and_complaints():
    message = refused("import sys; input(); print('no key for the service', file=sys.stderr); sys.exit(3)")
    assert "ended with exit code 3 after 0 of 3 answers" in message
    assert message.endswith("Its last lines on stderr:\n  no key for the service")


def test_an_end_in_the_middle_keeps_what_came():
    code = "import json; print(json.dumps({'id': json.loads(input())['id'], 'answer': 'different'}))"
    got = []
    with program(code) as opened, pytest.raises(BadAnswer, match="exit code 0 after 1 of 3 answers"):
        got.extend(opened.answer(QUESTIONS))
    assert got == [Reply(1, "different")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("Sure! They are the same.", "'Sure! They are the same.': not an object of JSON: write lines such as"),
        ("[1, 2]", "'[1, 2]': not an object of JSON"),
        ('{"id": 1}', "there is no 'answer': write lines such as"),
        ('{"answer": "same"}', "there is no 'id'"),
        ('{"id": 9, "answer": "same"}', "id 9 was not asked, or was answered before"),
        ('{"id": "1", "answer": "same"}', "the id is '1': repeat the id of the question, a whole number"),
        ('{"id": 1, "answer": "yes"}', "the answer is 'yes': use one of 'same', 'different', 'unsure'"),
        ('{"id": 1, "answer": ["same"]}', "the answer is ['same']"),
        ('{"id": 1, "answer": "same", "confidence": 90}', "the confidence is 90: give a number from 0 to 1"),
        ('{"id": 1, "answer": "same", "reason": 5}', "the reason is 5: give a text"),
    ],
)
def test_a_bad_line_is_named_with_its_number_and_content(line, message):
    error = refused(f'print(\'{{"id": 2, "answer": "same"}}\'); print(); print({line!r}); input(); input(); input()')
    assert "line 3 of the output of " in error
    assert message in error


def test_a_long_bad_line_is_cut():
    error = refused("print('x' * 5000); input()")
    assert "x" * 200 + "...'" in error
    assert "x" * 201 not in error


def test_bytes_that_are_no_text_are_a_bad_line():
    assert "not an object of JSON" in refused("import sys; sys.stdout.buffer.write(b'\\xff\\xfe\\n'); input()")


def test_silence_is_ended_after_the_time_out():
    begin = time.monotonic()
    message = refused("import sys, time; print('thinking', file=sys.stderr); time.sleep(600)", timeout=0.5)
    assert time.monotonic() - begin < 30
    assert "gave no answer within 0.5 seconds, after 0 of 3" in message
    assert "--timeout" in message
    assert "thinking" in message


def test_a_program_that_does_not_exist_is_named():
    with pytest.raises(BadAnswer, match=r"no-such-program cannot be started .*: check the name of the program"):
        list(Program("no-such-program --fast").answer(QUESTIONS))


@pytest.mark.parametrize(
    ("command", "message"), [("", "the command is empty"), ("  ", "empty"), ("rule 'x", "check its quotes")]
)
def test_a_command_that_cannot_be_read_is_refused(command, message):
    with pytest.raises(BadAnswer, match=message):
        words_of(command)
    with pytest.raises(BadAnswer, match=message):
        Program(command)


@pytest.mark.skipif(os.name == "nt", reason="needs a shell")
def test_what_the_program_started_ends_with_it(tmp_path):
    beacon = tmp_path / "alive"
    loop = f"while true; do date +%s%N > {shlex.quote(str(beacon))}; sleep 0.05; done"
    opened = Program(shlex.join(["sh", "-c", f"({loop}) & sleep 600"]), timeout=5)
    with pytest.raises(BadAnswer, match="no answer"):
        list(opened.answer(QUESTIONS))
    time.sleep(0.3)
    before = beacon.read_text()
    time.sleep(0.5)
    assert beacon.read_text() == before


def test_a_program_that_was_never_asked_can_be_closed():
    Program("no-such-program").close()


def test_fields_are_as_the_user_wrote_them(tmp_path):
    file = tmp_path / "points.csv"
    file.write_text(
        'id,price,size,plan,note,n\n007,"10,216.50",1.5,gold,first one,3\n008,"9,000.00",,free,other text,4\n'
        '009,"8,000.00",2.5,free,third thing,5\n'
    )
    points = read_points(file)
    seen = fields_of(points, 0)
    assert seen["id"] == "007"
    assert seen["price"] == "10,216.50"
    assert (seen["size"], seen["n"], seen["plan"], seen["note"]) == (1.5, 3, "gold", "first one")
    assert fields_of(points, 1)["size"] in (None, "")
    json.dumps(seen)


def test_numbers_are_whole_where_they_are():
    from linkmix.tables import Points

    points = Points(np.array(["a", "b"]), ("x", "y"), np.array([[1e300, 2.0], [np.nan, -0.5]]))
    assert fields_of(points, 0) == {"id": "a", "x": 1e300, "y": 2}
    assert fields_of(points, 1) == {"id": "b", "x": None, "y": -0.5}


def test_remarks_on_an_answer_go_to_the_journal():
    request = {"entry": "answer", "key": "k", "rows": [0, 1], "said": "same"}
    entry = as_entry(request | {"confidence": 1, "reason": "why", "repeated": True, "votes": ["same"]}, ["a", "b"], 8)
    assert (entry["confidence"], entry["reason"], entry["repeated"], entry["votes"]) == (1, "why", True, ["same"])
    entry = as_entry(request | {"confidence": None, "repeated": False}, ["a", "b"], 8)
    assert not {"confidence", "reason", "repeated", "votes"} & entry.keys()


@pytest.mark.parametrize(
    ("remark", "message"),
    [
        ({"confidence": 1.5}, "confidence is 1.5: give a number from 0 to 1, or null"),
        ({"confidence": True}, "confidence is True"),
        ({"confidence": "high"}, "confidence is 'high'"),
        ({"reason": 5}, "reason is 5: give a text"),
        ({"repeated": "yes"}, "repeated is 'yes': give true, false or null"),
        ({"votes": "same"}, "votes is 'same': give a list of at most"),
        ({"votes": ["maybe"]}, "votes is 'maybe'"),
    ],
)
def test_bad_remarks_are_refused(remark, message):
    request = {"entry": "answer", "key": "k", "rows": [0, 1], "said": "same"}
    with pytest.raises(ValueError, match=re.escape(message)):
        as_entry(request | remark, ["a", "b"], 8)


def test_the_tally_of_a_journal_counts_repeated_answers_of_one_program(tmp_path):
    journal = tmp_path / "links.csv.journal"
    assert tally_in(journal, "rule") == Tally()
    assert not journal.exists()

    def answer(key, a, b, said, annotator="rule", **more):
        return {"entry": "answer", "key": key, "ids": [a, b], "said": said, "annotator": annotator, **more}

    entries = [
        {"entry": "links", "digest": "0", "statements": [["a", "d", "same", None, "eva", True]]},
        answer("1", "a", "b", "same"),
        answer("2", "b", "a", "different", repeated=True),  # contradicts itself
        answer("3", "c", "a", "same", annotator="ida"),
        answer("4", "a", "c", "same", repeated=True),  # agrees with ida
        answer("5", "a", "d", "different", repeated=True),  # disagrees with the file
        answer("6", "b", "c", "same"),
        answer("7", "c", "b", "different", repeated=True),
        {"entry": "undo", "key": "8", "of": "7", "annotator": "rule"},
        answer("9", "b", "a", "unsure", repeated=True),
        answer("10", "a", "b", "same", annotator="other", repeated=True),
        answer("11", "e", "f", "same", votes=["same", "same"]),
        answer("12", "e", "g", "same", votes=["different", "same", "same", "same"]),
        answer("13", "e", "h", "skip", votes=["same"]),
        answer("14", "e", "h", "unsure", votes=["unsure"]),
    ]
    journal.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    assert tally_in(journal, "rule") == Tally(repeated=3, contradicted=2, compared=2, disagreed=1)


CLIENT = '''
import re

def complete(prompt):
    """Pairs whose texts begin with the same letter are the same; says something else before, and forgets pair 3."""
    lines = ["Sure, here are the answers:"]
    for number, a, b in re.findall(r"Pair (\\d+)\\nA: (.*)\\nB: (.*)", prompt):
        if number != "3":
            said = "same" if a[0] == b[0] else "different"
            lines.append('{"id": %s, "answer": "%s"}' % (number, said))
    return "\\n".join(lines)
'''


def test_the_program_of_the_docs_answers(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "programs.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    [code] = [block for block in blocks if "client" in block]
    (tmp_path / "ask_model.py").write_text(code)
    (tmp_path / "client.py").write_text(CLIENT)
    texts = [("anna", "ann"), ("bob", "carl"), ("dora", "dora"), ("eva", "emil")]
    questions = [PairQuestion(n, (0, 1), {"text": a}, {"text": b}, 4 - n) for n, (a, b) in enumerate(texts, 1)]
    with Program(shlex.join([sys.executable, str(tmp_path / "ask_model.py")])) as opened:
        assert [reply.said for reply in opened.answer(questions)] == ["same", "different", "unsure", "same"]
        assert [reply.id for reply in opened.answer([PairQuestion(9, (0, 1), {"text": "x"}, {"text": "y"})])] == [9]


@pytest.mark.parametrize(
    "form", ["[" * 100_000, '{"id": 1, "answer": "same", "x": ' + "[" * 100_000 + "]" * 100_000 + "}"]
)
def test_deep_nesting_is_no_answer(form):
    with pytest.raises(BadAnswer, match="not an object of JSON"):
        as_reply(form)


def test_a_line_without_end_is_refused():
    message = refused("import sys\nwhile True: sys.stdout.write('x' * 100_000)", timeout=300)
    assert "longer than 1,048,576 characters: end each answer with a new line" in message
    assert len(message) < 1000


def test_a_flood_of_lines_waits_until_somebody_reads_them():
    flood = """
import sys
for _ in range(100_000):
    print('{"id": 1, "answer": "same"}', flush=False)
print("all written", file=sys.stderr)
"""
    with program(flood) as opened:
        assert next(opened.answer(QUESTIONS)) == Reply(1, "same")
        time.sleep(2)
        assert opened._lines.qsize() < 100_000 / 2  # what one pipe holds is read at once
        with pytest.raises(BadAnswer, match="id 1 was not asked, or was answered before"):
            list(opened.answer(QUESTIONS[1:]))


def test_a_long_line_of_complaints_blocks_nothing():
    """As a bar of progress writes it, which never ends its line."""
    with program("import sys\nsys.stderr.write('x' * 5_000_000)\n" + ANSWER_ALL) as opened:
        assert len(list(opened.answer(QUESTIONS))) == 3
    assert all(len(line) <= 200 for line in opened._complaints)
