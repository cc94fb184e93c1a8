"""Puts a run of `linkmix reproduce` into the docs: verdicts, tables and figures, without retyping.

    python -m benchmarks.reproduction_docs results

In docs/reproduction.md the paragraph after a mark such as ``<!-- claim: ahead -->`` becomes the verdict and the figures
of that claim, and that after ``<!-- rests on -->`` what the run was. docs/reproduction-tables.md becomes tables.md of
the run, and docs/images/reproduction its figures, without the images of COIL-20, which may not be passed on.
"""

import argparse
import re
import shutil
import textwrap
from pathlib import Path

import pandas as pd

from linkmix.study.paper import claims, protocol, report

DOCS = Path(__file__).parents[1] / "docs"
MARK = re.compile(r"(<!-- (?P<what>claim: [\w-]+|rests on) -->\n).*?(?=\n\n|\n*\Z)", re.DOTALL)
HEAD = """# Tables of the paper's experiments

Of the run that [the paper's experiments, run again](reproduction.md) rests on; `linkmix reproduce` writes them as
`tables.md`, and `python -m benchmarks.reproduction_docs results` puts them here.

"""


def main() -> None:
    """Read the run and write the docs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of the run")
    folder = parser.parse_args().folder
    tables = (folder / report.TABLES).read_text(encoding="utf-8")
    found = {claim.name: finding for claim, finding in claims.examine(pd.read_parquet(folder / protocol.TABLE))}
    said = {
        f"claim: {name}": f"**{finding.verdict.capitalize()}**: {finding.figure}." for name, finding in found.items()
    }
    said["rests on"] = " ".join(tables.split("\n\n")[:2])
    page = DOCS / "reproduction.md"
    page.write_text(filled(page.read_text(encoding="utf-8"), said), encoding="utf-8")
    (DOCS / "reproduction-tables.md").write_text(HEAD + tables, encoding="utf-8")
    for picture in sorted(folder.glob("*.png")):
        if picture.stem != "coil20-objects" and not picture.stem.startswith("fewest-links"):
            shutil.copy(picture, DOCS / "images" / "reproduction" / picture.name)
    print(f"{len(said)} places of {page} and its tables are those of {folder}")


def filled(page: str, said: dict[str, str]) -> str:
    """The page with what is said put after each mark; a mark of which nothing is said stays as it is.

    Examples
    --------
    >>> filled("<!-- claim: toy -->\\nold\\ntext\\n\\nmore\\n", {"claim: toy": "new"})
    '<!-- claim: toy -->\\nnew\\n\\nmore\\n'
    """

    def put(mark: re.Match[str]) -> str:
        text = said.get(mark["what"])
        return mark[0] if text is None else mark[1] + textwrap.fill(text, 120, break_on_hyphens=False)

    return MARK.sub(put, page)


if __name__ == "__main__":
    main()
