"""What a sampler keeps of the states it visits."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from numbers import Integral
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Record:
    """What to keep; what is not asked for costs nothing, and ``best`` and ``marginals``, the default, little.

    Attributes:
        best: The state of largest log-potential among the start and the states at the ends of sweeps, those of equal
            ones to within rounding; states passed through within a sweep are not looked at. Without it the result's
            state is the last one of the first run.
        marginals: How often each variable had each label at the end of a sweep after the burn-in.
        rao_blackwell: The averages of the conditionals that were sampled from after the burn-in (HGW19 Sec. 6.6).
        table_counts: The average counts of table cells after the burn-in, the expected statistics of learning.
        joint: The relative frequencies of whole states after the burn-in, for graphs of few states.
        trace: The log-potential after each sweep.
        every: Keep each every-th state after the burn-in; 0 keeps none.
    """

    best: bool = True
    marginals: bool = True
    rao_blackwell: bool = False
    table_counts: bool = False
    joint: bool = False
    trace: bool = False
    every: int = 0

    SYNTAX: ClassVar[str] = (
        "a list of best, marginals, rao-blackwell, table-counts, joint, trace, every=K (such as best,trace), or nothing"
    )

    def __post_init__(self) -> None:
        if not isinstance(self.every, Integral) or self.every < 0:
            raise ValueError(f"every must be 0 (no samples) or the distance between kept states, not {self.every!r}")

    @classmethod
    def from_text(cls, text: str) -> Record:
        """``best,trace,every=10``: just these; ``nothing``: none."""
        chosen: dict[str, bool | int] = {field.name: False for field in fields(cls)} | {"every": 0}
        for part in re.split(r"[,\s]+", text.strip().lower()):
            name, _, number = part.partition("=")
            name = name.replace("-", "_")
            if name == "every" and number.isdecimal():
                chosen["every"] = int(number)
            elif name in chosen and name != "every" and not number:
                chosen[name] = True
            elif part not in ("", "nothing"):
                raise ValueError(f"record must be {cls.SYNTAX}; {part!r} is none of them")
        return cls(**chosen)  # type: ignore[arg-type]

    def __str__(self) -> str:
        flags = [f.name.replace("_", "-") for f in fields(self) if f.name != "every" and getattr(self, f.name)]
        return ",".join(flags + [f"every={self.every}"] * bool(self.every)) or "nothing"

    @property
    def tracks_log_potential(self) -> bool:
        """The log-potential of the state is needed all along."""
        return self.best or self.trace
