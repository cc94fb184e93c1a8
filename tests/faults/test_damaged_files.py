"""Files that are cut off at any length or have a flipped bit at any place, of every format that is read.

Each is read as it was, or refused by the error for bad files. Where no checksum covers a file, a flipped bit of a value
is another value; then rows are neither lost nor added, and a text has as many rows as Python's csv module finds in it.
LINKMIX_EXAMPLES sets how many places of each file are tried; all of them by ``make torture``.
"""

import os
import random
from functools import cache

import pytest

from file_samples import SAMPLES, records
from linkmix.basics.errors import BadFile

EXAMPLES = int(os.environ.get("LINKMIX_EXAMPLES", "150")) // 10
SEED = 0


@cache
def as_it_was(sample, path):
    """What is in the file before it is damaged."""
    path.write_bytes(sample.content)
    return sample.read(path)


def check(sample, path, content, kind):
    """Read a damaged file and compare it with what it was."""
    good = as_it_was(sample, path)
    path.write_bytes(content)
    try:
        found = sample.read(path)
    except BadFile:
        return
    if found == good:
        return
    if sample.name.endswith(".journal") and kind == "cut":
        assert found == good[: len(found)]
    else:
        assert not sample.sealed, "a change was not noticed"
    if sample.is_text:
        n = records(content, "\t" if sample.name.endswith(".tsv") else ",")
        assert n < 0 or sample.n_rows(found) in (n - 1, n), "rows were lost"
    elif kind == "flip" and not sample.name.endswith((".jsonl", ".txt")):
        assert sample.n_rows(found) == sample.n_rows(good), "rows were lost"


def told(sample, folder, content, kind, place):
    """Check a file, and say where it was damaged if that fails."""
    try:
        check(sample, folder / sample.name, content, kind)
    except Exception as error:
        raise AssertionError(f"{sample.name}, {kind} at byte {place}, seed {SEED}: {error!r}") from error


def places(sample):
    n = len(sample.content)
    return range(n) if n <= EXAMPLES else sorted(random.Random(SEED).sample(range(n), EXAMPLES))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_file_that_is_cut_off_is_noticed(tmp_path, sample):
    for place in places(sample):
        told(sample, tmp_path, sample.content[:place], "cut", place)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_flipped_bit_loses_no_rows(tmp_path, sample):
    draw = random.Random(SEED)
    for place in places(sample):
        content = bytearray(sample.content)
        content[place] ^= 1 << draw.randrange(8)
        told(sample, tmp_path, bytes(content), "flip", place)
