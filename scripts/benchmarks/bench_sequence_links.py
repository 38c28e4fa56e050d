r"""Accuracy of part-of-speech tags by `herdner.CRF` with links between repeated words, and without links.

    python scripts/benchmarks/bench_sequence_links.py ../shared/data/ner/gum [--folds 4]

The corpus is a folder of CoNLL-U files, each of which is a document and a sequence (GUM:
https://github.com/amir-zeldes/gum). Links join each word of at least four letters with its previous occurrence in the
document. The table shows the accuracy without and with links by cross-validation over documents, and the gain with its
95 % interval by a bootstrap over documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from herdner import CRF
from herdner.evaluation.tabular import markdown_table

SHORTEST = 4  # letters of a word that is linked


def read(path: Path) -> tuple[list[str], list[str]]:
    """Return the words and the universal part-of-speech tags of a CoNLL-U file."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if line[:1].isdigit()]
    rows = [row for row in rows if row[0].isdigit()]
    return [row[1] for row in rows], [row[3] for row in rows]


def features(words: Sequence[str]) -> list[dict[str, Any]]:
    """Return the attributes of each word of a document."""
    padded = ["", *(word.lower() for word in words), ""]
    return [
        {
            "bias": 1.0, "word": padded[t + 1], "suffix": [word[-n:].lower() for n in (1, 2, 3)], "before": padded[t],
            "after": padded[t + 2], "title": word.istitle(), "upper": word.isupper(), "digit": word.isdigit(),
        }
        for t, word in enumerate(words)
    ]  # fmt: skip


def repeated_words(words: Sequence[str]) -> list[tuple[int, int]]:
    """Return pairs of word indices: each word of at least four letters with its previous occurrence."""
    last: dict[str, int] = {}
    pairs: list[tuple[int, int]] = []
    for t, word in enumerate(words):
        if len(word) >= SHORTEST and word.isalpha():
            if word.lower() in last:
                pairs.append((last[word.lower()], t))
            last[word.lower()] = t
    return sorted(pairs)


def main(folder: Annotated[Path, typer.Argument(help="folder of CoNLL-U files")], folds: int = 4) -> None:
    """Print a table with the accuracy without and with links."""
    documents = [read(path) for path in sorted(folder.glob("*.conllu"))]
    texts, gold = [words for words, _ in documents], [tags for _, tags in documents]
    fold = np.random.default_rng(0).permutation(len(texts)) % folds
    right = np.zeros((2, len(texts)))
    for k in range(folds):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        for row, links in enumerate((None, repeated_words)):
            crf = CRF("ap", max_iterations=10, features=features, links=links)
            crf.fit([texts[d] for d in train], [gold[d] for d in train])
            for d in test:
                right[row, d] = sum(a == b for a, b in zip(crf.predict_single(texts[d]), gold[d], strict=True))
    sizes = np.array([len(words) for words in texts])
    draws = np.random.default_rng(1).integers(0, len(texts), (10_000, len(texts)))
    gains = 100 * (right[1] - right[0])[draws].sum(axis=1) / sizes[draws].sum(axis=1)
    low, high = np.quantile(gains, [0.025, 0.975])
    chain, linked = 100 * right.sum(axis=1) / sizes.sum()
    gain = f"{linked - chain:+.2f} ({low:+.2f} to {high:+.2f})"
    row = (f"{sizes.sum():,}", f"{chain:.2f} %", f"{linked:.2f} %", gain)
    print(markdown_table(("items", "chain", "with links", "gain, 95 % interval"), [row]))


if __name__ == "__main__":
    typer.run(main)
