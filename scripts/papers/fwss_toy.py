"""FWSS18, App. G.2 and H, Fig. 3, 4, 5, 10 and 11: the mixture of 11 Gaussians, by every sampler.

The figure shows particles over the density, and MMD^2 against the number of particles and against time. It also shows
the decay of MMD under each step rule beside the paper's claims, and the duality gap beside Frank-Wolfe's bound. The
decay and the gap are computed twice: with the paper's oracle, 50 moves of Adam, and with an oracle that checks all
points of a fine grid. Stein points (Fig. 10) are computed for both objectives and by three searches. The costs of Table
1 are the evaluations of the score and the seconds of one iteration.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from experiment import Experiment, command

from herdner.studies.fwss import (
    Adam,
    Points,
    Target,
    cached_fwss,
    eleven_gaussians,
    fwss,
    lazy_fwss,
    mmd2,
    quadrature_weights,
    stein_points,
    svgd,
)
from herdner.studies.fwss.kernels import KernelMean, rbf

H = 0.3
LMO = Adam(0.2, final=0.02)
STEPS = ("constant", "line-search", "fully-corrective")


def truth(target: Target) -> KernelMean:
    """Return the exact kernel mean of the mixture."""
    assert target.kernel_mean is not None
    return target.kernel_mean


def fwss_of(target: Target, n: int, step: str, seed: int, **options) -> Points:
    options = {"bandwidth": H, "n_steps": 50, "optimiser": LMO, **options}
    return fwss(target, n, step=step, seed=seed, **options)  # type: ignore[arg-type]


def svgd_of(target: Target, n: int, seed: int) -> Points:
    return svgd(target, n, n_iterations=400, bandwidth=H, optimiser=Adam(0.1, final=0.01), seed=seed)


def particle_runs(target: Target, n: int, seed: int) -> dict[str, Callable[[], Points]]:
    """Return a function for the particles of each panel: Fig. 3a, 4a, 4b, 5a, 5b, 11, 10, lazy and batched FWSS."""
    box = [[-4.0, 4.0], [-4.0, 4.0]]
    return {
        "FWSS, h = 0.3": lambda: fwss_of(target, n, "constant", seed),
        "FWSS, h = 0.05": lambda: fwss_of(target, n, "constant", seed, bandwidth=0.05),
        "FWSS, h = 1.5": lambda: fwss_of(target, n, "constant", seed, bandwidth=1.5),
        "FWSS, median": lambda: fwss_of(target, n, "constant", seed, bandwidth="median"),
        "SVGD, h = 0.3": lambda: svgd_of(target, n, seed),
        "Cache-FWSS": lambda: with_cache(target, cached_fwss, n, seed, step="constant"),
        "Lazy FWSS": lambda: with_cache(target, lazy_fwss, n, seed, step="line-search"),
        "FWSS, 20 at once, corrected": lambda: fwss_of(target, n, "fully-corrective", seed, at_once=20),
        "Stein points, Monte Carlo": lambda: stein_points(target, n // 2, bandwidth=1.0, box=box, seed=seed),
    }


def with_cache(target: Target, run: Callable[..., Points], n: int, seed: int, step: str) -> Points:
    """Run FWSS with 10 moves per particle from the particles of an SVGD run (App. I)."""
    cache = svgd_of(target, n, seed)
    points = run(target, n, cache=cache, step=step, bandwidth=H, optimiser=Adam(0.05, final=0.005), seed=seed)
    return Points(points.x, points.weights, seconds=cache.seconds + points.seconds)


def stein_runs(target: Target, n: int, seed: int) -> dict[str, float]:
    """Return the MMD^2 of Stein points by objective and search (Fig. 10), and of as many FWSS particles."""
    box, found = [[-4.0, 4.0], [-4.0, 4.0]], {}
    for objective in ("greedy", "herding"):
        for search in ("nelder-mead", "monte-carlo", "grid"):
            points = stein_points(target, n, objective=objective, search=search, bandwidth=1.0, box=box, seed=seed)  # type: ignore[arg-type]
            found[f"{objective}, {search}"] = mmd2(points.x, truth(target), H)
    return {**found, "FWSS": mmd2(fwss_of(target, n, "constant", seed).x, truth(target), H)}


def costs(target: Target, sizes: list[int], seed: int) -> dict[str, dict[str, float]]:
    """Return the score evaluations of an iteration with N points, and the exponent of N in its time (Table 1).

    An iteration is a move of all N particles for SVGD, a move of one particle beside N others for FWSS, and one new
    point beside N others for Stein points.
    """
    draw, rng = target.draw, np.random.default_rng(seed)
    assert draw is not None
    found: dict[str, dict[str, list[float]]] = {m: {"scores": [], "seconds": []} for m in ("SVGD", "FWSS", "SP")}
    for n in sizes:
        x = draw(rng, n)
        start = Points(x, np.full(n, 1 / n), target.density.grad(x))
        runs = {
            "SVGD": (svgd(target, n, n_iterations=20, bandwidth=H, init=x, seed=seed), 20, n),
            "FWSS": (fwss(target, n + 1, start=start, step="constant", n_steps=500, bandwidth=H, seed=seed), 500, 1),
            "SP": (stein_points(target, n + 20, start=start, bandwidth=H, seed=seed), 20, 0),
        }
        for name, (points, n_iterations, beside) in runs.items():
            found[name]["scores"].append((points.n_gradients - beside) / n_iterations)
            found[name]["seconds"].append(points.seconds / n_iterations)
    return {
        name: {
            "scores at the largest N": of["scores"][-1],
            "exponent of seconds": float(np.polyfit(np.log(sizes), np.log(of["seconds"]), 1)[0]),
        }
        for name, of in found.items()
    }


def mmd_curve(target: Target, points: Points, step: str) -> np.ndarray:
    """Return the MMD^2 of the first n particles with their weights after n steps, for n = 1 to N."""
    mean, values = truth(target), []
    weights = np.ones(1)
    for n in range(1, len(points) + 1):
        if step == "fully-corrective":
            weights = quadrature_weights(points.x[:n], mean, H)[0]
        elif n > 1:
            share = points.history["step"][n - 1]
            weights = np.append((1 - share) * weights, share)
        values.append(mmd2(points.x[:n], mean, H, weights))
    return np.maximum(values, 1e-16)


def exact_curve(target: Target, n: int, step: str) -> np.ndarray:
    """Return the MMD^2 after 1 to ``n`` particles; each particle is the grid point of the steepest decrease of MMD."""
    mean, grid = truth(target), fine_grid()
    z, constant = mean.at(grid, H), mean.squared_norm(H)
    at, w, values = [int(np.argmax(z))], np.ones(1), []
    k = rbf(grid, grid[at], H)
    for size in range(1, n + 1):
        own = k[at] @ w
        values.append(float(w @ own - 2 * w @ z[at] + constant))
        field = k @ w - z
        best = int(np.argmin(field))
        if step == "line-search":
            gap, apart = w @ field[at] - field[best], w @ own - 2 * (k[best] @ w) + 1
            share = float(np.clip(gap / max(apart, 1e-300), 0, 1))
            w = np.append((1 - share) * w, share)
        at.append(best)
        k = np.column_stack([k, rbf(grid, grid[[best]], H)])
        if step == "constant":
            w = np.full(size + 1, 1 / (size + 1))
        elif step == "fully-corrective":
            w = quadrature_weights(grid[at], mean, H)[0]
    return np.maximum(values, 1e-16)


def fine_grid() -> np.ndarray:
    """Return the points of a fine grid, [19600, 2]."""
    axis = np.linspace(-4.5, 4.5, 140)
    return np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)


def rates(sizes: np.ndarray, values: np.ndarray) -> dict[str, float]:
    """Fit the decay of MMD = sqrt(``values``): the exponent of N, and the rate c of e^(-c N), each with its R^2."""
    late = sizes >= max(3, len(sizes) // 10)
    log_mmd = np.log(values[late]) / 2
    found = {}
    for name, x in (("exponent of N", np.log(sizes[late])), ("rate per particle", sizes[late])):
        slope, start = np.polyfit(x, log_mmd, 1)
        rest = log_mmd - slope * x - start
        found[name], found[f"R^2, {name}"] = float(slope), float(1 - rest.var() / log_mmd.var())
    return found


def duality(target: Target, n: int, seed: int) -> dict[str, float]:
    """Return the duality gap max_g <mu - mu_p, mu - g> over a fine grid, and Frank-Wolfe's bound of J, 2 C / (N + 2).

    J = MMD^2 / 2 is the objective, and C <= |g - g'|^2 <= 2 bounds its curvature. The bound is that of Jaggi 2013
    (Theorem 1) for line search and an exact oracle.
    """
    points, mean, grid = fwss_of(target, n, "line-search", seed), truth(target), fine_grid()
    towards = rbf(grid, points.x, H) @ points.weights - mean.at(grid, H)
    own = rbf(points.x, points.x, H) @ points.weights - mean.at(points.x, H)
    gaps = points.history["gap"][1:]
    return {
        "objective J": mmd2(points.x, mean, H, points.weights) / 2,
        "gap": float(points.weights @ own - towards.min()), "bound 2 C / (N + 2)": 4 / (n + 2),
        "median gap of the oracle, last tenth": float(np.median(gaps[-max(1, n // 10) :])),
    }  # fmt: skip


def draw(panel, target: Target, points: Points, title: str) -> None:
    axis = np.linspace(-3, 3, 90)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1)
    density = np.exp(target.density.log_density(grid.reshape(-1, 2))).reshape(grid.shape[:2])
    panel.contour(axis, axis, density, levels=6, colors="0.75", linewidths=0.7)
    panel.scatter(*points.x.T, s=5, c=np.where(points.weights < 0, "tab:red", "tab:blue"))
    panel.set(title=title, xlim=(-3, 3), ylim=(-3, 3), aspect="equal")
    panel.title.set_fontsize(8)


@command("fwss_toy", "FWSS18 App. G.2: the mixture of 11 Gaussians")
def main(experiment: Experiment) -> None:
    target, n, seed = eleven_gaussians(), experiment.size(quick=40, full=200), experiment.seed
    mean = truth(target)
    experiment.announce(lambda: fwss(target, n // 2, bandwidth=H, step="constant", seed=0), share=1 / 60)
    runs = {name: run() for name, run in particle_runs(target, n, seed).items()}
    curves = {step: mmd_curve(target, fwss_of(target, n, step, seed), step) for step in STEPS}
    svgd_sizes = [k for k in (10, 25, 50, 100, 200) if k <= n]
    by_svgd = [mmd2(svgd_of(target, k, seed).x, mean, H) for k in svgd_sizes]
    theory = {step: rates(np.arange(1, n + 1), curves[step]) for step in STEPS}
    for step in STEPS:
        theory[f"{step}, exact oracle"] = rates(np.arange(1, n + 1), exact_curve(target, n, step))
    theory["duality gap"] = duality(target, n, seed)
    moves = {L: mmd2(fwss_of(target, n, "constant", seed, n_steps=L).x, mean, H) for L in (5, 50, 500)}
    theory["SVGD"] = rates(np.array(svgd_sizes), np.array(by_svgd))
    gap = theory["duality gap"]
    print("line search: " + ", ".join(f"{name} {value:.2e}" for name, value in gap.items()))
    below = gap["objective J"] <= min(gap["gap"], gap["bound 2 C / (N + 2)"])
    print(f"  J is {'below' if below else 'NOT below'} both the gap and the bound, which is that of an exact oracle")
    figure, panels = experiment.axes(5, rows=2, width=3.4, height=3.2)
    for panel, (name, points) in zip(panels, runs.items(), strict=False):
        found = mmd2(points.x, mean, H, points.weights)
        draw(panel, target, points, f"{name}\nMMD$^2$ {found:.1e}, {points.seconds:.2f} s")
    for step, values in curves.items():
        panels[9].loglog(np.arange(1, n + 1), values, label=step)
    panels[9].loglog(svgd_sizes, by_svgd, "k.", label="SVGD of N")
    one = 1 - mean.squared_norm(H)
    panels[9].loglog([1, n], [one, one / n], "k:", label="exact samples")
    panels[9].set(title="MMD$^2$ against N (Fig. 3b)", xlabel="particles N")
    results = {
        "particles": {name: [p.seconds, mmd2(p.x, mean, H, p.weights)] for name, p in runs.items()},
        "mmd2": curves, "svgd": {"sizes": svgd_sizes, "mmd2": by_svgd}, "theory": theory,
        "moves": moves, "stein points": stein_runs(target, n // 2, seed),
        "costs": costs(target, experiment.size([200, 400], [500, 1000, 2000, 4000]), seed),
    }  # fmt: skip
    experiment.finish(results, figure)
