"""Random calls of every function of the native core: ``python tests/random_calls.py --calls 50000 --seed 7``.

A call is made of arguments that fit together, and in most calls some of them are then spoilt: other types, shapes and
steps in memory, sizes that are negative or enormous, numbers that are none, arrays that are read-only, misaligned, too
short, or overlap. Whatever comes in, the core gives a result or one of the errors of `REFUSALS`, and changes only its
outputs. Each input has memory of its own and of its size, so that the address sanitizer sees a read beyond it
(``make sanitize``).

Before each block of calls its seed is printed, so that the last one names the block in which a process died:
``--seed SEED --calls 100`` makes the same calls again, and ``--loud`` prints each of them first.
"""

import argparse
import signal
import sys
import warnings
from array import array
from collections import Counter

import numpy as np

from linkmix import native
from linkmix.couplings.network import ApproximateInference, InfeasibleNetwork, LabelNetwork
from network_oracle import random_network

BLOCK = 100
"""Calls of one seed."""
SECONDS = 60
"""A call that computes longer ends the process."""
REFUSALS = (ValueError, TypeError, BufferError, MemoryError, OverflowError)
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308, -1e308, 1e-320, -1.0]
ENDLESS = 2**30
"""Numbers beyond this are all at one address."""
MAX_ITER = 19
"""Place of a number in the plan of a network that decides about time alone."""


def memory(values):
    """A copy of numbers in memory that is exactly as large."""
    values = np.asarray(values)
    held = array("b", values.tobytes())
    flat = np.frombuffer(held, dtype=values.dtype) if len(held) else np.empty(0, dtype=values.dtype)
    return flat.reshape(values.shape)


