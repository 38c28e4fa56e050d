"""How fast the loops are, against what users write today and in units of one libm exp, within one run.

    python scripts/benchmarks/bench_kernels.py [--only grid] [--only csr] [--json] [--quick]

Groups: ``memory``, ``chain`` (Viterbi and forward-backward against python-crfsuite), ``grid`` (Gibbs and herded Gibbs
against numba and numpy), ``csr`` (binary graphs without order), ``skip`` (chains with links, 9 labels),
``scaling``, ``count`` (states of small graphs) and ``denoise`` (a picture, from file to file). One core, best of
several runs that take turns; ratios count, times are of this machine and this moment.
``--quick`` only shows that all of it runs. The peers need numba: pip install 'herdner[bench]'.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from typing import Annotated

import typer
from bench_chain import chain_rows
from bench_gibbs import Effort, csr_rows, grid_rows, memory_rows, scaling_rows, skip_rows
from bench_study import count_rows, denoise_rows
from timing import Row, calibration

# Memory first: what this process has taken by then counts in its child's.
GROUPS: dict[str, Callable[[Effort], list[Row]]] = {
    "memory": memory_rows,
    "chain": lambda effort: chain_rows(4000 // effort.smaller, repeats=effort.repeats),
    "grid": grid_rows,
    "csr": csr_rows,
    "skip": skip_rows,
    "scaling": scaling_rows,
    "count": lambda effort: count_rows(effort.repeats, effort.smaller),
    "denoise": lambda effort: denoise_rows(effort.repeats, effort.smaller),
}


def main(
    only: Annotated[list[str] | None, typer.Option(help="A group; may be given several times. Default: all.")] = None,
    repeats: Annotated[int, typer.Option(help="Runs of each, of which the fastest counts.")] = 7,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: the numbers mean nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    chosen = only or list(GROUPS)
    unknown = sorted(set(chosen) - set(GROUPS))
    if unknown:
        raise SystemExit(f"there is no group {unknown[0]!r}; --only takes {', '.join(GROUPS)}")
    if "grid" in chosen and find_spec("numba") is None:
        raise SystemExit(
            "the peers of the group grid need numba: pip install 'herdner[bench]', or choose others by --only"
        )
    effort = Effort(200_000, 4, 1, 20) if quick else Effort(repeats=repeats)
    if not as_json:
        print(f"one libm exp: {calibration():.2f} ns")
        print(HEAD)
    found: list[Row] = []
    for group in (name for name in GROUPS if name in chosen):
        rows = GROUPS[group](effort)
        found += rows
        if not as_json:
            show(rows)
    if as_json:
        rows_as_json = [asdict(row) | {"verdict": row.verdict} for row in found]
        print(json.dumps({"quick": quick, "calibration_exp_ns": calibration(), "rows": rows_as_json}, indent=1))


HEAD = f"{'':36}{'ns':>8}{'exps':>7}{'recorded':>10}{'set-up s':>10}  measure, target"


def show(rows: Sequence[Row]) -> None:
    """A line for each; ns and exps for each update or token."""
    for row in rows:
        numbers = ((row.ns, "8.2f"), (row.exps, "7.2f"), (row.recorded_ns, "10.2f"), (row.setup_seconds, "10.3f"))
        cells = ["".rjust(int(form.split(".")[0])) if x is None else format(x, form) for x, form in numbers]
        print(f"{row.what:36}{''.join(cells)}  {measure(row)}".rstrip(), flush=True)


def measure(row: Row) -> str:
    """What counts of a row, in words."""
    if row.value is None:
        return ""
    text = f"{row.value:.4g} {row.unit}"
    if row.target is None:
        return text
    stretch = f", stretch {row.stretch:g}" if row.stretch else ""
    return f"{text} ({row.wanted} {row.target:g}{stretch}): {row.verdict}"


if __name__ == "__main__":
    typer.run(main)
