"""What can go wrong between the page and the server: each is told in its own words, and nothing is lost."""

import asyncio
import os
import resource
import subprocess
import sys
import time

from test_label_page import after, message, page_of, rows_of, said_in

import label_serving
from label_serving import Serving, free_port, write_points

TOKEN, OTHER = "a-secret-token", "another-secret-token"


def alarm(page, text):
    page.wait_for_selector(f'#alarm:has-text("{text}")')
    return page.inner_text("#alarm")


def at_peace(page):
    page.wait_for_selector("#alarm", state="hidden")


def said(serving, n):
    """Wait until so many answers are in the journal; what they are."""
    end = time.monotonic() + 30
    while len(found := said_in(serving)) < n:
        assert time.monotonic() < end, found
        time.sleep(0.05)
    return found


def test_a_server_that_has_stopped(browser, serving):
    with page_of(browser, serving.url) as page:
        serving.stop()
        text = alarm(page, "cannot be reached")
        assert text == (
            "The server cannot be reached. Start it again with the same command, and this page will continue."
        )
        page.keyboard.press("s")
        assert alarm(page, "1 answer is waiting and will be sent again.").startswith(text)
        serving.start()
        at_peace(page)
        assert said(serving, 1) == [("answer", "same")]


def test_a_token_that_is_out_of_date(browser, tmp_path):
    """The server was started again; the answer that was given meanwhile arrives once the new address was opened."""
    serving = Serving(write_points(tmp_path / "points.csv"), TOKEN)
    serving.start()
    try:
        with page_of(browser, f"{serving.url}#token={TOKEN}") as page:
            after(page, lambda: page.keyboard.press("s"))
            serving.stop()
            serving.token = OTHER
            serving.start()
            text = alarm(page, "does not let this page in")
            assert "Open the whole address that linkmix label printed" in text
            page.keyboard.press("d")
            alarm(page, "1 answer is waiting and will be sent again.")
            other = page.context.new_page()
            other.goto(f"{serving.url}#token={OTHER}")
            at_peace(page)
            assert said(serving, 2) == [("answer", "same"), ("answer", "different")]
            assert OTHER not in other.url
            other.close()
            page.reload()
            page.wait_for_selector("body[data-ready]")
    finally:
        serving.stop()


def test_a_page_without_a_token_shows_nothing_until_it_gets_one(browser, tmp_path):
    with Serving(write_points(tmp_path / "points.csv"), TOKEN) as serving:
        context = browser.new_context()
        try:
            page = context.new_page()
            page.goto(serving.url)
            alarm(page, "its token is missing or out of date")
            assert rows_of(page) is None
            page.evaluate(f"location.hash = 'token={TOKEN}'")  # as if the whole address were pasted
            page.wait_for_selector("body[data-ready]")
            at_peace(page)
            assert page.url == serving.url
            assert len(rows_of(page).split()) >= 2
        finally:
            context.close()


def test_a_disk_that_is_full(browser, serving):
    """Files may not grow: what is appended to the journal fails half-way, as on a full disk."""
    with page_of(browser, serving.url) as page:
        after(page, lambda: page.keyboard.press("s"))
        pid, before = serving.process.pid, resource.prlimit(serving.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (serving.journal.stat().st_size + 20, before[1]))
        page.keyboard.press("d")
        text = alarm(page, "Nothing can be saved")
        assert text == (
            "Nothing can be saved: File too large. Make room on the disk, and this page will continue. "
            "1 answer is waiting and will be sent again."
        )
        assert said_in(serving) == [("answer", "same")]
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
        at_peace(page)
        assert said(serving, 2) == [("answer", "same"), ("answer", "different")]


def run_with_a_bug(*arguments):
    """A server that fails on "unsure"."""
    from linkmix.app.label import session

    right = session.as_entry

    def as_entry(request, *others):
        if request.get("said") == "unsure":
            raise RuntimeError("a bug")
        return right(request, *others)

    session.as_entry = as_entry
    label_serving.run(*arguments)


