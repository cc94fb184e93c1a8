"""A session of labelling: nothing is lost, and what was said comes to the right links."""

import json
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from label_serving import IDS, write_points
from linkmix.app.label.answers import Record, fold
from linkmix.app.label.cards import Cards
from linkmix.app.label.requests import MOST_TOGETHER, NotPossible
from linkmix.app.label.session import Session
from linkmix.basics.errors import BadFile
from linkmix.basics.journal import Journal, entries_in
from linkmix.queries import SAID
from linkmix.tables import Points, read_links, read_points

CLASS = np.repeat([0, 1, 2], 20)


@pytest.fixture
def points_file(tmp_path):
    return write_points(tmp_path / "points.csv")


def opened(points_file, **options):
    return Session(read_points(points_file), 3, points_file.with_name("links.csv"), points_file.parent, **options)


def answer(key, a, b, said="same", annotator=None, **more):
    return {"entry": "answer", "key": key, "rows": [a, b], "said": said, "annotator": annotator, **more}


def links_file(points_file):
    return points_file.with_name("links.csv").read_text()


# What entries come to

PEOPLE = st.sampled_from([None, "ida", "eva"])
TWO = st.lists(st.sampled_from(IDS[:4]), min_size=2, max_size=2, unique=True)


@given(
    st.lists(
        st.tuples(st.just("answer"), TWO, st.sampled_from(["same", "different", "unsure", "skip"]), PEOPLE)
        | st.tuples(st.just("remove"), TWO, st.none(), PEOPLE)
        | st.tuples(st.just("undo"), st.none(), st.none(), PEOPLE),
        max_size=30,
    )
)
def test_links_are_the_last_word_of_each_person(steps):
    """Against a plain list that is gone through again for each pair and person."""
    journal, lasting = [], []
    for number, (what, ids, said, who) in enumerate(steps):
        entry = {"entry": what, "key": str(number), "ids": ids, "said": said, "annotator": who}
        if what == "undo":
            mine = [old for old in lasting if old["annotator"] == who]
            if not mine:
                continue
            lasting.remove(mine[-1])
            entry["of"] = mine[-1]["key"]
        else:
            lasting.append(entry)
        journal.append(entry)
    expected = set()
    for entry in lasting:
        pair, who = frozenset(entry["ids"]), entry["annotator"]
        if entry["entry"] == "remove":
            expected = {link for link in expected if link[0] != pair}
        elif entry["said"] != "skip":
            expected = {link for link in expected if link[0] != pair or link[1] != who}
            if entry["said"] != "unsure":
                expected.add((pair, who, entry["said"]))
    at_once, one_by_one = fold(journal, IDS), Record(IDS)
    for entry in journal:
        one_by_one.take(entry)
    for record in (at_once, one_by_one):
        links = record.said.links
        assert {(frozenset((IDS[link.a], IDS[link.b])), link.annotator, link.said) for link in links} == expected
        assert len(links) == len(expected)
        assert list(record.said.turns) == [entry["key"] for entry in lasting]
        answered = [entry["said"] for entry in lasting if entry["entry"] == "answer"]
        assert record.counts == {said: answered.count(said) for said in (*SAID, "which", "group")}
    assert one_by_one.said.links == at_once.said.links  # in the same order
    assert list(one_by_one.said) == list(at_once.said)


# The session


def test_answers_are_there_after_a_new_start_and_in_the_file_of_links(points_file):
    with opened(points_file) as session:
        session.write(answer("k1", 0, 1))
        session.write(answer("k2", 0, 30, "different", "ida"))
        session.write(answer("k3", 2, 40, "unsure"))
        session.write({"entry": "together", "key": "k4", "rows": [5, 6, 7]})
        before = session.status()
    assert links_file(points_file).splitlines() == [
        *("a,b,kind,annotator,chosen", "p0,p1,must,,yes", "p5,p6,must,,yes", "p6,p7,must,,yes"),
        "p0,p30,cannot,ida,yes",
    ]
    with opened(points_file) as session:
        after = session.status()
        for name in ("counts", "links", "n_links", "annotators", "table"):
            assert after[name] == before[name], name
        assert after["counts"] == {"same": 1, "different": 1, "unsure": 1, "skip": 0, "which": 0, "group": 0}
        session.write({"entry": "undo", "key": "k5"})  # of k4: nothing is forgotten
    assert "p5" not in links_file(points_file)


