"""Scales columns to unit variance, in memory or block by block; optionally with long tails compressed.

Many columns become principal components: a mixture has too many covariances otherwise.

Amounts, sizes and concentrations often have a few values far from all others, which stretch a Gaussian and hide what is
close together. Such a column is compressed ("calmed") by asinh, which is linear around the median and logarithmic far
from it. But a narrow class inside a wide one is best seen without this, so the search looks at the points in both ways.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.random import RandomState

from linkmix import native
from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.data.blocks import Table, take
from linkmix.data.dependence import unrelated
from linkmix.data.summary import summarise

MOST_ROWS = 10_000
"""Skewness and dependence are measured on at most this many rows, evenly spaced."""
PLAIN, CALM, COMPONENTS = "plain", "calm", "components"
"""Names of the ways: as it is, with long tails compressed, and principal components of many columns."""


@dataclass(frozen=True)
class ScalingSettings:
    """Constants of the ways in which the search looks at points. They were measured as those of `SearchSettings`.

    Attributes
    ----------
    skewed : float
        Skewness, to either side, from which on a column has a long tail. Half .667, twice .672.
    enough_skewed : float
        Share of columns with long tails from which on candidates also see these tails calmed. Half .673, twice .671.
    even, alike : float
        Columns vary on one scale if at least this share of them, and this number, do. Half .673, twice .673 for both.
    most_columns : int
        With more columns than this, candidates see their principal components instead. On digits (60 columns that
        vary; 25, 100 and 200 links, draws 10 to 12) components give .796 .850 .873 and the columns .758 .831 .836, in
        four times the time; on sonar (60 columns; 50, 100 and 200 links, draws 14 to 23) .133 .516 .864 and .125 .409
        .884. With fewer columns components lose: ionosphere (33; 25, 100 and 200 links, draws 10 to 13) .710 .737 .795
        against .708 .740 .840, breast cancer (30) .797 .832 .867 against .855 .877 .919.
    n_components : int
        Number of principal components, of which noise is left out as it is among columns. On 1000 images of 784 pixels
        a fit takes 1.0 to 2.4 times as long as on components that are passed in, and is no worse (25, 100 and 200
        links, draws 10 and 11).
    unrelated : float
        Probability of taking a column of noise for one that depends on others. Of 50 columns of noise in the sixteen
        sets of docs/fewest-links.md (draws 0 and 1; not Haberman, where no two columns depend on each other), .9 are
        kept on average with .01, .1 with .003, none with .001. None of the 309 columns of these sets is left out.
    told : float
        Probability of taking a column of noise for one by which must-linked rows are closer than cannot-linked ones.
        Not varied: it brings back a column that tells classes apart alone.
    lumps : float
        Share of the variance between the two sides of a threshold from which on a column is not noise: .75 for a
        uniform column, 1 for two values. Not varied.
    enough_rows : int
        With fewer rows, no column is taken for noise. On 100 rows of each set 11 of the 300 columns are left out, on
        50 rows 43 would be.
    most_related : int
        With more columns, none is taken for noise. Not varied: it limits the time to 1.7 s.
    """

    skewed: float = 1.0
    enough_skewed: float = 0.15
    even: float = 0.25
    alike: float = 1.2
    most_columns: int = 50
    n_components: int = 20
    unrelated: float = 0.003
    told: float = 0.01
    lumps: float = 0.8
    most_related: int = 1000
    enough_rows: int = 100


@dataclass(frozen=True, eq=False)
class Scaling:
    """How columns are scaled: where `width` is not 0 by asinh((x - middle) / width) first, then (x - center) / scale.

    Attributes
    ----------
    center, scale : ndarray of shape (n_features,)
        A scale of 0 marks a column left out.
    middle, width : ndarray of shape (n_features,)
        A width of 0 marks a column that is not compressed.
    components : ndarray of shape (n_components, n_features) or None
        Combinations of the scaled columns, orthogonal to each other and of unit variance, that take their place. A
        missing value then counts as the mean of its column.
    noise : float
        Variance of the scaled columns in each direction that the components leave out.
    n_codes : int
        Number of columns at the end that hold codes of categories. These stay as they are: their center is 0 and their
        scale 1, and they are in no component.

    Examples
    --------
    >>> import numpy as np
    >>> one, zero = np.ones(1), np.zeros(1)
    >>> Scaling(zero, one, zero, one)(np.array([[0.0], [1e6]])).ravel().round(1).tolist()
    [0.0, 14.5]
    """

    center: Floats
    scale: Floats
    middle: Floats
    width: Floats
    components: Floats | None = None
    noise: float = 0.0
    n_codes: int = 0

    @classmethod
    def plain(cls, center: Floats, scale: Floats, n_codes: int = 0) -> "Scaling":
        """Scaling without compressed tails."""
        n = len(center) - n_codes
        center, scale = np.append(center[:n], np.zeros(n_codes)), np.append(scale[:n], np.ones(n_codes))
        return cls(center, scale, np.zeros_like(center), np.zeros_like(center), n_codes=n_codes)

    @property
    def numbers(self) -> "Scaling":
        """The same for the columns of numbers alone."""
        if not self.n_codes:
            return self
        n = len(self.center) - self.n_codes
        center, scale, middle, width = (one[:n] for one in (self.center, self.scale, self.middle, self.width))
        return Scaling(center, scale, middle, width, self.components, self.noise)

    def __call__(self, X: Array) -> Floats:
        """Rows of scaled columns, or of their components; codes stay as they are."""
        if self.n_codes and self.components is not None:
            n = X.shape[1] - self.n_codes
            return np.concatenate([self.numbers(X[:, :n]), X[:, n:]], axis=1)
        Z = self._columns(X)
        if self.components is None:
            return Z
        nothing = np.isnan(Z).all(axis=1)
        found = np.nan_to_num(Z, copy=False) @ self.components[:, self.scale > 0].T
        found[nothing] = np.nan  # of which nothing is known
        return np.asarray(found)

    def without(self, left_out: Array) -> "Scaling":
        """The same with fewer components; the others join what components leave out.

        Parameters
        ----------
        left_out : ndarray of bool, shape (n_components + n_codes,)
            Components to leave out; codes stay.

        Returns
        -------
        Scaling

        Examples
        --------
        >>> zeros, components = np.zeros(3), np.array([[0.5, 0.0, 0.0], [0.0, 1.0, 0.0]])
        >>> scaling = Scaling(zeros, np.ones(3), zeros, zeros, components, 0.2).without(np.array([False, True]))
        >>> scaling.components.tolist(), scaling.noise
        ([[0.5, 0.0, 0.0]], 0.6)
        """
        if self.components is None or not left_out.any():
            return self
        kept = ~left_out[: len(self.components)]
        variance = 1 / np.square(self.components[~kept]).sum(axis=1)
        n_before = np.count_nonzero(self.numbers.scale) - len(kept)
        noise = (self.noise * n_before + variance.sum()) / (n_before + len(variance))
        return replace(self, components=self.components[kept], noise=float(noise))

    def on_one_scale(self, X: Array) -> Floats:
        """Rows in which distances are those of the columns as they came: these, or components by how much they vary."""
        if self.components is None:
            return np.asarray(X[:, self.scale > 0])
        length = np.linalg.norm(self.components, axis=1)
        return np.asarray(self(X) / np.append(length, np.ones(self.n_codes)))

    def _columns(self, X: Array) -> Floats:
        used = self.scale > 0
        Z = np.array(X if used.all() else X[:, used], dtype=np.float64)  # columns are picked slowly
        calm = self.width[used] > 0
        if calm.any():
            Z[:, calm] = np.arcsinh((Z[:, calm] - self.middle[used][calm]) / self.width[used][calm])
        Z -= self.center[used]
        Z /= self.scale[used]
        return Z

    def of(self, points: Array | Table) -> Floats | Table:
        """Points in memory, or a table, scaled."""
        return points.through(self) if isinstance(points, Table) else self(points)

    def unscaled(self, components: native.Elliptical) -> tuple[native.Elliptical, native.Columns, float]:
        """Components of scaled rows as components of the rows themselves, apart from compressed tails.

        Returns
        -------
        components : Elliptical
            The same densities, in the units of the rows.
        columns : Columns
            Which columns are used, and which of these are compressed.
        log_slope : float
            What is added to log-densities for the widths of compressed columns.
        """
        used = self.scale > 0
        center, scale, width = self.center[used], self.scale[used], self.width[used]
        compressed = np.flatnonzero(width)
        form, whiteners, variances = components.form, components.whiteners, components.variances
        if form in ("full", "tied"):
            whiteners = whiteners / scale[:, None]
        else:
            whiteners = whiteners.reshape(len(components.means), -1) / scale
            form = "diag"
        if variances is not None:
            variances = variances * scale**2
        means = center + scale * components.means
        columns = native.Columns(
            None if used.all() else np.flatnonzero(used), compressed, self.middle[used][compressed], width[compressed]
        )
        unscaled = native.Elliptical(form, means, whiteners, variances, components.degrees)
        return unscaled, columns, -float(np.log(width[compressed]).sum())

    def plane(self, mean: Floats, covariance: Floats, axes: tuple[int, int]) -> tuple[Floats, Floats]:
        """Mean (2,) and covariance (2, 2) of two columns, from those of scaled rows; tails stay compressed.

        Examples
        --------
        >>> scaling = Scaling.plain(np.array([5.0, 1.0, 7.0]), np.array([2.0, 0.0, 3.0]))
        >>> mean, covariance = scaling.plane(np.array([1.0, -1.0]), np.eye(2), (2, 0))
        >>> mean.tolist(), covariance.tolist()
        ([4.0, 7.0], [[9.0, 0.0], [0.0, 4.0]])
        """
        used = self.scale > 0
        if self.components is not None:
            rows = self.components[:, used]
            length = np.linalg.norm(rows, axis=1)
            back, across = rows.T / length**2, rows.T / length
            noise = self.noise * (np.eye(len(back)) - across @ across.T)
            mean, covariance = back @ mean, back @ covariance @ back.T + noise
        pick = np.zeros((2, len(mean)))  # a column that was left out does not vary
        for row, column in enumerate(axes):
            if used[column]:
                pick[row, np.count_nonzero(used[:column])] = self.scale[column]
        return self.center[list(axes)] + pick @ mean, pick @ covariance @ pick.T

    def stretched(self, values: Floats, axes: tuple[int, int]) -> Floats:
        """Points (n, 2) of two columns, with compressed tails as long as they were."""
        width, middle = self.width[list(axes)], self.middle[list(axes)]
        with np.errstate(over="ignore"):
            return np.where(width > 0, middle + width * np.sinh(np.where(width > 0, values, 0.0)), values)

    def back(self, Z: Array, random: RandomState) -> Floats:
        """Rows in their own units that scale to these: the inverse, up to what scaling leaves out.

        Columns that were left out have their centre. What components leave out is drawn: Gaussian noise, the same in
        all directions.

        Examples
        --------
        >>> one, zero = np.ones(1), np.zeros(1)
        >>> scaling = Scaling(zero + 2, one * 3, zero + 1, one)
        >>> scaling.back(scaling(np.array([[0.5], [1e6]])), np.random.RandomState(0)).ravel().round(6).tolist()
        [0.5, 1000000.0]
        """
        if self.n_codes and self.components is not None:
            n = len(self.components)
            return np.concatenate([self.numbers.back(Z[:, :n], random), Z[:, n:]], axis=1)
        used = self.scale > 0
        if self.components is not None:
            rows = self.components[:, used]
            length = np.linalg.norm(rows, axis=1)
            across = rows / length[:, None]
            left = random.normal(scale=np.sqrt(self.noise), size=(len(Z), rows.shape[1]))
            Z = (Z / length) @ across + left - left @ across.T @ across
        X = np.repeat(self.center[None], len(Z), axis=0)
        X[:, used] += self.scale[used] * Z
        calm = used & (self.width > 0)
        with np.errstate(over="ignore"):
            X[:, calm] = self.middle[calm] + self.width[calm] * np.sinh(X[:, calm])
        return X

    def log_slope(self, X: Array) -> Floats:
        """Log-determinant of the Jacobian at each row; only known values count.

        With components, also the log-density of what these leave of the row: Gaussian, the same in all directions.
        """
        if self.n_codes:
            return self.numbers.log_slope(X[:, : X.shape[1] - self.n_codes])
        used, calm = self.scale > 0, self.width > 0
        slope = -(~np.isnan(X[:, used]) @ np.log(self.scale[used]))
        if calm.any():
            far = (X[:, calm] - self.middle[calm]) / self.width[calm]
            slope -= np.nansum(np.log(self.width[calm]) + 0.5 * np.log1p(far**2), axis=1)
        if self.components is not None:
            length = np.linalg.norm(self.components, axis=1)
            Z = self._columns(X)
            n_left = np.maximum(np.count_nonzero(~np.isnan(Z), axis=1) - len(length), 0)
            left = np.nansum(Z**2, axis=1) - np.nansum((self(X) / length) ** 2, axis=1)
            slope += np.log(length).sum() - 0.5 * (n_left * np.log(2 * np.pi * self.noise) + left / self.noise)
        return np.asarray(slope)


def unrelated_columns(
    points: Floats | Table, settings: ScalingSettings, n_codes: int = 0, scaling: Scaling | None = None
) -> Array:
    """Which columns seem to be noise, from the points alone: see `unrelated`. Codes of categories are never noise.

    Parameters
    ----------
    points : ndarray or Table
        Checked points.
    settings : ScalingSettings
        When there is enough to go by, and what noise is.
    n_codes : int
        Number of columns at the end that hold codes of categories.
    scaling : Scaling, optional
        How the points are scaled first; then its components are judged.

    Returns
    -------
    ndarray of bool, shape (n_features,)
    """
    n, d = points.shape
    if scaling is not None and scaling.components is not None:
        d = len(scaling.components) + n_codes
    found = np.zeros(d, dtype=bool)
    if n >= settings.enough_rows and n_codes < d <= settings.most_related:
        some = take(points, _evenly(n))
        some = some if scaling is None else scaling(some)
        numbers, codes = some[:, : d - n_codes], some[:, d - n_codes :]
        found[: d - n_codes] = unrelated(numbers, settings.unrelated, settings.lumps, codes)
    return found


def scalings(
    points: Floats | Table, settings: ScalingSettings, n_codes: int = 0, left_out: Array | None = None
) -> dict[str, Scaling]:
    """The ways in which the search looks at points: plain, and with long tails compressed if enough columns have one.

    Many columns are looked at by their principal components alone. Codes of categories are not touched.

    Parameters
    ----------
    points : ndarray or Table
        Checked points.
    settings : ScalingSettings
        What a long tail is, and what many columns are.
    n_codes : int
        Number of columns at the end that hold codes of categories.
    left_out : ndarray of bool, shape (n_features,), optional
        Columns to leave out, beside constant ones.

    Returns
    -------
    dict of str to Scaling
    """
    found = points.summary if isinstance(points, Table) else summarise(points)
    n_numbers = len(found.mean) - n_codes
    nothing = found.constant.all() and not n_codes
    plain = Scaling.plain(found.mean, np.ones_like(found.spread) if nothing else found.spread, n_codes)
    if not n_numbers:
        return {PLAIN: plain}
    if left_out is not None and left_out.any():
        plain = replace(plain, scale=np.where(left_out, 0.0, plain.scale))
    some = _evenly(len(points))
    n_used = np.count_nonzero(plain.scale[:n_numbers])
    if n_used > settings.most_columns and len(points) > settings.n_components:
        numbers = _components(take(points, some)[:, :n_numbers], plain.numbers, settings)
        return {COMPONENTS: _with_codes(numbers, n_codes)}
    calm = _with_codes(
        _calmed(take(points, some)[:, :n_numbers], plain.numbers, settings.skewed, evenly=n_codes > 0), n_codes
    )
    n_long = np.count_nonzero(calm.width)
    return {PLAIN: plain, CALM: calm} if n_long >= max(1, settings.enough_skewed * n_used) else {PLAIN: plain}


def _with_codes(numbers: Scaling, n_codes: int) -> Scaling:
    """The scaling of columns of numbers, followed by columns of codes."""
    if not n_codes:
        return numbers
    zeros = np.zeros(n_codes)
    center, middle, width = (np.append(one, zeros) for one in (numbers.center, numbers.middle, numbers.width))
    scale = np.append(numbers.scale, np.ones(n_codes))
    return Scaling(center, scale, middle, width, numbers.components, numbers.noise, n_codes)


def _evenly(n_rows: int) -> Ints:
    """Some rows, evenly spaced."""
    return np.unique(np.linspace(0, n_rows - 1, min(n_rows, MOST_ROWS)).astype(np.int64))


def vary_alike(spread: Floats, settings: ScalingSettings) -> bool:
    """Whether columns with these standard deviations vary on one scale, rather than a few of them most."""
    variance = (spread / (spread.max() or 1.0)) ** 2
    n_alike = variance.sum() ** 2 / max((variance**2).sum(), np.finfo(np.float64).tiny)
    return bool(n_alike >= max(settings.even * len(variance), settings.alike))


def _components(some: Floats, plain: Scaling, settings: ScalingSettings) -> Scaling:
    """Principal components of some rows: of the columns as they came if these vary alike, such as pixels."""
    from sklearn.decomposition import PCA  # 0.1 s, so not before it is needed

    used = plain.scale > 0
    if vary_alike(plain.scale[used], settings):
        plain = Scaling.plain(plain.center, np.where(used, np.sqrt(np.mean(plain.scale[used] ** 2)), 0.0))
    found = PCA(settings.n_components, svd_solver="arpack", random_state=0).fit(np.nan_to_num(plain(some)))
    spread = np.sqrt(found.explained_variance_)
    enough = spread > 1e-8 * spread[0]
    components = np.zeros((np.count_nonzero(enough), len(used)))
    components[:, used] = found.components_[enough] / spread[enough, None]
    noise = max(float(found.noise_variance_), 1e-8 * float(spread[0] ** 2))
    return replace(plain, components=components, noise=noise)


def _calmed(some: Floats, plain: Scaling, skewed: float, *, evenly: bool = False) -> Scaling:
    """The same with long tails compressed, judged by some rows.

    Beside categories, which have no tails, numbers are compressed until both sides are alike: what is left of a tail
    would make classes of its own.
    """
    far = np.where(plain.scale > 0, some - plain.center, 0.0) / np.where(plain.scale > 0, plain.scale, 1.0)
    center, scale, middle, width = (array.copy() for array in (plain.center, plain.scale, plain.middle, plain.width))
    for j in np.flatnonzero(np.abs(np.nanmean(far**3, axis=0)) > skewed):
        values = some[:, j][~np.isnan(some[:, j])]
        median = np.median(values)
        deviation = 1.4826 * np.median(np.abs(values - median))  # equals the standard deviation of a normal column
        if deviation == 0:  # most rows share one value, such as empty pixels: no tail
            continue
        middle[j], width[j] = _least_skewed(values) if evenly else (median, deviation)
        calmed = np.arcsinh((values - middle[j]) / width[j])
        center[j], scale[j] = calmed.mean(), calmed.std()
    return Scaling(center, scale, middle, width)


def _least_skewed(values: Floats) -> tuple[float, float]:
    """Where the short tail of a column ends, and the width with which asinh makes both tails most alike."""
    end = float(values.min() if _skewness(values) > 0 else values.max())
    typical = float(np.median(np.abs(values - end)))
    widths = typical * 2.0 ** np.arange(-8, 5)
    return end, float(min(widths, key=lambda width: abs(_skewness(np.arcsinh((values - end) / width)))))


def _skewness(values: Floats) -> float:
    far = values - values.mean()
    return float(np.mean(far**3) / np.mean(far**2) ** 1.5)
