"""Words that are frequent in a class: what sets classes apart where points are texts."""

from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from linkmix.basics.arrays import Array, Ints
from linkmix.columns.wide import Sentences, Words
from linkmix.tables import Points

MOST_ROWS = 20_000
"""Words are counted in at most so many rows, evenly spaced."""
MOST_WORDS, RAREST = 2000, 0.01
"""Words that are counted, and the share of the rows that have to hold one."""
WORD = r"(?u)\b[^\W\d_]{3,}\b"
"""What a word is: three letters at least."""
SHOWN, LEAST = 4, 0.5
"""Words shown of each column, and by how many standard deviations they have to be more frequent in the class."""


class Vocabulary:
    """Words of the columns of text by which points are clustered.

    Parameters
    ----------
    points : Points
        The table.
    """

    def __init__(self, points: Points) -> None:
        self._every = max(1, -(-len(points.X) // MOST_ROWS))
        columns = () if points.recipe is None else points.recipe.columns
        names = [column.name for column in columns if isinstance(column.kind, Words | Sentences)]
        self._columns = {name: found for name in names if (found := self._counted(points.texts.get(name))) is not None}

    def _counted(self, texts: Array | None) -> tuple[Array, Any] | None:
        """The words of a column, and a sparse table of which rows hold which; None if there are none."""
        counter = CountVectorizer(token_pattern=WORD, binary=True, max_features=MOST_WORDS)
        try:
            holds = counter.fit_transform([str(text) for text in (() if texts is None else texts[:: self._every])])
        except ValueError:  # the vocabulary is empty
            return None
        return counter.get_feature_names_out(), holds.astype(float)

    def apart(self, labels: Ints, m: int) -> list[str]:
        """Words that are more frequent in a class than in all points, in each column the most telling first.

        Parameters
        ----------
        labels : ndarray of shape (n_samples,)
            Class numbers of all points.
        m : int
            The class.

        Returns
        -------
        list of str
        """
        here = labels[:: self._every] == m
        said: list[str] = []
        for name, (words, holds) in self._columns.items() if here.any() else ():
            inside, overall = holds[here].mean(axis=0).A1, holds.mean(axis=0).A1
            telling = (inside - overall) / np.sqrt(np.maximum(overall * (1 - overall), 1e-12))
            telling[overall < RAREST] = 0
            for word in np.argsort(-telling, kind="stable")[:SHOWN].tolist():
                if telling[word] >= LEAST:
                    shares = f"{100 * inside[word]:.0f} % (overall {100 * overall[word]:.0f} %)"
                    said.append(f'"{words[word]}" in {name} {shares}')
        return said
