"""Peak memory of a process that builds a large grid and runs herded Gibbs sampling on it.

    python scripts/benchmarks/bench_memory.py [VARIABLES]

The script prints the megabytes (10^6 bytes) of the process, including those of Python itself.
"""

from __future__ import annotations

import argparse
import math
import resource
import subprocess
import sys

import numpy as np

from herdner import herded_gibbs, ising
from herdner.inference.gibbs import neighbour_sum_sharing

SWEEPS = 3
VARIABLES = 10_000_000


def peak_megabytes(n_variables: int) -> float:
    """Return the peak memory, in megabytes, of a new process that samples a grid.

    The operating system counts the present memory of the calling process too, so call this function before large arrays
    are allocated.
    """
    command = [sys.executable, __file__, str(n_variables)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def megabytes_taken() -> float:
    """Return the peak memory of this process so far, in megabytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def main(n_variables: int) -> None:
    columns = math.isqrt(n_variables)
    shape = (math.ceil(n_variables / columns), columns)
    graph = ising(0.3, np.random.default_rng(7).normal(0.0, 0.5, shape))
    result = herded_gibbs(SWEEPS, sharing=neighbour_sum_sharing()).infer(graph, seed=7)
    assert result.marginals is not None
    print(f"{megabytes_taken():.0f}")


if __name__ == "__main__":
    # Not typer, whose own memory would count.
    parser = argparse.ArgumentParser(description="Print the peak memory of herded Gibbs sampling of a grid.")
    parser.add_argument(
        "variables", type=int, nargs="?", default=VARIABLES, help="number of variables [default: 10 million]"
    )
    main(parser.parse_args().variables)
