"""`herdner.CRF` beside CRFsuite: optima, steps of the online algorithms, weights, predictions and model files."""

from __future__ import annotations

import ctypes
import itertools
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn_crfsuite", reason="needs the extra train")

import pycrfsuite
import sklearn_crfsuite
from labelled_sequences import Sequences, generate
from scipy.special import logsumexp

from herdner import CRF
from herdner.crf.crfsuite_files import crfsuite_bytes, parse_crfsuite, read_crfsuite
from herdner.crf.online import OnlineLearner, OnlineState
from herdner.crf.sequence_tagger import weight_info


def objective(info: Any, items: Sequences, tags: list[list[str]], c1: float, c2: float) -> float:
    """Return the penalised negative log-likelihood by a plain loop over the attributes of python-crfsuite."""
    labels = list(info.labels)
    table = np.zeros((len(labels),) * 2)
    for (left, right), weight in info.transitions.items():
        table[labels.index(left), labels.index(right)] = weight
    loss = 0.0
    for row, gold in zip(items, tags, strict=True):
        unary = np.zeros((len(row), len(labels)))
        for t, attributes in enumerate(pycrfsuite.ItemSequence(row).items()):
            for (name, value), (k, label) in itertools.product(attributes.items(), enumerate(labels)):
                unary[t, k] += value * info.state_features.get((name, label), 0.0)
        forward = unary[0]
        for t in range(1, len(row)):
            forward = logsumexp(forward[:, None] + table, axis=0) + unary[t]
        states = [labels.index(label) for label in gold]
        score = sum(unary[t, k] for t, k in enumerate(states)) + sum(table[pair] for pair in itertools.pairwise(states))
        loss += float(logsumexp(forward) - score)
    weights = np.array([*info.transitions.values(), *info.state_features.values()])
    return loss + c1 * np.abs(weights).sum() + c2 * (weights**2).sum()


