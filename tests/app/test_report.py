"""The report of a fit: its numbers, its charts, and text from the user that stays text."""

import html
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning

from linkmix import AutoLinkMixture, LinkMixture, Links, links_satisfied
from linkmix.app.report import Result, links_in_words, page, profiles
from linkmix.app.report.drawing import marker, number, tick_texts, ticks
from linkmix.app.report.numbers import review
from linkmix.data.summary import summarise
from linkmix.mixture.calibration import Quality
from linkmix.search.contest import THE_BEST
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


class Reading(HTMLParser):
    """A page as a reader takes it in: blocks of text in order, tables below their headings, and what pictures say."""

    def __init__(self, content):
        super().__init__()
        self.blocks, self.tables, self.pictures, self.styles, self.classes = [], {}, [], {}, set()
        self.open, self.heading = [], ""
        self.feed(content)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.classes |= set(given.get("class", "").split())
        if given.get("role") == "img":
            self.pictures.append(given["aria-label"])
        if "style" in given and given.get("class"):
            self.styles[given["class"]] = given["style"]
        if tag in ("h1", "h2", "h3", "p", "li", "td", "th", "figcaption", "dt", "dd"):
            self.open.append([tag, ""])
        if tag == "tr":
            self.tables.setdefault(self.heading, []).append([])

    def handle_data(self, data):
        if self.open:
            self.open[-1][1] += data

    def handle_endtag(self, tag):
        if self.open and self.open[-1][0] == tag:
            text = " ".join(self.open.pop()[1].split())
            self.blocks.append((tag, text))
            if tag in ("h2", "h3"):
                self.heading = text
            if tag in ("td", "th"):
                self.tables[self.heading][-1].append(text)

    def texts(self, tag):
        return [text for one, text in self.blocks if one == tag]

    def cards(self):
        return dict(zip(self.texts("dt"), self.texts("dd"), strict=True))


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
    assert content.count("link must broken") == 3 + 1  # and one in the legend


SOME = Links(must=[(0, 1), (2, 3), (60, 61)], cannot=[(0, 70), (1, 140), (62, 150)])
LABELS = np.where(np.arange(len(Y)) == 61, 2, Y)  # breaks 60-61
ALONE = np.where(np.isin(np.arange(len(Y)), [3, 70]), 1 - LABELS, LABELS)  # goes against 2-3 and 0-70 as well


def test_a_link_is_listed_once_under_its_one_meaning():
    links = SOME.union(Links(must=[(2, 3)]))
    fit = result(links=links, labels=LABELS, probabilities=0.7 * np.eye(3)[ALONE] + 0.1)
    read = Reading(page(fit))
    broken, doubtful = read.tables["Broken links"], read.tables["Worth a second look"]
    assert [row[:3] for row in broken[1:]] == [["w60", "w61", "must"]]
    assert sorted(row[:5] for row in doubtful[1:]) == [
        ["w0", "w70", "cannot", "0 1", "0 0"],
        ["w2", "w3", "must", "0 0", "0 1"],
    ]
    assert any(text.startswith("1 link is not satisfied by the labels") for text in read.texts("p"))
    assert any(text.startswith("2 links are satisfied by the labels, although") for text in read.texts("p"))
    below = "".join(text for row in doubtful for text in row)
    assert "broken" not in below
    assert not {"good", "bad"} & read.classes


def test_links_by_the_labels_and_by_the_points_alone_are_counted_apart():
    fit = result(links=SOME, labels=LABELS, probabilities=np.eye(3)[ALONE])
    by_labels, alone = links_satisfied(LABELS, SOME), links_satisfied(ALONE, SOME)
    assert (round(6 * by_labels), round(6 * alone)) == (5, 3)
    read = Reading(page(fit))
    assert read.tables["Links"] == [
        ["", "given", "satisfied by the labels", "satisfied by the points alone"],
        ["must-links", "3", "2 (67 %)", "1 (33 %)"],
        ["cannot-links", "3", "3 (100 %)", "2 (67 %)"],
    ]
    assert read.cards()["links satisfied by the labels"] == "83 %"
    assert read.cards()["links satisfied by the points alone"] == "50 %"
    assert links_in_words(fit) == (
        "6 links (3 must, 3 cannot); satisfied by the labels: 5 (83 %); by the points alone: 3 (50 %)."
    )


def test_no_broken_link_means_no_row():
    read = Reading(page(result(links=SOME, labels=Y, probabilities=np.eye(3)[Y])))
    assert "Broken links" not in read.tables
    assert "None: the labels satisfy every link." in read.texts("p")
    assert "Worth a second look" not in read.tables
    assert "None: the points alone speak against no link." in read.texts("p")


def test_a_method_without_probabilities_says_nothing_about_the_points_alone():
    content = page(result(links=SOME, labels=LABELS, probabilities=None))
    read = Reading(content)
    assert read.tables["Links"][0] == ["", "given", "satisfied by the labels"]
    assert len(read.tables["Broken links"]) == 2
    assert "points alone" not in content