def test_a_key_counts_once_also_after_a_new_start(points_file):
    for _ in range(2):
        with opened(points_file) as session:
            session.write(answer("k1", 0, 1))
            session.write(answer("k2", 1, 2))
            session.write({"entry": "undo", "key": "k3"})
            session.write({"entry": "undo", "key": "k3"})
            assert session.view.n_links == {"same": 1, "different": 0}
            assert session.status()["counts"]["same"] == 1


def test_links_that_were_there_stay_with_confidence_and_annotator(points_file):
    original = "a,b,kind,confidence,annotator\np0,p1,must,0.75,eva\np0,p50,cannot,,\n"
    points_file.with_name("links.csv").write_text(original)
    with opened(points_file) as session:
        assert session.view.n_links == {"same": 1, "different": 1}
        with pytest.raises(NotPossible, match="nothing of yours to undo"):
            session.write({"entry": "undo", "key": "k0"})
        session.write(answer("k1", 2, 3))
    links = read_links(points_file.with_name("links.csv"), read_points(points_file).ids)
    assert links.must.tolist() == [[0, 1], [2, 3]]
    assert links.must_confidence.tolist() == [0.75, 1.0]
    assert list(links.must_annotators) == ["eva", None]
    assert links.cannot.tolist() == [[0, 50]]


def test_a_file_that_was_edited_is_taken_in_and_a_lost_one_written_again(points_file):
    path = points_file.with_name("links.csv")
    with opened(points_file) as session:
        session.write(answer("k1", 0, 1))
        session.write(answer("k2", 2, 3))
    path.write_text("a,b,kind\np0,p1,must\np7,p55,cannot\n")  # one removed, one added
    with opened(points_file) as session:
        assert session.view.n_links == {"same": 1, "different": 1}
    path.unlink()
    with opened(points_file) as session:
        assert session.view.n_links == {"same": 1, "different": 1}
    assert path.read_text() == "a,b,kind\np0,p1,must\np7,p55,cannot\n"


def test_a_file_from_before_a_crash_is_not_taken_for_an_edited_one(points_file):
    path = points_file.with_name("links.csv")
    with opened(points_file) as session:
        session.write(answer("k1", 0, 1))
    old = path.read_text()
    with opened(points_file) as session:
        session.write(answer("k2", 2, 3))
    path.write_text(old)  # as if the crash had come just before the new file took its place
    with opened(points_file) as session:
        assert session.view.n_links == {"same": 2, "different": 0}
    assert "p2,p3,must" in path.read_text()


