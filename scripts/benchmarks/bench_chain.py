"""Speed of Viterbi and forward-backward, compared with python-crfsuite in one run: rows for `bench_kernels.py`.

A small CRFsuite model is trained on random sentences, and its weights are read from its file into herdner's arrays.
CRFsuite is timed for `tag()` and for `marginal()` of a token (one forward-backward); the time of `set()`, which reads
the features of a sentence, is excluded. The script checks that both programs return equal results. Both run on one
core; each time is the shortest of several interleaved runs.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pycrfsuite import Tagger, Trainer  # pyright: ignore[reportAttributeAccessIssue]  # it has no types
from timing import Row, best_times, calibration

from herdner.crf.crfsuite_files import read_crfsuite
from herdner.graph import chain_graph as chain_graph
from herdner.inference import linear_chain, make_backend

WORDS = 400


def random_sentences(n: int, n_labels: int, rng: np.random.Generator) -> list[tuple[list[list[str]], list[str]]]:
    """Return random sentences of 5 to 40 tokens with their tags. Four of five tokens are outside names."""
    sentences = []
    for _ in range(n):
        length = int(rng.integers(5, 41))
        labels = np.zeros(length, int)
        for start in np.flatnonzero(rng.random(length) < 0.1):
            labels[start : start + rng.integers(1, 4)] = rng.integers(1, n_labels)
        words = np.where(rng.random(length) < 0.7, labels, rng.integers(0, WORDS, length))
        sentences.append(([[f"w={w}", f"m={w % 7}"] for w in words.tolist()], [f"{k:02d}" for k in labels.tolist()]))
    return sentences


def train(sentences: list, path: Path) -> Tagger:
    trainer = Trainer("lbfgs", {"max_iterations": 30, "c2": 0.1, "feature.possible_transitions": True}, verbose=False)
    for words, labels in sentences[:1000]:
        trainer.append(words, labels)
    trainer.train(str(path))
    tagger = Tagger()
    tagger.open(str(path))
    return tagger


def unary_scores(sentences: list, path: Path) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return unary log-potentials [tokens, tags], transition table [tags, tags] and tags of a CRFsuite model."""
    model = read_crfsuite(path)
    table = np.zeros((len(model.attribute_names), len(model.labels)))
    table[model.attributes, model.state_labels] = model.state_weights
    number = {name: i for i, name in enumerate(model.attribute_names)}
    tokens = [features for words, _ in sentences for features in words]
    unary = np.array([sum((table[number[f]] for f in t if f in number), np.zeros(table.shape[1])) for t in tokens])
    return unary, model.transition, model.labels


class After:
    """Timer of ``call`` on each sentence that CRFsuite's tagger has read, with the shortest total time and the results.

    The timer measures processor time, as for herdner's loops, and subtracts the time of reading the clock.
    """

    def __init__(self, tagger: Tagger, sentences: list, call: Callable[[], Any]) -> None:
        self.tagger, self.sentences, self.call = tagger, sentences, call
        self.seconds, self.answers = float("inf"), []

    def __call__(self) -> None:
        total, answers, clock = 0.0, [], time.process_time
        for words, _ in self.sentences:
            self.tagger.set(words)
            before, began = clock(), clock()
            answer = self.call()
            total += clock() - began - (began - before)
            answers.append(answer)
        self.seconds, self.answers = min(total, self.seconds), answers


def check(
    tags: After, marginals: After, unary: np.ndarray, transition: np.ndarray, offsets: np.ndarray, labels: list
) -> None:
    """Raise an error unless herdner and CRFsuite return the same tags and marginals."""
    states, _ = linear_chain.viterbi(unary, transition, offsets)
    theirs = [tag for answer in tags.answers for tag in answer]
    assert [labels[k] for k in states] == theirs, "the best labellings differ"
    nodes = linear_chain.forward_backward(unary, transition, offsets).nodes
    assert nodes is not None
    np.testing.assert_allclose(nodes[offsets[:-1], 0], marginals.answers, atol=1e-6)


def chain_rows(sentences: int = 4000, labels: int = 9, repeats: int = 5) -> list[Row]:
    """Return the times of Viterbi and forward-backward by herdner and by python-crfsuite on the same sentences."""
    data = random_sentences(sentences, labels, np.random.default_rng(7))
    offsets = np.cumsum([0] + [len(words) for words, _ in data])
    with tempfile.TemporaryDirectory() as folder:
        tagger = train(data, Path(folder, "model"))
        unary, transition, names = unary_scores(data, Path(folder, "model"))
        tags = After(tagger, data, tagger.tag)
        marginals = After(tagger, data, lambda: tagger.marginal(names[0], 0))
        best = make_backend("viterbi")
        seconds = best_times(
            {
                "viterbi": lambda: linear_chain.viterbi(unary, transition, offsets),
                "viterbi, as a graph": lambda: best.infer(chain_graph(unary, transition, offsets)),
                "forward-backward": lambda: linear_chain.forward_backward(unary, transition, offsets),
                "forward-backward with counts": lambda: linear_chain.forward_backward(
                    unary, transition, offsets, transition_counts=True
                ),
                "log-domain forward-backward": lambda: linear_chain.forward_backward(
                    unary[: offsets[200]], transition + np.diag(np.full(labels, 200.0)), offsets[:201]
                ),
                "tags": tags,
                "marginals": marginals,
            },
            repeats,
            time.process_time,
        )
        check(tags, marginals, unary, transition, offsets, names)
    seconds |= {"python-crfsuite tag()": tags.seconds, "python-crfsuite marginal()": marginals.seconds}
    tokens = {"log-domain forward-backward": offsets[200]}
    ns = {k: 1e9 * s / int(tokens.get(k, offsets[-1])) for k, s in seconds.items() if k not in ("tags", "marginals")}
    peers = {"viterbi": ("tag()", 4.0), "forward-backward": ("marginal()", None)}
    exp = calibration()
    rows = []
    for name, value in ns.items():
        row = Row("chain", name, value, value / exp)
        if name in peers:
            call, target = peers[name]
            times = ns[f"python-crfsuite {call}"] / value
            row = replace(row, value=times, unit=f"times python-crfsuite {call}", target=target)
        rows.append(row)
    return rows
