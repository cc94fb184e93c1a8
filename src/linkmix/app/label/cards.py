"""What the page shows about points: fields side by side, pictures, and positions on a map."""

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from linkmix.basics.arrays import Floats, Ints
from linkmix.data.plane import plane
from linkmix.data.summary import Summary, summarise
from linkmix.tables import Points

PICTURES = {
    ".avif": "image/avif",
    ".bmp": "image/bmp",
    ".gif": "image/gif",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
}
"""Media types by file suffix. None of these formats can contain a script, as SVG can."""


class Cards:
    """Fields, pictures and positions of points.

    Parameters
    ----------
    points : Points
        The table. If all values of a text column end in one of the suffixes of `PICTURES`, they name pictures.
    folder : path
        The folder of the pictures. Nothing outside it is ever read.

    Attributes
    ----------
    picture_column : str or None
        Name of the column that names pictures.

    Examples
    --------
    >>> names = {"name": np.array(["anna", "bob"])}
    >>> points = Points(np.array(["7", "8"]), ("height",), np.array([[1.8], [1.6]]), names)
    >>> pair = Cards(points, "data").pair(0, 1)
    >>> pair["fields"][0]
    {'name': 'name', 'a': 'anna', 'b': 'bob', 'differs': True, 'apart': None}
    >>> pair["fields"][1]
    {'name': 'height', 'a': '1.8', 'b': '1.6', 'differs': True, 'apart': 2.0}
    """

    def __init__(self, points: Points, folder: str | Path) -> None:
        self.points = points
        self.folder = Path(folder).resolve()
        self.picture_column = next((name for name, values in points.texts.items() if _are_pictures(values)), None)
        self._summary = summarise(points.X)
        self._shown = [j for j, owner in enumerate(points.owners) if owner not in points.texts]
        numbers = [j for j, n_levels in enumerate(points.levels) if not n_levels]
        self._number_of = {points.owners[j]: j for j in numbers if points.owners.count(points.owners[j]) == 1}

    def card(self, row: int) -> dict[str, Any]:
        """A point: its row, its id, and whether there is a picture of it."""
        return {"row": row, "id": str(self.points.ids[row]), "picture": self.picture(row) is not None}

    def whole(self, row: int) -> dict[str, Any]:
        """A point with all its fields, as they stand in the table."""
        texts = {name: str(values[row]) for name, values in self.points.texts.items() if name != self.picture_column}
        texts |= {self.points.columns[j]: self.points.written(row, j) for j in self._shown}
        return self.card(row) | {"fields": [{"name": name, "value": value} for name, value in texts.items()]}

    def pair(self, a: int, b: int) -> dict[str, Any]:
        """Two points side by side.

        Parameters
        ----------
        a, b : int
            Their rows.

        Returns
        -------
        dict
            Both cards and all fields, each with whether the two differ and, for numbers, by how many standard
            deviations.
        """
        fields = []
        for name, values in self.points.texts.items():
            if name != self.picture_column:
                one, other = str(values[a]), str(values[b])
                apart = self._apart(a, b, self._number_of[name]) if name in self._number_of else None
                fields.append({"name": name, "a": one, "b": other, "differs": one != other, "apart": apart})
        for j in self._shown:
            one, other = self.points.written(a, j), self.points.written(b, j)
            apart = None if self.points.levels[j] else self._apart(a, b, j)
            X = self.points.X
            differs = X[a, j] != X[b, j] if apart is not None else one != other
            name = self.points.columns[j]
            fields.append({"name": name, "a": one, "b": other, "differs": bool(differs), "apart": apart})
        return {"a": self.card(a), "b": self.card(b), "fields": fields}

    def _apart(self, a: int, b: int, j: int) -> float | None:
        """By how many standard deviations two numbers differ; None if one is missing."""
        X = self.points.X
        apart = abs(float(X[a, j] - X[b, j]) / float(self._summary.scale[j]))
        return round(apart, 2) if np.isfinite(apart) else None

    def picture(self, row: int) -> Path | None:
        """File with the picture of a point; None if the folder has none."""
        if self.picture_column is None:
            return None
        name = str(self.points.texts[self.picture_column][row])
        try:
            file = (self.folder / name).resolve()  # resolves symbolic links, so that none leads outside
            is_inside = file.is_relative_to(self.folder) and file.is_file()
        except (OSError, ValueError, RuntimeError):  # too long, a zero byte, a cycle of links
            return None
        return file if is_inside and file.suffix.lower() in PICTURES else None

    def places(self, labels: Ints | None = None) -> tuple[Floats, list[str]]:
        """Coordinates of all points on a map, shape (2, n_samples), and names of its axes; see `plane`."""
        X, columns = self.points.without_codes
        places, axes = plane(X, columns, self._plain_summary, labels=labels)
        return places.T, axes

    @cached_property
    def _plain_summary(self) -> Summary:
        X, _ = self.points.without_codes
        return self._summary if X is self.points.X else summarise(X)


def _are_pictures(values: Any) -> bool:
    names = [value for value in values if value]
    return bool(names) and all(Path(name).suffix.lower() in PICTURES for name in names)
