"""Linear-chain CRF for any sequence labelling task: a scikit-learn estimator that replaces ``sklearn_crfsuite.CRF``."""

# scikit-learn has no type stubs.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUntypedBaseClass=false

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from herdner._ext.attributes import AttributeIndex
from herdner.base.arrays import Floats, Int64s
from herdner.base.checks import check_integer, check_real
from herdner.base.extras import import_extra
from herdner.base.messages import warn_caller
from herdner.base.progress import show_progress
from herdner.base.seeds import generator
from herdner.crf.attribute_weights import AttributeWeights, EncodedSequences
from herdner.crf.chain_data import ChainData
from herdner.crf.crfsuite_files import crfsuite_bytes, read_crfsuite, write_crfsuite
from herdner.crf.likelihood import Borders
from herdner.crf.link_rules import Rule
from herdner.crf.model import Links, SkipChainModel
from herdner.crf.online import ALGORITHMS, OnlineLearner, OnlineSettings, OnlineState, train_online
from herdner.crf.sequence_labels import Labellings, check_lengths, decode_states, encode_labels, iterable_as_list
from herdner.crf.sequence_links import (
    ItemLinks,
    infer_sequence,
    learn_link_table,
    link_model,
    log_partition,
    sequence_links,
)
from herdner.crf.sequence_tagger import SequenceTagger, WeightTable, weight_info
from herdner.crf.trainer import StoppingRule, TrainingInterrupted, train_chain
from herdner.crf.weights import ChainWeights
from herdner.inference import Backend, Result
from herdner.inference.backends.exact import Exact
from herdner.inference.linear_chain import decode, smooth
from herdner.inference.record import Record
from herdner.inference.registry import resolve_backend

_sklearn_base = import_extra("sklearn.base", "herdner.CRF needs scikit-learn")
BaseEstimator: Any = _sklearn_base.BaseEstimator
clone: Any = _sklearn_base.clone

T = TypeVar("T")
Items = Sequence[Any]
"""Sequence of items. An item is a dictionary of attributes, a list of strings, or a string."""

_FOLDS = 4  # folds for links: the log-potentials of each fold come from a chain trained on the others
_BATCH = 1 << 16  # number of items that are decoded together
_UNLIMITED = 2**31 - 1  # maximum number of iterations if the algorithm has no limit
_DEFAULTS: dict[str, dict[str, Any]] = {
    "lbfgs": {"max_iterations": _UNLIMITED, "delta": 1e-5, "epsilon": 1e-5},
    "l2sgd": {"max_iterations": 1000, "delta": 1e-6},
    "ap": {"max_iterations": 100, "epsilon": 0.0},
    "pa": {"max_iterations": 100, "epsilon": 0.0},
    "arow": {"max_iterations": 100, "epsilon": 0.0},
}
_OFFERED = {"linesearch": (None, "MoreThuente"), "max_linesearch": (None, 20), "num_memories": (None, 6)}


