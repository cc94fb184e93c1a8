"""Brute force for relations: every labelling of all linked points, or of every pair, one by one.

The computations share no code with the package. What is handed to the package is made at the end of this file.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, pairwise, product
from math import fsum, log
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax
from scipy.stats import multivariate_normal

from linkmix import Links, Relation, SetRelation, engine
from linkmix.densities import FORMS, Gaussian
from linkmix.links.label_tables import Rule
from oracles import moments, random_spread


@dataclass(frozen=True)
class Statement:
    """A statement that two points share their class, or do not, which is right with some probability."""

    a: int
    b: int
    same: bool
    confidence: float = 1.0
    annotator: str | None = None

    @property
    def pair(self) -> tuple[int, int]:
        return min(self.a, self.b), max(self.a, self.b)

    def agrees(self, labels: np.ndarray) -> np.ndarray:
        """Whether labellings (n_labellings, n_points) agree with it."""
        return (labels[:, self.a] == labels[:, self.b]) == self.same

    def probability(self, labels: np.ndarray) -> np.ndarray:
        """Probability that it is made, given the labels."""
        return np.where(self.agrees(labels), self.confidence, 1 - self.confidence)


@dataclass(frozen=True, eq=False)
class Saying:
    """What is said about sets of points: a table of weights of labels, or bounds of a number with a probability."""

    sets: tuple[tuple[int, ...], ...]
    table: np.ndarray | None = None
    measure: str = ""  # "alike" or "classes"
    bounds: tuple[int, int] = (1, 1)
    probability: float = 1.0
    learn: bool = False

    def satisfied(self, labels: tuple[int, ...]) -> bool:
        """Whether the labels of a set are as it says: within the bounds, or with an equal share of the table."""
        if self.table is not None:
            return bool(self.table[labels] * self.table.size >= self.table.sum() * (1 - 1e-12))
        counts = Counter(labels)
        number = len(counts) if self.measure == "classes" else max(counts.values())
        return self.bounds[0] <= number <= self.bounds[1]

    def weights(self, n_classes: int, *, joint: bool) -> dict[tuple[int, ...], float]:
        """Weight of each combination of labels, as a joint distribution or as the probability of the saying."""
        every = list(product(range(n_classes), repeat=len(self.sets[0])))
        yes = [labels for labels in every if self.satisfied(labels)]
        no = [labels for labels in every if not self.satisfied(labels)]
        if self.table is not None:
            weigh = {labels: float(self.table[labels]) for labels in every}
            sums = {True: fsum(weigh[labels] for labels in yes), False: fsum(weigh[labels] for labels in no)}
            first = sums[True] / (sums[True] + sums[False])
            share = self.probability if self.learn else first
            part = {True: share, False: 1 - share}
            return {
                labels: part[of] * weigh[labels] / sums[of] if sums[of] else 0.0
                for of, some in ((True, yes), (False, no))
                for labels in some
            }
        if not no:  # always so
            return dict.fromkeys(every, 1 / len(every) if joint else 1.0)
        found = dict.fromkeys(yes, self.probability / (len(yes) if joint else 1))
        return found | dict.fromkeys(no, (1 - self.probability) / (len(no) if joint else 1))


@dataclass(frozen=True)
class Scene:
    """Points, statements about them, and the parameters of a mixture with full covariances."""

    X: np.ndarray  # (n, d), NaN where a value is missing
    statements: tuple[Statement, ...]
    class_weights: np.ndarray  # (M,)
    cluster_weights: np.ndarray  # (M, K), or (M, M * K) if clusters are shared
    means: np.ndarray  # (M, K, d)
    covariances: np.ndarray  # (M, K, d, d)
    hidden: np.ndarray  # (n,) labels that all certain statements agree with
    shared: bool = False
    known: np.ndarray | None = None  # (n,), -1 where unknown
    sample_weight: np.ndarray | None = None  # (n,)
    linked_points: str = "apart"
    link_weight: float = 1.0
    sayings: tuple[Saying, ...] = ()

    @property
    def n_classes(self) -> int:
        return len(self.class_weights)

    @property
    def linked(self) -> list[int]:
        sets = [statement.pair for statement in self.statements]
        return sorted(
            {end for some in (sets, *(saying.sets for saying in self.sayings)) for one in some for end in one}
        )

    @property
    def free(self) -> list[int]:
        both = self.linked_points == "both"
        return [n for n in range(len(self.X)) if both or n not in self.linked]

    @property
    def weights(self) -> np.ndarray:
        return np.ones(len(self.X)) if self.sample_weight is None else self.sample_weight

    @cached_property
    def clusters(self) -> np.ndarray:
        """Weight times density of each cluster of each class, shape (n, M, K), or (n, M, M * K)."""
        M, K, d = self.means.shape
        density = np.empty((len(self.X), M * K))
        for n, x in enumerate(self.X):
            seen = ~np.isnan(x)
            for c, (mean, covariance) in enumerate(
                zip(self.means.reshape(-1, d), self.covariances.reshape(-1, d, d), strict=True)
            ):
                part = covariance[np.ix_(seen, seen)]
                density[n, c] = multivariate_normal(mean[seen], part).pdf(x[seen]) if seen.any() else 1.0
        density = density[:, None, :] if self.shared else density.reshape(len(self.X), M, K)
        return self.cluster_weights * density

    @cached_property
    def classes(self) -> np.ndarray:
        """Density of each point in each class, zero where the class is known to be another, shape (n, M)."""
        density = self.clusters.sum(axis=2)
        if self.known is not None:
            for n, label in enumerate(self.known):
                if label >= 0:
                    density[n, np.arange(self.n_classes) != label] = 0.0
        return density


@dataclass(frozen=True)
class Found:
    """What an E-step must find.

    Attributes
    ----------
    log_likelihood : float
    link_log_likelihood : float
        The part of the links.
    label_weights : ndarray of shape (n, M)
        Label responsibilities of the links, summed over the items of each point.
    link_counts, free_counts : ndarray of shape (M,)
    responsibilities : ndarray of shape (n, M, K)
        Of points in clusters, weights of points and links applied.
    right : ndarray of shape (n_statements,)
        Probability that each statement is right.
    log_prior_partition : callable
        The logarithm of what the links' label prior must be divided by, for any class weights.
    satisfied : ndarray of shape (n_sayings,)
        Expected number of sets of which each saying is true.
    """

    log_likelihood: float
    link_log_likelihood: float
    label_weights: np.ndarray
    link_counts: np.ndarray
    free_counts: np.ndarray
    responsibilities: np.ndarray
    right: np.ndarray
    log_prior_partition: Callable[[np.ndarray], float]
    satisfied: np.ndarray


def labellings(n_points: int, n_classes: int) -> np.ndarray:
    """All of them, shape (n_classes ** n_points, n_points)."""
    return np.array(list(product(range(n_classes), repeat=n_points)), dtype=int).reshape(n_classes**n_points, n_points)


def groups(scene: Scene) -> list[set[int]]:
    """Groups of linked points joined by certain must-links."""
    found = [{n} for n in scene.linked]
    for statement in scene.statements:
        if statement.same and statement.confidence == 1:
            mine = [group for group in found if group & set(statement.pair)]
            found = [group for group in found if group not in mine] + [set().union(*mine)]
    return found


def exponents(scene: Scene, sampling: str) -> np.ndarray:
    """How often the weight of its label counts, for each linked point.

    Once for each group; once for each point; or, where links are observed, as often as the point itself counts.
    """
    if sampling == "chunklets":
        first = {min(group) for group in groups(scene)}
        return np.array([float(n in first) for n in scene.linked])
    return scene.weights[scene.linked] if sampling == "observed" else np.ones(len(scene.linked))


def enumerate_graph(scene: Scene, sampling: str = "observed") -> Found:
    """One network over all links, by every labelling of all linked points.

    Only where links are "observed", the joint distribution of points and links is not divided by that of the links.
    """
    points = scene.linked
    position = {n: i for i, n in enumerate(points)}
    statements = [replace(s, a=position[s.a], b=position[s.b]) for s in scene.statements]
    labels = labellings(len(points), scene.n_classes)
    for statement in statements:
        if statement.confidence == 1:
            labels = labels[statement.agrees(labels)]
    assert len(labels)
    exponent = exponents(scene, sampling)

    def prior(a: np.ndarray) -> np.ndarray:
        return (a[labels] ** exponent).prod(axis=1)

    def log_prior_partition(a: np.ndarray) -> float:
        return 0.0 if sampling == "observed" else log(fsum(prior(a)))

    joint = _weigh(scene, labels, prior(scene.class_weights), statements)
    total = fsum(joint)
    share = joint / total
    label_weights = np.zeros((len(scene.X), scene.n_classes))
    counts = np.zeros(scene.n_classes)
    for m in range(scene.n_classes):
        label_weights[points, m] = share @ (labels == m)
        counts[m] = share @ ((labels == m) @ exponent)
    log_likelihood = log(total) - log_prior_partition(scene.class_weights)
    right = np.array([share @ statement.agrees(labels) for statement in statements])
    satisfied = np.zeros(len(scene.sayings))
    for number, saying in enumerate(scene.sayings):
        for one in saying.sets:
            own = labels[:, [position[n] for n in one]].tolist()
            satisfied[number] += share @ np.array([saying.satisfied(tuple(some)) for some in own])
    return _found(scene, log_likelihood, label_weights, counts, right, log_prior_partition, satisfied)


def enumerate_pairs(scene: Scene) -> Found:
    """Each pair of points that occurs in a statement is a separate item: together, or apart."""
    a, M = scene.class_weights, scene.n_classes
    density = scene.classes ** scene.weights[:, None]
    label_weights = np.zeros((len(scene.X), M))
    counts = np.zeros(M)
    log_likelihood, n_apart = 0.0, 0.0
    same_of: dict[tuple[int, int], float] = {}
    apart_prior = fsum(a[m] * a[n] for m, n in product(range(M), repeat=2) if m != n)
    for i, j in sorted({s.pair for s in scene.statements}):
        on_pair = [s for s in scene.statements if s.pair == (i, j)]
        terms = {}
        for together in (True, False):
            worth = np.prod([s.confidence if s.same == together else 1 - s.confidence for s in on_pair])
            for m, n in product(range(M), repeat=2):
                if (m == n) == together:
                    prior = a[m] if together else a[m] * a[n] / apart_prior
                    terms[m, n] = worth * prior * density[i, m] * density[j, n]
        total = fsum(terms.values())
        log_likelihood += log(total)
        same_of[i, j] = fsum(terms[m, m] for m in range(M)) / total
        n_apart += 1 - same_of[i, j]
        for (m, n), term in terms.items():
            label_weights[i, m] += term / total
            label_weights[j, n] += term / total
            counts[m] += term / total
            counts[n] += term / total if m != n else 0.0
    right = np.array([same_of[s.pair] if s.same else 1 - same_of[s.pair] for s in scene.statements])
    satisfied = np.zeros(len(scene.sayings))
    for number, saying in enumerate(scene.sayings):
        weights = saying.weights(M, joint=True)
        for one in saying.sets:
            terms = {
                labels: weight * float(np.prod([density[n, m] for n, m in zip(one, labels, strict=True)]))
                for labels, weight in weights.items()
            }
            total = fsum(terms.values())
            log_likelihood += log(total)
            satisfied[number] += fsum(term for labels, term in terms.items() if saying.satisfied(labels)) / total
            for labels, term in terms.items():
                for n, m in zip(one, labels, strict=True):
                    label_weights[n, m] += term / total

    def log_prior_partition(weights: np.ndarray) -> float:
        return n_apart * float(np.log(1 - np.sum(weights**2))) if n_apart else 0.0

    return _found(scene, log_likelihood, label_weights, counts, right, log_prior_partition, satisfied)


def _weigh(scene: Scene, labels: np.ndarray, prior: np.ndarray, statements: list[Statement]) -> np.ndarray:
    """Joint probability of labellings of the linked points, the points, and the statements about them."""
    density = scene.classes[scene.linked] ** scene.weights[scene.linked, None]
    joint = prior.copy()
    for i in range(labels.shape[1]):
        joint *= density[i, labels[:, i]]
    for statement in statements:
        joint *= statement.probability(labels)
    position = {n: i for i, n in enumerate(scene.linked)}
    for saying in scene.sayings:
        weights = saying.weights(scene.n_classes, joint=False)
        for one in saying.sets:
            own = labels[:, [position[n] for n in one]].tolist()
            joint *= np.array([weights[tuple(some)] for some in own])
    return joint


def _found(
    scene: Scene,
    log_likelihood: float,
    label_weights: np.ndarray,
    link_counts: np.ndarray,
    right: np.ndarray,
    log_prior_partition: Callable[[np.ndarray], float],
    satisfied: np.ndarray,
) -> Found:
    """Add the free points, and distribute the labels among clusters."""
    free = np.zeros_like(label_weights)
    total = scene.link_weight * log_likelihood
    for n in scene.free:
        joint = scene.class_weights * scene.classes[n]
        free[n] = scene.weights[n] * joint / fsum(joint)
        total += scene.weights[n] * log(fsum(joint))
    clusters = scene.clusters
    within = clusters / clusters.sum(axis=2, keepdims=True)
    labels = free + scene.link_weight * label_weights * scene.weights[:, None]
    return Found(
        total,
        log_likelihood,
        label_weights,
        link_counts,
        free.sum(axis=0),
        labels[:, :, None] * within,
        right,
        log_prior_partition,
        satisfied,
    )


def most_probable(scene: Scene, sampling: str = "observed") -> np.ndarray:
    """Jointly most probable labels of the linked points, and of each free point alone.

    For the sampling of each coupling see `SAMPLING_OF_LABELS`.
    """
    points = scene.linked
    position = {n: i for i, n in enumerate(points)}
    statements = [replace(s, a=position[s.a], b=position[s.b]) for s in scene.statements]
    labels = labellings(len(points), scene.n_classes)
    prior = (scene.class_weights[labels] ** exponents(scene, sampling)).prod(axis=1)
    joint = _weigh(scene, labels, prior, statements)
    best = (scene.class_weights * scene.classes).argmax(axis=1)
    if points:
        best[points] = labels[joint.argmax()]
    return best


SAMPLING_OF_LABELS = {"pairwise": "chunklets", "graph": "observed"}


def updated(scene: Scene, found: Found) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cluster weights, means and covariances of one M-step, by plain loops."""
    counts = found.responsibilities.sum(axis=0)
    cluster_weights = counts / counts.sum(axis=1, keepdims=True)
    pooled = found.responsibilities
    if scene.shared:
        pooled = pooled.sum(axis=1).reshape(len(scene.X), *scene.means.shape[:2])
    _, means, covariances = moments(scene.X, pooled, "full")
    return cluster_weights, means, covariances


