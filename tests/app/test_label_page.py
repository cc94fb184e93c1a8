import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from label_serving import IDS, Serving, free_port, write_points
from linkmix.app.label.answers import fold
from linkmix.basics.journal import entries_in
from linkmix.tables import read_links, read_points

EVIL = '<img src=x onerror="document.title=1/0"><script>document.title="run"</script>'


@contextmanager
def page_of(browser, url, *, name=None, kinds="pair", **options):
    """A page in a browser of its own, which fails the test if anything goes wrong on it."""
    context = browser.new_context(**options)
    context.set_default_timeout(60_000)
    context.add_init_script(f"localStorage.getItem('kinds') ?? localStorage.setItem('kinds', '{json.dumps(kinds)}')")
    page = context.new_page()
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if "Policy" in message.text else None)
    base = url.partition("#")[0]
    page.on("request", lambda request: wrong.append(request.url) if not request.url.startswith(base) else None)
    page.goto(url)
    ready(page)
    if name:
        with settings(page):
            page.fill("#annotator", name)
    try:
        yield page
    finally:
        context.close()
    assert not wrong


def ready(page):
    """Wait for the question, and for the map where there is room for it."""
    page.wait_for_selector("body[data-ready]")
    if page.is_visible("#map"):
        page.wait_for_selector("#plot[data-drawn]")


@contextmanager
def settings(page):
    page.click("#open-settings")
    yield
    page.click("#settings >> text=Close")


def view(page, name):
    page.click(f"[data-view={name}]")
    page.wait_for_selector(f"#{name}")


def rows_of(page):
    return page.get_attribute("#ask", "data-rows")


def after(page, act):
    """Do something and wait for the next question."""
    before = rows_of(page)
    act()
    page.wait_for_selector(f'#ask:not([data-rows="{before}"])')
    return before


def said_in(serving):
    return [(entry["entry"], entry.get("said")) for entry in serving.entries() if "key" in entry]


def message(page, text):
    page.wait_for_selector(f"#message:text-is({json.dumps(text)})")


def link_count(page, n):
    page.wait_for_selector(f'#links-title:text-is("Links ({n})")', state="attached")


def place(page, serving, row):
    """Where a point is on the page."""
    _, _, body = serving.request("GET", "/api/places")
    places = np.frombuffer(body, dtype="<f4").reshape(2, -1)
    low, high = places.min(axis=1), places.max(axis=1)
    room = 0.06 * (high - low)
    share = (places[:, row] - low + room) / (high - low + 2 * room)
    box = page.locator("#cloud").bounding_box()
    return float(box["x"] + share[0] * box["width"]), float(box["y"] + (1 - share[1]) * box["height"])


def test_answers_by_keys_and_clicks_undo_and_reload(browser, serving):
    with page_of(browser, serving.url) as page:
        asked = [after(page, lambda: page.keyboard.press("s"))]
        message(page, "Saved: same.")
        asked.append(after(page, lambda: page.click("#answers >> text=Different")))
        asked.append(after(page, lambda: page.keyboard.press("u")))
        asked.append(after(page, lambda: page.click("#answers >> text=Skip")))
        assert len(set(asked)) == 4
        assert said_in(serving) == [("answer", said) for said in ("same", "different", "unsure", "skip")]
        shown = [entry["ids"] for entry in serving.entries() if "key" in entry]
        assert shown == [[f"p{row}" for row in rows.split()] for rows in asked]

        after(page, lambda: page.keyboard.press("z"))
        assert rows_of(page) == asked[3]  # asked again
        after(page, lambda: page.click("#undo"))
        assert rows_of(page) == asked[2]
        link_count(page, 2)
        page.reload()
        ready(page)
        assert rows_of(page) == asked[2]
        link_count(page, 2)
        view(page, "progress")
        assert (
            page.inner_text("#counts") == "Same\n1\nDifferent\n1\nUnsure\n0\nSkipped\n0\nMust-links\n1\nCannot-links\n1"
        )

        with settings(page):  # letters in a field are no answers
            page.fill("#annotator", "sd")
            page.keyboard.press("s")
            page.uncheck("#use-keys")
        page.keyboard.press("s")
        with settings(page):
            page.check("#use-keys")
        page.keyboard.press("Control+s")
        assert len(said_in(serving)) == 6
        after(page, lambda: page.keyboard.press("d"))
    assert [entry["annotator"] for entry in serving.entries() if "key" in entry][-1] == "sds"