class CRF(BaseEstimator):
    """Linear-chain CRF for sequence labelling, with the interface of ``sklearn_crfsuite.CRF``.

    ``X`` is a list of sequences. A sequence is a list of items. An item is a dictionary of attributes (values are
    strings, numbers, booleans, or nested lists, sets and dictionaries), a list of strings, or a string. ``y`` is a list
    of lists of labels, one string for each item. A set of strings is a partial annotation, and None is an unknown
    label.

    Parameters that are None have CRFsuite's defaults for the algorithm.

    Args:
        algorithm: "lbfgs" (L-BFGS with L1 and L2 regularisation), "l2sgd" (stochastic gradient descent), "ap" (averaged
            perceptron), "pa" (passive aggressive) or "arow". None is "lbfgs".
        min_freq: Number of times that an attribute must occur with a label to have a weight.
        all_possible_states: Give each attribute a weight for each label, even if they never occur together. As in
            CRFsuite, this has no effect if ``min_freq`` is above 0.
        all_possible_transitions: Give each pair of labels a weight, even if the pair never occurs. As in CRFsuite, this
            has no effect if ``min_freq`` is above 0.
        c1: Weight of the L1 norm ("lbfgs"), 0 by default.
        c2: Weight of the squared L2 norm ("lbfgs", "l2sgd"), 1 by default.
        max_iterations: Maximum number of iterations: unlimited for "lbfgs", 1000 for "l2sgd", else 100.
        num_memories: Only 6, the number of differences that L-BFGS remembers.
        epsilon: Training ends when the norm of the gradient, relative to that of the weights ("lbfgs"), or the mean
            loss ("ap", "pa", "arow") is below this number.
        period: Number of iterations over which the decrease of the loss is measured ("lbfgs", "l2sgd"), 10 by default.
        delta: Training ends when ``period`` iterations lower the loss by less than this share ("lbfgs", "l2sgd").
        linesearch: Only "MoreThuente".
        max_linesearch: Only 20.
        calibration_eta: First learning rate that is tried ("l2sgd").
        calibration_rate: Ratio of the learning rates that are tried ("l2sgd").
        calibration_samples: Number of sequences on which learning rates are tried ("l2sgd").
        calibration_candidates: Number of successful learning rates to find ("l2sgd").
        calibration_max_trials: Maximum number of learning rates to try ("l2sgd").
        pa_type: 0 without slack variables, 1 for PA-I, 2 for PA-II ("pa").
        c: Aggressiveness ("pa").
        error_sensitive: Add the square root of the number of wrong labels to the cost ("pa").
        averaging: Average the weights of all steps ("pa").
        variance: Initial variance of each weight ("arow").
        gamma: Trade-off between the loss and the change of the weights ("arow").
        verbose: Print a line after each iteration.
        progress: Show a progress bar during ``fit``, on a terminal or in a notebook.
        model_filename: Path of a CRFsuite model file. ``fit`` writes it; an estimator that is not fitted reads it.
        keep_tempfiles: Only False, because no temporary files are written.
        trainer_cls: Only None.
        features: Function that maps an element of ``X`` to a sequence of items, such as a list of tokens to a list of
            dictionaries. None uses the elements of ``X`` as they are.
        transitions: Dictionary of fixed transition log-potentials by (label, next label), which are not learned;
            ``-inf`` forbids a transition.
        links: Rule or function that finds pairs of items of a sequence whose labels depend on each other: the name of a
            rule such as "same-word" (for sequences of strings), a rule, or a function that maps an element of ``X`` to
            pairs of item indices. The table that all links share is learned by cross-fitting on four folds. None means
            a chain without links.
        backend: Backend of `predict` and `predict_marginals`: its name, or a `herdner.inference.Backend` with options.
            None means exact inference for chains (Viterbi, forward-backward), and "sum-product" with links.
        warm_start: Start ``fit`` at the weights of the last ``fit``.
        n_threads: Number of threads of "lbfgs"; None is one for each processor, at most 4. Results do not depend on it.
        random_state: Seed of the order of the sequences ("l2sgd", "ap", "pa", "arow").

    Attributes:
        training_log_: Loss of each iteration of the last ``fit``, and accuracy on ``X_dev`` if passed.
    """

    def __init__(
        self,
        algorithm: str | None = None,
        min_freq: int | None = None,
        all_possible_states: bool | None = None,
        all_possible_transitions: bool | None = None,
        c1: float | None = None,
        c2: float | None = None,
        max_iterations: int | None = None,
        num_memories: int | None = None,
        epsilon: float | None = None,
        period: int | None = None,
        delta: float | None = None,
        linesearch: str | None = None,
        max_linesearch: int | None = None,
        calibration_eta: float | None = None,
        calibration_rate: float | None = None,
        calibration_samples: int | None = None,
        calibration_candidates: int | None = None,
        calibration_max_trials: int | None = None,
        pa_type: int | None = None,
        c: float | None = None,
        error_sensitive: bool | None = None,
        averaging: bool | None = None,
        variance: float | None = None,
        gamma: float | None = None,
        verbose: bool = False,
        model_filename: str | Path | None = None,
        keep_tempfiles: bool = False,
        trainer_cls: object = None,
        features: Callable[[Any], Items] | None = None,
        transitions: Mapping[tuple[str, str], float] | None = None,
        links: ItemLinks | None = None,
        backend: str | Backend | None = None,
        warm_start: bool = False,
        progress: bool = False,
        n_threads: int | None = None,
        random_state: int = 0,
    ) -> None:
        """Store the parameters; ``fit`` checks them."""
        for name, value in list(locals().items()):
            if name != "self":
                setattr(self, name, value)

    _weights: AttributeWeights | None = None
    _link_table: Floats | None = None
    _online: tuple[ChainWeights, ChainWeights, OnlineState, list[str]] | None = None
    training_log_: list[dict[str, float]] | None = None

    def fit(
        self,
        X: Iterable[Any],  # scikit-learn's name
        y: Iterable[Any],
        X_dev: Iterable[Any] | None = None,
        y_dev: Iterable[Any] | None = None,
        sample_weight: Sequence[float] | None = None,
    ) -> CRF:
        """Train the weights of a linear chain and, if ``links`` is set, the log-potentials of links.

        Ctrl-C raises `KeyboardInterrupt`; the weights of the last complete iteration are kept.

        Args:
            X: Sequences.
            y: Labels of each sequence.
            X_dev: Sequences on which the accuracy of each iteration is measured.
            y_dev: Labels of ``X_dev``.
            sample_weight: float[S], weight of each sequence, at least 0; None is 1.

        Returns:
            The estimator itself.

        Raises:
            ImpossibleTags: Forbidden transitions rule out the labels of a sequence.
            KeyboardInterrupt: Ctrl-C was pressed.
            TypeError: An item or a label has a wrong type.
            ValueError: A parameter is out of range, or ``X`` and ``y`` do not fit together.
        """
        self._check_parameters()
        if (X_dev is None) != (y_dev is None):
            raise ValueError("only one of `X_dev` and `y_dev` is set; pass both, or neither")
        base = self._weights if self.warm_start else None
        sequences, labels = _list_of(X), iterable_as_list(y, "`y` must be a list of lists of labels")
        self._link_table = None
        names, data, borders = self._training_data(sequences, labels, base)
        self._warn_about_unknown_labels(data.tags)
        weights = _sample_weights(sample_weight, len(data.sentence_offsets) - 1)
        dev = None if X_dev is None else (list(X_dev), list(y_dev or ()))

        def accuracy(vector: Floats) -> float:
            assert dev is not None
            self._store(names, data, borders, vector)
            return self.score(*dev)

        report = _Report(self.verbose, None if dev is None else accuracy)
        vector = None if base is None else data.vector_of(base.learned_weights)
        try:
            with report.show(self.progress, self._value("max_iterations", 0)):
                vector = self._train(data, borders, weights, vector, report)
        except TrainingInterrupted as interrupted:
            self._store(names, data, borders, interrupted.vector)
            raise
        finally:
            self.training_log_ = report.lines
        self._store(names, data, borders, vector)
        if self.links is not None:
            self._link_table = self._learn_links(sequences, labels)
        if self.model_filename is not None:
            self.to_crfsuite(self.model_filename)
        return self

    def partial_fit(
        self,
        X: Iterable[Any],
        y: Iterable[Any],
        classes: Sequence[str] | None = None,
        sample_weight: Sequence[float] | None = None,
    ) -> CRF:
        """Update the weights by one epoch over a mini-batch.

        The next call continues from the resulting weights and state.

        The first call continues from the weights of ``fit`` or of a model file, if there are any, and starts at 0
        otherwise. The initial learning rate of "l2sgd" is ``calibration_eta``; it is not calibrated. L2 regularisation
        changes only weights of attributes in the mini-batch.

        Args:
            X: Sequences of the mini-batch.
            y: Labels of each sequence.
            classes: Labels that may occur in later calls.
            sample_weight: float[S], weight of each sequence, at least 0; None is 1.

        Returns:
            The estimator itself.

        Raises:
            TypeError: An item or a label has a wrong type.
            ValueError: The algorithm is "lbfgs", a parameter is out of range, or ``X`` and ``y`` do not fit together.
        """
        self._check_parameters()
        if self.links is not None:
            raise ValueError("`partial_fit` cannot learn links; use `fit`, or set `links` to None")
        if self._algorithm == "lbfgs":
            raise ValueError(f"`partial_fit` needs one of the algorithms {', '.join(ALGORITHMS)}, got 'lbfgs'")
        settings = self._online_settings()
        old_weights, old_sums, state, names = self._online or self._online_start(settings)
        base = AttributeWeights.of(old_weights, names, old_weights.transition, keep_zeros=True)
        names, data, borders = self._training_data(X, y, base, tuple(classes or ()))
        n_sequences = len(data.sentence_offsets) - 1
        sample_weights = _sample_weights(sample_weight, n_sequences)
        learner = OnlineLearner(data, settings, borders, sample_weights, n_sequences + state.count)
        state = replace(
            state, weights=data.vector_of(old_weights), second=data.vector_of(old_sums),
            decay=learner.penalty if state.decay is None else state.decay,
        )  # fmt: skip
        state, loss = learner.epoch(state, generator(self.random_state).permutation(n_sequences))
        if not np.isfinite(loss):
            learner.raise_fault()
        raw, sums = data.weights_of(state.weights, old_weights), data.weights_of(state.second, old_sums)
        self._online = raw, sums, replace(state, weights=np.empty(0), second=np.empty(0)), names
        self._link_table = None
        self.training_log_ = [*(self.training_log_ or []), {"loss": loss}]
        result = raw
        if state.result(settings) is not state.weights:  # the algorithm averages its weights
            share = -1.0 / state.count
            mean = replace(sums, entry_weights=share * sums.entry_weights).add_to(raw)
            result = replace(mean, transition=raw.transition + share * sums.transition)
        self._weights = AttributeWeights.of(result, names, result.transition + borders.transition)
        return self

    def _online_start(self, settings: OnlineSettings) -> tuple[ChainWeights, ChainWeights, OnlineState, list[str]]:
        """Return the initial weights, weight sums for averaging (all 0), the learner's state, and attribute names."""
        fitted = self._load_weights()
        names = [] if fitted is None else list(fitted.attribute_names)
        weights = ChainWeights.empty() if fitted is None else fitted.learned_weights
        transition, entry_weights = np.zeros_like(weights.transition), np.zeros_like(weights.entry_weights)
        sums = replace(weights, transition=transition, entry_weights=entry_weights)
        # One mini-batch is too small a sample to calibrate the learning rate.
        state = replace(OnlineState.start(np.empty(0), settings.algorithm), rate=settings.calibration_eta)
        return weights, sums, state, names

    def predict(self, X: Iterable[Any] | EncodedSequences, allowed: Iterable[Any] | None = None) -> Labellings:
        """Return the most probable labels of sequences.

        Viterbi is used unless ``backend`` is set or the sequences have links.

        Args:
            X: Sequences, or the result of `encode`.
            allowed: Labels that each item of each sequence may have: a set of strings, a string, or None for all
                labels.

        Returns:
            One-dimensional array of the lists of labels of the sequences. ``tolist`` converts it to a list of lists.

        Raises:
            ImpossibleChain: ``allowed`` and the forbidden transitions leave no labelling of a sequence.
            NotFittedError: The estimator is not fitted.
        """
        weights = self._fitted_weights()
        predictions: list[list[str]] = []
        if self._needs_backend:
            states = [result.state for result in self._infer(X, allowed, None)]
            predictions = [[weights.labels[k] for k in each.tolist()] for each in states]
            return Labellings.of(predictions)
        for batch, unary in self._batches(weights, X, allowed):
            states, _ = decode(unary, weights.transition[None], batch.offsets, None)
            predictions += decode_states(states, batch.offsets, weights.labels)
        return Labellings.of(predictions)

    def encode(self, X: Iterable[Any]) -> EncodedSequences:
        """Encode sequences once, so that repeated calls of `predict` and `predict_marginals` do not encode them again.

        The result is valid until the next ``fit``.

        Args:
            X: Sequences.

        Returns:
            The encoded sequences, which `predict` and `predict_marginals` accept as ``X``.

        Raises:
            NotFittedError: The estimator is not fitted.
        """
        return self._fitted_weights().encode(self._sequences(X))

    def predict_single(self, xseq: Items) -> list[str]:
        """Return the most probable labels of one sequence.

        Args:
            xseq: Items of the sequence.

        Raises:
            NotFittedError: The estimator is not fitted.
        """
        weights = self._fitted_weights()
        if self._needs_backend:
            return self.predict([xseq])[0]
        return SequenceTagger(weights).tag(self._sequences([xseq])[0])

    def predict_marginals(self, X: Iterable[Any] | EncodedSequences) -> Labellings:
        """Return the marginal probability of each label at each item.

        Args:
            X: Sequences, or the result of `encode`.

        Returns:
            One-dimensional array with a list for each sequence. The list has a dictionary from labels to probabilities
            for each item.

        Raises:
            NotFittedError: The estimator is not fitted.
        """
        weights = self._fitted_weights()
        marginals: list[list[dict[str, float]]] = []
        if self._needs_backend:
            for result in self._infer(X, None, Record(best=False, marginals=True)):
                assert result.marginals is not None
                marginals.append([dict(zip(weights.labels, row, strict=True)) for row in result.marginals.tolist()])
            return Labellings.of(marginals)
        for batch, unary in self._batches(weights, X):
            nodes = smooth(unary, weights.transition[None], batch.offsets, None).nodes
            assert nodes is not None
            rows = [dict(zip(weights.labels, row, strict=True)) for row in nodes.tolist()]
            marginals += [rows[begin:end] for begin, end in pairwise(batch.offsets.tolist())]
        return Labellings.of(marginals)

    def predict_marginals_single(self, xseq: Items) -> list[dict[str, float]]:
        """Return the marginal probability of each label at each item of one sequence.

        Args:
            xseq: Items of the sequence.

        Raises:
            NotFittedError: The estimator is not fitted.
        """
        return self.predict_marginals([xseq])[0]

    def log_probability(self, X: Iterable[Any], y: Iterable[Any]) -> Floats:
        """Return the log-probability of the labelling of each sequence.

        Args:
            X: Sequences.
            y: Labels of each sequence. A set of strings or None sums over the labels of an item.

        Returns:
            float64[S], natural logarithm of the probability; -inf if a labelling has an unknown label or is forbidden.

        Raises:
            NotFittedError: The estimator is not fitted.
            TypeError: A label has a wrong type.
            UnsupportedGraph: A sequence has too many links for exact inference.
            ValueError: ``X`` and ``y`` do not fit together.
        """
        weights, sequences, labellings = self._fitted_weights(), list(X), list(y)
        check_lengths(sequences, labellings)
        scores: list[float] = []
        for sequence, labels in zip(sequences, labellings, strict=True):
            model, unary, links = self._unroll(weights, sequence)
            restricted = _forbid(unary, [labels], np.array([0, len(unary)]), weights.labels)
            scores.append(log_partition(model, restricted, links) - log_partition(model, unary, links))
        return np.array(scores)

    def score(self, X: Iterable[Any], y: Iterable[Any], sample_weight: Sequence[float] | None = None) -> float:
        """Return the share of items whose predicted label is correct.

        Args:
            X: Sequences.
            y: Labels of each sequence.
            sample_weight: float[S], weight of the items of each sequence; None is 1.

        Raises:
            NotFittedError: The estimator is not fitted.
            ValueError: ``X`` and ``y`` do not fit together, or there are no items.
        """
        predicted, gold = list(self.predict(X)), list(y)
        check_lengths(predicted, gold)
        weights = _sample_weights(sample_weight, len(predicted))
        right = total = 0.0
        for s, (ours, theirs, weight) in enumerate(zip(predicted, gold, weights, strict=True)):
            if len(ours) != len(theirs):
                raise ValueError(f"sequence {s} must have a label for each item, got {len(ours)} items and"
                                 f" {len(theirs)} labels")  # fmt: skip
            right += weight * sum(a == b for a, b in zip(ours, theirs, strict=True))
            total += weight * len(ours)
        if not total:
            raise ValueError("`X` must have at least one item in a sequence whose weight is not 0")
        return float(right / total)

    def predict_n_best(self, X: Iterable[Any], n_best: int = 5) -> list[list[tuple[list[str], float]]]:
        """Return the most probable labellings of each sequence with their probabilities, best first.

        Args:
            X: Sequences.
            n_best: Number of labellings; shorter lists are returned where there are fewer.

        Returns:
            A list for each sequence, whose elements are pairs (labels, probability of the labelling).

        Raises:
            NotFittedError: The estimator is not fitted.
            UnsupportedGraph: A sequence has too many links for exact inference.
            ValueError: ``n_best`` is below 1.
        """
        backend = Exact(n_best=check_integer(n_best, "n_best"), n_threads=1)
        results: list[list[tuple[list[str], float]]] = []
        for labels, result in self._exact(X, backend):
            if result is None:
                results.append([([], 1.0)])
                continue
            assert result.best_states is not None
            assert result.best_log_potentials is not None
            assert result.log_z is not None
            probabilities = np.exp(result.best_log_potentials - result.log_z).tolist()
            rows = result.best_states.tolist()
            results.append([([labels[k] for k in row], p) for row, p in zip(rows, probabilities, strict=True)])
        return results

    def sample(self, X: Iterable[Any], n_samples: int = 1, random_state: int | None = 0) -> list[list[list[str]]]:
        """Draw labellings of each sequence from the distribution of the model.

        Args:
            X: Sequences.
            n_samples: Number of independent labellings of each sequence.
            random_state: Seed; None for fresh entropy.

        Returns:
            A list of ``n_samples`` labellings for each sequence.

        Raises:
            NotFittedError: The estimator is not fitted.
            UnsupportedGraph: A sequence has too many links for exact inference.
            ValueError: ``n_samples`` is below 1.
        """
        n_samples = check_integer(n_samples, "n_samples")
        backend, rng = Exact(n_samples=n_samples, n_threads=1), generator(random_state)
        samples: list[list[list[str]]] = []
        for labels, result in self._exact(X, backend, rng):
            rows = [[]] * n_samples if result is None else np.asarray(result.samples)[0].tolist()
            samples.append([[labels[k] for k in row] for row in rows])
        return samples

    @property
    def tagger_(self) -> SequenceTagger | None:
        """Tagger that labels one sequence at a time, like ``pycrfsuite.Tagger``; None before ``fit``.

        Raises:
            ValueError: The estimator has links, which this tagger cannot use.
        """
        if self._is_linked:
            raise ValueError("`tagger_` cannot use links; call `predict_single`, `predict_marginals_single` or"
                             " `log_probability`")  # fmt: skip
        return self._map_weights(SequenceTagger)

    @property
    def classes_(self) -> list[str] | None:
        """Labels in the order of their indices; None before ``fit``."""
        return self._map_weights(lambda weights: list(weights.labels))

    @property
    def size_(self) -> int | None:
        """Size of the model as a CRFsuite file, in bytes; None before ``fit``."""
        weights = self._load_weights()
        if weights is None:
            return None
        return len(crfsuite_bytes(replace(weights, transition=np.nan_to_num(weights.transition, neginf=0.0))))

    @property
    def num_attributes_(self) -> int | None:
        """Number of attributes that have a weight; None before ``fit``."""
        return self._map_weights(lambda weights: len(weights.attribute_names))

    @property
    def attributes_(self) -> list[str] | None:
        """Names of the attributes that have a weight; None before ``fit``."""
        return self._map_weights(lambda weights: list(weights.attribute_names))

    @property
    def state_features_(self) -> dict[tuple[str, str], float] | None:
        """Dict from (attribute, label) to the weight of this pair, without zeros; None before ``fit``."""
        return self._map_weights(lambda weights: weight_info(weights).state_features)

    @property
    def transition_features_(self) -> dict[tuple[str, str], float] | None:
        """Dict from (label, next label) to the transition weight, without zeros; None before ``fit``."""
        return self._map_weights(lambda weights: weight_info(weights).transitions)

    def explain_weights(self, top: int = 10) -> WeightTable:
        """Return a table with the largest weights of each label, and with the largest transition weights.

        The table can be shown as text, as HTML, or as a data frame.

        Args:
            top: Number of attributes to select for each label, and of transitions, by largest absolute weight.

        Raises:
            NotFittedError: The estimator is not fitted.
            ValueError: ``top`` is below 1.
        """
        return WeightTable.of(self._fitted_weights(), check_integer(top, "top"))

    @classmethod
    def from_crfsuite(cls, path: str | Path) -> CRF:
        """Build a fitted estimator from a model file of CRFsuite.

        Args:
            path: Path of the file.

        Returns:
            An estimator that is fitted.

        Raises:
            OSError: The file cannot be read.
            ValueError: The file is not a linear-chain model of CRFsuite.
        """
        estimator = cls()
        estimator._weights = read_crfsuite(path)
        return estimator

    def to_crfsuite(self, path: str | Path) -> None:
        """Write a model file that CRFsuite, python-crfsuite and sklearn-crfsuite read.

        Args:
            path: Path of the file, which is replaced.

        Raises:
            NotFittedError: The estimator is not fitted.
            OSError: The file cannot be written.
            ValueError: The model forbids transitions, has links, or has a name with a NUL character.
        """
        if self._link_table is not None:
            raise ValueError("CRFsuite's files cannot have links; save the estimator with joblib or pickle")
        write_crfsuite(self._fitted_weights(), path)

    def __sklearn_is_fitted__(self) -> bool:
        """Return True if the estimator has weights."""
        return self._load_weights() is not None

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's estimator tags: the input holds sequences, and ``y`` is required."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False
        tags.input_tags.dict = True
        return tags

    @property
    def _algorithm(self) -> str:
        return self.algorithm or "lbfgs"

    def _check_parameters(self) -> None:
        """Raise `ValueError` for a parameter that is out of range or not supported."""
        if self._algorithm not in _DEFAULTS:
            raise ValueError(f"`algorithm` must be one of {', '.join(_DEFAULTS)}, got {self.algorithm!r}")
        for name, offered in _OFFERED.items():
            if getattr(self, name) not in offered:
                raise ValueError(f"`{name}` must be {offered[1]!r} or None, got {getattr(self, name)!r}")
        if self.trainer_cls is not None or self.keep_tempfiles:
            raise ValueError("`trainer_cls` and `keep_tempfiles` are not supported; omit them")
        for name in ("max_iterations", "period", "calibration_samples", "calibration_candidates",
                     "calibration_max_trials", "n_threads"):  # fmt: skip
            if getattr(self, name) is not None:
                check_integer(getattr(self, name), name)
        for name in ("c1", "c2", "epsilon", "delta", "min_freq"):
            if getattr(self, name) is not None:
                check_real(getattr(self, name), name, 0.0)
        for name in ("c", "gamma", "variance", "calibration_eta", "calibration_rate"):
            if getattr(self, name) is not None and not check_real(getattr(self, name), name, 0.0) > 0:
                raise ValueError(f"`{name}` must be larger than 0, got {getattr(self, name)}")
        if self.pa_type not in (None, 0, 1, 2):
            raise ValueError(f"`pa_type` must be 0, 1 or 2, got {self.pa_type!r}")
        for name in ("all_possible_states", "all_possible_transitions", "error_sensitive", "averaging"):
            if getattr(self, name) not in (None, True, False):
                raise ValueError(f"`{name}` must be True, False or None, got {getattr(self, name)!r}")
        if self.features is not None and not callable(self.features):
            raise ValueError(f"`features` must be a function or None, got {self.features!r}")
        if self.links is not None and not isinstance(self.links, str | Rule) and not callable(self.links):
            raise ValueError(f"`links` must be the name of a rule, a rule, a function or None, got {self.links!r}")
        if not isinstance(self.model_filename, str | Path | None):
            raise ValueError(f"`model_filename` must be a path or None, got {self.model_filename!r}")
        if not isinstance(self.transitions, Mapping | None):
            raise ValueError(f"`transitions` must be a dictionary or None, got {self.transitions!r}")
        for pair in self.transitions or {}:
            labels = cast("tuple[object, ...]", pair if isinstance(pair, tuple) else ())
            if len(labels) != 2 or not all(isinstance(label, str) for label in labels):
                raise ValueError(f"the keys of `transitions` must be pairs of labels, got {pair!r}")
        if self.backend is not None:
            resolve_backend(self.backend)
        generator(self.random_state)

    def _value(self, name: str, default: Any) -> Any:
        """Return the value of a parameter; None is replaced by CRFsuite's default for the algorithm."""
        value = getattr(self, name)
        return _DEFAULTS[self._algorithm].get(name, default) if value is None else value

    def _online_settings(self) -> OnlineSettings:
        defaults = asdict(OnlineSettings(self._algorithm))
        return OnlineSettings(**{name: self._value(name, default) for name, default in defaults.items()})

    def _sequences(self, X: Iterable[Any]) -> list[Any]:
        """Convert ``X`` to a list of sequences: apply ``features``, and convert iterators to lists."""
        sequences = _list_of(X) if self.features is None else [self.features(each) for each in _list_of(X)]
        for s, sequence in enumerate(sequences):
            if hasattr(sequence, "columns"):
                raise TypeError(f"sequence {s} must be a list of items, got a data frame; pass"
                                " `frame.to_dict('records')`")  # fmt: skip
            if not hasattr(sequence, "__len__"):
                sequences[s] = iterable_as_list(sequence, f"sequence {s} must be a list of items")
        return sequences

    def _training_data(
        self, X: Iterable[Any], y: Iterable[Any], base: AttributeWeights | None, first_labels: tuple[str, ...] = ()
    ) -> tuple[list[str], ChainData, Borders]:
        """Return all attribute names, the training data, and the log-potentials that ``self.transitions`` fixes."""
        index = AttributeIndex(() if base is None else base.attribute_names)
        encoded = EncodedSequences(*index.encode(self._sequences(X), True), index)
        if not encoded.n_items:
            raise ValueError("`X` must have at least one item, but has no sequence, or only empty sequences")
        labels = encode_labels(y, encoded.offsets, [*(() if base is None else base.labels), *first_labels])
        data = ChainData.of_indices(
            np.arange(1, len(index) + 1, dtype=np.uint64),
            encoded.indices,
            encoded.starts,
            encoded.offsets,
            labels.allowed,
            labels.labels,
            min_freq=int(np.ceil(self.min_freq or 0)),
            base=None if base is None else base.learned_weights,
            values=encoded.values,
            merge=self._algorithm == "lbfgs",
            all_states=bool(self.all_possible_states),
            all_transitions=bool(self.all_possible_transitions),
        )
        borders, is_learned = self._fixed_transitions(labels.labels)
        return index.names, replace(data, transitions=data.transitions & is_learned), borders

    def _warn_about_unknown_labels(self, labels: Sequence[str]) -> None:
        """Warn if the parameter ``transitions`` has a label that the training data lack, such as a misspelt one."""
        pairs = cast("Mapping[tuple[str, str], float]", self.transitions or {})
        if unknown := sorted({label for pair in pairs for label in pair}.difference(labels)):
            warn_caller(
                f"`transitions` has labels that `y` lacks, so these transitions have no effect: {', '.join(unknown)}"
            )

    def _fixed_transitions(self, labels: Sequence[str]) -> tuple[Borders, NDArray[np.bool_]]:
        """Return the log-potentials that ``self.transitions`` fixes, else 0; and a mask [K, K] of all other pairs."""
        borders, place = Borders.free(len(labels)), {label: k for k, label in enumerate(labels)}
        is_learned = np.ones(borders.transition.shape, np.bool_)
        for (left, right), value in (self.transitions or {}).items():
            if value != -np.inf:
                check_real(cast("object", value), "transitions")
            if left in place and right in place:
                pair = place[left], place[right]
                borders.transition[pair], is_learned[pair] = value, False
        return borders, is_learned

    def _train(
        self, data: ChainData, borders: Borders, sample_weights: Floats, start: Floats | None, report: _Report
    ) -> Floats:
        """Train the chain with the selected algorithm, and return the weights, float64[d]."""
        if self._algorithm != "lbfgs":
            learner = OnlineLearner(data, self._online_settings(), borders, sample_weights)
            start = np.zeros(data.n_features + int(data.transitions.sum())) if start is None else start
            return train_online(learner, start, generator(self.random_state), report.iteration)
        rule = StoppingRule(
            self._value("max_iterations", 0), self._value("delta", 0), self._value("period", 10),
            self._value("epsilon", 0),
        )  # fmt: skip
        return train_chain(
            data, c1=self._value("c1", 0.0), c2=self._value("c2", 1.0), stopping_rule=rule, start=start,
            document_weights=sample_weights, borders=borders, n_threads=self.n_threads, progress=report.iteration,
        )  # fmt: skip

    def _store(self, names: list[str], data: ChainData, borders: Borders, vector: Floats) -> None:
        weights = data.weights_of(vector)
        self._weights = AttributeWeights.of(weights, names, weights.transition + borders.transition)
        self._online = None

    def _load_weights(self) -> AttributeWeights | None:
        """Return the weights that ``fit`` has learned or that the model file contains; None if neither exists."""
        if self._weights is None and self.model_filename is not None and Path(self.model_filename).exists():
            self._weights = read_crfsuite(self.model_filename)
        return self._weights

    def _map_weights(self, function: Callable[[AttributeWeights], T]) -> T | None:
        """Return ``function(weights)``; return None if there are no weights."""
        weights = self._load_weights()
        return None if weights is None else function(weights)

    def _fitted_weights(self) -> AttributeWeights:
        weights = self._load_weights()
        if weights is None:
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("this CRF has no weights; call `fit`, or set `model_filename` to an existing file")
        return weights

    def _batches(
        self, weights: AttributeWeights, X: Iterable[Any] | EncodedSequences, allowed: Iterable[Any] | None = None
    ) -> Iterator[tuple[EncodedSequences, Floats]]:  # fmt: skip
        """Yield batches of sequences with the log-potentials of their labels, -inf for labels that are not allowed."""
        if isinstance(X, EncodedSequences):
            if allowed is not None:
                raise ValueError("if `allowed` is set, `X` must be the sequences of items, not the result of `encode`")
            yield X, weights.unary(X)
            return
        sequences = self._sequences(X)
        options = None if allowed is None else list(allowed)
        if options is not None:
            check_lengths(sequences, options, "allowed")
        begin = 0
        while begin < len(sequences):
            end, n_items = begin, 0
            while end < len(sequences) and (n_items < _BATCH):
                n_items += len(sequences[end])
                end += 1
            batch = weights.encode(sequences[begin:end])
            unary = weights.unary(batch)
            if options is not None:
                unary = _forbid(unary, options[begin:end], batch.offsets, weights.labels)
            yield batch, unary
            begin = end

    @property
    def _is_linked(self) -> bool:
        """True if the estimator has ``links`` and has learned the table of the links."""
        return self.links is not None and self._link_table is not None

    @property
    def _needs_backend(self) -> bool:
        """True if a backend decodes the sequences, False if Viterbi and forward-backward are exact and faster."""
        return self._is_linked or self.backend is not None

    def _unroll(
        self, weights: AttributeWeights, sequence: Any, allowed: Any = None
    ) -> tuple[SkipChainModel, Floats, Links]:  # fmt: skip
        """Return the skip-chain model of one sequence, the log-potentials of its labels, and its links."""
        ((_, unary),) = self._batches(weights, [sequence], None if allowed is None else [allowed])
        if not self._is_linked:
            return link_model(weights.transition, None), unary, ()
        assert self.links is not None
        return link_model(weights.transition, self._link_table), unary, [sequence_links(self.links, sequence)]

    def _infer(
        self, X: Iterable[Any] | EncodedSequences, allowed: Iterable[Any] | None, record: Record | None
    ) -> Iterator[Result]:
        """Yield the result of the backend for each sequence."""
        if isinstance(X, EncodedSequences):
            raise ValueError(
                "if `backend` or `links` is set, `X` must be the sequences of items, not the result of `encode`"
            )
        weights, backend, sequences = self._fitted_weights(), resolve_backend(self.backend or "sum-product"), list(X)
        options = [None] * len(sequences) if allowed is None else list(allowed)
        check_lengths(sequences, options, "allowed")
        for sequence, option in zip(sequences, options, strict=True):
            yield infer_sequence(*self._unroll(weights, sequence, option), backend, self.random_state, record)

    def _learn_links(self, X: list[Any], y: list[Any]) -> Floats:
        """Learn the table of links. The log-potentials of each fold come from a chain trained on the other folds."""
        assert self.links is not None
        weights = self._fitted_weights()
        n_folds = min(_FOLDS, len(X))
        if n_folds < 2:
            raise ValueError(f"`X` must have at least 2 sequences to learn links, got {len(X)}")
        fold = generator(self.random_state).permutation(len(X)) % n_folds
        chain: CRF = clone(self).set_params(links=None, model_filename=None, warm_start=False, verbose=False)
        unaries: list[Floats] = [np.empty((0, 0))] * len(X)
        for k in range(n_folds):
            others = np.flatnonzero(fold != k).tolist()
            chain.fit([X[s] for s in others], [y[s] for s in others])
            held_out = chain._fitted_weights()
            columns = [weights.labels.index(label) for label in held_out.labels]
            for s in np.flatnonzero(fold == k).tolist():
                ((_, unary),) = chain._batches(held_out, [X[s]])
                unaries[s] = np.zeros((len(unary), len(weights.labels)))
                unaries[s][:, columns] = unary
        complete = [s for s in range(len(X)) if all(isinstance(label, str) for label in y[s])]
        offsets = np.cumsum([0, *(len(unaries[s]) for s in complete)])
        labels = encode_labels([y[s] for s in complete], offsets, weights.labels)
        links = [sequence_links(self.links, X[s]) for s in complete]
        unary = np.concatenate([np.empty((0, len(weights.labels))), *(unaries[s] for s in complete)])
        return learn_link_table(weights.transition, unary, offsets, labels.states, links)

    def _exact(
        self, X: Iterable[Any], backend: Exact, rng: np.random.Generator | None = None
    ) -> Iterator[tuple[list[str], Result | None]]:  # fmt: skip
        """Yield, for each sequence, the labels of the model and the result of exact inference (None if it is empty)."""
        weights, record = self._fitted_weights(), Record(marginals=False)
        for sequence in X:
            model, unary, links = self._unroll(weights, sequence)
            yield weights.labels, infer_sequence(model, unary, links, backend, rng, record) if len(unary) else None


