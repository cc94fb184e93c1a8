"""The labelling page in a notebook: the same session in a frame, and its results as objects."""

import copy
import secrets
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Self

import numpy as np

from linkmix.app.label.server import InThread
from linkmix.app.label.session import Session
from linkmix.app.results import Origin
from linkmix.basics.arrays import Array
from linkmix.columns import is_table
from linkmix.links import Links
from linkmix.mixture.calibration import Quality
from linkmix.queries.audit import N_QUESTIONS
from linkmix.search import AutoLinkMixture
from linkmix.tables import Points, read_points


@dataclass(frozen=True, eq=False)
class Labels:
    """What was found on the page.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,)
        Class of each row: names if some classes have one, otherwise numbers; -1 for no class.
    confidence : ndarray of shape (n_samples,)
        Calibrated probability of each label, from the row alone.
    model : AutoLinkMixture
        The model, for new rows.
    links : Links
        The answers, as links between rows.
    quality : Quality or None
        How good the labels are, if a check on the page has measured it.
    folder : Path
        The same in files.
    sentences : tuple of str
        How good it is, and where it is, in words.
    """

    labels: Array
    confidence: Array
    model: AutoLinkMixture
    links: Links
    quality: Quality | None
    folder: Path
    sentences: tuple[str, ...]


class Labelling:
    """A labelling page that runs beside a notebook. As the last value of a cell it shows itself.

    Made by `label`. The page lives until `close`, or until the notebook ends; everything said is on the disk, and the
    same call continues where it was.

    Attributes
    ----------
    address : str
        Address of the page, with its token: it can be opened in a browser as well.
    token : str
        The token, which all requests need.
    session : Session
    """

    def __init__(self, session: Session, title: str, height: int, named: bool) -> None:
        self.session, self._height, self._named = session, height, named
        self._server = InThread(session, title)
        self.address, self.token = self._server.address, self._server.token

    def _repr_html_(self) -> str:
        """The page in a frame."""
        return (
            f'<iframe src="{escape(self.address)}" title="linkmix label" width="100%" height="{self._height}" '
            'style="border: 0"></iframe>'
        )

    def result(self) -> Labels:
        """Finish: wait for a model that knows all answers, write the results and return them.

        Returns
        -------
        Labels

        Raises
        ------
        NotPossible
            If a check is under way.
        """
        done = self.session.finish(secrets.token_hex(16))
        found = self.session.finisher.result
        assert found is not None
        names = np.array([*found.names, "-1"])[found.labels] if found.names else found.labels.copy()
        confidence = found.confidence_of(np.arange(len(found.labels)))
        assert confidence is not None
        model = copy.copy(found.model)
        if self._named and found.points.recipe is None:  # as if it had been fitted to the data frame
            model.feature_names_in_ = np.array(found.points.columns, dtype=object)
        return Labels(
            names,
            confidence,
            model,
            found.links,
            found.quality,
            Path(done["folder"]),
            tuple(done["sentences"]),
        )

    def close(self) -> None:
        """Stop the page."""
        self._server.close()

    def __enter__(self) -> Self:
        """Enter the context."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop the page."""
        self.close()


def label(
    table: Any,
    n_classes: int | None = None,
    *,
    id: str | None = None,
    kinds: Mapping[str, str] | None = None,
    links: str | Path = "linkmix-links.csv",
    out: str | Path = "linkmix-out",
    pictures: str | Path = ".",
    wrong: float = 0.0,
    noise: bool = False,
    n_audit: int = N_QUESTIONS,
    seed: int = 0,
    height: int = 720,
) -> Labelling:
    """Show the labelling page in a notebook.

    Parameters
    ----------
    table : data frame of pandas, polars or pyarrow, array of shape (n_samples, n_features), path or Points
        The points.
    n_classes : int, optional
        Number of classes; without it, classes appear as answers show them.
    id : str, optional
        Column with the ids. By default rows are numbered from 0, unless a file has a column ``id``.
    kinds : mapping of str to str, optional
        What some columns are, as in `AutoLinkMixture`.
    links : path
        File of links: it is read if it exists, and answers are added to it. The journal lies beside it.
    out : path
        Folder for the results.
    pictures : path
        Folder with the pictures that the table names.
    wrong : float, default=0.0
        Share of answers that are expected to be wrong.
    noise : bool, default=False
        Whether points may belong to no class.
    n_audit : int, default=20
        Number of random questions that tell how good the result is.
    seed : int, default=0
        Seed of the questions.
    height : int, default=720
        Height of the frame.

    Returns
    -------
    Labelling
        Shows itself as the last value of a cell; its `result` gives labels, model and links.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> X = np.concatenate([np.random.default_rng(0).normal(size=(20, 2)) + 6 * k for k in range(3)])
    >>> page = label(X, 3, links=folder / "links.csv", out=folder / "out")
    >>> found = page.result()
    >>> page.close()
    >>> found.labels.shape, found.links.empty, found.model.n_classes
    ((60,), True, 3)
    """
    points, path = _points(table, id, kinds)
    origin = Origin(path, Path(links), ("--id", id) if id else (), typed="linkmix.app.label.jupyter.label")
    options: dict[str, Any] = {"wrong": wrong, "noise": noise, "n_audit": n_audit, "seed": seed}
    session = Session(points, n_classes, links, pictures, out=out, origin=origin, **options)
    try:
        return Labelling(session, "table" if path is None else path.name, height, is_table(table))
    except BaseException:
        session.close()
        raise


def _points(table: Any, id: str | None, kinds: Mapping[str, str] | None) -> tuple[Points, Path | None]:
    """Points from whatever holds them, and the file if there is one; as a file of the same table gives them."""
    if isinstance(table, Points):
        return table, None
    if isinstance(table, str | Path):
        return read_points(table, id, kinds=kinds), Path(table)
    import narwhals as nw
    import pyarrow as pa
    from pyarrow import parquet

    if is_table(table):
        arrow = nw.from_native(table, eager_only=True).to_arrow()
    else:
        X = np.asarray(table, dtype=np.float64)
        if X.ndim != 2:
            raise ValueError(f"table has shape {X.shape}: give one row for each point and one column for each feature")
        arrow = pa.table({f"column{j + 1}": column for j, column in enumerate(X.T)})
    with tempfile.TemporaryDirectory() as folder:
        parquet.write_table(arrow, Path(folder) / "table.parquet")
        return read_points(Path(folder) / "table.parquet", id, kinds=kinds), None
