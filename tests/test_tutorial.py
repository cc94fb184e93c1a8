"""The commands of the pages run, and say what the pages show."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from linkmix.app.cli import main

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "command-line.md").read_text(encoding="utf-8")
PAGES = {"command-line.md": 9, "tutorial.md": 2}
"""Pages with commands, and how many they have at least."""


def commands(page):
    """Each command of a page with the lines that are shown below it."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def shape(lines):
    """Lines of words alone, and errors; of lines with results only how many: numbers and names follow from the fit."""
    kept = []
    for line in "\n".join(lines).strip().splitlines():
        plain = " ".join(re.sub(r"[-+]?\d[\d,.]*", "#", line).split())
        kept.append(plain if "#" not in plain or plain.startswith("Error: ") else "#")
    return kept


@pytest.mark.parametrize("name", PAGES)
def test_every_command_of_a_page_says_what_the_page_shows(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (DOCS / name).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    [script] = [block for block in blocks if not block.startswith(">>>")]
    exec(script, {})
    assert (tmp_path / "links.csv").read_text().splitlines()[1:3] == re.findall(r"^w\d+,w\d+,must$", page, re.MULTILINE)
    listed = commands(page)
    assert len(listed) >= PAGES[name]
    for command, shown in listed:
        words = shlex.split(command)
        assert words[0] == "linkmix"
        result = CliRunner().invoke(main, words[1:])
        expected_code = 2 if any("Error: " in line for line in shown) else 0
        assert result.exit_code == expected_code, f"{command}\n{result.output}"
        assert shape(result.output.splitlines()) == shape(shown), command
    assert (
        (tmp_path / "linkmix-out" / "labels.csv")
        .read_text()
        .startswith("id,label,confidence,probability_0,probability_1,probability_2\n")
    )
    assert (tmp_path / "again.csv").exists()


def test_only_these_pages_have_commands():
    assert {path.name for path in DOCS.glob("*.md") if commands(path.read_text(encoding="utf-8"))} == set(PAGES)


def test_the_shell_is_told_how_to_complete():
    for shell in ("bash", "zsh", "fish"):
        assert f"_LINKMIX_COMPLETE={shell}_source linkmix" in PAGE
        result = CliRunner().invoke(
            main, [], prog_name="linkmix", env={"_LINKMIX_COMPLETE": f"{shell}_source"}, catch_exceptions=False
        )
        assert "linkmix" in result.output


def test_a_command_that_is_not_shown_right_is_found():
    assert shape(["a", "", "x 1"]) == shape([" a ", "", "y 2.5"])
    assert shape(["a", "x 1"]) != shape(["a", "x 1", "y 2"])
    assert shape(["a"]) != shape(["b"])
    assert shape(["Error: f.csv, line 1: a"]) != shape(["Error: f.csv, line 1: b"])


@pytest.mark.parametrize("name", ["report-wide.png", "report-narrow.png"])
def test_the_pictures_of_the_report_are_there(name):
    assert f"images/{name}" in PAGE
