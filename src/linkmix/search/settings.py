"""Every tuned constant of the search, in one place.

`SearchSettings` is part of a `Budget`, so each constant can be varied by name:
``python -m benchmarks.fewest_links settings --only structure``.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class SearchSettings:
    """Constants of the search.

    Attributes
    ----------
    least : float
        Smallest probability that a broken link counts for: some links are wrong, and no model is right.
    temperature : float
        Nats of the log-probability of the links by which a candidate may be behind and still have a say in what the
        candidates agree on.
    doubt : float
        How many nats are added to the temperature for each link that no candidate keeps: such links may be wrong, or
        the classes overlap, and then links tell less.
    structure : float
        Nats that one unit of modularity is worth.
    agreement, most_agreement : float
        Nats that one unit of agreement is worth for each link, since links decide who has a say, and in total.
    neighbours : int
        Neighbours of each point in the graphs by which structure is measured.
    even, alike : float
        Raw columns give a graph of their own if at least this share of them, and this number, vary on one scale.
    first_steps : int
        EM steps after which candidates are compared for the first time.
    hopeless : float
        Nats by which a candidate may then be behind the best one and still go on.
    kept : int
        Number of candidates that go on in any case.
    more_steps : int
        EM steps after that. More of them lead away from the user's classes: a wrong model is most likely elsewhere.
    best : int
        Number of the best candidates whose mean is the start of the second round.
    points_per_cluster : int
        Fewest points for each cluster, for shapes with many clusters.
    reg_covar : float
        Added to the variances of columns with unit variance.
    last_steps : int
        EM steps of the winner on all rows, if the search saw only a sample of them; otherwise one.
    about_as_well : float
        With ``n_classes="auto"``: nats of the log-probability of the links by which a smaller number of classes may be
        behind the best one.
    most_classes : int
        With ``n_classes="auto"``: largest number of classes that is tried.
    skewed : float
        Skewness, to either side, from which on a column has a long tail.
    enough_skewed : float
        Share of columns with long tails from which on candidates also see these tails calmed.
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
