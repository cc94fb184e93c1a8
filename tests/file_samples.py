"""A small file of every format that linkmix reads, what reading it gives, and what must hold if it was damaged."""

import csv
import gzip
import io
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet
from openpyxl import Workbook

from linkmix import LinkMixture
from linkmix.basics.journal import Journal, entries_in
from linkmix.mixture import model_file
from linkmix.tables import read_ids, read_link_lines, read_points

IDS = [f"p{i}" for i in range(8)]
ROWS = [[name, 1.5 + i, (7 * i) % 5 - 2.25, "red" if i % 3 else "blue, dark"] for i, name in enumerate(IDS)]
NAMES = ["id", "x", "y", "colour"]
LINKS = [
    ["a", "b", "kind", "confidence", "annotator"],
    ["p0", "p1", "must", "0.9", "ida"],
    ["p2", "p3", "cannot", "", ""],
]


@dataclass(frozen=True)
class Sample:
    """A file, and how much of it is guarded.

    Attributes
    ----------
    name : str
        Its name.
    sealed : bool
        Whether a checksum covers it, so that a change is either noticed or changes nothing that is read.
    is_text : bool
        Whether it is text with separators, which the csv module can read as well.
    """

    name: str
    sealed: bool
    is_text: bool = False

    @property
    def content(self) -> bytes:
        """The file as it should be."""
        return _content(self.name)

    def read(self, path: Path):
        """What is in a file, to be compared; BadFile if it cannot be read."""
        if "links" in self.name:
            return [(one.a, one.b, one.is_must, one.confidence, one.annotator) for one in read_link_lines(path)]
        if "ids" in self.name:
            return read_ids(path, IDS).tolist()
        if self.name.endswith(".linkmix"):
            found = model_file.load(path, [LinkMixture])
            return [found.notes, found.estimator.means_.tolist(), found.estimator.labels_.tolist()]
        if self.name.endswith(".journal"):
            return entries_in(path)
        points = read_points(path)
        X = np.nan_to_num(points.X, nan=-1e9).tolist()
        texts = {name: column.tolist() for name, column in points.texts.items()}
        return [points.ids.tolist(), points.columns, X, texts, points.unused]

    def n_rows(self, found) -> int:
        """Number of rows of what was read."""
        return len(found[0]) if "points" in self.name else len(found)


def records(content: bytes, separator: str) -> int:
    """Number of records of a text as Python reads it, empty lines aside; -1 if it cannot."""
    try:
        text = content.decode("utf-8-sig")
        return sum(bool(record) for record in csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    except (UnicodeDecodeError, csv.Error):
        return -1


@cache
def _content(name: str) -> bytes:
    made = io.BytesIO()
    if name.endswith((".csv", ".tsv")):
        text = io.StringIO()
        rows = {"points": [NAMES, *ROWS], "links": LINKS, "ids": [["id"], ["p3"], ["p5"]]}[name.partition(".")[0]]
        csv.writer(text, delimiter="\t" if name.endswith(".tsv") else ",", lineterminator="\n").writerows(rows)
        return text.getvalue().encode()
    if name.endswith(".csv.gz"):
        return gzip.compress(_content("points.csv"), mtime=0)
    table = pa.table(dict(zip(NAMES, zip(*ROWS, strict=True), strict=True)))
    if "links" in name:
        table = pa.table(dict(zip(LINKS[0], zip(*LINKS[1:], strict=True), strict=True)))
    if name.endswith(".parquet"):
        parquet.write_table(table, made)
    elif name.endswith(".feather"):
        feather.write_feather(table, made, compression="uncompressed")
    elif name.endswith(".arrow"):
        feather.write_feather(table, made, compression="lz4")
    elif name.endswith(".xlsx"):
        book = Workbook()
        for row in [NAMES, *ROWS]:
            book.active.append(row)
        book.save(made)
    elif name.endswith(".jsonl"):
        made.write(b'{"a": "p0", "b": "p1", "kind": "must", "confidence": 0.9, "annotator": "ida"}\n')
        made.write(b'{"a": "p2", "b": "p3", "kind": "cannot"}\n')
    elif name.endswith(".txt"):
        made.write(b"0 1 1\n2 3 -1\n10 12 1\n")
    elif name.endswith(".linkmix"):
        model = LinkMixture(2, random_state=0).fit([row[1:3] for row in ROWS])
        made.write(model_file.to_bytes(model, {"columns": ["x", "y"]}))
    else:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            with Journal(Path(folder) / name) as journal:
                for i in range(4):
                    journal.append({"entry": "answer", "ids": [f"p{i}", "p7"], "said": "same"})
            made.write((Path(folder) / name).read_bytes())
    return made.getvalue()


SAMPLES = [
    Sample("points.csv", sealed=False, is_text=True),
    Sample("points.tsv", sealed=False, is_text=True),
    Sample("points.csv.gz", sealed=True),
    Sample("points.parquet", sealed=False),
    Sample("points.feather", sealed=False),
    Sample("points.arrow", sealed=False),
    Sample("points.xlsx", sealed=True),
    Sample("links.csv", sealed=False, is_text=True),
    Sample("links.tsv", sealed=False, is_text=True),
    Sample("links.jsonl", sealed=False),
    Sample("links.txt", sealed=False),
    Sample("links.parquet", sealed=False),
    Sample("ids.csv", sealed=False, is_text=True),
    Sample("model.linkmix", sealed=True),
    Sample("answers.journal", sealed=True),
]
