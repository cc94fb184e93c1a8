"""What type checkers of users know of the public contract."""

import subprocess
import sys
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from sklearn.utils._param_validation import StrOptions

from linkmix import AutoLinkMixture, LinkMixture

HERE = Path(__file__).parent
WRONG = """\
from linkmix import AutoLinkMixture, LinkMixture

LinkMixture(2, covariance_type="ful")
LinkMixture(2, init="random")
AutoLinkMixture("all")
AutoLinkMixture(2, budget="tiny")
number: str = LinkMixture(2).fit([[0.0], [1.0]]).log_likelihood_
"""


@pytest.mark.slow
def test_a_strict_user_of_mypy_finds_types(tmp_path):
    pytest.importorskip("mypy")
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG)
    options = ["--strict", "--follow-imports=silent", "--config-file=", f"--cache-dir={tmp_path / 'cache'}"]
    found = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(HERE / "user_script.py"), str(wrong)],
        capture_output=True,
        text=True,
        check=False,
        env={"MYPYPATH": str(HERE.parent / "src"), "PATH": ""},
    )
    assert found.stderr == ""
    errors = [line for line in found.stdout.splitlines() if ": error:" in line]
    assert not [line for line in errors if "user_script.py" in line], found.stdout
    lines = [int(line.rpartition("wrong.py:")[2].split(":")[0]) for line in errors]
    assert lines == [3, 4, 5, 6, 7], found.stdout  # each mistake is found, so the types are really there


@pytest.mark.parametrize("kind", [LinkMixture, AutoLinkMixture])
def test_types_allow_what_the_checks_allow(kind):
    hints = get_type_hints(kind.__init__)
    for name, allowed in kind._parameter_constraints.items():
        texts = {text for one in allowed if isinstance(one, StrOptions) for text in one.options}
        assert texts == {text for text in literals(hints[name]) if isinstance(text, str)}, name


def literals(hint: Any) -> set[Any]:
    if get_origin(hint) is Literal:
        return set(get_args(hint))
    return {text for part in get_args(hint) for text in literals(part)}


@pytest.mark.parametrize("kind", [LinkMixture, AutoLinkMixture])
def test_every_documented_attribute_is_declared(kind):
    section = kind.__doc__.split("Attributes\n    ----------\n")[1].split("See Also")[0]
    documented = {
        name.strip()
        for line in section.splitlines()
        if line.startswith("    ") and not line.startswith("     ") and " : " in line
        for name in line.partition(" : ")[0].split(",")
    }
    assert "labels_" in documented
    assert documented <= get_type_hints(kind).keys()
