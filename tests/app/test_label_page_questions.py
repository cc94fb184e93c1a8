"""Questions about several points at once, why they are asked, and what the model thought of them."""

import pytest
from test_label_page import after, message, page_of, rows_of, said_in, settings

from label_serving import IDS, Serving, write_points
from linkmix.app.label.answers import fold

ALL = "pair,which,group"
TITLES = {
    "which": "Which of these is it like? Tap all that are.",
    "group": "Do these belong together? Tap those that do not fit.",
}


def first_and_cards(page):
    first, *cards = (int(row) for row in rows_of(page).split())
    assert page.locator("#cards .grid label.card").count() == len(cards)
    return first, cards


def kind(page):
    return page.get_attribute("#ask", "data-kind")


def until(page, wanted):
    """Answer truly until a question of this kind comes."""
    for _ in range(40):
        if kind(page) == wanted:
            return
        first, *cards = (int(row) for row in rows_of(page).split())
        like = [number for number, row in enumerate(cards, 1) if row // 20 == first // 20]
        if kind(page) == "pair":
            after(page, lambda like=like: page.keyboard.press("s" if like else "d"))
            continue
        for number in range(1, len(cards) + 1):
            if (number in like) == (kind(page) == "which"):
                page.keyboard.press(str(number))
        after(page, lambda like=like: page.keyboard.press("Enter" if like or kind(page) == "group" else "n"))
    raise AssertionError(f"no question of the kind {wanted} came")


def entries(serving, what):
    return [entry for entry in serving.entries() if entry["entry"] == what]


def test_which_by_keys(browser, serving):
    with page_of(browser, serving.url, kinds=ALL) as page:
        until(page, "which")
        assert page.inner_text("#ask-title") == TITLES["which"]
        assert page.inner_text("#why")
        first, cards = first_and_cards(page)
        like = [row for row in cards if row // 20 == first // 20]
        assert page.is_disabled("#confirm")
        page.keyboard.press("Enter")  # nothing is picked
        page.keyboard.press("1")
        page.keyboard.press("1")  # no: not this one
        for row in like:
            page.keyboard.press(str(1 + cards.index(row)))
        assert page.locator("#cards .grid :checked").count() == len(like)
        after(page, lambda: page.keyboard.press("Enter" if like else "n"))
        assert page.inner_text("#message").startswith(
            f"Saved: p{first} is like p" if like else "Saved: it is like none"
        )
        said = entries(serving, "which")[-1]
        assert said["ids"] == [f"p{row}" for row in (first, *cards)]
        assert said["like"] == [f"p{row}" for row in like]
        assert len(fold(serving.entries(), IDS).said.links) == len(cards)

        after(page, lambda: page.keyboard.press("z"))
        assert rows_of(page) == " ".join(str(row) for row in (first, *cards))  # asked again
        assert not fold(serving.entries(), IDS).said.links
        after(page, lambda: page.keyboard.press("u"))
        message(page, "Saved: unsure.")
        after(page, lambda: page.keyboard.press("z"))
        after(page, lambda: page.keyboard.press("k"))
        message(page, "Saved: skipped.")
        after(page, lambda: page.keyboard.press("z"))
        after(page, lambda: page.keyboard.press("n"))
        message(page, "Saved: it is like none of these.")
        assert [(one.get("like"), one.get("said")) for one in entries(serving, "which")][1:] == [
            (None, "unsure"),
            (None, "skip"),
            ([], None),
        ]


def test_what_is_tapped_outlives_a_refit(browser, serving):
    with page_of(browser, serving.url, kinds=ALL) as page:
        until(page, "which")
        rows, refits = rows_of(page), serving.get("/api/status")["refits"]
        page.keyboard.press("1")
        table = serving.get("/api/start")["table"]
        status, *_ = serving.write(entry="answer", key="of another", rows=[0, 1], said="same", table=table)
        assert status == 200
        while serving.get("/api/status")["refits"] == refits:
            page.wait_for_timeout(100)
        page.wait_for_timeout(1000)  # so that the page has heard of it
        assert rows_of(page) == rows
        assert page.locator("#cards .grid :checked").count() == 1


def test_group_by_taps(browser, serving):
    with page_of(browser, serving.url, kinds=ALL) as page:
        until(page, "group")
        assert page.inner_text("#ask-title") == TITLES["group"]
        first, cards = first_and_cards(page)
        assert page.inner_text("#confirm-text") == "All fit"
        page.click("#cards .grid .card >> nth=0")
        assert page.inner_text("#confirm-text") == "This one does not fit"
        page.click("#cards .grid .card >> nth=1")
        assert page.inner_text("#confirm-text") == "These 2 do not fit"
        after(page, lambda: page.click("#confirm"))
        message(page, "Saved: 2 of them do not fit.")
        after(page, lambda: page.keyboard.press("z"))
        after(page, lambda: page.keyboard.press("Enter"))
        message(page, "Saved: all fit.")
        one, other = entries(serving, "group")
        assert one["ids"] == [f"p{row}" for row in (first, *cards)]
        assert one["out"] == [f"p{row}" for row in cards[:2]]
        assert other["out"] == []


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_enter_confirms_after_another_view_was_opened(browser, serving, by):
    with page_of(browser, serving.url, kinds=ALL) as page:
        until(page, "group")
        if by == "mouse":
            page.click("[data-view=progress]")
            after(page, lambda: page.keyboard.press("Enter"))
            message(page, "Saved: all fit.")
        else:
            n = len(entries(serving, "group"))
            page.focus("[data-view=progress]")
            page.keyboard.press("Enter")  # is for the button
            page.keyboard.press("Enter")
            page.wait_for_selector("#progress:visible")
            assert len(entries(serving, "group")) == n
            page.keyboard.press("1")
            after(page, lambda: page.keyboard.press("Enter"))
            message(page, "Saved: 1 of them does not fit.")


def test_enter_is_for_each_new_question(browser, serving):
    """What had the focus is gone with its question: no button of the next one takes its place."""
    with page_of(browser, serving.url, kinds=ALL) as page:
        until(page, "group")
        page.keyboard.press("1")
        assert page.evaluate("document.activeElement.type") == "checkbox"
        after(page, lambda: page.keyboard.press("Enter"))
        assert page.evaluate("document.activeElement.id") == "ask"


@pytest.mark.parametrize("asked", ["which", "group"])
def test_by_the_keyboard_alone(browser, serving, asked):
    """Tab and space pick, Enter confirms: also with the keys turned off, through the buttons."""
    with page_of(browser, serving.url, kinds=ALL) as page:
        until(page, asked)
        n = len(entries(serving, asked))
        page.focus("#cards")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.type") == "checkbox"
        page.keyboard.press("Space")
        assert page.locator("#cards .grid :checked").count() == 1
        after(page, lambda: page.keyboard.press("Enter"))
        assert len(entries(serving, asked)) == n + 1
        until(page, asked)
        n = len(entries(serving, asked))
        with settings(page):
            page.uncheck("#use-keys")
        page.focus("#cards")
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        page.keyboard.press("2")
        page.keyboard.press("Enter")
        assert page.locator("#cards .grid :checked").count() == 1
        while page.evaluate("document.activeElement.id") != "confirm":
            page.keyboard.press("Tab")
        after(page, lambda: page.keyboard.press("Enter"))
        assert len(entries(serving, asked)) == n + 1


def test_kinds_are_a_setting_that_stays(browser, serving):
    with page_of(browser, serving.url, kinds=ALL) as page:
        until(page, "which")
        before = said_in(serving)
        with settings(page):
            page.select_option("#kinds", "pair")
        page.wait_for_selector("#ask[data-kind=pair]")
        page.reload()
        page.wait_for_selector("#ask[data-kind=pair]")
        for _ in range(3):
            after(page, lambda: page.keyboard.press("s"))
            assert kind(page) == "pair"
        with settings(page):
            assert page.input_value("#kinds") == "pair"
    assert said_in(serving)[len(before) :] == [("answer", "same")] * 3


@pytest.mark.parametrize("asked", ["pair", "which", "group"])
def test_the_guess_is_hidden_until_the_answer(browser, serving, asked):
    with page_of(browser, serving.url, kinds="pair" if asked == "pair" else ALL) as page:
        assert page.inner_text("#guess") == ""
        until(page, asked)
        assert page.locator("#cards .chip").count() == 0
        after(page, lambda: page.keyboard.press("s" if asked == "pair" else "n" if asked == "which" else "Enter"))
        assert page.inner_text("#guess").startswith(("So the model thought", "The model thought"))
        assert page.locator("#cards .chip").count() == 0
        with settings(page):
            page.check("#show-guess")
        n = len(rows_of(page).split())
        assert page.locator("#cards .chip").count() == n
        page.reload()
        page.wait_for_selector("#cards .chip")  # it is remembered
        is_pair = kind(page) == "pair"
        after(page, lambda: page.keyboard.press("k"))
        assert page.inner_text("#guess").startswith("The model thought: ") == is_pair


def test_words_that_only_one_text_has_are_marked(browser, tmp_path):
    texts = [
        f"The red house number {i} by the lake" if i % 2 else f"The red boat number {i} by the sea" for i in range(60)
    ]
    points = write_points(tmp_path / "points.csv", extra={"text": texts})
    with Serving(points) as serving, page_of(browser, serving.url) as page:
        a, b = (int(row) for row in rows_of(page).split())
        words = [text.lower().split() for text in (texts[a], texts[b])]
        for end, (own, other) in enumerate([words, words[::-1]]):
            marks = " ".join(page.locator(f".pair tbody tr >> nth=0 >> td >> nth={end} >> mark").all_inner_texts())
            assert marks.lower().split() == [word for word in own if word not in other]
