"""Oracles of the Dobrushin tests, from definitions, sharing no code with herdner: influence from the joint
distribution, the law of a Gibbs sampler step by step, the printed theorems, and Algorithm 2 in plain Python with
several ways to find the smallest derivative.
"""

from __future__ import annotations

import heapq
import itertools
import math

import numpy as np
from oracle import factors_of
from scipy.optimize import linprog


def log_weights(graph) -> np.ndarray:
    """Return the log-potential of each joint state, [K1, .., KV]."""
    sizes = [int(k) for k in graph.domains.sizes]
    total = np.zeros(sizes)
    for scope, table in factors_of(graph):
        order = np.argsort(scope)
        shape = [k if i in scope else 1 for i, k in enumerate(sizes)]
        total = total + np.transpose(table, order).reshape(shape)
    return total


def joint(graph) -> np.ndarray:
    """[K1, .., KV]: the probability of each state."""
    total = log_weights(graph)
    weights = np.exp(total - total.max()) if total.max() > -np.inf else np.full(total.shape, np.nan)
    return weights / weights.sum()


def conditional(p: np.ndarray, i: int) -> np.ndarray:
    """P(x_i | the others), NaN where the others are impossible."""
    with np.errstate(invalid="ignore"):
        return p / p.sum(axis=i, keepdims=True)


def influence_matrix(p: np.ndarray) -> np.ndarray:
    """Definition 6, over all pairs of conditions of positive probability."""
    n = p.ndim
    matrix = np.zeros((n, n))
    for i in range(n):
        given = conditional(p, i)
        for j in set(range(n)) - {i}:
            for x, y in itertools.combinations(range(p.shape[j]), 2):
                difference = np.abs(np.take(given, [x], j) - np.take(given, [y], j)).sum(axis=i) / 2
                matrix[i, j] = max(matrix[i, j], np.nanmax(difference, initial=0.0))
    return matrix


def law_after(p: np.ndarray, law: np.ndarray, i: int) -> np.ndarray:
    """The law of the state after variable i was drawn anew; ``law`` like p, or several of them along a first axis."""
    axis = i + law.ndim - p.ndim
    return np.nan_to_num(conditional(p, i)) * law.sum(axis=axis, keepdims=True)


def marginal_distance(law: np.ndarray, p: np.ndarray, variables) -> float:
    """The largest total variation distance of the marginal of these variables over the laws along the first axis."""
    others = tuple(i for i in range(p.ndim) if i not in variables)
    difference = law.sum(axis=tuple(i + 1 for i in others)) - p.sum(axis=others)
    return float(np.abs(difference).reshape(len(law), -1).sum(axis=1).max() / 2)


def weighted_distance(law: np.ndarray, p: np.ndarray, d) -> float:
    """The d-weighted total variation distance of one law, by the linear programme of optimal transport (its dual)."""
    states = list(itertools.product(*(range(k) for k in p.shape)))
    cost = [[sum(w for w, a, b in zip(d, x, y, strict=True) if a != b) for y in states] for x in states]
    n = len(states)
    rows = np.kron(np.eye(n), np.ones(n))
    columns = np.kron(np.ones(n), np.eye(n))
    found = linprog(np.ravel(cost), A_eq=np.vstack([rows, columns]), b_eq=np.concatenate([law.ravel(), p.ravel()]))
    assert found.status == 0
    return float(found.fun)


def theorem_10(table: np.ndarray) -> float:
    """Return the bound for theta[a, x_j], as printed."""
    k, n = table.shape
    best = 0.0
    for x, y in itertools.product(range(n), repeat=2):
        r = max(
            (table[a, x] - table[a, y]) - (table[b, x] - table[b, y]) for a, b in itertools.product(range(k), repeat=2)
        )
        best = max(best, abs(2 / (1 + math.exp(-0.5 * r)) - 1))
    return best


def theorem_11(theta: np.ndarray, fields: np.ndarray) -> np.ndarray:
    """Return the bound for a symmetric matrix of couplings, as printed; each edge counts once."""
    n = len(fields)
    matrix = np.zeros((n, n))
    for i, j in itertools.permutations(range(n), 2):
        t = theta[i, j]
        s = sum(abs(theta[i, k]) for k in range(n) if k not in (i, j))
        b = max(math.exp(-2 * s - 2 * fields[i]), min(math.exp(2 * s - 2 * fields[i]), 1))
        matrix[i, j] = (
            abs(math.exp(2 * t) - math.exp(-2 * t)) * b / ((1 + b * math.exp(2 * t)) * (1 + b * math.exp(-2 * t)))
        )
    return matrix


