"""Error parts of a sampler on a graph file of HGW19's authors, in the columns of their result files.

    python scripts/papers/hgw19_raw.py GRAPH [--method dhg --bins 4] [--powers 24] [--runs 10] [--beside FILE]
    python scripts/papers/hgw19_raw.py GRAPH --expectation labels [--runs 100] ..

The script prints D^all, D^z, D^herding, D^approx, D^cor and D^bin after 2, 4, .., 2^powers sweeps, as the authors'
program does (see authors_files.py). With --beside FILE, a result file of the authors, each column shows herdner's
result, the authors' result, and the difference in standard errors, which assumes that both programs have the same
variance. --expectation prints the numbers of Fig. 9 instead, one on each line, after 1, 2, .., 2^(powers - 1) sweeps;
each trial continues the previous trial.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer
from authors_files import (
    COLUMNS,
    error_table,
    expectation_table,
    read_boltzmann,
    read_expectations,
    read_table,
    table_text,
)

from herdner import FactorGraph, Gibbs, bounded_error_gibbs, circular_dhg, dhg, herded_gibbs, plain_gibbs, rdhg
from herdner.inference.gibbs import bin_sharing

Method = Literal["gibbs", "herded-gibbs", "dhg", "circular-dhg", "rdhg", "bounded-error"]


def plan_of(method: str, n_bins: int, error_bound: float) -> Gibbs:
    plans = {
        "gibbs": plain_gibbs(), "herded-gibbs": herded_gibbs(), "dhg": dhg(n_bins=n_bins), "rdhg": rdhg(n_bins=n_bins),
        "circular-dhg": circular_dhg(n_bins=n_bins), "bounded-error": bounded_error_gibbs(error_bound=error_bound),
    }  # fmt: skip
    return plans[method]


def beside(lengths: list[int], mean: np.ndarray, sd: np.ndarray, runs: int, path: Path) -> str:
    """Return lines with herdner's results, the authors' results and their differences in standard errors."""
    theirs = dict(zip(*read_table(path), strict=True))
    lines = [f"{'sweeps':>9} " + "".join(f"{'D^' + name:>29}" for name in COLUMNS)]
    for n, ours, error in zip(lengths, mean, sd * np.sqrt(2 / runs), strict=True):
        if n in theirs:
            lines.append(f"{n:9} " + "".join(map(_cell, ours, theirs[n], error)))
    return "\n".join(lines)


def expectations(
    model: FactorGraph, plan: Gibbs, powers: int, trials: int, seed: int, kind: str, theirs: Path | None
) -> str:
    """Return the lines of a table of Fig. 9, or herdner's results beside the authors' results."""
    lengths = [2**k for k in range(powers)]
    mean, sd = expectation_table(model, plan, lengths, trials, seed)[:, :, int(kind == "conditionals")]
    if theirs is None:
        return "".join(f"{value:.15f}\n" for value in mean)
    rows = zip(lengths, mean, sd * np.sqrt(2 / trials), read_expectations(theirs)[1], strict=False)
    return "".join(f"{n:9} {_cell(a, b, e)}\n" for n, a, e, b in rows)


def _cell(ours: float, theirs: float, error: float) -> str:
    """Return a cell with both numbers and their difference in standard errors."""
    apart = f"{(ours - theirs) / error:+.1f}" if error > 0 else "same" if abs(ours - theirs) < 1e-12 else "-"
    return f"{f'{ours:.4g} / {theirs:.4g} ({apart})':>29}"


def main(
    graph: Annotated[Path, typer.Argument(help="Graph file in the authors' format.")],
    method: Annotated[Method, typer.Option(help="Sampler.")] = "herded-gibbs",
    n_bins: Annotated[int, typer.Option("--bins", min=1, help="Number of bins of dhg, circular-dhg, rdhg.")] = 16,
    error_bound: Annotated[float, typer.Option(min=0, help="Error bound c of bounded-error.")] = 1.0,
    powers: Annotated[int, typer.Option(min=1, max=32, help="Largest number of sweeps is 2^POWERS.")] = 20,
    runs: Annotated[int, typer.Option(min=2, help="Number of runs to average.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    expectation: Annotated[
        Literal["labels", "conditionals"] | None,
        typer.Option(help="Print the error of the last variable's mean instead."),
    ] = None,
    theirs: Annotated[Path | None, typer.Option("--beside", help="Result file of the authors to compare with.")] = None,
) -> None:
    """Print the error parts of a sampler on a graph file, in the columns of the result files of HGW19's authors."""
    lengths = [2**k for k in range(1, powers + 1)]
    try:
        plan, model = plan_of(method, n_bins, error_bound), read_boltzmann(graph)
        if expectation is not None:
            print(expectations(model, plan, powers, runs, seed, expectation, theirs), end="")
            return
        grouped = bin_sharing(n_bins) if method == "gibbs" and n_bins != 16 else None
        mean, sd = error_table(model, plan, lengths, runs, seed, sharing=grouped, spread=True)
        print(table_text(lengths, mean) if theirs is None else beside(lengths, mean, sd, runs, theirs), end="\n")
    except (ValueError, OSError) as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    typer.run(main)
