"""Chromium from the system, for tests. Without it they are skipped with a reason; in CI they fail."""

import os
import shutil
from contextlib import contextmanager

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def chromium():
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        refuse(f"none of {', '.join(NAMES)} is installed: apt-get install chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        refuse('playwright is not installed: pip install "linkmix[dev]"')
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found)
        try:
            yield browser
        finally:
            browser.close()


def refuse(reason):
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI needs a browser: {reason}")
    pytest.skip(reason)