def test_many_at_once_lose_nothing(points_file):
    with opened(points_file) as session:

        def work(who):
            for i in range(15):
                pair = session.question(f"page{who}")
                rows = [pair["a"]["row"], pair["b"]["row"]]
                said = "same" if CLASS[rows[0]] == CLASS[rows[1]] else "different"
                for _ in range(2):  # a reply got lost: the same again
                    session.write(answer(f"{who}-{i}", *rows, said, f"person {who}", page=f"page{who}"))

        threads = [threading.Thread(target=work, args=(who,)) for who in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(session.status()["counts"].values()) == 60
    journal = entries_in(points_file.with_name("links.csv.journal"))
    keys = [entry["key"] for entry in journal if "key" in entry]
    assert sorted(keys) == sorted(f"{who}-{i}" for who in range(4) for i in range(15))


def test_pages_have_questions_of_their_own_until_they_answer(points_file):
    with opened(points_file) as session:
        one, other = session.question("one"), session.question("other")
        assert {one["a"]["id"], one["b"]["id"]} != {other["a"]["id"], other["b"]["id"]}
        assert session.question("one")["a"]["id"] == one["a"]["id"]  # a reload
        session.write(answer("k1", one["a"]["row"], one["b"]["row"], page="one"))
        following = session.question("one")
        assert {following["a"]["id"], following["b"]["id"]} != {one["a"]["id"], one["b"]["id"]}
        session.write({"entry": "undo", "key": "k2", "page": "one"})
        again = session.question("one")
        assert (again["a"]["id"], again["b"]["id"]) == (one["a"]["id"], one["b"]["id"])


def test_undo_takes_back_what_the_same_person_said(points_file):
    with opened(points_file) as session:
        session.write(answer("k1", 0, 1, annotator="ida"))
        session.write(answer("k2", 2, 3, annotator="eva"))
        undone = session.write({"entry": "undo", "key": "k3", "annotator": "ida"})
        assert undone["key"] == "k1"
        with pytest.raises(NotPossible, match="nothing of yours"):
            session.write({"entry": "undo", "key": "k4", "annotator": "ida"})
        assert [link["ids"] for link in session.status()["links"]] == [["p2", "p3"]]


def test_a_link_is_removed_once_and_undo_brings_it_back(points_file):
    with opened(points_file) as session:
        session.write(answer("k1", 0, 1))
        session.write({"entry": "remove", "key": "k2", "rows": [1, 0]})
        assert session.view.n_links == {"same": 0, "different": 0}
        with pytest.raises(NotPossible, match="no link between these points any more"):
            session.write({"entry": "remove", "key": "k3", "rows": [0, 1]})
        session.write({"entry": "undo", "key": "k4"})
        assert session.view.n_links == {"same": 1, "different": 0}


def test_contradictions_are_worth_a_second_look(points_file):
    with opened(points_file) as session:
        session.write(answer("k1", 0, 1))
        session.write(answer("k2", 1, 2))
        session.write(answer("k3", 0, 2, "different"))
        [found] = [link for link in session.status()["review"] if "p1" in link["reason"]]
        assert found["ids"] == ["p0", "p2"]
        assert found["reason"] == "other links join these two, through p1"


def test_where_answers_may_be_wrong_a_surprising_one_is_asked_for_again(points_file):
    with opened(points_file, wrong=0.1) as session:
        pair = session.question("page")
        assert not pair["again"]
        rows = [pair["a"]["row"], pair["b"]["row"]]
        right, lie = ("same", "different") if CLASS[rows[0]] == CLASS[rows[1]] else ("different", "same")
        kinds = {"same": "must", "different": "cannot"}
        told = []
        for key, said in (("k1", lie), ("k2", right), ("k3", right)):
            session.write(answer(key, *rows, said, page="page"))
            pair = session.question("page")
            told.append(pair["again"] and {pair["a"]["row"], pair["b"]["row"]} == set(rows))
        assert told == [True, True, False]  # two of three settle it
        session.write(answer("k4", 5, 6, annotator="ida"))
        session.write(answer("k5", 6, 5, annotator="ida"))
    first, second = (f"p{row}" for row in rows)
    head, *lines = links_file(points_file).splitlines()
    assert head == "a,b,kind,confidence,annotator,chosen"
    assert sorted(lines) == sorted([f"{first},{second},{kinds[right]},0.9,,yes", "p6,p5,must,0.987805,ida,yes"])
    with opened(points_file) as session:  # as certain as answers are where none is wrong
        assert session.view.n_links == {"same": 1 + (right == "same"), "different": 0 + (right != "same")}
        session.write(answer("k6", 7, 8))
    assert "confidence" not in links_file(points_file)


def test_what_a_file_says_keeps_its_confidence_where_answers_may_be_wrong(points_file):
    points_file.with_name("links.csv").write_text("a,b,kind,confidence\np0,p1,must,\np2,p3,must,0.7\n")
    with opened(points_file, wrong=0.2) as session:
        session.write(answer("k1", 4, 5))
    lines = links_file(points_file).splitlines()[1:]
    assert lines == ["p0,p1,must,1.0,no", "p2,p3,must,0.7,no", "p4,p5,must,0.8,yes"]


def test_answers_lead_to_the_classes_and_to_the_sign_to_stop(points_file):
    with opened(points_file) as session:
        assert session.status()["stop"]["sentence"].startswith("It is too early")
        for i in range(40):
            pair = session.question("page")
            if pair is None:
                break
            rows = [pair["a"]["row"], pair["b"]["row"]]
            said = "same" if CLASS[rows[0]] == CLASS[rows[1]] else "different"
            session.write(answer(str(i), *rows, said, page="page"))
            assert session.background.wait(60)  # let the refit catch up, as a person does who thinks
        labels = session.labels()
        assert len(set(zip(labels.tolist(), CLASS.tolist(), strict=True))) == 3
        stop = session.status()["stop"]
        assert stop["enough"]
        assert stop["sentence"] == "You can stop: less than 1 % of the labels may still change."


def test_few_replies_are_too_few_to_stop_though_they_stand_for_many_answers(points_file):
    with opened(points_file) as session:
        for i in range(6):
            first = 20 * (i % 3) + 7 * (i // 3)
            rows = list(range(first, first + 7))
            session.write({"entry": "group", "key": f"k{i}", "rows": rows, "out": []})
            assert session.background.wait(60)
        assert session.models >= 2
        stop = session.status()["stop"]
        assert not stop["enough"]
        assert stop["sentence"] == "It is too early to say when to stop: answer 20 questions first."
        session.record.counts["group"] = 20
        assert session.status()["stop"]["sentence"].startswith("You can stop")
        for i, rows in enumerate([[0, 20], [0, 40], [20, 40], [18, 19], [18, 0], [18, 20], [18, 40]]):
            session.write(answer(f"d{i}", *rows, "same" if i == 3 else "different"))
        found = session.status()
        assert found["another"].startswith("4 groups of rows are known to differ from each other, and there are 3")
        assert (found["stop"]["enough"], found["stop"]["sentence"]) == (False, "Go on: one more class is likely.")
    with opened(points_file) as session:  # after a new start it is known how far labels had settled
        session.record.counts["group"] = 20
        session.background.wait(60)
        assert session.status()["stop"]["sentence"].startswith(("You can stop", "Go on: about", "Go on: less"))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"entry": "delete"}, "entry is 'delete'"),
        ({"key": ""}, "key is ''"),
        ({"key": 7}, "key is 7"),
        ({"rows": [0]}, "rows has length 1: give a list of 2 row numbers"),
        ({"rows": [0, 60]}, "row 60 does not exist: rows are numbered from 0 to 59"),
        ({"rows": [0, -1]}, "row -1 does not exist"),
        ({"rows": [0, True]}, "row True does not exist"),
        ({"rows": [3, 3]}, "names a row twice"),
        ({"rows": "01"}, "rows is '01'"),
        ({"said": "maybe"}, "said is 'maybe'"),
        ({"annotator": 5}, "annotator is 5"),
        ({"entry": "together", "rows": list(range(MOST_TOGETHER + 1))}, "a list of 2 to 2000"),
    ],
)
def test_requests_without_sense_are_refused_and_leave_no_trace(points_file, wrong, message):
    with opened(points_file) as session, pytest.raises(ValueError, match=message):
        session.write(answer("k1", 0, 1) | wrong)
    assert not points_file.with_name("links.csv.journal").read_bytes()