def class_weight_objective(scene: Scene, found: Found, a: np.ndarray) -> float:
    """What the class weights of the next step minimise."""
    counts = found.free_counts + scene.link_weight * found.link_counts
    return float(-counts @ np.log(a) + scene.link_weight * found.log_prior_partition(a))


def best_class_weights(scene: Scene, found: Found) -> np.ndarray:
    """Class weights by a general solver from several starts."""

    def objective(theta: np.ndarray) -> float:
        return class_weight_objective(scene, found, softmax(theta))

    starts = [np.log(scene.class_weights), *np.random.default_rng(0).normal(size=(2, scene.n_classes))]
    results = [minimize(objective, start, method="BFGS", options={"gtol": 1e-7}) for start in starts]
    return softmax(min(results, key=lambda result: result.fun).x)


def class_weight_slope(scene: Scene, found: Found, a: np.ndarray) -> np.ndarray:
    """Slope of the objective in log a, as a share of all counts, by central differences."""
    theta, step = np.log(a), 1e-5
    slope = [
        class_weight_objective(scene, found, softmax(theta + step * e))
        - class_weight_objective(scene, found, softmax(theta - step * e))
        for e in np.eye(len(a))
    ]
    return np.array(slope) / (2 * step) / (found.free_counts.sum() + scene.link_weight * found.link_counts.sum())


