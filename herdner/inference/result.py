"""The result of inference, the same for all backends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.base.representation import short_repr
from herdner.inference.diagnostics import Diagnostics, diagnose, to_arviz
from herdner.inference.plots import plot_marginals, plot_trace

if TYPE_CHECKING:
    from arviz import InferenceData
    from matplotlib.axes import Axes

    from herdner.dobrushin.certificate import Certificate


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Result:
    """Result of ``backend.infer``. Fields are None if they were not requested or the backend cannot compute them.

    V is the number of variables, K their largest number of states, C the number of runs.

    Attributes:
        state: int32[V], the best joint state: the global optimum for exact backends; for samplers the best of the start
            and the ends of sweeps.
        log_potential: Unnormalised log-probability of ``state``.
        method: Method that the backend ``auto`` chose, and the reason of the choice; the predicted cost (``exact``).
        best_states: int32[B, V], the B best joint states, best first (``exact``).
        best_log_potentials: float64[B], their log-potentials.
        log_z: Logarithm of the partition function.
        log_z_interval: Interval that contains the logarithm of the partition function in about 95 of 100 runs
            (``annealed-importance``, ``auto``).
        log_z_bounds: Proven lower and upper bound on the logarithm of the partition function (``mini-bucket``,
            ``tree-reweighted``).
        marginals: float64[V, K], the probability of each state of each variable, 0 for states that a variable does not
            have. Samplers average the visited states.
        rao_blackwell: float64[V, K], marginals as averages of the conditional distributions that the draws used (HGW19
            Sec. 6.6).
        table_counts: One array for each group of factors, in the shape of its tables: the derivative of log Z with
            respect to the tables. It is the expected number of factors in each cell, each factor weighted by its scale.
            For the table of one factor with two variables these are its pairwise marginals.
        joint: float64[K1, .., KV], relative frequencies of joint states.
        trace: float64[C, n_sweeps], the log-potential after each sweep.
        samples: int32[C, S, V], recorded joint states.
        sample_sweeps: int64[S], the index of the sweep after which each sample was recorded.
        converged: True if the messages or the distributions have converged, False if not (``sum-product``,
            ``belief-propagation``, ``max-product``, ``tree-reweighted``, ``mean-field``).
        n_updates: Number of updates of single variables, or of messages (``belief-propagation``).
        seconds: Wall time in seconds, including the compilation of the graph.
        error_bounds: float64[V], bounds on the error of ``marginals`` in total variation (``sum-product`` with the
            option ``error_bounds``).
        certificate: Guarantee for the state after each sweep (``dogs``).
    """

    state: Int32s
    log_potential: float
    log_z: float | None = None
    log_z_interval: tuple[float, float] | None = None
    log_z_bounds: tuple[float, float] | None = None
    marginals: Floats | None = None
    rao_blackwell: Floats | None = None
    table_counts: tuple[Floats, ...] | None = None
    joint: Floats | None = None
    trace: Floats | None = None
    samples: Int32s | None = None
    sample_sweeps: Int64s | None = None
    converged: bool | None = None
    n_updates: int | None = None
    seconds: float = 0.0
    error_bounds: Floats | None = None
    certificate: Certificate | None = None
    method: str | None = None
    best_states: Int32s | None = None
    best_log_potentials: Floats | None = None

    __repr__ = short_repr

    def to_arviz(self) -> InferenceData:
        """Convert samples to an ArviZ data set: variable "x" [chain, draw, variable] (needs the extra ``evaluate``).

        If the log-potentials of the samples were recorded, ``sample_stats`` holds them as "lp" [chain, draw].

        Returns:
            The ArviZ data set.

        Raises:
            ValueError: No joint states were recorded.
        """
        samples, log_potentials = self._samples(), None
        if self.trace is not None and self.sample_sweeps is not None:
            log_potentials = self.trace[:, self.sample_sweeps]
        elif self.trace is not None and self.trace.shape == samples.shape[:2]:
            log_potentials = self.trace
        return to_arviz(samples, log_potentials)

    def diagnostics(self, variables: ArrayLike | None = None) -> Diagnostics:
        """Return split R-hat and the effective sample size of each variable (needs the extra ``evaluate``).

        The computation takes about 0.2 ms per variable and state for 2000 draws.

        Args:
            variables: int[N], the variables; None is all.

        Raises:
            ValueError: Fewer than 8 joint states were recorded, or a variable does not exist.
        """
        return diagnose(self._samples(), variables)

    def plot_trace(self, ax: Axes | None = None) -> Axes:
        """Plot the log-potential after each sweep, one line per run (needs the extra ``evaluate``).

        Args:
            ax: Axes to draw on; None creates a figure.

        Returns:
            The axes.

        Raises:
            ValueError: No trace was recorded.
        """
        if self.trace is None:
            raise ValueError("the result holds no trace; pass record=Record(trace=True) to the sampler")
        return plot_trace(self.trace, self.log_potential, ax)

    def plot_marginals(
        self,
        ax: Axes | None = None,
        *,
        variables: ArrayLike | None = None,
        shape: Sequence[int] | None = None,
        state: int | None = None,
    ) -> Axes:
        """Plot the marginals; Rao-Blackwellised marginals are preferred if available (needs the extra ``evaluate``).

        Args:
            ax: Axes to draw on; None creates a figure.
            variables: int[N], the variables to draw as stacked bars; None is the first 50.
            shape: (rows, columns) of an image of all variables in row-major order, in place of bars.
            state: The state whose probability is drawn. None draws all states as bars. In an image, None draws the
                probability of state 1 of variables with two states, and the most probable state of variables with more
                states.

        Returns:
            The axes.

        Raises:
            ValueError: The result has no marginals, or an argument does not fit the graph.
        """
        marginals = self.marginals if self.rao_blackwell is None else self.rao_blackwell
        if marginals is None:
            raise ValueError("the result holds no marginals; pass record=Record(marginals=True) to the sampler")
        return plot_marginals(marginals, ax, variables, shape, state)

    def _samples(self) -> Int32s:
        if self.samples is None:
            raise ValueError("the result holds no samples; pass record=Record(every=k) to record every k-th state")
        return self.samples
