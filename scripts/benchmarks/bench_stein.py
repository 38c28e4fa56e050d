"""Speed and quality of the Stein samplers, all measured in one process.

    python scripts/benchmarks/bench_stein.py [--only toy] [--json] [--quick]

Groups: ``toy`` (MMD^2 against seconds on the mixture of 11 Gaussians), ``iteration`` (time of an SVGD iteration,
compared with plain NumPy and an N x N x d array) and ``line`` (time of an inner step of FWSS by the number of
particles). Set OMP_NUM_THREADS=1 for one core. scripts/papers/fwss_neural.py measures times on real data.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import typer
from timing import AsJson, Only, Quick, Row, best_times, chosen_groups, report

from herdner.studies.fwss import Adam, Points, Target, cached_fwss, eleven_gaussians, fwss, lazy_fwss, mmd2, svgd
from herdner.studies.fwss.growing import FwssOptions, ParticleRun, approximate_lmo
from herdner.studies.fwss.stein import SteinField

H = 0.3  # the bandwidth of FWSS18 Fig. 3
LMO = Adam(0.2, final=0.02)


def toy_rows(quick: bool) -> list[Row]:
    """Return rows with MMD^2 and seconds of each method, and their comparison with SVGD with 200 particles."""
    target, seeds = eleven_gaussians(), (0,) if quick else (0, 1, 2)
    assert target.kernel_mean is not None
    rows, best = [], {}
    for name, run in _toy_runs(target, quick).items():
        done = [run(seed) for seed in seeds]
        found = float(np.median([mmd2(p.x, target.kernel_mean, H, p.weights) for p in done]))
        seconds = float(np.median([p.seconds for p in done]))
        best[name] = (found, seconds)
        rows.append(Row("toy", f"{name} ({1000 * seconds:.0f} ms)", value=found, unit="MMD^2"))
    svgd_best = min((value for name, value in best.items() if name.startswith("svgd 200")), key=lambda pair: pair[0])
    good = {name: s for name, (found, s) in best.items() if "svgd" not in name and found <= svgd_best[0]}
    fastest = min(good, key=good.__getitem__) if good else None
    ratio = good[fastest] / svgd_best[1] if fastest else np.inf
    what = f"seconds of {fastest} over those of SVGD-200's best"
    rows.append(Row("toy", "below SVGD-200, in its time", value=ratio, unit=what, target=0.5, wanted="at most"))
    equal_n, slow = best["constant 200"], min(s for name, (_, s) in best.items() if name.startswith("svgd 200"))
    rows.append(Row("toy", "FWSS-200 is ahead (FWSS18)", value=slow / equal_n[1], unit="times SVGD-200's speed"))
    higher = equal_n[0] / svgd_best[0]
    rows.append(Row("toy", "SVGD-200 ends lower (FWSS18)", value=higher, unit="times its MMD^2 has FWSS-200"))
    return rows


def _toy_runs(target: Target, quick: bool) -> dict[str, Callable[[int], Points]]:
    steps = 5 if quick else 50
    runs: dict[str, Callable[[int], Points]] = {}
    for n in (50, 100, 200):
        for length in (200,) if quick else (200, 300, 400, 1000):
            runs[f"svgd {n} x {length}"] = lambda seed, n=n, length=length: svgd(
                target, n, n_iterations=length, bandwidth=H, optimiser=Adam(0.1, final=0.01), seed=seed
            )
    options = {"bandwidth": H, "optimiser": LMO}
    for step in ("constant", "line-search", "fully-corrective"):
        runs[f"{step} 200"] = lambda seed, step=step: fwss(target, 200, step=step, n_steps=steps, seed=seed, **options)
        for n, at_once, length in ((200, 20, 50), (300, 100, 20), (400, 100, 20)):
            runs[f"{step} {n}, {at_once} at once"] = lambda seed, n=n, b=at_once, length=length, step=step: fwss(
                target, n, step=step, n_steps=min(steps, length), at_once=b, seed=seed, **options
            )
    runs["line search, mu_p by scores, 200"] = lambda seed: fwss(
        target, 200, kernel_mean="stein", n_steps=steps, seed=seed, **options
    )
    for name, run in (("cached", cached_fwss), ("lazy", lazy_fwss)):
        for step in ("line-search", "fully-corrective"):
            runs[f"{name} {step} 100"] = lambda seed, run=run, step=step: _with_cache(target, run, step, seed)
    return runs


def _with_cache(target: Target, run: Callable[..., Points], step: str, seed: int) -> Points:
    """Run a method from 100 particles of a short SVGD run. The seconds of the result include the SVGD run."""
    cache = svgd(target, 100, n_iterations=100, bandwidth=H, optimiser=Adam(0.1, final=0.01), seed=seed)
    began = time.perf_counter()
    points = run(target, 100, cache=cache, step=step, bandwidth=H, optimiser=Adam(0.05, final=0.005), seed=seed)
    return Points(points.x, points.weights, seconds=cache.seconds + time.perf_counter() - began)


def iteration_rows(quick: bool) -> list[Row]:
    """Return rows with the time of SVGD's update direction, for several numbers of particles and dimensions."""
    rows = []
    for n, d in ((200, 2), (200, 56), (100, 953)):
        rng = np.random.default_rng(0)
        x, scores = rng.normal(size=(n, d)), rng.normal(size=(n, d))
        h = np.sqrt(d)
        weights = np.full(n, 1 / n)
        times = best_times(
            {
                "ours": lambda x=x, s=scores, h=h, w=weights: SteinField(x, w, s, h)(x),
                "plain": lambda x=x, s=scores, h=h: plain_direction(x, s, h),
            },
            2 if quick else 15,
        )
        np.testing.assert_allclose(SteinField(x, weights, scores, h)(x), plain_direction(x, scores, h), atol=1e-9)
        ratio = times["plain"] / times["ours"]
        rows.append(
            Row("iteration", f"SVGD, {n} particles, {d} dims", 1e9 * times["ours"] / n, value=ratio,
                unit="times plain NumPy", target=3.0)
        )  # fmt: skip
    return rows


