"""Every tuned constant of the questions, beside the evidence for it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class QuestionSettings:
    """Constants that decide which pairs are asked about, and how often.

    "The eight sets" are those of ``python -m benchmarks.questions``; its tables are in docs/questions.md. "Not varied"
    means that no other value was measured, so nothing is known about twice or half of it.

    Attributes
    ----------
    cells : int
        Cells that `cover` divides the points into, at most half as many as points. Not varied.
    new : float
        In `cover`, a row founds a neighbourhood when less prior weight than this is left on those that it may still
        belong to. Not varied.
    early : int
        Number of answers, in `cover`, during which doubt counts for more and distance for less: later the model is
        sure of itself also where it is wrong, far from any answer. No effect where answers may be wrong, since a wrong
        answer about a doubtful point goes unnoticed. Chosen on draws 0 to 9 of the eight sets; earlier versions had one
        rule throughout, first the later and then the early one. Twice and half not varied.
    early_doubt : float
        Share of mass times distance that counts where the model has no doubt, for the first `early` answers. Chosen on
        draws 0 to 9 of the eight sets, together with the power of the distance. Twice and half not varied.
    doubt : float
        The same later, and where answers may be wrong. Chosen on draws 0 to 9 of the eight sets, together with
        the power of the distance. Twice and half not varied.
    nearness : float
        In `cover`, what the nearest neighbourhood gains over a distant one, in units of the probability of being of one
        class, when neighbourhoods are put in order. Not varied.
    merge_turns : int
        Out of ten turns, those on which `cover` compares neighbourhoods as long as there are more of them than classes.
        Not varied.
    skipped_for : int
        A skipped pair may be asked again after this many answers. Not varied.
    again : float
        An answer that the model finds less probable than this is asked for again, where answers may be wrong. An
        earlier version had 0.5, its double; no figures of that were kept. Half not varied.
    most_times : int
        A pair is asked about this often at most. Not varied.
    settled : float
        Below this value of the stop signal the labels have settled: on the eight sets, 0.021 of the labels then changed
        with the next 20 answers, 0.053 on average. Twice and half not varied.
    refit_every : int
        Number of answers after which `ask` and `label` choose questions by a new model. The benchmark does the same up
        to 40 answers, then every 20. Not varied.
    random_pairs : int
        Random pairs that `uncertainty` looks at. Not varied.
    believed : float
        Confidence of an answer in a refit, where answers turn out to contradict each other.
    spread : float
        Share of a label that goes on from neighbour to neighbour, in the start that spreads the answers over a graph.
    spread_steps : int
        How often it does.

    Examples
    --------
    >>> QuestionSettings(early=80).early
    80
    """

    cells: int = 150
    new: float = 0.1
    early: int = 40
    early_doubt: float = 0.02
    doubt: float = 0.2
    nearness: float = 0.5
    merge_turns: int = 9
    skipped_for: int = 20
    again: float = 0.25
    most_times: int = 3
    settled: float = 0.03
    refit_every: int = 10
    random_pairs: int = 5000
    believed: float = 0.95
    spread: float = 0.95
    spread_steps: int = 50
