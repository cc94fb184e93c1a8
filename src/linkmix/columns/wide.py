"""Columns that hold many numbers each: vectors, texts, sentences and pictures, reduced to a few numbers.

Text is read by its words (TF-IDF and a truncated singular value decomposition), a picture by small grey pixels, a long
vector by principal components. All that is learned is kept as plain arrays.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from linkmix.basics.arrays import Array, Floats
from linkmix.columns.problems import SHOWN, Unfit
from linkmix.columns.values import Texts, Values, Vectors, what_it_is

MOST_ROWS = 10_000
"""Components are learned from at most this many rows, evenly spaced."""
WIDEST = 50
"""Vectors with more numbers than this become principal components, as tables with more columns do."""
N_COMPONENTS = 20
"""Number of principal components of vectors, sentences and pictures."""
N_TOPICS = 10
"""Number of components of text. On docstrings of seven groups of packages, scikit-learn's GaussianMixture finds the
packages with an ARI of .443 with 5, .457 with 10 and .365 with 20 components if each text is scaled to length one, and
of .333, .330 and .285 if it is not."""
SAME = 1e-9
"""Components whose values differ by less than this do not tell texts apart."""
MOST_WORDS = 10_000
"""The most frequent words are used."""
SIDE = 16
"""Pixels along each side of a picture."""
PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff")
"""Endings of files that are pictures."""


@dataclass(frozen=True, eq=False)
class Reduction:
    """Principal components, or some of the numbers as they are.

    Attributes
    ----------
    kept : ndarray of int
        Places of the numbers that are used, without those that are the same in all rows.
    mean : ndarray of shape (n_kept,)
        Their means.
    components : ndarray of shape (n_components, n_kept) or None
        Orthogonal directions of unit length, by falling variance; None for the numbers as they are.
    """

    kept: Array
    mean: Floats
    components: Floats | None = None

    @property
    def width(self) -> int:
        """Number of columns of the result."""
        return len(self.kept) if self.components is None else len(self.components)

    def __call__(self, rows: Floats) -> Floats:
        """Reduced rows. With components, a missing number counts as the mean; a row without any number is missing."""
        chosen = rows[:, self.kept]
        if self.components is None:
            return chosen
        nothing = np.isnan(chosen).all(axis=1)
        found = np.nan_to_num(chosen - self.mean, copy=False) @ self.components.T
        found[nothing] = np.nan
        return np.asarray(found)


def reduction(rows: Floats) -> Reduction | None:
    """Learn what is kept of rows (n, d); None if they do not differ."""
    known = rows[~np.isnan(rows).all(axis=1)]
    some = known[np.unique(np.linspace(0, len(known) - 1, min(len(known), MOST_ROWS)).astype(np.int64))]
    if len(some) < 2:
        return None
    kept = np.flatnonzero(np.nanmax(some, axis=0, initial=-np.inf) > np.nanmin(some, axis=0, initial=np.inf))
    if not len(kept):
        return None
    some = some[:, kept]
    mean = np.nanmean(some, axis=0)
    n_components = min(N_COMPONENTS, len(some) - 1, len(kept) - 1)
    if len(kept) <= WIDEST or n_components < 1:
        return Reduction(kept, mean)
    from sklearn.decomposition import PCA  # 0.1 s, so not before it is needed

    found = PCA(n_components, svd_solver="arpack", random_state=0).fit(np.nan_to_num(some - mean))
    enough = found.explained_variance_ > 1e-12 * found.explained_variance_[0]
    return Reduction(kept, mean, found.components_[enough])


def component_names(column: str, n: int, what: str = "component") -> tuple[str, ...]:
    """Names of the columns that a wide one becomes, counted from 1."""
    return tuple(f"{column} ({what} {place})" for place in range(1, n + 1))


@dataclass(frozen=True, eq=False)
class Vector:
    """Vectors of one length, such as embeddings.

    Attributes
    ----------
    length : int
        Number of numbers in each.
    reduction : Reduction
        What is kept of them.
    """

    length: int
    reduction: Reduction

    @property
    def levels(self) -> tuple[int, ...]:
        """Numbers alone."""
        return (0,) * self.reduction.width

    @property
    def words(self) -> str:
        """The kind, its length, and the number of components."""
        what = f"vector of {self.length} numbers"
        return what if self.reduction.components is None else f"{what}, {self.reduction.width} components"

    def names(self, column: str) -> tuple[str, ...]:
        """A name for each component, or for each number that is used."""
        if self.reduction.components is None:
            return tuple(f"{column} ({place + 1})" for place in self.reduction.kept.tolist())
        return component_names(column, self.reduction.width)

    def __call__(self, values: Values, folder: str) -> Floats:
        """Components, or the numbers that are used."""
        rows = as_rows(values)
        if rows.shape[1] != self.length:
            raise Unfit(
                f"holds vectors of {rows.shape[1]} numbers, not {self.length}", "give vectors of the same length"
            )
        return self.reduction(rows)


@dataclass(frozen=True, eq=False)
class Words:
    """Free text, by its words; components are scaled to length one, so that long and short texts compare.

    Attributes
    ----------
    vocabulary : tuple of str
        The words that are used.
    weights : ndarray of shape (n_words,)
        Inverse document frequencies.
    components : ndarray of shape (n_components, n_words)
        Directions of unit length.
    """

    vocabulary: tuple[str, ...]
    weights: Floats
    components: Floats

    @property
    def levels(self) -> tuple[int, ...]:
        """Numbers alone."""
        return (0,) * len(self.components)

    @property
    def words(self) -> str:
        """The kind, and the number of components."""
        return f"text, {len(self.components)} components"

    def names(self, column: str) -> tuple[str, ...]:
        """A name for each component."""
        return component_names(column, len(self.components))

    def __call__(self, values: Values, folder: str) -> Floats:
        """Components; NaN for a text without any known word."""
        texts = as_plain_texts(values)
        topics = np.full((len(texts.texts), len(self.components)), np.nan)
        if texts.texts:
            vectorizer = _vectorizer(vocabulary={word: place for place, word in enumerate(self.vocabulary)})
            vectorizer.idf_ = self.weights
            found = np.asarray(vectorizer.transform(texts.texts) @ self.components.T)
            length = np.linalg.norm(found, axis=1)
            topics[length > 0] = found[length > 0] / length[length > 0, None]
        return np.asarray(texts.spread(topics))


@dataclass(frozen=True, eq=False)
class Sentences:
    """Text, by the embeddings of a model of the package sentence-transformers.

    Attributes
    ----------
    model : str
        Name or path of the model.
    reduction : Reduction
        What is kept of the embeddings.
    """

    model: str
    reduction: Reduction

    @property
    def levels(self) -> tuple[int, ...]:
        """Numbers alone."""
        return (0,) * self.reduction.width

    @property
    def words(self) -> str:
        """The kind, the model, and the number of components."""
        return f"text by {self.model}, {self.reduction.width} components"

    def names(self, column: str) -> tuple[str, ...]:
        """A name for each component."""
        return component_names(column, self.reduction.width)

    def __call__(self, values: Values, folder: str) -> Floats:
        """Components."""
        texts = as_plain_texts(values)
        return np.asarray(texts.spread(self.reduction(embedded(texts.texts, self.model))))


@dataclass(frozen=True, eq=False)
class Picture:
    """Paths of pictures, as components of their grey pixels.

    Attributes
    ----------
    reduction : Reduction
        What is kept of the pixels.
    """

    reduction: Reduction

    @property
    def levels(self) -> tuple[int, ...]:
        """Numbers alone."""
        return (0,) * self.reduction.width

    @property
    def words(self) -> str:
        """The kind, and the number of components."""
        return f"picture, {self.reduction.width} components"

    def names(self, column: str) -> tuple[str, ...]:
        """A name for each component."""
        return component_names(column, self.reduction.width)

    def __call__(self, values: Values, folder: str) -> Floats:
        """Components."""
        texts = as_plain_texts(values)
        return np.asarray(texts.spread(self.reduction(pixels(texts, folder))))


def learn_words(values: Values) -> Words | None:
    """Words of texts and their components; None if no word is in two texts, or the same ones are in all.

    Examples
    --------
    >>> texts = ("red wine from Rome", "white wine", "red paint", "white paint and red paint")
    >>> found = learn_words(Texts(texts, np.arange(4)))
    >>> found.vocabulary, found.components.shape
    (('paint', 'red', 'white', 'wine'), (3, 4))
    """
    texts = as_plain_texts(values).texts
    places = np.unique(np.linspace(0, len(texts) - 1, min(len(texts), MOST_ROWS)).astype(np.int64))
    some = Texts(tuple(texts[place] for place in places), np.arange(len(places)))
    vectorizer = _vectorizer(min_df=2, max_features=MOST_WORDS)
    try:
        found = vectorizer.fit_transform(some.texts)
    except ValueError:  # no word is left
        return None
    words = Words(tuple(vectorizer.get_feature_names_out().tolist()), vectorizer.idf_, _topics(found))
    topics = words(some, "")
    known = topics[~np.isnan(topics[:, 0])]
    return words if np.ptp(known, axis=0).max() > SAME else None


def _topics(found: Any) -> Floats:
    """Directions (n_components, n_words) of TF-IDF values: of the words themselves, if they are few."""
    n_texts, n_words = found.shape
    n_components = min(N_TOPICS, n_texts - 1)
    if n_words <= n_components:
        return np.eye(n_words)
    from sklearn.decomposition import TruncatedSVD

    components: Floats = TruncatedSVD(n_components, algorithm="arpack", random_state=0).fit(found).components_
    return components


def _vectorizer(**settings: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(sublinear_tf=True, strip_accents="unicode", **settings)


def embedded(texts: Sequence[str], model: str) -> Floats:
    """Embeddings of sentences (n, d)."""
    return np.asarray(_model(model).encode(list(texts), show_progress_bar=False), dtype=np.float64).reshape(
        len(texts), -1
    )


@cache
def _model(name: str) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise Unfit(
            f"sentence embeddings by {name!r} need the package sentence-transformers",
            "pip install sentence-transformers, or read the column as text",
        ) from None
    return SentenceTransformer(name)


def pixels(texts: Texts, folder: str) -> Floats:
    """Grey pixels of pictures (n_texts, SIDE * SIDE), from 0 for black to 1 for white; all that fail are named."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise Unfit("pictures need the package Pillow", 'pip install "linkmix[app]", or leave the column out') from None
    found = np.empty((len(texts.texts), SIDE * SIDE))
    wrong = []
    for place, text in enumerate(texts.texts):
        try:
            with Image.open(Path(folder) / text) as picture:
                small = picture.convert("L").resize((SIDE, SIDE), Image.Resampling.BOX)
                found[place] = np.asarray(small, dtype=np.float64).ravel() / 255
        except (OSError, UnidentifiedImageError, SyntaxError, ValueError, Image.DecompressionBombError):
            wrong.append(place)
    if wrong:
        n = len(wrong)
        raise Unfit(
            f"{n} of {len(texts.texts)} pictures cannot be read{f' in {folder}' if folder else ''}",
            "check the paths and the files, name them as missing, or leave the column out",
            texts.first_rows(wrong)[:SHOWN],
        )
    return found