def test_names_are_kept_without_what_would_break_a_line(points_file):
    with opened(points_file) as session:
        session.write(answer("k1", 0, 1, annotator="  ida\n\x1b[31m,x "))
    assert links_file(points_file) == 'a,b,kind,annotator,chosen\np0,p1,must,"ida[31m,x",yes\n'


def test_answers_about_another_table_are_refused(points_file, tmp_path):
    with opened(points_file) as session:
        session.write(answer("k1", 0, 59))
    lines = points_file.read_text().splitlines()[:-1]
    points_file.write_text("\n".join(lines) + "\n")
    with pytest.raises(BadFile, match=r"an answer about 'p59', which is not among the ids"):
        opened(points_file)
    points_file.write_text(points_file.read_text() + '"p59","1","1"\n')
    opened(points_file).close()  # nothing is locked by the one that failed


def test_a_link_of_a_point_that_has_left_the_table_does_not_come_back(points_file):
    with opened(points_file) as session:
        session.write(answer("k1", 0, 59))
        session.write({"entry": "remove", "key": "k2", "rows": [0, 59]})
    points_file.write_text("\n".join(points_file.read_text().splitlines()[:-1]) + "\n")
    with opened(points_file) as session:
        with pytest.raises(NotPossible, match="p0 and p59 are not all in the table any more"):
            session.write({"entry": "undo", "key": "k3"})
        assert session.view.n_links == {"same": 0, "different": 0}