def plain_direction(x: np.ndarray, scores: np.ndarray, h: float) -> np.ndarray:
    """Return SVGD's update direction by plain NumPy, from an array [N, N, d] of all differences of particles."""
    differences = x[:, None] - x[None]
    k = np.exp(-(differences**2).sum(axis=2) / (2 * h**2))
    return (k @ scores + (k[:, :, None] * differences).sum(axis=1) / h**2) / len(x)


def line_rows(quick: bool) -> list[Row]:
    """Return rows with the time of an inner step of FWSS at several numbers of particles, and its linearity."""
    rows = []
    for d in (2, 56):
        sizes = np.array([500, 1000, 2000, 3000, 4000, 5000])
        target = Target(eleven_gaussians().graph) if d == 2 else _standard_normal(d)
        runs = {str(n): _inner_steps(target, int(n), 50) for n in sizes}
        y = np.array(list(best_times(runs, 2 if quick else 60).values())) / 50
        straight = np.corrcoef(sizes, y)[0, 1] ** 2
        slope, start = np.polyfit(sizes, y, 1)
        what = f"R^2 of {1e6 * start:.0f} us + {1e9 * slope:.1f} ns N"
        rows.append(Row("line", f"FWSS inner step, {d} dims", 1e9 * y[-1], value=straight, unit=what, target=0.98))
    return rows


def _standard_normal(d: int) -> Target:
    from herdner.studies.fwss import density_target

    return density_target(lambda x: -(x**2).sum(axis=1) / 2, lambda x: -x, dim=d)


def _inner_steps(target: Target, n: int, n_steps: int) -> Callable[[], object]:
    x = np.random.default_rng(n).normal(size=(n, target.dim))
    start = Points(x, np.full(n, 1 / n), target.density.grad(x), {"bandwidth": np.ones(n)})
    run = ParticleRun(target, FwssOptions(step="constant", n_steps=n_steps, bandwidth=1.0), start, n + 1, 0)
    return lambda: approximate_lmo(run, x[:1] + 0.1, 0)


GROUPS: dict[str, Callable[[bool], list[Row]]] = {"toy": toy_rows, "iteration": iteration_rows, "line": line_rows}


def main(only: Only = None, quick: Quick = False, as_json: AsJson = False) -> None:
    """Measure the speed and quality of the Stein samplers. Set OMP_NUM_THREADS=1 for one core."""
    report({name: partial(GROUPS[name], quick) for name in chosen_groups(list(GROUPS), only)}, quick, as_json)


if __name__ == "__main__":
    typer.run(main)
