"""The data sets by name, and how to load them."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from linkmix.basics.arrays import Floats, Ints
from linkmix.study.paper.data.files import DIGITS, FILES, SEGMENTS, Names, Raw
from linkmix.study.paper.data.finding import find, places
from linkmix.study.paper.data.preparation import (
    AS_IT_IS,
    BENCHMARK,
    SIXTEENTHS,
    Z_SCORED,
    Z_SCORED_18,
    Preparation,
    pca,
    pixels,
)


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
        How X was computed from the raw data, in one line.
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


@dataclass(frozen=True)
class Spec:
    """What is known about a data set before it is loaded."""

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
        If a file was found that does not contain the right values.

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
    return next((place for place, _ in places(FILES[origin])), "")


def _spec(name: str) -> Spec:
    if name not in DATA:
        raise ValueError(f"there is no data set {name!r}: choose one of {', '.join(DATA)}")
    return DATA[name]


def _find(name: str, spec: Spec, download: bool) -> tuple[Raw, Names, str]:
    """Return the raw values, the names of their columns, and where they were found."""
    if spec.origin in FILES:
        raw, source = find(name, FILES[spec.origin], download)
        return raw, FILES[spec.origin].columns, source
    module, _, function = spec.origin.rpartition(".")
    made: Any = getattr(import_module(module), function)()
    X, y = made if isinstance(made, tuple) else (made.data, made.target)
    columns = getattr(made, "feature_names", [f"x{j + 1}" for j in range(X.shape[1])])
    return Raw(X, np.asarray(y, dtype=np.int64)), tuple(columns), where(name)


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

_OBJECTS = tuple(f"object {number}" for number in range(1, 21))
_SURVIVAL = ("survived 5 years", "died within 5 years")
_FUNCTION = ("normal", "not normal")
_SPECIES = ("setosa", "versicolor", "virginica")
_GROWERS = ("class_0", "class_1", "class_2")
_TUMOURS = ("malignant", "benign")
_MADE = "linkmix.study.paper.synthetic"
_SKLEARN = "sklearn.datasets"


def _mnist(digits: str, n_images: int, d: int = 2) -> Spec:
    classes = tuple(digits.find(digit) for digit in DIGITS)
    projected = pca(d, "pixels / 255", 255.0)
    return Spec(f"MNIST test images of {', '.join(digits)}", (n_images, d), tuple(digits), "mnist", projected, classes)


def _coil20(d: int) -> Spec:
    projected = pca(d, "pixels from 0 to 1", 4080.0)  # a sum of 16 pixels up to 255
    return Spec("COIL-20: 72 views of each of 20 objects", (1440, d), _OBJECTS, "coil20", projected)


DATA: Mapping[str, Spec] = {
    "toy": Spec("two clusters that a plain mixture splits wrongly", (40, 2), ("1", "2"), f"{_MADE}.toy", AS_IT_IS),
    "toy-large": Spec("the same with ten times the points", (400, 2), ("1", "2"), f"{_MADE}.toy_large", AS_IT_IS),
    "two-moons": Spec("two interleaved half circles", (100, 2), ("1", "2"), f"{_MADE}.two_moons", AS_IT_IS),
    "haberman": Spec("survival after breast cancer surgery", (306, 3), _SURVIVAL, "haberman", Z_SCORED),
    "thyroid": Spec("thyroid function, scaled", (215, 5), _FUNCTION, "thyroid", BENCHMARK, (0, 1, 1)),
    "thyroid-raw": Spec("thyroid function, as measured", (215, 5), _FUNCTION, "thyroid", AS_IT_IS, (0, 1, 1)),
    "mnist-123": _mnist("123", 3177),
    "mnist-4567": _mnist("4567", 3860),
    "mnist-4567-10": _mnist("4567", 3860, 10),
    "coil20-pixels": Spec("the images of COIL-20", (1440, 1024), _OBJECTS, "coil20", pixels(4080.0)),
    "coil20-10": _coil20(10),
    "coil20-15": _coil20(15),
    "coil20-20": _coil20(20),
    "iris": Spec("iris flowers of three species", (150, 4), _SPECIES, f"{_SKLEARN}.load_iris", Z_SCORED),
    "wine": Spec("chemistry of wines", (178, 13), _GROWERS, f"{_SKLEARN}.load_wine", Z_SCORED),
    "breast-cancer": Spec("cells of tumours", (569, 30), _TUMOURS, f"{_SKLEARN}.load_breast_cancer", Z_SCORED),
    "digits": Spec("digits of 8 x 8 pixels", (1797, 64), DIGITS, f"{_SKLEARN}.load_digits", SIXTEENTHS),
    "segment": Spec("patches of outdoor images", (2310, 18), SEGMENTS, "segment", Z_SCORED_18),
    "pendigits": Spec("digits written with a pen", (10992, 16), DIGITS, "pendigits", Z_SCORED),
}
"""All data sets by name."""
