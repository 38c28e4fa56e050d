"""Certificates: guaranteed bounds on the distance between a Gibbs sample and its target distribution."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """Upper bound on the error of a Gibbs sampler after a scan: the scan's Dobrushin variation (DoGS17, Theorem 8).

    Let d_i be the importance of variable i. Take any function of the final state that changes by at most d_i when
    variable i changes. Its mean under the sampler is within ``bound`` of its mean under the target, for every initial
    state. If d is 1 for some variables and 0 for the others, the certificate bounds the total variation distance of
    their joint marginal.

    Attributes:
        bound: The Dobrushin variation of the scan.
        trivial: The sum of all d_i. The distance never exceeds this number, even without sampling.
        n_steps: Number of single-variable updates of the scan.
        theorem: Source of the influence bounds.
        total_influence: The smallest norm of the influence matrix. Below 1, the bounds for longer scans tend to 0.
        systematic: The Dobrushin variation of the systematic scan with the same number of steps.
        broken: Assumptions of the theorem that the run violates.
    """

    bound: float
    trivial: float
    n_steps: int
    theorem: str
    total_influence: float
    systematic: float
    broken: tuple[str, ...] = ()

    @property
    def vacuous(self) -> bool:
        """True if the bound says nothing about the sampler's error: it is too large, or an assumption is violated."""
        return bool(self.broken) or not self.bound < self.trivial

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions under which the bound holds, one sentence each."""
        return "states are drawn from their full conditionals (c = infinity)", "constant inverse temperature (beta = 1)"

    def __str__(self) -> str:
        """Return the certificate as a one-line summary."""
        if self.broken:
            return f"no certificate: {'; '.join(self.broken)}"
        if self.vacuous:
            return (
                f"no certificate: after {self.n_steps} updates the bound is {self.bound:.4g}, not below the trivial"
                f" bound {self.trivial:.4g}"
            )
        bound = f"after {self.n_steps} updates the weighted total variation is at most {self.bound:.4g}"
        return f"{bound} (systematic scan: {self.systematic:.4g})"
