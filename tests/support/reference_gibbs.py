"""The Gibbs family once more, slow and plain: what compiled loops must give state by state.

Conditionals come from whole tables, herding weights from a dictionary. Only the streams of random numbers and the first
state are herdner's.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
from oracle import factors_of

from herdner._ext.gibbs import uniform_block
from herdner.graph import FactorGraph, compile_tables
from herdner.inference.backends.gibbs import Gibbs
from herdner.inference.gibbs.start import random_start

WORD = 2**64
ONE = 2**32
GOLDEN = 0x9E3779B97F4A7C15
LONG = 2**62  # more keys than this are hashed


def mix(z: int) -> int:
    """SplitMix64's output function (Steele, Lea and Flood 2014)."""
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB % WORD
    return z ^ z >> 31


def chained(*numbers: int, start: int = 0) -> int:
    for number in numbers:
        start = mix((start + GOLDEN * (number + 1)) % WORD)
    return start


class Stream:
    """Number g of a stream."""

    def __init__(self, key: int) -> None:
        self.key, self.blocks = key, {}

    def __getitem__(self, g: int) -> float:
        block = g // 1024
        if block not in self.blocks:
            self.blocks[block] = uniform_block(self.key, block)
        return float(self.blocks[block][g % 1024])


@dataclass
class Reference:
    """Chain number ``chain`` of a run. ``states`` [T + 1, V]: the start and the state after each sweep;
    ``conditionals``: (variable, p) of all updates, in their order.
    """

    plan: Gibbs
    graph: FactorGraph
    seed: int
    chain: int = 0
    states: list = field(default_factory=list)
    conditionals: list = field(default_factory=list)

    def __post_init__(self) -> None:
        every_key = np.random.default_rng(self.seed).integers(0, WORD, (self.plan.n_chains, 4), dtype=np.uint64)
        keys = every_key[self.chain].tolist()
        self.uniform, self.choice, self.weight_key = Stream(keys[0]), Stream(keys[1]), keys[2]
        self.sizes = self.graph.domains.sizes.tolist()
        self.factors = factors_of(self.graph)
        self.weights: dict = {}
        self.places = [math.prod(self.sizes[:j]) for j in range(len(self.sizes))]
        if math.prod(self.sizes) > LONG:
            self.places = odd_numbers(len(self.sizes))
        self.x = random_start(compile_tables(self.graph), keys[3]).astype(int).tolist()
        self.blankets = [self.graph.blanket(i).tolist() for i in range(len(self.sizes))]
        for i, j in np.reshape(self.plan.dummy_edges or (), (-1, 2)).tolist():
            self.blankets[i], self.blankets[j] = sorted({*self.blankets[i], j}), sorted({*self.blankets[j], i})
        self.run()

    def run(self) -> None:
        n = len(self.sizes)
        kind, order = self.plan.scan.kind, self.plan.scan.order
        betas = None if self.plan.annealing is None else self.plan.annealing.betas(self.plan.n_sweeps)
        self.states.append(list(self.x))
        g = 0
        for t in range(self.plan.n_sweeps):
            self.beta = 1.0 if betas is None else betas[t]
            sweep = range(n) if order is None else order.tolist()
            seen = list(self.x) if kind == "jacobi" else self.x
            for i in sweep:
                i = int(self.choice[g] * n) if kind == "random" else i
                self.x[i] = self.drawn(i, seen, self.uniform[g])
                g += 1
            self.states.append(list(self.x))

    def conditional(self, i: int, x: list) -> np.ndarray:
        logs = np.zeros(self.sizes[i])
        for scope, table in self.factors:
            if i in scope:
                logs += table[tuple(slice(None) if j == i else x[j] for j in scope)]
        with np.errstate(invalid="ignore"):
            weights = np.where(logs == -np.inf, 0.0, np.exp(self.beta * (logs - logs.max())))
        return weights / weights.sum()

    def drawn(self, i: int, x: list, u: float) -> int:
        p = self.conditional(i, x)
        self.conditionals.append((i, p))
        if not self.plan.herds:
            return at_random(p, u)
        return self.herded(i, x, p, u)

    def herded(self, i: int, x: list, p: np.ndarray, u: float) -> int:
        fixed = fixed_point(p)
        sharing, drawn = self.plan.sharing, at_random(p, u)
        if sharing.kind == "random-bins":
            key, fixed = rounded(fixed, sharing.n_bins, u, max(self.sizes))
            again = mix((np.float64(u).view(np.uint64).item() + GOLDEN) % WORD)
            drawn = at_random(np.array(fixed) / ONE, (again >> 12) / 2.0**52)
        else:
            key = self.key_of(i, x, fixed)
        return self.decided(i, key, fixed, drawn)

    def key_of(self, i: int, x: list, fixed: list) -> int:
        kind, n_bins = self.plan.sharing.kind, self.plan.sharing.n_bins
        if kind == "complete":
            return sum(x[j] * place for j, place in enumerate(self.places) if j != i) % WORD
        if kind == "blanket":
            if math.prod(self.sizes[j] for j in self.blankets[i]) > LONG:
                return chained(*(x[j] for j in self.blankets[i]))
            key = 0
            for j in self.blankets[i]:
                key = key * self.sizes[j] + x[j]
            return key
        if kind == "neighbour-sum":
            base = len(self.blankets[i]) + 1
            if base ** (max((self.sizes[j] for j in self.blankets[i]), default=1) - 1) > LONG:
                return sum(chained(x[j]) for j in self.blankets[i]) % WORD
            return sum(base ** (x[j] - 1) for j in self.blankets[i] if x[j])
        bins = [max(p * n_bins - 1, 0) // ONE for p in fixed]
        return bins[1] if len(fixed) == 2 else 0 if n_bins == 1 else bins_key(bins, n_bins, max(self.sizes))

    def decided(self, i: int, key: int, p: list, drawn: int) -> int:
        """HGW19 Algorithms 2 and 3, with a bound 7 and 8: weights in units of 1 / ONE, as p is."""
        circular, first = self.plan.form == "circular", None
        if (i, key) not in self.weights:
            raw = mix(chained(i, key, start=self.weight_key))
            self.weights[i, key], first = self.born(raw, p, drawn)
        w = self.weights[i, key]
        if circular:
            w[:] = [a + q for a, q in zip(w, p, strict=True)]
        label = self.label_of(w, p, drawn) if first is None else first
        more = [0] * len(p) if circular else p
        if len(p) == 2:  # the order of the additions matters to doubles that tie
            w[:] = [a + (q - (ONE if k == label else 0)) for k, (a, q) in enumerate(zip(w, more, strict=True))]
        else:
            w[:] = [a + q for a, q in zip(w, more, strict=True)]
            w[label] -= ONE
        return label

    def label_of(self, w: list, p: list, drawn: int) -> int:
        label, size = (self.two if len(p) == 2 else self.several)(w, p)
        bound = self.plan.error_bound * ONE
        return drawn if bound and size <= bound else label

    @staticmethod
    def two(w: list, p: list) -> tuple[int, float]:
        """The label, and how large its weight is: that of label 1, as that of label 0 is its negative."""
        return int(p[1] > 0 and (w[1] > 0 or p[1] >= ONE)), abs(w[1])

    @staticmethod
    def several(w: list, p: list) -> tuple[int, float]:
        label = max((k for k in range(len(p)) if p[k] > 0), key=lambda k: (w[k], -k))
        return label, w[label]

    def born(self, raw: int, p: list, drawn: int) -> tuple[list, int | None]:
        """A weight of each label, to which the circular form will add p, and the first label where that is drawn."""
        circular = self.plan.form == "circular"
        if self.plan.error_bound:
            return [0] * len(p), None if len(p) == 2 else drawn
        base = [0] * len(p) if circular else p
        if len(p) == 2:
            # The fixed circular form is a fraction in [0, 1) whose carry is the label: less 1, positive from 0 on.
            half = 0.5 - ONE if circular else None
            return [0, part(raw) + half if half else base[1] - part(raw)], None
        w = [base[k] - part(chained(k, start=raw)) for k in range(len(p))]
        before = np.concatenate([[0], np.cumsum(p)[:-1]])
        first = max(k for k in range(len(p)) if p[k] > 0 and (before[k] <= part(raw) or not any(p[:k])))
        top = max(w[k] + (p[k] if circular else 0) for k in range(len(p)) if p[k] > 0)
        w[first] = top - (p[first] if circular else 0)
        return w, first


def part(raw: int) -> int:
    """A part of ONE from the upper half of 64 random bits."""
    return raw >> 32


def at_random(p: np.ndarray, u: float) -> int:
    """Label 1 of two where u < p; of more labels by the inverse of the cumulative sum."""
    if len(p) == 2:
        return int(u < p[1])
    cumulative = np.cumsum(p)
    x = int(np.searchsorted(cumulative, u * cumulative[-1], side="right"))
    return min(x, int(np.flatnonzero(p)[-1]))


def fixed_point(p: np.ndarray) -> list:
    """Round to the nearest multiples of 2^-32; the probabilities of two states add up to 1."""
    if len(p) == 2:
        one = math.floor(float(p[1]) * ONE + 0.5)
        return [ONE - one, one]
    return np.rint(p * ONE).astype(int).tolist()


def bins_key(bins: list, n_bins: int, most_labels: int) -> int:
    """One number for the bins of all labels."""
    if most_labels * math.log2(n_bins + 1) <= 62:
        return sum(b * (n_bins + 1) ** k for k, b in enumerate(bins))
    return sum(b * place for b, place in zip(bins, odd_numbers(most_labels), strict=False)) % WORD


def odd_numbers(n: int) -> list:
    return (2 * np.random.default_rng(0).integers(0, 2**63, n, dtype=np.uint64) + np.uint64(1)).tolist()


def rounded(fixed: list, n_bins: int, u: float, most_labels: int) -> tuple[int, list]:
    """HGW19 Algorithm 9 (two labels) and systematic sampling: the key, and the rounded probabilities."""
    if len(fixed) == 2:
        b, rest = divmod(fixed[1] * n_bins, ONE)
        b += u * ONE < rest
        return b, [ONE - b * ONE // n_bins, b * ONE // n_bins]
    last = max(k for k in range(len(fixed)) if fixed[k])
    sums = [ONE if k >= last else min(sum(fixed[: k + 1]), ONE) for k in range(len(fixed))]
    counts = [(total * n_bins + int(u * ONE)) // ONE for total in sums]
    key = bins_key([b - a for a, b in itertools.pairwise([0, *counts])], n_bins, most_labels)
    cumulative = [0, *(c * ONE // n_bins for c in counts)]
    return key, [b - a for a, b in itertools.pairwise(cumulative)]
