"""Online learning of linear chains: one sequence at a time, with CRFsuite's update rules.

Algorithms: averaged perceptron (Collins 2002), passive aggressive (Crammer et al. 2006), adaptive regularisation of
weights (AROW; Crammer, Kulesza and Dredze 2009) and stochastic gradient descent with L2 regularisation
(Shalev-Shwartz et al. 2007, with a learning rate that is calibrated on a sample).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from herdner._ext import online as loops
from herdner.base.arrays import Floats, Int64s
from herdner.crf.chain_data import ChainData
from herdner.crf.likelihood import Borders, ImpossibleTags
from herdner.crf.trainer import StoppingRule, TrainingInterrupted, TrainingProgress

ALGORITHMS = ("l2sgd", "ap", "pa", "arow")


@dataclass(frozen=True)
class OnlineSettings:
    """Settings of online learning, with the names and defaults of CRFsuite.

    Attributes:
        algorithm: "l2sgd", "ap" (averaged perceptron), "pa" (passive aggressive) or "arow".
        max_iterations: Maximum number of epochs.
        epsilon: Training ends when the mean loss of a sequence is below this number (not "l2sgd").
        c2: Weight of the squared L2 norm ("l2sgd").
        period: Number of epochs over which the decrease of the loss is measured ("l2sgd").
        delta: Training ends when ``period`` epochs have lowered the loss by less than this share ("l2sgd").
        calibration_eta: First learning rate that is tried ("l2sgd").
        calibration_rate: Ratio of two consecutive learning rates that are tried ("l2sgd").
        calibration_samples: Number of sequences on which learning rates are tried ("l2sgd").
        calibration_candidates: Number of learning rates to find that lower the loss, in each direction ("l2sgd").
        calibration_max_trials: Maximum number of learning rates that are tried ("l2sgd").
        pa_type: 0 without slack variables, 1 for PA-I, 2 for PA-II ("pa").
        c: Aggressiveness ("pa").
        error_sensitive: Add the square root of the number of wrong tags to the cost, instead of 1 ("pa").
        averaging: Return the average of the weights of all steps ("pa").
        variance: Initial variance of each weight ("arow").
        gamma: Trade-off between the loss and the change of the weights ("arow").
    """

    algorithm: str
    max_iterations: int = 100
    epsilon: float = 0.0
    c2: float = 1.0
    period: int = 10
    delta: float = 1e-6
    calibration_eta: float = 0.1
    calibration_rate: float = 2.0
    calibration_samples: int = 1000
    calibration_candidates: int = 10
    calibration_max_trials: int = 20
    pa_type: int = 1
    c: float = 1.0
    error_sensitive: bool = True
    averaging: bool = True
    variance: float = 1.0
    gamma: float = 1.0


@dataclass(frozen=True, eq=False)
class OnlineState:
    """Weights and other values that an online algorithm keeps between two epochs.

    Attributes:
        weights: float64[d], weights after the last step.
        second: float64[d], sums for averaging ("ap", "pa") or variances minus the initial one ("arow").
        count: 1 plus the number of steps ("ap", "pa"), or the number of steps ("l2sgd").
        rate: Initial learning rate, found by calibration ("l2sgd").
        decay: Speed at which the learning rate decreases; None is the weight of the L2 norm in the loss of a sequence
            ("l2sgd").
    """

    weights: Floats
    second: Floats
    count: float
    rate: float = 0.1
    decay: float | None = None

    @staticmethod
    def start(weights: Floats, algorithm: str) -> OnlineState:
        """Return the state of an online algorithm before its first update.

        Args:
            weights: float64[d], weights at which learning starts.
            algorithm: Name of the algorithm.
        """
        return OnlineState(weights, np.zeros_like(weights), 0.0 if algorithm == "l2sgd" else 1.0)

    def result(self, settings: OnlineSettings) -> Floats:
        """Return weights for prediction, float64[d]: the mean of all steps if the algorithm averages, else the latest.

        Args:
            settings: Settings of the epochs so far.
        """
        if settings.algorithm == "ap" or (settings.algorithm == "pa" and settings.averaging):
            return self.weights - self.second / self.count
        return self.weights


class OnlineLearner:
    """Online training of a linear chain by stochastic gradients, averaged perceptron, passive aggressive or AROW.

    Args:
        data: Features and allowed tags of the sequences (`ChainData.of_indices` with ``merge=False``).
        settings: Algorithm and its settings.
        borders: Log-potentials that forbid or fix transitions.
        sample_weights: float64[S], weight of each sequence; None is 1.
        n_total: Number of sequences among which the L2 penalty is divided ("l2sgd"); None means S.
    """

    def __init__(
        self,
        data: ChainData,
        settings: OnlineSettings,
        borders: Borders,
        sample_weights: Floats | None = None,
        n_total: float | None = None,
    ) -> None:
        """Store the settings, and pass the training data to compiled code."""
        self.data, self.settings = data, settings
        self.loop_data = loops.OnlineChains(
            data.sentence_offsets, data.starts, data.uses, data.values, data.entry_tags, data.states, data.allowed,
            data.transitions, borders.transition,
        )  # fmt: skip
        self.n_sequences = len(self.loop_data)
        self.sample_weights = np.ones(self.n_sequences) if sample_weights is None else sample_weights
        self.penalty = 2.0 * max(settings.c2, 1e-12) / max(n_total or self.n_sequences, 1)

    def epoch(self, state: OnlineState, order: Int64s) -> tuple[OnlineState, float]:
        """Update the weights once for each sequence; return the new state and the loss summed during the epoch.

        Args:
            state: State before the epoch; it is not changed.
            order: int64, indices of the sequences in the order of the updates.

        Returns:
            The new state, and the loss, which is infinite if numbers overflow or fixed transitions forbid the tags.
        """
        s = self.settings
        weights, second = state.weights.copy(), state.second.copy()
        arguments = self.loop_data, order, self.sample_weights, weights
        count = state.count
        if s.algorithm in ("ap", "pa"):
            kind = loops.PERCEPTRON if s.algorithm == "ap" else s.pa_type
            loss, count = loops.margin_epoch(*arguments, second, count, kind, s.c, s.error_sensitive)
        elif s.algorithm == "arow":
            second += s.variance
            loss = loops.arow_epoch(*arguments, second, s.gamma)
            second -= s.variance
        else:
            decay = self.penalty if state.decay is None else state.decay
            loss, count = loops.sgd_epoch(*arguments, count, state.rate, decay, self.penalty)
            loss += 0.5 * self.penalty * float(weights @ weights) * len(order)
        return replace(state, weights=weights, second=second, count=count), loss

    def calibrate(self, state: OnlineState, order: Int64s) -> OnlineState:
        """Choose the learning rate of "l2sgd" whose trial epoch over a sample, from zero weights, has the lowest loss.

        Args:
            state: State before the first step.
            order: int64, indices of the sequences in random order.

        Returns:
            The state with the chosen learning rate.
        """
        s, sample = self.settings, order[: self.settings.calibration_samples]
        zero = np.zeros_like(state.weights)
        first_loss = self._loss_after(zero, 1e-12, sample)
        rate, best_rate, best_loss = s.calibration_eta, s.calibration_eta, np.inf
        n_wanted, falling = s.calibration_candidates, False
        for _ in range(s.calibration_max_trials):
            if n_wanted <= 0 and falling:
                break
            loss = self._loss_after(zero, rate, sample)
            lowers = np.isfinite(loss) and loss < first_loss
            n_wanted -= bool(lowers)
            if loss < best_loss:
                best_rate, best_loss = rate, loss
            if falling:
                rate /= s.calibration_rate
            elif lowers and n_wanted > 0:
                rate *= s.calibration_rate
            else:
                falling, n_wanted, rate = True, s.calibration_candidates, s.calibration_eta / s.calibration_rate
        return replace(state, rate=best_rate)

    def _loss_after(self, weights: Floats, rate: float, sample: Int64s) -> float:
        """Run one epoch over a sample with the initial learning rate ``rate``; return the loss summed in the epoch."""
        return self.epoch(OnlineState(weights, weights, 0.0, rate), sample)[1]

    def raise_fault(self) -> None:
        """Raise an error that names the cause of an infinite loss.

        Raises:
            ImpossibleTags: Fixed transitions forbid the tags of a sequence.
            ValueError: The numbers overflow.
        """
        zero = np.zeros(self.data.n_features + int(self.data.transitions.sum()))
        for sequence in range(self.n_sequences):
            loss, _ = loops.margin_epoch(
                self.loop_data, np.array([sequence]), self.sample_weights, zero.copy(), zero.copy(), 1.0,
                loops.PERCEPTRON, 1.0, True,
            )  # fmt: skip
            if not np.isfinite(loss):
                raise ImpossibleTags(sequence)
        raise ValueError("the loss overflows; set a smaller `calibration_eta`, or scale down the attribute values")


def train_online(
    learner: OnlineLearner,
    start: Floats,
    rng: np.random.Generator,
    progress: TrainingProgress | None = None,
) -> Floats:
    """Run epochs over all sequences, in random order, until the stopping rule is met; return the weights.

    Args:
        learner: Data and settings.
        start: float64[d], weights at which learning starts.
        rng: Generator of the random orders.
        progress: Function called after each epoch.

    Returns:
        float64[d], averaged weights ("ap", "pa"), weights of the best epoch ("l2sgd"), or the last weights ("arow").

    Raises:
        ImpossibleTags: The fixed transitions forbid the tags of a sequence.
        TrainingInterrupted: Ctrl-C was pressed.
        ValueError: The numbers overflow.
    """
    s, n = learner.settings, learner.n_sequences
    state = OnlineState.start(start, s.algorithm)
    best, losses = start, list[float]()
    try:
        if s.algorithm == "l2sgd":
            state = learner.calibrate(state, rng.permutation(n))
        for iteration in range(1, s.max_iterations + 1):
            state, loss = learner.epoch(state, rng.permutation(n))
            if not np.isfinite(loss):
                learner.raise_fault()
            if s.algorithm != "l2sgd" or loss < min(losses, default=np.inf):
                best = state.result(s)
            losses.append(loss)
            if progress is not None:
                progress(iteration, {"loss": loss, "weights": best})
            if _is_converged(losses, s, n):
                break
    except KeyboardInterrupt:
        raise TrainingInterrupted(best) from None
    return best


def _is_converged(losses: list[float], settings: OnlineSettings, n_sequences: int) -> bool:
    """Return True if the stopping rule of the algorithm is met."""
    if settings.algorithm == "l2sgd":
        rule = StoppingRule(min_decrease=settings.delta, period=settings.period)
        return rule.is_met(losses, np.inf, 0.0)
    mean = losses[-1] / max(n_sequences, 1)
    return mean <= settings.epsilon if settings.algorithm == "arow" else mean < settings.epsilon
