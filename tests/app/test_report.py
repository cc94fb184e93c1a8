"""The report of a fit: its numbers, its charts, and text from the user that stays text."""

import html
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine

from linkmix import AutoLinkMixture, LinkMixture, Links
from linkmix.app.report import Result, page, profiles
from linkmix.app.report.drawing import marker, number, tick_texts, ticks
from linkmix.app.report.numbers import review
from linkmix.data.summary import summarise
from linkmix.tables import Points

X, Y = load_wine(return_X_y=True)


def result(model=None, links=None, points=X, **changes):
    links = Links() if links is None else links
    model = model or LinkMixture(3, random_state=0, reg_covar=1e-2, covariance_type="diag").fit(points, links=links)
    ids = np.array([f"w{row}" for row in range(len(points))], dtype=object)
    table = Points(ids, tuple(f"c{j}" for j in range(points.shape[1])), points)
    given = {
        "points": table, "links": links, "labels": model.labels_, "probabilities": model.predict_proba(points),
        "model": model, "n_classes": 3, "method": "linkmix", "what": "a mixture", "command": "linkmix fit",
        "sources": ("points.csv",),
    }  # fmt: skip
    return Result(**(given | changes))


def test_profiles_are_those_of_pandas():
    gaps = np.where(np.arange(X.size).reshape(X.shape) % 11 == 0, np.nan, X)
    found = profiles(gaps, Y, 4, summarise(gaps))
    frame = pd.DataFrame(gaps)
    np.testing.assert_allclose(found.means[:3], frame.groupby(Y).mean(), rtol=1e-12)
    np.testing.assert_allclose(
        found.differences[:3], (frame.groupby(Y).mean() - frame.mean()) / frame.std(ddof=0), rtol=1e-9
    )
    assert np.isnan(found.means[3]).all()  # a class without points
    assert (found.differences[3] == 0).all()


def test_broken_links_come_first():
    links = Links.from_labels(Y, 30, random_state=0)
    wrong = Links(links.cannot[:3], links.cannot[3:])  # three cannot-links taken for must-links
    fit = result(links=wrong, labels=Y, probabilities=np.eye(3)[Y])
    table = review(fit)
    assert table["holds"].tolist() == [False] * 3 + [True] * (len(table) - 3)
    assert {tuple(pair) for pair in links.cannot[:3].tolist()} == {(int(a), int(b)) for a, b in table[["a", "b"]][:3]}
    assert (np.diff(table["probability_wrong"][3:]) <= 0).all()
    content = page(fit)
    assert "3 links are broken" in content
    assert content.count("link must broken") == 3 + 1  # and one in the legend


@pytest.mark.parametrize(
    "evil", ["<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "&lt;", "</title><b>"]
)
def test_text_from_the_user_is_escaped(evil):
    links = Links(must=[(0, 1)], cannot=[(0, 70)], must_annotators=[evil], cannot_annotators=[evil])
    ids = np.array([f"{evil}{row}\u202e" for row in range(len(X))], dtype=object)
    fit = result(links=links, sources=(evil, evil), command=evil, method=evil, what=evil, notes=(evil,))
    fit = replace(fit, points=Points(ids, tuple(f"{evil}{j}" for j in range(X.shape[1])), X))
    content = page(fit)
    assert evil not in content
    assert html.escape(evil) in content.replace("&#34;", "&quot;").replace("&#39;", "&#x27;")
    assert f"{evil}0\N{REPLACEMENT CHARACTER}" in html.unescape(content)  # nothing turns the text around it


def test_the_page_says_how_many_hold():
    links = Links(must=[(0, 1)], cannot=[(0, 70), (0, 1 + 59)])
    content = re.sub("</?bdi>", "", page(result(links=links, labels=Y, probabilities=np.eye(3)[Y])))
    assert "<td>must-links</td><td>1</td><td>1 (100 %)</td>" in content
    assert "<td>cannot-links</td><td>2</td><td>2 (100 %)</td>" in content


def test_a_committee_is_named_and_candidates_are_listed():
    links = Links.from_labels(Y, 10, random_state=0)
    model = AutoLinkMixture(3, committee=2, budget="small", random_state=0).fit(X, links=links)
    content = page(result(model=model, links=links, method="auto"))
    assert "and 1 more in a committee" in content
    assert "candidates</summary>" in content
    assert str(model.leaderboard_["start"][0]) in content


def test_a_method_without_probabilities_has_a_page_too():
    content = page(result(probabilities=None))
    assert "mean confidence" not in content
    assert "What sets each class apart" in content


def test_an_empty_class_and_a_constant_column():
    points = X.copy()
    points[:, 0] = 5.0
    fit = result(points=points, labels=np.where(Y == 2, 1, Y), probabilities=np.eye(3)[np.where(Y == 2, 1, Y)])
    assert "No point is in this class." in page(fit)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3.2, 7.9), (1e-9, 3e-9), (1e12, 5e12), (2080.1, 2080.2), (5, 5)])
def test_ticks_are_inside_few_and_different(low, high):
    found = ticks(low, high)
    assert 1 <= len(found) <= 6
    assert found.min() >= low - 1e-9 * abs(low)
    assert found.max() <= high + 1e-9 * abs(high)
    assert len(set(tick_texts(found))) == len(found)


def test_classes_beyond_the_colours_have_other_markers():
    assert len({(m % 6, marker(m, 3.0)) for m in range(36)}) == 36


def test_numbers_are_short():
    assert max(len(number(value)) for value in (1 / 3, 1e5 / 3, 123456.789, -1e-9, 1e300, 2.0)) <= 9
