"""How far runs of a sampler agree, and how much they tell: hand-over to ArviZ."""

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

_LEAST_DRAWS = 8  # ArviZ wants 4 in each half


@dataclass(frozen=True, slots=True, eq=False)
class Diagnostics:
    """Convergence of the runs, for each of the N ``variables`` that were asked for.

    Attributes:
        r_hat: float64[N]: split R-hat of the indicators [x = label], the largest over the labels. Near 1 where the
            halves of the runs agree, inf where each half stands still and they differ. One run is compared with
            itself.
        ess: float64[N]: the number of independent draws with the same error of P(x = label), the smallest over the
            labels. Herded samples can have more than were drawn.
        constant: bool[N]: the variable had one label in all draws: R-hat is then 1 and ess the number of draws, which
            says that the runs agree, not that they mix.
    """

    variables: Int64s
    r_hat: Floats
    ess: Floats
    constant: NDArray[np.bool_]


def to_arviz(samples: Int32s, log_potentials: Floats | None) -> InferenceData:
    """Recorded states [C, S, V] and, where they are known, their log-potentials [C, S] for ArviZ."""
    return _arviz().from_dict(
        posterior={"x": samples},
        sample_stats=None if log_potentials is None else {"lp": log_potentials},
        dims={"x": ["variable"]},
        coords={"variable": np.arange(samples.shape[2])},
        attrs={"inference_library": "herdner"},
    )


def diagnose(samples: Int32s, variables: ArrayLike | None) -> Diagnostics:
    """The diagnostics of ``variables``, None for all, from recorded states [C, S, V]."""
    arviz = _arviz()
    n_draws, n_variables = int(samples.shape[1]), int(samples.shape[2])
    if n_draws < _LEAST_DRAWS:
        raise ValueError(f"diagnostics need at least {_LEAST_DRAWS} recorded states, not {n_draws}; run more sweeps")
    chosen = np.arange(n_variables) if variables is None else np.atleast_1d(np.asarray(variables, np.int64))
    check_variables(chosen, n_variables)
    found = np.array([_worst(arviz, samples[:, :, variable]) for variable in chosen.tolist()]).reshape(-1, 3)
    return Diagnostics(chosen, found[:, 0], found[:, 1], found[:, 2] > 0)


def _worst(arviz: Any, draws: Int32s) -> tuple[float, float, bool]:
    """R-hat, effective sample size and "constant" of one variable's draws [C, S]."""
    labels = np.unique(draws)
    if len(labels) < 2:
        return 1.0, float(draws.size), True
    labels = labels[1:] if len(labels) == 2 else labels  # two indicators of two labels say the same
    r_hats, sizes = zip(*(_of_indicator(arviz, (draws == label).astype(np.float64)) for label in labels), strict=True)
    return max(r_hats), min(sizes), False


def _of_indicator(arviz: Any, draws: Floats) -> tuple[float, float]:
    """R-hat and effective sample size of 0 and 1 [C, S], both of which occur."""
    half = draws.shape[1] // 2
    # Split here and not by ArviZ, which refuses to split a single run.
    halves = np.concatenate([draws[:, :half], draws[:, -half:]])
    stands_still = (halves == halves[:, :1]).all()
    r_hat = (np.inf if np.ptp(halves) else 1.0) if stands_still else float(arviz.rhat(halves, method="identity"))
    return r_hat, float(arviz.ess(draws, method="mean"))


def _arviz() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # news of another major version, which we do not allow
        return import_extra("arviz", "convergence diagnostics need ArviZ")
