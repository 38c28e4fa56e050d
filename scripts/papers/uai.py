"""Error of marginals against time on graphs of the UAI-2014 competition, for samplers, BP and exact inference.

    python scripts/papers/uai.py ../shared/data/uai [--seconds 0.3] [--only Grids --only Segmentation]
    python scripts/papers/uai.py ../shared/data/uai --seconds 10 --method gibbs --method tempered
    python scripts/papers/uai.py ../shared/data/uai --auto-seconds 60
    python scripts/papers/uai.py ../shared/data/uai --interval-seconds 5

The folder contains, for each graph, NAME.uai, NAME.uai.evid and NAME.uai.MAR, the exact marginals. Graphs without exact
marginals are left out. The error is the total variation distance between the estimated and the exact marginal, averaged
over the variables without evidence. Seconds are processor time of one thread, without reading and compilation of the
graph.

Each sampler runs with 16, 32, 64, .. sweeps until a run would take longer than the time limit. A fifth of the sweeps is
burn-in (a quarter for `tempered`). Marginals of samplers are Rao-Blackwellised. The error at time t is the error of the
longest run that took at most t. A cell is empty ("-") if there is no such run, or if the method does not support the
graph or finds no allowed start state.

The last tables compare `gibbs` with blocked and tempered sampling, and count the graphs for which Dobrushin's condition
holds, so that `dogs` has a certificate for all variables.

With ``--auto-seconds``, the script measures only the backend `auto` without exact inference, with a limit in wall time.
With ``--interval-seconds``, it counts the intervals of `annealed-importance` that contain the exact log Z, in one run
for each graph. This limit is wall time, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Annotated, Any

import numpy as np
import typer
from experiment import Experiment, command
from matplotlib import rc_context
from numpy.typing import NDArray

from herdner.evaluation.tabular import markdown_table
from herdner.graph import TableGraph, compile_tables
from herdner.graph.uai_files import read_evidence, read_marginals, read_uai
from herdner.inference import Backend, Result, make_backend
from herdner.inference.backends.dogs import allowed_influence
from herdner.inference.record import Record

Curve = list[tuple[float, float]]  # processor seconds and error of each run
Curves = dict[str, dict[str, Curve | str]]  # of each graph and method, or the reason why a graph is not supported
RUNS = 4  # seeds of a sampler times graphs of a family
PIXELS = 80  # an inch of the pictures for the documentation
LINES = ("axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "text.color", "xtick.color", "ytick.color")
EXACT_STATES = 256  # largest number of joint states of a Markov blanket that is enumerated for a certificate
MOST_CELLS = 24.0  # log2 of the largest number of table cells of exact inference
STYLES = {
    "gibbs": ("tab:gray", "-"), "herded-gibbs": ("tab:orange", "-"), "dhg": ("tab:red", "-"),
    "rdhg": ("tab:pink", "-"), "dogs": ("tab:olive", "-"), "blocked-gibbs": ("tab:green", "-"),
    "blocked-gibbs, herded": ("tab:green", "--"), "spanning forests": ("tab:cyan", "-"), "tempered": ("tab:blue", "-"),
    "belief-propagation": ("tab:purple", "-"), "exact": ("tab:brown", ":"),
}  # fmt: skip


@dataclass(frozen=True)
class Instance:
    """Graph without its observed variables, with the exact marginals of the other variables, float64[V, K]."""

    name: str
    graph: TableGraph
    truth: NDArray[np.float64]

    @property
    def family(self) -> str:
        """Name of the graph without its number."""
        return self.name.rpartition("_")[0]

    @classmethod
    def of(cls, path: Path) -> Instance:
        """Read a graph, its evidence and its exact marginals."""
        graph = read_uai(path)
        evidence = read_evidence(path.with_name(path.name + ".evid"), graph)
        rows = read_marginals(path.with_name(path.name + ".MAR"))
        compiled = compile_tables(graph.condition(evidence))
        truth = np.zeros((len(compiled.sizes), int(compiled.sizes.max(initial=1))))
        for v, row in enumerate(row for i, row in enumerate(rows) if i not in evidence):
            truth[v, : len(row)] = row
        return cls(path.stem, compiled, truth)

    def error(self, result: Result) -> float:
        """Return the mean total variation distance between the marginals of a result and the exact marginals."""
        marginals = result.marginals if result.rao_blackwell is None else result.rao_blackwell
        assert marginals is not None
        return float(0.5 * np.abs(marginals - self.truth).sum(axis=1).mean())


@dataclass(frozen=True)
class Method:
    """Function that returns a backend for a number of sweeps, and the numbers of sweeps to measure."""

    make: Callable[[int], Backend]
    lengths: Sequence[int] = tuple(2**k for k in range(4, 24))
    is_random: bool = True


def sampler(name: str, **options: Any) -> Method:
    """Return a sampler with one thread, Rao-Blackwellised marginals, and a fifth of its sweeps as burn-in."""
    record = Record(best=False, marginals=False, rao_blackwell=True)
    return Method(lambda n: make_backend(name, n_sweeps=n, burn_in=n // 5, record=record, n_threads=1, **options))


def tempered(**options: Any) -> Method:
    """Return tempered sampling of one chain in one thread, with a quarter of its rounds as burn-in."""
    return Method(lambda n: make_backend("tempered", n_rounds=n, burn_in=n // 4, n_chains=1, n_threads=1, **options))


METHODS: Mapping[str, Method] = {
    **{name: sampler(name) for name in ("gibbs", "herded-gibbs", "dhg", "rdhg")},
    "dogs": sampler("dogs", steps_per_target=1),
    "blocked-gibbs": sampler("blocked-gibbs"),
    "blocked-gibbs, herded": sampler("blocked-gibbs", herded=True),
    "spanning forests": tempered(n_replicas=1, width=1),
    "tempered": tempered(),
    "belief-propagation": Method(
        lambda n: make_backend("belief-propagation", n_sweeps=n), tuple(2**k for k in range(2, 11)), is_random=False
    ),
    "exact": Method(lambda _: make_backend("exact", max_log2_cells=MOST_CELLS, n_threads=1), (1,), is_random=False),
}


def measure(method: Method, instance: Instance, limit: float, seeds: Sequence[int]) -> Curve | str:
    """Return the mean seconds and errors of runs of increasing length, or the reason if the graph is not supported."""
    curve: Curve = []
    try:
        method.make(method.lengths[0]).infer(instance.graph, 0)  # compiles the form of the graph
        for n in method.lengths:
            began = process_time()
            results = [method.make(n).infer(instance.graph, seed) for seed in seeds]
            took = (process_time() - began) / len(seeds)
            curve.append((took, float(np.mean([instance.error(result) for result in results]))))
            if 2 * took > limit:
                break
    except (ValueError, MemoryError) as error:
        return str(error)
    return curve


def error_at(curve: Curve, t: float) -> float:
    """Return the error of the longest run that took at most ``t`` seconds, or infinity if there is none."""
    return next((error for seconds, error in reversed(curve) if seconds <= t), np.inf)


def mean_errors(curves: Curves, method: str, t: float) -> dict[str, float]:
    """Return the mean error at time ``t`` over the graphs of each family that the method supports.

    The mean error is infinite if one of the graphs has no run that took at most ``t`` seconds.
    """
    found: dict[str, list[float]] = {}
    for name, by_method in curves.items():
        curve = by_method[method]
        if not isinstance(curve, str):
            found.setdefault(name.rpartition("_")[0], []).append(error_at(curve, t))
    return {family: float(np.mean(errors)) for family, errors in found.items()}


def table(curves: Curves, t: float) -> str:
    """Return a Markdown table of the mean errors at time ``t``: a row for each method, a column for each family."""
    families = list(dict.fromkeys(name.rpartition("_")[0] for name in curves))
    rows = []
    for method in next(iter(curves.values())):
        errors = mean_errors(curves, method, t)
        rows.append((method, *(_shown(errors.get(family)) for family in families)))
    return markdown_table(("error", *families), rows, "")


def sampler_table(curves: Curves, t: float) -> str:
    """Return a Markdown table of the mean errors of samplers at time ``t``, with a row for each family of graphs."""
    names = [
        name for name in ("gibbs", "spanning forests", "tempered") if all(name in each for each in curves.values())
    ]
    by_method = {name: mean_errors(curves, name, t) for name in names}
    rows = []
    for family in dict.fromkeys(name.rpartition("_")[0] for name in curves):
        errors = [by_method[name].get(family) for name in names]
        ratios = [error / errors[0] if error is not None and errors[0] else np.inf for error in errors[1:]]
        rows.append(
            (family, *map(_shown, errors), *("-" if not ratio < np.inf else f"{ratio:.3f}" for ratio in ratios))
        )
    return markdown_table(("family", *names, *(f"{name} / {names[0]}" for name in names[1:])), rows, "")


def certificate_table(instances: Sequence[Instance]) -> str:
    """Return a Markdown table of the number of graphs of each family, and of those with a certificate of `dogs`.

    A certificate for all variables exists if some norm of the influence matrix is below 1 (Dobrushin's condition).
    """
    counts: dict[str, list[int]] = {}
    for instance in instances:
        count = counts.setdefault(instance.family, [0, 0])
        count[0] += 1
        count[1] += allowed_influence(instance.graph, EXACT_STATES).total.smallest < 1
    rows = [(family, str(n), str(certified)) for family, (n, certified) in counts.items()]
    return markdown_table(("family", "graphs", "a certificate exists"), rows, "")


def _shown(error: float | None) -> str:
    if error is None or error == np.inf:
        return "-"
    return "< 1e-6" if error < 1e-6 else f"{error:.4f}"


def draw(experiment: Experiment, curves: Curves, limit: float) -> Any:
    """Draw the mean errors of each family of graphs against time, and return the figure."""
    families = list(dict.fromkeys(name.rpartition("_")[0] for name in curves))
    columns = min(3, len(families))
    figure, panels = experiment.axes(columns, -(-len(families) // columns), width=3.6, height=2.7)
    times = np.geomspace(limit / 500, limit, 40)
    for panel, family in zip(panels, families, strict=False):
        for method in next(iter(curves.values())):
            colour, line = STYLES[method]
            errors = [mean_errors(curves, method, t).get(family) for t in times]
            if errors[0] is not None:
                shown = np.maximum(np.array(errors, float), 1e-5)
                panel.plot(times, shown, line, color=colour, linewidth=1.2, marker=".", markevery=[-1], label=method)
        panel.set(xscale="log", yscale="log", title=family, xlabel="seconds", ylabel="error", ylim=(8e-6, 1))
    for panel in panels[len(families) :]:
        panel.set_axis_off()
    handles = {
        label: handle for panel in panels for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    names = [name for name in METHODS if name in handles]
    figure.legend([handles[name] for name in names], names, loc="lower right", fontsize=8, framealpha=0)
    figure.tight_layout()
    return figure


def first_of_each(instances: Sequence[Instance], n: int) -> list[Instance]:
    """Return the first ``n`` graphs of each family of graphs."""
    found: dict[str, list[Instance]] = {}
    for instance in instances:
        found.setdefault(instance.family, []).append(instance)
    return [instance for family in found.values() for instance in family[:n]]


def measure_auto(instances: Sequence[Instance], seconds: float, seed: int) -> dict[str, dict[str, Any]]:
    """Print and return the error of `auto` without exact inference on each instance."""
    results: dict[str, dict[str, Any]] = {}
    backend = make_backend("auto", seconds=seconds, max_log2_cells=0.0)
    for instance in instances:
        result = backend.infer(instance.graph, seed)
        error = instance.error(result)
        results[instance.name] = {"error": error, "seconds": result.seconds, "method": result.method}
        print(f"{instance.name}: {error:.4f}, {result.seconds:.1f} s, {result.method}", flush=True)
    errors = [each["error"] for each in results.values()]
    print(f"{sum(error < 0.05 for error in errors)} of {len(errors)} errors are below 0.05; mean {np.mean(errors):.4f}")
    return results


def measure_intervals(instances: Sequence[Instance], seconds: float, seed: int) -> dict[str, dict[str, Any]]:
    """Print and return the interval of log Z by `annealed-importance` on each instance, and the exact log Z."""
    results: dict[str, dict[str, Any]] = {}
    only_log_z = Record(best=False, marginals=False)
    for instance in instances:
        try:
            exact = make_backend("exact", n_threads=1).infer(instance.graph, record=only_log_z).log_z
            result = make_backend("annealed-importance", seconds=seconds).infer(instance.graph, seed)
        except ValueError as error:
            print(f"{instance.name}: {error}", flush=True)
            continue
        assert result.log_z_interval is not None
        low, high = result.log_z_interval
        results[instance.name] = {"log_z": exact, "low": low, "high": high}
        print(f"{instance.name}: {exact:.4f}, interval {low:.4f} to {high:.4f}, {result.seconds:.1f} s", flush=True)
    widths = [each["high"] - each["low"] for each in results.values()]
    n_correct = sum(each["low"] <= each["log_z"] <= each["high"] for each in results.values())
    print(f"{n_correct} of {len(results)} intervals contain log Z; the median width is {np.median(widths):.3g}")
    return results


@command("uai", "Error of marginals against time on graphs of the UAI-2014 competition")
def main(
    experiment: Experiment,
    folder: Annotated[Path, typer.Argument(help="Folder of .uai, .uai.evid and .uai.MAR files.")],
    seconds: Annotated[float, typer.Option(help="Time limit of a run, in processor seconds.")] = 0.3,
    only: Annotated[
        list[str] | None, typer.Option(help="Beginning of graph names; may be repeated [default: all].")
    ] = None,
    method: Annotated[list[str] | None, typer.Option(help="Method; may be repeated [default: all].")] = None,
    n_graphs: Annotated[int, typer.Option(min=1, help="Maximum number of graphs of each family, without auto.")] = 2,
    auto_seconds: Annotated[
        float | None, typer.Option(help="Measure only auto without exact, with this time limit.")
    ] = None,
    interval_seconds: Annotated[
        float | None, typer.Option(help="Measure only intervals of log Z, with this time limit.")
    ] = None,
) -> None:
    """Measure the error of marginals against time, and print tables."""
    paths = [path.with_suffix("") for path in sorted(folder.glob("*.uai.MAR"))]
    chosen = [path for path in paths if only is None or path.name.startswith(tuple(only))]
    instances = [Instance.of(path) for path in chosen[: experiment.size(2, len(chosen))]]
    if not instances:
        raise FileNotFoundError(f"{folder}: no file NAME.uai with NAME.uai.MAR; the option --only may exclude all")
    unknown = set(method or ()) - set(METHODS)
    if unknown:
        raise ValueError(f"--method must be one of {', '.join(METHODS)}, got {', '.join(sorted(unknown))}")
    if auto_seconds is not None:
        experiment.finish(measure_auto(instances, auto_seconds, experiment.seed))
        return
    if interval_seconds is not None:
        experiment.finish(measure_intervals(instances, interval_seconds, experiment.seed))
        return
    limit = experiment.size(0.02, seconds)
    curves: Curves = {}
    for instance in first_of_each(instances, n_graphs):
        seeds = experiment.seeds(experiment.size(1, max(1, RUNS // n_graphs)))
        curves[instance.name] = {
            name: measure(each, instance, limit, seeds if each.is_random else seeds[:1])
            for name, each in METHODS.items()
            if method is None or name in method
        }
        found = {name: curve for name, curve in curves[instance.name].items() if not isinstance(curve, str)}
        print(instance.name, {name: round(error_at(curve, limit), 4) for name, curve in found.items()}, flush=True)
    for t in (limit / 25, limit / 5, limit):
        print(f"\n## Errors after {t:g} s\n\n{table(curves, t)}")
    print(f"\n## Samplers after {limit:g} s\n\n{sampler_table(curves, limit)}")
    print(f"\n## Certificates\n\n{certificate_table(instances)}")
    draw(experiment, curves, limit).savefig(experiment.out / "uai_light.png", dpi=PIXELS)
    with rc_context(dict.fromkeys(LINES, "white")):
        draw(experiment, curves, limit).savefig(experiment.out / "uai_dark.png", dpi=PIXELS, transparent=True)
    experiment.finish({"limit": limit, "curves": curves})
