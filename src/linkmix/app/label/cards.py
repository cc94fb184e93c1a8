"""What a page shows of points: their fields side by side, pictures, and places on a map."""

from pathlib import Path
from typing import Any

import numpy as np

from linkmix.basics.arrays import Floats
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
"""Kinds of pictures by the ending of the file. None of them can hold a script, as SVG can."""
_SAMPLE = 100_000
"""Rows that the axes of the map are found from."""


class Cards:
    """Fields, pictures and places of points.

    Parameters
    ----------
    points : Points
        The table. A column of texts that all end like a picture (see `PICTURES`) names pictures.
    folder : path
        Where the pictures are. Nothing outside of it is ever read.

    Attributes
    ----------
    picture_column : str or None
        Name of the column with pictures.

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
        spread = np.nanstd(points.X, axis=0)
        self._spread = np.where(spread > 0, spread, 1.0)  # (d,)

    def card(self, row: int) -> dict[str, Any]:
        """A point: its row, its id, and whether there is a picture of it."""
        return {"row": row, "id": str(self.points.ids[row]), "picture": self.picture(row) is not None}

    def pair(self, a: int, b: int) -> dict[str, Any]:
        """Two points side by side.

        Parameters
        ----------
        a, b : int
            Their rows.

        Returns
        -------
        dict
            Both cards, and all fields with whether they differ; for numbers also by how many standard deviations.
        """
        fields = []
        for name, values in self.points.texts.items():
            if name != self.picture_column:
                one, other = str(values[a]), str(values[b])
                fields.append({"name": name, "a": one, "b": other, "differs": one != other, "apart": None})
        X = self.points.X
        for j, name in enumerate(self.points.columns):
            apart = abs(float(X[a, j] - X[b, j]) / float(self._spread[j]))
            known = bool(np.isfinite(apart))
            differs = X[a, j] != X[b, j] if known else bool(np.isnan(X[a, j]) != np.isnan(X[b, j]))
            fields.append(
                {
                    "name": name,
                    "a": _number(X[a, j]),
                    "b": _number(X[b, j]),
                    "differs": bool(differs),
                    "apart": round(apart, 2) if known else None,
                }
            )
        return {"a": self.card(a), "b": self.card(b), "fields": fields}

    def picture(self, row: int) -> Path | None:
        """File with the picture of a point; None if there is none in the folder."""
        if self.picture_column is None:
            return None
        name = str(self.points.texts[self.picture_column][row])
        try:
            file = (self.folder / name).resolve()  # follows links, so that none leads out of the folder
            is_inside = file.is_relative_to(self.folder) and file.is_file()
        except (OSError, ValueError, RuntimeError):  # a name too long, with a zero byte, links in a circle
            return None
        return file if is_inside and file.suffix.lower() in PICTURES else None

    def places(self) -> tuple[Floats, list[str]]:
        """Where points are on a map, shape (2, n_samples), and what its axes are.

        One or two columns are the axes as they are; of more columns, the first two principal components.
        """
        X, columns = self.points.X, self.points.columns
        if len(columns) == 1:
            shifts = np.random.RandomState(0).uniform(size=len(X))
            return np.stack([X[:, 0], shifts]), [columns[0], "(spread at random)"]
        if len(columns) == 2:
            return np.ascontiguousarray(X.T), list(columns)
        Z = np.nan_to_num((X - np.nanmean(X, axis=0)) / self._spread)
        step = -(-len(Z) // _SAMPLE)
        _, _, axes = np.linalg.svd(Z[::step] - Z[::step].mean(axis=0), full_matrices=False)
        axes = axes[:2] * np.sign(axes[:2, np.abs(axes[:2]).argmax(axis=1)].diagonal())[:, None]
        return np.ascontiguousarray((Z @ axes.T).T), ["principal component 1", "principal component 2"]


def _are_pictures(values: Any) -> bool:
    names = [value for value in values if value]
    return bool(names) and all(Path(name).suffix.lower() in PICTURES for name in names)


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.6g}"
