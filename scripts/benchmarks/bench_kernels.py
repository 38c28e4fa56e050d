"""Speed of the compiled loops, compared with loops in numba and NumPy, or in units of one call of libm's `exp`.

    python scripts/benchmarks/bench_kernels.py [--only grid] [--only csr] [--json] [--quick]

Groups: ``memory``, ``chain`` (Viterbi and forward-backward against python-crfsuite), ``grid`` (Gibbs and herded Gibbs
against numba and numpy), ``csr`` (binary graphs without order), ``skip`` (chains with links, 9 tags), ``scaling``,
``count`` (joint states of small graphs) and ``denoise`` (a picture, from file to file). Everything runs on one core;
each time is the shortest of several interleaved runs. Ratios are comparable between machines, times are not.
``--quick`` only tests that the script runs. The loops for comparison need numba: pip install '.[dev]'.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

import typer
from bench_chain import chain_rows
from bench_gibbs import Effort, csr_rows, grid_rows, memory_rows, scaling_rows, skip_rows
from bench_study import count_rows, denoise_rows
from timing import AsJson, Only, Quick, Repeats, Row, chosen_groups, report

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


def main(only: Only = None, repeats: Repeats = 7, quick: Quick = False, as_json: AsJson = False) -> None:
    """Measure the compiled loops, compared with loops in numba and NumPy, or in units of one libm exp."""
    chosen = chosen_groups(list(GROUPS), only)
    if "grid" in chosen and find_spec("numba") is None:
        raise SystemExit("the group grid needs numba: pip install '.[dev]', or select other groups by --only")
    effort = Effort(200_000, 4, 1, 20) if quick else Effort(repeats=repeats)
    report({name: partial(GROUPS[name], effort) for name in chosen}, quick, as_json)


if __name__ == "__main__":
    typer.run(main)