# Random scenes.


@dataclass(frozen=True)
class Wish:
    """What a random scene should contain."""

    n_classes: int = 3
    clusters_per_class: int = 1
    n_points: int = 8
    n_linked: int = 8
    n_certain: int = 6
    n_uncertain: int = 0
    shared: bool = False
    kind: str = "both"
    annotators: tuple[str, ...] = field(default=())
    sizes: tuple[int, ...] = ()  # of the sets of each saying
    learn: bool = False


def random_sayings(rng: np.random.Generator, wish: Wish, hidden: np.ndarray) -> tuple[Saying, ...]:
    """Tables with and without zeros, and rules with and without doubt; those without are true of hidden labels."""
    sayings = []
    while len(sayings) < len(wish.sizes):
        size = wish.sizes[len(sayings)]
        learn = wish.learn and rng.random() < 0.7
        sets = [rng.choice(wish.n_linked, size, replace=False) for _ in range(int(rng.integers(1, 3)))]
        told = tuple(tuple(one.tolist()) for one in sets)
        if rng.random() < 0.5:
            table = rng.random((wish.n_classes,) * size) ** 3
            if not learn:
                table[rng.random(table.shape) < 0.3] = 0.0
            for one in sets:
                table[tuple(hidden[one])] += 0.5
            saying = Saying(told, table, learn=learn, probability=float(rng.uniform(0.3, 0.9)))
        else:
            sets = sets[:1]
            counts = Counter(hidden[sets[0]].tolist())
            measure = str(rng.choice(["alike", "classes"]))
            number = len(counts) if measure == "classes" else max(counts.values())
            low, high = (number, number) if rng.random() < 0.5 else (1, number)
            doubt = learn or rng.random() < 0.5
            probability = float(rng.uniform(0.3, 0.95)) if doubt else 1.0
            if (low, high) == (1, size):
                continue
            saying = Saying(told[:1], None, measure, (low, high), probability, learn)
        sayings.append(saying)
    return tuple(sayings)


