"""Columns that are probably not meant to make classes."""

import numpy as np
import pytest

from linkmix.data import blocks
from linkmix.tables import Points, Suspicions, suspect, suspicions

RNG = np.random.default_rng(0)
N = 50


def points(**columns):
    X = np.column_stack([np.asarray(column, dtype=float) for column in columns.values()])
    return Points(np.arange(len(X)).astype(str), tuple(columns), X)


@pytest.mark.parametrize(
    ("column", "is_running"),
    [
        (np.arange(N), True),
        (np.arange(N) + 1000, True),
        (RNG.permutation(N) - 7, True),
        (np.r_[np.arange(N - 1), 0], False),
        (np.r_[0, np.arange(N - 2), N - 1], False),  # right extent, one number twice
        (np.r_[0, np.arange(1, N - 1) + 0.5, N - 1], False),
        (np.arange(N) + 0.5, False),
        (np.arange(N) * 2, False),
        (np.r_[np.nan, np.arange(N - 1)], False),
        (RNG.normal(size=N), False),
    ],
)
def test_a_column_that_numbers_the_rows_is_found(column, is_running, monkeypatch):
    for marks in (2**26, 7):
        monkeypatch.setattr(suspicions, "_MARKS", marks)
        assert suspect(points(a=column)).running == (("a",) if is_running else ())


def test_few_rows_may_follow_each_other():
    assert suspect(points(a=[1, 2, 3, 4])) == Suspicions()


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (("a", "Class"), ("Class",)),
        (("LABEL", "target"), ("LABEL", "target")),
        (("a", "y"), ("y",)),
        (("X", "y"), ()),
        (("classes", "labels"), ()),
    ],
)
def test_names_of_answers_are_found(names, found):
    assert suspect(points(**dict(zip(names, RNG.normal(size=(2, N)), strict=True)))).answers == found


def test_columns_that_repeat_another_are_found(monkeypatch):
    a, b = RNG.integers(10, size=(2, 5000)).astype(float)
    shuffled, gap = RNG.permutation(a), np.where(a == 3, np.nan, a)
    signed = np.where(b == 0, -0.0, b)
    found = points(a=a, s=shuffled, b=b, again=a, g=gap, signed=signed, h=gap, third=a, c=0 * a, d=0 * a)
    expected = (("again", "a"), ("signed", "b"), ("h", "g"), ("third", "a"))
    assert suspect(found).repeated == expected
    monkeypatch.setattr(blocks, "portion_rows", lambda n_columns: 64)
    assert suspect(found).repeated == expected
