"""Classes as things on the labelling page: names, members, corrections; review by looking; the map; the finish."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
from test_label_page import after, link_count, message, page_of, place, ready, rows_of, settings, view

from label_serving import IDS, Serving, write_points
from linkmix.app.label.answers import fold


def entries(serving, what):
    return [entry for entry in serving.entries() if entry["entry"] == what]


def links_of(serving):
    return {(link.pair, link.said) for link in fold(serving.entries(), IDS).said.links}


def open_class(page, number):
    """Look inside a class; its face."""
    view(page, "classes")
    page.wait_for_selector(".class >> nth=2")
    button = page.locator(".class >> text=Look inside").nth(number)
    face = int(button.get_attribute("data-key").split()[1])
    button.click()
    page.wait_for_selector("#classes-body .grid .card >> nth=3")
    return face


def at_rest(page, serving):
    """Wait for the refits of what was said, which may change the members and their order."""
    still = 0
    while still < 5:
        still = 0 if serving.get("/api/status")["fitting"] else still + 1
        page.wait_for_timeout(200)


def pick(page, serving, *numbers):
    """Pick members by their places; their rows."""
    at_rest(page, serving)
    cards = page.locator("#classes-body .grid .card")
    rows = [int(cards.nth(number).get_attribute("data-row")) for number in numbers]
    for row in rows:
        page.click(f'#classes-body .grid .card[data-row="{row}"]')
    page.wait_for_selector(f'#picked-text:has-text("{len(numbers)} member")')
    return rows


def as_pairs(rows, face, said):
    return {(tuple(sorted((row, face))), said) for row in rows}


def answer_truly(page, n):
    for _ in range(n):
        a, b = (int(row) // 20 for row in rows_of(page).split())
        after(page, lambda a=a, b=b: page.keyboard.press("s" if a == b else "d"))


def test_names_are_written_in_place_and_stay(browser, serving):
    with page_of(browser, serving.url) as page:
        view(page, "classes")
        page.wait_for_selector(".class >> nth=2")
        assert page.locator(".class").count() == 3
        faces = [one["face"]["row"] for one in serving.get("/api/classes")["classes"]]
        for number, name in enumerate(["north", "south"]):
            page.focus(f"[data-key='name {faces[number]}']")
            page.keyboard.type(name)  # no letter of it is an answer
            page.keyboard.press("Enter")
            message(page, f"Saved: the class is called {name}.")
        assert links_of(serving) == as_pairs(faces[:1], faces[1], "different")  # so the model keeps them apart
        page.fill(f"[data-key='name {faces[2]}']", "north")
        page.keyboard.press("Enter")
        page.wait_for_selector("#message:has-text('merge the two, or give another name')")
        view(page, "map")
        page.wait_for_selector("#legend >> text=north")
        page.reload()
        ready(page)
        page.wait_for_selector("#legend >> text=south")

        view(page, "classes")
        page.click(".class >> nth=0 >> text=Look inside")
        page.click("text=Name, colour, merge")
        label = page.inner_text("#classes-title")
        page.fill(f"[aria-label='Description of {label}']", "All that is in the upper right")
        page.keyboard.press("Enter")
        message(page, f"Saved: the class is called {label}.")
        page.wait_for_selector(".details > p >> text=All that is in the upper right")
        page.select_option(f"[aria-label='Colour of {label}']", label="purple")
        page.wait_for_selector("#classes-title .c6")
        named = {one["name"]: one for one in serving.get("/api/classes")["classes"]}[label]
        assert (named["colour"], named["description"]) == (6, "All that is in the upper right")
        page.click("#undo")
        page.wait_for_selector("#classes-title .chip:not(.c6)")
        for _ in range(2):
            page.click("#undo")
        page.click("#undo")
        page.click("#all-classes")
        page.wait_for_selector(".class >> nth=2")
        page.wait_for_function("() => [...document.querySelectorAll('.class-name')].every(one => one.value === '')")


def test_members_are_picked_and_corrected(browser, serving):
    with page_of(browser, serving.url) as page:
        face = open_class(page, 0)
        assert page.is_hidden("#picked")
        page.click("text=Doubtful")
        page.wait_for_selector("[data-key=doubtful][aria-pressed=true]")
        rows = pick(page, serving, 0, 1)
        assert page.inner_text("#picked-text") == "2 members picked"
        page.click("#picked-not")
        page.wait_for_selector("#message:has-text('Saved: 2 points do not belong to')")
        link_count(page, 2)
        assert links_of(serving) == as_pairs(rows, face, "different")
        assert page.is_hidden("#picked")
        page.click("#undo")
        link_count(page, 0)

        rows = pick(page, serving, 0, 2)
        page.select_option("#picked-to", index=1)
        to = int(page.input_value("#picked-to"))
        page.click("#picked-move")
        page.wait_for_selector("#message:has-text('Saved: 2 points moved to')")
        link_count(page, 2)
        assert links_of(serving) == as_pairs(rows, to, "same")
        page.click("#undo")
        link_count(page, 0)

        rows = pick(page, serving, 1, 2, 3)
        page.click("#picked-split")
        page.wait_for_selector("#message:has-text('split off')")
        page.wait_for_selector("#links-title:not(:text-is('Links (0)'))", state="attached")
        [entry] = entries(serving, "split")
        assert entry["ids"] == [f"p{row}" for row in rows]
        known = links_of(serving)
        assert as_pairs(rows[:1], face, "different") <= known
        assert ((min(rows[0], rows[1]), max(rows[0], rows[1])), "same") in known
        page.keyboard.press("z")
        link_count(page, 0)


def test_by_the_keyboard_alone(browser, serving):
    """From the question to a corrected class."""
    with page_of(browser, serving.url) as page:

        def tab_to(what):
            for _ in range(60):
                if page.evaluate(f"document.activeElement.matches({json.dumps(what)})"):
                    return
                page.keyboard.press("Tab")
            raise AssertionError(what)

        tab_to("[data-view=classes]")
        page.keyboard.press("Enter")
        page.wait_for_selector(".class >> nth=2")
        tab_to("[data-key^=open]")
        page.keyboard.press("Enter")
        page.wait_for_selector("#classes-body .grid .card >> nth=3")
        assert page.evaluate("document.activeElement.id") == "classes-title"
        tab_to("#classes-body .grid input")
        page.keyboard.press("Space")
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        page.keyboard.press("Enter")  # no answer to the question
        tab_to("#picked-not")
        page.keyboard.press("Enter")
        link_count(page, 2)
        page.keyboard.press("z")
        link_count(page, 0)
    assert [entry["entry"] for entry in serving.entries() if "key" in entry] == ["not", "undo"]


def test_two_classes_are_merged(browser, serving):
    with page_of(browser, serving.url) as page:
        face = open_class(page, 1)
        page.click("text=Name, colour, merge")
        other = int(page.input_value("[aria-label='Class to merge it with']"))
        page.click("text=Merge the two")
        message(page, "Saved: the two classes are one.")
        page.wait_for_selector(".class")
        assert links_of(serving) == as_pairs([other], face, "same")
        page.click("#undo")
        link_count(page, 0)


def test_members_of_no_class(browser, tmp_path):
    with Serving(write_points(tmp_path / "points.csv"), noise=True) as serving, page_of(browser, serving.url) as page:
        open_class(page, 0)
        rows = pick(page, serving, 0, 1)
        page.click("#picked-nowhere")
        message(page, "Saved: 2 points have no class.")
        assert [entry["ids"] for entry in entries(serving, "nowhere")] == [[f"p{row}" for row in rows]]


def test_answers_are_reviewed_by_looking(browser, serving):
    with page_of(browser, serving.url, name="ida") as one, page_of(browser, serving.url, name="eva") as other:
        serving.write(entry="answer", key="k1", rows=[3, 4], said="different", annotator="ida", table=table_of(serving))
        serving.write(entry="answer", key="k2", rows=[3, 4], said="same", annotator="eva", table=table_of(serving))
        for page in (one, other):
            view(page, "review")
            page.wait_for_selector(".doubt >> text=People differ: ida said different; eva said same.")
            assert page.locator(".doubt .card").count() == 2
        one.click(".doubt button:has-text('Same')")
        one.wait_for_selector("#doubts >> text=Nothing stands out.")
        assert links_of(serving) == {((3, 4), "same")}
        one.click("#undo")
        one.wait_for_selector(".doubt")
        one.click(".doubt >> text=Keep both")
        other.wait_for_selector("#doubts >> text=Nothing stands out.")
        assert len(links_of(serving)) == 2


def test_a_doubtful_link_is_turned_round(browser, serving):
    table = table_of(serving)
    for key, (rows, said) in enumerate([((0, 1), "same"), ((1, 2), "same"), ((0, 2), "different")]):
        serving.write(entry="answer", key=f"k{key}", rows=rows, said=said, table=table)
    with page_of(browser, serving.url) as page:
        view(page, "review")
        page.wait_for_selector(".doubt >> text=p0 and p2 were said to be different: other links join these two")
        page.click(".doubt >> text=Turn round: same")
        message(page, "Saved: the answer is turned round.")
        page.wait_for_selector("#doubts >> text=Nothing stands out.")
        assert ((0, 2), "same") in links_of(serving)
        page.click("#undo")
        page.wait_for_selector(".doubt")
        page.click(".doubt >> text=Keep")
        message(page, "Saved: the answer is kept.")
        page.wait_for_selector("#doubts >> text=Nothing stands out.")
        page.click("#undo")
        page.wait_for_selector(".doubt")
        page.click(".doubt >> text=Remove")
        page.wait_for_selector("#doubts >> text=Nothing stands out.")
        assert links_of(serving) == {((0, 1), "same"), ((1, 2), "same")}


def table_of(serving):
    return serving.get("/api/start")["table"]


def test_the_map_shows_cards_and_classes(browser, tmp_path):
    others = {f"column {j}": np.random.default_rng(j).normal(size=60).round(3).tolist() for j in range(4)}
    points = write_points(tmp_path / "points.csv", extra=others)
    with Serving(points) as serving, page_of(browser, serving.url) as page:
        page.mouse.move(*place(page, serving, 7))
        page.wait_for_selector("#tooltip >> text=p7")
        card = serving.get("/api/card?row=7")
        assert all(field["value"] in page.inner_text("#tooltip") for field in card["fields"][:5])
        page.mouse.click(*place(page, serving, 7))
        page.wait_for_selector("#chosen-cards .card >> text=p7")
        assert page.is_hidden("#tooltip")
        page.mouse.move(5, 5)
        before = page.evaluate("document.getElementById('cloud').toDataURL()")
        with page.expect_response(re.compile("projection=classes")) as reply:
            page.click("#projection")
        places = np.frombuffer(reply.value.body(), dtype="<f4").reshape(2, -1)
        assert np.isfinite(places).all()
        assert places.shape == (2, 60)
        means = np.stack([places[:, 20 * k : 20 * k + 20].mean(axis=1) for k in range(3)])
        assert np.ptp(means[:, 0]) > 6  # in units of the spread within classes
        page.wait_for_function("before => document.getElementById('cloud').toDataURL() !== before", arg=before)
        assert page.get_attribute("#projection", "aria-pressed") == "true"
        page.click("#projection")
        page.wait_for_function("before => document.getElementById('cloud').toDataURL() === before", arg=before)


def test_progress_is_drawn(browser, serving):
    with page_of(browser, serving.url) as page:
        view(page, "progress")
        assert page.is_hidden("#history")
        answer_truly(page, 22)
        page.wait_for_selector("#history svg .settled-dot")
        page.wait_for_selector("#history >> text=/After \\d+ answers \\d+ % of the labels are settled/")
        history = serving.get("/api/status")["history"]
        page.wait_for_function(f"() => document.querySelectorAll('#history .settled-dot').length >= {len(history)}")


def test_finish_writes_what_the_page_shows(browser, serving):
    with page_of(browser, serving.url, permissions=["clipboard-read", "clipboard-write"]) as page:
        answer_truly(page, 6)
        view(page, "classes")
        page.fill(".class-name >> nth=0", "north")
        page.keyboard.press("Enter")
        message(page, "Saved: the class is called north.")
        page.click("#open-finish")
        page.wait_for_selector("#finish >> text=has not been measured")
        page.click("#write")
        page.wait_for_selector("#finish >> text=Written to", timeout=120_000)
        result = serving.get("/api/status")["finished"]
        assert all(Path(file).exists() for file in result["files"])
        labels = pd.read_csv(Path(result["folder"]) / "labels.csv")["label"].tolist()
        _, _, shown = serving.request("GET", "/api/labels")
        names = serving.get("/api/status")["names"]
        assert set(names.values()) == {"north"}
        assert labels == [names.get(str(label), str(label)) for label in np.frombuffer(shown, dtype="<i2")]
        shown = page.inner_text("#finish-body")
        assert all(sentence in shown for sentence in result["sentences"][1:])
        assert all(Path(file).name in shown for file in result["files"])
        assert result["folder"] in shown
        page.click("#finish [aria-label='Copy the command'] >> nth=0")
        page.wait_for_selector("#finish >> text=Copied")
        assert page.evaluate("navigator.clipboard.readText()") == result["command"]
        page.keyboard.press("Escape")
        page.keyboard.press("s")
        page.click("#open-finish")
        page.click("text=What was written last")
        page.wait_for_selector("#finish details .command")
        page.click("text=Back to the questions")
        answer_truly(page, 1)  # and on it goes


def test_certify_is_a_check_and_then_the_results(browser, serving):
    with page_of(browser, serving.url) as page:
        answer_truly(page, 3)
        page.click("#open-finish")
        after(page, lambda: page.click("#certify"))
        assert page.is_hidden("#finish")
        page.wait_for_selector('#auditing:has-text("0 of 20 answered")')
        answer_truly(page, 19)
        page.reload()  # in the middle of it
        ready(page)
        answer_truly(page, 1)
        page.wait_for_selector("#finish >> text=Written to", timeout=120_000)
        good = serving.get("/api/status")["how_good"]
        assert any(good.split(" of ")[0] in text for text in page.locator("#finish-body p").all_inner_texts())


def test_settings_do_not_stand_in_the_way(browser, serving):
    with page_of(browser, serving.url) as page, settings(page):
        page.keyboard.press("d")
    assert not [entry for entry in serving.entries() if "key" in entry]