def test_rows_may_change_their_order_between_two_starts(points_file):
    with opened(points_file) as session:
        session.write(answer("k1", 0, 1))
        session.write(answer("k2", 0, 30, "different", "ida"))
    head, *lines = points_file.read_text().splitlines()
    points_file.write_text("\n".join([head, *reversed(lines)]) + "\n")
    with opened(points_file) as session:
        shown = {tuple(link["ids"]): link["rows"] for link in session.status()["links"]}
        assert shown == {("p0", "p1"): [59, 58], ("p0", "p30"): [59, 29]}
        session.write({"entry": "undo", "key": "k3", "annotator": "ida"})
    assert links_file(points_file) == "a,b,kind,chosen\np0,p1,must,yes\n"


# Cards


def test_fields_side_by_side_and_gaps():
    X = np.array([[1.0, np.nan], [3.0, 2.0], [1.0, np.nan]])
    cards = Cards(Points(np.array(["a", "b", "c"]), ("x", "y"), X, {"note": np.array(["so", "so", ""])}), ".")
    fields = {field["name"]: field for field in cards.pair(0, 1)["fields"]}
    assert fields["note"] == {"name": "note", "a": "so", "b": "so", "differs": False, "apart": None}
    assert fields["x"]["apart"] == round(2 / X[:, 0].std(), 2)
    assert fields["y"] == {"name": "y", "a": "", "b": "2", "differs": True, "apart": None}
    assert not any(field["differs"] for field in cards.pair(0, 2)["fields"] if field["name"] != "note")


def test_places_keep_distances_of_two_columns_and_the_spread_of_more():
    X = np.random.default_rng(0).normal(size=(200, 5)) * [5, 1, 1, 1, 1]
    ids = np.array([str(i) for i in range(200)])
    places, axes = Cards(Points(ids, ("x", "y"), X[:, :2]), ".").places()
    assert np.array_equal(places.T, X[:, :2])
    assert axes == ["x", "y"]
    places, _ = Cards(Points(ids, tuple("abcde"), X), ".").places()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    largest = np.linalg.eigvalsh(np.cov(Z.T, bias=True))[::-1][:2]
    assert np.allclose(places.var(axis=1), largest)


# The audit


def audited(session, n, first=0, page="page"):
    """Answer n questions as they come; the rows."""
    asked = []
    for number in range(first, first + n):
        shown = session.question(page)
        rows = [shown["a"]["row"], shown["b"]["row"]]
        said = "same" if CLASS[rows[0]] == CLASS[rows[1]] else "different"
        session.write(answer(f"a{number}", *rows, said, page=page))
        asked.append(rows)
    return asked


def test_an_audit_asks_random_pairs_and_then_says_how_good_the_labels_are(points_file):
    with opened(points_file, n_audit=12) as session:
        assert session.view.how_good is None
        chosen = audited(session, 5, first=100)
        session.background.wait()
        refits = session.status()["refits"]
        session.write({"entry": "audit", "key": "k1", "page": "page"})
        shown = session.question("page")
        assert shown["audit"] == {"answered": 0, "n": 12}
        assert shown["a"]["label"] is shown["b"]["label"] is None
        random = audited(session, 11)
        with pytest.raises(NotPossible, match="under way"):
            session.write({"entry": "audit", "key": "k2"})
        status = session.status()
        assert (status["audit"], status["how_good"]) == ({"answered": 11, "n": 12}, None)
        assert status["refits"] == refits  # none uses what is to be measured
        random += audited(session, 1, first=11)
        status = session.status()
        assert status["audit"] is None
        assert status["how_good"].startswith("About 9")
        assert "from 12 questions about random pairs, measured before" in status["how_good"]
        assert session.question("page")["a"]["label"] is not None
        session.background.wait()
        assert session.status()["refits"] > refits
        audited(session, 1, first=50)
        assert session.view.how_good == status["how_good"]
    links = read_links(points_file.with_name("links.csv"), IDS)
    assert links.n_chosen == 6
    table = links.to_table()
    for a, b, was_chosen in zip(table["a"], table["b"], table["chosen"], strict=True):
        assert ([a, b] in random) != was_chosen
    assert not [pair for pair in random if pair in chosen]
    with opened(points_file, n_audit=12) as session:
        assert session.view.how_good == status["how_good"]


