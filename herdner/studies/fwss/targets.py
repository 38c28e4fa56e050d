"""Targets: continuous distributions as factor graphs, with the priors and kernel means that samplers use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner.base.arrays import Floats, finite
from herdner.base.checks import check_integer
from herdner.base.extras import import_extra
from herdner.graph import DensityFactors, DensityGraph, FactorGraph, Reals, compile_density
from herdner.studies.fwss.kernels import KernelMean, MixtureMean

logsumexp = import_extra("scipy.special", "Stein sampling needs SciPy").logsumexp

Draw = Callable[[np.random.Generator, int], Floats]


@dataclass(frozen=True, eq=False)
class Target:
    """Continuous distribution from which samplers draw.

    Attributes:
        graph: The factor graph of its density, over `Reals`.
        prior: Function (generator, n) -> [n, d] that draws initial points; by default standard normal.
        kernel_mean: The exact kernel mean under the distribution, if available.
        draw: Function (generator, n) -> [n, d] that draws exact samples, if available.
        density: The compiled graph.
    """

    graph: FactorGraph
    prior: Draw = None  # type: ignore[assignment]
    kernel_mean: KernelMean | None = None
    draw: Draw | None = None
    density: DensityGraph = field(init=False)

    def __post_init__(self) -> None:
        """Compile the density, and set the default prior."""
        density = compile_density(self.graph)
        object.__setattr__(self, "density", density)
        if self.prior is None:

            def prior(rng: np.random.Generator, n: int) -> Floats:
                return rng.normal(size=(n, density.dim))

            object.__setattr__(self, "prior", prior)

    @property
    def dim(self) -> int:
        """Number of variables, d."""
        return self.density.dim


def density_target(
    log_density: Callable[..., Any],
    grad: Callable[..., Any] | None = None,
    *,
    dim: int,
    prior: Draw | None = None,
    n_terms: int = 0,
) -> Target:
    """Build a target from a log-density over real variables.

    Args:
        log_density: Maps points [P, d] to log-densities [P]. With ``n_terms``, the indices of data terms are its second
            argument (see `DensityFactors`).
        grad: Maps points [P, d] to gradients [P, d], with the same second argument as ``log_density``. By default JAX
            derives it (extra ``jax``).
        dim: Number of variables, d.
        prior: See `Target`.
        n_terms: Number of data terms; 0 for none.

    Returns:
        The target.

    Raises:
        ValueError: ``dim`` or ``n_terms`` is out of range.
    """
    check_integer(dim, "dim")
    check_integer(n_terms, "n_terms", 0)
    factors = DensityFactors(np.arange(dim, dtype=np.int32)[None], log_density, grad, n_terms)  # type: ignore[arg-type]
    return Target(FactorGraph(Reals(dim), [factors]), prior)  # type: ignore[arg-type]


def as_target(target: Target | FactorGraph | DensityGraph) -> Target:
    """Convert a graph of real variables to a target with a standard normal prior.

    A target is returned unchanged.

    Args:
        target: A target or a graph.

    Returns:
        The target.

    Raises:
        TypeError: ``target`` is neither a target nor a graph.
    """
    if isinstance(target, Target):
        return target
    if isinstance(target, FactorGraph | DensityGraph):  # pyright: ignore[reportUnnecessaryIsInstance]  # a public function
        return Target(target if isinstance(target, FactorGraph) else target.graph)
    raise TypeError(f"expected a Target or a FactorGraph over Reals(n), got {type(target).__name__}")


def gaussian_mixture(weights: ArrayLike, means: ArrayLike, covariances: ArrayLike) -> Target:
    """Build a target that is a mixture of C normal distributions, with an exact kernel mean and an exact sampler.

    The prior is a Gaussian with twice the spread of the mixture.

    Args:
        weights: float64[C], positive with sum 1.
        means: float64[C, d].
        covariances: float64[C, d, d], or variances [C].

    Returns:
        The target.

    Raises:
        ValueError: An argument has the wrong shape or is out of range.
    """
    centres = finite(means, "`means`")
    if centres.ndim != 2 or not centres.size:
        raise ValueError(f"`means` must have shape [components, dimensions], got {centres.shape}")
    n, d = centres.shape
    shares, spreads = np.asarray(weights, float), finite(covariances, "`covariances`")
    if spreads.shape == (n,):
        spreads = spreads[:, None, None] * np.eye(d)
    if shares.shape != (n,) or not (shares > 0).all() or abs(shares.sum() - 1) > 1e-9:
        raise ValueError(f"`weights` must be {n} positive numbers with sum 1, got {shares.tolist()!s:.80}")
    if spreads.shape != (n, d, d):
        raise ValueError(f"`covariances` must have shape {(n, d, d)} or {(n,)}, got {spreads.shape}")
    try:
        roots = np.linalg.cholesky(spreads)
    except np.linalg.LinAlgError:
        raise ValueError(f"covariances must be symmetric and positive definite, got {spreads.tolist()!s:.80}") from None
    mixture = _Mixture.of(shares, centres, roots)

    def draw(rng: np.random.Generator, size: int) -> Floats:
        component = rng.choice(n, size, p=shares)
        return centres[component] + np.einsum("pij,pj->pi", roots[component], rng.normal(size=(size, d)))

    middle = shares @ centres
    spread = shares @ (spreads.diagonal(axis1=1, axis2=2) + (centres - middle) ** 2)

    def prior(rng: np.random.Generator, size: int) -> Floats:
        return middle + 2 * np.sqrt(spread) * rng.normal(size=(size, d))

    factors = DensityFactors(np.arange(d, dtype=np.int32)[None], mixture.log_density, mixture.grad)
    return Target(FactorGraph(Reals(d), [factors]), prior, MixtureMean(shares, centres, spreads), draw)


def eleven_gaussians() -> Target:
    """Build a two-dimensional mixture of 11 normal distributions, as in FWSS18, App. G.2 (Fig. 3 to 5, 10, 11).

    The paper specifies only the number of components. Here they have equal weights and standard deviation 0.35, and
    their means lie on a spiral.

    Returns:
        The target.
    """
    i = np.arange(11)
    radius, angle = 0.75 * np.sqrt(i), i * np.pi * (3 - np.sqrt(5))
    means = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return gaussian_mixture(np.full(11, 1 / 11), means, np.full(11, 0.35**2))


@dataclass(frozen=True, slots=True, eq=False)
class _Mixture:
    """Log-density of a mixture of normal distributions, computed with one matrix product for all components.

    The log-density is log sum_c exp(constants[c] - |inverse_c x - shifts_c|^2 / 2).
    """

    constants: Floats
    inverses: Floats  # [C * d, d]: the inverse roots of the covariances
    shifts: Floats  # [C * d]

    @staticmethod
    def of(weights: Floats, means: Floats, roots: NDArray[np.floating]) -> _Mixture:
        d = means.shape[1]
        inverses = np.asarray(np.linalg.inv(roots), np.float64)
        constants = np.log(weights) - np.log(roots.diagonal(axis1=1, axis2=2)).sum(axis=1) - d / 2 * np.log(2 * np.pi)
        shifts = np.einsum("cij,cj->ci", inverses, means)
        return _Mixture(constants, inverses.reshape(-1, d), shifts.ravel())

    def _parts(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the weighted log-density of each component at P points [P, C], and the whitened points [P, C, d]."""
        whitened = (x @ self.inverses.T - self.shifts).reshape(len(x), len(self.constants), x.shape[1])
        return self.constants - 0.5 * (whitened * whitened).sum(axis=2), whitened

    def log_density(self, x: Floats) -> Floats:
        return cast(Floats, logsumexp(self._parts(x)[0], axis=1))

    def grad(self, x: Floats) -> Floats:
        logs, whitened = self._parts(x)
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        whitened *= shares[:, :, None]
        return whitened.reshape(len(x), -1) @ -self.inverses


