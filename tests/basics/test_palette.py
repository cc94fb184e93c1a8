"""One palette for figures and pages."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import linkmix
from linkmix.basics import palette

PACKAGE = Path(linkmix.__file__).parent
PAGES = {
    "labelling": sorted((PACKAGE / "app" / "label" / "static").iterdir()),
    "report": [PACKAGE / "plots" / "pages" / "frame.css", PACKAGE / "app" / "report" / "page.css"],
    "experiments": [PACKAGE / "plots" / "pages" / "frame.css", PACKAGE / "study" / "paper" / "page.html"],
}


def test_no_two_of_36_classes_look_the_same():
    assert len({(palette.colour_of(m), palette.marker_of(m)) for m in range(36)}) == 36
    assert len(set(palette.MORE_COLOURS)) == len(palette.MORE_COLOURS)


@pytest.mark.parametrize("page", PAGES)
def test_every_colour_of_a_page_has_a_value(page):
    text = "\n".join(path.read_text(encoding="utf-8") for path in PAGES[page])
    used = set(re.findall(r"(?:var\(|colour\(\")(--[\w-]+)", text)) | {"--ink"}
    assert used <= set(re.findall(r"(--[\w-]+):", palette.css() + text))


def test_every_colour_has_a_shade_for_dark_screens():
    light, dark = palette.css().split("@media (prefers-color-scheme: dark)")
    names = re.findall(r"(--[\w-]+): #", light)
    assert names == re.findall(r"(--[\w-]+): #", dark)
    assert len(names) > len(palette.MORE_COLOURS)


def test_the_palette_needs_no_other_package():
    script = "import sys; from linkmix.plots import COLOURS; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"matplotlib", "PIL", "jinja2", "numpy"} & set(loaded)
