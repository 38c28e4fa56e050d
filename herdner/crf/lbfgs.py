"""Minimisation by L-BFGS (Liu and Nocedal 1989; SciPy's L-BFGS-B)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from herdner.base.arrays import Floats


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
    # SciPy's optimisers take half a second to import, which programs that only tag should not pay.
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
