"""Speed of training a chain, compared with CRFsuite in one run with the same features and objective.

    python scripts/benchmarks/bench_trainer.py --corpus ../shared/data/ner/conll2003/eng.train:conll2003

1. The time of CRFsuite's training, and the time until the objective of `herdner.crf.trainer` is as low as CRFsuite's
   final objective. Both times begin after the extraction of features, and include reading and writing by CRFsuite, and
   the layout of the data by herdner. The table also shows the ratio for the iterations alone. The runs follow each
   other; CRFsuite has one thread, herdner has ``--threads`` threads. The processor time of all threads shows the load
   of the machine.
2. The time of `Tagger.fit`: the features, the chain, the chains of the folds and the links.

The objectives are compared on CRFsuite's weights, to ensure that both programs minimise the same function.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from timing import AsJson, Repeats, Row, report

import herdner
from herdner.corpora.reading import read
from herdner.crf.chain_data import ChainData
from herdner.crf.crfsuite_files import train_crfsuite
from herdner.crf.likelihood import ChainLikelihood
from herdner.crf.trainer import StoppingRule, train_chain
from herdner.crf.weights import ChainWeights
from herdner.ner.features import default_plan, make_extractor
from herdner.ner.lexicon import Lexicon
from herdner.ner.tagger import Tagger
from herdner.ner.training.allowed_tags import allowed_tags
from herdner.text.document import Document
from herdner.text.tags import convert_tags
from herdner.text.tokenize import Tokenizer

C2, MIN_FREQ = 0.3, 2
MOST_ITERATIONS = 1000  # of ours, until the objective is CRFsuite's
TARGET, STRETCH = 8.0, 15.0


@dataclass(frozen=True)
class Curve:
    """Seconds and objective after each iteration of one training, with the total seconds and processor seconds."""

    seconds: list[float]
    losses: list[float]
    total: float
    processor: float

    @property
    def seconds_per_iteration(self) -> float:
        """Return the mean seconds of an iteration, without the first iteration, which includes set-up."""
        return (self.seconds[-1] - self.seconds[0]) / max(len(self.seconds) - 1, 1)

    @property
    def summary(self) -> str:
        """Return the unit and the breakdown of the seconds."""
        steps = f"{len(self.losses)} iterations of {self.seconds_per_iteration:.3f} s after {self.seconds[0]:.1f} s"
        return f"s ({self.processor:.1f} s of processors, {steps}; objective {self.losses[-1]:,.1f})"

    @property
    def iterating(self) -> float:
        """Return the seconds of the iterations, without set-up."""
        return len(self.seconds) * self.seconds_per_iteration


class Task:
    """Training data of both programs: the features and tags of a corpus."""

    def __init__(self, documents: Sequence[Document], lexicon: Lexicon) -> None:
        self.documents = documents
        extractor = make_extractor(default_plan(lexicon.gazetteers.names if lexicon.gazetteers else ()), lexicon)
        self.features = [extractor.keys(d.tokens, d.sentence_offsets) for d in documents]
        self.offsets = [d.sentence_offsets for d in documents]
        self.tags = [convert_tags(d.tags or (), None, "iobes", d.sentence_offsets) for d in documents]

    @cached_property
    def labels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(tag for sequence in self.tags for tag in sequence))

    def data(self) -> ChainData:
        allowed = [allowed_tags(sequence, self.labels) for sequence in self.tags]
        return ChainData.of(self.features, self.offsets, allowed, self.labels, min_freq=MIN_FREQ)


class _Reached(Exception):
    """Signal that stops training because the objective is at most the goal."""


class Watch:
    """Recorder of the objective of one training, which stops the training if the objective is at most ``goal``."""

    def __init__(self, goal: float = -np.inf) -> None:
        self.goal = goal
        self.seconds: list[float] = []
        self.losses: list[float] = []
        self.began, self.processor = time.perf_counter(), time.process_time()

    def take(self, _: int, report: dict[str, Any]) -> None:
        self.seconds.append(time.perf_counter() - self.began)
        self.losses.append(float(report["loss"]))
        if self.losses[-1] <= self.goal:
            raise _Reached

    def curve(self) -> Curve:
        total = time.perf_counter() - self.began
        return Curve(self.seconds, self.losses, total, time.process_time() - self.processor)


def theirs(task: Task, iterations: int) -> tuple[Curve, ChainWeights]:
    """Train with CRFsuite, and return the curve of the objective and the weights."""
    watch = Watch()
    weights = train_crfsuite(
        task.features, task.offsets, task.tags, c2=C2, min_freq=MIN_FREQ, max_iterations=iterations, progress=watch.take
    )
    return watch.curve(), weights


def ours(task: Task, goal: float, threads: int | None) -> Curve:
    """Train with herdner until the objective is at most ``goal``, and return the curve of the objective."""
    watch = Watch(goal)
    with suppress(_Reached):
        train_chain(
            task.data(), c2=C2, stopping_rule=StoppingRule(MOST_ITERATIONS, 0.0), n_threads=threads, progress=watch.take
        )
    return watch.curve()


def fastest(train: Callable[[], Curve], repeats: int) -> Curve:
    """Train ``repeats`` times, and return the curve of the run with the shortest total time."""
    runs = []
    for _ in range(repeats):
        gc.collect()
        runs.append(train())
    return min(runs, key=lambda run: run.total)


def fit_seconds(documents: Sequence[Document], lexicon: Lexicon) -> float:
    """Return the seconds of `Tagger.fit` with the defaults of `herdner train`: four folds and `same-word` links."""
    began = time.perf_counter()
    Tagger(lexicon=lexicon, c2=C2, min_freq=MIN_FREQ).fit(documents)
    return time.perf_counter() - began


def main(
    corpus: Annotated[str, typer.Option(help="Annotated corpus, as FILE:FORMAT.")],
    documents: Annotated[int | None, typer.Option(help="Number of documents of the corpus [default: all].")] = None,
    iterations: Annotated[int, typer.Option(help="Number of L-BFGS iterations of CRFsuite.")] = 80,
    lexicon: Annotated[str, typer.Option(help="Model with the word classes and gazetteers, or none.")] = "en",
    threads: Annotated[int | None, typer.Option(help="Number of threads of herdner [default: all cores].")] = None,
    fit: Annotated[bool, typer.Option(help="Also measure the time of Tagger.fit.")] = True,
    repeats: Repeats = 1,
    as_json: AsJson = False,
) -> None:
    """Measure the speed of training a chain, compared with CRFsuite."""
    gold = list(islice(read(corpus, tokenizer=Tokenizer()), documents))
    words = Lexicon() if lexicon == "none" else herdner.load(lexicon).model_.lexicon
    task = Task(gold, words)
    found: list[ChainWeights] = []

    def crfsuite() -> Curve:
        curve, weights = theirs(task, iterations)
        found[:] = [weights]
        return curve

    their_curve = fastest(crfsuite, repeats)
    data = task.data()
    goal, _ = ChainLikelihood(data, C2)(data.vector_of(found[0]))
    _check_same(goal, their_curve.losses[-1])
    our_curve = fastest(lambda: ours(task, goal, threads), repeats)
    reached = our_curve.losses[-1] <= goal

    def rows() -> list[Row]:
        found = [
            Row("trainer", "CRFsuite", value=their_curve.total, unit=their_curve.summary),
            Row("trainer", "herdner", value=our_curve.total, unit=our_curve.summary),
            Row("trainer", "to CRFsuite's objective", value=their_curve.total / our_curve.total if reached else 0.0,
                unit="times CRFsuite" if reached else "times CRFsuite: never as low", target=TARGET, stretch=STRETCH),
            Row("trainer", "its iterations alone", value=their_curve.iterating / our_curve.iterating,
                unit="times CRFsuite"),
        ]  # fmt: skip
        if fit:
            found.append(Row("fit", "Tagger.fit, four folds and links", value=fit_seconds(gold, words), unit="s"))
        return found

    size = f"{Path(corpus).name}: {len(gold)} documents, {data.n_tokens:,} tokens"
    report({"trainer": rows}, False, as_json, f"; {size}; CRFsuite's objective {goal:,.1f}")


def _check_same(ours: float, theirs: float) -> None:
    """Raise `SystemExit` unless both programs compute the same objective from CRFsuite's weights."""
    if abs(ours - theirs) > 1e-6 * abs(theirs):
        raise SystemExit(f"the objectives differ: {theirs} by CRFsuite, {ours} by herdner on the same weights")


if __name__ == "__main__":
    typer.run(main)
