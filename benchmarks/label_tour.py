"""Pictures of the labelling page: ``python -m benchmarks.label_tour --out docs/images``.

Runs the example of docs/labelling.md in a browser, with a person who knows the digits, and writes stills of every view
and a tour of two minutes as one animated picture. Takes some minutes.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

WIDE, NARROW = {"width": 1280, "height": 720}, {"width": 390, "height": 844}
TOUR = (1024, 576)
"""Size of the pictures of the tour, without their captions."""
CAPTION = 46
PATIENCE = 180_000
ALL = "pair,which,group"
DIGITS = ("one", "two", "five")
FETCH = """((path, options) => fetch(path, {...options, headers: {"Content-Type": "application/json",
    "X-Linkmix": localStorage.getItem("token")}}).then(reply => reply.json()))"""
"""Asks the server, as the page does."""


@dataclass
class Tour:
    """Stills with captions, each with the seconds that it is shown."""

    page: Any
    frames: list[Any] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def show(self, caption: str, seconds: float = 4.0) -> None:
        """Add what the page shows now."""
        from PIL import Image, ImageDraw

        settle(self.page)
        still = Image.open(BytesIO(self.page.screenshot())).convert("RGB").resize(TOUR, Image.Resampling.LANCZOS)
        frame = Image.new("RGB", (TOUR[0], TOUR[1] + CAPTION), "#14181c")
        frame.paste(still, (0, 0))
        ImageDraw.Draw(frame).text((16, TOUR[1] + 11), caption, fill="#ffffff", font=font(20))
        print(caption, flush=True)
        self.frames.append(frame)
        self.seconds.append(seconds)

    def write(self, path: Path) -> None:
        """Write all stills as one animated picture."""
        first, *others = self.frames
        durations = [round(1000 * seconds) for seconds in self.seconds]
        first.save(path, save_all=True, append_images=others, duration=durations, loop=0, quality=72, method=6)


def font(size: int) -> Any:
    """The font that matplotlib ships."""
    import matplotlib
    from PIL import ImageFont

    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"), size)


def settle(page: Any) -> None:
    """Wait until all pictures of the page are there and the map is drawn."""
    page.wait_for_function("() => [...document.images].every(image => image.complete)")
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def write_digits(folder: Path) -> np.ndarray:
    """Write the table and the pictures of docs/labelling.md; the digit of each row."""
    import os

    from sklearn.datasets import load_digits

    text = (Path(__file__).parents[1] / "docs" / "labelling.md").read_text(encoding="utf-8")
    script = next(
        part for part in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE) if "digits" in part
    )
    before = Path.cwd()
    os.chdir(folder)
    try:
        exec(script, {})
    finally:
        os.chdir(before)
    target = load_digits().target
    return target[np.isin(target, [1, 2, 5])]


@contextmanager
def served(folder: Path, *more: str) -> Iterator[str]:
    """Run ``linkmix label`` over the digits; the address of its page."""
    command = [sys.executable, "-c", "from linkmix.app.cli import main; main()", "label"]
    command += ["digits/digits.csv", "--port", "0", "--no-browser", *more]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder)
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found is not None
        yield found[0]
    finally:
        process.terminate()
        process.communicate()


def opened(browser: Any, url: str, size: dict[str, int], scheme: str) -> Any:
    """A page on a screen of this size."""
    context = browser.new_context(viewport=size, color_scheme=scheme, has_touch=size == NARROW)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(url)
    page.wait_for_selector("body[data-ready]")
    if size == WIDE:
        page.wait_for_selector("#plot[data-drawn]")
    return page


def rows_of(page: Any) -> list[int]:
    """The rows that the question is about."""
    return [int(row) for row in page.get_attribute("#ask", "data-rows").split()]


def pick(page: Any, digits: np.ndarray) -> str:
    """Pick the cards of a question as its answer needs; the key that then gives the answer."""
    first, *cards = rows_of(page)
    kind = page.get_attribute("#ask", "data-kind")
    like = [i for i, row in enumerate(cards) if digits[row] == digits[first]]
    if kind == "pair":
        return "s" if like else "d"
    for i in range(len(cards)):
        if (i in like) == (kind == "which"):
            page.keyboard.press(str(i + 1))
    return "Enter" if like or kind == "group" else "n"


def answer(page: Any, digits: np.ndarray) -> None:
    """Answer the question, and wait for the next."""
    before = page.get_attribute("#ask", "data-rows")
    page.keyboard.press(pick(page, digits))
    page.wait_for_selector(f'#ask:not([data-rows="{before}"])')


def fitted(page: Any) -> None:
    """Wait until the model knows all answers."""
    page.wait_for_function(f"() => {FETCH}('/api/status').then(status => !status.fitting)")
    page.wait_for_load_state("networkidle")


def ask_for(page: Any, kind: str, digits: np.ndarray, most: int = 30) -> None:
    """Answer questions until one of this kind comes."""
    kinds(page, "pair" if kind == "pair" else ALL)
    for _ in range(most):
        if page.get_attribute("#ask", "data-kind") == kind:
            return
        answer(page, digits)
    raise RuntimeError(f"no question of the kind {kind} came in {most} answers")


def kinds(page: Any, wanted: str) -> None:
    """Set which kinds of questions are asked."""
    if page.input_value("#kinds") != wanted:
        page.evaluate(f"document.getElementById('kinds').value = '{wanted}'")
        with page.expect_response(re.compile("/api/question")):
            page.dispatch_event("#kinds", "change")


def make(out: Path, browser: Any) -> list[Path]:
    """Write all pictures.

    Parameters
    ----------
    out : Path
        Folder to write to.
    browser : playwright browser

    Returns
    -------
    list of Path
        The files.
    """
    folder = Path(tempfile.mkdtemp())
    written = []

    def still(page: Any, name: str) -> None:
        settle(page)
        written.append(out / f"label-{name}.png")
        page.screenshot(path=written[-1])

    try:
        digits = write_digits(folder)
        with served(folder, "--classes", "3") as url:
            page = opened(browser, url, WIDE, "light")
            tour = Tour(page)
            tell_questions(page, tour, digits, still)
            tell_map(page, tour)
            tell_classes(page, tour, digits, still)
            tell_review(page, tour, still)
            phone = opened(browser, url, NARROW, "dark")
            phone.wait_for_selector("#ask:not([data-rows=''])")
            pick(phone, digits)
            still(phone, "narrow")
            phone.context.close()
            tell_finish(page, tour, digits, still)
            page.context.close()
        written.append(out / "label-tour.webp")
        tour.write(written[-1])
    finally:
        shutil.rmtree(folder)
    return written


def tell_questions(page: Any, tour: Tour, digits: np.ndarray, still: Any) -> None:
    """Questions of three kinds."""
    tour.show("linkmix label digits/digits.csv: 541 pictures, no labels. The page asks, you answer.", 7)
    for kind, text, done in (
        ("which", "Which of these is it like? Tap all that are.", "One answer says something about every card."),
        ("group", "Nine at once: tap those that do not fit.", "Each question is the one that helps most for its time."),
        ("pair", "A pair: the same, or different? S or D.", "One key answers it; undo is always there."),
    ):
        ask_for(page, kind, digits)
        tour.show(text, 4)
        key = pick(page, digits)
        if kind != "pair":
            tour.show(done, 4)
        if kind == "which":
            fitted(page)
            still(page, "wide")
        if kind == "group":
            still(page, "group")
        before = page.get_attribute("#ask", "data-rows")
        page.keyboard.press(key)
        page.wait_for_selector(f'#ask:not([data-rows="{before}"])')
        if kind == "pair":
            tour.show(done, 3)
    kinds(page, ALL)
    for _ in range(12):
        answer(page, digits)
    fitted(page)
    tour.show("After each answer the model learns, in the background. Nobody waits for it.", 5)


def tell_map(page: Any, tour: Tour) -> None:
    """The map."""
    page.click("#projection")
    page.wait_for_load_state("networkidle")
    tour.show("The map can show the directions in which the classes differ.", 5)
    box = page.locator("#cloud").bounding_box()
    for share in np.linspace(0.2, 0.8, 25):
        page.mouse.move(box["x"] + share * box["width"], box["y"] + 0.5 * box["height"])
        page.wait_for_load_state("networkidle")
        if page.is_visible("#tooltip"):
            break
    tour.show("Hover over a point to see its card; click two to link them.", 5)
    page.mouse.move(5, 5)
    page.click("text=Lasso")
    page.wait_for_function("() => document.getElementById('chart').layout.dragmode === 'lasso'")
    left, top = box["x"] + 0.55 * box["width"], box["y"] + 0.12 * box["height"]
    page.mouse.move(left, top)
    page.mouse.down()
    for across, down in ((0.3, 0), (0.3, 0.35), (0, 0.35), (0, 0.02)):
        page.mouse.move(left + across * box["width"], top + down * box["height"], steps=6)
    page.mouse.up()
    page.wait_for_selector("#chosen-cards .card")
    tour.show("The lasso shows what it caught, and of which classes, before anything is said.", 5)
    page.click("#link-none")
    page.click("text=Move >> visible=true")


def tell_classes(page: Any, tour: Tour, digits: np.ndarray, still: Any) -> None:
    """Names, members and corrections."""
    page.click("[data-view=classes]")
    page.wait_for_selector(".class >> nth=2")
    tour.show("Classes are things: size, a typical member, what sets them apart.", 5)
    faces = [int(one.get_attribute("data-key").split()[1]) for one in page.locator("[data-key^=name]").all()]
    names = dict(zip((1, 2, 5), DIGITS, strict=True))
    for face in faces:
        page.fill(f"[data-key='name {face}']", f"digit {names[int(digits[face])]}")
        page.keyboard.press("Enter")
        page.wait_for_selector("#message:has-text('Saved: the class is called')")
        if face == faces[0]:
            tour.show("Give them names. Names stay when the model changes.", 4)
    fitted(page)
    tour.show("Named classes are known to be different.", 4)
    still(page, "classes")
    page.click(f"[data-key='open {faces[0]}']")
    page.wait_for_selector("#classes-body .grid .card")
    tour.show("Look inside a class: its typical members ...", 4)
    page.click("[data-key=doubtful]")
    page.wait_for_selector("[data-key=doubtful][aria-pressed=true]")
    tour.show("... and the doubtful ones.", 4)
    cards = page.locator("#classes-body .grid .card").all()
    wrong = [card for card in cards if digits[int(card.get_attribute("data-row"))] != digits[faces[0]]]
    for card in (wrong or cards)[:3]:
        card.click()
    tour.show("Pick members, and say that they do not belong, or where they do.", 6)
    still(page, "members")
    if wrong:
        page.click("#picked-not")
        page.wait_for_selector("#message:has-text('not belong to')")
        tour.show("It is saved, and one undo away.", 4)
    page.click("#all-classes")
    page.wait_for_selector(".class")


def tell_review(page: Any, tour: Tour, still: Any) -> None:
    """A wrong answer, and progress."""
    table = page.evaluate(f"{FETCH}('/api/start').then(start => start.table)")
    links = page.evaluate(f"{FETCH}('/api/status').then(status => status.links)")
    a, b = next(link["rows"] for link in links if link["said"] == "same")
    page.evaluate(
        f"entry => {FETCH}('/api/entries', {{method: 'POST', body: JSON.stringify(entry)}})",
        {"entry": "answer", "key": "tour", "rows": [a, b], "said": "different", "annotator": "eva", "table": table},
    )
    page.click("[data-view=review]")
    page.wait_for_selector(".doubt")
    tour.show("Review by looking: answers that differ, or that the model doubts.", 5)
    still(page, "review")
    page.click(".doubt button:has-text('Same')")
    page.wait_for_selector("#message:has-text('turned round')")
    page.click("[data-view=progress]")
    fitted(page)
    tour.show("Progress is drawn over your answers, and explains itself.", 5)


def tell_finish(page: Any, tour: Tour, digits: np.ndarray, still: Any) -> None:
    """To the end: stop, certify, finish."""
    for _ in range(60):
        if page.locator("#open-finish.ready").count():
            break
        answer(page, digits)
        fitted(page)
    tour.show("The page says when you can stop.", 4)
    page.click("#open-finish")
    tour.show("Finish writes everything in one step. Certify measures first how good it is.", 5)
    before = page.get_attribute("#ask", "data-rows")
    page.click("#certify")
    page.wait_for_selector("#auditing")
    page.wait_for_selector(f'#ask:not([data-rows="{before}"])')
    tour.show("Certify: 20 questions about random pairs. The model does not see them first.", 5)
    while page.is_visible("#auditing"):
        answer(page, digits)
    page.wait_for_selector("#finish .command")
    tour.show("Labels, model, report and links: where they are, how good, and the command that does it again.", 10)
    still(page, "finish")
    page.keyboard.press("Escape")
    page.click("[data-view=progress]")
    settle(page)
    tour.show("Labels settled, and the check with its interval. That is all.", 8)
    still(page, "progress")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    given = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        for path in make(given.out, chromium):
            print(f"{path}  {path.stat().st_size / 1e6:.2f} MB")
        chromium.close()
