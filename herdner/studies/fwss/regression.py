"""Bayesian logistic regression and Bayesian neural regression with one hidden layer (FWSS18, Sec. 5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats, Int64s
from herdner.base.checks import check_integer
from herdner.base.extras import import_extra
from herdner.graph import DensityFactors, FactorGraph, Reals
from herdner.studies.fwss.targets import GammaOfExp, Target, check_data, grad_scaled_normal, log_scaled_normal

special = import_extra("scipy.special", "Stein sampling needs SciPy")

Terms = Int64s | None
_CHUNK = 2**18  # number of hidden-unit values per piece; a piece fits into a cache


@dataclass(frozen=True, slots=True, eq=False)
class LogisticRegression:
    """Bayesian logistic regression for outputs 0 and 1.

    p(y = 1 | x) = sigmoid(w . x + b), with w, b ~ N(0, 1 / alpha) and alpha ~ Gamma(shape, rate). The D + 2 variables
    are w, b and log alpha.

    Attributes:
        inputs: float64[N, D]; stored with a column of ones.
        outputs: [N], 0 or 1; stored as -1 or 1.
        shape: Shape of the prior of alpha.
        rate: Rate of the prior of alpha.
    """

    inputs: Floats
    outputs: Floats
    shape: float = 1.0
    rate: float = 0.01

    def __post_init__(self) -> None:
        """Check the data and the prior; append a constant input, and convert the outputs to -1 and 1."""
        x, y = check_data(self.inputs, self.outputs)
        if not np.isin(y, (0, 1)).all():
            raise ValueError(f"`outputs` of a logistic regression must be 0 or 1, got {y[~np.isin(y, (0, 1))][0]:g}")
        GammaOfExp(self.shape, self.rate)  # checks both
        object.__setattr__(self, "inputs", np.column_stack([x, np.ones(len(x))]))
        object.__setattr__(self, "outputs", 2 * y - 1)

    @property
    def target(self) -> Target:
        """Posterior distribution of the regression, as a `Target` that supports mini-batches."""
        n = self.inputs.shape[1]
        gamma = GammaOfExp(self.shape, self.rate)
        factors = [
            DensityFactors(np.arange(n + 1, dtype=np.int32)[None], log_scaled_normal, grad_scaled_normal),
            DensityFactors([[n]], gamma.log_density, gamma.grad),  # type: ignore[arg-type]
            DensityFactors(np.arange(n, dtype=np.int32)[None], self._log_likelihood, self._grad, len(self.inputs)),
        ]
        return Target(FactorGraph(Reals(n + 1), factors), self.draw_prior)

    def draw_prior(self, rng: np.random.Generator, size: int) -> Floats:
        """Draw points from the prior of the regression.

        Args:
            rng: Random generator.
            size: Number of points.

        Returns:
            float64[size, D + 2].
        """
        alpha = rng.gamma(self.shape, 1 / self.rate, size)
        weights = rng.normal(size=(size, self.inputs.shape[1])) / np.sqrt(alpha)[:, None]
        return np.column_stack([weights, np.log(alpha)])

    def predict(self, x: Floats, weights: Floats, inputs: ArrayLike) -> Floats:
        """Return the predicted probability of output 1 for each input, averaged over weighted points of the posterior.

        Args:
            x: Points, float64[P, D + 2].
            weights: float64[P].
            inputs: float64[M, D].

        Returns:
            float64[M].
        """
        new = np.column_stack([np.asarray(inputs, float), np.ones(len(np.asarray(inputs)))])
        return np.clip(weights @ special.expit(x[:, :-1] @ new.T) / weights.sum(), 0, 1)

    def _margins(self, w: Floats, terms: Terms) -> tuple[Floats, Floats, Floats]:
        inputs, signs = (self.inputs, self.outputs) if terms is None else (self.inputs[terms], self.outputs[terms])
        return inputs, signs, (w @ inputs.T) * signs

    def _log_likelihood(self, w: Floats, terms: Terms) -> Floats:
        return special.log_expit(self._margins(w, terms)[2]).sum(axis=1)

    def _grad(self, w: Floats, terms: Terms) -> Floats:
        inputs, signs, margins = self._margins(w, terms)
        return (special.expit(-margins) * signs) @ inputs


@dataclass(frozen=True, slots=True, eq=False)
class NeuralRegression:
    """Bayesian neural regression with one hidden layer of ReLUs.

    y ~ N(f(x), 1 / gamma); the weights of f ~ N(0, 1 / lambda); gamma and lambda ~ Gamma(shape, rate). Inputs and
    outputs are scaled internally to mean 0 and variance 1. The variables are D x H weights, H offsets, H weights, one
    offset, log gamma and log lambda: (D + 2) H + 3 in all, as FWSS18 counts (953 for 17 inputs and 50 units).

    Attributes:
        inputs: float64[N, D], in any units; stored scaled.
        outputs: float64[N], in any units; stored scaled.
        units: Number of hidden units, H.
        shape: Shape of the priors.
        rate: Rate of the priors.
        scaling: Mean and deviation of the inputs [D], and of the outputs.
    """

    inputs: Floats
    outputs: Floats
    units: int = 50
    shape: float = 1.0
    rate: float = 0.1
    scaling: tuple[Floats, Floats, float, float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the arguments, and scale the inputs and outputs to mean 0 and standard deviation 1."""
        x, y = check_data(self.inputs, self.outputs)
        check_integer(self.units, "units")
        GammaOfExp(self.shape, self.rate)  # checks both
        # A constant column holds no information; it is scaled to 0.
        spread, width = x.std(axis=0), float(y.std()) or 1.0
        spread = np.where(spread > 1e-12 * np.abs(x).max(axis=0), spread, np.inf)
        object.__setattr__(self, "scaling", (x.mean(axis=0), spread, float(y.mean()), width))
        object.__setattr__(self, "inputs", self._scale_inputs(x))
        object.__setattr__(self, "outputs", (y - y.mean()) / width)

    @property
    def n_weights(self) -> int:
        """Number of weights in the network, without the precisions of the noise and of the weights."""
        return (self.inputs.shape[1] + 2) * self.units + 1

    @property
    def target(self) -> Target:
        """Posterior distribution of the regression, as a `Target` that supports mini-batches."""
        n = self.n_weights
        gamma = GammaOfExp(self.shape, self.rate)
        weights_and_lambda = np.append(np.arange(n), n + 1).astype(np.int32)
        factors = [
            DensityFactors(weights_and_lambda[None], log_scaled_normal, grad_scaled_normal),
            DensityFactors([[n], [n + 1]], gamma.log_density, gamma.grad),  # type: ignore[arg-type]
            DensityFactors(np.arange(n + 1, dtype=np.int32)[None], self._log_likelihood, self._grad, len(self.inputs)),
        ]
        return Target(FactorGraph(Reals(n + 2), factors), self.draw_start)

    def draw_start(self, rng: np.random.Generator, size: int) -> Floats:
        """Draw initial points of the network's weights and precisions.

        Weights are drawn as usual for networks from N(0, 1 / (inputs + 1)), with offsets 0, and lambda is drawn from
        its prior. gamma is fitted to the residuals of these weights, as in the program of SVGD's authors.

        Args:
            rng: Random generator.
            size: Number of points.

        Returns:
            float64[size, d].
        """
        inputs, units = self.inputs.shape[1], self.units
        x = np.zeros((size, self.n_weights + 2))
        x[:, : inputs * units] = rng.normal(size=(size, inputs * units)) / np.sqrt(inputs + 1)
        x[:, -units - 3 : -3] = rng.normal(size=(size, units)) / np.sqrt(units + 1)
        x[:, -1] = np.log(rng.gamma(self.shape, 1 / self.rate, size))
        some = rng.choice(len(self.inputs), min(len(self.inputs), 1000), replace=False)
        x[:, -2] = -np.log(((self.outputs[some] - self._forward(x, self.inputs[some])[0]) ** 2).mean(axis=1))
        return x

    def fit_noise(self, x: Floats, inputs: ArrayLike, outputs: ArrayLike) -> Floats:
        """Refit the noise precision of each network to held-out data, unless this lowers the likelihood of these data.

        This is the last step of the program of SVGD's authors. Each point is fitted separately.

        Args:
            x: Points, float64[P, d].
            inputs: Held-out inputs, float64[M, D].
            outputs: Held-out outputs, float64[M].

        Returns:
            float64[P, d].
        """
        _, _, middle, width = self.scaling
        expected = (np.asarray(outputs, float) - middle) / width
        squares = ((expected - self._forward(x, self._scale_inputs(np.asarray(inputs, float)))[0]) ** 2).mean(axis=1)
        fitted = -np.log(squares)
        now = x[:, -2] - np.exp(x[:, -2]) * squares
        out = x.copy()
        out[:, -2] = np.where(fitted - 1 > now, fitted, x[:, -2])
        return out

    def predict(self, x: Floats, inputs: ArrayLike) -> tuple[Floats, Floats]:
        """Return the predictions and the noise standard deviation of each network, both in the units of the output.

        Args:
            x: Points, float64[P, d].
            inputs: float64[M, D].

        Returns:
            Predictions of P networks for M inputs, float64[P, M], and standard deviations, float64[P].
        """
        _, _, middle, width = self.scaling
        means = self._forward(x, self._scale_inputs(np.asarray(inputs, float)))[0]
        return middle + width * means, width * np.exp(-x[:, -2] / 2)

    def score(self, x: Floats, weights: Floats, inputs: ArrayLike, outputs: ArrayLike) -> tuple[float, float]:
        """Return the RMSE of the mean prediction on test data, and the mean log-likelihood of the test outputs.

        Args:
            x: Points, float64[P, d].
            weights: float64[P], not negative.
            inputs: float64[M, D].
            outputs: float64[M].
        """
        shares, expected = weights / weights.sum(), np.asarray(outputs, float)
        means, deviations = self.predict(x, inputs)
        used = shares > 0
        z = (expected - means[used]) / deviations[used, None]
        logs = -0.5 * z * z - np.log(deviations[used, None] * np.sqrt(2 * np.pi))
        likelihood = cast(Floats, special.logsumexp(logs, axis=0, b=shares[used, None]))
        return float(np.sqrt(((expected - shares @ means) ** 2).mean())), float(np.mean(likelihood))

    def _scale_inputs(self, inputs: Floats) -> Floats:
        middle, spread, _, _ = self.scaling
        return (inputs - middle) / spread

    def _parts(self, x: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Split each parameter vector of P networks into the weights and offsets of layer 1 and those of layer 2."""
        inputs, units = self.inputs.shape[1], self.units
        first = x[:, : inputs * units].reshape(len(x), inputs, units)
        at = inputs * units
        columns = first[0] if len(x) == 1 else np.moveaxis(first, 0, 1).reshape(inputs, -1)
        return columns, x[:, at : at + units], x[:, at + units : at + 2 * units], x[:, at + 2 * units, None]

    def _forward(self, x: Floats, inputs: Floats) -> tuple[Floats, Floats]:
        """Compute the predictions [P, M] of P networks for M inputs, and the values of the hidden units [P, M, H]."""
        first, offsets, second, offset = self._parts(x)
        hidden = np.moveaxis((inputs @ first).reshape(len(inputs), len(x), -1), 1, 0) + offsets[:, None]
        np.maximum(hidden, 0, out=hidden)
        return (hidden @ second[:, :, None])[..., 0] + offset, hidden

    def _pieces(self, n_points: int, terms: Terms):
        """Yield the inputs and outputs of the data points ``terms``, in chunks that fit into the CPU cache.

        If ``terms`` is None, all data terms are selected.
        """
        inputs, outputs = (self.inputs, self.outputs) if terms is None else (self.inputs[terms], self.outputs[terms])
        step = max(1, _CHUNK // (n_points * self.units))
        for i in range(0, len(inputs), step):
            yield inputs[i : i + step], outputs[i : i + step]

    def _log_likelihood(self, x: Floats, terms: Terms) -> Floats:
        total = np.zeros(len(x))
        for inputs, outputs in self._pieces(len(x), terms):
            squares = ((outputs - self._forward(x, inputs)[0]) ** 2).sum(axis=1)
            total += len(inputs) / 2 * (x[:, -1] - np.log(2 * np.pi)) - np.exp(x[:, -1]) / 2 * squares
        return total

    def _grad(self, x: Floats, terms: Terms) -> Floats:
        out = np.zeros(x.shape)
        gamma, second = np.exp(x[:, -1:]), self._parts(x)[2]
        at = self.inputs.shape[1] * self.units
        for inputs, outputs in self._pieces(len(x), terms):
            predicted, hidden = self._forward(x, inputs)
            residual = outputs - predicted
            pull = gamma * residual
            out[:, -1] += len(inputs) / 2 - 0.5 * (pull * residual).sum(axis=1)
            out[:, -2] += pull.sum(axis=1)
            out[:, at + self.units : at + 2 * self.units] += (pull[:, None] @ hidden)[:, 0]
            back = (hidden > 0) * pull[:, :, None]
            back *= second[:, None]
            out[:, at : at + self.units] += back.sum(axis=1)
            out[:, :at] += (inputs.T @ back).reshape(len(x), -1)
        return out
