"""Names and looks of methods and data sets.

The only place where they are: a method has the same colour, marker and dashes in all figures. No two methods share both
colour and marker, and those that share a figure of the paper share neither colour nor dashes and marker, so they can be
told apart in greyscale too.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from matplotlib.lines import Line2D

from linkmix.plots import DASHED, INK, SOLID, Dashes

CLUSTERS_PER_CLASS = ("paper", "paper-2", "paper-3", "paper-4")
COVARIANCES = ("paper-3", "paper-3-diag", "paper-3-tied", "paper-3-reg")
DATA_NAMES = {
    "haberman": "Haberman",
    "thyroid": "Thyroid",
    "iris": "Iris",
    "wine": "Wine",
    "breast-cancer": "Breast cancer",
    "segment": "Segment",
    "pendigits": "Pendigits",
    "digits": "Digits 8 x 8",
    "balance": "Balance",
    "mnist-123": "MNIST 1, 2, 3",
    "mnist-4567": "MNIST 4, 5, 6, 7",
    "coil20-10": "COIL-20, d = 10",
    "coil20-15": "COIL-20, d = 15",
    "coil20-20": "COIL-20, d = 20",
}
DOTTED: Dashes = (0, (1.2, 1.8))
DASH_DOT: Dashes = (0, (6, 1.8, 1.2, 1.8))
_LONG: Dashes = (0, (8, 2.5))


@dataclass(frozen=True)
class Style:
    """How a method looks in every figure.

    Attributes
    ----------
    name : str
        Its name for readers.
    colour, marker : str
        As in matplotlib. A method that uses no links is a level line and has no marker.
    dashes : str or tuple
        Line style.
    """

    name: str
    colour: str
    marker: str
    dashes: Dashes


STYLES: dict[str, Style] = {
    "auto": Style("AutoLinkMixture", "#D55E00", "o", SOLID),
    "auto-5": Style("AutoLinkMixture, 5", "#D55E00", "h", DASHED),
    "linkmix": Style("LinkMixture, graph", "#B8860B", "o", _LONG),
    "paper": Style("GM-PR", "#0072B2", "s", SOLID),
    "gmm": Style("GMM", "#777777", "", DASHED),
    "gmm-ec": Style("GMM-EC", "#009E73", "8", _LONG),
    "gmm-ec-chunklets": Style("GMM-EC, chunklets", "#009E73", "^", _LONG),
    "em-pc": Style("EM-PC", "#CC79A7", "D", DASHED),
    "ppc": Style("PPC", "#A6761D", "v", DASH_DOT),
    "ppc-soft": Style("PPC, 1 nat", "#A6761D", "1", DASHED),
    "soft-chunklets": Style("Soft chunklets", "#009E73", "v", DASH_DOT),
    "spectral": Style("SC", "#8C564B", "", DASH_DOT),
    "sskk": Style("SSKK", "#E69F00", "P", DASHED),
    "sskk-original": Style("SSKK, published weight", "#E69F00", "x", DASH_DOT),
    "csc": Style("CSC", "#56B4E9", "X", DASH_DOT),
    "cop-kmeans": Style("COP-KMeans", "#117733", "<", DASHED),
    "pccc": Style("PCCC", "#117733", "H", _LONG),
    "pck-means": Style("PCKMeans", "#882255", ">", DASH_DOT),
    "pck-means-original": Style("PCKMeans, weight 1", "#882255", "4", DASHED),
    "mpck-means": Style("MPCKMeans", "#AA4499", "p", _LONG),
    "mpck-means-shared": Style("MPCKMeans, shared metric", "#AA4499", "P", DASH_DOT),
    "rca": Style("RCA", "#44AA99", "v", DASHED),
    "mmc": Style("MMC", "#44AA99", "^", _LONG),
    "itml": Style("ITML", "#44AA99", "D", DASH_DOT),
    "linkage": Style("Ward with links", "#999933", "s", _LONG),
    "e2cp": Style("E2CP", "#332288", "*", _LONG),
    "e2cp-sparse": Style("E2CP, sparse", "#332288", "d", DASHED),
    "paper-2": Style("GM-PR, K = 2", "#8E44AD", "^", _LONG),
    "paper-3": Style("GM-PR, K = 3", "#12355B", "D", SOLID),
    "paper-4": Style("GM-PR, K = 4", "#C2185B", "v", DASH_DOT),
    "paper-3-diag": Style("K = 3, diagonal", "#00838F", "^", DASHED),
    "paper-3-tied": Style("K = 3, tied", "#6D8B00", "v", _LONG),
    "paper-3-reg": Style("K = 3, 0.1 added", "#A1517A", "h", DASH_DOT),
    "paper-cv": Style("GM-PR, K chosen", "#4B4BD6", "*", SOLID),
    "gmm-ec-must": Style("GMM-EC, must-links alone", "#7A9A01", "v", DASHED),
}
"""Style of each method of `linkmix.study.registry.METHODS`, and of the variants in the experiments of the paper."""


def data_name(name: str) -> str:
    """Name of a data set for readers.

    Parameters
    ----------
    name : str
        Name in the table; a number after ``@`` is the number of rows drawn from it.

    Returns
    -------
    str

    Examples
    --------
    >>> data_name("mnist-123@1000"), data_name("my own")
    ('MNIST 1, 2, 3 (1000 rows)', 'my own')
    """
    plain, _, rows = name.partition("@")
    return DATA_NAMES.get(plain, plain) + (f" ({rows} rows)" if rows else "")


def level_mark(dashes: Dashes) -> Line2D:
    """Legend entry of a level line."""
    return Line2D([], [], color=INK, linewidth=1.0, linestyle=dashes)


def letters() -> Iterator[str]:
    """Yield the letters of the panels."""
    return (chr(ord("a") + i) for i in count())
