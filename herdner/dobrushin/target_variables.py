"""The variables that matter to a question: what scans can be optimised for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from herdner.base.checks import is_number, whole
from herdner.base.options import from_call


@dataclass(frozen=True, slots=True)
class Targets:
    """Variables of importance; made by the functions below."""

    kind: Literal["all", "variables", "uncertain"] = "all"
    variables: tuple[int, ...] = ()
    probability: float = 0.0

    WORDS: ClassVar[str] = "all, variables(0, 5, ..) or uncertain(0.05)"

    def __post_init__(self) -> None:
        if self.kind not in ("all", "variables", "uncertain"):
            raise ValueError(f"targets must be {self.WORDS}, not {self.kind!r}")
        for i in self.variables:
            whole(i, "a target variable", 0)
        if not is_number(self.probability) or not 0 <= self.probability < 1:
            raise ValueError(
                f"the probability of an uncertain variable is at least 0 and below 1, not {self.probability}"
            )

    @classmethod
    def from_text(cls, text: str) -> Targets:
        """The targets that ``all``, ``variables(0, 5)`` or ``uncertain(0.05)`` stand for; ValueError for others."""
        functions = {"all": everything, "variables": variables, "uncertain": uncertain}
        return from_call(text, functions, "targets", cls.WORDS)

    def __str__(self) -> str:
        if self.kind == "variables":
            return f"variables({', '.join(map(str, self.variables))})"
        return f"uncertain({self.probability:g})" if self.kind == "uncertain" else "all"


def everything() -> Targets:
    """All variables."""
    return Targets()


def variables(*chosen: int) -> Targets:
    """These variables."""
    return Targets("variables", chosen)


def uncertain(probability: float = 0.05) -> Targets:
    """The variables whose best label has less than 1 - ``probability`` by the chain alone, the factors of one variable
    and of two consecutive ones.
    """
    return Targets("uncertain", probability=probability)
