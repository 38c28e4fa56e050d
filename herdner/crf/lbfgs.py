"""Minimisation by L-BFGS (Liu and Nocedal 1989; SciPy's L-BFGS-B), and by OWL-QN for L1 norms (Andrew and Gao 2007)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from herdner._ext import quasi_newton as loops
from herdner.base.arrays import Floats
from herdner.base.extras import import_extra

MEMORY = 6  # number of pairs of differences (points and gradients) that a search keeps, as in CRFsuite
FLAT = 1e-7  # a search for weights ends when no coordinate of the gradient exceeds this value
_SUFFICIENT_DECREASE, _CURVATURE = 1e-4, 1e-10
_MOST_HALVINGS = 60  # maximum number of times that a step is halved


def minimise(
    function: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    *,
    on_iteration: Callable[[Floats, float], bool] | None = None,
    bounds: Sequence[tuple[float | None, float | None]] | None = None,
    **options: float,
) -> Floats:
    """Minimise a smooth function of a vector by L-BFGS.

    Args:
        function: Function of float64[d] that returns its value and its gradient, float64[d].
        start: float64[d], starting point.
        on_iteration: Function called after each iteration with the point and the value. The search ends if it returns
            True.
        bounds: Lower and upper bound of each coordinate; None is unbounded.
        options: Options of SciPy's L-BFGS-B, such as ``maxiter``.

    Returns:
        float64[d], the last point.
    """
    # The import of SciPy's optimisers takes half a second. Here it does not delay programs that only tag.
    minimize = import_extra("scipy.optimize", "training needs SciPy").minimize
    from threadpoolctl import threadpool_limits  # pyright: ignore[reportMissingTypeStubs]

    def callback(intermediate_result: Any) -> None:  # SciPy recognises the argument by its name
        if on_iteration is not None and on_iteration(intermediate_result.x, float(intermediate_result.fun)):
            raise StopIteration

    # The last bits of BLAS sums depend on its number of threads, and its threads would contend with those of our loops.
    with threadpool_limits(1, "blas"):
        result = minimize(
            function, start, jac=True, method="L-BFGS-B", callback=callback, bounds=bounds, options=options or None
        )
    return result.x


def minimise_l1(
    function: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    l1: Floats,
    *,
    on_iteration: Callable[[Floats, float], bool],
    max_iterations: int,
    n_threads: int = 1,
) -> Floats:
    """Minimise a smooth function plus a weighted L1 norm by OWL-QN (Andrew and Gao 2007).

    Each step stays in one orthant, in which the L1 norm is linear. Coordinates that would change their sign become 0.

    Args:
        function: The smooth function of float64[d], which returns its value and its gradient, float64[d].
        start: float64[d], starting point.
        l1: float64[d], weight of the absolute value of each coordinate.
        on_iteration: Function called after each iteration with the point and the value, including the norm. The search
            ends if it returns True.
        max_iterations: Maximum number of iterations.
        n_threads: Number of threads of the search itself; the result does not depend on it.

    Returns:
        float64[d], the last point.
    """
    from threadpoolctl import threadpool_limits  # pyright: ignore[reportMissingTypeStubs]

    point = np.array(start)
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(n_threads) as threads:  # see `minimise`
        smooth, gradient = function(point)
        value = smooth + float(l1 @ np.abs(point))
        search = _OrthantSearch(l1, threads, n_threads)
        search.measure(point, point, gradient, gradient)
        for _ in range(max_iterations):
            if search.steepest <= FLAT:
                break
            length = 1.0 if search.pairs else 1.0 / search.slope_norm
            coefficients = search.quasi_newton_coefficients()
            for _ in range(_MOST_HALVINGS):
                trial, norm, product = search.step(point, coefficients, length)
                smooth, trial_gradient = function(trial)
                if smooth + norm <= value + _SUFFICIENT_DECREASE * product:
                    break
                length, coefficients = length / 2, np.empty(0)
            else:
                break
            search.measure(point, trial, gradient, trial_gradient)
            point, value, gradient = trial, smooth + norm, trial_gradient
            if on_iteration(point, value):
                break
    return point


def ranges(n: int, n_parts: int) -> list[tuple[int, int]]:
    """Divide the indices 0 to ``n - 1`` into ``n_parts`` ranges of similar sizes.

    Args:
        n: Number of indices.
        n_parts: Number of ranges.

    Returns:
        Start and end of each range.
    """
    return list(pairwise([n * k // n_parts for k in range(n_parts + 1)]))


class _OrthantSearch:
    """Memory of an OWL-QN search: differences of points, differences of gradients, and all their dot products.

    The direction is a sum of differences (Chen et al. 2014, "Large-scale L-BFGS using MapReduce"), so that two passes
    over the memory are enough for an iteration.

    Args:
        l1: float64[d], weight of the absolute value of each coordinate.
        threads: Threads that process ranges of blocks.
        n_threads: Number of these threads.
    """

    def __init__(self, l1: Floats, threads: ThreadPoolExecutor, n_threads: int) -> None:
        d, n_rows = len(l1), 2 * (MEMORY + 1)
        self.l1, self.threads = l1, threads
        # Row 2 k has a difference of points, row 2 k + 1 that of the gradients. Half the memory is half the time; a
        # difference of seven digits describes the curvature well enough, and points and gradients keep all digits.
        self.rows = np.empty((n_rows, d), np.float32)
        self.products = np.zeros((n_rows, n_rows))
        self.slope_products = np.zeros(n_rows)
        self.slope, self.direction = np.empty(d), np.empty(d)
        self.pairs = deque[int]()  # differences in use, oldest first
        self.free = list(range(MEMORY + 1))
        self.steepest, self.slope_norm = 0.0, 0.0
        self.n_blocks = -(-d // loops.BLOCK)
        self.ranges = ranges(self.n_blocks, n_threads)

    def run(self, loop: Callable[..., None], *arguments: Any) -> None:
        """Run the compiled function ``loop`` on all blocks of coordinates, in threads."""

        def process(blocks: tuple[int, int]) -> None:
            loop(*arguments, *blocks)

        list(self.threads.map(process, self.ranges))

    def measure(self, point: Floats, trial: Floats, gradient: Floats, trial_gradient: Floats) -> None:
        """Compute the gradient at a new point, and store the changes of point and gradient since the previous point."""
        slot = self.free[-1]
        used = np.array([2 * k + part for k in (*self.pairs, slot) for part in (0, 1)], np.int32)
        sums = np.empty((self.n_blocks, 2 + 3 * len(used)))
        self.run(
            loops.measure, point, trial, gradient, trial_gradient, self.l1, self.rows, slot, used, self.slope, sums
        )
        self.slope_norm, self.steepest = float(np.sqrt(sums[:, 0].sum())), float(sums[:, 1].max(initial=0.0))
        by_row = sums[:, 2:].sum(axis=0).reshape(len(used), 3)
        for part in (0, 1):
            self.products[used, 2 * slot + part] = self.products[2 * slot + part, used] = by_row[:, part]
        self.slope_products[used] = by_row[:, 2]
        if self.products[2 * slot, 2 * slot + 1] > _CURVATURE * self.products[2 * slot + 1, 2 * slot + 1]:
            self.pairs.append(self.free.pop())
            if len(self.pairs) > MEMORY:
                self.free.append(self.pairs.popleft())

    def quasi_newton_coefficients(self) -> Floats:
        """Return the search direction as coefficients of the stored differences and the gradient (Nocedal 1980).

        The search direction is -H g: g is the gradient, and H approximates the inverse Hessian by the differences.

        Returns:
            float64[2 * len(pairs) + 1], coefficient of each difference, and of the gradient.
        """
        used = [2 * k + part for k in self.pairs for part in (0, 1)]
        products, n = self.products[np.ix_(used, used)], len(used)
        result, steps = np.zeros(n + 1), np.zeros(n)
        result[n] = -1.0

        def product(row: int) -> float:
            return float(products[row] @ result[:n] + self.slope_products[used[row]] * result[n])

        for row in range(n - 2, -1, -2):
            steps[row] = product(row) / products[row, row + 1]
            result[row + 1] -= steps[row]
        if n:
            result *= products[n - 2, n - 1] / products[n - 1, n - 1]
        for row in range(0, n, 2):
            result[row] += steps[row] - product(row + 1) / products[row, row + 1]
        return result

    def step(self, point: Floats, coefficients: Floats, length: float) -> tuple[Floats, float, float]:
        """Move ``point`` in the direction defined by ``coefficients``; empty coefficients repeat the last direction.

        Returns:
            The new point, its L1 norm, and the product of the gradient and the step.
        """
        used = np.array([2 * k + part for k in self.pairs for part in (0, 1)], np.int32)
        trial, sums = np.empty_like(point), np.empty((self.n_blocks, 2))
        self.run(
            loops.step, point, self.slope, self.l1, self.rows, used, coefficients, length, self.direction, trial, sums
        )
        norm, product = sums.sum(axis=0).tolist()
        return trial, norm, product
