"""The page in a notebook: a server in a thread, a frame that only the notebook can show, and results as objects."""

import http.server
import json
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

from linkmix.app.label.jupyter import label
from linkmix.queries import Answer
from linkmix.queries.answers import as_links

X = np.concatenate([np.random.default_rng(0).normal(size=(20, 2)) + 6 * k for k in range(3)])


def fetch(address, data=None, **headers):
    request = urllib.request.Request(address, data, headers)
    try:
        with urllib.request.urlopen(request) as reply:
            return reply.status, dict(reply.headers), reply.read()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read()


def post(page, path, **body):
    base = page.address.partition("#")[0].rstrip("/")
    data = json.dumps({"table": page.session.table, **body}).encode()
    headers = {"Content-Type": "application/json", "X-Linkmix": page.token, "Origin": base}
    status, _, reply = fetch(base + path, data, **headers)
    assert status == 200, reply
    return json.loads(reply)


@pytest.fixture
def shown(tmp_path):
    frame = pd.DataFrame(X, columns=["width", "height"]).assign(name=[f"n{i}" for i in range(60)])
    with label(frame, 3, id="name", links=tmp_path / "links.csv", out=tmp_path / "out") as page:
        yield page


def test_answers_on_the_page_come_back_as_objects(shown, tmp_path):
    for i in range(6):
        post(shown, "/api/entries", entry="answer", key=f"k{i}", rows=[i, 20 + i], said="different")
    post(shown, "/api/entries", entry="name", key="n", rows=[0], name="small")
    found = shown.result()
    assert found.labels[0] == "small"
    assert {len(set(found.labels[20 * m : 20 * m + 20])) for m in range(3)} == {1}
    assert found.links == as_links(Answer(i, 20 + i, "different") for i in range(6))
    assert found.model.predict(pd.DataFrame(X[:1], columns=["width", "height"])).tolist() == ["small"]
    assert found.quality is None
    assert ((found.confidence > 0.3) & (found.confidence <= 1)).all()
    assert found.folder == tmp_path / "out"
    assert (tmp_path / "out" / "labels.csv").read_text().splitlines()[1].startswith("n0,small,")
    assert any("nothing can be said about how good this is" in text for text in found.sentences)


def test_without_names_labels_are_numbers_and_the_next_call_goes_on(tmp_path):
    names = {"links": tmp_path / "links.csv", "out": tmp_path / "out"}
    with label(X, **names) as page:
        post(page, "/api/entries", entry="answer", key="k", rows=[0, 59], said="different")
        first = page.result()
    assert first.labels.dtype.kind == "i"
    with label(X, **names) as page:
        again = page.result()
    assert again.links == first.links
    np.testing.assert_array_equal(again.labels, first.labels)


def test_only_who_has_the_token_sees_anything_and_only_a_notebook_frames_it(shown):
    base = shown.address.partition("#")[0]
    assert shown.address == f"{base}#token={shown.token}"
    status, headers, body = fetch(base)
    assert (status, b"<html" in body, b"n17" in body) == (200, True, False)
    assert "frame-ancestors http://localhost:* http://127.0.0.1:*" in headers["content-security-policy"]
    for path in ("start", "status", "classes", "labels", "pair?a=0&b=1"):
        for given in ({}, {"X-Linkmix": "1"}, {"X-Linkmix": "wrong"}):
            assert fetch(f"{base}api/{path}", **given)[0] == 403
        status, headers, _ = fetch(f"{base}api/{path}", **{"X-Linkmix": shown.token})
        assert (status, "frame-ancestors 'none'" in headers["content-security-policy"]) == (200, True)
    own = {"X-Linkmix": shown.token, "Content-Type": "application/json"}
    assert fetch(f"{base}api/entries", b"{}", Origin="http://localhost:8888", **own)[0] == 403
    assert fetch(f"{base}api/entries", b"{}", Origin=base.rstrip("/"), **own)[0] == 409  # the table is missing


@contextmanager
def notebook(html, host):
    """A page of another origin, which frames something."""

    class Notebook(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(f"<!doctype html><title>notebook</title>{html}".encode())

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Notebook) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://{host}:{server.server_port}/"
        finally:
            server.shutdown()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])  # the second is another site, without storage
def test_it_shows_itself_in_a_frame_of_another_origin(shown, browser, host):
    """As in a notebook: the frame has an origin of its own, and questions can be answered in it."""
    with notebook(shown._repr_html_(), host) as address:
        page = browser.new_page()
        try:
            page.goto(address)
            frame = page.frame_locator("iframe")
            frame.locator('[data-said="unsure"]').click()
            end = time.monotonic() + 20
            while not shown.session.record.entries and time.monotonic() < end:
                page.wait_for_timeout(50)
            assert len(shown.session.record.entries) == 1
        finally:
            page.close()


def test_a_foreign_frame_shows_nothing(shown, browser):
    """A page that frames this one in a browser that knows the token: the frame takes it from the address alone."""
    base = shown.address.partition("#")[0]
    context = browser.new_context()
    try:
        own = context.new_page()
        own.goto(shown.address)
        own.wait_for_selector("body[data-ready]")
        with notebook(f'<iframe src="{base}"></iframe>', "localhost") as address:
            page = context.new_page()
            page.goto(address)
            alarm = page.frame_locator("iframe").locator("#alarm")
            alarm.wait_for()
            assert "Show the page from the notebook again" in alarm.inner_text()
            assert page.frame_locator("iframe").locator("#ask").get_attribute("data-rows") is None
    finally:
        context.close()


def test_it_needs_no_ipython(shown, monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", None)
    assert shown._repr_html_().startswith(f'<iframe src="{shown.address}"')


def test_a_closed_page_is_gone_and_its_answers_are_there(tmp_path):
    page = label(X, 3, links=tmp_path / "links.csv", out=tmp_path / "out")
    post(page, "/api/entries", entry="answer", key="k", rows=[0, 1], said="same")
    page.close()
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(page.address)
    assert (tmp_path / "links.csv").read_text().splitlines()[1] == "0,1,must,yes"


def test_what_is_no_table_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"table has shape \(3,\): give one row for each point"):
        label([1.0, 2.0, 3.0], links=tmp_path / "links.csv")
    assert not list(tmp_path.iterdir())
