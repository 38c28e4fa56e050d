"""Time and peak memory of tagging one long document, and of tagging a stream of many texts.

    python scripts/benchmarks/bench_long.py --corpus ../shared/data/ner/conll2003/eng.testa:conll2003

The long document repeats the texts of the corpus, so each name occurs many times. The stream consists of the texts of
the corpus, tagged by `Tagger.pipe` in one thread. Each measurement runs in its own process, and the memory is the total
peak memory of this process.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from itertools import cycle, islice
from typing import Annotated

import typer
from bench_memory import megabytes_taken
from timing import AsJson, Row, report

import herdner
from herdner.corpora.reading import read
from herdner.text.tokenize import Tokenizer


def texts_of(corpus: str) -> list[str]:
    return [document.text for document in read(corpus, tokenizer=Tokenizer())]


def one_document(model: str, corpus: str, tokens: int) -> dict[str, float]:
    """Tag one text of at least ``tokens`` tokens with links, and return the measurements by name."""
    tagger, texts = herdner.load(model), texts_of(corpus)
    length = sum(Tokenizer()(text).n_tokens for text in texts)
    text = "\n\n".join(islice(cycle(texts), -(-tokens * len(texts) // length)))
    began = time.perf_counter()
    document = tagger.tag(text)
    seconds = time.perf_counter() - began
    return {"tokens": document.n_tokens, "seconds": seconds}


def stream(model: str, corpus: str, megabytes: int) -> dict[str, float]:
    """Tag texts of at least ``megabytes`` megabytes in total, and return the measurements by name."""
    tagger, texts = herdner.load(model), texts_of(corpus)
    rounds = -(-megabytes * 1_000_000 // sum(len(text.encode()) for text in texts))
    began = time.perf_counter()
    tokens = sum(document.n_tokens for document in tagger.pipe(islice(cycle(texts), rounds * len(texts))))
    return {"tokens": tokens, "seconds": time.perf_counter() - began}


def measured(run: Callable[[str, str, int], dict[str, float]], *arguments: str | int) -> dict[str, float]:
    """Run a function in a new process, and add the peak memory in megabytes (10^6 bytes) to its result."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_with_memory, (run, arguments))


def _with_memory(run: Callable[..., dict[str, float]], arguments: tuple[str | int, ...]) -> dict[str, float]:
    return {**run(*arguments), "megabytes": megabytes_taken()}


def main(
    corpus: Annotated[str, typer.Option(help="Corpus of the texts, as FILE:FORMAT.")],
    model: Annotated[str, typer.Option(help="Name or file of the model.")] = "en",
    tokens: Annotated[int, typer.Option(min=1, help="Minimum number of tokens of the long document.")] = 1_000_000,
    megabytes: Annotated[int, typer.Option(min=1, help="Minimum size of the stream, in megabytes.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Measure the tagging of one document of many tokens, and of a stream of many texts."""

    def rows(what: str, measurements: dict[str, float]) -> list[Row]:
        ns = 1e9 * measurements["seconds"] / measurements["tokens"]
        return [
            Row("long", what, ns, value=measurements["seconds"], unit=f"s, {measurements['tokens']:,} tokens"),
            Row("long", f"{what}, memory", value=measurements["megabytes"], unit="MB"),
        ]

    groups = {
        "document": lambda: rows("one document", measured(one_document, model, corpus, tokens)),
        "stream": lambda: rows("a stream of texts", measured(stream, model, corpus, megabytes)),
    }
    report(groups, False, as_json)


if __name__ == "__main__":
    typer.run(main)