class _Report:
    """Log of the iterations of training.

    Args:
        verbose: Print each line.
        accuracy: Function that returns the accuracy of weights on held-out sequences, or None.
    """

    def __init__(self, verbose: bool, accuracy: Callable[[Floats], float] | None) -> None:
        self.verbose, self.accuracy = verbose, accuracy
        self.lines: list[dict[str, float]] = []
        self.begin = time.perf_counter()
        self.on_line: Callable[[dict[str, float]], None] = lambda line: None

    @contextmanager
    def show(self, visible: bool, max_iterations: int) -> Generator[None]:
        """Show a progress bar during the ``with`` block."""
        with show_progress(
            "iteration {task.completed:.0f}", "loss {task.fields[loss]:.1f}", visible=visible
        ) as display:
            task = display.add_task("training", total=max_iterations if max_iterations < _UNLIMITED else None, loss=0.0)
            self.on_line = lambda line: display.update(task, completed=line["iteration"], loss=line["loss"])
            yield

    def iteration(self, number: int, values: dict[str, Any]) -> None:
        """Record an iteration of L-BFGS or an epoch of online learning, and print a line if ``verbose`` is set."""
        line = {"iteration": number, "seconds": time.perf_counter() - self.begin, "loss": values["loss"]}
        if self.accuracy is not None:
            line["accuracy"] = self.accuracy(values["weights"])
        self.lines.append(line)
        self.on_line(line)
        if self.verbose:
            accuracy = f"  dev accuracy={line['accuracy']:.4f}" if "accuracy" in line else ""
            print(f"Iter {number:<4} time={line['seconds']:.2f}  loss={line['loss']:.2f}{accuracy}", flush=True)


