"""Tools of the benchmarks: interleaved runs, calibration by libm's `exp`, and reports with targets."""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

import numpy as np
import typer

EXPS = 200_000  # exps of one calibration run
HEAD = f"{'':52}{'ns':>10}{'exps':>7}{'recorded':>10}{'ratio':>7}{'set-up s':>10}  measure, target"
Only = Annotated[list[str] | None, typer.Option(help="Group to measure; may be repeated [default: all groups].")]
Repeats = Annotated[int, typer.Option(min=1, help="Number of runs of each measurement; the shortest counts.")]
Quick = Annotated[bool, typer.Option("--quick", help="Test the script with small sizes; the numbers mean nothing.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


@dataclass(frozen=True)
class Row:
    """Row of a report: nanoseconds per update or token, and a ``value`` that is compared with a ``target``."""

    group: str
    what: str
    ns: float | None = None
    exps: float | None = None  # ns in units of one libm exp
    recorded_ns: float | None = None  # with the default Record; in the table also as a multiple of ns
    setup_seconds: float | None = None
    value: float | None = None
    unit: str = ""
    target: float | None = None
    stretch: float | None = None
    wanted: Literal["at least", "at most"] = "at least"

    @property
    def verdict(self) -> str:
        """Return "met" or "missed", also for the stretch target, or "" if the row has no target."""
        if self.target is None or self.value is None:
            return ""
        met = self.value >= self.target if self.wanted == "at least" else self.value <= self.target
        far = self.stretch is not None and self.value >= self.stretch
        return "met, and the stretch" if far else "met" if met else "missed"

    @property
    def measure(self) -> str:
        """Return the measured quantity as text."""
        if self.value is None:
            return ""
        text = f"{self.value:.4g} {self.unit}"
        if self.target is None:
            return text
        stretch = f", stretch {self.stretch:g}" if self.stretch else ""
        return f"{text} ({self.wanted} {self.target:g}{stretch}): {self.verdict}"

    @property
    def line(self) -> str:
        """Return the row as a line of the table, with nanoseconds and `exp` units per update or token."""
        numbers = ((self.ns, "10.2f"), (self.exps, "7.2f"), (self.recorded_ns, "10.2f"), (self.setup_seconds, "10.3f"))
        cells = ["".rjust(int(form.split(".")[0])) if x is None else format(x, form) for x, form in numbers]
        cells.insert(3, f"{self.recorded_ns / self.ns:7.2f}" if self.ns and self.recorded_ns else " " * 7)
        return f"{self.what:52}{''.join(cells)}  {self.measure}".rstrip()


@dataclass(frozen=True)
class Loop:
    """Loop to measure: ``run(n)`` makes n sweeps of ``per_sweep`` updates; a measurement makes ``sweeps`` sweeps."""

    run: Callable[[int], object]
    per_sweep: int
    sweeps: int


def best_times(
    candidates: Mapping[str, Callable[[], object]], repeats: int = 5, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Return the seconds of the shortest of ``repeats`` runs of each candidate.

    The runs of the candidates are interleaved, so that a slow period of the machine affects all candidates. The clock
    ``time.process_time`` counts only the processor time of this process, also on a busy machine.
    """
    best = dict.fromkeys(candidates, float("inf"))
    for _ in range(repeats):
        for name, run in candidates.items():
            began = clock()
            run()
            best[name] = min(best[name], clock() - began)
    return best


def update_times(loops: Mapping[str, Loop], repeats: int) -> tuple[dict[str, float], float]:
    """Return the nanoseconds per update of each loop, and the nanoseconds of one call of libm's `exp`.

    The times are processor times of interleaved runs. The time of one sweep is subtracted from the time of a long run,
    which excludes set-up.
    """
    candidates: dict[str, Callable[[], object]] = {}
    for name, loop in loops.items():
        # Beside each loop: an exp is the small difference of two long times, which a few slow runs would spoil.
        candidates |= {f"{call}, {name}": run for call, run in _calibration_runs().items()}
        candidates[f"{name}, short"] = lambda loop=loop: loop.run(1)
        candidates[f"{name}, long"] = lambda loop=loop: loop.run(1 + loop.sweeps)
    best = best_times(candidates, repeats, time.process_time)
    ns = {
        name: 1e9 * (best[f"{name}, long"] - best[f"{name}, short"]) / (loop.sweeps * loop.per_sweep)
        for name, loop in loops.items()
    }
    exp, fabs = (min(best[f"{call}, {name}"] for name in loops) for call in ("exp", "fabs"))
    return ns, 1e9 * (exp - fabs) / EXPS


def calibration(repeats: int = 31) -> float:
    """Return the nanoseconds of one libm `exp`: the time of `exp` for many numbers, minus the time of `fabs`."""
    best = best_times(_calibration_runs(), repeats)
    return 1e9 * (best["exp"] - best["fabs"]) / EXPS


def _calibration_runs() -> dict[str, Callable[[], object]]:
    numbers = np.random.default_rng(0).uniform(-30.0, 0.0, EXPS).tolist()
    return {
        "exp": lambda: deque(map(math.exp, numbers), maxlen=0),
        "fabs": lambda: deque(map(math.fabs, numbers), maxlen=0),
    }


def chosen_groups(groups: Sequence[str], only: Sequence[str] | None) -> list[str]:
    """Return the groups that the option ``--only`` names, in the order of ``groups``; return all groups without it."""
    for name in only or ():
        if name not in groups:
            raise SystemExit(f"there is no group {name!r}; --only takes {', '.join(groups)}")
    return [name for name in groups if name in (only or groups)]


def report(groups: Mapping[str, Callable[[], Sequence[Row]]], quick: bool, as_json: bool, note: str = "") -> None:
    """Measure one group after another, and print the rows of each group, or all rows as JSON at the end."""
    if not as_json:
        print(f"one libm exp: {calibration():.2f} ns{note}\n{HEAD}")
    found: list[Row] = []
    for measured in groups.values():
        rows = measured()
        found += rows
        if not as_json:
            print("\n".join(row.line for row in rows), flush=True)
    if as_json:
        rows_as_json = [asdict(row) | {"verdict": row.verdict} for row in found]
        print(json.dumps({"quick": quick, "calibration_exp_ns": calibration(), "rows": rows_as_json}, indent=1))
