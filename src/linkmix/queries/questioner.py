"""The `Questioner`: holds points and answers, picks the next pair to ask about, and refits the model."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.basics.checks import check_choice, check_number
from linkmix.links import Links
from linkmix.links.checks import LinksLike
from linkmix.links.checks import as_links as links_of
from linkmix.mixture.calibration import Quality
from linkmix.mixture.door import PointsLike
from linkmix.queries import other_strategies
from linkmix.queries.answers import SAID, Answer, Answers, Said, as_answers, as_links
from linkmix.queries.audit import N_QUESTIONS, Audit, draw
from linkmix.queries.cover import cover, leaders
from linkmix.queries.door import checked_labels, prepare
from linkmix.queries.doubts import believed_links, settled
from linkmix.queries.number import groups_apart, likely_number
from linkmix.queries.questions import KINDS, Kind, Question, answers_to
from linkmix.queries.quick import quick
from linkmix.queries.refit import (
    Refit,
    Snapshot,
    as_estimator,
    doubtful_links,
    first_fit,
    labels_with_answers,
    refit,
)
from linkmix.queries.settings import QuestionSettings
from linkmix.queries.state import Ground, State
from linkmix.search import AutoLinkMixture

Strategy = Callable[[State], tuple[int, int] | None]
"""Picks a pair of rows from the state; None if nothing is left to ask."""

STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {
        "cover": cover,
        "random": other_strategies.random,
        "uncertainty": other_strategies.uncertainty,
        "explore-consolidate": other_strategies.explore_consolidate,
        "min-max": other_strategies.min_max,
        "npu": other_strategies.npu,
        "cobras": other_strategies.cobras,
    }
)
"""All strategies by name; "cover" is ours."""

AUDITED = "A random pair, to measure how good the labels are."
AGAIN = "The earlier answer about this pair surprised the model, so it asks again."
BY_STRATEGY = "The chosen strategy asks about this pair next."


class Questioner:
    """Asks which pairs of points belong together, and learns from the answers.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features), or a table of pandas, polars or pyarrow
        The points. NaN marks a missing value. A table may have columns of every kind.
    n_classes : int, optional
        Number of classes. If it is not given, it is not known: the points decide first, then the answers do.
    kinds : mapping of str to str, optional
        What some columns of a table are, as in `AutoLinkMixture`.
    strategy : str, default="cover"
        Name of one of `STRATEGIES`.
    links : Links, or a table of links, optional
        Links that are known already.
    labels : array-like of shape (n_samples,), optional
        Class numbers to start from, such as those of an earlier fit: one more start for the first model.
    wrong : float, default=0.0
        Share of answers that are expected to be wrong, below 0.5.
    noise : bool, default=False
        Whether rows may belong to no class: the model finds them as ``AutoLinkMixture(noise=True)`` does, and `nowhere`
        records what is known about them.
    max_candidates : int, default=2000
        Maximum number of rows that may be asked about; if there are more points, they are drawn at random. This bounds
        the time that a question takes.
    random_state : int, default=0
        Seed of all random choices.
    settings : QuestionSettings, optional
        The tuned constants.

    Attributes
    ----------
    said : Answers
        The given links and all answers that have not been undone. Answers may be added to it directly.
    links : Links
        The given links and those that follow from the answers, with confidences if answers may be wrong. They know
        which pairs were chosen: all but those of an audit, and those of the strategy "random".
    new_links : Links
        The same without the given links.
    answers : tuple of Answer
        The answers in order, including "unsure" and "skip", without the given links.
    model : AutoLinkMixture
        The current model, for points in the units of `X`.
    n_classes : int
        Number of classes of the current model.
    another_class : str or None
        A sentence if one more class is likely.
    probabilities : ndarray of shape (n_samples, n_classes)
        Its class probabilities for each point, from the point alone, calibrated. Computed when it is asked for.
    labels : ndarray of shape (n_samples,)
        Class of each point; links are honoured. With noise, -1 for a point of no class.
    stop_signal : float
        How much the labels may still change: the mean of the share of labels that changed at the last refit and the
        share on which its starts disagree. 1 before the first refit.
    quality : Quality or None
        How good the labels were at the beginning of the last complete audit; None before.
    review : structured ndarray
        Links with the probability that they are wrong, the most doubtful first, as in ``LinkMixture.links_to_review_``.

    Examples
    --------
    >>> import numpy as np
    >>> from linkmix.queries import Questioner
    >>> X = np.concatenate([np.random.default_rng(0).normal(size=(20, 2)) + 6 * k for k in range(3)])
    >>> truth = np.repeat([0, 1, 2], 20)
    >>> asker = Questioner(X, n_classes=3)
    >>> for _ in range(10):
    ...     [[a, b]] = asker.next()
    ...     asker.answer(a, b, "same" if truth[a] == truth[b] else "different")
    >>> asker.refit()
    >>> len(set(zip(asker.labels.tolist(), truth.tolist())))
    3
    """

    def __init__(
        self,
        X: PointsLike,
        n_classes: int | None = None,
        *,
        kinds: Mapping[str, str] | None = None,
        strategy: str = "cover",
        links: LinksLike | None = None,
        labels: ArrayLike | None = None,
        wrong: float = 0.0,
        noise: bool = False,
        max_candidates: int = 2000,
        random_state: int = 0,
        settings: QuestionSettings | None = None,
    ) -> None:
        check_number("max_candidates", max_candidates, Integral, 2)
        check_number("random_state", random_state, Integral, 0)
        check_choice("strategy", strategy, STRATEGIES)
        if not 0 <= wrong < 0.5:
            raise ValueError(f"wrong={wrong!r} is not a share from 0 to below 0.5: give the share of wrong answers")
        self._points = prepare(X, kinds or {})
        n = len(self._points.X)
        self._wish: list[int | None] = [self._checked_number(n_classes)]  # shared by copies of this object
        given = links_of(links, X=X)
        given.check_rows(n)
        given.check_consistent()
        order = np.random.RandomState(random_state).permutation(n)
        self._ground = Ground(
            self._points.Z,
            np.sort(order[:max_candidates]),
            2 if n_classes is None else int(n_classes),
            float(wrong),
            int(random_state),
            QuestionSettings() if settings is None else settings,
            bool(noise),
            n_classes is None,
        )
        self._strategy = STRATEGIES[strategy]
        begin = None if labels is None else checked_labels(labels, n, n_classes)
        self._fit = first_fit(self._ground, self._points, begin, given)
        self._ground = self._ground.with_classes(self._fit.n_classes, n_classes is None)
        self._beliefs = self._fit.probabilities(self._points.X)
        self._tentative = leaders(self._ground, self._beliefs)
        answers = as_answers(given)
        self.said = Answers(answers, wrong=float(wrong))
        self._changed: float | None = None
        self._publish()
        if answers:
            self.refit()

    @property
    def settings(self) -> QuestionSettings:
        """The tuned constants."""
        return self._ground.settings

    @property
    def _state(self) -> State:
        return State.after(self._ground, self.said.ordinary, self._beliefs, self._tentative)

    def next(self, q: int = 1) -> Ints:
        """Pairs to ask about next.

        Parameters
        ----------
        q : int, default=1
            Number of pairs. Each is chosen as if those before it had been answered as the model expects.

        Returns
        -------
        ndarray of shape (at most q, 2)
            Row numbers. Fewer than q, or none, if nothing is left to ask. During an audit, its pairs.
        """
        check_number("q", q, Integral, 1)
        if (audit := self.said.audit) is not None:
            return np.array(audit.next(int(q)), dtype=np.int64).reshape(-1, 2)
        state, pairs = self._state, []
        for _ in range(q):
            believed, again = settled(state)
            pair = again or self._strategy(believed)
            if pair is None:
                break
            pairs.append(pair)
            state = state.with_answer(*pair, state.expected(*pair))
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)

    def ask(self, n: int = 1, kinds: Sequence[Kind] = KINDS) -> list[Question]:
        """Questions to ask next, of the kinds with the largest expected gain for each second of a person's time.

        Parameters
        ----------
        n : int, default=1
            Number of questions. Each is chosen as if those before it had been answered as the model expects.
        kinds : sequence of {"pair", "which", "group"}
            Kinds that may be asked; a pair is asked where none of them helps. Strategies other than "cover" ask about
            pairs alone, as does an audit.

        Returns
        -------
        list of Question
            Fewer than n, or none, if nothing is left to ask.

        Examples
        --------
        >>> X = np.concatenate([np.random.default_rng(0).normal(size=(20, 2)) + 6 * k for k in range(3)])
        >>> truth = np.repeat([0, 1, 2], 20)
        >>> asker = Questioner(X, n_classes=3)
        >>> for _ in range(4):
        ...     [question] = asker.ask()
        ...     first, *cards = question.rows
        ...     same = [card for card in cards if truth[card] == truth[first]]
        ...     if question.kind == "pair":
        ...         asker.reply(question, said="same" if same else "different")
        ...     else:
        ...         asker.reply(question, same if question.kind == "which" else set(cards) - set(same))
        >>> asker.refit()
        >>> len(set(zip(asker.labels.tolist(), truth.tolist())))
        3
        """
        check_number("n", n, Integral, 1)
        if not len(kinds):
            raise ValueError(f"kinds={kinds!r} is empty: give some of {KINDS}")
        for kind in kinds:
            check_choice("kinds", kind, KINDS)
        seconds = self.settings.pair_seconds
        if (audit := self.said.audit) is not None:
            return [Question("pair", pair, AUDITED, seconds) for pair in audit.next(int(n))]
        state, questions = self._state, list[Question]()
        for _ in range(n):
            believed, again = settled(state)
            question: Question | None
            if again is not None:
                question = Question("pair", again, AGAIN, seconds, again=True)
            elif self._strategy is cover:
                question = quick(believed, kinds)
            else:
                pair = self._strategy(believed)
                question = None if pair is None else Question("pair", pair, BY_STRATEGY, seconds)
            if question is None:
                break
            questions.append(question)
            first, *cards = question.rows
            for card in cards:
                state = state.with_answer(first, card, state.expected(first, card))
        return questions

    def reply(self, question: Question, picked: Iterable[int] = (), said: Said | None = None) -> None:
        """Record the reply to a question, as one turn of `undo`.

        Parameters
        ----------
        question : Question
            From `ask`, or made by hand.
        picked : iterable of int
            For "which", the cards that are like the row, maybe none. For "group", the cards that do not fit.
        said : {"same", "different", "unsure", "skip"}, optional
            The answer about a pair. "unsure" and "skip" are possible for all kinds.
        """
        for row in question.rows:
            self._check_row(row)
        chosen = self._strategy is not STRATEGIES["random"]
        answers = answers_to(question.kind, question.rows, picked, said, chosen=chosen)
        self.said.add(*(replace(one, chosen=chosen and not self.said.is_audited(one.a, one.b)) for one in answers))

    def answer(self, a: int, b: int, said: Said) -> None:
        """Record an answer about two rows, whether or not they were asked about.

        Parameters
        ----------
        a, b : int
            Row numbers.
        said : {"same", "different", "unsure", "skip"}
            A pair answered "unsure" is not asked again; after "skip" it may come up again later.
        """
        check_choice("said", said, SAID)
        for row in (a, b):
            self._check_row(row)
        if a == b:
            raise ValueError(f"row {a} is compared with itself: give two rows")
        chosen = not self.said.is_audited(a, b) and self._strategy is not STRATEGIES["random"]
        self.said.add(Answer(int(a), int(b), said, chosen=chosen))

    def nowhere(self, *rows: int) -> None:
        """Record that some rows belong to no class; needs ``noise=True``.

        They get the label -1, as do rows that were said to be the same as they are, and are not asked about any more.

        Parameters
        ----------
        *rows : int
            Row numbers.
        """
        if not self._ground.noise:
            raise ValueError("the questioner was made without noise: give noise=True")
        for row in rows:
            self._check_row(row)
        self.said.add(*(Answer(int(row), int(row), "nowhere") for row in rows))

    def _check_row(self, row: int) -> None:
        n = len(self._points.X)
        if not isinstance(row, Integral) or not 0 <= row < n:
            raise ValueError(f"row {row} does not exist: rows are numbered from 0 to {n - 1}")

    def audit(self, n: int = N_QUESTIONS, labels: ArrayLike | None = None) -> None:
        """Ask about random pairs next, to tell how good the labels are.

        Until all are answered, `next` gives these pairs, and their answers are kept apart: no refit and no choice of a
        question uses them. Then `quality` has the result, and they become ordinary answers. "unsure" and "skip" do not
        count; another pair is asked about instead. `undo` takes back answers as usual; ``said.give_up_audit()`` ends an
        audit early.

        Parameters
        ----------
        n : int, default=20
            Number of questions.
        labels : array-like of shape (n_samples,), optional
            Class numbers to measure; by default `labels`.

        Examples
        --------
        >>> X = np.concatenate([np.random.default_rng(0).normal(size=(20, 2)) + 6 * k for k in range(3)])
        >>> truth = np.repeat([0, 1, 2], 20)
        >>> asker = Questioner(X, n_classes=3)
        >>> asker.audit()
        >>> while asker.said.audit:
        ...     [[a, b]] = asker.next()
        ...     asker.answer(a, b, "same" if truth[a] == truth[b] else "different")
        >>> print(asker.quality)
        About 99 % of all pairs are judged as you would (87 to 100 %), from 20 questions about random pairs, measured
        before their answers were used.
        """
        self.said.begin_audit(self.draw_audit(n, labels))

    def draw_audit(self, n: int = N_QUESTIONS, labels: ArrayLike | None = None) -> Audit:
        """Draw the pairs of an audit, and leave it to the caller to begin it by ``said.begin_audit``; see `audit`."""
        check_number("n", n, Integral, 1)
        measured = self.labels if labels is None else checked_labels(labels, len(self._points.X), None, least=-1)
        state, asked = self._state, {answer.pair for answer in self.said}
        known = None if self._ground.wrong else state.known  # where answers may be wrong, nothing is certain
        return draw(measured, int(n), state.random(), known, lambda a, b: (a, b) not in asked)

    @property
    def quality(self) -> Quality | None:
        """How good the labels were at the beginning of the last complete audit; None before."""
        return self.said.quality

    def undo(self) -> Answer | None:
        """Undo the last answer. The model forgets it at the next refit.

        Returns
        -------
        Answer or None
            The answer that was undone; None if there is none left.
        """
        return next(reversed(self.said.undo()), None)

    def refit(self) -> None:
        """Fit the model to all answers. To do this in another thread, use `snapshot`, `fit` and `adopt`."""
        self.adopt(self.fit(self.snapshot()))

    def snapshot(self) -> Snapshot:
        """Everything that a refit needs. Later answers do not change it."""
        state, [expected] = self._state, self._wish
        ground = state.ground.with_classes(expected or state.ground.n_classes, expected is None)
        return replace(state, ground=ground), self._fit, self._points

    @staticmethod
    def fit(snapshot: Snapshot) -> Refit:
        """Fit to a snapshot. This is the slow part, and it changes nothing in the questioner."""
        return refit(*snapshot)

    def adopt(self, fit: Refit, placed: Collection[int] = ()) -> None:
        """Make the result of a refit the current model.

        Parameters
        ----------
        fit : Refit
            From `fit`.
        placed : collection of int
            Rows that stand for their classes: others leave before they do, and with noise they always have a class.
        """
        self._changed = float((fit.classes != self._fit.classes).mean())
        self._fit = fit
        self._ground = self._ground.with_classes(fit.n_classes, self._wish[0] is None)
        self._beliefs = fit.probabilities(self._points.X)
        self._publish(placed)

    @property
    def n_classes(self) -> int:
        """Number of classes of the current model."""
        return self._fit.n_classes

    def expect(self, n_classes: int | None) -> None:
        """Change the number of classes from the next refit on, such as when a person merged or split classes.

        Parameters
        ----------
        n_classes : int or None
            The number, or more if more groups of rows are known to differ from each other. None if it is not known; the
            answers decide.
        """
        self._wish[0] = self._checked_number(n_classes)

    @property
    def another_class(self) -> str | None:
        """A sentence if the answers make one more class likely than the current model has."""
        believed, _ = settled(self._state)
        apart, now = groups_apart(believed), self.n_classes
        if apart > now:
            return f"{apart} groups of rows are known to differ from each other, and there are {now} classes"
        if self._wish[0] is None and likely_number(believed) > now:
            return f"some rows fit none of the {now} classes so far: one more class is likely"
        return None

    def _checked_number(self, n_classes: int | None) -> int | None:
        if n_classes is None:
            return None
        check_number("n_classes", n_classes, Integral, 1)
        if len(self._points.X) < n_classes:
            raise ValueError(f"{len(self._points.X)} points cannot make {n_classes} classes: ask for fewer classes")
        return int(n_classes)

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The answers in order, without the given links."""
        return tuple(answer for answer in self.said if not answer.given)

    @property
    def links(self) -> Links:
        """The given links and those that follow from the answers."""
        return self._as_links(self.said)

    @property
    def new_links(self) -> Links:
        """The links that follow from the answers, without the given links."""
        return self._as_links(self.answers)

    def _as_links(self, answers: Iterable[Answer]) -> Links:
        if not self._ground.wrong:
            return as_links(answers)
        return believed_links(replace(self._state, answers=tuple(answers)))

    @property
    def stop_signal(self) -> float:
        """How much the labels may still change, from 0 to 1."""
        return 1.0 if self._changed is None else (self._changed + self._fit.disagreement) / 2

    @property
    def stop_meaning(self) -> str:
        """The stop signal in a sentence."""
        if self._changed is None:
            return "too early to say whether more answers change the labels"
        share = f"{100 * self.stop_signal:.0f} %"
        if self.stop_signal < self.settings.settled:
            return f"labels have settled: about {share} may change with more answers; a good moment to stop"
        return f"about {share} of the labels may still change: more answers help"

    @property
    def probabilities(self) -> Floats:
        """Calibrated class probabilities of each point."""
        return self._fit.honest_probabilities(self._points.X)

    def _publish(self, placed: Collection[int] = ()) -> None:
        fit = self._fit
        self.labels: Ints = labels_with_answers(fit, self._points.X, placed)
        self.review: Array = doubtful_links(fit, self._points.X)
        self.model: AutoLinkMixture = as_estimator(fit, self.labels, self.review, self._points.recipe)
