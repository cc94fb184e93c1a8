"""The labelling page on a laptop and on a phone, light and dark: buttons in view, nothing cut off, accessible."""

import re
from uuid import uuid4

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from test_label_page import after, message, page_of, rows_of, said_in, view

from label_serving import Serving, write_points

SIZES = {"laptop": (1280, 720), "phone": (390, 844)}
SCREENS = [*zip(SIZES, ("light", "dark"), strict=True)]  # colours and places do not depend on each other
TEXT = "a somewhat long text about the thing that is in the picture and what it may be good for"


def write_pictures(folder, pictures=True):
    """A table with a text, 13 numbers and, if wanted, pictures."""
    random = np.random.default_rng(0)
    extra = {"title": [" ".join(random.permutation(TEXT.split())) for _ in range(60)]}
    extra |= {f"a_number_{j}": random.normal(size=60).round(3).tolist() for j in range(12)}
    if pictures:
        extra["picture"] = [f"{row}.png" for row in range(60)]
        for row in range(60):
            Image.fromarray(np.uint8(random.integers(0, 255, size=(48, 64)))).save(folder / f"{row}.png")
    return write_points(folder / "points.csv", extra=extra)


@pytest.fixture(scope="module", params=[True, False], ids=["pictures", "texts"])
def serving(request, tmp_path_factory):
    with Serving(write_pictures(tmp_path_factory.mktemp("points"), request.param), noise=True) as serving:
        table = serving.get("/api/start")["table"]
        for key, (rows, said) in enumerate([((0, 1), "same"), ((1, 2), "same"), ((0, 2), "different")]):  # a conflict
            serving.write(entry="answer", key=f"k{key}", rows=rows, said=said, table=table)
        for annotator, said in (("ida", "same"), ("eva", "different")):
            serving.write(entry="answer", key=annotator, rows=[25, 26], said=said, annotator=annotator, table=table)
        yield serving


def bring(page, serving, kind):
    """Have the page ask a question of this kind: one that is taken back is asked again."""
    if kind != "pair":
        rows, field = list(range(3, 60, 7))[: 9 if kind == "group" else 8], "out" if kind == "group" else "like"
        table = serving.get("/api/start")["table"]
        status, _, body = serving.write(entry=kind, key=str(uuid4()), rows=rows, **{field: []}, table=table)
        assert status == 200, body
        after(page, lambda: page.keyboard.press("z"))
    page.wait_for_selector(f"#ask[data-kind={kind}]")


def on_screen(browser, serving, size, scheme):
    width, height = SIZES[size]
    phone = {"has_touch": True, "is_mobile": True} if size == "phone" else {}
    return page_of(browser, serving.url, viewport={"width": width, "height": height}, color_scheme=scheme, **phone)


def check(page):
    """Nothing is wider than the screen, and axe-core finds no violation."""
    page.wait_for_function("() => [...document.images].every(image => image.complete)")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()


def check_in_view(page, selector):
    """All of these can be clicked without scrolling: nothing covers them, and their texts are whole."""
    hidden = page.evaluate(
        """selector => [...document.querySelectorAll(selector)].filter(e => e.offsetParent).filter(e => {
            const box = e.getBoundingClientRect();
            const at = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
            const inside = box.left >= 0 && box.top >= 0 && box.right <= innerWidth && box.bottom <= innerHeight;
            return !inside || !e.contains(at) || e.scrollWidth > e.clientWidth + 1;
        }).map(e => e.textContent)""",
        selector,
    )
    assert not hidden
    assert page.locator(f"{selector} >> visible=true").count() > 0


ALWAYS = "#open-finish, #undo, #views button"


@pytest.mark.parametrize("kind", ["pair", "which", "group"])
@pytest.mark.parametrize(("size", "scheme"), SCREENS)
def test_question(browser, serving, size, scheme, kind):
    with on_screen(browser, serving, size, scheme) as page:
        bring(page, serving, kind)
        if kind != "pair":
            page.keyboard.press("1")
        check_in_view(page, f"#answers button, {ALWAYS}")
        check(page)
        fields = page.locator("text=/Show all \\d+ fields/")
        if fields.count():
            fields.click()
            check_in_view(page, f"#answers button, {ALWAYS}")
        dark = luminance(page.evaluate("getComputedStyle(document.body).backgroundColor")) < 0.2
        assert dark == (scheme == "dark")