def random_scene(rng: np.random.Generator, wish: Wish, **more: Any) -> Scene:
    """Certain links follow hidden labels, uncertain ones are arbitrary; all may share points and pairs."""
    M, K, d = wish.n_classes, wish.clusters_per_class, int(rng.integers(1, 4))
    hidden = rng.integers(M, size=wish.n_points)
    pairs = list(combinations(range(wish.n_linked), 2))
    statements = []
    for position in rng.permutation(len(pairs)):
        a, b = pairs[position] if rng.random() < 0.5 else pairs[position][::-1]
        same = bool(hidden[a] == hidden[b])
        if len(statements) < wish.n_certain and wish.kind in ("both", "must" if same else "cannot"):
            statements.append(Statement(a, b, same))
    said = {(s.pair, s.same) for s in statements}
    unsaid = [(pair, same) for pair in pairs for same in (True, False) if (pair, same) not in said]
    for position in rng.choice(len(unsaid), size=wish.n_uncertain, replace=False):
        (a, b), same = unsaid[position]
        who = str(rng.choice(wish.annotators)) if wish.annotators else None
        statements.append(Statement(a, b, same, float(rng.uniform(0.55, 0.99)), who))
    covariances = np.array([[random_spread(rng, d) for _ in range(K)] for _ in range(M)])
    return Scene(
        X=1.5 * rng.normal(size=(wish.n_points, d)),
        statements=tuple(statements),
        class_weights=rng.dirichlet(np.full(M, 3.0)),
        cluster_weights=rng.dirichlet(np.full(M * K if wish.shared else K, 3.0), size=M),
        means=1.5 * rng.normal(size=(M, K, d)),
        covariances=covariances,
        hidden=hidden,
        shared=wish.shared,
        sayings=random_sayings(rng, wish, hidden),
        **more,
    )