def test_a_bug(browser, tmp_path):
    """The same request is sent three times, then given up and said; the page goes on."""
    with (
        Serving(write_points(tmp_path / "points.csv"), run=run_with_a_bug) as serving,
        page_of(browser, serving.url) as page,
    ):
        asked = rows_of(page)
        page.keyboard.press("u")
        text = "The server has failed, which is a bug in linkmix. The terminal says more: please report it."
        page.wait_for_selector(f'#message:has-text("Not saved: {text}")')
        at_peace(page)
        assert rows_of(page) == asked
        after(page, lambda: page.keyboard.press("s"))
        message(page, "Saved: same.")
        assert said_in(serving) == [("answer", "same")]


def run_and_end_within_a_reply(*arguments):
    """A server that ends when an answer is saved and half of the reply is on its way."""
    from starlette.responses import StreamingResponse

    from linkmix.app.label.server import site

    right = site.Site.write

    async def write(self, request):
        whole = (await right(self, request)).body

        async def half():
            yield whole[: len(whole) // 2]
            await asyncio.sleep(0.3)
            os._exit(1)

        return StreamingResponse(half(), headers={"content-length": str(len(whole))})

    site.Site.write = write
    label_serving.run(*arguments)


def test_half_a_reply(browser, tmp_path):
    """The answer is sent again, and is one answer."""
    with (
        Serving(write_points(tmp_path / "points.csv"), run=run_and_end_within_a_reply) as serving,
        page_of(browser, serving.url) as page,
    ):
        page.keyboard.press("s")
        assert "1 answer is waiting" in alarm(page, "The server cannot be reached")
        assert said_in(serving) == [("answer", "same")]
        serving.run = label_serving.run
        serving.start()
        at_peace(page)
        after(page, lambda: page.keyboard.press("d"))
        assert said(serving, 2) == [("answer", "same"), ("answer", "different")]


def test_an_encrypted_page(browser, tmp_path):
    with Serving(write_points(tmp_path / "points.csv"), TOKEN, host="localhost", encrypted=True) as serving:
        address = f"{serving.url}#token={TOKEN}"
        assert address.startswith("https://localhost:")
        with page_of(browser, address, ignore_https_errors=True) as page:
            after(page, lambda: page.keyboard.press("s"))
            assert said(serving, 1) == [("answer", "same")]


def test_pictures_come_with_a_token(browser, tmp_path):
    from PIL import Image

    Image.new("RGB", (8, 8), "red").save(tmp_path / "one.png")
    points = write_points(tmp_path / "points.csv", extra={"picture": ["one.png"] * 60})
    with Serving(points, TOKEN) as serving, page_of(browser, f"{serving.url}#token={TOKEN}") as page:
        page.wait_for_function("[...document.querySelectorAll('#cards img')].some((image) => image.naturalWidth === 8)")


def test_the_browser_gets_a_ticket_that_is_good_once(browser, tmp_path):
    """Everybody on the machine can read the address that a browser is started with."""
    points, opened = write_points(tmp_path / "points.csv"), tmp_path / "opened.txt"
    opener = tmp_path / "xdg-open"
    opener.write_text(f'#!/bin/sh\necho "$1" > {opened}.new && mv {opened}.new {opened}\n')
    opener.chmod(0o700)
    command = [
        sys.executable,
        "-c",
        "from linkmix.app.cli import main; main()",
        "label",
        str(points),
        "--classes",
        "3",
        "--port",
        str(free_port()),
    ]
    environment = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            end = time.monotonic() + 60
            while not opened.exists():
                assert process.poll() is None
                assert time.monotonic() < end, "no browser was opened"
                time.sleep(0.05)
            address = opened.read_text().strip()
            printed = process.stdout.readline()
            token = printed.rpartition("#token=")[2].strip()
            assert "#ticket=" in address
            assert len(token) > 20
            assert token not in address
            for is_first in (True, False):
                context = browser.new_context()
                try:
                    page = context.new_page()
                    page.goto(address)
                    if is_first:
                        page.wait_for_selector("body[data-ready]")
                        at_peace(page)
                        assert "#" not in page.url
                        page.reload()
                        page.wait_for_selector("body[data-ready]")
                    else:
                        alarm(page, "its token is missing or out of date")
                        assert rows_of(page) is None
                finally:
                    context.close()
        finally:
            process.terminate()
