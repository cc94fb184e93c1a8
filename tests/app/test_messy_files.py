"""What linkmix fit says about files as people have them."""

import os

import pytest
from click.testing import CliRunner

from linkmix.app.cli import main
from messy_files import MESSY


@pytest.mark.parametrize(("file", "content", "options", "said"), [m[1:] for m in MESSY], ids=[m[0] for m in MESSY])
def test_messy_files(file, content, options, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if file.endswith(".xlsx"):
        pytest.importorskip("openpyxl")
    content = content() if callable(content) else content
    (tmp_path / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    result = CliRunner().invoke(main, ["fit", file, "--classes", "2", *options])
    fails = any(sentence.startswith("Error: ") for sentence in said) or "and 15 more" in said
    assert result.exit_code == (2 if fails else 0), result.output
    for sentence in said:
        assert sentence in result.output
    assert os.path.exists("linkmix-out/labels.csv") != fails


def test_there_are_forty_of_them():
    assert len(MESSY) >= 40
