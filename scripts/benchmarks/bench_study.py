"""Speed of counting the joint states of small graphs and of denoising pictures: rows for `bench_kernels.py`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from timing import Row, best_times

from herdner import Record, boltzmann_machine, bounded_error_gibbs, circular_dhg, herded_gibbs, plain_gibbs, rdhg
from herdner.inference.gibbs import neighbour_sum_sharing
from herdner.studies.convergence import count_visits
from herdner.studies.denoising import FlipNoise, posterior_graph

SAMPLES = 2**24
AUTHORS = 213.0  # ns for each update of HG-shared, the published program of HGW19, measured on another machine
SWEEPS, COUPLING = 30, 0.7


def count_rows(repeats: int, smaller: int) -> list[Row]:
    """Return the time of 2^24 samples of a ring and of a full graph of 8 variables, with counts of joint states."""
    rng = np.random.default_rng(7)
    around = [[i, (i + 1) % 8] for i in range(8)]
    ring = boltzmann_machine(rng.uniform(0.0, 1.0, 8), rng.uniform(0.0, 1.0, 8), (-1, 1), edges=around)
    pairs = np.triu_indices(8, 1)
    full = boltzmann_machine(
        rng.uniform(-0.5, 0.5, 28), rng.uniform(-0.5, 0.5, 8), (-1, 1), edges=np.stack(pairs, axis=1)
    )
    cases = {
        "count: ring, herded": (ring, herded_gibbs()),
        "count: complete graph, circular DHG(16)": (full, circular_dhg()),
        "count: complete graph, RDHG(16)": (full, rdhg()),
        "count: complete graph, Gibbs": (full, plain_gibbs()),
        "count: ring, bounded error": (ring, bounded_error_gibbs()),
    }
    n = SAMPLES // smaller**2
    best = best_times(
        {name: partial(count_visits, graph, plan, [n], seed=1) for name, (graph, plan) in cases.items()}, repeats
    )
    ns = {name: 1e9 * seconds / (8 * n) for name, seconds in best.items()}
    return [Row("count", name, each, value=each, unit="ns", target=15.0, wanted="at most") for name, each in ns.items()]


def denoise_rows(repeats: int, smaller: int) -> list[Row]:
    """Return the time of the command that denoises 1024 x 1024 pixels by 30 sweeps, and the time of an update."""
    from PIL import Image

    side, rng = 1024 // smaller, np.random.default_rng(7)
    i, j = np.indices((side, side))
    clean = (np.hypot(i - side / 2, j - side / 2) < side / 3).astype(np.int32)
    noisy = FlipNoise(0.2).observe(clean, rng)
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder, name)) for name in ("in.png", "out.png")]
        Image.fromarray(noisy > 0).save(paths[0])
        options = ["--p", "0.2", "--coupling", str(COUPLING), "--sweeps", str(SWEEPS), "--backend", "herded-gibbs"]
        words = [sys.executable, "-m", "herdner", "denoise", *paths, *options, "--set", "sharing=neighbour-sum"]
        graph = posterior_graph(noisy, FlipNoise(0.2), COUPLING)
        plan = herded_gibbs(SWEEPS, sharing=neighbour_sum_sharing(), record=Record(best=False))
        best = best_times(
            {
                "file": lambda: subprocess.run(words, check=True, capture_output=True, cwd=folder),
                "loop": lambda: plan.infer(graph, 1),
            },
            repeats,
        )
    ns = 1e9 * best["loop"] / (SWEEPS * side**2)
    what = "denoise: 1024 x 1024, HG-shared"
    return [
        Row("denoise", f"{what}, file", value=best["file"], unit="s", target=1.0, wanted="at most"),
        Row("denoise", what, ns, value=AUTHORS / ns, unit="times the authors' program", target=20.0),
    ]
