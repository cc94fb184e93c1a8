"""A journal survives a crash, a full disk and other processes."""

import json
import os
import resource

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkmix.basics.errors import BadFile
from linkmix.basics.journal import Journal


@given(
    entries=st.lists(st.dictionaries(st.text(max_size=3), st.text(max_size=5) | st.integers()), max_size=5),
    data=st.data(),
)
def test_a_journal_cut_anywhere_keeps_all_whole_lines(tmp_path_factory, entries, data):
    path = tmp_path_factory.mktemp("cut") / "journal"
    journal = Journal(path)
    ends = [0]
    for entry in entries:
        journal.append(entry)
        ends.append(path.stat().st_size)
    journal.close()
    cut = data.draw(st.integers(0, ends[-1]))
    os.truncate(path, cut)
    journal = Journal(path)
    assert (journal.torn is None) == (path.stat().st_size == cut)
    n_whole = sum(end - 1 <= cut for end in ends) - 1  # a line that lacks only its end is whole
    assert journal.entries == entries[:n_whole]
    journal.append({"after": "the crash"})
    journal.close()
    journal = Journal(path)
    assert journal.entries == [*entries[:n_whole], {"after": "the crash"}]
    journal.close()


def test_half_a_line_of_an_earlier_version_is_kept_aside_and_rubbish_is_refused(tmp_path):
    path = tmp_path / "journal"
    path.write_bytes(b'{"a":1}\n{"a":\0\0')
    with Journal(path) as journal:
        assert journal.entries == [{"a": 1}]
        assert journal.torn.read_bytes() == b'{"a":\0\0\n'
    assert path.read_bytes() == b'{"a":1}\n'
    for rubbish in (b'{"a":1}\nrubbish\n{"a":2}\n', b'{"a":1}\nrubbish\n', b'{"a":1}\nrubbish', b'{"a":1}\n[2]\n'):
        path.write_bytes(rubbish)
        with pytest.raises(BadFile, match=r"journal, line 2: this line was changed or damaged: restore"):
            Journal(path)
        assert path.read_bytes() == rubbish


@pytest.mark.parametrize("content", [b"hello", b"id,x\n1,2\n", b'{\n "a": 1\n}\n', b"\x89PNG\r\n\x1a\n", b'{"a": '])
def test_another_file_is_refused_and_stays_as_it_is(tmp_path, content):
    path = tmp_path / "journal"
    path.write_bytes(content)
    with pytest.raises(BadFile, match="is not a journal of linkmix: name another file"):
        Journal(path)
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["journal"]


def test_a_journal_of_an_earlier_version_goes_on_and_is_sealed(tmp_path):
    path = tmp_path / "journal"
    old = b'{"entry":"answer","key":"k1"}\n{"entry":"answer","key":"k2"}'  # an editor took the last end away
    path.write_bytes(old)
    with Journal(path) as journal:
        assert [entry["key"] for entry in journal.entries] == ["k1", "k2"]
    assert path.read_bytes() == old  # opening changes nothing
    with Journal(path) as journal:
        journal.append({"entry": "answer", "key": "k3"})
    with Journal(path) as journal:
        assert [entry["key"] for entry in journal.entries] == ["k1", "k2", "k3"]
    path.write_bytes(path.read_bytes().replace(b"k2", b"k9"))
    with pytest.raises(BadFile, match="line 3: something above this line was changed"):
        Journal(path)


def five_answers(path):
    entries = [
        {"entry": "answer", "key": f"k{i}", "ids": ["p1", f"p{i}"], "said": said, "annotator": None}
        for i, said in enumerate(["same", "different", "unsure", "skip", "same"])
    ]
    with Journal(path) as journal:
        for entry in entries:
            journal.append(entry)
    return entries


def test_every_flipped_bit_of_a_journal_is_noticed(tmp_path):
    path = tmp_path / "journal"
    five_answers(path)
    content = path.read_bytes()
    for bit in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        with pytest.raises(BadFile, match=r"journal, line \d|is not a journal"):
            Journal(path)
        assert path.read_bytes() == flipped  # nothing is cut from the disk
    assert os.listdir(tmp_path) == ["journal"]


@pytest.mark.parametrize("change", ["lost", "doubled", "moved"])
def test_lines_that_are_lost_doubled_or_moved_are_noticed(tmp_path, change):
    path = tmp_path / "journal"
    five_answers(path)
    lines = path.read_bytes().splitlines(keepends=True)
    if change == "lost":
        del lines[2]
    elif change == "doubled":
        lines.insert(3, lines[2])
    else:
        lines[2], lines[3] = lines[3], lines[2]
    path.write_bytes(b"".join(lines))
    with pytest.raises(BadFile, match=r"line [34]: this line was changed or damaged"):
        Journal(path)


def test_a_second_one_is_refused_and_the_first_goes_on(tmp_path):
    journal = Journal(tmp_path / "journal")
    with pytest.raises(BadFile, match="another linkmix has this journal open"):
        Journal(tmp_path / "journal")
    journal.append({"a": 1})
    journal.close()
    again = Journal(tmp_path / "journal")
    assert again.entries == [{"a": 1}]
    again.close()


def test_a_full_disk_leaves_the_journal_as_it_was(tmp_path):
    journal = Journal(tmp_path / "journal")
    journal.append({"a": 1})
    size = journal.path.stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            journal.append({"text": "x" * 100})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert journal.path.stat().st_size == size
    journal.append({"a": 2})
    assert journal.entries == [{"a": 1}, {"a": 2}]
    journal.close()


# Journals that several processes write


def test_a_shared_journal_skips_rubbish_and_cuts_nothing_off(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_bytes(b'{"a":1}\nrubbish\n[2]\n{"a":2}\n{"a":')
    with Journal(path, shared=True) as journal:
        assert journal.entries == [{"a": 1}, {"a": 2}]
        journal.append({"a": 3})
    assert path.read_bytes() == b'{"a":1}\nrubbish\n[2]\n{"a":2}\n{"a":\n{"a":3}\n'
    with Journal(path, shared=True) as journal:
        assert journal.entries == [{"a": 1}, {"a": 2}, {"a": 3}]


def test_a_last_line_that_lacks_only_its_end_counts_in_a_shared_journal(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_bytes(b'{"a": 1}')
    with Journal(path, shared=True) as journal:
        journal.append({"a": 2})
    with Journal(path, shared=True) as journal:
        assert journal.entries == [{"a": 1}, {"a": 2}]


def test_two_can_share_a_journal_and_one_may_die_in_the_middle_of_a_line(tmp_path):
    path = tmp_path / "runs.jsonl"
    with Journal(path, shared=True) as one, Journal(path, shared=True) as other:
        one.append({"a": 1})
        with path.open("ab") as dying:
            dying.write(b'{"a": 1')
        other.append({"a": 2})
        one.append({"a": 3})
    lines = path.read_bytes().split(b"\n")[:-1]
    assert [json.loads(line) for line in lines if line.endswith(b"}")] == [{"a": 1}, {"a": 2}, {"a": 3}]
