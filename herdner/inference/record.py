"""The contents of a sampler's result."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from numbers import Integral
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Record:
    """Selection of the results that a run records. The default is the best state and the marginals.

    Attributes:
        best: The joint state of largest log-potential among the start and the ends of all sweeps. States within a sweep
            are not compared. Without ``best``, the result holds the last state of the first run.
        marginals: Relative frequencies of each variable's states at the ends of sweeps after the burn-in.
        rao_blackwell: Averages of the conditional distributions that the draws after the burn-in used (HGW19 Sec. 6.6).
        table_counts: Average number of factors in each table cell after the burn-in: the expected statistics that
            learning needs.
        joint: Relative frequencies of joint states after the burn-in, for graphs of few joint states.
        trace: Log-potential after each sweep.
        every: Number of sweeps between recorded joint states after the burn-in; 0 records none.
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
        """Raise ``ValueError`` unless ``every`` is an integer of at least 0."""
        if not isinstance(self.every, Integral) or self.every < 0:
            raise ValueError(
                f"`every` must be a number of sweeps, at least 0 (0 records no states), got {self.every!r}"
            )

    @classmethod
    def from_text(cls, text: str) -> Record:
        """Parse a choice of what to record, such as ``best,trace,every=10``; the rest is not recorded.

        Args:
            text: Names of fields, separated by commas or white space, or ``nothing``.

        Returns:
            The record.

        Raises:
            ValueError: A name is unknown.
        """
        values: dict[str, bool | int] = {field.name: False for field in fields(cls)} | {"every": 0}
        for part in re.split(r"[,\s]+", text.strip().lower()):
            name, _, number = part.partition("=")
            name = name.replace("-", "_")
            if name == "every" and number.isdecimal():
                values["every"] = int(number)
            elif name in values and name != "every" and not number:
                values[name] = True
            elif part not in ("", "nothing"):
                raise ValueError(f"record must be {cls.SYNTAX}, got {part!r}")
        return cls(**values)  # type: ignore[arg-type]

    def __str__(self) -> str:
        """Return the record as a string that `Record.from_text` parses."""
        flags = [f.name.replace("_", "-") for f in fields(self) if f.name != "every" and getattr(self, f.name)]
        return ",".join(flags + [f"every={self.every}"] * bool(self.every)) or "nothing"

    @property
    def tracks_log_potential(self) -> bool:
        """True if the engine must compute the log-potential of the joint state after every update of a variable."""
        return self.best or self.trace
