"""Bayesian CRFs: the posterior distribution of tied tables as a density graph, and particles that stand for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from herdner.base.arrays import Floats
from herdner.base.seeds import Seed
from herdner.crf.model import SkipChainModel
from herdner.crf.objectives import Examples, Objective, PseudoLikelihood
from herdner.crf.parameters import Parameters
from herdner.graph import DensityFactors, FactorGraph, Reals
from herdner.studies.fwss.points import Points

if TYPE_CHECKING:
    from herdner.studies.fwss import Target


def tables_of(crf: SkipChainModel) -> Parameters:
    """The variables: allowed transitions and tables of links. Scales stay as they were learned; given them, the
    posterior is log-concave.
    """
    return Parameters(crf, joint=True, scales=False)


def table_posterior(
    crf: SkipChainModel, examples: Examples, l2: float = 2.0, objective: Objective | None = None
) -> Target:
    """The posterior of the transition table and the tables of links, over the vectors of `tables_of`.

    Two factors: the prior, normal with variance 1 / (2 l2) around the transition table of ``crf`` and around 0 for all
    that belongs to links (the density behind `Learner.l2`); and the likelihood, by default the pseudo-likelihood of
    sentences. Without links that is the exact likelihood; with them it is a composite one (Lindsay 1988), which counts
    a link once from either end, so that the posterior is somewhat too narrow (Pauli, Racugno and Ventura 2011).

    Raises:
        ValueError: ``l2`` is not above 0, or right tags are forbidden.
    """
    from herdner.studies.fwss import Target

    if not 0 < l2 < np.inf:
        raise ValueError(f"l2 must be a number above 0, not {l2}: without a prior, tables are not bounded")
    parameters = tables_of(crf)
    likelihood = _Likelihood(parameters, examples, objective or PseudoLikelihood())
    if not np.isfinite(likelihood.log_density(parameters.start[None])).all():
        raise ValueError("the right tags are forbidden by the transition table: they do not fit the tag scheme")
    origin, scope = parameters.origin, np.arange(len(parameters), dtype=np.int32)[None]

    def log_prior(x: Floats) -> Floats:
        return -l2 * ((x - origin) ** 2).sum(axis=1)

    def prior_grad(x: Floats) -> Floats:
        return -2 * l2 * (x - origin)

    spread = 1 / np.sqrt(2 * l2)

    def draw(rng: np.random.Generator, n: int) -> Floats:
        return origin + spread * rng.normal(size=(n, len(origin)))

    prior = DensityFactors(scope, log_prior, prior_grad)
    data = DensityFactors(scope, likelihood.log_density, likelihood.grad)
    return Target(FactorGraph(Reals(len(parameters)), [prior, data]), draw)


class _Likelihood:
    """The log-likelihood at rows [P, d] and its derivatives; both come from one pass, so that the last one is kept."""

    def __init__(self, parameters: Parameters, examples: Examples, objective: Objective) -> None:
        self._parameters, self._examples, self._objective = parameters, examples, objective
        self._last: tuple[bytes, tuple[float, Floats]] | None = None

    def _of(self, row: Floats) -> tuple[float, Floats]:
        key = row.tobytes()
        if self._last is None or self._last[0] != key:
            self._last = key, self._parameters.loss(row, self._objective, self._examples, 0.0)
        return self._last[1]

    def log_density(self, x: Floats) -> Floats:
        return np.array([-self._of(row)[0] for row in x])

    def grad(self, x: Floats) -> Floats:
        return np.stack([-self._of(row)[1] for row in x]) if len(x) else np.empty(x.shape)


@dataclass(frozen=True, eq=False)
class TableParticles:
    """Tables of a CRF as weighted particles: ``vectors`` float64[N, d] of `tables_of`, ``weights`` [N].

    Raises:
        ValueError: The numbers are not finite, or the weights not probabilities.
    """

    vectors: Floats
    weights: Floats

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or not len(self.vectors) or self.weights.shape != (len(self.vectors),):
            raise ValueError(f"particles have shape [N, d] and weights [N], not {self.vectors.shape} and "
                             f"{self.weights.shape}")  # fmt: skip
        if not (np.isfinite(self.vectors).all() and (self.weights >= 0).all() and abs(self.weights.sum() - 1) < 1e-5):
            raise ValueError("particles are finite numbers, and their weights probabilities")

    def __len__(self) -> int:
        return len(self.weights)

    def crfs(self, crf: SkipChainModel) -> tuple[SkipChainModel, ...]:
        """The CRF of each particle.

        Raises:
            ValueError: The particles are not those of such a CRF.
        """
        parameters = tables_of(crf)
        if self.vectors.shape[1] != len(parameters):
            raise ValueError(f"particles of {self.vectors.shape[1]} numbers do not fit tables of {len(parameters)}")
        return tuple(parameters.crf_of(vector) for vector in self.vectors)


def sample_tables(
    crf: SkipChainModel,
    examples: Examples,
    n_particles: int,
    *,
    l2: float = 2.0,
    objective: Objective | None = None,
    n_steps: int = 20,
    seed: Seed = None,
) -> TableParticles:
    """Particles of `table_posterior`, of equal weights, the first one its mode.

    The posterior's scales differ by orders of magnitude (some cells are met in every sentence, others never), and its
    variables are more than the particles. So it is whitened by its Laplace approximation, the particles start from
    draws of that, and `local_fwss` moves each ``n_steps`` times. Takes about d + n_steps n_particles gradients.
    """
    from herdner.studies.fwss import Adam, fit_laplace, local_fwss

    posterior = table_posterior(crf, examples, l2, objective)
    normal = fit_laplace(posterior, tables_of(crf).start)
    mode = Points(np.zeros((1, posterior.dim)), np.ones(1))
    optimiser = Adam(0.2, final=0.01)
    points = local_fwss(
        normal.whitened(posterior), n_particles, n_steps=n_steps, optimiser=optimiser, start=mode, seed=seed
    )
    return TableParticles(normal.points(points.x), points.weights)
