"""The error parts of herded samplers: HGW19, Fig. 3, 4, 6, 7, 8 and Table 1.

    python scripts/papers/hgw19_parts.py [--figure 3|4|6|7|8|6-G4|8-G4|table1|all]

Graphs have 8 variables, samples are taken right after the update of the last variable, and results are averages over 10
runs, as in the paper. The parameters are new random draws from the paper's ranges, so the curves have the shapes of the
paper's curves, but other numbers. Fig. 6 and 8 are repeated on G4, the graph of the authors' repository.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import astuple, fields
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer
from experiment import Experiment, command, powers, slope
from hgw19_authors import graphs
from hgw19_graphs import full_graph, uniform_ring

from herdner import FactorGraph, Gibbs, bounded_error_gibbs, circular_dhg, dhg, herded_gibbs, plain_gibbs, rdhg
from herdner.inference.gibbs import Sharing, bin_sharing
from herdner.studies.convergence import (
    CorrelationEstimate,
    ErrorParts,
    count_visits,
    focus_variable,
    joint_distribution,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PARTS = [field.name for field in fields(ErrorParts)]
Curves = Mapping[str, np.ndarray]


def curves(
    experiment: Experiment,
    graph: FactorGraph,
    plan: Gibbs,
    lengths: list[int],
    runs: int,
    sharing: Sharing | None = None,
) -> dict[str, np.ndarray]:
    """Return each error part after each number of sweeps, averaged over runs."""

    def one(seed: int) -> list[tuple[float, ...]]:
        return [astuple(errors) for errors in count_visits(graph, plan, lengths, seed=seed, sharing=sharing).errors]

    return dict(zip(PARTS, experiment.repeat(one, runs).mean(axis=0).T, strict=True))


def announce(experiment: Experiment, graph: FactorGraph, n_curves: int, longest: int, runs: int) -> None:
    """Print an estimate of the time of all curves, from a shorter run of one sampler."""
    n = min(longest, 2**19)
    experiment.announce(
        lambda: count_visits(graph, herded_gibbs(form="threshold"), [n], seed=0), n / (n_curves * longest * runs)
    )


def draw(axes, lengths: list[int], found: Curves, parts: list[str], label: str = "", **style) -> None:
    for part in parts:
        name = f"$D^{{{part}}}$ {label}".strip()
        axes.plot(np.log2(lengths), np.log2(np.maximum(found[part], 1e-12)), label=name, **style)
    axes.set_xlabel("log2 T")
    axes.set_ylabel("log2 of the error")


def figure3(experiment: Experiment) -> None:
    lengths, runs = powers(8, experiment.size(18, 24)), experiment.size(3, 10)
    ranges = {"0 to 1": (0.0, 1.0), "-1 to 1": (-1.0, 1.0)}
    rings = {name: uniform_ring(experiment.rng(), *ends) for name, ends in ranges.items()}
    announce(experiment, rings["0 to 1"], len(rings), lengths[-1], runs)
    figure, panels = experiment.axes(2)
    results = {}
    for axes, (name, graph) in zip(panels, rings.items(), strict=True):
        found = curves(experiment, graph, herded_gibbs(), lengths, runs)
        estimate = CorrelationEstimate.exact(joint_distribution(graph), focus_variable(graph)).total
        falls = slope(lengths[: len(powers(8, 20))], found["herding"][: len(powers(8, 20))])
        draw(axes, lengths, found, ["z", "herding", "cor", "all"])
        axes.axhline(np.log2(estimate), linestyle=":", color="grey", label="estimate of $D^{cor}$")
        axes.set_title(f"parameters {name}")
        results[name] = {"lengths": lengths, **found, "estimate": estimate, "slope of herding": falls}
    experiment.finish(results, figure)


def figure4(experiment: Experiment) -> None:
    lengths, runs, sizes = powers(8, experiment.size(17, 24)), experiment.size(3, 10), [4, 16, 64, 256]
    graph = full_graph(experiment.rng(), -0.5, 0.5)
    announce(experiment, graph, len(sizes), lengths[-1], runs)
    figure, panels = experiment.axes(2, 2)
    results: dict = {"lengths": lengths}
    for n in sizes:
        found = results[f"B={n}"] = curves(experiment, graph, dhg(n_bins=n, form="threshold"), lengths, runs)
        for axes, part in zip(panels, ["herding", "approx", "cor", "all"], strict=True):
            draw(axes, lengths, found, [part], f"B={n}")
    experiment.finish(results, figure)


def authors_graph() -> FactorGraph:
    """Return G4, the authors' complete graph of Fig. 4, 6 and 8."""
    texts = tomllib.loads(Path(__file__).with_name("hgw19_authors.toml").read_text(encoding="utf-8"))["graphs"]
    return graphs({"G4": texts["G4"]})["G4"]


def figure6(experiment: Experiment, own: FactorGraph | None = None) -> None:
    longest, sizes = experiment.size(2**18, 2**24), [2, 4, 6, 8, 12, 16, 24, 32, 48, 64]
    graph = full_graph(experiment.rng(), -0.5, 0.5) if own is None else own
    announce(experiment, graph, 2 * len(sizes), longest, 1)
    figure, (axes,) = experiment.axes(1)
    results: dict = {"bins": sizes}
    for form in ("threshold", "circular"):
        found = [curves(experiment, graph, dhg(n_bins=n, form=form), [longest], 1)["cor"][0] for n in sizes]  # type: ignore[arg-type]
        axes.semilogy(sizes, found, "o-", label=f"{form} form")
        results[form] = found
    axes.set_xlabel("B")
    axes.set_ylabel(f"$D^{{cor}}$ at T = {longest}")
    experiment.finish(results, figure)