# The same for the package.


def relation_of(saying: Saying) -> SetRelation | Relation:
    """The saying as a relation."""
    if saying.table is None:
        rule = Rule(saying.measure, *saying.bounds)
        return SetRelation(saying.sets, rule=rule, probability=saying.probability, learn=saying.learn)
    kind = Relation if saying.table.ndim == 2 else SetRelation
    return kind(saying.sets, saying.table, learn=saying.learn)


def links_of(scene: Scene) -> Links:
    """The statements as links."""
    arguments: dict[str, Any] = {}
    for kind, same in (("must", True), ("cannot", False)):
        mine = [s for s in scene.statements if s.same == same]
        arguments[kind] = [(s.a, s.b) for s in mine]
        arguments[f"{kind}_confidence"] = [s.confidence for s in mine]
        if any(s.annotator for s in scene.statements):
            arguments[f"{kind}_annotators"] = [s.annotator for s in mine]
    return Links(**arguments, relations=[relation_of(saying) for saying in scene.sayings])


def in_order_of_links(scene: Scene, values: np.ndarray) -> np.ndarray:
    """Values of the statements in the order of ``links_of``: must-links first."""
    same = np.array([s.same for s in scene.statements], dtype=bool)
    return np.concatenate([values[same], values[~same]])


def settings_of(scene: Scene) -> dict[str, Any]:
    """Arguments of a LinkMixture that starts from the parameters of a scene and adds nothing to its covariances."""
    return {
        "n_classes": scene.n_classes,
        "clusters_per_class": scene.means.shape[1],
        "shared_clusters": scene.shared,
        "linked_points": scene.linked_points,
        "link_weight": scene.link_weight,
        "init": {
            "class_weights": scene.class_weights,
            "cluster_weights": scene.cluster_weights,
            "means": scene.means,
            "covariances": scene.covariances,
        },
        "reg_covar": 0.0,
        "tol": 0.0,
    }


def fit_arguments(scene: Scene) -> dict[str, Any]:
    """Arguments of its `fit`."""
    return {"X": scene.X, "y": scene.known, "links": links_of(scene), "sample_weight": scene.sample_weight}