def _forbid(unary: Floats, allowed: list[Any], offsets: Int64s, labels: list[str]) -> Floats:
    """Return a copy of the log-potentials [n, K] with -inf for all labels of an item that are not in ``allowed``."""
    return np.where(encode_labels(allowed, offsets, labels).allowed[:, : len(labels)], unary, -np.inf)


def _list_of(X: Iterable[Any]) -> list[Any]:
    """Return the sequences as a list; raise `TypeError` for data frames and for other values that are not sequences."""
    if hasattr(X, "columns"):
        raise TypeError("`X` must be a list of sequences, got a data frame; pass the rows of each sequence, such as"
                        " `[rows.to_dict('records') for _, rows in frame.groupby('sentence')]`")  # fmt: skip
    return iterable_as_list(X, "`X` must be a list of sequences")


def _sample_weights(weights: Sequence[float] | None, n_sequences: int) -> Floats:
    """Check and return the weight of each sequence, float64[S]; None gives each sequence the weight 1."""
    if weights is None:
        return np.ones(n_sequences)
    try:
        checked = np.array(weights, np.float64)
    except (TypeError, ValueError):
        checked = np.empty(0)
    if checked.shape != (n_sequences,) or not np.isfinite(checked).all() or (checked < 0).any():
        raise ValueError(f"`sample_weight` must have a finite weight, at least 0, for each of {n_sequences} sequences,"
                         f" got {' '.join(repr(weights).split()):.80}")  # fmt: skip
    if n_sequences and not checked.any():
        raise ValueError("`sample_weight` must not be zero for all sequences; give one sequence a positive weight")
    return checked
