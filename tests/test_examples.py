"""The examples and the code of the docs run; links, commands and names of the docs exist."""

import io
import json
import re
import runpy
import shlex
import sys
import types
from importlib import import_module
from pathlib import Path

import click
import pandas
import pytest
from sklearn import metrics

from linkmix.app.cli import main

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


NEEDED = {"bertopic_with_links": "bertopic", "scanpy_with_links": "scanpy", "umap_with_links": "umap"}
"""What an example needs that the tests do without; it runs where that is installed."""


RUN_ELSEWHERE = {
    "command-line.md": "tests/test_tutorial.py, with the commands that use its files",
    "tutorial.md": "tests/test_tutorial.py, with the commands that use its files",
    "guide.md": "needs a running scheduler; tests/test_distributed.py makes the same calls",
}
"""Pages with a script that is not run here."""


def fences(page):
    """Language and content of each block of code of a page."""
    return re.findall(r"^```([^\n]*)\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def scripts(page):
    """Blocks of Python that are no session of the interpreter, which pytest runs itself."""
    return [content for language, content in fences(page) if language == "python" and ">>>" not in content]


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*_*.py")), ids=lambda path: path.stem)
def test_an_example_runs_and_says_something(script, capsys, monkeypatch):
    if script.stem in NEEDED:
        pytest.importorskip(NEEDED[script.stem])
    from matplotlib import pyplot

    monkeypatch.setattr(pyplot, "show", lambda: pyplot.close("all"))
    runpy.run_path(str(script), run_name="__main__")
    assert "purity" in capsys.readouterr().out


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if scripts(page) and page.name not in RUN_ELSEWHERE],
    ids=lambda path: path.name,
)
def test_the_scripts_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    if page.name == "programs.md":  # what the reader has: a language model, questions on stdin, and a table
        texts = [
            (getattr(metrics, name).__doc__ or name)[: 100 * (row % 3 + 1)] for row, name in enumerate(metrics.__all__)
        ]
        question = {"id": 7, "question": "same?", "a": {"text": texts[0]}, "b": {"text": texts[3]}, "more": 0}
        client = types.SimpleNamespace(complete=lambda prompt: '{"id": 7, "answer": "same"}')
        monkeypatch.setitem(sys.modules, "client", client)
        monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(question) + "\n"))
        names["table"] = pandas.DataFrame({"text": texts})
    for script in scripts(page):
        exec(script, names)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_languages_of_blocks_are_those_that_are_checked(page):
    known = {"", "bibtex", "console", "python", "text", "{eval-rst}", "{toctree}"}
    assert {language for language, _ in fences(page)} <= known


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_commands_of_the_docs_exist_with_their_options(page):
    """Commands that open a browser, run for hours or need files of the reader are not run, but must be right."""
    for language, content in fences(page):
        for line in content.splitlines() if language == "" else ():
            if line.startswith("linkmix "):
                words = shlex.split(line, comments=True)[1:]
                if not words[0].startswith("-"):
                    command = main.get_command(click.Context(main), words[0])
                    assert command is not None, line
                    known = {option for parameter in command.params for option in parameter.opts}
                    assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known, line
        for module in re.findall(r"python -m (benchmarks[.\w]*)", content):
            import_module(module)


def test_the_reference_has_every_public_name():
    reference = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    for home in ("", ".couplings", ".densities", ".plots", ".queries", ".rivals", ".tables"):
        module = import_module(f"linkmix{home}")
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value) and name not in ("Dashes",):
                block = re.search(
                    rf"currentmodule:: linkmix{home}\n.*?^   {name}$", reference, re.DOTALL | re.MULTILINE
                )
                assert block, f"docs/reference.md lacks linkmix{home}.{name}"


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
