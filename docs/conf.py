"""Settings of the site: `make docs` copies this folder, builds the copy, and writes build/site.

Nothing here is imported from Sphinx or its extensions, so that the tests can read this file without them.
"""

import re
import shutil
from pathlib import Path
from typing import Any

from linkmix import __version__

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "pyproject.toml").exists())

project = "linkmix"
author = "the linkmix developers"
project_copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["files", "sg_execution_times.rst", "gallery/sg_execution_times.rst"]
templates_path = ["_templates"]
nitpicky = False  # types in docstrings are words: "array of shape (n, 2)"

# Pages
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
myst_enable_extensions = ["deflist", "dollarmath", "html_image"]
myst_heading_anchors = 4
default_role = "code"  # docstrings write `X` for code
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Reference
add_module_names = False
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False  # the template of a class lists them

# Gallery
sphinx_gallery_conf: dict[str, Any] = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "gallery",
    "ignore_pattern": r"(^|/)(?!plot_)[^/]*\.py$",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "abort_on_example_error": True,
}

# Appearance: nothing is loaded from elsewhere, so the site can be read and searched offline.
html_theme = "furo"
html_title = "linkmix"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#2b5fa8", "color-brand-content": "#2b5fa8"},
    "dark_css_variables": {"color-brand-primary": "#8ab4f0", "color-brand-content": "#8ab4f0"},
}
html_math_renderer = "mathml"


def write_math(translator: Any, node: Any) -> None:
    """Write a formula as MathML, which browsers show without a script."""
    from docutils import nodes
    from latex2mathml.converter import convert

    display = "inline" if node.tagname == "math" else "block"
    tag = "span" if display == "inline" else "div"
    formula = convert(node.astext(), display=display)
    for name in ("log", "exp"):  # as functions, with a space before their argument
        formula = formula.replace(f"<mi>{name}</mi>", f'<mo lspace="0.17em" rspace="0.17em">{name}</mo>')
    translator.body.append(f'<{tag} class="math">{formula}</{tag}>')
    raise nodes.SkipNode


def skip_routing(app: Any, what: str, name: str, obj: object, skip: bool, options: object) -> bool | None:
    """Leave out what scikit-learn adds to every estimator for its metadata routing."""
    routing = name.startswith("set_") and name.endswith("_request")
    return True if routing or name == "get_metadata_routing" else None


def escape_types(app: Any, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Write "shape (n_iter_,)" such that n_iter_ is not taken for a link; before numpydoc sees the lines."""
    lines[:] = [re.sub(r"(?<=\w)_(?=[ ,)])", r"\\_", line) if re.match(r"\w+ : ", line) else line for line in lines]


def bring_along(app: Any, name: str, source: list[str]) -> None:
    """Copy the files of the repository that a page links to, such as ../SECURITY.md, and link to the copies."""

    def copied(found: re.Match[str]) -> str:
        if found[1] == "examples":
            return "](gallery/index.rst)"
        target = Path(app.srcdir) / "files" / found[1]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / found[1], target)
        return f"](path:files/{found[1]})"

    source[0] = re.sub(r"\]\(\.\./([^)#]+)\)", copied, source[0])
    source[0] = source[0].replace("\n\n```\n", "\n```\n")  # the empty line that ends a session is for doctest alone


def setup(app: Any) -> None:
    """Register the renderer of formulas and the filter of members."""
    app.add_html_math_renderer("mathml", inline_renderers=(write_math, None), block_renderers=(write_math, None))
    app.connect("autodoc-process-docstring", escape_types, priority=100)
    app.connect("source-read", bring_along)
    app.connect("autodoc-skip-member", skip_routing)
