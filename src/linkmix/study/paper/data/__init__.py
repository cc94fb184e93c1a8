"""The data of the experiments: found on this machine or downloaded, checked, and always prepared the same way.

``load("haberman")`` gives a `Dataset`. Raw files are looked for in the folder named by the variable LINKMIX_DATA (or
its subfolder ``data``), in the cache (LINKMIX_CACHE, by default ``~/.cache/linkmix``), and in installed packages that
contain them. Nothing is downloaded unless asked for: ``load(name, download=True)``, or `fetch`.

Copies of one data set differ in format and in the order of rows. Each copy, wherever it comes from, is therefore first
converted to the same arrays: values X (float64 for tables, the stored integers for images) and classes y (int64, from
0). The rows of tables are sorted by their values, then by class. The sha256 of the bytes of X followed by those of y,
row by row and little-endian, must match the one in `files`, so all sources give the same data, row for row.
"""

from linkmix.study.paper.data.files import FILES, BadData, MissingData
from linkmix.study.paper.data.sets import DATA, Dataset, Spec, fetch, load, where

__all__ = ["DATA", "FILES", "BadData", "Dataset", "MissingData", "Spec", "fetch", "load", "where"]
