"""How much each column decides: its share of what a model knows about the classes."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.random import RandomState
from sklearn.utils import get_tags

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.columns.coded import Coded
from linkmix.data.blocks import take
from linkmix.search.explanation import known_after, orders_of

N_ROWS = 100
"""Rows over which the information is averaged."""
N_SETS = 1000
"""Sets of columns that are shown to the model, over all orders, where these are drawn."""
AT_ONCE = 2**21
"""Numbers that are predicted from at once."""


def column_weights(model: Any, X: Any, random_state: int = 0) -> Floats | None:
    """Share of each column in what a model knows about the class of a point.

    A model that sees some of the columns of a point gives other probabilities than one that sees all. What it knows
    from them is the expected log-probability of the class, minus that of a model that sees nothing, in nats: from 0 to
    the mutual information of columns and class. The share of a column is its Shapley value: what it adds when the
    columns become known one after another, averaged over the orders of the columns, and over the points. So columns
    with the same information share it, and a column that the model does not use has no share.

    Parameters
    ----------
    model : estimator
        Fitted, with ``predict_proba``.
    X : ndarray of shape (n_samples, n_features), Coded or table
        Points as the model takes them, such as those of the fit; some of many are used. An array may be outside memory.
    random_state : int, default=0
        Determines the points, and the orders if there are many columns.

    Returns
    -------
    ndarray of shape (n_columns,) or None
        Shares, which sum to 1; zeros if the model knows nothing. If the model was fitted to a table with columns of
        every kind, they belong to its columns in the order of ``model.recipe_.columns``. None for a model that does not
        allow missing values.

    Examples
    --------
    The first column separates the two groups, the second is the same in both.

    >>> import numpy as np
    >>> from linkmix import LinkMixture
    >>> X = np.array([[0.0, 1], [0, 2], [0.5, 3], [0.4, 1], [5, 1], [5, 2], [5.5, 3], [5.4, 1]])
    >>> model = LinkMixture(2, covariance_type="diag", random_state=0).fit(X)
    >>> column_weights(model, X).round(2).tolist()
    [1.0, 0.0]
    """
    if not get_tags(model).input_tags.allow_nan:
        return None
    recipe, predict = getattr(model, "recipe_", None), model.predict_proba
    if recipe is None:
        owner = np.arange(X.shape[1])
    else:
        names = [column.name for column in recipe.columns]
        owner = np.array([names.index(name) for name in recipe.owners])
        X = X.X if isinstance(X, Coded) else recipe(X)
        predict = partial(_of_codes, model)
    random = RandomState(random_state)
    points = np.asarray(take(X, np.sort(random.choice(len(X), min(len(X), N_ROWS), replace=False))), dtype=np.float64)
    scale = getattr(model, "scale_", None)
    used = np.unique(owner if scale is None else owner[scale > 0])
    orders = orders_of(len(used), N_SETS, random)
    known = known_after(orders)  # (n_orders, n_used + 1, n_used)
    sets, which = np.unique(known.reshape(-1, len(used)), axis=0, return_inverse=True)
    n_parts = -(-len(sets) * points.size // AT_ONCE)
    p = predict(points)
    said = np.concatenate([_said(predict, points, used, owner, some, p) for some in np.array_split(sets, n_parts)])
    path = said[which.reshape(known.shape[:2])]  # (n_orders, n_used + 1)
    gains = np.bincount(orders.ravel(), np.diff(path, axis=1).ravel(), len(used))
    shares = np.zeros(len(owner) if recipe is None else len(recipe.columns))
    shares[used] = np.maximum(gains, 0.0)
    return np.asarray(shares / max(shares.sum(), np.finfo(np.float64).tiny))


def _of_codes(model: Any, array: Floats) -> Floats:
    """Probabilities for rows that the recipe of the model has made."""
    return np.asarray(model.predict_proba(Coded(array, model.recipe_)))


def _said(
    predict: Callable[[Floats], Floats], points: Floats, used: Ints, owner: Ints, sets: Array, p: Floats
) -> Floats:
    """Expected log-probability of the class, given each of some sets of columns, in the mean over the points."""
    shown = np.ones((len(sets), int(owner.max()) + 1), dtype=bool)
    shown[:, used] = sets
    seen = np.where(shown[:, None, owner], points, np.nan)  # (n_sets, n, d)
    q = predict(seen.reshape(-1, points.shape[1])).reshape(len(sets), *p.shape)
    return np.asarray((p * np.log(np.maximum(q, 1e-12))).sum(axis=2).mean(axis=1))