def figure7(experiment: Experiment) -> None:
    lengths, runs = powers(8, experiment.size(17, 24)), experiment.size(3, 10)
    graph = uniform_ring(experiment.rng(), 0.0, 1.0)
    plans = {"c=0 (HG)": herded_gibbs()}
    plans |= {f"c={c}": bounded_error_gibbs(error_bound=float(c)) for c in (1, 10)} | {"c=inf (Gibbs)": plain_gibbs()}
    announce(experiment, graph, len(plans), lengths[-1], runs)
    compare(experiment, graph, plans, lengths, runs, ["cor", "herding", "z", "all"])


def figure8(experiment: Experiment, own: FactorGraph | None = None) -> None:
    lengths, runs, n = powers(8, experiment.size(17, 24)), experiment.size(3, 10), 16
    graph = full_graph(experiment.rng(), -0.5, 0.5) if own is None else own
    plans = {
        f"DHG({n})": dhg(n_bins=n, form="threshold"),
        f"DHG({n}), circular": circular_dhg(n_bins=n),
        f"RDHG({n})": rdhg(n_bins=n),
        "Gibbs": plain_gibbs(),
    }
    announce(experiment, graph, len(plans), lengths[-1], runs)
    compare(experiment, graph, plans, lengths, runs, ["all", "cor", "approx", "bin"])


def compare(
    experiment: Experiment, graph: FactorGraph, plans: dict[str, Gibbs], lengths: list[int], runs: int, parts: list[str]
) -> None:
    """Draw a panel for each error part, with a curve for each plan."""
    figure, panels = experiment.axes(2, 2)
    results: dict = {"lengths": lengths}
    for k, (name, plan) in enumerate(plans.items()):
        sharing = bin_sharing(16) if plan.sharing is None and "cor" in parts and "approx" in parts else None
        results[name] = curves(experiment, graph, plan, lengths, runs, sharing)
        for axes, part in zip(panels, parts, strict=True):
            if results[name][part].max() > 1e-6 and (sharing is None or part == "all"):  # parts that are 0 are left out
                draw(axes, lengths, results[name], [part], name, color=f"C{k}")
    experiment.finish(results, figure)


def table1(experiment: Experiment) -> None:
    n_samples = experiment.size(2**21, 2**28)
    rings = {"0 to 1": uniform_ring(experiment.rng(), 0.0, 1.0), "-1 to 1": uniform_ring(experiment.rng(), -1.0, 1.0)}
    probe = min(n_samples, 2**20)
    experiment.announce(
        lambda: count_visits(rings["0 to 1"], plain_gibbs(), [probe], seed=0), probe / (len(rings) * n_samples)
    )
    results = {}
    for name, graph in rings.items():
        sampled = count_visits(graph, plain_gibbs(), [n_samples], seed=experiment.seeds(1)[0])
        exact, by_samples = CorrelationEstimate.exact(joint_distribution(graph), sampled.focus), sampled.correlation
        print(f"parameters {name}; {n_samples} Gibbs samples beside exact first returns")
        print(f"{'(x1, x7)':>9} {'pi(y)':>8} {'t':>8} {'depend':>10} {'exact':>10} {'pi 2t^2 d':>10} {'exact':>10}")
        for y in range(4):
            state = f"({y >> 1}, {y & 1})"
            depend = f"{by_samples.depend[y]:10.2e} {exact.depend[y]:10.2e}"
            adds = f"{by_samples.contributions[y]:10.2e} {exact.contributions[y]:10.2e}"
            print(f"{state:>9} {exact.chances[y]:8.4f} {exact.t[y]:8.4f} {depend} {adds}")
        print(f"{'sum':>9} {by_samples.total:49.2e} {exact.total:10.2e}")
        results[name] = {
            "chances": exact.chances, "t": exact.t, "depend": by_samples.depend, "exact depend": exact.depend,
            "total": by_samples.total, "exact total": exact.total,
        }  # fmt: skip
    experiment.finish(results)


FIGURES = {
    "3": ("hgw19_fig3", "HGW19 Fig. 3: herded Gibbs on rings of 8", figure3),
    "4": ("hgw19_fig4", "HGW19 Fig. 4: DHG on a complete graph of 8", figure4),
    "6": ("hgw19_fig6", "HGW19 Fig. 6: asymptotic D^cor by the number of bins", figure6),
    "7": ("hgw19_fig7", "HGW19 Fig. 7: bounded-error Gibbs on a ring of 8", figure7),
    "8": ("hgw19_fig8", "HGW19 Fig. 8: RDHG, DHG and Gibbs on a complete graph of 8", figure8),
    "6-G4": ("hgw19_fig6_g4", "HGW19 Fig. 6 on the authors' graph", lambda e: figure6(e, authors_graph())),
    "8-G4": ("hgw19_fig8_g4", "HGW19 Fig. 8 on the authors' graph", lambda e: figure8(e, authors_graph())),
    "table1": ("hgw19_table1", "HGW19 Table 1: the estimate of D^cor, weight by weight", table1),
}
Figure = Annotated[
    Literal["3", "4", "6", "7", "8", "6-G4", "8-G4", "table1", "all"], typer.Option(help="Figure or table to compute.")
]


@command("hgw19_parts", "The parts of the error of herded samplers")
def main(experiment: Experiment, figure: Figure = "all") -> None:
    for number, (name, title, run) in FIGURES.items():
        if figure in (number, "all"):
            run(experiment.part(name, title))