def engine_input(
    scene: Scene, coupling: Any, reg_covar: float = 0.0
) -> tuple[engine.Model, engine.Data, engine.Parameters]:
    """What the EM engine needs for a scene."""
    density = Gaussian(FORMS["full"], reg_covar)
    linked, free = scene.linked, scene.free
    weights, known = scene.sample_weight, scene.known
    bound = coupling.bind(links_of(scene).restrict(linked), len(linked), scene.n_classes)
    if weights is not None:
        bound = bound.weighted(weights[linked])
    data = engine.Data(
        scene.X[free],
        scene.X[linked],
        None if weights is None else weights[free],
        None if weights is None else weights[linked],
        None if known is None else known[free],
        None if known is None else known[linked],
    )
    arrays = {"means": scene.means, "covariances": scene.covariances}
    parameters = engine.Parameters(
        scene.class_weights,
        scene.cluster_weights,
        density.given(arrays, scene.means.shape[:2], scene.X.shape[1]),
        first_reliability(scene, bound),
        shared_clusters=scene.shared,
    )
    return engine.Model(density, bound, scene.link_weight), data, parameters


def first_reliability(scene: Scene, bound: Any) -> np.ndarray:
    """Reliabilities of annotators as the package guesses them, and of the sayings that are learned."""
    first = bound.first_reliability().copy()
    learned = [saying.probability for saying in scene.sayings if saying.learn and not always(saying, scene.n_classes)]
    if learned:
        first[-len(learned) :] = learned
    return first


def always(saying: Saying, n_classes: int) -> bool:
    """Whether a saying is true of all labels."""
    return all(saying.satisfied(labels) for labels in product(range(n_classes), repeat=len(saying.sets[0])))


def assert_step(scene: Scene, coupling: Any, found: Found) -> None:
    """Both steps of the engine against what enumeration found, to 1e-10; class weights as far as a solver can tell."""
    # With so few points a full covariance may be singular: add reg_covar, subtracted again below.
    model, data, parameters = engine_input(scene, coupling, reg_covar=1.0)
    expectation = engine.expect(model, data, parameters)
    close = {"rtol": 0, "atol": 1e-10}
    np.testing.assert_allclose(expectation.log_likelihood, found.log_likelihood, **close)
    np.testing.assert_allclose(expectation.links.log_likelihood, found.link_log_likelihood, **close)
    np.testing.assert_allclose(expectation.links.label_weights, found.label_weights[scene.linked], **close)
    np.testing.assert_allclose(expectation.links.class_counts, found.link_counts, **close)
    if scene.sayings:
        np.testing.assert_allclose(expectation.links.satisfied, found.satisfied, **close)
    np.testing.assert_allclose(expectation.free_class_counts, found.free_counts, **close)
    np.testing.assert_allclose(expectation.cluster_counts, found.responsibilities.sum(axis=0), **close)

    after = engine.maximise(model, expectation, parameters)
    learned = [i for i, saying in enumerate(scene.sayings) if saying.learn and not always(saying, scene.n_classes)]
    if learned:  # the mode of a Beta posterior, with one true and one untrue set beforehand
        sizes = np.array([len(scene.sayings[i].sets) for i in learned])
        wanted = (found.satisfied[learned] + 1) / (sizes + 2)
        np.testing.assert_allclose(after.reliability[-len(learned) :], wanted, **close)
    if not np.isnan(scene.X).any():
        cluster_weights, means, covariances = updated(scene, found)
        arrays = model.density.attributes(after.components, scene.means.shape[:2])
        np.testing.assert_allclose(after.cluster_weights, cluster_weights, **close)
        np.testing.assert_allclose(arrays["means"], means, **close)
        np.testing.assert_allclose(arrays["covariances"] - np.eye(scene.X.shape[1]), covariances, **close)
    np.testing.assert_allclose(after.class_weights.sum(), 1, rtol=0, atol=1e-12)
    if scene.n_classes > 1:
        mine = class_weight_objective(scene, found, after.class_weights)
        best = class_weight_objective(scene, found, best_class_weights(scene, found))
        assert mine <= best + 1e-9 * max(1.0, abs(best))
        np.testing.assert_allclose(class_weight_slope(scene, found, after.class_weights), 0, atol=1e-6)


def assert_never_falls(trace: np.ndarray) -> None:
    for before, after in pairwise(trace):
        assert after >= before - 1e-9 * abs(before), trace