@pytest.mark.parametrize(("size", "scheme"), SCREENS)
def test_views(browser, serving, size, scheme):
    with on_screen(browser, serving, size, scheme) as page:
        view(page, "map")
        page.wait_for_selector("#plot[data-drawn]")
        page.evaluate("import('/static/choosing.js').then(module => module.choose([...Array(30).keys()]))")
        page.wait_for_selector("#chosen-cards .card >> nth=5")
        heights = "['#plot', '#cloud', '#chart .main-svg'].map(part => document.querySelector(part).clientHeight)"
        page.wait_for_function(f"() => new Set({heights}).size === 1")  # links are drawn where the points are
        check_in_view(page, f"#map .bar button, #chosen button, {ALWAYS}")
        check(page)

        view(page, "classes")
        page.wait_for_selector(".class >> nth=1")
        check(page)
        page.click(".class >> nth=0 >> text=Look inside")
        page.wait_for_selector("#classes-body .grid .card >> nth=1")
        page.click("text=Name, colour, merge")
        page.click("#classes-body .grid .card >> nth=1")
        check_in_view(page, f"#picked button, #all-classes, {ALWAYS}")
        check(page)

        view(page, "review")
        page.wait_for_selector(".doubt >> nth=1")
        check_in_view(page, ALWAYS)
        check(page)
        view(page, "progress")
        check(page)
        page.click("#open-settings")
        check(page)
        page.keyboard.press("Escape")

        page.click("#open-finish")
        check(page)
        page.click("#write")
        page.wait_for_selector("#finish .command", timeout=120_000)
        check_in_view(page, "#finish-buttons button")
        check(page)


def luminance(colour):
    parts = [float(part) / 255 for part in re.findall(r"[\d.]+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def test_it_can_be_used_without_mouse_and_screen(browser, tmp_path):
    with Serving(write_points(tmp_path / "points.csv")) as serving, page_of(browser, serving.url) as page:
        for role, n in {"main": 1, "banner": 1, "contentinfo": 1, "navigation": 1, "status": 1}.items():
            assert page.get_by_role(role).count() == n, role
        assert page.locator("main").get_by_role("img").get_attribute("aria-label").startswith("Map of 60 points")
        assert page.get_by_role("heading", level=1).count() == 1
        for said, key in (("Same", "s"), ("Different", "d"), ("Unsure", "u"), ("Skip", "k")):
            button = page.locator(f"#answers button:has-text('{said}')")
            assert button.get_attribute("aria-keyshortcuts") == key
            assert button.locator("kbd").inner_text() == key.upper()
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Go to the question"
        reached = []
        for _ in range(20):
            page.keyboard.press("Tab")
            reached.append(page.evaluate("document.activeElement.innerText?.split('\\n')[0].trim() ?? ''"))
            style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            if page.evaluate("document.activeElement !== document.body"):
                assert style != "none", reached[-1]
            if reached[-1].startswith("≠"):
                break
        assert reached[-1].startswith("≠ Different")
        after(page, lambda: page.keyboard.press("Enter"))
        assert said_in(serving) == [("answer", "different")]
        message(page, "Saved: different.")
        assert page.evaluate("document.activeElement.dataset.said") == "different"  # the focus stays


def test_on_a_phone_keys_answer_only_a_question_that_is_seen(browser, tmp_path):
    with (
        Serving(write_points(tmp_path / "points.csv")) as serving,
        page_of(browser, serving.url, viewport={"width": 390, "height": 844}) as page,
    ):
        view(page, "progress")
        assert page.is_hidden("#ask")
        page.keyboard.press("s")
        view(page, "ask")
        first = rows_of(page)
        after(page, lambda: page.keyboard.press("d"))
        view(page, "map")
        page.wait_for_selector("#plot[data-drawn]")
        page.keyboard.press("z")
        message(page, f"Undone: different, {' and '.join(f'p{row}' for row in first.split())}.")
    assert said_in(serving) == [("answer", "different"), ("undo", None)]
