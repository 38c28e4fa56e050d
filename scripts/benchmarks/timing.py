"""The harness of the benchmarks: interleaved runs, calibration by libm exp, and reports with targets."""

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
Only = Annotated[list[str] | None, typer.Option(help="A group; may be given several times. Default: all.")]
Repeats = Annotated[int, typer.Option(min=1, help="Runs of each, of which the fastest counts.")]
Quick = Annotated[bool, typer.Option("--quick", help="Small sizes: the numbers mean nothing.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON in place of a table.")]


@dataclass(frozen=True)
class Row:
    """Line of a report: nanoseconds for each update or token, and ``value`` to compare with ``target``."""

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
        """Return met or missed, with the stretch target; "" without a target."""
        if self.target is None or self.value is None:
            return ""
        met = self.value >= self.target if self.wanted == "at least" else self.value <= self.target
        far = self.stretch is not None and self.value >= self.stretch
        return "met, and the stretch" if far else "met" if met else "missed"

    @property
    def measure(self) -> str:
        """Return the text of the measured quantity."""
        if self.value is None:
            return ""
        text = f"{self.value:.4g} {self.unit}"
        if self.target is None:
            return text
        stretch = f", stretch {self.stretch:g}" if self.stretch else ""
        return f"{text} ({self.wanted} {self.target:g}{stretch}): {self.verdict}"

    @property
    def line(self) -> str:
        """Return a line of the table; ns and exps are per update or token."""
        numbers = ((self.ns, "10.2f"), (self.exps, "7.2f"), (self.recorded_ns, "10.2f"), (self.setup_seconds, "10.3f"))
        cells = ["".rjust(int(form.split(".")[0])) if x is None else format(x, form) for x, form in numbers]
        cells.insert(3, f"{self.recorded_ns / self.ns:7.2f}" if self.ns and self.recorded_ns else " " * 7)
        return f"{self.what:52}{''.join(cells)}  {self.measure}".rstrip()


@dataclass(frozen=True)
class Loop:
    """Work in sweeps of ``per_sweep`` updates: ``run(sweeps)`` makes them, and ``sweeps`` of them are timed."""

    run: Callable[[int], object]
    per_sweep: int
    sweeps: int


def best_times(
    candidates: Mapping[str, Callable[[], object]], repeats: int = 5, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Return the shortest of ``repeats`` runs of each candidate, in seconds.

    The candidates are interleaved, so that a slow period affects all. ``clock``: time.process_time counts only the
    processor time of this process, also on a busy machine.
    """
    best = dict.fromkeys(candidates, float("inf"))
    for _ in range(repeats):
        for name, run in candidates.items():
            began = clock()
            run()
            best[name] = min(best[name], clock() - began)
    return best


def update_times(loops: Mapping[str, Loop], repeats: int) -> tuple[dict[str, float], float]:
    """Return the nanoseconds per update of each loop, and those of one libm exp, interleaved.

    The time of one sweep is subtracted from that of a long run, so that set-up does not count; processor time.
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
    """Return the nanoseconds of one libm exp: the difference between mapping exp and mapping fabs over numbers."""
    best = best_times(_calibration_runs(), repeats)
    return 1e9 * (best["exp"] - best["fabs"]) / EXPS


def _calibration_runs() -> dict[str, Callable[[], object]]:
    numbers = np.random.default_rng(0).uniform(-30.0, 0.0, EXPS).tolist()
    return {
        "exp": lambda: deque(map(math.exp, numbers), maxlen=0),
        "fabs": lambda: deque(map(math.fabs, numbers), maxlen=0),
    }


def chosen_groups(groups: Sequence[str], only: Sequence[str] | None) -> list[str]:
    """Return the groups that ``--only`` names, in the order of ``groups``, or all."""
    for name in only or ():
        if name not in groups:
            raise SystemExit(f"there is no group {name!r}; --only takes {', '.join(groups)}")
    return [name for name in groups if name in (only or groups)]


def report(groups: Mapping[str, Callable[[], Sequence[Row]]], quick: bool, as_json: bool, note: str = "") -> None:
    """Measure group after group; print each row when its group is done, or all rows as JSON."""
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
