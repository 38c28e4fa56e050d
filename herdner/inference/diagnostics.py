"""Convergence diagnostics of samplers, computed by ArviZ."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.base.checks import check_variables
from herdner.base.extras import import_extra

if TYPE_CHECKING:
    from arviz import InferenceData

_LEAST_DRAWS = 8  # ArviZ requires 4 in each half


@dataclass(frozen=True, slots=True, eq=False)
class Diagnostics:
    """Convergence diagnostics of N variables, computed from the runs of a sampler.

    Attributes:
        variables: int64[N], the variables.
        r_hat: float64[N], split R-hat of the indicators [x = state], the maximum over the states. It is near 1 if the
            halves of all runs agree, and inf if each half is constant but the halves differ.
        ess: float64[N], the effective sample size: the number of independent draws that would estimate P(x = state)
            with the same error; the minimum over the states. For herded samples it can exceed the number of draws.
        constant: bool[N], true if the variable had one state in all draws. R-hat is then 1 and ess the number of draws,
            which shows agreement of the runs but not mixing.
    """

    variables: Int64s
    r_hat: Floats
    ess: Floats
    constant: NDArray[np.bool_]

    def __repr__(self) -> str:
        """Return one line with the largest R-hat and the smallest effective sample size."""
        if not len(self.variables):
            return "Diagnostics(0 variables)"
        return (
            f"Diagnostics({len(self.variables)} variables, R-hat at most {self.r_hat.max():.4f}, "
            f"ess at least {self.ess.min():.0f}, {self.constant.sum()} constant)"
        )


def to_arviz(samples: Int32s, log_potentials: Floats | None) -> InferenceData:
    """Convert samples to a data set of ArviZ.

    Args:
        samples: int32[C, S, V], recorded joint states.
        log_potentials: float64[C, S], their log-potentials, or None.

    Returns:
        The data set, with variable "x" [chain, draw, variable].
    """
    return _arviz().from_dict(
        posterior={"x": samples},
        sample_stats=None if log_potentials is None else {"lp": log_potentials},
        dims={"x": ["variable"]},
        coords={"variable": np.arange(samples.shape[2])},
        attrs={"inference_library": "herdner"},
    )


def diagnose(samples: Int32s, variables: ArrayLike | None) -> Diagnostics:
    """Compute R-hat and effective sample sizes of samples.

    Args:
        samples: int32[C, S, V], recorded joint states.
        variables: int[N], the variables; None is all.

    Returns:
        The diagnostics of each variable.

    Raises:
        ValueError: There are fewer than 8 samples, or a variable does not exist.
    """
    arviz = _arviz()
    n_draws, n_variables = int(samples.shape[1]), int(samples.shape[2])
    if n_draws < _LEAST_DRAWS:
        raise ValueError(
            f"diagnostics need at least {_LEAST_DRAWS} recorded states per run, not {n_draws}; run more sweeps"
        )
    selection = np.arange(n_variables) if variables is None else np.atleast_1d(np.asarray(variables, np.int64))
    check_variables(selection, n_variables)
    rows = [_diagnose_variable(arviz, samples[:, :, variable]) for variable in selection.tolist()]
    r_hat, ess, constant = np.array(rows).reshape(-1, 3).T
    return Diagnostics(selection, r_hat, ess, constant > 0)


def _diagnose_variable(arviz: Any, draws: Int32s) -> tuple[float, float, bool]:
    """Return R-hat, the effective sample size, and True if all draws [chains, samples] of a variable are equal."""
    states = np.unique(draws)
    if len(states) < 2:
        return 1.0, float(draws.size), True
    states = states[1:] if len(states) == 2 else states  # both indicators of two states have the same diagnostics
    r_hats, sizes = zip(
        *(_diagnose_indicator(arviz, (draws == state).astype(np.float64)) for state in states), strict=True
    )
    return max(r_hats), min(sizes), False


def _diagnose_indicator(arviz: Any, draws: Floats) -> tuple[float, float]:
    """Return R-hat and the effective sample size of 0-1 draws [chains, samples] that are not all equal."""
    half = draws.shape[1] // 2
    # Split here because ArviZ refuses to split a single run.
    halves = np.concatenate([draws[:, :half], draws[:, -half:]])
    is_constant = (halves == halves[:, :1]).all()
    r_hat = (np.inf if np.ptp(halves) else 1.0) if is_constant else float(arviz.rhat(halves, method="identity"))
    return r_hat, float(arviz.ess(draws, method="mean"))


def _arviz() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # announces a major version that this package does not support
        return import_extra("arviz", "convergence diagnostics need ArviZ")