class Judged:
    """A fitted search, as far as the report asks for its quality."""

    labels_, temperatures_ = Y, np.ones(1)

    def __init__(self, quality, calibrate=True):
        self.quality_, self.calibrate = quality, calibrate

    def predict_proba(self, points):
        return 0.7 * np.eye(3)[Y] + 0.1


@pytest.mark.parametrize(
    ("quality", "relation"),
    [(Quality(0.871, 0.81, 0.92, 0.55, 50), "is above"), (Quality(0.58, 0.47, 0.69, 0.55, 10), "includes or is below")],
)
def test_the_quality_comes_first_and_is_drawn(quality, relation):
    read = Reading(page(result(model=Judged(quality))))
    kinds = [tag for tag, _ in read.blocks]
    after_title = read.blocks[kinds.index("h1") + 1]
    assert after_title == ("p", str(quality))
    assert [tag for tag, _ in read.blocks[: kinds.index("h1")]] == ["p"]  # the name of the program
    low, high, chance = (round(100 * value) for value in (quality.low, quality.high, quality.by_chance))
    [picture] = [text for text in read.pictures if "interval" in text]
    assert f"from {low} to {high} % {relation} chance, {chance} %" in picture
    assert read.styles["interval"] == f"left:{100 * quality.low:.1f}%;width:{100 * (quality.high - quality.low):.1f}%"
    assert read.styles["middle"] == f"left:{100 * quality.pairs_right:.1f}%"
    assert read.styles["chance"] == f"left:{chance}.0%"


MUST, CANNOT = Links(must=[(0, 1)]), Links(cannot=[(0, 70)])


@pytest.mark.parametrize(
    ("model", "links", "said"),
    [
        (
            Judged(None),
            Links(),
            "No links, so nothing can be said about how good this is: give some, or run linkmix label.",
        ),
        (Judged(None), MUST, "Only must-links, so nothing can be said about how good this is: add cannot-links,"),
        (Judged(None), CANNOT, "Only cannot-links, so nothing can be said about how good this is: add must-links,"),
        (Judged(None), MUST.union(CANNOT), "Too few links, so nothing can be said about how good this is: give more"),
        (Judged(None, calibrate=False), SOME, "How good this is was not estimated, because of calibrate=False"),
        (None, SOME, "How good this is was not estimated: only --method auto does that."),
    ],
)
def test_an_unknown_quality_has_a_reason_and_a_remedy(model, links, said):
    read = Reading(page(result(model=model, links=links)))
    tag, text = read.blocks[[tag for tag, _ in read.blocks].index("h1") + 1]
    assert tag == "p"
    assert text.startswith(said)
    assert not [text for text in read.pictures if "interval" in text]


@pytest.mark.parametrize("calibrate", [True, False])
def test_confidence_is_named_for_what_it_is(calibrate):
    read = Reading(page(result(model=Judged(None, calibrate))))
    name = "mean confidence (calibrated)" if calibrate else "mean confidence (not calibrated)"
    assert read.cards()[name] == "0.800"
    [caption] = [text for text in read.texts("figcaption") if text.startswith("Confidence: ")]
    assert ("the calibrated probability" in caption) == calibrate
    assert ("not calibrated, and usually too close to 1" in caption) != calibrate


def test_one_step_of_em_is_not_drawn():
    links = Links.from_labels(Y, 10, random_state=0)
    one, many = (LinkMixture(3, max_iter=n, random_state=0, reg_covar=1e-2, covariance_type="diag") for n in (1, 50))
    with pytest.warns(ConvergenceWarning):
        one.fit(X, links=links)
    assert one.n_iter_ == 1
    assert "Confidence" in Reading(page(result(model=one, links=links))).texts("h2")
    titles = Reading(page(result(model=many.fit(X, links=links), links=links)))
    assert "Convergence and confidence" in titles.texts("h2")
    assert "Log-likelihood after each step of EM" in titles.pictures


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


def test_a_committee_is_named_and_candidates_are_listed():
    links = Links.from_labels(Y, 10, random_state=0)
    model = AutoLinkMixture(3, committee=2, budget="small", random_state=0).fit(X, links=links)
    assert "and 1 more in a committee" in page(result(model=model, links=links, method="auto"))
    for start, begun, listed in (("ward", "“ward”", "ward"), (THE_BEST, *2 * ["what the best candidates agree on"])):
        model.leaderboard_["start"][0] = start
        content = page(result(model=model, links=links, method="auto"))
        assert "candidates</summary>" in content
        read = Reading(content)
        assert any(f"candidates, the links agree best with one that began from {begun}: " in p for p in read.texts("p"))
        assert listed in read.texts("td")
    assert THE_BEST not in read.texts("td")


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
