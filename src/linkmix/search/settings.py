"""Every tuned constant of the search, in one place, beside what was measured about it.

`SearchSettings` is part of a `Budget`, so each constant can be varied by name:
``python -m benchmarks.fewest_links settings --only structure``.

The constants were chosen on draws 1 to 4 of the links on the eleven data sets of docs/fewest-links.md, with 10, 50 and
200 links. "Half" and "twice" below are the mean adjusted Rand index of `predict` with half and twice the value, where
the value itself gives .673: the same eleven sets, 25 links, draws 0 and 1, small budget. Differences of less than .01
are within the noise of two draws.
"""

from dataclasses import dataclass

from linkmix.data.scaling import ScalingSettings


@dataclass(frozen=True)
class SearchSettings(ScalingSettings):
    """Constants of the search, beside those of how columns are scaled.

    Attributes
    ----------
    least : float
        Smallest probability that a broken link counts for: some links are wrong, and no model is right. Half .676,
        twice .676.
    temperature : float
        Nats of the log-probability of the links by which a candidate may be behind and still have a say in what the
        candidates agree on. Half .674, twice .663.
    doubt : float
        Nats added to the temperature for each link that no candidate keeps: such links may be wrong, or the classes
        overlap, and then links tell less. Half .673, twice .675.
    structure : float
        Nats that one unit of modularity is worth. Half .663, twice .683.
    agreement : float
        Nats that one unit of agreement is worth for each link, since links decide who has a say. Half .677, twice .663.
    most_agreement, least_agreement, agreement_alone : float
        Nats that one unit of agreement is worth at most, and at least, and without links. Half .673, twice .673 for the
        first. Without links, on fifteen sets (the eleven without COIL-20, and glass, ionosphere, letter, sonar and
        vehicle; 500 rows, two seeds), 0 nats give .413, 5 .434, 10 .461, 20 .454, 50 .452, which loses iris for one
        seed; on the nine tables of benchmarks.mixed_tables, one seed, .228 .253 .288 .357 .363 with a structure of 25.
        With ten links, on the fifteen sets, at least 10 gives .489, 20 .486 and 50 .474.
    structure_of_categories : float
        The same as `structure` for tables with categories, in which rows are neighbours for sharing rare levels.
        On the nine tables without links, with an agreement of 20 (one seed): 50 .288, 25 .357, 20, 15 and 10 .364; but
        25 gave .290 on three other seeds, where 50 with an agreement of 50 gave .342. With 25 links all are alike.
    neighbours : int
        Neighbours of each point in the graphs by which structure is measured. Half .674, twice .669.
    first_steps : int
        EM steps after which candidates are compared for the first time. Half .671 in two thirds of the time, twice
        .674.
    hopeless, kept : float, int
        Nats by which a candidate may then be behind the best one and still go on, and number of candidates that go on
        in any case. Who is given up has no say in what the best ones agree on. On draws 0 to 9, with 25, 50, 100 and
        200 links, the best of each guess and the six best alone gave .685 .700 .722 .752. In the 8 draws of these that
        were run with all candidates to their end that was .001 .005 .004 .001 more, and in the 5 with 12 nats and 8
        candidates .000 .010 .003 -.005 more.
    more_steps : int
        EM steps after that. Half .638, twice .676 in a third more time. Many more lead away from the user's classes: a
        wrong model is most likely elsewhere.
    tol : float
        Gain of the log-likelihood per row and step below which a candidate has converged before. Not varied: it saves
        time alone, since candidates that have converged stay where they are.
    best : int
        Number of the best candidates whose mean is the start of the second round. Half .657, twice .672.
    points_per_cluster : int
        Fewest points for each cluster, for shapes with many clusters. Half .673, twice .673.
    reg_covar : float
        Added to the variances of columns with unit variance. Half .671, twice .677.
    last_steps : int
        EM steps of the winner on all rows, if the search saw only a sample of them; otherwise one. Not varied:
        all sets of that run are searched as a whole.
    worth_of_points : float
        With ``n_classes="auto"``: what the log-likelihood of the points is multiplied by, after it is divided by the
        square root of their number. Chosen with the next two on 39 tables with 2 to 40 classes, half of them made, with
        0, 25 and 100 links (those of ``benchmarks.number_of_classes --sets tune``, subsets of their classes, and made
        ones of other kinds). The number is off by 1.33 on average, and by a factor of ``2 ** 0.20``. Half 1.74 and
        0.28, twice 1.44 and 0.24.
    cost_of_parameter : float
        With ``n_classes="auto"``: nats of the log-likelihood of the points that a parameter costs. AIC has 1, BIC about
        3. Half 3.34 and 0.46, twice 2.68 and 0.35.
    cost_of_classes : float
        With ``n_classes="auto"``: nats that a number of classes costs, times its logarithm. Half 1.39 and 0.22, twice
        1.71 and 0.28.
    behind, in_vain : float, int
        With ``n_classes="auto"``: larger numbers of classes are no longer tried if so many in a row are so many nats
        behind. On the same tables the score never rose again, so the same numbers are chosen in 60 % of the time.
    most_classes : int
        With ``n_classes="auto"``: largest number of classes that is tried, unless links or known labels need more. Not
        varied: it is a limit.
    around, lonely, far, most_lonely : int, float, float, float
        With ``noise=True``: a start leaves out points whose local outlier factor, by so many neighbours, is above the
        second number, or that are so many times as far from their neighbours as most points, but at most this share of
        all points. Chosen by ``benchmarks.noise_points`` on draws 0 and 1 of
        blobs, iris, thyroid and 700 rows of segment, small budget; F1 of noise with 5 and 20 % uniform and 20 %
        shuffled rows, and mean adjusted Rand index of the others: as it is .84 .64 .56 and .76; 10 neighbours .79 .42
        .50 and .74; 40 neighbours .75 .66 .38 and .72; a factor of 1.5 .79 .43 .31 and .75. On draw 0 alone .77 .56 .52
        and .73, where starts with all points gave .62 .08 .05 and .73. All this without ``far``, which on thyroid, wine
        and segment, draws 0 and 1, raises .83 .63 .55 and .75 to .81 .81 .55 and .75; 2.5 gives .78 .87 .55 and .75,
        and more false noise.
    """

    least: float = 0.05
    temperature: float = 2.0
    doubt: float = 0.4
    structure: float = 50.0
    agreement: float = 1.0
    most_agreement: float = 50.0
    least_agreement: float = 10.0
    agreement_alone: float = 20.0
    structure_of_categories: float = 15.0
    neighbours: int = 10
    first_steps: int = 5
    hopeless: float = 30.0
    kept: int = 24
    more_steps: int = 25
    tol: float = 3e-6
    best: int = 5
    points_per_cluster: int = 3
    reg_covar: float = 1e-4
    last_steps: int = 10
    worth_of_points: float = 1.0
    cost_of_parameter: float = 1.3
    cost_of_classes: float = 10.0
    behind: float = 10.0
    in_vain: int = 3
    most_classes: int = 50
    around: int = 20
    lonely: float = 1.3
    far: float = 4.0
    most_lonely: float = 0.4


SETTINGS = SearchSettings()
"""The constants as they were tuned."""