def test_an_audit_goes_on_after_a_new_start(points_file):
    with opened(points_file, n_audit=6) as session:
        audited(session, 4, first=100)
        session.write({"entry": "audit", "key": "k1", "page": "page"})
        before = audited(session, 2)
        shown = session.question("page")
        rows = [shown["a"]["row"], shown["b"]["row"]]
        session.write(answer("skipped", *rows, "skip", page="page"))
        status = session.status()
        coming = session.asker.next(9).tolist()
    head, *lines = points_file.read_text().splitlines()
    points_file.write_text("\n".join([head, *reversed(lines)]) + "\n")  # rows have other numbers now
    with opened(points_file, n_audit=6) as session:
        again = session.status()
        assert again["audit"] == status["audit"] == {"answered": 2, "n": 6}
        assert again["counts"] == status["counts"]
        assert [sorted(59 - row for row in pair) for pair in session.asker.next(9).tolist()] == coming
        session.write({"entry": "undo", "key": "k2", "page": "page"})
        session.write({"entry": "undo", "key": "k3", "page": "page"})
        assert session.status()["audit"] == {"answered": 1, "n": 6}
        shown = session.question("page")
        assert sorted((59 - shown["a"]["row"], 59 - shown["b"]["row"])) == before[1]
        audited(session, 5, first=20)  # classes are symmetric
        assert session.status()["audit"] is None
        assert "from 6 questions" in session.view.how_good


def test_an_audit_can_be_given_up_and_its_answers_stay(points_file):
    with opened(points_file) as session:
        with pytest.raises(NotPossible, match="no check is under way"):
            session.write({"entry": "give up", "key": "k0"})
        session.write({"entry": "audit", "key": "k1", "page": "page"})
        random = audited(session, 3)
        assert len(session.asker._state.answers) == 0
        session.write({"entry": "give up", "key": "k2", "page": "page"})
        status = session.status()
        assert (status["audit"], status["how_good"]) == (None, None)
        assert session.question("page")["audit"] is None
        assert len(session.asker._state.answers) == 3
    links = read_links(points_file.with_name("links.csv"), IDS)
    assert sorted(links.must.tolist() + links.cannot.tolist()) == sorted(random)
    assert links.n_chosen == 0
    with opened(points_file) as session:
        assert session.status()["audit"] is None
        session.write({"entry": "audit", "key": "k3", "page": "page"})
        assert session.status()["audit"] == {"answered": 0, "n": 20}


def test_an_edited_file_of_links_gives_an_audit_up(points_file):
    with opened(points_file) as session:
        session.write({"entry": "audit", "key": "k1", "page": "page"})
        audited(session, 3)
    path = points_file.with_name("links.csv")
    path.write_text(
        path.read_text()
        .replace("a,b,kind", "a,b,kind,chosen")
        .replace("must", "must,no")
        .replace("cannot", "cannot,yes")
    )
    with opened(points_file) as session:
        assert session.status()["audit"] is None
        assert sum(session.view.n_links.values()) == 3
        session.write(answer("k9", 0, 30, "different"))
    links = read_links(path, IDS)
    assert links.must_chosen is None
    assert links.cannot_chosen.all()


def test_an_audit_is_given_up_where_its_points_are_gone(points_file):
    with opened(points_file) as session:
        session.write({"entry": "audit", "key": "k1", "page": "page"})
        row = session.said.audit.pairs[0][0]
    lines = points_file.read_text().splitlines()
    points_file.write_text("\n".join(line for number, line in enumerate(lines) if number != row + 1) + "\n")
    with opened(points_file) as session:
        assert session.status()["audit"] is None


