"""Every tuned constant of the search, in one place, beside what was measured about it.

`SearchSettings` is part of a `Budget`, so each constant can be varied by name:
``python -m benchmarks.fewest_links settings --only structure``.

The constants were chosen on draws 1 to 4 of the links on the eleven data sets of docs/fewest-links.md, with 10, 50 and
200 links. "Half" and "twice" below are the mean adjusted Rand index of `predict` with half and twice the value, where
the value itself gives .673: the same eleven sets, 25 links, draws 0 and 1, small budget. Differences of less than .01
are within the noise of two draws.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class SearchSettings:
    """Constants of the search.

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
    most_agreement : float
        Nats that one unit of agreement is worth at most. Half .673, twice .673.
    neighbours : int
        Neighbours of each point in the graphs by which structure is measured. Half .674, twice .669.
    even, alike : float
        Raw columns give a graph of their own if at least this share of them, and this number, vary on one scale. Half
        .673, twice .673 for both.
    first_steps : int
        EM steps after which candidates are compared for the first time. Half .671 in two thirds of the time, twice
        .674.
    hopeless : float
        Nats by which a candidate may then be behind the best one and still go on. Half .669, twice .672.
    kept : int
        Number of candidates that go on in any case. Half .673, twice .673.
    more_steps : int
        EM steps after that. Half .638, twice .676 in a third more time. Many more lead away from the user's classes: a
        wrong model is most likely elsewhere.
    best : int
        Number of the best candidates whose mean is the start of the second round. Half .657, twice .672.
    points_per_cluster : int
        Fewest points for each cluster, for shapes with many clusters. Half .673, twice .673.
    reg_covar : float
        Added to the variances of columns with unit variance. Half .671, twice .677.
    last_steps : int
        EM steps of the winner on all rows, if the search saw only a sample of them; otherwise one. Not varied:
        all sets of that run are searched as a whole.
    about_as_well : float
        With ``n_classes="auto"``: nats of the log-probability of the links by which a smaller number of classes may be
        behind the best one. On iris and wine (25 links, two draws), which other sets have to confirm: half .900 and
        0.25 classes off, as it is .818 and 1.25, twice the same.
    most_classes : int
        With ``n_classes="auto"``: largest number of classes that is tried. Not varied: it is a limit.
    skewed : float
        Skewness, to either side, from which on a column has a long tail. Half .667, twice .672.
    enough_skewed : float
        Share of columns with long tails from which on candidates also see these tails calmed. Half .673, twice .671.
    """

    least: float = 0.05
    temperature: float = 2.0
    doubt: float = 0.4
    structure: float = 50.0
    agreement: float = 1.0
    most_agreement: float = 50.0
    neighbours: int = 10
    even: float = 0.25
    alike: float = 1.2
    first_steps: int = 5
    hopeless: float = 12.0
    kept: int = 8
    more_steps: int = 25
    best: int = 5
    points_per_cluster: int = 3
    reg_covar: float = 1e-4
    last_steps: int = 10
    about_as_well: float = 3.0
    most_classes: int = 10
    skewed: float = 1.0
    enough_skewed: float = 0.15


SETTINGS = SearchSettings()
"""The constants as they were tuned."""