def are_pictures(texts: Sequence[str]) -> bool:
    """Whether all texts are names of pictures."""
    return all(text.lower().endswith(PICTURES) for text in texts)


def any_is_there(texts: Sequence[str], folder: str) -> bool:
    """Whether any of some files exists."""
    return any((Path(folder) / text).is_file() for text in texts)


def vectors_in(texts: Sequence[str]) -> Floats | None:
    """Vectors written as text (n_texts, d), such as [0.5, 1]; None if any is not one of the same length.

    Examples
    --------
    >>> vectors_in(["[1, 2]", "[0.5 4]"]).tolist(), vectors_in(["[1, 2]", "[3]"])
    ([[1.0, 2.0], [0.5, 4.0]], None)
    """
    if not all(text[0] == "[" and text[-1] == "]" for text in texts):
        return None
    try:
        return np.array([list(map(float, text[1:-1].replace(",", " ").split())) for text in texts], dtype=np.float64)
    except ValueError:
        return None


def as_rows(values: Values) -> Floats:
    """Values as rows of numbers."""
    match values:
        case Vectors():
            if np.isinf(values.rows).any():
                row = int(np.argmax(np.isinf(values.rows).any(axis=1)))
                raise Unfit(f"the vector of row {row} has a number that is not finite", "correct it, or leave it empty")
            return values.rows
        case Texts():
            found = vectors_in(values.texts)
            if found is not None:
                return as_rows(Vectors(np.asarray(values.spread(found))))
            raise Unfit("holds texts that are not vectors of one length", "give lists of numbers, such as [0.5, 1]")
    raise Unfit(f"holds {what_it_is(values)}, and no vectors", "give lists of numbers, or leave the column out")


def as_plain_texts(values: Values) -> Texts:
    """Values that are texts."""
    if not isinstance(values, Texts):
        raise Unfit(f"holds {what_it_is(values)}, and no texts", "give texts, or leave the column out")
    return values