def test_two_pages_get_different_pairs_of_an_audit(points_file):
    with opened(points_file, n_audit=3) as session:
        session.write({"entry": "audit", "key": "k1"})
        shown = [session.question(page) for page in ("one", "two", "three")]
        assert len({(one["a"]["row"], one["b"]["row"]) for one in shown}) == 3
        for number, (page, one) in enumerate(zip(("one", "two", "three"), shown, strict=True)):
            session.write(answer(f"k{number}x", one["a"]["row"], one["b"]["row"], "same", annotator=page, page=page))
        assert session.status()["audit"] is None
        session.write({"entry": "undo", "key": "k5", "annotator": "one"})  # what someone else said stays
        assert session.status()["audit"] == {"answered": 2, "n": 3}
    with opened(points_file, n_audit=3) as session:
        assert session.status()["audit"] == {"answered": 2, "n": 3}


def test_a_journal_from_before_audits_is_read_as_it_was(points_file):
    """Statements of a file were random as far as anybody knew; the answers of people were chosen."""
    entries = [
        {"entry": "links", "statements": [["p0", "p1", "same", 0.9, "eva"]], "digest": "old"},
        {"entry": "answer", "key": "k1", "ids": ["p2", "p40"], "said": "different", "annotator": None, "time": "then"},
    ]
    journal = points_file.with_name("links.csv.journal")
    journal.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    with opened(points_file) as session:
        session.write(answer("k2", 5, 6))
    assert links_file(points_file).splitlines() == [
        *("a,b,kind,confidence,annotator,chosen", "p0,p1,must,0.9,eva,no", "p5,p6,must,1.0,,yes", "p2,p40,cannot,,,yes")
    ]


def test_a_crash_before_each_new_file_of_links_is_in_place_takes_nothing_from_it(points_file, monkeypatch):
    """The file may stay behind for several starts, in each of which a newer one was announced; it is still ours."""
    monkeypatch.setattr("linkmix.app.label.session.WRITE_AFTER", 60)  # it is written once in each session, at its end
    links, journal = points_file.with_name("links.csv"), points_file.with_name("links.csv.journal")
    with opened(points_file) as session:
        session.write(answer("k1", 0, 1))
    old = links.read_bytes()
    for number in range(2, 5):
        with opened(points_file) as session:
            session.write(answer(f"k{number}", 0, number))
        links.write_bytes(old)  # as if the process had been killed after the journal was written
    assert '"links"' not in journal.read_text()
    with opened(points_file) as session:
        assert session.view.n_links == {"same": 4, "different": 0}
        assert session.record.last_turn(None) == "k4"
    assert '"links"' not in journal.read_text()


GOOD = {"entry": "answer", "key": "k0", "ids": ["p0", "p1"], "said": "same", "annotator": None}


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"entry": "bogus", "key": "k", "ids": ["p0", "p1"], "annotator": None},
        {"entry": "answer"},
        GOOD | {"key": "k", "said": "maybe"},
        GOOD | {"key": "k", "ids": None},
        GOOD | {"key": "k", "ids": 7},
        {"entry": "undo", "key": "k"} | {"of": "k0"} | {"key": ["k"]},
        {"entry": "links", "digest": "x"},
        {"entry": "links", "digest": "x", "statements": [["p0"]]},
        {"entry": "audit", "key": "k", "annotator": None},
        {"entry": "wrote"},
        {"entry": "name", "key": "k", "annotator": None},
        {"entry": ["answer"], "key": "k"},
    ],
    ids=json.dumps,
)
def test_a_line_that_no_session_wrote_is_named_and_the_journal_stays_as_it_is(points_file, bad):
    journal = points_file.with_name("links.csv.journal")
    with Journal(journal) as written:
        written.append(GOOD)
        written.append(bad)
    before = journal.read_bytes()
    with pytest.raises(BadFile, match=r"journal, line 3: this line is not an entry of a labelling session: restore it"):
        opened(points_file)
    assert journal.read_bytes() == before


def test_half_a_line_after_a_crash_is_kept_aside_and_said(points_file):
    with opened(points_file) as session:
        session.write(answer("k1", 0, 1))
        assert session.files.notes == ()
    journal = points_file.with_name("links.csv.journal")
    with journal.open("ab") as file:
        file.write(b'{"n":')
    with opened(points_file) as session:
        assert session.status()["n_links"]["same"] == 1
        assert "was cut off by a crash and never confirmed; it is in" in session.files.notes[0]
    assert journal.with_name("links.csv.journal.torn").read_bytes() == b'{"n":\n'
