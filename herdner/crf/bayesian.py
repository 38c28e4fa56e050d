"""Bayesian CRFs: the posterior distribution of tied tables as a density graph, and its approximation by particles."""

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


def table_parameters(model: SkipChainModel) -> Parameters:
    """Return the parameters of `table_posterior`: the allowed entries of the transition table, and all link tables.

    Args:
        model: Model whose tables are the mean of the prior.
    """
    return Parameters(model, joint=True)


def table_posterior(
    model: SkipChainModel, examples: Examples, l2: float = 2.0, objective: Objective | None = None
) -> Target:
    """Return the posterior density of the transition table and the link tables of a skip-chain model.

    The density has two factors. The prior is normal with variance 1 / (2 l2) around the transition table of ``model``
    and around 0 for tables of links, which corresponds to the penalty `Learner.l2`. The likelihood is by default the
    pseudo-likelihood of sentences, which is exact without links. With links it is a composite likelihood (Lindsay 1988)
    that counts each link twice, once from each end. The posterior is then too narrow (Pauli, Racugno and Ventura 2011).

    Args:
        model: Model whose tables are the mean of the prior.
        examples: Documents with gold tags.
        l2: Precision of the prior, half of the inverse variance; above 0.
        objective: Minus the log-likelihood; None is `PseudoLikelihood()`.

    Returns:
        A density over the vectors of `table_parameters`.

    Raises:
        ValueError: ``l2`` is not a finite number above 0, or the transition table forbids gold tags.
    """
    from herdner.studies.fwss import Target

    if not 0 < l2 < np.inf:
        raise ValueError(f"`l2` must be finite and above 0, got {l2}; without a prior, the weights can diverge")
    parameters = table_parameters(model)
    likelihood = _Likelihood(parameters, examples, objective or PseudoLikelihood())
    if not np.isfinite(likelihood.log_density(parameters.start[None])).all():
        raise ValueError("the transition table forbids gold tags; give tags that are well formed in the tag scheme")
    origin, scope = parameters.origin, np.arange(len(parameters), dtype=np.int32)[None]

    def log_prior(x: Floats) -> Floats:
        return -l2 * ((x - origin) ** 2).sum(axis=1)

    def prior_grad(x: Floats) -> Floats:
        return -2 * l2 * (x - origin)

    sd = 1 / np.sqrt(2 * l2)

    def draw(rng: np.random.Generator, n: int) -> Floats:
        return origin + sd * rng.normal(size=(n, len(origin)))

    prior = DensityFactors(scope, log_prior, prior_grad)
    data = DensityFactors(scope, likelihood.log_density, likelihood.grad)
    return Target(FactorGraph(Reals(len(parameters)), [prior, data]), draw)


class _Likelihood:
    """Log-likelihood of the training data and its gradient, as functions of P parameter vectors float64[P, d].

    One pass computes both, so the last result is cached.
    """

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
    """Weighted particles that approximate the posterior of a model's transition and link tables.

    Attributes:
        vectors: float64[N, d], one vector of `table_parameters` for each particle.
        weights: float64[N], probabilities of the particles.

    Raises:
        ValueError: The shapes disagree, a value is not finite, or the weights are not probabilities.
    """

    vectors: Floats
    weights: Floats

    def __post_init__(self) -> None:
        """Raise `ValueError` if the particles or their weights are invalid."""
        if self.vectors.ndim != 2 or not len(self.vectors) or self.weights.shape != (len(self.vectors),):
            raise ValueError(
                "`vectors` must have shape [particles, parameters] and `weights` shape [particles], got"
                f" {self.vectors.shape} and {self.weights.shape}"
            )
        if not np.isfinite(self.vectors).all():
            raise ValueError("particles must be finite numbers, got NaN or infinity")
        if not ((self.weights >= 0).all() and abs(self.weights.sum() - 1) < 1e-5):
            raise ValueError(f"`weights` must be at least 0 and sum to 1, got the sum {self.weights.sum():.6g}")

    def __len__(self) -> int:
        """Return the number of particles."""
        return len(self.weights)

    def to_models(self, model: SkipChainModel) -> tuple[SkipChainModel, ...]:
        """Return one skip-chain model for each particle, with the tables of the particle.

        Args:
            model: Model with the allowed transitions and the templates of links.

        Raises:
            ValueError: The length of the particles differs from the number of entries in the model's tables.
        """
        parameters = table_parameters(model)
        if self.vectors.shape[1] != len(parameters):
            raise ValueError(
                f"each particle must have a number for each of the {len(parameters)} learned table entries, got"
                f" {self.vectors.shape[1]} numbers"
            )
        return tuple(parameters.to_model(vector) for vector in self.vectors)


def sample_tables(
    model: SkipChainModel,
    examples: Examples,
    n_particles: int,
    *,
    l2: float = 2.0,
    n_steps: int = 20,
    seed: Seed = None,
) -> TableParticles:
    """Approximate the density of `table_posterior` by particles of equal weight; the first particle is the mode.

    The posterior has more variables than there are particles. Their scales differ by orders of magnitude, because some
    table entries occur in every sentence and others never. The posterior is therefore whitened by its Laplace
    approximation. The particles start at draws from the approximation, and `local_fwss` moves each of them ``n_steps``
    times. This takes about d + n_steps * n_particles evaluations of the gradient.

    Args:
        model: Model whose tables are the mean of the prior.
        examples: Documents with gold tags.
        n_particles: Number of particles.
        l2: Precision of the prior, as in `table_posterior`.
        n_steps: Number of moves of each particle.
        seed: Seed of the draws.

    Returns:
        The particles, float64[n_particles, d], and their weights.

    Raises:
        ValueError: As in `table_posterior`, or ``n_particles`` is below 1.
    """
    from herdner.studies.fwss import Adam, fit_laplace, local_fwss

    posterior = table_posterior(model, examples, l2)
    normal = fit_laplace(posterior, table_parameters(model).start)
    mode = Points(np.zeros((1, posterior.dim)), np.ones(1))
    optimiser = Adam(0.2, final=0.01)
    points = local_fwss(
        normal.whiten(posterior), n_particles, n_steps=n_steps, optimiser=optimiser, start=mode, seed=seed
    )
    return TableParticles(normal.points(points.x), points.weights)
