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
    n_whole = sum(end <= cut for end in ends) - 1
    assert journal.entries == entries[:n_whole]
    journal.append({"after": "the crash"})
    journal.close()
    journal = Journal(path)
    assert journal.entries == [*entries[:n_whole], {"after": "the crash"}]
    journal.close()


def test_rubbish_at_the_end_is_cut_off_and_in_the_middle_refused(tmp_path):
    path = tmp_path / "journal"
    path.write_bytes(b'{"a":1}\n\0\0\0\0\n')
    journal = Journal(path)
    assert journal.entries == [{"a": 1}]
    journal.close()
    path.write_bytes(b'{"a":1}\nrubbish\n{"a":2}\n')
    with pytest.raises(BadFile, match=r"journal.*2.*is not an entry of a journal"):
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
