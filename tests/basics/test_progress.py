"""What long work tells: the logger "linkmix", and bars for those who ask for them."""

import logging
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris

from linkmix import AutoLinkMixture, LinkMixture, Links
from linkmix.basics.progress import follow

X, Y = load_iris(return_X_y=True)
LINKS = Links.from_labels(Y, 10, random_state=0)


def auto(**settings):
    return AutoLinkMixture(3, budget="small", random_state=0, **settings)


def test_a_search_says_what_it_does(caplog, capsys):
    with caplog.at_level(logging.INFO, "linkmix"):
        auto().fit(X, links=LINKS)
    said = "\n".join(caplog.messages)
    assert "search: 150 of 150 points, Links(" in said
    assert "candidates: " in said
    assert "best of " in said
    assert "calibration: 5 refits" in said
    assert {record.name for record in caplog.records} == {"linkmix"}
    assert capsys.readouterr() == ("", "")


def test_each_start_is_told_to_those_who_want_to_know(caplog):
    with caplog.at_level(logging.DEBUG, "linkmix"):
        LinkMixture(3, n_init=4, random_state=0).fit(X)
    assert sum(message.startswith("EM converged after") for message in caplog.messages) == 4
    caplog.clear()
    with caplog.at_level(logging.INFO, "linkmix"):
        LinkMixture(3, random_state=0).fit(X)
    assert not caplog.messages


def test_verbose_shows_a_bar_and_logs_the_same(caplog, capsys):
    pytest.importorskip("tqdm")
    with caplog.at_level(logging.INFO, "linkmix"):
        auto(verbose=True, calibrate=False).fit(X, links=LINKS)
    assert "candidates: 100%" in capsys.readouterr().err
    assert any(message.startswith("candidates: ") for message in caplog.messages)


def test_items_pass_through_and_are_counted(caplog):
    with caplog.at_level(logging.DEBUG, "linkmix"):
        assert [*follow(iter("abc"), 5, "reading", "letter", done=2)] == ["a", "b", "c"]
        first = follow(iter("abc"), 3, "reading", "letter")
        assert next(first) == "a"
        first.close()
    assert caplog.messages[0] == "reading: 3 of 5 letters to do"
    assert caplog.messages[1].startswith("reading: 5 of 5 letters in ")
    assert caplog.messages[3].startswith("reading: 1 of 3 letters in ")


def test_nothing_is_printed_unless_asked_for():
    script = (
        "import logging, numpy as np; from linkmix import LinkMixture\n"
        "logging.getLogger('linkmix').setLevel('DEBUG')\n"
        f"LinkMixture(2, random_state=0).fit(np.array({np.arange(8.0).reshape(4, 2).tolist()}))"
    )
    found = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=True)
    assert (found.stdout, found.stderr) == ("", "")
