"""What is known for certain of a sample: a bound of its distance from the target, and what it rests on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A guarantee of a Gibbs sampler by Dobrushin variation (DoGS17 Theorem 8).

    From whatever state a run of the scan begins, the mean of any function of the state at its end that changes by at
    most d_i where variable i changes is within ``bound`` of its mean under the target, d being the importances. With
    d = 1 for some variables and 0 for the others, that bounds the total variation distance of their joint marginal.

    Attributes:
        bound: The Dobrushin variation of the scan.
        trivial: The sum of d, which bounds it without any sampling.
        n_steps: Updates of the scan.
        theorem: Where the bounds of influence come from.
        total_influence: The smallest of their norms; below 1, longer scans have bounds as small as wanted.
        systematic: The bound of the systematic scan of as many steps.
        broken: Assumptions that the run does not meet.
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
        """The bound says nothing."""
        return bool(self.broken) or not self.bound < self.trivial

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the bound rests on."""
        return (
            "labels are drawn from their full conditionals (c = infinity)",
            "constant inverse temperature (beta = 1)",
        )

    def __str__(self) -> str:
        if self.broken:
            return f"no guarantee: {'; '.join(self.broken)}"
        what = f"after {self.n_steps} updates the weighted total variation is at most {self.bound:.4g}"
        if self.vacuous:
            return f"{what}, which says nothing: it is never above {self.trivial:.4g}"
        return f"{what} (systematic scan: {self.systematic:.4g})"
