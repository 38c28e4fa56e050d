"""What inference returns, whichever backend did it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.inference.diagnostics import Diagnostics, diagnose, to_arviz
from herdner.inference.plots import plot_marginals, plot_trace

if TYPE_CHECKING:
    from arviz import InferenceData
    from matplotlib.axes import Axes

    from herdner.dobrushin.certificate import Certificate


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Result:
    """The outcome of ``backend.infer``; what was not asked for, or what a backend cannot give, is None.

    V variables, K the largest number of labels, C runs.

    Attributes:
        state: int32[V]: the state of largest log-potential that was found (exact backends: there is); samplers look at
            their start and at the ends of sweeps.
        log_potential: Its log-potential, not normalised.
        best_states: int32[B, V]: the B best states, best first (``exact``).
        best_log_potentials: float64[B]: their log-potentials.
        log_z: The logarithm of the partition function.
        marginals: float64[V, K]: P(variable = label), 0 for labels a variable has not; samplers: the average of the
            visited states.
        rao_blackwell: float64[V, K]: the same by the average of the conditionals that were drawn from (HGW19 Sec. 6.6).
        table_counts: Per group of factors an array like its tables, the derivative of log Z by them: the expected
            number of factors whose table and labels these are, each factor counted ``scale`` times.
        joint: float64[K1, .., KV]: the relative frequencies of the whole states.
        trace: float64[C, n_sweeps]: the log-potential after each sweep.
        samples: int32[C, S, V]: recorded states.
        sample_sweeps: int64[S]: the sweep, counted from 0, after which each of them was recorded.
        n_updates: Single variables drawn anew.
        seconds: Wall time, compilation of the graph included.
        error_bounds: float64[V]: how far ``marginals`` are off at most, in total variation, each variable's
            (``sum-product``, if asked for).
        certificate: What is guaranteed of the state after each sweep (``dogs``).
    """

    state: Int32s
    log_potential: float
    log_z: float | None = None
    marginals: Floats | None = None
    rao_blackwell: Floats | None = None
    table_counts: tuple[Floats, ...] | None = None
    joint: Floats | None = None
    trace: Floats | None = None
    samples: Int32s | None = None
    sample_sweeps: Int64s | None = None
    n_updates: int | None = None
    seconds: float = 0.0
    error_bounds: Floats | None = None
    certificate: Certificate | None = None
    best_states: Int32s | None = None
    best_log_potentials: Floats | None = None

    def to_arviz(self) -> InferenceData:
        """The samples for ArviZ (extra ``evaluate``): posterior variable "x" [chain, draw, variable].

        Where the sweeps of the samples are known, or every sweep was recorded, ``sample_stats`` holds their
        log-potentials, "lp" [chain, draw].

        Raises:
            ValueError: No states were recorded.
        """
        samples, log_potentials = self._recorded(), None
        if self.trace is not None and self.sample_sweeps is not None:
            log_potentials = self.trace[:, self.sample_sweeps]
        elif self.trace is not None and self.trace.shape == samples.shape[:2]:
            log_potentials = self.trace
        return to_arviz(samples, log_potentials)

    def diagnostics(self, variables: ArrayLike | None = None) -> Diagnostics:
        """R-hat and effective sample size of each variable, or of ``variables`` int[N] only (extra ``evaluate``).

        Takes about 0.2 ms for each variable and label at 2000 draws.

        Raises:
            ValueError: Fewer than 8 states were recorded.
        """
        return diagnose(self._recorded(), variables)

    def plot_trace(self, ax: Axes | None = None) -> Axes:
        """Draws the log-potential after each sweep, a line for each run (extra ``evaluate``); returns the axes."""
        if self.trace is None:
            raise ValueError("no trace was recorded; ask the sampler for it by record=Record(trace=True)")
        return plot_trace(self.trace, self.log_potential, ax)

    def plot_marginals(
        self,
        ax: Axes | None = None,
        *,
        variables: ArrayLike | None = None,
        shape: Sequence[int] | None = None,
        label: int | None = None,
    ) -> Axes:
        """Draws the marginals, Rao-Blackwellised where there are such (extra ``evaluate``); returns the axes.

        A bar for each variable, stacked by label: of ``variables`` int[N], by default of the first 50. With ``shape``
        (rows, columns) an image instead, variables in row-major order: the probability of ``label``, by default of 1
        where there are two labels, and otherwise the most probable label.
        """
        marginals = self.marginals if self.rao_blackwell is None else self.rao_blackwell
        if marginals is None:
            raise ValueError(
                "the result holds no marginals; ask for them, from samplers by record=Record(marginals=True)"
            )
        return plot_marginals(marginals, ax, variables, shape, label)

    def _recorded(self) -> Int32s:
        if self.samples is None:
            raise ValueError("no states were recorded; ask the sampler for every k-th by record=Record(every=k)")
        return self.samples
