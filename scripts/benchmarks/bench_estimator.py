r"""Training and prediction of `herdner.CRF` beside sklearn-crfsuite, with dictionaries as in its tutorial.

    python scripts/benchmarks/bench_estimator.py --corpus ../shared/data/ner/conll2003/eng.train:conll2003 \
        --held-out ../shared/data/ner/conll2003/eng.testa:conll2003 [--sentences 4000]

Each program runs as a process of its own, which reads the corpus and makes the dictionaries before its clock starts. A
time of prediction is the shortest of three. The memory of training is the peak of the process, which Linux reports,
minus the memory before training. In brackets: how many times faster than CRFsuite.
Peer: pip install '.[train]'.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from timing import best_times

from herdner.corpora.formats import read_documents
from herdner.evaluation.tabular import markdown_table

PROGRAMS = {"CRFsuite": ("peer", 1), "herdner, 1 thread": ("ours", 1), "herdner, 2 threads": ("ours", 2)}
MEASURES = {
    "train": "training", "predict": "prediction, all at once", "predict_single": "one by one",
    "predict_prepared": "prepared sequences",
}  # fmt: skip
Sentences = list[list[dict[str, Any]]]


def item(words: Sequence[str], t: int) -> dict[str, Any]:
    """Return the attributes of a token, as in the tutorial of sklearn-crfsuite but without part-of-speech tags."""
    word = words[t]
    attributes: dict[str, Any] = {
        "bias": 1.0, "word.lower()": word.lower(), "word[-3:]": word[-3:], "word[-2:]": word[-2:],
        "word.isupper()": word.isupper(), "word.istitle()": word.istitle(), "word.isdigit()": word.isdigit(),
    }  # fmt: skip
    if t > 0:
        before = words[t - 1]
        attributes |= {
            "-1:word.lower()": before.lower(), "-1:word.istitle()": before.istitle(),
            "-1:word.isupper()": before.isupper(),
        }  # fmt: skip
    else:
        attributes["BOS"] = True
    if t + 1 < len(words):
        after = words[t + 1]
        attributes |= {
            "+1:word.lower()": after.lower(), "+1:word.istitle()": after.istitle(), "+1:word.isupper()": after.isupper()
        }  # fmt: skip
    else:
        attributes["EOS"] = True
    return attributes


def sentences(corpus: str, most: int) -> tuple[Sentences, list[list[str]]]:
    """Return the dictionaries and the tags of the first sentences of a corpus."""
    path, _, form = corpus.partition(":")
    items: Sentences = []
    tags: list[list[str]] = []
    for document in read_documents(path, form):
        for words, own in zip(document.sentences(), document.sentence_tags(), strict=True):
            items.append([item(words, t) for t in range(len(words))])
            tags.append(list(own))
    return items[:most], tags[:most]


def measure(program: str, n_threads: int, corpus: str, held_out: str, most: int) -> dict[str, float]:
    """Train and predict once; return seconds, megabytes and the accuracy on the held-out sentences."""
    train, gold = sentences(corpus, most)
    test, test_gold = sentences(held_out, most)
    options: dict[str, Any] = {"c1": 0.1, "c2": 0.1, "max_iterations": 100, "all_possible_transitions": True}
    if program == "ours":
        from herdner import CRF

        crf: Any = CRF(n_threads=n_threads, **options)
    else:
        from sklearn_crfsuite import CRF as Peer  # pyright: ignore[reportMissingTypeStubs]

        crf = Peer(algorithm="lbfgs", **options)
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak of memory
    before, begin = memory("VmRSS"), time.perf_counter()
    crf.fit(train, gold)
    seconds = {"train": time.perf_counter() - begin}
    peak = memory("VmHWM") - before
    predicted = [list(crf.predict_single(each)) for each in test]  # the first prediction builds the map of attributes
    if program == "ours":
        prepared = crf.encode(test)
        predict_prepared = partial(crf.predict, prepared)
    else:
        from pycrfsuite import ItemSequence  # pyright: ignore

        prepared, tagger = [ItemSequence(each) for each in test], crf.tagger_

        def predict_prepared() -> object:
            return [tagger.tag(each) for each in prepared]

    seconds |= best_times(
        {
            "predict_single": lambda: [crf.predict_single(each) for each in test],
            "predict": lambda: crf.predict(test),
            "predict_prepared": predict_prepared,
        },
        repeats=3,
    )
    pairs = [pair for ours, theirs in zip(predicted, test_gold, strict=True) for pair in zip(ours, theirs, strict=True)]
    return {**seconds, "memory": peak, "accuracy": sum(a == b for a, b in pairs) / len(pairs)}


def memory(name: str) -> float:
    """Return a number of megabytes that Linux reports about the process, such as VmHWM, the peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))


def main(
    corpus: Annotated[str, typer.Option(help="training corpus, FILE:FORMAT")],
    held_out: Annotated[str, typer.Option(help="corpus to predict, FILE:FORMAT")],
    n_sentences: Annotated[int, typer.Option("--sentences", help="maximum number of sentences of each corpus")] = 10**9,
    program: Annotated[str | None, typer.Option(hidden=True)] = None,
) -> None:
    """Run each program in turn and print a table."""
    if program is not None:
        print(json.dumps(measure(*PROGRAMS[program], corpus, held_out, n_sentences)))
        return
    rows: list[tuple[str, ...]] = []
    peer: dict[str, float] = {}
    for name in PROGRAMS:
        command = [sys.executable, str(Path(__file__)), "--corpus", corpus, "--held-out", held_out,
                   "--sentences", str(n_sentences), "--program", name]  # fmt: skip
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        peer = peer or found
        cells = [f"{found[key]:.2f} s ({peer[key] / found[key]:.1f})" for key in MEASURES]
        rows.append((name, *cells, f"{found['memory']:.0f} MB", f"{found['accuracy']:.4f}"))
    head = ("program", *MEASURES.values(), "memory of training", "accuracy")
    print(markdown_table(head, rows))


if __name__ == "__main__":
    typer.run(main)
