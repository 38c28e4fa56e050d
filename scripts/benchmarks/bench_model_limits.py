"""Time to load crafted models at the limits of model files, and to tag one line with them.

``python scripts/benchmarks/bench_model_limits.py`` prints a row for each model: the size of its file, and the processor
seconds to load it and to tag one line, or the line with which it is refused.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from herdner._ext.features import MAX_GAZETTEERS, MAX_OCCURRENCES
from herdner.crf.link_rules import Acronym, Company, LastName, SameStem, SameWord
from herdner.crf.model import LinkTable
from herdner.crf.templates import MOST_LINK_COST, MOST_LINK_TABLES, SkipChain
from herdner.crf.weights import ChainWeights
from herdner.ner import model_file
from herdner.ner.features import MAX_ITEMS, MAX_TEMPLATES, FeaturePlan
from herdner.ner.lexicon import Gazetteers, Lexicon, WordValues
from herdner.ner.model import TaggerModel
from herdner.ner.tagger import load

LINE = "Ada Lovelace met Charles Babbage in Kenya, and Ada Lovelace asked Charles Babbage about Kenya."
LABELS = ("O", *(f"{prefix}-L{i}" for i in range(63) for prefix in "SBIE"))
MILLION = 1_000_000


def hashed(n: int) -> NDArray[np.uint64]:
    """Return about ``n`` random keys in ascending order."""
    return np.unique(np.random.default_rng(0).integers(1, 2**64, n, np.uint64))


def model(
    keys: NDArray[np.uint64] | None = None, *, n_tags: int = 5, n_entries: int = 1, n_tables: int = 0, nearest: int = 3
) -> TaggerModel:
    """Build a model.

    Args:
        keys: Keys of the features.
        n_tags: Number of tags.
        n_entries: Number of weights of each feature.
        n_tables: Number of link tables.
        nearest: Number of links of a mention for each link table.
    """
    keys = hashed(40) if keys is None else keys
    n, transition = len(keys) * n_entries, np.zeros((n_tags, n_tags))
    starts = (np.arange(len(keys) + 1) * n_entries).astype(np.uint32)
    tags = np.resize(np.arange(n_entries, dtype=np.uint8), n)
    weights = ChainWeights(LABELS[:n_tags], transition, keys, starts, tags, np.ones(n))
    rules = (SameWord, SameStem, LastName, Acronym, Company)
    tables = tuple(LinkTable(SkipChain(rules[i % len(rules)](nearest=nearest)), transition) for i in range(n_tables))
    return TaggerModel(weights, FeaturePlan(("word[0]", "lower[0]")), link_tables=tables)


def save_unchecked(made: TaggerModel, path: Path) -> None:
    """Write a model that `TaggerModel.save` refuses to write, in as few bytes as possible."""
    ratio = patch.dict(model_file._RATIOS, {model_file.FORMAT: 10**6})  # no array is stored uncompressed
    with ratio, patch("herdner.ner.model._model"):
        made.save(path)


def largest_tags(n_links: int) -> int:
    """Return the largest number of tags that a model with ``n_links`` links of a mention may have."""
    return min(int((MOST_LINK_COST / n_links) ** 0.5), len(LABELS))


def models() -> dict[str, Callable[[], TaggerModel]]:
    """Return functions that build the models, by description."""
    offsets = [f"[{i}]" for i in range(-9, 10)]
    names = ("word", "lower", "shape", "suffix3", "suffix5", "prefix5", "casing", "bias")
    items = [name + offset for name in names for offset in offsets]
    pairs = [f"{a}|{b}" for a in items for b in items if a != b]
    gazetteers = tuple(f"g{i}" for i in range(MAX_GAZETTEERS))
    words = WordValues(hashed(MILLION), np.full(len(hashed(MILLION)), (1 << 20) - 1, np.uint32))
    most = (1 << 32) - 1  # every list contains every phrase, and every phrase may go on
    phrases = WordValues(words.keys, np.full(len(words.keys), most, np.uint32))
    plan = FeaturePlan(tuple(pairs[: MAX_ITEMS // 2][:MAX_TEMPLATES]), n_occurrences=MAX_OCCURRENCES)
    made: dict[str, Callable[[], TaggerModel]] = {
        "4 million keys": lambda: model(hashed(4 * MILLION)),
        "1 million keys, 7 weights each": lambda: model(hashed(MILLION), n_tags=21, n_entries=7),
        "1 million keys, 20 weights each": lambda: model(hashed(MILLION), n_tags=21, n_entries=20),
        "50,000 keys, 253 tags and weights": lambda: model(hashed(50_000), n_tags=253, n_entries=253),
        "2,000 templates of two items": lambda: replace(model(hashed(MILLION)), plan=plan),
        "2,000 templates, 253 tags": lambda: replace(model(n_tags=253), plan=plan),
        "12 gazetteers, 1 million phrases": lambda: replace(
            model(), lexicon=Lexicon(gazetteers=Gazetteers(gazetteers, phrases)),
            plan=FeaturePlan(("word[0]", "gazetteer:g0[0]"), gazetteers=gazetteers, recasing=gazetteers),
        ),
        "1 million word classes and vectors": lambda: replace(model(), lexicon=Lexicon(classes=words, vectors=words)),
    }  # fmt: skip
    for n_tables, nearest in ((1, 2), (1, 10), (1, 100), (5, 3), (MOST_LINK_TABLES, 1), (MOST_LINK_TABLES, 5)):
        n_tags = largest_tags(n_tables * nearest)
        name = f"{n_tables} link tables, {nearest} links each, {n_tags} tags"
        made[name] = lambda t=n_tables, k=nearest, n=n_tags: model(n_tags=n, n_tables=t, nearest=k)
    return made


def measure(path: Path, line: str = LINE) -> tuple[float, float]:
    """Return the processor seconds to load a model, and to tag a line with it."""
    began = time.process_time()
    tagger = load(path)
    loaded = time.process_time()
    tagger.tag(line)
    return loaded - began, time.process_time() - loaded


def main() -> None:
    """Print a row for each model."""
    load("en").tag(LINE)
    print(f"{'model':<46}{'MB':>8}{'load':>8}{'tag':>8}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m")
        for name, build in models().items():
            save_unchecked(build(), path)
            size = f"{name:<46}{path.stat().st_size / 1e6:>8.2f}"
            try:
                seconds = measure(path)
            except ValueError as error:
                print(f"{size}  {error}", flush=True)
                continue
            print(size + "".join(f"{each:>8.2f}" for each in seconds), flush=True)


if __name__ == "__main__":
    main()
