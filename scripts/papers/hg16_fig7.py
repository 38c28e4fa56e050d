"""Counterexample of herded Gibbs on an incomplete graph: HG16, Fig. 6 and 7.

The graph has four variables without the pairs 1-4 and 2-3, and energies from a standard normal distribution. The figure
compares the joint distribution of 10^8 samples of herded Gibbs with the exact joint distribution, and shows the L1
error. The error of herded Gibbs stops falling, but not the errors of Gibbs and complete herding.
"""

from __future__ import annotations

import numpy as np
from experiment import Experiment, command, envelope

from herdner import boltzmann_machine, herded_gibbs, plain_gibbs
from herdner.inference.gibbs import complete_sharing
from herdner.studies.convergence import count_visits

EDGES = [[0, 1], [0, 2], [1, 3], [2, 3]]


@command("hg16_fig7", "HG16 Fig. 6, 7: four variables, two pairs missing")
def main(experiment: Experiment) -> None:
    rng, longest = experiment.rng(), experiment.size(10**6, 10**8)
    graph = boltzmann_machine(rng.normal(size=4), rng.normal(size=4), edges=EDGES)
    lengths = np.unique(np.geomspace(10, longest, 100).astype(int)).tolist()
    plans = {
        "herded Gibbs": herded_gibbs(),
        "complete herded Gibbs": herded_gibbs(sharing=complete_sharing()),
        "Gibbs": plain_gibbs(),
    }
    experiment.announce(lambda: count_visits(graph, plain_gibbs(), [longest // 100], seed=0), 1 / (100 * len(plans)))
    figure, (left, right) = experiment.axes(2, width=5.5)
    results: dict = {"lengths": lengths}
    for name, plan in plans.items():
        found = count_visits(graph, plan, lengths, seed=experiment.seeds(1)[0])
        errors = np.array([part.all for part in found.errors])
        results[name] = {"error": errors, "joint": found.visits[-1, 0].ravel() / lengths[-1]}
        right.loglog(lengths, envelope(errors) if "herded" in name else errors, label=name)
    true = results["true joint"] = found.focus.target.ravel()
    states = np.arange(len(true))
    left.bar(states - 0.2, true, 0.4, label="true")
    left.bar(states + 0.2, results["herded Gibbs"]["joint"], 0.4, label="herded Gibbs")
    left.set(
        xlabel="state x1 x2 x3 x4",
        ylabel="probability",
        xticks=states[::3],
        xticklabels=[f"{s:04b}" for s in states[::3]],
    )
    right.set(xlabel="sweeps", ylabel="L1 error of the joint")
    experiment.finish(results, figure)
