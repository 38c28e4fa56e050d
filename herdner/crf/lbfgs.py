"""Minimisation by L-BFGS (Liu and Nocedal 1989; SciPy's L-BFGS-B), and by OWL-QN for L1 norms (Andrew and Gao 2007)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import numpy as np

from herdner.base.arrays import Floats
from herdner.base.extras import check_extra

MEMORY = 6  # number of pairs of differences (points and gradients) that a search keeps, as in CRFsuite
_SUFFICIENT_DECREASE, _CURVATURE, _FLAT = 1e-4, 1e-10, 1e-7
_MOST_HALVINGS = 60  # maximum number of times that a step is halved
_Difference = tuple[Floats, Floats, float]  # difference of points, difference of gradients, and their product


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
    check_extra("scipy", "training needs SciPy")
    from scipy.optimize import minimize  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]
    from threadpoolctl import threadpool_limits  # pyright: ignore[reportMissingTypeStubs]

    def callback(intermediate_result: Any) -> None:  # SciPy recognises the argument by its name
        if on_iteration is not None and on_iteration(intermediate_result.x, float(intermediate_result.fun)):
            raise StopIteration

    # The last bits of BLAS sums depend on its number of threads, and its threads would contend with those of our loops.
    with threadpool_limits(1, "blas"):
        result = cast(
            Any,
            minimize(
                function, start, jac=True, method="L-BFGS-B", callback=callback, bounds=bounds, options=options or None
            ),
        )
    return result.x


def minimise_l1(
    function: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    l1: Floats,
    *,
    on_iteration: Callable[[Floats, float], bool],
    max_iterations: int,
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

    Returns:
        float64[d], the last point.
    """
    from threadpoolctl import threadpool_limits  # pyright: ignore[reportMissingTypeStubs]

    point, pairs = start, deque[_Difference](maxlen=MEMORY)
    with threadpool_limits(1, "blas"):  # see `minimise`
        smooth, gradient = function(point)
        value = smooth + float(l1 @ np.abs(point))
        for _ in range(max_iterations):
            slope = _pseudo_gradient(point, gradient, l1)
            if np.abs(slope).max(initial=0.0) <= _FLAT:
                break
            direction = _quasi_newton_direction(slope, pairs)
            direction[direction * slope >= 0] = 0.0  # only coordinates that lower the value along the axis
            orthant = np.where(point != 0, np.sign(point), -np.sign(slope))
            step = 1.0 if pairs else 1.0 / float(np.linalg.norm(slope))
            for _ in range(_MOST_HALVINGS):
                trial = point + step * direction
                trial[trial * orthant <= 0] = 0.0
                smooth, trial_gradient = function(trial)
                trial_value, shift = smooth + float(l1 @ np.abs(trial)), trial - point
                if trial_value <= value + _SUFFICIENT_DECREASE * float(slope @ shift):
                    break
                step /= 2
            else:
                break
            change = trial_gradient - gradient
            product = float(shift @ change)
            if product > _CURVATURE * float(change @ change):
                pairs.append((shift, change, product))
            point, value, gradient = trial, trial_value, trial_gradient
            if on_iteration(point, value):
                break
    return point


def _pseudo_gradient(point: Floats, gradient: Floats, l1: Floats) -> Floats:
    """Return the pseudo-gradient of a smooth function plus a weighted L1 norm, which OWL-QN needs.

    For coordinates of 0, it is the one-sided derivative in the direction of descent, or 0 if there is none.
    """
    slope = l1 * np.sign(point)
    at_zero = np.flatnonzero(point == 0)
    slope[at_zero] = -gradient[at_zero].clip(-l1[at_zero], l1[at_zero])
    slope += gradient
    return slope


def _quasi_newton_direction(slope: Floats, pairs: Iterable[_Difference]) -> Floats:
    """Return minus the inverse Hessian, approximated from ``pairs``, times ``slope`` (Nocedal 1980)."""
    direction, coefficients, work = -slope, list[float](), np.empty_like(slope)
    newest_first = list(pairs)[::-1]
    for shift, change, product in newest_first:
        coefficients.append(float(shift @ direction) / product)
        direction -= np.multiply(change, coefficients[-1], out=work)
    for _, change, product in newest_first[:1]:
        direction *= product / float(change @ change)
    for (shift, change, product), coefficient in zip(newest_first[::-1], coefficients[::-1], strict=True):
        direction += np.multiply(shift, coefficient - float(change @ direction) / product, out=work)
    return direction
