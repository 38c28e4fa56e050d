"""HGW19, Sec. 2.3: initial bias of herding weights that start at 0, compared with random weights in (p - 1, p].

Many runs of herded Gibbs (threshold form, blanket weights) on one ring of 8 variables start at random states. The joint
distribution of the runs after each sweep is compared with that of Gibbs sampling from random states, whose only errors
are noise and the effect of the initial state.
"""

from __future__ import annotations

import numpy as np
from experiment import Experiment, command, powers
from hgw19_graphs import uniform_ring
from numpy.typing import NDArray

from herdner.studies.convergence import joint_distribution
from herdner.studies.convergence.exact import full_conditional

N = 8


def conditionals(experiment: Experiment) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the probabilities of state 1 given the states of both neighbours, [N, 2, 2], and its marginals, [N]."""
    joint = joint_distribution(uniform_ring(experiment.rng(), 0.0, 1.0))
    p = np.empty((N, 2, 2))
    for i in range(N):
        given = np.moveaxis(full_conditional(joint, i), [i, (i - 1) % N, (i + 1) % N], [0, 1, 2])
        p[i] = given[1].reshape(2, 2, -1)[:, :, 0]
    marginals = [joint.sum(axis=tuple(a for a in range(N) if a != i))[1] for i in range(N)]
    return p, np.array(marginals)


def mean_states(
    p: NDArray[np.float64], weights: str, n_sweeps: int, n_runs: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return the mean state of each variable over all runs and over the first t sweeps, for t = 1 to T, [T, N]."""
    x = rng.integers(0, 2, (n_runs, N))
    start = np.zeros(p.shape) if weights == "0" else p - rng.random((n_runs, *p.shape))
    w, run = np.array(np.broadcast_to(start, (n_runs, *p.shape))), np.arange(n_runs)
    total, means = np.zeros(N), []
    for t in range(1, n_sweeps + 1):
        for i in range(N):
            left, right = x[:, (i - 1) % N], x[:, (i + 1) % N]
            now = p[i, left, right]
            if weights == "Gibbs":
                x[:, i] = rng.random(n_runs) < now
                continue
            x[:, i] = w[run, i, left, right] > 0
            w[run, i, left, right] += now - x[:, i]
        total += x.mean(axis=0)
        means.append(total / t)
    return np.array(means)


@command("hgw19_weights", "HGW19 Sec. 2.3: initial weights")
def main(experiment: Experiment) -> None:
    (p, truth), lengths = conditionals(experiment), powers(0, 6)
    n_runs = experiment.size(500, 20_000)
    results = {"lengths": lengths}
    for k, weights in enumerate(("0", "random", "Gibbs")):
        bias = np.abs(mean_states(p, weights, lengths[-1], n_runs, experiment.rng(k + 1)) - truth).mean(axis=1)
        results[weights] = bias[np.array(lengths) - 1].tolist()
        print(f"{weights}: {', '.join(f'{value:.4f}' for value in results[weights])}")
    experiment.finish(results)
