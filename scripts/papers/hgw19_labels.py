"""The error parts of HGW19, Sec. 4.3 for three and four labels, which the paper leaves to the reader.

The graphs are rings of five variables with tables of normal random numbers of standard deviation 0.7. The samplers are
Gibbs, herded Gibbs, one bin and four bins of the threshold form, four random bins, and complete herding. The script
computes D^cor, D^herding, D^approx, D^bin and D^all after each power of two of sweeps, averaged over runs. Random bins
round all probabilities of a variable together, by systematic sampling; for two labels, this is Algorithm 9 of the
paper.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from experiment import Experiment, command, powers, slope

from herdner import FactorGraph, Gibbs, TableFactors, dhg, herded_gibbs, plain_gibbs, rdhg
from herdner.inference.gibbs import complete_sharing
from herdner.studies.convergence import count_visits

PARTS = ("cor", "herding", "approx", "bin", "z", "all")
PLANS = {
    "Gibbs": plain_gibbs(), "HG": herded_gibbs(), "DHG(1)": dhg(n_bins=1, form="threshold"),
    "DHG(4)": dhg(n_bins=4, form="threshold"), "RDHG(4)": rdhg(n_bins=4),
    "complete HG": herded_gibbs(sharing=complete_sharing()),
}  # fmt: skip


def ring(rng: np.random.Generator, n_labels: int) -> FactorGraph:
    """Return a ring of five variables with a separate random table for each pair of neighbours."""
    scopes = [[i, (i + 1) % 5] for i in range(5)]
    return FactorGraph([n_labels] * 5, [TableFactors(scopes, 0.7 * rng.normal(size=(5, n_labels, n_labels)))])


def parts(graph: FactorGraph, plan: Gibbs, lengths: list[int], seed: int) -> list[list[float]]:
    """Return the error parts of a sampler after each number of sweeps, [T, PARTS]."""
    return [[getattr(e, part) for part in PARTS] for e in count_visits(graph, plan, lengths, seed=seed).errors]


@command("hgw19_labels", "HGW19 Sec. 4.3 for three and four labels")
def main(experiment: Experiment) -> None:
    lengths, runs = powers(4, experiment.size(15, 20)), experiment.size(4, 20)
    graphs = {f"{k} labels": ring(experiment.rng(k), k) for k in (3, 4)}
    probe = graphs["4 labels"]
    share = 1 / (64 * 2 * runs * len(PLANS))
    experiment.announce(lambda: count_visits(probe, herded_gibbs(), [lengths[-1] // 64], seed=0), share)
    results: dict = {"lengths": lengths}
    figure, panels = experiment.axes(len(PARTS) - 1, rows=2, width=3.8, height=3.2)
    for row, (name, graph) in enumerate(graphs.items()):
        for plan_name, plan in PLANS.items():
            one = experiment.repeat(partial(parts, graph, plan, lengths), runs)
            found = dict(zip(PARTS, one.mean(axis=0).T, strict=True))
            above = one[..., -1] > one[..., :-1].sum(axis=-1) + 1e-9
            results[f"{name}, {plan_name}"] = {
                **found,
                "slope of herding": slope(lengths[3:], found["herding"][3:]),
                "above": int(above.sum()),
            }
            for column, part in enumerate(("cor", "herding", "approx", "bin", "all")):
                panel = panels[5 * row + column]
                shown = np.where(found[part] > 1e-12, found[part], np.nan)
                panel.loglog(lengths, shown, marker=".", label=plan_name)
                panel.set(title=f"D$^{{{part}}}$, {name}", xlabel="sweeps T")
    experiment.finish(results, figure)
