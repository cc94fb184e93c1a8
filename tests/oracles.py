"""Brute force on small problems: the simplest possible computation, which shares no code with the package."""

from dataclasses import dataclass
from itertools import combinations, product
from math import fsum, log
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax
from scipy.stats import multivariate_normal

COVARIANCE_TYPES = ("full", "tied", "diag", "spherical")


@dataclass(frozen=True)
class Problem:
    """Points, links and the parameters of a mixture of M classes of K clusters in d columns."""

    X: np.ndarray  # (n, d)
    must: list[tuple[int, int]]
    cannot: list[tuple[int, int]]
    class_weights: np.ndarray  # (M,)
    cluster_weights: np.ndarray  # (M, K)
    means: np.ndarray  # (M, K, d)
    covariances: np.ndarray  # in the shape of their type
    covariance_type: str = "full"
    linked_points: str = "apart"
    link_weight: float = 1.0

    @property
    def shape(self) -> tuple[int, int]:
        return self.cluster_weights.shape

    @property
    def init(self) -> dict[str, np.ndarray]:
        return {
            "class_weights": self.class_weights,
            "cluster_weights": self.cluster_weights,
            "means": self.means,
            "covariances": self.covariances,
        }

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments of a LinkMixture that starts here and adds nothing to its covariances."""
        return {
            "n_classes": self.shape[0],
            "clusters_per_class": self.shape[1],
            "covariance_type": self.covariance_type,
            "linked_points": self.linked_points,
            "link_weight": self.link_weight,
            "init": self.init,
            "reg_covar": 0.0,
            "tol": 0.0,
        }

    @property
    def linked(self) -> list[int]:
        return sorted({point for pair in self.must + self.cannot for point in pair})

    @property
    def free(self) -> list[int]:
        """Points that count on their own."""
        both = self.linked_points == "both"
        return [n for n in range(len(self.X)) if both or n not in self.linked]


@dataclass(frozen=True)
class Answer:
    """What an E-step must find."""

    log_likelihood: float
    free_weights: np.ndarray  # (n, M, K) responsibilities of points as free points, zero for the others
    link_weights: np.ndarray  # (n, M, K) responsibilities of points summed over their links
    free_counts: np.ndarray  # (M,) labels of free points
    must_counts: np.ndarray  # (M,) labels of must-links, one each
    cannot_counts: np.ndarray  # (M,) labels of cannot-links, two each

    @property
    def weights(self) -> np.ndarray:
        return self.free_weights + self.link_weights

    @property
    def class_counts(self) -> np.ndarray:
        return self.free_counts + self.must_counts + self.cannot_counts


def covariance_matrix(covariances: np.ndarray, covariance_type: str, m: int, k: int, d: int) -> np.ndarray:
    match covariance_type:
        case "full":
            return covariances[m, k]
        case "tied":
            return covariances
        case "diag":
            return np.diag(covariances[m, k])
        case "spherical":
            return covariances[m, k] * np.eye(d)
    raise AssertionError(covariance_type)


def random_links(
    rng: np.random.Generator, n_points: int, n_links: int, kind: str = "both", n_classes: int = 3
) -> tuple[list, list]:
    """Links that follow a hidden labelling, so that some labelling satisfies them all; they may share points."""
    hidden = rng.integers(n_classes, size=n_points)
    pairs = list(combinations(range(n_points), 2))
    must, cannot = [], []
    for position in rng.permutation(len(pairs)):
        a, b = pairs[position] if rng.random() < 0.5 else pairs[position][::-1]
        same = hidden[a] == hidden[b]
        if len(must) + len(cannot) < n_links and kind in ("both", "must" if same else "cannot"):
            (must if same else cannot).append((a, b))
    return must, cannot


def random_spread(rng: np.random.Generator, d: int) -> np.ndarray:
    root = rng.normal(size=(d, d))
    return root @ root.T / d + 0.3 * np.eye(d)


def random_problem(
    rng: np.random.Generator, n_classes: int, clusters_per_class: int, covariance_type: str, **options: Any
) -> Problem:
    """At most eight points in one to three columns, with up to ten links."""
    d = int(rng.integers(1, 4))
    n_points = options.pop("n_points", None) or int(rng.integers(4, 9))
    kind = options.pop("kind", "both")
    n_links = options.pop("n_links", int(rng.integers(0, 11)))
    must, cannot = random_links(rng, n_points, n_links, kind if n_classes > 1 else "must", n_classes)
    shape = (n_classes, clusters_per_class)
    full = np.array([[random_spread(rng, d) for _ in range(shape[1])] for _ in range(shape[0])])
    covariances = {
        "full": full,
        "tied": full[0, 0],
        "diag": np.diagonal(full, axis1=2, axis2=3).copy(),
        "spherical": full[:, :, 0, 0].copy(),
    }[covariance_type]
    return Problem(
        X=1.5 * rng.normal(size=(n_points, d)),
        must=must,
        cannot=cannot,
        class_weights=rng.dirichlet(np.full(n_classes, 3.0)),
        cluster_weights=rng.dirichlet(np.full(clusters_per_class, 3.0), size=n_classes),
        means=1.5 * rng.normal(size=(*shape, d)),
        covariances=covariances,
        covariance_type=covariance_type,
        **options,
    )


def items(problem: Problem) -> list[tuple[str, tuple[int, ...]]]:
    """The factors of the likelihood: free points, must-linked pairs, cannot-linked pairs."""
    return [
        *(("free", (n,)) for n in problem.free),
        *(("must", tuple(pair)) for pair in problem.must),
        *(("cannot", tuple(pair)) for pair in problem.cannot),
    ]


def label_prior(kind: str, labels: tuple[int, ...], a: np.ndarray) -> float:
    """Probability of the labels of one item before its points are seen."""
    if kind == "free":
        return float(a[labels[0]])
    if kind == "must":
        return float(a[labels[0]]) if labels[0] == labels[1] else 0.0
    apart = fsum(a[m] * a[n] for m in range(len(a)) for n in range(len(a)) if m != n)
    return float(a[labels[0]] * a[labels[1]] / apart) if labels[0] != labels[1] else 0.0


def brute_force(problem: Problem) -> Answer:
    """Sum over every assignment of every item to classes and clusters."""
    (M, K), (n_points, d) = problem.shape, problem.X.shape
    weighted_density = np.empty((n_points, M, K))
    for m, k in product(range(M), range(K)):
        covariance = covariance_matrix(problem.covariances, problem.covariance_type, m, k, d)
        density = multivariate_normal(problem.means[m, k], covariance).pdf(problem.X)
        weighted_density[:, m, k] = problem.cluster_weights[m, k] * density

    log_likelihood = 0.0
    weights = {"free": np.zeros((n_points, M, K)), "links": np.zeros((n_points, M, K))}
    counts = {kind: np.zeros(M) for kind in ("free", "must", "cannot")}
    for kind, points in items(problem):
        worth = 1.0 if kind == "free" else problem.link_weight
        terms = {}
        for states in product(product(range(M), range(K)), repeat=len(points)):
            term = label_prior(kind, tuple(m for m, _ in states), problem.class_weights)
            for n, (m, k) in zip(points, states, strict=True):
                term *= weighted_density[n, m, k]
            terms[states] = term
        total = fsum(terms.values())
        log_likelihood += worth * log(total)
        for states, term in terms.items():
            share = worth * term / total
            for n, (m, k) in zip(points, states, strict=True):
                weights["free" if kind == "free" else "links"][n, m, k] += share
            for m, _ in states[:1] if kind == "must" else states:
                counts[kind][m] += share
    return Answer(log_likelihood, weights["free"], weights["links"], counts["free"], counts["must"], counts["cannot"])


def moments(X: np.ndarray, weights: np.ndarray, covariance_type: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cluster weights, means and covariances of rows with responsibilities (n, M, K), by plain loops."""
    (n_points, d), (_, M, K) = X.shape, weights.shape
    total = np.zeros((M, K))
    means = np.zeros((M, K, d))
    full = np.zeros((M, K, d, d))
    for m, k in product(range(M), range(K)):
        total[m, k] = fsum(weights[:, m, k])
        for n in range(n_points):
            means[m, k] += weights[n, m, k] * X[n] / total[m, k]
        for n in range(n_points):
            difference = X[n] - means[m, k]
            full[m, k] += weights[n, m, k] * np.outer(difference, difference) / total[m, k]
    cluster_weights = np.array([[total[m, k] / fsum(total[m]) for k in range(K)] for m in range(M)])
    tied = sum(total[m, k] * full[m, k] for m in range(M) for k in range(K)) / total.sum()
    diagonal = np.array([[np.diag(full[m, k]) for k in range(K)] for m in range(M)])
    covariances = {"full": full, "tied": tied, "diag": diagonal, "spherical": diagonal.mean(axis=2)}[covariance_type]
    return cluster_weights, means, covariances