class Calls:
    """Arguments for the functions of the core."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def numbers(self, *shape):
        """Doubles, with luck all finite."""
        values = self.rng.normal(size=shape) * 10.0 ** self.rng.integers(-3, 4)
        if self.rng.random() < 0.15 and values.size:
            values.flat[self.rng.integers(values.size, size=3)] = self.rng.choice(SPECIAL, size=3)
        return memory(values)

    def shares(self, *shape):
        return memory(self.rng.dirichlet(np.ones(shape[-1]), size=shape[:-1]))

    def integers(self, end, *shape):
        return memory(self.rng.integers(max(end, 1), size=shape))

    def small(self, *few):
        """A size: on both sides of the vectors and blocks of the kernels."""
        return int(self.rng.choice(few or [1, 2, 3, 4, 5, 8, 9, 16, 17, 24]))

    def rows(self, n, d):
        """Rows in any order in memory, of doubles or floats."""
        layout = self.rng.integers(6)
        if layout == 0:
            return memory(self.numbers(d, n)).T
        if layout == 1:
            return memory(self.numbers(2 * n, d + 3))[::-2, 1 : d + 1][:n]
        if layout == 2:
            return memory(self.numbers(n, d).astype(np.float32))
        if layout == 3:
            return np.broadcast_to(memory(self.numbers(1, d)), (n, d))
        return self.numbers(n, d)

    def mixture(self):
        form = int(self.rng.integers(3))
        shared = self.rng.random() < (0.5 if form == 0 else 0.05)  # refused, unless they are full
        n, d, n_components = self.small(0, 1, 7, 239, 240, 241, 500), self.small(), self.small(1, 2, 3, 5, 8, 11)
        whiteners = 1 if shared else n_components
        shape = {0: (whiteners, d, d), 1: (whiteners, d), 2: (whiteners,)}[form]
        return form, shared, n, d, n_components, memory(np.abs(self.numbers(*shape)))

    def second(self, form, n_components, d):
        return n_components * {0: d * d, 1: d, 2: 1}[form]

    def sums(self):
        form, shared, n, d, k, whiteners = self.mixture()
        student = self.rng.random() < 0.4
        size = 1 + k * (1 + d) + self.second(form, k, d) + (2 * k if student else 0)
        return [
            *(form, shared, self.rows(n, d), self.numbers(k, d), whiteners, self.degrees(k) if student else None),
            *(bool(self.rng.integers(2)), self.numbers(k), self.numbers(n) if self.rng.random() < 0.5 else None),
            *(*self.range(n), np.zeros(size)),
        ]

    def degrees(self, k):
        return memory(np.exp(np.clip(self.numbers(k), -500, 500) / 100))

    def range(self, n):
        first, stop = sorted(self.rng.integers(n + 1, size=2).tolist())
        return (0, n) if self.rng.random() < 0.5 else (first, stop)

    def log_density(self):
        form, shared, n, d, k, whiteners = self.mixture()
        return [form, shared, self.rows(n, d), self.numbers(k, d), whiteners, *self.range(n), np.zeros((n, k))]

    def moments(self):
        form, _, n, d, k, _ = self.mixture()
        out = np.zeros(k * (1 + d) + self.second(form, k, d))
        return [form, self.rows(n, d), self.numbers(k, d), self.shares(n, k), *self.range(n), out]

    def predict(self):
        form, shared, n, d, k, whiteners = self.mixture()
        what, pool = int(self.rng.integers(4)), self.rng.random() < 0.4
        n_classes = self.small(1, 2, 3) if pool else int(self.rng.choice([m for m in range(1, k + 1) if k % m == 0]))
        wide = self.rng.random() < 0.3
        X = self.rows(n, d + 2 if wide else d)
        compressed = self.integers(d, self.small(0, 0, 1, 2))
        out = np.zeros(n, dtype=np.int64) if what == 2 else np.zeros((n, n_classes) if what < 2 else n)
        return [
            *(what, form, shared, X, self.integers(d + 2, d) if wide else None, self.numbers(k, d), whiteners),
            *(self.degrees(k) if self.rng.random() < 0.3 else None, self.numbers(k)),
            *(memory(-np.abs(self.numbers(n_classes, k))) if pool else None, n_classes, self.rng.uniform(0.1, 2)),
            *(compressed, self.numbers(len(compressed)), np.abs(self.numbers(len(compressed)))),
            *(float(-np.exp(self.rng.normal(5, 3))) if self.rng.random() < 0.6 else None, *self.range(n), out),
        ]

    def statements(self, n, n_pairs):
        odds = [0.0, 1.0, 0.3, 1e-300]
        return [self.integers(n, n_pairs, 2), *(memory(self.rng.choice(odds, size=n_pairs)) for _ in range(2))]

    def pairs(self):
        n, m = self.small(1, 2, 9, 50), self.small(1, 2, 3, 4, 5, 8, 9)
        n_pairs = self.small(0, 1, 2, 40)
        return [
            *(self.numbers(n, m), self.shares(m), *self.statements(n, n_pairs)),
            *(np.zeros((n, m)), np.zeros((2, m)), np.zeros(n_pairs)),
        ]

    def any_network(self):
        """A network of each kind, and its plan."""
        m, n = self.small(1, 2, 2, 3, 5), self.small(1, 2, 5, 12, 20)
        drawn = random_network(
            int(self.rng.integers(2**31)),
            n_nodes=n,
            n_classes=m,
            n_edges=self.small(0, 1, n // 2, n, 2 * n),
            hard=float(self.rng.choice([0.0, 0.5, 1.0])),
            tree=bool(self.rng.random() < 0.2),
            scale=float(self.rng.choice([1.0, 100.0, 1e5])),
            forbidden=0.02,
        )
        largest = int(self.rng.choice([2, 2**20]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ApproximateInference)
            try:
                return drawn, LabelNetwork(*drawn.size, drawn.edges, hard=drawn.hard, max_table=largest)
            except InfeasibleNetwork:
                return self.any_network()

    def plan(self, built):
        """A plan, sometimes with some of its numbers exchanged for others."""
        plan = built.plan.copy()
        if self.rng.random() < 0.5:
            for at in self.rng.integers(1, len(plan), size=self.small(1, 2, 3)):
                near, far = plan[at] + self.rng.integers(-3, 4), self.rng.choice([-1, 0, 1, len(plan), 2**31, 2**62])
                if at != MAX_ITER:
                    plan[at] = near if self.rng.random() < 0.7 else far
        return memory(plan)

    def network(self):
        drawn, built = self.any_network()
        nodes, same, different = map(memory, drawn.potentials)
        outputs = np.zeros(nodes.shape), np.zeros(len(same)), np.zeros(built.n_components)
        return [self.plan(built), nodes.shape[1], nodes, same, different, *outputs]

    def components(self):
        n = self.small(0, 1, 5, 60)
        return [self.integers(n, 0 if n == 0 else self.small(0, 1, 30), 2), np.zeros(n, dtype=np.int64)]

    def sweep(self):
        n, m, n_edges = self.small(1, 5, 40), self.small(1, 2, 3, 9), self.small(0, 1, 50)
        begin = memory(np.sort(np.concatenate([[0, n_edges], self.rng.integers(n_edges + 1, size=n - 1)])))
        labels = self.rng.integers(m + 1, size=n)
        return [
            *(m, self.numbers(n, m), begin, self.integers(n, n_edges), self.numbers(n_edges), self.integers(n, 30)),
            labels,
        ]

    def run(self):
        form = int(self.rng.integers(3))
        tied, pool, student = form == 0 and self.rng.random() < 0.3, self.rng.random() < 0.4, self.rng.random() < 0.4
        d = self.small(1, 2, 3, 5, 17)
        m = self.small(1, 2, 3, 4)
        k = self.small(1, 2, 3) * (1 if pool else m)
        if self.rng.random() < 0.5:
            n = self.small(0, 2, 9, 30)
            links = (*self.statements(n, self.small(1, 2, 20) if n else 0), float(self.rng.normal()))
        else:
            drawn, built = self.any_network()
            m, k = drawn.size[1], self.small(1, 2, 3) * (1 if pool else drawn.size[1])
            n = self.small(0, 2, 9, 30)
            chunklets, exponents = self.integers(len(drawn.nodes), n), self.rng.uniform(0.1, 3, size=len(drawn.nodes))
            links = (self.plan(built), chunklets, memory(exponents), memory(drawn.same), memory(drawn.different), 0.5)
        second = {0: d * d, 1: d, 2: 1}[form]
        one = {0: np.eye(d), 1: np.ones(d), 2: np.ones(1)}[form].ravel()
        covariances = np.tile(one, 1 if tied else k)
        weights = self.rng.dirichlet(np.ones(k if pool else k // m), size=m).ravel()
        parts = [self.numbers(k, d).ravel(), covariances, covariances, self.rng.dirichlet(np.ones(m)), weights]
        state = np.concatenate([*parts, *([self.degrees(k)] if student else [])])
        if self.rng.random() < 0.3:
            state[self.rng.integers(len(state), size=3)] = self.rng.choice(SPECIAL, size=3)
        n_free, n_told = self.small(0, 1, 50, 241), self.small(0, 1, 20)
        prior = float(self.rng.choice([0.0, 2.0])) if not tied else 0.0
        return [
            *(form, tied, pool, student, bool(self.rng.integers(2)), self.rows(n_free, d)),
            self.numbers(n_free) if self.rng.random() < 0.3 else None,
            (self.rows(n_told, d), np.abs(self.numbers(n_told)), self.integers(m, n_told)),
            (self.rows(n, d), None, self.integers(m, n) - 1 if self.rng.random() < 0.5 else None),
            *(links, float(self.rng.choice([1.0, 0.2, 0.0])), 1e-6, prior),
            memory(np.ones(second)) if prior else None,
            *(float(self.rng.choice([0.0, 1e-3])), float(self.rng.choice([0.0, 1.0])), m, k),
            *(state, np.zeros(self.small(1, 2, 12))),
        ]

    def levels(self):
        return []

    def use(self):
        return [str(self.rng.choice([*native.levels(), "other"]))]

    def spoilt(self, arguments):
        """The same arguments, some of them no longer as they should be."""
        arguments = list(arguments)
        if not arguments:
            return [1] if self.rng.random() < 0.5 else arguments
        for _ in range(self.small(1, 1, 2)):
            at = int(self.rng.integers(len(arguments)))
            given = arguments[at]
            if isinstance(given, tuple):
                arguments[at] = tuple(self.spoilt(given))
            elif isinstance(given, np.ndarray):
                arguments[at] = self.spoilt_array(given, arguments)
            elif isinstance(given, (int, float)):
                sizes = [-1, 0, 1, given + 1, given - 1, 2**31, 2**40, 2**60, 2**62, 2**63 - 1, -(2**63)]
                arguments[at] = [*sizes, 2**64, None, "one", np.nan, given * 7][self.rng.integers(len(sizes) + 5)]
            else:
                arguments[at] = [None, 3, "text", b"bytes", [], (), np.zeros(3)][self.rng.integers(7)]
        if self.rng.random() < 0.03:
            arguments.pop()
        return arguments

    def spoilt_array(self, given, arguments):
        way = self.rng.integers(14)
        arrays = [other for other in arguments if isinstance(other, np.ndarray) and other.size <= ENDLESS]
        if given.size > ENDLESS:
            return given
        if way == 0:
            return given.astype(str(self.rng.choice(["f4", "f8", "i8", "i4", ">f8", "c16", "?", "u8", "f2"])))
        if way == 1:  # one number less
            return memory(given.ravel()[: max(given.size - 1, 0)])
        if way == 2:
            return given[..., ::-1]
        if way == 3:  # at an odd address
            room = bytearray(given.nbytes + 1)
            return np.frombuffer(room, dtype=given.dtype, offset=1, count=given.size).reshape(given.shape)
        if way == 4:
            copy = given.copy()
            copy.flags.writeable = False
            return copy
        if way == 5:  # the same memory twice
            return arrays[self.rng.integers(len(arrays))]
        if way == 6:
            other = arrays[self.rng.integers(len(arrays))].ravel()
            return other[: given.size] if other.size else given
        if way == 7:
            copy = given.copy()
            if copy.size:
                values = SPECIAL if copy.dtype.kind == "f" else [-1, 2**62, -(2**63), 2**63 - 1, copy.size]
                values = np.array(values).astype(copy.dtype)
                copy.flat[self.rng.integers(copy.size, size=2)] = self.rng.choice(values, size=2)
            return copy
        if way == 8:
            return np.empty((0, *given.shape[1:]), dtype=given.dtype)
        if way == 9:
            return np.empty((*given.shape[:-1], 0), dtype=given.dtype)
        if way == 10:
            return memoryview(given) if given.flags.c_contiguous else given.tolist()
        if way == 11:  # as many rows as there are addresses, all of them the same one
            row = memory(np.zeros(given.shape[-1] if given.ndim > 1 else 1, dtype=given.dtype))
            return np.lib.stride_tricks.as_strided(row, (2**40, *row.shape), (0, *row.strides))
        if way == 12:
            return given[..., None] if given.ndim < 3 else given.ravel()
        return [None, 3, "text", b"bytes", [], object()][self.rng.integers(6)]


OUTPUTS = dict.fromkeys(["sums", "log_density", "predict", "moments", "components", "sweep"], 1)
OUTPUTS |= {"pairs": 3, "network": 3, "run": 2, "levels": 0, "use": 0}
"""How many arguments of each function, the last ones, are written to."""


def takes_for_ever(name, arguments):
    """Whether a call would rightly go through the rows of an array that has no end."""
    endless = any(isinstance(given, np.ndarray) and given.size > ENDLESS for given in arguments)
    return endless and (name == "run" or any(isinstance(given, int) and given > 2**20 for given in arguments))


def contents(arguments):
    """The contents of arrays."""
    return [given.tobytes() for given in arguments if isinstance(given, np.ndarray) and given.nbytes < 2**20]


@np.errstate(all="ignore")
def make_block(core, seed, n_calls, loud):
    """The calls of one seed; returns how each of them ended."""
    calls, ends = Calls(seed), Counter()
    functions = sorted(OUTPUTS)
    for number in range(n_calls):
        name = functions[calls.rng.integers(len(functions))]
        arguments = getattr(calls, name)()
        if calls.rng.random() < 0.6:
            arguments = calls.spoilt(arguments)
        if loud:
            print(f"{seed} {number} {name} {arguments}"[:2000], file=sys.stderr, flush=True)
        if takes_for_ever(name, arguments):
            continue
        inputs = arguments[: len(arguments) - OUTPUTS[name]]
        before = contents(inputs)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            getattr(core, name)(*arguments)
            ends[f"{name} answered"] += 1
        except REFUSALS:
            ends[f"{name} refused"] += 1
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        if contents(inputs) != before:
            raise AssertionError(f"seed {seed}, call {number}: {name} has changed what it only reads")
    core.use(core.levels()[-1])
    return ends


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--loud", action="store_true", help="print each call before it is made")
    options = parser.parse_args()
    core, ends = native._core, Counter()
    if core is None:
        parser.error("the native core is not built, or LINKMIX_NATIVE=0")
    for start in range(0, options.calls, BLOCK):
        seed = options.seed + start // BLOCK
        print(f"seed {seed}", file=sys.stderr, flush=True)
        ends += make_block(core, seed, min(BLOCK, options.calls - start), options.loud)
    for how, count in sorted(ends.items()):
        print(f"{count:8d} {how}")
    print(f"{sum(ends.values())} calls, seeds {options.seed} to {seed}: nothing broke")


if __name__ == "__main__":
    main()
