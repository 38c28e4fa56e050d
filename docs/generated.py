"""What is generated and stands at the end of pages: the options of the commands, and the cards of the models."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import herdner
from herdner.corpora.registry import info
from herdner.ner.model_file import shipped_models

POOR = 60.0  # F1 in per cent below which a corpus or a class is among what a model is bad at
NAMES = {
    "btc": "Broad Twitter Corpus", "conll2003": "CoNLL-2003", "ieer": "IE-ER", "uner_ewt": "English Web Treebank",
    "wikigold": "wikigold", "wnut17": "WNUT-17", "worldwide": "English Worldwide Newswire",
}  # fmt: skip


def commands() -> str:
    """The help of each command, as Typer writes it in Markdown."""
    command = [sys.executable, "-m", "typer", "herdner.cli", "utils", "docs", "--name", "herdner"]
    text = subprocess.run(command, check=True, capture_output=True, text=True, encoding="utf-8").stdout
    text = text[text.index("\n## ") :]
    return re.sub("(`[^`\\n]*`)|(--[a-z][a-z-]*)", lambda found: found[1] or f"`{found[2]}`", text)


def models() -> str:
    """A card for each model, from its file and the registry of corpora."""
    return "\n".join(line for name in sorted(shipped_models()) for line in card(name))


def card(name: str) -> Iterator[str]:
    model = herdner.load(name).model_
    about = model.card
    size = len(shipped_models()[name].read_bytes()) / 1e6
    yield f"\n## `{name}`\n"
    facts = {
        "language": about["language"],
        "classes": ", ".join(about["labels"]),
        "size": f"{size:.1f} MB: {len(model.weights.keys):,} features, {len(model.weights.entry_weights):,} weights",
        "kind": f"skip-chain CRF with hand-made features, {len(model.weights.labels)} {model.scheme.upper()} tags",
        "trained on": f"{about['n_documents']:,} documents",
        "made by": f"`{about['made_by']}`",
        "licence": "MIT, as herdner; the sources below ask to be named",
    }
    yield from table(("what", "value"), facts.items())
    yield "\nTexts and word lists that it was trained with:\n"
    yield from table(("source", "licence", "citation"), sources(about))
    yield "\nMicro F1 of strict spans, in per cent, measured when it was trained; none of it was trained on:\n"
    by_class = {label: f1 for label, f1 in about["f1"].items() if label in about["labels"] or label == "micro"}
    by_corpus = {corpus: f1 for corpus, f1 in about["f1"].items() if corpus not in by_class}
    yield from table(("corpus", "F1"), ((spelled(corpus), f"{f1:.1f}") for corpus, f1 in falling(by_corpus)))
    if by_class:
        micro = by_class.pop("micro")
        yield f"\nBy class, on {NAMES['worldwide']}, dev, with its own nine classes ({micro:.1f} in all):\n"
        yield from table(("class", "F1"), ((label, f"{f1:.1f}") for label, f1 in falling(by_class)))
    poor = [f"{spelled(what)} ({f1:.1f})" for what, f1 in falling(about["f1"]) if f1 < POOR]
    yield f"\n**Bad at**, by these figures: {', '.join(poor)}."


def sources(about: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for name, said in about["corpora"].items():
        source = info(name).source
        yield (f"[{name}]({source})" if source.startswith("http") else name), said["licence"], said["citation"]
    for what, said in about["word_knowledge"].items():
        words, _, licence = said.rpartition(" (")
        yield f"{what}: {words}", licence.rstrip(")"), ""


def falling(scores: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(scores.items(), key=lambda each: -each[1])


def spelled(what: str) -> str:
    """The name of a corpus as the other pages have it."""
    corpus, _, rest = what.replace(",", " ,").partition(" ")
    return f"{NAMES.get(corpus, corpus)} {rest}".strip().replace(" ,", ",")


def table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    for row in (header, ("---",) * len(header), *rows):
        yield f"| {' | '.join(row)} |"


PAGES: dict[str, Callable[[], str]] = {"commands": commands, "models": models}