def class_weight_objective(a: np.ndarray, counts: np.ndarray, n_cannot: float) -> float:
    """What the class weights minimise (paper, eq. mixing_opt), as printed."""
    return float(-counts @ np.log(a) + n_cannot * np.log(1 - np.sum(a**2)))


def class_weights_by_search(counts: np.ndarray, n_cannot: float) -> np.ndarray:
    """Class weights by a general solver, from several starts; a softmax keeps them positive with sum one."""

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        a = softmax(theta)
        slope = -counts / a - 2 * n_cannot * a / (1 - np.sum(a**2))
        return class_weight_objective(a, counts, n_cannot), a * (slope - a @ slope)

    rng = np.random.default_rng(0)
    starts = [np.zeros(len(counts)), np.log(counts + 0.1), *rng.normal(size=(3, len(counts)))]
    found = [minimize(objective, start, jac=True, method="BFGS", options={"gtol": 1e-10}) for start in starts]
    return softmax(min(found, key=lambda result: result.fun).x)


def class_weight_residual(a: np.ndarray, counts: np.ndarray, n_cannot: float) -> np.ndarray:
    """Residual of ``c_m = n1 a_m + 2 |C| a_m (1 - a_m) / (1 - sum a^2)``, as a share of all counts."""
    n1 = counts.sum() - 2 * n_cannot
    apart = fsum(a[m] * a[n] for m in range(len(a)) for n in range(len(a)) if m != n)
    others = np.array([fsum(np.delete(a, m)) for m in range(len(a))])
    return (n1 * a + 2 * n_cannot * a * others / apart - counts) / counts.sum()