@dataclass(frozen=True, slots=True, eq=False)
class GammaOfExp:
    """Density of x = log g if g has the distribution Gamma(shape, rate).

    Attributes:
        shape: Shape of the distribution.
        rate: Rate of the distribution.
    """

    shape: float
    rate: float

    def __post_init__(self) -> None:
        """Check that shape and rate of the gamma distribution are finite and above 0."""
        for name, value in (("shape", self.shape), ("rate", self.rate)):
            if not 0 < value < np.inf:
                raise ValueError(f"`{name}` of a gamma distribution must be finite and above 0, got {value}")

    def log_density(self, x: Floats) -> Floats:
        """Return the log-density at the points x, up to an additive constant.

        Args:
            x: float64[P, 1].

        Returns:
            float64[P].
        """
        return self.shape * x[:, 0] - self.rate * np.exp(x[:, 0])

    def grad(self, x: Floats) -> Floats:
        """Return the gradient of the log-density at the points x.

        Args:
            x: float64[P, 1].

        Returns:
            float64[P, 1].
        """
        return self.shape - self.rate * np.exp(x)


def log_scaled_normal(x: Floats) -> Floats:
    """Return the log-density of the normal distribution N(0, exp(-u)) at ``x[:, :-1]``, where u is ``x[:, -1]``.

    x[:, :-1] ~ N(0, exp(-x[:, -1])).

    Args:
        x: float64[P, a].

    Returns:
        float64[P].
    """
    n = x.shape[1] - 1
    return n / 2 * (x[:, -1] - np.log(2 * np.pi)) - np.exp(x[:, -1]) / 2 * (x[:, :-1] ** 2).sum(axis=1)


def grad_scaled_normal(x: Floats) -> Floats:
    """Return the gradient of `log_scaled_normal` at the points x.

    Args:
        x: float64[P, a].

    Returns:
        float64[P, a].
    """
    out = -np.exp(x[:, -1:]) * x
    out[:, -1] = (x.shape[1] - 1) / 2 - np.exp(x[:, -1]) / 2 * (x[:, :-1] ** 2).sum(axis=1)
    return out


def check_data(inputs: ArrayLike, outputs: ArrayLike) -> tuple[Floats, Floats]:
    """Check the data of a regression; return the inputs, float64[N, D], and the outputs, float64[N].

    Args:
        inputs: [N, D].
        outputs: [N].

    Raises:
        ValueError: There are no data, the shapes do not fit, or a number is not finite.
    """
    x, y = np.ascontiguousarray(inputs, np.float64), np.ascontiguousarray(outputs, np.float64)
    if x.ndim != 2 or y.shape != (len(x),) or not x.size:
        raise ValueError(f"data must have inputs [N, D] and outputs [N], got {x.shape} and {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("data must be finite, got NaN or infinity; replace or remove missing values")
    return x, y