def theorem_12(sets: dict[tuple[int, ...], float], fields: np.ndarray) -> np.ndarray:
    """Return the bound as printed, limited to 1, the largest influence."""
    n = len(fields)
    matrix = np.zeros((n, n))
    for i, j in itertools.permutations(range(n), 2):
        t = sum(abs(v) for s, v in sets.items() if i in s and j in s)
        s = sum(abs(v) for s, v in sets.items() if i in s and j not in s)
        b = max(math.exp(-2 * s - 2 * fields[i]), min(math.exp(2 * s - 2 * fields[i]), 1))
        matrix[i, j] = min(1.0, abs(math.exp(2 * t) - math.exp(-2 * t)) * b / (1 + b) ** 2)
    return matrix


def transfer(matrix: np.ndarray, q: np.ndarray) -> np.ndarray:
    """B(q) of Definition 7."""
    return np.eye(len(q)) - np.diag(q) @ (np.eye(len(q)) - matrix)


def definition_7(matrix: np.ndarray, distributions, d) -> float:
    b = np.ones(len(matrix))
    for q in distributions:
        b = transfer(matrix, np.asarray(q)) @ b
    return float(np.asarray(d) @ b)


class Brute:
    """The smallest of numbers that change, ties to the smallest index: looks at all."""

    def __init__(self, n: int) -> None:
        self.w = [0.0] * n

    def change(self, i: int, value: float) -> None:
        self.w[i] = value

    def smallest(self) -> int:
        return min(range(len(self.w)), key=lambda i: (self.w[i], i))


class Heap(Brute):
    """A heap whose old entries are dropped when they come up."""

    def __init__(self, n: int) -> None:
        super().__init__(n)
        self.heap = [(0.0, i) for i in range(n)]

    def change(self, i: int, value: float) -> None:
        self.w[i] = value
        heapq.heappush(self.heap, (value, i))

    def smallest(self) -> int:
        while self.heap[0][0] != self.w[self.heap[0][1]]:
            heapq.heappop(self.heap)
        return self.heap[0][1]


class Blocks(Brute):
    """Runs of 4, the smallest of each remembered."""

    def __init__(self, n: int) -> None:
        super().__init__(n)
        self.best = list(range(0, n, 4))

    def change(self, i: int, value: float) -> None:
        self.w[i] = value
        run = range(i // 4 * 4, min(i // 4 * 4 + 4, len(self.w)))
        self.best[i // 4] = min(run, key=lambda k: (self.w[k], k))

    def smallest(self) -> int:
        return min(self.best, key=lambda k: (self.w[k], k))


def algorithm_2(rows, order, d, epsilon=0.0, structure=Brute) -> list[int]:
    """Algorithm 2 on an order; ``rows``: of each variable the list of (source, influence). All derivatives that may
    have changed are computed anew, by sums in the order of the rows.
    """
    n = len(rows)
    b, d = [1.0] * n, [float(x) for x in d]

    def pull(i: int) -> float:
        total = 0.0
        for j, c in rows[i]:
            total += c * b[j]
        return total

    before = []
    for i in order:
        before.append(b[i])
        b[i] = pull(i)
    smallest = structure(n)

    def refresh(i: int) -> None:
        smallest.change(i, d[i] * (pull(i) - b[i]) if d[i] else 0.0)

    for i in range(n):
        refresh(i)
    new = list(order)
    for t in reversed(range(len(order))):
        if math.fsum(x * y for x, y in zip(d, b, strict=True)) <= epsilon:
            break
        i = order[t]
        b[i] = before[t]
        for k in [i, *(j for j, _ in rows[i])]:
            refresh(k)
        best = new[t] = smallest.smallest()
        moved, d[best] = d[best], 0.0
        for j, c in rows[best]:
            d[j] += moved * c
        for k in [best, *(j for j, _ in rows[best])]:
            refresh(k)
        # d after this step meets b before it, which is what the variation is made of from here on
    return new
