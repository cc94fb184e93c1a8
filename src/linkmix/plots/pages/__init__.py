"""The frame that all HTML pages share, and templates filled in safely.

The report of a fit (`app`) and the page of the experiments (`study`) both use it, and `plots` is the room that both may
import. `frame.html` holds head, style and footer; `frame.css` the style; `parts.html` the tables.
"""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from linkmix.basics import palette

__all__ = ["Markup", "count", "render", "visible"]

_HERE = Path(__file__).parent


def render(template: Path, **values: Any) -> str:
    """Fill in a template that extends ``frame.html``.

    Every value is escaped unless it is `Markup`, and shows no invisible characters (see `visible`). A value that the
    template uses and that is not given is an error.

    Parameters
    ----------
    template : Path
        The template. It may include files from its own folder and from this one.
    **values
        What it uses; ``command``, which made the page, is used by the frame.

    Returns
    -------
    str
        HTML.
    """
    environment = Environment(
        loader=FileSystemLoader([template.parent, _HERE]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["count"] = count
    return environment.get_template(template.name).render(values, colours=Markup(palette.css()))


def count(n: int, one: str, many: str | None = None) -> str:
    """A number and what it counts.

    Examples
    --------
    >>> count(1, "class", "classes"), count(2000, "link")
    ('1 class', '2,000 links')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def visible(text: str) -> str:
    r"""Text without invisible characters, some of which would reverse the text around them.

    Examples
    --------
    >>> print(visible("two\nlines, \u202ereversed"))
    two lines, �reversed
    """
    return "".join(c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _shown(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
