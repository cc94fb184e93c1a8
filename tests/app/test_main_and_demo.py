"""The command line: what it prints, what it writes, and how it fails."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

import linkmix
from linkmix.app.cli import main


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def run_without(package, *arguments):
    """Run the command in a fresh Python that does not have the package."""
    script = f"""
import sys
sys.modules[{package!r}] = None
from linkmix.app.cli import main
main({[str(argument) for argument in arguments]!r})
"""
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)


def test_version():
    result = run("--version")
    assert (result.exit_code, result.output) == (0, f"linkmix {linkmix.__version__}\n")


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["demo", "--help"]])
def test_help_has_examples(arguments):
    result = run(*arguments)
    assert result.exit_code == 0
    assert "Examples:" in result.output
    assert "\n    linkmix demo" in result.output


def test_help_without_a_command():
    assert "Usage" in run().output


def test_demo_prints_a_table_and_writes_a_picture(tmp_path):
    folder = tmp_path / "new" / "folder"
    result = run("demo", "--out", folder, "--draws", 2)
    assert result.exit_code == 0, result.output
    rows = {line[:16].strip(): line[16:].split() for line in result.output.splitlines()}
    assert [float(cell) for cell in rows["without links"][:4]] == pytest.approx([0.752, 0.554, 0.80, 0.80], abs=0.01)
    assert [float(cell) for cell in rows["with links"][:4]] == pytest.approx([0.887, 0.713, 0.95, 1.0], abs=0.01)
    assert "mean purity: 0.88" in result.output
    assert "in 2 of 2 draws" in result.output
    picture = folder / "linkmix-demo.png"
    assert f"The picture is {picture}" in result.output
    assert "bring the two ways of writing a one together" in result.output
    assert [path.name for path in folder.iterdir()] == [picture.name]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_demo_does_not_claim_a_gain_that_is_not_there(tmp_path):
    result = run("demo", "--out", tmp_path, "--draws", 0, "--seed", 6)  # a draw of links that does not help
    assert result.exit_code == 0
    assert "these links do not change that" in result.output
    assert "mean purity" not in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--links", "0"], "0 is not in the range x>=1"),
        (["--links", "many"], "'many' is not a valid integer"),
        (["--links", "1000000"], "541 labelled rows make 146070 pairs"),
        (["--draws", "-1"], "-1 is not in the range x>=0"),
        (["--seed", "-1"], "-1 is not in the range"),
        (["--colour", "red"], "No such option"),
    ],
)
def test_bad_input_exits_with_2_and_one_message(arguments, message, tmp_path):
    result = run("demo", "--out", tmp_path, *arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert isinstance(result.exception, SystemExit)
    assert not list(tmp_path.iterdir())


def test_an_output_folder_that_cannot_be(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    for folder in (file, file / "folder"):
        result = run("demo", "--out", folder)
        assert result.exit_code == 2
        assert str(folder) in result.output
        assert isinstance(result.exception, SystemExit)


def test_an_unknown_command_exits_with_2():
    result = run("clsuter")
    assert result.exit_code == 2
    assert "No such command 'clsuter'" in result.output


@pytest.mark.parametrize("package", ["matplotlib", "PIL"])
def test_a_missing_package_is_named_with_the_remedy(package, tmp_path):
    result = run_without(package, "demo", "--out", tmp_path)
    assert result.returncode == 1
    assert result.stderr == f'Error: this command needs {package}: pip install "linkmix[app]"\n'


def test_without_click_there_is_a_message_too():
    result = run_without("click", "--help")
    assert result.returncode == 1
    assert result.stderr == 'The linkmix command needs click: pip install "linkmix[app]"\n'


def test_help_does_not_load_what_only_commands_need():
    script = (
        "import sys; from linkmix.app.cli import main; main(['--help'], standalone_mode=False); print(*sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"matplotlib", "linkmix.study.demo", "linkmix.plots", "sklearn.datasets"} & set(result.stdout.split())