def test_going_back_and_forth_leaves_settings_and_ticks_alone(browser, serving):
    with page_of(browser, serving.url, kinds="pair,which,group") as page:
        after(page, lambda: page.keyboard.press("k"))
        page.goto(f"{serving.url}palette.css")
        page.go_back()
        ready(page)
        assert page.is_checked("#use-keys")
        assert not page.is_checked("#show-guess")
        assert not page.query_selector_all("#cards input:checked")
        after(page, lambda: page.keyboard.press("k"))


def test_a_check_of_how_good_the_result_is(browser, serving):
    explained = "These 20 questions are about random pairs, so they show how good the result is."

    def right(page):
        a, b = (int(row) // 20 for row in rows_of(page).split())
        after(page, lambda: page.keyboard.press("s" if a == b else "d"))

    def progress(page, n):
        page.wait_for_selector(f'#auditing:has-text("{n} of 20 answered. {explained}")')

    with page_of(browser, serving.url) as page:
        right(page)
        assert page.is_hidden("#auditing")
        with settings(page):
            page.check("#show-guess")
        assert page.locator("#cards .chip").count() == 2
        view(page, "progress")
        after(page, lambda: page.click("text=Check how good this is: 20 random questions"))
        progress(page, 0)
        assert page.locator("#cards .chip").count() == 0  # a label would suggest an answer
        for _ in range(3):
            right(page)
        progress(page, 3)
        after(page, lambda: page.keyboard.press("u"))
        progress(page, 3)
        after(page, lambda: page.keyboard.press("z"))
        after(page, lambda: page.keyboard.press("z"))
        progress(page, 2)

        serving.kill()  # in the middle of it
        serving.start()
        page.reload()
        ready(page)
        view(page, "progress")
        progress(page, 2)
        page.wait_for_selector("#audit:text-is('Stop the check')")
        for _ in range(18):
            assert page.is_hidden("#how-good")
            right(page)
        page.wait_for_selector('#how-good:has-text("from 20 questions about random pairs, measured before their")')
        assert page.inner_text("#how-good").startswith("About 9")
        assert page.is_hidden("#auditing")
        link_count(page, 21)
        good = page.inner_text("#how-good")

        after(page, lambda: page.click("text=Check how good this is"))  # another one, given up
        right(page)
        after(page, lambda: page.click("#give-up"))
        message(page, "The check has ended early. Its answers are kept, and the model will use them.")
        assert page.is_hidden("#auditing")
        assert page.inner_text("#how-good") == good
        link_count(page, 22)
    serving.stop()
    links = read_links(serving.links, IDS)
    assert links.n_chosen == 1
    serving.start()


def test_a_surprising_answer_is_asked_for_again(browser, tmp_path):
    points = write_points(tmp_path / "points.csv")
    with Serving(points, wrong=0.1) as serving, page_of(browser, serving.url) as page:
        rows = rows_of(page)
        a, b = (int(row) // 20 for row in rows.split())
        page.keyboard.press("d" if a == b else "s")  # not true
        page.wait_for_selector('#ask-title:text-is("Once more: do these two belong together?")')
        assert rows_of(page) == rows
        assert "asked again" in page.inner_text("#message")
        page.keyboard.press("s" if a == b else "d")
        page.wait_for_selector(f'#message:has-text("Saved: {"same" if a == b else "different"}")')
        assert rows_of(page) == rows  # one against one
        after(page, lambda: page.keyboard.press("s" if a == b else "d"))
        assert page.inner_text("#ask-title") == "Do these two belong together?"
    assert len(said_in(serving)) == 3


def test_points_are_linked_on_the_map_and_links_removed(browser, serving):
    with page_of(browser, serving.url) as page:
        page.mouse.click(*place(page, serving, 3))
        page.wait_for_selector('#chosen-text:text-is("p3 is chosen. Click another point to link the two.")')
        page.mouse.click(*place(page, serving, 44))
        page.wait_for_selector('#chosen-text:text-is("Are p3 and p44 the same?")')
        page.click("#link-different")
        message(page, "Saved: different.")
        link_count(page, 1)
        assert said_in(serving) == [("answer", "different")]

        (ax, ay), (bx, by) = place(page, serving, 3), place(page, serving, 44)
        for share in np.linspace(0.3, 0.7, 9):  # a place on the link that is on no point
            at = ax + share * (bx - ax), ay + share * (by - ay)
            if all(np.hypot(*np.subtract(at, place(page, serving, row))) > 10 for row in range(60)):
                page.mouse.click(*at)
                break
        page.wait_for_selector('#chosen-text:text-is("p3 and p44 were said to be different.")')
        link_count(page, 1)  # a click deletes nothing
        page.click("#link-turn")
        message(page, "Saved: the answer is turned round.")
        assert [(link.pair, link.said) for link in fold(serving.entries(), IDS).said.links] == [((3, 44), "same")]
        page.wait_for_selector("#links-list b:text-is('=')", state="attached")
        page.mouse.click(*at)
        page.wait_for_selector('#chosen-text:text-is("p3 and p44 were said to be same.")')
        page.click("#link-remove")
        message(page, "Link removed. Undo restores it.")
        link_count(page, 0)
        page.keyboard.press("z")
        message(page, "Undone: removal of the link between p3 and p44.")
        link_count(page, 1)
        view(page, "review")
        page.click("#links-list >> text=Remove")
        link_count(page, 0)

        page.click("text=Link two points by their ids")
        page.fill("#by-id [name=a]", "p10")
        page.fill("#by-id [name=b]", "nobody")
        page.keyboard.press("Enter")
        message(page, "there is no point with this id.")
        page.fill("#by-id [name=b]", "p11")
        page.keyboard.press("Enter")
        page.wait_for_selector("#link-same:focus")  # on the map
        assert page.locator("#chosen-cards .card").count() == 2
        page.keyboard.press("Enter")
        link_count(page, 1)
    assert [link.pair for link in fold(serving.entries(), IDS).said.links] == [(10, 11)]


def test_a_lasso_says_that_all_belong_together(browser, serving):
    with page_of(browser, serving.url) as page:
        page.click("text=Lasso")
        page.wait_for_function("() => document.getElementById('chart').layout.dragmode === 'lasso'")
        corners = np.array([place(page, serving, row) for row in range(20)])  # the first class, at the lower left
        left, top, right, bottom = *(corners.min(axis=0) - 12), *(corners.max(axis=0) + 12)
        page.mouse.move(left, top)
        page.mouse.down()
        for x, y in [(right, top), (right, bottom), (left, bottom), (left, top + 3)]:
            page.mouse.move(x, y, steps=6)
        page.mouse.up()
        page.wait_for_selector('#chosen-text:has-text("points are chosen")')
        n = int(re.match(r"\d+", page.inner_text("#chosen-text"))[0])
        assert n >= 20
        assert sum(map(int, page.locator("#chosen-classes .quiet").all_inner_texts())) == n
        page.wait_for_selector("#chosen-cards .card >> nth=5")
        assert page.inner_text("#chosen-cards > p") == f"and {n - 6} others"
        page.click("#link-all")
        message(page, f"Saved: {n} points belong together.")
        link_count(page, n - 1)
        [entry] = [entry for entry in serving.entries() if entry["entry"] == "together"]
        assert {f"p{row}" for row in range(20)} <= set(entry["ids"])
        page.keyboard.press("z")
        message(page, f"Undone: {n} points belong together.")
        link_count(page, 0)


def test_two_people_at_once(browser, serving):
    with (
        page_of(browser, serving.url, name="ida") as one,
        page_of(browser, serving.url, name="eva") as other,
    ):
        for _ in range(5):
            assert rows_of(one) != rows_of(other)
            after(one, lambda: one.keyboard.press("s"))
            after(other, lambda: other.keyboard.press("d"))
        link_count(one, 10)
        link_count(other, 10)
        after(one, lambda: one.keyboard.press("z"))  # takes back what ida said, though eva was the last
        link_count(other, 9)
        # The same pair in two pages: the later word counts, and nothing breaks.
        one.evaluate("page => sessionStorage.setItem('page', page)", other.evaluate("sessionStorage.getItem('page')"))
        one.reload()
        ready(one)
        assert rows_of(one) == rows_of(other)
        after(one, lambda: one.keyboard.press("s"))
        after(other, lambda: other.keyboard.press("d"))
        link_count(one, 11)
    serving.stop()
    links = read_links(serving.links, read_points(serving.points).ids)
    assert set(links.must_annotators) == {"ida"}
    assert set(links.cannot_annotators) == {"eva"}
    assert (links.n_must, links.n_cannot) == (5, 6)


def start_command(points, port):
    command = [sys.executable, "-c", "from linkmix.app.cli import main; main()", "label", str(points), "--classes", "3"]
    command += ["--id", "id", "--port", str(port), "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    found = re.search(rf"http://127\.0\.0\.1:{port}/#token=\S+", process.stdout.readline())
    return process, found[0]


@pytest.mark.slow
def test_the_page_goes_on_when_the_server_is_killed_and_started_again(browser, tmp_path):
    """The command itself, killed three times while answers are given as fast as the page takes them.

    Each start has a token of its own: the page goes on once the new address was opened anywhere in the browser.
    """
    points = write_points(tmp_path / "points.csv")
    port = free_port()
    process, address = start_command(points, port)
    answered = 0
    try:
        with page_of(browser, address) as page:
            assert page.url == f"http://127.0.0.1:{port}/"  # the token is out of sight
            for wait in (0.2, 0.33, 0.5):
                killer = threading.Timer(wait, process.kill)
                killer.start()
                end = time.monotonic() + 20
                while not page.is_visible("#alarm"):
                    before = rows_of(page)
                    page.keyboard.press("s")
                    assert time.monotonic() < end
                    while rows_of(page) == before and not page.is_visible("#alarm"):
                        page.wait_for_timeout(2)
                    answered += 1
                killer.join()
                process.wait()
                process.stdout.close()
                assert "cannot be reached" in page.inner_text("#alarm")
                process, address = start_command(points, port)
                page.wait_for_selector("#alarm:has-text('token is missing or out of date')")
                other = page.context.new_page()
                other.goto(address)
                page.wait_for_selector("#alarm", state="hidden")
                other.close()
                page.wait_for_timeout(200)
            after(page, lambda: page.keyboard.press("d"))
            answered += 1
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=20)
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    entries = entries_in(tmp_path / "points-links.csv.journal")
    keys = [entry["key"] for entry in entries if "key" in entry]
    assert len(set(keys)) == len(keys) == answered
    assert answered >= 4
    links = read_links(tmp_path / "points-links.csv", read_points(points).ids)
    assert links.n_must + links.n_cannot == len(fold(entries, IDS).said.links)
    assert re.search(rf"points-links.csv: {links.n_must} must-links? and {links.n_cannot} cannot-links?\.", said)


def test_text_of_the_user_is_shown_and_never_run(browser, tmp_path):
    points = write_points(tmp_path / "points.csv", extra={EVIL: [EVIL + str(i) for i in range(60)]})
    text = points.read_text().replace('"p', '"<b>p')
    points.write_text(text)
    with Serving(points) as serving, page_of(browser, serving.url, name=EVIL) as page:
        assert EVIL in page.inner_text("#cards")
        assert "<b>p" in page.inner_text(".pair thead")
        after(page, lambda: page.keyboard.press("s"))
        link_count(page, 1)
        page.mouse.click(*place(page, serving, 3))
        page.wait_for_selector('#chosen-text:has-text("<b>p3")')
        assert EVIL in page.inner_text("#chosen-cards")
        view(page, "review")
        assert EVIL in page.inner_text("#links-list")
        view(page, "classes")
        page.fill(".class-name >> nth=0", EVIL)
        page.keyboard.press("Enter")
        message(page, f"Saved: the class is called {EVIL}.")
        page.click(".class >> nth=0 >> text=Look inside")
        page.wait_for_selector("#classes-body .grid .card")
        assert EVIL in page.inner_text("#classes-body .grid")
        assert EVIL in page.inner_text("#classes-title")
        assert page.locator("body b:not(.links b), body script, body [onerror]").count() == 0
        assert page.title() == "points.csv | linkmix"


def test_the_example_of_the_docs_shows_its_pictures(browser, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2] / "docs" / "labelling.md"
    [script] = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    exec(script, {})
    with Serving(tmp_path / "digits" / "digits.csv") as serving, page_of(browser, serving.url) as page:
        for end in ("a", "b"):
            row = rows_of(page).split()["ab".index(end)]
            picture = page.get_by_role("img", name=f"Picture of d{int(row):03}")
            picture.wait_for()
            assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") == 128
        assert page.locator(".pair tbody tr").count() == 0  # components say little beside a picture
        page.click("text=Show all 8 fields")
        assert page.locator(".pair tbody tr").count() == 8  # the picture is no field
        page.wait_for_selector("text=Show fewer fields")
