"""Every tuned constant of the questions, beside what was measured about it.

Each can be varied by name: ``python -m benchmarks.questions --vary early,cells``.

"Half" and "twice" below are the mean adjusted Rand index of `predict` after 40 and after 80 questions with half and
twice the value, where the value itself gives .801 and .877: thyroid, wine, segment and digits, draws 0 and 1, right
answers. Eight runs are few: differences of less than .02 are noise. "The eight sets" are those of docs/questions.md.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class QuestionSettings:
    """Constants that decide which pairs are asked about, and how often.

    Attributes
    ----------
    cells : int
        Cells that `cover` divides the points into, at most half as many as points. Half .791 and .862, twice .772 and
        .857.
    new : float
        In `cover`, a row founds a neighbourhood when less prior weight than this is left on those that it may still
        belong to. Half .801 and .873, twice .809 and .877.
    early : int
        Number of answers, in `cover`, during which doubt counts for more and distance for less: later the model is
        sure of itself also where it is wrong, far from any answer. No effect where answers may be wrong, since a wrong
        answer about a doubtful point goes unnoticed. Chosen on draws 0 to 9 of the eight sets. Half .815 and .839,
        twice .801 and .880.
    early_doubt : float
        Share of mass times distance that counts where the model has no doubt, for the first `early` answers. Chosen on
        draws 0 to 9 of the eight sets. Half .805 and .877, twice .832 and .863.
    doubt : float
        The same later, and where answers may be wrong. Chosen on draws 0 to 9 of the eight sets. Half .801 and .877,
        twice .801 and .879.
    nearness : float
        In `cover`, what the nearest neighbourhood gains over a distant one, in units of the probability of being of one
        class, when neighbourhoods are put in order. Half .816 and .881, twice .794 and .847.
    merge_turns : int
        Out of ten turns, those on which `cover` compares neighbourhoods as long as there are more of them than classes.
        Half .809 and .842; all turns .831 and .878 in six runs, where nine give .824 and .900.
    skipped_for : int
        A skipped pair may be asked again after this many answers. Not varied: simulated people skip nothing.
    again : float
        An answer that the model finds less probable than this is asked for again, where answers may be wrong. Thyroid
        and wine, two draws, one answer in ten wrong, after 40 and 80 questions: .877 and .877, half .900 and .895,
        twice .891 and .829.
    most_times : int
        A pair is asked about this often at most. As for `again`: half (once) .817 and .849, twice .878 and .877.
    weighty : int
        Where answers may be wrong, a single answer is asked for again if so many rows or more are held together by it
        alone. After 160 questions, one answer in ten wrong, draws 0 and 1: pendigits .722 and .881, segment .605 and
        .705; without .739 and .881, .557 and .666. Thyroid, draws 0, 1 and 4 to 7: .867, without .864, with 8 (draws 0
        and 1) .782 for .879.
    stay : float
        Nats by which another fit must explain answers and structure better to replace the last one. By what 128 refits
        of thyroid, iris, wine, segment and MNIST 4567 in ten dimensions (draws 0 and 1) offered: with right answers,
        the mean adjusted Rand index after a refit is .898 and six refits lower it by more than .03 if the last fit does
        not compete; with 0 nats .900 and four, with 2 .899 and two, with 8 .893 and one. With one answer in ten wrong
        .796 and four, .811 and none, .811 and none, .803 and none.
    trust : float
        Where answers may be wrong, an answer counts in a refit as so many: models are too sure of themselves and
        overrule what is not certain. After 160 questions, one answer in ten wrong, draw 0: thyroid .870 and wine 1.000,
        with 3 .852 and .982; segment, draws 0 and 1, .557 and .666, with 1 .526 and .687.
    prior_answers : float
        Where answers may be wrong and several people give them: so many answers of each, of which the expected share is
        wrong, count beside those that were given. Not varied.
    own_class : float
        If the number of classes is not known: number of neighbourhoods that count as found to differ before any two are
        compared. After 80 and 160 questions, draw 0: pendigits .830 and .878, segment .637 and .765; twice .846 and
        .885, .626 and .730.
    most_in_vain : int
        If the number of classes is not known, `cover` compares neighbourhoods after 0, 1, 3, 7, ... other questions,
        about twice as many each time that two of them differ, but at most 2 to this power. Not varied.
    settled : float
        Below this value of the stop signal the labels have settled: on the eight sets, 0.021 of the labels then changed
        with the next 20 answers, 0.053 on average. It changes a sentence and no question; not varied.
    refit_every : int
        Number of answers after which `ask` and `label` choose questions by a new model. The benchmark refits at the
        same pace up to 40 answers; not varied.
    random_pairs : int
        Random pairs that `uncertainty` looks at. Not varied.
    believed : float
        Confidence of an answer in a refit, where answers turn out to contradict each other. As for `again`, half and
        halfway to one: no change, since answers that may be wrong never count as certain there.
    spread : float
        Share of a label that goes on from neighbour to neighbour, in the start that spreads the answers over a graph.
        Draw 0 alone, where the value gives .769 and .882: half .793 and .837, halfway to one .762 and .861.
    spread_steps : int
        How often it does. Draw 0 alone: half .779 and .843, twice .802 and .891.
    pair_seconds, which_seconds, which_row_seconds, group_row_seconds : float
        Time that a person takes for a pair; for "which of these is it like?", and for each row that it shows; for each
        row of a group. docs/questions.md has what comes of it if the new kinds take half or twice as long.
    most_cards : int
        Number of cards at most beside the row of "which". Here and in the rest of this list, figures are for 80 and 160
        seconds of mixed questions (benchmarks.quick_questions), where the value itself gives .663 and .735: thyroid and
        500 rows each of vehicle and segment, draws 0 and 1. Half .643 and .719; twice as many do not fit on a page.
    group_cards : int
        Number of cards at most in a group, beside its anchor. Half .615 and .734; twice as many do not fit on a page.
    by_distance : float
        Weight of distance, beside the model, in the probability that a row belongs to a neighbourhood. Half .655 and
        .716, 0.5 gives .593 and .731.
    falloff : float
        How fast this probability falls with distance. Half .642 and .727, twice .631 and .689.
    news : float
        What placing a row is worth is this, less the probability of its likeliest neighbourhood: the surer the model
        was, the less is learned. 1.2 gives .657 and .726, 2 gives .623 and .717.
    fit : float
        Least probability of the neighbourhood of the anchor at which a row is a card of a group. 0.4 gives .592 and
        .726, 0.75 gives .607 and .710.

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
    weighty: int = 4
    stay: float = 0.0
    trust: float = 2.0
    prior_answers: float = 10.0
    own_class: float = 2.0
    most_in_vain: int = 4
    settled: float = 0.03
    refit_every: int = 10
    random_pairs: int = 5000
    believed: float = 0.95
    spread: float = 0.95
    spread_steps: int = 50
    pair_seconds: float = 4.0
    which_seconds: float = 2.0
    which_row_seconds: float = 0.7
    group_row_seconds: float = 1.0
    most_cards: int = 8
    group_cards: int = 8
    by_distance: float = 0.3
    falloff: float = 2.0
    news: float = 1.5
    fit: float = 0.6