@pytest.mark.slow
@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize(("c1", "c2"), list(itertools.product([0.0, 0.1, 1.0], repeat=2)))
def test_the_optimum_is_that_of_crfsuite(c1: float, c2: float, real: bool) -> None:
    items, tags = generate(0, 80, real)
    options = {"c1": c1, "c2": c2, "max_iterations": 2000, "epsilon": 1e-9, "delta": 1e-12}
    losses = [
        objective(crf.fit(items, tags).tagger_.info(), items, tags, c1, c2)
        for crf in (CRF(**options), sklearn_crfsuite.CRF(**options))
    ]
    assert losses[0] <= losses[1] * (1 + 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("min_freq", [None, 0, 1, 3])
@pytest.mark.parametrize("all_possible", [False, True])
def test_weights_exist_where_crfsuite_has_them(all_possible: bool, min_freq: int | None) -> None:
    items, tags = generate(1, 30, real=False)
    options = {"min_freq": min_freq, "all_possible_states": all_possible, "all_possible_transitions": all_possible}
    ours, theirs = (kind(c2=0.01, **options).fit(items, tags).tagger_.info() for kind in (CRF, sklearn_crfsuite.CRF))
    assert set(ours.state_features) == set(theirs.state_features)
    assert set(ours.transitions) == set(theirs.transitions)


def orders_of_crfsuite(seed: int, n: int) -> Iterator[np.ndarray]:
    """Yield the orders in which CRFsuite visits n sequences: it shuffles by ``rand`` of the C library."""
    libc = ctypes.CDLL(None)
    libc.srand(seed)
    order = np.arange(n)
    while True:
        for i in range(n):
            j = libc.rand() % n
            order[[i, j]] = order[[j, i]]
        yield order.copy()


@pytest.mark.skipif(sys.platform != "linux", reason="needs the `rand` that CRFsuite calls")
@pytest.mark.parametrize(
    "options",
    [
        {"algorithm": "ap"},
        {"algorithm": "ap", "all_possible_states": True, "all_possible_transitions": True, "min_freq": 2},
        *({"algorithm": "pa", "pa_type": kind, "c": 0.3} for kind in (0, 1, 2)),
        {"algorithm": "pa", "error_sensitive": False, "averaging": False},
        {"algorithm": "arow"},
        {"algorithm": "arow", "variance": 0.5, "gamma": 2.0},
        {"algorithm": "l2sgd", "c2": 0.1},
        {"algorithm": "l2sgd", "calibration_eta": 0.05, "calibration_candidates": 3, "calibration_samples": 20},
    ],
    ids=str,
)
def test_online_algorithms_take_the_steps_of_crfsuite(options: dict[str, Any]) -> None:
    items, tags = generate(2, 60, real=False)
    for row in items:
        for t, item in enumerate(row):
            item["place"] = 0.25 * t
    n_epochs, seed = 5, 3
    ctypes.CDLL(None).srand(seed)
    theirs = sklearn_crfsuite.CRF(max_iterations=n_epochs, **options).fit(items, tags)
    crf, orders = CRF(max_iterations=n_epochs, **options), orders_of_crfsuite(seed, len(items))
    crf._check_parameters()
    names, data, borders = crf._training_data(items, tags, None)
    learner = OnlineLearner(data, crf._online_settings(), borders)
    state = OnlineState.start(np.zeros(data.n_features + int(data.transitions.sum())), crf.algorithm)
    if crf.algorithm == "l2sgd":
        state = learner.calibrate(state, next(orders))
    for _ in range(n_epochs):
        state, _ = learner.epoch(state, next(orders))
    crf._store(names, data, borders, state.result(learner.settings))
    expected = weight_info(read_crfsuite(theirs.modelfile.name))  # the dump of CRFsuite has six decimals only
    for ours, other in (
        (crf.state_features_ or {}, expected.state_features),
        (crf.transition_features_ or {}, expected.transitions),
    ):
        assert other
        for key in ours.keys() | other.keys():
            assert ours.get(key, 0.0) == pytest.approx(other.get(key, 0.0), abs=1e-9), key


def test_predictions_of_crfsuites_models_are_equal(tmp_path: Path) -> None:
    (items, tags), (test, _) = generate(4, 200), generate(5, 1000)
    path = tmp_path / "model.crfsuite"
    theirs = sklearn_crfsuite.CRF(c1=0.01, c2=0.01, model_filename=str(path)).fit(items, tags)
    ours = CRF.from_crfsuite(path)
    assert list(map(list, ours.predict(test))) == list(map(list, theirs.predict(test)))
    for mine, other in zip(ours.predict_marginals(test), theirs.predict_marginals(test), strict=True):
        for a, b in zip(mine, other, strict=True):
            assert a == pytest.approx(b, abs=1e-9)
    assert ours.size_ == path.stat().st_size


@pytest.mark.slow
def test_crfsuite_runs_our_models(tmp_path: Path) -> None:
    (items, tags), (test, _) = generate(4, 200), generate(5, 300)
    items[0][0]["солнце " + "x" * 300] = True
    crf = CRF(c1=0.01, c2=0.01).fit(items, tags)
    crf.to_crfsuite(tmp_path / "model")
    tagger = pycrfsuite.Tagger()
    tagger.open(str(tmp_path / "model"))
    assert [tagger.tag(row) for row in test] == list(map(list, crf.predict(test)))
    info = tagger.info()
    assert info.transitions.keys() == crf.transition_features_.keys()
    assert info.state_features.keys() == crf.state_features_.keys()


def test_damaged_model_files_are_refused() -> None:
    content = crfsuite_bytes(CRF().fit(*generate(4, 20))._weights)
    rng, n_refused, messages = random.Random(0), 0, set[str]()
    for _ in range(500):
        damaged = bytearray(content)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            weights = parse_crfsuite(bytes(damaged[: rng.randint(40, len(damaged))]), "model")
        except ValueError as error:
            n_refused += 1
            messages.add(str(error).partition("(")[0])
        else:
            weights.unary(weights.encode([[{"word": "w1"}]]))
    assert messages == {"model: not a linear-chain model of CRFsuite "}
    assert 0 < n_refused < 500
