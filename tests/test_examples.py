"""The examples run, and the links of the docs lead to existing files and headings."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


NEEDED = {"bertopic_with_links": "bertopic"}
"""What an example needs that the tests do without; it runs where that is installed."""


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_an_example_runs_and_says_something(script, capsys):
    if script.stem in NEEDED:
        pytest.importorskip(NEEDED[script.stem])
    runpy.run_path(str(script), run_name="__main__")
    assert "purity" in capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_of_the_docs_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https?:)([^)]+)\)", text)
    for target in targets:
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), f"{page.name} points at {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\- ]", "", h).strip().lower().replace(" ", "-") for h in headings}


def test_the_pictures_are_small_enough_to_commit():
    pictures = list((ROOT / "docs" / "images").glob("*"))
    assert pictures
    assert all(picture.stat().st_size < (1_000_000 if picture.suffix == ".webp" else 220_000) for picture in pictures)
