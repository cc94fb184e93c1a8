"""Classes on the page: faces, names, members, and corrections, each of which is one turn."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from label_serving import IDS, write_points
from linkmix.app.label.answers import Record, fold
from linkmix.app.label.corrections import contradicted
from linkmix.app.label.requests import NotPossible
from linkmix.app.label.session import Session
from linkmix.app.label.shown import Shown
from linkmix.queries import Answer
from linkmix.queries.groups import Known
from linkmix.search import AutoLinkMixture
from linkmix.tables import Points, read_points

CLASS = np.repeat([0, 1, 2], 20)


@pytest.fixture
def points_file(tmp_path):
    return write_points(tmp_path / "points.csv")


def opened(points_file, n_classes=3, **options):
    names = points_file.with_name("links.csv"), points_file.parent
    return Session(read_points(points_file), n_classes, *names, **options)


def put(session, what, key=None, **fields):
    session.write({"entry": what, "key": key or json.dumps([what, fields]), **fields})


def refitted(session):
    session.background.wait()
    return session.view.classes()["classes"]


def class_of(session, row):
    label = int(session.labels()[row])
    return next(one for one in session.view.classes()["classes"] if one["label"] == label)


def links_of(session):
    return {(*sorted((one.a, one.b)), one.said) for one in session.said.links}


# Questions about several points


def test_which_and_group_come_to_answers_about_pairs(points_file):
    with opened(points_file) as session:
        put(session, "which", rows=[0, 1, 20, 40], like=[1])
        assert links_of(session) == {(0, 1, "same"), (0, 20, "different"), (0, 40, "different")}
        put(session, "group", rows=[2, 3, 4, 41], out=[41])
        assert links_of(session) >= {(2, 3, "same"), (2, 4, "same"), (2, 41, "different")}
        put(session, "which", rows=[5, 21, 42], said="unsure")
        assert len(session.said.links) == 6
        assert session.status()["counts"]["which"] == 2
        for _ in range(2):
            put(session, "undo", key=str(len(session.record.entries)))
        assert links_of(session) == {(0, 1, "same"), (0, 20, "different"), (0, 40, "different")}
        assert session.status()["counts"]["group"] == 0


@pytest.mark.parametrize("kind", ["which", "group"])
def test_a_question_of_several_points_is_shown_and_asked_again_after_an_undo(points_file, kind):
    with opened(points_file) as session:
        question = session.question("page", [kind])
        assert question["kind"] == kind
        one = question["row" if kind == "which" else "anchor"]
        rows = [one["row"], *(card["row"] for card in question["cards"])]
        assert session.question("page", [kind]) == question
        assert {field["name"] for field in one["fields"]} == {"x", "y"}
        assert isinstance(one["label"], int)
        assert question["why"]
        put(session, kind, rows=rows, page="page", **{"like" if kind == "which" else "out": rows[1:2]})
        after = session.question("page", [kind])
        assert after != question
        put(session, "undo", page="page")
        again = session.question("page", ["pair"])  # the one that was taken back, whatever kinds are wanted
        assert [card["row"] for card in again["cards"]] == rows[1:]


def test_two_pages_get_different_questions(points_file):
    with opened(points_file) as session:
        kinds = ["pair", "which", "group"]
        one, other = (session.question(page, kinds) for page in ("one", "other"))
        assert one != other


def test_an_audit_asks_about_pairs_alone(points_file):
    with opened(points_file, n_audit=3) as session:
        put(session, "audit")
        question = session.question("page", ["which", "group"])
        assert question["kind"] == "pair"
        assert question["a"]["label"] is None
        assert session.view.card(0)["label"] is None


# Faces and names


def test_each_class_has_a_face_that_stays_while_it_is_in_the_class(points_file):
    with opened(points_file) as session:
        put(session, "together", rows=[0, 3, 5, 7])
        first = {one["label"]: one["face"]["row"] for one in refitted(session)}
        assert sorted(CLASS[row] for row in first.values()) == [0, 1, 2]
        for i in range(12):
            put(session, "answer", rows=[20 + i, 40 + i], said="different")
        assert {one["label"]: one["face"]["row"] for one in refitted(session)} == first


def test_a_face_is_a_row_that_many_are_known_to_be_like(points_file):
    with opened(points_file) as session:
        put(session, "together", rows=[33, 31, 38, 26])
        put(session, "answer", rows=[22, 0], said="different")
        session.background.wait()
        face = class_of(session, 33)["face"]["row"]
        assert face in (33, 31, 38, 26)
        assert class_of(session, 33)["answered"] == 5


def test_a_name_belongs_to_the_class_of_its_face_through_refits_and_new_starts(points_file):
    with opened(points_file) as session:
        session.background.wait()
        put(session, "name", rows=[10], name="ten", colour=5, description="the first ones")
        put(session, "name", rows=[50], name="fifty")
        assert links_of(session) == {(10, 50, "different")}
        for i in range(15):
            put(session, "answer", rows=[i, 20 + i], said="different")
        refitted(session)
        found = class_of(session, 10)
        assert (found["name"], found["colour"], found["description"]) == ("ten", 5, "the first ones")
        assert found["face"]["row"] == 10
        assert class_of(session, 55)["name"] == "fifty"
        assert session.view.card(11)["class"]["name"] == "ten"
    with opened(points_file) as session:
        refitted(session)
        assert (class_of(session, 10)["name"], class_of(session, 50)["name"]) == ("ten", "fifty")


def test_names_can_be_changed_removed_and_undone(points_file):
    with opened(points_file) as session:
        put(session, "name", rows=[10], name="ten")
        assert class_of(session, 10)["name"] == "ten"
        other = 12
        assert session.labels()[other] == session.labels()[10]
        put(session, "name", rows=[other], name="twelve")  # another face for the same class
        assert class_of(session, 10)["face"]["row"] == other
        put(session, "name", rows=[other], name=None)
        assert session.status()["names"] == {}
        put(session, "undo", key="u1")
        assert set(session.status()["names"].values()) == {"twelve"}
        put(session, "undo", key="u2")
        put(session, "undo", key="u3")
        assert session.status()["names"] == {}
        with pytest.raises(NotPossible, match="nothing of yours to undo"):
            put(session, "undo", key="u4")


def test_two_classes_cannot_have_one_name(points_file):
    with opened(points_file) as session:
        put(session, "name", rows=[0], name="same")
        with pytest.raises(NotPossible, match="another class is called 'same': merge the two, or give another name"):
            put(session, "name", rows=[59], name="same")
        with pytest.raises(NotPossible, match="no name that could be removed"):
            put(session, "name", rows=[59], name=None)


# Members


def test_members_are_typical_or_doubtful(points_file):
    with opened(points_file) as session:
        put(session, "together", rows=[0, 1, 2])
        for one in refitted(session):
            label = one["label"]
            typical, doubtful = (session.view.members(label, kind, 6)["cards"] for kind in ("typical", "doubtful"))
            assert len(typical) == len(doubtful) == 6
            labels = session.labels()
            assert {int(labels[card["row"]]) for card in typical + doubtful} == {label}
            assert one["face"]["row"] not in {card["row"] for card in typical + doubtful}
            others = np.flatnonzero(labels == label)
            sure = session.shown.confidence(others)
            assert min(card["confidence"] for card in typical) >= np.median(sure) - 0.01
            assert [card["confidence"] for card in doubtful] == sorted(card["confidence"] for card in doubtful)
            if 0 in others:
                assert not {0, 1, 2} & {card["row"] for card in doubtful}  # these are known
        with pytest.raises(ValueError, match="kind is 'best': use typical or doubtful"):
            session.view.members(0, "best", 3)
        with pytest.raises(ValueError, match="there is no class 7: classes are numbered from 0 to 2"):
            session.view.members(7, "typical", 3)


def test_what_sets_a_class_apart_is_said(points_file):
    with opened(points_file) as session:
        for one in refitted(session):
            mean = session.points.X[session.labels() == one["label"]].mean()
            if mean < 2 or mean > 10:
                assert {text.split()[0] for text in one["apart"]} == {"x", "y"}
                assert all(("+" in text) == (mean > 10) for text in one["apart"])


def test_words_set_classes_of_texts_apart_and_components_are_not_shown(tmp_path):
    random = np.random.default_rng(0)
    words = ["open close read file folder path", "sum product number digit prime odd"]
    texts = [" ".join(random.permutation(words[i % 2].split())[:4]) + f" {i}" for i in range(60)]
    rows = "".join(f"r{i},{text},{random.normal():.3f}\n" for i, text in enumerate(texts))
    (tmp_path / "texts.csv").write_text("id,text,size\n" + rows)
    for columns in (["text", "size"], ["text"]):
        points = read_points(tmp_path / "texts.csv", columns=columns, kinds={"text": "text"})
        with Session(points, 2, tmp_path / f"{len(columns)}-links.csv", tmp_path) as session:
            for one in refitted(session):
                mine = words[int(points.ids[one["face"]["row"]][1:]) % 2].split()
                said = [text for text in one["apart"] if not text.startswith("size")]
                assert len(said) == 4
                assert all(text.split('"')[1] in mine and "in text" in text for text in said)
                assert all(int(text.split(" %")[0].split()[-1]) > 50 for text in said)


# Corrections


@pytest.mark.parametrize("n_classes", [3, None])
def test_corrections_reach_the_labels(points_file, n_classes):
    with opened(points_file, n_classes) as session:
        for a, b in ((0, 20), (0, 40), (20, 40)):
            put(session, "answer", rows=[a, b], said="different")
        put(session, "belongs", rows=[1, 2], to=[0])
        put(session, "not", rows=[3], of=[20])
        put(session, "belongs", rows=[25], to=[0])  # whatever the points say
        session.background.wait()
        labels = session.labels()
        assert labels[25] == labels[0] == labels[1] == labels[2]
        assert labels[3] != labels[20]


def test_a_moved_point_leaves_what_it_was_linked_with(points_file):
    with opened(points_file) as session:
        put(session, "answer", rows=[0, 20], said="different")
        put(session, "together", rows=[20, 21, 22])
        put(session, "belongs", rows=[21], to=[0])
        assert session.known.relation(21, 0) == "same"
        assert session.known.relation(21, 20) == "different"
        put(session, "undo")
        assert session.known.relation(21, 22) == "same"
        put(session, "not", rows=[21], of=[20])
        assert session.known.relation(21, 20) == "different"


@pytest.mark.parametrize("n_classes", [3, None])
def test_a_merge_joins_what_was_apart_and_keeps_one_name(points_file, n_classes):
    with opened(points_file, n_classes) as session:
        for a, b in ((0, 20), (0, 40), (20, 40)):
            put(session, "answer", rows=[a, b], said="different")
        session.background.wait()
        put(session, "name", rows=[0], name="one")
        put(session, "name", rows=[20], name="two")
        put(session, "which", rows=[1, 0, 20, 40], like=[0])
        put(session, "merge", rows=[0, 20])
        assert session.known.relation(0, 20) == "same"
        assert set(session.status()["names"].values()) == {"one"}
        found = refitted(session)
        labels = session.labels()
        assert labels[0] == labels[20] != labels[40]
        assert len([one for one in found if one["size"]]) == 2
        put(session, "undo")
        assert session.known.relation(0, 20) == "different"
        assert len(refitted(session)) == 3
        assert set(session.status()["names"].values()) == {"one", "two"}


@pytest.mark.parametrize("n_classes", [2, None])
def test_a_split_makes_a_class(points_file, n_classes):
    with opened(points_file, n_classes) as session:
        session.background.wait()
        assert session.shown.n_classes == 2
        put(session, "answer", rows=[0, 20], said="same")
        put(session, "answer", rows=[0, 40], said="different")
        session.background.wait()
        assert session.labels()[0] == session.labels()[20] != session.labels()[40]
        put(session, "split", rows=[21, 25, 20], of=[0])
        assert session.known.relation(20, 0) == "different"
        assert session.known.relation(21, 20) == "same"
        found = refitted(session)
        labels = session.labels()
        assert len(found) == 3
        assert len({int(labels[row]) for row in (0, 20, 40)}) == 3
        put(session, "undo")
        assert links_of(session) == {(0, 20, "same"), (0, 40, "different")}


def test_typical_members_are_split_off_whatever_the_model_says(points_file):
    with opened(points_file, None) as session:
        one = refitted(session)[0]
        rows = [card["row"] for card in session.view.members(one["label"], "typical", 3)["cards"]]
        put(session, "split", rows=rows, of=[one["face"]["row"]])
        refitted(session)
        labels = session.labels()
        assert len(set(labels[rows].tolist())) == 1
        faces = session.view.faces().values()
        assert not {labels[row] for row in faces if row not in rows} & set(labels[rows].tolist())
        assert labels[one["face"]["row"]] != labels[rows[0]]


def test_those_that_do_not_belong_leave_and_the_face_stays(points_file):
    with opened(points_file) as session:
        one = session.view.classes()["classes"][0]
        face, m = one["face"]["row"], one["label"]
        rows = [row for row in session.shown.members[m].tolist() if row != face][:3]  # the model is sure of all of them
        put(session, "not", rows=rows, of=[face])
        refitted(session)
        assert session.shown.labels[face] == m
        assert m not in session.shown.labels[rows].tolist()
        assert session.view.faces()[m] == face


def test_noise_and_corrections(points_file):
    with opened(points_file, noise=True) as session:
        put(session, "nowhere", rows=[0])
        with pytest.raises(NotPossible, match="p0 was said to belong to no class: remove that first"):
            put(session, "belongs", rows=[1], to=[0])
        with pytest.raises(NotPossible, match="p0 was said to belong to no class: remove that first"):
            put(session, "name", rows=[0], name="nothing")


# Review


def test_a_doubtful_link_can_be_turned_kept_and_removed(points_file):
    with opened(points_file, wrong=0.1) as session:
        for i in range(1, 8):
            put(session, "answer", rows=[0, i], said="same")
            put(session, "answer", rows=[44, 44 + i], said="same")
        put(session, "answer", rows=[0, 45], said="different")
        put(session, "answer", rows=[3, 44], said="same")  # wrong
        session.background.wait()
        review = session.view.review()
        assert [3, 44] in [link["rows"] for link in review["links"]]
        link = next(link for link in review["links"] if link["rows"] == [3, 44])
        assert (link["pair"]["a"]["id"], link["pair"]["b"]["id"]) == ("p3", "p44")
        put(session, "keep", rows=[3, 44])
        assert [3, 44] not in [link["rows"] for link in session.view.review()["links"]]
        put(session, "undo", key="u1")
        assert [3, 44] in [link["rows"] for link in session.view.review()["links"]]
        put(session, "turn", rows=[44, 3])
        assert (3, 44, "different") in links_of(session)
        assert (3, 44, "same") not in links_of(session)
        put(session, "undo", key="u2")
        assert (3, 44, "same") in links_of(session)


def test_disagreements_are_shown_and_settled(points_file):
    with opened(points_file) as session:
        put(session, "answer", key="k1", rows=[0, 1], said="same", annotator="ida")
        put(session, "answer", key="k2", rows=[1, 0], said="different", annotator="eva")
        [found] = session.view.review()["disagreements"]
        assert found["rows"] == [0, 1]
        assert found["words"] == [{"annotator": "ida", "said": "same"}, {"annotator": "eva", "said": "different"}]
        with pytest.raises(NotPossible, match="people disagree about this pair: give said"):
            put(session, "turn", rows=[0, 1])
        put(session, "turn", rows=[0, 1], said="same")
        assert session.view.review()["disagreements"] == []
        assert links_of(session) == {(0, 1, "same")}
        with pytest.raises(NotPossible, match="there is no link between these points any more"):
            put(session, "keep", rows=[4, 5])


# The door


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"entry": "which", "rows": [0, 1], "like": [2]}, "like names 'p2', which is not among the cards"),
        ({"entry": "which", "rows": [0, 1], "like": [0]}, "like names 'p0', which is not among the cards"),
        ({"entry": "which", "rows": [0, 1]}, "like is None: give a list of 0 to 1 row number"),
        ({"entry": "group", "rows": [0, 1], "said": "same"}, "said is 'same': use one of unsure, skip"),
        ({"entry": "group", "rows": [0, 1], "out": [1], "said": "skip"}, "said is 'skip' and out names rows"),
        ({"entry": "group", "rows": [0], "out": []}, "rows has length 1: give a list of 2 to 100 row numbers"),
        ({"entry": "name", "rows": [0], "name": "-1"}, "the name '-1' stands for no class: give another one"),
        ({"entry": "name", "rows": [0], "name": "  "}, "the name '' stands for no class: give another one"),
        ({"entry": "name", "rows": [0], "name": 3}, "name is 3: give a name of at most 100 characters"),
        ({"entry": "name", "rows": [0], "name": "x", "colour": -1}, "colour is -1: give a number from 0 to"),
        ({"entry": "name", "rows": [0], "name": "x", "description": "y" * 2001}, "at most 2000 characters"),
        ({"entry": "belongs", "rows": [0], "to": [0]}, "to names 'p0', which is among rows"),
        ({"entry": "belongs", "rows": [0]}, "to is None: give a list of 1 row number"),
        ({"entry": "not", "rows": [0], "of": [60]}, "row 60 does not exist: rows are numbered from 0 to 59"),
        ({"entry": "merge", "rows": [0]}, "rows has length 1: give a list of 2 row numbers"),
        ({"entry": "split", "rows": [], "of": [1]}, "rows has length 0: give a list of 1 to 2000 row numbers"),
        ({"entry": "turn", "rows": [0, 1], "said": "unsure"}, "said is 'unsure': use one of same, different"),
    ],
)
def test_requests_are_checked_at_the_door(points_file, request_, message):
    with opened(points_file) as session:
        with pytest.raises(ValueError, match=message):
            session.write({"key": "k", **request_})
        assert not session.record.entries


# Against brute force

ROW = st.integers(0, 5)
LINK = st.tuples(ROW, ROW, st.sampled_from(["same", "different"])).filter(lambda link: link[0] != link[1])


@given(st.lists(LINK, max_size=10), st.sampled_from(["belongs", "not", "merge", "split"]), st.data())
def test_a_correction_holds_whatever_was_said_before(said, what, data):
    """After the contradicted links are dropped, what is said follows from all links; and none is dropped in vain."""
    before = Known()
    for one in said:
        before.take(Answer(*one))
    links = before.kept  # consistent
    rows = data.draw(
        st.lists(ROW, min_size=2 if what == "merge" else 1, max_size=2 if what == "merge" else 3, unique=True)
    )
    others = [row for row in range(6) if row not in rows]
    face = None if what == "merge" else data.draw(st.sampled_from(others))
    drop = contradicted(what, rows, face, links)
    after = Known()
    if what == "merge":
        new = [(*rows, "same")]
    else:
        new = [(row, face, "same" if what == "belongs" else "different") for row in rows]
        new = [(a, b, "same") for a, b in pairwise(rows)] + new if what == "split" else new
    for one in [link for link in links if link.pair not in drop] + [Answer(*one) for one in new]:
        after.take(one)
    for a, b, relation in new:
        assert after.relation(a, b) == relation
    if all(before.relation(a, b) in (None, relation) for a, b, relation in new) and what in ("merge", "not"):
        assert drop == []


@given(st.data())
def test_a_journal_read_at_once_is_the_journal_read_line_by_line(data):
    """Also after undos of any turn: answers, names, confirmed pairs, counts."""
    journal, alive = [], []
    for number in range(data.draw(st.integers(1, 12))):
        key = str(number)
        two = data.draw(st.permutations(IDS[:5]))
        what = data.draw(st.sampled_from(["answer", "which", "name", "merge", "keep", "split", "turn", "undo"]))
        entry = {"entry": what, "key": key, "annotator": None}
        if what == "undo":
            if not alive:
                continue
            entry["of"] = alive.pop(data.draw(st.integers(0, len(alive) - 1)))
        else:
            alive.append(key)
            entry["ids"] = two[: 1 if what == "name" else 3 if what == "which" else 2]
        entry |= {
            "answer": {"said": "same"},
            "which": {"like": two[1:2]},
            "name": {"name": key, "colour": None, "description": "", "apart": two[1:2], "replaces": two[2:3]},
            "merge": {"drop": [two[2:4]]},
            "split": {"face": two[3], "drop": []},
            "turn": {"said": "different"},
        }.get(what, {})
        journal.append(entry)
    at_once, one_by_one = fold(journal, IDS), Record(IDS)
    for entry in journal:
        one_by_one.take(entry)
    for name in ("names", "kept", "counts", "n_more", "unchanged"):
        assert getattr(at_once, name) == getattr(one_by_one, name)
    assert at_once.said.links == one_by_one.said.links
    assert at_once.last_turn(None) == one_by_one.last_turn(None) == (alive[-1] if alive else None)


def test_members_of_small_classes_are_found_in_many_rows(monkeypatch):
    """Rows are looked at evenly within each class, so that a small class is not lost among many."""
    monkeypatch.setattr("linkmix.app.label.shown.MOST_LOOKED_AT", 400)
    random = np.random.default_rng(0)
    X = np.concatenate([random.normal(size=(3000, 2)), random.normal(size=(30, 2)) + 40])
    model = AutoLinkMixture(2, random_state=0).fit(X)
    labels = np.repeat([0, 1], [3000, 30])
    shown = Shown(Points(np.arange(3030).astype(str), ("x", "y"), X), model, labels)
    small, large = sorted(shown.members, key=len)
    assert (len(small), len(large)) == (30, 200)
    assert set(small) == set(range(3000, 3030))
    assert [set(rows) for rows in shown.doubtful] == [set(rows) for rows in shown.members]
